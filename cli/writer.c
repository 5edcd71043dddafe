/* writer.c - see writer.h.
 *
 * Two buffers change places: callers fill one while the thread writes the other. Once a
 * line was left out, all later ones are left out until the next change. So the count
 * stands where the lines are missing. */
#include "cli/writer.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"

enum {
    KEEP_BYTES = 64 << 10, /* of an empty buffer */
    GAP_MAX = 1024,
    GATHER_MS = 10, /* from the first line to the write that takes all since then, or */
    GATHER_BYTES = 64 << 10, /* until they are this many: the buffer must not get full */
    MS_PER_S = 1000,
    NS_PER_MS = 1000000,
    NS_PER_S = 1000000000
};

struct hf_writer {
    int fd;
    hf_writer_gap_fn *gap;
    void *arg;
    pthread_t thread;
    pthread_mutex_t lock; /* for what follows */
    pthread_cond_t work, idle;
    hf_buf filling;
    uint64_t left_out;       /* lines after those that are filling */
    bool writing;            /* the thread is not idle */
    bool hurry;              /* a caller waits in hf_writer_flush() */
    bool closing, abandoned; /* by its owner; abandoned: `gap` must not be called */
    /* the thread's own */
    hf_buf taken;
    uint64_t missing; /* lines that were left out or could not be written */
    bool torn;        /* the last line is not whole */
};

/* ---- the thread ---- */

static uint64_t lines_in(const char *text, size_t len)
{
    uint64_t n = 0;
    for (size_t i = 0; i < len; i++)
        n += text[i] == '\n';
    return n;
}

/* False: it cannot be written. Waits as long as the stream blocks. */
static bool write_all(hf_writer *w, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t n = write(w->fd, text, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            (void)poll(&(struct pollfd){.fd = w->fd, .events = POLLOUT}, 1, -1);
            continue;
        }
        if (n <= 0)
            return false;
        text += n;
        len -= (size_t)n;
        w->torn = len > 0;
    }
    return true;
}

/* True: nothing is missing, or it has been said. */
static bool tell_gap(hf_writer *w)
{
    hf_buf line;
    if (w->missing == 0)
        return true;
    hf_buf_init(&line, GAP_MAX);
    if (w->torn)
        hf_buf_text(&line, "\n");
    pthread_mutex_lock(&w->lock);
    if (!w->abandoned)
        w->gap(&line, w->missing, w->arg);
    pthread_mutex_unlock(&w->lock);
    bool written = hf_buf_err(&line) == HF_OK && write_all(w, line.data, line.len);
    if (written)
        w->missing = 0;
    hf_buf_done(&line);
    return written;
}

/* As many whole lines as a pipe takes at once, so that they do not mix with those of
 * another process; or one longer line. */
static size_t next_piece(const char *text, size_t len)
{
    size_t piece = len <= PIPE_BUF ? len : PIPE_BUF;
    while (piece > 0 && text[piece - 1] != '\n')
        piece--;
    if (piece > 0)
        return piece;
    const char *end = memchr(text, '\n', len);
    return end == NULL ? len : (size_t)(end - text) + 1;
}

static void write_taken(hf_writer *w, uint64_t left_out)
{
    for (size_t at = 0; at < w->taken.len;) {
        size_t piece = next_piece(w->taken.data + at, w->taken.len - at);
        if (!tell_gap(w) || !write_all(w, w->taken.data + at, piece))
            w->missing += lines_in(w->taken.data + at, piece);
        at += piece;
    }
    w->missing += left_out;
    (void)tell_gap(w);
}

static void swap(hf_writer *w)
{
    hf_buf taken = w->filling;
    if (w->taken.cap > KEEP_BYTES)
        hf_buf_done(&w->taken);
    hf_buf_clear(&w->taken);
    w->filling = w->taken;
    w->taken = taken;
}

