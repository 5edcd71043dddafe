/* options.c - see options.h. */
#include "cli/options.h"

#include <limits.h>

#include "cli/complete.h"
#include "holdfast/lock.h"
#include "holdfast/worker.h"

#define LIMIT_OPT                                                                        \
    {                                                                                    \
        .name = "limit", .kind = HF_OPT_INT, .value = "N", .min = 1, .max = 1000,        \
        .help = "maximum number of jobs; default 50"                                     \
    }
#define AFTER_OPT                                                                        \
    {                                                                                    \
        .name = "after", .kind = HF_OPT_TEXT, .value = "ID",                             \
        .help =                                                                          \
            "continue here: what the previous page says at its end, or the id of its "   \
            "last job"                                                                   \
    }
#define FIND_OPT                                                                         \
    {                                                                                    \
        .name = "queue", .letter = 'q', .kind = HF_OPT_TEXT, .value = "Q",               \
        .help = "the queue of the job; needed only if several queues have a job with "   \
                "this id"                                                                \
    }
#define ALL_QUEUES_OPT                                                                   \
    {                                                                                    \
        .name = "queue", .letter = 'q', .kind = HF_OPT_TEXT, .value = "Q",               \
        .help = "only this queue; default all"                                           \
    }
#define DEAD_QUEUE_OPT                                                                   \
    {                                                                                    \
        .name = "queue", .letter = 'q', .kind = HF_OPT_TEXT, .value = "Q",               \
        .help = "only this queue; default all; with ID needed only if several queues "   \
                "have a job with this id"                                                \
    }
#define YES_OPT                                                                          \
    {                                                                                    \
        .name = "yes", .help = "do not ask for confirmation; needed without a terminal"  \
    }
#define DEAD_FILTER_OPTS                                                                 \
    {.name = "type",                                                                     \
     .kind = HF_OPT_TEXT,                                                                \
     .value = "TYPE",                                                                    \
     .help = "only jobs of this type"},                                                  \
        {.name = "error",                                                                \
         .kind = HF_OPT_TEXT,                                                            \
         .value = "TEXT",                                                                \
         .help = "only jobs with this error; numbers and ids in it may differ"},         \
    {                                                                                    \
        .name = "since", .kind = HF_OPT_DURATION, .value = "DURATION",                   \
        .max = HF_DELAY_MAX_MS, .help = "only jobs that died within this time"           \
    }
#define DEAD_MANY_OPT                                                                    \
    {                                                                                    \
        .name = "limit", .kind = HF_OPT_INT, .value = "N", .min = 1, .max = 10000000,    \
        .help = "maximum number of jobs, the oldest deaths first; default all"           \
    }

#define LATE_OPT                                                                         \
    {                                                                                    \
        .name = "late", .alike = "threshold|warn|max-wait", .kind = HF_OPT_DURATION,     \
        .value = "DURATION", .min = 1000, .max = 30 * HF_DAY_MS,                         \
        .help = "a ready job that waits for this long is late; it is bad after ten "     \
                "times of it; default 1m"                                                \
    }
#define LISTEN_OPT(where)                                                                \
    {                                                                                    \
        .name = "listen", .alike = "bind|addr|address|port", .kind = HF_OPT_TEXT,        \
        .value = "WHERE",                                                                \
        .help = "ADDRESS:PORT or unix:PATH; default " where                              \
                ". An address that others can reach needs --token-file"                  \
    }
#define TOKEN_OPTS                                                                       \
    {.name = "host",                                                                     \
     .alike = "server-name|domain|name",                                                 \
     .kind = HF_OPT_TEXT,                                                                \
     .value = "NAME",                                                                    \
     .many = true,                                                                       \
     .help = "another name under which browsers reach it, as that of a proxy; may be "   \
             "given again"},                                                             \
        {.name = "token-file",                                                           \
         .alike = "token|password-file|auth",                                            \
         .kind = HF_OPT_TEXT,                                                            \
         .value = "FILE",                                                                \
         .help = "a file with lines `read TOKEN` or `change TOKEN`, mode 0600; read "    \
                 "again on HUP"},                                                        \
    {                                                                                    \
        .name = "group", .kind = HF_OPT_TEXT, .value = "GROUP",                          \
        .help = "the group that may use the unix socket"                                 \
    }

