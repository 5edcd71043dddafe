/* test_jobs_clock.c - workers run programs and C handlers while the clock of Redis steps
 * and runs away, workers are killed and stopped, connections are cut, and jobs are
 * cancelled, deleted and enqueued again by the same id: there are never two live
 * programs, and never two believing C handlers, of one job.
 *
 * Then the same with workers that live for 0.5 to 60 s at most, and end by KILL or TERM.
 *
 * From the environment: HF_SEED, and HF_HISTORY_MS, how long one seed takes;
 * HF_SHORT_LIVES: 1 or 0: only with them, or without; HF_KEEP=1: what the jobs and
 * workers wrote stays, and what was done when. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "holdfast/producer.h"
#include "tests/history/clock_harm.h"
#include "tests/history/line.h"
#include "tests/history/table.h"
#include "tests/support/eventually.h"
#include "tests/support/proc.h"
#include "tests/support/proxy.h"
#include "tests/support/skip.h"
#include "tests/support/tempdir.h"

/* Workers of two queues as processes of their own, and what their jobs wrote: programs by
 * `holdfast worker` in the queue "programs", C handlers by hf-c-worker in the queue
 * "handlers".
 *
 * A program does not heed TERM: it is alive until it is killed. A C handler writes each
 * moment at which it believed that it held the job. */
enum {
    STAFF = 8,
    STAFF_SLOTS = 2,
    STAFF_QUEUES = 2,
    STAFF_LEASE_MS = 1000,
    STAFF_PATH = HF_TEMPDIR_SIZE + 64
};
static const char *const staff_queues[STAFF_QUEUES] = {"programs", "handlers"};

/* The even ones run programs, the odd ones C handlers. */
typedef struct staff {
    char dir[HF_TEMPDIR_SIZE];
    char runs[STAFF_PATH]; /* what the jobs wrote */
    hf_proc workers[STAFF];
    const char *urls[STAFF]; /* borrowed: where each finds Redis */
} staff;

enum {
    COMMAND_MS = 60000,
    GONE_MS = 30000,
    WORDS_MAX = 16,
    ID_SIZE = 64,
    LINE_SIZE = 256
};

/* ---- the staff: its processes ---- */

static bool runs_programs(unsigned i)
{
    return i % STAFF_QUEUES == 0;
}

static void staff_begin(staff *c)
{
    char locks[STAFF_PATH];
    *c = (staff){.runs = ""};
    hf_tempdir_make(c->dir);
    (void)snprintf(c->runs, sizeof c->runs, "%s/runs", c->dir);
    (void)snprintf(locks, sizeof locks, "%s/locks", c->dir);
    assert_int_equal(mkdir(locks, 0700), 0);
}

/* What is JSON is YAML. */
static void write_config(const staff *c, const char *path, const char *url)
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
                 url, staff_queues[0], STAFF_SLOTS, STAFF_LEASE_MS, HF_TEST_BUILD,
                 c->runs, c->dir);
    assert_in_range(len, 1, sizeof text - 1);
    hf_write_file(path, text);
}

static void staff_start(staff *c, unsigned i, const char *url)
{
    char config[STAFF_PATH], log[STAFF_PATH], slots[16], lease[16];
    c->urls[i] = url;
    (void)snprintf(config, sizeof config, "%s/worker-%u.yaml", c->dir, i);
    (void)snprintf(log, sizeof log, "%s/worker-%u.log", c->dir, i);
    (void)snprintf(slots, sizeof slots, "%d", STAFF_SLOTS);
    (void)snprintf(lease, sizeof lease, "%d", STAFF_LEASE_MS);
    const char *const command[] = {HF_TEST_COMMAND, "worker", "-c", config, NULL};
    static const char program[] = HF_TEST_BUILD "/tests/helpers/hf-c-worker";
    const char *const helper[] = {program,         url, c->runs, slots, lease,
                                  staff_queues[1], NULL};
    if (runs_programs(i))
        write_config(c, config, url);
    hf_proc_start(&c->workers[i],
                  &(hf_proc_options){.args = runs_programs(i) ? command : helper,
                                     .out = log,
                                     .err = log});
}

/* The words of a command line without the program, ended by NULL. Gives its exit status.
 */
