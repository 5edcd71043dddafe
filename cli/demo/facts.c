/* facts.c - the facts of the demo: the notes that the handlers wrote to their file, the
 * processes that are alive, and the counts of Redis. The checks at the end use nothing
 * else. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/demo/demo.h"

/* ---- the notes ---- */

typedef struct note {
    bool end;
    char id[HF_DEMO_ID_SIZE];
    uint32_t attempt;
    pid_t pid, worker;
    int64_t at_ms;
    int status;
} note;

/* "start quick-001 1 4711 4700 8123.45 0" */
static bool read_note(const char *line, note *out)
{
    char what[8];
    unsigned attempt;
    int pid, worker, hundredths, status, end = 0;
    long long seconds;
    if (sscanf(line, "%7s %23s %u %d %d %lld.%2d %d%n", what, out->id, &attempt, &pid,
               &worker, &seconds, &hundredths, &status, &end) != 8 ||
        line[end] != '\0')
        return false;
    out->end = strcmp(what, "end") == 0;
    out->attempt = attempt;
    out->pid = (pid_t)pid;
    out->worker = (pid_t)worker;
    out->at_ms = (int64_t)seconds * 1000 + hundredths * HF_DEMO_UPTIME_STEP_MS;
    out->status = status;
    return out->end || strcmp(what, "start") == 0;
}

static hf_demo_job *find_job(hf_demo *d, const char *id)
{
    for (size_t i = 0; i < HF_DEMO_JOBS; i++) {
        if (strcmp(d->jobs[i].id, id) == 0)
            return &d->jobs[i];
    }
    return NULL;
}

/* False: this note ends a run that never started, or no such job was made. */
static bool take_note(hf_demo *d, const note *n)
{
    hf_demo_job *job = find_job(d, n->id);
    if (job == NULL)
        return false;
    if (!n->end) {
        if (job->n_runs < HF_DEMO_RUNS_MAX)
            job->runs[job->n_runs] = (hf_demo_run){.attempt = n->attempt,
                                                   .pid = n->pid,
                                                   .worker = n->worker,
                                                   .start_ms = n->at_ms};
        job->n_runs++;
        return true;
    }
    for (size_t i = hf_demo_runs_of(job); i-- > 0;) {
        hf_demo_run *run = &job->runs[i];
        if (run->pid == n->pid && run->end_ms == 0) {
            run->end_ms = n->at_ms;
            run->status = n->status;
            return true;
        }
    }
    return job->n_runs > HF_DEMO_RUNS_MAX;
}

static int take_lines(hf_demo *d)
{
    char *newline;
    note n;
    while (d->facts.len > 0 &&
           (newline = memchr(d->facts.data, '\n', d->facts.len)) != NULL) {
        *newline = '\0';
        if (!read_note(d->facts.data, &n) || !take_note(d, &n))
            return hf_demo_wrong(d, HF_EXIT_BUG, "a handler's note makes no sense: %.80s",
                                 d->facts.data);
        hf_buf_cut(&d->facts, (size_t)(newline - d->facts.data) + 1);
    }
    return HF_EXIT_OK;
}

static int read_facts(hf_demo *d)
{
    char chunk[4096];
    ssize_t n;
    while ((n = read(d->facts_fd, chunk, sizeof chunk)) > 0) {
        hf_buf_add(&d->facts, chunk, (size_t)n);
        int code = take_lines(d);
        if (code != HF_EXIT_OK)
            return code;
    }
    if (n < 0 || hf_buf_err(&d->facts) != HF_OK)
        return hf_demo_wrong(d, HF_EXIT_BUG, "the handlers' notes cannot be read: %s",
                             n < 0 ? strerror(errno)
                                   : hf_err_text(hf_buf_err(&d->facts)));
    return HF_EXIT_OK;
}

/* ---- the processes ---- */

typedef struct process {
    pid_t pid, parent, session;
    char state;
} process;

/* /proc/PID/stat: "PID (name) STATE PARENT GROUP SESSION ..."; the name may hold
 * anything. */
