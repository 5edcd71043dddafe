/* test_queue_unique.c - unique keys through the library: what an answer says, that a
 * worker names any key as it was given, and that no exit forgets a key. What the scripts
 * do in every order of events is in tests/acceptance/73-unique. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "holdfast/producer.h"
#include "queue/record.h"
#include "queue/shards.h"
#include "tests/support/eventually.h"
#include "tests/support/producer.h"
#include "tests/support/queue_fixture.h"

static hf_queue_fixture fixture;
static char detail[HF_DETAIL_SIZE];

static void must(hf_err err)
{
    if (err != HF_OK)
        fail_msg("%s: %s", hf_err_name(err), detail);
}

static hf_producer *open_producer(void)
{
    return hf_test_producer(&fixture.redis, (hf_producer_opts){HF_PRODUCER_OPTS_INIT});
}

static const hf_job plain = {HF_JOB_INIT, .queue = "q", .type = "t", .unique = "k"};

static hf_err put(hf_producer *producer, const hf_job *job, hf_enqueue_result *result)
{
    *result = (hf_enqueue_result){HF_ENQUEUE_RESULT_INIT};
    return hf_enqueue_wait(producer, job, 1, result, 0, detail);
}

static const char *command(const char *words)
{
    return hf_fixture_command(&fixture.redis, words);
}

/* ---- what an answer says ---- */

static void a_skipped_job_names_the_holder(void **state)
{
    hf_enqueue_result result;
    hf_job job = plain;
    (void)state;
    hf_producer *producer = open_producer();
    job.id = "holder";
    must(put(producer, &job, &result));
    assert_int_equal(result.conflict, HF_CONFLICT_NONE);
    job.id = "other";
    must(put(producer, &job, &result));
    assert_int_equal(result.err, HF_EXISTS);
    assert_int_equal(result.conflict, HF_CONFLICT_SKIPPED);
    assert_int_equal(result.holder_state, HF_EXISTS);
    assert_string_equal(result.holder, "holder");
    assert_string_equal(result.id, "holder");
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 9, 0), 1);
    must(put(producer, &job, &result));
    assert_int_equal(result.holder_state, HF_RUNNING);
    hf_producer_close(producer, NULL, NULL);
}

/* Its checkpoint and logs were those of another payload. */
static void a_replaced_job_starts_anew(void **state)
{
    hf_enqueue_result result;
    hf_job job = plain;
    (void)state;
    hf_producer *producer = open_producer();
    job.id = "holder";
    must(put(producer, &job, &result));
    (void)hf_fixture_command(&fixture.redis, "HSET hf:{q}:checkpoint holder %s",
                             "1 1 - x");
    (void)hf_fixture_command(&fixture.redis, "HSET hf:{q}:logs holder 1");
    (void)hf_fixture_command(&fixture.redis, "HSET hf:{q}:log:holder 1 %s", "1 4 text");
    job.id = "other";
    job.on_conflict = HF_ON_CONFLICT_REPLACE;
    must(put(producer, &job, &result));
    assert_int_equal(result.conflict, HF_CONFLICT_REPLACED);
    assert_int_equal(hf_fixture_number(&fixture.redis, "EXISTS hf:{q}:checkpoint "
                                                       "hf:{q}:logs hf:{q}:log:holder"),
                     0);
    hf_producer_close(producer, NULL, NULL);
    must(hf_admin_delete(fixture.admin, "q", "holder", NULL, detail));
}

