/* test_producer.c - every answer that holdfast/producer.h names, from a producer with a
 * thread of its own. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/admin.h"
#include "holdfast/producer.h"
#include "tests/support/admin.h"
#include "tests/support/eventually.h"
#include "tests/support/producer.h"
#include "tests/support/proxy.h"
#include "tests/support/redis_fixture.h"

enum { MANY = 1000, SOON_MS = 30000 };

static hf_fixture redis;
static hf_proxy proxy; /* before it, for those that name it */
static hf_producer *producer;
static char detail[HF_DETAIL_SIZE];

static int up(void **state)
{
    (void)state;
    hf_fixture_start(&redis, NULL);
    hf_proxy_start(&proxy, redis.socket);
    detail[0] = '\0';
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_producer_close(producer, NULL, NULL);
    producer = NULL;
    hf_test_audit(&redis, false);
    hf_proxy_stop(&proxy);
    hf_fixture_stop(&redis);
    return 0;
}

static void open_with(hf_producer_opts opts)
{
    producer = hf_test_producer(&redis, opts);
}

static hf_err put(const char *queue, const char *id, hf_enqueue_result *result)
{
    return hf_enqueue_wait(producer,
                           &(hf_job){HF_JOB_INIT, .queue = queue, .type = "t", .id = id,
                                     .payload = "p", .payload_len = 1},
                           1, result, 0, detail);
}

static long long redis_ms(void)
{
    char *end;
    const char *time = hf_fixture_command(&redis, "TIME");
    long long seconds = strtoll(time, &end, 10);
    return seconds * 1000 + strtoll(end, NULL, 10) / 1000;
}

/* The server refuses everything that writes, or does so no more. */
static void set_replica(bool replica)
{
    (void)hf_fixture_command(&redis,
                             replica ? "REPLICAOF 127.0.0.1 1" : "REPLICAOF NO ONE");
}

/* ---- accepted ---- */

static void accepted_jobs_are_in_redis_as_they_were_given(void **state)
{
    (void)state;
    hf_enqueue_result r[2] = {{HF_ENQUEUE_RESULT_INIT}};
    open_with((hf_producer_opts){HF_PRODUCER_OPTS_INIT, .server = HF_SERVER(.ns = "n")});
    const hf_job jobs[] = {
        {HF_JOB_INIT, .type = "one", .payload = "a\0b", .payload_len = 3,
         .max_attempts = 7},
        {HF_JOB_INIT, .queue = "q", .type = "two", .id = "given", .timeout_ms = 9}};
    assert_int_equal(hf_enqueue_wait(producer, jobs, 2, r, 0, detail), HF_OK);
    assert_int_equal(r[0].err, HF_OK);
    assert_int_equal(r[1].err, HF_OK);
    assert_int_equal(strlen(r[0].id), 14);
    assert_string_equal(r[1].id, "given");
    redisContext *c = hf_fixture_connect(&redis);
    redisReply *reply = redisCommand(c, "HGET n:{default}:jobs %s", r[0].id);
    assert_int_equal(reply->type, REDIS_REPLY_STRING);
    static const char record[] = "{\"type\":\"one\",\"max_attempts\":7}\na\0b";
    assert_int_equal(reply->len, sizeof record - 1);
    assert_memory_equal(reply->str, record, sizeof record - 1); /* its id says when */
    freeReplyObject(reply);
    redisFree(c);
    assert_int_equal(hf_fixture_number(&redis, "ZCARD n:{q}:schedule"), 1);
    assert_non_null(
        strstr(hf_fixture_command(&redis, "HGET n:{q}:jobs given"), "\"created\":"));
    assert_int_equal(hf_fixture_number(&redis, "SCARD n:{/}:queues"), 2);
    (void)hf_fixture_command(&redis, "FLUSHALL");
}

static void the_answer_tells_when_a_job_was_accepted(void **state)
{
    (void)state;
    hf_enqueue_result r = {HF_ENQUEUE_RESULT_INIT};
    open_with((hf_producer_opts){HF_PRODUCER_OPTS_INIT});
    long long before_ms = redis_ms();
    assert_int_equal(put("q", "x", &r), HF_OK);
    assert_true(r.accepted_ms >= before_ms && r.accepted_ms <= redis_ms());
    before_ms = redis_ms();
    assert_int_equal(put("q", "x", &r), HF_OK);
    assert_int_equal(r.err, HF_EXISTS);
    assert_true(r.accepted_ms >= before_ms);
}

