/* judge.c - worker/pool/judge.h. */
#include "worker/pool/judge.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "holdfast/admin.h"
#include "worker/run/notes.h"
#include "worker/run/result.h"

/* "timed out after 30s", and what the program says of it. */
static void set_timed_out(hf_run *run, const char *said)
{
    char text[HF_ERROR_MAX + 1], duration[HF_DURATION_SIZE];
    hf_format_duration((int64_t)run->timeout_ms, duration);
    int n = snprintf(text, sizeof text, "timed out after %s", duration);
    size_t room = sizeof text - (size_t)n - 2,
           from = hf_text_end(said, strlen(said), room);
    if (said[from] != '\0')
        n += snprintf(text + n, sizeof text - (size_t)n, "\n%s", said + from);
    hf_run_set_text(run, text, (size_t)n);
    run->verdict = HF_VERDICT_RETRY;
    run->has_retry_in = false;
    atomic_store(&run->timed_out, true);
}

static void set_verdict(hf_run *run, const hf_child_verdict *verdict, const char *error)
{
    const hf_frame *frame = verdict->frame;
    run->verdict = hf_frame_verdict(frame->kind);
    if (error[0] != '\0')
        hf_run_set_text(run, error, strlen(error));
    if (frame->has_in)
        hf_run_set_retry_in(run, frame->in_ms);
    if (verdict->refused != NULL) {
        run->verdict = HF_VERDICT_DEAD;
        hf_run_set_text(run, verdict->refused, strlen(verdict->refused));
    } else if (frame->kind == HF_FRAME_DONE && frame->has_body) {
        /* if memory ran out, the job is done without it */
        (void)!hf_result_set(run, frame->body, frame->body_len, frame->json);
    }
}

/* A verdict that came after the request to end the run; LOST and CANCELLED are told by
 * flags of the run. */
static void judge_cancelled(hf_run *run, hf_frame_why why, const char *error)
{
    bool done = run->verdict == HF_VERDICT_DONE;
    if (why == HF_FRAME_WHY_LOST)
        run->released = true;
    else if (why == HF_FRAME_WHY_TIMEOUT && !done && run->verdict != HF_VERDICT_DEAD)
        set_timed_out(run, error);
    else if (why == HF_FRAME_WHY_STOP && !done && run->verdict != HF_VERDICT_CANCEL)
        run->released = true;
}

void hf_judge_verdict(hf_run *run, const hf_child_verdict *verdict)
{
    char error[HF_FRAME_ERROR_MAX + 1] = "";
    if (verdict->frame->kind != HF_FRAME_DONE)
        hf_frame_error(verdict->frame, error);
    set_verdict(run, verdict, error);
    if (verdict->cancelled)
        judge_cancelled(run, verdict->why, error);
    bool failed = run->verdict == HF_VERDICT_RETRY || run->verdict == HF_VERDICT_DEAD;
    if (failed && hf_run_worker_stops(run))
        run->released = true; /* its own programs may have got the signal, too */
}

void hf_judge_update(hf_run *run, const hf_frame *frame)
{
    if (frame->kind == HF_FRAME_LOG) {
        hf_notes_log(run, frame->body, frame->body_len);
        if (frame->body_len > 0 && frame->body[frame->body_len - 1] != '\n')
            hf_notes_log(run, "\n", 1);
    } else if (frame->kind == HF_FRAME_CHECKPOINT) {
        (void)!hf_run_set_checkpoint(run, frame->body, frame->body_len);
    } else {
        char note[HF_NOTE_MAX + 1];
        snprintf(note, sizeof note, "%.*s", (int)frame->note_len,
                 frame->note == NULL ? "" : frame->note);
        hf_notes_progress(run, frame->has_percent ? &frame->percent : NULL,
                          frame->note == NULL ? NULL : note);
    }
}

void hf_judge_end(hf_run *run, const hf_child_end *end)
{
    bool timed_out = end->fate == HF_FATE_CANCELLED && end->why == HF_FRAME_WHY_TIMEOUT;
    run->verdict = HF_VERDICT_RETRY;
    if (timed_out && !hf_run_worker_stops(run))
        set_timed_out(run, end->stderr_end);
    else
        run->released = true; /* if it was cancelled, its flag says so */
}
