/* exit.c - see exit.h. */
#include "cli/exit.h"

#include <errno.h>
#include <signal.h>

hf_exit hf_exit_code(hf_err err)
{
    switch (err) {
    case HF_OK:
    case HF_EXISTS:
        return HF_EXIT_OK;
    case HF_GONE:
    case HF_DEAD:
    case HF_RUNNING:
    case HF_PARKED:
    case HF_CANCEL:
    case HF_DELETED:
    case HF_EXPIRED:
    case HF_TAKEN:
    case HF_BUSY:
    case HF_DEADLOCK:
        return HF_EXIT_NO;
    case HF_INVALID:
    case HF_TOOBIG:
    case HF_LIMIT:
        return HF_EXIT_DATA;
    case HF_CONN:
    case HF_TIMEOUT:
    case HF_UNSUPPORTED:
        return HF_EXIT_UNAVAILABLE;
    case HF_FULL:
    case HF_DEADLINE:
    case HF_LOST:
    case HF_OOM:
    case HF_READONLY:
    case HF_LOADING:
    case HF_BUSY_SCRIPT:
    case HF_MISCONF:
    case HF_MOVED:
    case HF_UNSERVED:
    case HF_UNSURE:
        return HF_EXIT_LATER;
    case HF_UNCONFIRMED:
        return HF_EXIT_UNCONFIRMED;
    case HF_AUTH:
        return HF_EXIT_NOPERM;
    case HF_NOMEM:
    case HF_SYSTEM:
        return HF_EXIT_SYSTEM;
    case HF_CONFIG:
    case HF_POLICY:
        return HF_EXIT_CONFIG;
    default: /* HF_PROTO, HF_REDIS, ... and errors that are not listed yet */
        return HF_EXIT_BUG;
    }
}

hf_exit hf_exit_of_output(int error)
{
    return error == EPIPE ? (hf_exit)(128 + SIGPIPE) : HF_EXIT_OUTPUT;
}

const char *hf_exit_hint(hf_err err)
{
    switch (err) {
    case HF_CONN:
    case HF_TIMEOUT:
        return "check that Redis runs there; --redis, REDIS_URL or redis.url sets the "
               "address";
    case HF_AUTH:
        return "check the password (redis.password_file or the URL), the user's ACL, and "
               "with TLS the certificates (redis.tls)";
    case HF_UNSUPPORTED:
        return "Redis 6.2 or later, or Valkey, is needed";
    case HF_POLICY:
        return "set maxmemory-policy noeviction in Redis";
    case HF_OOM:
        return "raise maxmemory of Redis, or let workers drain the queues";
    case HF_READONLY:
        return "this is a replica: use the address of its primary";
    case HF_MISCONF:
        return "check the disk of Redis, and its replicas (min-replicas-to-write, "
               "--wait-replicas)";
    case HF_LOADING:
    case HF_BUSY_SCRIPT:
    case HF_MOVED:
    case HF_UNSERVED:
    case HF_FULL:
    case HF_DEADLINE:
        return "try again in a moment";
    case HF_UNCONFIRMED:
        return "a failover may lose it: send it again under its id (--id, or --run with "
               "--bulk); what is still there is not accepted twice";
    case HF_NOMEM:
    case HF_SYSTEM:
        return "check the limits of memory, processes and open files (ulimit -a)";
    case HF_UNSURE:
        return "it may have been done: check before you repeat it";
    default:
        return "";
    }
}
