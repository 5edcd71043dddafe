/* undated.h - which undated leases of a queue are over.
 *
 * A check makes leases undated if Redis's clock does not tell when they are over, with a
 * number that rises (check.lua). A renewal dates a lease again. So the leases that are
 * still undated, with a number that was told a whole lease ago, are over. A worker hears
 * of one number with each of its checks, hence of few within a lease. Belongs to the
 * loop. */
#ifndef HF_WORKER_UNDATED_H
#define HF_WORKER_UNDATED_H

#include <stddef.h>
#include <stdint.h>

enum { HF_UNDATED_KNOWN = 4 };

/* Zero: it knows of none. */
typedef struct hf_undated {
    struct hf_undated_number {
        int64_t number;
        uint64_t over_ns;      /* boot time */
    } known[HF_UNDATED_KNOWN]; /* both rise */
    size_t n;
} hf_undated;

/* A check was answered: the highest number, 0: no lease is undated. What has this number
 * now, or a lower one, is over at that time. */
void hf_undated_told(hf_undated *undated, int64_t number, uint64_t over_ns);
/* The highest number that is over; 0: none. */
int64_t hf_undated_over(hf_undated *undated, uint64_t boot_ns);
/* When more will be over, after this time; 0: no more is known. */
uint64_t hf_undated_next_ns(const hf_undated *undated, uint64_t after_ns);

#endif
