/* pool_fixture.c - see pool_fixture.h. */
#include "tests/support/pool_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "tests/support/admin.h"
#include "tests/support/eventually.h"

int hf_pool_fixture_up(void **state)
{
    hf_pool_fixture *f = *state;
    void *queue = &f->queue;
    int failed = hf_queue_fixture_up(&queue);
    snprintf(f->log, sizeof f->log, "%s/programs", f->queue.redis.dir);
    snprintf(f->start, sizeof f->start, "%s/start", f->queue.redis.dir);
    snprintf(f->types, sizeof f->types, "%s/types", f->queue.redis.dir);
    snprintf(f->members, sizeof f->members, "%s/members", f->queue.redis.dir);
    snprintf(f->schedules, sizeof f->schedules, "%s/schedules", f->queue.redis.dir);
    return failed;
}

int hf_pool_fixture_down(void **state)
{
    hf_pool_fixture *f = *state;
    void *queue = &f->queue;
    hf_worker_fixture_end(&f->worker);
    f->worker.worker = NULL;
    return hf_queue_fixture_down(&queue);
}

void hf_pool_fixture_argv(const hf_pool_fixture *f, const char **out,
                          const char *const *args)
{
    static char text[16][160]; /* each as long as the program */
    static size_t used;
    const char *names[] = {"log=", "start=", "types=", "members=", "schedules="};
    const char *files[] = {f->log, f->start, f->types, f->members, f->schedules};
    size_t n = 0;
    out[n++] = HF_TEST_HELPERS "/hf-pool-program";
    for (size_t i = 0; i < HF_COUNT(names); i++) {
        char *to = text[used++ % HF_COUNT(text)];
        snprintf(to, sizeof text[0], "%s%s", names[i], files[i]);
        out[n++] = to;
    }
    for (size_t i = 0; args != NULL && args[i] != NULL; i++)
        out[n++] = args[i];
    out[n] = NULL;
}

void hf_pool_fixture_fill(hf_pool_fixture *f, hf_worker_opts *opts)
{
    opts->backoff_base_ms = opts->backoff_base_ms == 0 ? 60000 : opts->backoff_base_ms;
    hf_worker_fixture_fill(&f->worker, f->queue.redis.url, opts);
}

void hf_pool_fixture_start(hf_pool_fixture *f, const hf_worker_opts *opts,
                           const hf_pool *pools, size_t n, bool ready)
{
    hf_worker_opts filled = *opts;
    if (filled.backoff_base_ms == 0)
        filled.backoff_base_ms = 60000;
    hf_worker_fixture_start_pools(&f->worker, f->queue.redis.url, &filled, pools, n,
                                  f->alone);
    if (ready)
        EVENTUALLY(60000, hf_worker_fixture_said(&f->worker,
                                                 "a process of a pool is ready") >= n);
}

void hf_pool_fixture_put(hf_pool_fixture *f, const char *id, const char *type,
                         const char *payload, const char *options)
{
    char record[1024];
    int len = snprintf(record, sizeof record, "{\"v\":1,\"type\":\"%s\"%s}\n%s", type,
                       options == NULL ? "" : options, payload);
    const hf_enqueue_args args = {.producer = "", .options = options != NULL};
    const hf_enqueue_item item = {id, 0, {record, (size_t)len}};
    assert_int_equal(hf_queue_fixture_enqueue_items(&f->queue, &args, &item, 1), HF_OK);
    assert_int_equal(f->queue.n_codes, 0); /* it is new */
}

void hf_pool_fixture_put_many(hf_pool_fixture *f, const char *prefix, const char *type,
                              const char *payload, unsigned n)
{
    char record[256], (*ids)[32] = calloc(n, sizeof *ids);
    const hf_enqueue_args args = {.producer = ""};
    hf_enqueue_item *items = calloc(n, sizeof *items);
    int len =
        snprintf(record, sizeof record, "{\"v\":1,\"type\":\"%s\"}\n%s", type, payload);
    assert_non_null(ids);
    assert_non_null(items);
    for (unsigned i = 0; i < n; i++) {
        snprintf(ids[i], sizeof ids[i], "%s-%u", prefix, i);
        items[i] = (hf_enqueue_item){ids[i], 0, {record, (size_t)len}};
    }
    assert_int_equal(hf_queue_fixture_enqueue_items(&f->queue, &args, items, n), HF_OK);
    free(items);
    free(ids);
}

void hf_pool_fixture_cancel(hf_pool_fixture *f, const char *id)
{
    hf_admin *admin = hf_test_admin(hf_fixture_url(&f->queue.redis));
    assert_int_equal(hf_admin_cancel(admin, "q", id, NULL, NULL), HF_RUNNING);
    hf_admin_close(admin);
}

static const char *read_log(hf_pool_fixture *f)
{
    return hf_read_file(f->log, f->text, sizeof f->text);
}

size_t hf_pool_fixture_did(hf_pool_fixture *f, const char *text)
{
    size_t n = 0;
    for (const char *at = read_log(f); (at = strstr(at, text)) != NULL; at++)
        n++;
    return n;
}

pid_t hf_pool_fixture_pid_of(hf_pool_fixture *f, const char *id)
{
    char name[80];
    int pid;
    pid_t last = 0;
    for (const char *at = read_log(f); (at = strstr(at, "begin ")) != NULL; at++)
        if (sscanf(at, "begin %d %79s", &pid, name) == 2 && strcmp(name, id) == 0)
            last = pid;
    return last;
}

const char *hf_pool_fixture_record(hf_pool_fixture *f, const char *id)
{
    return hf_fixture_command(&f->queue.redis, "HGET hf:{q}:jobs %s", id);
}

const char *hf_pool_fixture_result(hf_pool_fixture *f, const char *id)
{
    const char *line = hf_fixture_command(&f->queue.redis, "HGET hf:{q}:results %s", id);
    const char *end = strchr(line, '\n');
    return end == NULL ? line : end + 1;
}

const char *hf_pool_fixture_crashes(hf_pool_fixture *f, const char *id)
{
    return hf_fixture_command(&f->queue.redis, "HGET hf:{q}:crashes %s", id);
}

bool hf_pool_fixture_ended(hf_pool_fixture *f, const char *id, const char *outcome,
                           const char *text)
{
    char job[128], end[64];
    bool found = false;
    hf_worker_fixture *w = &f->worker;
    snprintf(job, sizeof job, "job job=%s ", id);
    snprintf(end, sizeof end, "outcome=%s", outcome);
    if (!w->stopped)
        pthread_mutex_lock(&w->lock);
    for (size_t i = 0; !found && i < w->n_lines; i++)
        found = strstr(w->lines[i], job) != NULL && strstr(w->lines[i], end) != NULL &&
                strstr(w->lines[i], text) != NULL;
    if (!w->stopped)
        pthread_mutex_unlock(&w->lock);
    return found;
}
