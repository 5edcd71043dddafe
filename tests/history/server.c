/* server.c - S2, S3, S4, S7, S11, S12, O1 and O2, by what the scripts did in Redis.
 *
 * A fence is the time of the script that granted it, in microseconds, so it also says
 * which leases were over by then. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "tests/history/line.h"
#include "tests/history/parts.h"

enum { HOLDS_TEXT = 512, US_IN_MS = 1000, SLACK_MS = 1 };

typedef struct entry {
    bool there, granted, queued;
    char mode;
    unsigned life; /* which entry of this owner: the heap may know an earlier one */
    unsigned permits;
    uint64_t fence, start_ms, lease_ms, place;
    size_t lock, owner;
    char holds[HOLDS_TEXT];
} entry;

/* Who waits, the first in line on top; those that have left are taken out when found. */
typedef struct waiting {
    uint64_t place;
    size_t entry;
    unsigned life;
} waiting;

typedef struct lock_state {
    unsigned alone, shared, permits, limit;
    uint64_t fence; /* of the last grant */
    waiting *line;  /* owned, a heap */
    size_t n, capacity;
    uint64_t cell_until_ms; /* 0: no cell */
} lock_state;

typedef struct handed {
    unsigned waited, told;
} handed;

typedef struct guard {
    uint64_t fence;
    char owner[HF_LOCK_OWNER_SIZE];
} guard;

struct hf_server {
    hf_table lock_names, entry_names, owners, handed_names, guard_names, granted;
    lock_state *locks; /* owned, as all below */
    entry *entries;
    handed *handed;
    guard *guards;
    size_t locks_capacity, entries_capacity, handed_capacity, guards_capacity;
    /* the script that is running */
    char script[16], owner[HF_LOCK_OWNER_SIZE], hold[64];
    unsigned limit;
    hf_report report;
};

hf_server *hf_server_new(void)
{
    hf_server *s = calloc(1, sizeof *s);
    HF_ASSERT(s != NULL);
    return s;
}

void hf_server_free(hf_server *s)
{
    for (size_t i = 0; i < s->lock_names.n; i++)
        free(s->locks[i].line);
    hf_table *const tables[] = {&s->lock_names,   &s->entry_names, &s->owners,
                                &s->handed_names, &s->guard_names, &s->granted};
    for (size_t i = 0; i < HF_COUNT(tables); i++)
        hf_table_done(tables[i]);
    free(s->locks);
    free(s->entries);
    free(s->handed);
    free(s->guards);
    free(s);
}

/* ---- what a line is about ---- */

static size_t lock_of(hf_server *s, const char *line)
{
    char name[HF_LOCK_NAME_MAX + 1];
    bool is_new;
    size_t n = hf_table_put(&s->lock_names, hf_line_text(line, "name", name, sizeof name),
                            &is_new);
    s->locks = hf_array_fit(s->locks, n, &s->locks_capacity, sizeof *s->locks);
    return n;
}

static entry *entry_of(hf_server *s, const char *line)
{
    char owner[HF_LOCK_OWNER_SIZE], key[HF_LOCK_NAME_MAX + HF_LOCK_OWNER_SIZE + 2];
    bool is_new, is_new_owner;
    size_t lock = lock_of(s, line);
    (void)hf_line_text(line, "owner", owner, sizeof owner);
    (void)snprintf(key, sizeof key, "%s %s", s->lock_names.texts[lock], owner);
    size_t n = hf_table_put(&s->entry_names, key, &is_new);
    s->entries = hf_array_fit(s->entries, n, &s->entries_capacity, sizeof *s->entries);
    s->entries[n].lock = lock;
    s->entries[n].owner = hf_table_put(&s->owners, owner, &is_new_owner);
    return &s->entries[n];
}

static handed *handed_of(hf_server *s, const char *name, uint64_t fence)
{
    char key[HF_LOCK_NAME_MAX + 32];
    bool is_new;
    (void)snprintf(key, sizeof key, "%.*s %" PRIu64, (int)strcspn(name, "/"), name,
                   fence);
    size_t n = hf_table_put(&s->handed_names, key, &is_new);
    s->handed = hf_array_fit(s->handed, n, &s->handed_capacity, sizeof *s->handed);
    return &s->handed[n];
}

static const char *name_of(const hf_server *s, const entry *e)
{
    return s->lock_names.texts[e->lock];
}

static const char *owner_of(const hf_server *s, const entry *e)
{
    return s->owners.texts[e->owner];
}

static bool script_is(const hf_server *s, const char *script)
{
    return strcmp(s->script, script) == 0;
}

/* ---- the line ---- */