static void a_parked_job_has_its_own_id(void **state)
{
    hf_enqueue_result result;
    hf_job job = plain;
    hf_job_info info = {HF_JOB_INFO_INIT};
    (void)state;
    hf_producer *producer = open_producer();
    job.id = "holder";
    must(put(producer, &job, &result));
    job.id = "next";
    job.on_conflict = HF_ON_CONFLICT_NEXT;
    must(put(producer, &job, &result));
    assert_int_equal(result.err, HF_OK);
    assert_int_equal(result.conflict, HF_CONFLICT_PARKED);
    assert_string_equal(result.id, "next");
    assert_string_equal(result.holder, "holder");
    job.id = "last";
    must(put(producer, &job, &result));
    assert_int_equal(result.conflict, HF_CONFLICT_REPLACED);
    assert_int_equal(result.holder_state, HF_PARKED);
    assert_string_equal(result.id, "next");
    must(hf_admin_job(fixture.admin, "q", "next", &info, NULL, detail));
    assert_int_equal(info.state, HF_STATE_PARKED);
    assert_string_equal(info.unique, "k");
    assert_string_equal(info.follows, "holder");
    assert_int_equal(hf_admin_retry(fixture.admin, "q", "next", detail), HF_PARKED);
    must(hf_admin_cancel(fixture.admin, "q", "next", NULL, detail));
    assert_string_equal(command("HGET hf:{q}:unique k"), "holder");
    hf_producer_close(producer, NULL, NULL);
}

/* The holder expires in the request, and its death takes the id of the new job. */
static void the_job_about_a_death_keeps_its_id(void **state)
{
    hf_enqueue_result result;
    hf_job holder = plain, job = plain;
    (void)state;
    hf_producer *producer = open_producer();
    holder.id = "holder";
    holder.start_within_ms = 1;
    holder.expired = HF_EXPIRED_DEAD;
    holder.on_dead = "died";
    must(put(producer, &holder, &result));
    int64_t from_ms = hf_queue_fixture_now(&fixture);
    EVENTUALLY(5000, hf_queue_fixture_now(&fixture) > from_ms + 20);
    job.id = "holder.dead";
    must(put(producer, &job, &result));
    assert_int_equal(result.err, HF_EXISTS);
    assert_non_null(strstr(command("HGET hf:{q}:jobs holder.dead"), "\"died\""));
    assert_string_equal(command("HGET hf:{q}:unique k"), "(nil)");
    hf_producer_close(producer, NULL, NULL);
}

static void a_request_that_is_sent_again_keeps_its_answer(void **state)
{
    hf_enqueue_result results[2] = {{HF_ENQUEUE_RESULT_INIT}, {HF_ENQUEUE_RESULT_INIT}};
    hf_job jobs[2] = {plain, plain};
    (void)state;
    hf_producer *producer = open_producer();
    for (int i = 0; i < 2; i++) {
        must(hf_enqueue_numbered(producer, jobs, 2, 1, 0, results, detail));
        assert_int_equal(results[0].err, HF_OK);
        assert_int_equal(results[1].err, HF_EXISTS);
        assert_string_equal(results[1].id, results[0].id);
        (void)hf_queue_fixture_claim(&fixture, "w", 9, 0);
    }
    hf_producer_close(producer, NULL, NULL);
}

static void a_dead_job_stays_dead_while_its_key_is_taken(void **state)
{
    const hf_dead_filter filter = {HF_DEAD_FILTER_INIT, .id = "dead"};
    const hf_verdict_args args = {.worker = "w", .dead_max = 9, .dead_age_ms = 1000000};
    const hf_verdict_item item = {.id = "dead", .reason = "handler"};
    hf_enqueue_result result;
    hf_job job = plain;
    size_t n = 0;
    (void)state;
    hf_producer *producer = open_producer();
    job.id = "dead";
    must(put(producer, &job, &result));
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
    must(hf_queue_fixture_verdict(&fixture, HF_OP_BURY, &args, &item));
    job.id = "other";
    must(put(producer, &job, &result));
    assert_int_equal(result.err, HF_OK); /* its death has freed the key */
    assert_int_equal(hf_admin_retry(fixture.admin, "q", "dead", detail), HF_EXISTS);
    assert_int_equal(
        hf_admin_dead_retry(fixture.admin, "q", &filter, 0, NULL, NULL, &n, detail),
        HF_EXISTS);
    must(hf_admin_delete(fixture.admin, "q", "other", NULL, detail));
    must(hf_admin_retry(fixture.admin, "q", "dead", detail));
    assert_string_equal(command("HGET hf:{q}:unique k"), "dead");
    hf_producer_close(producer, NULL, NULL);
}

