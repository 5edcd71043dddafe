/* hands.c - one of many workers: a worker process with C handlers that do nothing, or
 * sleep for a given time.
 *
 *   hands --url URL [--concurrency N] [--sleep-ms MS] [--count] [QUEUE]...
 *
 * USR1: it starts its counts again. It works until TERM and then prints what it did:
 *   {"claims", "empty", "jobs", "wakes": with --count, from the worker's own log: claims
 *     that were answered, those that gave nothing, jobs they gave, batons it was given;
 *    "first_ns", "full_ns": when its first handler began, and when all of them worked, on
 *     CLOCK_BOOTTIME; 0: never, or they do not sleep} */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "holdfast/worker.h"

enum { QUEUES_MAX = 64 };

static hf_worker *worker;
static uint32_t concurrency = 16, sleep_ms;
static atomic_uint at_work;
static _Atomic uint64_t first_ns, full_ns;
static volatile sig_atomic_t counts_anew;
static int64_t claims, empty, jobs, wakes; /* under the worker's log_lock */

static hf_verdict do_nothing(hf_run *run, void *arg)
{
    (void)run;
    (void)arg;
    return HF_VERDICT_DONE;
}

static void set_once(_Atomic uint64_t *at)
{
    uint64_t never = 0;
    atomic_compare_exchange_strong(at, &never, hf_boot_ns());
}

static hf_verdict pass_time(hf_run *run, void *arg)
{
    const struct timespec time = {.tv_sec = sleep_ms / 1000,
                                  .tv_nsec = (long)(sleep_ms % 1000) * 1000000};
    (void)run;
    (void)arg;
    unsigned others = atomic_fetch_add(&at_work, 1);
    set_once(&first_ns);
    if (others + 1 == concurrency)
        set_once(&full_ns);
    nanosleep(&time, NULL);
    atomic_fetch_sub(&at_work, 1);
    return HF_VERDICT_DONE;
}

static int64_t number_of(const char *key, const hf_log_field *fields, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(fields[i].key, key) == 0)
            return fields[i].number;
    return 0;
}

static void forget_if_told(void)
{
    if (counts_anew)
        claims = empty = jobs = wakes = 0;
    counts_anew = 0;
}

static void on_log(hf_log_level level, const char *message, const hf_log_field *fields,
                   size_t n, void *arg)
{
    (void)arg;
    if (level != HF_LOG_DEBUG)
        return;
    forget_if_told();
    if (strcmp(message, "claimed") == 0) {
        int64_t got = number_of("jobs", fields, n);
        claims++;
        empty += got == 0 ? 1 : 0;
        jobs += got;
    } else if (strcmp(message, "woken") == 0) {
        wakes++;
    }
}

static void on_signal(int number)
{
    if (number == SIGUSR1)
        counts_anew = 1;
    else
        hf_worker_stop(worker);
}

static bool word_number(const char *text, uint32_t *out)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    *out = (uint32_t)value;
    return *text != '\0' && *end == '\0' && value <= UINT32_MAX;
}

static bool bad_number;
static hf_server_opts server = {HF_SERVER_OPTS_INIT};

/* False: it is no option. */
static bool read_option(char **words, int n, int *i, hf_worker_opts *opts)
{
    const char *word = words[*i], *value = *i + 1 < n ? words[*i + 1] : "";
    if (strcmp(word, "--count") == 0) {
        opts->log = on_log;
        return true;
    }
    if (strcmp(word, "--url") == 0)
        server.url = value;
    else if (strcmp(word, "--concurrency") == 0)
        bad_number = !word_number(value, &concurrency) || bad_number;
    else if (strcmp(word, "--sleep-ms") == 0)
        bad_number = !word_number(value, &sleep_ms) || bad_number;
    else
        return false;
    ++*i;
    return true;
}

int main(int argc, char **argv)
{
    char detail[HF_DETAIL_SIZE] = "";
    hf_worker_queue queues[QUEUES_MAX] = {{HF_WORKER_QUEUE_INIT, .name = "default"}};
    hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .server = &server, .queues = queues,
                           .concurrency = concurrency};
    for (int i = 1; i < argc; i++)
        if (!read_option(argv, argc, &i, &opts) && opts.n_queues < QUEUES_MAX)
            queues[opts.n_queues++] =
                (hf_worker_queue){HF_WORKER_QUEUE_INIT, .name = argv[i]};
    if (bad_number) {
        (void)fprintf(stderr, "hands: expected a number\n");
        return 64;
    }
    opts.concurrency = concurrency;
    opts.n_queues = opts.n_queues == 0 ? 1 : opts.n_queues;
    hf_err err = hf_worker_new(&worker, &opts, detail);
    if (err == HF_OK)
        err = hf_worker_handle(worker, "*", 0, sleep_ms == 0 ? do_nothing : pass_time,
                               NULL, NULL);
    if (err == HF_OK) {
        signal(SIGTERM, on_signal);
        signal(SIGUSR1, on_signal);
        err = hf_worker_run(worker, detail);
    }
    if (err != HF_OK)
        fprintf(stderr, "%s: %s\n", hf_err_name(err), detail);
    hf_worker_free(worker);
    forget_if_told();
    printf("{\"claims\":%lld,\"empty\":%lld,\"jobs\":%lld,\"wakes\":%lld,"
           "\"first_ns\":%llu,\"full_ns\":%llu}\n",
           (long long)claims, (long long)empty, (long long)jobs, (long long)wakes,
           (unsigned long long)first_ns, (unsigned long long)full_ns);
    return err == HF_OK ? 0 : 1;
}
