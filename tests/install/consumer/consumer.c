/* What a program in C does with the installed library: it puts a job into a queue, and
 * runs a worker with a handler of its own until nothing is left. */
#include <holdfast/holdfast.h>
#include <stdio.h>
#include <string.h>

static hf_verdict greet(hf_run *run, void *arg)
{
    size_t len;
    const char *name = hf_run_payload(run, &len);
    printf("%s runs hello %.*s\n", hf_run_id(run), (int)len, name);
    ++*(int *)arg;
    return HF_VERDICT_DONE;
}

static int enqueue(const char *url, char detail[HF_DETAIL_SIZE])
{
    hf_producer *producer;
    hf_producer_opts opts = {HF_PRODUCER_OPTS_INIT, .server = HF_SERVER(.url = url)};
    hf_job job = {HF_JOB_INIT, .queue = "install", .type = "greet", .payload = "Ada",
                  .payload_len = 3};
    hf_enqueue_result result = {HF_ENQUEUE_RESULT_INIT};
    hf_err err = hf_producer_open(&producer, &opts, detail);
    if (err != HF_OK)
        return err;
    err = hf_enqueue_wait(producer, &job, 1, &result, 0, detail);
    hf_producer_close(producer, NULL, NULL);
    return err;
}

static int work(const char *url, int *runs, char detail[HF_DETAIL_SIZE])
{
    hf_worker *worker;
    hf_worker_queue queue = {HF_WORKER_QUEUE_INIT, .name = "install"};
    hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .server = HF_SERVER(.url = url),
                           .queues = &queue, .n_queues = 1, .burst = true};
    hf_err err = hf_worker_new(&worker, &opts, detail);
    if (err == HF_OK)
        err = hf_worker_handle(worker, "greet", 60000, greet, runs, detail);
    if (err == HF_OK)
        err = hf_worker_run(worker, detail);
    if (err == HF_OK)
        hf_worker_free(worker);
    return err;
}

int main(int argc, char **argv)
{
    char detail[HF_DETAIL_SIZE] = "";
    int runs = 0;
    const char *url = argc > 1 ? argv[1] : NULL;
    int err = enqueue(url, detail);
    if (err == HF_OK)
        err = work(url, &runs, detail);
    if (err != HF_OK)
        fprintf(stderr, "%s: %s\n", hf_err_text((hf_err)err), detail);
    return err == HF_OK && runs == 1 ? 0 : 1;
}