static void a_job_frees_only_its_own_key(void **state)
{
    hf_enqueue_result result;
    hf_job job = plain;
    (void)state;
    hf_producer *producer = open_producer();
    job.id = "first";
    job.unique_until = HF_UNIQUE_UNTIL_START;
    must(put(producer, &job, &result));
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
    job.id = "second";
    must(put(producer, &job, &result));
    assert_int_equal(result.err, HF_OK); /* the first one has freed it to start */
    const hf_verdict_args args = {.worker = "w"};
    const hf_verdict_item item = {.id = "first", .leaving = {"k", 1}};
    must(hf_queue_fixture_verdict(&fixture, HF_OP_COMPLETE, &args, &item));
    assert_string_equal(command("HGET hf:{q}:unique k"), "second s 0 0");
    hf_producer_close(producer, NULL, NULL);
}

static const char *uses(void)
{
    return command("HGET hf:{q}:meta uses");
}

/* Claims look for such keys only while `uses` reports them. */
static void a_letter_tells_of_keys_that_a_start_frees(void **state)
{
    hf_enqueue_result result;
    hf_job job = plain;
    (void)state;
    hf_producer *producer = open_producer();
    job.id = "usual";
    must(put(producer, &job, &result));
    assert_string_equal(uses(), "u");
    job.id = "first";
    job.unique = "another";
    job.unique_until = HF_UNIQUE_UNTIL_START;
    must(put(producer, &job, &result));
    assert_string_equal(uses(), "uf");
    must(hf_admin_cancel(fixture.admin, "q", "usual", NULL, detail));
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
    assert_int_equal(hf_fixture_number(&fixture.redis, "EXISTS hf:{q}:unique"), 0);
    const hf_verdict_args args = {.worker = "w", .dead_max = 9, .dead_age_ms = 1000000};
    const hf_verdict_item item = {.id = "first", .reason = "handler"};
    must(hf_queue_fixture_verdict(&fixture, HF_OP_BURY, &args, &item));
    (void)command("HDEL hf:{q}:meta uses");
    must(hf_admin_retry(fixture.admin, "q", "first", detail));
    assert_string_equal(uses(), "uf");
    must(hf_admin_cancel(fixture.admin, "q", "first", NULL, detail));
    must(hf_queue_fixture_check(&fixture, "w", false));
    assert_string_equal(uses(), "(nil)");
    hf_producer_close(producer, NULL, NULL);
}

/* The first job of a level, in a queue without a limit and in one with it. */
static void a_job_that_follows_at_a_start_is_woken_for(void **state)
{
    hf_enqueue_result result;
    hf_job holder = plain, next = plain;
    (void)state;
    hf_producer *producer = open_producer();
    holder.unique_until = next.unique_until = HF_UNIQUE_UNTIL_START;
    next.on_conflict = HF_ON_CONFLICT_NEXT;
    next.priority = HF_PRIORITY_HIGH;
    for (int limited = 0; limited < 2; limited++) {
        if (limited != 0)
            (void)command("HSET hf:{q}:meta max_running 100 uses ufn");
        must(put(producer, &holder, &result));
        must(put(producer, &next, &result));
        assert_string_equal(uses(), limited != 0 ? "ufn" : "uf");
        assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
        assert_int_equal(hf_fixture_number(&fixture.redis, "ZCARD hf:{q}:schedule:h"), 1);
        assert_int_equal(hf_fixture_number(&fixture.redis, "ZCARD hf:{q}:wake"), 1);
        assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
    }
    hf_producer_close(producer, NULL, NULL);
}

