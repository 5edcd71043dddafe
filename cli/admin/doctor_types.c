/* doctor_types.c - queues whose workers take different types. A job may come to a worker
 * that does not take it, which gives it back: no fault, but worth knowing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/admin/doctor.h"

enum { SEEN_MAX = 1000 }; /* queues that are compared */

/* The first worker of a queue, with which the others are compared. */
typedef struct seen {
    char queue[HF_ID_SIZE], worker[HF_HOLDER_SIZE];
    char **types; /* owned, n of them */
    size_t n;
    bool noted;
} seen;

typedef struct mix {
    hf_doctor *d;
    seen *at; /* owned */
    size_t n;
    bool no_memory;
} mix;

/* A type that is in the first list alone; NULL: there is none, or the second one takes
 * all. */
static const char *missing(const char *const *list, size_t n, const char *const *in,
                           size_t n_in)
{
    for (size_t i = 0; i < n; i++) {
        bool found = false;
        for (size_t k = 0; k < n_in && !found; k++)
            found = strcmp(list[i], in[k]) == 0 || strcmp(in[k], "*") == 0;
        if (!found)
            return list[i];
    }
    return NULL;
}

static void compare(const mix *m, seen *s, const hf_worker_info *worker)
{
    const char *const *types = (const char *const *)s->types;
    const char *first = missing(types, s->n, worker->types, worker->n_types);
    const char *second = missing(worker->types, worker->n_types, types, s->n);
    const char *type = second != NULL ? second : first;
    if (type == NULL)
        return;
    hf_doctor_note(
        m->d,
        "the workers of %s take different types: %s takes '%s', and %s does "
        "not. Each job may come to the wrong worker first, which gives it back",
        s->queue, second != NULL ? worker->id : s->worker, type,
        second != NULL ? s->worker : worker->id);
    s->noted = true;
}

static void see(mix *m, const char *queue, const hf_worker_info *worker)
{
    seen *s = m->n == SEEN_MAX ? NULL : realloc(m->at, (m->n + 1) * sizeof *s);
    if (s == NULL) {
        m->no_memory = m->no_memory || m->n < SEEN_MAX;
        return;
    }
    m->at = s;
    s = &m->at[m->n++];
    *s = (seen){.types = calloc(worker->n_types + 1, sizeof *s->types)};
    snprintf(s->queue, sizeof s->queue, "%s", queue);
    snprintf(s->worker, sizeof s->worker, "%s", worker->id);
    m->no_memory = m->no_memory || s->types == NULL;
    for (; !m->no_memory && s->n < worker->n_types; s->n++) {
        s->types[s->n] = strdup(worker->types[s->n]);
        if (s->types[s->n] == NULL) {
            m->no_memory = true;
            return;
        }
    }
}

static void on_worker(const hf_worker_info *worker, void *arg)
{
    mix *m = arg;
    if (worker->silent || !worker->all_types || strcmp(worker->state, "stopping") == 0)
        return;
    for (size_t i = 0; i < worker->n_queues && !m->no_memory; i++) {
        const char *queue = worker->queues[i];
        size_t k = 0;
        if (m->d->only != NULL && strcmp(m->d->only, queue) != 0)
            continue;
        while (k < m->n && strcmp(m->at[k].queue, queue) != 0)
            k++;
        if (k == m->n)
            see(m, queue, worker);
        else if (!m->at[k].noted)
            compare(m, &m->at[k], worker);
    }
}

hf_err hf_doctor_types(hf_doctor *d)
{
    mix m = {.d = d};
    hf_err err = hf_admin_workers(d->admin, on_worker, &m, d->cli->detail);
    for (size_t i = 0; i < m.n; i++) {
        for (size_t k = 0; k < m.at[i].n; k++)
            free(m.at[i].types[k]);
        free(m.at[i].types);
    }
    free(m.at);
    if (m.no_memory)
        return HF_NOMEM;
    return err == HF_REDIS ? HF_OK : err; /* then the look at the workers has said why */
}
