/* test_worker_apart.c - what befalls one queue, or one job, holds up no other: a queue
 * that Redis refuses, one at its limit, an isolated job that cannot run alone, a program
 * among C handlers.
 *
 * The leases are long, so nothing here is found by a check seconds later. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "tests/support/eventually.h"
#include "tests/support/queue_fixture.h"
#include "tests/support/tempdir.h"
#include "tests/support/worker_fixture.h"

enum { LONG_MS = 60000, SOON_MS = 3000, QUICK_MS = 1500, PROGRAM_MS = 10000 };
enum { SEVERAL = 30, ROUNDS = 5 };

static const hf_worker_queue both[] = {{HF_WORKER_QUEUE_INIT, .name = "q"},
                                       {HF_WORKER_QUEUE_INIT, .name = "other"}};

static hf_queue_fixture queue;
static hf_worker_fixture worker;

static int down(void **state)
{
    hf_worker_fixture_end(&worker);
    return hf_queue_fixture_down(state);
}

#define ask(command) hf_fixture_number(&queue.redis, command)

static bool waiting(void)
{
    return strstr(hf_fixture_command(&queue.redis, "INFO clients"),
                  "\nblocked_clients:1\r") != NULL;
}

static void put_into(const char *name, const char *id, const char *payload)
{
    const hf_queue q = queue.queue;
    assert_int_equal(hf_queue_init(&queue.queue, q.ns, name), HF_OK);
    hf_queue_fixture_put(&queue, id, payload, 0);
    queue.queue = q;
}

static void stop(void)
{
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

/* One after the other; each alone would take no time. A pause of the machine may come
 * into one round, but not into each. */
static void several_run_soon(const char *name)
{
    uint64_t best_ms = UINT64_MAX;
    char id[16];
    for (int round = 0; round < ROUNDS && best_ms >= QUICK_MS; round++) {
        uint64_t began = hf_test_fair_ms();
        for (int i = 0; i < SEVERAL; i++) {
            int before = atomic_load(&worker.started);
            (void)snprintf(id, sizeof id, "r%dj%d", round, i);
            put_into(name, id, "ok");
            EVENTUALLY(SOON_MS, atomic_load(&worker.started) == before + 1);
        }
        uint64_t took_ms = hf_test_fair_ms() - began;
        best_ms = took_ms < best_ms ? took_ms : best_ms;
    }
    assert_true(best_ms < QUICK_MS);
}

/* ---- queues ---- */

static void a_queue_that_is_refused_holds_up_no_other(void **state)
{
    (void)state;
    const hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .queues = both, .n_queues = 2,
                                 .lease_ms = LONG_MS};
    hf_fixture_command(&queue.redis, "SET hf:{other}:wake text");
    hf_worker_fixture_start(&worker, queue.redis.url, &opts, 0);
    EVENTUALLY(15000, waiting());
    several_run_soon("q");
    int ran = atomic_load(&worker.started);
    assert_int_equal(hf_worker_fixture_said(&worker,
                                            "Redis refuses the requests of a queue "
                                            "queue=other"),
                     1);
    hf_fixture_command(&queue.redis, "DEL hf:{other}:wake");
    put_into("other", "a", "ok");
    EVENTUALLY(3000, atomic_load(&worker.started) == ran + 1);
    put_into("other", "b", "ok"); /* it is waited for again */
    EVENTUALLY(SOON_MS, atomic_load(&worker.started) == ran + 2);
    stop();
}

static void a_verdict_that_is_refused_holds_up_no_other_queue(void **state)
{
    (void)state;
    const hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .queues = both, .n_queues = 2,
                                 .lease_ms = LONG_MS, .concurrency = 2};
    hf_worker_fixture_start(&worker, queue.redis.url, &opts, 0);
    put_into("other", "a", "gate");
    EVENTUALLY(15000, atomic_load(&worker.started) == 1);
    hf_fixture_command(&queue.redis, "RENAME hf:{other}:meta aside");
    hf_fixture_command(&queue.redis, "SET hf:{other}:meta text");
    atomic_store(&worker.gate, true);
    EVENTUALLY(15000,
               hf_worker_fixture_said(&worker, "Redis refuses the requests of") == 1);
    several_run_soon("q");
    hf_fixture_command(&queue.redis, "RENAME aside hf:{other}:meta");
    EVENTUALLY(15000, ask("HLEN hf:{other}:jobs") == 0);
    stop();
}