/* Of three jobs the first is another's, and the second has no key. */
static void a_completion_frees_the_keys_of_what_it_ends(void **state)
{
    static const char *const names[] = {"a", "b", "c"}, *const keys[] = {"ka", NULL,
                                                                         "kc"};
    hf_verdict_item items[HF_COUNT(names)];
    const hf_verdict_args args = {.worker = "w"};
    (void)state;
    hf_producer *producer = open_producer();
    for (size_t i = 0; i < HF_COUNT(names); i++) {
        hf_enqueue_result result;
        hf_job job = plain;
        job.id = names[i];
        job.unique = keys[i];
        must(put(producer, &job, &result));
    }
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 3, 0), 3);
    for (size_t i = 0; i < HF_COUNT(names); i++) {
        items[i] = (hf_verdict_item){.id = names[i], .fence = fixture.fence};
        if (keys[i] != NULL)
            items[i].leaving = (hf_bytes){keys[i], 2};
    }
    items[0].fence = "1";
    must(hf_queue_fixture_verdicts(&fixture, HF_OP_COMPLETE, &args, items,
                                   HF_COUNT(items)));
    assert_int_equal(fixture.codes[0], HF_LOST);
    assert_int_equal(fixture.codes[2], HF_OK);
    assert_string_equal(command("HGET hf:{q}:unique ka"), "a");
    assert_int_equal(hf_fixture_number(&fixture.redis, "HLEN hf:{q}:unique"), 1);
    hf_producer_close(producer, NULL, NULL);
}

static void options_that_contradict_are_refused(void **state)
{
    static const hf_job bad[] = {
        {HF_JOB_INIT, .type = "t", .unique = ""},
        {HF_JOB_INIT, .type = "t", .unique = "\xff"},
        {HF_JOB_INIT, .type = "t", .unique_for_ms = 1},
        {HF_JOB_INIT, .type = "t", .on_conflict = HF_ON_CONFLICT_NEXT},
        {HF_JOB_INIT, .type = "t", .unique = "k", .debounce_ms = 1},
        {HF_JOB_INIT, .type = "t", .unique = "k", .max_wait_ms = 1},
        {HF_JOB_INIT, .type = "t", .unique = "k", .throttle_ms = -1},
        {HF_JOB_INIT, .type = "t", .unique = "k", .throttle_ms = 1, .unique_for_ms = 1},
        {HF_JOB_INIT, .type = "t", .unique = "k", .debounce_ms = 1, .max_wait_ms = 1,
         .delay_ms = 1},
        {HF_JOB_INIT, .type = "t", .unique = "k", .unique_until = (hf_unique_until)9},
    };
    hf_enqueue_result result;
    (void)state;
    hf_producer *producer = open_producer();
    for (size_t i = 0; i < HF_COUNT(bad); i++)
        if (put(producer, &bad[i], &result) != HF_INVALID)
            fail_msg("job %zu was taken", i);
    assert_int_equal(hf_fixture_number(&fixture.redis, "EXISTS hf:{default}:jobs"), 0);
    hf_producer_close(producer, NULL, NULL);
}

/* ---- any text ---- */

/* The key of the record comes back to the script that frees it. */
static void any_text_is_a_key(void **state)
{
    static const char *const keys[] = {"a key", "\"quoted\" \\ {}", "\x01\n\t",
                                       "\xc3\xa4"};
    (void)state;
    hf_producer *producer = open_producer();
    for (size_t i = 0; i < HF_COUNT(keys); i++) {
        hf_enqueue_result result;
        hf_buf text;
        hf_record record;
        hf_job job = plain;
        job.unique = keys[i];
        must(put(producer, &job, &result));
        hf_buf_init(&text, 4096);
        hf_record_write(&text, &job, 1);
        must(hf_record_read(&record, (hf_bytes){text.data, text.len}));
        assert_int_equal(record.unique.len, strlen(keys[i]));
        assert_memory_equal(record.unique.ptr, keys[i], record.unique.len);
        assert_int_equal(hf_fixture_number(&fixture.redis, "HLEN hf:{q}:unique"), 1);
        assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
        const hf_verdict_args args = {.worker = "w"};
        const hf_verdict_item item = {.id = result.id,
                                      .leaving = hf_record_leaving(&record)};
        must(hf_queue_fixture_verdict(&fixture, HF_OP_COMPLETE, &args, &item));
        assert_int_equal(hf_fixture_number(&fixture.redis, "HLEN hf:{q}:unique"), 0);
        hf_record_done(&record);
        hf_buf_done(&text);
    }
    hf_producer_close(producer, NULL, NULL);
}

