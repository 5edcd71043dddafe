/* history.c - the history of a queue, read step by step and added up
 * (queue/lua/past_read.lua). */
#include "holdfast/admin.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "admin/ask.h"
#include "admin/parts.h"
#include "base/base.h"
#include "base/id.h"
#include "base/structs.h"
#include "queue/past.h"
#include "queue/send.h"
#include "queue_scripts.h"

enum {
    HEAD = 3,
    MINUTE_MS = 60000,
    TEN = 10, /* minutes */
    BY_MINUTE_MS = 3 * 60 * MINUTE_MS,
    AN_HOUR_MS = 60 * MINUTE_MS,
    TYPES_MAX = 1024,
    STEPS_MAX = 300
};

typedef struct kind {
    char type[HF_ID_SIZE];
    hf_past_sums sums;
} kind;

typedef struct reading {
    hf_history_opts opts;
    hf_history_span span;
    int64_t first;                 /* the number of the first step */
    size_t n;                      /* steps */
    hf_history_step *steps, *part; /* of the whole; of the shard that is read now */
    kind *kinds;                   /* owned */
    size_t n_kinds, cap;
    size_t from; /* of the request under way */
    bool begun;  /* the shard was seen in a step; before the first of these it had */
    int64_t before_done, before_failed;
} reading;

double hf_history_percentile(const int64_t counts[HF_HISTORY_BUCKETS], double part)
{
    return hf_past_percentile(counts, part);
}

double hf_history_bound_ms(unsigned bucket)
{
    return hf_past_bound_ms(bucket);
}

/* ---- one step of one shard ---- */

/* NULL: out of memory. */
static kind *kind_of(reading *r, const char *type)
{
    for (size_t i = 0; i < r->n_kinds; i++)
        if (strcmp(r->kinds[i].type, type) == 0)
            return &r->kinds[i];
    if (r->n_kinds >= TYPES_MAX && strcmp(type, HF_PAST_OTHERS) != 0)
        return kind_of(r, HF_PAST_OTHERS);
    if (r->n_kinds == r->cap) {
        size_t cap = r->cap == 0 ? 16 : 2 * r->cap;
        kind *kinds = realloc(r->kinds, cap * sizeof *kinds);
        if (kinds == NULL)
            return NULL;
        r->kinds = kinds;
        r->cap = cap;
    }
    kind *k = &r->kinds[r->n_kinds++];
    *k = (kind){.type = ""};
    memcpy(k->type, type, strlen(type) + 1);
    return k;
}

static bool is_type(const char *type, size_t len)
{
    return hf_name_ok_n(type, len) || strcmp(type, HF_PAST_OTHERS) == 0;
}

static void add_buckets(hf_history_step *to, const int64_t *runs, const int64_t *waits)
{
    for (size_t i = 0; i < HF_HISTORY_BUCKETS; i++) {
        to->runs[i] += runs[i];
        to->waits[i] += waits[i];
    }
}

static hf_err take_type(reading *r, hf_history_step *step, const char *type,
                        const char *text)
{
    hf_past_sums sums = {.done = 0};
    kind *k = kind_of(r, type);
    if (k == NULL)
        return HF_NOMEM;
    hf_past_add_text(&sums, text);
    hf_past_add(&k->sums, &sums);
    step->done += sums.done;
    step->failed += sums.failed;
    step->dead += sums.dead;
    add_buckets(step, sums.runs, sums.waits);
    return HF_OK;
}

/* `D=<done> F=<failed> s=<ms> r=<ready> ...`: what ended in the step, and how the queue
 * was then. */
static void take_sample(reading *r, hf_history_step *step, const char *text)
{
    int64_t done = 0, failed = 0;
    const struct {
        char name;
        int64_t *to;
    } fields[] = {
        {'D', &done},
        {'F', &failed},
        {'s', &step->seen_ms},
        {'r', &step->ready},
        {'o', &step->oldest_ms},
        {'l', &step->delayed},
        {'n', &step->running},
        {'x', &step->dead_jobs},
        {'e', &step->ever_enqueued},
        {'c', &step->ever_done},
        {'f', &step->ever_failed},
        {'k', &step->ever_crashed},
    };
    while (*text != '\0') {
        for (size_t i = 0; i < HF_COUNT(fields); i++)
            if (text[0] == fields[i].name && text[1] == '=')
                *fields[i].to = strtoll(text + 2, NULL, 10);
        text += strcspn(text, " ");
        text += strspn(text, " ");
    }
    step->seen = step->seen_ms > 0;
    if (!step->seen || r->begun)
        return;
    r->begun = true;
    r->before_done = step->ever_done - done;
    r->before_failed = step->ever_failed - failed;
}

