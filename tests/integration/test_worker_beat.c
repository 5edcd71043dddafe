/* test_worker_beat.c - what a worker shows of itself: the heartbeat in Redis, and the
 * pulse that rises only while Redis answers and the loop turns. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "queue_scripts.h"
#include "tests/support/eventually.h"
#include "tests/support/proxy.h"
#include "tests/support/queue_fixture.h"
#include "tests/support/worker_fixture.h"

enum { TYPES = 900, JSON_MAX = 32 << 10 };

static hf_queue_fixture queue;
static hf_worker_fixture worker;
static hf_worker *many;

static int down(void **state)
{
    hf_fixture_signal(&queue.redis, SIGCONT);
    hf_worker_fixture_end(&worker);
    return hf_queue_fixture_down(state);
}

/* The heartbeat, or NULL while there is none. The caller gives it back. */
static json_t *beat_of(const hf_worker *w)
{
    return json_loads(
        hf_fixture_command(&queue.redis, "GET hf:{/}:worker:%s", hf_worker_id(w)), 0,
        NULL);
}

static bool shows(const char *key, const char *text)
{
    json_t *beat = beat_of(worker.worker);
    const char *found = json_string_value(json_object_get(beat, key));
    bool same = found != NULL && strcmp(found, text) == 0;
    json_decref(beat);
    return same;
}

static bool lists(const char *key, size_t at, const char *text)
{
    json_t *beat = beat_of(worker.worker);
    const char *found = json_string_value(json_array_get(json_object_get(beat, key), at));
    bool same = found != NULL && strcmp(found, text) == 0;
    json_decref(beat);
    return same;
}

static long long number(const char *key)
{
    json_t *beat = beat_of(worker.worker);
    long long n = json_integer_value(json_object_get(beat, key));
    json_decref(beat);
    return n;
}

/* ---- the heartbeat ---- */

static void it_names_the_holder_and_the_command(void **state)
{
    (void)state;
    int64_t before = hf_queue_fixture_now(&queue);
    hf_worker_fixture_start(&worker, queue.redis.url, &hf_brief_lease, 0);
    EVENTUALLY(15000, shows("state", "serving"));
    assert_true(shows("id", hf_worker_id(worker.worker)));
    assert_true(shows("version", HOLDFAST_VERSION));
    assert_int_equal(number("v"), 1);
    assert_int_equal(number("pid"), getpid());
    assert_int_equal(number("concurrency"), 4);
    assert_int_equal(number("running"), 0);
    assert_in_range(number("started_ms"), before, before + 5000);
    assert_in_range(number("now_ms"), before, before + 5000);
    assert_true(lists("queues", 0, "q"));
    assert_true(lists("types", 0, "t"));
    json_t *beat = beat_of(worker.worker);
    const char *host = json_string_value(json_object_get(beat, "host"));
    assert_non_null(host);
    assert_memory_equal(host, hf_worker_id(worker.worker), strlen(host));
    assert_null(json_object_get(beat, "types_cut"));
    json_decref(beat);
}

static uint64_t left_ms(uint64_t until_ms)
{
    uint64_t now = hf_test_fair_ms();
    return now < until_ms ? until_ms - now : 0;
}

/* Heartbeats in their time would show these in a minute. */
static void every_change_is_shown_at_once(void **state)
{
    (void)state;
    hf_worker_fixture_start(&worker, queue.redis.url, &hf_brief_lease, 0);
    EVENTUALLY(15000, shows("state", "serving"));
    uint64_t until = hf_test_fair_ms() + 30000;
    for (int i = 0; i < 3; i++) {
        hf_worker_quiet(worker.worker);
        EVENTUALLY(left_ms(until), shows("state", "quiet"));
        hf_worker_resume(worker.worker);
        EVENTUALLY(left_ms(until), shows("state", "serving"));
    }
    hf_worker_fixture_end(&worker);
}