/* The script cuts the key out of a line that begins with it, and reads any other line. */
static void a_key_is_read_wherever_the_line_has_it(void **state)
{
    static const struct {
        const char *record, *key;
    } forms[] = {
        {"{\"unique\":\"first\",\"type\":\"t\"}\n", "first"},
        {"{\"type\":\"t\",\"unique\":\"last\"}\n", "last"},
        {"{\"unique\":\"next to \",\"type\":\"t\"}\n{\"unique\":\"p\",", "next to "},
        {"{\"unique\":\"a quote \\\",\",\"type\":\"t\"}\n", "a quote \","},
        {"{\"unique\":\"\\u0061n escape\",\"type\":\"t\"}\n", "an escape"},
        {"{ \"unique\" : \"apart\" , \"type\":\"t\" }\r\n", "apart"},
        {"{\"unique\":\"one\",\"type\":\"t\",\"unique\":\"two\"}\n", "two"},
        {"{\"type\":\"t\"}\n{\"unique\":\"p\",", NULL},
    };
    hf_enqueue_item items[HF_COUNT(forms)];
    char ids[HF_COUNT(forms)][16];
    const hf_enqueue_args args = {.producer = "", .options = true};
    long keys = 0;
    (void)state;
    for (size_t i = 0; i < HF_COUNT(forms); i++) {
        (void)snprintf(ids[i], sizeof ids[i], "job-%zu", i);
        items[i] =
            (hf_enqueue_item){ids[i], 0, {forms[i].record, strlen(forms[i].record)}};
        keys += forms[i].key != NULL;
    }
    must(hf_queue_fixture_enqueue_items(&fixture, &args, items, HF_COUNT(forms)));
    for (size_t i = 0; i < HF_COUNT(forms); i++) {
        const char *key = forms[i].key;
        if (key != NULL &&
            strcmp(hf_fixture_command(&fixture.redis, "HGET hf:{q}:unique %s", key),
                   ids[i]) != 0)
            fail_msg("no job has the key of %s", forms[i].record);
    }
    assert_int_equal(hf_fixture_number(&fixture.redis, "HLEN hf:{q}:unique"), keys);
}

static void a_purge_of_large_records_goes_in_slices(void **state)
{
    enum { N = 20 };
    static char payload[1 << 20];
    size_t removed = 0;
    (void)state;
    hf_producer *producer = open_producer();
    memset(payload, 'x', sizeof payload);
    for (int i = 0; i < N; i++) {
        hf_enqueue_result result;
        hf_job job = plain;
        char key[16];
        (void)snprintf(key, sizeof key, "key-%d", i);
        job.unique = key;
        job.payload = payload;
        job.payload_len = sizeof payload;
        must(put(producer, &job, &result));
    }
    must(hf_admin_purge(fixture.admin, "q", NULL, NULL, &removed, detail));
    assert_int_equal(removed, N);
    assert_int_equal(hf_fixture_number(&fixture.redis, "EXISTS hf:{q}:unique"), 0);
    hf_producer_close(producer, NULL, NULL);
}

/* ---- shards ---- */

