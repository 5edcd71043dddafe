/* cli_try.h - running the command and reading its answers, for tests of what it does to
 * queues: one fixture for all tests of a program, and at most one worker in the
 * background. Each fails the test, with what was printed, when it is not as it should be.
 */
#ifndef HF_TESTS_CLI_TRY_H
#define HF_TESTS_CLI_TRY_H

#include <jansson.h>
#include <stdbool.h>

#include "tests/support/cli_fixture.h"

extern hf_cli_fixture hf_try_fixture;
extern hf_proc hf_try_proc; /* the worker */

/* Before all tests of a program and after them, in its main(); `config` (borrowed, may be
 * NULL) goes to the file "w.yaml". */
void hf_try_up(const char *command, const char *config);
void hf_try_down(void);

/* Between them: no worker, an empty server, and "w.yaml" as it was. Returns 0. */
int hf_try_clean(void **state);

void hf_try_run(const char *line, int code);
void hf_try_has(const char *text, const char *part);

/* The object that a line prints: on standard output, or as a fault on standard error when
 * `code` is none of success. The caller ends it. */
json_t *hf_try_object(const char *line, int code);
const char *hf_try_text(const json_t *object, const char *key);
long long hf_try_number(const json_t *object, const char *key);

/* A figure of a queue; whether a job exists and is in a state. */
long long hf_try_figure(const char *queue, const char *key);
bool hf_try_is_in(const char *id, const char *state);

/* Starts it with the words of a line, its log goes to the file "log"; waits until it
 * serves. */
void hf_try_worker(const char *line);
bool hf_try_logged(const char *part);

#endif
