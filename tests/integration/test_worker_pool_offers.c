/* test_worker_pool_offers.c - what the program of a pool names beyond its types: queues,
 * schedules, waits after failures. And a program that never names anything. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "holdfast/admin.h"
#include "tests/support/admin.h"
#include "tests/support/pool_test.h"

static const hf_worker_opts quick = {HF_WORKER_OPTS_INIT, .lease_ms = 6000,
                                     .minder = HF_TEST_COMMAND};
static const hf_worker_opts any_queue = {HF_WORKER_OPTS_INIT, .lease_ms = 6000,
                                         .minder = HF_TEST_COMMAND,
                                         .offered_queues = true};

/* ---- waits ---- */

/* The worker's own is a minute. */
static void a_job_that_failed_waits_as_its_program_says(void **state)
{
    (void)state;
    hf_write_file(f.members, ",\"retry\":{\"backoff\":\"constant\",\"base\":100}");
    start(&quick, pool_of(1, ARGS("timeout=50")), true);
    put("a", "gentle", "");
    EVENTUALLY(SOON_MS, did("begin") >= 3);
}

static void what_it_does_not_name_is_as_in_the_file(void **state)
{
    (void)state;
    hf_worker_opts with = quick;
    with.backoff_base_ms = 50;
    hf_write_file(f.members, ",\"retry\":{\"jitter\":0.1}");
    start(&with, pool_of(1, ARGS("timeout=50")), true);
    put("a", "gentle", "");
    EVENTUALLY(SOON_MS, did("begin") >= 3);
}

/* What an operator changes without a new version of the program. */
static void the_wait_of_the_file_counts_more_than_its_programs(void **state)
{
    (void)state;
    const hf_pool_type types[] = {
        {HF_POOL_TYPE_INIT, .type = "gentle", .backoff_base_ms = 100}};
    hf_pool pool = pool_of(1, ARGS("timeout=50"));
    hf_write_file(f.members, ",\"retry\":{\"backoff\":\"constant\",\"base\":60000}");
    pool.types = types;
    pool.n_types = 1;
    start(&quick, pool, true);
    put("a", "gentle", "");
    EVENTUALLY(SOON_MS, did("begin") >= 3);
}

/* ---- queues ---- */

static void queues_that_it_names_are_served(void **state)
{
    (void)state;
    hf_pool pool = pool_of(1, NULL);
    hf_write_file(f.members, ",\"queue\":\"mail\"");
    put_on("mail", "a", "noop", "");
    start(&any_queue, pool, true);
    EVENTUALLY(SOON_MS, ended("a", "done"));
    EVENTUALLY(SOON_MS,
               strstr(hf_fixture_command(&f.queue.redis, "SMEMBERS hf:{/}:queues"),
                      "mail") != NULL);
    put("b", "noop", "");
    EVENTUALLY(SOON_MS, ended("b", "done"));
    reload(&any_queue, &pool, 1);
    EVENTUALLY(SOON_MS, did("stop ") == 1);
    put_on("mail", "c", "noop", "");
    EVENTUALLY(SOON_MS, ended("c", "done"));
    assert_int_equal(said("a program names this queue: it is served"), 1);
}

static void a_new_version_may_name_others(void **state)
{
    (void)state;
    hf_pool pool = pool_of(1, NULL);
    hf_write_file(f.members, ",\"queue\":\"mail\"");
    start(&any_queue, pool, true);
    put_on("mail", "a", "noop", "");
    EVENTUALLY(SOON_MS, ended("a", "done"));
    hf_write_file(f.members, ",\"queue\":\"parcels\"");
    reload(&any_queue, &pool, 1);
    put_on("parcels", "b", "noop", "");
    EVENTUALLY(SOON_MS, ended("b", "done"));
    EVENTUALLY(SOON_MS, said("no program names this queue any more") == 1);
    put_on("mail", "c", "noop", "");
    put("d", "noop", "");
    EVENTUALLY(SOON_MS, ended("d", "done"));
    assert_false(ended("c", "done"));
}

