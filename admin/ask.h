/* ask.h - how the synchronous calls of holdfast/admin.h ask Redis something: they wait on
 * the admin's own run loop until the one answer is there or the deadline has passed.
 *
 * A request that certainly did nothing (the connection was down, Redis was loading, did
 * not know the script or was busy with one) is made again until the deadline. One that
 * may have been executed is made again only when doing it twice is the same as doing it
 * once. */
#ifndef HF_ADMIN_ASK_H
#define HF_ADMIN_ASK_H

#include "base/id.h"
#include "base/random.h"
#include "holdfast/admin.h"
#include "queue/ops.h"
#include "queue/shards.h"
#include "redis/args.h"
#include "redis/nodes.h"
#include "redis/run_loop.h"

typedef struct hf_admin_node {
    hf_node base;
    uint64_t turned_ns;  /* when the loop has turned last, and the connection was ready */
    hf_server_info info; /* what hf_admin_servers() was told last; size 0: nothing */
} hf_admin_node;

struct hf_admin {
    hf_run_loop run;            /* never started */
    hf_run_waiter *waits_ready; /* until a connection is ready or refused, or a cluster
                                   has changed; or NULL */
    hf_nodes nodes;             /* each begins an hf_admin_node */
    hf_node *here;              /* all that names no queue goes to this one; NULL: to the
                                   registry's */
    uint32_t deadline_ms;
    hf_rng rng;        /* for jitter */
    hf_id_maker words; /* of requests (hf_ask_word()) */
    char ns[HF_ID_SIZE];
    char *detail; /* of the call under way: the caller's, or `unread` */
    char unread[HF_DETAIL_SIZE];
    hf_shards shards;           /* of the last queue that Redis has called divided */
    struct hf_hearing *hearing; /* of ends of jobs (admin/hear.h); owned; NULL: nothing */
};

/* The clock of a queue's Redis (NULL: of the registry's): now, and the end of the call,
 * for a script that must not be late. */
typedef struct hf_admin_time {
    int64_t now_ms, not_after;
} hf_admin_time;

/* One request. To look:
 *
 *     hf_ask ask = {.script = &..., .queue = queue, .read = ..., .out = ...};
 *     hf_args_text(&ask.args, id);
 *     return hf_admin_ask(admin, &ask);
 *
 * To change something: the request carries a deadline in Redis's time; a script that runs
 * later changes nothing. It has a word of its own, too: made again after its answer was
 * lost, it gets the first answer (redis/lua/lib/requests.lua).
 *
 *     hf_ask ask = {.script = &..., .queue = queue};
 *     hf_ask_order(&ask, admin);
 *     hf_ask_word(&ask, admin);
 *     hf_args_text(&ask.args, id);
 *     return hf_admin_ask(admin, &ask); */
typedef struct hf_ask {
    const hf_script *script; /* NULL: a command */
    const hf_queue *queue;   /* whose Redis it is; NULL: the registry's */
    const char *prefix;      /* a script's key; NULL: that of the queue or the registry */
    uint64_t until_ns;       /* the end of the call; 0: of one that begins now */
    /* Takes the answer, which is HF_OK, while it is there. NULL: a script's status is
     * all, and of a command nothing is read. */
    hf_err (*read)(const hf_answer *answer, void *out);
    void *out;
    hf_args args;
    bool writes; /* without an answer it may have been executed: that is HF_UNSURE */
    hf_admin_time time;             /* of an order; else 0 */
    hf_err err;                     /* why the time of an order is not known */
    char word[HF_NEW_ID_SIZE + 24]; /* the deadline, and the word */
} hf_ask;

/* Each public call begins with this: `detail` (may be NULL) is where its failure is
 * explained. A call that calls another one passes admin->detail on. */
void hf_admin_begin(hf_admin *admin, char detail[HF_DETAIL_SIZE]);

uint64_t hf_admin_until(const hf_admin *admin); /* the end of a call that begins now */
/* The server of a queue, shared: hf_server_close(). NULL: none is known to have it. */
hf_server *hf_admin_server_of(hf_admin *admin, const hf_queue *queue);
/* Asks, and ends the arguments. */
HF_MUSTCHECK hf_err hf_admin_ask(hf_admin *admin, hf_ask *ask);
/* Sends some requests that only look, each to a script, before it waits for the first
 * answer. Each is made once: `err` of those that failed is not HF_OK, and they may be
 * made again by hf_admin_ask(). */
enum { HF_ADMIN_AHEAD = 64 };
void hf_admin_ask_ahead(hf_admin *admin, hf_ask *asks, size_t n);
/* It changes something: asks for the time. hf_admin_ask() gives its failure. */
void hf_ask_order(hf_ask *ask, hf_admin *admin);
/* Adds the argument `not_after`, with the word of an order. */
void hf_ask_word(hf_ask *ask, hf_admin *admin);

HF_MUSTCHECK hf_err hf_admin_clock(hf_admin *admin, const hf_queue *queue,
                                   uint64_t until_ns, hf_admin_time *out);

/* In a cluster: calls fn for each node, with admin->here set to it, until one fails. */
HF_MUSTCHECK hf_err hf_admin_each_node(hf_admin *admin,
                                       hf_err (*fn)(hf_admin *admin, void *arg),
                                       void *arg);

/* Waits until then, and keeps the connection alive meanwhile. */
void hf_admin_idle(hf_admin *admin, uint64_t until_ns);

/* Whether a struct of the caller's can be filled: HF_INVALID when it has no size. */
HF_MUSTCHECK hf_err hf_admin_fits(hf_admin *admin, const void *theirs, const char *name);

/* Writes a sentence about what failed, and gives err back. */
hf_err hf_admin_fail(hf_admin *admin, hf_err err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* HF_NOMEM, with its sentence. */
hf_err hf_admin_no_memory(hf_admin *admin);

/* HF_INVALID with a sentence when it is no name. */
HF_MUSTCHECK hf_err hf_admin_check_id(hf_admin *admin, const char *id);
HF_MUSTCHECK hf_err hf_admin_queue(hf_admin *admin, const char *name, hf_queue *out);

/* Does something with a job in the queue of that name; NULL: in each queue until one
 * answers something else than HF_GONE. HF_INVALID: the name or the id is none. */
typedef hf_err (*hf_in_queue_fn)(hf_admin *admin, const hf_queue *queue, const char *id,
                                 void *arg);
HF_MUSTCHECK hf_err hf_admin_in_queue(hf_admin *admin, const char *name, const char *id,
                                      hf_in_queue_fn fn, void *arg);

#endif
