/* purge.c - removes the waiting, dead and kept jobs of a queue, slice by slice.
 *
 * The number of jobs is fixed at the start: the jobs due then, the jobs dead then, and as
 * many delayed jobs as there were. So producers cannot keep a purge busy for ever. Each
 * slice has a name of its own. A slice whose answer was lost is not executed twice; that
 * would remove newer jobs. */
#include "holdfast/admin.h"

#include "admin/parts.h"
#include "base/base.h"
#include "base/id.h"
#include "queue/send.h"
#include "queue_scripts.h"

enum { SLICE = 500 };

typedef struct purge {
    hf_admin *admin;
    const hf_queue *queue; /* the one at hand, */
    hf_queue_stats *stats; /* and its figures at the start */
    hf_id_maker names;     /* of slices */
    hf_progress_cb progress;
    void *arg;
    size_t done, total;
    size_t removed; /* by the last slice, */
    bool cut;       /* which may have left some because they are large, */
    int64_t at_ms;  /* and when */
    bool stopped;
} purge;

static hf_err read_removed(const hf_answer *answer, void *out)
{
    purge *p = out;
    hf_err err = hf_send_script_status(answer, 3, &p->at_ms);
    if (err == HF_OK)
        p->removed = (size_t)hf_reply_int(hf_reply_at(answer->reply, 2));
    p->cut = hf_reply_int(hf_reply_at(answer->reply, 3)) != 0 && p->removed > 0;
    return err;
}

static hf_err slice(purge *p, const char *state, int64_t before_ms, int64_t max)
{
    char name[HF_NEW_ID_SIZE];
    hf_ask ask = {
        .script = &hf_lua_queue_purge, .queue = p->queue, .read = read_removed, .out = p};
    hf_ask_order(&ask, p->admin);
    hf_id_next(&p->names, name);
    hf_args_int(&ask.args, ask.time.not_after);
    hf_args_text(&ask.args, state);
    hf_args_int(&ask.args, before_ms);
    hf_args_int(&ask.args, max);
    hf_args_text(&ask.args, name);
    return hf_admin_ask(p->admin, &ask);
}

/* At most *left jobs; *left is what it did not come to. */
static hf_err phase(purge *p, const char *state, int64_t before_ms, int64_t *left)
{
    while (*left > 0 && !p->stopped) {
        int64_t max = *left < SLICE ? *left : SLICE;
        hf_err err = slice(p, state, before_ms, max);
        if (err != HF_OK)
            return err;
        *left -= (int64_t)p->removed;
        p->done += p->removed;
        if (p->progress != NULL && !p->progress(p->done, p->total, p->arg))
            p->stopped = true;
        if ((int64_t)p->removed < max && !p->cut)
            break;
    }
    return HF_OK;
}

/* First the delayed jobs, then those of them that became due before they were reached.
 * Jobs that arrive later stay, even if they are due at once. */
static hf_err run(purge *p)
{
    hf_queue_stats *stats = p->stats;
    hf_err err = phase(p, "parked", 0, &stats->parked); /* before they follow */
    if (err == HF_OK)
        err = phase(p, "delayed", 0, &stats->delayed);
    int64_t reached_ms = p->at_ms;
    if (err == HF_OK)
        err = phase(p, "ready", stats->now_ms, &stats->ready);
    if (err == HF_OK)
        err = phase(p, "ready", reached_ms, &stats->delayed);
    if (err == HF_OK)
        err = phase(p, "dead", stats->now_ms, &stats->dead);
    return err != HF_OK ? err : phase(p, "done", stats->now_ms, &stats->kept);
}

static hf_err purge_in(hf_admin *admin, const hf_part *part, void *arg)
{
    purge *p = arg;
    p->queue = part->queue;
    hf_err err =
        part->n == 0 || p->stopped ? HF_OK : hf_stats_of(admin, part->queue, p->stats);
    return err == HF_OK ? run(p) : err;
}

hf_err hf_admin_purge(hf_admin *admin, const char *name, hf_progress_cb progress,
                      void *arg, size_t *n, char detail[HF_DETAIL_SIZE])
{
    hf_queue queue;
    hf_queue_stats stats = {HF_QUEUE_STATS_INIT};
    purge p = {.admin = admin, .stats = &stats, .progress = progress, .arg = arg};
    *n = 0;
    hf_admin_begin(admin, detail);
    hf_err err = hf_id_maker_init(&p.names);
    if (err == HF_OK)
        err = hf_admin_queue(admin, name, &queue);
    if (err == HF_OK)
        err = hf_admin_stats(admin, name, &stats, admin->detail);
    if (err != HF_OK)
        return err;
    p.total =
        (size_t)(stats.ready + stats.delayed + stats.parked + stats.dead + stats.kept);
    err = hf_admin_in_parts(admin, &queue, purge_in, &p);
    *n = p.done;
    return err;
}
