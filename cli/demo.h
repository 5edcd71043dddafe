/* demo.h - what the files of `holdfast demo` share: the plan, what was seen of it, and
 * the stage. Private to them.
 *
 *   cmd_demo.c     the story, from the first server to the last check
 *   demo_stage.c   the server, the handlers, the workers, and their end
 *   demo_facts.c   what the handlers noted, what runs, what Redis counts
 *   demo_view.c    what one sees meanwhile
 *   demo_checks.c  what was promised, beside what was seen
 *
 * All times without another word are ms on CLOCK_BOOTTIME, the clock of /proc/uptime,
 * which is the one that a shell script can read. */
#ifndef HF_CLI_DEMO_H
#define HF_CLI_DEMO_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "bench/private_redis.h"
#include "cli/cli.h"

enum {
    HF_DEMO_QUICK_JOBS = 200,
    HF_DEMO_LATER_JOBS = 50,
    HF_DEMO_FLAKY_JOBS = 30,
    HF_DEMO_BROKEN_JOBS = 10,
    HF_DEMO_LONG_JOBS = 10,
    HF_DEMO_OTHER_JOBS = HF_DEMO_QUICK_JOBS + HF_DEMO_LATER_JOBS + HF_DEMO_FLAKY_JOBS +
                         HF_DEMO_BROKEN_JOBS, /* all but the long ones */
    HF_DEMO_JOBS = HF_DEMO_OTHER_JOBS + HF_DEMO_LONG_JOBS,
    HF_DEMO_ATTEMPTS =
        3,               /* of a flaky job until it is done, of a broken one until dead */
    HF_DEMO_WORKERS = 3, /* the first of them is killed */
    HF_DEMO_QUEUES = 2,  /* default, and long */
    HF_DEMO_RUNS_MAX = 8, /* of one job, that are remembered */
    HF_DEMO_SLOTS = 12,   /* of each worker; enough for all long jobs */
    HF_DEMO_LEASE_MS = 2000,
    HF_DEMO_LONG_MS = 5000, /* what a long job takes */
    HF_DEMO_KILL_AFTER_MS =
        3000, /* into them: past their first lease, so it was renewed */
    HF_DEMO_BACKOFF_MS = 1000,
    HF_DEMO_SLACK_MS = 1000,     /* what a test allows beside the lease */
    HF_DEMO_TICK_MS = 50,        /* between two looks */
    HF_DEMO_UPTIME_STEP_MS = 10, /* /proc/uptime is cut to it */
    HF_DEMO_TIME_MS = 60000,     /* then it ends, whatever is left */
    HF_DEMO_ID_SIZE = 24,
    HF_DEMO_EVENTS = 9,
    HF_DEMO_EVENT_SIZE = 72 /* with its time, and indented, it fits into 80 columns */
};

typedef enum hf_demo_kind {
    HF_DEMO_QUICK,  /* done at once */
    HF_DEMO_LATER,  /* delayed */
    HF_DEMO_FLAKY,  /* fails until its last attempt */
    HF_DEMO_BROKEN, /* always fails */
    HF_DEMO_LONG    /* its worker is killed in the middle of it */
} hf_demo_kind;

/* One run of a job's program, as the program noted it itself. */
typedef struct hf_demo_run {
    uint32_t attempt;
    pid_t pid, worker;
    int64_t start_ms;
    int64_t end_ms; /* 0: it noted none */
    int status;     /* what it was about to exit with; once it has ended */
} hf_demo_run;

typedef struct hf_demo_job {
    char id[HF_DEMO_ID_SIZE];
    hf_demo_kind kind;
    int64_t delay_ms;
    int64_t asked_ms; /* just before it was handed to the producer */
    bool accepted;
    size_t n_runs;                      /* may exceed those remembered */
    hf_demo_run runs[HF_DEMO_RUNS_MAX]; /* by their start */
} hf_demo_job;

typedef struct hf_demo_worker {
    pid_t pid; /* 0: not started yet */
    bool ended;
    int status; /* once it has ended: as waitpid() tells */
} hf_demo_worker;

typedef enum hf_demo_mode {
    HF_DEMO_SILENT, /* --json: only the table */
    HF_DEMO_LINES,  /* a pipe, or a terminal that is too small */
    HF_DEMO_LIVE
} hf_demo_mode;

