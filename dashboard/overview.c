/* overview.c - see overview.h. */
#include "dashboard/overview.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "cli/admin/queue.h"
#include "cli/admin/workers.h"
#include "cli/out.h"
#include "dashboard/rates.h"
#include "seen/gather.h"

enum {
    OLD_MS = 900,      /* a viewer asks each second */
    PER_SECOND = 100,  /* queues that are read in a second */
    PASTS = 3,         /* and their histories */
    PASTS_SHOWN = 20,  /* histories that are read for a page of queues */
    DEATHS = 1500,     /* that are looked at in a read, */
    PASTS_JUDGED = 50, /* and the last minutes of queues */
    LOCKS_EACH = 10,   /* looking for locks goes through the keys of Redis */
    LOCKS_MS = 10,     /* in pieces: a viewer waits for the read */
    QUEUES = 50        /* that the overview shows */
};

struct hf_overview {
    hf_facts facts;   /* of the last time when Redis answered */
    hf_wrongs wrongs; /* of the last time at all */
    hf_rates *rates;  /* owned */
    json_t *workers;  /* owned: as `worker list --json` has them */
    uint64_t slots, running;
    uint64_t read_ns, tried_ns; /* 0: never */
    unsigned round;
    bool away;
};

void hf_overview_free(hf_overview *o)
{
    if (o == NULL)
        return;
    hf_facts_done(&o->facts);
    hf_rates_free(o->rates);
    json_decref(o->workers);
    free(o);
}

const hf_facts *hf_overview_facts(const hf_overview *o)
{
    return &o->facts;
}

const hf_wrongs *hf_overview_wrongs(const hf_overview *o)
{
    return &o->wrongs;
}

const json_t *hf_overview_worker_objects(const hf_overview *o)
{
    return o->workers;
}

bool hf_overview_is_away(const hf_overview *o)
{
    return o->away;
}

int64_t hf_overview_age_ms(const hf_overview *o)
{
    return o->read_ns == 0 ? 0 : (int64_t)((hf_boot_ns() - o->read_ns) / HF_MS_NS);
}

uint64_t hf_overview_slots(const hf_overview *o, uint64_t *running)
{
    *running = o->running;
    return o->slots;
}

/* ---- reading ---- */

static bool is_old(const hf_overview *o)
{
    const uint64_t ms = (hf_boot_ns() - o->tried_ns) / HF_MS_NS;
    const uint64_t seconds = (o->facts.n_queues + PER_SECOND - 1) / PER_SECOND;
    return o->tried_ns == 0 || ms >= (seconds > 1 ? seconds : 1) * OLD_MS;
}

static void on_worker(const hf_worker_info *w, void *arg)
{
    hf_overview *o = arg;
    (void)json_array_append_new(o->workers, hf_workers_json(w));
    if (w->silent)
        return;
    o->slots += w->concurrency;
    o->running += w->running;
}

static void read_workers(hf_overview *o, hf_reader *r)
{
    json_decref(o->workers);
    o->workers = json_array();
    o->slots = 0;
    o->running = 0;
    if (hf_admin_workers(r->admin, on_worker, o, r->detail) != HF_OK)
        r->detail[0] = '\0'; /* then there are none to show */
}

static bool is_answered(const hf_facts *f)
{
    return f->n_redis > 0 && (f->redis[0].err == HF_OK || f->n_queues > 0);
}

static void take(hf_overview *o, hf_reader *r, hf_facts *facts, uint64_t began_ns)
{
    o->round++;
    hf_facts_done(&o->facts);
    o->facts = *facts;
    o->read_ns = began_ns;
    r->ahead_ms = facts->now_ms - hf_wall_ms();
    for (size_t i = 0; i < facts->n_queues; i++)
        hf_rates_note(o->rates, &facts->queues[i].stats);
    hf_rates_tidy(o->rates);
    /* The first look at many queues takes long enough without. */
    if (o->round > 1 || facts->n_queues <= PER_SECOND)
        hf_rates_read_some(o->rates, r->admin,
                           PASTS * (1 + facts->n_queues / PER_SECOND));
    read_workers(o, r);
}