static void limited(bool strict, const char *limit, const char *uses, int start_at_first)
{
    const hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .queues = both, .n_queues = 2,
                                 .lease_ms = LONG_MS, .strict = strict};
    hf_fixture_command(&queue.redis, "HSET hf:{q}:meta %s 1 rate_per 60000 uses %s",
                       limit, uses);
    for (int i = 0; i < 5; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "held%d", i);
        put_into("q", id, "gate");
    }
    hf_worker_fixture_start(&worker, queue.redis.url, &opts, 0);
    EVENTUALLY(15000, waiting() && atomic_load(&worker.started) == start_at_first);
    several_run_soon("other");
    atomic_store(&worker.gate, true);
    stop();
}

static void a_queue_at_its_limit_holds_up_no_other(void **state)
{
    (void)state;
    static const char *const limits[] = {"paused", "max_running", "rate_limit"};
    static const char *const uses[] = {"p", "n", "r"};
    for (size_t i = 0; i < 2 * HF_COUNT(limits); i++) {
        limited(i % 2 == 0, limits[i / 2], uses[i / 2], i / 2 == 0 ? 0 : 1);
        hf_fixture_command(&queue.redis, "FLUSHALL");
    }
}

/* It does not wait for batons then, so it looks. In order and by weight. */
static void a_busy_worker_sees_what_comes_to_a_queue_that_was_empty(void **state)
{
    (void)state;
    enum { BACKLOG = 600 };
    char id[16];
    for (int strict = 0; strict < 2; strict++) {
        const hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .queues = both,
                                     .n_queues = 2,       .lease_ms = LONG_MS,
                                     .concurrency = 1,    .strict = strict == 1};
        for (int i = 0; i < BACKLOG; i++) {
            (void)snprintf(id, sizeof id, "j%d", i);
            put_into("other", id, "short");
        }
        hf_worker_fixture_start(&worker, queue.redis.url, &opts, 0);
        EVENTUALLY(15000, atomic_load(&worker.started) > 50);
        hf_queue_fixture_put(&queue, "a", "ok", 0);
        EVENTUALLY(15000, ask("HGET hf:{q}:meta done") == strict + 1);
        assert_true(ask("HLEN hf:{other}:jobs") > BACKLOG / 4);
        EVENTUALLY(15000, ask("HLEN hf:{other}:jobs") == 0);
        stop();
    }
}

/* As many as there are slots came: it has more, and a slot that becomes free is used at
 * once, without a wait for the baton. */
static void a_limited_queue_is_served_like_any_other(void **state)
{
    (void)state;
    enum { JOBS = 400 };
    const hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .lease_ms = LONG_MS,
                                 .concurrency = 1};
    char id[16];
    hf_fixture_command(&queue.redis, "HSET hf:{q}:meta max_running 1000 uses n");
    for (int i = 0; i < JOBS; i++) {
        (void)snprintf(id, sizeof id, "j%d", i);
        hf_queue_fixture_put(&queue, id, "ok", 0);
    }
    hf_worker_fixture_start(&worker, queue.redis.url, &opts, 0);
    EVENTUALLY(15000, ask("HGET hf:{q}:meta done") == JOBS && waiting());
    assert_in_range(hf_fixture_calls(&queue.redis, "bzpopmin"), 0, JOBS / 10);
    stop();
}

/* ---- Redis ---- */

static void a_worker_that_may_not_wait_says_so_once_and_works(void **state)
{
    (void)state;
    const hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .lease_ms = LONG_MS};
    hf_fixture_command(&queue.redis, "ACL SETUSER default -bzpopmin");
    hf_worker_fixture_start(&worker, queue.redis.url, &opts, 0);
    for (int i = 0; i < 3; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "j%d", i);
        hf_queue_fixture_put(&queue, id, "ok", 0);
        EVENTUALLY(3000, atomic_load(&worker.started) == i + 1);
    }
    assert_int_equal(hf_worker_fixture_said(&worker, "does not let this worker wait"), 1);
    hf_fixture_command(&queue.redis, "ACL SETUSER default +bzpopmin");
    EVENTUALLY(15000, waiting());
    stop();
}

