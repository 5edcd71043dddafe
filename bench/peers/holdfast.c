/* holdfast.c - the library as a client among the others of this folder, by its public
 * headers alone. */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/peers/client.h"
#include "holdfast/admin.h"
#include "holdfast/producer.h"
#include "holdfast/worker.h"

enum {
    CALL_JOBS = HF_BATCH_JOBS,
    CONCURRENCY = 16,
    LOOK_AGAIN_US = 500,
    LEAD_MS = 500, /* from enqueueing delayed jobs to when the first is due */
    URL_SIZE = 256,
    DEADLINE_MS = 60000
};

static const char queue_name[] = "default";

typedef struct session {
    const peer_args *args;
    hf_worker *worker;
    atomic_uint_fast64_t left; /* jobs to start */
    uint64_t since_ns;         /* the warm-up was over */
    sem_t last_started;
} session;

static const char *url_of(const peer_args *args)
{
    static char url[URL_SIZE];
    (void)snprintf(url, sizeof url, "unix://%s", args->server);
    return url;
}

static void check(hf_err err, const char *detail)
{
    if (err != HF_OK)
        peer_fail(detail[0] != '\0' ? detail : hf_err_text(err));
}

/* ---- producers ---- */

static hf_producer *open_producer(const peer_args *args)
{
    char detail[HF_DETAIL_SIZE] = "";
    hf_producer *producer = NULL;
    const hf_producer_opts opts = {HF_PRODUCER_OPTS_INIT,
                                   .server = HF_SERVER(.url = url_of(args)),
                                   .deadline_ms = DEADLINE_MS};
    check(hf_producer_open(&producer, &opts, detail), detail);
    return producer;
}

static void enqueue(hf_producer *producer, const hf_job *jobs, uint64_t n)
{
    char detail[HF_DETAIL_SIZE] = "";
    check(hf_enqueue_wait(producer, jobs, (size_t)n, NULL, 0, detail), detail);
}

static hf_job job_of(const char *payload)
{
    return (hf_job){HF_JOB_INIT, .queue = queue_name, .type = "peer", .payload = payload,
                    .payload_len = PEER_PAYLOAD};
}

static void enqueue_alike(hf_producer *producer, const hf_job *jobs, uint64_t n)
{
    for (uint64_t sent = 0; sent < n; sent += CALL_JOBS)
        enqueue(producer, jobs, n - sent < CALL_JOBS ? n - sent : CALL_JOBS);
}

static void fill(const peer_args *args)
{
    static hf_job jobs[CALL_JOBS];
    char payload[PEER_PAYLOAD + 1];
    hf_producer *producer = open_producer(args);
    peer_payload(payload, 0);
    for (size_t i = 0; i < CALL_JOBS; i++)
        jobs[i] = job_of(payload);
    enqueue_alike(producer, jobs, peer_warm_up(args->n));
    uint64_t since_ns = peer_now_ns();
    enqueue_alike(producer, jobs, args->n - peer_warm_up(args->n));
    peer_say_rate(args->n, since_ns);
    hf_producer_close(producer, NULL, NULL);
}

static void trickle(const peer_args *args)
{
    char payload[PEER_PAYLOAD + 1];
    hf_producer *producer = open_producer(args);
    const hf_job job = job_of(payload);
    for (uint64_t i = 0; i < args->n; i++) {
        peer_pause_between();
        peer_payload(payload, peer_now_ns());
        enqueue(producer, &job, 1);
    }
    hf_producer_close(producer, NULL, NULL);
}

static void delay(const peer_args *args)
{
    static char payloads[CALL_JOBS][PEER_PAYLOAD + 1];
    static hf_job jobs[CALL_JOBS];
    hf_producer *producer = open_producer(args);
    uint64_t first_ms = peer_wall_ns() / 1000000 + LEAD_MS;
    if (args->n > CALL_JOBS)
        peer_fail("too many delayed jobs for one call");
    for (size_t i = 0; i < args->n; i++) {
        uint64_t due_ms = first_ms + peer_random(args->ms);
        peer_payload(payloads[i], due_ms * 1000000);
        jobs[i] = job_of(payloads[i]);
        jobs[i].at_ms = (int64_t)due_ms;
    }
    enqueue(producer, jobs, args->n);
    hf_producer_close(producer, NULL, NULL);
}

