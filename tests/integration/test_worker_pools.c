/* test_worker_pools.c - what a worker does when a process of a pool fails: with the job,
 * with the others that run in that process, and with the process. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "holdfast/admin.h"
#include "tests/support/admin.h"
#include "tests/support/pool_test.h"
#include "tests/support/proc.h"

enum { LONG_MS = 30000 };

#define CONTAINS(text, part)                                                             \
    do {                                                                                 \
        const char *contains_text = (text);                                              \
        if (strstr(contains_text, part) == NULL)                                         \
            fail_msg("expected '%s' in '%s'", part, contains_text);                      \
    } while (0)
#define LACKS(text, part)                                                                \
    do {                                                                                 \
        const char *lacks_text = (text);                                                 \
        if (strstr(lacks_text, part) != NULL)                                            \
            fail_msg("did not expect '%s' in '%s'", part, lacks_text);                   \
    } while (0)

static const hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .lease_ms = LONG_MS,
                                    .minder = HF_TEST_COMMAND};

/* One process of one slot. */
static void start_one(void)
{
    hf_pool pool = pool_of(1, NULL);
    hf_pool_fixture_start(&f, &opts, &pool, 1, true);
}

static void start_impatient(void)
{
    hf_pool pool = impatient(pool_of(1, NULL));
    hf_pool_fixture_start(&f, &opts, &pool, 1, true);
}

/* One process with several. */
static void start_shared(const char *plain)
{
    hf_pool pool = impatient(pool_of(1, ARGS("parallel=4", plain)));
    hf_pool_fixture_start(&f, &opts, &pool, 1, true);
}

static bool holds(const char *command, const char *part)
{
    return strstr(hf_fixture_command(&f.queue.redis, command), part) != NULL;
}

/* ---- it says how a run ended ---- */

static void jobs_run_in_the_same_process(void **state)
{
    (void)state;
    start_one();
    put("a", "noop", "");
    put("b", "noop", "");
    EVENTUALLY(SOON_MS, ended("a", "done") && ended("b", "done"));
    assert_int_equal(did("start "), 1);
    assert_int_equal(hf_pool_fixture_pid_of(&f, "a"), hf_pool_fixture_pid_of(&f, "b"));
    EVENTUALLY(SOON_MS, meta("done") == 2);
    assert_int_equal(hf_fixture_number(&f.queue.redis, "EXISTS hf:{q}:jobs"), 0);
}

static void a_verdict_is_taken_as_it_is(void **state)
{
    (void)state;
    start_one();
    put("a", "dead", "");
    put("b", "release", "");
    put("c", "cancel", "");
    EVENTUALLY(SOON_MS, ended("a", "dead") && ended("c", "cancelled"));
    EVENTUALLY(SOON_MS, ended("b", "released"));
    EVENTUALLY(SOON_MS, strstr(hf_pool_fixture_record(&f, "a"), "so it says") != NULL);
    CONTAINS(hf_pool_fixture_record(&f, "a"), "\"reason\":\"handler\"");
    LACKS(hf_pool_fixture_record(&f, "b"), "\"attempts\"");
    EVENTUALLY(SOON_MS, strcmp(hf_pool_fixture_record(&f, "c"), "(nil)") == 0);
    assert_int_equal(did("start "), 1);
}

static void a_result_is_kept(void **state)
{
    (void)state;
    start_one();
    hf_pool_fixture_put(&f, "a", "echo", "12 {\n bytes", ",\"keep\":60000");
    EVENTUALLY(SOON_MS, ended("a", "done"));
    EVENTUALLY(SOON_MS, strcmp(hf_pool_fixture_result(&f, "a"), "12 {\n bytes") == 0);
}

static void what_it_tells_of_a_run_is_kept(void **state)
{
    (void)state;
    start_one();
    hf_pool_fixture_put(&f, "a", "tell", "", ",\"keep\":60000");
    EVENTUALLY(SOON_MS, holds("HGET hf:{q}:progress a", " 40 row 17"));
    EVENTUALLY(SOON_MS, holds("HGET hf:{q}:checkpoint a", " 17"));
    EVENTUALLY(SOON_MS, holds("HVALS hf:{q}:log:a", "logged"));
    kill(hf_pool_fixture_pid_of(&f, "a"), SIGKILL);
    EVENTUALLY(SOON_MS, ended("a", "crashed") && ended("a", "done"));
    EVENTUALLY(SOON_MS, strcmp(hf_pool_fixture_result(&f, "a"), "17") == 0);
}

