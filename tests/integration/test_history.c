/* test_history.c - the history of queues: what workers send, how Redis adds it up and
 * forgets it, and how an administrator reads it. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "queue/past.h"
#include "queue_scripts.h"
#include "tests/support/eventually.h"
#include "tests/support/proxy.h"
#include "tests/support/queue_fixture.h"
#include "tests/support/shards.h"
#include "tests/support/worker_fixture.h"

enum { SOON_MS = 90000, MINUTE_MS = 60000, HOUR_MS = 60 * MINUTE_MS, TYPES_MAX = 128 };

static hf_queue_fixture fixture;
static hf_fixture *const redis = &fixture.redis;
static hf_worker_fixture workers[2];
static hf_proxy proxy;
static char detail[HF_DETAIL_SIZE];

static int up(void **state)
{
    (void)state;
    hf_queue_fixture_start(&fixture, &(hf_fixture_options){.clock = true});
    fixture.admin = hf_queue_fixture_admin(&fixture);
    hf_proxy_start(&proxy, redis->socket);
    return 0;
}

static int down(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT(workers); i++)
        hf_worker_fixture_end(&workers[i]);
    hf_proxy_stop(&proxy);
    hf_queue_fixture_stop(&fixture);
    return 0;
}

/* ---- reading ---- */

typedef struct seen {
    hf_past_sums sums; /* of all types */
    size_t n, steps, samples;
    char types[TYPES_MAX][HF_ID_SIZE];
    int64_t done[TYPES_MAX];
    int64_t done_in_steps, crashed, lost;
    hf_history_step last; /* with a sample */
    hf_history_span span;
} seen;

static void on_type(const hf_history_type *type, void *arg)
{
    seen *s = arg;
    assert_true(s->n < TYPES_MAX);
    (void)snprintf(s->types[s->n], HF_ID_SIZE, "%s", type->type);
    s->done[s->n++] = type->done;
    s->sums.done += type->done;
    s->sums.failed += type->failed;
    s->sums.dead += type->dead;
    s->sums.run_ms += type->run_ms;
    s->sums.wait_ms += type->wait_ms;
    for (size_t i = 0; i < HF_HISTORY_BUCKETS; i++) {
        s->sums.runs[i] += type->runs[i];
        s->sums.waits[i] += type->waits[i];
    }
}

static void on_step(const hf_history_step *step, void *arg)
{
    seen *s = arg;
    assert_true(step->begin_ms ==
                    s->span.from_ms + (int64_t)s->steps * s->span.length_ms ||
                s->span.from_ms == 0);
    s->steps++;
    s->done_in_steps += step->done;
    s->crashed += step->crashed;
    s->lost += step->lost;
    if (step->seen) {
        s->samples++;
        s->last = *step;
    }
}

static seen *read_of(const char *queue, int64_t since_ms, const char *type)
{
    static seen s;
    const hf_history_opts opts = {HF_HISTORY_OPTS_INIT, .since_ms = since_ms,
                                  .type = type,         .on_type = on_type,
                                  .on_step = on_step,   .arg = &s};
    s = (seen){.span = {HF_HISTORY_SPAN_INIT}};
    hf_err err = hf_admin_history(fixture.admin, queue, &opts, &s.span, detail);
    if (err != HF_OK)
        fail_msg("%s: %s", hf_err_name(err), detail);
    return &s;
}

static seen *read_all(void)
{
    return read_of("q", HOUR_MS, NULL);
}

static long long counter(const char *name)
{
    return hf_fixture_number(redis, "HGET hf:{q}:meta %s", name);
}

static int64_t total(const int64_t counts[HF_HISTORY_BUCKETS])
{
    int64_t n = 0;
    for (size_t i = 0; i < HF_HISTORY_BUCKETS; i++)
        n += counts[i];
    return n;
}

/* ---- Redis: adding and forgetting ---- */

static const char *add(const char *worker, unsigned number, long long minute,
                       long long keep_ms, const char *type, const char *sums)
{
    return hf_fixture_command(redis, "EVAL %s 1 hf:{q}: %s %u %lld %lld %s %s",
                              (const char *)hf_lua_queue_past.text, worker, number,
                              minute, keep_ms, type, sums);
}

static long long now_minute(void)
{
    return hf_queue_fixture_now(&fixture) / MINUTE_MS;
}

/* Sets the clock to this many ms before the end of its minute. */
static void go_before_the_end(int64_t ms)
{
    const int64_t in = hf_queue_fixture_now(&fixture) % MINUTE_MS;
    hf_fixture_clock_jump(redis, MINUTE_MS - ms - in);
}