static void push(lock_state *l, waiting w)
{
    l->line = hf_array_fit(l->line, l->n, &l->capacity, sizeof *l->line);
    size_t at = l->n++;
    for (; at > 0 && l->line[(at - 1) / 2].place > w.place; at = (at - 1) / 2)
        l->line[at] = l->line[(at - 1) / 2];
    l->line[at] = w;
}

static void pop(lock_state *l)
{
    waiting last = l->line[--l->n];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < l->n; at = child) {
        if (child + 1 < l->n && l->line[child + 1].place < l->line[child].place)
            child++;
        if (l->line[child].place >= last.place)
            break;
        l->line[at] = l->line[child];
    }
    l->line[at] = last;
}

/* Who is the first to wait, of those that live then? */
static const entry *first_in_line(hf_server *s, lock_state *l, uint64_t now_ms)
{
    while (l->n > 0) {
        const entry *e = &s->entries[l->line[0].entry];
        if (e->there && e->queued && e->life == l->line[0].life &&
            e->start_ms + e->lease_ms > now_ms)
            return e;
        pop(l);
    }
    return NULL;
}

/* ---- grants ---- */

static void count(lock_state *l, const entry *e, int by)
{
    unsigned *n = e->mode == 'x' ? &l->alone : e->mode == 's' ? &l->shared : &l->permits;
    *n += (unsigned)(by * (int)(e->mode == 'p' ? e->permits : 1));
}

static void take_out(hf_server *s, entry *e)
{
    if (e->there && e->granted)
        count(&s->locks[e->lock], e, -1);
    e->there = e->granted = e->queued = false;
    e->start_ms = e->lease_ms = 0;
}

static bool is_wrong(const lock_state *l, const entry *e, uint64_t now_ms)
{
    return l->alone > 1 || (l->alone == 1 && (l->shared > 0 || l->permits > 0)) ||
           (l->shared > 0 && l->permits > 0) ||
           (e->mode == 'p' && l->permits > l->limit) || l->cell_until_ms > now_ms;
}

static void check_exclusion(hf_server *s, const entry *e, uint64_t now_ms)
{
    const lock_state *l = &s->locks[e->lock];
    bool cell = l->cell_until_ms > now_ms;
    if (is_wrong(l, e, now_ms))
        hf_broken(&s->report, RULE_S2,
                  "%s: %u alone, %u shared, %u of %u permits%s are granted with fence "
                  "%" PRIu64,
                  name_of(s, e), l->alone, l->shared, l->permits, l->limit,
                  cell ? " and a cell" : "", e->fence);
}

static void check_order(hf_server *s, const entry *e, uint64_t now_ms)
{
    lock_state *l = &s->locks[e->lock];
    const entry *first = first_in_line(s, l, now_ms + SLACK_MS);
    if (e->start_ms + e->lease_ms + SLACK_MS < now_ms)
        hf_broken(&s->report, RULE_O1,
                  "%s: granted to %s, whose lease had ended %" PRIu64 " ms before",
                  name_of(s, e), owner_of(s, e), now_ms - e->start_ms - e->lease_ms);
    if (first == NULL || first == e || (e->queued && e->place < first->place))
        return;
    hf_broken(&s->report, e->mode == 's' && first->mode == 'x' ? RULE_S12 : RULE_O1,
              "%s: %s was granted (fence %" PRIu64 ") past %s, who waits since %" PRIu64,
              name_of(s, e), owner_of(s, e), e->fence, owner_of(s, first), first->place);
}

static void remember_grant(hf_server *s, size_t lock, uint64_t fence, const char *owner)
{
    const char *name = s->lock_names.texts[lock];
    char key[HF_LOCK_NAME_MAX + HF_LOCK_OWNER_SIZE + 32];
    bool is_new;
    lock_state *l = &s->locks[lock];
    if (fence <= l->fence)
        hf_broken(&s->report, RULE_S3, "%s: fence %" PRIu64 " was granted after %" PRIu64,
                  name, fence, l->fence);
    l->fence = fence;
    (void)snprintf(key, sizeof key, "%s %" PRIu64 " %s", name, fence, owner);
    (void)hf_table_put(&s->granted, key, &is_new);
    s->report.grants++;
}

static void granted(hf_server *s, entry *e)
{
    uint64_t now_ms = e->fence / US_IN_MS;
    count(&s->locks[e->lock], e, 1);
    check_exclusion(s, e, now_ms);
    check_order(s, e, now_ms);
    remember_grant(s, e->lock, e->fence, owner_of(s, e));
    if (e->queued) {
        handed *h = handed_of(s, name_of(s, e), e->fence);
        s->report.waited += h->waited == 0;
        h->waited = 1; /* in several lines at once */
    }
    e->queued = false;
}

