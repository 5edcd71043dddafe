/* reason_read.h - what the sentences of reasons.h say beside the reasons of a job:
 * the types that its workers take, the shards of its queue, the job that it follows, the
 * one of its queue that runs longest. */
#ifndef HF_SEEN_REASON_READ_H
#define HF_SEEN_REASON_READ_H

#include "seen/reasons.h"

/* A list of more types ends with "and others". */
enum { HF_REASON_TYPES_SIZE = 512 };

typedef struct hf_reason_read {
    char types[HF_REASON_TYPES_SIZE];
    unsigned shards;
    bool follows_dead;
    char longest[HF_ID_SIZE]; /* "": not known */
    int64_t longest_ms;
} hf_reason_read;

/* Asks only what one of these reasons needs. All of it is a help: without an answer it
 * stays empty. */
void hf_reason_read_for(hf_admin *admin, const hf_job_why *why, const hf_reason *reasons,
                        size_t n, hf_reason_read *out);

/* The facts for a sentence; all is borrowed. */
hf_reason_facts hf_reason_facts_of(const hf_job_why *why, const hf_reason_read *read,
                                   const char *queue);

#endif
