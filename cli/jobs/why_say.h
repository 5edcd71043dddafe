/* why_say.h - the reasons of why.h as sentences for people, and what to do about each. */
#ifndef HF_CLI_JOBS_WHY_SAY_H
#define HF_CLI_JOBS_WHY_SAY_H

#include "cli/jobs/why.h"

typedef struct hf_why_say {
    const hf_job_why *why;  /* all borrowed */
    const char *with_queue; /* " -q Q" for the commands that are named, or "" */
    const char *types;      /* what the live workers of its queue take: "a, b", or "" */
    unsigned shards;        /* of its queue: a limit is that of one of them; 0: whole */
    bool follows_dead;      /* it is parked, and the holder of its unique key is dead */
} hf_why_say;

/* Prints one line: the word, and the sentence. */
void hf_why_say_reason(const hf_why_say *say, hf_reason reason);

#endif
