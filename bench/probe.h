/* probe.h - one blocking connection for the bench's own requests, without any library
 * under test. Not thread-safe. */
#ifndef HF_BENCH_PROBE_H
#define HF_BENCH_PROBE_H

#include <stdint.h>

#include "holdfast/error.h"

struct redisContext;
struct redisReply;

typedef struct hf_probe {
    struct redisContext *redis;  /* owned */
    char detail[HF_DETAIL_SIZE]; /* about the last fault */
} hf_probe;

/* HF_INVALID, HF_CONFIG, HF_CONN, HF_AUTH ...: then there is nothing to close. */
HF_MUSTCHECK hf_err hf_probe_open(hf_probe *probe, const char *url,
                                  const char *password_file);
void hf_probe_close(hf_probe *probe); /* also one that is all zero */

/* Keeps a sentence about what failed, and gives err back. */
hf_err hf_probe_fail(hf_probe *probe, hf_err err, const char *why);

/* A reply as hiredis gave it, or NULL. An error is freed, and *reply is NULL then. */
HF_MUSTCHECK hf_err hf_probe_check(hf_probe *probe, struct redisReply **reply);

/* Bytes that Redis has taken. The same connections must be there when two are compared.
 */
HF_MUSTCHECK hf_err hf_probe_memory(hf_probe *probe, int64_t *bytes);

/* The time that Redis has spent in scripts since it was started. */
HF_MUSTCHECK hf_err hf_probe_scripts(hf_probe *probe, double *ms);

/* The difference to add to hf_probe_wall_ns() for Redis's time. */
HF_MUSTCHECK hf_err hf_probe_clock(hf_probe *probe, int64_t *offset_ns);
int64_t hf_probe_wall_ns(void); /* Unix time of this machine, in ns */

/* Deletes every key that begins with `<ns>:`. */
HF_MUSTCHECK hf_err hf_probe_wipe(hf_probe *probe, const char *ns);

#endif
