/* hf-producer.c - hf-producer URL ACCEPTED UNTIL_FILE [PAYLOAD REPLICAS DELAY_MS
 * [QUEUE]...]: enqueues one job every 5 ms, several calls at a time, until there is a
 * file UNTIL_FILE; writes the id of each that was accepted to ACCEPTED, and ends with 0.
 * Other answers are written as "NAME id". A job is accepted when REPLICAS have it; every
 * other one is due after DELAY_MS. The jobs go to the queue "default", or to each QUEUE
 * by a thread of its own. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "holdfast/producer.h"

enum { THREADS = 4, FIXED_WORDS = 7, QUEUES_MAX = 64 };

static hf_producer *producer;
static FILE *out;
static const char *until, *payload = "sleep 5";
static int64_t delay_ms;
static int n_threads = THREADS;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *run(void *arg)
{
    for (unsigned i = 0; access(until, F_OK) != 0; i++) {
        hf_enqueue_result result = {HF_ENQUEUE_RESULT_INIT};
        const hf_job job = {HF_JOB_INIT,
                            .queue = arg,
                            .type = "t",
                            .payload = payload,
                            .payload_len = strlen(payload),
                            .delay_ms = i % 2 == 0 ? 0 : delay_ms};
        hf_err err = hf_enqueue_wait(producer, &job, 1, &result, 0, NULL);
        pthread_mutex_lock(&lock);
        if (err == HF_OK)
            fprintf(out, "%s\n", result.id);
        else
            fprintf(out, "%s %s\n", hf_err_name(err), result.id);
        fflush(out);
        pthread_mutex_unlock(&lock);
        nanosleep(&(struct timespec){.tv_nsec = 5000000L * n_threads}, NULL);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[QUEUES_MAX];
    char detail[HF_DETAIL_SIZE] = "";
    if ((argc != 4 && argc < FIXED_WORDS) || argc > FIXED_WORDS + QUEUES_MAX ||
        (out = fopen(argv[2], "a")) == NULL)
        return 64;
    until = argv[3];
    if (argc > 4) {
        payload = argv[4];
        delay_ms = strtoll(argv[6], NULL, 10);
    }
    /* Long enough for each of the disturbances: nothing ends as unsure. */
    hf_producer_opts opts = {
        HF_PRODUCER_OPTS_INIT, .server = HF_SERVER(.url = argv[1]), .deadline_ms = 60000,
        .wait_replicas = argc > 5 ? (uint32_t)strtoul(argv[5], NULL, 10) : 0};
    if (hf_producer_open(&producer, &opts, detail) != HF_OK) {
        fprintf(stderr, "%s\n", detail);
        return 1;
    }
    if (argc > FIXED_WORDS)
        n_threads = argc - FIXED_WORDS;
    for (int i = 0; i < n_threads; i++)
        if (pthread_create(&threads[i], NULL, run,
                           argc > FIXED_WORDS ? argv[FIXED_WORDS + i] : NULL) != 0)
            return 1;
    for (int i = 0; i < n_threads; i++)
        (void)pthread_join(threads[i], NULL);
    hf_producer_close(producer, NULL, NULL);
    return fclose(out) == 0 ? 0 : 1;
}