static void without_the_option_they_are_not(void **state)
{
    (void)state;
    hf_write_file(f.types, "noop");
    hf_write_file(f.members, ",\"queue\":\"mail\"");
    start(&quick, pool_of(1, NULL), true);
    EVENTUALLY(SOON_MS, said("a type of a pool is in a queue that is not served") == 1);
    put_on("mail", "a", "noop", "");
    put("b", "noop", "");
    EVENTUALLY(SOON_MS, ended("b", "done"));
    assert_false(ended("a", "done"));
}

/* ---- schedules ---- */

#define EACH_SECOND                                                                      \
    "{\"id\":\"s\",\"queue\":\"q\",\"every\":1000,\"job\":{\"type\":\"noop\"}}"

static void schedules_that_it_names_make_jobs(void **state)
{
    (void)state;
    hf_pool pool = pool_of(1, NULL);
    hf_write_file(f.schedules, EACH_SECOND);
    start(&quick, pool, true);
    EVENTUALLY(SOON_MS, did("begin") >= 2);
    hf_write_file(f.schedules, "");
    reload(&quick, &pool, 1);
    EVENTUALLY(SOON_MS, said("a schedule makes no jobs: no live worker names it") == 1);
}

static void the_file_takes_precedence(void **state)
{
    static const hf_schedule own = {HF_SCHEDULE_INIT, .id = "s",   .queue = "q",
                                    .every_ms = 1000, .type = "t", .payload = "ok",
                                    .payload_len = 2};
    (void)state;
    hf_worker_opts with = quick;
    with.schedules = &own;
    with.n_schedules = 1;
    hf_write_file(f.schedules, EACH_SECOND);
    start(&with, pool_of(1, NULL), true);
    EVENTUALLY(SOON_MS, hf_queue_fixture_meta(&f.queue, "done") >= 2);
    assert_int_equal(did("begin"), 0);
}

static void a_schedule_of_two_programs_is_told(void **state)
{
    static const char *second[HF_POOL_FIXTURE_ARGS];
    char types[160], path[140];
    (void)state;
    hf_write_file(f.types, "noop");
    snprintf(path, sizeof path, "%s-2", f.types);
    snprintf(types, sizeof types, "types=%s", path);
    hf_write_file(path, "echo");
    hf_write_file(f.schedules, EACH_SECOND);
    hf_pool pools[] = {pool_of(1, NULL), pool_of(1, NULL)};
    hf_pool_fixture_argv(&f, second, ARGS(types)); /* the last one counts */
    pools[1].argv = second;
    hf_pool_fixture_start(&f, &quick, pools, 2, true);
    EVENTUALLY(SOON_MS, said("several programs name a schedule: that of the first one "
                             "counts schedule=s queue=q") == 1);
    EVENTUALLY(SOON_MS, did("begin") >= 2);
}

static void a_schedule_needs_a_queue_that_is_served(void **state)
{
    (void)state;
    hf_write_file(f.schedules,
                  "{\"id\":\"s\",\"every\":1000,\"job\":{\"type\":\"noop\"}}");
    start(&quick, pool_of(1, NULL), true);
    EVENTUALLY(SOON_MS, said("a schedule of a program is in a queue that is not served "
                             "schedule=s queue=default") == 1);
}

/* ---- a program that never starts ---- */

static void the_worker_ends_after_the_tries_that_it_has(void **state)
{
    (void)state;
    hf_pool pool = pool_of(1, NULL);
    pool.processes = 2;
    pool.start_tries = 2;
    hf_write_file(f.start, "exit 1");
    start(&quick, pool, false);
    EVENTUALLY(SOON_MS, atomic_load(&f.worker.ended));
    assert_int_equal(hf_worker_fixture_stop(&f.worker), HF_CONFIG);
    assert_int_equal(did("start "), 3); /* two at first, then one */
    assert_non_null(strstr(f.worker.why, "2 starts of 'hf-pool-program"));
}

static void the_worker_ends_at_once_when_its_program_refuses(void **state)
{
    (void)state;
    hf_pool pool = pool_of(1, NULL);
    pool.start_tries = 3;
    hf_write_file(f.start, "exit 78");
    start(&quick, pool, false);
    EVENTUALLY(SOON_MS, atomic_load(&f.worker.ended));
    assert_int_equal(hf_worker_fixture_stop(&f.worker), HF_CONFIG);
    assert_int_equal(did("start "), 1);
    assert_non_null(strstr(f.worker.why, "exited with status 78"));
}

