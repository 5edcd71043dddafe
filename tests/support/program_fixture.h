/* program_fixture.h - programs run by worker/program/programs.h on a loop of the test's
 * own, and what happened to each.
 *
 * The test's executable is also its own minder and its own helpers, chosen by its first
 * argument: its main() asks hf_program_fixture_role() first. */
#ifndef HF_TESTS_PROGRAM_FIXTURE_H
#define HF_TESTS_PROGRAM_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <uv.h>

#include "tests/support/eventually.h"
#include "tests/support/proc.h"
#include "tests/support/tempdir.h"

#include "worker/program/programs.h"

enum { HF_PROGRAM_FIXTURE_LINES = 2048 };

/* "descriptors" prints those that are open; "signals" prints what it was started with. */
#define HF_PROGRAM_FIXTURE_SELF "/proc/self/exe"

typedef struct hf_outcome {
    int done;   /* how often it was told that the program is done, */
    int denied; /* and that it may not be signalled */
    hf_program_result result;
    char error[HF_PROGRAM_ERROR_MAX + 1];
    size_t n_lines, line_bytes;
    struct {
        int stream;
        char *text;
    } lines[HF_PROGRAM_FIXTURE_LINES];
    hf_process *process;
} hf_outcome;

typedef struct hf_program_fixture {
    uv_loop_t loop;
    hf_groups *groups;
    hf_programs *programs;
    int ready_calls[2]; /* how often it was told: not ready, ready */
    void (*when_down)(
        struct hf_program_fixture *fixture); /* called as `not ready` is told */
    char dir[HF_TEMPDIR_SIZE];
    bool cgroup; /* the test may set it before the start */
} hf_program_fixture;

extern const hf_program_job hf_plain_job;

/* True when this process is a minder or a helper; then main() returns the status. */
bool hf_program_fixture_role(int argc, char **argv, int *status);

void hf_program_fixture_start(hf_program_fixture *fixture);
/* Closes what is not closed yet. Fails the test when a child is left. */
void hf_program_fixture_stop(hf_program_fixture *fixture);
/* The same for cmocka, whose state is the fixture. */
int hf_program_fixture_up(void **state);
int hf_program_fixture_down(void **state);
#define HF_PROGRAM_TEST(name, fixture)                                                   \
    cmocka_unit_test_prestate_setup_teardown(name, hf_program_fixture_up,                \
                                             hf_program_fixture_down, fixture)
/* Closes the programs, and runs the loop until that has happened. */
void hf_program_fixture_close(hf_program_fixture *fixture);

/* Runs the loop until *n is at least `want`, at most 30 s; for some time. */
void hf_program_fixture_until(hf_program_fixture *fixture, const int *n, int want);
void hf_program_fixture_turn(hf_program_fixture *fixture, unsigned ms);

/* Starts a program; without a deadline it has a minute. */
hf_err hf_program_fixture_begin(hf_program_fixture *fixture, hf_outcome *o,
                                const hf_program *spec, hf_program_job job);
/* Waits for its end, which must be told once. */
void hf_program_fixture_finish(hf_program_fixture *fixture, hf_outcome *o);

/* Runs a shell script as a program from start to end; hf_outcome_free() what it gives. */
void hf_program_fixture_script(hf_program_fixture *fixture, hf_outcome *o,
                               const char *script, hf_program spec, hf_program_job job);
/* The same, with nothing special. */
void hf_program_fixture_sh(hf_program_fixture *fixture, hf_outcome *o,
                           const char *script);

bool hf_outcome_has(const hf_outcome *o, int stream, const char *text);
pid_t hf_outcome_pid(const hf_outcome *o, size_t line);
void hf_outcome_free(hf_outcome *o);

#endif
