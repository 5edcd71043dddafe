/* error.h - every answer that a call can give.
 *
 * Three families, because callers act differently on them:
 *   answers (-1..-19)   the call worked, and this is what it found;
 *   faults  (-20..-59)  nothing happened: correct the cause, or try again later;
 *   open ends (-60..)   HF_UNSURE: the request was sent, and no answer came: it may have
 *                       happened. HF_UNCONFIRMED: it has happened on one server, and a
 *                       failover may undo it.
 * Numbers are never reused. They appear in the Lua scripts, in logs and in other
 * languages.
 *
 * A call whose answer can have several reasons has a last parameter `char
 * detail[HF_DETAIL_SIZE]`, which may be NULL. When the call does not return HF_OK, it
 * writes a sentence there that explains the answer; "" means that hf_err_text() says
 * everything. After HF_OK the content is undefined. A callback gets the same sentence as
 * its argument `detail`. */
#ifndef HOLDFAST_ERROR_H
#define HOLDFAST_ERROR_H

#if defined(__GNUC__)
#define HF_API __attribute__((visibility("default")))
#define HF_MUSTCHECK __attribute__((warn_unused_result))
#else
#define HF_API
#define HF_MUSTCHECK
#endif

#define HF_ERR_MAP(X)                                                                    \
    X(HF_OK, 0, "done")                                                                  \
    X(HF_EXISTS, -1, "a job of that id exists already")                                  \
    X(HF_LOST, -2, "the lock is not held any more")                                      \
    X(HF_GONE, -3, "no job of that id")                                                  \
    X(HF_DEADLINE, -4, "the request arrived after its time")                             \
    X(HF_CANCEL, -5, "the job was asked to end")                                         \
    X(HF_RUNNING, -6, "the job is running")                                              \
    X(HF_DEAD, -7, "the job is dead")                                                    \
    X(HF_FULL, -8, "the local buffer is full")                                           \
    X(HF_TAKEN, -9, "another owner has the lock")                                        \
    X(HF_DEADLOCK, -10, "its owner has the lock already, and would wait for itself")     \
    X(HF_IN_LINE, -11, "it stands in line for the lock")                                 \
    X(HF_LIMIT, -12, "the lock has another limit")                                       \
    X(HF_EXPIRED, -13, "the job did not start in time")                                  \
    X(HF_PARKED, -14, "the job follows another one, which has not ended")                \
    X(HF_DELETED, -15, "the job was deleted")                                            \
    X(HF_INVALID, -20, "an argument is not acceptable")                                  \
    X(HF_TOOBIG, -21, "the data is larger than its limit")                               \
    X(HF_NOMEM, -22, "out of memory")                                                    \
    X(HF_BUSY, -23, "the object is busy")                                                \
    X(HF_CLOSED, -24, "the object was closed")                                           \
    X(HF_TIMEOUT, -25, "the deadline passed and nothing was sent")                       \
    X(HF_FORKED, -26, "the object belongs to the parent process")                        \
    X(HF_SYSTEM, -27, "the operating system refused")                                    \
    X(HF_CONN, -30, "Redis cannot be reached")                                           \
    X(HF_AUTH, -31, "a user, a password, a permission or a certificate was refused")     \
    X(HF_UNSUPPORTED, -32, "Redis is too old")                                           \
    X(HF_POLICY, -33, "Redis may evict keys")                                            \
    X(HF_NOSCRIPT, -34, "Redis did not know the script")                                 \
    X(HF_OOM, -35, "Redis is at its memory limit")                                       \
    X(HF_READONLY, -36, "Redis accepts no writes here")                                  \
    X(HF_LOADING, -37, "Redis is loading its data")                                      \
    X(HF_BUSY_SCRIPT, -38, "Redis is busy with a script")                                \
    X(HF_MISCONF, -39, "Redis cannot persist what is written, or has too few replicas")  \
    X(HF_REDIS, -40, "Redis answered with an error")                                     \
    X(HF_PROTO, -41, "Redis answered in an unexpected shape")                            \
    X(HF_MOVED, -42, "another node of the cluster has it")                               \
    X(HF_UNSERVED, -43, "no node of the cluster serves it at the moment")                \
    X(HF_SHARDED, -44, "the queue is divided into shards")                               \
    X(HF_CONFIG, -50, "the configuration is not valid")                                  \
    X(HF_UNSURE, -60, "it was sent and not answered: it may have happened")              \
    X(HF_UNCONFIRMED, -61, "it was done, but too few replicas have confirmed it")

#define HF_ERR_ENUM(name, number, text) name = (number),
typedef enum hf_err { HF_ERR_MAP(HF_ERR_ENUM) HF_ERR_LAST_ = -62 } hf_err;
#undef HF_ERR_ENUM

/* Bytes of a detail: a sentence for people, always ended by NUL, and cut if longer. */
enum { HF_DETAIL_SIZE = 256 };

#ifdef __cplusplus
extern "C" {
#endif

/* The name ("HF_OOM") and the sentence of an answer. Static, and never NULL: a number
 * that is no answer has a name and a sentence too. */
HF_API const char *hf_err_name(hf_err err);
HF_API const char *hf_err_text(hf_err err);

#ifdef __cplusplus
}
#endif

#endif
