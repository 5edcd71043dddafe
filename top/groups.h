/* groups.h - dead jobs, grouped by queue, type and error. In errors a row of digits, and
 * a word of 8 or more hexadecimal digits, count as equal to any other. */
#ifndef HF_TOP_GROUPS_H
#define HF_TOP_GROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/admin.h"

enum { HF_GROUP_ERROR = 256 };

typedef struct hf_top_group {
    char queue[HF_ID_SIZE], type[HF_ID_SIZE], reason[16];
    char error[HF_GROUP_ERROR]; /* with '#' for digits and '*' for ids */
    uint64_t hash;
    int64_t jobs, first_ms, last_ms; /* when they died */
    char last_id[HF_ID_SIZE];        /* of the one that died last */
} hf_top_group;

/* Of more kinds the rest is one group without a type. */
enum { HF_GROUPS_MAX = 500 };

typedef struct hf_top_groups {
    hf_top_group *at; /* owned */
    size_t n;
    int64_t looked_at, dead; /* jobs: looked at, and dead in all */
} hf_top_groups;

/* Adds a dead job. False: no memory. */
bool hf_top_groups_add(hf_top_groups *groups, const hf_job_info *job);
void hf_top_groups_done(hf_top_groups *groups);

#endif
