/* runs_test.h - a worker whose runs are told, an administrator that reads them, and short
 * words for both. Included by one test program each. */
#ifndef HF_TESTS_RUNS_TEST_H
#define HF_TESTS_RUNS_TEST_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "holdfast/runs.h"
#include "tests/support/eventually.h"
#include "tests/support/queue_fixture.h"
#include "tests/support/worker_fixture.h"

enum { SOON_MS = 20000, RUNS_MAX = 4096 };

static hf_queue_fixture fixture;
static hf_fixture *const redis = &fixture.redis;
static hf_worker_fixture worker;
static char detail[HF_DETAIL_SIZE];

static inline int up(void **state)
{
    (void)state;
    hf_queue_fixture_start(&fixture, &(hf_fixture_options){.clock = true});
    fixture.admin = hf_queue_fixture_admin(&fixture);
    return 0;
}

static inline int down(void **state)
{
    (void)state;
    hf_worker_fixture_end(&worker);
    hf_queue_fixture_stop(&fixture);
    return 0;
}

/* ---- reading ---- */

static struct seen {
    hf_runs_place place;
    size_t entries, n;
    int64_t ok, failed, cut;
    size_t most; /* runs in one entry */
    hf_reported_run runs[RUNS_MAX];
    char workers[RUNS_MAX][HF_HOLDER_SIZE];
} seen;

static inline void forget(void)
{
    memset(&seen, 0, sizeof seen);
    seen.place = (hf_runs_place){HF_RUNS_PLACE_INIT};
}

static inline void on_entry(const hf_runs_entry *entry, void *arg)
{
    (void)arg;
    seen.entries++;
    seen.ok += entry->short_done;
    seen.failed += entry->short_failed;
    seen.cut += entry->cut;
    seen.most = entry->n_runs > seen.most ? entry->n_runs : seen.most;
    for (size_t i = 0; i < entry->n_runs; i++) {
        assert_true(seen.n < RUNS_MAX);
        (void)snprintf(seen.workers[seen.n], HF_HOLDER_SIZE, "%s", entry->worker);
        seen.runs[seen.n++] = entry->runs[i];
    }
}

static inline void look_at(const char *queue)
{
    hf_err err = hf_admin_runs(fixture.admin, queue, &seen.place, on_entry, NULL, detail);
    if (err != HF_OK)
        fail_msg("%s: %s", hf_err_name(err), detail);
}

static inline void look(void)
{
    look_at("q");
}

static inline void watch(void)
{
    hf_err err = hf_admin_watch(fixture.admin, detail);
    if (err != HF_OK)
        fail_msg("%s: %s", hf_err_name(err), detail);
}

/* The last line about a job; looks first. NULL: there is none. */
static inline const hf_reported_run *told(const char *id)
{
    look();
    for (size_t i = seen.n; i-- > 0;)
        if (strcmp(seen.runs[i].id, id) == 0)
            return &seen.runs[i];
    return NULL;
}

static inline bool has_ended(const char *id, hf_run_end end)
{
    const hf_reported_run *run = told(id);
    return run != NULL && run->end == end;
}

static inline void start(const hf_worker_opts *opts)
{
    forget();
    static const hf_worker_opts patient = {HF_WORKER_OPTS_INIT, .lease_ms = 10000};
    hf_worker_fixture_start(&worker, redis->url, opts != NULL ? opts : &patient, 0);
}

static inline void put(const char *id, const char *payload)
{
    hf_queue_fixture_put(&fixture, id, payload, 0);
}

static inline long long stream(void)
{
    return hf_fixture_number(redis, "XLEN hf:{q}:runs");
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, up, down)

#endif
