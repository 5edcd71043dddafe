/* test_worker_reload.c - new options for a running worker: it applies a reload as a
 * whole, keeps the rest in order, and its log is true. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "queue_scripts.h"
#include "tests/support/eventually.h"
#include "tests/support/proxy.h"
#include "tests/support/queue_fixture.h"
#include "tests/support/worker_fixture.h"

enum {
    LONG_MS = 60000,
    SOON_MS = 3000,
    MANY = 100,
    SLOTS = 128,
    REFUSED = 10,
    JOBS = 1500,
    NAMES = 6
};

static const char *const slow[] = {"/bin/sh", "-c", "echo begun; sleep 0.4; echo old",
                                   NULL};
static const char *const fast[] = {"/bin/sh", "-c", "echo new", NULL};
static const hf_worker_opts patient = {HF_WORKER_OPTS_INIT, .lease_ms = LONG_MS,
                                       .minder = HF_TEST_COMMAND};

static hf_queue_fixture queue;
static hf_proxy proxy;
static hf_worker_fixture worker;

static int down(void **state)
{
    hf_worker_fixture_end(&worker);
    return hf_queue_fixture_down(state);
}

static void on_queue(const char *name)
{
    assert_int_equal(hf_queue_init(&queue.queue, "hf", name), HF_OK);
}

static void put_on(const char *name, const char *id, const char *payload, int64_t due_ms)
{
    on_queue(name);
    hf_queue_fixture_put(&queue, id, payload, due_ms);
}

/* One of a type of the test's, with its record written by hand. */
static void put_typed(const char *id, const char *type)
{
    char record[128];
    int len = snprintf(record, sizeof record,
                       "{\"v\":1,\"type\":\"%s\",\"created\":1}\nx", type);
    const hf_enqueue_item item = {.id = id, .record = {record, (size_t)len}};
    on_queue("q");
    assert_int_equal(hf_queue_fixture_enqueue_items(
                         &queue, &(hf_enqueue_args){.producer = ""}, &item, 1),
                     HF_OK);
}

static hf_err reload(hf_worker_opts opts, const hf_program *programs, size_t n)
{
    char detail[HF_DETAIL_SIZE] = "";
    hf_worker_fixture_fill(&worker, queue.redis.url, &opts);
    return hf_worker_reload(worker.worker, &opts, programs, n, NULL, 0, detail);
}

/* And waits until the loop has taken it. */
static void reload_now(hf_worker_opts opts, const hf_program *programs, size_t n)
{
    uint64_t before = hf_worker_reloads(worker.worker);
    assert_int_equal(reload(opts, programs, n), HF_OK);
    EVENTUALLY(15000, hf_worker_reloads(worker.worker) > before);
}

static void reload_queues(const hf_worker_queue *queues, size_t n)
{
    hf_worker_opts opts = patient;
    opts.queues = queues;
    opts.n_queues = n;
    reload_now(opts, NULL, 0);
}

static size_t said(const char *text)
{
    return hf_worker_fixture_said(&worker, text);
}

static bool blocked(int n)
{
    char line[32];
    (void)snprintf(line, sizeof line, "\nblocked_clients:%d\r", n);
    return strstr(hf_fixture_command(&queue.redis, "INFO clients"), line) != NULL;
}

static void start(const hf_program *programs, size_t n)
{
    hf_worker_fixture_start_programs(&worker, queue.redis.url, &patient, 0, programs, n);
    EVENTUALLY(15000, blocked(1));
}

/* ---- queues ---- */

static void a_new_queue_is_claimed_at_once_and_heard_of_later(void **state)
{
    static const hf_worker_queue both[] = {
        {HF_WORKER_QUEUE_INIT, .name = "q"},
        {HF_WORKER_QUEUE_INIT, .name = "new", .weight = 3}};
    (void)state;
    start(NULL, 0);
    put_on("new", "n1", "ok", 0);
    ALWAYS(50, atomic_load(&worker.started) == 0);
    reload_queues(both, 2);
    EVENTUALLY(SOON_MS, atomic_load(&worker.returned) == 1);
    put_on("new", "n2", "ok", 0);
    EVENTUALLY(SOON_MS, atomic_load(&worker.returned) == 2);
    put_on("q", "q1", "ok", 0);
    EVENTUALLY(SOON_MS, atomic_load(&worker.returned) == 3);
    assert_int_equal(said("changed key=queues name=new now=added"), 1);
    assert_int_equal(said("reloaded queues=2 handlers=1 changed=1 needs_restart=0"), 1);
    assert_int_equal(hf_fixture_number(&queue.redis, "SISMEMBER hf:{/}:queues new"), 1);
}

/* Others must know how long its leases last before it has one. */
static void a_new_queue_lists_the_lease_with_the_first_claim(void **state)
{
    static const hf_worker_queue both[] = {{HF_WORKER_QUEUE_INIT, .name = "q"},
                                           {HF_WORKER_QUEUE_INIT, .name = "new"}};
    (void)state;
    start(NULL, 0);
    put_on("new", "n1", "gate", 0);
    reload_queues(both, 2);
    EVENTUALLY(SOON_MS, atomic_load(&worker.started) == 1);
    assert_true(hf_fixture_number(&queue.redis, "ZSCORE hf:{new}:leases %d", LONG_MS) >
                0);
    atomic_store(&worker.gate, true);
    EVENTUALLY(SOON_MS, atomic_load(&worker.returned) == 1);
}

