/* options.c - see options.h. */
#include "cli/options.h"

#include "cli/limits.h"
#include "holdfast/lock.h"

#define LIMIT_OPT                                                                        \
    {                                                                                    \
        .name = "limit", .kind = HF_OPT_INT, .value = "N", .min = 1, .max = 1000,        \
        .help = "at most so many jobs; 50"                                               \
    }
#define AFTER_OPT                                                                        \
    {                                                                                    \
        .name = "after", .kind = HF_OPT_TEXT, .value = "ID",                             \
        .help = "go on after this job: the last one of the page before"                  \
    }
#define FIND_OPT                                                                         \
    {                                                                                    \
        .name = "queue", .letter = 'q', .kind = HF_OPT_TEXT, .value = "Q",               \
        .help = "the queue it is in; needed only where several have a job of that id"    \
    }
#define YES_OPT                                                                          \
    {                                                                                    \
        .name = "yes", .help = "do it without asking; needed where there is no terminal" \
    }
#define DEAD_FILTER_OPTS                                                                 \
    {.name = "type",                                                                     \
     .kind = HF_OPT_TEXT,                                                                \
     .value = "TYPE",                                                                    \
     .help = "only jobs of this type"},                                                  \
    {                                                                                    \
        .name = "since", .kind = HF_OPT_DURATION, .value = "DURATION",                   \
        .max = HF_DELAY_MAX_MS, .help = "only jobs that died within so long"             \
    }
#define DEAD_MANY_OPT                                                                    \
    {                                                                                    \
        .name = "limit", .kind = HF_OPT_INT, .value = "N", .min = 1, .max = 10000000,    \
        .help = "at most so many jobs, those that died first; all"                       \
    }

const hf_opt hf_opts_limit[] = {
    {.name = "max-running",
     .kind = HF_OPT_INT,
     .value = "N",
     .max = 1000000,
     .help = "jobs of it that run at the same time, across all workers; 0: no limit"},
    {.name = "rate",
     .kind = HF_OPT_TEXT,
     .value = "N/DURATION",
     .help = "jobs of it that are started in a time, for example 100/1s; 0: no limit"},
    HF_OPT_END,
};
const hf_opt hf_opts_purge[] = {YES_OPT, HF_OPT_END};
const hf_opt hf_opts_queue_list[] = {
    {.name = "limit",
     .kind = HF_OPT_INT,
     .value = "N",
     .min = 1,
     .max = 1000,
     .help = "at most so many queues; 50"},
    {.name = "after",
     .kind = HF_OPT_TEXT,
     .value = "Q",
     .help = "go on after this queue: the last one of the page before"},
    HF_OPT_END,
};
const hf_opt hf_opts_workers[] = {
    {.name = "all",
     .help = "also those that went silent more than an hour ago; after a day they are "
             "forgotten"},
    {.name = "limit",
     .kind = HF_OPT_INT,
     .value = "N",
     .min = 1,
     .max = 1000,
     .help = "at most so many workers; 50"},
    {.name = "after",
     .kind = HF_OPT_TEXT,
     .value = "ID",
     .help = "go on after this worker: the last one of the page before"},
    HF_OPT_END,
};
const hf_opt hf_opts_show[] = {
    FIND_OPT,
    {.name = "payload", .help = "print the payload, as it is, and nothing else"},
    HF_OPT_END,
};
const hf_opt hf_opts_find[] = {FIND_OPT, HF_OPT_END};
const hf_opt hf_opts_cancel[] = {
    FIND_OPT,
    {.name = "wait",
     .help = "until it has ended: cancelled or done (exit 0), or dead (exit 1)"},
    HF_OPT_END,
};
const hf_opt hf_opts_delete[] = {FIND_OPT, YES_OPT, HF_OPT_END};
const hf_opt hf_opts_list[] = {
    HF_OPT_QUEUE,
    {.name = "state",
     .kind = HF_OPT_CHOICE,
     .value = "STATE",
     .choices = "ready|delayed|retry|running|dead",
     .help = "ready, delayed, retry (delayed after a failed attempt), running or dead; "
             "all of them if it is not named"},
    LIMIT_OPT,
    AFTER_OPT,
    HF_OPT_END,
};
const hf_opt hf_opts_dead_list[] = {
    HF_OPT_QUEUE, DEAD_FILTER_OPTS, LIMIT_OPT, AFTER_OPT, HF_OPT_END,
};
const hf_opt hf_opts_dead_retry[] = {
    HF_OPT_QUEUE,
    DEAD_FILTER_OPTS,
    DEAD_MANY_OPT,
    {.name = "rate",
     .kind = HF_OPT_TEXT,
     .value = "N/s",
     .help = "they become due one after the other, so many in a second; all at once"},
    HF_OPT_END,
};
const hf_opt hf_opts_dead_purge[] = {
    HF_OPT_QUEUE, DEAD_FILTER_OPTS, DEAD_MANY_OPT, YES_OPT, HF_OPT_END,
};

