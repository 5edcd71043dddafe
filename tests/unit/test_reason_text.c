/* The sentences of `job why` and the commands that they offer: each is true in the state
 * that it is about, and whole with the longest names. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/id.h"
#include "seen/offer.h"
#include "seen/reasons.h"
#include "tests/support/eventually.h"

enum { NOW_MS = 1000000 };

static hf_job_info job;
static hf_job_why why;
static hf_reason_facts facts;
static char text[HF_REASON_TEXT_SIZE];

/* A job that is due, with a free worker for it. */
static int fresh(void **state)
{
    (void)state;
    job = (hf_job_info){HF_JOB_INFO_INIT,
                        .id = "j",
                        .queue = "q",
                        .type = "t",
                        .state = HF_STATE_READY,
                        .due_ms = NOW_MS - 10};
    why =
        (hf_job_why){HF_JOB_WHY_INIT, .job = &job, .workers = 1,    .workers_for_type = 1,
                     .slots = 4,      .busy = 3,   .now_ms = NOW_MS};
    facts = (hf_reason_facts){.why = &why, .types = "", .longest = ""};
    return 0;
}

static bool says(hf_reason reason, const char *part)
{
    return strstr(hf_reason_text(&facts, reason, text), part) != NULL;
}

/* ---- commands ---- */

static void assert_offer(const char *command, const char *name, const char *queue,
                         const char *options, const char *wanted)
{
    char out[HF_OFFER_SIZE];
    assert_string_equal(hf_offer(out, command, name, queue, options), wanted);
}

static void a_name_that_looks_like_an_option_stands_behind_two_dashes(void **state)
{
    (void)state;
    assert_offer("job why", "j", "q", "", "holdfast job why j -q q");
    assert_offer("job why", "-j", "-q", "", "holdfast job why -q -q -- -j");
    assert_offer("queue limit", "--", NULL, " --rate N/s",
                 "holdfast queue limit --rate N/s -- --");
    assert_offer("dead list", "", "q", " --type t", "holdfast dead list -q q --type t");
    assert_offer("lock show", "a/b", NULL, "", "holdfast lock show a/b");
    assert_offer("lock show", "-a", NULL, "", "holdfast lock show -- -a");
}

/* What a shell makes of it. */
static void read_words(const char *command, char *out, size_t size)
{
    char line[HF_OFFER_SIZE + 32];
    (void)snprintf(line, sizeof line, "printf '<%%s>' %s", command);
    FILE *shell = popen(line, "r");
    assert_non_null(shell);
    out[fread(out, 1, size - 1, shell)] = '\0';
    assert_int_equal(pclose(shell), 0);
}

static void a_shell_reads_a_command_as_it_stands(void **state)
{
    char name[] = "a?b", command[HF_OFFER_SIZE], words[HF_OFFER_SIZE], wanted[64];
    (void)state;
    for (int c = 1; c < 256; c++) {
        name[1] = (char)c;
        (void)hf_offer(command, "job why", name, name, "");
        if (c != '/')
            assert_int_equal(command[0] != '\0', hf_name_ok(name));
        if (command[0] == '\0')
            continue;
        read_words(command, words, sizeof words);
        (void)snprintf(wanted, sizeof wanted, "<holdfast><job><why><%s><-q><%s>", name,
                       name);
        assert_string_equal(words, wanted);
    }
}

static void a_command_without_room_is_none(void **state)
{
    char name[2 * HF_NAME_MAX] = "";
    (void)state;
    memset(name, 'n', sizeof name - 1);
    assert_offer("job why", name, name, "", "");
}

/* ---- sentences ---- */

static void a_job_is_retried_where_a_worker_can_run_it(void **state)
{
    (void)state;
    job.due_ms = NOW_MS + 1000;
    assert_true(says(HF_REASON_DELAYED, ": 'holdfast job retry j' runs it now"));
    why.busy = why.slots;
    assert_true(says(HF_REASON_DELAYED, ": 'holdfast job retry j' makes it due now"));
    why.busy = 0;
    why.max_running = why.running = 1;
    assert_true(says(HF_REASON_DELAYED, " makes it due now"));
    why.running = 0;
    why.next_token_ms = NOW_MS + 1;
    assert_true(says(HF_REASON_RETRY, " makes it due now"));
    why.paused = true;
    assert_false(says(HF_REASON_DELAYED, "retry"));
    why.paused = false;
    why.refuses = HF_READONLY;
    assert_false(says(HF_REASON_DELAYED, "job retry"));
    why.refuses = HF_OK;
    why.workers_for_type = 0;
    assert_false(says(HF_REASON_DELAYED, "job retry"));
    why.workers = 0;
    assert_false(says(HF_REASON_DELAYED, "job retry"));
    assert_false(says(HF_REASON_RETRY, "job retry"));
}