/* ---- lines of the file ---- */

static void on_entry(hf_server *s, const char *line)
{
    entry *e = entry_of(s, line);
    char mode[4];
    bool is_granted = hf_line_number(line, "granted") != 0;
    lock_state *l = &s->locks[e->lock];
    if (e->there && e->granted)
        count(l, e, -1);
    bool was_granted = e->there && e->granted;
    e->mode = hf_line_text(line, "mode", mode, sizeof mode)[0];
    e->permits = (unsigned)hf_line_number(line, "permits");
    e->fence = hf_line_number(line, "fence");
    e->lease_ms = hf_line_number(line, "lease");
    (void)hf_line_text(line, "holds", e->holds, sizeof e->holds);
    if (e->mode == 'p' && s->limit > 0)
        l->limit = s->limit;
    e->there = true;
    e->granted = is_granted;
    if (was_granted)
        count(l, e, 1);
    else if (is_granted)
        granted(s, e);
}

static void on_lease(hf_server *s, const char *line)
{
    entry *e = entry_of(s, line);
    uint64_t start_ms = hf_line_number(line, "start");
    if (script_is(s, "renew") && !e->there)
        hf_broken(&s->report, RULE_S7, "%s: a renewal made the entry of %s",
                  name_of(s, e), owner_of(s, e));
    if (script_is(s, "renew") && e->there && start_ms < e->start_ms)
        hf_broken(&s->report, RULE_S7, "%s: a renewal of %s took %" PRIu64 " ms away",
                  name_of(s, e), owner_of(s, e), e->start_ms - start_ms);
    if (!e->there) {
        e->life++;
        e->granted = e->queued = false;
        e->holds[0] = '\0';
    }
    e->start_ms = start_ms;
}

static void on_queued(hf_server *s, const char *line)
{
    entry *e = entry_of(s, line);
    if (e->there && e->granted)
        hf_broken(&s->report, RULE_S12, "%s: %s has it and waits for it", name_of(s, e),
                  owner_of(s, e));
    e->queued = true;
    e->place = hf_line_number(line, "place");
    push(&s->locks[e->lock], (waiting){e->place, (size_t)(e - s->entries), e->life});
}

/* Only its own acquisition, and what is over, may be taken out. */
static void check_taken_out(hf_server *s, const entry *e, uint64_t at_ms)
{
    uint64_t until_ms = e->start_ms + e->lease_ms;
    bool over = until_ms <= at_ms;
    bool own = script_is(s, "release") && strcmp(s->owner, owner_of(s, e)) == 0;
    if (over || script_is(s, "force") || s->script[0] == '\0')
        return;
    if (!own)
        hf_broken(&s->report, RULE_S4,
                  "%s: %s of %s took out %s, which had %" PRIu64 " ms left",
                  name_of(s, e), s->script, s->owner, owner_of(s, e), until_ms - at_ms);
    else if (strstr(e->holds, s->hold) == NULL)
        hf_broken(&s->report, RULE_S4,
                  "%s: %s gave back %s, which is not the one that it has (%s)",
                  name_of(s, e), s->owner, s->hold, e->holds);
}

static void on_gone(hf_server *s, const char *line)
{
    entry *e = entry_of(s, line);
    if (!e->there)
        return;
    check_taken_out(s, e, hf_line_number(line, "at"));
    take_out(s, e);
}

/* Its keys were deleted, by no script. */
static void on_wiped(hf_server *s, const char *line)
{
    char name[HF_LOCK_NAME_MAX + 1];
    bool all = strcmp(hf_line_text(line, "name", name, sizeof name), "*") == 0;
    for (size_t i = 0; i < s->entry_names.n; i++)
        if (all || strcmp(name_of(s, &s->entries[i]), name) == 0)
            take_out(s, &s->entries[i]);
    for (size_t i = 0; i < s->lock_names.n; i++)
        if (all || strcmp(s->lock_names.texts[i], name) == 0)
            s->locks[i].cell_until_ms = 0;
}