static void a_known_id_exists_and_changes_nothing(void **state)
{
    (void)state;
    hf_enqueue_result r[4] = {{HF_ENQUEUE_RESULT_INIT}};
    open_with((hf_producer_opts){HF_PRODUCER_OPTS_INIT});
    assert_int_equal(put("q", "x", r), HF_OK);
    assert_int_equal(put("q", "x", r), HF_OK);
    assert_int_equal(r[0].err, HF_EXISTS);
    const hf_job jobs[] = {
        {HF_JOB_INIT, .queue = "q", .type = "t", .id = "y", .at_ms = 5},
        {HF_JOB_INIT, .queue = "q", .type = "t", .id = "x"},
        {HF_JOB_INIT, .queue = "q", .type = "t", .id = "y", .at_ms = 6},
        {HF_JOB_INIT, .queue = "q", .type = "t", .id = "z"}};
    assert_int_equal(hf_enqueue_wait(producer, jobs, 4, r, 0, detail), HF_OK);
    assert_int_equal(r[0].err, HF_OK);
    assert_int_equal(r[1].err, HF_EXISTS);
    assert_int_equal(r[2].err, HF_EXISTS);
    assert_int_equal(r[3].err, HF_OK);
    assert_int_equal(hf_fixture_number(&redis, "ZSCORE hf:{q}:schedule y"), 5);
    assert_int_equal(hf_fixture_number(&redis, "ZCARD hf:{q}:schedule"), 3);
    (void)hf_fixture_command(&redis, "ZREM hf:{q}:schedule z");
    (void)hf_fixture_command(&redis, "ZADD hf:{q}:dead %s z", "9999999999999");
    assert_int_equal(put("q", "z", r), HF_OK);
    assert_int_equal(r[0].err, HF_EXISTS);
}

static void made_ids_rise_in_the_order_of_the_jobs(void **state)
{
    (void)state;
    static hf_job jobs[MANY];
    static hf_enqueue_result r[MANY] = {{HF_ENQUEUE_RESULT_INIT}};
    open_with((hf_producer_opts){HF_PRODUCER_OPTS_INIT});
    for (size_t i = 0; i < MANY; i++)
        jobs[i] = (hf_job){HF_JOB_INIT, .queue = i % 3 == 0 ? "a" : "b", .type = "t"};
    assert_int_equal(hf_enqueue_wait(producer, jobs, MANY, r, 0, detail), HF_OK);
    for (size_t i = 3; i < MANY; i++) /* of one queue; each queue is a batch of its own */
        assert_true(strcmp(r[i - 3].id, r[i].id) < 0);
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(r[i].err, HF_OK);
    assert_int_equal(hf_fixture_number(&redis, "ZCARD hf:{a}:schedule"), 334);
    assert_int_equal(hf_fixture_number(&redis, "ZCARD hf:{b}:schedule"), 666);
}

/* The time that passes before Redis gets the job is not added to its delay. */
static void a_delay_counts_from_the_call(void **state)
{
    (void)state;
    hf_proxy_refuse(&proxy, true);
    open_with(
        (hf_producer_opts){HF_PRODUCER_OPTS_INIT, .server = HF_SERVER(.url = proxy.url)});
    const hf_job job = {HF_JOB_INIT, .queue = "q",   .type = "t",
                        .id = "x",   .payload = "p", .delay_ms = 60000};
    long long before = redis_ms();
    assert_int_equal(hf_enqueue(producer, &job, NULL, NULL, NULL), HF_OK);
    long long asked = redis_ms();
    EVENTUALLY(SOON_MS, redis_ms() > asked + 3000);
    hf_proxy_refuse(&proxy, false);
    EVENTUALLY(SOON_MS, hf_fixture_number(&redis, "ZCARD hf:{q}:schedule") == 1);
    long long due = hf_fixture_number(&redis, "ZSCORE hf:{q}:schedule x");
    assert_in_range(due, before + 60000 - 5, asked + 60000 + 2500);
}

static void a_delay_does_not_grow_when_the_request_is_sent_again(void **state)
{
    (void)state;
    open_with(
        (hf_producer_opts){HF_PRODUCER_OPTS_INIT, .server = HF_SERVER(.url = proxy.url)});
    assert_int_equal(put("q", "first", NULL), HF_OK);
    hf_proxy_set(&proxy, PROXY_REQUESTS, PROXY_DROP);
    const hf_job job = {HF_JOB_INIT, .queue = "q", .type = "t", .id = "x",
                        .delay_ms = 60000};
    long long asked = redis_ms();
    assert_int_equal(hf_enqueue(producer, &job, NULL, NULL, NULL), HF_OK);
    EVENTUALLY(SOON_MS, redis_ms() > asked + 3000);
    hf_proxy_set(&proxy, PROXY_REQUESTS, PROXY_PASS);
    hf_proxy_close_all(&proxy);
    EVENTUALLY(SOON_MS, hf_fixture_number(&redis, "ZCARD hf:{q}:schedule") == 2);
    long long due = hf_fixture_number(&redis, "ZSCORE hf:{q}:schedule x");
    assert_in_range(due, asked + 60000 - 5, asked + 60000 + 2500);
}

/* ---- refused ---- */

static void is_no_job(const char *says, hf_job job)
{
    job.size = sizeof job;
    detail[0] = '\0';
    assert_int_equal(hf_job_check(&job, detail), HF_INVALID);
    assert_string_equal(detail, says);
}