static void destroy(hf_writer *w)
{
    hf_buf_done(&w->filling);
    hf_buf_done(&w->taken);
    pthread_cond_destroy(&w->work);
    pthread_cond_destroy(&w->idle);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

static struct timespec after_ms(uint32_t ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(ms / MS_PER_S);
    until.tv_nsec += (long)(ms % MS_PER_S) * NS_PER_MS;
    if (until.tv_nsec >= NS_PER_S) {
        until.tv_sec++;
        until.tv_nsec -= NS_PER_S;
    }
    return until;
}

/* A worker of short jobs or programs writes thousands of lines in a second. If each woke
 * this thread, the threads' changes would cost more than the lines. */
static void gather(hf_writer *w)
{
    const struct timespec until = after_ms(GATHER_MS);
    int late = 0;
    w->writing = true;
    while (late == 0 && !w->hurry && w->filling.len < GATHER_BYTES)
        late = pthread_cond_timedwait(&w->work, &w->lock, &until);
}

static void *write_lines(void *arg)
{
    hf_writer *w = arg;
    pthread_mutex_lock(&w->lock);
    while (!w->abandoned) {
        if (w->filling.len > 0 || w->left_out > 0) {
            gather(w);
            uint64_t left_out = w->left_out;
            w->left_out = 0;
            swap(w);
            pthread_mutex_unlock(&w->lock);
            write_taken(w, left_out);
            pthread_mutex_lock(&w->lock);
            continue;
        }
        w->writing = false;
        pthread_cond_broadcast(&w->idle);
        if (w->closing)
            break;
        pthread_cond_wait(&w->work, &w->lock);
    }
    bool abandoned = w->abandoned;
    pthread_mutex_unlock(&w->lock);
    if (abandoned)
        destroy(w);
    return NULL;
}

/* ---- its owner ---- */

static void init_conditions(hf_writer *w)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&w->work, &attr);
    pthread_cond_init(&w->idle, &attr);
    pthread_condattr_destroy(&attr);
}

hf_writer *hf_writer_open(int fd, hf_writer_gap_fn *gap, void *arg)
{
    hf_writer *w = calloc(1, sizeof *w);
    if (w == NULL)
        return NULL;
    w->fd = fd;
    w->gap = gap;
    w->arg = arg;
    hf_buf_init(&w->filling, HF_WRITER_MAX);
    hf_buf_init(&w->taken, HF_WRITER_MAX);
    pthread_mutex_init(&w->lock, NULL);
    init_conditions(w);
    if (pthread_create(&w->thread, NULL, write_lines, w) == 0)
        return w;
    destroy(w);
    return NULL;
}

void hf_writer_put(hf_writer *w, const char *lines, size_t len)
{
    pthread_mutex_lock(&w->lock);
    if (w->left_out == 0)
        hf_buf_add(&w->filling, lines, len);
    if (w->left_out > 0 || hf_buf_err(&w->filling) != HF_OK)
        w->left_out += lines_in(lines, len);
    if (!w->writing || w->filling.len >= GATHER_BYTES)
        pthread_cond_signal(&w->work);
    pthread_mutex_unlock(&w->lock);
}

bool hf_writer_flush(hf_writer *w, uint32_t ms)
{
    const struct timespec until = after_ms(ms);
    pthread_mutex_lock(&w->lock);
    int late = 0;
    w->hurry = true;
    pthread_cond_signal(&w->work);
    while (late == 0 && (w->writing || w->filling.len > 0 || w->left_out > 0))
        late = pthread_cond_timedwait(&w->idle, &w->lock, &until);
    w->hurry = false;
    pthread_mutex_unlock(&w->lock);
    return late == 0;
}

void hf_writer_close(hf_writer *w, uint32_t ms)
{
    if (w == NULL)
        return;
    bool flushed = hf_writer_flush(w, ms);
    pthread_t thread = w->thread;
    pthread_mutex_lock(&w->lock);
    w->closing = true;
    w->abandoned = !flushed;
    pthread_cond_signal(&w->work);
    pthread_mutex_unlock(&w->lock);
    if (flushed) {
        (void)pthread_join(thread, NULL);
        destroy(w);
    } else {
        (void)pthread_detach(thread); /* it may block for ever */
    }
}