/* ---- locks ---- */

#define OWNER_OPT                                                                        \
    {                                                                                    \
        .name = "owner", .kind = HF_OPT_TEXT, .value = "OWNER",                          \
        .help = "the owner whose it is"                                                  \
    }

const hf_opt hf_opts_lock[] = {
    {.name = "exclusive", .letter = 'x', .help = "nobody else at the same time; usual"},
    {.name = "shared",
     .letter = 's',
     .help = "beside others that share it; waits for an exclusive one before it"},
    {.name = "permits",
     .kind = HF_OPT_TEXT,
     .value = "K/N",
     .help = "K of N permits: a semaphore"},
    {.name = "nonblock",
     .also = "nb|nonblocking",
     .letter = 'n',
     .help = "do not wait for a holder; a lease that seems over is proved to be"},
    {.name = "wait",
     .also = "timeout",
     .letter = 'w',
     .kind = HF_OPT_TEXT,
     .value = "SECONDS",
     .help = "wait no longer than this: 10, 2.5, 0; for ever if it is not given"},
    {.name = "conflict-exit-code",
     .letter = 'E',
     .kind = HF_OPT_INT,
     .value = "CODE",
     .max = 255,
     .help = "what to exit with when it was not to be had; 1"},
    {.name = "ttl",
     .kind = HF_OPT_DURATION,
     .value = "DURATION",
     .min = HF_LOCK_GUARD_LEASE_MIN_MS,
     .max = HF_LOCK_LEASE_MAX_MS,
     .help = "its lease, which is renewed at a third: how long others wait when this "
             "machine dies; 30s"},
    {.name = "grace",
     .kind = HF_OPT_DURATION,
     .value = "DURATION",
     .max = HF_LOCK_LEASE_MAX_MS / 2,
     .help = "TERM comes so long before KILL when the lock is being lost; a quarter of "
             "--ttl, at most 5s"},
    {.name = "max-hold",
     .kind = HF_OPT_DURATION,
     .value = "DURATION",
     .min = 1,
     .max = HF_LOCK_LEASE_MAX_MS,
     .help = "it is lost after so long"},
    {.name = "wait-replicas",
     .kind = HF_OPT_INT,
     .value = "K",
     .max = 100,
     .help = "K replicas must have it, or it is not taken (exit 75)"},
    {.name = "fair", .help = "in order of arrival; usual"},
    {.name = "spin",
     .help = "a plain SET NX PX, asked for again and again: no order; for locks that "
             "others take like that"},
    {.name = "verbose", .letter = 'v', .help = "say what happens to the lock"},
    HF_OPT_END,
};
const hf_opt hf_opts_locks_list[] = {
    {.name = "limit",
     .kind = HF_OPT_INT,
     .value = "N",
     .min = 1,
     .max = 1000,
     .help = "at most so many locks; 50"},
    {.name = "after",
     .kind = HF_OPT_TEXT,
     .value = "NAME",
     .help = "go on after this name: the last one of the page before"},
    HF_OPT_END,
};
const hf_opt hf_opts_locks_show[] = {
    {.name = "limit",
     .kind = HF_OPT_INT,
     .value = "N",
     .min = 1,
     .max = 1000,
     .help = "at most so many holders and waiters; 50"},
    HF_OPT_END,
};
const hf_opt hf_opts_locks_release[] = {
    {.name = "force", .help = "take it away from who holds it"},
    OWNER_OPT,
    YES_OPT,
    HF_OPT_END,
};
const hf_opt hf_opts_locks_revoke[] = {OWNER_OPT, HF_OPT_END};
const hf_opt hf_opts_fence_check[] = {
    {.name = "owner",
     .kind = HF_OPT_TEXT,
     .value = "OWNER",
     .help = "whose fence it is, as in $HOLDFAST_LOCK_OWNER; needed"},
    {.name = "remember",
     .kind = HF_OPT_DURATION,
     .value = "DURATION",
     .min = 1000,
     .max = HF_DELAY_MAX_MS,
     .help = "for how long the highest fence is remembered; for ever"},
    HF_OPT_END,
};
