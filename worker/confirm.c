/* confirm.c - see confirm.h. */
#include "worker/confirm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "queue/keys.h"
#include "worker/queues.h"
#include "worker/report.h"
#include "worker/running.h"

enum { FENCE_SIZE = sizeof((hf_run *)NULL)->fence };

hf_err hf_confirm_open(hf_site *site)
{
    hf_worker *w = site->worker;
    char mark[HF_KEY_SIZE];
    if (w->opts.wait_replicas == 0)
        return HF_OK;
    hf_key_replicated(mark, w->ns);
    hf_err err = hf_replicas_open(&site->replicas, &w->loop, site->redis, mark);
    if (err == HF_OK)
        hf_replicas_in_cluster(site->replicas, w->cluster, w->ns);
    else
        (void)snprintf(w->detail, sizeof w->detail, "%s", hf_err_text(err));
    return err;
}

void hf_confirm_close(hf_site *site)
{
    hf_replicas *replicas = site->replicas;
    site->replicas = NULL;
    hf_replicas_close(replicas, NULL, NULL);
}

void hf_confirm_ask(hf_site *site, hf_confirm *confirm,
                    void (*cb)(void *arg, hf_err err, const char *detail), void *arg)
{
    uint32_t ms = site->worker->opts.wait_replicas_ms;
    *confirm = (hf_confirm){.life = hf_client_life(site->client),
                            .wanted = site->worker->opts.wait_replicas,
                            .until_ns = hf_boot_ns() + ms * HF_MS_NS,
                            .cb = cb,
                            .arg = arg};
    hf_replicas_ask(site->replicas, confirm);
}

void hf_confirm_told(hf_site *site, hf_err err, const char *detail)
{
    hf_worker *w = site->worker;
    if (err == HF_OK && site->unguarded.err != HF_OK) {
        site->unguarded = (hf_outage){HF_OK, 0};
        hf_report_text(w, HF_LOG_INFO, "replicas confirm again", NULL, NULL);
    } else if (err == HF_UNCONFIRMED) {
        hf_report_outage(w, &site->unguarded,
                         "replicas do not confirm: no job is started", err, detail);
    }
}

/* ---- claims ---- */

typedef struct claim {
    hf_confirm confirm;
    hf_served *served;
    hf_site *site;          /* that has answered it */
    char fence[FENCE_SIZE]; /* of all its jobs */
} claim;

static void on_confirmed(void *arg, hf_err err, const char *detail)
{
    claim *c = arg;
    hf_worker *w = c->served->worker;
    if (w->phase != HF_ENDED) {
        bool moved = c->site != c->served->site;
        if (!moved)
            hf_confirm_told(c->site, err, detail);
        hf_running_confirmed(c->served, c->fence, err == HF_OK && !moved);
        hf_life_turn(w); /* a timer may have led here */
    }
    free(c);
}

void hf_confirm_claim(hf_served *served, hf_bytes fence)
{
    char text[FENCE_SIZE];
    claim *c = malloc(sizeof *c);
    (void)snprintf(text, sizeof text, "%.*s", (int)fence.len, (const char *)fence.ptr);
    if (c == NULL) {
        hf_running_confirmed(served, text, false);
        return;
    }
    c->served = served;
    c->site = served->asked_site;
    memcpy(c->fence, text, sizeof c->fence);
    hf_confirm_ask(c->site, &c->confirm, on_confirmed, c);
}
