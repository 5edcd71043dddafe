/* pool_spec.h - a pool as it was configured: checked, copied, with the defaults filled
 * in.
 *
 * It is counted: the worker's table holds one reference, and so may each process that was
 * started by it. So a process keeps its settings when a reload replaces them. Belongs to
 * the worker's loop; before that runs, to the thread that made the worker. */
#ifndef HF_WORKER_POOL_SPEC_H
#define HF_WORKER_POOL_SPEC_H

#include <stddef.h>

#include "holdfast/worker.h"
#include "worker/handler.h"

enum { HF_POOL_NAME_SIZE = 65 };

typedef struct hf_pool_spec {
    char name[HF_POOL_NAME_SIZE]; /* its command, for people; cut and masked */
    hf_pool pool; /* its text is owned. `processes`, `start_timeout_ms`, `grace_ms` and
                     `idle_ms` are not 0; `parallel` 0: as the program says */
    size_t refs;
} hf_pool_spec;

/* With one reference. HF_INVALID: `detail` (may be NULL) says what is wrong; HF_NOMEM. */
HF_MUSTCHECK hf_err hf_pool_spec_new(hf_pool_spec **out, const hf_pool *pool,
                                     char detail[HF_DETAIL_SIZE]);
hf_pool_spec *hf_pool_spec_ref(hf_pool_spec *spec);
void hf_pool_spec_unref(hf_pool_spec *spec); /* NULL is fine */

/* Whether both run the same program in the same way; whether it is the same program,
 * perhaps with other settings. */
bool hf_pool_spec_same(const hf_pool_spec *a, const hf_pool_spec *b);
bool hf_pool_spec_same_program(const hf_pool_spec *a, const hf_pool_spec *b);

/* What `types` says about a type, or NULL. */
const hf_pool_type *hf_pool_spec_type(const hf_pool_spec *spec, const char *type);

/* The options of the type said->type, with the meaning of zero as in hf_handler (no
 * time-out; as the worker or the queue says). Each comes from `types`, else from what the
 * program says of its type, else from the pool. The text is borrowed from both. Without
 * the wait after failures. */
hf_pool_type hf_pool_spec_options(const hf_pool_spec *spec, const hf_pool_type *said);

/* The wait after failures, in the same order; rest: the worker's. Each part may come from
 * another one. The base is not above the cap: the one that was named first gives way. */
hf_backoff hf_pool_spec_backoff(const hf_pool_spec *spec, const hf_pool_type *said,
                                const hf_backoff *rest);

/* The first of n pools whose `types` has this type, or NULL. */
hf_pool_spec *hf_pool_specs_with(hf_pool_spec *const *list, size_t n, const char *type);

/* Each type has one handler. HF_INVALID with a sentence: another pool, or a handler, of
 * the list has one of the types in `types`. */
HF_MUSTCHECK hf_err hf_pool_specs_fit(hf_pool_spec *const *list, size_t n,
                                      const hf_pool_spec *spec,
                                      char detail[HF_DETAIL_SIZE]);
HF_MUSTCHECK hf_err hf_pool_spec_beside(const hf_pool_spec *spec, hf_handler *const *list,
                                        size_t n, char detail[HF_DETAIL_SIZE]);

#endif
