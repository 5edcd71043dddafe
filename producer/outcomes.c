/* outcomes.c - how requests end: answered, refused, without an answer, past their
 * deadline.
 *
 * See requests.c for what a number is, and for what follows when no answer comes. */
#include <stdio.h>
#include <string.h>

#include "base/backoff.h"
#include "base/base.h"
#include "base/clock.h"
#include "producer/engine.h"

/* How long to leave a server alone that has refused: short beside most deadlines, so that
 * a later call still finds out that it is well again. */
static const hf_backoff refused = {HF_SHAPE_EXPONENTIAL, 5, 100, 0.2};

/* ---- ends ---- */

/* Gives the batch's jobs their answers, once. */
static void tell(hf_engine *engine, hf_batch *batch, hf_err err, const hf_reply *codes,
                 const char *detail)
{
    if (batch->told)
        return;
    batch->told = true;
    hf_inbox_tell(&engine->inbox, batch,
                  &(hf_outcome){.err = err, .codes = codes, .detail = detail});
}

/* For a batch that is in no list. */
void hf_outcome_end(hf_engine *engine, hf_batch *batch, hf_err err, const hf_reply *codes,
                    const char *detail)
{
    tell(engine, batch, err, codes, detail);
    if (batch->doubted)
        engine->doubted--;
    hf_batch_free(batch);
}

void hf_outcome_unsent(hf_engine *engine, hf_batch *batch)
{
    char text[HF_DETAIL_SIZE];
    if (batch->refused != HF_OK && batch->refused != HF_DEADLINE) {
        hf_outcome_end(engine, batch, batch->refused, NULL, engine->why);
        return;
    }
    if (hf_client_ready(engine->client))
        (void)snprintf(text, sizeof text, "not sent in time");
    else
        (void)snprintf(text, sizeof text, "not sent in time: %s",
                       hf_client_detail(engine->client));
    bool replica = hf_client_status(engine->client) == HF_READONLY;
    hf_outcome_end(engine, batch, replica ? HF_READONLY : HF_TIMEOUT, NULL, text);
}

static void end_all(hf_engine *engine, hf_batches *unsent, hf_err err, const char *detail)
{
    while (unsent->first != NULL) {
        hf_batch *batch = unsent->first;
        hf_batches_remove(unsent, batch);
        if (err != HF_OK)
            hf_outcome_end(engine, batch, err, NULL, detail);
        else
            hf_outcome_unsent(engine, batch);
    }
}

void hf_outcome_fail_unsent(hf_engine *engine)
{
    hf_batches unsent = {NULL, NULL};
    hf_inbox_expire(&engine->inbox, UINT64_MAX, &unsent);
    end_all(engine, &unsent, hf_client_status(engine->client),
            hf_client_detail(engine->client));
}

/* One that is in flight stays there: its answer is still to come, only nobody waits for
 * it. */
void hf_outcome_expire(hf_engine *engine, uint64_t now_ns)
{
    static const char silent[] = "sent, and not answered in time";
    hf_batches unsent = {NULL, NULL};
    hf_inbox_expire(&engine->inbox, now_ns, &unsent);
    end_all(engine, &unsent, HF_OK, "");

    engine->next_deadline_ns = UINT64_MAX;
    for (hf_batch *batch = engine->flight.first; batch != NULL; batch = batch->next) {
        if (batch->told)
            continue;
        if (batch->deadline_ns <= now_ns) {
            engine->tainted = true;
            tell(engine, batch, HF_UNSURE, NULL, silent);
        } else if (batch->deadline_ns < engine->next_deadline_ns) {
            engine->next_deadline_ns = batch->deadline_ns;
        }
    }
    hf_batch *next;
    for (hf_batch *batch = engine->doubt.first; batch != NULL; batch = next) {
        next = batch->next;
        if (batch->deadline_ns <= now_ns) {
            hf_batches_remove(&engine->doubt, batch);
            hf_outcome_end(engine, batch, HF_UNSURE, NULL, silent);
        } else if (batch->deadline_ns < engine->next_deadline_ns) {
            engine->next_deadline_ns = batch->deadline_ns;
        }
    }
}

/* ---- answers ---- */

/* Those that were sent before the pause began met the same cause: one pause is for all.
 */
