/* waiting.h - tells a user at a terminal what a command waits for, if the first answer of
 * Redis takes longer than a second. Not with --json, and not in a log. */
#ifndef HF_CLI_WAITING_H
#define HF_CLI_WAITING_H

#include <stdbool.h>

typedef struct hf_waiting hf_waiting;

/* The URL may be NULL: that of the default. NULL: nobody is told. */
hf_waiting *hf_waiting_begin(const char *url, bool json);
/* Redis has answered, or the command has failed. NULL is taken. */
void hf_waiting_end(hf_waiting *waiting);

#endif
