/* admin_purge.c - a queue is emptied of all that waits or is dead, slice by slice.
 *
 * How much of it, is settled at the start: those that were due then, those that had died
 * then, and of those with a time ahead as many as there were. So a queue that is fed
 * meanwhile does not keep it busy for ever. */
#include "holdfast/admin.h"

#include "base/base.h"
#include "queue/ask.h"
#include "queue/send.h"
#include "queue_scripts.h"

enum { SLICE = 500 };

typedef struct purge {
    hf_admin *admin;
    hf_queue queue;
    hf_progress_cb progress;
    void *arg;
    size_t done, total;
    bool stopped;
} purge;

static hf_err read_removed(const hf_answer *answer, void *out)
{
    int64_t now_ms;
    hf_err err = hf_script_status(answer, 3, &now_ms);
    if (err == HF_OK)
        *(int64_t *)out = hf_reply_int(hf_reply_at(answer->reply, 2));
    return err;
}

/* before_ms 0: now. */
static hf_err slice(purge *p, const char *state, int64_t before_ms, int64_t max,
                    int64_t *removed)
{
    hf_args args;
    hf_admin_time time;
    uint64_t until_ns = hf_admin_until(p->admin);
    hf_err err = hf_admin_clock(p->admin, until_ns, &time);
    if (err != HF_OK)
        return err;
    if (!hf_args_init(&args, 4, 3))
        return HF_NOMEM;
    hf_args_int(&args, time.not_after);
    hf_args_text(&args, state);
    hf_args_int(&args, before_ms != 0 ? before_ms : time.now_ms);
    hf_args_int(&args, max);
    const hf_ask ask = {.script = &hf_lua_queue_purge,
                        .queue = &p->queue,
                        .args = &args,
                        .read = read_removed,
                        .out = removed};
    err = hf_admin_ask(p->admin, &ask, until_ns);
    hf_args_done(&args);
    return err;
}

/* At most *left jobs; *left is what it did not come to. */
static hf_err phase(purge *p, const char *state, int64_t before_ms, int64_t *left)
{
    while (*left > 0 && !p->stopped) {
        int64_t max = *left < SLICE ? *left : SLICE, removed = 0;
        hf_err err = slice(p, state, before_ms, max, &removed);
        if (err != HF_OK)
            return err;
        *left -= removed;
        p->done += (size_t)removed;
        if (p->progress != NULL && !p->progress(p->done, p->total, p->arg))
            p->stopped = true;
        if (removed < max)
            break;
    }
    return HF_OK;
}

/* First what has its time ahead: what comes in meanwhile and is due at once is not among
 * it. What of it has become due before it was reached comes last. */
static hf_err run(purge *p, hf_queue_stats *stats)
{
    hf_err err = phase(p, "delayed", 0, &stats->delayed);
    if (err == HF_OK)
        err = phase(p, "ready", stats->now_ms, &stats->ready);
    if (err == HF_OK)
        err = phase(p, "dead", stats->now_ms, &stats->dead);
    return err != HF_OK ? err : phase(p, "ready", 0, &stats->delayed);
}

hf_err hf_admin_purge(hf_admin *admin, const char *name, hf_progress_cb progress,
                      void *arg, size_t *n)
{
    hf_queue_stats stats;
    purge p = {.admin = admin, .progress = progress, .arg = arg};
    *n = 0;
    hf_err err = hf_admin_queue(admin, name, &p.queue);
    if (err == HF_OK)
        err = hf_admin_stats(admin, name, &stats);
    if (err != HF_OK)
        return err;
    p.total = (size_t)(stats.ready + stats.delayed + stats.dead);
    err = run(&p, &stats);
    *n = p.done;
    return err;
}
