/* belief.c - S1: the beliefs in locks that exclude each other never overlap.
 *
 * A belief begins when the call that acquired the lock returned, and ends at the release,
 * at the news of its loss, at the local deadline, or with its process: the first of
 * these. An overlap is excused, for one lease at most, if the holder cannot know its
 * reason: the lock was deleted or forced, or a failover lost it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tests/history/parts.h"

typedef struct belief {
    char name[HF_LOCK_NAME_MAX + 1];
    const hf_hold *hold;
    char mode;
    uint64_t from, to;
} belief;

typedef struct beliefs {
    belief *list; /* owned */
    size_t n, capacity;
} beliefs;

static void add(beliefs *b, const char *name, const hf_hold *hold, char mode,
                uint64_t from, uint64_t to)
{
    if (to <= from)
        return;
    b->list = hf_array_fit(b->list, b->n, &b->capacity, sizeof *b->list);
    belief *one = &b->list[b->n++];
    *one = (belief){.hold = hold, .mode = mode, .from = from, .to = to};
    (void)snprintf(one->name, sizeof one->name, "%s", name);
}

static void add_hold(beliefs *b, const hf_players *p, const hf_hold *hold)
{
    char names[HF_NAMES_TEXT], *rest = names;
    uint64_t end = hf_hold_end(p, hold), down = hold->downgraded;
    (void)snprintf(names, sizeof names, "%s", hold->names);
    for (char *name; (name = strtok_r(rest, ",", &rest)) != NULL;) {
        uint64_t alone_to = down != 0 && down < end ? down : end;
        add(b, name, hold, hold->mode, hold->answered, alone_to);
        add(b, name, hold, 's', alone_to, end);
    }
}

static int by_name_and_start(const void *a, const void *b)
{
    const belief *x = a, *y = b;
    int names = strcmp(x->name, y->name);
    if (names != 0)
        return names;
    return x->from < y->from ? -1 : x->from > y->from;
}

static bool excludes(const belief *a, const belief *b)
{
    if (a->hold == b->hold || strcmp(a->hold->owner, b->hold->owner) == 0)
        return false;
    return a->mode != b->mode || a->mode == 'x';
}

/* `a` began before `b`. Was the one that was granted first taken from its holder, who
 * ended within a lease? (Who is told late that it was granted may begin last.) */
static bool is_excused(const hf_players *p, const belief *a, const belief *b)
{
    const belief *old = a->hold->fence < b->hold->fence ? a : b;
    const hf_took *took = hf_players_took(p, a->name, old->hold->asked, b->from);
    uint64_t lease_ns = old->hold->lease_ms * HF_MS_NS;
    return took != NULL && old->to <= took->to + lease_ns &&
           a->hold->fence != b->hold->fence;
}

static void judge(const belief *a, const belief *b, bool excused, hf_report *r)
{
    uint64_t end = a->to < b->to ? a->to : b->to, lasts = end - b->from;
    if (excused) {
        r->excused++;
        if (lasts > r->excused_longest_ns)
            r->excused_longest_ns = lasts;
        return;
    }
    hf_broken(r, RULE_S1,
              "%s: player %u (%" PRIu64 ", %c) and player %u (%" PRIu64
              ", %c) both held it for %.3f ms",
              a->name, a->hold->player, a->hold->id, a->mode, b->hold->player,
              b->hold->id, b->mode, (double)lasts / (double)HF_MS_NS);
}

/* The beliefs of one name that are open where the next one begins. */
typedef struct open_ones {
    const belief **list; /* owned */
    size_t n, capacity;
} open_ones;

static void meet(const hf_players *p, open_ones *open, const belief *b, hf_report *r)
{
    size_t kept = 0;
    unsigned all = b->hold->permits, real = all;
    for (size_t i = 0; i < open->n; i++) {
        const belief *a = open->list[i];
        if (a->to <= b->from || strcmp(a->name, b->name) != 0)
            continue;
        open->list[kept++] = a;
        bool excused = is_excused(p, a, b), over = false;
        if (a->mode == 'p' && b->mode == 'p') {
            all += a->hold->permits;
            real += excused ? 0 : a->hold->permits;
            over = excused ? all > b->hold->limit : real > b->hold->limit;
        }
        if (over || excludes(a, b))
            judge(a, b, excused, r);
    }
    open->n = kept;
    open->list =
        hf_array_fit((void *)open->list, open->n, &open->capacity, sizeof *open->list);
    open->list[open->n++] = b;
}

void hf_check_belief(const hf_players *p, hf_report *r)
{
    beliefs b = {.n = 0};
    open_ones open = {.n = 0};
    r->took += p->n_took;
    for (size_t i = 0; i < p->killed_capacity; i++)
        r->killed += p->killed[i] != 0;
    for (size_t i = 0; i < p->n_holds; i++) {
        const hf_hold *hold = &p->holds[i];
        r->asked++;
        r->acquired += hold->had;
        r->refused += hold->answered != 0 && !hold->had;
        r->lost += hold->lost != 0;
        r->released += strcmp(hold->result, "RELEASED") == 0;
        if (hold->had)
            add_hold(&b, p, hold);
    }
    if (b.n > 0)
        qsort(b.list, b.n, sizeof *b.list, by_name_and_start);
    for (size_t i = 0; i < b.n; i++)
        meet(p, &open, &b.list[i], r);
    free((void *)open.list);
    free(b.list);
}