static void a_queue_is_registered_when_there_is_room_again(void **state)
{
    (void)state;
    hf_fixture_command(&queue.redis, "CONFIG SET maxmemory 1");
    hf_worker_fixture_start(&worker, queue.redis.url, &hf_brief_lease, 0);
    EVENTUALLY(15000, waiting());
    assert_int_equal(ask("SISMEMBER hf:{/}:queues q"), 0);
    hf_fixture_command(&queue.redis, "CONFIG SET maxmemory 0");
    EVENTUALLY(15000, ask("SISMEMBER hf:{/}:queues q") == 1);
    stop();
}

/* ---- an isolated job ---- */

static void put_isolated(int64_t refused_ms)
{
    char record[160];
    int len = snprintf(record, sizeof record,
                       "{\"v\":1,\"type\":\"t\",\"created\":1,\"refused\":%lld}\nok",
                       (long long)refused_ms);
    const hf_enqueue_item item = {.id = "s", .record = {record, (size_t)len}};
    hf_fixture_command(&queue.redis, "HSET hf:{q}:crashes s 2");
    (void)hf_fixture_command(&queue.redis, "HSET hf:{q}:meta uses m");
    assert_int_equal(hf_queue_fixture_enqueue_items(
                         &queue, &(hf_enqueue_args){.producer = ""}, &item, 1),
                     HF_OK);
}

static void an_isolated_job_that_cannot_run_alone_is_put_back_for_a_while(void **state)
{
    (void)state;
    const hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .lease_ms = LONG_MS,
                                 .concurrency = 3};
    hf_worker_fixture_start(&worker, queue.redis.url, &opts, 0);
    hf_queue_fixture_put(&queue, "long", "gate", 0);
    EVENTUALLY(15000, atomic_load(&worker.started) == 1);
    int64_t began = hf_queue_fixture_now(&queue);
    put_isolated(0);
    EVENTUALLY(15000, hf_worker_fixture_said(&worker, "outcome=put_back") == 1);
    EVENTUALLY(SOON_MS, ask("ZSCORE hf:{q}:schedule s") >= began + 1000);
    assert_non_null(
        strstr(hf_fixture_command(&queue.redis, "HGET hf:{q}:jobs s"), "run alone"));
    hf_queue_fixture_put(&queue, "short", "ok", 0);
    EVENTUALLY(SOON_MS, atomic_load(&worker.returned) == 1);
    atomic_store(&worker.gate, true);
    EVENTUALLY(15000, ask("HGET hf:{q}:meta done") == 3);
    assert_in_range(hf_worker_fixture_said(&worker, "outcome=put_back"), 1, 2);
    assert_int_equal(ask("EXISTS hf:{q}:crashes"), 0);
    stop();
    hf_queue_fixture_audit(&queue, true);
}

/* The longer it has been put back, the longer it may make others wait. */
static void an_isolated_job_runs_even_beside_long_jobs(void **state)
{
    (void)state;
    const hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .lease_ms = LONG_MS,
                                 .concurrency = 3};
    hf_worker_fixture_start(&worker, queue.redis.url, &opts, 0);
    hf_queue_fixture_put(&queue, "long", "gate", 0);
    EVENTUALLY(15000, atomic_load(&worker.started) == 1);
    put_isolated(hf_queue_fixture_now(&queue) - 80000);
    EVENTUALLY(15000, ask("ZCARD hf:{q}:running") == 2);
    ALWAYS(500, hf_worker_fixture_said(&worker, "outcome=put_back") == 0);
    atomic_store(&worker.gate, true);
    EVENTUALLY(SOON_MS, ask("HGET hf:{q}:meta done") == 2);
    stop();
    hf_queue_fixture_audit(&queue, true);
}

/* ---- programs and C handlers ---- */

typedef struct mixed {
    hf_worker *worker;
    pthread_t thread;
    char dir[HF_TEMPDIR_SIZE], script[2 * HF_TEMPDIR_SIZE + 128];
    const char *argv[4];
    atomic_int inside, most;
    atomic_bool overtaken; /* a job behind the program ran before it */
} mixed;