static bool is_count(const char *field, const char *name, const char *text, int64_t *to)
{
    if (strcmp(field, name) != 0)
        return false;
    *to = strtoll(text, NULL, 10);
    return true;
}

static hf_err take_field(reading *r, hf_history_step *step, const hf_bytes name,
                         const char *text)
{
    if (name.len == 0)
        take_sample(r, step, text);
    else if (!is_count(name.ptr, "!crashed", text, &step->crashed) &&
             !is_count(name.ptr, "!lost", text, &step->lost) &&
             is_type(name.ptr, name.len))
        return take_type(r, step, name.ptr, text);
    return HF_OK;
}

static hf_err read_steps(const hf_answer *answer, void *out)
{
    reading *r = out;
    int64_t now_ms;
    hf_err err = hf_send_script_status(answer, HEAD, &now_ms);
    const size_t n = err == HF_OK ? hf_reply_len(answer->reply) - HEAD : 0;
    if (err == HF_OK && (n == 0 || n > r->n - r->from))
        return HF_PROTO;
    for (size_t i = 0; i < n; i++) {
        const hf_reply *fields = hf_reply_at(answer->reply, HEAD + i);
        hf_history_step *step = &r->part[r->from + i];
        for (size_t k = 0; k + 1 < hf_reply_len(fields); k += 2) {
            const char *text = hf_reply_text(hf_reply_at(fields, k + 1));
            if (take_field(r, step, hf_reply_bytes(hf_reply_at(fields, k)), text) !=
                HF_OK)
                return HF_NOMEM;
        }
    }
    r->from += n;
    if (err == HF_OK && r->from == r->n) /* the last step is the present */
        take_sample(r, &r->part[r->n - 1],
                    hf_reply_text(hf_reply_at(answer->reply, HEAD - 1)));
    return err;
}

/* ---- one shard ---- */

static void empty(const reading *r, hf_history_step *steps)
{
    for (size_t i = 0; i < r->n; i++)
        steps[i] =
            (hf_history_step){.size = sizeof *steps,
                              .begin_ms = (r->first + (int64_t)i) * r->span.length_ms,
                              .length_ms = r->span.length_ms};
}