static int staff_command(const staff *c, const char *url, const char *const *words)
{
    const char *args[WORDS_MAX] = {HF_TEST_COMMAND};
    char out[STAFF_PATH];
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

/* ---- the staff: what its jobs wrote ---- */

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

static runs read_runs(const staff *c)
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

typedef struct staff_report {
    unsigned runs, again, ended; /* `again`: of them not the first of their job */
    unsigned overlaps;
    unsigned waited; /* until a killed one had a processor to end on */
    uint64_t longest_ns;
    char first[320]; /* overlap, in words; "": there was none */
} staff_report;

static void tell(staff_report *out, const run *one, const run *other, uint64_t ns)
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

/* Reads what the jobs wrote, and looks for two runs of one job at one time. A run's last
 * line is never later than its end, and a program that finds the file lock of another one
 * is an overlap however short it was; unless that one had been killed, and waited for a
 * processor to end on. */
static void staff_judge(const staff *c, staff_report *out)
{
    runs r = read_runs(c);
    *out = (staff_report){.runs = (unsigned)r.n};
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

/* True when a run of that job has come to its end. */
static bool staff_ran(const staff *c, const char *job)
{
    runs r = read_runs(c);
    bool ran = false;
    for (size_t i = 0; i < r.n; i++)
        ran = ran || (r.all[i].ended && strcmp(r.all[i].job, job) == 0);
    runs_done(&r);
    return ran;
}

static bool all_gone(const staff *c)
{
    runs r = read_runs(c);
    bool gone = true;
    for (size_t i = 0; i < r.n; i++)
        gone = gone && (r.all[i].ended || !hf_pid_alive((pid_t)r.all[i].pid));
    runs_done(&r);
    return gone;
}

/* Kills all of them. */
static void staff_end(staff *c)
{
    for (unsigned i = 0; i < STAFF; i++)
        hf_proc_kill(&c->workers[i]);
    EVENTUALLY(GONE_MS, all_gone(c)); /* the minders see to it */
    if (getenv("HF_KEEP") != NULL)
        print_message("kept: %s\n", c->dir);
    else
        hf_tempdir_remove(c->dir);
}

/* ---- the nemesis ---- */

enum {
    SEEDS = 2,
    PLAY_MS = 8000,
    BETWEEN_MS = 120,
    STOP_MS = 3 * STAFF_LEASE_MS,  /* at most */
    QUIET_MS = 3 * STAFF_LEASE_MS, /* at most */
    GENERATION_MS = 5000,          /* then there are other ids */
    IDS = 4,
    ENQUEUE_MS = 30000,
    LAST_MS = 120000, /* on a busy machine leases end again and again */
    DEEDS = 7
};

typedef struct nemesis {
    hf_fixture redis;
    hf_proxy proxy;
    staff staff;
    hf_producer *producer;
    hf_rng rng;
    int fd;                            /* what was done when */
    uint64_t from_ns, go_on_ns[STAFF]; /* 0: it is not stopped */
    uint64_t ends_ns[STAFF];           /* 0: it lives until somebody ends it */
    bool asked[STAFF];                 /* by TERM */
    unsigned lives;
    unsigned fills, done[DEEDS], clock[HF_CLOCK_HARMS];
} nemesis;

static unsigned below(nemesis *n, unsigned limit)
{
    return (unsigned)(hf_rng_next(&n->rng) % limit);
}

static void note(const nemesis *n, const char *what, const char *words)
{
    hf_line_write(n->fd, "%" PRIu64 " %s %s", hf_boot_ns(), what, words);
}

/* ---- jobs ---- */

/* Of another letter in each queue, for the judge knows jobs by their ids alone. */
static const char *any_id(nemesis *n, unsigned q, char *id, size_t size)
{
    uint64_t ms = (hf_boot_ns() - n->from_ns) / HF_MS_NS;
    (void)snprintf(id, size, "%c%u-%u", staff_queues[q][0],
                   (unsigned)(ms / GENERATION_MS), below(n, IDS));
    return id;
}

/* About half of them are longer than a lease. */
static unsigned any_ms(nemesis *n)
{
    static const unsigned longest[] = {150, 900, 4 * STAFF_LEASE_MS, 4 * STAFF_LEASE_MS};
    return 20 + below(n, longest[below(n, HF_COUNT(longest))]);
}

/* An id that is known is no error. */
static void enqueue(nemesis *n, unsigned q, const char *id, unsigned ms)
{
    char payload[32], detail[HF_DETAIL_SIZE] = "";
    int len = snprintf(payload, sizeof payload, q == 0 ? "sleep=%u" : "believe %u", ms);
    const hf_job job = {HF_JOB_INIT,        .queue = staff_queues[q],
                        .type = "t",        .id = id,
                        .payload = payload, .payload_len = (size_t)len};
    if (hf_enqueue_wait(n->producer, &job, 1, NULL, ENQUEUE_MS, detail) != HF_OK)
        fail_msg("%s was not taken: %s", id, detail);
}

static void put_job(nemesis *n)
{
    char id[32];
    unsigned q = below(n, STAFF_QUEUES);
    enqueue(n, q, any_id(n, q, id, sizeof id), any_ms(n));
}

/* So many that all workers are full. */
static void fill(nemesis *n)
{
    char id[32];
    unsigned q = below(n, STAFF_QUEUES);
    for (unsigned i = 0; i < STAFF_SLOTS * STAFF / STAFF_QUEUES; i++) {
        (void)snprintf(id, sizeof id, "%c-full%u-%u", staff_queues[q][0], n->done[1], i);
        enqueue(n, q, id, STAFF_LEASE_MS / 2 + any_ms(n));
    }
    n->fills++;
}

/* Refused or not: what matters is that the same id comes again. */
static void take_away(nemesis *n, const char *verb, const char *flag)
{
    char id[32];
    unsigned q = below(n, STAFF_QUEUES);
    const char *const words[] = {
        "job", verb, any_id(n, q, id, sizeof id), "-q", staff_queues[q], flag, NULL};
    (void)staff_command(&n->staff, hf_fixture_url(&n->redis), words);
    enqueue(n, q, id, any_ms(n));
    note(n, verb, id);
}

static void cancel_job(nemesis *n)
{
    take_away(n, "cancel", NULL);
}

static void delete_job(nemesis *n)
{
    take_away(n, "delete", "--yes");
}

/* ---- workers ---- */

static const char *url_of(const nemesis *n, unsigned i)
{
    return i < STAFF / 2 ? n->proxy.url : hf_fixture_url(&n->redis);
}

static void replace(nemesis *n, unsigned i)
{
    char words[32];
    hf_proc_kill(&n->staff.workers[i]);
    n->go_on_ns[i] = 0;
    staff_start(&n->staff, i, url_of(n, i));
    (void)snprintf(words, sizeof words, "worker %u", i);
    note(n, "kill", words);
}

static void kill_worker(nemesis *n)
{
    replace(n, below(n, STAFF));
}

/* A part of a life that is as long as one of these. */
static void begin_life(nemesis *n, unsigned i)
{
    static const unsigned longest[] = {500, 1000, 4000, 10000, 60000};
    unsigned ms = 1 + below(n, longest[below(n, HF_COUNT(longest))]);
    n->ends_ns[i] = hf_boot_ns() + ms * HF_MS_NS;
    n->asked[i] = false;
}

/* By KILL, or by TERM; and by KILL when it has not ended soon after that. */
static void end_lives(nemesis *n, uint64_t now_ns)
{
    for (unsigned i = 0; i < STAFF; i++) {
        bool over = n->asked[i] && hf_proc_wait(&n->staff.workers[i], 0);
        if (n->ends_ns[i] == 0 || (!over && now_ns < n->ends_ns[i]))
            continue;
        if (!over && !n->asked[i] && below(n, 2) == 0) {
            hf_proc_signal(&n->staff.workers[i], SIGTERM);
            n->asked[i] = true;
            n->ends_ns[i] = now_ns + (1 + below(n, STOP_MS)) * HF_MS_NS;
            continue;
        }
        replace(n, i);
        begin_life(n, i);
        n->lives++;
    }
}

static void stop_worker(nemesis *n)
{
    char words[48];
    unsigned i = below(n, STAFF), ms = 1 + below(n, STOP_MS);
    if (n->go_on_ns[i] != 0)
        return;
    hf_proc_signal(&n->staff.workers[i], SIGSTOP);
    n->go_on_ns[i] = hf_boot_ns() + ms * HF_MS_NS;
    (void)snprintf(words, sizeof words, "worker %u for %u ms", i, ms);
    note(n, "stop", words);
}

static void let_go(nemesis *n, uint64_t now_ns)
{
    for (unsigned i = 0; i < STAFF; i++)
        if (n->go_on_ns[i] != 0 && n->go_on_ns[i] <= now_ns) {
            hf_proc_signal(&n->staff.workers[i], SIGCONT);
            n->go_on_ns[i] = 0;
        }
}

/* ---- the way to Redis, and its clock ---- */

static void cut(nemesis *n)
{
    unsigned ms = 1 + below(n, STAFF_LEASE_MS / 2);
    note(n, "cut", "");
    hf_proxy_set(&n->proxy, PROXY_ANSWERS, below(n, 2) == 0 ? PROXY_HOLD : PROXY_DROP);
    hf_test_pause_ms(ms);
    hf_proxy_close_all(&n->proxy);
    hf_proxy_set(&n->proxy, PROXY_ANSWERS, PROXY_PASS);
}

/* Often in bad company: a holder that stands still hears nothing of it, and one that has
 * just been started never knew another time. */
static void move_clock(nemesis *n)
{
    char words[96];
    unsigned which = below(n, HF_CLOCK_HARMS), company = below(n, 4);
    if (company < 2)
        stop_worker(n);
    note(n, "clock", "");
    hf_clock_harm(&n->redis, &n->rng, which, words, sizeof words);
    note(n, "clock", words);
    if (company == 2)
        kill_worker(n);
    n->clock[which]++;
}

/* `often` of a hundred. */
static const struct {
    const char *what;
    void (*deed)(nemesis *n);
    unsigned often;
} deeds[DEEDS] = {
    {"clock moved", move_clock, 36},     {"workers stopped", stop_worker, 22},
    {"workers killed", kill_worker, 12}, {"jobs cancelled", cancel_job, 8},
    {"jobs deleted", delete_job, 6},     {"times all full", fill, 10},
    {"connections cut", cut, 6}};

static unsigned any_deed(nemesis *n)
{
    unsigned i = 0;
    for (unsigned at = below(n, 100); at >= deeds[i].often; i++)
        at -= deeds[i].often;
    return i;
}

/* Jobs come all the time. */
static void stay(nemesis *n, unsigned ms)
{
    const uint64_t until_ns = hf_boot_ns() + ms * HF_MS_NS;
    do {
        hf_test_pause_ms(1 + below(n, BETWEEN_MS));
        put_job(n);
        let_go(n, hf_boot_ns());
        end_lives(n, hf_boot_ns());
    } while (hf_boot_ns() < until_ns);
}

/* One thing after the other; now and then it is quiet for so long that leases end and
 * others take what was left. */
static void do_harm(nemesis *n, unsigned ms)
{
    const uint64_t until_ns = n->from_ns + ms * HF_MS_NS;
    while (hf_boot_ns() < until_ns) {
        unsigned i = any_deed(n);
        stay(n, below(n, 8) == 0 ? below(n, QUIET_MS) : 0);
        deeds[i].deed(n);
        n->done[i]++;
    }
}

/* Once all is well again, work is done. */
static void finish(nemesis *n)
{
    let_go(n, UINT64_MAX);
    for (unsigned i = 0; i < STAFF; i++)
        if (n->asked[i])
            replace(n, i); /* the others live on */
    hf_fixture_clock_slew(&n->redis, 0);
    for (unsigned q = 0; q < STAFF_QUEUES; q++)
        enqueue(n, q, q == 0 ? "last-program" : "last-handler", 20);
    uint64_t from_ns = hf_boot_ns();
    EVENTUALLY(LAST_MS, staff_ran(&n->staff, "last-program"));
    EVENTUALLY(LAST_MS, staff_ran(&n->staff, "last-handler"));
    print_message("the last jobs were done after %" PRIu64 " ms\n",
                  (hf_boot_ns() - from_ns) / HF_MS_NS);
}

/* ---- the test ---- */

static void begin(nemesis *n, uint64_t seed, bool short_lives)
{
    char path[STAFF_PATH];
    *n = (nemesis){.rng = {seed}};
    hf_fixture_start(&n->redis, &(hf_fixture_options){.clock = true});
    hf_proxy_start(&n->proxy, n->redis.socket);
    staff_begin(&n->staff);
    (void)snprintf(path, sizeof path, "%s/deeds", n->staff.dir);
    n->fd = hf_lines_open(path);
    const hf_producer_opts opts = {HF_PRODUCER_OPTS_INIT,
                                   .server = HF_SERVER(.url = hf_fixture_url(&n->redis))};
    assert_int_equal(hf_producer_open(&n->producer, &opts, NULL), HF_OK);
    n->from_ns = hf_boot_ns();
    for (unsigned i = 0; i < STAFF; i++)
        staff_start(&n->staff, i, url_of(n, i));
    for (unsigned i = 0; i < STAFF && short_lives; i++)
        begin_life(n, i);
}

static void end(nemesis *n)
{
    (void)close(n->fd);
    hf_producer_close(n->producer, NULL, NULL);
    staff_end(&n->staff);
    hf_proxy_stop(&n->proxy);
    hf_fixture_stop(&n->redis);
    n->from_ns = 0;
}

static void print(const nemesis *n, const staff_report *r)
{
    for (unsigned i = 0; i < DEEDS; i++)
        print_message("%s%u %s", i == 0 ? "done: " : ", ", n->done[i], deeds[i].what);
    for (unsigned i = 0; i < HF_CLOCK_HARMS; i++)
        print_message("%s%u %s", i == 0 ? "\nclock: " : ", ", n->clock[i],
                      hf_clock_harms[i]);
    print_message("\nlives: %u ended", n->lives);
    print_message(
        "\njobs: %u runs, %u again, %u ended, %u overlaps, %u waited for the end of a "
        "killed one\n",
        r->runs, r->again, r->ended, r->overlaps, r->waited);
}

static uint64_t from_environment(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text == NULL ? otherwise : strtoull(text, NULL, 10);
}

static void no_overlaps(const staff_report *r)
{
    if (r->overlaps > 0)
        print_message("overlaps of up to %" PRIu64 " ms, the first: %s\n",
                      r->longest_ns / HF_MS_NS, r->first);
    assert_int_equal(r->overlaps, 0);
}

static nemesis one; /* too large for a stack */

static void play(uint64_t seed, unsigned ms, bool short_lives)
{
    staff_report report;
    print_message("HF_SEED=%" PRIu64 "\n", seed);
    begin(&one, seed, short_lives);
    do_harm(&one, ms);
    staff_judge(&one.staff, &report);
    print(&one, &report);
    no_overlaps(&report);
    finish(&one);
    staff_judge(&one.staff, &report);
    no_overlaps(&report);
    assert_true(report.ended > 0 && report.again > 0);
}

static void play_seeds(bool short_lives)
{
    uint64_t any;
    if (from_environment("HF_SHORT_LIVES", short_lives) != (uint64_t)short_lives)
        HF_SKIP("HF_SHORT_LIVES chooses the others");
    assert_int_equal(hf_random_bytes(&any, sizeof any), HF_OK);
    const uint64_t seed = from_environment("HF_SEED", 0);
    const unsigned ms = (unsigned)from_environment("HF_HISTORY_MS", PLAY_MS);
    for (unsigned i = 0; i < (seed == 0 ? SEEDS : 1); i++) {
        play(seed == 0 ? (any >> 32) + i : seed, ms, short_lives);
        end(&one);
    }
}

static void i2_no_two_programs_or_believers_with_any_clock_of_redis(void **state)
{
    (void)state;
    play_seeds(false);
}

static void i2_nor_with_workers_that_live_briefly(void **state)
{
    (void)state;
    play_seeds(true);
}

static int down(void **state)
{
    (void)state;
    if (one.from_ns != 0) /* the test failed on its way */
        end(&one);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(i2_no_two_programs_or_believers_with_any_clock_of_redis,
                                  down),
        cmocka_unit_test_teardown(i2_nor_with_workers_that_live_briefly, down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