static void a_job_is_checked_without_a_producer(void **state)
{
    (void)state;
    assert_int_equal(
        hf_job_check(&(hf_job){HF_JOB_INIT, .type = "t", .unique = "k"}, NULL), HF_OK);
    is_no_job("the type is missing", (hf_job){.queue = "q"});
    is_no_job("on_conflict needs a unique key",
              (hf_job){.type = "t", .on_conflict = HF_ON_CONFLICT_NEXT});
    is_no_job("debounce needs a unique key",
              (hf_job){.type = "t", .debounce_ms = 1, .max_wait_ms = 1});
    is_no_job("debounce needs max_wait",
              (hf_job){.type = "t", .unique = "k", .debounce_ms = 1});
    is_no_job("max_wait needs debounce",
              (hf_job){.type = "t", .unique = "k", .max_wait_ms = 1});
    is_no_job("expected no unique_until with debounce, found one",
              (hf_job){.type = "t",
                       .unique = "k",
                       .debounce_ms = 1,
                       .max_wait_ms = 1,
                       .unique_until = HF_UNIQUE_UNTIL_START});
    is_no_job(
        "expected no delay and no time with debounce, found one",
        (hf_job){
            .type = "t", .unique = "k", .debounce_ms = 1, .max_wait_ms = 1, .at_ms = 1});
    is_no_job("expected no unique_for with throttle, found one",
              (hf_job){.type = "t", .unique = "k", .throttle_ms = 1, .unique_for_ms = 1});
    is_no_job("expected no on_conflict but skip and next with throttle, found one",
              (hf_job){.type = "t",
                       .unique = "k",
                       .throttle_ms = 1,
                       .on_conflict = HF_ON_CONFLICT_REPLACE});
}

static void refuse(hf_err expected, const char *says, const hf_job *jobs, size_t n)
{
    detail[0] = '\0';
    assert_int_equal(hf_enqueue_wait(producer, jobs, n, NULL, 0, detail), expected);
    if (strstr(detail, says) == NULL)
        fail_msg("expected `%s`, found `%s`", says, detail);
}

static void what_is_wrong_is_named_and_nothing_is_taken(void **state)
{
    (void)state;
    open_with(
        (hf_producer_opts){HF_PRODUCER_OPTS_INIT, .payload_max = 10, .buffer_jobs = 20});
    hf_job jobs[21] = {{HF_JOB_INIT, .type = "t"},
                       {HF_JOB_INIT, .type = "t"},
                       {HF_JOB_INIT, .type = "t"}};
    for (size_t i = 3; i < 21; i++)
        jobs[i] = jobs[0];
    jobs[1].type = NULL;
    refuse(HF_INVALID, "job 1: the type is missing", jobs, 3);
    jobs[1].type = "no good";
    refuse(HF_INVALID, "job 1: expected as its type", jobs, 3);
    jobs[1] = (hf_job){HF_JOB_INIT, .type = "t", .queue = "{x}"};
    refuse(HF_INVALID, "found '{x}'", jobs, 3);
    jobs[1] = (hf_job){HF_JOB_INIT, .type = "t", .id = ""};
    refuse(HF_INVALID, "job 1: expected as its id", jobs, 3);
    jobs[1] = (hf_job){HF_JOB_INIT, .type = "t", .delay_ms = 1, .at_ms = 1};
    refuse(HF_INVALID, "delay_ms or at_ms, found both", jobs, 3);
    jobs[1] = (hf_job){HF_JOB_INIT, .type = "t", .delay_ms = -1};
    refuse(HF_INVALID, "found -1", jobs, 3);
    jobs[1] = (hf_job){HF_JOB_INIT, .type = "t", .delay_ms = HF_DELAY_MAX_MS + 1};
    refuse(HF_INVALID, "a delay_ms of 0..3155760000000", jobs, 3);
    jobs[1] = (hf_job){HF_JOB_INIT, .type = "t", .at_ms = HF_TIME_MAX_MS + 1};
    refuse(HF_INVALID, "an at_ms of 0..253402300799999", jobs, 3);
    jobs[1] = (hf_job){HF_JOB_INIT, .type = "t", .at_ms = INT64_MAX};
    refuse(HF_INVALID, "an at_ms of 0..", jobs, 3);
    jobs[1] = (hf_job){HF_JOB_INIT, .type = "t", .payload_len = 3};
    refuse(HF_INVALID, "3 bytes of payload, found NULL", jobs, 3);
    jobs[1] =
        (hf_job){HF_JOB_INIT, .type = "t", .payload = "01234567890", .payload_len = 11};
    refuse(HF_TOOBIG, "job 1: expected at most 10 bytes of payload, found 11", jobs, 3);
    refuse(HF_INVALID, "found none", jobs, 0);
    refuse(HF_TOOBIG, "at most 10000 jobs, found 10001", jobs, 10001);
    refuse(HF_TOOBIG, "the buffer's 20 jobs, found 21", jobs, 21);
    assert_int_equal(hf_enqueue(producer, &jobs[1], NULL, NULL, detail), HF_TOOBIG);
    assert_non_null(strstr(detail, "bytes of payload"));
    assert_int_equal(put("q", "x", NULL), HF_OK);
    assert_string_equal(hf_fixture_command(&redis, "SMEMBERS hf:{/}:queues"), "q\n");
}

