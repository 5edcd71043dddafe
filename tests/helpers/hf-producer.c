/* hf-producer.c - hf-producer URL ACCEPTED UNTIL_FILE: enqueues one job every 5 ms,
 * several calls at a time, until there is a file UNTIL_FILE; writes the id of each that
 * was accepted to ACCEPTED, and ends with 0. Other answers are written as "NAME id". */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "holdfast/producer.h"

enum { THREADS = 4 };

static hf_producer *producer;
static FILE *out;
static const char *until;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *run(void *arg)
{
    (void)arg;
    while (access(until, F_OK) != 0) {
        hf_enqueue_result result = {HF_ENQUEUE_RESULT_INIT};
        const hf_job job = {HF_JOB_INIT, .type = "t", .payload = "sleep 5",
                            .payload_len = 7};
        hf_err err = hf_enqueue_wait(producer, &job, 1, &result, 0, NULL);
        pthread_mutex_lock(&lock);
        if (err == HF_OK)
            fprintf(out, "%s\n", result.id);
        else
            fprintf(out, "%s %s\n", hf_err_name(err), result.id);
        fflush(out);
        pthread_mutex_unlock(&lock);
        nanosleep(&(struct timespec){.tv_nsec = 5000000L * THREADS}, NULL);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    char detail[HF_DETAIL_SIZE] = "";
    if (argc != 4 || (out = fopen(argv[2], "a")) == NULL)
        return 64;
    until = argv[3];
    /* Long enough for each of the disturbances: nothing ends as unsure. */
    hf_producer_opts opts = {HF_PRODUCER_OPTS_INIT, .server = HF_SERVER(.url = argv[1]),
                             .deadline_ms = 60000};
    if (hf_producer_open(&producer, &opts, detail) != HF_OK) {
        fprintf(stderr, "%s\n", detail);
        return 1;
    }
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, run, NULL) != 0)
            return 1;
    for (int i = 0; i < THREADS; i++)
        (void)pthread_join(threads[i], NULL);
    hf_producer_close(producer, NULL, NULL);
    return fclose(out) == 0 ? 0 : 1;
}