static void a_request_that_comes_again_counts_once(void **state)
{
    (void)state;
    go_before_the_end(50000);
    for (unsigned number = 1; number <= 3; number++)
        for (int again = 0; again < 2; again++)
            (void)add("w", number, now_minute(), HF_HISTORY_MAX_MS, "t", "d=1 r0=1");
    (void)add("w", 2, now_minute(), HF_HISTORY_MAX_MS, "t", "d=1");
    assert_int_equal(read_all()->sums.done, 3);
    (void)add("v", 1, now_minute(), HF_HISTORY_MAX_MS, "t", "d=1"); /* another worker */
    assert_int_equal(read_all()->sums.done, 4);
    assert_int_equal(read_all()->sums.runs[0], 3);
    assert_true(hf_fixture_number(redis, "PTTL hf:{q}:past:@w") > 19 * MINUTE_MS);
}

static void what_is_no_history_is_refused(void **state)
{
    static const char *const bad[][2] = {
        {"t", "d=x"},     {"t", "q=1"},
        {"t", "r46=1"},   {"t", "r07=1"},
        {"t", "d3=1"},    {"t", "d"},
        {"t", "d=1;f=2"}, {"a b", "d=1"},
        {"", "d=1"},      {"t", " "},
        {"t", "d=-1"},    {"t", "d=1e3"},
        {"t", "d=0x10"},  {"t", "d=1000000000000000"},
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT(bad); i++)
        assert_non_null(
            strstr(add("w", 1, now_minute(), HOUR_MS, bad[i][0], bad[i][1]), "(error)"));
    assert_non_null(strstr(add("w x", 1, 1, HOUR_MS, "t", "d=1"), "id of a worker"));
    assert_non_null(
        strstr(add("w", 1, 1, HF_HISTORY_MAX_MS + 1, "t", "d=1"), "from 0 to 172800000"));
    assert_non_null(strstr(add("w", 1, -1, HOUR_MS, "t", "d=1"), "expected a number"));
    assert_int_equal(hf_fixture_number(redis, "DBSIZE"), 0);
}

/* Nine at a time would be one too many. */
static void nine_types_are_too_many(void **state)
{
    (void)state;
    assert_non_null(strstr(
        hf_fixture_command(redis,
                           "EVAL %s 1 hf:{q}: w 1 %lld 1000 1 d=1 2 d=1 3 d=1 4 d=1 5 "
                           "d=1 6 d=1 7 d=1 8 d=1 9 d=1",
                           (const char *)hf_lua_queue_past.text, now_minute()),
        "expected 1 to 8 types, found 9"));
}

static void types_beyond_64_are_added_up(void **state)
{
    (void)state;
    go_before_the_end(50000);
    for (unsigned i = 0; i < 70; i++) {
        char type[16];
        (void)snprintf(type, sizeof type, "t%02u", i);
        (void)add("w", i + 1, now_minute(), HOUR_MS, type, "d=1 r3=1");
    }
    (void)add("w", 100, now_minute(), HOUR_MS, "t05", "d=1"); /* it has its place */
    (void)add("w", 101, now_minute(), HOUR_MS, "*", "x=2");
    const seen *s = read_all();
    assert_int_equal(s->n, 65);
    assert_string_equal(s->types[64], "*");
    assert_int_equal(s->done[64], 6);
    assert_int_equal(s->done[5], 2);
    assert_int_equal(s->sums.done, 71);
    assert_int_equal(s->sums.dead, 2);
    assert_int_equal(s->done_in_steps, 71);
    assert_int_equal(hf_fixture_number(redis, "HLEN hf:{q}:past:%lld", now_minute()), 66);
}

static void sums_stay_numbers(void **state)
{
    (void)state;
    for (unsigned i = 1; i < 5; i++)
        (void)add("w", i, now_minute(), HOUR_MS, "t",
                  "R=999999999999999 d=99999999999999");
    const char *text = hf_fixture_command(redis, "HGET hf:{q}:past:%lld t", now_minute());
    assert_string_equal(text, "R=999999999999999 d=399999999999996");
}

/* ---- the ends of keys, and the clock ---- */

