/* reading.c - see reading.h. */
#include "base/reading.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"

hf_asker hf_asker_now(const char *machine)
{
    return (hf_asker){.machine = machine, .boot_ms = hf_boot_ns() / HF_MS_NS};
}

void hf_reading_note(hf_reading *reading, unsigned epoch, uint64_t number,
                     uint64_t clock_ms, int64_t redis_ms)
{
    uint64_t boot_ms = hf_boot_ns() / HF_MS_NS + 1; /* a later time is safe */
    reading->epoch = epoch;
    (void)snprintf(reading->text, sizeof reading->text,
                   "%" PRIu64 ":%" PRIu64 ":%" PRIu64 ":%" PRId64, number, clock_ms,
                   boot_ms, redis_ms);
}

const char *hf_reading_shown(const hf_reading *reading, unsigned epoch)
{
    return reading->epoch == epoch ? reading->text : "";
}

void hf_reading_forget(hf_reading *reading)
{
    reading->text[0] = '\0';
}
