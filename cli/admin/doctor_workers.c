/* doctor_workers.c - workers that went silent without a goodbye, and what they still
 * hold. It needs the holders that the audit of all queues has told. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/admin/doctor.h"
#include "cli/out.h"

typedef struct silent {
    char id[HF_HOLDER_SIZE];
    int64_t heard_ms, now_ms;
} silent;

typedef struct list {
    silent *at; /* owned */
    size_t n;
    bool no_memory;
} list;

static void on_worker(const hf_worker_info *worker, void *arg)
{
    list *l = arg;
    if (!worker->silent)
        return;
    silent *more = realloc(l->at, (l->n + 1) * sizeof *more);
    if (more == NULL) {
        l->no_memory = true;
        return;
    }
    l->at = more;
    memcpy(l->at[l->n].id, worker->id, sizeof worker->id);
    l->at[l->n].heard_ms = worker->heard_ms;
    l->at[l->n++].now_ms = worker->now_ms;
}

static const hf_doctor_holder *held_by(const hf_doctor *d, const char *worker)
{
    for (size_t i = 0; i < d->n_holders; i++) {
        if (strcmp(d->holders[i].worker, worker) == 0)
            return &d->holders[i];
    }
    return NULL;
}

static void tell_holder(hf_doctor *d, const silent *s, const hf_doctor_holder *holder)
{
    char text[HF_DOCTOR_TEXT], heard[HF_MOMENT_SIZE], until[HF_MOMENT_SIZE];
    hf_format_moment(s->heard_ms, s->now_ms, heard);
    hf_format_moment(holder->until_ms, s->now_ms, until);
    snprintf(text, sizeof text, "is silent since %s, and holds %zu %s until %s", heard,
             holder->jobs, holder->jobs == 1 ? "job" : "jobs", until);
    hf_doctor_by_hand(d, "worker", s->id, text,
                      "wait: other workers take them over then; is one alive?");
}

/* It holds no jobs, so it can be removed from the list; if it lives, its next heartbeat
 * adds it again. */
static hf_err forget(hf_doctor *d, const silent *s)
{
    char text[HF_DOCTOR_TEXT], heard[HF_MOMENT_SIZE];
    hf_err err = d->fix ? hf_admin_forget(d->admin, s->id, d->cli->detail) : HF_OK;
    if (err != HF_OK)
        return err == HF_GONE ? HF_OK : err;
    hf_format_moment(s->heard_ms, s->now_ms, heard);
    snprintf(text, sizeof text, "is silent since %s, and holds nothing", heard);
    hf_doctor_tell(d, &(hf_finding){.check = "worker",
                                    .id = s->id,
                                    .text = text,
                                    .repair = "it is forgotten",
                                    .repaired = d->fix});
    return HF_OK;
}

hf_err hf_doctor_workers(hf_doctor *d)
{
    list l = {.n = 0};
    char key[HF_DOCTOR_TEXT];
    if (d->only != NULL) /* the holders of other queues' jobs are not known */
        return HF_OK;
    hf_err err = hf_admin_workers(d->admin, on_worker, &l, d->cli->detail);
    if (err == HF_OK && l.no_memory)
        err = HF_NOMEM;
    hf_doctor_begin(d, NULL);
    snprintf(key, sizeof key, "%s:{/}:workers", d->cli->server.ns);
    if (err == HF_REDIS) {
        hf_doctor_by_hand(d, "type", key, d->cli->detail,
                          "look at the key, then DEL it: the workers make it anew");
        err = HF_OK;
    } else if (err != HF_OK) {
        err = hf_doctor_unreadable(d, key, err);
    }
    for (size_t i = 0; i < l.n && err == HF_OK; i++) {
        const hf_doctor_holder *holder = held_by(d, l.at[i].id);
        if (holder == NULL)
            err = forget(d, &l.at[i]);
        else
            tell_holder(d, &l.at[i], holder);
    }
    hf_doctor_end(d);
    free(l.at);
    return err;
}
