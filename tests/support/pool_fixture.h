/* pool_fixture.h - a worker with pools of tests/helpers/hf-pool-program, on a queue "q"
 * of a private server. What the programs do stands in the file `log`; the other files
 * say how they start and what they offer (see there). */
#ifndef HF_TESTS_POOL_FIXTURE_H
#define HF_TESTS_POOL_FIXTURE_H

#include "tests/support/queue_fixture.h"
#include "tests/support/worker_fixture.h"

enum { HF_POOL_FIXTURE_ARGS = 14, HF_POOL_FIXTURE_LOG = 1 << 20 };

typedef struct hf_pool_fixture {
    hf_queue_fixture queue;
    hf_worker_fixture worker;
    bool alone; /* the worker has no handler for "t" */
    char log[128], start[128], types[128], members[128], schedules[128];
    char text[HF_POOL_FIXTURE_LOG]; /* of the log, as it was read last */
} hf_pool_fixture;

int hf_pool_fixture_up(void **state);
int hf_pool_fixture_down(void **state);
#define HF_POOL_TEST(name, fixture)                                                      \
    cmocka_unit_test_prestate_setup_teardown(name, hf_pool_fixture_up,                   \
                                             hf_pool_fixture_down, fixture)

/* argv for a pool, with the files of the fixture: out[HF_POOL_FIXTURE_ARGS]. args (at
 * most 6, ended by NULL; NULL: none) come behind them. */
void hf_pool_fixture_argv(const hf_pool_fixture *fixture, const char **out,
                          const char *const *args);

/* Zero members of opts as in hf_worker_fixture_start(), but a back-off of a minute, so
 * that a job that failed can be looked at. Waits until each pool has a process that is
 * ready, if `ready`. */
void hf_pool_fixture_start(hf_pool_fixture *fixture, const hf_worker_opts *opts,
                           const hf_pool *pools, size_t n, bool ready);
void hf_pool_fixture_fill(hf_pool_fixture *fixture, hf_worker_opts *opts);

/* Enqueues a job. options: members of the record, such as ",\"timeout\":100"; NULL: none.
 */
void hf_pool_fixture_put(hf_pool_fixture *fixture, const char *id, const char *type,
                         const char *payload, const char *options);
/* n of them, "PREFIX-0" and so on. */
void hf_pool_fixture_put_many(hf_pool_fixture *fixture, const char *prefix,
                              const char *type, const char *payload, unsigned n);

/* Asks a job of the queue "q" that runs to end. */
void hf_pool_fixture_cancel(hf_pool_fixture *fixture, const char *id);

/* How many lines of the programs' log begin with, or contain, the text. */
size_t hf_pool_fixture_did(hf_pool_fixture *fixture, const char *text);
/* The process that began a job last; 0: none. */
pid_t hf_pool_fixture_pid_of(hf_pool_fixture *fixture, const char *id);

/* Of the queue "q", borrowed until the next question. "(nil)": there is none. */
const char *hf_pool_fixture_record(hf_pool_fixture *fixture, const char *id);
const char *hf_pool_fixture_result(hf_pool_fixture *fixture, const char *id);
const char *hf_pool_fixture_crashes(hf_pool_fixture *fixture, const char *id);

/* Whether the worker's log has the outcome of a job, with this text in its line. */
bool hf_pool_fixture_ended(hf_pool_fixture *fixture, const char *id, const char *outcome,
                           const char *text);

#endif
