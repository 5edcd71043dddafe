/* seen.h - what was read of the clock of a lock's line (lock/lua/lib/line.lua), and
 * when. It proves that a lease is over, without Redis's clock: a lease that started
 * before a reading is over once its length has passed since, by our own CLOCK_BOOTTIME.
 *
 * Private to lock/. Not thread-safe. */
#ifndef HF_LOCK_SEEN_H
#define HF_LOCK_SEEN_H

#include <stddef.h>
#include <stdint.h>

enum { HF_SEEN_MAX = 32, HF_SEEN_TEXT_SIZE = HF_SEEN_MAX * 40 };

typedef struct hf_seen {
    uint64_t witness; /* names the line, or our place in it */
    unsigned epoch;   /* of the connections: another server counts anew */
    size_t n;
    struct {
        uint64_t clock_ms, read_ns;
    } at[HF_SEEN_MAX]; /* the oldest first */
    char text[HF_SEEN_TEXT_SIZE];
} hf_seen;

/* Earlier readings count only for the same witness and epoch. */
void hf_seen_of(hf_seen *seen, uint64_t witness, unsigned epoch);
/* A reading, and when its answer was there, by CLOCK_BOOTTIME. */
void hf_seen_add(hf_seen *seen, uint64_t clock_ms, uint64_t read_ns);
/* As the scripts take it; borrowed until the next call. */
const char *hf_seen_text(hf_seen *seen, uint64_t now_ns);

#endif
