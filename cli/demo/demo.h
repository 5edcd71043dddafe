/* demo.h - shared by the files of `holdfast demo`: the plan, the runs that were seen, and
 * the stage. Private to them.
 *
 *   demo.c    the story, from the first server to the last check
 *   plan.c    what follows from the plan and from the runs that were seen
 *   stage.c   the server, the handlers, the workers, and their end
 *   browser.c the dashboard beside it, if it was asked for
 *   facts.c   what the handlers noted, what runs, what Redis counts
 *   view.c    the display meanwhile: events, lines, and whether to draw
 *   screen.c  the drawing itself
 *   checks.c  the guarantees, beside what was seen
 *   bars.c    each run as a bar: its beginning, its end and its row
 *   picture.c the lasting picture of them; picture_file.c its file
 *
 * All times without another word are ms on CLOCK_BOOTTIME, the clock of /proc/uptime,
 * which is the one that a shell script can read. */
#ifndef HF_CLI_DEMO_DEMO_H
#define HF_CLI_DEMO_DEMO_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "bench/private_redis.h"
#include "cli/cli.h"
#include "cli/demo/svg.h"

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
    HF_DEMO_RUNS_MAX = 8,              /* of one job, that are remembered */
    HF_DEMO_SLOTS = HF_DEMO_LONG_JOBS, /* of worker 1: it runs all long jobs */
    HF_DEMO_SLOTS_OTHERS = 8, /* of each of the others: the long jobs need both of them */
    HF_DEMO_LEASE_MS = 2000,
    HF_DEMO_LONG_MS = 5000, /* what a long job takes */
    HF_DEMO_KILL_AFTER_MS =
        3000, /* into them: past their first lease, so it was renewed */
    HF_DEMO_BACKOFF_MS = 1000,
    HF_DEMO_SLACK_MS = 1000,     /* what a test allows beside the lease */
    HF_DEMO_TICK_MS = 50,        /* between two looks */
    HF_DEMO_UPTIME_STEP_MS = 10, /* /proc/uptime is cut to it */
    HF_DEMO_TIME_MS = 60000,     /* then it ends, even with jobs left */
    HF_DEMO_ID_SIZE = 24,
    HF_DEMO_EVENTS = 16,
    HF_DEMO_EVENT_SIZE = 70, /* with its time, and indented, it fits into 80 columns */
    HF_DEMO_COLUMNS = 80,    /* the smallest terminal that is drawn on */
    HF_DEMO_ROWS = 24,
    HF_DEMO_PATH_SIZE = 512,
    HF_DEMO_FILE_SIZE = HF_PRIVATE_DIR_SIZE + 64, /* the path of a file of the demo */
    HF_DEMO_URL_SIZE = 64
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
    int status;     /* its planned exit code; once it has ended */
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
    int64_t started_ms;
    bool ended;
    int64_t ended_ms; /* when that was seen */
    int status;       /* once it has ended: as waitpid() tells */
} hf_demo_worker;

typedef enum hf_demo_mode {
    HF_DEMO_SILENT, /* --json: only the table */
    HF_DEMO_LINES,  /* a pipe, or a terminal that is too small */
    HF_DEMO_LIVE    /* on the terminal's other screen, which goes with it */
} hf_demo_mode;