const hf_opt hf_opts_enqueue[] = {
    HF_OPT_QUEUE,
    {.name = "in",
     .alike = "delay|after",
     .kind = HF_OPT_DURATION,
     .value = "DURATION",
     .max = HF_DELAY_MAX_MS,
     .help = "delay the job by this long: 10s, 5m, 1h30m, 1d"},
    {.name = "at",
     .alike = "time|when|eta",
     .kind = HF_OPT_TIME,
     .value = "TIME",
     .help =
         "start it no earlier than this: 2030-01-31T08:00:00Z, or @SECONDS since 1970"},
    {.name = "id",
     .alike = "job-id",
     .kind = HF_OPT_TEXT,
     .value = "ID",
     .help = "the job's id; while a job with this id exists, no second one is accepted: "
             "exit 73 if that job is dead"},
    {.name = "replace-dead",
     .help = "with --id: remove a dead job with this id, and accept this one"},
    {.name = "headers",
     .kind = HF_OPT_TEXT,
     .value = "JSON",
     .help = "what the code around its handler needs, such as a tenant or a trace: an "
             "object of texts, '{\"tenant\":\"7\"}'"},
    {.name = "traceparent",
     .alike = "trace",
     .kind = HF_OPT_TEXT,
     .value = "TEXT",
     .help = "the W3C trace of the job, unless its headers name one; default the "
             "environment variable TRACEPARENT"},
    HF_OPTS_OF_JOBS,
    {.name = "unique",
     .alike = "unique-key|dedup",
     .kind = HF_OPT_TEXT,
     .value = "KEY",
     .help = "accept it only if no other job of its queue holds this key, a text"},
    {.name = "unique-until",
     .kind = HF_OPT_CHOICE,
     .value = "WHEN",
     .choices = "start|done|end",
     .help = "hold the key until it starts, is done, or ends (is done or dead); default "
             "end"},
    {.name = "unique-for",
     .kind = HF_OPT_DURATION,
     .value = "DURATION",
     .min = 1,
     .max = HF_DELAY_MAX_MS,
     .help = "hold the key for at least this long after its acceptance"},
    {.name = "on-conflict",
     .kind = HF_OPT_CHOICE,
     .value = "ACTION",
     .choices = "skip|replace|next|cancel",
     .help =
         "if the key is taken: skip this job (default); replace the holder while it "
         "waits; run it next, when the holder has ended; or cancel the holder as well"},
    {.name = "debounce",
     .kind = HF_OPT_DURATION,
     .value = "DURATION",
     .min = 1,
     .max = HF_DELAY_MAX_MS,
     .help =
         "start it this long after the last job with its key, which replaces the ones "
         "before; needs --unique and --max-wait"},
    {.name = "max-wait",
     .kind = HF_OPT_DURATION,
     .value = "DURATION",
     .min = 1,
     .max = HF_DELAY_MAX_MS,
     .help = "with --debounce: at the latest this long after the first of them"},
    {.name = "throttle",
     .kind = HF_OPT_DURATION,
     .value = "DURATION",
     .min = 1,
     .max = HF_DELAY_MAX_MS,
     .help = "accept one job with its key in this time, and skip the others; needs "
             "--unique"},
    {.name = "wait",
     .alike = "sync",
     .help =
         "wait until the job is done (exit 0), or dead, cancelled, deleted or expired "
         "(exit 1); 76: unknown"},
    {.name = "result",
     .help =
         "with --wait: print its result and nothing else; the job is kept for 10m, or "
         "as --keep says"},
    {.name = "wait-replicas",
     .kind = HF_OPT_INT,
     .value = "K",
     .max = HF_REPLICAS_MAX,
     .help = "succeed only when K replicas of Redis have the job as well, else exit 74; "
             "default redis.wait_replicas (0)"},
    {.name = "replicas-timeout",
     .kind = HF_OPT_DURATION,
     .value = "DURATION",
     .min = 1,
     .max = HF_WAIT_REPLICAS_MAX_MS,
     .help = "for how long; default redis.replicas_timeout (5s)"},
    {.name = "bulk",
     .alike = "batch|input",
     .kind = HF_OPT_TEXT,
     .value = "FILE|-",
     .help = "enqueue the jobs of a file, one JSON object per line"},
    {.name = "run",
     .kind = HF_OPT_TEXT,
     .value = "R",
     .help = "with --bulk: send the file again as the run R"},
    {.name = "quiet",
     .help = "with --bulk: print how many jobs were accepted, and no ids"},
    {.name = "atomic",
     .help = "with --bulk: accept all jobs or none; refuse more than one block, and ids "
             "of your own in a queue with shards"},
    HF_OPT_END,
};
const hf_opt hf_opts_limit[] = {
    {.name = "max-running",
     .kind = HF_OPT_INT,
     .value = "N",
     .max = 1000000,
     .help = "maximum number of its jobs that run at the same time, across all workers; "
             "0: no limit"},
    {.name = "rate",
     .kind = HF_OPT_TEXT,
     .value = "N/DURATION",
     .help = "maximum number of its jobs that start within a time, for example 100/1s; "
             "0: no limit"},
    HF_OPT_END,
};
const hf_opt hf_opts_purge[] = {YES_OPT, HF_OPT_END};
const hf_opt hf_opts_remove[] = {YES_OPT, HF_OPT_END};
const hf_opt hf_opts_queue_list[] = {
    {.name = "limit",
     .alike = "count|max",
     .kind = HF_OPT_INT,
     .value = "N",
     .min = 1,
     .max = 1000,
     .help = "maximum number of queues; default 50"},
    {.name = "after",
     .kind = HF_OPT_TEXT,
     .value = "Q",
     .help = "continue after this queue, the last one of the previous page"},
    HF_OPT_END,
};
const hf_opt hf_opts_stats[] = {
    {.name = "queue",
     .alike = "topic|tube|channel",
     .letter = 'q',
     .kind = HF_OPT_TEXT,
     .value = "Q",
     .help = "only this queue; default all"},
    {.name = "since",
     .alike = "last|window|for|period",
     .kind = HF_OPT_DURATION,
     .value = "DURATION",
     .min = 1,
     .max = HF_HISTORY_MAX_MS,
     .help = "how far back: 10m, 3h, at most 48h; default 1h"},
    {.name = "type",
     .alike = "job|name|task",
     .kind = HF_OPT_TEXT,
     .value = "TYPE",
     .help = "only this type of jobs"},
    HF_OPT_END,
};
const hf_opt hf_opts_runs[] = {
    {.name = "follow",
     .alike = "tail|watch",
     .letter = 'f',
     .help = "print what starts and ends, until ^C"},
    HF_OPT_END,
};
const hf_opt hf_opts_workers[] = {
    {.name = "all",
     .help = "include workers that went silent more than an hour ago; after a day they "
             "are forgotten"},
    {.name = "limit",
     .alike = "count|max",
     .kind = HF_OPT_INT,
     .value = "N",
     .min = 1,
     .max = 1000,
     .help = "maximum number of workers; default 50"},
    {.name = "after",
     .kind = HF_OPT_TEXT,
     .value = "ID",
     .help = "continue after this worker, the last one of the previous page"},
    HF_OPT_END,
};
const hf_opt hf_opts_show[] = {
    FIND_OPT,
    {.name = "payload", .help = "print only the payload, unchanged"},
    HF_OPT_END,
};
const hf_opt hf_opts_find[] = {FIND_OPT, HF_OPT_END};
const hf_opt hf_opts_edit[] = {
    FIND_OPT,
    {.name = "in",
     .alike = "delay|after",
     .kind = HF_OPT_DURATION,
     .value = "DURATION",
     .max = HF_DELAY_MAX_MS,
     .help = "start it after this long; 0s: now"},
    {.name = "at",
     .alike = "time|when|eta",
     .kind = HF_OPT_TIME,
     .value = "TIME",
     .help =
         "start it no earlier than this: 2030-01-31T08:00:00Z, or @SECONDS since 1970"},
    {.name = "priority",
     .kind = HF_OPT_CHOICE,
     .value = "LEVEL",
     .choices = "high|normal|low",
     .help = "its new priority"},
    HF_OPT_END,
};
const hf_opt hf_opts_logs[] = {
    FIND_OPT,
    {.name = "follow",
     .alike = "tail",
     .letter = 'f',
     .help = "go on with what the job prints, until it has ended"},
    HF_OPT_END,
};
const hf_opt hf_opts_cancel[] = {
    FIND_OPT,
    {.name = "wait",
     .alike = "sync",
     .help = "wait until it has ended: cancelled or done (exit 0), dead (exit 1); 76: "
             "unknown"},
    HF_OPT_END,
};
const hf_opt hf_opts_delete[] = {FIND_OPT, YES_OPT, HF_OPT_END};
const hf_opt hf_opts_list[] = {
    ALL_QUEUES_OPT,
    {.name = "state",
     .kind = HF_OPT_CHOICE,
     .value = "STATE",
     .choices = "ready|delayed|retry|running|dead|done|parked",
     .help =
         "ready, delayed, retry (delayed after a failed attempt), running, dead, "
         "done (those that are kept) or parked (those that follow the holder of their "
         "unique key); default all"},
    LIMIT_OPT,
    AFTER_OPT,
    HF_OPT_END,
};
const hf_opt hf_opts_dead_list[] = {
    ALL_QUEUES_OPT, DEAD_FILTER_OPTS, LIMIT_OPT, AFTER_OPT, HF_OPT_END,
};
const hf_opt hf_opts_dead_retry[] = {
    DEAD_QUEUE_OPT,
    DEAD_FILTER_OPTS,
    DEAD_MANY_OPT,
    {.name = "rate",
     .kind = HF_OPT_TEXT,
     .value = "N/s",
     .help = "make this many of each queue due per second, one after another; default "
             "all at once"},
    {.name = "yes",
     .help = "do not ask before the jobs of several queues are retried; needed without a "
             "terminal"},
    HF_OPT_END,
};
const hf_opt hf_opts_dead_purge[] = {
    DEAD_QUEUE_OPT, DEAD_FILTER_OPTS, DEAD_MANY_OPT, YES_OPT, HF_OPT_END,
};