static void minutes_end_after_3_hours_and_ten_minutes_after_48(void **state)
{
    (void)state;
    go_before_the_end(30000);
    const long long minute = now_minute();
    (void)add("w", 1, minute, HF_HISTORY_MAX_MS, "t", "d=1");
    const int64_t over = (minute + 1) * MINUTE_MS,
                  ten = (minute / 10 + 1) * 10 * MINUTE_MS;
    const int64_t minutes_end = hf_fixture_expiry(redis, "hf:{q}:past:%lld", minute);
    const int64_t tens_end = hf_fixture_expiry(redis, "hf:{q}:past:t%lld", minute / 10);
    assert_in_range(minutes_end, over + 3 * HOUR_MS - 1000, over + 3 * HOUR_MS + 1000);
    assert_in_range(tens_end, ten + 48 * HOUR_MS - 1000, ten + 48 * HOUR_MS + 1000);
    assert_int_equal(read_of("q", HOUR_MS, NULL)->sums.done, 1);
    hf_fixture_clock_jump(redis, 3 * HOUR_MS + 2 * MINUTE_MS);
    assert_int_equal(hf_fixture_number(redis, "EXISTS hf:{q}:past:%lld", minute), 0);
    assert_int_equal(read_of("q", 4 * HOUR_MS, NULL)->sums.done, 1);
    hf_fixture_clock_jump(redis, 45 * HOUR_MS + 10 * MINUTE_MS);
    assert_int_equal(read_of("q", 48 * HOUR_MS, NULL)->sums.done, 0);
    assert_int_equal(hf_fixture_number(redis, "EXISTS hf:{q}:past:t%lld", minute / 10),
                     0);
}

/* The shorter of two workers' files ends nothing early. */
static void keep_shortens_both(void **state)
{
    (void)state;
    go_before_the_end(30000);
    (void)add("w", 1, now_minute(), HOUR_MS, "t", "d=1");
    assert_true(hf_fixture_number(redis, "PTTL hf:{q}:past:%lld", now_minute()) <=
                HOUR_MS + MINUTE_MS);
    (void)add("v", 1, now_minute(), 2 * HOUR_MS, "t", "d=1");
    (void)add("w", 2, now_minute(), HOUR_MS, "t", "d=1");
    assert_true(hf_fixture_number(redis, "PTTL hf:{q}:past:%lld", now_minute()) >
                2 * HOUR_MS);
}

/* A minute of a clock that was set since: nothing is lost, and nothing stays longer. */
static void minutes_of_another_clock_count_as_this_one(void **state)
{
    (void)state;
    go_before_the_end(30000);
    const long long now = now_minute();
    static const long long far[] = {-100000, -60, -13, 1, 2, 60, 100000};
    for (unsigned i = 0; i < HF_COUNT(far); i++)
        (void)add("w", i + 1, now + far[i], HF_HISTORY_MAX_MS, "t", "d=1");
    (void)add("w", 100, 0, HF_HISTORY_MAX_MS, "t", "d=1");
    assert_int_equal(read_all()->sums.done, 8);
    (void)add("w", 101, now - 12, HF_HISTORY_MAX_MS, "t", "d=1");
    assert_int_equal(read_all()->sums.done, 9);
    /* Two minutes, one or two ten minutes, and what is known of the worker. */
    assert_true(hf_fixture_number(redis, "DBSIZE") <= 5);
    assert_string_equal(hf_fixture_command(redis, "HGET hf:{q}:past:%lld t", now), "d=8");
}

static void a_full_redis_takes_no_history(void **state)
{
    (void)state;
    (void)hf_fixture_command(redis, "CONFIG SET maxmemory 1");
    assert_non_null(strstr(add("w", 1, now_minute(), HOUR_MS, "t", "d=1"), "OOM"));
    (void)hf_fixture_command(redis, "CONFIG SET maxmemory 0");
    assert_int_equal(hf_fixture_number(redis, "DBSIZE"), 0);
}

/* ---- workers ---- */

static void put(unsigned from, unsigned n, const char *payload)
{
    for (unsigned i = from; i < from + n; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "j%u", i);
        hf_queue_fixture_put(&fixture, id, payload, 0);
    }
}

static void start(size_t i, const char *url, uint32_t history_ms)
{
    const hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .max_attempts = 3,
                                 .history_ms = history_ms};
    hf_worker_fixture_start(&workers[i], url, &opts, 0);
}

static void stop(size_t i)
{
    assert_int_equal(hf_worker_fixture_stop(&workers[i]), HF_OK);
}

/* How many the one worker has sent. */
static long long requests(void)
{
    return hf_fixture_number(
        redis, "EVAL %s 0",
        "return redis.call('GET', redis.call('KEYS', 'hf:{q}:past:@*')[1])");
}

