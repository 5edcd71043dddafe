/* verdict.c - S3, S4, S12 and O3, checked by the reports to the players. A report in
 * time, that is, before the local deadline, cannot be caused by a lease that was over. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "tests/history/parts.h"

/* ---- S3: fences, for each name ---- */

typedef struct grant {
    char name[HF_LOCK_NAME_MAX + 1];
    const hf_hold *hold;
    bool again; /* the same owner had it already, under the same fence */
} grant;

static int by_fence(const void *a, const void *b)
{
    const grant *x = a, *y = b;
    int names = strcmp(x->name, y->name);
    if (names != 0)
        return names;
    if (x->hold->fence != y->hold->fence)
        return x->hold->fence < y->hold->fence ? -1 : 1;
    return x->hold->answered < y->hold->answered ? -1 : 1;
}

static int by_asked(const void *a, const void *b)
{
    const grant *x = a, *y = b;
    int names = strcmp(x->name, y->name);
    if (names != 0)
        return names;
    return x->hold->asked < y->hold->asked ? -1 : x->hold->asked > y->hold->asked;
}

static int by_answered(const void *a, const void *b)
{
    const grant *x = *(grant *const *)a, *y = *(grant *const *)b;
    int names = strcmp(x->name, y->name);
    if (names != 0)
        return names;
    return x->hold->answered < y->hold->answered ? -1
                                                 : x->hold->answered > y->hold->answered;
}

static size_t list_grants(const hf_players *p, grant **out)
{
    size_t n = 0, capacity = 0;
    *out = NULL;
    for (size_t i = 0; i < p->n_holds; i++) {
        char names[HF_NAMES_TEXT], *rest = names;
        (void)snprintf(names, sizeof names, "%s", p->holds[i].names);
        for (char *name; p->holds[i].had && (name = strtok_r(rest, ",", &rest));) {
            *out = hf_array_fit(*out, n, &capacity, sizeof **out);
            (*out)[n].hold = &p->holds[i];
            (void)snprintf((*out)[n++].name, sizeof(*out)->name, "%s", name);
        }
    }
    return n;
}

static void find_equals(grant *list, size_t n, hf_report *r)
{
    for (size_t i = 1; i < n; i++) {
        const hf_hold *a = list[i - 1].hold, *b = list[i].hold;
        if (a->fence != b->fence || strcmp(list[i - 1].name, list[i].name) != 0)
            continue;
        list[i].again = strcmp(a->owner, b->owner) == 0;
        if (!list[i].again)
            hf_broken(r, RULE_S3, "%s: fence %" PRIu64 " of %s and of %s", list[i].name,
                      b->fence, a->owner, b->owner);
    }
}

/* Whoever asked after another was answered has a higher fence. */
static void find_falling(grant *list, size_t n, hf_report *r)
{
    grant **answered = calloc(n + 1, sizeof *answered);
    size_t done = 0;
    uint64_t highest = 0;
    HF_ASSERT(answered != NULL);
    for (size_t i = 0; i < n; i++)
        answered[i] = &list[i];
    qsort((void *)answered, n, sizeof(grant *), by_answered);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || strcmp(list[i].name, list[i - 1].name) != 0) {
            while (done < n && strcmp(answered[done]->name, list[i].name) < 0)
                done++;
            highest = 0;
        }
        for (; done < n && strcmp(answered[done]->name, list[i].name) == 0 &&
               answered[done]->hold->answered < list[i].hold->asked;
             done++)
            if (answered[done]->hold->fence > highest)
                highest = answered[done]->hold->fence;
        if (!list[i].again && list[i].hold->fence <= highest)
            hf_broken(r, RULE_S3, "%s: fence %" PRIu64 " was granted after %" PRIu64,
                      list[i].name, list[i].hold->fence, highest);
    }
    free((void *)answered);
}

/* ---- S4: nobody else takes it away ---- */

static void check_owner(const hf_players *p, const hf_hold *h, hf_report *r)
{
    bool refused = strcmp(h->why, "REFUSED") == 0 || strcmp(h->why, "FORCED") == 0;
    bool gone = strcmp(h->result, "EXPIRED") == 0 || strcmp(h->result, "NOT_OWNER") == 0;
    bool given =
        strcmp(h->result, "RELEASED") == 0 || strcmp(h->result, "STILL_HELD") == 0;
    char names[HF_NAMES_TEXT], *rest = names;
    bool took = false;
    uint64_t told = h->lost != 0 ? h->lost : h->released;
    (void)snprintf(names, sizeof names, "%s", h->names);
    for (char *name; (name = strtok_r(rest, ",", &rest)) != NULL;)
        took = took || hf_players_took(p, name, h->asked, told) != NULL;
    if (refused && given)
        hf_broken(r, RULE_S4, "%s: %s released what had been refused to it (%s, %s)",
                  h->names, h->owner, h->why, h->result);
    if (!took && refused && h->lost < h->until)
        hf_broken(r, RULE_S4, "%s: %s lost it before its time, and nobody took it",
                  h->names, h->owner);
    if (!took && gone && h->lost == 0 && h->released < h->until)
        hf_broken(r, RULE_S4, "%s: it was %s for %s before its time, and nobody took it",
                  h->names, h->result, h->owner);
}

