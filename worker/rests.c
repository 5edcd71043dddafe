/* rests.c - a queue that cannot be asked just now rests, and the others go on.
 *
 * It rests when Redis refuses a request for its sake (a key of another type, no
 * permission for its keys), longer each time until one is answered, and while a claim
 * without an answer may still be executed. What says that Redis itself cannot serve (it
 * loads, it is full, it is a replica) lets all wait: hf_life_refused(). */
#include "base/base.h"
#include "base/clock.h"
#include "worker/core.h"

enum { FIRST_MS = 100, LONGEST_MS = 1000 };

static bool is_for_its_sake(hf_err err)
{
    return err == HF_REDIS || err == HF_AUTH || err == HF_PROTO;
}

uint32_t hf_rest_longer(uint32_t ms)
{
    ms = ms == 0 ? FIRST_MS : 2 * ms;
    return ms < LONGEST_MS ? ms : LONGEST_MS;
}

void hf_rest(hf_served *served, uint32_t ms)
{
    uint64_t until_ns = hf_boot_ns() + ms * HF_MS_NS;
    if (served->rest_until_ns < until_ns)
        served->rest_until_ns = until_ns;
}

void hf_rest_refused(hf_served *served, hf_err err, const char *detail)
{
    hf_worker *w = served->worker;
    if (!is_for_its_sake(err) || hf_clock_now(w) == 0) {
        hf_life_refused(w, err, detail);
        return;
    }
    if (served->rest_until_ns != 0)
        return; /* several were under way */
    if (err != served->refused) {
        hf_log_field fields[] = {{.key = "queue", .text = served->queue.name},
                                 {.key = "error", .text = detail}};
        hf_report(w, HF_LOG_WARN, "Redis refuses what is asked of a queue", fields,
                  HF_COUNT(fields));
    }
    served->refused = err;
    served->looked = true; /* that is an answer as well */
    served->rest_ms = hf_rest_longer(served->rest_ms);
    hf_rest(served, served->rest_ms);
}

/* The blocking call under way may not name it. */
void hf_rest_answered(hf_served *served)
{
    hf_worker *w = served->worker;
    w->refused = served->refused = HF_OK;
    served->rest_ms = 0;
    if (served->missed && w->blocked)
        w->wait_stale = true;
}

uint64_t hf_rest_first_end_ns(const hf_worker *w)
{
    uint64_t first = w->wait_rest_until_ns;
    for (size_t i = 0; i < w->n_slots; i++) {
        uint64_t until = w->slots[i].rest_until_ns;
        if (until != 0 && (first == 0 || until < first))
            first = until;
    }
    return first;
}

void hf_rest_over(hf_worker *w)
{
    uint64_t now = hf_boot_ns();
    if (w->wait_rest_until_ns <= now)
        w->wait_rest_until_ns = 0;
    for (size_t i = 0; i < w->n_slots; i++)
        if (w->slots[i].rest_until_ns <= now)
            w->slots[i].rest_until_ns = 0;
}