static bool exists(const mixed *m, const char *name)
{
    char path[HF_TEMPDIR_SIZE + 16];
    (void)snprintf(path, sizeof path, "%s/%s", m->dir, name);
    return access(path, F_OK) == 0;
}

/* A job behind the program, named b and a number, waits in its slot until the program
 * runs: it was started before, and its shell may only be slow. */
static void wait_for_program(mixed *m, const char *id)
{
    const uint64_t until_ms = hf_test_fair_ms() + PROGRAM_MS;
    while (id[0] == 'b' && !atomic_load(&m->overtaken) && !exists(m, "runs"))
        if (hf_test_fair_ms() >= until_ms)
            atomic_store(&m->overtaken, true);
        else
            hf_test_pause_ms(1);
}

static hf_verdict short_one(hf_run *run, void *arg)
{
    mixed *m = arg;
    wait_for_program(m, hf_run_id(run));
    int now = atomic_fetch_add(&m->inside, 1) + 1;
    int most = atomic_load(&m->most);
    while (now > most && !atomic_compare_exchange_weak(&m->most, &most, now))
        ;
    (void)nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    atomic_fetch_sub(&m->inside, 1);
    return HF_VERDICT_DONE;
}

static void *run_mixed(void *arg)
{
    mixed *m = arg;
    assert_int_equal(hf_worker_run(m->worker, NULL), HF_OK);
    return NULL;
}

/* Its program makes the file `runs` and waits for the file `go`, a minute at most. */
static void start_mixed(mixed *m)
{
    const hf_worker_opts opts = {
        HF_WORKER_OPTS_INIT,      .server = HF_SERVER(.url = queue.redis.url),
        .queues = both,           .n_queues = 1,
        .concurrency = 2,         .lease_ms = LONG_MS,
        .minder = HF_TEST_COMMAND};
    hf_tempdir_make(m->dir);
    (void)snprintf(m->script, sizeof m->script,
                   "touch %s/runs; for i in $(seq 6000); do [ -e %s/go ] && exit 0; "
                   "sleep 0.01; done",
                   m->dir, m->dir);
    m->argv[0] = "/bin/sh";
    m->argv[1] = "-c";
    m->argv[2] = m->script;
    const hf_program program = {HF_PROGRAM_INIT, .type = "program", .argv = m->argv};
    assert_int_equal(hf_worker_new(&m->worker, &opts, NULL), HF_OK);
    assert_int_equal(hf_worker_handle(m->worker, "t", 0, short_one, m, NULL), HF_OK);
    assert_int_equal(hf_worker_handle_program(m->worker, &program, NULL), HF_OK);
    assert_int_equal(pthread_create(&m->thread, NULL, run_mixed, m), 0);
}

static void put_many(const char *prefix, int n)
{
    char id[16];
    for (int i = 0; i < n; i++) {
        (void)snprintf(id, sizeof id, "%s%d", prefix, i);
        hf_queue_fixture_put(&queue, id, "ok", 0);
    }
}

/* Of two slots it takes one. Behind it there are always more short jobs than slots, and
 * those that were claimed ahead wait in the pool's queue. */
