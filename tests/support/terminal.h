/* terminal.h - a program at a terminal of its own: the test sees what it shows, and
 * types.
 *
 *     hf_terminal_start(&t, args, NULL, dir);
 *     EVENTUALLY(5000, hf_terminal_shows(&t, "[y/N] "));
 *     hf_terminal_type(&t, "yes\n");
 *     assert_int_equal(hf_terminal_end(&t, 5000), 0); */
#ifndef HF_TESTS_TERMINAL_H
#define HF_TESTS_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { HF_TERMINAL_TEXT = 1 << 16 };

typedef struct hf_terminal {
    pid_t pid; /* 0: it has ended */
    int fd;    /* of our side; -1: closed */
    int status;
    char text[HF_TERMINAL_TEXT]; /* all that was shown, "\r\n" at the ends of lines */
    size_t len;
} hf_terminal;

/* Its standard input, output and error are the terminal. `env` (may be NULL) is added. It
 * is killed when the test dies. Ends the test when that cannot be. */
void hf_terminal_start(hf_terminal *t, const char *const *args, const char *const *env,
                       const char *dir);

/* Whether the text has been shown so far. */
bool hf_terminal_shows(hf_terminal *t, const char *text);

/* "\003" is ^C, "\004" at the beginning of a line is the end of input. */
void hf_terminal_type(hf_terminal *t, const char *text);

/* Waits until it has ended; its exit code, or 128 + the signal; -1: not within `ms`, and
 * it was killed. What it showed stays in `text`. */
int hf_terminal_end(hf_terminal *t, unsigned ms);

#endif
