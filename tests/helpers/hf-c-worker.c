/* hf-c-worker.c - hf-c-worker URL LOG CONCURRENCY LEASE_MS [strict] [replicas=N]
 * [QUEUE[=WEIGHT]]...: a worker with C handlers, which do what the payload says and write
 * the lines of hf-handler.c to LOG. Without a QUEUE it serves "default". replicas=N: it
 * waits for that many.
 *
 * Payloads: "sleep MS"; "spin MS" (without yielding); "kill" (its own process, by
 * SIGKILL); "fail" (retry); "believe MS" (a "beat" for each moment at which it believed
 * that it held the job, even if it is asked to stop; no "end" when it lost the job);
 * "tick" (a "tick" and a "late", whose last numbers are the tick of the job's schedule in
 * Unix ms, and how many microseconds ago it was by the wall clock); "tell N MS" (its
 * progress, N times a second, for that time). A
 * handler that learns of a cancel notes "cancelled". A job of the type "blocker" is done
 * at once, and then the loop's thread is held for three leases: by the log function,
 * which that thread calls with the verdict. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "holdfast/worker.h"

enum { FIXED_WORDS = 5, QUEUES_MAX = 64 };

static hf_worker *worker;
static int log_fd;

static void write_at(const char *kind, const hf_run *run, uint64_t ns)
{
    char line[512];
    int len = snprintf(line, sizeof line, "%s %ld %s %u %llu %llu\n", kind,
                       (long)getpid(), hf_run_id(run), hf_run_attempt(run),
                       (unsigned long long)hf_run_fence(run), (unsigned long long)ns);
    if (write(log_fd, line, (size_t)len) != len)
        _exit(3);
}

static void write_line(const char *kind, const hf_run *run)
{
    write_at(kind, run, hf_boot_ns());
}

static void pass(hf_run *run, long ms, bool spin)
{
    uint64_t until = hf_boot_ns() + (uint64_t)ms * HF_MS_NS;
    while (hf_boot_ns() < until && !hf_run_stopping(run))
        if (!spin)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* The moment is read before it is asked: a job that is not lost now was not lost then. */
