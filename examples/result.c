/* result.c - asks the workers for something and waits for the answer: result [TEXT].
 * examples/worker.c counts the words. */
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/job_wait.h>

static sem_t answered;

/* On a thread of its own. */
static void on_end(const hf_job_end *end, void *arg)
{
    hf_err *err = arg;
    *err = end->err;
    if (end->err == HF_OK)
        printf("%s: %.*s\n", end->id, (int)end->len, (const char *)end->result);
    else
        fprintf(stderr, "%s: %s: %s\n", end->id, hf_err_text(end->err), end->detail);
    sem_post(&answered);
}

static hf_err enqueue(const char *text, hf_enqueue_result *out, char *detail)
{
    hf_producer *producer;
    const hf_producer_opts opts = {HF_PRODUCER_OPTS_INIT,
                                   .server = HF_SERVER(.url = getenv("REDIS_URL"))};
    hf_err err = hf_producer_open(&producer, &opts, detail);
    if (err != HF_OK)
        return err;
    const hf_job job = {
        HF_JOB_INIT,      .type = "report.make",
        .payload = text,  .payload_len = strlen(text),
        .keep_ms = 60000, .awaited = true}; /* its end is known, however fast it is */
    err = hf_enqueue_wait(producer, &job, 1, out, 0, detail);
    hf_producer_close(producer, NULL, NULL);
    return err;
}

int main(int argc, char **argv)
{
    char detail[HF_DETAIL_SIZE] = "";
    hf_enqueue_result job = {HF_ENQUEUE_RESULT_INIT};
    hf_waits *waits = NULL;
    hf_err ended = HF_OK;
    const hf_waits_opts opts = {HF_WAITS_OPTS_INIT,
                                .server = HF_SERVER(.url = getenv("REDIS_URL"))};
    sem_init(&answered, 0, 0);
    hf_err err = enqueue(argc > 1 ? argv[1] : "three words here", &job, detail);
    if (err == HF_OK)
        err = hf_waits_open(&waits, &opts, detail); /* once for the whole process */
    if (err == HF_OK)
        err = hf_job_wait(waits, "default", job.id, job.accepted_ms, 30000, on_end,
                          &ended, detail);
    if (err == HF_OK)
        sem_wait(&answered); /* or do something else meanwhile */
    else
        fprintf(stderr, "result: %s: %s\n", hf_err_text(err), detail);
    hf_waits_close(waits);
    return err == HF_OK && ended == HF_OK ? 0 : 1;
}
