/* worker_fixture.c - see worker_fixture.h. */
#include "tests/support/worker_fixture.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "tests/support/eventually.h"

enum { LEASE_MS = 30000, CONNECT_MS = 60000 /* on a busy machine */ };

const hf_worker_opts hf_brief_lease = {HF_WORKER_OPTS_INIT, .lease_ms = 1000};

static void wait_for_gate(hf_worker_fixture *fixture, hf_run *run, bool deaf)
{
    while (!atomic_load(&fixture->gate)) {
        if (hf_run_stopping(run)) {
            atomic_store(&fixture->asked_to_stop, true);
            if (!deaf)
                return;
        }
        hf_test_pause_ms(1);
    }
}

static hf_verdict act(hf_worker_fixture *fixture, hf_run *run)
{
    size_t len;
    const char *what = hf_run_payload(run, &len);
    bool late = len >= 8 && memcmp(what, "latefail", 8) == 0;
    if (late)
        wait_for_gate(fixture, run, false);
    if (late || (len >= 4 && memcmp(what, "fail", 4) == 0)) {
        hf_run_set_error(run, "it failed");
        return HF_VERDICT_RETRY;
    }
    if (len == 4 && memcmp(what, "dead", 4) == 0) {
        hf_run_set_error(run, "it never will");
        return HF_VERDICT_DEAD;
    }
    if (len == 5 && memcmp(what, "short", 5) == 0)
        hf_test_pause_ms(1);
    bool heeds = len == 4 && memcmp(what, "heed", 4) == 0;
    bool dozes = len == 4 && memcmp(what, "doze", 4) == 0;
    bool deaf = len == 4 && memcmp(what, "deaf", 4) == 0;
    if (heeds || dozes || deaf || (len == 4 && memcmp(what, "gate", 4) == 0))
        wait_for_gate(fixture, run, deaf);
    return dozes ? HF_VERDICT_RELEASE : heeds ? HF_VERDICT_RETRY : HF_VERDICT_DONE;
}

static void on_stop(void *arg)
{
    hf_worker_fixture *fixture = arg;
    atomic_fetch_add(&fixture->told, 1);
}

static hf_verdict handle(hf_run *run, void *arg)
{
    hf_worker_fixture *fixture = arg;
    atomic_store(&fixture->started_ns, hf_boot_ns());
    int now = atomic_fetch_add(&fixture->inside, 1) + 1;
    int most = atomic_load(&fixture->most_at_once);
    while (now > most &&
           !atomic_compare_exchange_weak(&fixture->most_at_once, &most, now))
        ;
    atomic_store(&fixture->remaining_ms, hf_run_remaining_ms(run));
    hf_run_on_stop(run, on_stop, fixture);
    atomic_fetch_add(&fixture->started, 1);
    hf_verdict verdict = act(fixture, run);
    atomic_fetch_sub(&fixture->inside, 1);
    atomic_fetch_add(&fixture->returned, 1);
    return verdict;
}

/* The line of a job is told by the loop's thread. */
static void hold_loop(hf_worker_fixture *fixture, const char *message)
{
    while (strcmp(message, "job") == 0 && atomic_load(&fixture->hold_loop)) {
        atomic_store(&fixture->loop_held, true);
        hf_test_pause_ms(1);
    }
}

static void on_line(hf_log_level level, const char *message, const hf_log_field *fields,
                    size_t n, void *arg)
{
    static const char *const levels[] = {"debug", "info", "warn", "error"};
    hf_worker_fixture *fixture = arg;
    if (strcmp(message, "woken") == 0)
        atomic_store(&fixture->woken, (unsigned long)pthread_self());
    pthread_mutex_lock(&fixture->lock);
    if (fixture->n_lines < HF_FIXTURE_LINES) {
        char *line = fixture->lines[fixture->n_lines++];
        size_t len =
            (size_t)snprintf(line, HF_FIXTURE_LINE, "%s %s", levels[level], message);
        for (size_t i = 0; i < n && len + 1 < HF_FIXTURE_LINE; i++) {
            if (fields[i].text != NULL)
                len += (size_t)snprintf(line + len, HF_FIXTURE_LINE - len, " %s=%s",
                                        fields[i].key, fields[i].text);
            else
                len += (size_t)snprintf(line + len, HF_FIXTURE_LINE - len, " %s=%lld",
                                        fields[i].key, (long long)fields[i].number);
        }
    }
    pthread_mutex_unlock(&fixture->lock);
    hold_loop(fixture, message);
}

static void *run_worker(void *arg)
{
    hf_worker_fixture *fixture = arg;
    fixture->result = hf_worker_run(fixture->worker, fixture->why);
    if (fixture->result != HF_OK)
        fprintf(stderr, "worker: %s: %s\n", hf_err_name(fixture->result), fixture->why);
    atomic_store(&fixture->ended, true);
    return NULL;
}

