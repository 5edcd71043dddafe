/* model.h - what is known of a system at the moment: the verdict, and the rows of each
 * page. Nothing here reads from Redis. Times are Unix ms on Redis's clock. */
#ifndef HF_TOP_MODEL_H
#define HF_TOP_MODEL_H

#include "base/buf.h"
#include "holdfast/admin.h"
#include "seen/facts.h"
#include "seen/wrong.h"
#include "top/groups.h"
#include "top/runs.h"

typedef enum hf_top_page {
    HF_PAGE_OVERVIEW,
    HF_PAGE_RUNNING,
    HF_PAGE_DEAD,
    HF_PAGE_WORKERS,
    HF_PAGE_LOCKS,
    HF_PAGE_TYPES,
    HF_PAGES
} hf_top_page;

/* The counters of a queue at one time, for rates. */
typedef struct hf_top_counts {
    int64_t at_ms, enqueued, done, failed;
} hf_top_counts;

/* What the history of a queue adds. */
enum { HF_TOP_SPARK = 60, HF_TOP_TYPES_SIZE = 160 };
typedef struct hf_top_past {
    int64_t read_ms;
    int64_t ready[HF_TOP_SPARK]; /* by the minute, the oldest first; -1: a gap */
    hf_top_counts counts; /* the newest ones that are a minute old; at_ms 0: none */
    char types[HF_TOP_TYPES_SIZE];
} hf_top_past;

typedef struct hf_top_queue {
    hf_queue_stats stats;
    bool known;                  /* the figures were read at least once */
    bool failed;                 /* its node could not be asked the last time */
    uint8_t level;               /* of the worst thing that is wrong with it; 3: none */
    hf_top_counts recent, older; /* two former readings */
    double in_per_min, out_per_min, failed_per_min, failed_percent; /* -1: not known */
    hf_top_past *past; /* owned; NULL: none */
} hf_top_queue;

typedef struct hf_top_worker {
    char id[HF_HOLDER_SIZE], host[HF_HOLDER_SIZE], state[16], version[24];
    char queues[HF_TOP_TYPES_SIZE], types[HF_TOP_TYPES_SIZE];
    int64_t pid, heard_ms, started_ms, running, slots, pools_down;
    bool silent;
} hf_top_worker;

typedef struct hf_top_job {
    char id[HF_ID_SIZE], queue[HF_ID_SIZE], type[HF_ID_SIZE], worker[HF_HOLDER_SIZE];
    char note[HF_NOTE_SIZE];
    int64_t start_ms; /* 0: not known */
    int64_t lease_ms; /* what is left of it */
    uint64_t fence;
    uint32_t run, attempt, max_attempts, progress;
    bool has_progress;
} hf_top_job;

typedef struct hf_top_type {
    char queue[HF_ID_SIZE], type[HF_ID_SIZE];
    int64_t done, failed, dead;
    double run_p50, run_p99, wait_p50, wait_p99; /* ms; 0: none */
} hf_top_type;

typedef struct hf_top_totals {
    int64_t ready, oldest_ms, running, slots, dead; /* oldest_ms: its age */
    double done_per_min, failed_percent;
} hf_top_totals;

/* Lines that are read at a row: details, a log. Each begins with a letter for its style:
 * ' ', '#' heading, '!' bad, '~' warning, '$' command, '-' dim. */
typedef struct hf_top_text {
    hf_buf lines; /* owned */
} hf_top_text;

typedef struct hf_model {
    char server[136]; /* where Redis is, without a password; and the namespace, if it is
                         another than usual */
    int64_t now_ms;   /* of the newest answer */
    uint64_t read_ns; /* when it came, by this host's clock (hf_boot_ns()); 0: none yet */
    bool away;        /* Redis does not answer: all but the verdict is old */
    bool whole;       /* every queue has been read */
    bool judged;
    int64_t late_ms;

    hf_wrongs wrongs;
    hf_top_queue *queues; /* sorted by name; owned, as the lists below */
    hf_top_worker *workers;
    hf_top_job *jobs;
    hf_facts_lock *locks;
    hf_top_type *types;
    hf_top_groups dead;
    hf_top_runs runs;
    size_t n_queues, n_workers, n_jobs, n_locks, n_types;
    bool jobs_cut, listed[HF_PAGES]; /* listed: its list was read at least once */
    hf_top_text detail, log;
    char notice[HF_DETAIL_SIZE + 64]; /* what the last change has done */
} hf_model;

void hf_model_init(hf_model *model);
void hf_model_done(hf_model *model);

/* The queue of this name; NULL: there is none. */
hf_top_queue *hf_model_queue(const hf_model *model, const char *name);

/* Sets which queues there are: those that stay keep what is known of them. False: no
 * memory. */
HF_MUSTCHECK bool hf_model_set_queues(hf_model *model, char *const *names, size_t n);

/* Takes the figures of a queue, and its rates from those of before. */
void hf_model_take_stats(hf_model *model, const hf_queue_stats *stats);
/* The same of a history, which the model owns from then on. */
void hf_model_take_past(hf_model *model, const char *queue, hf_top_past *past);

/* Takes what was judged, and which queues it is about. */
void hf_model_take_wrongs(hf_model *model, const hf_wrongs *wrongs);

hf_top_totals hf_model_totals(const hf_model *model);

/* How old the data is at now_ns; -1: there is none. */
int64_t hf_model_age_ms(const hf_model *model, uint64_t now_ns);

#endif