static void a_call_over_the_bytes_of_a_batch_is_refused_whole(void **state)
{
    (void)state;
    enum { BIG = 1 << 20 };
    static hf_job jobs[65];
    char *payload = calloc(1, BIG);
    open_with((hf_producer_opts){HF_PRODUCER_OPTS_INIT, .buffer_bytes = 256 << 20,
                                 .deadline_ms = 300000});
    for (size_t i = 0; i < 65; i++)
        jobs[i] = (hf_job){HF_JOB_INIT, .queue = "q", .type = "t", .payload = payload,
                           .payload_len = BIG};
    refuse(HF_TOOBIG, "bytes of jobs in one call", jobs, 65);
    assert_int_equal(hf_enqueue_wait(producer, jobs, 63, NULL, 300000, detail), HF_OK);
    assert_int_equal(hf_fixture_number(&redis, "ZCARD hf:{q}:schedule"), 63);
    free(payload);
}

static void bad_options_are_named(void **state)
{
    (void)state;
    hf_producer *p = NULL;
    const hf_producer_opts bad[] = {
        {HF_PRODUCER_OPTS_INIT, .server = HF_SERVER(.ns = "a b")},
        {HF_PRODUCER_OPTS_INIT, .run = "{}"},
        {HF_PRODUCER_OPTS_INIT, .deadline_ms = 600001},
        {HF_PRODUCER_OPTS_INIT, .payload_max = HF_PAYLOAD_CEILING + 1},
        {HF_PRODUCER_OPTS_INIT, .remember_ms = -1},
        {HF_PRODUCER_OPTS_INIT, .server = HF_SERVER(.url = "http://x")},
        {HF_PRODUCER_OPTS_INIT, .server = HF_SERVER(.password_file = "/nowhere/at/all")}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        detail[0] = '\0';
        assert_int_not_equal(hf_producer_open(&p, &bad[i], detail), HF_OK);
        assert_true(strlen(detail) > 10);
        assert_null(p);
    }
}

/* A call that does not fit is refused at once and leaves no trace; what is answered makes
 * room again. */
static void a_full_buffer_says_so_at_once(void **state)
{
    (void)state;
    open_with((hf_producer_opts){HF_PRODUCER_OPTS_INIT, .buffer_jobs = 10,
                                 .deadline_ms = 20000});
    assert_int_equal(put("q", "first", NULL), HF_OK);
    hf_fixture_signal(&redis, SIGSTOP);
    const hf_job job = {HF_JOB_INIT, .queue = "q", .type = "t"};
    const hf_job many[4] = {job, job, job, {HF_JOB_INIT, .queue = "other", .type = "t"}};
    for (int i = 0; i < 7; i++)
        assert_int_equal(hf_enqueue(producer, &job, NULL, NULL, NULL), HF_OK);
    uint64_t before = hf_test_fair_ms();
    assert_int_equal(hf_enqueue_wait(producer, many, 4, NULL, 0, detail), HF_FULL);
    for (int i = 0; i < 3; i++)
        assert_int_equal(hf_enqueue(producer, &job, NULL, NULL, NULL), HF_OK);
    assert_int_equal(hf_enqueue(producer, &job, NULL, NULL, NULL), HF_FULL);
    assert_true(hf_test_fair_ms() - before < 6000);
    hf_fixture_signal(&redis, SIGCONT);
    EVENTUALLY(SOON_MS, hf_fixture_number(&redis, "ZCARD hf:{q}:schedule") == 11);
    EVENTUALLY(SOON_MS, hf_enqueue_wait(producer, many, 4, NULL, 0, detail) == HF_OK);
}

static void a_buffer_is_also_full_by_bytes(void **state)
{
    (void)state;
    static char payload[6000];
    open_with((hf_producer_opts){HF_PRODUCER_OPTS_INIT, .buffer_bytes = 10000,
                                 .deadline_ms = 20000});
    hf_job job = {HF_JOB_INIT, .queue = "q", .type = "t", .payload = payload,
                  .payload_len = 6000};
    assert_int_equal(hf_enqueue_wait(producer, &job, 1, NULL, 0, detail), HF_OK);
    hf_fixture_signal(&redis, SIGSTOP);
    assert_int_equal(hf_enqueue(producer, &job, NULL, NULL, NULL), HF_OK);
    assert_int_equal(hf_enqueue(producer, &job, NULL, NULL, detail), HF_FULL);
    assert_string_equal(detail, hf_err_text(HF_FULL));
    job.payload_len = 100;
    assert_int_equal(hf_enqueue(producer, &job, NULL, NULL, NULL), HF_OK);
    hf_fixture_signal(&redis, SIGCONT);
    EVENTUALLY(SOON_MS, hf_fixture_number(&redis, "ZCARD hf:{q}:schedule") == 3);
}

/* ---- Redis does not answer ---- */

