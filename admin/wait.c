/* wait.c - waiting for the end of a job.
 *
 * A job that is gone is done, unless something tells another end: `ended:<id>`, which a
 * cancelled or deleted job leaves for a minute, or, for one that was still waiting when
 * it was seen last, a purge since then. An id may be accepted again after such an end, so
 * what is older than the last look at the living job does not count. The answer to its
 * enqueue counts as the first such look. */
#include "holdfast/admin.h"

#include "admin/look.h"
#include "base/base.h"
#include "base/clock.h"

enum { POLL_FIRST_MS = 5, POLL_LAST_MS = 200 };

typedef struct wait {
    const hf_queue *queue;
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

/* HF_RUNNING: keep waiting. */
static hf_err look_once(hf_admin *admin, wait *w, const char *id)
{
    hf_job_info info = {HF_JOB_INFO_INIT};
    hf_look look = {.info = &info};
    hf_err err = hf_look_at(admin, w->queue, id, &look,
                            sooner(w->until_ns, hf_admin_until(admin)));
    if (err == HF_GONE)
        return was_taken_away(w, &look)
                   ? hf_admin_fail(admin, HF_CANCEL, "the job was cancelled or deleted")
                   : HF_OK;
    if (err != HF_OK)
        return err;
    if (info.state == HF_STATE_DEAD)
        return hf_admin_fail(admin, HF_DEAD, "%s", info.error);
    w->alive_ms = look.now_ms;
    w->seen = true;
    w->waited = info.state != HF_STATE_RUNNING;
    return HF_RUNNING;
}

static hf_err wait_in(hf_admin *admin, const hf_queue *queue, const char *id, void *arg)
{
    wait *w = arg;
    uint32_t pause_ms = POLL_FIRST_MS;
    w->queue = queue;
    for (;;) {
        bool seen = w->seen;
        hf_err err = look_once(admin, w, id);
        bool over = hf_boot_ns() >= w->until_ns;
        bool found = err == HF_OK || err == HF_DEAD || err == HF_CANCEL;
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
    hf_queue queue;
    hf_admin_begin(admin, detail);
    hf_err err = hf_admin_queue(admin, name, &queue); /* NULL is no name here */
    return err != HF_OK ? err : hf_admin_in_queue(admin, name, id, wait_in, &w);
}
