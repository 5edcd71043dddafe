/* changelog.h - the changes that were made through this dashboard: the last 100, and a
 * line of the log for each. Any thread may call. */
#ifndef HF_DASHBOARD_CHANGELOG_H
#define HF_DASHBOARD_CHANGELOG_H

#include <stdint.h>

#include <jansson.h>

#include "holdfast/error.h"

typedef struct hf_changelog hf_changelog;

enum { HF_CHANGELOG_KEPT = 100, HF_CHANGELOG_TEXT = 160 };

typedef struct hf_changelog_entry {
    int64_t at_ms;              /* on this host's clock; set by hf_changelog_add() */
    char by[HF_CHANGELOG_TEXT]; /* "-": not known */
    char role[8];
    char what[24];
    char of[2 * HF_CHANGELOG_TEXT];
    char result[HF_CHANGELOG_TEXT]; /* "done", or why not */
    unsigned status;                /* of the answer; 0: it is the end of a task */
} hf_changelog_entry;

hf_changelog *hf_changelog_open(void);      /* NULL: no memory */
void hf_changelog_close(hf_changelog *log); /* NULL is fine */

/* Texts lose their control characters. */
void hf_changelog_add(hf_changelog *log, const hf_changelog_entry *change);

/* The newest first; the caller's. ahead_ms: Redis's clock minus this host's. */
json_t *hf_changelog_objects(hf_changelog *log, int64_t ahead_ms);

#endif