static void hold_off(hf_engine *engine, const hf_answer *answer, hf_err err)
{
    if (err != HF_DEADLINE)
        (void)snprintf(engine->why, sizeof engine->why, "%s", answer->detail);
    if (answer->sent_ns < engine->paused_ns)
        return;
    /* By now the script was sent as well, so that the next try will do. */
    bool at_once = err == HF_NOSCRIPT && engine->refusals == 0;
    engine->refusals++;
    int64_t ms = at_once ? 0 : hf_backoff_ms(&refused, engine->refusals, &engine->rng);
    engine->paused_ns = hf_boot_ns();
    engine->pause_until_ns = engine->paused_ns + (uint64_t)ms * HF_MS_NS;
}

/* What time may heal. HF_DEADLINE is among it because a batch is ended here at its
 * deadline: if Redis found it late before, its clock is not where we thought, and now we
 * know better. */
static bool may_pass(hf_err err)
{
    return err == HF_NOSCRIPT || err == HF_LOADING || err == HF_BUSY_SCRIPT ||
           err == HF_READONLY || err == HF_MISCONF || err == HF_DEADLINE;
}

static void unanswered(hf_engine *engine, hf_batch *batch)
{
    engine->tainted = true;
    if (batch->told) {
        hf_outcome_end(engine, batch, HF_UNSURE, NULL, "");
        return;
    }
    if (!batch->doubted) {
        batch->doubted = true;
        engine->doubted++;
    }
    hf_batches_by_number(&engine->doubt, batch);
}

/* Ids that were made here met others: nothing was taken, and with other ids it will be.
 * The number was not used either, so that a sending before this one was no other. */
static void ids_taken(hf_engine *engine, hf_batch *batch, const hf_reply *codes)
{
    if (batch->told) {
        hf_outcome_end(engine, batch, HF_UNSURE, NULL, "");
        return;
    }
    hf_batch_rename(batch, &engine->run->lock, &engine->inbox.ids, codes);
    if (batch->doubted)
        hf_batches_by_number(&engine->doubt, batch);
    else
        hf_inbox_put_back(&engine->inbox, batch);
}

static void was_refused(hf_engine *engine, hf_batch *batch, hf_err err,
                        const hf_answer *answer)
{
    if (batch->told || !may_pass(err) || (batch->doubted && err == HF_DEADLINE)) {
        /* An earlier sending may have done it, and this answer does not say. */
        hf_outcome_end(engine, batch, batch->doubted ? HF_UNSURE : err, NULL,
                       answer->detail);
        return;
    }
    hold_off(engine, answer, err);
    /* The last try may come too late: why the ones before it were refused says more. */
    if (err != HF_DEADLINE || batch->refused == HF_OK)
        batch->refused = err;
    if (batch->doubted) {
        hf_batches_by_number(&engine->doubt, batch);
        return;
    }
    hf_inbox_put_back(&engine->inbox, batch);
}

void hf_outcome_on_answer(const hf_answer *answer, void *arg)
{
    hf_batch *batch = arg;
    hf_engine *engine = batch->engine;
    hf_batches_remove(&engine->flight, batch);
    engine->in_flight--;
    engine->jobs_in_flight -= batch->n;
    engine->bytes_in_flight -= batch->charge;

    hf_enqueued got;
    hf_err err = hf_enqueued_read(answer, &got);
    if (err == HF_OK || err == HF_DEADLINE || err == HF_EXISTS) {
        engine->clock_ms = got.now_ms;
        engine->clock_ns = hf_boot_ns();
    }
    if (err == HF_OK) {
        engine->refusals = 0;
        bool all_new = got.repeated || hf_reply_len(got.codes) == 0;
        hf_outcome_end(engine, batch, HF_OK, all_new ? NULL : got.codes, "");
    } else if (err == HF_EXISTS) {
        ids_taken(engine, batch, got.codes);
    } else if (err == HF_UNSURE) {
        unanswered(engine, batch);
    } else if (err == HF_PROTO) {
        engine->tainted = true; /* something was done, but who knows what */
        hf_outcome_end(engine, batch, HF_UNSURE, NULL,
                       "Redis answered in an unexpected shape");
    } else {
        was_refused(engine, batch, err, answer);
    }
    hf_requests_pump(engine);
}