static void without_a_server_a_call_times_out(void **state)
{
    (void)state;
    hf_enqueue_result r = {HF_ENQUEUE_RESULT_INIT};
    open_with((hf_producer_opts){HF_PRODUCER_OPTS_INIT,
                                 .server = HF_SERVER(.url = "unix:///nowhere/at/all"),
                                 .deadline_ms = 3000});
    uint64_t before = hf_test_now_ms();
    assert_int_equal(put("q", "x", &r), HF_TIMEOUT);
    assert_true(hf_test_now_ms() - before >= 2990);
    assert_int_equal(r.err, HF_TIMEOUT);
    assert_non_null(strstr(detail, "Redis cannot be reached: "));
    before = hf_test_fair_ms();
    const hf_job job = {HF_JOB_INIT, .type = "t"};
    assert_int_equal(hf_enqueue_wait(producer, &job, 1, NULL, 20, detail), HF_TIMEOUT);
    assert_true(hf_test_fair_ms() - before < 1000);
}

static void a_wrong_password_is_told_at_once(void **state)
{
    (void)state;
    hf_fixture locked;
    hf_fixture_start(&locked, &(hf_fixture_options){.password = "right"});
    char url[256];
    (void)snprintf(url, sizeof url, "unix://:wrong@%s", locked.socket);
    open_with((hf_producer_opts){HF_PRODUCER_OPTS_INIT, .server = HF_SERVER(.url = url),
                                 .deadline_ms = 20000});
    uint64_t before = hf_test_fair_ms();
    assert_int_equal(put("q", "x", NULL), HF_AUTH);
    assert_int_equal(put("q", "x", NULL), HF_AUTH);
    assert_true(hf_test_fair_ms() - before < 6000);
    assert_null(strstr(detail, "wrong:"));
    hf_fixture_stop(&locked);
}

/* The request was sent, so it may have been executed. It is not: it carries the end of
 * its call, and the server does nothing later than that. */
static void a_silent_server_leaves_a_call_unsure(void **state)
{
    (void)state;
    hf_enqueue_result r = {HF_ENQUEUE_RESULT_INIT};
    open_with((hf_producer_opts){HF_PRODUCER_OPTS_INIT, .deadline_ms = 2000});
    assert_int_equal(put("q", "a", &r), HF_OK);
    hf_fixture_signal(&redis, SIGSTOP);
    assert_int_equal(put("q", "b", &r), HF_UNSURE);
    assert_int_equal(r.err, HF_UNSURE);
    assert_string_equal(r.id, "b");
    hf_fixture_signal(&redis, SIGCONT);
    EVENTUALLY(SOON_MS, put("q", "c", &r) == HF_OK);
    assert_int_equal(r.err, HF_OK);
    assert_string_equal(hf_fixture_command(&redis, "ZSCORE hf:{q}:schedule b"), "(nil)");
}

static void a_server_that_comes_back_in_time_executes_once(void **state)
{
    (void)state;
    hf_enqueue_result r = {HF_ENQUEUE_RESULT_INIT};
    open_with(
        (hf_producer_opts){HF_PRODUCER_OPTS_INIT, .server = HF_SERVER(.url = proxy.url)});
    const char *sha;
    (void)hf_enqueue_script(NULL, &sha);
    for (int i = 0; i < 5; i++) {
        char id[8];
        (void)snprintf(id, sizeof id, "x%d", i);
        hf_proxy_lose_answer(&proxy, sha);
        assert_int_equal(put("q", id, &r), HF_OK);
        assert_int_equal(r.err, HF_OK); /* not HF_EXISTS: its own first sending did it */
    }
    assert_int_equal(hf_proxy_cuts(&proxy), 5);
    assert_int_equal(hf_fixture_number(&redis, "HGET hf:{q}:meta enqueued"), 5);
}

/* An error that is answered is no answer that is lost, but the two can look alike from
 * here: the first request was refused, the second executed, and neither answer came. */
static void a_request_refused_and_overtaken_is_not_taken_for_executed(void **state)
{
    (void)state;
    open_with(
        (hf_producer_opts){HF_PRODUCER_OPTS_INIT, .server = HF_SERVER(.url = proxy.url)});
    assert_int_equal(put("q", "zero", NULL), HF_OK);
    size_t len;
    const char *script = hf_enqueue_script(&len, NULL);
    hf_proxy_set(&proxy, PROXY_ANSWERS, PROXY_HOLD);

    (void)hf_fixture_command(&redis, "SCRIPT FLUSH");
    hf_job job = {HF_JOB_INIT, .queue = "q", .type = "t", .id = "refused"};
    assert_int_equal(hf_enqueue(producer, &job, NULL, NULL, NULL), HF_OK);
    EVENTUALLY(SOON_MS, hf_fixture_number(&redis, "EXISTS hf:{q}:schedule") == 1 &&
                            strstr(hf_fixture_command(&redis, "INFO errorstats"),
                                   "errorstat_NOSCRIPT:count=3") != NULL);
    (void)hf_fixture_command(&redis, "SCRIPT LOAD %b", script, len);
    job.id = "executed";
    assert_int_equal(hf_enqueue(producer, &job, NULL, NULL, NULL), HF_OK);
    EVENTUALLY(SOON_MS, hf_fixture_number(&redis, "ZCARD hf:{q}:schedule") == 2);

    hf_proxy_close_all(&proxy);
    hf_proxy_set(&proxy, PROXY_ANSWERS, PROXY_PASS);
    assert_int_equal(put("q", "last", NULL), HF_OK);
    assert_int_equal(hf_fixture_number(&redis, "ZCARD hf:{q}:schedule"), 4);
    assert_int_equal(hf_fixture_number(&redis, "HGET hf:{q}:meta enqueued"), 4);
}

