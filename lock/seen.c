/* seen.c - see seen.h. */
#include "lock/seen.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

void hf_seen_of(hf_seen *seen, uint64_t witness, unsigned epoch)
{
    if (seen->witness != witness || seen->epoch != epoch)
        seen->n = 0;
    seen->witness = witness;
    seen->epoch = epoch;
}

/* Forgets the reading that is missed least: old ones may be further apart than new ones.
 */
static void drop_one(hf_seen *seen, uint64_t now_ns)
{
    size_t least = 1;
    double least_gap = 0;
    for (size_t i = 1; i + 1 < seen->n; i++) {
        double gap = (double)(seen->at[i + 1].read_ns - seen->at[i - 1].read_ns) /
                     (double)(now_ns - seen->at[i].read_ns + HF_MS_NS);
        if (i == 1 || gap < least_gap) {
            least = i;
            least_gap = gap;
        }
    }
    seen->n--;
    memmove(seen->at + least, seen->at + least + 1,
            (seen->n - least) * sizeof seen->at[0]);
}

void hf_seen_add(hf_seen *seen, uint64_t clock_ms, uint64_t read_ns)
{
    if (seen->n > 0 && clock_ms <= seen->at[seen->n - 1].clock_ms)
        return; /* the answer to an older request */
    if (seen->n == HF_SEEN_MAX)
        drop_one(seen, read_ns);
    seen->at[seen->n].clock_ms = clock_ms;
    seen->at[seen->n++].read_ns = read_ns;
}

const char *hf_seen_text(hf_seen *seen, uint64_t now_ns)
{
    size_t len = 0;
    seen->text[0] = '\0';
    for (size_t i = seen->n; i-- > 0;) {
        uint64_t age_ms =
            now_ns > seen->at[i].read_ns ? (now_ns - seen->at[i].read_ns) / HF_MS_NS : 0;
        int n = snprintf(seen->text + len, sizeof seen->text - len,
                         "%" PRIu64 ":%" PRIu64 " ", seen->at[i].clock_ms, age_ms);
        len += (size_t)n;
    }
    return seen->text;
}
