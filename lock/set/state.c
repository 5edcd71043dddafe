/* state.c - the questions and events of a holder of a lock over several servers.
 *
 * The set is held while the needed number of its members is, each by its own local
 * deadline; so it is lost when the watchdog reports it for one of them, or when a caller
 * finds it by the clock. LOST is final, even when members come back. */
#include "lock/set/state.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "lock/callback.h"
#include "lock/lock.h"
#include "lock/set/set.h"
#include "lock/watchdog/lease.h"

/* ---- all under set->lock ---- */

typedef struct set_view {
    size_t standing, solid; /* held; and their last renewal did not fail */
    uint64_t deadline_ns;   /* 0: too few are held */
} set_view;

static set_view look_now(const hf_lock_set *set)
{
    set_view view = {0};
    uint64_t deadlines[HF_LOCK_MEMBERS_MAX] = {0}; /* the largest first */
    for (size_t i = 0; i < set->n; i++) {
        const hf_lock *lock = set->members[i].lock;
        uint64_t at_ns = lock == NULL ? 0 : hf_lock_deadline_ns(lock);
        if (at_ns == 0)
            continue;
        size_t k = view.standing++;
        for (; k > 0 && deadlines[k - 1] < at_ns; k--)
            deadlines[k] = deadlines[k - 1];
        deadlines[k] = at_ns;
        view.solid += hf_lock_get_state(lock) == HF_LOCK_HELD;
    }
    if (view.standing >= set->needed)
        view.deadline_ns = deadlines[set->needed - 1];
    return view;
}

static void signal_fd(hf_lock_set *set)
{
    uint64_t one = 1;
    if (set->fd >= 0) {
        ssize_t n = write(set->fd, &one, sizeof one);
        (void)n; /* it is readable already */
    }
}

static void blame(hf_lock_set *set, const hf_set_member *m)
{
    set->lost_member = m->place;
    set->reason = m->lock == NULL ? HF_LOCK_DEADLINE : hf_lock_why(m->lock);
    if (set->reason == HF_LOCK_NOT_LOST)
        set->reason = HF_LOCK_DEADLINE;
}

static void lose(hf_lock_set *set)
{
    set->phase = PHASE_GONE;
    set->lost = true;
    set->reason = HF_LOCK_DEADLINE;
    for (size_t i = 0; i < set->n; i++) {
        const hf_set_member *m = &set->members[i];
        if (m->lock != NULL && hf_lock_deadline_ns(m->lock) == 0)
            blame(set, m);
    }
    signal_fd(set);
}

/* Settles by the clock of now whether it is held. */
static set_view settle(hf_lock_set *set)
{
    set_view view = look_now(set);
    if (set->phase == PHASE_HELD && view.deadline_ns == 0)
        lose(set);
    if (set->phase != PHASE_HELD)
        view.deadline_ns = 0;
    return view;
}

/* ---- telling ---- */

/* Under set->lock. False: there is nothing to tell. */
static bool choose(hf_lock_set *set, const hf_set_member *m, const hf_lock *lost,
                   bool revoked, hf_lock_event *event)
{
    set_view view = settle(set);
    bool suspect = view.solid < set->needed;
    if (set->silent || set->lost_reported || set->phase == PHASE_NEW)
        return false;
    if (set->lost) {
        if (lost != NULL && m->lock == lost)
            blame(set, m);
        set->lost_reported = true;
        *event = HF_LOCK_EVENT_LOST;
        return true;
    }
    if (revoked) {
        *event = HF_LOCK_EVENT_REVOKED;
        return true;
    }
    *event = suspect ? HF_LOCK_EVENT_SUSPECT : HF_LOCK_EVENT_HELD;
    bool is_new = suspect != set->suspect;
    set->suspect = suspect;
    return is_new;
}