/* ---- schedules ---- */

const hf_opt hf_opts_cron_list[] = {
    ALL_QUEUES_OPT,
    {.name = "limit",
     .alike = "count|max",
     .kind = HF_OPT_INT,
     .value = "N",
     .min = 1,
     .max = 1000,
     .help = "maximum number of schedules; default 50"},
    {.name = "after",
     .kind = HF_OPT_TEXT,
     .value = "ID",
     .help = "continue after this schedule, the last one of the previous page; without "
             "--queue it is QUEUE/ID"},
    HF_OPT_END,
};
#define FIND_SCHEDULE_OPT                                                                \
    {                                                                                    \
        .name = "queue", .letter = 'q', .kind = HF_OPT_TEXT, .value = "Q",               \
        .help = "the queue of the schedule; needed only if several queues have a "       \
                "schedule with this id"                                                  \
    }
const hf_opt hf_opts_cron_one[] = {FIND_SCHEDULE_OPT, HF_OPT_END};
const hf_opt hf_opts_cron_show[] = {
    FIND_SCHEDULE_OPT,
    {.name = "payload", .help = "print only the payload of its jobs, unchanged"},
    HF_OPT_END,
};
const hf_opt hf_opts_cron_add[] = {
    HF_OPT_QUEUE,
    {.name = "cron",
     .kind = HF_OPT_TEXT,
     .value = "EXPRESSION",
     .help = "when its jobs are due: minute hour day month weekday; see cron next"},
    {.name = "every",
     .alike = "interval|period",
     .kind = HF_OPT_DURATION,
     .value = "DURATION",
     .min = 100,
     .max = 3650 * HF_DAY_MS,
     .help = "or how often, from 1970 or --start on"},
    {.name = "tz",
     .alike = "timezone|zone",
     .kind = HF_OPT_TEXT,
     .value = "ZONE",
     .help = "the time zone of --cron: Europe/Berlin; default UTC"},
    {.name = "missed",
     .kind = HF_OPT_CHOICE,
     .value = "WHICH",
     .choices = "once|all|skip",
     .help = "ticks to make up for after an outage: once (the newest), all (those within "
             "--catch-up) or skip (none); default once"},
    {.name = "catch-up",
     .kind = HF_OPT_DURATION,
     .value = "DURATION",
     .min = 1,
     .max = 30 * HF_DAY_MS,
     .help = "with --missed all: their greatest age; default 1h"},
    {.name = "overlap",
     .kind = HF_OPT_CHOICE,
     .value = "WHAT",
     .choices = "skip|allow|cancel",
     .help = "while the job of the last tick is not over: skip the tick, allow a second "
             "job, or cancel the first; default skip"},
    {.name = "jitter",
     .kind = HF_OPT_DURATION,
     .value = "DURATION",
     .max = HF_DAY_MS,
     .help = "make each job due up to this much later, at random"},
    {.name = "start",
     .kind = HF_OPT_TIME,
     .value = "TIME",
     .help = "no tick before this time"},
    {.name = "end",
     .kind = HF_OPT_TIME,
     .value = "TIME",
     .help = "no tick after this time"},
    {.name = "limit",
     .alike = "count|max",
     .kind = HF_OPT_INT,
     .value = "N",
     .max = 1000000000,
     .help = "number of jobs after which it ends; 0: no limit"},
    HF_OPTS_OF_JOBS,
    HF_OPT_END,
};
const hf_opt hf_opts_cron_next[] = {
    {.name = "tz",
     .alike = "timezone|zone",
     .kind = HF_OPT_TEXT,
     .value = "ZONE",
     .help = "the time zone of the expression: Europe/Berlin; default UTC"},
    {.name = "from",
     .kind = HF_OPT_TIME,
     .value = "TIME",
     .help = "print the ticks after this time: 2030-01-31T08:00:00Z, or @SECONDS since "
             "1970; default now"},
    {.name = "count",
     .letter = 'n',
     .kind = HF_OPT_INT,
     .value = "N",
     .min = 1,
     .max = 1000000,
     .help = "number of ticks; default 5"},
    HF_OPT_END,
};

