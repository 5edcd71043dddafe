/* hold.c - a worker whose one C handler holds its jobs for as long as it is told to, so
 * that somebody can look at the process meanwhile.
 *
 *     hold --url unix:///... [--concurrency N] [--queue NAME]
 *
 * Lines on standard input: `hold` (the state at the start): whoever runs, and whoever
 * comes, waits; `go`: nobody does. At its end the worker stops, and how many jobs ran is
 * printed as one line of JSON. */
#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "holdfast/worker.h"

typedef struct gate {
    pthread_mutex_t lock;
    pthread_cond_t opened;
    bool open;
    size_t ran;
    hf_worker *worker;
} gate;

static void set_open(gate *g, bool open)
{
    pthread_mutex_lock(&g->lock);
    g->open = open;
    pthread_cond_broadcast(&g->opened);
    pthread_mutex_unlock(&g->lock);
}

static hf_verdict on_job(hf_run *run, void *arg)
{
    gate *g = arg;
    (void)run;
    pthread_mutex_lock(&g->lock);
    while (!g->open)
        pthread_cond_wait(&g->opened, &g->lock);
    g->ran++;
    pthread_mutex_unlock(&g->lock);
    return HF_VERDICT_DONE;
}

static void *listen_to_stdin(void *arg)
{
    gate *g = arg;
    char line[16];
    while (fgets(line, sizeof line, stdin) != NULL)
        set_open(g, strcmp(line, "go\n") == 0);
    set_open(g, true);
    hf_worker_stop(g->worker);
    return NULL;
}

static bool parse(int argc, char **argv, hf_worker_opts *opts, hf_worker_queue *queue)
{
    static const struct option names[] = {
        {"url", required_argument, NULL, 'u'},
        {"concurrency", required_argument, NULL, 'n'},
        {"queue", required_argument, NULL, 'q'},
        {NULL, 0, NULL, 0},
    };
    for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        if (c == 'u')
            opts->url = optarg;
        else if (c == 'n')
            opts->concurrency = (uint32_t)strtoul(optarg, NULL, 10);
        else if (c == 'q')
            queue->name = optarg;
        else
            return false;
    }
    return opts->url != NULL && optind == argc;
}

int main(int argc, char **argv)
{
    gate g = {.lock = PTHREAD_MUTEX_INITIALIZER, .opened = PTHREAD_COND_INITIALIZER};
    char detail[HF_DETAIL_SIZE] = "";
    pthread_t listener;
    hf_worker_queue queue = {.name = "default"};
    hf_worker_opts opts = {.queues = &queue, .n_queues = 1};
    if (!parse(argc, argv, &opts, &queue)) {
        (void)fprintf(stderr, "usage: hold --url URL [--concurrency N] [--queue NAME]\n");
        return 64;
    }
    hf_err err = hf_worker_new(&g.worker, &opts, detail);
    if (err == HF_OK) {
        err = hf_worker_handle(g.worker, "*", 0, on_job, &g);
        if (err == HF_OK && pthread_create(&listener, NULL, listen_to_stdin, &g) != 0)
            err = HF_SYSTEM;
        if (err == HF_OK)
            err = hf_worker_run(g.worker, detail);
        if (err == HF_OK) { /* so it was the listener who stopped it */
            (void)pthread_join(listener, NULL);
            hf_worker_free(g.worker);
        }
    }
    if (err != HF_OK) {
        (void)fprintf(stderr, "hold: %s: %s\n", hf_err_name(err), detail);
        return 1;
    }
    printf("{\"ran\": %zu}\n", g.ran);
    return 0;
}
