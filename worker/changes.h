/* changes.h - what a reload will change, and what it cannot. */
#ifndef HF_WORKER_CHANGES_H
#define HF_WORKER_CHANGES_H

#include "worker/shared.h"

typedef struct hf_changes {
    size_t changed; /* lines about what changes */
    size_t fixed;   /* lines about what keeps its value until a restart */
} hf_changes;

/* Compares the plan with what the worker does now, and tells the log. */
void hf_changes_tell(hf_worker *w, const hf_plan *plan, hf_changes *out);

#endif
