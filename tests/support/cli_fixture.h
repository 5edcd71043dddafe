/* cli_fixture.h - runs the built command against a private server, in a directory of its
 * own; and any program at a terminal of its own: the test sees what it shows, and types.
 *
 *     hf_terminal_start(&t, args, NULL, dir);
 *     EVENTUALLY(5000, hf_terminal_shows(&t, "[y/N] "));
 *     hf_terminal_type(&t, "yes\n");
 *     assert_int_equal(hf_terminal_end(&t, 5000), 0); */
#ifndef HF_TESTS_CLI_FIXTURE_H
#define HF_TESTS_CLI_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "tests/support/proc.h"
#include "tests/support/redis_fixture.h"
#include "tests/support/tempdir.h"

/* ---- a terminal ---- */

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

/* ---- the command ---- */

enum { HF_CLI_TEXT = 1 << 16, HF_CLI_WORDS = 24, HF_CLI_PATH = HF_TEMPDIR_SIZE + 64 };

/* For the beginning of a configuration: a busy machine gives Redis no processor for
 * longer than the time-outs are by default. */
#define HF_CLI_PATIENT "redis: {connect_timeout: 5m, request_timeout: 30s}\n"

typedef struct hf_cli_fixture {
    hf_fixture redis;
    const char *command; /* borrowed: the path of the binary */
    char dir[HF_TEMPDIR_SIZE];
    char out[HF_CLI_TEXT], err[HF_CLI_TEXT]; /* of what ran last */
} hf_cli_fixture;

void hf_cli_fixture_start(hf_cli_fixture *fixture, const char *command);
void hf_cli_fixture_stop(hf_cli_fixture *fixture);

/* The path of a file in the directory; writing one; reading one (into `out`); whether
 * there is one; removing it, if there is. */
void hf_cli_fixture_path(const hf_cli_fixture *fixture, const char *name,
                         char out[HF_CLI_PATH]);
void hf_cli_fixture_put(const hf_cli_fixture *fixture, const char *name,
                        const char *text);
const char *hf_cli_fixture_get(hf_cli_fixture *fixture, const char *name);
bool hf_cli_fixture_has(const hf_cli_fixture *fixture, const char *name);
void hf_cli_fixture_remove(const hf_cli_fixture *fixture, const char *name);

/* Runs the command with the words of a line; "@" becomes --redis and the server's URL.
 * `input` (may be NULL) is its standard input, `env` (may be NULL) is added. Returns its
 * exit code, -1 when it takes longer than 20 s; fills out and err. */
int hf_cli_fixture_run(hf_cli_fixture *fixture, const char *line, const char *input,
                       const char *const *env);

/* Starts it and does not wait; its standard error goes to the file `log`. */
void hf_cli_fixture_begin(hf_cli_fixture *fixture, hf_proc *proc, const char *line,
                          const char *log);

/* Starts it at a terminal of its own. */
void hf_cli_fixture_at_terminal(hf_cli_fixture *fixture, hf_terminal *t, const char *line,
                                const char *const *env);

#endif