/* ---- locks ---- */

#define OWNER_OPT                                                                        \
    {                                                                                    \
        .name = "owner", .kind = HF_OPT_TEXT, .value = "OWNER",                          \
        .help = "only the hold of this owner"                                            \
    }

const hf_opt hf_opts_lock[] = {
    {.name = "exclusive", .letter = 'x', .help = "hold it alone; the default"},
    {.name = "shared",
     .letter = 's',
     .help =
         "share it with other shared holders; waits behind an earlier exclusive waiter"},
    {.name = "permits",
     .kind = HF_OPT_TEXT,
     .value = "K/N",
     .help = "take K of N permits: a semaphore"},
    {.name = "nonblock",
     .alike = "try",
     .also = "nb|nonblocking",
     .letter = 'n',
     .help = "fail at once while another client holds the lock"},
    {.name = "wait",
     .also = "timeout",
     .letter = 'w',
     .kind = HF_OPT_TEXT,
     .value = "SECONDS",
     .help = "wait at most this long: 10, 2.5, 0; default for ever"},
    {.name = "conflict-exit-code",
     .letter = 'E',
     .kind = HF_OPT_INT,
     .value = "CODE",
     .max = 255,
     .help = "exit code if the lock is not free in time; default 1"},
    {.name = "ttl",
     .kind = HF_OPT_DURATION,
     .value = "DURATION",
     .min = HF_LOCK_GUARD_LEASE_MIN_MS,
     .max = HF_LOCK_LEASE_MAX_MS,
     .help = "the lease, renewed after a third of it: how long others wait if this "
             "machine dies; default 30s"},
    {.name = "grace",
     .kind = HF_OPT_DURATION,
     .value = "DURATION",
     .max = HF_LOCK_LEASE_MAX_MS / 2,
     .help = "time from TERM to KILL when the lock is being lost; default a quarter of "
             "--ttl, at most 5s"},
    {.name = "max-hold",
     .kind = HF_OPT_DURATION,
     .value = "DURATION",
     .min = 1,
     .max = HF_LOCK_LEASE_MAX_MS,
     .help = "lose the lock after this long"},
    {.name = "wait-replicas",
     .kind = HF_OPT_INT,
     .value = "K",
     .max = 100,
     .help = "require K replicas to have the lock, or do not take it (exit 75)"},
    {.name = "fair", .help = "serve waiters in order of arrival; the default"},
    {.name = "spin",
     .help = "retry a plain SET NX PX, without an order; for locks that other programs "
             "take in this way"},
    {.name = "verbose", .letter = 'v', .help = "report what happens to the lock"},
    HF_OPT_END,
};
const hf_opt hf_opts_locks_list[] = {
    {.name = "limit",
     .alike = "count|max",
     .kind = HF_OPT_INT,
     .value = "N",
     .min = 1,
     .max = 1000,
     .help = "maximum number of locks; default 50"},
    {.name = "after",
     .kind = HF_OPT_TEXT,
     .value = "NAME",
     .help = "continue after this name, the last one of the previous page"},
    HF_OPT_END,
};
const hf_opt hf_opts_locks_show[] = {
    {.name = "limit",
     .alike = "count|max",
     .kind = HF_OPT_INT,
     .value = "N",
     .min = 1,
     .max = 1000,
     .help = "maximum number of holders and waiters; default 50"},
    HF_OPT_END,
};
const hf_opt hf_opts_locks_release[] = {
    {.name = "force", .help = "take it away from its holder; required"},
    OWNER_OPT,
    YES_OPT,
    HF_OPT_END,
};
const hf_opt hf_opts_locks_revoke[] = {OWNER_OPT, HF_OPT_END};
const hf_opt hf_opts_fence_check[] = {
    {.name = "owner",
     .kind = HF_OPT_TEXT,
     .value = "OWNER",
     .help = "the owner of the fence, as in $HOLDFAST_LOCK_OWNER; required"},
    {.name = "remember",
     .kind = HF_OPT_DURATION,
     .value = "DURATION",
     .min = 1000,
     .max = HF_DELAY_MAX_MS,
     .help = "how long to remember the highest fence; default for ever"},
    HF_OPT_END,
};

