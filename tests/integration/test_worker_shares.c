/* test_worker_shares.c - which worker gets what, and when: queues by weight, an isolated
 * job and its neighbours, and what is said of a job while its handler has it. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tests/support/eventually.h"
#include "tests/support/queue_fixture.h"
#include "tests/support/worker_fixture.h"

enum { QUEUES = 3, JOBS = 900, COUNTED = 1000, WORKERS = 30, RATED = 400, BUCKET = 20 };
enum { CREW_MAX = 3, TRIES = 3 };

static hf_queue_fixture queue;
static hf_worker_fixture worker, other;

static atomic_int begun[QUEUES], begun_all;

static void forget_begun(void)
{
    for (int i = 0; i < QUEUES; i++)
        atomic_store(&begun[i], 0);
    atomic_store(&begun_all, 0);
}

static int up(void **state)
{
    forget_begun();
    return hf_queue_fixture_up(state);
}

static long long done(void)
{
    return hf_queue_fixture_meta(&queue, "done");
}

/* ---- a worker with a handler of the test's own ---- */

typedef struct own {
    hf_worker *worker;
    pthread_t thread;
} own;

static void *run_own(void *arg)
{
    own *o = arg;
    assert_int_equal(hf_worker_run(o->worker, NULL), HF_OK);
    return NULL;
}

static void start_own(own *o, hf_worker_opts opts, hf_handler_fn fn)
{
    opts.server = HF_SERVER(.url = queue.redis.url);
    assert_int_equal(hf_worker_new(&o->worker, &opts, NULL), HF_OK);
    assert_int_equal(hf_worker_handle(o->worker, "t", 0, fn, NULL, NULL), HF_OK);
    assert_int_equal(pthread_create(&o->thread, NULL, run_own, o), 0);
}

static void stop_own(own *o)
{
    hf_worker_stop(o->worker);
    pthread_join(o->thread, NULL);
    hf_worker_free(o->worker);
}

/* ---- weights ---- */

static hf_verdict count_queue(hf_run *run, void *arg)
{
    (void)arg;
    if (atomic_fetch_add(&begun_all, 1) < COUNTED)
        atomic_fetch_add(&begun[hf_run_queue(run)[0] - 'a'], 1);
    hf_test_pause_ms(1);
    return HF_VERDICT_DONE;
}

static hf_verdict count_slowly(hf_run *run, void *arg)
{
    hf_test_pause_ms(9);
    return count_queue(run, arg);
}

static void fill(const char *name)
{
    static const char record[] = "{\"v\":1,\"type\":\"t\",\"created\":1}\n";
    static char ids[JOBS][16];
    static hf_enqueue_item items[JOBS];
    for (int i = 0; i < JOBS; i++) {
        snprintf(ids[i], sizeof ids[i], "%s%d", name, i);
        items[i] = (hf_enqueue_item){.id = ids[i], .record = {record, sizeof record - 1}};
    }
    assert_int_equal(hf_queue_init(&queue.queue, "hf", name), HF_OK);
    assert_int_equal(hf_queue_fixture_enqueue_items(
                         &queue, &(hf_enqueue_args){.producer = ""}, items, JOBS),
                     HF_OK);
}

typedef struct crew {
    size_t workers;
    uint32_t slots;
    hf_handler_fn fn;
    int least[QUEUES], most[QUEUES]; /* of COUNTED jobs */
} crew;

static bool is_even(const crew *c)
{
    for (int i = 0; i < QUEUES; i++)
        if (atomic_load(&begun[i]) < c->least[i] || atomic_load(&begun[i]) > c->most[i])
            return false;
    return true;
}

static void serve_by_weights(const crew *c)
{
    static const hf_worker_queue queues[QUEUES] = {
        {HF_WORKER_QUEUE_INIT, .name = "a", .weight = 6},
        {HF_WORKER_QUEUE_INIT, .name = "b", .weight = 3},
        {HF_WORKER_QUEUE_INIT, .name = "c", .weight = 1}};
    own workers[CREW_MAX];
    forget_begun();
    hf_fixture_command(&queue.redis, "FLUSHALL");
    for (int i = 0; i < QUEUES; i++)
        fill(queues[i].name);
    for (size_t i = 0; i < c->workers; i++)
        start_own(&workers[i],
                  (hf_worker_opts){HF_WORKER_OPTS_INIT, .queues = queues,
                                   .n_queues = QUEUES, .concurrency = c->slots},
                  c->fn);
    EVENTUALLY(20000, atomic_load(&begun_all) >= COUNTED);
    for (size_t i = 0; i < c->workers; i++)
        stop_own(&workers[i]);
    print_message("%d : %d : %d\n", begun[0], begun[1], begun[2]);
}