/* ---- Redis refuses ---- */

static void a_full_redis_refuses_all_jobs_of_a_call(void **state)
{
    (void)state;
    static char payload[4096];
    static hf_job jobs[MANY];
    static hf_enqueue_result r[MANY] = {{HF_ENQUEUE_RESULT_INIT}};
    open_with((hf_producer_opts){HF_PRODUCER_OPTS_INIT, .deadline_ms = 20000});
    for (size_t i = 0; i < MANY; i++)
        jobs[i] = (hf_job){HF_JOB_INIT, .queue = "q", .type = "t", .payload = payload,
                           .payload_len = 4096};
    assert_int_equal(put("q", "x", NULL), HF_OK);
    (void)hf_fixture_command(&redis, "CONFIG SET maxmemory 1mb");
    uint64_t before = hf_test_fair_ms();
    assert_int_equal(hf_enqueue_wait(producer, jobs, MANY, r, 0, detail), HF_OOM);
    assert_true(hf_test_fair_ms() - before < 6000);
    assert_int_equal(r[0].err, HF_OOM);
    assert_int_equal(r[MANY - 1].err, HF_OOM);
    (void)hf_fixture_command(&redis, "CONFIG SET maxmemory 0");
    assert_int_equal(hf_fixture_number(&redis, "ZCARD hf:{q}:schedule"), 1);
    assert_int_equal(hf_enqueue_wait(producer, jobs, MANY, r, 0, detail), HF_OK);
    assert_int_equal(hf_fixture_number(&redis, "HLEN hf:{q}:jobs"), MANY + 1);
}

static void a_flushed_script_is_sent_again(void **state)
{
    (void)state;
    open_with((hf_producer_opts){HF_PRODUCER_OPTS_INIT});
    for (int i = 0; i < 20; i++) {
        (void)hf_fixture_command(&redis, "SCRIPT FLUSH");
        assert_int_equal(put("q", NULL, NULL), HF_OK);
    }
    assert_int_equal(hf_fixture_number(&redis, "ZCARD hf:{q}:schedule"), 20);
}

static void a_refusal_that_passes_is_waited_out(void **state)
{
    (void)state;
    open_with((hf_producer_opts){HF_PRODUCER_OPTS_INIT});
    assert_int_equal(put("q", NULL, NULL), HF_OK);
    set_replica(true);
    long long before = hf_fixture_calls(&redis, "evalsha");
    const hf_job job = {HF_JOB_INIT, .queue = "q", .type = "t"};
    assert_int_equal(hf_enqueue(producer, &job, NULL, NULL, NULL), HF_OK);
    EVENTUALLY(SOON_MS, hf_fixture_calls(&redis, "evalsha") > before);
    set_replica(false);
    EVENTUALLY(SOON_MS, hf_fixture_number(&redis, "ZCARD hf:{q}:schedule") == 2);
}

static void a_refusal_that_stays_is_the_answer(void **state)
{
    (void)state;
    hf_enqueue_result r = {HF_ENQUEUE_RESULT_INIT};
    open_with((hf_producer_opts){HF_PRODUCER_OPTS_INIT, .deadline_ms = 2000});
    assert_int_equal(put("q", NULL, NULL), HF_OK);
    set_replica(true);
    uint64_t before = hf_test_now_ms();
    assert_int_equal(put("q", NULL, &r), HF_READONLY);
    assert_true(hf_test_now_ms() - before >= 1990);
    assert_int_equal(r.err, HF_READONLY);
    assert_non_null(strstr(detail, "READONLY"));
    set_replica(false);
    assert_int_equal(put("q", NULL, &r), HF_OK);
}

/* Redis's time is asked for before anything is sent. */
static void a_first_request_also_carries_its_end(void **state)
{
    (void)state;
    size_t len;
    const char *script = hf_enqueue_script(&len, NULL);
    (void)hf_fixture_command(&redis, "SCRIPT LOAD %b", script, len);
    open_with((hf_producer_opts){HF_PRODUCER_OPTS_INIT,
                                 .server = HF_SERVER(.url = proxy.url),
                                 .deadline_ms = 1500});
    EVENTUALLY(SOON_MS, strstr(hf_fixture_command(&redis, "INFO commandstats"),
                               "cmdstat_time:") != NULL);
    hf_proxy_set(&proxy, PROXY_REQUESTS, PROXY_HOLD);
    assert_int_equal(put("q", "x", NULL), HF_UNSURE);
    hf_proxy_set(&proxy, PROXY_REQUESTS, PROXY_PASS);
    EVENTUALLY(SOON_MS, put("q", "y", NULL) == HF_OK);
    assert_string_equal(hf_fixture_command(&redis, "ZSCORE hf:{q}:schedule x"), "(nil)");
}