static void a_result_that_is_refused_makes_its_job_dead(void **state)
{
    (void)state;
    start_one();
    put("big", "big", "");
    put("text", "text", "");
    EVENTUALLY(SOON_MS, ended("big", "dead") && ended("text", "dead"));
    EVENTUALLY(SOON_MS, strstr(hf_pool_fixture_record(&f, "big"), "result") != NULL);
    EVENTUALLY(SOON_MS,
               strstr(hf_pool_fixture_record(&f, "text"), "no JSON at byte 1") != NULL);
    is_served("b");
    assert_int_equal(did("start "), 1);
}

static void a_second_verdict_and_one_for_no_run_do_nothing(void **state)
{
    (void)state;
    start_one();
    put("a", "twice", "");
    put("b", "strange", "");
    put("c", "noop", "");
    EVENTUALLY(SOON_MS, ended("a", "done") && ended("b", "done") && ended("c", "done"));
    EVENTUALLY(SOON_MS, meta("done") == 3);
    assert_int_equal(did("start "), 1);
    assert_int_equal(said("outcome=dead"), 0);
}

static void its_output_is_logged_with_its_job(void **state)
{
    (void)state;
    start_one();
    put("a", "print", "");
    EVENTUALLY(SOON_MS, ended("a", "done"));
    EVENTUALLY(SOON_MS, said("output job=a stream=stdout line=to stdout a") == 1);
    EVENTUALLY(SOON_MS, said("output job=a stream=stderr line=to stderr a") == 1);
}

/* ---- it dies ---- */

static void a_crash_is_counted_and_is_no_attempt(void **state)
{
    (void)state;
    start_one();
    put("a", "crash", "");
    EVENTUALLY(SOON_MS, said("outcome=crashed") >= 1);
    assert_true(hf_pool_fixture_ended(&f, "a", "crashed", "killed by signal 11 (SEGV)"));
    /* It is tried again, and is dead after three crashes. */
    EVENTUALLY(SOON_MS,
               strstr(hf_pool_fixture_record(&f, "a"), "\"reason\":\"poison\"") != NULL);
    assert_int_equal(said("outcome=crashed"), 3);
    CONTAINS(hf_pool_fixture_record(&f, "a"), "killed by signal 11 (SEGV)");
    CONTAINS(hf_pool_fixture_record(&f, "a"), "about to crash");
    LACKS(hf_pool_fixture_record(&f, "a"), "\"attempts\":1");
    is_served("b");
}

static void an_exit_in_a_run_is_a_crash_whatever_its_status(void **state)
{
    (void)state;
    start_one();
    put("a", "exit", "0");
    EVENTUALLY(SOON_MS, said("outcome=crashed") == 3);
    put("b", "exit", "3");
    EVENTUALLY(SOON_MS, said("outcome=crashed") == 6);
    EVENTUALLY(SOON_MS,
               strstr(hf_pool_fixture_record(&f, "b"), "\"reason\":\"poison\"") != NULL);
    CONTAINS(hf_pool_fixture_record(&f, "a"),
             "exited with status 0 in the middle of a run");
    CONTAINS(hf_pool_fixture_record(&f, "b"),
             "exited with status 3 in the middle of a run");
    is_served("c");
}

static void a_whole_verdict_counts_though_it_died_then(void **state)
{
    (void)state;
    start_one();
    put("a", "done-crash", "");
    EVENTUALLY(SOON_MS, ended("a", "done"));
    EVENTUALLY(SOON_MS, did("start ") == 2);
    is_served("b");
    assert_int_equal(said("outcome=crashed"), 0);
    assert_int_equal(did("begin"), 2);
}