static hf_err gather(hf_overview *o, hf_reader *r)
{
    hf_facts facts = {.late_ms = r->opts->late_ms, .poison = r->opts->poison};
    const uint64_t began_ns = hf_boot_ns();
    hf_err err = hf_reader_open(r);
    if (err == HF_OK) {
        const hf_gather_opts opts = {.admin = r->admin,
                                     .before = &o->facts,
                                     .deaths = DEATHS,
                                     .pasts = PASTS_JUDGED,
                                     .locks = r->locks,
                                     .locks_kept = o->round % LOCKS_EACH != 0,
                                     .locks_ms = LOCKS_MS};
        err = hf_facts_gather(&opts, &facts);
    } else if (err != HF_NOMEM) {
        err = hf_facts_away(&facts, err, r->detail,
                            hf_wall_ms() -
                                (int64_t)((hf_boot_ns() - r->fault_ns) / HF_MS_NS));
    }
    if (err != HF_OK) {
        hf_facts_done(&facts);
        return err;
    }
    hf_wrong_judge(&facts, &o->wrongs);
    o->away = !is_answered(&facts);
    if (o->away) {
        (void)hf_reader_note(r, facts.n_redis > 0 ? facts.redis[0].err : HF_CONN);
        hf_facts_done(&facts);
    } else {
        take(o, r, &facts, began_ns);
    }
    return HF_OK;
}

static hf_err make(hf_reader *r)
{
    hf_overview *o = calloc(1, sizeof *o);
    if (o == NULL)
        return HF_NOMEM;
    o->rates = hf_rates_new();
    o->workers = json_array();
    if (o->rates == NULL || o->workers == NULL) {
        hf_overview_free(o);
        return HF_NOMEM;
    }
    r->overview = o;
    r->free_overview = hf_overview_free;
    return HF_OK;
}

hf_err hf_overview_read(hf_reader *r)
{
    hf_err err = r->overview == NULL ? make(r) : HF_OK;
    if (err != HF_OK || !is_old(r->overview))
        return err;
    err = gather(r->overview, r);
    r->overview->tried_ns = hf_boot_ns();
    return err;
}

/* ---- queues ---- */

static json_t *queue_object(const hf_overview *o, const hf_queue_stats *s)
{
    json_t *object = hf_queue_json(s);
    const hf_rate rate = hf_rates_of(o->rates, s->queue);
    json_t *rest = json_pack(
        "{s:o, s:o, s:o, s:I, s:o}", "in_per_min", hf_rate_json(rate.in), "out_per_min",
        hf_rate_json(rate.done), "failed_pct", hf_rate_json(hf_rate_failed_pct(&rate)),
        "died_1h", (json_int_t)s->died_hour, "spark", hf_rates_spark(o->rates, s->queue));
    if (object != NULL && rest != NULL && json_object_update(object, rest) == 0) {
        json_decref(rest);
        return object;
    }
    json_decref(rest);
    json_decref(object);
    return NULL;
}

json_t *hf_overview_queue(hf_reader *r, const hf_queue_stats *s)
{
    if (!r->overview->away)
        (void)hf_rates_read_past(r->overview->rates, r->admin, s->queue);
    return queue_object(r->overview, s);
}

typedef struct listed {
    const hf_queue_stats *stats;
    size_t trouble; /* the place of its first wrong thing; HF_WRONG_MAX: none */
} listed;

static size_t trouble_of(const hf_overview *o, const char *queue)
{
    for (size_t i = 0; i < o->wrongs.n; i++)
        if (strncmp(o->wrongs.at[i].page, "queue/", 6) == 0 &&
            strcmp(o->wrongs.at[i].page + 6, queue) == 0)
            return i;
    return HF_WRONG_MAX;
}

