/* test_cli_shards.c - `holdfast queue shards`, and the other commands of a divided queue.
 */
#include <stdio.h>
#include <string.h>

#include "tests/support/audit.h"
#include "tests/support/cli_try.h"
#include "tests/support/eventually.h"
#include "tests/support/shards.h"

static hf_cli_fixture *const fixture = &hf_try_fixture;

static void a_queue_is_divided_and_shown(void **state)
{
    (void)state;
    hf_try_run("queue shards wide @", 0);
    assert_string_equal(fixture->out, "wide: not divided\n");
    hf_try_run("queue shards wide 4 @", 0);
    assert_string_equal(
        fixture->out,
        "wide: 4 shards\n"
        "SHARD  TAG        SLOT  STATE  READY  DELAYED  RUNNING  DEAD  DONE  NODE\n"
        "    0  wide/0-2   3166  on         0        0        0     0     0  -\n"
        "    1  wide/1-0   6956  on         0        0        0     0     0  -\n"
        "    2  wide/2-2   8766  on         0        0        0     0     0  -\n"
        "    3  wide/3-0  13644  on         0        0        0     0     0  -\n");
    hf_try_run("queue shards wide 4 @", 0);
    hf_try_run("queue shards wide @ --json", 0);
    hf_try_has(fixture->out, "{\"queue\":\"wide\",\"shards\":[{\"shard\":0,"
                             "\"tag\":\"wide/0-2\",\"slot\":3166,\"node\":null,");
    hf_try_run("queue list @", 0);
    hf_try_has(fixture->out, "\nwide ");
    hf_try_run("queue show wide @", 0);
    hf_try_has(fixture->out, "wide\n  now  ");
    hf_try_has(fixture->out, "\nwide: 4 shards\n");
    hf_try_run("queue show wide @ --json", 0);
    hf_try_has(fixture->out, "\"shards\":[{\"shard\":0,");
    hf_try_run("queue show other @ --json", 1);
    hf_try_run("enqueue t @ --queue other --id one", 0);
    hf_try_run("queue show other @ --json", 0);
    assert_null(strstr(fixture->out, "shards"));
}

static void one_that_cannot_be_divided_says_why(void **state)
{
    (void)state;
    hf_try_run("queue shards wide 4 @", 0);
    hf_try_run("queue shards wide 8 @", 65);
    assert_string_equal(
        fixture->err, "holdfast: queue 'wide': it has 4 shards, and keeps this number\n");
    hf_try_run("enqueue t @ --queue used", 0);
    hf_try_run("queue shards used 8 @", 65);
    assert_string_equal(fixture->err, "holdfast: queue 'used': a queue is divided before "
                                      "it is used, and it has jobs\n");
    hf_try_run("queue shards wide 1 @", 64);
    hf_try_run("queue shards wide 65 @", 64);
    hf_try_run("queue shards wide many @", 64);
    hf_try_run("queue shards @", 64);
    hf_try_run("queue shards a/b 4 @", 65);
}

static void commands_take_the_name_of_the_queue(void **state)
{
    (void)state;
    hf_try_run("queue shards wide 4 @", 0);
    hf_try_run("enqueue t @ --queue wide --id one", 0);
    hf_try_run("enqueue t @ --queue wide --id one", 0);
    hf_try_run("enqueue t @ --queue wide", 0);
    char id[16], line[64];
    (void)snprintf(id, sizeof id, "%.14s", fixture->out);
    (void)snprintf(line, sizeof line, "job show %s @", id);
    hf_try_run(line, 0);
    hf_try_has(fixture->out, "wide");
    hf_try_run("job list @ --queue wide", 0);
    hf_try_has(fixture->out, "one");
    hf_try_has(fixture->out, id);
    hf_try_run("job list @ --queue wide --limit 1", 0);
    hf_try_run("queue limit wide --max-running 3 @", 65);
    assert_string_equal(fixture->err, "holdfast: expected max_running of at least 4, one "
                                      "for each shard, found 3\n");
    hf_try_run("queue limit wide --max-running 4 @", 0);
    hf_try_has(fixture->out, "max_running 4");
    hf_try_run("queue pause wide @", 0);
    hf_try_run("job why one @", 0);
    hf_try_has(fixture->out, "paused");
    hf_try_run("queue resume wide @", 0);
    hf_try_run("queue purge wide @ --yes", 0);
    hf_try_has(fixture->out, "2 jobs removed");
    hf_try_run("doctor @ --queue wide", 0);
}

