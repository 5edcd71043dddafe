/* err.c - see err.h. */
#include "redis/err.h"

enum {
    NOT_DONE = HF_ERR_NOT_DONE,
    AT_ONCE = HF_ERR_AT_ONCE | NOT_DONE,
    PASSES = HF_ERR_PASSES | NOT_DONE,
    NO_WRITES = HF_ERR_NO_WRITES | NOT_DONE,
    OF_CLUSTER = HF_ERR_OF_CLUSTER | PASSES,
    OF_QUEUE = HF_ERR_OF_QUEUE,
    LASTS = HF_ERR_LASTS | NOT_DONE
};

bool hf_err_is(hf_err err, unsigned traits)
{
    static const unsigned char table[-HF_ERR_LAST_] = {
        [-HF_DEADLINE] = AT_ONCE,
        [-HF_INVALID] = NOT_DONE,
        [-HF_TOOBIG] = NOT_DONE,
        [-HF_NOMEM] = NOT_DONE,
        [-HF_BUSY] = NOT_DONE,
        [-HF_CLOSED] = NOT_DONE,
        [-HF_TIMEOUT] = NOT_DONE,
        [-HF_FORKED] = NOT_DONE,
        [-HF_SYSTEM] = NOT_DONE,
        [-HF_CONN] = PASSES,
        [-HF_AUTH] = LASTS | OF_QUEUE,
        [-HF_UNSUPPORTED] = LASTS,
        [-HF_POLICY] = NOT_DONE,
        [-HF_NOSCRIPT] = AT_ONCE,
        [-HF_OOM] = NO_WRITES,
        [-HF_READONLY] = NO_WRITES,
        [-HF_LOADING] = PASSES,
        [-HF_BUSY_SCRIPT] = PASSES,
        [-HF_MISCONF] = NO_WRITES,
        [-HF_REDIS] = OF_QUEUE, /* a script may fail after its first write */
        [-HF_PROTO] = OF_QUEUE, /* it was executed, and what it answered is not known */
        [-HF_MOVED] = OF_CLUSTER,
        [-HF_UNSERVED] = OF_CLUSTER,
        [-HF_SHARDED] = NOT_DONE,
        [-HF_CONFIG] = LASTS,
        [-HF_UNSURE] = 0, /* nothing is known of it */
        [-HF_UNCONFIRMED] = 0,
    };
    return err < 0 && err > HF_ERR_LAST_ && (table[-err] & traits) != 0;
}

hf_err hf_err_told(hf_err err)
{
    return err == HF_MOVED ? HF_UNSERVED : err;
}
