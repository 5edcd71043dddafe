/* wait.c - waiting for the end of a job.
 *
 * A job that is gone is done, unless something tells another end: `ended:<id>`, which a
 * cancelled, deleted or expired job leaves for a minute, or, for one that was still
 * waiting when it was seen last, a purge since then. An id may be accepted again after
 * such an end, so what is older than the last look at the living job does not count. The
 * answer to its enqueue counts as the first such look. */
#include "holdfast/admin.h"

#include "admin/look.h"
#include "admin/parts.h"
#include "base/base.h"
#include "base/clock.h"

enum { POLL_FIRST_MS = 5, POLL_LAST_MS = 200 };

typedef struct wait {
    hf_queue queue; /* as soon as the job was seen, its shard */
    uint64_t until_ns;
    uint32_t deadline_ms;
    int64_t alive_ms; /* when it was known to be there; 0: never */
    bool seen;        /* by this call */
    bool waited;      /* then it was in the line */
} wait;

static uint64_t sooner(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static bool was_taken_away(const wait *w, const hf_look *gone)
{
    if (gone->ended_ms != 0 && gone->ended_ms >= w->alive_ms)
        return true;
    return w->alive_ms != 0 && w->waited && gone->purged_ms >= w->alive_ms;
}

/* In one queue, or in one shard after the other until one has the job. If none has, each
 * may tell its end. */
typedef struct search {
    hf_look look;
    wait *of;
    int64_t ended_ms, purged_ms;
    bool expired;
} search;

static hf_err look_in(hf_admin *admin, const hf_queue *queue, const char *id, void *arg)
{
    search *s = arg;
    hf_err err = hf_look_at(admin, queue, id, &s->look,
                            sooner(s->of->until_ns, hf_admin_until(admin)));
    if (err == HF_OK)
        s->of->queue = *queue;
    if (err == HF_GONE && s->look.ended_ms > s->ended_ms) {
        s->ended_ms = s->look.ended_ms;
        s->expired = s->look.expired;
    }
    if (err == HF_GONE && s->look.purged_ms > s->purged_ms)
        s->purged_ms = s->look.purged_ms;
    s->look.ended_ms = s->ended_ms;
    s->look.expired = s->expired;
    s->look.purged_ms = s->purged_ms;
    return err;
}

/* HF_RUNNING: keep waiting. */
static hf_err look_once(hf_admin *admin, wait *w, const char *id)
{
    hf_job_info info = {HF_JOB_INFO_INIT};
    search s = {.look = {.info = &info}, .of = w};
    const hf_queue queue = w->queue;
    hf_err err = hf_admin_in_part_of(admin, &queue, id, look_in, &s);
    const hf_look look = s.look;
    if (err == HF_GONE && was_taken_away(w, &look))
        return look.expired
                   ? hf_admin_fail(admin, HF_EXPIRED, "the job did not start in time")
                   : hf_admin_fail(admin, HF_CANCEL, "the job was cancelled or deleted");
    if (err == HF_GONE)
        return HF_OK;
    if (err != HF_OK)
        return err;
    if (info.state == HF_STATE_DONE)
        return HF_OK;
    if (info.state == HF_STATE_DEAD)
        return hf_admin_fail(admin, HF_DEAD, "%s", info.error);
    w->alive_ms = look.now_ms;
    w->seen = true;
    w->waited = info.state != HF_STATE_RUNNING;
    return HF_RUNNING;
}

static hf_err wait_for(hf_admin *admin, wait *w, const char *id)
{
    uint32_t pause_ms = POLL_FIRST_MS;
    for (;;) {
        bool seen = w->seen;
        hf_err err = look_once(admin, w, id);
        bool over = hf_boot_ns() >= w->until_ns;
        bool found =
            err == HF_OK || err == HF_DEAD || err == HF_CANCEL || err == HF_EXPIRED;
        if (found || (err != HF_RUNNING && !(over && seen)))
            return err;
        if (over)
            return hf_admin_fail(admin, HF_TIMEOUT, "the job is not done yet");
        hf_admin_idle(admin, sooner(w->until_ns, hf_boot_ns() + pause_ms * HF_MS_NS));
        pause_ms = pause_ms * 3 / 2 < POLL_LAST_MS ? pause_ms * 3 / 2 : POLL_LAST_MS;
    }
}

hf_err hf_admin_wait(hf_admin *admin, const char *name, const char *id,
                     int64_t accepted_ms, uint32_t deadline_ms,
                     char detail[HF_DETAIL_SIZE])
{
    wait w = {.until_ns =
                  deadline_ms == 0 ? UINT64_MAX : hf_boot_ns() + deadline_ms * HF_MS_NS,
              .alive_ms = accepted_ms,
              .waited = true};
    hf_admin_begin(admin, detail);
    hf_err err = hf_admin_queue(admin, name, &w.queue); /* NULL is no name here */
    if (err == HF_OK)
        err = hf_admin_check_id(admin, id);
    return err != HF_OK ? err : wait_for(admin, &w, id);
}