/* A queue does not wait for the claim of another one that takes 100 ms: on a busy machine
 * the shares are those of the claims that came. */
static void expect_weights(const crew *c)
{
    for (int i = 0; i < TRIES; i++) {
        hf_test_span span = hf_test_span_begin();
        serve_by_weights(c);
        if (is_even(c))
            return;
        if (!hf_test_span_is_busy(span))
            fail_msg("the shares are uneven");
    }
    skip();
}

static void busy_queues_are_served_by_their_weights(void **state)
{
    (void)state;
    expect_weights(&(crew){.workers = 1,
                           .slots = 3,
                           .fn = count_queue,
                           .least = {550, 250, 70},
                           .most = {650, 350, 130}});
}

/* Several workers of many slots: for each queue a claim is nearly always under way, and
 * what is asked for meanwhile is not for whoever is free to be asked. */
static void shares_hold_while_claims_are_under_way(void **state)
{
    (void)state;
    expect_weights(&(crew){.workers = CREW_MAX,
                           .slots = 16,
                           .fn = count_slowly,
                           .least = {570, 0, 90},
                           .most = {630, COUNTED, 112}});
}

static atomic_int early;

/* Of `a` there are `JOBS`. */
static hf_verdict count_early(hf_run *run, void *arg)
{
    if (hf_run_queue(run)[0] == 'b' && atomic_load(&begun[0]) < JOBS - 50)
        atomic_fetch_add(&early, 1);
    return count_queue(run, arg);
}

static void in_order_nothing_of_the_next_queue_comes_first(void **state)
{
    (void)state;
    static const hf_worker_queue queues[] = {{HF_WORKER_QUEUE_INIT, .name = "a"},
                                             {HF_WORKER_QUEUE_INIT, .name = "b"}};
    own o;
    fill("a");
    fill("b");
    start_own(&o,
              (hf_worker_opts){HF_WORKER_OPTS_INIT, .queues = queues, .n_queues = 2,
                               .concurrency = 4, .strict = true},
              count_early);
    EVENTUALLY(20000, atomic_load(&begun_all) >= COUNTED);
    stop_own(&o);
    assert_int_equal(atomic_load(&early), 0);
    assert_int_equal(atomic_load(&begun[0]), JOBS);
}

/* One of them claims at each token's time; they are no herd. */
static void workers_of_a_queue_with_a_rate_take_turns(void **state)
{
    (void)state;
    char id[16];
    static hf_worker_fixture herd[WORKERS];
    hf_fixture_command(&queue.redis,
                       "HSET hf:{q}:meta rate_limit 200 rate_per 1000 uses r");
    for (int i = 0; i < WORKERS; i++)
        hf_worker_fixture_start(&herd[i], queue.redis.url,
                                &(hf_worker_opts){HF_WORKER_OPTS_INIT, .lease_ms = 30000},
                                0);
    long long before = hf_fixture_calls(&queue.redis, "evalsha");
    for (int i = 0; i < RATED; i++) {
        snprintf(id, sizeof id, "j%d", i);
        hf_queue_fixture_put(&queue, id, "ok", 0);
    }
    EVENTUALLY(15000, done() == RATED);
    /* At least this many, if each found all that the bucket holds; and each put is one.
     */
    long long scripts = hf_fixture_calls(&queue.redis, "evalsha") - before - RATED;
    assert_in_range(scripts, RATED / BUCKET, 3 * RATED);
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(hf_worker_fixture_stop(&herd[i]), HF_OK);
    hf_queue_fixture_audit(&queue, true);
}

/* ---- a type that nobody takes ---- */