/* ---- workers, and the rest ---- */

const hf_opt hf_opts_worker[] = {
    {.name = "queue",
     .letter = 'q',
     .kind = HF_OPT_TEXT,
     .value = "Q",
     .many = true,
     .help = "serve this queue instead of those in the file; may be repeated"},
    {.name = "concurrency",
     .alike = "threads|parallel|workers",
     .letter = 'n',
     .kind = HF_OPT_INT,
     .value = "N",
     .min = 1,
     .max = 1024,
     .help = "number of jobs that run at the same time"},
    {.name = "processes",
     .kind = HF_OPT_INT,
     .value = "N",
     .min = 1,
     .max = HF_POOL_PROCESSES_MAX,
     .help = "number of processes of COMMAND; default: the cores that it may use"},
    {.name = "logs",
     .help = "keep the last 64 KiB of the outputs of COMMAND's jobs in Redis, for "
             "`holdfast job logs`"},
    {.name = "listen",
     .alike = "debugger|attach|socket",
     .kind = HF_OPT_TEXT,
     .value = "PATH",
     .help = "with --dev: a program that is started with HOLDFAST_SOCKET=PATH, for "
             "example under a debugger, runs the jobs instead of the worker's process"},
    {.name = "parent",
     .kind = HF_OPT_INT,
     .value = "PID",
     .min = 1,
     .max = INT_MAX,
     .help = "stop as after TERM when PID, which has started this worker, ends"},
    {.name = "burst", .help = "stop when no job is left, not even a delayed one"},
    {.name = "dev",
     .alike = "debug|development",
     .help = "for development: one process of each pool, and no time-outs"},
    {.name = "watch",
     .alike = "reload|autoreload",
     .kind = HF_OPT_TEXT,
     .value = "PATH",
     .many = true,
     .help = "reload when this file, or one below this folder, changes; may be repeated"},
    HF_OPT_END,
};
const hf_opt hf_opts_script[] = {
    {.name = "sha1", .help = "print only the SHA1 for EVALSHA"}, HF_OPT_END};