void hf_worker_fixture_fill(hf_worker_fixture *fixture, const char *url,
                            hf_worker_opts *opts)
{
    static const hf_worker_queue queue = {HF_WORKER_QUEUE_INIT, .name = "q"};
    fixture->server =
        opts->server != NULL ? *opts->server : (hf_server_opts){HF_SERVER_OPTS_INIT};
    fixture->server.url = url;
    /* Of several nodes each has a part of it: a silent one would take long. */
    if (fixture->server.connect_timeout_ms == 0 && strncmp(url, "unix:", 5) == 0)
        fixture->server.connect_timeout_ms = CONNECT_MS;
    opts->server = &fixture->server;
    if (opts->queues == NULL) {
        opts->queues = &queue;
        opts->n_queues = 1;
    }
    opts->lease_ms = opts->lease_ms == 0 ? LEASE_MS : opts->lease_ms;
    opts->concurrency = opts->concurrency == 0 ? 4 : opts->concurrency;
    opts->backoff_base_ms = opts->backoff_base_ms == 0 ? 50 : opts->backoff_base_ms;
    opts->log = on_line;
    opts->log_arg = fixture;
}

typedef struct cast {
    hf_handler_fn fn;
    void *arg;
    const hf_program *programs;
    size_t n;
    const hf_pool *pools;
    size_t n_pools;
} cast;

static void start(hf_worker_fixture *fixture, const char *url, const hf_worker_opts *opts,
                  uint32_t timeout_ms, const cast *who)
{
    hf_worker_opts filled = opts == NULL ? (hf_worker_opts){HF_WORKER_OPTS_INIT} : *opts;
    char detail[HF_DETAIL_SIZE];
    *fixture = (hf_worker_fixture){.result = HF_OK};
    pthread_mutex_init(&fixture->lock, NULL);
    hf_worker_fixture_fill(fixture, url, &filled);
    if (hf_worker_new(&fixture->worker, &filled, detail) != HF_OK)
        fail_msg("no worker: %s", detail);
    if (who->fn != NULL && hf_worker_handle(fixture->worker, "t", timeout_ms, who->fn,
                                            who->arg, NULL) != HF_OK)
        fail_msg("no handler");
    for (size_t i = 0; i < who->n; i++)
        if (hf_worker_handle_program(fixture->worker, &who->programs[i], NULL) != HF_OK)
            fail_msg("no program");
    for (size_t i = 0; i < who->n_pools; i++)
        if (hf_worker_pool(fixture->worker, &who->pools[i], detail) != HF_OK)
            fail_msg("no pool: %s", detail);
    if (pthread_create(&fixture->thread, NULL, run_worker, fixture) != 0)
        fail_msg("no thread");
    EVENTUALLY(30000, hf_worker_fixture_said(fixture, "serving") > 0 ||
                          atomic_load(&fixture->ended));
}

void hf_worker_fixture_start_programs(hf_worker_fixture *fixture, const char *url,
                                      const hf_worker_opts *opts, uint32_t timeout_ms,
                                      const hf_program *programs, size_t n)
{
    const cast who = {.fn = handle, .arg = fixture, .programs = programs, .n = n};
    start(fixture, url, opts, timeout_ms, &who);
}

void hf_worker_fixture_start_pools(hf_worker_fixture *fixture, const char *url,
                                   const hf_worker_opts *opts, const hf_pool *pools,
                                   size_t n, bool alone)
{
    const cast who = {
        .fn = alone ? NULL : handle, .arg = fixture, .pools = pools, .n_pools = n};
    start(fixture, url, opts, 0, &who);
}

void hf_worker_fixture_start_own(hf_worker_fixture *fixture, const char *url,
                                 const hf_worker_opts *opts, uint32_t timeout_ms,
                                 hf_handler_fn fn, void *arg)
{
    const cast who = {.fn = fn, .arg = arg};
    start(fixture, url, opts, timeout_ms, &who);
}

void hf_worker_fixture_start_handler(hf_worker_fixture *fixture, const char *url,
                                     uint32_t timeout_ms, hf_handler_fn fn, void *arg)
{
    hf_worker_fixture_start_own(fixture, url, NULL, timeout_ms, fn, arg);
}

void hf_worker_fixture_start(hf_worker_fixture *fixture, const char *url,
                             const hf_worker_opts *opts, uint32_t timeout_ms)
{
    hf_worker_fixture_start_programs(fixture, url, opts, timeout_ms, NULL, 0);
}

hf_err hf_worker_fixture_stop(hf_worker_fixture *fixture)
{
    hf_worker_stop(fixture->worker);
    pthread_join(fixture->thread, NULL);
    atomic_store(&fixture->gate, true);
    hf_worker_free(fixture->worker);
    pthread_mutex_destroy(&fixture->lock);
    fixture->stopped = true;
    return fixture->result;
}

void hf_worker_fixture_end(hf_worker_fixture *fixture)
{
    if (fixture->worker == NULL || fixture->stopped)
        return;
    atomic_store(&fixture->hold_loop, false);
    atomic_store(&fixture->gate, true);
    (void)hf_worker_fixture_stop(fixture);
}

size_t hf_worker_fixture_said(hf_worker_fixture *fixture, const char *text)
{
    size_t n = 0;
    bool alone = fixture->stopped; /* then its mutex is gone as well */
    if (!alone)
        pthread_mutex_lock(&fixture->lock);
    for (size_t i = 0; i < fixture->n_lines; i++)
        n += strstr(fixture->lines[i], text) != NULL ? 1 : 0;
    if (!alone)
        pthread_mutex_unlock(&fixture->lock);
    return n;
}
