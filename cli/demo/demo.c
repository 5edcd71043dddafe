/* demo.c - `holdfast demo` shows the guarantees at work. Three workers run 300 jobs on a
 * Redis that lives for the demo only; some jobs fail, some fail for good, and one worker
 * is killed in the middle of ten. The checks at the end use facts that the jobs' own
 * programs have noted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parent.h"
#include "cli/demo/demo.h"

enum { LATER_FIRST_MS = 1000, LATER_STEP_MS = 80, STOP_MS = 20000, CLOSE_TICK_MS = 2 };

/* ---- the plan ---- */

static void plan(hf_demo *d)
{
    static const struct {
        const char *type;
        size_t n;
    } kinds[] = {{"quick", HF_DEMO_QUICK_JOBS},
                 {"later", HF_DEMO_LATER_JOBS},
                 {"flaky", HF_DEMO_FLAKY_JOBS},
                 {"broken", HF_DEMO_BROKEN_JOBS},
                 {"long", HF_DEMO_LONG_JOBS}};
    hf_demo_job *job = d->jobs;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        for (size_t i = 0; i < kinds[k].n; i++, job++) {
            job->kind = (hf_demo_kind)k;
            (void)snprintf(job->id, sizeof job->id, "%s-%03zu", kinds[k].type, i + 1);
            if (job->kind == HF_DEMO_LATER)
                job->delay_ms = LATER_FIRST_MS + (int64_t)i * LATER_STEP_MS;
        }
    }
}

/* A job's type is the part of its id before the number. */
static void type_of(const hf_demo_job *job, char out[HF_DEMO_ID_SIZE])
{
    (void)snprintf(out, HF_DEMO_ID_SIZE, "%.*s", (int)strcspn(job->id, "-"), job->id);
}

static int enqueue(hf_demo *d, size_t first, size_t n, int64_t *took_ms)
{
    char detail[HF_DETAIL_SIZE] = "", types[HF_DEMO_JOBS][HF_DEMO_ID_SIZE];
    hf_job jobs[HF_DEMO_JOBS] = {{HF_JOB_INIT}};
    hf_enqueue_result results[HF_DEMO_JOBS] = {{HF_ENQUEUE_RESULT_INIT}};
    int64_t asked_ms = hf_demo_now_ms();
    for (size_t i = 0; i < n; i++) {
        hf_demo_job *job = &d->jobs[first + i];
        type_of(job, types[i]);
        job->asked_ms = asked_ms;
        jobs[i] = (hf_job){HF_JOB_INIT,
                           .queue = hf_demo_queue_of(job),
                           .type = types[i],
                           .id = job->id,
                           .payload = job->id,
                           .payload_len = strlen(job->id),
                           .delay_ms = job->delay_ms};
    }
    hf_err err = hf_enqueue_wait(d->producer, jobs, n, results, 0, detail);
    if (err != HF_OK)
        return hf_demo_fail(d, err, detail);
    for (size_t i = 0; i < n; i++)
        d->jobs[first + i].accepted = results[i].err == HF_OK;
    *took_ms = hf_demo_now_ms() - asked_ms;
    return HF_EXIT_OK;
}

/* ---- waiting ---- */

static size_t count_long_runs(const hf_demo *d, size_t runs)
{
    size_t n = 0;
    for (size_t i = 0; i < HF_DEMO_JOBS; i++)
        n += d->jobs[i].kind == HF_DEMO_LONG && d->jobs[i].n_runs >= runs ? 1 : 0;
    return n;
}

static bool all_long_run(const hf_demo *d)
{
    return count_long_runs(d, 1) == HF_DEMO_LONG_JOBS;
}

static bool time_to_kill(const hf_demo *d)
{
    int64_t last_ms = 0;
    for (size_t i = 0; i < HF_DEMO_JOBS; i++) {
        const hf_demo_job *job = &d->jobs[i];
        if (job->kind == HF_DEMO_LONG && job->n_runs > 0 &&
            job->runs[0].start_ms > last_ms)
            last_ms = job->runs[0].start_ms;
    }
    return hf_demo_now_ms() >= last_ms + HF_DEMO_KILL_AFTER_MS;
}

static bool killed_run_again(const hf_demo *d)
{
    return count_long_runs(d, 2) == HF_DEMO_LONG_JOBS && d->gone_ms != 0;
}