static void changes_are_shown_until_the_end(void **state)
{
    static const hf_worker_queue other[] = {{HF_WORKER_QUEUE_INIT, .name = "other"}};
    hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .lease_ms = hf_brief_lease.lease_ms,
                           .queues = other, .n_queues = 1};
    (void)state;
    hf_worker_fixture_start(&worker, queue.redis.url, &hf_brief_lease, 0);
    EVENTUALLY(15000, shows("state", "serving"));
    hf_worker_quiet(worker.worker);
    EVENTUALLY(15000, shows("state", "quiet"));
    hf_worker_fixture_fill(&worker, queue.redis.url, &opts);
    assert_int_equal(hf_worker_reload(worker.worker, &opts, NULL, 0, NULL, 0, NULL),
                     HF_OK);
    EVENTUALLY(15000, lists("queues", 0, "other"));
    hf_worker_resume(worker.worker);
    EVENTUALLY(15000, shows("state", "serving"));
    assert_int_equal(hf_queue_init(&queue.queue, "hf", "other"), HF_OK);
    hf_queue_fixture_put(&queue, "a", "deaf", 0);
    EVENTUALLY(15000, atomic_load(&worker.started) == 1);
    hf_worker_stop(worker.worker);
    EVENTUALLY(15000, shows("state", "stopping"));
    assert_int_equal(number("running"), 1);
    atomic_store(&worker.gate, true);
    EVENTUALLY(15000, atomic_load(&worker.ended));
    assert_null(beat_of(worker.worker));
}

/* Redis's time is not known before its first answer; the next one in its time comes 10 s
 * after the start. */
static void the_first_does_not_wait_although_redis_is_slow(void **state)
{
    hf_proxy proxy;
    (void)state;
    hf_proxy_start(&proxy, queue.redis.socket);
    hf_proxy_keep_answer(&proxy, hf_lua_queue_check.sha1);
    hf_worker_fixture_start(&worker, proxy.url, &hf_brief_lease, 0);
    EVENTUALLY(30000, hf_proxy_kept(&proxy) == 1);
    ALWAYS(200, hf_worker_pulse(worker.worker) == 0);
    hf_proxy_let_go(&proxy);
    EVENTUALLY(30000, hf_worker_pulse(worker.worker) >= 2); /* Redis has its scripts */
    hf_queue_fixture_put(&queue, "a", "ok", 0);
    EVENTUALLY(30000, atomic_load(&worker.returned) == 1);
    assert_true(shows("state", "serving"));
    hf_worker_fixture_end(&worker);
    hf_proxy_stop(&proxy);
}

static hf_verdict nothing(hf_run *run, void *arg)
{
    (void)run;
    (void)arg;
    return HF_VERDICT_DONE;
}

static void *run_many(void *arg)
{
    (void)arg;
    assert_int_equal(hf_worker_run(many, NULL), HF_OK);
    return NULL;
}

static void too_many_types_are_cut(void **state)
{
    static const hf_worker_queue q = {HF_WORKER_QUEUE_INIT, .name = "q"};
    const hf_worker_opts opts = {HF_WORKER_OPTS_INIT,
                                 .server = HF_SERVER(.url = queue.redis.url),
                                 .queues = &q, .n_queues = 1};
    char type[HF_ID_SIZE];
    pthread_t thread;
    json_t *beat = NULL;
    (void)state;
    assert_int_equal(hf_worker_new(&many, &opts, NULL), HF_OK);
    for (int i = 0; i < TYPES; i++) {
        (void)snprintf(type, sizeof type, "type-%0100d", i);
        assert_int_equal(hf_worker_handle(many, type, 0, nothing, NULL, NULL), HF_OK);
    }
    assert_int_equal(pthread_create(&thread, NULL, run_many, NULL), 0);
    EVENTUALLY(15000, (beat = beat_of(many)) != NULL);
    size_t n = json_array_size(json_object_get(beat, "types"));
    assert_in_range(n, 250, TYPES - 1);
    assert_true(json_is_true(json_object_get(beat, "types_cut")));
    json_decref(beat);
    assert_in_range(
        hf_fixture_number(&queue.redis, "STRLEN hf:{/}:worker:%s", hf_worker_id(many)),
        JSON_MAX - 300, JSON_MAX);
    hf_worker_stop(many);
    pthread_join(thread, NULL);
    hf_worker_free(many);
}

/* ---- the pulse ---- */

static uint64_t pulse(void)
{
    return hf_worker_pulse(worker.worker);
}

static void rises(void)
{
    uint64_t before = pulse();
    EVENTUALLY(15000, pulse() >= before + 2);
}

static void it_rises_while_idle_full_quiet_and_stopping(void **state)
{
    const hf_worker_opts one = {HF_WORKER_OPTS_INIT, .lease_ms = hf_brief_lease.lease_ms,
                                .concurrency = 1};
    (void)state;
    hf_worker_fixture_start(&worker, queue.redis.url, &one, 0);
    rises();
    hf_queue_fixture_put(&queue, "a", "deaf", 0);
    EVENTUALLY(15000, hf_worker_running(worker.worker) == 1);
    rises();
    hf_worker_quiet(worker.worker);
    rises();
    hf_worker_stop(worker.worker);
    EVENTUALLY(15000, atomic_load(&worker.asked_to_stop));
    rises();
    atomic_store(&worker.gate, true);
}

