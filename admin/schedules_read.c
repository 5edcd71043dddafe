/* schedules_read.c - the schedules of a queue: one of them, or a page of all, by their
 * ids. Redis has them in no order, so a page is made in two steps: of all ids those that
 * are next are found, and then these schedules are read. */
#include "holdfast/admin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/parts.h"
#include "base/base.h"
#include "base/id.h"
#include "base/structs.h"
#include "queue/schedule.h"
#include "queue/send.h"
#include "queue_scripts.h"

enum { LIST_HEAD = 3, READ_HEAD = 3, READ_EACH = 6, READ_SLICE = 100, PAGE_MAX = 1000 };

/* ---- reading some ---- */

typedef struct wanted {
    char id[HF_ID_SIZE];
    unsigned part; /* of its queue */
    bool found;
    hf_schedule_info info;
} wanted;

typedef struct reading {
    const hf_queue *queue;
    unsigned part;
    wanted **all; /* sorted by id; borrowed */
    size_t n;
    bool whole;     /* with their payloads */
    void **payload; /* of one; NULL: not asked for */
    size_t looked;  /* at this many of those that were asked for last */
} reading;

static void set_definition(hf_schedule_info *info, const hf_schedule_def *def)
{
    snprintf(info->type, sizeof info->type, "%s", def->type);
    snprintf(info->cron, sizeof info->cron, "%s", def->cron);
    snprintf(info->tz, sizeof info->tz, "%s", def->tz);
    info->every_ms = def->ticks.every_ms;
    info->missed = def->missed;
    info->overlap = def->overlap;
    info->catch_up_ms = def->catch_up_ms;
    info->jitter_ms = def->jitter_ms;
    info->start_ms = def->ticks.start_ms;
    info->end_ms = def->ticks.end_ms;
    info->limit = def->limit;
}

static void set_state(hf_schedule_info *info, const hf_schedule_state *state)
{
    snprintf(info->job, sizeof info->job, "%s", state->job);
    info->rev = state->rev;
    info->paused = state->paused;
    info->last_ms = state->tick_ms;
    info->accepted = state->accepted;
    info->skipped = state->skipped;
    info->dropped = state->dropped;
}

/* A change begins a new count: `gen` is its time in microseconds. Without its zone the
 * ticks of an expression cannot be counted. */
static int64_t count_passed(hf_schedule_def *def, const hf_schedule_state *state)
{
    enum { US_OF_MS = 1000, MOST = 1000 };
    hf_zone *zone = NULL;
    int64_t changed_ms = strtoll(state->gen, NULL, 10) / US_OF_MS, n = 0;
    int64_t at_ms = state->tick_ms > changed_ms ? state->tick_ms : changed_ms;
    if (state->paused || state->skipped + state->dropped == 0)
        return 0;
    if (def->tz[0] != '\0' && hf_zone_open(&zone, def->tz, NULL) != HF_OK)
        return 0;
    def->ticks.zone = zone;
    while (n < MOST && hf_ticks_next(&def->ticks, at_ms, &at_ms) &&
           at_ms <= state->from_ms)
        n++;
    hf_zone_free(zone);
    return n;
}

static hf_err copy_payload(const reading *r, hf_bytes value, size_t at,
                           hf_schedule_info *info)
{
    info->payload_len = value.len - at;
    if (r->payload == NULL)
        return HF_OK;
    char *copy = malloc(info->payload_len + 1);
    if (copy == NULL)
        return HF_NOMEM;
    memcpy(copy, (const char *)value.ptr + at, info->payload_len);
    copy[info->payload_len] = '\0';
    *r->payload = copy;
    return HF_OK;
}

/* What another program has written badly is shown as far as it can be read. */
static hf_err read_one(const reading *r, const hf_reply *reply, size_t at,
                       hf_schedule_info *info)
{
    hf_schedule_def def;
    hf_schedule_state state;
    hf_bytes value = hf_reply_bytes(hf_reply_at(reply, at + 1));
    const char *nl = value.len == 0 ? NULL : memchr(value.ptr, '\n', value.len);
    size_t len = nl == NULL ? value.len : (size_t)(nl - (const char *)value.ptr);
    snprintf(info->queue, sizeof info->queue, "%s", r->queue->name);
    bool defined = hf_schedule_read(&def, info, (hf_bytes){value.ptr, len}) == HF_OK;
    if (defined)
        set_definition(info, &def);
    if (hf_schedule_read_state(&state, hf_reply_bytes(hf_reply_at(reply, at + 2))) ==
        HF_OK) {
        set_state(info, &state);
        info->passed = defined ? count_passed(&def, &state) : 0;
    }
    info->next_ms = hf_reply_int(hf_reply_at(reply, at + 3));
    info->of_file = hf_reply_int(hf_reply_at(reply, at + 4)) != 0;
    info->held = hf_reply_int(hf_reply_at(reply, at + 5)) != 0;
    if (info->held)
        info->next_ms = 0;
    return nl == NULL ? HF_OK : copy_payload(r, value, len + 1, info);
}

