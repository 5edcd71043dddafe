/* bare.h - the bare loop, which the library is measured against: one blocking connection
 * and the queue's scripts. Not thread-safe. */
#ifndef HF_BENCH_BARE_H
#define HF_BENCH_BARE_H

#include <stddef.h>
#include <stdint.h>

#include "holdfast/error.h"

typedef struct hf_bare hf_bare;

/* Where Redis is, which queue, and what its jobs carry (copied). All that can be made
 * ready is made ready here. The caller ends *out with hf_bare_close(). Of every fault,
 * `detail` says why; of later ones, hf_bare_detail(). */
HF_MUSTCHECK hf_err hf_bare_open(hf_bare **out, const char *url,
                                 const char *password_file, const char *ns,
                                 const char *queue, const void *payload,
                                 size_t payload_len, char detail[HF_DETAIL_SIZE]);
void hf_bare_close(hf_bare *bare); /* NULL is fine */
const char *hf_bare_detail(const hf_bare *bare);

/* n jobs in batches of `batch`, one call after the other. */
HF_MUSTCHECK hf_err hf_bare_enqueue(hf_bare *bare, size_t n, size_t batch);

/* Claims and completes until n jobs are done, so many at a time. */
HF_MUSTCHECK hf_err hf_bare_process(hf_bare *bare, size_t n, size_t batch);

/* Blocks on the baton and claims, until one job is there: when that was is *picked_ns
 * (hf_boot_ns). */
HF_MUSTCHECK hf_err hf_bare_pick_up(hf_bare *bare, uint64_t *picked_ns);
/* Completes it. */
HF_MUSTCHECK hf_err hf_bare_put_down(hf_bare *bare);

#endif