/* A dead worker may have left jobs there. The next check of the other queue comes later.
 */
static void the_clock_of_a_new_queue_is_read_at_once(void **state)
{
    static const hf_worker_queue both[] = {{HF_WORKER_QUEUE_INIT, .name = "q"},
                                           {HF_WORKER_QUEUE_INIT, .name = "new"}};
    (void)state;
    start(NULL, 0);
    put_on("new", "n1", "ok", 0);
    assert_int_equal(hf_queue_fixture_claim(&queue, "dead", 1, LONG_MS), 1);
    reload_queues(both, 2);
    EVENTUALLY(SOON_MS,
               hf_fixture_number(&queue.redis, "HEXISTS hf:{new}:meta clock") == 1);
    assert_int_equal(hf_queue_fixture_complete(&queue, "dead", "n1", NULL), HF_OK);
}

/* While its blocking call cannot be ended, another reload must not hide the first one's
 * queue. */
static void a_new_queue_is_heard_of_though_a_reload_follows(void **state)
{
    static const hf_worker_queue both[] = {{HF_WORKER_QUEUE_INIT, .name = "q"},
                                           {HF_WORKER_QUEUE_INIT, .name = "new"}};
    (void)state;
    start(NULL, 0);
    hf_fixture_command(&queue.redis, "ACL SETUSER default -client|unblock");
    reload_queues(both, 2);
    reload_queues(both, 2);
    hf_fixture_command(&queue.redis, "ACL SETUSER default +client|unblock");
    put_on("new", "n1", "ok", 0);
    EVENTUALLY(SOON_MS, atomic_load(&worker.returned) == 1);
    put_on("new", "n2", "ok", 0);
    EVENTUALLY(SOON_MS, atomic_load(&worker.returned) == 2);
}

/* Nobody else would come at its time. */
static void the_baton_of_a_removed_queue_is_given_back(void **state)
{
    static const hf_worker_queue only[] = {{HF_WORKER_QUEUE_INIT, .name = "other"}};
    (void)state;
    start(NULL, 0);
    put_on("q", "late", "ok", hf_queue_fixture_now(&queue) + LONG_MS);
    EVENTUALLY(3000, hf_fixture_number(&queue.redis, "ZCARD hf:{q}:wake") == 0);
    EVENTUALLY(15000, blocked(1));
    reload_queues(only, 1);
    EVENTUALLY(SOON_MS, hf_fixture_number(&queue.redis, "ZCARD hf:{q}:wake") == 1);
    assert_int_equal(said("changed key=queues name=q now=removed"), 1);
}

static void a_removed_queue_finishes_what_runs_and_starts_nothing(void **state)
{
    static const hf_worker_queue only[] = {{HF_WORKER_QUEUE_INIT, .name = "other"}},
                                 back[] = {{HF_WORKER_QUEUE_INIT, .name = "q"}};
    (void)state;
    start(NULL, 0);
    put_on("q", "runs", "gate", 0);
    EVENTUALLY(3000, atomic_load(&worker.started) == 1);
    reload_queues(only, 1);
    put_on("q", "waits", "ok", 0);
    put_on("other", "o", "ok", 0);
    on_queue("q"); /* whose counters are read */
    EVENTUALLY(SOON_MS, atomic_load(&worker.returned) == 1);
    ALWAYS(100, atomic_load(&worker.started) == 2);
    atomic_store(&worker.gate, true);
    EVENTUALLY(SOON_MS, said("job=runs queue=q type=t attempt=1") == 1);
    EVENTUALLY(SOON_MS, hf_queue_fixture_meta(&queue, "done") == 1);
    ALWAYS(100, atomic_load(&worker.started) == 2);
    reload_queues(back, 1);
    EVENTUALLY(SOON_MS, hf_queue_fixture_meta(&queue, "done") == 2);
}

/* Short jobs are claimed ahead, and lie with the pool until a slot is free. */
static void what_was_claimed_ahead_goes_back_with_its_queue(void **state)
{
    static const hf_worker_queue only[] = {{HF_WORKER_QUEUE_INIT, .name = "other"}};
    hf_worker_opts opts = patient;
    char id[16];
    (void)state;
    opts.concurrency = 1;
    hf_worker_fixture_start(&worker, queue.redis.url, &opts, 0);
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(id, sizeof id, "a%02d", i);
        put_on("q", id, "ok", 0);
    }
    EVENTUALLY(5000, atomic_load(&worker.returned) == MANY);
    hf_worker_quiet(worker.worker);
    EVENTUALLY(15000, said("quiet") == 1);
    put_on("q", "g", "gate", 0);
    for (int i = 0; i < 5; i++) {
        (void)snprintf(id, sizeof id, "z%02d", i);
        put_on("q", id, "ok", 0);
    }
    hf_worker_resume(worker.worker);
    EVENTUALLY(3000, atomic_load(&worker.started) == MANY + 1);
    opts.queues = only;
    opts.n_queues = 1;
    reload_now(opts, NULL, 0);
    atomic_store(&worker.gate, true);
    ALWAYS(200, atomic_load(&worker.started) == MANY + 1);
    EVENTUALLY(SOON_MS, hf_fixture_number(&queue.redis, "ZCARD hf:{q}:schedule") == 5);
}

