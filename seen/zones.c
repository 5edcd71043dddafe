/* zones.c - see zones.h. */
#include "seen/zones.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char utc[] = "UTC";

/* Its usual name. */
static const char *named(const char *zone)
{
    return *zone == '\0' || strcmp(zone, "Etc/UTC") == 0 ? utc : zone;
}

const char *hf_zones_of(const hf_schedule_info *schedule)
{
    return schedule->cron[0] == '\0' ? "" : named(schedule->tz);
}

void hf_zones_host(char out[HF_ZONE_SIZE])
{
    static const char folder[] = "zoneinfo/";
    char path[PATH_MAX];
    const char *name = getenv("TZ");
    out[0] = '\0';
    if (name == NULL || *name == '\0') {
        const ssize_t n = readlink("/etc/localtime", path, sizeof path - 1);
        path[n < 0 ? 0 : n] = '\0';
        name = path;
    }
    const char *below = strstr(name, folder);
    name = below != NULL ? below + sizeof folder - 1 : name + strspn(name, ":");
    name = *name == '\0' ? name : named(name);
    /* A rule of POSIX, as "CET-1CEST", is no name. */
    const bool is_name =
        strcmp(name, utc) == 0 || strcspn(name, "/") < strcspn(name, ",");
    if (is_name && *name != '/' && strlen(name) < HF_ZONE_SIZE)
        (void)snprintf(out, HF_ZONE_SIZE, "%s", name);
}

static size_t find(const hf_zones *zones, const char *zone)
{
    size_t i = 0;
    while (i < zones->n && strcmp(zones->names[i], zone) != 0)
        i++;
    return i;
}

void hf_zones_add(hf_zones *zones, const char *zone)
{
    const size_t i = find(zones, zone);
    if (*zone == '\0' || i == HF_ZONES_MAX)
        return;
    if (i == zones->n)
        (void)snprintf(zones->names[zones->n++], HF_ZONE_SIZE, "%s", zone);
    zones->schedules[i]++;
}

const char *hf_zones_usual(const hf_zones *zones)
{
    const bool told = zones->host[0] != '\0' && strcmp(zones->host, utc) != 0;
    const char *usual = told ? zones->host : NULL;
    size_t most = told ? 1 : 0;
    if (told && find(zones, zones->host) < zones->n)
        most += zones->schedules[find(zones, zones->host)];
    for (size_t i = 0; i < zones->n; i++) {
        if (zones->schedules[i] == most && usual != zones->host)
            usual = NULL;
        if (zones->schedules[i] <= most)
            continue;
        most = zones->schedules[i];
        usual = zones->names[i];
    }
    return usual;
}

bool hf_zones_differs(const hf_zones *zones, const char *zone)
{
    const char *usual = hf_zones_usual(zones);
    if (*zone == '\0')
        return false;
    return usual != NULL ? strcmp(usual, zone) != 0 : zones->n > 1;
}
