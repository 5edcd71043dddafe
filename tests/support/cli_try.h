/* cli_try.h - running the command and reading its answers, for tests of what it does to
 * queues. Each fails the test, with what was printed, when it is not as it should be. */
#ifndef HF_TESTS_CLI_TRY_H
#define HF_TESTS_CLI_TRY_H

#include <jansson.h>
#include <stdbool.h>

#include "tests/support/cli_rig.h"

void hf_try_run(hf_cli_rig *rig, const char *line, int code);
void hf_try_has(const char *text, const char *part);

/* The object that a line prints: on standard output, or as a fault on standard error when
 * `code` is none of success. The caller ends it. */
json_t *hf_try_object(hf_cli_rig *rig, const char *line, int code);
const char *hf_try_text(const json_t *object, const char *key);
long long hf_try_number(const json_t *object, const char *key);

/* A figure of a queue; whether a job exists and is in a state. */
long long hf_try_figure(hf_cli_rig *rig, const char *queue, const char *key);
bool hf_try_is_in(hf_cli_rig *rig, const char *id, const char *state);

/* Starts `holdfast worker -c CONFIG`, its log goes to the file "log"; waits until it
 * serves. */
void hf_try_worker(hf_cli_rig *rig, hf_proc *worker, const char *config);

#endif