/* It comes back while its job still runs: the same place, and no claim number twice. */
static void a_queue_may_leave_and_come_back_while_its_job_runs(void **state)
{
    static const hf_worker_queue only[] = {{HF_WORKER_QUEUE_INIT, .name = "other"}},
                                 back[] = {{HF_WORKER_QUEUE_INIT, .name = "q"}};
    (void)state;
    start(NULL, 0);
    put_on("q", "runs", "gate", 0);
    EVENTUALLY(3000, atomic_load(&worker.started) == 1);
    for (int i = 0; i < 20; i++) {
        reload_queues(only, 1);
        reload_queues(back, 1);
    }
    put_on("q", "next", "ok", 0);
    EVENTUALLY(SOON_MS, atomic_load(&worker.returned) == 1);
    atomic_store(&worker.gate, true);
    EVENTUALLY(SOON_MS, hf_queue_fixture_meta(&queue, "done") == 2);
    assert_int_equal(said("outcome=lost"), 0);
}

/* Many more than there are places, but each is free again when the next one needs it. */
static void places_are_used_again(void **state)
{
    char name[16];
    (void)state;
    start(NULL, 0);
    for (int i = 0; i < SLOTS + 20; i++) {
        const hf_worker_queue one[] = {{HF_WORKER_QUEUE_INIT, .name = name}};
        (void)snprintf(name, sizeof name, "q%d", i);
        reload_queues(one, 1);
        if (i % 16 == 0) {
            int before = atomic_load(&worker.returned);
            put_on(name, "j", "ok", 0);
            EVENTUALLY(SOON_MS, atomic_load(&worker.returned) == before + 1);
        }
    }
    assert_int_equal(said("refused"), 0);
}

static void name_queues(hf_worker_queue queues[HF_QUEUES_MAX],
                        char names[HF_QUEUES_MAX][16], const char *prefix)
{
    for (size_t i = 0; i < HF_QUEUES_MAX; i++) {
        (void)snprintf(names[i], sizeof names[i], "%s%zu", prefix, i);
        queues[i] = (hf_worker_queue){HF_WORKER_QUEUE_INIT, .name = names[i]};
    }
}

/* Two sets of 64 have a place; a third one only when jobs of the first have ended. */
static void a_reload_without_a_place_is_refused_whole(void **state)
{
    static char names[3][HF_QUEUES_MAX][16];
    static hf_worker_queue sets[3][HF_QUEUES_MAX];
    hf_worker_opts opts = patient;
    (void)state;
    for (int i = 0; i < 3; i++)
        name_queues(sets[i], names[i], (const char *[]){"a", "b", "c"}[i]);
    opts.queues = sets[0];
    opts.n_queues = HF_QUEUES_MAX;
    opts.concurrency = HF_QUEUES_MAX;
    hf_worker_fixture_start(&worker, queue.redis.url, &opts, 0);
    for (int i = 0; i < HF_QUEUES_MAX; i++)
        put_on(names[0][i], "j", "gate", 0);
    EVENTUALLY(15000, atomic_load(&worker.started) == HF_QUEUES_MAX);
    opts.queues = sets[1];
    reload_now(opts, NULL, 0);
    EVENTUALLY(15000, said("reloaded") == 1);
    opts.queues = sets[2];
    for (int i = 0; i < REFUSED; i++) { /* nothing but the jobs is left of the first */
        reload_now(opts, NULL, 0);
        hf_test_pause_ms(20);
    }
    assert_int_equal(said("the reload is refused, nothing was changed error=expected at "
                          "most 0 more queues"),
                     REFUSED);
    assert_int_equal(said("reloaded"), 1);
    atomic_store(&worker.gate, true);
    EVENTUALLY(3000, atomic_load(&worker.returned) == HF_QUEUES_MAX);
    put_on(names[1][63], "last", "ok", 0);
    EVENTUALLY(5000, atomic_load(&worker.returned) == HF_QUEUES_MAX + 1);
    for (int i = 0; said("reloaded") == 1 && i < 100; i++) {
        reload_now(opts, NULL, 0);
        hf_test_pause_ms(10);
    }
    assert_int_equal(said("reloaded"), 2);
    on_queue("q");
}

/* ---- limits ---- */

static void limits_of_the_file_reach_redis_when_they_change(void **state)
{
    const hf_worker_queue five[] = {
        {HF_WORKER_QUEUE_INIT, .name = "q", .has_limits = true, .max_running = 5}};
    const hf_worker_queue rated[] = {{HF_WORKER_QUEUE_INIT, .name = "q",
                                      .has_limits = true, .max_running = 5,
                                      .rate_limit = 7, .rate_per_ms = 2000}};
    (void)state;
    start(NULL, 0);
    reload_queues(five, 1);
    EVENTUALLY(SOON_MS, hf_queue_fixture_meta(&queue, "max_running") == 5);
    assert_int_equal(said("changed key=queues[].max_running name=q was=0 now=5"), 1);
    EVENTUALLY(SOON_MS,
               said("Redis knows the limits of the file queue=q max_running=5") == 1);
    hf_fixture_command(&queue.redis, "HSET hf:{q}:meta max_running 9");
    reload_queues(five, 1); /* an order stays until the file changes */
    assert_int_equal(said("reloaded queues=1 handlers=1 changed=0"), 1);
    reload_queues(rated, 1);
    EVENTUALLY(SOON_MS, hf_queue_fixture_meta(&queue, "rate_limit") == 7);
    assert_int_equal(said("changed key=queues[].rate name=q was=0 now=7/2s"), 1);
}

