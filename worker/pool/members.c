/* members.c - worker/pool/members.h. */
#include "worker/pool/members.h"

#include <stdlib.h>

bool hf_member_serves(const hf_member *m)
{
    return !m->stopped && hf_child_takes_jobs(m->child);
}

bool hf_member_is_alive(const hf_member *m)
{
    return !m->stopped && hf_child_state_of(m->child) <= HF_CHILD_CANCELLING &&
           (!m->joined || hf_child_ready_ns(m->child) != 0);
}

bool hf_member_is_open(const hf_member *m)
{
    return !m->stopped && !hf_member_serves(m);
}

bool hf_member_is_unjudged(const hf_member *m)
{
    return !m->stopped && hf_child_state_of(m->child) > HF_CHILD_CANCELLING &&
           hf_child_ready_ns(m->child) == 0;
}

bool hf_member_is_worn(const hf_member *m)
{
    return m->worn && hf_member_is_alive(m);
}

bool hf_member_has_joined(const hf_member *m)
{
    return m->joined && hf_member_serves(m);
}

size_t hf_members_count(const hf_member *list, bool (*is)(const hf_member *m))
{
    size_t n = 0;
    for (const hf_member *m = list; m != NULL; m = m->next)
        n += is(m) ? 1 : 0;
    return n;
}

void hf_member_stop(hf_member *m, const char *because)
{
    if (m->because == NULL)
        m->because = because;
    m->stopped = true;
    hf_child_stop(m->child);
}

void hf_member_count_end(const hf_member *m, hf_counters *counters, const char *pool,
                         bool wanted, bool failed)
{
    const char *why = wanted ? "left" : failed ? "start_failed" : "died";
    hf_counters_process_ended(counters, pool, m->because != NULL ? m->because : why);
}

void hf_members_remove(hf_member **list, hf_member *gone)
{
    hf_member **at = list;
    while (*at != gone)
        at = &(*at)->next;
    *at = gone->next;
    free(gone);
}
