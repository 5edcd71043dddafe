/* judge.h - what the frames of a pool's process, or its end, mean for a run: its verdict,
 * its error, its result. Sends nothing. Belongs to the loop. */
#ifndef HF_WORKER_POOL_JUDGE_H
#define HF_WORKER_POOL_JUDGE_H

#include "worker/pool/child.h"
#include "worker/run/run.h"

/* A verdict; hf_outbox_finish() comes next. */
void hf_judge_verdict(hf_run *run, const hf_child_verdict *verdict);
/* Progress, a checkpoint, or a part of its log. */
void hf_judge_update(hf_run *run, const hf_frame *frame);
/* Its process has ended, as `end` says, and it is no crash and no neighbour: again
 * hf_outbox_finish() comes next. */
void hf_judge_end(hf_run *run, const hf_child_end *end);

#endif
