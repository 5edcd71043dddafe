/* script.h - a Lua script as the build embeds it: its bytes and the digest EVALSHA wants.
 */
#ifndef HF_REDIS_SCRIPT_H
#define HF_REDIS_SCRIPT_H

#include <stddef.h>

typedef struct hf_script {
    const char *name;          /* "queue/claim" */
    const unsigned char *text; /* followed by a NUL that `len` does not count */
    size_t len;
    const char *sha1;
    unsigned nkeys, nargs; /* the fixed ones; more may follow if the header allows it */
} hf_script;

#endif
