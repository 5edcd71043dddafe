/* poller.h - the one thread that asks Redis, because the calls of an hf_admin wait.
 *
 * Tasks run one after the other, at most 100 a second. Without tasks nothing is asked. */
#ifndef HF_DASHBOARD_POLLER_H
#define HF_DASHBOARD_POLLER_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "holdfast/admin.h"
#include "holdfast/lock.h"

typedef struct hf_poller hf_poller;
typedef struct hf_overview hf_overview;
typedef struct hf_checkup hf_checkup;
typedef struct hf_timeline hf_timeline;
typedef struct hf_redis_seen hf_redis_seen;
typedef struct hf_dead_tasks hf_dead_tasks;
typedef struct hf_changelog hf_changelog;

enum { HF_POLLER_TASKS = 200, HF_POLLER_REQUESTS = 12 };

/* All is borrowed for as long as the poller is open. */
typedef struct hf_poller_opts {
    const hf_server_opts *server;
    int64_t late_ms, poison; /* as hf_facts has them */
    bool hide_payloads;
    hf_dead_tasks *tasks;    /* dead_tasks.h */
    hf_changelog *changelog; /* changelog.h */
} hf_poller_opts;

/* What a task works with. It belongs to the poller's thread. */
typedef struct hf_reader {
    const hf_poller_opts *opts;
    hf_admin *admin;       /* ask hf_reader_open() first */
    hf_lock_client *locks; /* NULL: none can be read */
    hf_err fault;          /* of Redis, while it is believed to be away */
    uint64_t fault_ns;     /* when it was noticed */
    int64_t ahead_ms;      /* Redis's clock minus this host's */
    uint64_t reads;        /* tasks that asked Redis */
    uint64_t
        took[HF_POLLER_REQUESTS]; /* of them: up to 1, 2, 4, ... ms; the last: more */
    uint64_t took_us;             /* in total */
    hf_overview *overview;        /* owned: overview.h; NULL, or ended by this function */
    void (*free_overview)(hf_overview *overview);
    hf_checkup *checkup; /* owned: checkup.h; the same */
    void (*free_checkup)(hf_checkup *checkup);
    hf_timeline *timeline; /* owned: timeline.h; the same */
    void (*free_timeline)(hf_timeline *timeline);
    hf_redis_seen *redis; /* owned: api_redis.h; the same */
    void (*free_redis)(hf_redis_seen *redis);
    char detail[HF_DETAIL_SIZE];
} hf_reader;

/* Opens the admin object where there is none. A Redis that was away within the last
 * second is not asked again: the same fault, with r->detail. */
HF_MUSTCHECK hf_err hf_reader_open(hf_reader *r);
/* Notes the result of a call: whether Redis is away. Returns `err`. */
hf_err hf_reader_note(hf_reader *r, hf_err err);
int64_t hf_reader_now_ms(const hf_reader *r); /* by Redis's clock */

typedef struct hf_poll_task hf_poll_task;
struct hf_poll_task {
    hf_poll_task *next;
    void (*run)(hf_poll_task *task, hf_reader *reader); /* on the poller's thread */
    /* On the loop's thread, the last call. dropped: it did not run. */
    void (*done)(hf_poll_task *task, bool dropped);
};

/* HF_NOMEM, HF_SYSTEM. */
HF_MUSTCHECK hf_err hf_poller_open(hf_poller **out, uv_loop_t *loop,
                                   const hf_poller_opts *opts);
/* False: too many tasks wait, and this one is the caller's still. */
bool hf_poller_submit(hf_poller *poller, hf_poll_task *task);
/* Ends the task that runs, drops the others. The loop has to turn once more. NULL is
 * fine. */
void hf_poller_close(hf_poller *poller);

#endif
