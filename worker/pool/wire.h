/* wire.h - the worker's end of the socket to one process of a pool: whole frames come
 * out, lines and bytes go in. What the process does not read at once waits in memory, up
 * to one job and a few lines. Never blocks. Belongs to the loop. */
#ifndef HF_WORKER_POOL_WIRE_H
#define HF_WORKER_POOL_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "base/buf.h"
#include "base/spin.h"
#include "worker/pool/frame.h"

typedef struct hf_wire_calls {
    void (*frame)(const hf_frame *frame, void *arg);
    void (*broken)(const char *why, void *arg); /* a protocol error: nothing follows */
    void (*ended)(void *arg);                   /* the other side is closed, or was */
    void (*drained)(void *arg);                 /* what waited was written */
    void (*closed)(void *arg); /* after hf_wire_close(): libuv knows it no more */
} hf_wire_calls;

/* Part of its owner's struct, which stays until `closed`. */
typedef struct hf_wire {
    const hf_wire_calls *calls;
    void *arg;
    uv_poll_t poll;
    bool polled, ended; /* the other side is closed */
    int fd;             /* -1: closed */
    hf_frame_reader reader;
    hf_buf out; /* not written yet */
    bool deaf;  /* the other side is closed: what was written last has not arrived */
    bool reset; /* it had not read all when it was closed */
    hf_spin spin;
} hf_wire;

/* Before all others. */
void hf_wire_init(hf_wire *wire, const hf_wire_calls *calls, void *arg);
/* False with errno. *far is the end of the process; the caller closes it. */
bool hf_wire_open(hf_wire *wire, uv_loop_t *loop, int *far);
/* The same with a socket that is connected, and does not block. Takes it in any case. */
bool hf_wire_take(hf_wire *wire, uv_loop_t *loop, int fd);
void hf_wire_watch(hf_wire *wire); /* from now on it reads by itself */
/* Nothing is read or written any more. `closed` follows if one of these was true. */
void hf_wire_close(hf_wire *wire);
void hf_wire_done(hf_wire *wire); /* frees; after `closed`, or without these two */

/* False: the other side is closed, or nothing was opened. */
static inline bool hf_wire_is_open(const hf_wire *wire)
{
    return wire->fd >= 0 && !wire->ended;
}

/* At most this many reads of 64 KiB. */
void hf_wire_read(hf_wire *wire, int reads);
/* After hf_wire_read(): the other side has not read all of what was written last. It may
 * have read a part of it. */
bool hf_wire_has_unread(const hf_wire *wire);

/* Lines are put into `out`, and written as far as they can be. `drained` may be called
 * from inside. False: memory ran out, and the process would make no sense of the rest. */
HF_MUSTCHECK bool hf_wire_flush(hf_wire *wire);
/* A line with what follows it, without a copy of what is written at once. Only while
 * `out` is empty. */
typedef struct hf_wire_part {
    const void *ptr;
    size_t len;
} hf_wire_part;
HF_MUSTCHECK bool hf_wire_write(hf_wire *wire, const hf_wire_part parts[3]);
/* What was written is answered soon, if the last answer came soon: spins until something
 * can be read (base/spin.h). The loop stands still for at most HF_SPIN_NS. */
void hf_wire_spin(hf_wire *wire);

#endif
