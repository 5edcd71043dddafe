/* reload.c - a worker that takes other queues at HUP: reload URL FILE, each line of the
 * file a queue and its weight. INT and TERM end it. A thread waits for the signals, since
 * hf_worker_reload() is not for signal handlers. */
#define _POSIX_C_SOURCE 200809L /* also with -std=c11 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>

#include <holdfast/worker.h>

enum { QUEUES_MAX = 64 };

static const char *url, *file_name;
static hf_worker *worker;
static sigset_t signals;

static hf_verdict print(hf_run *run, void *out)
{
    fprintf(out, "%s of %s\n", hf_run_id(run), hf_run_queue(run));
    return fflush(out) == 0 ? HF_VERDICT_DONE : HF_VERDICT_RETRY;
}

/* Makes the worker, or gives it what the file says now. */
static hf_err take_file(char detail[HF_DETAIL_SIZE])
{
    char names[QUEUES_MAX][129];
    hf_worker_queue queues[QUEUES_MAX];
    size_t n = 0;
    unsigned weight;
    FILE *file = fopen(file_name, "r");
    while (file != NULL && n < QUEUES_MAX &&
           fscanf(file, "%128s %u", names[n], &weight) == 2) {
        queues[n] =
            (hf_worker_queue){HF_WORKER_QUEUE_INIT, .name = names[n], .weight = weight};
        n++;
    }
    if (file != NULL)
        (void)fclose(file);
    const hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .server = HF_SERVER(.url = url),
                                 .queues = queues, .n_queues = n};
    return worker == NULL ? hf_worker_new(&worker, &opts, detail)
                          : hf_worker_reload(worker, &opts, NULL, 0, NULL, 0, detail);
}

static void *wait_for_signals(void *arg)
{
    char detail[HF_DETAIL_SIZE];
    int number;
    while (sigwait(&signals, &number) == 0 && number == SIGHUP)
        if (take_file(detail) != HF_OK)
            fprintf(stderr, "nothing was changed: %s\n", detail);
    hf_worker_stop(worker);
    return arg;
}

int main(int argc, char **argv)
{
    char detail[HF_DETAIL_SIZE] = "";
    pthread_t thread;
    if (argc < 3)
        return 64;
    url = argv[1];
    file_name = argv[2];
    sigemptyset(&signals);
    sigaddset(&signals, SIGHUP);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, NULL); /* before there are other threads */
    hf_err err = take_file(detail);
    if (err == HF_OK)
        err = hf_worker_handle(worker, "*", 0, print, stdout, detail);
    if (err == HF_OK && pthread_create(&thread, NULL, wait_for_signals, NULL) != 0)
        err = HF_SYSTEM;
    if (err == HF_OK) {
        err = hf_worker_run(worker, detail);
        pthread_kill(thread, SIGINT); /* if it came back for another reason */
        pthread_join(thread, NULL);
    }
    if (err != HF_OK)
        fprintf(stderr, "reload: %s: %s\n", hf_err_text(err), detail);
    hf_worker_free(worker);
    return err == HF_OK ? 0 : 1;
}