typedef struct hf_demo_view {
    hf_demo_mode mode;
    bool bright; /* colours */
    bool utf8;
    size_t columns, rows; /* of the terminal */
    int64_t shown_ms;     /* when the figures were shown last */
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
    hf_demo_worker dashboard;
    char dashboard_url[HF_DEMO_URL_SIZE];
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

/* The fate of the jobs that worker 1 held when it was killed. */
typedef struct hf_demo_takeover {
    size_t hit, again;          /* again: this many run again, or did */
    size_t by[HF_DEMO_WORKERS]; /* in which worker */
    int64_t first_ms, last_ms;  /* after the kill; 0: none */
} hf_demo_takeover;

/* -- plan.c -- */
extern const char *const hf_demo_queue_names[HF_DEMO_QUEUES];

int64_t hf_demo_now_ms(void);
const char *hf_demo_queue_of(const hf_demo_job *job);
/* Worker i, counted from 0, runs this many jobs at the same time. */
size_t hf_demo_slots_of(size_t i);
/* This many of its runs are remembered. */
size_t hf_demo_runs_of(const hf_demo_job *job);
size_t hf_demo_count_runs(const hf_demo *d); /* of all jobs */
/* The worker of a run: 0 to HF_DEMO_WORKERS - 1, or HF_DEMO_WORKERS for none. */
size_t hf_demo_worker_of(const hf_demo *d, const hf_demo_run *run);
/* Whether the kill ended this run. */
bool hf_demo_was_killed(const hf_demo *d, const hf_demo_run *run);
/* The run of a long job that follows the one that was killed; NULL: there is none yet. */
const hf_demo_run *hf_demo_rerun(const hf_demo *d, const hf_demo_job *job);
void hf_demo_take_over(const hf_demo *d, hf_demo_takeover *out);

/* -- stage.c: each returns an exit code and has reported the error -- */
int hf_demo_open(hf_demo *d, const hf_cli *cli);
/* Ends every process that was started, and removes every file unless --keep was given.
 */
void hf_demo_close(hf_demo *d, bool keep);
/* queue NULL: those of the configuration file. */
int hf_demo_start_worker(hf_demo *d, size_t i, const char *queue);
/* Starts this program again, with its output in a file of the demo, whose path goes to
 * `log`. `argv` ends with NULL. */
int hf_demo_spawn(hf_demo *d, const char *name, const char *const argv[],
                  char log[HF_DEMO_FILE_SIZE], hf_demo_worker *out);
/* True: it has ended, and `status` says how. */
bool hf_demo_worker_ended(hf_demo_worker *worker);
/* Waits; HF_EXIT_OK, or a signal came and the demo has to end with this code. */
int hf_demo_pause(hf_demo *d, int64_t ms);

/* -- browser.c -- */
/* Starts `holdfast dashboard` on a free port and says its address. HF_EXIT_OK, or the
 * error has been reported. */
int hf_demo_open_dashboard(hf_demo *d);
/* Says that the dashboard stays, and returns at a signal or when the dashboard ends. */
void hf_demo_keep_dashboard(hf_demo *d);

/* -- facts.c -- */
/* Takes in all that happened since the last look. */
int hf_demo_look(hf_demo *d);
/* Remembers which programs worker 1 runs; call just before the kill. */
void hf_demo_remember_victims(hf_demo *d);
/* How many processes are ours that we did not start ourselves: orphans of a worker. */
size_t hf_demo_orphans(const hf_demo *d);

/* -- view.c -- */
void hf_demo_view_init(hf_demo *d);
void hf_demo_say(hf_demo *d, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Shows how things stand, if it was not done just now, or if it has to be. */
void hf_demo_show(hf_demo *d, bool must);
/* Restores the terminal and stops drawing. `last`: the last drawing stays. */
void hf_demo_view_end(hf_demo *d, bool last);
/* Stops as Control-Z does, and gives the terminal back meanwhile. */
void hf_demo_view_stop(hf_demo *d);
/* As hf_cli_say() and hf_cli_fail(), where the view does not hide it. */
int hf_demo_wrong(hf_demo *d, hf_exit code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int hf_demo_fail(hf_demo *d, hf_err err, const char *detail);

/* -- screen.c -- */
/* The current state, as HF_DEMO_ROWS rows or as many as the view has. `ends` separates
 * the rows. */
void hf_demo_draw(const hf_demo *d, int64_t now_ms, const char *ends, hf_buf *out);

/* -- bars.c -- */
enum { HF_DEMO_BAR_MIN = 3 }; /* px that a bar is long, if there is room */
typedef struct hf_demo_bar {
    const hf_demo_job *job; /* borrowed */
    const hf_demo_run *run; /* borrowed */
    size_t worker, row;     /* row: below hf_demo_slots_of(worker) */
    int64_t start_ms, end_ms;
    int64_t drawn_ms; /* end_ms, or later to be visible */
    bool killed;
} hf_demo_bar;

typedef struct hf_demo_bars {
    hf_demo_bar *bars; /* owned; by their start */
    size_t n;
    int64_t until_ms; /* where time ends, and a run that was not seen to end */
} hf_demo_bars;

/* All runs that are remembered; `px`: from the start to where time ends. In a row no bar
 * begins before the one before it has ended. HF_OK or HF_NOMEM. */
hf_err hf_demo_bars_collect(hf_demo_bars *out, const hf_demo *d, double px);
/* NULL: it is not among them. */
const hf_demo_bar *hf_demo_bars_find(const hf_demo_bars *bars, const hf_demo_run *run);
void hf_demo_bars_done(hf_demo_bars *bars);

/* -- picture.c -- */
/* Draws every run that is remembered. HF_OK, or the picture is incomplete; in both cases
 * call hf_svg_done(). */
hf_err hf_demo_draw_svg(const hf_demo *d, hf_svg *svg);

/* -- picture_file.c -- */
typedef struct hf_demo_svg_file {
    char path[HF_DEMO_PATH_SIZE];
    int fd;       /* -1: not open */
    bool created; /* by us: it goes with what is not finished */
} hf_demo_svg_file;

/* `path` NULL: one of its own in $TMPDIR or /tmp. HF_EXIT_OK, or the error has been
 * reported. An existing file keeps its content until the picture is written. */
int hf_demo_svg_open(hf_demo_svg_file *file, const hf_cli *cli, const char *path);
/* Writes the picture and says where it is. HF_EXIT_OK, or it has been said. */
int hf_demo_svg_write(hf_demo_svg_file *file, const hf_demo *d);
/* Closes it; one that was created, and not written to its end, is removed. */
void hf_demo_svg_close(hf_demo_svg_file *file);

/* -- checks.c -- */
/* Asks Redis about every job, and prints the table. HF_EXIT_OK, HF_EXIT_NO: something
 * differs from what was promised; or it could not be asked. */
int hf_demo_judge(hf_demo *d);

#endif
