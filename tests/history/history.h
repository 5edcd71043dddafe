/* history.h - checks what processes wrote about their locks, and what Redis did.
 *
 * Three kinds of files, one JSON object in each line (record.h, watch.h and guarded.h
 * write them):
 *
 *   players   what each process asked and believed, in ns of CLOCK_BOOTTIME: acquire,
 *             acquired, until (its local deadline is later now), lost, downgrade,
 *             release, released; and what was done to them: killed, took (a lock was
 *             deleted, forced or failed over: the only thing that excuses two holders),
 *             disturbed (from when to when Redis did not answer a player; player 0: all
 *             of them); late (from when to when a timer of a player, or the answer to
 *             its PING, ran late: the machine was busy)
 *   server    what the scripts did, in the order in which Redis executed it
 *   file      the writes to a file that is guarded by a lock and its fence
 *
 * The rules, each with what it is about:
 *
 *   S1   the beliefs in locks that exclude each other never overlap
 *   S2   nor do the grants
 *   S3   fences rise in the order of the grants, none for two owners
 *   S4   whoever is not the owner, or was it in another life, changes nothing
 *   S7   a renewal never creates, and never shortens
 *   S11  a guarded resource takes no lower fence, and none of two owners
 *   S12  no shared grant past an exclusive one that waits; an upgrade never waits
 *   O1   the grants come in the order of arrival, of the entries that live
 *   O2   one message for each that waited and was granted, none for others
 *   O3   while Redis answers, each grant is heard within 500 ms and the time by which
 *        timers ran late meanwhile
 *
 * Everything is sorted and gone through once. */
#ifndef HF_TESTS_HISTORY_HISTORY_H
#define HF_TESTS_HISTORY_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef enum hf_rule {
    RULE_S1,
    RULE_S2,
    RULE_S3,
    RULE_S4,
    RULE_S7,
    RULE_S11,
    RULE_S12,
    RULE_O1,
    RULE_O2,
    RULE_O3,
    HF_RULES
} hf_rule;

typedef struct hf_report {
    unsigned broken[HF_RULES];
    char first[HF_RULES][320]; /* the first time, in words */
    /* players */
    size_t asked, acquired, refused, lost, released, killed, took;
    size_t heard;           /* grants whose time to be heard was looked at */
    size_t heard_late;      /* those heard after more than 500 ms, as timers ran late */
    uint64_t heard_last_us; /* the longest of them */
    size_t excused;         /* overlaps after a lock was taken, within one lease */
    uint64_t excused_longest_ns;
    /* server */
    size_t grants, waited, messages, guards;
    /* file */
    size_t writes, writes_refused;
} hf_report;

typedef struct hf_history hf_history;

hf_history *hf_history_new(void);
void hf_history_free(hf_history *h);

void hf_history_players(hf_history *h, const char *path);
void hf_history_server(hf_history *h, const char *path); /* of one server, whole */
void hf_history_file(hf_history *h, const char *path);

/* After all was read. */
void hf_history_check(hf_history *h, hf_report *out);

/* How many rules were broken how often. */
unsigned hf_report_total(const hf_report *r);
void hf_report_print(const hf_report *r, FILE *to);
const char *hf_rule_name(hf_rule rule);

#endif
