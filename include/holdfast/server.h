/* server.h - which Redis, and how to reach it.
 *
 * A program that opens a producer, a worker, a lock client and an admin object on one
 * Redis fills one hf_server_opts and gives its address to all of them. Each copies what
 * it needs before its call returns. */
#ifndef HOLDFAST_SERVER_H
#define HOLDFAST_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/error.h"
#include "holdfast/struct.h"
#include "holdfast/tls.h"

/* Zero means the default. Where these options are expected, NULL is all defaults. */
typedef struct hf_server_opts {
    size_t size;               /* HF_SERVER_OPTS_INIT */
    const char *url;           /* redis://[user[:password]@]host[:port][/db], the same
                                  with rediss:// (TLS), or
                                  unix://[user[:password]@]/path[?db=N];
                                  default redis://localhost:6379/0 */
    const char *password_file; /* its first line is the password, in place of the URL's */
    const char *ns; /* namespace, the first part of every key: "hf"; 1 to 128 characters
                       of [A-Za-z0-9._:-] */
    uint32_t connect_timeout_ms; /* from the name look-up to a usable connection: 5000;
                                    1..600000 */
    uint32_t request_timeout_ms; /* of a worker and a lock client: a request that is not
                                    answered by then is in doubt, and its connection is
                                    closed; 1000, 1..600000. Producers and admin objects
                                    have a deadline for each call instead */
    const hf_tls_opts *tls;      /* for rediss:// only; its own defaults */
} hf_server_opts;
#define HF_SERVER_OPTS_INIT HF_STRUCT_INIT(hf_server_opts)

/* The address of such options for one call, in C: HF_SERVER(.url = url). They live as
 * long as the block around it. */
#ifndef __cplusplus
#define HF_SERVER(...) (&(const hf_server_opts){HF_SERVER_OPTS_INIT, __VA_ARGS__})
#endif

/* What Redis reported about itself when the connection was made. Text that it did not
 * report is "". The library fills it. */
typedef struct hf_server_info {
    size_t size;      /* the library sets it */
    char version[24]; /* "7.0.15" */
    char run_id[48];  /* of this life of the server */
    char replid[48];  /* replication id: changes at a failover */
    char role[12];    /* "master" or "slave" */
    char policy[24];  /* maxmemory_policy; "" if INFO is not permitted */
    bool aof, rdb; /* whether it persists by an append-only file; by snapshots, of which
                      INFO shows only those that were made, loaded or begun */
    bool loading;
    bool aof_failed, rdb_failed;    /* the last write of the file failed: Redis may refuse
                                       writes (MISCONF) */
    int64_t used_memory, maxmemory; /* bytes; maxmemory 0: no limit, or not told */
    int64_t client_id;              /* of this connection */
} hf_server_info;

#ifdef __cplusplus
extern "C" {
#endif

/* Checks a URL without connecting: HF_OK or HF_INVALID with the reason in `detail` (may
 * be NULL). */
HF_API HF_MUSTCHECK hf_err hf_url_check(const char *url, char detail[HF_DETAIL_SIZE]);

#ifdef __cplusplus
}
#endif

#endif