/* On the thread that renews. */
void hf_set_state_on_event(hf_lock *lock, hf_lock_event event, void *member)
{
    hf_set_member *m = member;
    hf_lock_set *set = m->set;
    bool lost = event == HF_LOCK_EVENT_LOST, revoked = event == HF_LOCK_EVENT_REVOKED;
    uv_mutex_lock(&set->lock);
    bool is_new = choose(set, m, lost ? lock : NULL, revoked, &event);
    size_t about = event == HF_LOCK_EVENT_LOST ? set->lost_member : m->place;
    uv_mutex_unlock(&set->lock);
    hf_callback callback;
    hf_callback_begin(&callback, set->servers);
    if (is_new && set->on_event != NULL)
        set->on_event(set, event, about, set->event_arg);
    hf_callback_end(&callback);
    if (lost) {
        atomic_store(&m->lost, true);
        atomic_store(&set->member_lost, true);
        hf_run_loop_wake(&set->servers->tasks.run);
    }
}

bool hf_set_state_hold(hf_lock_set *set)
{
    uv_mutex_lock(&set->lock);
    bool held = look_now(set).deadline_ns != 0;
    if (held)
        set->phase = PHASE_HELD;
    uv_mutex_unlock(&set->lock);
    return held;
}

/* It is not held any more, because its holder released it or its client was closed. */
void hf_set_state_silence(hf_lock_set *set, hf_lock_reason reason)
{
    uv_mutex_lock(&set->lock);
    set->silent = true;
    (void)settle(set);
    if (set->phase == PHASE_HELD)
        set->reason = reason;
    set->phase = PHASE_GONE;
    if (reason == HF_LOCK_CLOSED)
        signal_fd(set);
    uv_mutex_unlock(&set->lock);
}

/* ---- asking ---- */

/* A question to a const set may record that it is lost; the clock has already decided
 * that. */
static set_view look(const hf_lock_set *asked)
{
    hf_lock_set *set = (hf_lock_set *)asked;
    uv_mutex_lock(&set->lock);
    set_view view = settle(set);
    uv_mutex_unlock(&set->lock);
    return view;
}

bool hf_set_state_stands(hf_lock_set *set)
{
    return look(set).deadline_ns != 0;
}

uint64_t hf_lock_set_deadline_ns(const hf_lock_set *set)
{
    return look(set).deadline_ns;
}

int64_t hf_lock_set_remaining_ms(const hf_lock_set *set)
{
    return hf_lease_remaining_ms(look(set).deadline_ns);
}

bool hf_lock_set_held(const hf_lock_set *set)
{
    return hf_lock_set_remaining_ms(set) > 0;
}

size_t hf_lock_set_size(const hf_lock_set *set)
{
    return set->n;
}

size_t hf_lock_set_standing(const hf_lock_set *set)
{
    return look(set).standing;
}

hf_lock_state hf_lock_set_get_state(const hf_lock_set *asked)
{
    hf_lock_set *set = (hf_lock_set *)asked;
    uv_mutex_lock(&set->lock);
    set_view view = settle(set);
    hf_set_phase phase = set->phase;
    uv_mutex_unlock(&set->lock);
    if (phase == PHASE_NEW)
        return HF_LOCK_ENTERING;
    if (phase == PHASE_GONE)
        return HF_LOCK_GONE;
    return view.solid < set->needed ? HF_LOCK_SUSPECT : HF_LOCK_HELD;
}

hf_lock_reason hf_lock_set_why(const hf_lock_set *asked, size_t *member)
{
    hf_lock_set *set = (hf_lock_set *)asked;
    uv_mutex_lock(&set->lock);
    (void)settle(set);
    hf_lock_reason reason = set->reason;
    if (member != NULL)
        *member = set->lost_member;
    uv_mutex_unlock(&set->lock);
    return reason;
}

uint64_t hf_lock_set_fence(const hf_lock_set *asked, size_t member)
{
    hf_lock_set *set = (hf_lock_set *)asked;
    uint64_t fence = 0;
    if (set->needed < set->n)
        return 0;
    uv_mutex_lock(&set->lock);
    for (size_t i = 0; i < set->n; i++) {
        const hf_set_member *m = &set->members[i];
        if (m->place == member && m->lock != NULL)
            fence = hf_lock_fence(m->lock);
    }
    uv_mutex_unlock(&set->lock);
    return fence;
}

int hf_lock_set_fd(hf_lock_set *set)
{
    uv_mutex_lock(&set->lock);
    (void)settle(set);
    if (set->fd < 0) {
        set->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (set->phase == PHASE_GONE)
            signal_fd(set);
    }
    int fd = set->fd;
    uv_mutex_unlock(&set->lock);
    return fd;
}
