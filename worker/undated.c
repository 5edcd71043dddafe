/* undated.c - worker/undated.h. */
#include "worker/undated.h"

#include <string.h>

void hf_undated_told(hf_undated *u, int64_t number, uint64_t over_ns)
{
    struct hf_undated_number *known = u->known;
    if (u->n > 0 && number < known[u->n - 1].number)
        u->n = 0; /* there is none, or Redis has other data */
    if (number == 0 || (u->n > 0 && number == known[u->n - 1].number))
        return;
    if (u->n ==
        HF_UNDATED_KNOWN) /* the last one's leases wait longer than they need to */
        u->n--;
    known[u->n].number = number;
    known[u->n].over_ns = over_ns;
    u->n++;
}

int64_t hf_undated_over(hf_undated *u, uint64_t boot_ns)
{
    while (u->n > 1 && u->known[1].over_ns <= boot_ns) {
        u->n--;
        memmove(u->known, u->known + 1, u->n * sizeof u->known[0]);
    }
    return u->n > 0 && u->known[0].over_ns <= boot_ns ? u->known[0].number : 0;
}

uint64_t hf_undated_next_ns(const hf_undated *u, uint64_t after_ns)
{
    for (size_t i = 0; i < u->n; i++)
        if (u->known[i].over_ns > after_ns)
            return u->known[i].over_ns;
    return 0;
}