/* As it was seen last. Nothing ended between. */
static void fill_gaps(reading *r)
{
    hf_history_step known = {.ever_done = r->before_done,
                             .ever_failed = r->before_failed};
    for (size_t i = r->n; i > 0; i--)
        if (r->part[i - 1].seen) { /* of the first one */
            known.ever_enqueued = r->part[i - 1].ever_enqueued;
            known.ever_crashed = r->part[i - 1].ever_crashed;
        }
    for (size_t i = 0; i < r->n; i++) {
        hf_history_step *step = &r->part[i];
        if (step->seen) {
            known = *step;
            continue;
        }
        step->ready = known.ready;
        step->oldest_ms = known.oldest_ms;
        step->delayed = known.delayed;
        step->running = known.running;
        step->dead_jobs = known.dead_jobs;
        step->ever_enqueued = known.ever_enqueued;
        step->ever_done = known.ever_done;
        step->ever_failed = known.ever_failed;
        step->ever_crashed = known.ever_crashed;
    }
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void add_part(reading *r)
{
    for (size_t i = 0; i < r->n; i++) {
        hf_history_step *to = &r->steps[i];
        const hf_history_step *from = &r->part[i];
        to->seen = to->seen || from->seen;
        to->done += from->done;
        to->failed += from->failed;
        to->dead += from->dead;
        add_buckets(to, from->runs, from->waits);
        to->crashed += from->crashed;
        to->lost += from->lost;
        to->seen_ms = later(to->seen_ms, from->seen_ms);
        to->oldest_ms = later(to->oldest_ms, from->oldest_ms);
        to->ready += from->ready;
        to->delayed += from->delayed;
        to->running += from->running;
        to->dead_jobs += from->dead_jobs;
        to->ever_enqueued += from->ever_enqueued;
        to->ever_done += from->ever_done;
        to->ever_failed += from->ever_failed;
        to->ever_crashed += from->ever_crashed;
    }
    r->span.ever_done += r->before_done;
    r->span.ever_failed += r->before_failed;
}

static void begin_part(reading *r)
{
    empty(r, r->part);
    r->begun = false;
    r->before_done = r->before_failed = 0;
    r->from = 0;
}

static void end_part(reading *r)
{
    fill_gaps(r);
    add_part(r);
}

/* For the next steps. */
static void make_ask(hf_ask *ask, const hf_queue *queue, reading *r)
{
    const size_t left = r->n - r->from;
    *ask = (hf_ask){
        .script = &hf_lua_queue_past_read, .queue = queue, .read = read_steps, .out = r};
    hf_args_int(&ask->args, r->span.length_ms / MINUTE_MS);
    hf_args_int(&ask->args, r->first + (int64_t)r->from);
    hf_args_int(&ask->args, left < HF_PAST_STEPS ? (int64_t)left : HF_PAST_STEPS);
    hf_args_text(&ask->args, r->opts.type == NULL ? "" : r->opts.type);
    hf_args_int(&ask->args, left <= HF_PAST_STEPS ? 1 : 0);
}

static hf_err read_rest(hf_admin *admin, const hf_queue *queue, reading *r)
{
    hf_err err = HF_OK;
    while (err == HF_OK && r->from < r->n) {
        hf_ask ask;
        make_ask(&ask, queue, r);
        err = hf_admin_ask(admin, &ask);
    }
    if (err == HF_OK)
        end_part(r);
    return err;
}

static hf_err read_part(hf_admin *admin, const hf_part *part, void *arg)
{
    begin_part(arg);
    return read_rest(admin, part->queue, arg);
}

/* ---- the whole ---- */

static int by_name(const void *a, const void *b)
{
    const kind *x = a, *y = b;
    const bool others = strcmp(x->type, HF_PAST_OTHERS) == 0;
    if (others != (strcmp(y->type, HF_PAST_OTHERS) == 0))
        return others ? 1 : -1;
    return strcmp(x->type, y->type);
}

static void tell(const reading *r)
{
    if (r->n_kinds > 0)
        qsort(r->kinds, r->n_kinds, sizeof *r->kinds, by_name);
    for (size_t i = 0; r->opts.on_type != NULL && i < r->n_kinds; i++) {
        const kind *k = &r->kinds[i];
        hf_history_type type = {.size = sizeof type,
                                .type = k->type,
                                .done = k->sums.done,
                                .failed = k->sums.failed,
                                .dead = k->sums.dead,
                                .run_ms = k->sums.run_ms,
                                .wait_ms = k->sums.wait_ms};
        memcpy(type.runs, k->sums.runs, sizeof type.runs);
        memcpy(type.waits, k->sums.waits, sizeof type.waits);
        r->opts.on_type(&type, r->opts.arg);
    }
    for (size_t i = 0; r->opts.on_step != NULL && i < r->n; i++) {
        static const hf_history_step none;
        hf_history_step step = r->steps[i];
        if (!step.seen) { /* a gap, also if some shard is known from before */
            step = none;
            step.size = sizeof step;
            step.begin_ms = r->steps[i].begin_ms;
            step.length_ms = r->steps[i].length_ms;
            step.done = r->steps[i].done;
            step.failed = r->steps[i].failed;
            step.dead = r->steps[i].dead;
            add_buckets(&step, r->steps[i].runs, r->steps[i].waits);
            step.crashed = r->steps[i].crashed;
            step.lost = r->steps[i].lost;
        }
        r->opts.on_step(&step, r->opts.arg);
    }
}

/* What is asked for, on the clock of the queue's Redis. */
static hf_err begin(hf_admin *admin, const hf_queue *queue, reading *r)
{
    hf_admin_time time = {.now_ms = r->opts.now_ms};
    hf_history_opts *o = &r->opts;
    o->since_ms = o->since_ms == 0 ? AN_HOUR_MS : o->since_ms;
    if (o->since_ms < 0 || o->since_ms > HF_HISTORY_MAX_MS)
        return hf_admin_fail(admin, HF_INVALID, "expected at most 48 hours of history");
    if (o->type != NULL && !is_type(o->type, strlen(o->type)))
        return hf_admin_fail(admin, HF_INVALID, "expected a type of jobs");
    hf_err err = o->now_ms > 0
                     ? HF_OK
                     : hf_admin_clock(admin, queue, hf_admin_until(admin), &time);
    if (err != HF_OK)
        return err;
    r->span.now_ms = time.now_ms;
    const bool by_ten = o->by_ten || o->since_ms > BY_MINUTE_MS;
    r->span.length_ms = by_ten ? TEN * MINUTE_MS : MINUTE_MS;
    r->first = (time.now_ms - o->since_ms) / r->span.length_ms;
    r->n = (size_t)(time.now_ms / r->span.length_ms - r->first + 1);
    r->span.from_ms = r->first * r->span.length_ms;
    HF_ASSERT(r->n <= STEPS_MAX);
    r->steps = malloc(2 * r->n * sizeof *r->steps);
    if (r->steps == NULL)
        return hf_admin_no_memory(admin);
    r->part = r->steps + r->n;
    empty(r, r->steps);
    return HF_OK;
}

static hf_err open_reading(hf_admin *admin, const hf_history_of *of, hf_queue *queue,
                           reading *r)
{
    *r = (reading){.span = {HF_HISTORY_SPAN_INIT}};
    hf_err err = hf_struct_in(&r->opts, sizeof r->opts, of->opts, "hf_history_opts",
                              admin->detail);
    if (err == HF_OK && of->span != NULL)
        err = hf_admin_fits(admin, of->span, "hf_history_span");
    if (err == HF_OK)
        err = hf_admin_queue(admin, of->queue, queue);
    return err == HF_OK ? begin(admin, queue, r) : err;
}

static void give(reading *r, hf_history_span *span)
{
    if (span != NULL)
        hf_struct_fill(span, &r->span, sizeof r->span);
    tell(r);
}

static void close_reading(reading *r)
{
    free(r->kinds);
    free(r->steps);
}

hf_err hf_admin_history(hf_admin *admin, const char *name, const hf_history_opts *opts,
                        hf_history_span *theirs, char detail[HF_DETAIL_SIZE])
{
    hf_queue queue;
    reading r;
    const hf_history_of of = {name, opts, theirs};
    hf_admin_begin(admin, detail);
    hf_err err = open_reading(admin, &of, &queue, &r);
    if (err == HF_OK)
        err = hf_admin_in_parts(admin, &queue, read_part, &r);
    if (err == HF_OK)
        give(&r, theirs);
    close_reading(&r);
    return err;
}

/* ---- of many queues ---- */

/* Each script of a group keeps Redis for some tenths of a millisecond, and Redis may
 * execute all of them before a request of somebody else. */
enum { AHEAD = 16 };

typedef struct ahead {
    hf_queue queue;
    reading r;
    hf_err err; /* of the first request */
} ahead;

static void read_ahead(hf_admin *admin, const hf_history_of *each, size_t n, ahead *all)
{
    hf_ask asks[AHEAD];
    ahead *of[AHEAD];
    size_t n_asks = 0;
    for (size_t i = 0; i < n; i++) {
        ahead *a = &all[i];
        a->err = open_reading(admin, &each[i], &a->queue, &a->r);
        if (a->err != HF_OK)
            continue;
        begin_part(&a->r);
        make_ask(&asks[n_asks], &a->queue, &a->r);
        of[n_asks++] = a;
    }
    hf_admin_ask_ahead(admin, asks, n_asks);
    for (size_t i = 0; i < n_asks; i++)
        of[i]->err = asks[i].err;
}

/* A queue that has shards, or cannot be asked, is read from the beginning. */
static hf_err finish(hf_admin *admin, const hf_history_of *of, ahead *a, char *detail)
{
    hf_admin_begin(admin, detail);
    if (a->err != HF_OK || read_rest(admin, &a->queue, &a->r) != HF_OK)
        return hf_admin_history(admin, of->queue, of->opts, of->span, detail);
    give(&a->r, of->span);
    return HF_OK;
}

void hf_admin_history_each(hf_admin *admin, const hf_history_of *each, size_t n,
                           hf_history_cb cb, void *arg, char detail[HF_DETAIL_SIZE])
{
    ahead all[AHEAD];
    bool more = true;
    for (size_t from = 0; from < n && more; from += AHEAD) {
        const size_t some = n - from < AHEAD ? n - from : AHEAD;
        hf_admin_begin(admin, detail);
        read_ahead(admin, &each[from], some, all);
        for (size_t i = 0; i < some; i++) {
            const hf_history_of *of = &each[from + i];
            more = more && cb(finish(admin, of, &all[i], detail), of, arg);
            close_reading(&all[i].r);
        }
    }
}
