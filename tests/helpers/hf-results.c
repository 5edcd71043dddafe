/* hf-results.c - jobs with results, and clients that wait for them.
 *
 * hf-results URL serve KEEP_MS MAX BYTES [SHARDS]: a worker of the queue "default" whose
 * results are the payloads. KEEP_MS 0: it keeps none.
 * hf-results URL wait DEADLINE_MS ID...: waits for jobs, and prints "ID ANSWER RESULT MS"
 * for each when it ends; MS: on the monotonic clock. */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "holdfast/job_wait.h"
#include "holdfast/worker.h"

static hf_worker *worker;
static atomic_int ended;
static char detail[HF_DETAIL_SIZE];

static hf_verdict handle(hf_run *run, void *arg)
{
    size_t len;
    const void *payload = hf_run_payload(run, &len);
    (void)arg;
    return hf_run_set_result(run, payload, len) == HF_OK ? HF_VERDICT_DONE
                                                         : HF_VERDICT_DEAD;
}

static void stop(int number)
{
    (void)number;
    hf_worker_stop(worker);
}

static hf_err serve(const hf_server_opts *server, char **words, int n)
{
    const hf_worker_queue queue = {HF_WORKER_QUEUE_INIT,
                                   .name = "default",
                                   .keep_ms = strtoll(words[0], NULL, 10),
                                   .keep_max = strtoll(words[1], NULL, 10),
                                   .keep_bytes = strtoll(words[2], NULL, 10),
                                   .shards =
                                       n > 3 ? (uint32_t)strtoul(words[3], NULL, 10) : 0};
    const hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .server = server, .queues = &queue,
                                 .n_queues = 1};
    hf_err err = hf_worker_new(&worker, &opts, detail);
    if (err == HF_OK)
        err = hf_worker_handle(worker, "t", 0, handle, NULL, detail);
    signal(SIGTERM, stop);
    if (err == HF_OK)
        err = hf_worker_run(worker, detail);
    hf_worker_free(worker);
    return err;
}

static void on_end(const hf_job_end *end, void *arg)
{
    (void)arg;
    printf("%s %s %.*s %llu\n", end->id, hf_err_name(end->err), (int)end->len,
           end->result == NULL ? "" : (const char *)end->result,
           (unsigned long long)(hf_boot_ns() / HF_MS_NS));
    fflush(stdout);
    atomic_fetch_add(&ended, 1);
}

static hf_err wait_for(const hf_server_opts *server, char **words, int n)
{
    hf_waits *waits = NULL;
    const hf_waits_opts opts = {HF_WAITS_OPTS_INIT, .server = server};
    hf_err err = hf_waits_open(&waits, &opts, detail);
    for (int i = 1; err == HF_OK && i < n; i++)
        err = hf_job_wait(waits, "default", words[i], 0,
                          (uint32_t)strtoul(words[0], NULL, 10), on_end, NULL, detail);
    while (err == HF_OK && atomic_load(&ended) < n - 1)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    hf_waits_close(waits);
    return err;
}

int main(int argc, char **argv)
{
    hf_err err = HF_INVALID;
    if (argc >= 5) {
        const hf_server_opts server = {HF_SERVER_OPTS_INIT, .url = argv[1]};
        err = strcmp(argv[2], "serve") == 0 ? serve(&server, argv + 3, argc - 3)
                                            : wait_for(&server, argv + 3, argc - 3);
    }
    if (err != HF_OK)
        fprintf(stderr, "%s: %s\n", hf_err_name(err), detail);
    return err == HF_OK ? 0 : 1;
}