static bool all_settled(const hf_demo *d)
{
    int64_t left = 0, settled = 0;
    for (size_t i = 0; i < HF_DEMO_QUEUES; i++) {
        left += d->stats[i].ready + d->stats[i].delayed + d->stats[i].running;
        settled += d->stats[i].done + d->stats[i].dead;
    }
    return left == 0 && settled == HF_DEMO_JOBS;
}

/* Watches until `done` returns true; at most for the longest time of the demo. */
static int watch(hf_demo *d, bool (*done)(const hf_demo *d))
{
    for (;;) {
        int code = hf_demo_look(d);
        if (code != HF_EXIT_OK || d->late || done(d))
            return code;
        hf_demo_show(d, false);
        /* How fast the programs of a killed worker go is worth a closer look. */
        code = hf_demo_pause(d, d->killed_ms != 0 && d->gone_ms == 0 ? CLOSE_TICK_MS
                                                                     : HF_DEMO_TICK_MS);
        if (code != HF_EXIT_OK)
            return code;
    }
}

/* ---- the story ---- */

/* Only worker 1 gets the long jobs: it must hold all of them when it dies.
 */
static int first_act(hf_demo *d)
{
    int64_t took_ms;
    hf_demo_say(d, "a Redis of its own: version %s, on a unix socket",
                hf_admin_server(d->admin)->version);
    int code = hf_demo_start_worker(d, 0, hf_demo_queue_names[1]);
    if (code == HF_EXIT_OK)
        code = enqueue(d, HF_DEMO_OTHER_JOBS, HF_DEMO_LONG_JOBS, &took_ms);
    if (code != HF_EXIT_OK)
        return code;
    hf_demo_say(d, "worker 1 serves the queue `long`: %d jobs of %d s", HF_DEMO_LONG_JOBS,
                HF_DEMO_LONG_MS / 1000);
    return watch(d, all_long_run);
}

static int second_act(hf_demo *d)
{
    int64_t took_ms;
    int code = hf_demo_start_worker(d, 1, NULL);
    if (code == HF_EXIT_OK)
        code = hf_demo_start_worker(d, 2, NULL);
    if (code != HF_EXIT_OK)
        return code;
    hf_demo_say(d, "it runs all of them; workers 2 and 3 come and serve both queues");
    code = enqueue(d, 0, HF_DEMO_OTHER_JOBS, &took_ms);
    if (code != HF_EXIT_OK)
        return code;
    hf_demo_say(d, "%d jobs accepted in %lld ms: %d for now, %d for later, %d will fail",
                HF_DEMO_OTHER_JOBS, (long long)took_ms, HF_DEMO_QUICK_JOBS,
                HF_DEMO_LATER_JOBS, HF_DEMO_FLAKY_JOBS + HF_DEMO_BROKEN_JOBS);
    return watch(d, time_to_kill);
}

static int third_act(hf_demo *d)
{
    hf_demo_remember_victims(d);
    (void)kill(d->workers[0].pid, SIGKILL); /* it is our child, and not reaped yet */
    d->killed_ms = hf_demo_now_ms();
    hf_demo_say(d, "kill -9 for worker 1, in the middle of %zu jobs", d->n_victims);
    int code = watch(d, killed_run_again);
    if (code != HF_EXIT_OK || d->late)
        return code;
    hf_demo_takeover t;
    hf_demo_take_over(d, &t);
    hf_demo_say(d,
                "they run again: %zu on worker 2, %zu on worker 3; %.2f to %.2f s after",
                t.by[1], t.by[2], (double)t.first_ms / 1000, (double)t.last_ms / 1000);
    return watch(d, all_settled);
}

static bool is_at_work(hf_demo_worker *worker)
{
    return worker->pid > 0 && !hf_demo_worker_ended(worker);
}