/* A job that was due two hours ago, and that no worker has had a handler for since. */
static void put_stranger(const char *id, int64_t unhandled_ms)
{
    char record[128];
    int len = snprintf(record, sizeof record, "{\"v\":1,\"type\":\"stranger\"");
    if (unhandled_ms != 0)
        len += snprintf(record + len, sizeof record - (size_t)len, ",\"unhandled\":%lld",
                        (long long)unhandled_ms);
    len += snprintf(record + len, sizeof record - (size_t)len, "}\n");
    hf_enqueue_item item = {.id = id,
                            .due_ms = hf_queue_fixture_now(&queue) - 7200000,
                            .record = {record, (size_t)len}};
    assert_int_equal(hf_queue_fixture_enqueue_items(
                         &queue, &(hf_enqueue_args){.producer = ""}, &item, 1),
                     HF_OK);
}

static const char *record_of(const char *id)
{
    return hf_fixture_command(&queue.redis, "HGET hf:{q}:jobs %s", id);
}

static void a_type_without_a_handler_for_an_hour_ends_in_dead(void **state)
{
    (void)state;
    char first[64];
    int64_t now = hf_queue_fixture_now(&queue);
    put_stranger("old", now - 3601000);
    put_stranger("young", now - 3500000);
    put_stranger("new", 0);
    hf_worker_fixture_start(&worker, queue.redis.url, NULL, 0);
    EVENTUALLY(15000, hf_fixture_number(&queue.redis, "ZCARD hf:{q}:dead") == 1);
    EVENTUALLY(15000, hf_fixture_number(&queue.redis, "ZCARD hf:{q}:schedule") == 2);
    EVENTUALLY(15000, hf_worker_fixture_said(&worker, "outcome=dead") == 1);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    assert_non_null(strstr(record_of("old"), "no handler"));
    snprintf(first, sizeof first, "\"unhandled\":%lld", (long long)(now - 3500000));
    assert_non_null(strstr(record_of("young"), first));
    assert_non_null(strstr(record_of("new"), "\"unhandled\":"));
    int64_t due_ms = hf_fixture_number(&queue.redis, "ZSCORE hf:{q}:schedule new");
    assert_true(due_ms < hf_queue_fixture_now(&queue) + 5000);
}

/* It is busy, or starts next: the job waits for it, and comes back soon. */
static void no_job_dies_while_a_live_worker_has_a_handler_for_it(void **state)
{
    (void)state;
    int64_t now = hf_queue_fixture_now(&queue);
    hf_fixture_command(&queue.redis, "ZADD hf:{q}:workers %lld other",
                       (long long)now + 3600000);
    hf_fixture_command(&queue.redis, "HSET hf:{q}:handles other %b", " a stranger ",
                       strlen(" a stranger "));
    put_stranger("old", now - 3601000);
    hf_worker_fixture_start(&worker, queue.redis.url, NULL, 0);
    EVENTUALLY(15000, hf_worker_fixture_said(&worker, "debug job job=old") >= 3);
    assert_int_equal(hf_worker_fixture_said(&worker, "warn job job=old"), 0);
    assert_int_equal(
        hf_worker_fixture_said(&worker, "warn a queue has jobs of types that only other "
                                        "workers take queue=q type=stranger"),
        1);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    assert_int_equal(hf_fixture_number(&queue.redis, "ZCARD hf:{q}:dead"), 0);
    assert_null(strstr(record_of("old"), "unhandled"));
    int64_t due_ms = hf_fixture_number(&queue.redis, "ZSCORE hf:{q}:schedule old");
    assert_true(due_ms < hf_queue_fixture_now(&queue) + 2000);
}

/* ---- two workers with different types ---- */

/* A job that comes to the wrong worker goes on within 10 s. */
enum { MIXED = 600, MIXED_WAIT_MS = 20000, HOURS_2_MS = 7200000 };

static atomic_int mixed;

static hf_verdict count_mixed(hf_run *run, void *arg)
{
    (void)run;
    (void)arg;
    atomic_fetch_add(&mixed, 1);
    return HF_VERDICT_DONE;
}

static void start_typed(own *o, const char *type, uint32_t concurrency)
{
    static const hf_worker_queue queues[] = {{HF_WORKER_QUEUE_INIT, .name = "q"}};
    hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .queues = queues, .n_queues = 1,
                           .concurrency = concurrency};
    opts.server = HF_SERVER(.url = queue.redis.url);
    assert_int_equal(hf_worker_new(&o->worker, &opts, NULL), HF_OK);
    assert_int_equal(hf_worker_handle(o->worker, type, 0, count_mixed, NULL, NULL),
                     HF_OK);
    assert_int_equal(pthread_create(&o->thread, NULL, run_own, o), 0);
}