/* The loop sees the time-out, the death and the verdict at once, the time-out first. */
static void a_verdict_counts_that_a_slow_loop_finds_behind_a_death(void **state)
{
    (void)state;
    start_one();
    hf_pool_fixture_put(&f, "a", "done-crash", "1000", ",\"timeout\":1500");
    EVENTUALLY(SOON_MS, did("begin") == 1);
    pid_t pid = hf_pool_fixture_pid_of(&f, "a");
    atomic_store(&f.worker.hold_loop, true);
    put("b", "t", "ok");
    EVENTUALLY(SOON_MS, atomic_load(&f.worker.loop_held));
    EVENTUALLY(SOON_MS, !hf_pid_alive(pid));
    ALWAYS(1600, !hf_pid_alive(pid));
    atomic_store(&f.worker.hold_loop, false);
    EVENTUALLY(SOON_MS, ended("a", "done"));
    assert_int_equal(said("outcome=crashed"), 0);
}

/* A loop that stood still for a while has the minder ask each process to end. */
static void start_and_let_the_minder_ask(void)
{
    hf_worker_opts slow = opts;
    slow.lease_ms = 6000; /* asked after 1.5 s, killed after 3 s */
    slow.kill_grace_ms = 1500;
    hf_pool pool = pool_of(1, NULL);
    hf_pool_fixture_start(&f, &slow, &pool, 1, true);
    atomic_store(&f.worker.hold_loop, true);
    put("b", "t", "ok");
    EVENTUALLY(SOON_MS, atomic_load(&f.worker.loop_held));
    hf_test_pause_ms(2200);
    atomic_store(&f.worker.hold_loop, false);
}

static void a_crash_counts_though_the_minder_has_asked_before(void **state)
{
    (void)state;
    start_and_let_the_minder_ask();
    is_served("c");
    put("a", "crash", "");
    EVENTUALLY(SOON_MS, ended("a", "crashed") || ended("a", "released"));
    assert_false(ended("a", "released"));
}

static void an_exit_may_be_the_answer_to_the_minder(void **state)
{
    (void)state;
    start_and_let_the_minder_ask();
    put("a", "exit", "3");
    EVENTUALLY(SOON_MS, ended("a", "crashed") || ended("a", "released"));
    assert_true(ended("a", "released"));
}

/* Those that ran beside it are suspects: they run alone next. */
static void all_runs_of_a_process_that_crashed_are_suspects(void **state)
{
    (void)state;
    start_shared(NULL);
    put_long("slow");
    EVENTUALLY(SOON_MS, did("begin") == 1);
    put("bad", "late-exit", "100");
    EVENTUALLY(SOON_MS, ended("bad", "crashed") && ended("slow", "crashed"));
    let_end();
    EVENTUALLY(SOON_MS, ended("slow", "done"));
    EVENTUALLY(SOON_MS, strstr(hf_pool_fixture_record(&f, "bad"),
                               "\"reason\":\"poison\"") != NULL);
    assert_int_equal(said("outcome=crashed"), 4); /* of `bad` 3 */
}

static void a_process_that_ends_without_a_job_is_replaced(void **state)
{
    (void)state;
    start_one();
    put("a", "die-idle", "0");
    EVENTUALLY(SOON_MS, ended("a", "done"));
    EVENTUALLY(SOON_MS, did("start ") == 2);
    is_served("b");
    assert_int_equal(said("outcome=crashed"), 0);
}

/* More than a socket holds. */
static void put_large(const char *id, const char *options)
{
    enum { LARGE = 900 << 10, LINE = 256 };
    char *record = malloc(LARGE + LINE);
    assert_non_null(record);
    int n = snprintf(record, LINE, "{\"v\":1,\"type\":\"noop\"%s}\n", options);
    memset(record + n, 'x', LARGE);
    const hf_enqueue_args args = {.producer = "", .options = true};
    const hf_enqueue_item item = {id, 0, {record, (size_t)n + LARGE}};
    assert_int_equal(hf_queue_fixture_enqueue_items(&f.queue, &args, &item, 1), HF_OK);
    free(record);
}

static void a_job_that_was_not_read_before_the_end_is_no_crash(void **state)
{
    (void)state;
    start_one();
    put("a", "ignore", "");
    put("b", "noop", "");
    EVENTUALLY(SOON_MS, ended("b", "done"));
    assert_true(ended("b", "released"));
    put("c", "ignore", "with a child");
    put("d", "noop", "");
    EVENTUALLY(SOON_MS, ended("d", "done"));
    assert_true(ended("d", "released"));
    assert_int_equal(said("outcome=crashed"), 0);
    assert_string_equal(hf_pool_fixture_crashes(&f, "b"), "(nil)");
}

