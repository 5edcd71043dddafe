/* crash.c - worker/pool/crash.h.
 *
 * A crash is counted, and the job runs alone next time. systemd signals the whole control
 * group, and that signal may kill a process before it reaches us: a crash by a signal
 * waits for a moment. */
#include "worker/pool/crash.h"

#include <string.h>

#include "base/clock.h"
#include "worker/outbox.h"

enum { KILLED_OUTSIDE_MS = 100 };

static void end(hf_run *run)
{
    if (hf_run_worker_stops(run))
        hf_outbox_release(run);
    else
        hf_outbox_crashed(run, run->error == NULL ? "crashed" : run->error);
}

void hf_crash_take(hf_run_list *undecided, hf_run *run, const hf_child_end *how)
{
    hf_run_set_text(run, how->text, strlen(how->text));
    if (how->by_signal && !hf_run_worker_stops(run))
        hf_run_push(undecided, run);
    else
        end(run);
}

void hf_crash_decide(hf_run_list *undecided, uint64_t now_ns)
{
    for (hf_run *run = undecided->head, *next; run != NULL; run = next) {
        next = run->next;
        if (!hf_run_worker_stops(run) &&
            run->ended_ns + KILLED_OUTSIDE_MS * HF_MS_NS > now_ns)
            continue;
        hf_run_remove(undecided, run);
        end(run);
    }
}