/* ---- handlers ---- */

static void
what_was_started_keeps_its_program_and_what_waits_has_the_new_one(void **state)
{
    const hf_program was = {HF_PROGRAM_INIT, .type = "p", .argv = slow};
    const hf_program is = {HF_PROGRAM_INIT, .type = "p", .argv = fast, .max_attempts = 2};
    hf_worker_opts opts = patient;
    (void)state;
    opts.concurrency = 1;
    hf_worker_fixture_start_programs(&worker, queue.redis.url, &opts, 0, &was, 1);
    put_typed("first", "p");
    EVENTUALLY(15000, said("line=begun") == 1);
    reload_now(opts, &is, 1);
    assert_int_equal(said("changed key=handlers name=p now=changed"), 1);
    put_typed("second", "p");
    EVENTUALLY(15000, said("job job=") == 2);
    assert_int_equal(said("output job=first stream=stdout line=old"), 1);
    assert_int_equal(said("output job=second stream=stdout line=new"), 1);
}

/* With it goes how often it may be tried. */
static void what_was_started_keeps_its_attempts(void **state)
{
    static const char *const fails[] = {"/bin/sh", "-c", "echo begun; sleep 0.3; exit 1",
                                        NULL};
    const hf_program once = {HF_PROGRAM_INIT, .type = "p", .argv = fails,
                             .max_attempts = 1};
    const hf_program often = {HF_PROGRAM_INIT, .type = "p", .argv = fails,
                              .max_attempts = 9};
    (void)state;
    start(&once, 1);
    put_typed("first", "p");
    EVENTUALLY(15000, said("line=begun") == 1);
    reload_now(patient, &often, 1);
    EVENTUALLY(15000, said("job=first") > 1 && said("outcome=") == 1);
    assert_int_equal(said("outcome=dead"), 1);
}

static void a_program_that_was_removed_is_run_no_more(void **state)
{
    const hf_program was = {HF_PROGRAM_INIT, .type = "p", .argv = slow};
    (void)state;
    start(&was, 1);
    put_typed("first", "p");
    EVENTUALLY(15000, said("line=begun") == 1);
    reload_now(patient, NULL, 0);
    put_typed("second", "p");
    EVENTUALLY(15000, said("job=second queue=q type=p attempt=1") >= 1);
    assert_int_equal(said("warn job job=second queue=q type=p attempt=1"), 1);
    EVENTUALLY(15000, said("output job=first stream=stdout line=old") == 1);
    EVENTUALLY(15000, said("job=first queue=q type=p attempt=1") == 1);
    put_on("q", "c", "ok", 0); /* the function is still there */
    EVENTUALLY(SOON_MS, atomic_load(&worker.returned) == 1);
}

static void programs_need_a_minder_from_the_start(void **state)
{
    const hf_program program = {HF_PROGRAM_INIT, .type = "p", .argv = fast};
    (void)state;
    start(NULL, 0);
    reload_now(patient, &program, 1);
    assert_int_equal(said("needs a restart key=handlers now=none file=programs"), 1);
    assert_int_equal(said("reloaded queues=1 handlers=1 changed=0 needs_restart=1"), 1);
}

static void reload_pools(const hf_pool *pools, size_t n)
{
    char detail[HF_DETAIL_SIZE] = "";
    hf_worker_opts opts = patient;
    uint64_t before = hf_worker_reloads(worker.worker);
    hf_worker_fixture_fill(&worker, queue.redis.url, &opts);
    assert_int_equal(hf_worker_reload(worker.worker, &opts, NULL, 0, pools, n, detail),
                     HF_OK);
    EVENTUALLY(15000, hf_worker_reloads(worker.worker) > before);
}

static void each_difference_of_pools_is_logged(void **state)
{
    static const char *const sleeps[] = {"/bin/sleep", "100", NULL};
    static const char *const longer[] = {"/bin/sleep", "200", NULL};
    const hf_program was = {HF_PROGRAM_INIT, .type = "p", .argv = fast};
    hf_pool pools[] = {{HF_POOL_INIT, .argv = sleeps, .processes = 1},
                       {HF_POOL_INIT, .argv = sleeps, .processes = 1},
                       {HF_POOL_INIT, .argv = longer, .processes = 1}};
    (void)state;
    start(&was, 1);
    reload_pools(pools, 2);
    assert_int_equal(said("changed key=pools name=sleep 100 now=added"), 2);
    assert_int_equal(said("reloaded queues=1 handlers=1 changed=3 needs_restart=0 "
                          "pools=2"),
                     1);
    pools[1].max_jobs = 7;
    reload_pools(pools, 3);
    assert_int_equal(said("changed key=pools name=sleep 100 now=changed"), 1);
    assert_int_equal(said("changed key=pools name=sleep 200 now=added"), 1);
    assert_int_equal(said("changed=2 needs_restart=0 pools=3"), 1);
    reload_pools(pools + 1, 1);
    assert_int_equal(said("changed key=pools name=sleep 100 now=removed"), 1);
    assert_int_equal(said("changed key=pools name=sleep 200 now=removed"), 1);
    assert_int_equal(said("changed key=pools name=sleep 100 now=changed"), 2);
    assert_int_equal(said("needs_restart=0 pools=1"), 1);
}

