/* ran.h - an entry of the stream `runs`, as text, and its request (queue/lua/runs.lua).
 *
 * The first line is `<worker> <ms> <ok> <failed> <cut>`, each other one a run:
 * `<id> <type> <run> <slot> <start ms> <ran ms, or -> <a letter, or ->` (docs/keys.md).
 */
#ifndef HF_QUEUE_RAN_H
#define HF_QUEUE_RAN_H

#include "base/buf.h"
#include "holdfast/runs.h"
#include "queue/ops.h"

enum {
    HF_RAN_LONG_MS = 2000, /* shorter runs are counted alone */
    HF_RAN_MAX = 200,      /* runs in an entry; others are counted in `cut` */
    HF_RAN_TEXT_MAX = HF_RAN_MAX * 352 + 256 /* bytes of an entry */
};

typedef struct hf_ran_head {
    char worker[HF_HOLDER_SIZE];
    int64_t at_ms;
    int64_t ok, failed; /* short runs that have ended */
    int64_t cut;
} hf_ran_head;

void hf_ran_write_head(hf_buf *buf, const hf_ran_head *head);
/* id and type are names. run->end HF_RUN_GOES_ON: it runs, and ran_ms is not written. */
void hf_ran_write(hf_buf *buf, const hf_reported_run *run);

/* Each reads a line at *text and moves *text behind it. False: it is none, and *text is
 * behind it all the same. Of a run that goes on ran_ms becomes 0. */
bool hf_ran_read_head(const char **text, hf_ran_head *head);
bool hf_ran_read(const char **text, hf_reported_run *run);

/* It is not for sending again. */
HF_MUSTCHECK hf_err hf_op_runs(hf_client *client, const hf_queue *queue, hf_bytes entry,
                               hf_answer_cb cb, void *arg);
HF_MUSTCHECK hf_err hf_ran_answered(const hf_answer *answer, int64_t *now_ms);

#endif
