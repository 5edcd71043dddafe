/* waiting.c - see waiting.h. A thread waits for the second, because the calls block. */
#include "cli/waiting.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/mask.h"

struct hf_waiting {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool over;
    const char *url;
};

bool hf_waiting_wanted(bool json)
{
    return !json && isatty(STDERR_FILENO) == 1;
}

void hf_waiting_say(const char *url)
{
    char place[HF_FOUND_SIZE];
    fprintf(stderr, "holdfast: waiting for Redis at %s ...\n",
            hf_found(place, url != NULL ? url : "redis://localhost:6379"));
}

static void *wait_for_it(void *arg)
{
    hf_waiting *w = arg;
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += HF_WAITING_MS / 1000;
    int late = 0;
    pthread_mutex_lock(&w->lock);
    while (!w->over && late == 0)
        late = pthread_cond_timedwait(&w->ended, &w->lock, &until);
    if (!w->over)
        hf_waiting_say(w->url);
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static void destroy(hf_waiting *w)
{
    pthread_cond_destroy(&w->ended);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

hf_waiting *hf_waiting_begin(const char *url, bool json)
{
    pthread_condattr_t attr;
    if (!hf_waiting_wanted(json))
        return NULL;
    hf_waiting *w = calloc(1, sizeof *w);
    if (w == NULL)
        return NULL;
    w->url = url;
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&w->lock, NULL);
    (void)pthread_cond_init(&w->ended, &attr);
    (void)pthread_condattr_destroy(&attr);
    if (pthread_create(&w->thread, NULL, wait_for_it, w) == 0)
        return w;
    destroy(w);
    return NULL;
}

void hf_waiting_end(hf_waiting *w)
{
    if (w == NULL)
        return;
    pthread_mutex_lock(&w->lock);
    w->over = true;
    pthread_cond_signal(&w->ended);
    pthread_mutex_unlock(&w->lock);
    (void)pthread_join(w->thread, NULL);
    destroy(w);
}
