/* waiting.h - tells a user at a terminal what a command waits for, if the first answer of
 * Redis takes longer than HF_WAITING_MS. Not with --json, and not in a log. */
#ifndef HF_CLI_WAITING_H
#define HF_CLI_WAITING_H

#include <stdbool.h>

enum { HF_WAITING_MS = 1000 };

/* Whether this user is told. */
bool hf_waiting_wanted(bool json);
/* Prints the line now, for a command that measures the time on its own. `url` is as
 * below. */
void hf_waiting_say(const char *url);

typedef struct hf_waiting hf_waiting;

/* The URL may be NULL: the default one. Gives NULL if the user is not told. */
hf_waiting *hf_waiting_begin(const char *url, bool json);
/* Redis has answered, or the command has failed. NULL is taken. */
void hf_waiting_end(hf_waiting *waiting);

#endif
