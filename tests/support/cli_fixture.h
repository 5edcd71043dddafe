/* cli_fixture.h - runs the built command against a private server, in a directory of its
 * own.
 */
#ifndef HF_TESTS_CLI_FIXTURE_H
#define HF_TESTS_CLI_FIXTURE_H

#include "tests/support/proc.h"
#include "tests/support/redis_fixture.h"
#include "tests/support/tempdir.h"
#include "tests/support/terminal.h"

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
