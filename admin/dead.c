/* dead.c - retries, removes or counts the dead jobs that pass a filter.
 *
 * A page of them is read (dead.lua) and filtered here. A script then moves the picked
 * jobs that are still dead and died before the call began. So the script decides: a slice
 * whose answer was lost can be sent again, and a job that is retried and dies again at
 * once is not taken twice. Jobs that do not pass stay, as those whose unique key is
 * taken; the next page begins after the last of them. */
#include "holdfast/admin.h"

#include <stdlib.h>
#include <string.h>

#include "admin/look.h"
#include "admin/parts.h"
#include "base/base.h"
#include "base/error_key.h"
#include "base/id.h"
#include "base/mask.h"
#include "base/structs.h"
#include "queue/send.h"
#include "queue_scripts.h"

enum { RETRY_SLICE = 200, PURGE_SLICE = 500 };

typedef enum deed { RETRY, PURGE, COUNT } deed;

typedef struct pick {
    char id[HF_ID_SIZE];
    int64_t died_ms;
    size_t place; /* in the page */
} pick;

typedef struct sweep {
    hf_admin *admin;
    hf_queue queue; /* the one at hand: that of the call, or a shard */
    hf_queue_stats stats;
    hf_dead_filter filter;
    char key[HF_ERROR_KEY_SIZE]; /* of the filter's error */
    size_t total;
    hf_progress_cb progress;
    void *arg;
    bool stopped;
    int64_t before_ms; /* when the call began */
    int64_t from_ms;   /* the page begins there, */
    char after[HF_ID_SIZE];
    size_t after_place; /* in the page before, from 1 on; 0: it was not there */
    bool more;
    uint32_t per_second; /* of a retry */
    deed deed;
    bool taken;   /* the unique key of the last one was */
    size_t sent;  /* ids in slices before */
    size_t moved; /* of those; or counted */
    size_t want, n;
    pick picks[PURGE_SLICE]; /* the slice */
    hf_job_info info;
} sweep;

typedef struct task {
    const hf_dead_filter *filter; /* NULL: all */
    deed deed;
    uint32_t per_second;
} task;

/* ---- a page ---- */

/* Whether jobs are told apart by their records. */
static bool reads_lines(const sweep *s)
{
    return s->filter.type != NULL || s->filter.error != NULL;
}

static hf_err passes(sweep *s, hf_bytes line, bool *out)
{
    char key[HF_ERROR_KEY_SIZE];
    *out = true;
    if (!reads_lines(s))
        return HF_OK;
    s->info.type[0] = s->info.error[0] = '\0';
    hf_err err = hf_look_line(&s->info, line);
    *out = s->filter.type == NULL || strcmp(s->info.type, s->filter.type) == 0;
    if (!*out || s->filter.error == NULL)
        return err;
    hf_error_key(s->info.error, key);
    *out = strcmp(key, s->key) == 0;
    return err;
}

/* The next page begins after this one, which stays. */
static void begin_after(sweep *s, const char *id, int64_t died_ms, size_t place)
{
    memcpy(s->after, id, strlen(id) + 1);
    s->from_ms = died_ms;
    s->after_place = place;
}

static hf_err read_entry(sweep *s, const hf_reply *entry, size_t place)
{
    hf_bytes id = hf_reply_bytes(hf_reply_at(entry, 0));
    pick *new = &s->picks[s->n];
    bool picked;
    if (id.len == 0 || id.len >= HF_ID_SIZE)
        return HF_PROTO;
    hf_err err = passes(s, hf_reply_bytes(hf_reply_at(entry, 2)), &picked);
    memcpy(new->id, id.ptr, id.len);
    new->id[id.len] = '\0';
    new->died_ms = hf_reply_int(hf_reply_at(entry, 1));
    new->place = place;
    s->n += picked ? 1 : 0;
    if (!picked || s->deed == COUNT)
        begin_after(s, new->id, new->died_ms, place);
    return err;
}

static hf_err read_page(const hf_answer *answer, void *out)
{
    sweep *s = out;
    int64_t now_ms;
    hf_err err = hf_send_script_status(answer, 3, &now_ms);
    size_t n = hf_reply_len(answer->reply);
    s->n = 0;
    s->after_place = 0;
    s->more = hf_reply_int(hf_reply_at(answer->reply, 2)) != 0;
    size_t i = 3;
    for (; err == HF_OK && i < n && s->n < s->want; i++)
        err = read_entry(s, hf_reply_at(answer->reply, i), i);
    s->more = s->more || i < n;
    return err;
}