static bool read_process(const char *pid, process *out)
{
    char path[64], text[512];
    int parent, group, session;
    (void)snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false; /* it has just ended */
    size_t n = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    text[n] = '\0';
    const char *rest = strrchr(text, ')');
    if (rest == NULL ||
        sscanf(rest + 1, " %c %d %d %d", &out->state, &parent, &group, &session) != 4)
        return false;
    out->pid = (pid_t)strtol(pid, NULL, 10);
    out->parent = (pid_t)parent;
    out->session = (pid_t)session;
    return out->state != 'Z' && out->state != 'X'; /* those have ended as well */
}

static bool is_victim(const hf_demo *d, const process *p)
{
    for (size_t i = 0; i < d->n_victims; i++) {
        if (p->session == d->victims[i])
            return true;
    }
    return false;
}

static bool is_orphan(const hf_demo *d, const process *p)
{
    bool known = p->pid == d->redis.pid || p->pid == d->dashboard.pid;
    for (size_t i = 0; i < HF_DEMO_WORKERS; i++)
        known = known || p->pid == d->workers[i].pid;
    return p->parent == getpid() && !known;
}

static size_t count_processes(const hf_demo *d,
                              bool (*wanted)(const hf_demo *, const process *))
{
    size_t found = 0;
    struct dirent *entry;
    DIR *dir = opendir("/proc");
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        process p;
        if (isdigit((unsigned char)entry->d_name[0]) && read_process(entry->d_name, &p) &&
            wanted(d, &p))
            found++;
    }
    if (dir != NULL)
        (void)closedir(dir);
    return found;
}

size_t hf_demo_orphans(const hf_demo *d)
{
    return count_processes(d, is_orphan);
}

void hf_demo_remember_victims(hf_demo *d)
{
    for (size_t i = 0; i < HF_DEMO_JOBS; i++) {
        const hf_demo_job *job = &d->jobs[i];
        if (job->kind == HF_DEMO_LONG && job->n_runs == 1 && job->runs[0].end_ms == 0 &&
            job->runs[0].worker == d->workers[0].pid)
            d->victims[d->n_victims++] = job->runs[0].pid;
    }
}

static void look_at_victims(hf_demo *d)
{
    if (d->killed_ms == 0 || d->gone_ms != 0)
        return;
    size_t alive = count_processes(d, is_victim);
    int64_t now_ms = hf_demo_now_ms();
    if (!d->counted_late && now_ms >= d->killed_ms + HF_DEMO_SLACK_MS) {
        d->counted_late = true;
        d->alive_late = alive;
    }
    if (alive > 0)
        return;
    d->gone_ms = now_ms;
    hf_demo_say(d, "no program of worker 1 is alive any more, %lld ms after the kill",
                (long long)(now_ms - d->killed_ms));
}

/* Without its log one would not know why. */
static int look_at_workers(hf_demo *d)
{
    if (d->stopping)
        return HF_EXIT_OK;
    for (size_t i = 0; i < HF_DEMO_WORKERS; i++) {
        hf_demo_worker *worker = &d->workers[i];
        if (worker->pid == 0 || !hf_demo_worker_ended(worker) ||
            (i == 0 && d->killed_ms != 0))
            continue;
        return hf_demo_wrong(d, HF_EXIT_NO,
                             "worker %zu ended by itself, with %s %d; "
                             "`holdfast demo --keep` keeps its log",
                             i + 1, WIFSIGNALED(worker->status) ? "signal" : "status",
                             WIFSIGNALED(worker->status) ? WTERMSIG(worker->status)
                                                         : WEXITSTATUS(worker->status));
    }
    return HF_EXIT_OK;
}

/* ---- all of it ---- */

int hf_demo_look(hf_demo *d)
{
    int code = look_at_workers(d);
    look_at_victims(d);
    /* A job notes its end before Redis counts it as done, so the notes are read after
     * Redis. */
    for (size_t i = 0; code == HF_EXIT_OK && i < HF_DEMO_QUEUES; i++) {
        d->stats[i].size = sizeof d->stats[i];
        hf_err err = hf_admin_stats(d->admin, hf_demo_queue_names[i], &d->stats[i],
                                    d->cli->detail);
        if (err != HF_OK)
            code = hf_demo_fail(d, err, d->cli->detail);
    }
    d->late = hf_demo_now_ms() - d->start_ms > HF_DEMO_TIME_MS;
    return code == HF_EXIT_OK ? read_facts(d) : code;
}