static void a_key_tells_the_shard(void **state)
{
    hf_enqueue_result result;
    hf_job job = plain;
    (void)state;
    must(hf_admin_divide(fixture.admin, "wide", 4, detail));
    hf_producer *producer = open_producer();
    job.queue = "wide";
    for (int i = 0; i < 20; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "id-%d", i);
        job.id = id;
        must(put(producer, &job, &result));
        assert_string_equal(result.id, "id-0");
    }
    job.id = NULL;
    must(put(producer, &job, &result));
    assert_string_equal(result.id, "id-0");
    hf_producer_close(producer, NULL, NULL);
}

/* ---- what was lost ---- */

static void found(const hf_finding *finding, void *arg)
{
    *(int *)arg +=
        strcmp(finding->check, "unique") == 0 || strcmp(finding->check, "parked") == 0;
}

static int audit(bool fix)
{
    int n = 0;
    size_t all = 0;
    const hf_audit_opts opts = {HF_AUDIT_OPTS_INIT, .fix = fix, .cb = found, .arg = &n};
    must(hf_admin_audit(fixture.admin, "q", &opts, &all, detail));
    return n;
}

static void a_lost_holder_is_found_and_healed(void **state)
{
    hf_enqueue_result result;
    (void)state;
    hf_producer *producer = open_producer();
    (void)hf_fixture_command(&fixture.redis, "HSET hf:{q}:unique other %s", "no entry");
    (void)hf_fixture_command(&fixture.redis, "HSET hf:{q}:unique k gone");
    assert_int_equal(audit(false), 2);
    must(put(producer, &plain, &result));
    assert_int_equal(result.err, HF_OK);
    assert_int_equal(hf_fixture_number(&fixture.redis, "HGET hf:{q}:meta healed"), 1);
    assert_int_equal(audit(true), 1);
    assert_int_equal(audit(false), 0);
    hf_producer_close(producer, NULL, NULL);
}

static void a_parked_job_that_follows_none_waits_again(void **state)
{
    hf_enqueue_result result;
    hf_job job = plain;
    (void)state;
    hf_producer *producer = open_producer();
    must(put(producer, &job, &result));
    job.id = "next";
    job.on_conflict = HF_ON_CONFLICT_NEXT;
    must(put(producer, &job, &result));
    (void)command("DEL hf:{q}:unique");
    assert_int_equal(audit(true), 1);
    assert_int_equal(audit(false), 0);
    assert_string_not_equal(command("ZSCORE hf:{q}:schedule next"), "(nil)");
    hf_producer_close(producer, NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HF_ADMIN_TEST(a_skipped_job_names_the_holder, &fixture),
        HF_ADMIN_TEST(a_replaced_job_starts_anew, &fixture),
        HF_ADMIN_TEST(a_parked_job_has_its_own_id, &fixture),
        HF_ADMIN_TEST(a_request_that_is_sent_again_keeps_its_answer, &fixture),
        HF_ADMIN_TEST(the_job_about_a_death_keeps_its_id, &fixture),
        HF_ADMIN_TEST(a_dead_job_stays_dead_while_its_key_is_taken, &fixture),
        HF_ADMIN_TEST(a_job_frees_only_its_own_key, &fixture),
        HF_ADMIN_TEST(a_letter_tells_of_keys_that_a_start_frees, &fixture),
        HF_ADMIN_TEST(a_job_that_follows_at_a_start_is_woken_for, &fixture),
        HF_ADMIN_TEST(a_completion_frees_the_keys_of_what_it_ends, &fixture),
        HF_ADMIN_TEST(options_that_contradict_are_refused, &fixture),
        HF_ADMIN_TEST(any_text_is_a_key, &fixture),
        HF_ADMIN_TEST(a_key_is_read_wherever_the_line_has_it, &fixture),
        HF_ADMIN_TEST(a_purge_of_large_records_goes_in_slices, &fixture),
        HF_ADMIN_TEST(a_key_tells_the_shard, &fixture),
        HF_ADMIN_TEST(a_lost_holder_is_found_and_healed, &fixture),
        HF_ADMIN_TEST(a_parked_job_that_follows_none_waits_again, &fixture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
