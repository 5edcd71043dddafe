/* zone.h - time zones, read from the system's TZif files (RFC 9636). The C library knows
 * one zone for the whole process, and changing it is not safe with threads.
 *
 * Times are Unix seconds. A zone never changes once it was read, and any thread may ask
 * it. */
#ifndef HF_CRON_ZONE_H
#define HF_CRON_ZONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cron/span.h"
#include "holdfast/error.h"

enum { HF_ZONE_NAME_MAX = 128, HF_ZONE_FILE_MAX = 128 * 1024 };

typedef struct hf_zone hf_zone;

/* Reads the zone `name` ("Europe/Berlin") from $TZDIR, or /usr/share/zoneinfo. "UTC"
 * needs no file. HF_INVALID: no such zone, a bad name or a bad file, and `detail` says
 * what was expected; HF_NOMEM. */
HF_MUSTCHECK hf_err hf_zone_open(hf_zone **out, const char *name,
                                 char detail[HF_DETAIL_SIZE]);

/* The same from the bytes of a file. */
HF_MUSTCHECK hf_err hf_zone_read(hf_zone **out, const void *data, size_t len,
                                 char detail[HF_DETAIL_SIZE]);
void hf_zone_free(hf_zone *zone); /* may be NULL */

/* Whether the file of this zone is still the one that was read: an update of the system's
 * zones replaces it. True while there is no file to be read. */
bool hf_zone_is_current(const hf_zone *zone, const char *name);

/* The span of a time; of UTC for NULL. */
hf_zone_span hf_zone_span_at(const hf_zone *zone, int64_t unix_s);

#endif