static hf_err next_page(sweep *s)
{
    hf_ask ask = {
        .script = &hf_lua_queue_dead, .queue = &s->queue, .read = read_page, .out = s};
    size_t page = s->deed == RETRY ? RETRY_SLICE : PURGE_SLICE;
    s->want = s->filter.slice != 0 && s->filter.slice < page ? s->filter.slice : page;
    if (s->filter.limit != 0 && s->filter.limit - s->moved < s->want)
        s->want = s->filter.limit - s->moved;
    hf_args_int(&ask.args, s->from_ms);
    hf_args_text(&ask.args, s->after);
    hf_args_int(&ask.args, s->before_ms);
    hf_args_int(&ask.args, (int64_t)page);
    /* A caller that wants lines gets fewer large records at a time; a retry writes the
     * records anew. */
    hf_args_flag(&ask.args, reads_lines(s) || s->deed == RETRY);
    return hf_admin_ask(s->admin, &ask);
}

/* ---- a slice ---- */

static hf_err read_moved(const hf_answer *answer, void *out)
{
    sweep *s = out;
    int64_t now_ms;
    hf_err err = hf_send_script_status(answer, 3, &now_ms);
    const hf_reply *codes = hf_reply_at(answer->reply, 2);
    for (size_t i = 0; err == HF_OK && i < hf_reply_len(codes) && i < s->n; i++) {
        int64_t code = hf_reply_int(hf_reply_at(codes, i));
        const pick *of = &s->picks[i];
        s->moved += code == HF_OK;
        s->taken = code == HF_EXISTS;
        if (s->taken && of->place > s->after_place)
            begin_after(s, of->id, of->died_ms, of->place);
    }
    return err;
}

/* The time of each job follows from the number sent before it, not from the number moved:
 * the rate holds even if a slice's answer is lost. */
static hf_err move(sweep *s)
{
    hf_ask ask = {.script =
                      s->deed == PURGE ? &hf_lua_queue_delete : &hf_lua_queue_requeue,
                  .queue = &s->queue,
                  .read = read_moved,
                  .out = s};
    hf_args *args = &ask.args;
    hf_ask_order(&ask, s->admin);
    hf_args_init(args, s->n + 5, 5);
    hf_ask_word(&ask, s->admin);
    hf_args_int(args, s->before_ms);
    if (s->deed == RETRY) {
        hf_args_int(args, s->per_second > 0 ? s->before_ms : 0);
        hf_args_int(args, s->per_second);
        hf_args_int(args, (int64_t)s->sent);
    }
    for (size_t i = 0; i < s->n; i++)
        hf_args_text(args, s->picks[i].id);
    hf_err err = hf_admin_ask(s->admin, &ask);
    s->sent += s->n;
    return err;
}

/* The one that the filter names. */
static hf_err move_one(hf_admin *admin, const hf_queue *queue, const char *id, void *arg)
{
    sweep *s = arg;
    hf_job_info info = {HF_JOB_INFO_INIT};
    hf_look look = {.info = &info};
    hf_err err = hf_look_at(admin, queue, id, &look, hf_admin_until(admin));
    if (err != HF_OK || info.state != HF_STATE_DEAD)
        return err;
    s->queue = *queue;
    s->before_ms = look.now_ms;
    s->n = 1;
    memcpy(s->picks[0].id, id, strlen(id) + 1);
    err = move(s);
    return err == HF_OK && s->taken
               ? hf_admin_fail(admin, HF_EXISTS, "another job holds its unique key")
               : err;
}

static hf_err run_one(sweep *s)
{
    const hf_queue queue = s->queue;
    hf_err err = hf_admin_in_part_of(s->admin, &queue, s->filter.id, move_one, s);
    return err == HF_GONE ? HF_OK : err;
}

