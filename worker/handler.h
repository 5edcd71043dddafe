/* handler.h - what runs the jobs of one type: a C function, a program, or a pool.
 *
 * A handler is counted: the worker's table holds one reference, and each of its jobs one
 * more. So a job that was started keeps its handler when a reload takes it out of the
 * table. Belongs to the worker's loop; before that runs, to the thread that made the
 * worker. */
#ifndef HF_WORKER_HANDLER_H
#define HF_WORKER_HANDLER_H

#include "base/backoff.h"
#include "holdfast/job.h"
#include "holdfast/worker.h"

enum { HF_TYPES_MAX = 1000 }; /* handlers of one worker */

#define HF_ON_DEAD_RULE "as on_dead a type (1 to 128 characters of A-Z a-z 0-9 . _ : -)"

typedef struct hf_handler {
    char type[HF_ID_SIZE]; /* "*": the rest */
    hf_handler_fn fn;      /* NULL: a program, or a pool */
    void *arg;
    struct hf_supervisor *pool; /* borrowed (worker/pool/supervisor.h); NULL: none */
    uint32_t timeout_ms, max_attempts; /* 0: none; the worker's */
    int64_t keep_ms;                   /* 0: the queue's; HF_KEEP_NONE */
    char on_dead[HF_ID_SIZE];          /* "" : the queue's */
    bool has_backoff;                  /* false: the worker's counts */
    hf_backoff backoff;
    hf_program program; /* its text is owned; of a pool: `grace_ms` and `logs` */
    size_t refs;
} hf_handler;

/* With one reference. HF_INVALID: no type, no function, no program; HF_NOMEM. */
HF_MUSTCHECK hf_err hf_handler_of_function(hf_handler **out, const char *type,
                                           uint32_t timeout_ms, hf_handler_fn fn,
                                           void *arg, char detail[HF_DETAIL_SIZE]);
HF_MUSTCHECK hf_err hf_handler_of_program(hf_handler **out, const hf_program *program,
                                          char detail[HF_DETAIL_SIZE]);

/* A type of a pool; zero in its options means what it means here. */
HF_MUSTCHECK hf_err hf_handler_of_pool(hf_handler **out, const hf_pool_type *type,
                                       const hf_pool *pool,
                                       struct hf_supervisor *supervisor,
                                       char detail[HF_DETAIL_SIZE]);

hf_handler *hf_handler_ref(hf_handler *handler);
void hf_handler_unref(hf_handler *handler); /* NULL is fine */

/* Whether both run the same program in the same way. */
bool hf_handler_same(const hf_handler *a, const hf_handler *b);

bool hf_handlers_only_programs(hf_handler *const *list, size_t n);

/* The one of this type, or NULL; "*" is a type like any other. */
hf_handler *hf_handlers_find(hf_handler *const *list, size_t n, const char *type);

#endif
