/* suggest.h - suggests the word that a mistyped one was meant to be. */
#ifndef HF_CLI_SUGGEST_H
#define HF_CLI_SUGGEST_H

#include "cli/table.h"

/* The visible one that is at most two letters away, or NULL. */
const char *hf_suggest_command(const hf_command *commands, const char *word);
const char *hf_suggest_option(const hf_opt *opts, const hf_opt *more, const char *word);

#endif
