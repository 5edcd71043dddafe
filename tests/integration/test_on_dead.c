/* test_on_dead.c - a job about a death is accepted in the moment of the death, once,
 * however the job died. */
#include <stdio.h>
#include <string.h>

#include "tests/support/eventually.h"
#include "tests/support/queue_fixture.h"

static hf_queue_fixture fixture;
static char detail[HF_DETAIL_SIZE];

static void put(const char *id, const char *options)
{
    char record[256];
    int len = snprintf(record, sizeof record,
                       "{\"type\":\"t\",\"on_dead\":\"t.died\"%s}\n", options);
    const hf_enqueue_args args = {.producer = "", .options = true};
    const hf_enqueue_item item = {id, 1, {record, (size_t)len}};
    assert_int_equal(hf_queue_fixture_enqueue_items(&fixture, &args, &item, 1), HF_OK);
}

static void claim_one(const char *id)
{
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
    assert_string_equal(fixture.jobs[0].id, id);
}

static void bury(const char *id)
{
    const hf_verdict_args args = {.worker = "w", .dead_max = 10, .dead_age_ms = 1000000};
    const hf_verdict_item item = {
        .id = id, .error = {"no \"good\"", 9}, .reason = "handler", .counts = true};
    assert_int_equal(hf_queue_fixture_verdict(&fixture, HF_OP_BURY, &args, &item), HF_OK);
}

static const char *payload_of(const char *id)
{
    static char text[512];
    const char *record = hf_fixture_command(&fixture.redis, "HGET hf:{q}:jobs %s", id);
    const char *payload = strchr(record, '\n');
    (void)snprintf(text, sizeof text, "%s", payload != NULL ? payload + 1 : "");
    return text;
}

static void it_tells_of_the_death(void **state)
{
    (void)state;
    put("one", "");
    claim_one("one");
    (void)hf_fixture_command(&fixture.redis, "DEL hf:{q}:wake");
    bury("one");
    assert_string_equal(payload_of("one.dead"),
                        "{\"id\":\"one\",\"type\":\"t\",\"queue\":\"q\",\"reason\":"
                        "\"handler\",\"error\":\"no \\\"good\\\"\",\"attempts\":1}");
    assert_int_equal(hf_fixture_number(&fixture.redis, "ZSCORE hf:{q}:wake baton"), 0);
    assert_int_equal(hf_queue_fixture_meta(&fixture, "enqueued"), 2);
    claim_one("one.dead");
    assert_string_equal(fixture.jobs[0].type, "t.died");
    bury("one.dead"); /* its own death makes none */
    assert_int_equal(hf_fixture_number(&fixture.redis, "HLEN hf:{q}:jobs"), 2);
}

static void each_death_is_told_once(void **state)
{
    (void)state;
    put("one", "");
    claim_one("one");
    bury("one");
    assert_int_equal(hf_admin_retry(fixture.admin, "q", "one", detail), HF_OK);
    claim_one("one.dead");
    assert_int_equal(hf_queue_fixture_complete(&fixture, "w", "one.dead", NULL), HF_OK);
    claim_one("one");
    bury("one"); /* the second death is told as well */
    assert_int_equal(hf_admin_retry(fixture.admin, "q", "one", detail), HF_OK);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 2, 0), 2);
    bury("one"); /* and the third, while the word on the last one is still there */
    assert_int_equal(hf_fixture_number(&fixture.redis, "HLEN hf:{q}:jobs"), 3);
    assert_int_equal(hf_queue_fixture_meta(&fixture, "enqueued"), 4);
    assert_int_equal(hf_queue_fixture_complete(&fixture, "w", "one.dead", NULL), HF_OK);
    claim_one("one.dead.2");
}

