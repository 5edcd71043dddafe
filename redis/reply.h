/* reply.h - what an error of Redis means to us. Reading a reply is in redis/call.h. */
#ifndef HF_REDIS_REPLY_H
#define HF_REDIS_REPLY_H

#include "holdfast/error.h"

/* The class of an error, by the code it begins with ("OOM command not allowed ..."), or
 * by the code inside, where Redis 6.2 has wrapped the error of a command in a script. */
hf_err hf_reply_class(const char *words);

#endif
