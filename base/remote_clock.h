/* remote_clock.h - what a process knows of another machine's wall clock.
 *
 * That clock may be stepped and slewed, in both directions, at any time. Each answer that
 * carries the remote time is a sample: it bounds the offset (remote minus boot time) from
 * below, by when the answer was read, and from above, by when the request was sent. The
 * bounds say when a remote time comes, and show that the clock was set. No promise
 * depends on them.
 *
 * Not thread-safe. Times of the boot clock are ns, offsets are microseconds. */
#ifndef HF_BASE_REMOTE_CLOCK_H
#define HF_BASE_REMOTE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Zero: there was no sample. */
typedef struct hf_remote_clock {
    bool known;
    uint64_t last_ns;        /* the last sample was read */
    int64_t low_us, high_us; /* the offset as the samples bound it */
} hf_remote_clock;

/* The answer to a request of sent_ns was read at read_ns and said remote_ms. Returns by
 * how much the remote clock was set, in ms: 0 if the samples agree. */
int64_t hf_remote_clock_read(hf_remote_clock *clock, uint64_t sent_ns, uint64_t read_ns,
                             int64_t remote_ms);

/* The remote time in ms, never ahead of what the last samples say. */
int64_t hf_remote_clock_now(const hf_remote_clock *clock, uint64_t boot_ns);
/* The boot time at which the remote clock shows a time, if it runs as fast as ours, in
 * ns; 0: it has long passed; UINT64_MAX: in more than 290 years. */
uint64_t hf_remote_clock_when(const hf_remote_clock *clock, int64_t remote_ms);

#endif