/* Those with trouble first, then those with jobs, then by name. */
static int by_trouble(const void *a, const void *b)
{
    const listed *x = a, *y = b;
    const bool x_works = x->stats->ready + x->stats->running > 0;
    const bool y_works = y->stats->ready + y->stats->running > 0;
    if (x->trouble != y->trouble)
        return x->trouble < y->trouble ? -1 : 1;
    if (x_works != y_works)
        return x_works ? -1 : 1;
    return strcmp(x->stats->queue, y->stats->queue);
}

/* The queues whose name contains `match`. NULL: no memory. */
static listed *list_queues(const hf_overview *o, const char *match, bool sorted,
                           size_t *n)
{
    const hf_facts *f = &o->facts;
    listed *list = calloc(f->n_queues + 1, sizeof *list);
    *n = 0;
    for (size_t i = 0; i < f->n_queues && list != NULL; i++) {
        const hf_queue_stats *s = &f->queues[i].stats;
        if (match == NULL || strstr(s->queue, match) != NULL)
            list[(*n)++] = (listed){s, trouble_of(o, s->queue)};
    }
    if (list != NULL && sorted)
        qsort(list, *n, sizeof *list, by_trouble);
    return list;
}

/* The hours that there is no time to read are read by the next times. */
static json_t *queue_objects(hf_reader *r, const listed *list, size_t n)
{
    const hf_overview *o = r->overview;
    json_t *items = json_array();
    size_t pasts = o->away ? 0 : PASTS_SHOWN;
    for (size_t i = 0; i < n && items != NULL; i++) {
        const hf_queue_stats *s = list[i].stats;
        if (pasts > 0 && hf_rates_read_past(o->rates, r->admin, s->queue))
            pasts--;
        (void)json_array_append_new(items, queue_object(o, s));
    }
    return items;
}

/* Pages go by number: the order changes with the state of the queues. */
hf_err hf_overview_queues(hf_query *ask, hf_reader *r)
{
    const char *sort = hf_ask_param(ask, "sort");
    const size_t limit = hf_ask_limit(ask);
    char next[24] = "";
    int64_t after;
    size_t n;
    hf_err err = limit == 0 ? HF_OK : hf_overview_read(r);
    if (err != HF_OK || limit == 0)
        return err;
    const bool by_name = sort != NULL && strcmp(sort, "name") == 0;
    if (!hf_target_number(&ask->target, "after", 0, INT32_MAX, 0, &after))
        return hf_ask_refuse(ask, 400, "invalid", "after: expected what `next` was");
    if (sort != NULL && !by_name && strcmp(sort, "trouble") != 0)
        return hf_ask_refuse(ask, 400, "invalid", "sort: expected trouble or name");
    listed *list = list_queues(r->overview, hf_ask_param(ask, "match"), !by_name, &n);
    if (list == NULL)
        return HF_NOMEM;
    const size_t from = (size_t)after < n ? (size_t)after : n;
    const size_t shown = n - from < limit ? n - from : limit;
    if (from + shown < n)
        (void)snprintf(next, sizeof next, "%zu", from + shown);
    json_t *items = queue_objects(r, list + from, shown);
    free(list);
    return hf_ask_list(ask, r, items, next, n);
}

/* ---- the whole ---- */

static json_t *wrong_objects(const hf_wrongs *wrongs)
{
    json_t *items = json_array();
    for (size_t i = 0; i < wrongs->n && items != NULL; i++) {
        const hf_wrong *w = &wrongs->at[i];
        (void)json_array_append_new(
            items,
            json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "level",
                      hf_wrong_level_word(w->level), "rule", hf_wrong_rule_word(w->rule),
                      "since_ms", hf_out_time(w->since_ms), "what", hf_out_text(w->what),
                      "why", hf_out_text(w->why), "command", hf_out_text(w->command),
                      "page", hf_out_text(w->page)));
    }
    return items;
}

