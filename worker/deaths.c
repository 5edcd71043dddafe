/* deaths.c - see deaths.h. */
#include "worker/deaths.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "worker/queues.h"
#include "worker/site.h"

/* ---- what is told ---- */

static const char *about(const hf_handler *handler, const char *queues)
{
    return handler->on_dead[0] != '\0' ? handler->on_dead : queues;
}

/* Of the types with a handler of their own those that differ from all others. */
static json_t *types_of(const hf_worker *w, const char *queues)
{
    const hf_handler *rest = hf_handlers_find(w->handlers, w->n_handlers, "*");
    const char *others = rest == NULL ? queues : about(rest, queues);
    json_t *types = json_object();
    bool good = types != NULL;
    if (others[0] != '\0')
        good = good && json_object_set_new(types, "*", json_string(others)) == 0;
    for (size_t i = 0; i < w->n_handlers && good; i++) {
        const hf_handler *handler = w->handlers[i];
        const char *own = about(handler, queues);
        if (handler != rest && strcmp(own, others) != 0)
            good = json_object_set_new(types, handler->type,
                                       own[0] == '\0' ? json_false()
                                                      : json_string(own)) == 0;
    }
    if (good)
        return types;
    json_decref(types);
    return NULL;
}

/* Owned by the caller; "" : of no job. NULL: out of memory. */
static char *text_of(const hf_served *served)
{
    json_t *types = types_of(served->worker, served->whole->on_dead);
    if (types == NULL)
        return NULL;
    char *text = json_object_size(types) == 0
                     ? calloc(1, 1)
                     : json_dumps(types, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(types);
    return text;
}

/* ---- telling it ---- */

/* Of a queue with shards its first claim learns them, and then they are told. */
static void on_told(const hf_answer *answer, void *arg)
{
    hf_site_registered(arg, answer->err, answer->detail);
}

hf_err hf_deaths_register(hf_served *served)
{
    if (hf_queue_is_divided(served))
        return HF_OK;
    char *text = text_of(served);
    hf_err err = text == NULL ? HF_NOMEM
                              : hf_op_file_on_dead(served->site->client, &served->queue,
                                                   text, on_told, served);
    free(text);
    served->requests += err == HF_OK ? 1 : 0;
    return err;
}

bool hf_deaths_same(const hf_worker *w, const hf_plan *plan)
{
    size_t n = 0;
    if (!w->has_programs)
        return true; /* its handlers stay */
    for (size_t i = 0; i < w->n_handlers; i++) {
        const hf_handler *was = w->handlers[i];
        const hf_handler *now =
            hf_handlers_find(plan->programs, plan->n_programs, was->type);
        if (was->fn != NULL)
            continue;
        if (now == NULL || strcmp(was->on_dead, now->on_dead) != 0)
            return false;
        n++;
    }
    return n == plan->n_programs;
}