/* Of the first n: the place of an id, or the one where it belongs. */
static size_t place_of(wanted *const *all, size_t n, const char *id)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(all[middle]->id, id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static hf_err read_answer(const hf_answer *answer, void *out)
{
    reading *r = out;
    int64_t now_ms;
    hf_err err = hf_send_script_status(answer, READ_HEAD, &now_ms);
    if (err != HF_OK)
        return err;
    r->looked = (size_t)hf_reply_int(hf_reply_at(answer->reply, 2));
    size_t n = hf_reply_len(answer->reply);
    for (size_t at = READ_HEAD; at + READ_EACH <= n && err == HF_OK; at += READ_EACH) {
        const char *id = hf_reply_text(hf_reply_at(answer->reply, at));
        size_t place = place_of(r->all, r->n, id);
        wanted *w = place < r->n ? r->all[place] : NULL;
        if (w == NULL || strcmp(w->id, id) != 0)
            continue;
        w->found = true;
        w->info = (hf_schedule_info){HF_SCHEDULE_INFO_INIT, .now_ms = now_ms};
        memcpy(w->info.id, w->id, sizeof w->info.id);
        err = read_one(r, answer->reply, at, &w->info);
    }
    return err;
}

/* From the place *from on, which becomes where to go on. */
static hf_err read_slice(hf_admin *admin, reading *r, size_t *from)
{
    size_t places[READ_SLICE], n = 0;
    hf_ask ask = {.script = &hf_lua_queue_cron_read,
                  .queue = r->queue,
                  .read = read_answer,
                  .out = r};
    for (size_t i = *from; i < r->n && n < READ_SLICE; i++)
        if (r->all[i]->part == r->part)
            places[n++] = i;
    *from = r->n;
    if (n == 0)
        return HF_OK;
    hf_args_init(&ask.args, n + 1, 0);
    hf_args_flag(&ask.args, r->whole);
    for (size_t i = 0; i < n; i++)
        hf_args_text(&ask.args, r->all[places[i]]->id);
    hf_err err = hf_admin_ask(admin, &ask);
    if (err == HF_OK && (r->looked < 1 || r->looked > n))
        return hf_admin_fail(admin, HF_PROTO, "%s", hf_err_text(HF_PROTO));
    if (err == HF_OK)
        *from = places[r->looked - 1] + 1;
    return err;
}

/* ---- one ---- */

static hf_err read_in(hf_admin *admin, const hf_queue *queue, const char *id, void *arg)
{
    reading *r = arg;
    size_t from = 0;
    (void)id;
    r->queue = queue;
    hf_err err = read_slice(admin, r, &from);
    return err == HF_OK && !r->all[0]->found ? HF_GONE : err;
}

hf_err hf_admin_schedule(hf_admin *admin, const char *name, const char *id,
                         hf_schedule_info *theirs, void **payload,
                         char detail[HF_DETAIL_SIZE])
{
    wanted one = {.part = 0}, *all = &one;
    reading r = {.all = &all, .n = 1, .whole = true, .payload = payload};
    hf_queue queue;
    hf_admin_begin(admin, detail);
    if (payload != NULL)
        *payload = NULL;
    hf_err err = hf_admin_fits(admin, theirs, "hf_schedule_info");
    if (err == HF_OK)
        err = hf_admin_queue(admin, name, &queue);
    if (err == HF_OK)
        err = hf_admin_check_id(admin, id);
    if (err != HF_OK)
        return err;
    (void)snprintf(one.id, sizeof one.id, "%s", id);
    err = hf_admin_in_part_of(admin, &queue, id, read_in, &r);
    if (err == HF_OK)
        hf_struct_fill(theirs, &one.info, sizeof one.info);
    return err;
}

/* ---- a page ---- */

typedef struct page {
    wanted *items;   /* owned; room for max */
    wanted **sorted; /* owned; n of them, by id: the first ones behind `after` so far */
    size_t n, max;
    unsigned part; /* that is looked through */
    char after[HF_ID_SIZE], cursor[24];
} page;

/* An id may be told twice. */
static void note_id(page *p, const char *id)
{
    bool full = p->n == p->max;
    size_t place = place_of(p->sorted, p->n, id), last = full ? p->n - 1 : p->n;
    if (place > last || (place < p->n && strcmp(p->sorted[place]->id, id) == 0))
        return;
    wanted *w = full ? p->sorted[last] : &p->items[last];
    memmove(&p->sorted[place + 1], &p->sorted[place],
            (last - place) * sizeof(*p->sorted));
    p->sorted[place] = w;
    p->n = last + 1;
    (void)snprintf(w->id, sizeof w->id, "%s", id);
    w->part = p->part;
    w->found = false;
}

static hf_err read_ids(const hf_answer *answer, void *out)
{
    page *p = out;
    int64_t now_ms;
    hf_err err = hf_send_script_status(answer, LIST_HEAD, &now_ms);
    if (err != HF_OK)
        return err;
    (void)snprintf(p->cursor, sizeof p->cursor, "%s",
                   hf_reply_text(hf_reply_at(answer->reply, 2)));
    size_t n = hf_reply_len(answer->reply);
    for (size_t i = LIST_HEAD; i < n; i++) {
        const char *id = hf_reply_text(hf_reply_at(answer->reply, i));
        if (hf_name_ok(id))
            note_id(p, id);
    }
    return HF_OK;
}

static hf_err ask_ids(hf_admin *admin, const hf_queue *queue, page *p)
{
    hf_ask ask = {
        .script = &hf_lua_queue_cron_list, .queue = queue, .read = read_ids, .out = p};
    hf_args_text(&ask.args, p->cursor);
    hf_args_text(&ask.args, p->after);
    hf_args_text(&ask.args, p->n == p->max ? p->sorted[p->n - 1]->id : "");
    return hf_admin_ask(admin, &ask);
}

static hf_err find_in(hf_admin *admin, const hf_part *part, void *arg)
{
    page *p = arg;
    hf_err err;
    p->part = part->i;
    (void)snprintf(p->cursor, sizeof p->cursor, "0");
    do {
        err = ask_ids(admin, part->queue, p);
    } while (err == HF_OK && strcmp(p->cursor, "0") != 0);
    return err;
}

static hf_err read_part(hf_admin *admin, const hf_part *part, void *arg)
{
    const page *p = arg;
    reading r = {.queue = part->queue, .part = part->i, .all = p->sorted, .n = p->n};
    hf_err err = HF_OK;
    for (size_t from = 0; err == HF_OK && from < r.n;)
        err = read_slice(admin, &r, &from);
    return err;
}

/* Fewer than there is room for: there are no more, or some were removed meanwhile. */
static hf_err read_page(hf_admin *admin, const hf_queue *queue, page *p)
{
    p->n = 0;
    hf_err err = hf_admin_in_parts(admin, queue, find_in, p);
    return err == HF_OK && p->n > 0 ? hf_admin_in_parts(admin, queue, read_part, p) : err;
}

static hf_err list(hf_admin *admin, const hf_queue *queue, page *p, hf_schedule_cb cb,
                   void *arg)
{
    bool more = true;
    while (more && p->max > 0) {
        hf_err err = read_page(admin, queue, p);
        if (err != HF_OK)
            return err;
        size_t told = 0;
        for (size_t i = 0; i < p->n; i++) {
            if (!p->sorted[i]->found)
                continue;
            cb(&p->sorted[i]->info, arg);
            told++;
        }
        more = p->n == p->max;
        if (more)
            memcpy(p->after, p->sorted[p->n - 1]->id, sizeof p->after);
        p->max -= told;
    }
    return HF_OK;
}

hf_err hf_admin_schedules(hf_admin *admin, const char *name, const char *after,
                          size_t limit, hf_schedule_cb cb, void *arg,
                          char detail[HF_DETAIL_SIZE])
{
    hf_queue queue;
    page p = {.max = limit};
    hf_admin_begin(admin, detail);
    if (limit < 1 || limit > PAGE_MAX)
        return hf_admin_fail(admin, HF_INVALID, "expected 1 to %d schedules, found %zu",
                             PAGE_MAX, limit);
    hf_err err = hf_admin_queue(admin, name, &queue);
    if (err == HF_OK && after != NULL)
        err = hf_admin_check_id(admin, after);
    if (err != HF_OK)
        return err;
    (void)snprintf(p.after, sizeof p.after, "%s", after == NULL ? "" : after);
    p.items = calloc(limit, sizeof *p.items);
    p.sorted = calloc(limit, sizeof(*p.sorted));
    if (p.items == NULL || p.sorted == NULL)
        err = hf_admin_no_memory(admin);
    else
        err = list(admin, &queue, &p, cb, arg);
    free((void *)p.sorted);
    free(p.items);
    return err;
}