/* ---- workers ---- */

static hf_verdict on_drained(hf_run *run, void *arg)
{
    session *s = arg;
    (void)run;
    uint64_t left = atomic_fetch_sub_explicit(&s->left, 1, memory_order_relaxed) - 1;
    if (left == s->args->n - peer_warm_up(s->args->n))
        s->since_ns = peer_now_ns();
    if (left == 0)
        (void)sem_post(&s->last_started);
    return HF_VERDICT_DONE;
}

static hf_verdict on_work(hf_run *run, void *arg)
{
    size_t len;
    uint64_t now_ns = peer_now_ns();
    (void)arg;
    peer_say_start(hf_run_payload(run, &len), now_ns);
    return HF_VERDICT_DONE;
}

static hf_verdict on_hold(hf_run *run, void *arg)
{
    (void)on_work(run, arg);
    while (!hf_run_stopping(run))
        peer_pause_us(1000);
    return HF_VERDICT_RETRY;
}

/* Until Redis says that the last verdict has come. */
static void *await_empty(void *arg)
{
    session *s = arg;
    char detail[HF_DETAIL_SIZE] = "";
    hf_admin *admin = NULL;
    hf_queue_stats stats = {HF_QUEUE_STATS_INIT};
    const hf_admin_opts opts = {HF_ADMIN_OPTS_INIT,
                                .server = HF_SERVER(.url = url_of(s->args)),
                                .deadline_ms = DEADLINE_MS};
    check(hf_admin_open(&admin, &opts, detail), detail);
    while (sem_wait(&s->last_started) != 0)
        continue;
    for (;;) {
        check(hf_admin_stats(admin, queue_name, &stats, detail), detail);
        if (stats.ready + stats.running == 0)
            break;
        peer_pause_us(LOOK_AGAIN_US);
    }
    peer_say_rate(s->args->n, s->since_ns);
    hf_admin_close(admin);
    hf_worker_stop(s->worker);
    return NULL;
}

static void *await_ready(void *arg)
{
    session *s = arg;
    while (hf_worker_pulse(s->worker) == 0)
        peer_pause_us(LOOK_AGAIN_US);
    peer_say_ready();
    return NULL;
}

/* Serves until it is stopped, with a thread beside it. */
static void serve(const peer_args *args, uint32_t concurrency, uint32_t lease_ms,
                  hf_handler_fn fn, void *(*beside)(void *arg))
{
    char detail[HF_DETAIL_SIZE] = "";
    const hf_worker_queue queue = {HF_WORKER_QUEUE_INIT, .name = queue_name};
    const hf_worker_opts opts = {
        HF_WORKER_OPTS_INIT,        .server = HF_SERVER(.url = url_of(args)),
        .queues = &queue,           .n_queues = 1,
        .concurrency = concurrency, .lease_ms = lease_ms};
    pthread_t thread;
    session s = {.args = args, .left = args->n};
    (void)sem_init(&s.last_started, 0, 0);
    check(hf_worker_new(&s.worker, &opts, detail), detail);
    check(hf_worker_handle(s.worker, "peer", 0, fn, &s, NULL), "no handler can be added");
    if (pthread_create(&thread, NULL, beside, &s) != 0)
        peer_fail("no thread can be started");
    check(hf_worker_run(s.worker, detail), detail);
    (void)pthread_join(thread, NULL);
    hf_worker_free(s.worker);
    (void)sem_destroy(&s.last_started);
}

static void drain(const peer_args *args)
{
    serve(args, CONCURRENCY, args->ms, on_drained, await_empty);
}

static void work(const peer_args *args)
{
    serve(args, CONCURRENCY, args->ms, on_work, await_ready);
}

static void hold(const peer_args *args)
{
    serve(args, 1, args->ms, on_hold, await_ready);
}

int main(int argc, char **argv)
{
    const peer_client client = {.name = "holdfast",
                                .fill = fill,
                                .drain = drain,
                                .work = work,
                                .hold = hold,
                                .trickle = trickle,
                                .delay = delay};
    return peer_main(&client, argc, argv);
}