/* Two workers, all kinds of ends. */
static void its_sums_are_the_counters(void **state)
{
    (void)state;
    go_before_the_end(50000);
    start(0, redis->url, 0);
    start(1, redis->url, 0);
    put(0, 300, "short");
    put(300, 40, "fail");
    put(340, 20, "dead");
    EVENTUALLY(SOON_MS, counter("done") == 300 && counter("failed") == 140);
    stop(0);
    stop(1);
    const seen *s = read_all();
    assert_int_equal(s->sums.done, counter("done"));
    assert_int_equal(s->sums.failed, counter("failed"));
    assert_int_equal(s->sums.dead, 60);
    assert_int_equal(hf_fixture_number(redis, "ZCARD hf:{q}:dead"), 60);
    assert_int_equal(total(s->sums.runs), 440);
    assert_int_equal(total(s->sums.waits), 440);
    assert_true(s->sums.run_ms >= 300); /* a ms each */
    assert_int_equal(s->done_in_steps, 300);
    assert_int_equal(s->n, 1);
    assert_string_equal(s->types[0], "t");
    assert_true(s->samples >= 1);
    assert_int_equal(s->last.ever_done, 300);
    assert_int_equal(s->last.ever_failed, 140);
    assert_int_equal(s->last.ever_enqueued, 360);
    assert_int_equal(s->last.dead_jobs, 60);
    assert_int_equal(read_of("q", HOUR_MS, "t")->sums.done, 300);
    assert_int_equal(read_of("q", HOUR_MS, "u")->sums.done, 0);
    assert_int_equal(read_of("q", 10 * HOUR_MS, NULL)->sums.done, 300);
}

/* One job, and its history is there: what ends then is no first end any more. */
static void serve_one(const char *url)
{
    start(0, url, 0);
    put(1000, 1, "ok");
    EVENTUALLY(SOON_MS, read_all()->sums.done == 1);
}

/* Long before the end of the minute. */
static void the_first_end_comes_within_seconds(void **state)
{
    (void)state;
    go_before_the_end(59000);
    serve_one(redis->url);
    assert_true(hf_queue_fixture_now(&fixture) % MINUTE_MS < 30000);
}

/* While it serves, not only when it stops. */
static void a_minute_comes_soon_after_its_end(void **state)
{
    (void)state;
    serve_one(redis->url);
    go_before_the_end(8000);
    put(0, 4, "ok");
    EVENTUALLY(SOON_MS, counter("done") == 5);
    const long long minute = now_minute();
    EVENTUALLY(SOON_MS, hf_queue_fixture_now(&fixture) > (minute + 1) * MINUTE_MS - 1000);
    assert_int_equal(read_all()->sums.done, 1);
    EVENTUALLY(SOON_MS, read_all()->sums.done == 5);
    const int64_t after = hf_queue_fixture_now(&fixture) - (minute + 1) * MINUTE_MS;
    assert_true(after >= 0 && after <= 10000);
    stop(0); /* nothing ended since: it sends nothing more */
    assert_int_equal(read_all()->sums.done, 5);
    assert_int_equal(requests(), 2);
}

static void off_means_nothing_is_kept(void **state)
{
    (void)state;
    start(0, redis->url, HF_HISTORY_NONE);
    put(0, 5, "ok");
    EVENTUALLY(SOON_MS, counter("done") == 5);
    stop(0);
    assert_string_equal(hf_fixture_command(redis, "KEYS hf:{q}:past:*"), "");
}

static void a_lost_answer_counts_nothing_twice(void **state)
{
    (void)state;
    go_before_the_end(50000);
    start(0, proxy.url, 0);
    hf_proxy_lose_answer(&proxy, hf_lua_queue_past.sha1);
    hf_proxy_skip(&proxy, 1); /* Redis does not know the script */
    put(0, 5, "ok");
    EVENTUALLY(SOON_MS, counter("done") == 5);
    EVENTUALLY(SOON_MS, read_all()->sums.done == 5);
    assert_int_equal(requests(), 1);
    put(5, 1, "ok");
    EVENTUALLY(SOON_MS, counter("done") == 6);
    stop(0); /* the first one is sent again before */
    assert_int_equal(read_all()->sums.done, 6);
}

/* Verdicts whose answers are lost are counted once, too. */
static void a_verdict_that_is_sent_again_counts_once(void **state)
{
    (void)state;
    start(0, proxy.url, 0);
    put(0, 1, "ok");
    EVENTUALLY(SOON_MS, counter("done") == 1);
    hf_proxy_lose_answer(&proxy, hf_lua_queue_complete.sha1);
    put(1, 4, "ok");
    EVENTUALLY(SOON_MS, counter("done") == 5 &&
                            hf_worker_fixture_said(&workers[0], "Redis is back") > 0);
    stop(0);
    assert_int_equal(read_all()->sums.done, 5);
}

