/* feed.c - see feed.h. */
#include "top/feed.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

enum { PER_SECOND = 100, BURST = 100, SLICE_MS = 100 };

#define SECOND_NS UINT64_C(1000000000)

struct hf_feed {
    hf_top_reader *reader;
    pthread_t thread;
    int changed_fd;        /* an eventfd */
    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t changed;
    bool stop, ended, fresh; /* fresh: what is wanted is new */
    hf_want want;
    hf_change change; /* to be made */

    /* of the thread alone */
    hf_want now;
    uint64_t page_ns;   /* when the page was read last */
    double tokens;      /* scripts that may be asked for at once */
    uint64_t tokens_ns; /* when they were counted */
    bool all_at_once;   /* the first time */
};

static void tell(hf_feed *feed)
{
    const uint64_t one = 1;
    while (write(feed->changed_fd, &one, sizeof one) < 0 && errno == EINTR)
        continue;
}

int hf_feed_fd(const hf_feed *feed)
{
    return feed->changed_fd;
}

void hf_feed_seen(hf_feed *feed)
{
    uint64_t n;
    while (read(feed->changed_fd, &n, sizeof n) < 0 && errno == EINTR)
        continue;
}

/* ---- the thread ---- */

static uint64_t interval_ns(const hf_feed *feed)
{
    return (uint64_t)feed->now.interval_ms * HF_MS_NS;
}

/* The same time by the clock of the condition, which stops during suspend. */
static struct timespec monotonic_at(uint64_t ns)
{
    const uint64_t now = hf_boot_ns(), more = ns > now ? ns - now : 0;
    struct timespec at;
    (void)clock_gettime(CLOCK_MONOTONIC, &at); /* cannot fail for this clock */
    const uint64_t nsec = (uint64_t)at.tv_nsec + more % SECOND_NS;
    at.tv_sec += (time_t)(more / SECOND_NS + nsec / SECOND_NS);
    at.tv_nsec = (long)(nsec % SECOND_NS);
    return at;
}

/* Takes over what is wanted, waits until `ns` at most, or until there is something to do,
 * and makes the change that was asked for. False: stop. *fresh: the page is another. */
static bool wait_until(hf_feed *feed, uint64_t ns, bool *fresh)
{
    const struct timespec at = monotonic_at(ns);
    (void)pthread_mutex_lock(&feed->mutex);
    while (!feed->stop && !feed->fresh && feed->change.kind == HF_CHANGE_NONE &&
           hf_boot_ns() < ns)
        if (pthread_cond_timedwait(&feed->changed, &feed->mutex, &at) == ETIMEDOUT)
            break;
    const bool go_on = !feed->stop;
    const hf_change change = feed->change;
    *fresh = feed->fresh;
    feed->now = feed->want;
    feed->fresh = false;
    feed->change.kind = HF_CHANGE_NONE;
    (void)pthread_mutex_unlock(&feed->mutex);
    if (go_on && change.kind != HF_CHANGE_NONE) {
        hf_reader_change(feed->reader, &change);
        *fresh = true;
    }
    return go_on;
}

static void read_page(hf_feed *feed)
{
    feed->page_ns = hf_boot_ns();
    hf_reader_page(feed->reader, &feed->now);
    feed->tokens -= (double)feed->now.n_visible; /* which it has asked for */
    feed->tokens = feed->tokens < -BURST ? -BURST : feed->tokens;
    tell(feed);
}

static void refill(hf_feed *feed)
{
    const uint64_t now = hf_boot_ns();
    feed->tokens += (double)(now - feed->tokens_ns) / 1e9 * PER_SECOND;
    feed->tokens = feed->tokens > BURST ? BURST : feed->tokens;
    feed->tokens_ns = now;
}