static void nothing_runs_where_no_worker_is(void **state)
{
    (void)state;
    assert_true(says(HF_REASON_DEAD, "; 'holdfast job retry j' runs it again"));
    assert_true(says(HF_REASON_PAUSED, "'holdfast queue resume q' starts its jobs"));
    why.workers = why.workers_for_type = 0;
    assert_true(
        says(HF_REASON_DEAD, "; 'holdfast job retry j' lets it wait for a worker again"));
    assert_true(says(HF_REASON_PAUSED, "'holdfast queue resume q' ends the pause"));
}

static void a_holder_that_is_gone_learns_nothing(void **state)
{
    (void)state;
    job.state = HF_STATE_RUNNING;
    job.due_ms = NOW_MS + 1;
    assert_true(says(HF_REASON_CANCELLING, "its holder learns of it when it next"));
    job.due_ms = NOW_MS;
    assert_true(says(HF_REASON_CANCELLING,
                     "its lease is over, and the worker that takes it over removes it"));
}

static void an_error_is_cut_at_the_end_of_a_character(void **state)
{
    (void)state;
    for (size_t i = 0; i < 400; i++)
        memcpy(job.error + 2 * i, "\xc3\xa4", 2);
    assert_true(says(HF_REASON_DEAD, "\xc3\xa4...; 'holdfast"));
    memmove(job.error + 1, job.error, 799);
    job.error[0] = 'a';
    assert_true(says(HF_REASON_DEAD, "\xc3\xa4...; 'holdfast"));
}

/* ---- the longest names ---- */

static void fill(char *out, size_t size, char c)
{
    memset(out, c, size - 1);
    out[size - 1] = '\0';
}

static void make_long(void)
{
    static char types[512], longest[HF_ID_SIZE];
    fill(job.id, sizeof job.id, 'i');
    fill(job.queue, sizeof job.queue, 'q');
    fill(job.type, sizeof job.type, 't');
    fill(job.follows, sizeof job.follows, 'f');
    fill(job.error, sizeof job.error, 'e');
    fill(job.holder, sizeof job.holder, 'h');
    fill(why.refusal, sizeof why.refusal, 'r');
    fill(types, sizeof types, 'y');
    fill(longest, sizeof longest, 'l');
    job.due_ms = INT64_C(253402300799999);
    job.attempts = job.crashes = UINT32_MAX;
    why.workers = why.workers_for_type = why.pools_down = INT64_MAX;
    why.slots = why.busy = why.before = why.max_running = why.running = INT64_MAX;
    why.rate_limit = why.rate_per_ms = INT32_MAX;
    why.next_token_ms = job.due_ms;
    why.n_holders = HF_COUNT(why.holders);
    for (size_t i = 0; i < HF_COUNT(why.holders); i++) {
        fill(why.holders[i], sizeof why.holders[i], 'h');
        why.held[i] = INT64_MAX / 16;
    }
    facts.queue = job.queue;
    facts.types = types;
    facts.shards = UINT32_MAX;
    facts.longest = longest;
    facts.longest_ms = NOW_MS;
}

/* No text is cut but that of another hand, and each command in it is whole. */
static void sentences_are_whole_with_the_longest_names(void **state)
{
    (void)state;
    for (int round = 0; round < 8; round++) {
        (void)fresh(state);
        make_long();
        facts.follows_dead = round & 1;
        why.workers_for_type = round & 2 ? 0 : why.workers_for_type;
        job.state = round & 4 ? HF_STATE_RUNNING : HF_STATE_READY;
        for (int reason = 0; reason < HF_REASONS; reason++) {
            size_t quotes = 0;
            (void)hf_reason_text(&facts, (hf_reason)reason, text);
            assert_true(strlen(text) + 100 < sizeof text);
            assert_string_not_equal(text + strlen(text) - 3, "...");
            for (const char *at = text; *at != '\0'; at++)
                quotes += *at == '\'' && strncmp(at, "'s ", 3) != 0;
            assert_int_equal(quotes % 2, 0);
        }
    }
}

#define TEST(name) cmocka_unit_test_setup(name, fresh)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_name_that_looks_like_an_option_stands_behind_two_dashes),
        TEST(a_shell_reads_a_command_as_it_stands),
        TEST(a_command_without_room_is_none),
        TEST(a_job_is_retried_where_a_worker_can_run_it),
        TEST(nothing_runs_where_no_worker_is),
        TEST(a_holder_that_is_gone_learns_nothing),
        TEST(an_error_is_cut_at_the_end_of_a_character),
        TEST(sentences_are_whole_with_the_longest_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
