/* reply.c - redis/reply.h, and the reading half of redis/request.h. */
#include "redis/reply.h"

#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "base/base.h"
#include "redis/request.h"

typedef struct error_class {
    const char *code;
    hf_err err;
} error_class;

static const error_class classes[] = {
    {"NOSCRIPT", HF_NOSCRIPT},
    {"OOM", HF_OOM},
    {"READONLY", HF_READONLY},
    {"MASTERDOWN", HF_READONLY},
    {"UNBLOCKED", HF_READONLY}, /* it became a replica while a client waited there */
    {"MOVED", HF_MOVED},
    {"ASK", HF_UNSERVED}, /* the slot is on its way: it is never followed */
    {"TRYAGAIN", HF_UNSERVED},
    {"CLUSTERDOWN", HF_UNSERVED},
    {"SHARDED", HF_SHARDED}, /* queue/lua/steps/sharded.lua */
    {"LOADING", HF_LOADING},
    {"BUSY", HF_BUSY_SCRIPT},
    {"MISCONF", HF_MISCONF},
    {"NOREPLICAS", HF_MISCONF},
    {"NOAUTH", HF_AUTH},
    {"WRONGPASS", HF_AUTH},
    {"NOPERM", HF_AUTH},
    {"ERR max number of clients reached", HF_CONN}, /* then it hangs up */
};

/* The class whose code stands at this place, as a whole word. */
static hf_err class_at(const char *words)
{
    for (size_t i = 0; i < HF_COUNT(classes); i++) {
        size_t len = strlen(classes[i].code);
        if (strncmp(words, classes[i].code, len) == 0 &&
            (words[len] == ' ' || words[len] == '\0'))
            return classes[i].err;
    }
    return HF_REDIS;
}

/* A script that may not do something: 6.2 wraps that, 7.0 does not, 7.2 says it in other
 * words, and none has a code for it. */
static bool is_script_denied(const char *words)
{
    return strstr(words, "The user executing the script can't ") != NULL ||
           strstr(words, "ACL failure in script: ") != NULL;
}

hf_err hf_reply_class(const char *words)
{
    static const char wrapped[] = "ERR Error running script";
    if (is_script_denied(words))
        return HF_AUTH;
    if (strncmp(words, wrapped, sizeof wrapped - 1) != 0)
        return class_at(words);
    /* "...: @user_script:12: -OOM command not allowed ..." */
    hf_err err = HF_REDIS;
    for (const char *at = words; err == HF_REDIS && (at = strstr(at, " -")) != NULL;
         at += 2)
        err = class_at(at + 2);
    return err;
}

bool hf_reply_is_array(const hf_reply *reply)
{
    return reply != NULL && reply->type == REDIS_REPLY_ARRAY;
}

bool hf_reply_is_nil(const hf_reply *reply)
{
    return reply == NULL || reply->type == REDIS_REPLY_NIL;
}

size_t hf_reply_len(const hf_reply *reply)
{
    return hf_reply_is_array(reply) ? reply->elements : 0;
}

const hf_reply *hf_reply_at(const hf_reply *reply, size_t i)
{
    return i < hf_reply_len(reply) ? reply->element[i] : NULL;
}

static bool is_text(const hf_reply *reply)
{
    return reply != NULL &&
           (reply->type == REDIS_REPLY_STRING || reply->type == REDIS_REPLY_STATUS);
}

int64_t hf_reply_int(const hf_reply *reply)
{
    if (is_text(reply))
        return strtoll(reply->str, NULL, 10);
    return reply != NULL && reply->type == REDIS_REPLY_INTEGER ? reply->integer : 0;
}

hf_bytes hf_reply_bytes(const hf_reply *reply)
{
    return is_text(reply) ? (hf_bytes){reply->str, reply->len} : (hf_bytes){"", 0};
}

const char *hf_reply_text(const hf_reply *reply)
{
    return is_text(reply) ? reply->str : "";
}
