/* staff.c - see staff.h. */
#include "tests/history/staff.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"
#include "base/clock.h"
#include "tests/history/table.h"
#include "tests/support/eventually.h"

enum {
    COMMAND_MS = 60000,
    GONE_MS = 30000,
    WORDS_MAX = 16,
    ID_SIZE = 64,
    LINE_SIZE = 256
};

const char *const hf_staff_queues[HF_STAFF_QUEUES] = {"programs", "handlers"};

/* ---- processes ---- */

static bool runs_programs(unsigned i)
{
    return i % HF_STAFF_QUEUES == 0;
}

void hf_staff_begin(hf_staff *c)
{
    char locks[HF_STAFF_PATH];
    *c = (hf_staff){.runs = ""};
    hf_tempdir_make(c->dir);
    (void)snprintf(c->runs, sizeof c->runs, "%s/runs", c->dir);
    (void)snprintf(locks, sizeof locks, "%s/locks", c->dir);
    assert_int_equal(mkdir(locks, 0700), 0);
}

/* What is JSON is YAML. */
static void write_config(const hf_staff *c, const char *path, const char *url)
{
    char text[2048];
    int len =
        snprintf(text, sizeof text,
                 "{\"redis\": {\"url\": \"%s\"}, \"queues\": [{\"name\": \"%s\"}],\n"
                 "\"worker\": {\"concurrency\": %d, \"lease\": \"%dms\"},\n\"handlers\": "
                 "[{\"type\": "
                 "\"*\", \"exec\": [\"%s/tests/helpers/hf-handler\", \"log=%s\", "
                 "\"lock=%s/locks\", "
                 "\"ignore-term\", \"beat=2\", \"payload\"]}]}\n",
                 url, hf_staff_queues[0], HF_STAFF_SLOTS, HF_STAFF_LEASE_MS,
                 HF_TEST_BUILD, c->runs, c->dir);
    assert_in_range(len, 1, sizeof text - 1);
    hf_write_file(path, text);
}

void hf_staff_start(hf_staff *c, unsigned i, const char *url)
{
    char config[HF_STAFF_PATH], log[HF_STAFF_PATH], slots[16], lease[16];
    c->urls[i] = url;
    (void)snprintf(config, sizeof config, "%s/worker-%u.yaml", c->dir, i);
    (void)snprintf(log, sizeof log, "%s/worker-%u.log", c->dir, i);
    (void)snprintf(slots, sizeof slots, "%d", HF_STAFF_SLOTS);
    (void)snprintf(lease, sizeof lease, "%d", HF_STAFF_LEASE_MS);
    const char *const command[] = {HF_TEST_COMMAND, "worker", "-c", config, NULL};
    static const char program[] = HF_TEST_BUILD "/tests/helpers/hf-c-worker";
    const char *const helper[] = {program, url, c->runs, slots, lease, hf_staff_queues[1],
                                  NULL};
    if (runs_programs(i))
        write_config(c, config, url);
    hf_proc_start(&c->workers[i],
                  &(hf_proc_options){.args = runs_programs(i) ? command : helper,
                                     .out = log,
                                     .err = log});
}

int hf_staff_command(const hf_staff *c, const char *url, const char *const *words)
{
    const char *args[WORDS_MAX] = {HF_TEST_COMMAND};
    char out[HF_STAFF_PATH];
    size_t n = 1;
    for (; words[n - 1] != NULL; n++) {
        HF_ASSERT(n < WORDS_MAX - 3);
        args[n] = words[n - 1];
    }
    args[n++] = "--redis";
    args[n++] = url;
    (void)snprintf(out, sizeof out, "%s/command.log", c->dir);
    return hf_proc_run(&(hf_proc_options){.args = args, .out = out, .err = out},
                       COMMAND_MS);
}

/* ---- what the jobs wrote ---- */

typedef struct run {
    long pid;
    char job[ID_SIZE];
    uint64_t fence, first, last;
    bool ended, overlapped, waited;
} run;

typedef struct runs {
    run *all; /* owned */
    size_t n, capacity;
    hf_table keys;
} runs;

/* KIND pid job attempt fence ns [TEXT]; false: the beginning of a line whose writer was
 * killed. */