static void another_job_with_its_id_does_not_hide_a_death(void **state)
{
    char id[HF_ID_SIZE];
    (void)state;
    put("one.dead", "");
    claim_one("one.dead");
    bury("one.dead"); /* a dead one */
    claim_one("one.dead.dead");
    put("one", "");
    claim_one("one");
    bury("one");
    claim_one("one.dead.2");
    assert_string_equal(fixture.jobs[0].type, "t.died");
    memset(id, 'x', sizeof id - 1); /* of a long id, too */
    id[sizeof id - 1] = '\0';
    for (int i = 0; i < 2; i++) {
        put(id, "");
        claim_one(id);
        bury(id);
        assert_int_equal(hf_admin_delete(fixture.admin, "q", id, NULL, detail), HF_OK);
    }
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 2, 0), 2);
    assert_true(strlen(fixture.jobs[0].id) <= HF_NAME_MAX);
    assert_true(strlen(fixture.jobs[1].id) <= HF_NAME_MAX);
}

static void a_retry_is_no_death(void **state)
{
    (void)state;
    put("one", "");
    claim_one("one");
    const hf_verdict_args args = {.worker = "w"};
    const hf_verdict_item item = {.id = "one", .error = {"x", 1}};
    assert_int_equal(hf_queue_fixture_verdict(&fixture, HF_OP_RETRY, &args, &item),
                     HF_OK);
    assert_int_equal(hf_queue_fixture_meta(&fixture, "enqueued"), 1);
}

static void a_poison_death_is_told(void **state)
{
    hf_claim_args args = hf_queue_fixture_claim_args("other", 1, 0);
    (void)state;
    put("one", "");
    claim_one("one");
    args.poison = 1;
    (void)hf_fixture_command(&fixture.redis, "ZADD hf:{q}:running 2 one");
    (void)hf_fixture_command(&fixture.redis, "DEL hf:{q}:lock:one");
    (void)hf_queue_fixture_claim_with(&fixture, &args);
    assert_non_null(strstr(payload_of("one.dead"), "\"reason\":\"poison\""));
}

static void an_expired_death_is_told(void **state)
{
    (void)state;
    put("one", ",\"start_within\":1,\"expired\":\"dead\"");
    hf_test_pause_ms(10);
    (void)hf_fixture_command(&fixture.redis, "DEL hf:{q}:wake");
    (void)hf_fixture_command(&fixture.redis, "HDEL hf:{q}:meta next_wake");
    assert_int_equal(hf_admin_cancel(fixture.admin, "q", "one", NULL, detail), HF_DEAD);
    assert_non_null(strstr(payload_of("one.dead"), "\"reason\":\"expired\""));
    assert_int_equal(hf_fixture_number(&fixture.redis, "ZSCORE hf:{q}:wake baton"), 0);
}

static void a_long_id_is_cut(void **state)
{
    char id[HF_ID_SIZE];
    (void)state;
    memset(id, 'x', sizeof id - 1);
    id[sizeof id - 1] = '\0';
    put(id, "");
    claim_one(id);
    bury(id);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
    assert_int_equal(strlen(fixture.jobs[0].id), HF_NAME_MAX);
    assert_string_equal(fixture.jobs[0].type, "t.died");
}

/* ---- as the file of a worker says ---- */

static hf_err try_file(const char *types)
{
    hf_err err;
    HF_QUEUE_FIXTURE_ASK(err, &fixture,
                         hf_op_file_on_dead(fixture.client, &fixture.queue, types,
                                            hf_queue_fixture_on_answer, &fixture));
    return err;
}

static void file(const char *types)
{
    assert_int_equal(try_file(types), HF_OK);
}

/* One of this type and with these options, which a worker holds. */
static void hold(const char *id, const char *type, const char *options)
{
    char record[256];
    int len = snprintf(record, sizeof record, "{\"type\":\"%s\"%s}\n", type, options);
    const hf_enqueue_args args = {.producer = "", .options = options[0] != '\0'};
    const hf_enqueue_item item = {id, 1, {record, (size_t)len}};
    assert_int_equal(hf_queue_fixture_enqueue_items(&fixture, &args, &item, 1), HF_OK);
    claim_one(id);
}

static bool is_told(const char *about)
{
    return hf_fixture_number(&fixture.redis, "HEXISTS hf:{q}:jobs %s", about) == 1;
}

/* The job about the death of this one is next, and of this type. */
static void assert_told(const char *id, const char *type)
{
    char about[HF_ID_SIZE];
    (void)snprintf(about, sizeof about, "%s.dead", id);
    claim_one(about);
    assert_string_equal(fixture.jobs[0].type, type);
}