typedef struct hf_demo_view {
    hf_demo_mode mode;
    bool bright; /* colours */
    bool utf8;
    size_t rows;      /* that are on the screen and will be drawn over */
    int64_t shown_ms; /* when the figures were shown last */
    char events[HF_DEMO_EVENTS][HF_DEMO_EVENT_SIZE]; /* the last ones */
    int64_t events_ms[HF_DEMO_EVENTS];               /* since the start */
    size_t n_events;                                 /* ever */
} hf_demo_view;

typedef struct hf_demo {
    const hf_cli *cli; /* borrowed */
    int64_t start_ms;
    bool late;     /* HF_DEMO_TIME_MS have passed */
    bool stopping; /* the workers were asked to end */
    int signal;    /* that asked us to end; 0: none */

    /* the stage */
    sigset_t signals; /* blocked here, and taken by hf_demo_pause() */
    sigset_t before;  /* what was blocked at the start, as the workers get it */
    bool blocked;
    hf_private_redis redis;
    char dir[HF_PRIVATE_DIR_SIZE + 16]; /* goes with that of redis */
    hf_producer *producer;
    hf_admin *admin;
    hf_demo_worker workers[HF_DEMO_WORKERS];
    int facts_fd; /* -1: not open */
    hf_buf facts; /* the beginning of a line */

    /* the plan, and what was seen of it */
    hf_demo_job jobs[HF_DEMO_JOBS];
    hf_queue_stats stats[HF_DEMO_QUEUES];
    int64_t killed_ms; /* just after the kill; 0: not yet */
    pid_t
        victims[HF_DEMO_LONG_JOBS]; /* the programs that ran then; each leads a session */
    size_t n_victims;
    int64_t gone_ms;   /* when the last process of them was seen gone; 0: not yet */
    size_t alive_late; /* of their processes, HF_DEMO_SLACK_MS after the kill */
    bool counted_late;
    size_t left_over; /* processes, after the workers were asked to end */
    size_t findings;  /* of the audit */

    hf_demo_view view;
} hf_demo;

extern const char *const hf_demo_queue_names[HF_DEMO_QUEUES];

int64_t hf_demo_now_ms(void);
const char *hf_demo_queue_of(const hf_demo_job *job);

/* -- demo_stage.c: each an exit code; what is wrong has been said -- */
int hf_demo_open(hf_demo *d, const hf_cli *cli);
/* Ends every process that was started and removes every file, unless they are to be kept.
 */
void hf_demo_close(hf_demo *d, bool keep);
/* queue NULL: those of the configuration file. */
int hf_demo_start_worker(hf_demo *d, size_t i, const char *queue);
/* True: it has ended, and `status` says how. */
bool hf_demo_worker_ended(hf_demo_worker *worker);
/* Waits; HF_EXIT_OK, or a signal came and the demo has to end with this code. */
int hf_demo_pause(hf_demo *d, int64_t ms);

/* -- demo_facts.c -- */
/* Takes in all that happened since the last look. */
int hf_demo_look(hf_demo *d);
/* Remembers which programs worker 1 runs; call just before the kill. */
void hf_demo_remember_victims(hf_demo *d);
/* How many processes are ours that we did not start ourselves: orphans of a worker. */
size_t hf_demo_orphans(const hf_demo *d);
/* The run of a long job that follows the one that was killed; NULL: there is none yet. */
const hf_demo_run *hf_demo_rerun(const hf_demo *d, const hf_demo_job *job);

/* -- demo_view.c -- */
void hf_demo_view_init(hf_demo *d);
void hf_demo_say(hf_demo *d, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Shows how things stand, if it was not done just now, or if it has to be. */
void hf_demo_show(hf_demo *d, bool must);
/* Gives the terminal back; nothing is drawn over any more. */
void hf_demo_view_end(hf_demo *d);

/* -- demo_checks.c -- */
/* Asks Redis about every job, and prints the table. HF_EXIT_OK, HF_EXIT_NO: something
 * differs from what was promised; or it could not be asked. */
int hf_demo_judge(hf_demo *d);

#endif
