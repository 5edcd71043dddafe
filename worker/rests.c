/* rests.c - a queue that cannot be asked just now rests, and the others go on.
 *
 * It rests when Redis refuses a request for its sake (a key of another type, no
 * permission for its keys), longer each time until one is answered, and while a claim
 * without an answer may still be executed. What says that Redis itself cannot serve (it
 * loads, it is full, it is a replica) lets all wait: hf_life_refused().
 *
 * A worker rests that cannot start programs, for want of descriptors or processes. It
 * claims nothing, not for C handlers either: they would soon want the same. */
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "worker/core.h"

enum { FIRST_MS = 100, LONGEST_MS = 1000, PROGRAMS_LONGEST_MS = 5000 };

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

void hf_rest_programs(hf_worker *w, int error)
{
    uint64_t now = hf_boot_ns();
    uint32_t ms = w->spawn_rest_ms == 0 ? FIRST_MS : 2 * w->spawn_rest_ms;
    if (error != w->spawn_error || now - w->spawn_told_ns >= HF_REMIND_MS * HF_MS_NS) {
        hf_report_text(w, HF_LOG_ERROR, "a program cannot be started", "error",
                       strerror(error));
        w->spawn_error = error;
        w->spawn_told_ns = now;
    }
    w->spawn_rest_ms = ms < PROGRAMS_LONGEST_MS ? ms : PROGRAMS_LONGEST_MS;
    w->spawn_rest_until_ns = now + w->spawn_rest_ms * HF_MS_NS;
}

void hf_rest_program_started(hf_worker *w)
{
    if (w->spawn_error != 0)
        hf_report_text(w, HF_LOG_INFO, "programs are started again", NULL, NULL);
    w->spawn_error = 0;
    w->spawn_rest_ms = 0;
}

static uint64_t sooner(uint64_t a_ns, uint64_t b_ns) /* 0: none */
{
    return a_ns == 0 || (b_ns != 0 && b_ns < a_ns) ? b_ns : a_ns;
}

uint64_t hf_rest_first_end_ns(const hf_worker *w)
{
    uint64_t first = sooner(w->wait_rest_until_ns, w->spawn_rest_until_ns);
    for (size_t i = 0; i < w->n_slots; i++)
        first = sooner(first, w->slots[i].rest_until_ns);
    return first;
}

void hf_rest_over(hf_worker *w)
{
    uint64_t now = hf_boot_ns();
    if (w->wait_rest_until_ns <= now)
        w->wait_rest_until_ns = 0;
    if (w->spawn_rest_until_ns <= now)
        w->spawn_rest_until_ns = 0;
    for (size_t i = 0; i < w->n_slots; i++)
        if (w->slots[i].rest_until_ns <= now)
            w->slots[i].rest_until_ns = 0;
}