/* It is kept, with its minute, until Redis is back. */
static void redis_may_be_away(void **state)
{
    (void)state;
    serve_one(proxy.url);
    go_before_the_end(4000);
    put(0, 4, "ok");
    EVENTUALLY(SOON_MS, counter("done") == 5);
    const long long minute = now_minute();
    hf_proxy_set(&proxy, PROXY_REQUESTS, PROXY_DROP);
    EVENTUALLY(SOON_MS, hf_queue_fixture_now(&fixture) > (minute + 1) * MINUTE_MS + 7000);
    assert_int_equal(read_all()->sums.done, 1);
    hf_proxy_set(&proxy, PROXY_REQUESTS, PROXY_PASS);
    EVENTUALLY(SOON_MS, read_all()->sums.done == 5);
}

/* The worker's estimate follows a moment later. */
static void steps_of_the_clock_lose_nothing(void **state)
{
    static const int64_t steps[] = {30 * MINUTE_MS, -20 * MINUTE_MS, 90 * MINUTE_MS,
                                    -5 * MINUTE_MS};
    (void)state;
    start(0, redis->url, 0);
    for (unsigned i = 0; i < HF_COUNT(steps); i++) {
        put(2 * i, 1, "ok");
        EVENTUALLY(SOON_MS, counter("done") == 2 * i + 1);
        hf_fixture_clock_jump(redis, steps[i]);
        put(2 * i + 1, 1, "ok");
        EVENTUALLY(SOON_MS, counter("done") == 2 * i + 2);
    }
    stop(0);
    assert_int_equal(read_of("q", 48 * HOUR_MS, NULL)->sums.done, 8);
}

static void a_reload_turns_it_off_and_on(void **state)
{
    (void)state;
    start(0, redis->url, 0);
    put(0, 3, "ok");
    EVENTUALLY(SOON_MS, read_all()->sums.done == 3);
    for (unsigned i = 0; i < 2; i++) {
        hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .max_attempts = 3,
                               .history_ms = i == 0 ? HF_HISTORY_NONE : HOUR_MS};
        const uint64_t before = hf_worker_reloads(workers[0].worker);
        hf_worker_fixture_fill(&workers[0], redis->url, &opts);
        assert_int_equal(
            hf_worker_reload(workers[0].worker, &opts, NULL, 0, NULL, 0, NULL), HF_OK);
        EVENTUALLY(SOON_MS, hf_worker_reloads(workers[0].worker) > before);
        for (unsigned k = 0; k < 2;
             k++) { /* before it sends one, it has settled the last */
            put(3 + 2 * i + k, 1, "ok");
            EVENTUALLY(SOON_MS, counter("done") == 4 + 2 * i + k);
        }
    }
    assert_int_equal(
        hf_worker_fixture_said(&workers[0], "changed key=history was=2d now=0"), 1);
    stop(0);
    assert_in_range(read_all()->sums.done, 5,
                    6); /* one of two was not counted, or both */
}

static hf_verdict sleep_a_while(hf_run *run, void *arg)
{
    (void)arg;
    hf_test_pause_ms((unsigned)strtoul(hf_run_payload(run, NULL), NULL, 10));
    return HF_VERDICT_DONE;
}

static void percentiles_are_those_of_the_runs(void **state)
{
    (void)state;
    hf_worker_fixture_start_handler(&workers[0], redis->url, 0, sleep_a_while, NULL);
    put(0, 40, "4");
    put(40, 10, "60");
    EVENTUALLY(SOON_MS, counter("done") == 50);
    stop(0);
    const seen *s = read_all();
    const double p50 = hf_history_percentile(s->sums.runs, 0.5);
    const double p99 = hf_history_percentile(s->sums.runs, 0.99);
    assert_true(p50 >= 3.3 && p99 >= 50 && p50 < p99);
}

/* ---- shards, gaps, names ---- */