static hf_err run_in(hf_admin *admin, const hf_part *part, void *arg)
{
    sweep *s = arg;
    s->queue = *part->queue;
    hf_err err =
        part->n == 0 || s->stopped ? HF_OK : hf_stats_of(admin, part->queue, &s->stats);
    s->before_ms = s->stats.now_ms;
    if (s->filter.until_ms > 0 && s->filter.until_ms < s->before_ms)
        s->before_ms = s->filter.until_ms;
    s->from_ms = s->filter.since_ms > 0 ? s->filter.since_ms : 0;
    s->after[0] = '\0';
    s->more = err == HF_OK && !s->stopped;
    while (s->more && (s->filter.limit == 0 || s->moved < s->filter.limit)) {
        err = next_page(s);
        if (err == HF_OK && s->deed == COUNT)
            s->moved += s->n;
        else if (err == HF_OK && s->n > 0)
            err = move(s);
        s->stopped = s->progress != NULL && err == HF_OK &&
                     !s->progress(s->moved, s->total, s->arg);
        if (err != HF_OK || s->stopped)
            break;
    }
    return err;
}

static hf_err run(sweep *s)
{
    const hf_queue queue = s->queue;
    if (s->filter.id != NULL)
        return run_one(s);
    hf_err err = hf_admin_stats(s->admin, queue.name, &s->stats, s->admin->detail);
    if (err != HF_OK)
        return err;
    s->total = (size_t)s->stats.dead;
    if (s->filter.limit != 0 && s->filter.limit < s->total)
        s->total = s->filter.limit;
    return hf_admin_in_parts(s->admin, &queue, run_in, s);
}

static hf_err check(hf_admin *admin, const hf_dead_filter *filter)
{
    if (filter->type != NULL && !hf_name_ok(filter->type))
        return hf_admin_fail(admin, HF_INVALID, "expected a type, found '%s'",
                             HF_FOUND(filter->type));
    if (filter->id != NULL && !hf_name_ok(filter->id))
        return hf_admin_fail(admin, HF_INVALID, "expected an id, found '%s'",
                             HF_FOUND(filter->id));
    if (filter->id != NULL &&
        (filter->type != NULL || filter->since_ms != 0 || filter->limit != 0 ||
         filter->error != NULL || filter->until_ms != 0))
        return hf_admin_fail(admin, HF_INVALID,
                             "expected an id or other filters, found both");
    return HF_OK;
}

static hf_err sweep_all(hf_admin *admin, const char *queue, const task *what,
                        hf_progress_cb progress, void *arg, size_t *n, char *detail)
{
    hf_dead_filter sized;
    const hf_dead_filter *filter = &sized;
    *n = 0;
    hf_admin_begin(admin, detail);
    hf_err err =
        hf_struct_in(&sized, sizeof sized, what->filter, "hf_dead_filter", admin->detail);
    if (err == HF_OK)
        err = check(admin, filter);
    if (err != HF_OK)
        return err;
    sweep *s = calloc(1, sizeof *s);
    if (s == NULL)
        return hf_admin_no_memory(admin);
    s->admin = admin;
    s->filter = *filter;
    if (filter->error != NULL)
        hf_error_key(filter->error, s->key);
    s->deed = what->deed;
    s->per_second = what->per_second;
    s->progress = progress;
    s->arg = arg;
    s->stats = (hf_queue_stats){HF_QUEUE_STATS_INIT};
    err = hf_admin_queue(admin, queue, &s->queue);
    if (err == HF_OK)
        err = run(s);
    *n = s->moved;
    free(s);
    return err;
}

hf_err hf_admin_dead_retry(hf_admin *admin, const char *queue,
                           const hf_dead_filter *filter, uint32_t per_second,
                           hf_progress_cb progress, void *arg, size_t *n,
                           char detail[HF_DETAIL_SIZE])
{
    const task what = {.filter = filter, .deed = RETRY, .per_second = per_second};
    return sweep_all(admin, queue, &what, progress, arg, n, detail);
}

hf_err hf_admin_dead_purge(hf_admin *admin, const char *queue,
                           const hf_dead_filter *filter, hf_progress_cb progress,
                           void *arg, size_t *n, char detail[HF_DETAIL_SIZE])
{
    const task what = {.filter = filter, .deed = PURGE};
    return sweep_all(admin, queue, &what, progress, arg, n, detail);
}

hf_err hf_admin_dead_count(hf_admin *admin, const char *queue,
                           const hf_dead_filter *filter, size_t *n,
                           char detail[HF_DETAIL_SIZE])
{
    const task what = {.filter = filter, .deed = COUNT};
    return sweep_all(admin, queue, &what, NULL, NULL, n, detail);
}