const hf_opt hf_opts_check[] = {
    {.name = "reference", .hidden = true, .help = "print the table of all keys"},
    {.name = "man", .hidden = true, .help = "print the manual page of the file"},
    HF_OPT_END};
const hf_opt hf_opts_conform[] = {
    {.name = "case",
     .kind = HF_OPT_TEXT,
     .value = "NAME",
     .many = true,
     .help = "play only this case; may be given again"},
    {.name = "list", .help = "print the names of all cases, and start nothing"},
    {.name = "timeout",
     .kind = HF_OPT_DURATION,
     .value = "DURATION",
     .min = 100,
     .max = 600000,
     .help = "how long to wait for each answer of the program; default 5s"},
    HF_OPT_END};
const hf_opt hf_opts_doctor[] = {
    {.name = "queue",
     .letter = 'q',
     .kind = HF_OPT_TEXT,
     .value = "Q",
     .help = "check only this queue"},
    {.name = "idle",
     .help = "also look for leftovers; use it only while no worker and no producer runs"},
    {.name = "fix", .help = "repair what is safe to repair, then check again"},
    HF_OPT_END,
};
const hf_opt hf_opts_wrong[] = {
    LATE_OPT,
    {.name = "nagios",
     .alike = "icinga|plugin|monitoring",
     .help = "print and exit as a plugin of Nagios does"},
    HF_OPT_END,
};
const hf_opt hf_opts_top[] = {
    {.name = "interval",
     .alike = "delay|every|refresh|watch",
     .kind = HF_OPT_DURATION,
     .value = "DURATION",
     .min = 500,
     .max = 60000,
     .help = "read this often: 500ms to 60s; default 1s"},
    {.name = "page",
     .alike = "view|tab|screen",
     .kind = HF_OPT_CHOICE,
     .value = "PAGE",
     .choices = "overview|running|dead|workers|locks|types",
     .help = "begin with this page: overview (the default), running, dead, workers, "
             "locks or types"},
    {.name = "once",
     .alike = "batch|print|snapshot",
     .help = "print one screen and exit; its size is that of the terminal, or of COLUMNS "
             "and LINES"},
    {.name = "allow-changes",
     .alike = "write|change|admin",
     .help = "let the keys p (pause), c (cancel) and R (retry) change something, each "
             "after a question"},
    {.name = "late",
     .alike = "threshold|warn|max-wait",
     .kind = HF_OPT_DURATION,
     .value = "DURATION",
     .min = 1000,
     .max = 30 * HF_DAY_MS,
     .help = "a ready job that waits for this long is late, as of `holdfast wrong`; "
             "default 1m"},
    HF_OPT_END,
};
const hf_opt hf_opts_dashboard[] = {
    LISTEN_OPT("127.0.0.1:8880"),
    {.name = "base",
     .alike = "prefix-path|path|root",
     .kind = HF_OPT_TEXT,
     .value = "PATH",
     .help = "the path below which a proxy shows it: /holdfast"},
    TOKEN_OPTS,
    {.name = "allow-changes",
     .alike = "write|rw|admin",
     .help = "offer changes: pause, limits, purge, retry, cancel, delete, release"},
    {.name = "hide-payloads",
     .alike = "no-payloads",
     .help = "show neither payloads nor results"},
    {.name = "user-header",
     .kind = HF_OPT_TEXT,
     .value = "NAME",
     .help = "the header in which a proxy on this machine names the user, for the log"},
    LATE_OPT,
    HF_OPT_END,
};
const hf_opt hf_opts_exporter[] = {
    LISTEN_OPT("127.0.0.1:9465"),
    TOKEN_OPTS,
    LATE_OPT,
    HF_OPT_END,
};
const hf_opt hf_opts_demo[] = {
    {.name = "dashboard",
     .alike = "browser|web|ui",
     .help = "show the demo in a browser as well, until Control-C"},
    {.name = "keep",
     .help = "keep the directory with the handlers, their notes and the logs"},
    {.name = "svg",
     .kind = HF_OPT_TEXT,
     .value = "FILE",
     .help = "the file of the picture; default holdfast-demo-PID.svg in $TMPDIR or /tmp"},
    HF_OPT_END,
};
const hf_opt hf_opts_bench[] = {
    {.name = "jobs",
     .kind = HF_OPT_INT,
     .value = "N",
     .min = 1,
     .max = 10000000,
     .help = "number of jobs to enqueue and process; default 100000"},
    {.name = "payload",
     .kind = HF_OPT_INT,
     .value = "B",
     .max = HF_PAYLOAD_DEFAULT,
     .help = "size of each job's payload in bytes; default 100"},
    {.name = "concurrency",
     .alike = "threads|parallel|workers",
     .letter = 'n',
     .kind = HF_OPT_INT,
     .value = "C",
     .min = 1,
     .max = 1024,
     .help = "number of jobs that run at the same time; default 16"},
    HF_OPT_END,
};
const hf_opt hf_opts_help[] = {
    {.name = "man", .hidden = true, .help = "print the manual page"},
    {.name = "completion",
     .kind = HF_OPT_CHOICE,
     .value = "SHELL",
     .choices = HF_SHELLS,
     .hidden = true,
     .help = "print the completion script of this shell"},
    HF_OPT_END,
};
