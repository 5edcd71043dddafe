/* zones.h - the time zones of schedules, and the usual one among them: a schedule in
 * another zone may be meant so, or runs at the wrong hour. */
#ifndef HF_SEEN_ZONES_H
#define HF_SEEN_ZONES_H

#include "holdfast/admin.h"

enum { HF_ZONES_MAX = 32 };

typedef struct hf_zones {
    size_t n;
    char names[HF_ZONES_MAX][HF_ZONE_SIZE];
    size_t schedules[HF_ZONES_MAX]; /* of each */
    char host[HF_ZONE_SIZE];        /* "": not known */
} hf_zones;

/* The zone in which the times of a schedule are read. "": it has an interval. */
const char *hf_zones_of(const hf_schedule_info *schedule);
/* The zone of this host, from TZ or /etc/localtime; "" if neither names one. */
void hf_zones_host(char out[HF_ZONE_SIZE]);

/* "" is none. */
void hf_zones_add(hf_zones *zones, const char *zone);
/* The zone of most schedules. A host that is not in UTC counts as one more, and decides
 * between two that are equal; NULL: several are. */
const char *hf_zones_usual(const hf_zones *zones);
/* Whether it is not the usual one; without a usual one each of several differs. */
bool hf_zones_differs(const hf_zones *zones, const char *zone);

#endif