static void pools_need_a_minder_from_the_start(void **state)
{
    const hf_pool pool = {HF_POOL_INIT, .argv = fast};
    (void)state;
    start(NULL, 0);
    reload_pools(&pool, 1);
    assert_int_equal(said("needs a restart key=handlers now=none file=pools"), 1);
    assert_int_equal(said("changed=0 needs_restart=1 pools=0"), 1);
}

/* ---- all or none ---- */

static void what_is_not_acceptable_changes_nothing(void **state)
{
    static const hf_worker_queue twice[] = {{HF_WORKER_QUEUE_INIT, .name = "a"},
                                            {HF_WORKER_QUEUE_INIT, .name = "a"}};
    static const hf_worker_queue bad[] = {{HF_WORKER_QUEUE_INIT, .name = "a"},
                                          {HF_WORKER_QUEUE_INIT, .name = "b{"}};
    static const hf_worker_queue heavy[] = {
        {HF_WORKER_QUEUE_INIT, .name = "a", .weight = 1001}};
    static const hf_worker_queue timeless[] = {
        {HF_WORKER_QUEUE_INIT, .name = "a", .has_limits = true, .rate_limit = 5}};
    const hf_program taken = {HF_PROGRAM_INIT, .type = "t", .argv = fast},
                     empty = {HF_PROGRAM_INIT, .type = "x"};
    const hf_program both[] = {{HF_PROGRAM_INIT, .type = "x", .argv = fast},
                               {HF_PROGRAM_INIT, .type = "x", .argv = slow}};
    char detail[HF_DETAIL_SIZE];
    hf_worker_opts opts = patient;
    (void)state;
    start(NULL, 0);
    opts.queues = twice;
    opts.n_queues = 2;
    assert_int_equal(reload(opts, NULL, 0), HF_INVALID);
    opts.queues = bad;
    assert_int_equal(reload(opts, NULL, 0), HF_INVALID);
    opts.n_queues = 1;
    opts.queues = heavy;
    assert_int_equal(reload(opts, NULL, 0), HF_INVALID);
    opts.queues = timeless;
    assert_int_equal(reload(opts, NULL, 0), HF_INVALID);
    assert_int_equal(reload(patient, &taken, 1), HF_INVALID);
    assert_int_equal(reload(patient, &empty, 1), HF_INVALID);
    assert_int_equal(reload(patient, both, 2), HF_INVALID);
    opts = patient;
    opts.backoff_jitter = 2;
    hf_worker_fixture_fill(&worker, queue.redis.url, &opts);
    assert_int_equal(hf_worker_reload(worker.worker, &opts, NULL, 0, NULL, 0, detail),
                     HF_INVALID);
    assert_string_equal(detail, "expected a jitter of at most 1, found 2.000");
    opts.backoff_jitter = strtod("nan", NULL);
    assert_int_equal(reload(opts, NULL, 0), HF_INVALID);
    opts = patient;
    opts.backoff = HF_BACKOFF_CONSTANT + 1;
    assert_int_equal(reload(opts, NULL, 0), HF_INVALID);
    assert_int_equal(hf_worker_reloads(worker.worker), 0);
    put_on("q", "a", "ok", 0);
    EVENTUALLY(SOON_MS, atomic_load(&worker.returned) == 1);
    assert_int_equal(said("changed"), 0);
}

static void what_needs_a_restart_is_named_and_keeps_its_value(void **state)
{
    hf_worker_opts opts = patient;
    (void)state;
    start(NULL, 0);
    opts.lease_ms = 8000;
    opts.concurrency = 9;
    opts.server = HF_SERVER(.request_timeout_ms = 2000, .ns = "elsewhere");
    opts.kill_grace_ms = 2000;
    reload_now(opts, NULL, 0);
    assert_int_equal(said("needs a restart key=worker.lease now=1m file=8s"), 1);
    assert_int_equal(said("needs a restart key=worker.concurrency now=4 file=9"), 1);
    assert_int_equal(said("needs a restart key=redis.request_timeout now=1s file=2s"), 1);
    assert_int_equal(said("needs a restart key=worker.kill_grace now=1s file=2s"), 1);
    assert_int_equal(said("needs a restart key=namespace now=hf file=elsewhere"), 1);
    assert_int_equal(said("reloaded queues=1 handlers=1 changed=0 needs_restart=5"), 1);
    put_on("q", "a", "ok", 0);
    EVENTUALLY(SOON_MS, atomic_load(&worker.returned) == 1);
}

