/* waiter.c - see waiter.h. */
#include "producer/waiter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

hf_waiter *hf_waiter_new(hf_enqueue_result *results)
{
    hf_waiter *waiter = calloc(1, sizeof *waiter);
    if (waiter != NULL)
        waiter->results = results;
    return waiter;
}

void hf_waiter_free(hf_waiter *waiter)
{
    free(waiter);
}

void hf_waiter_note_id(hf_waiter *waiter, size_t place, const char *id)
{
    if (waiter != NULL && waiter->results != NULL && !waiter->run.left)
        memcpy(waiter->results[place].id, id, strlen(id) + 1);
}

/* The worst of several answers is the one that leaves most open. */
static int badness(hf_err err)
{
    if (err == HF_OK || err == HF_EXISTS)
        return 0;
    if (err == HF_UNSURE)
        return 3;
    return err == HF_TIMEOUT ? 2 : 1;
}

void hf_waiter_told(hf_waiter *waiter, hf_err err, const char *detail, hf_run_loop *run)
{
    if (badness(err) > badness(waiter->worst)) {
        waiter->worst = err;
        (void)snprintf(waiter->detail, sizeof waiter->detail, "%s", detail);
    }
    if (--waiter->pending > 0)
        return;
    if (waiter->run.left)
        hf_waiter_free(waiter);
    else
        hf_run_loop_done_locked(run, &waiter->run);
}