static void a_file_says_it_for_jobs_that_do_not(void **state)
{
    (void)state;
    file("{\"*\":\"job.died\",\"pay\":\"pay.died\",\"still\":false}");
    hold("own", "pay", ",\"on_dead\":\"own.died\"");
    bury("own");
    assert_told("own", "own.died");
    hold("typed", "pay", "");
    bury("typed");
    assert_told("typed", "pay.died");
    hold("other", "mail", "");
    bury("other");
    assert_told("other", "job.died");
    bury("other.dead"); /* its own death makes none */
    assert_false(is_told("other.dead.dead"));
    hold("quiet", "still", "");
    bury("quiet");
    assert_false(is_told("quiet.dead"));
    file("{\"pay\":\"pay.died\"}");
    hold("none", "mail", "");
    bury("none");
    assert_false(is_told("none.dead"));
    file("");
    assert_int_equal(hf_fixture_number(&fixture.redis, "HEXISTS hf:{q}:meta on_dead"), 0);
    hold("last", "pay", "");
    bury("last");
    assert_false(is_told("last.dead"));
}

static void a_death_without_a_verdict_is_told_as_the_file_says(void **state)
{
    hf_claim_args args = hf_queue_fixture_claim_args("other", 1, 0);
    (void)state;
    file("{\"*\":\"job.died\",\"pay\":\"pay.died\"}");
    hold("poison", "pay", "");
    args.poison = 1;
    (void)hf_fixture_command(&fixture.redis, "ZADD hf:{q}:running 2 poison");
    (void)hf_fixture_command(&fixture.redis, "DEL hf:{q}:lock:poison");
    assert_int_equal(hf_queue_fixture_claim_with(&fixture, &args), HF_OK);
    assert_int_equal(fixture.n_jobs, 1);
    assert_string_equal(fixture.jobs[0].id, "poison.dead");
    assert_string_equal(fixture.jobs[0].type, "pay.died");
    const hf_enqueue_args with = {.producer = "", .options = true};
    const char *late = "{\"type\":\"pay\",\"start_within\":1,\"expired\":\"dead\"}\n";
    const hf_enqueue_item item = {"late", 0, {late, strlen(late)}};
    assert_int_equal(hf_queue_fixture_enqueue_items(&fixture, &with, &item, 1), HF_OK);
    hf_test_pause_ms(10);
    assert_told("late", "pay.died");
    hf_queue_fixture_put(&fixture, "lost", "", 0);
    (void)hf_fixture_command(&fixture.redis, "HDEL hf:{q}:jobs lost");
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 0);
    assert_told("lost", "job.died"); /* its type is not known */
    assert_non_null(strstr(payload_of("lost.dead"), "\"reason\":\"record\""));
}

static void a_file_that_says_no_types_is_refused(void **state)
{
    (void)state;
    assert_int_not_equal(try_file("{\"*\":\"a b\"}"), HF_OK);
    assert_int_not_equal(try_file("{\"*\":5}"), HF_OK);
    assert_int_not_equal(try_file("[\"*\""), HF_OK);
    assert_int_equal(hf_fixture_number(&fixture.redis, "HEXISTS hf:{q}:meta on_dead"), 0);
    /* What another hand has written there keeps no job from its death. */
    (void)hf_fixture_command(&fixture.redis, "HSET hf:{q}:meta on_dead nonsense");
    hold("one", "t", "");
    bury("one");
    assert_int_equal(hf_fixture_number(&fixture.redis, "ZCARD hf:{q}:dead"), 1);
}

#define TEST(name) HF_ADMIN_TEST(name, &fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(it_tells_of_the_death),
        TEST(each_death_is_told_once),
        TEST(another_job_with_its_id_does_not_hide_a_death),
        TEST(a_retry_is_no_death),
        TEST(a_poison_death_is_told),
        TEST(an_expired_death_is_told),
        TEST(a_long_id_is_cut),
        TEST(a_file_says_it_for_jobs_that_do_not),
        TEST(a_death_without_a_verdict_is_told_as_the_file_says),
        TEST(a_file_that_says_no_types_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
