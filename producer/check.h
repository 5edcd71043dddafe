/* check.h - everything that can be wrong with a call's jobs, found before any is taken.
 */
#ifndef HF_PRODUCER_CHECK_H
#define HF_PRODUCER_CHECK_H

#include "producer/submit.h"

/* The limits on the jobs of a call, from the producer's options. */
typedef struct hf_bounds {
    uint32_t payload_max;
    uint32_t buffer_jobs;
    size_t buffer_bytes;
} hf_bounds;

/* Checks n jobs; then *bytes is their greatest size in a request, and *one_queue whether
 * they have the same queue. HF_INVALID or HF_TOOBIG: `detail` says which job, what was
 * expected and what was found. */
HF_MUSTCHECK hf_err hf_check_jobs(const hf_bounds *bounds, const hf_job *jobs, size_t n,
                                  size_t *bytes, bool *one_queue,
                                  char detail[HF_DETAIL_SIZE]);

/* Puts the defaults in and checks what the client does not check itself. `out` borrows
 * `server`. */
HF_MUSTCHECK hf_err hf_check_opts(const hf_producer_opts *in, hf_producer_opts *out,
                                  hf_server_opts *server, char detail[HF_DETAIL_SIZE]);

size_t hf_check_job_bytes(
    const hf_job *job); /* the greatest size of a checked job in a request */
const char *hf_check_job_queue(const hf_job *job); /* its name, also of the default one */

#endif