/* Nothing stops a job that may have been read from killing one process after another. */
static void a_large_job_that_was_not_read_to_its_end_is_a_crash(void **state)
{
    (void)state;
    start_one();
    put("a", "ignore", "");
    put_large("b", "");
    EVENTUALLY(SOON_MS, ended("b", "done"));
    assert_int_equal(said("outcome=crashed"), 1);
}

static void a_process_that_reads_no_job_is_not_replaced_at_once(void **state)
{
    (void)state;
    hf_write_file(f.start, "ignore");
    start_one();
    put("a", "noop", "");
    EVENTUALLY(SOON_MS, said("a process of a pool does not live") >= 2);
    hf_write_file(f.start, "");
    EVENTUALLY(SOON_MS, ended("a", "done"));
    assert_int_equal(said("outcome=crashed"), 0);
}

/* ---- it does not keep to the protocol ---- */

static void garbage_is_a_crash_of_the_run(void **state)
{
    (void)state;
    start_one();
    put("a", "garbage", "");
    EVENTUALLY(SOON_MS, said("outcome=crashed") == 3);
    assert_true(hf_pool_fixture_ended(&f, "a", "crashed", "protocol error"));
    EVENTUALLY(SOON_MS,
               strstr(hf_pool_fixture_record(&f, "a"), "\"reason\":\"poison\"") != NULL);
    LACKS(hf_pool_fixture_record(&f, "a"), "Traceback"); /* it may be secret */
    assert_int_equal(said("Traceback"), 0);
    is_served("b");
}

static void half_a_verdict_is_none(void **state)
{
    (void)state;
    start_impatient();
    hf_pool_fixture_put(&f, "a", "half", "", ",\"timeout\":200");
    EVENTUALLY(SOON_MS, hf_pool_fixture_ended(&f, "a", "retry", "timed out after 200ms"));
    is_served("b");
}

static void a_process_that_never_reads_is_killed_at_the_time_out(void **state)
{
    static const char options[] = ",\"timeout\":300,\"max_attempts\":1";
    (void)state;
    hf_write_file(f.start, "unread");
    start_impatient();
    hf_pool_fixture_put(&f, "small", "noop", "", options);
    EVENTUALLY(SOON_MS,
               hf_pool_fixture_ended(&f, "small", "dead", "timed out after 300ms"));
    EVENTUALLY(SOON_MS, did("start ") == 2);
    hf_write_file(f.start, "");
    put_large("large", options);
    EVENTUALLY(SOON_MS,
               hf_pool_fixture_ended(&f, "large", "dead", "timed out after 300ms"));
    is_served("b");
    assert_int_equal(said("outcome=crashed"), 0);
}

/* Of the run that would come next. */
static void a_verdict_before_the_job_does_nothing(void **state)
{
    (void)state;
    hf_write_file(f.start, "early");
    start_one();
    hf_pool_fixture_put(&f, "a", "gentle", "", ",\"timeout\":300");
    EVENTUALLY(SOON_MS, hf_pool_fixture_ended(&f, "a", "retry", "timed out after 300ms"));
    assert_false(ended("a", "done"));
    is_served("b");
    assert_int_equal(did("start "), 1);
}

/* The process lives, but the program that could answer is gone from it. */
static void a_process_that_becomes_another_program_has_crashed(void **state)
{
    (void)state;
    start_one();
    put("a", "exec", "");
    EVENTUALLY(SOON_MS, said("outcome=crashed") == 3);
    assert_true(hf_pool_fixture_ended(&f, "a", "crashed",
                                      "protocol error: it closed its socket"));
    EVENTUALLY(SOON_MS,
               strstr(hf_pool_fixture_record(&f, "a"), "\"reason\":\"poison\"") != NULL);
    assert_false(hf_pid_alive(hf_pool_fixture_pid_of(&f, "a")));
    is_served("b");
}

