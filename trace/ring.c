/* ring.c - see ring.h. */
#include "trace/ring.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    TEXT_MAX = 448, /* of a span: its job's id, type and queue always fit */
    PATIENCE_MS = 1000
};

/* The texts of the span are in `text`. */
typedef struct slot {
    hf_span span;
    char text[TEXT_MAX];
} slot;

struct hf_ring {
    pthread_mutex_t lock;
    pthread_cond_t some; /* the first one, or a batch of them, or closed */
    size_t first, n;
    uint64_t dropped;
    bool closed;
    struct timespec due; /* CLOCK_MONOTONIC: when the first one has waited long enough */
    slot slots[HF_RING_SPANS];
};

hf_ring *hf_ring_new(void)
{
    pthread_condattr_t clock;
    hf_ring *ring = calloc(1, sizeof *ring); /* pages that are not used take no memory */
    if (ring == NULL)
        return NULL;
    pthread_mutex_init(&ring->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&ring->some, &clock);
    pthread_condattr_destroy(&clock);
    return ring;
}

void hf_ring_free(hf_ring *ring)
{
    if (ring == NULL)
        return;
    pthread_cond_destroy(&ring->some);
    pthread_mutex_destroy(&ring->lock);
    free(ring);
}

/* ---- any thread ---- */

typedef struct writer {
    char *at;
    size_t left;
} writer;

/* A text without room is left out: half a name would be another one. */
static const char *keep(writer *w, const char *text)
{
    size_t size = text == NULL ? 0 : strlen(text) + 1;
    if (size == 0 || size > w->left)
        return NULL;
    char *at = memcpy(w->at, text, size);
    w->at += size;
    w->left -= size;
    return at;
}

static void copy(slot *to, const hf_span *span)
{
    writer w = {to->text, sizeof to->text};
    to->span = *span;
    to->span.queue = keep(&w, span->queue);
    to->span.type = keep(&w, span->type);
    to->span.id = keep(&w, span->id);
    to->span.outcome = keep(&w, span->outcome);
    to->span.error_type = keep(&w, span->error_type);
    to->span.client = keep(&w, span->client);
    to->span.server_address = keep(&w, span->server_address);
}

/* Under the lock. */
static void start_waiting(hf_ring *ring)
{
    (void)clock_gettime(CLOCK_MONOTONIC, &ring->due);
    ring->due.tv_sec += PATIENCE_MS / 1000;
}

void hf_ring_put(hf_ring *ring, const hf_span *span)
{
    bool wake = false;
    pthread_mutex_lock(&ring->lock);
    if (ring->n == HF_RING_SPANS || ring->closed) {
        ring->dropped++;
    } else {
        copy(&ring->slots[(ring->first + ring->n++) % HF_RING_SPANS], span);
        if (ring->n == 1)
            start_waiting(ring);
        wake = ring->n == 1 || ring->n == HF_RING_BATCH;
    }
    pthread_mutex_unlock(&ring->lock);
    if (wake)
        pthread_cond_signal(&ring->some);
}

void hf_ring_drop(hf_ring *ring, uint64_t n)
{
    pthread_mutex_lock(&ring->lock);
    ring->dropped += n;
    pthread_mutex_unlock(&ring->lock);
}

uint64_t hf_ring_dropped(hf_ring *ring)
{
    pthread_mutex_lock(&ring->lock);
    uint64_t n = ring->dropped;
    pthread_mutex_unlock(&ring->lock);
    return n;
}

void hf_ring_close(hf_ring *ring)
{
    pthread_mutex_lock(&ring->lock);
    ring->closed = true;
    pthread_mutex_unlock(&ring->lock);
    pthread_cond_signal(&ring->some);
}

/* ---- the thread that takes ---- */

size_t hf_ring_take(hf_ring *ring)
{
    bool due = false;
    pthread_mutex_lock(&ring->lock);
    while (ring->n == 0 && !ring->closed)
        pthread_cond_wait(&ring->some, &ring->lock);
    while (ring->n < HF_RING_BATCH && !ring->closed && !due)
        due = pthread_cond_timedwait(&ring->some, &ring->lock, &ring->due) == ETIMEDOUT;
    size_t n = ring->n < HF_RING_BATCH ? ring->n : HF_RING_BATCH;
    pthread_mutex_unlock(&ring->lock);
    return n;
}

const hf_span *hf_ring_at(const hf_ring *ring, size_t i)
{
    return &ring->slots[(ring->first + i) % HF_RING_SPANS].span;
}

void hf_ring_release(hf_ring *ring, size_t n)
{
    pthread_mutex_lock(&ring->lock);
    ring->first = (ring->first + n) % HF_RING_SPANS;
    ring->n -= n;
    if (ring->n > 0)
        start_waiting(ring);
    pthread_mutex_unlock(&ring->lock);
}
