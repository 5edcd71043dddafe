/* readings.h - a worker reads the clocks of the queues in which jobs run, so that the
 * leases of dead holders are found over (queue/lua/lib/readings.lua). What it has read is
 * shown with the next request, and then belongs to its machine. Belongs to the loop. */
#ifndef HF_WORKER_SOURCE_READINGS_H
#define HF_WORKER_SOURCE_READINGS_H

#include "worker/queues/bundle.h"

/* The answer to a check, or to a read, of these queues of the bundle; also plans the next
 * read. shortest_ms: the shortest lease in them; 0: as before. */
void hf_readings_answered(hf_bundle *b, hf_served *const *queues,
                          const hf_read_queue *read, size_t n, int64_t now_ms,
                          uint32_t shortest_ms);
/* A claim of a queue of this bundle has brought jobs. */
void hf_readings_expect(hf_bundle *b);
/* Reads, if it is time to. */
void hf_readings_send(hf_bundle *b);
/* As whose machine a worker asks, now. */
hf_asker hf_readings_asker(const hf_worker *w);

#endif
