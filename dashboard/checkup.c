/* checkup.c - see checkup.h. */
#include "dashboard/checkup.h"

#include <stdlib.h>

#include "base/clock.h"
#include "cli/out.h"

enum { LOOK_MS = 2000, FINDINGS = 200 };

struct hf_checkup {
    json_t *findings; /* owned */
    size_t found;
    int64_t looked_ms; /* 0: never */
    bool whole;        /* all of the data was looked at */
};

typedef struct looker {
    hf_checkup *of;
    const char *queue;
    uint64_t until_ns;
} looker;

void hf_checkup_free(hf_checkup *c)
{
    if (c != NULL)
        json_decref(c->findings);
    free(c);
}

static void on_finding(const hf_finding *f, void *arg)
{
    looker *l = arg;
    if (l->of->found++ >= FINDINGS)
        return;
    (void)json_array_append_new(
        l->of->findings,
        json_pack("{s:o, s:s, s:o, s:o, s:o, s:b}", "queue", hf_out_text(l->queue),
                  "check", f->check, "id", hf_out_text(f->id), "text",
                  hf_out_text(f->text), "repair", hf_out_text(f->repair), "by_hand",
                  (int)f->by_hand));
}

static bool on_progress(size_t done, size_t total, void *arg)
{
    looker *l = arg;
    (void)done;
    (void)total;
    if (hf_boot_ns() < l->until_ns)
        return true;
    l->of->whole = false;
    return false;
}

static hf_err audit(hf_reader *r, hf_checkup *c)
{
    char **names = NULL;
    size_t n = 0, found;
    looker l = {.of = c, .until_ns = hf_boot_ns() + LOOK_MS * HF_MS_NS};
    hf_err err = hf_admin_queues(r->admin, &names, &n, r->detail);
    for (size_t i = 0; i < n && err == HF_OK && c->whole; i++) {
        l.queue = names[i];
        const hf_audit_opts opts = {HF_AUDIT_OPTS_INIT, .cb = on_finding,
                                    .progress = on_progress, .arg = &l};
        err = hf_admin_audit(r->admin, names[i], &opts, &found, r->detail);
    }
    free(names);
    return err;
}

static hf_err give(hf_query *ask, hf_reader *r, const hf_checkup *c)
{
    if (c == NULL)
        return hf_ask_give(ask, r,
                           json_pack("{s:[], s:i, s:n, s:b}", "items", "found", 0,
                                     "looked_ms", "whole", 0),
                           0);
    return hf_ask_give(ask, r,
                       json_pack("{s:O, s:I, s:I, s:b}", "items", c->findings, "found",
                                 (json_int_t)c->found, "looked_ms",
                                 (json_int_t)c->looked_ms, "whole", (int)c->whole),
                       hf_reader_now_ms(r) - c->looked_ms);
}

hf_err hf_checkup_get(hf_query *ask, hf_reader *r)
{
    return give(ask, r, r->checkup);
}

hf_err hf_checkup_look(hf_query *ask, hf_reader *r)
{
    hf_checkup *c = calloc(1, sizeof *c);
    if (c == NULL)
        return HF_NOMEM;
    *c = (hf_checkup){.findings = json_array(), .whole = true};
    hf_err err = audit(r, c);
    if (err != HF_OK) {
        hf_checkup_free(c);
        return err;
    }
    c->looked_ms = hf_reader_now_ms(r);
    hf_checkup_free(r->checkup);
    r->checkup = c;
    r->free_checkup = hf_checkup_free;
    return give(ask, r, c);
}
