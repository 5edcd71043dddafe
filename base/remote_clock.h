/* remote_clock.h - what a process may rely on about another machine's wall clock.
 *
 * That clock may be stepped and slewed, in both directions, at any time. The one clock to
 * trust is our own CLOCK_BOOTTIME. Each answer that carries the remote time is a sample:
 * it bounds the offset (remote minus boot time) from below, by when the answer was read,
 * and from above, by when the request was sent. The samples of the last lease bound what
 * the remote clock can have shown meanwhile. They answer five questions:
 *
 *   now       the remote time, never ahead of what the last samples say
 *   when      the boot time at which the remote clock shows a time, if it runs as fast
 *             as ours
 *   vouched   a lease whose end, a remote time, is before this one is over, even if the
 *             remote clock was set meanwhile: the boot time plus the least offset of the
 *             last lease. Known only after samples of a lease and a gap without a step.
 *   least     the same, from any number of samples: a lease of our own that ends later is
 *             not over, because its beginning was a sample
 *   at_least  no process judges a lease that starts now by a greater offset than this
 *             time implies: the boot time plus the greatest offset since every other
 *             process has certainly taken a sample.
 *
 * Samples count while no two of them are further apart than hf_remote_gap_ms(); after a
 * longer gap (the process was stopped) learning starts again. A sample may be as old as
 * its request: an answer can lie in a buffer for long before it is read. Processes of one
 * machine share their boot time, so one can continue with the samples of another.
 *
 * Not thread-safe. Times of the boot clock are ns, offsets are microseconds. */
#ifndef HF_BASE_REMOTE_CLOCK_H
#define HF_BASE_REMOTE_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HF_REMOTE_SPANS = 64, HF_REMOTE_STATE_SIZE = 96 };

/* The part that is sent to a script. Zero: the caller knows nothing of the clock yet. */
typedef struct hf_clock_view {
    int64_t vouched_ms; /* leases that end until then are over; <= 0: none */
    int64_t least_ms;   /* a lease of the caller's own that ends later is not over; 0: not
                           known */
    int64_t at_least_ms; /* no lease starts before; 0: not known */
} hf_clock_view;

/* The samples of a stretch of time, as bounds. */
typedef struct hf_remote_span {
    uint64_t first_ns, last_ns;
    int64_t low_us, high_us;
} hf_remote_span;

typedef struct hf_remote_clock {
    uint32_t lease_ms;       /* the longest lease that is judged */
    uint64_t since_ns;       /* sampled without a gap since then, and kept in spans */
    uint64_t steady_ns;      /* and since then without a step */
    uint64_t last_ns;        /* the last sample was read; */
    uint64_t sent_ns;        /* it is no older than this */
    int64_t low_us, high_us; /* the offset as the last samples bound it */
    hf_remote_span spans[HF_REMOTE_SPANS]; /* the oldest first */
    size_t n;
} hf_remote_clock;

void hf_remote_clock_init(hf_remote_clock *clock, uint32_t lease_ms);
/* Leases of this length are judged from now on. */
void hf_remote_clock_judge(hf_remote_clock *clock, uint32_t lease_ms);

/* How far two samples may be apart: three quarters of the lease, 7.5 s at most. Everybody
 * who asks at least each half lease, and each 5 s, keeps to it. */
uint32_t hf_remote_gap_ms(uint32_t lease_ms);

/* The answer to a request of sent_ns was read at read_ns and said remote_ms. Returns by
 * how much the remote clock was set, in ms: 0 if the samples agree. */
int64_t hf_remote_clock_read(hf_remote_clock *clock, uint64_t sent_ns, uint64_t read_ns,
                             int64_t remote_ms);

bool hf_remote_clock_known(const hf_remote_clock *clock); /* there was a sample */
int64_t hf_remote_clock_now(const hf_remote_clock *clock, uint64_t boot_ns); /* ms */
/* In ns; 0: it has long passed; UINT64_MAX: in more than 290 years. */
uint64_t hf_remote_clock_when(const hf_remote_clock *clock, int64_t remote_ms);
/* In ms. 0 or less: nothing is vouched for, but it will be in that many ms, negated. */
int64_t hf_remote_clock_vouched(const hf_remote_clock *clock, uint64_t boot_ns);
int64_t hf_remote_clock_least(const hf_remote_clock *clock,
                              uint64_t boot_ns); /* 0: none */
/* In ms; 0: it is not known well enough. */
int64_t hf_remote_clock_at_least(const hf_remote_clock *clock, uint64_t boot_ns);

/* The samples as text, for other processes of this machine. */
void hf_remote_clock_save(const hf_remote_clock *clock, char out[HF_REMOTE_STATE_SIZE]);
/* Continues with the samples of another process of this machine if it has more of them,
 * they are not too old, and they agree with those here. Invalid text is ignored. */
void hf_remote_clock_adopt(hf_remote_clock *clock, const char *text, size_t len);

#endif