static void on_cell(hf_server *s, const char *line)
{
    size_t lock = lock_of(s, line);
    lock_state *l = &s->locks[lock];
    char owner[HF_LOCK_OWNER_SIZE];
    char name[HF_LOCK_NAME_MAX + 1];
    uint64_t fence = hf_line_number(line, "fence"), now_ms = fence / US_IN_MS;
    (void)hf_line_text(line, "owner", owner, sizeof owner);
    (void)hf_line_text(line, "name", name, sizeof name);
    if (l->alone + l->shared + l->permits > 0 || l->cell_until_ms > now_ms + SLACK_MS)
        hf_broken(&s->report, RULE_S2,
                  "%s: a cell of %s (fence %" PRIu64 ") beside what is granted", name,
                  owner, fence);
    const entry *first = first_in_line(s, l, now_ms + SLACK_MS);
    if (first != NULL)
        hf_broken(&s->report, RULE_O1, "%s: a cell of %s past %s, who waits", name, owner,
                  owner_of(s, first));
    remember_grant(s, lock, fence, owner);
    l->cell_until_ms = hf_line_number(line, "until");
}

static void on_cell_until(hf_server *s, const char *line)
{
    size_t lock = lock_of(s, line);
    lock_state *l = &s->locks[lock];
    uint64_t until_ms = hf_line_number(line, "until");
    if (until_ms < l->cell_until_ms && until_ms != 0)
        hf_broken(&s->report, RULE_S7, "a renewal took %" PRIu64 " ms away from a cell",
                  l->cell_until_ms - until_ms);
    l->cell_until_ms = until_ms;
}

static void on_told(hf_server *s, const char *line)
{
    char tag[HF_LOCK_NAME_MAX + 1];
    if (!hf_line_is(line, "what", "granted"))
        return;
    s->report.messages++;
    handed_of(s, hf_line_text(line, "tag", tag, sizeof tag),
              hf_line_number(line, "fence"))
        ->told++;
}

static void on_guard(hf_server *s, const char *line)
{
    char key[HF_LOCK_NAME_MAX + 1], owner[HF_LOCK_OWNER_SIZE];
    bool is_new;
    size_t n = hf_table_put(&s->guard_names,
                            hf_line_text(line, "resource", key, sizeof key), &is_new);
    uint64_t fence = hf_line_number(line, "fence");
    s->guards = hf_array_fit(s->guards, n, &s->guards_capacity, sizeof *s->guards);
    guard *g = &s->guards[n];
    (void)hf_line_text(line, "owner", owner, sizeof owner);
    if (fence < g->fence || (fence == g->fence && strcmp(owner, g->owner) != 0))
        hf_broken(&s->report, RULE_S11,
                  "%s took fence %" PRIu64 " of %s after %" PRIu64 " of %s", key, fence,
                  owner, g->fence, g->owner);
    g->fence = fence;
    (void)snprintf(g->owner, sizeof g->owner, "%s", owner);
    s->report.guards++;
}

static void on_script(hf_server *s, const char *line)
{
    (void)hf_line_text(line, "what", s->script, sizeof s->script);
    (void)hf_line_text(line, "owner", s->owner, sizeof s->owner);
    (void)hf_line_text(line, "hold", s->hold, sizeof s->hold);
    s->limit = (unsigned)hf_line_number(line, "limit");
}

void hf_server_line(const char *line, void *server)
{
    static const struct {
        const char *ev;
        void (*read)(hf_server *s, const char *line);
    } kinds[] = {{"script", on_script}, {"entry", on_entry},
                 {"lease", on_lease},   {"queued", on_queued},
                 {"gone", on_gone},     {"wiped", on_wiped},
                 {"cell", on_cell},     {"cell_until", on_cell_until},
                 {"told", on_told},     {"guard", on_guard}};
    for (size_t i = 0; i < HF_COUNT(kinds); i++)
        if (hf_line_is(line, "ev", kinds[i].ev))
            kinds[i].read(server, line);
}

/* ---- at the end ---- */

bool hf_server_granted(const hf_server *s, const char *name, uint64_t fence,
                       const char *owner)
{
    char key[HF_LOCK_NAME_MAX + HF_LOCK_OWNER_SIZE + 32];
    size_t ignored;
    (void)snprintf(key, sizeof key, "%s %" PRIu64 " %s", name, fence, owner);
    return hf_table_find(&s->granted, key, &ignored);
}

void hf_server_check(hf_server *s, hf_report *r)
{
    for (size_t i = 0; i < s->handed_names.n; i++)
        if (s->handed[i].told != s->handed[i].waited)
            hf_broken(&s->report, RULE_O2, "%s: %u messages for %u that waited",
                      s->handed_names.texts[i], s->handed[i].told, s->handed[i].waited);
    r->grants += s->report.grants;
    r->waited += s->report.waited;
    r->messages += s->report.messages;
    r->guards += s->report.guards;
    for (int rule = 0; rule < HF_RULES; rule++) {
        if (r->broken[rule] == 0)
            memcpy(r->first[rule], s->report.first[rule], sizeof r->first[rule]);
        r->broken[rule] += s->report.broken[rule];
    }
}