static void shards_are_added_up(void **state)
{
    hf_shards shards;
    char key[HF_TEST_SHARD_KEY];
    (void)state;
    go_before_the_end(50000);
    hf_test_divide(redis, "wide", 3, &shards);
    for (unsigned i = 0; i < 3; i++) {
        (void)hf_test_shard_key(&shards, i, "", key);
        (void)hf_fixture_command(redis, "HSET %smeta enqueued %u", key, 100 * (i + 1));
        for (unsigned k = 0; k < 2 && i < 2; k++) /* the last one has none */
            (void)hf_fixture_command(redis, "EVAL %s 1 %s w %u %lld 3600000 t d=%u",
                                     (const char *)hf_lua_queue_past.text, key, k + 1,
                                     now_minute(), 10 * (i + 1));
    }
    const seen *s = read_of("wide", HOUR_MS, NULL);
    assert_int_equal(s->sums.done, 60);
    assert_int_equal(s->n, 1);
    assert_int_equal(s->samples, 1);
    assert_int_equal(s->last.ever_enqueued, 600);
}

static void minutes_without_an_end_are_gaps(void **state)
{
    (void)state;
    go_before_the_end(50000);
    (void)add("w", 1, now_minute(), HOUR_MS, "t", "d=1");
    hf_fixture_clock_jump(redis, 5 * MINUTE_MS);
    (void)add("w", 2, now_minute(), HOUR_MS, "t", "d=2");
    const seen *s = read_of("q", 9 * MINUTE_MS, NULL);
    assert_int_equal(s->steps, 10);
    assert_int_equal(s->samples, 2);
    assert_int_equal(s->sums.done, 3);
    assert_int_equal(s->span.length_ms, MINUTE_MS);
    s = read_of("q", 48 * HOUR_MS, NULL);
    assert_int_equal(s->span.length_ms, 10 * MINUTE_MS);
    assert_int_equal(s->steps, 289);
    assert_int_equal(s->sums.done, 3);
}

/* What it had counted before its history began, and what its first minute tells. */
static void the_counters_are_known_before_the_first_minute(void **state)
{
    (void)state;
    go_before_the_end(50000);
    (void)hf_fixture_command(redis, "HSET hf:{q}:meta done 1007 failed 53");
    (void)add("w", 1, now_minute(), HOUR_MS, "t", "d=4 f=3");
    (void)add("w", 2, now_minute(), HOUR_MS, "u", "d=3");
    (void)hf_fixture_command(redis, "HSET hf:{q}:meta done 1010");
    const seen *s = read_of("q", HOUR_MS, "*");
    assert_int_equal(s->span.ever_done, 1000);
    assert_int_equal(s->span.ever_failed, 50);
    assert_int_equal(s->samples, 1);
    assert_int_equal(s->last.ever_done, 1010); /* at once */
    assert_int_equal(read_of("other", HOUR_MS, NULL)->span.ever_done, 0);
}

/* By the scripts, at once, also where no attempt ends. */
static void crashes_and_late_verdicts_are_counted_at_once(void **state)
{
    (void)state;
    go_before_the_end(50000);
    (void)hf_queue_fixture_enqueue(&fixture, "j", 0);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 1000), 1);
    const long long fence = atoll(fixture.fence);
    hf_fixture_clock_jump(redis, 5 * MINUTE_MS);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "v", 1, 1000), 1);
    char old[32];
    (void)snprintf(old, sizeof old, "%lld", fence);
    assert_int_equal(hf_queue_fixture_complete(&fixture, "w", "j", old), HF_LOST);
    assert_int_equal(counter("crashed"), 1);
    assert_int_equal(counter("lost"), 1);
    const seen *s = read_of("q", HOUR_MS, "*");
    assert_int_equal(s->crashed, 1);
    assert_int_equal(s->lost, 1);
    assert_int_equal(s->last.crashed, 1);
    s = read_of("q", 10 * HOUR_MS, NULL);
    assert_int_equal(s->crashed, 1);
    assert_int_equal(s->lost, 1);
    assert_int_equal(s->n, 0);
    const long long minute = now_minute();
    for (unsigned i = 0; i < 70; i++) { /* they take no place of a type */
        char type[16];
        (void)snprintf(type, sizeof type, "t%02u", i);
        (void)add("w", i + 1, minute, HOUR_MS, type, "d=1 r3=1");
    }
    assert_int_equal(read_all()->n, 65);
    assert_true(hf_fixture_number(redis, "PTTL hf:{q}:past:%lld", minute) > 0);
    assert_true(hf_fixture_number(redis, "PTTL hf:{q}:past:t%lld", minute / 10) > 0);
    assert_int_equal(hf_queue_fixture_complete(&fixture, "v", "j", NULL), HF_OK);
}