static void a_process_that_stops_itself_is_killed_at_the_time_out(void **state)
{
    (void)state;
    start_impatient();
    hf_pool_fixture_put(&f, "a", "halt", "", ",\"timeout\":200");
    EVENTUALLY(SOON_MS, hf_pool_fixture_ended(&f, "a", "retry", "timed out after 200ms"));
    EVENTUALLY(SOON_MS, !hf_pid_alive(hf_pool_fixture_pid_of(&f, "a")));
    is_served("b");
    assert_int_equal(said("outcome=crashed"), 0);
}

static void what_comes_in_pieces_of_one_byte_is_the_same(void **state)
{
    (void)state;
    hf_pool pool = pool_of(1, ARGS("pieces"));
    hf_pool_fixture_start(&f, &opts, &pool, 1, true);
    hf_pool_fixture_put(&f, "a", "echo", "12 {\n bytes", ",\"keep\":60000");
    put("b", "dead", "");
    EVENTUALLY(SOON_MS, ended("a", "done") && ended("b", "dead"));
    EVENTUALLY(SOON_MS, strcmp(hf_pool_fixture_result(&f, "a"), "12 {\n bytes") == 0);
    assert_int_equal(did("start "), 1);
}

/* No job is given to a process that will not answer. */
static void a_process_that_closed_its_socket_gets_no_job(void **state)
{
    (void)state;
    start_one();
    put("a", "close", "");
    EVENTUALLY(SOON_MS, did("close ") == 1 && ended("a", "done"));
    is_served("b");
    assert_int_equal(said("outcome=crashed"), 0);
    EVENTUALLY(SOON_MS, said("protocol error: it closed its socket") == 1);
    assert_int_equal(did("start "), 2);
}

static void a_grandchild_with_its_socket_does_not_hide_its_death(void **state)
{
    (void)state;
    start_one();
    put("a", "fork", "");
    EVENTUALLY(SOON_MS, ended("a", "done"));
    pid_t pid = hf_pool_fixture_pid_of(&f, "a");
    kill(pid, SIGKILL);
    EVENTUALLY(SOON_MS, !hf_pid_alive(pid));
    is_served("b");
}

/* ---- its time is over ---- */

static void a_run_that_ends_when_it_is_asked_spares_its_process(void **state)
{
    (void)state;
    start_one();
    hf_pool_fixture_put(&f, "a", "gentle", "", ",\"timeout\":200");
    EVENTUALLY(SOON_MS, hf_pool_fixture_ended(&f, "a", "retry", "timed out after 200ms"));
    EVENTUALLY(SOON_MS,
               strstr(hf_pool_fixture_record(&f, "a"), "\"attempts\":1") != NULL);
    CONTAINS(hf_pool_fixture_record(&f, "a"), "it was asked to end");
    is_served("b");
    assert_int_equal(did("start "), 1);
}

static void a_run_that_does_not_is_killed_with_its_process(void **state)
{
    (void)state;
    start_impatient();
    hf_pool_fixture_put(&f, "a", "hang", "", ",\"timeout\":200");
    EVENTUALLY(SOON_MS, hf_pool_fixture_ended(&f, "a", "retry", "timed out after 200ms"));
    EVENTUALLY(SOON_MS, !hf_pid_alive(hf_pool_fixture_pid_of(&f, "a")));
    EVENTUALLY(SOON_MS,
               strstr(hf_pool_fixture_record(&f, "a"), "\"attempts\":1") != NULL);
    is_served("b");
    assert_int_equal(did("start "), 2);
    assert_int_equal(said("outcome=crashed"), 0);
}

static void neighbours_of_a_run_that_hangs_are_not_counted(void **state)
{
    (void)state;
    start_shared(NULL);
    put_long("slow");
    EVENTUALLY(SOON_MS, did("begin") == 1);
    hf_pool_fixture_put(&f, "a", "deaf", "", ",\"timeout\":200");
    EVENTUALLY(SOON_MS, hf_pool_fixture_ended(&f, "a", "retry", "timed out after 200ms"));
    EVENTUALLY(SOON_MS, ended("slow", "released"));
    let_end();
    assert_true(hf_pool_fixture_ended(&f, "slow", "released", "neighbour of a"));
    EVENTUALLY(SOON_MS, ended("slow", "done"));
    assert_int_equal(said("outcome=crashed"), 0);
    assert_string_equal(hf_pool_fixture_crashes(&f, "slow"), "(nil)");
}

