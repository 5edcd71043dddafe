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
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "holdfast/producer.h"
#include "tests/history/clock_harm.h"
#include "tests/history/line.h"
#include "tests/history/staff.h"
#include "tests/support/eventually.h"
#include "tests/support/proxy.h"
#include "tests/support/skip.h"

enum {
    SEEDS = 2,
    PLAY_MS = 8000,
    BETWEEN_MS = 120,
    STOP_MS = 3 * HF_STAFF_LEASE_MS,  /* at most */
    QUIET_MS = 3 * HF_STAFF_LEASE_MS, /* at most */
    GENERATION_MS = 5000,             /* then there are other ids */
    IDS = 4,
    ENQUEUE_MS = 30000,
    LAST_MS = 120000, /* on a busy machine leases end again and again */
    DEEDS = 7
};

typedef struct nemesis {
    hf_fixture redis;
    hf_proxy proxy;
    hf_staff staff;
    hf_producer *producer;
    hf_rng rng;
    int fd;                               /* what was done when */
    uint64_t from_ns, go_on_ns[HF_STAFF]; /* 0: it is not stopped */
    uint64_t ends_ns[HF_STAFF];           /* 0: it lives until somebody ends it */
    bool asked[HF_STAFF];                 /* by TERM */
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
    (void)snprintf(id, size, "%c%u-%u", hf_staff_queues[q][0],
                   (unsigned)(ms / GENERATION_MS), below(n, IDS));
    return id;
}

/* About half of them are longer than a lease. */
static unsigned any_ms(nemesis *n)
{
    static const unsigned longest[] = {150, 900, 4 * HF_STAFF_LEASE_MS,
                                       4 * HF_STAFF_LEASE_MS};
    return 20 + below(n, longest[below(n, HF_COUNT(longest))]);
}

/* An id that is known is no error. */
static void enqueue(nemesis *n, unsigned q, const char *id, unsigned ms)
{
    char payload[32], detail[HF_DETAIL_SIZE] = "";
    int len = snprintf(payload, sizeof payload, q == 0 ? "sleep=%u" : "believe %u", ms);
    const hf_job job = {HF_JOB_INIT,        .queue = hf_staff_queues[q],
                        .type = "t",        .id = id,
                        .payload = payload, .payload_len = (size_t)len};
    if (hf_enqueue_wait(n->producer, &job, 1, NULL, ENQUEUE_MS, detail) != HF_OK)
        fail_msg("%s was not taken: %s", id, detail);
}

static void put_job(nemesis *n)
{
    char id[32];
    unsigned q = below(n, HF_STAFF_QUEUES);
    enqueue(n, q, any_id(n, q, id, sizeof id), any_ms(n));
}

/* So many that all workers are full. */
static void fill(nemesis *n)
{
    char id[32];
    unsigned q = below(n, HF_STAFF_QUEUES);
    for (unsigned i = 0; i < HF_STAFF_SLOTS * HF_STAFF / HF_STAFF_QUEUES; i++) {
        (void)snprintf(id, sizeof id, "%c-full%u-%u", hf_staff_queues[q][0], n->done[1],
                       i);
        enqueue(n, q, id, HF_STAFF_LEASE_MS / 2 + any_ms(n));
    }
    n->fills++;
}

/* Refused or not: what matters is that the same id comes again. */
static void take_away(nemesis *n, const char *verb, const char *flag)
{
    char id[32];
    unsigned q = below(n, HF_STAFF_QUEUES);
    const char *const words[] = {
        "job", verb, any_id(n, q, id, sizeof id), "-q", hf_staff_queues[q], flag, NULL};
    (void)hf_staff_command(&n->staff, hf_fixture_url(&n->redis), words);
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
    return i < HF_STAFF / 2 ? n->proxy.url : hf_fixture_url(&n->redis);
}

static void replace(nemesis *n, unsigned i)
{
    char words[32];
    hf_proc_kill(&n->staff.workers[i]);
    n->go_on_ns[i] = 0;
    hf_staff_start(&n->staff, i, url_of(n, i));
    (void)snprintf(words, sizeof words, "worker %u", i);
    note(n, "kill", words);
}