static void tries_do_not_count_after_it_was_ready(void **state)
{
    (void)state;
    hf_pool pool = pool_of(1, NULL);
    pool.start_tries = 1;
    start(&quick, pool, true);
    hf_write_file(f.start, "exit 1");
    put("a", "exit", "1");
    EVENTUALLY(SOON_MS, said("a process of a pool does not live") >= 2);
    hf_write_file(f.start, "");
    put("b", "noop", "");
    EVENTUALLY(SOON_MS, ended("b", "done"));
}

/* ---- where it is seen ---- */

typedef struct seen {
    size_t workers, n_pools;
    uint32_t concurrency;
    hf_worker_pool_info pool;
} seen;

static void on_worker(const hf_worker_info *info, void *arg)
{
    seen *to = arg;
    to->workers++;
    to->concurrency = info->concurrency;
    to->n_pools = info->n_pools;
    if (info->n_pools > 0)
        to->pool = info->pools[0];
}

static seen look(void)
{
    seen found = {.workers = 0};
    hf_admin *admin = hf_test_admin(hf_fixture_url(&f.queue.redis));
    assert_int_equal(hf_admin_workers(admin, on_worker, &found, NULL), HF_OK);
    hf_admin_close(admin);
    return found;
}

static int64_t pools_down(const char *id)
{
    hf_job_why why = {HF_JOB_WHY_INIT};
    hf_admin *admin = hf_test_admin(hf_fixture_url(&f.queue.redis));
    assert_int_equal(hf_admin_why(admin, "q", id, &why, NULL), HF_OK);
    hf_admin_close(admin);
    return why.pools_down;
}

static void its_state_is_in_the_list_of_workers(void **state)
{
    (void)state;
    hf_pool pool = pool_of(1, ARGS("parallel=3"));
    pool.processes = 2;
    hf_write_file(f.start, "exit 1");
    start(&quick, pool, false);
    put("a", "noop", "");
    EVENTUALLY(SOON_MS, strcmp(look().pool.state, "down") == 0);
    assert_int_equal(look().concurrency, 4); /* of the handler in C */
    EVENTUALLY(SOON_MS, pools_down("a") == 1);
    hf_write_file(f.start, "");
    EVENTUALLY(SOON_MS, look().pool.processes == 2);
    const seen found = look();
    assert_int_equal(found.n_pools, 1);
    assert_string_equal(found.pool.state, "up");
    assert_int_equal(found.pool.slots, 6);
    assert_int_equal(found.concurrency, 10);
    assert_true(found.pool.memory > 100000);
    assert_non_null(strstr(found.pool.name, "hf-pool-program"));
    EVENTUALLY(SOON_MS, ended("a", "done"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HF_POOL_TEST(a_job_that_failed_waits_as_its_program_says, &f),
        HF_POOL_TEST(what_it_does_not_name_is_as_in_the_file, &f),
        HF_POOL_TEST(the_wait_of_the_file_counts_more_than_its_programs, &f),
        HF_POOL_TEST(queues_that_it_names_are_served, &f),
        HF_POOL_TEST(a_new_version_may_name_others, &f),
        HF_POOL_TEST(without_the_option_they_are_not, &f),
        HF_POOL_TEST(schedules_that_it_names_make_jobs, &f),
        HF_POOL_TEST(the_file_takes_precedence, &f),
        HF_POOL_TEST(a_schedule_of_two_programs_is_told, &f),
        HF_POOL_TEST(a_schedule_needs_a_queue_that_is_served, &f),
        HF_POOL_TEST(the_worker_ends_after_the_tries_that_it_has, &f),
        HF_POOL_TEST(the_worker_ends_at_once_when_its_program_refuses, &f),
        HF_POOL_TEST(tries_do_not_count_after_it_was_ready, &f),
        HF_POOL_TEST(its_state_is_in_the_list_of_workers, &f),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