static void a_lost_registry_is_written_again_by_the_next_server(void **state)
{
    (void)state;
    open_with((hf_producer_opts){HF_PRODUCER_OPTS_INIT});
    assert_int_equal(put("q", NULL, NULL), HF_OK);
    hf_fixture_kill(&redis, SIGKILL);
    hf_fixture_restart(&redis);
    EVENTUALLY(SOON_MS, put("q", NULL, NULL) == HF_OK);
    assert_int_equal(hf_fixture_number(&redis, "SISMEMBER hf:{/}:queues q"), 1);
}

/* ---- what Redis remembers ---- */

static long long memories(void)
{
    long long n = 0;
    const char *keys = hf_fixture_command(&redis, "KEYS hf:{*}:seen:*");
    for (; (keys = strchr(keys, '\n')) != NULL; keys++)
        n++;
    return n;
}

static void a_clean_close_is_forgotten(void **state)
{
    (void)state;
    open_with((hf_producer_opts){HF_PRODUCER_OPTS_INIT});
    for (int i = 0; i < 200; i++) {
        char queue[8];
        (void)snprintf(queue, sizeof queue, "q%d", i);
        assert_int_equal(put(queue, NULL, NULL), HF_OK);
    }
    assert_int_equal(memories(), 200);
    hf_producer_close(producer, NULL, NULL);
    producer = NULL;
    assert_int_equal(memories(), 0);
}

/* A request that was lost may still be executed: then its number must be known. */
static void a_close_after_a_lost_answer_is_not_forgotten(void **state)
{
    (void)state;
    open_with((hf_producer_opts){HF_PRODUCER_OPTS_INIT,
                                 .server = HF_SERVER(.url = proxy.url),
                                 .deadline_ms = 10000});
    const char *sha;
    (void)hf_enqueue_script(NULL, &sha);
    hf_proxy_lose_answer(&proxy, sha);
    assert_int_equal(put("q", NULL, NULL), HF_OK);
    hf_producer_close(producer, NULL, NULL);
    producer = NULL;
    assert_int_equal(memories(), 1);
    const char *keys = hf_fixture_command(&redis, "KEYS hf:{*}:seen:*");
    char key[128];
    (void)snprintf(key, sizeof key, "%.*s", (int)strcspn(keys, "\n"), keys);
    assert_in_range(hf_fixture_number(&redis, "PTTL %s", key), 5000, 20000);
}

/* Each number is known by itself, whatever came after it. */
static void a_number_below_the_highest_is_executed_once(void **state)
{
    (void)state;
    static const struct {
        const char *number;
        long long repeated;
    } sent[] = {{"40", 0},  {"42", 0},  {"41", 0},  {"41", 1},  {"40", 1},
                {"42", 1},  {"11", 0},  {"11", 1},  {"10", 1},  {"73", 0},
                {"42", 1},  {"43", 0},  {"43", 1},  {"41", 1},  {"73", 1},
                {"300", 0}, {"300", 1}, {"269", 0}, {"269", 1}, {"268", 1}};
    size_t len;
    const char *script = hf_enqueue_script(&len, NULL);
    long long executed = 0;
    for (size_t i = 0; i < sizeof sent / sizeof sent[0]; i++) {
        char id[8];
        (void)snprintf(id, sizeof id, "j%zu", i);
        const char *answer =
            hf_fixture_command(&redis,
                               "EVAL %b 1 hf:{q}: me %s 0 60000 0 %s 0 "
                               "{\"v\":1,\"type\":\"t\",\"created\":1}\n",
                               script, len, sent[i].number, id);
        /* {OK, now, repeated, codes} */
        const char *repeated = strchr(strchr(answer, '\n') + 1, '\n') + 1;
        if (strtoll(repeated, NULL, 10) != sent[i].repeated)
            fail_msg("number %s, place %zu: %s", sent[i].number, i, answer);
        executed += 1 - sent[i].repeated;
    }
    assert_int_equal(hf_fixture_number(&redis, "HLEN hf:{q}:jobs"), executed);
    (void)hf_fixture_command(&redis, "FLUSHALL");
}

/* ---- numbered requests ---- */

static void a_numbered_request_is_executed_once_in_the_life_of_a_run(void **state)
{
    (void)state;
    hf_enqueue_result first[3] = {{HF_ENQUEUE_RESULT_INIT}},
                      again[3] = {{HF_ENQUEUE_RESULT_INIT}};
    const hf_job jobs[3] = {{HF_JOB_INIT, .queue = "q", .type = "t"},
                            {HF_JOB_INIT, .queue = "q", .type = "t", .id = "own"},
                            {HF_JOB_INIT, .queue = "q", .type = "t"}};
    for (int life = 0; life < 2; life++) {
        hf_enqueue_result *r = life == 0 ? first : again;
        open_with((hf_producer_opts){HF_PRODUCER_OPTS_INIT, .run = "nightly",
                                     .remember_ms = 3600000});
        assert_string_equal(hf_producer_id(producer), "nightly");
        for (uint64_t n = 1; n <= 40; n++)
            assert_int_equal(hf_enqueue_numbered(producer, jobs, 3, n, 10 * n, r, detail),
                             HF_OK);
        hf_producer_close(producer, NULL, NULL);
        producer = NULL;
        if (life == 0) { /* everything ran meanwhile */
            assert_int_equal(hf_fixture_number(&redis, "ZCARD hf:{q}:schedule"), 81);
            (void)hf_fixture_command(&redis, "DEL hf:{q}:schedule hf:{q}:jobs");
        }
    }
    assert_int_equal(hf_fixture_number(&redis, "EXISTS hf:{q}:schedule"), 0);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(again[i].err, HF_OK);
        assert_string_equal(first[i].id, again[i].id);
    }
    assert_string_equal(first[1].id, "own");
    assert_int_equal(memories(), 1);
    (void)hf_fixture_command(&redis, "FLUSHALL");
}