static void retries_follow_the_new_options(void **state)
{
    hf_worker_opts opts = patient;
    (void)state;
    start(NULL, 0);
    opts.max_attempts = 1;
    opts.shutdown_timeout_ms = 1000;
    opts.poison = 5;
    reload_now(opts, NULL, 0);
    assert_int_equal(said("changed key=retry.max_attempts was=20 now=1"), 1);
    assert_int_equal(said("changed key=worker.shutdown_timeout was=25s now=1s"), 1);
    assert_int_equal(said("changed key=poison was=3 now=5"), 1);
    put_on("q", "a", "fail", 0);
    EVENTUALLY(SOON_MS, said("outcome=dead") == 1);
}

static void a_retry_waits_as_the_new_options_say(void **state)
{
    hf_worker_opts opts = patient;
    (void)state;
    start(NULL, 0);
    opts.backoff = HF_BACKOFF_CONSTANT;
    opts.backoff_base_ms = opts.backoff_cap_ms = 600000;
    reload_now(opts, NULL, 0);
    put_on("q", "a", "fail", 0);
    EVENTUALLY(SOON_MS, said("outcome=retry") == 1);
    EVENTUALLY(SOON_MS, hf_fixture_number(&queue.redis, "ZCARD hf:{q}:schedule") == 1);
    long long due = hf_fixture_number(&queue.redis, "ZSCORE hf:{q}:schedule a");
    assert_true(due > hf_queue_fixture_now(&queue) + 300000);
}

/* ---- when ---- */

static void of_many_at_once_the_last_one_holds(void **state)
{
    hf_worker_opts opts = patient;
    (void)state;
    start(NULL, 0);
    for (uint32_t i = 1; i <= MANY; i++) {
        opts.max_attempts = i;
        assert_int_equal(reload(opts, NULL, 0), HF_OK);
    }
    EVENTUALLY(15000, hf_worker_reloads(worker.worker) == MANY);
    EVENTUALLY(15000, said("now=100") == 1);
    put_on("q", "a", "ok", 0);
    EVENTUALLY(SOON_MS, atomic_load(&worker.returned) == 1);
}

static void a_reload_while_stopping_is_ignored(void **state)
{
    hf_worker_opts opts = patient;
    (void)state;
    start(NULL, 0);
    put_on("q", "a", "deaf", 0);
    EVENTUALLY(3000, atomic_load(&worker.started) == 1);
    hf_worker_stop(worker.worker);
    EVENTUALLY(15000, atomic_load(&worker.asked_to_stop));
    opts.max_attempts = 1;
    reload_now(opts, NULL, 0);
    assert_int_equal(said("stopping: the reload is ignored"), 1);
    assert_int_equal(said("changed"), 0);
    atomic_store(&worker.gate, true);
}

static void *run_early(void *arg)
{
    assert_int_equal(hf_worker_run(arg, NULL), HF_OK);
    return NULL;
}

static hf_verdict count(hf_run *run, void *arg)
{
    atomic_fetch_add((atomic_int *)arg, strcmp(hf_run_queue(run), "new") == 0 ? 1 : 100);
    return HF_VERDICT_DONE;
}

/* It is taken when the worker begins. */
static void a_reload_may_come_before_the_worker_runs(void **state)
{
    static const hf_worker_queue q[] = {{HF_WORKER_QUEUE_INIT, .name = "q"}},
                                 only[] = {{HF_WORKER_QUEUE_INIT, .name = "new"}};
    static atomic_int runs;
    hf_worker_opts opts = {HF_WORKER_OPTS_INIT,
                           .server = HF_SERVER(.url = queue.redis.url), .queues = q,
                           .n_queues = 1};
    hf_worker *early;
    pthread_t thread;
    (void)state;
    put_on("q", "a", "ok", 0);
    put_on("new", "b", "ok", 0);
    assert_int_equal(hf_worker_new(&early, &opts, NULL), HF_OK);
    opts.queues = only;
    assert_int_equal(hf_worker_reload(early, &opts, NULL, 0, NULL, 0, NULL), HF_INVALID);
    assert_int_equal(hf_worker_handle(early, "t", 0, count, &runs, NULL), HF_OK);
    assert_int_equal(hf_worker_reload(early, &opts, NULL, 0, NULL, 0, NULL), HF_OK);
    assert_int_equal(pthread_create(&thread, NULL, run_early, early), 0);
    EVENTUALLY(15000, atomic_load(&runs) > 0);
    ALWAYS(100, atomic_load(&runs) == 1);
    hf_worker_stop(early);
    pthread_join(thread, NULL);
    hf_worker_free(early);
}

/* What Redis is to know of it, it learns when it is back. */
static void a_reload_may_come_while_redis_is_away(void **state)
{
    static const hf_worker_queue both[] = {
        {HF_WORKER_QUEUE_INIT, .name = "q", .has_limits = true, .max_running = 5},
        {HF_WORKER_QUEUE_INIT, .name = "new"}};
    (void)state;
    start(NULL, 0);
    hf_fixture_kill(&queue.redis, SIGKILL);
    EVENTUALLY(15000, said("Redis is away") > 0);
    reload_queues(both, 2);
    assert_int_equal(said("Redis knows the limits"), 0);
    hf_fixture_restart(&queue.redis);
    EVENTUALLY(15000, said("Redis knows the limits") == 1);
    assert_int_equal(hf_queue_fixture_meta(&queue, "max_running"), 5);
    (void)hf_queue_fixture_check(&queue, "probe",
                                 false); /* it learns that its connection is gone */
    hf_queue_fixture_ready(&queue);
    put_on("new", "a", "ok", 0);
    EVENTUALLY(5000, atomic_load(&worker.returned) == 1);
}