static void kill_worker(nemesis *n)
{
    replace(n, below(n, HF_STAFF));
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
    for (unsigned i = 0; i < HF_STAFF; i++) {
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
    unsigned i = below(n, HF_STAFF), ms = 1 + below(n, STOP_MS);
    if (n->go_on_ns[i] != 0)
        return;
    hf_proc_signal(&n->staff.workers[i], SIGSTOP);
    n->go_on_ns[i] = hf_boot_ns() + ms * HF_MS_NS;
    (void)snprintf(words, sizeof words, "worker %u for %u ms", i, ms);
    note(n, "stop", words);
}

static void let_go(nemesis *n, uint64_t now_ns)
{
    for (unsigned i = 0; i < HF_STAFF; i++)
        if (n->go_on_ns[i] != 0 && n->go_on_ns[i] <= now_ns) {
            hf_proc_signal(&n->staff.workers[i], SIGCONT);
            n->go_on_ns[i] = 0;
        }
}

/* ---- the way to Redis, and its clock ---- */

static void cut(nemesis *n)
{
    unsigned ms = 1 + below(n, HF_STAFF_LEASE_MS / 2);
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
    for (unsigned i = 0; i < HF_STAFF; i++)
        if (n->asked[i])
            replace(n, i); /* the others live on */
    hf_fixture_clock_slew(&n->redis, 0);
    for (unsigned q = 0; q < HF_STAFF_QUEUES; q++)
        enqueue(n, q, q == 0 ? "last-program" : "last-handler", 20);
    uint64_t from_ns = hf_boot_ns();
    EVENTUALLY(LAST_MS, hf_staff_ran(&n->staff, "last-program"));
    EVENTUALLY(LAST_MS, hf_staff_ran(&n->staff, "last-handler"));
    print_message("the last jobs were done after %" PRIu64 " ms\n",
                  (hf_boot_ns() - from_ns) / HF_MS_NS);
}

/* ---- the test ---- */

static void begin(nemesis *n, uint64_t seed, bool short_lives)
{
    char path[HF_STAFF_PATH];
    *n = (nemesis){.rng = {seed}};
    hf_fixture_start(&n->redis, &(hf_fixture_options){.clock = true});
    hf_proxy_start(&n->proxy, n->redis.socket);
    hf_staff_begin(&n->staff);
    (void)snprintf(path, sizeof path, "%s/deeds", n->staff.dir);
    n->fd = hf_lines_open(path);
    const hf_producer_opts opts = {HF_PRODUCER_OPTS_INIT,
                                   .server = HF_SERVER(.url = hf_fixture_url(&n->redis))};
    assert_int_equal(hf_producer_open(&n->producer, &opts, NULL), HF_OK);
    n->from_ns = hf_boot_ns();
    for (unsigned i = 0; i < HF_STAFF; i++)
        hf_staff_start(&n->staff, i, url_of(n, i));
    for (unsigned i = 0; i < HF_STAFF && short_lives; i++)
        begin_life(n, i);
}

static void end(nemesis *n)
{
    (void)close(n->fd);
    hf_producer_close(n->producer, NULL, NULL);
    hf_staff_end(&n->staff);
    hf_proxy_stop(&n->proxy);
    hf_fixture_stop(&n->redis);
    n->from_ns = 0;
}

static void print(const nemesis *n, const hf_staff_report *r)
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

static void no_overlaps(const hf_staff_report *r)
{
    if (r->overlaps > 0)
        print_message("overlaps of up to %" PRIu64 " ms, the first: %s\n",
                      r->longest_ns / HF_MS_NS, r->first);
    assert_int_equal(r->overlaps, 0);
}

static nemesis one; /* too large for a stack */

static void play(uint64_t seed, unsigned ms, bool short_lives)
{
    hf_staff_report report;
    print_message("HF_SEED=%" PRIu64 "\n", seed);
    begin(&one, seed, short_lives);
    do_harm(&one, ms);
    hf_staff_judge(&one.staff, &report);
    print(&one, &report);
    no_overlaps(&report);
    finish(&one);
    hf_staff_judge(&one.staff, &report);
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