static hf_verdict believe(hf_run *run, long ms)
{
    const uint64_t until = hf_boot_ns() + (uint64_t)ms * HF_MS_NS;
    for (const char *kind = "start";; kind = "beat") {
        uint64_t now = hf_boot_ns();
        if (hf_run_lost(run))
            return HF_VERDICT_RETRY;
        write_at(now < until ? kind : "end", run, now);
        if (now >= until)
            return HF_VERDICT_DONE;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

static hf_verdict tell(hf_run *run, const char *words)
{
    char *rest;
    long per_second = strtol(words, &rest, 10), ms = strtol(rest, NULL, 10);
    const uint64_t from = hf_boot_ns(), until = from + (uint64_t)ms * HF_MS_NS;
    char note[32];
    uint32_t told = 0;
    write_line("start", run);
    while (hf_boot_ns() < until && !hf_run_stopping(run)) {
        uint64_t passed_ms = (hf_boot_ns() - from) / HF_MS_NS;
        for (; told < passed_ms * (uint64_t)per_second / 1000; told++) {
            snprintf(note, sizeof note, "update %u", told);
            hf_run_set_progress(run, told % 100, note);
        }
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    write_at("told", run, told);
    write_line("end", run);
    return hf_run_cancelled(run) || hf_run_lost(run) ? HF_VERDICT_RETRY : HF_VERDICT_DONE;
}

/* A job of a schedule: its tick, and how late it starts by the wall clock. */
static hf_verdict tick(const hf_run *run)
{
    int64_t late_us = hf_wall_us() - hf_run_scheduled_ms(run) * 1000;
    write_at("tick", run, (uint64_t)hf_run_scheduled_ms(run));
    write_at("late", run, (uint64_t)(late_us < 0 ? 0 : late_us));
    return HF_VERDICT_DONE;
}

static hf_verdict handle(hf_run *run, void *arg)
{
    char what[64];
    size_t len;
    const char *payload = hf_run_payload(run, &len);
    (void)arg;
    snprintf(what, sizeof what, "%.*s", (int)len, payload);
    if (strncmp(what, "believe ", 8) == 0)
        return believe(run, strtol(what + 8, NULL, 10));
    if (strcmp(what, "tick") == 0)
        return tick(run);
    if (strncmp(what, "tell ", 5) == 0)
        return tell(run, what + 5);
    write_line("start", run);
    if (strncmp(what, "sleep ", 6) == 0)
        pass(run, strtol(what + 6, NULL, 10), false);
    else if (strncmp(what, "spin ", 5) == 0)
        pass(run, strtol(what + 5, NULL, 10), true);
    else if (strcmp(what, "kill") == 0)
        kill(getpid(), SIGKILL);
    else if (strncmp(what, "retry-in ", 9) == 0)
        hf_run_set_retry_in(run, strtoll(what + 9, NULL, 10));
    bool fails = strcmp(what, "fail") == 0 || strncmp(what, "retry-in ", 9) == 0;
    bool cancelled = hf_run_cancelled(run);
    if (cancelled)
        write_line("cancelled", run);
    write_line("end", run);
    return cancelled || fails ? HF_VERDICT_RETRY : HF_VERDICT_DONE;
}

static hf_verdict handle_block(hf_run *run, void *arg)
{
    (void)arg;
    write_line("start", run);
    write_line("end", run);
    return HF_VERDICT_DONE;
}

/* "blocker" is the type whose verdict's line holds the loop for 3 leases. */
static void on_log(hf_log_level level, const char *message, const hf_log_field *fields,
                   size_t n, void *arg)
{
    bool block = false;
    fprintf(stderr, "ns=%llu level=%d msg=\"%s\"", (unsigned long long)hf_boot_ns(),
            (int)level, message);
    for (size_t i = 0; i < n; i++) {
        if (fields[i].text != NULL)
            fprintf(stderr, " %s=\"%s\"", fields[i].key, fields[i].text);
        else
            fprintf(stderr, " %s=%lld", fields[i].key, (long long)fields[i].number);
        block =
            block || (fields[i].text != NULL && strcmp(fields[i].text, "blocker") == 0);
    }
    fputc('\n', stderr);
    if (block) {
        uint32_t ms = *(uint32_t *)arg * 3;
        fprintf(stderr, "msg=\"the loop is blocked\" for_ms=%u\n", ms);
        nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000},
                  NULL);
    }
}

static void on_signal(int number)
{
    (void)number;
    hf_worker_stop(worker);
}

/* The words after the fixed ones: options, and queues. Cuts the weights off. */
static void read_words(char **words, int n, hf_worker_queue *queues, hf_worker_opts *opts)
{
    static const char replicas[] = "replicas=";
    size_t found = 0;
    for (int i = 0; i < n; i++) {
        char *weight = strchr(words[i], '=');
        if (strcmp(words[i], "strict") == 0) {
            opts->strict = true;
            continue;
        }
        if (strncmp(words[i], replicas, strlen(replicas)) == 0) {
            opts->wait_replicas = (uint32_t)strtoul(weight + 1, NULL, 10);
            continue;
        }
        if (weight != NULL)
            *weight++ = '\0';
        queues[found++] = (hf_worker_queue){
            HF_WORKER_QUEUE_INIT, .name = words[i],
            .weight = weight == NULL ? 1 : (uint32_t)strtoul(weight, NULL, 10)};
    }
    if (found == 0)
        queues[found++] = (hf_worker_queue){HF_WORKER_QUEUE_INIT, .name = "default"};
    opts->queues = queues;
    opts->n_queues = found;
}

int main(int argc, char **argv)
{
    char detail[HF_DETAIL_SIZE] = "";
    hf_worker_queue queues[FIXED_WORDS + QUEUES_MAX];
    if (argc < FIXED_WORDS || argc > FIXED_WORDS + QUEUES_MAX)
        return 64;
    uint32_t lease_ms = (uint32_t)strtoul(argv[4], NULL, 10);
    log_fd = open(argv[2], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    hf_worker_opts opts = {
        HF_WORKER_OPTS_INIT,    .server = HF_SERVER(.url = argv[1]),
        .lease_ms = lease_ms,   .concurrency = (uint32_t)strtoul(argv[3], NULL, 10),
        .backoff_base_ms = 200, .log = on_log,
        .log_arg = &lease_ms};
    read_words(argv + FIXED_WORDS, argc - FIXED_WORDS, queues, &opts);
    hf_err err = hf_worker_new(&worker, &opts, detail);
    if (err == HF_OK)
        err = hf_worker_handle(worker, "blocker", 0, handle_block, NULL, detail);
    if (err == HF_OK)
        err = hf_worker_handle(worker, "*", 0, handle, NULL, detail);
    if (err == HF_OK) {
        /* For each one: stopped twice, a worker waits for no handler. */
        sigaction(SIGTERM, &(struct sigaction){.sa_handler = on_signal}, NULL);
        err = hf_worker_run(worker, detail);
    }
    if (err != HF_OK)
        fprintf(stderr, "%s: %s\n", hf_err_name(err), detail);
    hf_worker_free(worker);
    return err == HF_OK ? 0 : 1;
}
