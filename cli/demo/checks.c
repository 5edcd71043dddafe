/* checks.c - what was promised, and what was seen: one row for each promise, from
 * the handlers' notes, the list of processes, and what Redis says of every single job. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/base.h"
#include "cli/demo/demo.h"
#include "cli/out.h"

enum { ROWS_MAX = 24, PROMISE_SIZE = 64, PROMISE_WIDTH = 42, REMARK_SIZE = 48 };

typedef struct row {
    char promise[PROMISE_SIZE];
    int64_t expected, seen;
    char remark[REMARK_SIZE]; /* a remark; "" */
} row;

typedef struct table {
    row rows[ROWS_MAX];
    size_t n;
} table;

static void add(table *t, int64_t expected, int64_t seen, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static void remark(table *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void add(table *t, int64_t expected, int64_t seen, const char *format, ...)
{
    HF_ASSERT(t->n < ROWS_MAX);
    row *r = &t->rows[t->n++];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(r->promise, sizeof r->promise, format, args);
    va_end(args);
    r->expected = expected;
    r->seen = seen;
}

/* To the row that was added last. */
static void remark(table *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(t->rows[t->n - 1].remark, REMARK_SIZE, format, args);
    va_end(args);
}

/* ---- how each job ended ---- */

/* Every run ended as its handler was written to, and none is missing or too many. */
static bool ran_as_planned(const hf_demo *d, const hf_demo_job *job)
{
    const hf_demo_run *killed = NULL;
    size_t expected = 1;
    if (job->kind == HF_DEMO_FLAKY || job->kind == HF_DEMO_BROKEN)
        expected = HF_DEMO_ATTEMPTS;
    if (hf_demo_rerun(d, job) != NULL) {
        killed = &job->runs[0];
        expected = 2;
    }
    if (job->n_runs != expected)
        return false;
    for (size_t i = 0; i < expected; i++) {
        const hf_demo_run *run = &job->runs[i];
        bool fails = job->kind == HF_DEMO_BROKEN ||
                     (job->kind == HF_DEMO_FLAKY && run->attempt < HF_DEMO_ATTEMPTS);
        if (run == killed ? run->end_ms != 0
                          : run->end_ms == 0 || run->status != (fails ? 1 : 0))
            return false;
        if (run->attempt != (job->kind == HF_DEMO_LONG ? 1 : i + 1))
            return false;
    }
    return true;
}

typedef struct ended {
    int64_t done[HF_DEMO_LONG +
                 1]; /* by kind: gone from Redis, and every run was as planned */
    int64_t dead[HF_DEMO_LONG + 1]; /* dead, with its own error, every run as planned */
} ended;

static int ask_for_ends(const hf_demo *d, ended *out)
{
    *out = (ended){{0}, {0}};
    for (size_t i = 0; i < HF_DEMO_JOBS; i++) {
        const hf_demo_job *job = &d->jobs[i];
        char error[64];
        hf_job_info info = {HF_JOB_INFO_INIT};
        hf_err err = hf_admin_job(d->admin, hf_demo_queue_of(job), job->id, &info, NULL,
                                  d->cli->detail);
        if (err != HF_OK && err != HF_GONE)
            return hf_cli_fail(d->cli, err, d->cli->detail);
        if (!ran_as_planned(d, job))
            continue;
        (void)snprintf(error, sizeof error, "no such customer: %s", job->id);
        if (err == HF_GONE)
            out->done[job->kind]++;
        else if (info.state == HF_STATE_DEAD && info.attempts == HF_DEMO_ATTEMPTS &&
                 strcmp(info.error, error) == 0)
            out->dead[job->kind]++;
    }
    return HF_EXIT_OK;
}

static void check_ends(const hf_demo *d, const ended *ends, table *t)
{
    int64_t accepted = 0, done = 0, failed = 0, left = 0;
    for (size_t i = 0; i < HF_DEMO_JOBS; i++)
        accepted += d->jobs[i].accepted ? 1 : 0;
    for (size_t i = 0; i < HF_DEMO_QUEUES; i++) {
        const hf_queue_stats *s = &d->stats[i];
        done += s->done;
        failed += s->failed;
        left += s->ready + s->delayed + s->running;
    }
    add(t, HF_DEMO_JOBS, accepted, "jobs accepted");
    add(t, HF_DEMO_QUICK_JOBS, ends->done[HF_DEMO_QUICK], "ran once, and are done");
    add(t, HF_DEMO_LATER_JOBS, ends->done[HF_DEMO_LATER],
        "delayed, ran once, and are done");
    add(t, HF_DEMO_FLAKY_JOBS, ends->done[HF_DEMO_FLAKY],
        "failed twice, ran 3 times, and are done");
    add(t, HF_DEMO_BROKEN_JOBS, ends->dead[HF_DEMO_BROKEN],
        "failed 3 times: dead, with their own error");
    add(t, HF_DEMO_LONG_JOBS, ends->done[HF_DEMO_LONG],
        "lost their worker, ran again, and are done");
    add(t, HF_DEMO_JOBS - HF_DEMO_BROKEN_JOBS, done, "done, as Redis counts them");
    add(t,
        HF_DEMO_FLAKY_JOBS * (HF_DEMO_ATTEMPTS - 1) +
            HF_DEMO_BROKEN_JOBS * HF_DEMO_ATTEMPTS,
        failed, "failed attempts, as Redis counts them");
    add(t, 0, left, "still in `schedule` or `running`");
}

/* ---- times ---- */

/* A time read from /proc/uptime is cut: the moment itself was up to a step later. */
static bool is_before(int64_t noted_ms, int64_t allowed_ms)
{
    return noted_ms + HF_DEMO_UPTIME_STEP_MS <= allowed_ms;
}

typedef struct waits {
    int64_t late_ms[HF_DEMO_JOBS * HF_DEMO_RUNS_MAX]; /* from the due time to the start */
    size_t n, early;
} waits;

static void add_wait(waits *w, int64_t due_ms, int64_t start_ms)
{
    w->early += is_before(start_ms, due_ms) ? 1 : 0;
    w->late_ms[w->n++] = start_ms > due_ms ? start_ms - due_ms : 0;
}

static void add_waits(const hf_demo_job *job, waits *w)
{
    if (job->n_runs > 0 && job->delay_ms > 0)
        add_wait(w, job->asked_ms + job->delay_ms, job->runs[0].start_ms);
    if (job->kind != HF_DEMO_FLAKY && job->kind != HF_DEMO_BROKEN)
        return;
    for (size_t r = 1; r < job->n_runs && r < HF_DEMO_RUNS_MAX; r++)
        if (job->runs[r].attempt != job->runs[r - 1].attempt) /* else it was taken over */
            add_wait(w, job->runs[r - 1].end_ms + HF_DEMO_BACKOFF_MS,
                     job->runs[r].start_ms);
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static void check_times(const hf_demo *d, table *t)
{
    waits w = {.n = 0};
    for (size_t i = 0; i < HF_DEMO_JOBS; i++)
        add_waits(&d->jobs[i], &w);
    add(t, 0, (int64_t)w.early, "delayed or retried jobs that ran too early");
    if (w.n == 0)
        return;
    qsort(w.late_ms, w.n, sizeof w.late_ms[0], by_number);
    remark(t, "late %lld ms, max %lld", (long long)w.late_ms[w.n / 2],
           (long long)w.late_ms[w.n - 1]);
}

static int64_t count_overlaps(const hf_demo *d)
{
    int64_t overlaps = 0;
    for (size_t i = 0; i < HF_DEMO_JOBS; i++) {
        const hf_demo_job *job = &d->jobs[i];
        for (size_t r = 1; r < job->n_runs && r < HF_DEMO_RUNS_MAX; r++) {
            int64_t end_ms = job->runs[r - 1].end_ms;
            if (end_ms ==
                0) /* it was killed; if its end was not seen, it runs for ever */
                end_ms = d->gone_ms == 0 ? INT64_MAX : d->gone_ms;
            overlaps +=
                job->runs[r].start_ms < end_ms - end_ms % HF_DEMO_UPTIME_STEP_MS ? 1 : 0;
        }
    }
    return overlaps;
}

/* ---- the kill ---- */

static void check_kill(const hf_demo *d, table *t)
{
    int64_t again = 0, first_ms = INT64_MAX, last_ms = 0, counted = 0;
    for (size_t i = 0; i < HF_DEMO_JOBS; i++) {
        const hf_demo_run *run = hf_demo_rerun(d, &d->jobs[i]);
        if (run == NULL)
            continue;
        int64_t after_ms = run->start_ms - d->killed_ms;
        again += after_ms <= HF_DEMO_LEASE_MS + HF_DEMO_SLACK_MS ? 1 : 0;
        first_ms = after_ms < first_ms ? after_ms : first_ms;
        last_ms = after_ms > last_ms ? after_ms : last_ms;
        counted += run->attempt != 1 ? 1 : 0;
    }
    add(t, HF_DEMO_LONG_JOBS, (int64_t)d->n_victims,
        "running in worker 1 when it was killed");
    add(t, HF_DEMO_LONG_JOBS, again, "its jobs that ran again within lease + 1 s");
    if (last_ms > 0)
        remark(t, "%.1f to %.1f s", (double)first_ms / 1000, (double)last_ms / 1000);
    add(t, 0, counted, "its jobs for which an attempt was counted");
    add(t, 0, d->gone_ms == 0 || d->counted_late ? (int64_t)d->alive_late : 0,
        "its programs alive 1 s after the kill");
    if (d->gone_ms != 0)
        remark(t, "gone in %lld ms", (long long)(d->gone_ms - d->killed_ms));
    add(t, 0, count_overlaps(d), "two runs of one job at the same time");
}

static void check_ground(const hf_demo *d, table *t)
{
    int64_t clean = 0;
    for (size_t i = 1; i < HF_DEMO_WORKERS; i++)
        clean += d->workers[i].ended && WIFEXITED(d->workers[i].status) &&
                         WEXITSTATUS(d->workers[i].status) == 0
                     ? 1
                     : 0;
    add(t, HF_DEMO_WORKERS - 1, clean, "workers that ended with 0 when asked to");
    add(t, 0, (int64_t)d->left_over, "processes left after that");
    add(t, 0, (int64_t)d->findings, "findings of the audit of both queues");
}

/* ---- the table ---- */

static bool is_kept(const row *r)
{
    return r->expected == r->seen;
}

static void print_json(const table *t)
{
    for (size_t i = 0; i < t->n; i++) {
        const row *r = &t->rows[i];
        hf_out_json(stdout, json_pack("{s:s, s:I, s:I, s:s, s:b}", "promise", r->promise,
                                      "expected", (json_int_t)r->expected, "seen",
                                      (json_int_t)r->seen, "remark", r->remark, "kept",
                                      (int)is_kept(r)));
    }
}

static void print_table(const hf_demo *d, const table *t, size_t broken)
{
    bool bright = d->view.bright;
    const char *bold = bright ? "\033[1m" : "", *green = bright ? "\033[32m" : "";
    const char *red = bright ? "\033[1;31m" : "", *dim = bright ? "\033[2m" : "";
    const char *plain = bright ? "\033[0m" : "";
    const char *good = d->view.utf8 ? "\xE2\x9C\x93" : "+",
               *bad = d->view.utf8 ? "\xE2\x9C\x97" : "!";
    printf("\n%s    %-*s%8s%6s%s\n", bold, PROMISE_WIDTH, "promise", "expected", "seen",
           plain);
    for (size_t i = 0; i < t->n; i++) {
        const row *r = &t->rows[i];
        printf("  %s%s%s %-*s%8lld%s%6lld%s", is_kept(r) ? green : red,
               is_kept(r) ? good : bad, plain, PROMISE_WIDTH, r->promise,
               (long long)r->expected, is_kept(r) ? "" : red, (long long)r->seen, plain);
        if (r->remark[0] != '\0')
            printf("  %s%s%s", dim, r->remark, plain);
        putchar('\n');
    }
    double took = (double)(hf_demo_now_ms() - d->start_ms) / 1000;
    if (broken == 0)
        printf("\n  %sEvery promise was kept.%s  %zu of %zu, in %.1f s\n", green, plain,
               t->n, t->n, took);
    else
        printf(
            "\n  %s%zu of %zu promises %s not kept.%s  With --keep the logs are kept.\n",
            red, broken, t->n, broken == 1 ? "was" : "were", plain);
}

int hf_demo_judge(hf_demo *d)
{
    table t = {.n = 0};
    ended ends;
    size_t broken = 0;
    int code = ask_for_ends(d, &ends);
    if (code != HF_EXIT_OK)
        return code;
    check_ends(d, &ends, &t);
    check_times(d, &t);
    check_kill(d, &t);
    check_ground(d, &t);
    for (size_t i = 0; i < t.n; i++)
        broken += is_kept(&t.rows[i]) ? 0 : 1;
    if (d->cli->json)
        print_json(&t);
    else
        print_table(d, &t, broken);
    return broken == 0 ? HF_EXIT_OK : HF_EXIT_NO;
}