static void a_queue_that_goes_before_redis_knew_of_it_leaves_nothing(void **state)
{
    static const hf_worker_queue q[] = {{HF_WORKER_QUEUE_INIT, .name = "q"}},
                                 both[] = {{HF_WORKER_QUEUE_INIT, .name = "q"},
                                           {HF_WORKER_QUEUE_INIT, .name = "brief"}};
    (void)state;
    start(NULL, 0);
    hf_fixture_kill(&queue.redis, SIGKILL);
    EVENTUALLY(15000, said("Redis is away") > 0);
    reload_queues(both, 2);
    reload_queues(q, 1);
    hf_fixture_restart(&queue.redis);
    EVENTUALLY(15000, said("Redis is back") == 1);
    (void)hf_queue_fixture_check(&queue, "probe", false);
    hf_queue_fixture_ready(&queue);
    put_on("q", "a", "ok", 0);
    EVENTUALLY(5000, atomic_load(&worker.returned) == 1);
    EVENTUALLY(15000, blocked(1));
    assert_int_equal(hf_fixture_number(&queue.redis, "EXISTS hf:{brief}:workers"), 0);
    assert_int_equal(hf_fixture_number(&queue.redis, "SISMEMBER hf:{/}:queues brief"), 0);
}

/* A claim that was executed, and whose answer never came, has locked jobs of a queue that
 * is served no more: they go back all the same. */
static void an_unanswered_claim_of_a_removed_queue_is_undone(void **state)
{
    static const hf_worker_queue only[] = {{HF_WORKER_QUEUE_INIT, .name = "other"}};
    hf_worker_opts opts = patient;
    (void)state;
    hf_proxy_start(&proxy, queue.redis.socket);
    hf_worker_fixture_start(&worker, proxy.url, &patient, 0);
    EVENTUALLY(15000, blocked(1));
    hf_proxy_keep_answer(&proxy, hf_lua_queue_claim.sha1);
    put_on("q", "a", "ok", 0);
    EVENTUALLY(15000, hf_proxy_kept(&proxy) == 1);
    opts.queues = only;
    opts.n_queues = 1;
    hf_worker_fixture_fill(&worker, proxy.url, &opts);
    assert_int_equal(hf_worker_reload(worker.worker, &opts, NULL, 0, NULL, 0, NULL),
                     HF_OK);
    EVENTUALLY(15000, said("reloaded") == 1);
    EVENTUALLY(8000, hf_fixture_number(&queue.redis, "ZCARD hf:{q}:schedule") == 1);
    assert_int_equal(hf_fixture_number(&queue.redis, "ZCARD hf:{q}:running"), 0);
    EVENTUALLY(3000, hf_fixture_number(&queue.redis, "ZCARD hf:{q}:wake") == 1);
    assert_int_equal(atomic_load(&worker.started), 0);
    hf_proxy_let_go(&proxy);
    hf_worker_fixture_end(&worker);
    hf_proxy_stop(&proxy);
}

/* ---- all of it at random ---- */

static atomic_int runs_of[JOBS];

static hf_verdict count_job(hf_run *run, void *arg)
{
    (void)arg;
    atomic_fetch_add(&runs_of[strtol(hf_run_id(run) + 1, NULL, 10)], 1);
    if (hf_run_fence(run) % 3 == 0)
        hf_test_pause_ms(1);
    return HF_VERDICT_DONE;
}

static bool all_ran(void)
{
    for (int i = 0; i < JOBS; i++)
        if (atomic_load(&runs_of[i]) == 0)
            return false;
    return true;
}

static size_t choose(hf_rng *rng, hf_worker_queue out[NAMES], bool all)
{
    static char names[NAMES][8];
    size_t n = 0;
    for (int i = 0; i < NAMES; i++) {
        (void)snprintf(names[i], sizeof names[i], "r%d", i);
        if (all || hf_rng_unit(rng) < 0.4 || (i == NAMES - 1 && n == 0))
            out[n++] = (hf_worker_queue){HF_WORKER_QUEUE_INIT, .name = names[i],
                                         .weight = 1 + (uint32_t)(hf_rng_unit(rng) * 9)};
    }
    return n;
}

