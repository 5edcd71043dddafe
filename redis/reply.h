/* reply.h - reading a reply, and what an error of Redis means to us. */
#ifndef HF_REDIS_REPLY_H
#define HF_REDIS_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/error.h"

typedef struct hf_bytes {
    const void *ptr;
    size_t len;
} hf_bytes;

/* A reply, borrowed from the answer it came with. NULL is accepted everywhere and is nil.
 */
typedef struct redisReply hf_reply;

/* The class of an error, by the code it begins with ("OOM command not allowed ..."), or
 * by the code inside, where Redis 6.2 has wrapped the error of a command in a script. */
hf_err hf_reply_class(const char *words);

/* ---- reading a reply: a wrong type reads as 0, nil, "" ---- */

bool hf_reply_is_array(const hf_reply *reply);
bool hf_reply_is_nil(const hf_reply *reply);
size_t hf_reply_len(const hf_reply *reply);                   /* elements of an array */
const hf_reply *hf_reply_at(const hf_reply *reply, size_t i); /* NULL past the end */
int64_t
hf_reply_int(const hf_reply *reply); /* an integer, or text that is one or begins so */
hf_bytes hf_reply_bytes(const hf_reply *reply);   /* NUL-terminated as well */
const char *hf_reply_text(const hf_reply *reply); /* never NULL */

#endif