/* Sums as long as they can be, in each of the last 50 minutes: 2.3 MB. */
static void large_minutes_are_read_in_pieces(void **state)
{
    static const char fill[] =
        "local sums = 'd=1' for _, k in ipairs({'r', 'w'}) do for n = 0, 45 do "
        "sums = sums .. ' ' .. k .. n .. '=1000' end end "
        "for m = ARGV[1] - 49, ARGV[1] do local key = KEYS[1] .. string.format('%d', m) "
        "for t = 1, 64 do redis.call('HSET', key, 't' .. t, sums) end "
        "redis.call('PEXPIRE', key, 3600000) end return 1";
    (void)state;
    go_before_the_end(30000);
    (void)hf_fixture_command(redis, "EVAL %s 1 hf:{q}:past: %lld", fill, now_minute());
    (void)hf_fixture_command(redis, "CONFIG RESETSTAT");
    assert_int_equal(read_all()->sums.done, 50 * 64);
    const long long requests = hf_fixture_calls(redis, "evalsha");
    assert_true(requests >= 9 && requests <= 12);
}

enum { MANY = 70 }; /* more than are sent together */

typedef struct each {
    size_t told, most;
    hf_err errs[MANY];
    char why[MANY][HF_DETAIL_SIZE];
} each;

static bool on_each(hf_err err, const hf_history_of *of, void *arg)
{
    each *e = arg;
    (void)of;
    e->errs[e->told] = err;
    memcpy(e->why[e->told], detail, sizeof detail);
    return ++e->told < e->most;
}

/* The first has shards, the second is longer than an answer, the third is no queue. */
static void many_are_read_at_once(void **state)
{
    enum { WIDE, LONG, WRONG, REST };
    static hf_history_opts opts[MANY];
    static hf_history_of of[MANY];
    static char names[MANY][16];
    static seen s[MANY];
    static each e;
    hf_shards shards;
    (void)state;
    e = (each){.most = MANY};
    go_before_the_end(50000);
    for (size_t i = 0; i < MANY; i++) {
        (void)snprintf(names[i], sizeof names[i], i == WRONG ? "a b" : "q%zu", i);
        s[i] = (seen){.span = {HF_HISTORY_SPAN_INIT}};
        opts[i] = (hf_history_opts){
            HF_HISTORY_OPTS_INIT,
            .since_ms = i == LONG    ? 3 * HOUR_MS
                        : i % 2 == 0 ? HOUR_MS
                                     : HOUR_MS / 2,
            .now_ms = hf_queue_fixture_now(&fixture),
            .on_type = on_type,
            .on_step = on_step,
            .arg = &s[i],
        };
        of[i] = (hf_history_of){names[i], &opts[i], &s[i].span};
        if (i >= REST)
            (void)hf_fixture_command(redis, "EVAL %s 1 hf:{%s}: w 1 %lld %lld t d=%d",
                                     (const char *)hf_lua_queue_past.text, names[i],
                                     now_minute(), (long long)HF_HISTORY_MAX_MS, (int)i);
    }
    hf_test_divide(redis, names[WIDE], 3, &shards);
    (void)read_all(); /* Redis knows the script now */
    (void)hf_fixture_command(redis, "CONFIG RESETSTAT");
    hf_admin_history_each(fixture.admin, of, MANY, on_each, &e, detail);
    assert_int_equal(e.told, MANY);
    /* 31 steps are one request, 61 two, 181 four; the first queue is asked in vain, then
     * its shards are read. */
    enum { HALF = 34, WHOLE = 33 };
    const long long requests = hf_fixture_calls(redis, "evalsha");
    assert_in_range(requests, HALF + 2 * WHOLE + 4 + 3 * 2 + 1,
                    HALF + 2 * WHOLE + 4 + 3 * 2 + 8);
    for (size_t i = 0; i < MANY; i++) {
        assert_int_equal(e.errs[i], i == WRONG ? HF_INVALID : HF_OK);
        assert_int_equal(s[i].done_in_steps, i >= REST ? (int64_t)i : 0);
        assert_int_equal(s[i].steps, i == WRONG   ? 0
                                     : i == LONG  ? 181
                                     : i % 2 == 0 ? 61
                                                  : 31);
    }
    assert_non_null(strstr(e.why[WRONG], "a b"));
    e = (each){.most = 2};
    s[WIDE] = s[LONG] = (seen){.span = {HF_HISTORY_SPAN_INIT}};
    hf_admin_history_each(fixture.admin, of, MANY, on_each, &e, detail);
    assert_int_equal(e.told, 2);
}