/* Of both types in turns, from a number on; each was due that long ago. */
static void put_mixed(int from, int n, int64_t ago_ms)
{
    static const char *const lines[] = {"{\"type\":\"a\",\"created\":1}\n",
                                        "{\"type\":\"b\",\"created\":1}\n"};
    static char ids[MIXED][16];
    static hf_enqueue_item items[MIXED];
    int64_t now = hf_queue_fixture_now(&queue);
    for (int i = 0; i < n; i++) {
        const char *line = lines[i % 2];
        snprintf(ids[i], sizeof ids[i], "m%d", from + i);
        items[i] = (hf_enqueue_item){
            .id = ids[i], .due_ms = now - ago_ms + i, .record = {line, strlen(line)}};
    }
    assert_int_equal(hf_queue_fixture_enqueue_items(
                         &queue, &(hf_enqueue_args){.producer = ""}, items, (size_t)n),
                     HF_OK);
}

/* In a rolling deploy the second one starts while the first one refuses. */
static void share_a_backlog(uint32_t concurrency)
{
    own a, b;
    atomic_store(&mixed, 0);
    put_mixed(0, MIXED, HOURS_2_MS);
    start_typed(&a, "a", concurrency);
    EVENTUALLY(15000, atomic_load(&mixed) == MIXED / 2);
    hf_test_pause_ms(2000);
    uint64_t begin = hf_boot_ns();
    start_typed(&b, "b", concurrency);
    EVENTUALLY(MIXED_WAIT_MS, atomic_load(&mixed) == MIXED);
    print_message("%d ms\n", (int)((hf_boot_ns() - begin) / HF_MS_NS));
    for (int i = 0; i < 40; i++) { /* both are idle, and either may be the first */
        put_mixed(MIXED + 2 * i, 2, 0);
        EVENTUALLY(MIXED_WAIT_MS, atomic_load(&mixed) == MIXED + 2 * (i + 1));
    }
    stop_own(&a);
    stop_own(&b);
    assert_int_equal(hf_fixture_number(&queue.redis, "ZCARD hf:{q}:dead"), 0);
    hf_queue_fixture_audit(&queue, true);
}

static void two_workers_with_different_types_share_a_backlog(void **state)
{
    (void)state;
    share_a_backlog(4);
}

/* Neither can take both jobs of a pair at a time. */
static void two_workers_with_a_slot_each_share_a_backlog(void **state)
{
    (void)state;
    share_a_backlog(1);
}

/* ---- without the connection that waits ---- */

static void jobs_run_though_no_connection_can_wait_for_them(void **state)
{
    (void)state;
    char list[2048];
    hf_worker_fixture_start(&worker, queue.redis.url,
                            &(hf_worker_opts){HF_WORKER_OPTS_INIT, .lease_ms = 30000}, 0);
    EVENTUALLY(15000,
               strstr(hf_fixture_command(&queue.redis, "CLIENT LIST"), "bzpopmin"));
    snprintf(list, sizeof list, "%s", hf_fixture_command(&queue.redis, "CLIENT LIST"));
    char *at = strstr(list, "cmd=bzpopmin");
    assert_non_null(at);
    while (at > list && at[-1] != '\n')
        at--;
    hf_fixture_command(&queue.redis, "CONFIG SET maxclients 1");
    hf_fixture_command(&queue.redis, "CLIENT KILL ID %d", (int)strtol(at + 3, NULL, 10));
    for (int i = 0; i < 3; i++) {
        char id[16];
        snprintf(id, sizeof id, "j%d", i);
        hf_queue_fixture_put(&queue, id, "ok", 0);
        EVENTUALLY(4000, done() == i + 1);
    }
    hf_fixture_command(&queue.redis, "CONFIG SET maxclients 100");
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    hf_queue_fixture_audit(&queue, true);
}

/* ---- an isolated job ---- */

/* Both workers block; the one that takes the isolated job may not hear of jobs until it
 * is done. */
