/* offer.h - commands that an operator is offered: each can be pasted into a shell as it
 * stands.
 *
 * The names that a command takes have no character that means something to a shell
 * (base/id.h), but may begin with "-". Such a name stands behind "--", after the options.
 */
#ifndef HF_SEEN_OFFER_H
#define HF_SEEN_OFFER_H

/* Room for the longest one: its words, and two names. */
enum { HF_OFFER_SIZE = 384 };

/* "holdfast COMMAND NAME -q QUEUE OPTIONS". `name`: "" for a command that takes none;
 * `queue` may be NULL; `options`: " --since 1h", or "". Returns `out`; "": no command
 * takes this name, or it has no room. */
const char *hf_offer(char out[HF_OFFER_SIZE], const char *command, const char *name,
                     const char *queue, const char *options);

#endif