static void wrong_questions_are_refused(void **state)
{
    static const hf_history_opts bad[] = {
        {HF_HISTORY_OPTS_INIT, .since_ms = -1},
        {HF_HISTORY_OPTS_INIT, .since_ms = HF_HISTORY_MAX_MS + 1},
        {HF_HISTORY_OPTS_INIT, .type = ""},
        {HF_HISTORY_OPTS_INIT, .type = "a b"},
        {.size = 0, .since_ms = HOUR_MS},
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT(bad); i++)
        assert_int_equal(hf_admin_history(fixture.admin, "q", &bad[i], NULL, detail),
                         HF_INVALID);
    assert_int_equal(hf_admin_history(fixture.admin, "a b", NULL, NULL, detail),
                     HF_INVALID);
    assert_int_equal(hf_admin_history(fixture.admin, "q", NULL, NULL, detail), HF_OK);
}

/* ---- what belongs to a queue ---- */

static void it_goes_with_its_queue(void **state)
{
    (void)state;
    go_before_the_end(50000);
    (void)hf_fixture_command(redis, "SADD hf:{/}:queues q");
    (void)hf_fixture_command(redis, "HSET hf:{q}:meta enqueued 1");
    (void)add("w", 1, now_minute(), HF_HISTORY_MAX_MS, "t", "d=1");
    hf_fixture_clock_jump(redis, 179 * MINUTE_MS);
    (void)add("w", 2, now_minute(), HF_HISTORY_MAX_MS, "t", "d=1");
    assert_int_equal(hf_admin_remove(fixture.admin, "q", detail), HF_OK);
    assert_string_equal(hf_fixture_command(redis, "KEYS hf:{q}:past:[0-9t]*"), "");
}

static void on_finding(const hf_finding *finding, void *arg)
{
    char *text = arg;
    (void)snprintf(text, 256, "%s %s", finding->id, finding->text);
}

static void the_audit_knows_its_keys(void **state)
{
    char text[256] = "";
    size_t found = 1;
    const hf_audit_opts opts = {HF_AUDIT_OPTS_INIT, .fix = true, .cb = on_finding,
                                .arg = text};
    (void)state;
    (void)add("w", 1, now_minute(), HF_HISTORY_MAX_MS, "t", "d=1");
    assert_int_equal(hf_admin_audit(fixture.admin, "q", &opts, &found, detail), HF_OK);
    assert_int_equal(found, 0);
    (void)hf_fixture_command(redis, "PERSIST hf:{q}:past:%lld", now_minute());
    assert_int_equal(hf_admin_audit(fixture.admin, "q", &opts, &found, detail), HF_OK);
    assert_int_equal(found, 1);
    assert_non_null(strstr(text, "has no end"));
    (void)hf_fixture_command(redis, "SET hf:{q}:past:7 x");
    assert_int_equal(hf_admin_audit(fixture.admin, "q", &opts, &found, detail), HF_OK);
    assert_int_equal(found, 1);
    assert_non_null(strstr(text, "is a string, expected a hash"));
    (void)hf_fixture_command(redis, "DEL hf:{q}:past:7");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_request_that_comes_again_counts_once),
        CASE(what_is_no_history_is_refused),
        CASE(nine_types_are_too_many),
        CASE(types_beyond_64_are_added_up),
        CASE(sums_stay_numbers),
        CASE(minutes_end_after_3_hours_and_ten_minutes_after_48),
        CASE(keep_shortens_both),
        CASE(minutes_of_another_clock_count_as_this_one),
        CASE(a_full_redis_takes_no_history),
        CASE(its_sums_are_the_counters),
        CASE(the_first_end_comes_within_seconds),
        CASE(a_minute_comes_soon_after_its_end),
        CASE(off_means_nothing_is_kept),
        CASE(a_lost_answer_counts_nothing_twice),
        CASE(a_verdict_that_is_sent_again_counts_once),
        CASE(redis_may_be_away),
        CASE(steps_of_the_clock_lose_nothing),
        CASE(a_reload_turns_it_off_and_on),
        CASE(percentiles_are_those_of_the_runs),
        CASE(shards_are_added_up),
        CASE(minutes_without_an_end_are_gaps),
        CASE(the_counters_are_known_before_the_first_minute),
        CASE(crashes_and_late_verdicts_are_counted_at_once),
        CASE(large_minutes_are_read_in_pieces),
        CASE(many_are_read_at_once),
        CASE(wrong_questions_are_refused),
        CASE(it_goes_with_its_queue),
        CASE(the_audit_knows_its_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
