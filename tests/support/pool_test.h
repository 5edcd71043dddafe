/* pool_test.h - the fixture of a test program about pools, and short words for it.
 * Included by that program alone. */
#ifndef HF_TESTS_POOL_TEST_H
#define HF_TESTS_POOL_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/eventually.h"
#include "tests/support/pool_fixture.h"
#include "tests/support/tempdir.h"

enum { SOON_MS = 60000 };

static hf_pool_fixture f;
static const char *argv[HF_POOL_FIXTURE_ARGS];

#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

static inline size_t said(const char *text)
{
    return hf_worker_fixture_said(&f.worker, text);
}

static inline size_t did(const char *text)
{
    return hf_pool_fixture_did(&f, text);
}

static inline void put(const char *id, const char *type, const char *payload)
{
    hf_pool_fixture_put(&f, id, type, payload, NULL);
}

static inline void put_on(const char *queue, const char *id, const char *type,
                          const char *payload)
{
    assert_int_equal(hf_queue_init(&f.queue.queue, "hf", queue), HF_OK);
    put(id, type, payload);
    assert_int_equal(hf_queue_init(&f.queue.queue, "hf", "q"), HF_OK);
}

/* A job that runs, however often, until let_end(). */
static inline void put_long(const char *id)
{
    char path[sizeof f.queue.redis.dir + 8];
    (void)snprintf(path, sizeof path, "%s/go", f.queue.redis.dir);
    put(id, "file", path);
}

static inline void let_end(void)
{
    char path[sizeof f.queue.redis.dir + 8];
    (void)snprintf(path, sizeof path, "%s/go", f.queue.redis.dir);
    hf_write_file(path, "");
}

static inline bool ended(const char *id, const char *outcome)
{
    return hf_pool_fixture_ended(&f, id, outcome, "");
}

static inline long long meta(const char *field)
{
    return hf_queue_fixture_meta(&f.queue, field);
}

/* It has not run, and no attempt or crash is counted. */
static inline bool is_untouched(const char *id)
{
    const char *record = hf_pool_fixture_record(&f, id);
    return strcmp(record, "(nil)") != 0 && strstr(record, "\"attempts\"") == NULL &&
           strcmp(hf_pool_fixture_crashes(&f, id), "(nil)") == 0;
}

/* Its grace is enough for a process that answers, on any machine. */
static inline hf_pool pool_of(uint32_t processes, const char *const *args)
{
    hf_pool_fixture_argv(&f, argv, args);
    return (hf_pool){HF_POOL_INIT, .argv = argv, .processes = processes,
                     .grace_ms = 5000};
}

/* For processes that do not answer, which are killed after it. */
static inline hf_pool impatient(hf_pool pool)
{
    pool.grace_ms = 300;
    return pool;
}

static inline void start(const hf_worker_opts *with, hf_pool pool, bool ready)
{
    hf_pool_fixture_start(&f, with, &pool, 1, ready);
}

/* A job goes through. */
static inline void is_served(const char *id)
{
    put(id, "noop", "");
    EVENTUALLY(SOON_MS, ended(id, "done"));
}

static inline void reload(const hf_worker_opts *with, const hf_pool *pools, size_t n)
{
    char detail[HF_DETAIL_SIZE] = "";
    hf_worker_opts filled = *with;
    uint64_t before = hf_worker_reloads(f.worker.worker);
    hf_pool_fixture_fill(&f, &filled);
    if (hf_worker_reload(f.worker.worker, &filled, NULL, 0, pools, n, detail) != HF_OK)
        fail_msg("no reload: %s", detail);
    EVENTUALLY(SOON_MS, hf_worker_reloads(f.worker.worker) > before);
}

#endif
