/* worker_rig.c - see worker_rig.h. */
#include "tests/support/worker_rig.h"

#include <stdio.h>
#include <string.h>

#include "tests/support/eventually.h"

static void wait_for_gate(hf_worker_rig *rig, hf_run *run, bool deaf)
{
    while (!atomic_load(&rig->gate)) {
        if (hf_run_stopping(run)) {
            atomic_store(&rig->asked_to_stop, true);
            if (!deaf)
                return;
        }
        hf_test_pause_ms(1);
    }
}

static hf_verdict act(hf_worker_rig *rig, hf_run *run)
{
    size_t len;
    const char *what = hf_run_payload(run, &len);
    if (len >= 4 && memcmp(what, "fail", 4) == 0) {
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
    if (heeds ||
        (len == 4 && (memcmp(what, "gate", 4) == 0 || memcmp(what, "deaf", 4) == 0)))
        wait_for_gate(rig, run, what[0] == 'd');
    return heeds ? HF_VERDICT_RETRY : HF_VERDICT_DONE;
}

static void on_stop(void *arg)
{
    hf_worker_rig *rig = arg;
    atomic_fetch_add(&rig->told, 1);
}

static hf_verdict handle(hf_run *run, void *arg)
{
    hf_worker_rig *rig = arg;
    int now = atomic_fetch_add(&rig->inside, 1) + 1;
    int most = atomic_load(&rig->most_at_once);
    while (now > most && !atomic_compare_exchange_weak(&rig->most_at_once, &most, now))
        ;
    atomic_store(&rig->remaining_ms, hf_run_remaining_ms(run));
    hf_run_on_stop(run, on_stop, rig);
    atomic_fetch_add(&rig->started, 1);
    hf_verdict verdict = act(rig, run);
    atomic_fetch_sub(&rig->inside, 1);
    atomic_fetch_add(&rig->returned, 1);
    return verdict;
}

/* The line of a job is told by the loop's thread. */
static void hold_loop(hf_worker_rig *rig, const char *message)
{
    while (strcmp(message, "job") == 0 && atomic_load(&rig->hold_loop)) {
        atomic_store(&rig->loop_held, true);
        hf_test_pause_ms(1);
    }
}

static void on_line(hf_log_level level, const char *message, const hf_log_field *fields,
                    size_t n, void *arg)
{
    static const char *const levels[] = {"debug", "info", "warn", "error"};
    hf_worker_rig *rig = arg;
    if (strcmp(message, "woken") == 0)
        atomic_store(&rig->woken, (unsigned long)pthread_self());
    pthread_mutex_lock(&rig->lock);
    if (rig->n_lines < HF_RIG_LINES) {
        char *line = rig->lines[rig->n_lines++];
        size_t len = (size_t)snprintf(line, HF_RIG_LINE, "%s %s", levels[level], message);
        for (size_t i = 0; i < n && len + 1 < HF_RIG_LINE; i++) {
            if (fields[i].text != NULL)
                len += (size_t)snprintf(line + len, HF_RIG_LINE - len, " %s=%s",
                                        fields[i].key, fields[i].text);
            else
                len += (size_t)snprintf(line + len, HF_RIG_LINE - len, " %s=%lld",
                                        fields[i].key, (long long)fields[i].number);
        }
    }
    pthread_mutex_unlock(&rig->lock);
    hold_loop(rig, message);
}

static void *run_worker(void *arg)
{
    hf_worker_rig *rig = arg;
    char detail[HF_DETAIL_SIZE];
    rig->result = hf_worker_run(rig->worker, detail);
    if (rig->result != HF_OK)
        fprintf(stderr, "worker: %s: %s\n", hf_err_name(rig->result), detail);
    atomic_store(&rig->ended, true);
    return NULL;
}

void hf_worker_rig_fill(hf_worker_rig *rig, const char *url, hf_worker_opts *opts)
{
    static const hf_worker_queue queue = {HF_WORKER_QUEUE_INIT, .name = "q"};
    rig->server =
        opts->server != NULL ? *opts->server : (hf_server_opts){HF_SERVER_OPTS_INIT};
    rig->server.url = url;
    opts->server = &rig->server;
    if (opts->queues == NULL) {
        opts->queues = &queue;
        opts->n_queues = 1;
    }
    opts->lease_ms = opts->lease_ms == 0 ? 1000 : opts->lease_ms;
    opts->concurrency = opts->concurrency == 0 ? 4 : opts->concurrency;
    opts->backoff_base_ms = opts->backoff_base_ms == 0 ? 50 : opts->backoff_base_ms;
    opts->log = on_line;
    opts->log_arg = rig;
}

typedef struct cast {
    hf_handler_fn fn;
    void *arg;
    const hf_program *programs;
    size_t n;
} cast;

static void start(hf_worker_rig *rig, const char *url, const hf_worker_opts *opts,
                  uint32_t timeout_ms, const cast *who)
{
    hf_worker_opts filled = opts == NULL ? (hf_worker_opts){HF_WORKER_OPTS_INIT} : *opts;
    char detail[HF_DETAIL_SIZE];
    *rig = (hf_worker_rig){.result = HF_OK};
    pthread_mutex_init(&rig->lock, NULL);
    hf_worker_rig_fill(rig, url, &filled);
    if (hf_worker_new(&rig->worker, &filled, detail) != HF_OK)
        fail_msg("no worker: %s", detail);
    if (hf_worker_handle(rig->worker, "t", timeout_ms, who->fn, who->arg) != HF_OK)
        fail_msg("no handler");
    for (size_t i = 0; i < who->n; i++)
        if (hf_worker_handle_program(rig->worker, &who->programs[i]) != HF_OK)
            fail_msg("no program");
    if (pthread_create(&rig->thread, NULL, run_worker, rig) != 0)
        fail_msg("no thread");
    EVENTUALLY(30000, hf_worker_rig_said(rig, "serving") > 0 || atomic_load(&rig->ended));
}

void hf_worker_rig_start_programs(hf_worker_rig *rig, const char *url,
                                  const hf_worker_opts *opts, uint32_t timeout_ms,
                                  const hf_program *programs, size_t n)
{
    const cast who = {.fn = handle, .arg = rig, .programs = programs, .n = n};
    start(rig, url, opts, timeout_ms, &who);
}

void hf_worker_rig_start_handler(hf_worker_rig *rig, const char *url, uint32_t timeout_ms,
                                 hf_handler_fn fn, void *arg)
{
    const cast who = {.fn = fn, .arg = arg};
    start(rig, url, NULL, timeout_ms, &who);
}

void hf_worker_rig_start(hf_worker_rig *rig, const char *url, const hf_worker_opts *opts,
                         uint32_t timeout_ms)
{
    hf_worker_rig_start_programs(rig, url, opts, timeout_ms, NULL, 0);
}

hf_err hf_worker_rig_stop(hf_worker_rig *rig)
{
    hf_worker_stop(rig->worker);
    pthread_join(rig->thread, NULL);
    atomic_store(&rig->gate, true);
    hf_worker_free(rig->worker);
    pthread_mutex_destroy(&rig->lock);
    rig->stopped = true;
    return rig->result;
}

void hf_worker_rig_end(hf_worker_rig *rig)
{
    if (rig->worker == NULL || rig->stopped)
        return;
    atomic_store(&rig->hold_loop, false);
    atomic_store(&rig->gate, true);
    (void)hf_worker_rig_stop(rig);
}

size_t hf_worker_rig_said(hf_worker_rig *rig, const char *text)
{
    size_t n = 0;
    bool alone = rig->stopped; /* then its mutex is gone as well */
    if (!alone)
        pthread_mutex_lock(&rig->lock);
    for (size_t i = 0; i < rig->n_lines; i++)
        n += strstr(rig->lines[i], text) != NULL ? 1 : 0;
    if (!alone)
        pthread_mutex_unlock(&rig->lock);
    return n;
}
