/* test_worker_deaths.c - a worker tells Redis which jobs report deaths: on_dead of its
 * queues and handlers, at its start, after a reload, and to a Redis that has lost it. */
#include <stdio.h>
#include <string.h>

#include "queue/keys.h"
#include "tests/support/eventually.h"
#include "tests/support/queue_fixture.h"
#include "tests/support/shards.h"
#include "tests/support/worker_fixture.h"

enum { SOON_MS = 10000 };

static const char *const no[] = {"/bin/sh", "-c", "exit 65", NULL};
static const hf_worker_queue told[] = {
    {HF_WORKER_QUEUE_INIT, .name = "q", .on_dead = "job.died"}};
static const hf_worker_queue plain[] = {{HF_WORKER_QUEUE_INIT, .name = "q"}};

static hf_queue_fixture queue;
static hf_worker_fixture worker;

static int down(void **state)
{
    hf_worker_fixture_end(&worker);
    return hf_queue_fixture_down(state);
}

static hf_worker_opts options_of(const hf_worker_queue *queues)
{
    return (hf_worker_opts){HF_WORKER_OPTS_INIT, .lease_ms = 5000, .queues = queues,
                            .n_queues = 1, .minder = HF_TEST_COMMAND};
}

static void start(const hf_worker_queue *queues, const hf_program *programs, size_t n)
{
    hf_worker_opts opts = options_of(queues);
    hf_worker_fixture_start_programs(&worker, queue.redis.url, &opts, 0, programs, n);
}

static void reload(const hf_worker_queue *queues, const hf_program *programs, size_t n)
{
    hf_worker_opts opts = options_of(queues);
    uint64_t before = hf_worker_reloads(worker.worker);
    hf_worker_fixture_fill(&worker, queue.redis.url, &opts);
    assert_int_equal(hf_worker_reload(worker.worker, &opts, programs, n, NULL, 0, NULL),
                     HF_OK);
    EVENTUALLY(SOON_MS, hf_worker_reloads(worker.worker) > before);
}

static const char *known(void)
{
    return hf_fixture_command(&queue.redis, "HGET hf:{q}:meta on_dead");
}

static bool knows(const char *types)
{
    return strcmp(known(), types) == 0;
}

static void put_typed(const char *id, const char *type)
{
    char record[128];
    int len = snprintf(record, sizeof record, "{\"type\":\"%s\"}\ndead", type);
    const hf_enqueue_item item = {.id = id, .record = {record, (size_t)len}};
    assert_int_equal(hf_queue_fixture_enqueue_items(
                         &queue, &(hf_enqueue_args){.producer = ""}, &item, 1),
                     HF_OK);
}

static bool has_type(const char *id, const char *type)
{
    char part[64];
    (void)snprintf(part, sizeof part, "\"type\":\"%s\"", type);
    const char *record = hf_fixture_command(&queue.redis, "HGET hf:{q}:jobs %s", id);
    return strstr(record, part) != NULL;
}

static void the_queue_says_it_for_all_its_jobs(void **state)
{
    (void)state;
    start(told, NULL, 0);
    EVENTUALLY(SOON_MS, knows("{\"*\":\"job.died\"}"));
    put_typed("one", "t");
    EVENTUALLY(SOON_MS, has_type("one.dead", "job.died"));
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    assert_true(knows("{\"*\":\"job.died\"}")); /* for those that die without it */
}

static void a_handler_says_it_before_its_queue(void **state)
{
    static const hf_program programs[] = {
        {HF_PROGRAM_INIT, .type = "pay", .argv = no, .on_dead = "pay.died"},
        {HF_PROGRAM_INIT, .type = "mail", .argv = no}};
    (void)state;
    start(told, programs, 2);
    EVENTUALLY(SOON_MS, knows("{\"*\":\"job.died\",\"pay\":\"pay.died\"}"));
    put_typed("one", "pay");
    put_typed("two", "mail");
    EVENTUALLY(SOON_MS, has_type("one.dead", "pay.died"));
    EVENTUALLY(SOON_MS, has_type("two.dead", "job.died"));
}

/* The handler of all other types; those with a handler of their own are none of them. */
static void the_handler_of_the_rest_says_it_for_the_rest(void **state)
{
    static const hf_program programs[] = {
        {HF_PROGRAM_INIT, .type = "*", .argv = no, .on_dead = "rest.died"},
        {HF_PROGRAM_INIT, .type = "pay", .argv = no, .on_dead = "pay.died"},
        {HF_PROGRAM_INIT, .type = "mail", .argv = no}};
    (void)state;
    start(told, programs, 3); /* "t" is the type of a C handler */
    EVENTUALLY(SOON_MS, knows("{\"*\":\"rest.died\",\"mail\":\"job.died\",\"pay\":\"pay."
                              "died\",\"t\":\"job.died\"}"));
    reload(plain, programs, 3);
    EVENTUALLY(SOON_MS, knows("{\"*\":\"rest.died\",\"mail\":false,\"pay\":\"pay.died\","
                              "\"t\":false}"));
    put_typed("one", "mail");
    put_typed("two", "else");
    EVENTUALLY(SOON_MS, has_type("two.dead", "rest.died"));
    EVENTUALLY(SOON_MS, hf_fixture_number(&queue.redis, "ZCARD hf:{q}:dead") == 3);
    assert_int_equal(hf_fixture_number(&queue.redis, "HEXISTS hf:{q}:jobs one.dead"), 0);
}

