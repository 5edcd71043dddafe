/* waiter.c - see waiter.h. */
#include "producer/waiter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/futex.h"

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
    if (waiter != NULL && waiter->results != NULL)
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

void hf_waiter_told(hf_waiter *waiter, hf_err err, const char *detail,
                    hf_waiters *waiting, hf_waiters *told)
{
    if (badness(err) > badness(waiter->worst)) {
        waiter->worst = err;
        (void)snprintf(waiter->detail, sizeof waiter->detail, "%s", detail);
    }
    if (--waiter->pending > 0)
        return;
    if (waiter->left) {
        hf_waiter_free(waiter);
        return;
    }
    if (waiter->waits)
        hf_waiters_remove(waiting, waiter);
    waiter->waits = false;
    hf_waiters_append(told, waiter);
}

void hf_waiters_wake(hf_waiters *told, const hf_waiter *self)
{
    hf_waiter *next;
    for (hf_waiter *waiter = told->first; waiter != NULL; waiter = next) {
        next = waiter->next; /* it may be gone a moment after it is done */
        bool other = waiter != self;
        atomic_store_explicit(&waiter->word, HF_WORD_DONE, memory_order_release);
        if (other)
            hf_futex_wake(&waiter->word);
    }
    *told = (hf_waiters){NULL, NULL};
}

void hf_waiters_append(hf_waiters *line, hf_waiter *waiter)
{
    waiter->next = NULL;
    waiter->prev = line->last;
    *(line->last != NULL ? &line->last->next : &line->first) = waiter;
    line->last = waiter;
}

void hf_waiters_remove(hf_waiters *line, hf_waiter *waiter)
{
    *(waiter->prev != NULL ? &waiter->prev->next : &line->first) = waiter->next;
    *(waiter->next != NULL ? &waiter->next->prev : &line->last) = waiter->prev;
    waiter->next = waiter->prev = NULL;
}