static void it_does_not_rise_while_redis_does_not_answer(void **state)
{
    (void)state;
    hf_worker_fixture_start(&worker, queue.redis.url, &hf_brief_lease, 0);
    rises();
    hf_fixture_signal(&queue.redis, SIGSTOP);
    EVENTUALLY(15000, hf_worker_fixture_said(&worker, "Redis is away") > 0);
    uint64_t before = pulse();
    ALWAYS(1500, pulse() == before);
    hf_fixture_signal(&queue.redis, SIGCONT);
    rises();
}

/* Redis is there, and its answers lie in the socket. */
static void it_does_not_rise_while_the_loop_hangs(void **state)
{
    (void)state;
    hf_worker_fixture_start(&worker, queue.redis.url, &hf_brief_lease, 0);
    rises();
    atomic_store(&worker.hold_loop, true);
    hf_queue_fixture_put(&queue, "a", "ok", 0);
    EVENTUALLY(15000, atomic_load(&worker.loop_held));
    uint64_t before = pulse();
    ALWAYS(1500, pulse() == before);
    atomic_store(&worker.hold_loop, false);
    rises();
}

/* Redis answers, with nothing but refusals. */
static void it_does_not_rise_while_redis_refuses(void **state)
{
    (void)state;
    hf_worker_fixture_start(&worker, queue.redis.url, &hf_brief_lease, 0);
    rises();
    hf_fixture_command(&queue.redis, "ACL SETUSER default -evalsha -eval");
    uint64_t before = pulse();
    EVENTUALLY(15000, hf_worker_fixture_said(&worker, "Redis refuses") > 0);
    ALWAYS(1500, pulse() <= before + 1);
    hf_fixture_command(&queue.redis, "ACL SETUSER default +evalsha +eval");
    rises();
}

static long long refusals(void)
{
    const char *name = "errorstat_NOPERM:count=";
    const char *at = strstr(hf_fixture_command(&queue.redis, "INFO errorstats"), name);
    return at == NULL ? 0 : strtoll(at + strlen(name), NULL, 10);
}

static void a_refused_heartbeat_is_told_once_and_so_is_its_end(void **state)
{
    (void)state;
    hf_fixture_command(&queue.redis, "ACL SETUSER default resetkeys ~hf:{q}*");
    hf_worker_fixture_start(&worker, queue.redis.url, &hf_brief_lease, 0);
    EVENTUALLY(15000, hf_worker_fixture_said(&worker, "warn Redis refuses the heartbeat "
                                                      "error=NOPERM") == 1);
    long long before = refusals();
    hf_worker_quiet(worker.worker); /* what a heartbeat says changes: it goes at once */
    EVENTUALLY(15000, refusals() > before);
    hf_queue_fixture_put(&queue, "a", "ok", 0);
    hf_worker_resume(worker.worker);
    EVENTUALLY(15000, refusals() > before + 1);
    EVENTUALLY(15000, atomic_load(&worker.returned) == 1); /* it works all the same */
    assert_int_equal(hf_worker_fixture_said(&worker, "the heartbeat"), 1);
    hf_fixture_command(&queue.redis, "ACL SETUSER default ~*");
    hf_worker_quiet(worker.worker);
    EVENTUALLY(15000,
               hf_worker_fixture_said(&worker, "info Redis takes the heartbeat") == 1);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    assert_int_equal(hf_worker_fixture_said(&worker, "the heartbeat"), 2);
}

int main(void)
{
#define CASE(name)                                                                       \
    cmocka_unit_test_prestate_setup_teardown(name, hf_queue_fixture_up, down, &queue)
    const struct CMUnitTest tests[] = {
        CASE(it_names_the_holder_and_the_command),
        CASE(the_first_does_not_wait_although_redis_is_slow),
        CASE(every_change_is_shown_at_once),
        CASE(changes_are_shown_until_the_end),
        CASE(too_many_types_are_cut),
        CASE(it_rises_while_idle_full_quiet_and_stopping),
        CASE(it_does_not_rise_while_redis_does_not_answer),
        CASE(it_does_not_rise_while_the_loop_hangs),
        CASE(it_does_not_rise_while_redis_refuses),
        CASE(a_refused_heartbeat_is_told_once_and_so_is_its_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
