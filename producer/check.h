/* check.h - everything that can be wrong with a call's jobs, found before any is taken.
 */
#ifndef HF_PRODUCER_CHECK_H
#define HF_PRODUCER_CHECK_H

#include "producer/submit.h"

/* What the jobs of a call may be, from the producer's options. */
typedef struct hf_bounds {
    uint32_t payload_max;
    uint32_t buffer_jobs;
    size_t buffer_bytes;
} hf_bounds;

/* Checks n jobs; then *bytes is what they take at most, and *one_queue whether they are
 * all of one. HF_INVALID or HF_TOOBIG: `detail` says which job, what was expected and
 * what was found. */
HF_MUSTCHECK hf_err hf_check_jobs(const hf_bounds *bounds, const hf_job *jobs, size_t n,
                                  size_t *bytes, bool *one_queue,
                                  char detail[HF_DETAIL_SIZE]);

/* Puts the defaults in and checks what the client does not check itself. `out` borrows
 * `server`. */
HF_MUSTCHECK hf_err hf_check_opts(const hf_producer_opts *in, hf_producer_opts *out,
                                  hf_server_opts *server, char detail[HF_DETAIL_SIZE]);

/* Writes a detail text, which may be NULL, and gives err back. */
hf_err hf_say(char detail[HF_DETAIL_SIZE], hf_err err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

size_t hf_job_bytes(const hf_job *job); /* what a job that was checked takes at most */
const char *hf_job_queue(const hf_job *job); /* its name, also of the default one */

#endif
