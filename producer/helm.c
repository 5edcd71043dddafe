/* helm.c - see helm.h. */
#include "producer/helm.h"

#include <limits.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/futex.h"

enum {
    SEND = 1,      /* what may be sent */
    READ = 2,      /* a turn of the loop */
    REST_MS = 100, /* how long after the last call the keeper looks out again */
    NUDGE_MS = 1   /* how long what is ready may wait for company; see requests.c */
};

hf_err hf_helm_init(hf_helm *helm, hf_engine *engine)
{
    int bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (bell < 0)
        return HF_SYSTEM;
    *helm = (hf_helm){.engine = engine, .bell = bell};
    return HF_OK;
}

void hf_helm_done(hf_helm *helm)
{
    if (helm->engine != NULL)
        (void)close(helm->bell);
}

static void lock(hf_helm *helm)
{
    uv_mutex_lock(&helm->engine->inbox.lock);
}

static void unlock(hf_helm *helm)
{
    uv_mutex_unlock(&helm->engine->inbox.lock);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* ---- turns; the lock is held ---- */

/* Tells a thread that it is its turn. Then its word must be woken, which can be done
 * without the lock. NULL: not even that, it is awake. */
static atomic_uint *post(hf_waiter *waiter)
{
    unsigned none = HF_WORD_NONE;
    bool asleep = atomic_compare_exchange_strong(&waiter->word, &none, HF_WORD_LOOK);
    return asleep ? &waiter->word : NULL;
}

static void wake(atomic_uint *word)
{
    if (word != NULL)
        hf_futex_wake(word);
}

/* If it is awake, it looks at what there is before it sleeps. */
static void call_keeper(hf_helm *helm)
{
    const uint64_t one = 1;
    if (helm->keeper_sleeps)
        wake(post(&helm->keeper));
    else if (helm->keeper_polls && !helm->rung)
        helm->rung = write(helm->bell, &one, sizeof one) > 0;
}

static bool is_call(const hf_helm *helm, const hf_waiter *waiter)
{
    return waiter != NULL && waiter != &helm->keeper;
}

/* Wakes the lookout. */
static void ring(hf_helm *helm)
{
    if (!is_call(helm, helm->lookout))
        call_keeper(helm);
    else if (helm->until_ns != 0)
        hf_engine_wake(helm->engine);
}

void hf_helm_call(hf_helm *helm)
{
    lock(helm);
    helm->wanted |= SEND;
    ring(helm); /* a call gives the lookout to the keeper */
    unlock(helm);
}

/* Whether this thread may use the engine. */
static bool may_steer(const hf_helm *helm, const hf_waiter *self)
{
    return self == &helm->keeper || helm->engine->inbox.callbacks == 0;
}

/* Whether it is for calls to look out, and not for the keeper. */
static bool calls_look_out(const hf_helm *helm)
{
    const hf_inbox *inbox = &helm->engine->inbox;
    return inbox->callbacks == 0 && !inbox->closed;
}

/* Sees to it that somebody looks out, and not for too long. A word is to be woken. */
static atomic_uint *appoint(hf_helm *helm, const hf_waiter *self)
{
    hf_waiter *first = helm->engine->inbox.waiting.first;
    if (helm->wanted != 0 || !calls_look_out(helm)) {
        call_keeper(helm);
        return NULL;
    }
    if (helm->lookout == NULL && first != NULL) {
        helm->lookout = first;
        return first != self ? post(first) : NULL;
    }
    if (helm->lookout != NULL && helm->due_ns < helm->until_ns)
        ring(helm);
    return NULL;
}

/* ---- at the helm ---- */

/* Without the lock. When the loop must be run again is the answer; UINT64_MAX: never. */
static uint64_t steer(hf_engine *engine, unsigned wanted, bool *over)
{
    if (wanted & READ)
        *over = uv_run(engine->loop, UV_RUN_NOWAIT) == 0;
    uv_update_time(engine->loop);
    if (wanted & SEND)
        hf_requests_pump(engine);
    hf_engine_flush(engine);
    int ms = uv_backend_timeout(engine->loop);
    return ms < 0 ? UINT64_MAX : hf_boot_ns() + (uint64_t)ms * HF_MS_NS;
}

/* A call that was told looks out no more. */
static void dismiss_told(hf_helm *helm, const hf_waiter *self)
{
    hf_waiter *lookout = helm->lookout;
    if (!is_call(helm, lookout) || lookout->pending > 0)
        return;
    if (lookout == self || helm->until_ns == 0)
        helm->lookout = NULL;
    else
        ring(helm);
}

/* Does what is wanted, unless somebody is at it, who then does this too; or it is the
 * keeper's. Wakes those who were told by it. */
static void serve(hf_helm *helm, hf_waiter *self, unsigned wanted)
{
    hf_inbox *inbox = &helm->engine->inbox;
    helm->wanted |= wanted;
    if (helm->taken)
        return;
    helm->taken = true;
    inbox->no_callbacks = self != &helm->keeper;
    while (helm->wanted != 0 && may_steer(helm, self)) {
        bool over = false;
        wanted = helm->wanted;
        helm->wanted = 0;
        unlock(helm);
        uint64_t due_ns = steer(helm->engine, wanted, &over);
        lock(helm);
        helm->due_ns = due_ns;
        helm->over = helm->over || over;
    }
    helm->taken = false;
    hf_waiters told = inbox->told;
    inbox->told = (hf_waiters){NULL, NULL};
    if (told.first != NULL)
        hf_spin_read(&helm->spin, hf_boot_ns());
    dismiss_told(helm, self);
    atomic_uint *next = appoint(helm, self);
    if (next == NULL && told.first == NULL)
        return;
    unlock(helm);
    wake(next);
    hf_waiters_wake(&told, self);
    lock(helm);
}

/* ---- sleeping; the lock is held, and let go meanwhile ---- */

static void look_out(hf_helm *helm, const hf_waiter *self, uint64_t until_ns)
{
    uint64_t now_ns = hf_boot_ns(), wake_ns = earlier(helm->due_ns, until_ns);
    uint64_t ms = wake_ns > now_ns ? (wake_ns - now_ns) / HF_MS_NS + 1 : 0;
    struct pollfd fds[] = {
        {.fd = uv_backend_fd(helm->engine->loop), .events = POLLIN},
        {.fd = self == &helm->keeper ? helm->bell : -1, .events = POLLIN}};
    const hf_waiters *waiting = &helm->engine->inbox.waiting;
    bool alone = waiting->first == self && waiting->last == self;
    uint64_t spin_ns = alone ? hf_spin_begin(&helm->spin, now_ns) : 0;
    helm->until_ns = wake_ns;
    unlock(helm);
    int found = 0;
    for (; found == 0 && now_ns < earlier(spin_ns, wake_ns); now_ns = hf_boot_ns())
        found = poll(fds, HF_COUNT(fds), 0);
    if (found == 0)
        (void)poll(fds, HF_COUNT(fds), ms < INT_MAX ? (int)ms : INT_MAX);
    lock(helm);
    if (spin_ns != 0)
        hf_spin_end(&helm->spin, found == 0);
    if (helm->lookout == self)
        helm->until_ns = 0;
}

/* True: every part was told, and the lock is not held any more. */
static bool sleep_until(hf_helm *helm, hf_waiter *self, uint64_t until_ns)
{
    uint64_t now_ns = hf_boot_ns();
    unlock(helm);
    if (until_ns > now_ns)
        hf_futex_wait(&self->word, HF_WORD_NONE, until_ns - now_ns);
    unsigned word = HF_WORD_LOOK;
    (void)atomic_compare_exchange_strong(&self->word, &word, HF_WORD_NONE);
    if (word == HF_WORD_DONE)
        return true;
    lock(helm);
    return false;
}

/* ---- the keeper ---- */

static void keeper_sleeps(hf_helm *helm, uint64_t until_ns)
{
    helm->keeper_sleeps = true;
    (void)sleep_until(helm, &helm->keeper, until_ns);
    helm->keeper_sleeps = false;
}

static void keeper_looks_out(hf_helm *helm)
{
    uint64_t times;
    helm->keeper_polls = true;
    look_out(helm, &helm->keeper, UINT64_MAX);
    helm->keeper_polls = false;
    if (helm->rung)
        helm->rung = read(helm->bell, &times, sizeof times) <= 0;
}

/* While calls look out, and a little longer, the keeper need not. */
static bool may_rest(const hf_helm *helm, uint64_t now_ns)
{
    return calls_look_out(helm) &&
           (helm->engine->inbox.waiting.first != NULL ||
            (now_ns < helm->used_ns + REST_MS * HF_MS_NS && now_ns < helm->due_ns));
}

static void rest(hf_helm *helm, uint64_t now_ns)
{
    uint64_t until_ns = now_ns + REST_MS * HF_MS_NS;
    if (helm->lookout == &helm->keeper) {
        helm->lookout = NULL;
        wake(appoint(helm, &helm->keeper));
    }
    bool alone = helm->engine->inbox.waiting.first == NULL;
    keeper_sleeps(helm, alone ? earlier(until_ns, helm->due_ns) : until_ns);
}

void hf_helm_keep(hf_helm *helm)
{
    hf_waiter *keeper = &helm->keeper;
    lock(helm);
    while (!helm->over) {
        uint64_t now_ns = hf_boot_ns();
        if (may_rest(helm, now_ns)) {
            rest(helm, now_ns);
        } else if (helm->taken || is_call(helm, helm->lookout)) {
            ring(helm);
            keeper_sleeps(helm, now_ns + NUDGE_MS * HF_MS_NS);
        } else {
            helm->lookout = keeper;
            serve(helm, keeper, SEND | READ);
            /* It let the lock go to wake others: what came then rang nobody. */
            if (!helm->over && helm->lookout == keeper && helm->wanted == 0)
                keeper_looks_out(helm);
        }
    }
    unlock(helm);
}

/* ---- a call ---- */

/* Whether it is the lookout, or may become it. */
static bool may_look_out(const hf_helm *helm, const hf_waiter *self)
{
    if (!calls_look_out(helm))
        return false;
    return helm->lookout == self || (!helm->taken && !is_call(helm, helm->lookout));
}

static void give_to_keeper(hf_helm *helm, const hf_waiter *self)
{
    if (helm->lookout == self)
        helm->lookout = NULL;
    call_keeper(helm);
}

static void call_looks_out(hf_helm *helm, hf_waiter *self, uint64_t until_ns)
{
    helm->lookout = self;
    look_out(helm, self, until_ns);
    helm->used_ns = hf_boot_ns();
    if (!calls_look_out(helm))
        return;
    if (helm->taken) /* then who is at the helm does it, and appoints the next */
        helm->lookout = NULL;
    serve(helm, self, READ);
}

/* The thread of the last part's answer is about to say so. */
static void await_word(hf_waiter *waiter)
{
    unsigned word;
    while ((word = atomic_load_explicit(&waiter->word, memory_order_acquire)) !=
           HF_WORD_DONE)
        hf_futex_wait(&waiter->word, word, 1000 * HF_MS_NS);
}

static void leave(hf_helm *helm, hf_waiter *waiter)
{
    atomic_uint *next = NULL;
    if (waiter->pending > 0) {
        hf_waiters_remove(&helm->engine->inbox.waiting, waiter);
        waiter->waits = false;
        waiter->left = true;
        waiter->results = NULL;
    }
    if (helm->lookout == waiter) {
        helm->lookout = NULL;
        if (!helm->taken) /* else who is at the helm sees to it */
            next = appoint(helm, waiter);
    }
    unlock(helm);
    wake(next);
}

bool hf_helm_await(hf_helm *helm, hf_waiter *waiter, bool ready, uint64_t until_ns)
{
    uint64_t now_ns = hf_boot_ns();
    uint64_t nudge_ns = ready ? now_ns + NUDGE_MS * HF_MS_NS : UINT64_MAX;
    lock(helm);
    waiter->waits = waiter->pending > 0;
    if (waiter->waits)
        hf_waiters_append(&helm->engine->inbox.waiting, waiter);
    if (ready)
        serve(helm, waiter, SEND);
    while (waiter->pending > 0 && now_ns < until_ns) {
        if (may_look_out(helm, waiter)) {
            call_looks_out(helm, waiter, until_ns);
        } else {
            if (!calls_look_out(helm))
                give_to_keeper(helm, waiter);
            if (sleep_until(helm, waiter, earlier(until_ns, nudge_ns)))
                return true;
        }
        now_ns = hf_boot_ns();
        if (now_ns >= nudge_ns) {
            nudge_ns = UINT64_MAX;
            serve(helm, waiter, SEND);
        }
    }
    bool told = waiter->pending == 0;
    leave(helm, waiter);
    if (told)
        await_word(waiter);
    return told;
}