/* Its own keys are broken; a node that is away looks the same. */
static void a_shard_that_cannot_be_asked_hides_no_other(void **state)
{
    (void)state;
    hf_try_run("queue shards wide 4 @", 0);
    (void)hf_fixture_command(&fixture->redis, "SET hf:{wide/1-0}:meta x");
    hf_try_run("queue shards wide @", 70);
    hf_try_has(fixture->out, "0  wide/0-2   3166  on  ");
    hf_try_has(fixture->out, "1  wide/1-0   6956  unknown      -");
    hf_try_has(fixture->out, "3  wide/3-0  13644  on  ");
    hf_try_has(fixture->err, "shard wide/1-0: WRONGTYPE");
    hf_try_run("queue shards wide @ --json", 70);
    hf_try_has(fixture->out, "\"slot\":6956,\"node\":null,\"unknown\":true}");
    hf_try_has(fixture->out, "\"unknown\":false,\"paused\":false");
}

/* ---- many jobs with ids ---- */

enum { LINES = 40 };

/* One shard takes none of them. */
static void break_a_shard(const char *queue)
{
    hf_shards shards;
    char key[HF_TEST_SHARD_KEY];
    hf_test_divide(&fixture->redis, queue, 4, &shards);
    (void)hf_fixture_command(&fixture->redis, "SET %s x",
                             hf_test_shard_key(&shards, 3, "jobs", key));
}

static void write_lines(const char *id)
{
    char path[HF_CLI_PATH];
    hf_cli_fixture_path(fixture, "f", path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int i = 0; i < LINES; i++)
        fprintf(file,
                id[0] == '\0' ? "{\"type\":\"t\"}\n"
                              : "{\"type\":\"t\",\"id\":\"%s%d\"}\n",
                id, i);
    assert_int_equal(fclose(file), 0);
}

static void a_block_that_was_accepted_in_part_says_so(void **state)
{
    char said[64], err[HF_CLI_TEXT];
    (void)state;
    break_a_shard("wide");
    write_lines("id");
    hf_try_run("enqueue @ --bulk f -q wide", 70);
    (void)snprintf(err, sizeof err, "%s", fixture->err);
    const long long n = hf_try_figure("wide", "ready");
    assert_in_range(n, 1, LINES - 1);
    (void)snprintf(said, sizeof said, "(%lld jobs were accepted; go on with --run ", n);
    hf_try_has(err, said);
}

static void atomic_refuses_what_would_be_sent_in_parts(void **state)
{
    (void)state;
    break_a_shard("wide");
    write_lines("id");
    hf_try_run("enqueue @ --bulk f -q wide --atomic", 65);
    hf_try_has(fixture->err,
               "holdfast: queue 'wide': expected jobs without ids with --atomic, because "
               "it is divided into 4 shards (nothing was accepted)");
    assert_int_equal(hf_try_figure("wide", "ready"), 0);
    hf_try_run("enqueue @ --bulk f -q plain --atomic", 0);
    write_lines("");
    hf_test_divide(&fixture->redis, "whole", 4, &(hf_shards){0});
    hf_try_run("enqueue @ --bulk f -q whole --atomic", 0);
    assert_int_equal(hf_try_figure("whole", "ready"), LINES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup(name, hf_try_clean)
        TEST(a_queue_is_divided_and_shown),
        TEST(one_that_cannot_be_divided_says_why),
        TEST(a_shard_that_cannot_be_asked_hides_no_other),
        TEST(commands_take_the_name_of_the_queue),
        TEST(a_block_that_was_accepted_in_part_says_so),
        TEST(atomic_refuses_what_would_be_sent_in_parts),
    };
    hf_try_up(HF_TEST_COMMAND, NULL);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    hf_try_down();
    return failed;
}
