/* private_redis.h - a private redis-server that lives as long as this process.
 *
 * It listens on a unix socket in a new directory under $TMPDIR or /tmp, has a session of
 * its own (an interrupt from the terminal does not reach it), and is killed by the kernel
 * when the thread that started it ends: start it from the main thread. Only that one
 * process is ever ended. */
#ifndef HF_BENCH_PRIVATE_REDIS_H
#define HF_BENCH_PRIVATE_REDIS_H

#include <stdbool.h>
#include <sys/types.h>

#include "holdfast/error.h"

enum { HF_PRIVATE_DIR_SIZE = 80, HF_PRIVATE_URL_SIZE = HF_PRIVATE_DIR_SIZE + 24 };

typedef struct hf_private_redis {
    pid_t pid;                     /* 0: none */
    char dir[HF_PRIVATE_DIR_SIZE]; /* "": none */
    char url[HF_PRIVATE_URL_SIZE]; /* "unix:///tmp/holdfast-.../redis.sock" */
} hf_private_redis;

/* Starts it and waits until it answers. aof: with an append-only file; otherwise nothing
 * is written to disk. HF_SYSTEM, and `detail` says why: it was not found, or did not come
 * up; then there is nothing to stop. */
HF_MUSTCHECK hf_err hf_private_redis_start(hf_private_redis *redis, bool aof,
                                           char detail[HF_DETAIL_SIZE]);

/* Ends it and removes its directory. Fine for one that was stopped or is all zero. */
void hf_private_redis_stop(hf_private_redis *redis);

#endif