/* ---- S12: an upgrade ---- */

/* Both are of the same owner and name: `one` shares, `other` asked to be alone. */
static void check_upgrade(const hf_players *p, const hf_hold *one, const hf_hold *other,
                          hf_report *r)
{
    bool covered = one->had && one->answered < other->asked &&
                   hf_hold_end(p, one) > other->answered && other->answered != 0;
    covered =
        covered && hf_players_took(p, one->names, one->asked, other->answered) == NULL;
    bool answer = other->had || strcmp(other->err, "HF_TAKEN") == 0;
    if (one->mode == 's' && other->mode == 'x' && covered && answer)
        hf_broken(r, RULE_S12, "%s: %s shares it and asked to be alone: %s", one->names,
                  one->owner, other->err);
}

static int by_owner(const void *a, const void *b)
{
    const hf_hold *x = *(hf_hold *const *)a, *y = *(hf_hold *const *)b;
    int order = strcmp(x->owner, y->owner);
    order = order == 0 ? strcmp(x->names, y->names) : order;
    if (order != 0)
        return order;
    return x->asked < y->asked ? -1 : x->asked > y->asked;
}

static bool same_lock(const hf_hold *a, const hf_hold *b)
{
    return a->owner[0] != '\0' && strcmp(a->owner, b->owner) == 0 &&
           strcmp(a->names, b->names) == 0;
}

static void check_upgrades(const hf_players *p, hf_report *r)
{
    const hf_hold **list = calloc(p->n_holds + 1, sizeof *list);
    const hf_hold *shares = NULL; /* the one that lasts longest */
    HF_ASSERT(list != NULL);
    for (size_t i = 0; i < p->n_holds; i++)
        list[i] = &p->holds[i];
    qsort((void *)list, p->n_holds, sizeof *list, by_owner);
    for (size_t i = 0; i < p->n_holds; i++) {
        if (shares != NULL && !same_lock(shares, list[i]))
            shares = NULL;
        if (shares != NULL)
            check_upgrade(p, shares, list[i], r);
        if (list[i]->mode == 's' && list[i]->had &&
            (shares == NULL || hf_hold_end(p, list[i]) > hf_hold_end(p, shares)))
            shares = list[i];
    }
    free((void *)list);
}

/* ---- O3: how soon a grant is heard ---- */

/* A lost message makes a grant late by a third of a lease: with long leases by seconds.
 * A busy machine makes grants late too, and timers with them; but it may leave a single
 * thread waiting for 300 ms while timers run on time. */
enum { HEARD_US = 500000 };

static bool was_disturbed(const hf_players *p, unsigned player, uint64_t from,
                          uint64_t to)
{
    for (size_t i = 0; i < p->n_disturbed; i++) {
        const hf_disturbed *d = &p->disturbed[i];
        if ((d->player == 0 || d->player == player) && d->from <= to && d->to >= from)
            return true;
    }
    return false;
}

/* By how much the timer that was the latest in this time ran late. */
static uint64_t lateness_us(const hf_players *p, uint64_t from, uint64_t to)
{
    uint64_t most = 0, *each = calloc(p->timers + 1, sizeof *each);
    HF_ASSERT(each != NULL);
    for (size_t i = 0; i < p->n_late; i++) {
        const hf_late *l = &p->late[i];
        uint64_t begin = l->from > from ? l->from : from, end = l->to < to ? l->to : to;
        uint64_t *sum = &each[l->timer];
        *sum += end > begin ? end - begin : 0;
        most = *sum > most ? *sum : most;
    }
    free(each);
    return most / 1000;
}

/* A fence is the time of the grant in us, of the first one of its owner; a later one
 * cannot have been heard of before it was asked for. */
static void check_heard(const hf_players *p, const hf_hold *h, hf_report *r)
{
    uint64_t asked_us = (h->answered - h->asked) / 1000;
    uint64_t heard_us = h->wall_us > h->fence ? h->wall_us - h->fence : 0;
    heard_us = heard_us < asked_us ? heard_us : asked_us;
    uint64_t granted = h->answered - heard_us * 1000;
    if (h->wall_us == 0 || was_disturbed(p, h->player, granted, h->answered))
        return;
    r->heard++;
    if (heard_us > r->heard_last_us)
        r->heard_last_us = heard_us;
    if (heard_us <= HEARD_US)
        return;
    r->heard_late++;
    if (heard_us > HEARD_US + lateness_us(p, granted, h->answered))
        hf_broken(r, RULE_O3,
                  "%s: player %u (%" PRIu64 ") heard of fence %" PRIu64 " after %" PRIu64
                  " us",
                  h->names, h->player, h->id, h->fence, heard_us);
}

void hf_check_verdicts(const hf_players *p, hf_report *r)
{
    grant *list;
    size_t n = list_grants(p, &list);
    if (n > 0) {
        qsort(list, n, sizeof *list, by_fence);
        find_equals(list, n, r);
        qsort(list, n, sizeof *list, by_asked);
        find_falling(list, n, r);
    }
    free(list);
    for (size_t i = 0; i < p->n_holds; i++)
        if (p->holds[i].had) {
            check_owner(p, &p->holds[i], r);
            check_heard(p, &p->holds[i], r);
        }
    if (p->n_holds > 0)
        check_upgrades(p, r);
}
