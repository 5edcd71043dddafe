/* facts.h - what is known of Redis, queues, workers, schedules and locks at one moment.
 *
 * The rules of wrong.h are functions of these facts alone. gather.h reads them from
 * Redis.
 * Times are Unix ms on Redis's clock; 0: not known. */
#ifndef HF_SEEN_FACTS_H
#define HF_SEEN_FACTS_H

#include "holdfast/admin.h"
#include "holdfast/lock.h"
#include "seen/reason_read.h"

enum { HF_FACTS_TEXT = 161, HF_FACTS_PLACE = 136, HF_FACTS_MINUTES = 12 };

/* One Redis: the only one, or a node of a cluster. */
typedef struct hf_facts_redis {
    char place[HF_FACTS_PLACE]; /* of a node; "": the only one */
    hf_err err;                 /* why it cannot be asked; then the rest is empty */
    char detail[HF_DETAIL_SIZE];
    int64_t since_ms; /* of err: by the caller's clock */
    hf_server_info info;
    hf_err refuses; /* its writes; HF_OK: it takes them, or this user may not try */
    char refusal[HF_DETAIL_SIZE];
} hf_facts_redis;

typedef struct hf_facts_worker {
    char id[HF_HOLDER_SIZE];
    bool silent;
    int64_t heard_ms, started_ms;
    char version[24];
    char pool[HF_FACTS_PLACE]; /* the first of its pools that is down */
    size_t pools_down;
    bool of_poison; /* a job that died as poison within the hour names it as the holder
                       that died: the deaths of the job's queue count it */
} hf_facts_worker;

/* What keeps a job, as `job why` knows it. */
typedef struct hf_facts_why {
    hf_job_why why; /* with `job` */
    int64_t asked_ms;
    hf_job_info job;
    hf_reason_read read;
} hf_facts_why;

/* The jobs of a queue that died within the last hour. Their number is in its figures;
 * these are the first of them that were looked at. */
typedef struct hf_facts_deaths {
    bool read; /* all of them, or as many as are looked at at most */
    int64_t first_ms;
    size_t looked, alike;  /* this many of those looked at have this type and error, */
    char type[HF_ID_SIZE]; /* which most of them have */
    char error[HF_FACTS_TEXT]; /* of the first of these */
    size_t poison;
    char poisoned[HF_ID_SIZE];    /* the last one's id, */
    char poison_type[HF_ID_SIZE]; /* and its type */
    size_t poison_alike; /* this many in a row, to the last one, have this type */
    size_t poison_late;  /* this many died in the last 10 min */
    int64_t poison_ms;
    size_t silent;               /* workers that are of_poison, */
    char killed[HF_HOLDER_SIZE]; /* and the last of them */
} hf_facts_deaths;

/* How a queue was seen in a minute, and what its scripts counted in it. */
typedef struct hf_facts_minute {
    int64_t begin_ms, seen_ms; /* seen_ms 0: it was not seen, or not at its end */
    int64_t ready, ever_done, ever_failed, crashed, lost;
} hf_facts_minute;

/* What the history of a queue tells; where there is none, attempts are not known. */
typedef struct hf_facts_past {
    int64_t read_ms; /* when the minutes were read, the oldest first; 0: never */
    size_t n;
    hf_facts_minute minutes[HF_FACTS_MINUTES];
    int64_t first_done, first_failed; /* the counters before all of them */
    bool known;
    int64_t attempts, failed; /* that ended in the last 5 min */
    int64_t rises; /* this many minutes running `ready` rose, from sample to sample */
    int64_t rise_per_min;
    int64_t done_per_min;
    int64_t crashed, lost; /* in the last 10 min */
} hf_facts_past;

typedef struct hf_facts_queue {
    hf_queue_stats stats;
    int64_t moved_ms;        /* when its counters were seen to change last, */
    int64_t ran_ms;          /* and when a job of it was seen to run or to have run */
    size_t serving;          /* workers that take its jobs: neither quiet nor stopping */
    size_t alive;            /* workers that have it, in any state but silent */
    hf_facts_why *oldest;    /* owned: its oldest ready job; NULL: not read */
    hf_facts_why *unhandled; /* owned: one that waits for a handler; NULL: none */
    hf_facts_deaths deaths;
    hf_facts_past past;
    size_t findings;                 /* of the audit; */
    char finding[HF_FACTS_TEXT * 2]; /* the first one */
} hf_facts_queue;

typedef struct hf_facts_schedule {
    char id[HF_ID_SIZE], queue[HF_ID_SIZE], job[HF_ID_SIZE]; /* job: of the last tick */
    bool paused, queue_paused, served;
    int64_t next_ms, last_ms, passed, skipped;
    int64_t accepted, dropped; /* ticks: that made a job, and that were missed */
    char zone[HF_ZONE_SIZE];   /* in which its times are read; "": an interval */
} hf_facts_schedule;

typedef struct hf_facts_lock {
    char name[HF_LOCK_NAME_MAX + 1];
    char holder[HF_HOLDER_SIZE]; /* the client of the one whose lease ends first */
    int64_t ends_ms, lease_ms;   /* of this one */
    size_t holders;
    char keeper[HF_HOLDER_SIZE]; /* the client of the one that holds it longest */
    int64_t held_ms;             /* since when */
    size_t waiting;
    int64_t waits_ms; /* since when the first one waits */
} hf_facts_lock;

typedef struct hf_facts {
    int64_t now_ms;
    int64_t late_ms;         /* when a ready job is late; bad from ten times of it on */
    int64_t poison;          /* as the option of a worker */
    char zone[HF_ZONE_SIZE]; /* of this host; "": not known */
    hf_facts_redis *redis;
    hf_facts_worker *workers;
    hf_facts_queue *queues;
    hf_facts_schedule *schedules;
    hf_facts_lock *locks;
    size_t n_redis, n_workers, n_queues, n_schedules, n_locks;
    char locks_place[HF_LOCK_PLACE_SIZE]; /* of a search for locks that goes on, or "" */
    size_t next_deaths; /* the first queue whose deaths there was no room to read, */
    size_t next_pasts;  /* and whose history */
} hf_facts;

enum { HF_FACTS_LATE_MS = 60000, HF_FACTS_POISON = 3 };

#endif
