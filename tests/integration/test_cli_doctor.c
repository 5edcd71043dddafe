/* `holdfast doctor` for people and scripts: the text of a finding, the limit for many
 * findings, the notes, and the exit status. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cli_try.h"
#include "tests/support/eventually.h"

enum { MANY = 60, SHOWN = 20 };

static hf_cli_fixture *const fixture = &hf_try_fixture;

static size_t times(const char *text, const char *part)
{
    size_t n = 0;
    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part))
        n++;
    return n;
}

static void enqueue(const char *id, const char *how)
{
    char line[128];
    (void)snprintf(line, sizeof line, "enqueue t @ --id %s %s", id, how);
    hf_try_run(line, 0);
}

static void a_finding_is_told_with_its_meaning_and_its_repair(void **state)
{
    (void)state;
    enqueue("lost", "--in 1h");
    hf_try_run("doctor @", 0);
    hf_try_has(fixture->out, "1 queue looked at, 0 findings\n");
    hf_fixture_command(&fixture->redis, "HDEL hf:{default}:jobs lost");
    hf_try_run("doctor @", 1);
    hf_try_has(fixture->out,
               "default: I1: lost: is in `schedule` and has no record\n    means: ");
    hf_try_has(fixture->out, "    would be repaired: it goes to `dead`");
    hf_try_has(fixture->out, "1 finding, 1 of which `holdfast doctor --fix` repairs\n");
    hf_try_run("doctor @ --fix", 0);
    hf_try_has(fixture->out, "    repaired: it goes to `dead`");
    hf_try_has(fixture->out, "1 repaired, 0 findings left\n");
    hf_try_run("doctor @ --fix", 0);
    hf_try_has(fixture->out, "0 repaired, 0 findings left\n");
}

static void as_json_it_is_one_object_for_each(void **state)
{
    (void)state;
    enqueue("lost", "--in 1h");
    hf_fixture_command(&fixture->redis, "HDEL hf:{default}:jobs lost");
    for (int fixed = 0; fixed < 2; fixed++) {
        hf_try_run(fixed ? "doctor @ --json --fix" : "doctor @ --json", fixed ? 0 : 1);
        json_t *o = json_loads(fixture->out, 0, NULL);
        assert_non_null(o);
        assert_int_equal(times(fixture->out, "\n"), 1);
        assert_string_equal(hf_try_text(o, "queue"), "default");
        assert_string_equal(hf_try_text(o, "check"), "record");
        assert_string_equal(hf_try_text(o, "id"), "lost");
        assert_int_equal(hf_try_number(o, "invariant"), 1);
        assert_true(hf_try_text(o, "text")[0] != '\0');
        assert_true(hf_try_text(o, "means")[0] != '\0');
        assert_true(hf_try_text(o, "repair")[0] != '\0');
        assert_int_equal(json_is_true(json_object_get(o, "repaired")), fixed);
        assert_true(json_is_false(json_object_get(o, "by_hand")));
        json_decref(o);
    }
    hf_try_run("doctor @ --json", 0);
    assert_string_equal(fixture->out, "");
}

static void of_one_kind_some_are_shown_and_all_are_counted(void **state)
{
    char id[32];
    (void)state;
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(id, sizeof id, "id-%d", i);
        hf_fixture_command(&fixture->redis, "ZADD hf:{q}:schedule 9000000000000 %s", id);
    }
    hf_fixture_command(&fixture->redis, "SADD hf:{/}:queues q");
    hf_fixture_command(&fixture->redis, "HSET hf:{q}:crashes x 1");
    hf_fixture_command(&fixture->redis, "HSET hf:{q}:meta uses m");
    hf_try_run("doctor @", 1);
    assert_int_equal(times(fixture->out, "has no record\n"), SHOWN);
    assert_int_equal(times(fixture->out, "means: "), 2);
    hf_try_has(fixture->out, "q: and 40 more of `record`\n");
    hf_try_has(fixture->out, "61 findings, 61 of which");
    hf_try_run("doctor @ --json", 1);
    assert_int_equal(times(fixture->out, "\n"), MANY + 1);
    hf_try_run("doctor @ --fix", 0);
    assert_int_equal(times(fixture->out, "    repaired: "), SHOWN + 1);
    hf_try_has(fixture->out, "61 repaired, 0 findings left");
}

static void what_others_wrote_does_not_spoil_the_lines(void **state)
{
    (void)state;
    hf_fixture_command(&fixture->redis, "SADD hf:{/}:queues q");
    hf_fixture_command(&fixture->redis, "HSET hf:{q}:crashes %s 1", "a\033[31m\nb");
    hf_fixture_command(&fixture->redis, "HSET hf:{q}:meta uses m");
    hf_try_run("doctor @", 1);
    assert_null(strchr(fixture->out, '\033'));
    hf_try_has(fixture->out, "q: I9: a [31m b: has left a mark");
}

static void a_queue_without_workers_is_found_and_a_paused_one_noted(void **state)
{
    (void)state;
    enqueue("later", "--in 1h");
    hf_try_run("doctor @", 0);
    hf_try_has(fixture->out,
               "note: no live worker serves default, and 1 job will be due");
    enqueue("now", "");
    hf_try_run("doctor @", 1);
    hf_try_has(fixture->out, "default: no live worker serves it, and 1 job is due");
    assert_null(strstr(fixture->out, "default: default: "));
    hf_try_has(fixture->out, "by hand: start a worker");
    hf_try_run("queue pause default @", 0);
    hf_try_run("doctor @", 0);
    hf_try_has(fixture->out, "note: default is paused, and 2 jobs wait in it");
}

static void beat(const char *id, const char *types)
{
    char json[256];
    (void)snprintf(json, sizeof json,
                   "{\"state\":\"serving\",\"queues\":[\"default\"],\"types\":[%s]}",
                   types);
    hf_fixture_command(&fixture->redis, "ZADD hf:{/}:workers 99999999999999 %s", id);
    hf_fixture_command(&fixture->redis, "SET hf:{/}:worker:%s %s PX 60000", id, json);
}

static void workers_with_different_types_are_noted(void **state)
{
    (void)state;
    enqueue("later", "--in 1h");
    beat("w1-1-0", "\"t\",\"mail\"");
    beat("w2-2-0", "\"mail\",\"t\"");
    hf_try_run("doctor @", 0);
    assert_null(strstr(fixture->out, "different types"));
    beat("w3-3-0", "\"t\",\"mail\",\"report\"");
    hf_try_run("doctor @", 0);
    hf_try_has(fixture->out,
               "note: the workers of default take different types: w3-3-0 takes "
               "'report', and w1-1-0 does not");
    beat("w3-3-0", "\"mail\"");
    hf_try_run("doctor -q default @", 0);
    hf_try_has(fixture->out, "w1-1-0 takes 't', and w3-3-0 does not");
    hf_try_run("doctor -q other @", 0);
    assert_null(strstr(fixture->out, "different types"));
    beat("w3-3-0", "\"*\"");
    hf_try_run("doctor @", 0);
    hf_try_has(fixture->out, "w3-3-0 takes '*', and w1-1-0 does not");
}

static void schedules_without_workers_are_found_when_they_are_late(void **state)
{
    (void)state;
    hf_try_run("cron add calm t --every 365d @", 0);
    hf_try_run("doctor @", 0);
    hf_try_run("cron add hasty t --every 100ms @", 0);
    EVENTUALLY(15000, hf_cli_fixture_run(fixture, "doctor @", NULL, NULL) == 1);
    hf_try_has(fixture->out,
               "default: no live worker serves it, and 1 of its schedules is late\n");
    EVENTUALLY(15000,
               hf_cli_fixture_run(fixture, "cron show hasty @", NULL, NULL) == 0 &&
                   strstr(fixture->out, " ago): 'holdfast queue show default' tells "
                                        "whether it is paused or has no workers\n"));
    hf_try_run("queue pause default @", 0);
    hf_try_run("doctor @", 0);
    hf_try_has(fixture->out, "note: default is paused, and 1 of its schedules is late\n");
}

static void one_queue_may_be_broken_and_the_others_are_looked_at(void **state)
{
    (void)state;
    enqueue("lost", "--in 1h -q z");
    enqueue("lost", "--in 1h -q b");
    hf_fixture_command(&fixture->redis, "HDEL hf:{z}:jobs lost");
    hf_fixture_command(&fixture->redis, "SADD hf:{/}:queues a");
    hf_fixture_command(&fixture->redis, "SET hf:{a}:schedule x");
    hf_try_run("doctor @", 1);
    hf_try_has(fixture->out, "a: I9: hf:{a}:schedule: is a string, expected a zset\n");
    hf_try_has(fixture->out, "z: I1: lost: ");
    hf_try_has(fixture->out, "3 queues looked at, 2 findings, 1 of which");
    hf_try_run("doctor @ --fix", 1);
    hf_try_has(fixture->out, "1 repaired, 1 finding left\n");
    hf_try_run("doctor @ -q b", 0);
    hf_try_has(fixture->out, "1 queue looked at, 0 findings\n");
    hf_try_run("doctor @ -q a", 1);
    assert_string_equal(hf_fixture_command(&fixture->redis, "GET hf:{a}:schedule"), "x");
}

/* The bar is taken away before anything is printed. */
static void at_a_terminal_it_shows_how_far_it_is(void **state)
{
    static hf_terminal terminal;
    (void)state;
    enqueue("lost", "--in 1h");
    hf_fixture_command(&fixture->redis, "HDEL hf:{default}:jobs lost");
    hf_cli_fixture_at_terminal(fixture, &terminal, "doctor @", NULL);
    assert_int_equal(hf_terminal_end(&terminal, 10000), 1);
    hf_try_has(terminal.text, "ids looked at");
    hf_try_has(terminal.text, "\rdefault: I1: lost: is in `schedule`");
    hf_try_run("doctor @", 1);
    assert_string_equal(fixture->err, ""); /* none in a pipe */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, NULL, hf_try_clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_finding_is_told_with_its_meaning_and_its_repair),
        TEST(as_json_it_is_one_object_for_each),
        TEST(of_one_kind_some_are_shown_and_all_are_counted),
        TEST(what_others_wrote_does_not_spoil_the_lines),
        TEST(a_queue_without_workers_is_found_and_a_paused_one_noted),
        TEST(workers_with_different_types_are_noted),
        TEST(at_a_terminal_it_shows_how_far_it_is),
        TEST(schedules_without_workers_are_found_when_they_are_late),
        TEST(one_queue_may_be_broken_and_the_others_are_looked_at),
    };
    hf_try_up(HF_TEST_COMMAND, NULL);
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    hf_try_down();
    return failures;
}
