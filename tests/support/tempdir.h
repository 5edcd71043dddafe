/* tempdir.h - a private directory with a short name, for sockets and files of one test.
 */
#ifndef HF_TESTS_TEMPDIR_H
#define HF_TESTS_TEMPDIR_H

/* A unix socket's path holds 107 bytes, so the directory's name leaves room for one. */
enum { HF_TEMPDIR_SIZE = 80 };

/* Makes it under $TMPDIR, or under /tmp when that is unset or too long. Ends the program
 * when it cannot be made. */
void hf_tempdir_make(char out[HF_TEMPDIR_SIZE]);

/* Removes the directory and all that is in it; an empty name is ignored. */
void hf_tempdir_remove(const char *path);

/* The text of a file of at most `size - 1` bytes, ended by a NUL; "" when there is none.
 */
const char *hf_read_file(const char *path, char *buf, unsigned size);

/* Writes a file, or ends the program. */
void hf_write_file(const char *path, const char *text);

#endif
