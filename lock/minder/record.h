/* record.h - what is written to the pipe of a minder. Private to lock/minder/.
 */
#ifndef HF_LOCK_MINDER_RECORD_H
#define HF_LOCK_MINDER_RECORD_H

#include <stdbool.h>
#include <stdint.h>

typedef enum hf_minder_op {
    HF_MIND_HOLD =
        1, /* `group` may live until deadline_ns; a later deadline replaces an earlier */
    HF_MIND_GONE = 2, /* `group` has ended: forget it */
    HF_MIND_ASK = 3,  /* write a byte, to show that you live; no group */
    HF_MIND_END = 4   /* `group` is asked to end now, and may live until deadline_ns at
                         most; nothing happens when it is not known */
} hf_minder_op;

/* Its first byte, its hello; one of before HF_MIND_ASK says something else. */
#define HF_MINDER_ANSWERS 'a'

typedef struct hf_minder_record {
    uint32_t op;
    int32_t group;
    uint64_t deadline_ns; /* CLOCK_BOOTTIME */
    uint64_t ask_ns;      /* when TERM is sent; 0: kill_grace before the deadline */
} hf_minder_record;

/* A record is shorter than PIPE_BUF, so it goes whole or not at all. False with errno;
 * EAGAIN: the pipe is full. */
bool hf_minder_record_write_now(int fd, const hf_minder_record *record);
/* Writes one record, and waits a moment for a full pipe. Async-signal-safe. False: the
 * minder is gone, or does not read. */
bool hf_minder_record_write(int fd, const hf_minder_record *record);

#endif