static void a_reload_changes_it(void **state)
{
    static const hf_worker_queue other[] = {
        {HF_WORKER_QUEUE_INIT, .name = "q", .on_dead = "other.died"}};
    static const hf_program one[] = {{HF_PROGRAM_INIT, .type = "pay", .argv = no}};
    static const hf_program two[] = {
        {HF_PROGRAM_INIT, .type = "pay", .argv = no, .on_dead = "pay.died"}};
    (void)state;
    start(told, one, 1);
    EVENTUALLY(SOON_MS, knows("{\"*\":\"job.died\"}"));
    reload(other, one, 1);
    EVENTUALLY(SOON_MS, knows("{\"*\":\"other.died\"}"));
    assert_int_equal(hf_worker_fixture_said(&worker,
                                            "changed key=queues[].on_dead name=q "
                                            "was=job.died now=other.died"),
                     1);
    reload(other, two, 1);
    EVENTUALLY(SOON_MS, knows("{\"*\":\"other.died\",\"pay\":\"pay.died\"}"));
    assert_int_equal(
        hf_worker_fixture_said(&worker, "changed key=handlers name=pay now=changed"), 1);
    reload(plain, one, 1);
    EVENTUALLY(SOON_MS, knows("(nil)"));
    assert_int_equal(hf_worker_fixture_said(&worker, "was=other.died now=none"), 1);
}

/* As after a failover to a replica that did not have it. */
static void a_redis_that_has_lost_it_is_told_again(void **state)
{
    (void)state;
    start(told, NULL, 0);
    EVENTUALLY(SOON_MS, knows("{\"*\":\"job.died\"}"));
    (void)hf_fixture_command(&queue.redis, "HDEL hf:{q}:meta on_dead");
    (void)hf_fixture_command(&queue.redis, "CLIENT KILL TYPE normal SKIPME yes");
    EVENTUALLY(SOON_MS, knows("{\"*\":\"job.died\"}"));
}

/* What a worker has said before that is gone: its file names none. */
static void a_worker_whose_file_names_none_says_so(void **state)
{
    (void)state;
    (void)hf_fixture_command(&queue.redis, "HSET hf:{q}:meta on_dead {\"*\":\"old\"}");
    start(plain, NULL, 0);
    EVENTUALLY(SOON_MS, knows("(nil)"));
}

static void each_shard_of_a_queue_knows_it(void **state)
{
    hf_shards shards;
    (void)state;
    assert_int_equal(hf_admin_divide(queue.admin, "q", 3, NULL), HF_OK);
    assert_int_equal(hf_shards_make(&shards, "q", 3), HF_OK);
    start(told, NULL, 0);
    for (unsigned i = 0; i < 3; i++) {
        char key[HF_KEY_SIZE];
        EVENTUALLY(SOON_MS,
                   strcmp(hf_fixture_command(&queue.redis, "HGET %s on_dead",
                                             hf_test_shard_key(&shards, i, "meta", key)),
                          "{\"*\":\"job.died\"}") == 0);
    }
}

static void a_type_that_is_none_is_refused(void **state)
{
    static const hf_worker_queue bad[] = {
        {HF_WORKER_QUEUE_INIT, .name = "q", .on_dead = "a b"}};
    static const hf_program worse[] = {
        {HF_PROGRAM_INIT, .type = "pay", .argv = no, .on_dead = "*"}};
    char detail[HF_DETAIL_SIZE];
    hf_worker_opts opts = options_of(bad);
    (void)state;
    start(plain, NULL, 0);
    hf_worker_fixture_fill(&worker, queue.redis.url, &opts);
    assert_int_equal(hf_worker_reload(worker.worker, &opts, NULL, 0, NULL, 0, detail),
                     HF_INVALID);
    assert_non_null(strstr(detail, "as on_dead a type"));
    opts = options_of(plain);
    hf_worker_fixture_fill(&worker, queue.redis.url, &opts);
    assert_int_equal(hf_worker_reload(worker.worker, &opts, worse, 1, NULL, 0, detail),
                     HF_INVALID);
    assert_non_null(strstr(detail, "as on_dead a type"));
}

#define TEST(name)                                                                       \
    cmocka_unit_test_prestate_setup_teardown(name, hf_queue_fixture_up_admin, down,      \
                                             &queue)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_queue_says_it_for_all_its_jobs),
        TEST(a_handler_says_it_before_its_queue),
        TEST(the_handler_of_the_rest_says_it_for_the_rest),
        TEST(a_reload_changes_it),
        TEST(a_redis_that_has_lost_it_is_told_again),
        TEST(a_worker_whose_file_names_none_says_so),
        TEST(each_shard_of_a_queue_knows_it),
        TEST(a_type_that_is_none_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