static void add_rate(double *sum, double rate)
{
    if (rate >= 0)
        *sum = (*sum < 0 ? 0 : *sum) + rate;
}

static json_t *totals_of(const hf_overview *o)
{
    hf_queue_stats sum = {HF_QUEUE_STATS_INIT};
    hf_rate rate = {-1, -1, -1};
    for (size_t i = 0; i < o->facts.n_queues; i++) {
        const hf_queue_stats *s = &o->facts.queues[i].stats;
        const hf_rate of = hf_rates_of(o->rates, s->queue);
        sum.ready += s->ready;
        sum.delayed += s->delayed;
        sum.running += s->running;
        sum.dead += s->dead;
        sum.died_hour += s->died_hour;
        if (s->oldest_ready_ms != 0 &&
            (sum.oldest_ready_ms == 0 || s->oldest_ready_ms < sum.oldest_ready_ms))
            sum.oldest_ready_ms = s->oldest_ready_ms;
        add_rate(&rate.in, of.in);
        add_rate(&rate.done, of.done);
        add_rate(&rate.failed, of.failed);
    }
    return json_pack("{s:I, s:o, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:I, s:I, s:o}",
                     "ready", (json_int_t)sum.ready, "oldest_ready_ms",
                     hf_out_time(sum.oldest_ready_ms), "delayed", (json_int_t)sum.delayed,
                     "running", (json_int_t)sum.running, "slots", (json_int_t)o->slots,
                     "in_per_min", hf_rate_json(rate.in), "done_per_min",
                     hf_rate_json(rate.done), "failed_per_min", hf_rate_json(rate.failed),
                     "failed_pct", hf_rate_json(hf_rate_failed_pct(&rate)), "dead",
                     (json_int_t)sum.dead, "died_1h", (json_int_t)sum.died_hour, "spark",
                     hf_rates_hour(o->rates));
}

static json_t *verdict_of(const hf_overview *o)
{
    char text[HF_VERDICT_SIZE];
    return json_pack(
        "{s:s, s:I, s:I, s:I, s:s}", "level", hf_wrong_verdict_word(&o->wrongs), "things",
        (json_int_t)hf_wrong_things(&o->wrongs), "notes",
        (json_int_t)o->wrongs.levels[HF_LEVEL_NOTE], "hints",
        (json_int_t)o->wrongs.levels[HF_LEVEL_HINT], "text",
        o->away ? "Redis does not answer" : hf_wrong_verdict(&o->wrongs, text));
}

hf_err hf_overview_get(hf_query *ask, hf_reader *r)
{
    size_t n;
    hf_err err = hf_overview_read(r);
    if (err != HF_OK)
        return err;
    const hf_overview *o = r->overview;
    listed *list = list_queues(o, NULL, true, &n);
    if (list == NULL)
        return HF_NOMEM;
    json_t *queues = queue_objects(r, list, n < QUEUES ? n : QUEUES);
    free(list);
    return hf_ask_give(ask, r,
                       json_pack("{s:o, s:b, s:o, s:o, s:o, s:I, s:O, s:I, s:I}",
                                 "verdict", verdict_of(o), "away", (int)o->away, "wrong",
                                 wrong_objects(&o->wrongs), "totals", totals_of(o),
                                 "queues", queues, "n_queues",
                                 (json_int_t)o->facts.n_queues, "workers", o->workers,
                                 "n_schedules", (json_int_t)o->facts.n_schedules,
                                 "n_locks", (json_int_t)o->facts.n_locks),
                       hf_overview_age_ms(o));
}

hf_err hf_overview_workers(hf_query *ask, hf_reader *r)
{
    hf_err err = hf_overview_read(r);
    if (err != HF_OK)
        return err;
    return hf_ask_give(ask, r,
                       json_pack("{s:O, s:n, s:I}", "items", r->overview->workers, "next",
                                 "looked_at",
                                 (json_int_t)json_array_size(r->overview->workers)),
                       hf_overview_age_ms(r->overview));
}