/* The worker's own signals, which such a program does not catch, are no crash. */
static void neighbours_are_not_counted_by_a_plain_program_either(void **state)
{
    (void)state;
    start_shared("plain");
    put_long("slow");
    EVENTUALLY(SOON_MS, did("begin") == 1);
    hf_pool_fixture_put(&f, "a", "deaf", "", ",\"timeout\":200");
    EVENTUALLY(SOON_MS, hf_pool_fixture_ended(&f, "a", "retry", "timed out after 200ms"));
    EVENTUALLY(SOON_MS, ended("slow", "released"));
    let_end();
    EVENTUALLY(SOON_MS, ended("slow", "done"));
    assert_true(hf_pool_fixture_ended(&f, "slow", "released", "neighbour of a"));
    assert_int_equal(said("outcome=crashed"), 0);
}

static void a_neighbour_goes_on_beside_a_run_that_is_asked_to_end(void **state)
{
    (void)state;
    hf_pool pool = pool_of(1, ARGS("parallel=4"));
    hf_pool_fixture_start(&f, &opts, &pool, 1, true);
    put("slow", "sleep", "900");
    EVENTUALLY(SOON_MS, did("begin") == 1);
    hf_pool_fixture_put(&f, "a", "gentle", "", ",\"timeout\":200");
    EVENTUALLY(SOON_MS, ended("a", "retry") && ended("slow", "done"));
    assert_int_equal(did("begin"), 2);
    assert_int_equal(did("start "), 1);
}

/* It may be killed the next moment. */
static void no_job_is_given_to_a_process_that_is_asked_to_end_a_run(void **state)
{
    (void)state;
    hf_pool pool = pool_of(1, ARGS("parallel=4"));
    pool.grace_ms = 1500;
    hf_pool_fixture_start(&f, &opts, &pool, 1, true);
    hf_pool_fixture_put(&f, "a", "deaf", "", ",\"timeout\":200");
    EVENTUALLY(SOON_MS, did("cancel ") == 1);
    put("b", "noop", "");
    EVENTUALLY(SOON_MS, ended("b", "done"));
    EVENTUALLY(SOON_MS, hf_pool_fixture_ended(&f, "a", "retry", "timed out"));
    assert_int_not_equal(hf_pool_fixture_pid_of(&f, "b"),
                         hf_pool_fixture_pid_of(&f, "a"));
}

/* ---- it is cancelled, or lost ---- */

static const hf_worker_opts quick = {HF_WORKER_OPTS_INIT, .lease_ms = 6000,
                                     .minder = HF_TEST_COMMAND};

static void a_cancelled_run_ends_and_its_process_stays(void **state)
{
    hf_pool pool = pool_of(1, NULL);
    (void)state;
    hf_pool_fixture_start(&f, &quick, &pool, 1, true);
    put("a", "gentle", "");
    EVENTUALLY(SOON_MS, did("begin") == 1);
    hf_pool_fixture_cancel(&f, "a");
    EVENTUALLY(SOON_MS, ended("a", "cancelled"));
    EVENTUALLY(SOON_MS, meta("cancelled") == 1);
    assert_string_equal(hf_pool_fixture_record(&f, "a"), "(nil)");
    is_served("b");
    assert_int_equal(did("start "), 1);
}

static void a_cancelled_run_that_hangs_is_killed(void **state)
{
    hf_pool pool = impatient(pool_of(1, ARGS("parallel=2")));
    (void)state;
    hf_pool_fixture_start(&f, &quick, &pool, 1, true);
    put_long("slow");
    put("a", "deaf", "");
    EVENTUALLY(SOON_MS, did("begin") == 2);
    hf_pool_fixture_cancel(&f, "a");
    EVENTUALLY(SOON_MS, ended("a", "cancelled"));
    EVENTUALLY(SOON_MS, hf_pool_fixture_ended(&f, "slow", "released", "neighbour of a"));
    let_end();
    EVENTUALLY(SOON_MS, meta("cancelled") == 1);
    EVENTUALLY(SOON_MS, ended("slow", "done"));
    assert_int_equal(said("outcome=crashed"), 0);
}