static void numbers_must_not_fall_nor_pass_one_that_failed(void **state)
{
    (void)state;
    const hf_job jobs[2] = {{HF_JOB_INIT, .queue = "q", .type = "t"},
                            {HF_JOB_INIT, .queue = "r", .type = "t"}};
    open_with(
        (hf_producer_opts){HF_PRODUCER_OPTS_INIT, .run = "r1", .deadline_ms = 2000});
    assert_int_equal(hf_enqueue_numbered(producer, jobs, 2, 1, 0, NULL, detail),
                     HF_INVALID);
    assert_int_equal(hf_enqueue_numbered(producer, jobs, 1, 0, 0, NULL, detail),
                     HF_INVALID);
    assert_int_equal(hf_enqueue_numbered(producer, jobs, 1, 5, 0, NULL, detail), HF_OK);
    assert_int_equal(hf_enqueue_numbered(producer, jobs, 1, 4, 0, NULL, detail),
                     HF_INVALID);
    assert_int_equal(put("q", NULL, NULL), HF_INVALID);
    assert_int_equal(hf_enqueue(producer, jobs, NULL, NULL, detail), HF_INVALID);
    assert_non_null(strstr(detail, "calls with numbers"));
    set_replica(true);
    assert_int_equal(hf_enqueue_numbered(producer, jobs, 1, 6, 1, NULL, detail),
                     HF_READONLY);
    set_replica(false);
    assert_int_equal(hf_enqueue_numbered(producer, jobs, 1, 7, 2, NULL, detail),
                     HF_INVALID);
    assert_non_null(strstr(detail, "expected number 6"));
    assert_int_equal(hf_enqueue_numbered(producer, jobs + 1, 1, 7, 2, NULL, detail),
                     HF_OK);
    assert_int_equal(hf_enqueue_numbered(producer, jobs, 1, 6, 1, NULL, detail), HF_OK);
    assert_int_equal(hf_enqueue_numbered(producer, jobs, 1, 8, 3, NULL, detail), HF_OK);
    assert_int_equal(hf_fixture_number(&redis, "ZCARD hf:{q}:schedule"), 3);
}

static void a_producer_keeps_to_one_kind_of_numbers(void **state)
{
    (void)state;
    const hf_job job = {HF_JOB_INIT, .queue = "q", .type = "t"};
    open_with((hf_producer_opts){HF_PRODUCER_OPTS_INIT});
    assert_int_equal(put("q", NULL, NULL), HF_OK);
    assert_int_equal(hf_enqueue_numbered(producer, &job, 1, 1, 0, NULL, detail),
                     HF_INVALID);
    assert_non_null(strstr(detail, "numbers"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(accepted_jobs_are_in_redis_as_they_were_given),
        TEST(the_answer_tells_when_a_job_was_accepted),
        TEST(a_known_id_exists_and_changes_nothing),
        TEST(made_ids_rise_in_the_order_of_the_jobs),
        TEST(a_delay_counts_from_the_call),
        TEST(a_delay_does_not_grow_when_the_request_is_sent_again),
        TEST(a_job_is_checked_without_a_producer),
        TEST(what_is_wrong_is_named_and_nothing_is_taken),
        TEST(a_call_over_the_bytes_of_a_batch_is_refused_whole),
        TEST(bad_options_are_named),
        TEST(a_full_buffer_says_so_at_once),
        TEST(a_buffer_is_also_full_by_bytes),
        TEST(without_a_server_a_call_times_out),
        TEST(a_wrong_password_is_told_at_once),
        TEST(a_silent_server_leaves_a_call_unsure),
        TEST(a_server_that_comes_back_in_time_executes_once),
        TEST(a_request_refused_and_overtaken_is_not_taken_for_executed),
        TEST(a_full_redis_refuses_all_jobs_of_a_call),
        TEST(a_flushed_script_is_sent_again),
        TEST(a_refusal_that_passes_is_waited_out),
        TEST(a_refusal_that_stays_is_the_answer),
        TEST(a_first_request_also_carries_its_end),
        TEST(a_lost_registry_is_written_again_by_the_next_server),
        TEST(a_clean_close_is_forgotten),
        TEST(a_close_after_a_lost_answer_is_not_forgotten),
        TEST(a_number_below_the_highest_is_executed_once),
        TEST(a_numbered_request_is_executed_once_in_the_life_of_a_run),
        TEST(numbers_must_not_fall_nor_pass_one_that_failed),
        TEST(a_producer_keeps_to_one_kind_of_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
