/* gather_locks.c - see gather_locks.h. */
#include "seen/gather_locks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

enum { LOCKS = 1000, ENTRIES = 1000 };

typedef struct names {
    size_t n;
    char at[2 * LOCKS][HF_LOCK_NAME_MAX + 1]; /* some of them twice */
} names;

static bool on_name(const char *name, void *arg)
{
    names *list = arg;
    (void)snprintf(list->at[list->n++], sizeof list->at[0], "%s", name);
    return list->n < HF_COUNT(list->at);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static bool is_earlier(int64_t a, int64_t b)
{
    return a != 0 && (b == 0 || a < b);
}

static void read_entries(const hf_lock_look *look, hf_facts_lock *out)
{
    for (size_t i = 0; i < look->n; i++) {
        const hf_lock_entry *e = hf_lock_look_entry(look, i);
        if (!e->granted && is_earlier(e->since_ms, out->waits_ms))
            out->waits_ms = e->since_ms;
        if (e->granted && is_earlier(e->ends_ms, out->ends_ms)) {
            out->ends_ms = e->ends_ms;
            out->lease_ms = e->lease_ms;
            (void)snprintf(out->holder, sizeof out->holder, "%s", e->client);
        }
        if (e->granted && is_earlier(e->since_ms, out->held_ms)) {
            out->held_ms = e->since_ms;
            (void)snprintf(out->keeper, sizeof out->keeper, "%s", e->client);
        }
    }
    out->holders = look->holders;
    out->waiting = look->all - look->holders;
}

static void look_at(hf_lock_client *locks, const char *name, hf_facts *facts)
{
    hf_lock_look look = {HF_LOCK_LOOK_INIT};
    hf_err err = hf_lock_look_at(locks, name, ENTRIES, &look, NULL);
    if (err == HF_OK && look.all > 0) {
        hf_facts_lock *out = &facts->locks[facts->n_locks++];
        *out = (hf_facts_lock){.waiting = 0};
        (void)snprintf(out->name, sizeof out->name, "%s", name);
        read_entries(&look, out);
    }
    hf_lock_look_done(&look);
}

static int by_name(const void *name, const void *lock)
{
    return strcmp(name, ((const hf_facts_lock *)lock)->name);
}

/* NULL: it has to be asked for. */
static const hf_facts_lock *kept_of(const hf_gather_opts *opts, const char *name)
{
    const hf_facts *before = opts->before;
    return before == NULL || !opts->locks_kept || before->n_locks == 0
               ? NULL
               : bsearch(name, before->locks, before->n_locks, sizeof *before->locks,
                         by_name);
}

static void find_names(const hf_gather_opts *opts, hf_facts *facts, names *list)
{
    const hf_facts *before = opts->before;
    hf_err err = HF_OK;
    for (size_t i = 0; before != NULL && i < before->n_locks; i++)
        (void)on_name(before->locks[i].name, list);
    if (before != NULL)
        memcpy(facts->locks_place, before->locks_place, sizeof facts->locks_place);
    if (before == NULL || !opts->locks_kept || facts->locks_place[0] != '\0')
        err = hf_lock_list_for(opts->locks, facts->locks_place, opts->locks_ms, on_name,
                               list, NULL);
    if (err != HF_OK && err != HF_TIMEOUT)
        list->n = 0;
    if (list->n > 0)
        qsort(list->at, list->n, sizeof list->at[0], by_text);
}

bool hf_gather_locks(const hf_gather_opts *opts, hf_facts *facts)
{
    names *list = calloc(1, sizeof *list);
    facts->locks = calloc(LOCKS, sizeof *facts->locks);
    if (list == NULL || facts->locks == NULL) {
        free(list);
        return false;
    }
    find_names(opts, facts, list);
    for (size_t i = 0; i < list->n && facts->n_locks < LOCKS; i++) {
        const hf_facts_lock *kept = kept_of(opts, list->at[i]);
        if (i > 0 && strcmp(list->at[i - 1], list->at[i]) == 0)
            continue;
        if (kept != NULL)
            facts->locks[facts->n_locks++] = *kept;
        else
            look_at(opts->locks, list->at[i], facts);
    }
    free(list);
    return true;
}
