/* reading.h - what a client has read last of the clock of a queue, or of a lock's line,
 * and when: shown with its later requests, it stays in Redis as evidence that leases are
 * over (redis/lua/lib/evidence.lua).
 *
 * Not thread-safe. */
#ifndef HF_BASE_READING_H
#define HF_BASE_READING_H

#include <stdint.h>

enum { HF_READING_SIZE = 4 * 21 };

typedef struct hf_reading {
    unsigned epoch; /* of the connections: another server has another line */
    char text[HF_READING_SIZE];
} hf_reading;

/* The machine whose boot clock dates readings (base/machine.h), and the time of that
 * clock in ms, before the request is sent. */
typedef struct hf_asker {
    const char *machine; /* borrowed */
    uint64_t boot_ms;
} hf_asker;

hf_asker hf_asker_now(const char *machine);
/* The answer to this client's request is there: the clock was clock_ms at Redis's time
 * redis_ms. The number tells which clock of its name it was: that of a queue's clock, or
 * a fence that was given out by then. */
void hf_reading_note(hf_reading *reading, unsigned epoch, uint64_t number,
                     uint64_t clock_ms, int64_t redis_ms);
/* What was read proves nothing any more. */
void hf_reading_forget(hf_reading *reading);
/* As the scripts take it, "" if there is none of this epoch. Borrowed. */
const char *hf_reading_shown(const hf_reading *reading, unsigned epoch);

#endif