/* Whatever comes and goes meanwhile: each job runs once, and none is left. */
static void queues_that_come_and_go_at_random_lose_nothing(void **state)
{
    hf_worker_queue queues[NAMES];
    hf_rng rng = {.state = hf_test_now_ms()};
    hf_worker *busy;
    pthread_t thread;
    char name[8], id[16];
    (void)state;
    print_message("seed %llu\n", (unsigned long long)rng.state);
    hf_worker_opts opts = {HF_WORKER_OPTS_INIT,
                           .server = HF_SERVER(.url = queue.redis.url), .queues = queues,
                           .lease_ms = 5000};
    opts.n_queues = choose(&rng, queues, true);
    assert_int_equal(hf_worker_new(&busy, &opts, NULL), HF_OK);
    assert_int_equal(hf_worker_handle(busy, "t", 0, count_job, NULL, NULL), HF_OK);
    assert_int_equal(pthread_create(&thread, NULL, run_early, busy), 0);
    for (int i = 0; i < JOBS; i++) {
        (void)snprintf(name, sizeof name, "r%d", (int)(hf_rng_unit(&rng) * NAMES));
        (void)snprintf(id, sizeof id, "j%d", i);
        put_on(name, id, "",
               hf_rng_unit(&rng) < 0.1 ? hf_queue_fixture_now(&queue) + 50 : 0);
        if (hf_rng_unit(&rng) < 0.15) {
            opts.n_queues = choose(&rng, queues, i == JOBS - 1);
            opts.strict = hf_rng_unit(&rng) < 0.5;
            assert_int_equal(hf_worker_reload(busy, &opts, NULL, 0, NULL, 0, NULL),
                             HF_OK);
        }
    }
    opts.n_queues = choose(&rng, queues, true);
    assert_int_equal(hf_worker_reload(busy, &opts, NULL, 0, NULL, 0, NULL), HF_OK);
    EVENTUALLY(SOON_MS + 2000, all_ran()); /* before anybody's check, 5 s later */
    hf_worker_stop(busy);
    pthread_join(thread, NULL);
    hf_worker_free(busy);
    for (int i = 0; i < JOBS; i++)
        assert_int_equal(atomic_load(&runs_of[i]), 1);
    for (int i = 0; i < NAMES; i++) {
        (void)snprintf(name, sizeof name, "r%d", i);
        on_queue(name);
        hf_queue_fixture_audit(&queue, true);
    }
}

static void a_quiet_worker_stays_quiet(void **state)
{
    static const hf_worker_queue both[] = {{HF_WORKER_QUEUE_INIT, .name = "q"},
                                           {HF_WORKER_QUEUE_INIT, .name = "new"}};
    (void)state;
    start(NULL, 0);
    hf_worker_quiet(worker.worker);
    EVENTUALLY(15000, said("quiet") == 1);
    put_on("new", "n", "ok", 0);
    reload_queues(both, 2);
    ALWAYS(150, atomic_load(&worker.started) == 0);
    hf_worker_resume(worker.worker);
    EVENTUALLY(SOON_MS, atomic_load(&worker.returned) == 1);
}

/* Both calls while the loop was held up: the last one counts. */
static void what_was_said_last_holds(void **state)
{
    (void)state;
    start(NULL, 0);
    atomic_store(&worker.hold_loop, true);
    put_on("q", "a", "ok", 0);
    EVENTUALLY(SOON_MS, atomic_load(&worker.loop_held));
    hf_worker_resume(worker.worker);
    hf_worker_quiet(worker.worker);
    atomic_store(&worker.hold_loop, false);
    EVENTUALLY(SOON_MS, said("quiet: nothing more is claimed") == 1);
    put_on("q", "b", "ok", 0);
    ALWAYS(150, atomic_load(&worker.started) == 1);
    hf_worker_resume(worker.worker);
    EVENTUALLY(SOON_MS, atomic_load(&worker.returned) == 2);
}

int main(void)
{
#define CASE(name)                                                                       \
    cmocka_unit_test_prestate_setup_teardown(name, hf_queue_fixture_up, down, &queue)
    const struct CMUnitTest tests[] = {
        CASE(a_new_queue_is_claimed_at_once_and_heard_of_later),
        CASE(a_new_queue_lists_the_lease_with_the_first_claim),
        CASE(the_clock_of_a_new_queue_is_read_at_once),
        CASE(a_new_queue_is_heard_of_though_a_reload_follows),
        CASE(the_baton_of_a_removed_queue_is_given_back),
        CASE(a_removed_queue_finishes_what_runs_and_starts_nothing),
        CASE(what_was_claimed_ahead_goes_back_with_its_queue),
        CASE(a_queue_may_leave_and_come_back_while_its_job_runs),
        CASE(places_are_used_again),
        CASE(a_reload_without_a_place_is_refused_whole),
        CASE(limits_of_the_file_reach_redis_when_they_change),
        CASE(what_was_started_keeps_its_program_and_what_waits_has_the_new_one),
        CASE(what_was_started_keeps_its_attempts),
        CASE(a_program_that_was_removed_is_run_no_more),
        CASE(programs_need_a_minder_from_the_start),
        CASE(each_difference_of_pools_is_logged),
        CASE(pools_need_a_minder_from_the_start),
        CASE(what_is_not_acceptable_changes_nothing),
        CASE(what_needs_a_restart_is_named_and_keeps_its_value),
        CASE(retries_follow_the_new_options),
        CASE(a_retry_waits_as_the_new_options_say),
        CASE(of_many_at_once_the_last_one_holds),
        CASE(a_reload_while_stopping_is_ignored),
        CASE(a_reload_may_come_before_the_worker_runs),
        CASE(a_reload_may_come_while_redis_is_away),
        CASE(a_queue_that_goes_before_redis_knew_of_it_leaves_nothing),
        CASE(an_unanswered_claim_of_a_removed_queue_is_undone),
        CASE(queues_that_come_and_go_at_random_lose_nothing),
        CASE(a_quiet_worker_stays_quiet),
        CASE(what_was_said_last_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
