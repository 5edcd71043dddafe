/* job_runs.c - see job_runs.h. */
#include "dashboard/job_runs.h"

#include <string.h>

#include "cli/out.h"
#include "dashboard/timeline.h"
#include "seen/reasons.h"

enum { APART_MS = 2000 /* ends of two runs of a job that one worker tells: more */ };

typedef struct known_run {
    uint32_t run, attempt;                /* 0: not known */
    const char *worker, *outcome, *error; /* error NULL: none */
    int64_t start_ms, end_ms, lease_until_ms;
} known_run;

static json_t *number(uint32_t n)
{
    return n == 0 ? json_null() : json_integer(n);
}

/* In the order of their starts. */
static void add(json_t *list, const known_run *run)
{
    size_t at = json_array_size(list);
    while (at > 0 && json_integer_value(json_object_get(json_array_get(list, at - 1),
                                                        "start_ms")) > run->start_ms)
        at--;
    (void)json_array_insert_new(
        list, at,
        json_pack("{s:o, s:o, s:o, s:o, s:o, s:s, s:o, s:o}", "run", number(run->run),
                  "attempt", number(run->attempt), "worker", hf_out_text(run->worker),
                  "start_ms", hf_out_time(run->start_ms), "end_ms",
                  hf_out_time(run->end_ms), "outcome", run->outcome, "error",
                  run->error == NULL ? json_null() : hf_out_text(run->error),
                  "lease_until_ms", hf_out_time(run->lease_until_ms)));
}

static bool is_of(const hf_seen_run *run, const hf_job_info *job)
{
    return run->told && strcmp(run->id, job->id) == 0 &&
           strcmp(run->queue, job->queue) == 0;
}

static bool is_near(int64_t a_ms, int64_t b_ms)
{
    return a_ms - b_ms < APART_MS && b_ms - a_ms < APART_MS;
}

/* What the timeline has of the run that ended then; NULL: nothing. */
static const hf_seen_run *told_run(const hf_running *r, const hf_job_info *job,
                                   const char *worker, int64_t end_ms)
{
    for (size_t i = 0; r != NULL && i < hf_running_count(r); i++) {
        const hf_seen_run *run = hf_running_at(r, i);
        if (is_of(run, job) && run->end_ms != 0 && strcmp(run->worker, worker) == 0 &&
            is_near(run->end_ms, end_ms))
            return run;
    }
    return NULL;
}

/* Crashes are runs, and no attempts. How many a job had that has ended is not kept. */
static void add_attempts(json_t *list, const hf_running *r, const hf_job_info *job)
{
    const bool counts =
        job->crashes == 0 && job->state != HF_STATE_DEAD && job->state != HF_STATE_DONE;
    for (size_t i = 0; i < job->n_history; i++) {
        const hf_job_attempt *a = &job->history[i];
        const hf_seen_run *told = told_run(r, job, a->worker, a->ended_ms);
        const uint32_t attempt = job->attempts - (uint32_t)(job->n_history - i) + 1;
        add(list, &(known_run){.run = told != NULL ? told->run
                                      : counts     ? attempt
                                                   : 0,
                               .attempt = attempt,
                               .worker = a->worker,
                               .outcome = "failed",
                               .error = a->error,
                               .start_ms = a->ended_ms - a->ran_ms,
                               .end_ms = a->ended_ms});
    }
}

static void add_present(json_t *list, const hf_reader *r, const hf_job_info *job)
{
    hf_job_info copy = *job;
    const hf_job_why why = {HF_JOB_WHY_INIT, .job = &copy, .now_ms = hf_reader_now_ms(r)};
    if (job->state == HF_STATE_RUNNING && job->fence != 0) { /* 0: its lease is over */
        add(list, &(known_run){.run = job->attempts + job->crashes + 1,
                               .attempt = job->attempts + 1,
                               .worker = job->holder,
                               .outcome = "running",
                               .start_ms = hf_why_held_since(&why),
                               .lease_until_ms = job->due_ms});
    } else if (job->state == HF_STATE_DONE) {
        const hf_seen_run *told =
            told_run(hf_timeline_running(r), job, job->done_by, job->due_ms);
        add(list, &(known_run){.run = told == NULL ? 0 : told->run,
                               .worker = job->done_by,
                               .outcome = "done",
                               .start_ms = job->due_ms - job->ran_ms,
                               .end_ms = job->due_ms});
    }
}

/* When a worker that is silent was last heard; 0: it is not silent. */
static int64_t gone_ms(const hf_running *r, const char *worker)
{
    for (size_t i = 0; i < hf_running_n_workers(r); i++) {
        const hf_seen_worker *w = hf_running_worker(r, i);
        if (w->silent && strcmp(w->id, worker) == 0)
            return w->heard_ms;
    }
    return 0;
}

/* A job that died of a crash has no attempt for it. */
static bool is_in_record(const hf_seen_run *run, const hf_job_info *job)
{
    if (run->end != HF_RUN_DEAD)
        return run->end == HF_RUN_DONE || run->end == HF_RUN_FAILED;
    for (size_t i = 0; i < job->n_history; i++)
        if (is_near(run->end_ms, job->history[i].ended_ms))
            return true;
    return false;
}

/* A crash leaves its text, with the signal and the last words of its process, where a
 * failed attempt does; the last crash of a job that is dead of it, too. NULL: something
 * came after this run. */
static const char *crash_text(const hf_seen_run *run, const hf_job_info *job)
{
    const bool is_last =
        run->end == HF_RUN_DEAD
            ? job->state == HF_STATE_DEAD && is_near(run->end_ms, job->due_ms)
            : run->end == HF_RUN_CRASHED && run->run == job->attempts + job->crashes;
    return is_last && job->error[0] != '\0' ? job->error : NULL;
}

/* Runs that no record has: crashes, runs that were given back or cancelled. */
static void add_told(json_t *list, const hf_running *r, const hf_job_info *job)
{
    for (size_t i = 0; r != NULL && i < hf_running_count(r); i++) {
        const hf_seen_run *run = hf_running_at(r, i);
        if (!is_of(run, job) || run->end_ms == 0 || is_in_record(run, job))
            continue;
        const bool gone = run->end == HF_RUN_GOES_ON;
        const int64_t heard_ms = gone ? gone_ms(r, run->worker) : 0;
        const bool earlier = heard_ms > run->start_ms && heard_ms < run->end_ms;
        add(list, &(known_run){.run = run->run,
                               .worker = run->worker,
                               .outcome = gone ? "gone" : hf_run_end_word(run->end),
                               .error = crash_text(run, job),
                               .start_ms = run->start_ms,
                               .end_ms = earlier ? heard_ms : run->end_ms,
                               .lease_until_ms = gone ? run->lease_until_ms : 0});
    }
}

json_t *hf_job_runs_json(const hf_reader *r, const hf_job_info *job)
{
    json_t *list = json_array();
    if (list == NULL)
        return NULL;
    add_attempts(list, hf_timeline_running(r), job);
    add_told(list, hf_timeline_running(r), job);
    add_present(list, r, job);
    return list;
}
