/* staff.h - workers of two queues as processes of their own, and what their jobs wrote:
 * programs by `holdfast worker` in the queue "programs", C handlers by hf-c-worker in the
 * queue "handlers".
 *
 * A program does not heed TERM: it is alive until it is killed. A C handler writes each
 * moment at which it believed that it held the job. */
#ifndef HF_TESTS_HISTORY_CREW_H
#define HF_TESTS_HISTORY_CREW_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/support/proc.h"
#include "tests/support/tempdir.h"

enum {
    HF_STAFF = 8,
    HF_STAFF_SLOTS = 2,
    HF_STAFF_QUEUES = 2,
    HF_STAFF_PATH = HF_TEMPDIR_SIZE + 64
};
enum { HF_STAFF_LEASE_MS = 1000 };

extern const char *const hf_staff_queues[HF_STAFF_QUEUES];

/* The even ones run programs, the odd ones C handlers. */
typedef struct hf_staff {
    char dir[HF_TEMPDIR_SIZE];
    char runs[HF_STAFF_PATH]; /* what the jobs wrote */
    hf_proc workers[HF_STAFF];
    const char *urls[HF_STAFF]; /* borrowed: where each finds Redis */
} hf_staff;

void hf_staff_begin(hf_staff *c);
void hf_staff_end(hf_staff *c); /* kills all of them */

void hf_staff_start(hf_staff *c, unsigned i, const char *url);

/* The words of a command line without the program, ended by NULL. Gives its exit status.
 */
int hf_staff_command(const hf_staff *c, const char *url, const char *const *words);

typedef struct hf_staff_report {
    unsigned runs, again, ended; /* `again`: of them not the first of their job */
    unsigned overlaps;
    unsigned waited; /* until a killed one had a processor to end on */
    uint64_t longest_ns;
    char first[320]; /* overlap, in words; "": there was none */
} hf_staff_report;

/* Reads what the jobs wrote, and looks for two runs of one job at one time. */
void hf_staff_judge(const hf_staff *c, hf_staff_report *out);

/* True when a run of that job has come to its end. */
bool hf_staff_ran(const hf_staff *c, const char *job);

#endif
