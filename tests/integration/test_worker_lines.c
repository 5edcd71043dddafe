/* test_worker_lines.c - programs that write descriptor lines: what they say while they
 * run, what the next run finds, and their logs. By the command, as a user has it. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/admin.h"
#include "tests/support/admin.h"
#include "tests/support/cli_fixture.h"
#include "tests/support/eventually.h"

/* `steps` saves each, and fails after each but the last. `away` leaves a process behind
 * that keeps all of its descriptors until the test ends. */
#define HANDLERS                                                                         \
    HF_CLI_PATIENT                                                                       \
    "worker: {lease: 1m}\n"                                                              \
    "retry: {base: 10ms, cap: 10ms, jitter: 0}\n"                                        \
    "handlers:\n"                                                                        \
    "  - {type: late, exec: [sh, -c, 'echo \"{\\\"progress\\\":40}\" >&3; "              \
    "echo \"{\\\"verdict\\\":\\\"dead\\\",\\\"error\\\":\\\"no\\\"}\" >&3']}\n"          \
    "  - {type: going, exec: [sh, -c, 'echo \"{\\\"progress\\\":40,"                     \
    "\\\"note\\\":\\\"row 7\\\"}\" >&3; while [ ! -e gate ]; do sleep 0.05; done']}\n"   \
    "  - {type: steps, logs: true, exec: [sh, -c, '"                                     \
    "n=$(cat <&$HOLDFAST_CHECKPOINT_FD); n=$((n + 1)); echo step $n; "                   \
    "echo \"{\\\"checkpoint\\\":$n}\" >&3; [ $n = 4 ] || exit 1; "                       \
    "echo $n > steps; while [ ! -e gate ]; do sleep 0.05; done']}\n"                     \
    "  - {type: away, exec: [sh, -c, 'setsid sh -c \"while [ -e w.yaml ]; "              \
    "do sleep 0.05; done\" & "                                                           \
    "echo \"{\\\"verdict\\\":\\\"done\\\"}\" >&3; exit 1']}\n"

static hf_cli_fixture fixture;
static hf_proc worker;
static hf_admin *admin;

static int up(void **state)
{
    (void)state;
    hf_cli_fixture_start(&fixture, HF_TEST_COMMAND);
    hf_cli_fixture_put(&fixture, "w.yaml", HANDLERS);
    hf_cli_fixture_begin(&fixture, &worker, "worker @ -c w.yaml", "log");
    EVENTUALLY(15000, strstr(hf_cli_fixture_get(&fixture, "log"), "serving") != NULL);
    admin = hf_test_admin(hf_fixture_url(&fixture.redis));
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_cli_fixture_put(&fixture, "gate", "");
    hf_proc_kill(&worker);
    hf_admin_close(admin);
    hf_cli_fixture_stop(&fixture);
    return 0;
}

static void enqueue(const char *line)
{
    assert_int_equal(hf_cli_fixture_run(&fixture, line, NULL, NULL), 0);
}

static bool look(hf_job_info *info)
{
    *info = (hf_job_info){HF_JOB_INFO_INIT};
    return hf_admin_job(admin, "default", "a", info, NULL, NULL) == HF_OK;
}

static void a_later_verdict_counts(void **state)
{
    (void)state;
    hf_job_info info;
    enqueue("enqueue late @ --id a");
    EVENTUALLY(15000, look(&info) && info.state == HF_STATE_DEAD);
    assert_string_equal(info.error, "no");
}

static void progress_is_seen_while_it_runs(void **state)
{
    (void)state;
    hf_job_info info;
    enqueue("enqueue going @ --id a");
    EVENTUALLY(5000, look(&info) && info.has_progress); /* long before a renewal */
    assert_int_equal(info.progress, 40);
    assert_string_equal(info.note, "row 7");
    hf_cli_fixture_put(&fixture, "gate", "");
    EVENTUALLY(15000, !look(&info));
}

static void on_part(const hf_log_part *part, void *arg)
{
    char *all = arg;
    size_t len = strlen(all);
    (void)snprintf(all + len, 256 - len, "%u:%.*s", part->attempt, (int)part->len,
                   part->text);
}

/* Each run goes on where the one before stopped; its log is kept until the job ends. */
static void the_next_run_finds_the_checkpoint(void **state)
{
    (void)state;
    char all[256] = "";
    hf_job_info info;
    hf_log_place place = {HF_LOG_PLACE_INIT};
    enqueue("enqueue steps @ --id a");
    EVENTUALLY(15000, strcmp(hf_cli_fixture_get(&fixture, "steps"), "4\n") == 0);
    EVENTUALLY(15000, look(&info) && info.logs == 4 && info.checkpoint_len == 1);
    assert_int_equal(hf_admin_logs(admin, NULL, "a", &place, on_part, all, NULL), HF_OK);
    assert_string_equal(all, "1:step 1\n2:step 2\n3:step 3\n4:step 4\n");
    assert_int_equal(hf_admin_logs(admin, NULL, "a", &place, on_part, all, NULL), HF_OK);
    assert_string_equal(all, "1:step 1\n2:step 2\n3:step 3\n4:step 4\n");
    hf_cli_fixture_put(&fixture, "gate", "");
    EVENTUALLY(15000, !look(&info));
    EVENTUALLY(15000,
               hf_admin_logs(admin, "default", "a", NULL, on_part, all, NULL) == HF_GONE);
    assert_int_equal(hf_fixture_number(&fixture.redis, "EXISTS hf:{default}:log:a"), 0);
}

static void what_is_left_behind_holds_nothing_up(void **state)
{
    (void)state;
    enqueue("enqueue away @ --id a");
    EVENTUALLY(15000,
               strstr(hf_cli_fixture_get(&fixture, "log"), "outcome=done") != NULL);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, up, down)
    const struct CMUnitTest tests[] = {
        CASE(a_later_verdict_counts),
        CASE(progress_is_seen_while_it_runs),
        CASE(the_next_run_finds_the_checkpoint),
        CASE(what_is_left_behind_holds_nothing_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