static int stop_workers(hf_demo *d)
{
    hf_demo_say(d, d->late ? "it takes too long: the workers are asked to stop"
                           : "nothing is left to do: the workers are asked to stop");
    d->stopping = true;
    for (size_t i = 0; i < HF_DEMO_WORKERS; i++) {
        if (is_at_work(&d->workers[i]))
            (void)kill(d->workers[i].pid, SIGTERM);
    }
    const int64_t until_ms = hf_demo_now_ms() + STOP_MS;
    for (;;) {
        size_t left = 0;
        for (size_t i = 0; i < HF_DEMO_WORKERS; i++)
            left += is_at_work(&d->workers[i]) ? 1 : 0;
        d->left_over =
            left + hf_demo_orphans(d); /* minders end just after their workers */
        if (d->left_over == 0 || hf_demo_now_ms() >= until_ms)
            return HF_EXIT_OK;
        hf_demo_show(d, false);
        int code = hf_demo_pause(d, HF_DEMO_TICK_MS);
        if (code != HF_EXIT_OK)
            return code;
    }
}

static int audit(hf_demo *d)
{
    const hf_audit_opts opts = {HF_AUDIT_OPTS_INIT, .idle = true};
    for (size_t i = 0; i < HF_DEMO_QUEUES; i++) {
        size_t found = 0;
        hf_err err = hf_admin_audit(d->admin, hf_demo_queue_names[i], &opts, &found,
                                    d->cli->detail);
        if (err != HF_OK)
            return hf_demo_fail(d, err, d->cli->detail);
        d->findings += found;
    }
    return HF_EXIT_OK;
}

static int play(hf_demo *d)
{
    static int (*const acts[])(hf_demo *) = {first_act, second_act, third_act};
    int code = HF_EXIT_OK;
    plan(d);
    for (size_t i = 0; code == HF_EXIT_OK && !d->late && i < sizeof acts / sizeof acts[0];
         i++)
        code = acts[i](d);
    if (code == HF_EXIT_OK)
        code = stop_workers(d);
    if (code == HF_EXIT_OK)
        code = hf_demo_look(d);
    if (code == HF_EXIT_OK)
        code = audit(d);
    if (code == HF_EXIT_OK)
        hf_demo_show(d, true);
    return code;
}

/* ---- the command ---- */

static int refuse_options(const hf_cli *cli)
{
    static const char *const others[] = {"config", "redis", "namespace"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (hf_argv_has(cli->args, others[i]))
            return hf_cli_say(cli, HF_EXIT_USAGE, "",
                              "demo: expected no --%s, because it runs on a Redis and a "
                              "configuration of its own",
                              others[i]);
    }
    return HF_EXIT_OK;
}

/* From the first server to the last line. */
static int run(hf_demo *d, hf_cli *cli, hf_demo_svg_file *svg)
{
    int code = hf_demo_open(d, cli);
    if (code != HF_EXIT_OK)
        return code;
    hf_demo_view_init(d);
    if (hf_argv_has(cli->args, "dashboard"))
        code = hf_demo_open_dashboard(d);
    if (code == HF_EXIT_OK)
        code = play(d);
    hf_demo_view_end(d, code == HF_EXIT_OK);
    if (code != HF_EXIT_OK)
        return code;
    code = hf_demo_judge(d);
    if (code != HF_EXIT_OK && code != HF_EXIT_NO)
        return code;
    int written = hf_demo_svg_write(svg, d);
    if (d->dashboard.pid > 0)
        hf_demo_keep_dashboard(d);
    return code == HF_EXIT_OK ? written : code;
}

int hf_cmd_demo(hf_cli *cli)
{
    hf_demo_svg_file svg;
    int code = refuse_options(cli);
    if (code == HF_EXIT_OK)
        code = hf_demo_svg_open(&svg, cli, hf_argv_text(cli->args, "svg"));
    if (code != HF_EXIT_OK)
        return code;
    hf_demo *d = calloc(1, sizeof *d);
    if (d == NULL) {
        hf_demo_svg_close(&svg);
        return hf_cli_fail(cli, HF_NOMEM, NULL);
    }
    bool keep = hf_argv_has(cli->args, "keep");
    hf_heed_children();
    code = run(d, cli, &svg);
    hf_demo_svg_close(&svg);
    keep = keep && d->dir[0] != '\0';
    if (keep && !cli->json)
        printf("The handlers, their notes and the logs are in %s\n", d->dir);
    hf_demo_close(d, keep);
    if (d->signal == SIGPIPE)
        clearerr(stdout); /* it has been dealt with */
    else if (d->signal != 0)
        (void)hf_cli_say(cli, (hf_exit)code, "", "the demo was interrupted, %s",
                         keep ? "only its files are left" : "nothing of it is left");
    free(d);
    return code;
}