/* Before a queue is asked: waits for its turn, and reads the page meanwhile. */
static bool on_between(void *arg)
{
    hf_feed *feed = arg;
    bool fresh = false;
    if (!wait_until(feed, 0, &fresh))
        return false;
    if (feed->all_at_once) {
        if (fresh)
            read_page(feed);
        return true;
    }
    refill(feed);
    while (feed->tokens < 1 || feed->now.frozen || fresh) {
        if (!feed->now.frozen &&
            (fresh || hf_boot_ns() >= feed->page_ns + interval_ns(feed)))
            read_page(feed);
        if (feed->reader->away_ms != 0)
            return true; /* the next call finds it out */
        if (!wait_until(feed, hf_boot_ns() + SLICE_MS * HF_MS_NS, &fresh))
            return false;
        refill(feed);
    }
    feed->tokens--;
    return true;
}

static void *run(void *arg)
{
    hf_feed *feed = arg;
    bool fresh = false;
    feed->tokens = BURST;
    feed->tokens_ns = hf_boot_ns();
    feed->all_at_once = true;
    while (wait_until(feed, feed->page_ns + interval_ns(feed), &fresh)) {
        if (feed->now.frozen && !fresh) {
            feed->page_ns = hf_boot_ns();
            continue;
        }
        read_page(feed);
        if (feed->now.frozen || feed->reader->away_ms != 0 ||
            (fresh && !feed->all_at_once))
            continue;
        hf_reader_whole(feed->reader, &feed->now, on_between, feed);
        feed->all_at_once = false;
        tell(feed);
    }
    (void)pthread_mutex_lock(&feed->mutex);
    feed->ended = true;
    (void)pthread_cond_broadcast(&feed->changed);
    (void)pthread_mutex_unlock(&feed->mutex);
    return NULL;
}

/* ---- from outside ---- */

/* The signals are for the thread of the terminal. */
static int start(hf_feed *feed)
{
    sigset_t all, before;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&feed->thread, NULL, run, feed);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

static void destroy(hf_feed *feed)
{
    (void)close(feed->changed_fd);
    (void)pthread_cond_destroy(&feed->changed);
    (void)pthread_mutex_destroy(&feed->mutex);
    free(feed);
}

hf_err hf_feed_open(hf_feed **out, hf_top_reader *reader)
{
    pthread_condattr_t attributes;
    hf_feed *feed = calloc(1, sizeof *feed);
    if (feed == NULL)
        return HF_NOMEM;
    feed->reader = reader;
    feed->want.interval_ms = 1000;
    feed->changed_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    (void)pthread_mutex_init(&feed->mutex, NULL);
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&feed->changed, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    if (feed->changed_fd < 0 || start(feed) != 0) {
        destroy(feed);
        return HF_SYSTEM;
    }
    *out = feed;
    return HF_OK;
}

bool hf_feed_close(hf_feed *feed, uint32_t ms)
{
    if (feed == NULL)
        return true;
    const struct timespec at = monotonic_at(hf_boot_ns() + ms * HF_MS_NS);
    (void)pthread_mutex_lock(&feed->mutex);
    feed->stop = true;
    (void)pthread_cond_broadcast(&feed->changed);
    while (!feed->ended &&
           pthread_cond_timedwait(&feed->changed, &feed->mutex, &at) != ETIMEDOUT)
        continue;
    const bool ended = feed->ended;
    (void)pthread_mutex_unlock(&feed->mutex);
    if (!ended)
        return false;
    (void)pthread_join(feed->thread, NULL);
    destroy(feed);
    return true;
}

static bool is_other(const hf_want *a, const hf_want *b)
{
    return a->page != b->page || a->frozen != b->frozen ||
           !hf_subject_same(&a->subject, &b->subject);
}

void hf_feed_want(hf_feed *feed, const hf_want *want)
{
    (void)pthread_mutex_lock(&feed->mutex);
    const bool sooner = want->interval_ms < feed->want.interval_ms;
    feed->fresh = feed->fresh || is_other(&feed->want, want) || sooner;
    feed->want = *want;
    if (feed->fresh)
        (void)pthread_cond_broadcast(&feed->changed);
    (void)pthread_mutex_unlock(&feed->mutex);
}

void hf_feed_change(hf_feed *feed, const hf_change *change)
{
    (void)pthread_mutex_lock(&feed->mutex);
    feed->change = *change;
    (void)pthread_cond_broadcast(&feed->changed);
    (void)pthread_mutex_unlock(&feed->mutex);
}
