/* reason_text.h - the reasons of reasons.h as sentences for people, and what to do about
 * each. */
#ifndef HF_SEEN_REASON_TEXT_H
#define HF_SEEN_REASON_TEXT_H

#include "seen/reasons.h"

typedef struct hf_reason_facts {
    const hf_job_why *why;  /* all borrowed */
    const char *with_queue; /* " -q Q" for the commands that are named, or "" */
    const char *types;      /* what the live workers of its queue take: "a, b", or "" */
    unsigned shards;        /* of its queue: a limit is that of one of them; 0: whole */
    bool follows_dead;      /* it is parked, and the holder of its unique key is dead */
    const char *longest;    /* the job of its queue that runs longest, or "" */
    int64_t longest_ms;     /* since when */
} hf_reason_facts;

/* The sentence of a reason, without an end; a second one follows behind a newline.
 * Returns `out`. */
enum { HF_REASON_TEXT_SIZE = 2048 };
const char *hf_reason_text(const hf_reason_facts *facts, hf_reason reason,
                           char out[HF_REASON_TEXT_SIZE]);

/* The command that removes a reason and can be given as it stands: it ends no run, and
 * the same command takes it back. "": there is none. */
enum { HF_REASON_COMMAND_SIZE = 256 };
const char *hf_reason_remedy(const hf_reason_facts *facts, hf_reason reason,
                             char out[HF_REASON_COMMAND_SIZE]);

#endif
