/* notes.h - what a run reports while it runs: its progress, a checkpoint, a log.
 *
 * The handler sets them from any thread, a program by its descriptor and its outputs. The
 * next renewal of the lease takes them along, so progress costs no request of its own. A
 * checkpoint asks for a renewal at once, a log within a second. What a renewal took
 * counts as reported when Redis has answered; until then it is reported again. Before a
 * verdict goes out the worker reports the rest on its own connection (outbox.c).
 *
 *   set by the handler -> changed -> taken by a renewal -> reported, when it is answered
 *
 * Everything is guarded by the worker's note_lock, under which no thread waits. */
#ifndef HF_WORKER_RUN_NOTES_H
#define HF_WORKER_RUN_NOTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "queue/ops.h"
#include "worker/program/said.h"
#include "worker/worker.h"

typedef struct hf_notes hf_notes;

/* percent NULL: as it was. */
void hf_notes_progress(hf_run *run, const uint32_t *percent, const char *note);

/* Bytes of a log. The last HF_RUN_LOG_MAX are kept. */
void hf_notes_log(hf_run *run, const void *bytes, size_t len);

/* What a program writes, as the hooks of worker/program/programs.h. */
void hf_notes_on_output(void *run, const char *bytes, size_t len, void *worker);
void hf_notes_on_update(void *run, const hf_program_update *update, void *worker);

/* What one renewal takes along. Begin with zeros. */
typedef struct hf_notes_taken {
    hf_renew_note *notes; /* n_notes of them */
    size_t n_notes;
    uint64_t
        *numbers; /* of each item: for hf_notes_answered(); NULL: nothing is reported */
    size_t n;
    char *bytes;
    size_t len, cap;
} hf_notes_taken;

/* Fills it with what n runs have to report. A run is left out when memory or room is at
 * an end; it is asked for again soon. */
void hf_notes_take(hf_notes_taken *taken, hf_run *const *runs, size_t n);
void hf_notes_taken_free(hf_notes_taken *taken);

/* Redis has answered a renewal of this run. The number is that of the taken. */
void hf_notes_answered(hf_run *run, uint64_t number);

/* A checkpoint, or a part of a log, that Redis is not known to have. */
bool hf_notes_unreported(hf_run *run);
/* The handler has returned: what was taken last is reported, or given up. */
void hf_notes_settle(hf_run *run);

#endif