static void a_worker_with_an_isolated_job_leaves_the_batons_to_others(void **state)
{
    (void)state;
    char id[16];
    hf_worker_fixture_start(&worker, queue.redis.url,
                            &(hf_worker_opts){HF_WORKER_OPTS_INIT, .lease_ms = 30000}, 0);
    hf_worker_fixture_start(&other, queue.redis.url,
                            &(hf_worker_opts){HF_WORKER_OPTS_INIT, .lease_ms = 30000}, 0);
    hf_queue_fixture_put(&queue, "first", "ok", 0);
    EVENTUALLY(15000, done() == 1);
    hf_fixture_command(&queue.redis, "HSET hf:{q}:crashes s 2");
    (void)hf_fixture_command(&queue.redis, "HSET hf:{q}:meta uses m");
    hf_queue_fixture_put(&queue, "s", "gate", 0);
    EVENTUALLY(15000, atomic_load(&worker.inside) + atomic_load(&other.inside) == 1);
    for (int i = 0; i < 20; i++) {
        snprintf(id, sizeof id, "j%d", i);
        hf_queue_fixture_put(&queue, id, "ok", 0);
        EVENTUALLY(3000, done() == 2 + i);
    }
    atomic_store(&worker.gate, true);
    atomic_store(&other.gate, true);
    EVENTUALLY(15000, done() == 22);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    assert_int_equal(hf_worker_fixture_stop(&other), HF_OK);
    hf_queue_fixture_audit(&queue, true);
}

/* ---- lost while it runs ---- */

static atomic_bool enough;
static atomic_int lost_lines, error_lines;

static hf_verdict write_errors(hf_run *run, void *arg)
{
    (void)arg;
    while (!atomic_load(&enough))
        hf_run_set_error(run, "what it says while others look");
    return HF_VERDICT_DONE;
}

static void see_line(hf_log_level level, const char *message, const hf_log_field *fields,
                     size_t n, void *arg)
{
    (void)level, (void)message, (void)arg;
    bool lost = false, error = false;
    for (size_t i = 0; i < n; i++) {
        error = error || strcmp(fields[i].key, "error") == 0;
        lost = lost || (fields[i].text != NULL && strcmp(fields[i].text, "lost") == 0);
    }
    atomic_fetch_add(&lost_lines, lost ? 1 : 0);
    atomic_fetch_add(&error_lines, lost && error ? 1 : 0);
}

static void the_error_of_a_handler_is_not_read_before_it_returns(void **state)
{
    (void)state;
    own o;
    hf_queue_fixture_put(&queue, "a", "", 0);
    start_own(
        &o,
        (hf_worker_opts){HF_WORKER_OPTS_INIT,
                         .queues = &(hf_worker_queue){HF_WORKER_QUEUE_INIT, .name = "q"},
                         .n_queues = 1, .lease_ms = 1000, .log = see_line},
        write_errors);
    EVENTUALLY(15000, hf_fixture_number(&queue.redis, "EXISTS hf:{q}:lock:a") == 1);
    (void)hf_fixture_command(&queue.redis, "SET hf:{q}:lock:a other:1 PX 60000");
    EVENTUALLY(15000, atomic_load(&lost_lines) >= 1);
    assert_int_equal(atomic_load(&error_lines), 0);
    atomic_store(&enough, true);
    EVENTUALLY(15000, done() == 1);
    stop_own(&o);
}

int main(void)
{
#define CASE(name)                                                                       \
    cmocka_unit_test_prestate_setup_teardown(name, up, hf_queue_fixture_down, &queue)
    const struct CMUnitTest tests[] = {
        CASE(busy_queues_are_served_by_their_weights),
        CASE(shares_hold_while_claims_are_under_way),
        CASE(in_order_nothing_of_the_next_queue_comes_first),
        CASE(workers_of_a_queue_with_a_rate_take_turns),
        CASE(a_type_without_a_handler_for_an_hour_ends_in_dead),
        CASE(no_job_dies_while_a_live_worker_has_a_handler_for_it),
        CASE(two_workers_with_different_types_share_a_backlog),
        CASE(two_workers_with_a_slot_each_share_a_backlog),
        CASE(jobs_run_though_no_connection_can_wait_for_them),
        CASE(a_worker_with_an_isolated_job_leaves_the_batons_to_others),
        CASE(the_error_of_a_handler_is_not_read_before_it_returns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
