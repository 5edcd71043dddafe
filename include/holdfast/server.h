/* server.h - which Redis, and how to reach it.
 *
 * A program fills one hf_server_opts, and gives its address to each producer, worker,
 * lock client and hf_admin that uses this Redis. Each copies what it needs before its
 * call returns. */
#ifndef HOLDFAST_SERVER_H
#define HOLDFAST_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/error.h"
#include "holdfast/struct.h"
#include "holdfast/tls.h"

enum { HF_REPLICAS_MAX = 100 /* largest number of replicas that can be waited for */ };

/* How to log in at the Sentinels, which is not how to log in at Redis. NULL: without. */
typedef struct hf_sentinel_opts {
    size_t size;               /* HF_SENTINEL_OPTS_INIT */
    const char *user;          /* needs a password */
    const char *password_file; /* its first line is the password */
} hf_sentinel_opts;
#define HF_SENTINEL_OPTS_INIT HF_STRUCT_INIT(hf_sentinel_opts)

/* Zero means the default. Where these options are expected, NULL is all defaults. */
typedef struct hf_server_opts {
    size_t size;               /* HF_SERVER_OPTS_INIT */
    const char *url;           /* redis://[user[:password]@]host[:port][/db],
                                  unix://[user[:password]@]/path[?db=N],
                                  redis+sentinel://[user[:password]@]h1[:p1],h2[:p2]
                                  /master[/db] (1 to 16 Sentinels, which are asked where
                                  the primary of that name is),
                                  redis+cluster://[user[:password]@]h1[:p1],h2[:p2] (1 to
                                  16 nodes of a cluster, which know the others), or by TLS
                                  rediss://, rediss+sentinel:// and rediss+cluster:// (for
                                  all Sentinels and nodes); default
                                  redis://localhost:6379/0
                                */
    const char *password_file; /* its first line is the password, in place of the URL's */
    const char *ns; /* namespace, the first part of every key: "hf"; 1 to 128 characters
                       of [A-Za-z0-9._:-] */
    uint32_t connect_timeout_ms; /* from the name look-up, or the Sentinels, to a usable
                                    connection: 5000; 1..600000 */
    uint32_t request_timeout_ms; /* of a worker and a lock client: a request that is not
                                    answered by then is in doubt, and its connection is
                                    closed; 1000, 1..600000. Producers and admin objects
                                    have a deadline for each call instead */
    const hf_tls_opts *tls;      /* for TLS only; its own defaults */
    const hf_sentinel_opts *sentinel; /* for a URL with Sentinels only */
} hf_server_opts;
#define HF_SERVER_OPTS_INIT HF_STRUCT_INIT(hf_server_opts)

/* In C, the address of such options for one call: HF_SERVER(.url = url). They live until
 * the end of the block around it. */
#ifndef __cplusplus
#define HF_SERVER(...) (&(const hf_server_opts){HF_SERVER_OPTS_INIT, __VA_ARGS__})
#endif

/* What Redis reported about itself when the connection was made (within
 * hf_admin_servers(): now), filled by the library.
 * Text that Redis did not report is "". */
typedef struct hf_server_info {
    size_t size;      /* the library sets it */
    char version[24]; /* "7.0.15" */
    char run_id[48];  /* of this life of the server */
    char replid[48];  /* replication id: changes at a failover */
    char role[12];    /* "master" or "slave" */
    char policy[24];  /* maxmemory_policy; "" if INFO is not permitted */
    bool aof, rdb;    /* whether it keeps an append-only file; snapshots (INFO shows only
                         those that were made, loaded or begun) */
    bool loading;
    bool aof_failed, rdb_failed;    /* the last write of the file failed: Redis may refuse
                                       writes (MISCONF) */
    int64_t used_memory, maxmemory; /* bytes; maxmemory 0: no limit, or not reported */
    int64_t client_id;              /* of this connection */
    int64_t replicas;               /* connected; -1: not reported */
    bool in_cluster;                /* it is a node of a cluster */
    int64_t good_replicas; /* that min-replicas-to-write counts; -1: it is not set */
    /* 0 or less: not reported. */
    int64_t uptime_ms;
    int64_t clients, blocked_clients; /* connections; those that wait for an entry */
    int64_t commands;                 /* ever, since the server started, */
    int64_t cpu_ms;                   /* and the time of its processor */
} hf_server_info;

#ifdef __cplusplus
extern "C" {
#endif

/* Checks a URL without connecting: HF_OK or HF_INVALID. */
HF_API HF_MUSTCHECK hf_err hf_url_check(const char *url, char detail[HF_DETAIL_SIZE]);

/* Checks options without connecting: the URL, and the files that they name, which are
 * read. HF_INVALID (URL, options), HF_CONFIG (password file, TLS), HF_NOMEM, HF_SYSTEM,
 * with the reason in `detail` (may be NULL). */
HF_API HF_MUSTCHECK hf_err hf_server_opts_check(const hf_server_opts *opts,
                                                char detail[HF_DETAIL_SIZE]);

#ifdef __cplusplus
}
#endif

#endif
