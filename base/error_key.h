/* error_key.h - which errors are of one kind: those that differ only in numbers and ids.
 */
#ifndef HF_BASE_ERROR_KEY_H
#define HF_BASE_ERROR_KEY_H

enum { HF_ERROR_KEY_SIZE = 256 };

/* "item 4711 of a1b2c3d4e5" becomes "item # of *": digits, and ids of 8 or more hex
 * digits, in its gist (base/text.h). The key of a key is the same key. */
void hf_error_key(const char *error, char out[HF_ERROR_KEY_SIZE]);

#endif
