/* alone.c - worker/alone.h. */
#include "worker/alone.h"

#include "base/base.h"
#include "worker/node/site.h"
#include "worker/outbox.h"
#include "worker/queues/queues.h"

enum {
    PATIENCE_MS = 100, /* of a job that was not put back yet */
    AWAY_MS = 1000,
    AWAY_MAX_MS = 3600000
};

int64_t hf_alone_patience_ms(const hf_run *run)
{
    int64_t since = run->record.refused_ms;
    int64_t passed = since > 0 ? hf_server_now(run->served->site->base.redis) - since : 0;
    return PATIENCE_MS + (passed > 0 ? passed / 8 : 0);
}

void hf_alone_put_back(hf_run *run)
{
    static const char crashed[] =
        "it waits for a worker to run alone: one crash more and "
        "it is dead",
                      suspect[] = "it waits for a process to run alone";
    int64_t delay_ms = 4 * hf_alone_patience_ms(run);
    delay_ms = delay_ms > AWAY_MAX_MS ? AWAY_MAX_MS : delay_ms;
    if (run->isolated)
        hf_run_set_text(run, crashed, sizeof crashed - 1);
    else
        hf_run_set_text(run, suspect, sizeof suspect - 1);
    hf_queue_refund(run->served, 1);
    hf_outbox_put_back(run, delay_ms < AWAY_MS ? AWAY_MS : delay_ms);
    hf_run_report(run->worker, run, "put_back");
}