static void a_run_whose_lock_was_taken_is_killed(void **state)
{
    hf_pool pool = pool_of(1, NULL);
    (void)state;
    hf_pool_fixture_start(&f, &quick, &pool, 1, true);
    put("a", "gentle", "");
    EVENTUALLY(SOON_MS, did("begin") == 1);
    pid_t pid = hf_pool_fixture_pid_of(&f, "a");
    f.queue.broken = true;
    hf_test_take_over(&f.queue.redis, "q", "a");
    EVENTUALLY(SOON_MS, ended("a", "lost"));
    EVENTUALLY(SOON_MS, !hf_pid_alive(pid));
    is_served("b");
    assert_int_equal(said("outcome=crashed"), 0);
    assert_int_equal(said("outcome=retry"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HF_POOL_TEST(jobs_run_in_the_same_process, &f),
        HF_POOL_TEST(a_verdict_is_taken_as_it_is, &f),
        HF_POOL_TEST(a_result_is_kept, &f),
        HF_POOL_TEST(what_it_tells_of_a_run_is_kept, &f),
        HF_POOL_TEST(a_result_that_is_refused_makes_its_job_dead, &f),
        HF_POOL_TEST(a_second_verdict_and_one_for_no_run_do_nothing, &f),
        HF_POOL_TEST(its_output_is_logged_with_its_job, &f),
        HF_POOL_TEST(a_crash_is_counted_and_is_no_attempt, &f),
        HF_POOL_TEST(an_exit_in_a_run_is_a_crash_whatever_its_status, &f),
        HF_POOL_TEST(a_whole_verdict_counts_though_it_died_then, &f),
        HF_POOL_TEST(a_verdict_counts_that_a_slow_loop_finds_behind_a_death, &f),
        HF_POOL_TEST(a_crash_counts_though_the_minder_has_asked_before, &f),
        HF_POOL_TEST(an_exit_may_be_the_answer_to_the_minder, &f),
        HF_POOL_TEST(all_runs_of_a_process_that_crashed_are_suspects, &f),
        HF_POOL_TEST(a_process_that_ends_without_a_job_is_replaced, &f),
        HF_POOL_TEST(a_job_that_was_not_read_before_the_end_is_no_crash, &f),
        HF_POOL_TEST(a_large_job_that_was_not_read_to_its_end_is_a_crash, &f),
        HF_POOL_TEST(a_process_that_reads_no_job_is_not_replaced_at_once, &f),
        HF_POOL_TEST(garbage_is_a_crash_of_the_run, &f),
        HF_POOL_TEST(half_a_verdict_is_none, &f),
        HF_POOL_TEST(a_process_that_never_reads_is_killed_at_the_time_out, &f),
        HF_POOL_TEST(a_verdict_before_the_job_does_nothing, &f),
        HF_POOL_TEST(a_process_that_becomes_another_program_has_crashed, &f),
        HF_POOL_TEST(a_process_that_stops_itself_is_killed_at_the_time_out, &f),
        HF_POOL_TEST(what_comes_in_pieces_of_one_byte_is_the_same, &f),
        HF_POOL_TEST(a_process_that_closed_its_socket_gets_no_job, &f),
        HF_POOL_TEST(a_grandchild_with_its_socket_does_not_hide_its_death, &f),
        HF_POOL_TEST(a_run_that_ends_when_it_is_asked_spares_its_process, &f),
        HF_POOL_TEST(a_run_that_does_not_is_killed_with_its_process, &f),
        HF_POOL_TEST(neighbours_of_a_run_that_hangs_are_not_counted, &f),
        HF_POOL_TEST(neighbours_are_not_counted_by_a_plain_program_either, &f),
        HF_POOL_TEST(a_neighbour_goes_on_beside_a_run_that_is_asked_to_end, &f),
        HF_POOL_TEST(no_job_is_given_to_a_process_that_is_asked_to_end_a_run, &f),
        HF_POOL_TEST(a_cancelled_run_ends_and_its_process_stays, &f),
        HF_POOL_TEST(a_cancelled_run_that_hangs_is_killed, &f),
        HF_POOL_TEST(a_run_whose_lock_was_taken_is_killed, &f),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