static bool take_line(runs *r, const char *line)
{
    char kind[16], key[LINE_SIZE];
    run one = {.pid = 0};
    unsigned attempt;
    bool is_new;
    if (sscanf(line, "%15s %ld %63s %u %" SCNu64 " %" SCNu64, kind, &one.pid, one.job,
               &attempt, &one.fence, &one.first) != 6)
        return false;
    (void)snprintf(key, sizeof key, "%ld %s %" PRIu64, one.pid, one.job, one.fence);
    size_t i = hf_table_put(&r->keys, key, &is_new);
    r->all = hf_array_fit(r->all, i, &r->capacity, sizeof *r->all);
    r->n = r->keys.n;
    if (is_new)
        r->all[i] = one;
    r->all[i].last = one.first > r->all[i].last ? one.first : r->all[i].last;
    r->all[i].ended = r->all[i].ended || strcmp(kind, "end") == 0;
    r->all[i].overlapped = r->all[i].overlapped || strcmp(kind, "overlap") == 0;
    r->all[i].waited = r->all[i].waited || strcmp(kind, "dying") == 0;
    return true;
}

static runs read_runs(const hf_staff *c)
{
    runs r = {.n = 0};
    char line[LINE_SIZE];
    FILE *file = fopen(c->runs, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strchr(line, '\n') != NULL)
            (void)take_line(&r, line);
    if (file != NULL)
        (void)fclose(file);
    return r;
}

static void runs_done(runs *r)
{
    free(r->all);
    hf_table_done(&r->keys);
}

static int by_job(const void *a, const void *b)
{
    const run *one = a, *other = b;
    int order = strcmp(one->job, other->job);
    return order != 0                  ? order
           : one->first < other->first ? -1
                                       : one->first > other->first;
}

static void tell(hf_staff_report *out, const run *one, const run *other, uint64_t ns)
{
    out->overlaps++;
    out->longest_ns = ns > out->longest_ns ? ns : out->longest_ns;
    if (out->first[0] == '\0')
        (void)snprintf(out->first, sizeof out->first,
                       "%s: pid %ld (fence %" PRIu64 ") from %" PRIu64 " to %" PRIu64
                       ", pid %ld (fence %" PRIu64 ") from %" PRIu64 ": %" PRIu64 " ms",
                       one->job, one->pid, one->fence, one->first, one->last, other->pid,
                       other->fence, other->first, ns / HF_MS_NS);
}

/* A run's last line is never later than its end, and a program that finds the file lock
 * of another one is an overlap however short it was; unless that one had been killed, and
 * waited for a processor to end on. */
void hf_staff_judge(const hf_staff *c, hf_staff_report *out)
{
    runs r = read_runs(c);
    *out = (hf_staff_report){.runs = (unsigned)r.n};
    if (r.n > 0)
        qsort(r.all, r.n, sizeof *r.all, by_job);
    for (size_t i = 0; i < r.n; i++) {
        const run *other = &r.all[i], *one = other;
        out->ended += other->ended ? 1 : 0;
        out->waited += other->waited ? 1 : 0;
        out->again += i > 0 && strcmp(other->job, r.all[i - 1].job) == 0 ? 1 : 0;
        bool found = false;
        for (size_t k = i; k > 0 && strcmp(r.all[k - 1].job, other->job) == 0; k--) {
            one = &r.all[k - 1];
            uint64_t until = one->last < other->last ? one->last : other->last;
            if (until > other->first) {
                tell(out, one, other, until - other->first);
                found = true;
            }
        }
        if (other->overlapped && !found)
            tell(out, one, other, 0);
    }
    runs_done(&r);
}

bool hf_staff_ran(const hf_staff *c, const char *job)
{
    runs r = read_runs(c);
    bool ran = false;
    for (size_t i = 0; i < r.n; i++)
        ran = ran || (r.all[i].ended && strcmp(r.all[i].job, job) == 0);
    runs_done(&r);
    return ran;
}

static bool all_gone(const hf_staff *c)
{
    runs r = read_runs(c);
    bool gone = true;
    for (size_t i = 0; i < r.n; i++)
        gone = gone && (r.all[i].ended || !hf_pid_alive((pid_t)r.all[i].pid));
    runs_done(&r);
    return gone;
}

void hf_staff_end(hf_staff *c)
{
    for (unsigned i = 0; i < HF_STAFF; i++)
        hf_proc_kill(&c->workers[i]);
    EVENTUALLY(GONE_MS, all_gone(c)); /* the minders see to it */
    if (getenv("HF_KEEP") != NULL)
        print_message("kept: %s\n", c->dir);
    else
        hf_tempdir_remove(c->dir);
}
