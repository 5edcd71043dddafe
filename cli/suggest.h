/* suggest.h - suggests the words that a mistyped one was meant to be. */
#ifndef HF_CLI_SUGGEST_H
#define HF_CLI_SUGGEST_H

#include "cli/table.h"

enum { HF_SUGGEST_SIZE = 128 };

/* Each writes " (did you mean 'job list'?)", with up to three names, or "". They are the
 * visible ones whose `alike` has the word, else those that begin with it, else the one
 * that is at most two letters away.
 *
 * `next` is the word after it, or "": "jobs list" and "list jobs" are both "job list". */
void hf_suggest_command(const hf_command *commands, const char *word, const char *next,
                        char out[HF_SUGGEST_SIZE]);
/* `word` has its dashes, and may have a value behind '='. */
void hf_suggest_option(const hf_opt *opts, const hf_opt *more, const char *word,
                       char out[HF_SUGGEST_SIZE]);

#endif