static void a_program_has_its_turn_and_its_slot_among_c_handlers(void **state)
{
    (void)state;
    enum { BEFORE = 300, BEHIND = 1000 };
    static const char record[] = "{\"v\":1,\"type\":\"program\",\"created\":1}\n";
    /* Of one ms the ids say the order. */
    const hf_enqueue_item item = {.id = "ap", .record = {record, sizeof record - 1}};
    const hf_enqueue_args args = {.producer = ""};
    static mixed m;
    char path[HF_TEMPDIR_SIZE + 16];
    put_many("a", BEFORE);
    assert_int_equal(hf_queue_fixture_enqueue_items(&queue, &args, &item, 1), HF_OK);
    put_many("b", BEHIND);
    start_mixed(&m);
    EVENTUALLY(LONG_MS, exists(&m, "runs") || atomic_load(&m.overtaken));
    assert_false(atomic_load(&m.overtaken));
    atomic_store(&m.most, 0);
    EVENTUALLY(LONG_MS, ask("HGET hf:{q}:meta done") == BEFORE + BEHIND);
    assert_int_equal(atomic_load(&m.most), 1);
    (void)snprintf(path, sizeof path, "%s/go", m.dir);
    FILE *go = fopen(path, "w");
    assert_non_null(go);
    (void)fclose(go);
    EVENTUALLY(15000, ask("HGET hf:{q}:meta done") == BEFORE + BEHIND + 1);
    put_many("c", BEFORE); /* both slots are the handlers' again */
    EVENTUALLY(15000, ask("HGET hf:{q}:meta done") == 2 * BEFORE + BEHIND + 1);
    assert_int_equal(atomic_load(&m.most), 2);
    hf_worker_stop(m.worker);
    (void)pthread_join(m.thread, NULL);
    hf_worker_free(m.worker);
    hf_tempdir_remove(m.dir);
    hf_queue_fixture_audit(&queue, true);
}

/* ---- programs that cannot be started ---- */

/* No descriptor more, until the limit is put back. */
static struct rlimit take_descriptors(void)
{
    struct rlimit was, now;
    int first_free = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(first_free >= 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    now = was;
    now.rlim_cur = (rlim_t)first_free;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
    close(first_free);
    return was;
}

static void without_descriptors_a_worker_backs_off_and_says_why(void **state)
{
    enum { FOR_MS = 3000, SCRIPTS_MAX = 30 };
    const char *const argv[] = {"true", NULL};
    static const char record[] = "{\"v\":1,\"type\":\"p\",\"created\":1}\n";
    const hf_enqueue_args args = {.producer = ""};
    const hf_enqueue_item item = {"a", 0, {record, sizeof record - 1}};
    const hf_program program = {HF_PROGRAM_INIT, .type = "p", .argv = argv};
    const hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .minder = HF_TEST_COMMAND,
                                 .lease_ms = LONG_MS};
    (void)state;
    hf_worker_fixture_start_programs(&worker, queue.redis.url, &opts, 0, &program, 1);
    EVENTUALLY(SOON_MS, waiting());
    long long before = hf_fixture_calls(&queue.redis, "evalsha");
    struct rlimit was = take_descriptors();
    assert_int_equal(hf_queue_fixture_enqueue_items(&queue, &args, &item, 1), HF_OK);
    EVENTUALLY(15000, hf_worker_fixture_said(&worker, "a program cannot be started") > 0);
    ALWAYS(FOR_MS, hf_worker_fixture_said(&worker, "a program cannot be started") == 1);
    long long scripts = hf_fixture_calls(&queue.redis, "evalsha") - before;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
    assert_int_equal(hf_worker_fixture_said(
                         &worker, "error a program cannot be started error=Too many"),
                     1);
    assert_true(scripts <= SCRIPTS_MAX);
    EVENTUALLY(15000, ask("HGET hf:{q}:meta done") == 1);
    assert_int_equal(hf_worker_fixture_said(&worker, "programs are started again"), 1);
    assert_int_equal(ask("HGET hf:{q}:meta failed"), -1);
    stop();
}

int main(void)
{
#define CASE(name)                                                                       \
    cmocka_unit_test_prestate_setup_teardown(name, hf_queue_fixture_up, down, &queue)
    const struct CMUnitTest tests[] = {
        CASE(a_queue_that_is_refused_holds_up_no_other),
        CASE(a_verdict_that_is_refused_holds_up_no_other_queue),
        CASE(a_queue_at_its_limit_holds_up_no_other),
        CASE(a_busy_worker_sees_what_comes_to_a_queue_that_was_empty),
        CASE(a_limited_queue_is_served_like_any_other),
        CASE(a_worker_that_may_not_wait_says_so_once_and_works),
        CASE(a_queue_is_registered_when_there_is_room_again),
        CASE(an_isolated_job_that_cannot_run_alone_is_put_back_for_a_while),
        CASE(an_isolated_job_runs_even_beside_long_jobs),
        CASE(a_program_has_its_turn_and_its_slot_among_c_handlers),
        CASE(without_descriptors_a_worker_backs_off_and_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
