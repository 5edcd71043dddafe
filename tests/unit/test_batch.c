/* test_batch.c - how jobs gather: the contents of a batch, the calls that may join it,
 * the order of waiting batches. No server, no threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "producer/submit.h"

#define MS HF_MS_NS

static hf_run_loop run;
static hf_submit_queue submitted;
static hf_line line;

static int up(void **state)
{
    (void)state;
    const hf_producer_opts opts = {HF_PRODUCER_OPTS_INIT, .server = HF_SERVER(.ns = "hf"),
                                   .buffer_jobs = 5000, .buffer_bytes = 64 << 20};
    if (hf_run_loop_open(&run, NULL, NULL, NULL) != HF_OK)
        return -1;
    if (hf_submit_init(&submitted, &run, &opts) != HF_OK)
        return -1;
    line = (hf_line){.next = NULL};
    hf_submit_add_line(&submitted, &line);
    submitted.home = &line;
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_submit_done(&submitted);
    hf_run_loop_close(&run);
    return 0;
}

static void nobody(const hf_enqueue_result *result, const char *detail, void *arg)
{
    (void)result;
    (void)detail;
    (void)arg;
}

/* One call of n jobs like `job`; whether it began a batch. */
static bool join(const hf_job *job, size_t n, uint64_t now_ns, uint64_t deadline_ms)
{
    bool begun;
    hf_job jobs[100];
    for (size_t i = 0; i < n; i++)
        jobs[i] = *job;
    const hf_intake in = {.jobs = jobs,
                          .n = n,
                          .bytes = n * 200,
                          .now_ns = now_ns,
                          .deadline_ns = now_ns + deadline_ms * MS,
                          .numbering = HF_NUMBERS_OURS};
    const hf_batch_call call = {.n = n, .taken_ns = now_ns, .cb = nobody};
    assert_int_equal(hf_submit_join(&submitted, &in, &call, &begun), HF_OK);
    return begun;
}

static hf_batch *take(void)
{
    uint64_t later = UINT64_MAX;
    hf_batch *batch = hf_submit_take(&submitted, &line, 0, 0, UINT64_MAX, &later);
    assert_non_null(batch);
    return batch;
}

static void a_delay_shrinks_by_what_the_job_has_waited(void **state)
{
    (void)state;
    const hf_job delayed = {HF_JOB_INIT, .type = "t", .id = "d", .delay_ms = 1000};
    const hf_job at = {HF_JOB_INIT, .type = "t", .id = "a", .at_ms = 77};
    const hf_job soon = {HF_JOB_INIT, .type = "t", .id = "s", .delay_ms = 10};
    (void)join(&delayed, 1, 1000 * MS, 5000);
    (void)join(&at, 1, 1100 * MS, 5000);
    (void)join(&soon, 1, 1200 * MS, 5000);
    (void)join(&delayed, 1, 1300 * MS, 5000); /* after the owner looked at the clock */
    hf_batch *batch = take();
    assert_int_equal(batch->n, 4);
    assert_int_equal(hf_batch_seal(batch, 1250 * MS), HF_OK);
    assert_int_equal(batch->items[0].due_ms, -750);
    assert_int_equal(batch->items[1].due_ms, 77);
    assert_int_equal(batch->items[2].due_ms, 0);
    assert_int_equal(batch->items[3].due_ms, -1000);
    assert_string_equal(batch->items[2].id, "s");
    hf_batch_free(batch);
}

static void a_batch_takes_jobs_up_to_its_bounds(void **state)
{
    (void)state;
    const hf_job job = {HF_JOB_INIT, .type = "t"};
    const hf_job other = {HF_JOB_INIT, .queue = "other", .type = "t"};
    assert_true(join(&job, 100, 0, 5000));
    for (int i = 0; i < 9; i++) {
        assert_false(join(&job, 100, 0, 5000));
        assert_int_equal(join(&other, 1, 0, 5000), i == 0);
    }
    assert_true(join(&job, 1, 0, 5000));
    hf_batch *batch = take();
    assert_int_equal(batch->n, HF_SHARED_JOBS);
    assert_int_equal(batch->charge, HF_SHARED_JOBS * 200);
    hf_batch_free(batch);
    batch = take();
    assert_string_equal(batch->target->queue.name, "other");
    hf_batch_free(batch);
    assert_true(join(&other, 1, 0, 5000)); /* what was taken is not joined any more */
}

/* A request has one deadline, and it must be about that of each of its calls. */
static void only_calls_of_about_the_same_deadline_share(void **state)
{
    (void)state;
    const hf_job job = {HF_JOB_INIT, .type = "t"};
    assert_true(join(&job, 1, 1000 * MS, 1600));
    assert_false(join(&job, 1, 1100 * MS, 1600)); /* a sixteenth later */
    assert_true(join(&job, 1, 1101 * MS, 1600));
    assert_false(join(&job, 1, 1100 * MS, 1600)); /* threads come in any order */
    assert_true(join(&job, 1, 1101 * MS, 1598));
    assert_true(join(&job, 1, 1101 * MS, 100));
}

static void an_open_batch_waits_for_company_and_not_long(void **state)
{
    (void)state;
    uint64_t later = UINT64_MAX;
    const hf_job job = {HF_JOB_INIT, .type = "t"};
    (void)join(&job, 1, 1000 * MS, 5000);
    assert_null(hf_submit_take(&submitted, &line, SIZE_MAX, MS, 1000 * MS, &later));
    assert_int_equal(later, 1001 * MS);
    hf_batch *batch = hf_submit_take(&submitted, &line, SIZE_MAX, MS, 1001 * MS, &later);
    assert_non_null(batch);
    hf_submit_put_back(&submitted, batch); /* it is closed now and waits no more */
    assert_ptr_equal(hf_submit_take(&submitted, &line, SIZE_MAX, MS, 0, &later), batch);
    hf_batch_free(batch);
}

static void refused_batches_go_back_in_their_order(void **state)
{
    (void)state;
    static const char *const queues[] = {"a", "b", "c", "d"};
    hf_batch *batches[4];
    for (size_t i = 0; i < 4; i++) {
        const hf_job job = {HF_JOB_INIT, .queue = queues[i], .type = "t"};
        (void)join(&job, 1, 0, 5000 + i);
    }
    for (size_t i = 0; i < 3; i++) {
        batches[i] = take();
        batches[i]->turn = i + 1;
    }
    hf_submit_put_back(&submitted, batches[1]);
    hf_submit_put_back(&submitted, batches[0]);
    hf_submit_put_back(&submitted, batches[2]);
    for (size_t i = 0; i < 4; i++) {
        hf_batch *batch = take();
        assert_string_equal(batch->target->queue.name, queues[i]);
        hf_batch_free(batch);
    }
}

static void what_is_over_is_taken_out_and_no_more(void **state)
{
    (void)state;
    hf_batches out = {NULL, NULL};
    const hf_job a = {HF_JOB_INIT, .queue = "a", .type = "t"},
                 b = {HF_JOB_INIT, .queue = "b", .type = "t"};
    bool idle;
    (void)join(&a, 1, 0, 100);
    (void)join(&b, 1, 0, 200);
    assert_int_equal(hf_submit_look(&submitted, &idle), 100 * MS);
    hf_submit_expire(&submitted, NULL, 100 * MS, &out);
    assert_non_null(out.first);
    assert_ptr_equal(out.first, out.last);
    hf_batch_free(out.first);
    assert_int_equal(hf_submit_look(&submitted, &idle), 200 * MS);
    assert_true(join(&a, 1, 0, 100));
}

static void the_buffer_is_bounded_by_jobs_and_bytes(void **state)
{
    (void)state;
    const hf_job job = {HF_JOB_INIT, .type = "t"};
    hf_intake in = {.jobs = &job, .n = 5000, .bytes = 1, .numbering = HF_NUMBERS_OURS};
    assert_int_equal(hf_submit_reserve(&submitted, &in), HF_OK);
    in.n = 1;
    assert_int_equal(hf_submit_reserve(&submitted, &in), HF_FULL);
    hf_submit_unreserve(&submitted, 1, 1);
    in.bytes = (64 << 20) + 1;
    assert_int_equal(hf_submit_reserve(&submitted, &in), HF_FULL);
    in.bytes = 64 << 20;
    assert_int_equal(hf_submit_reserve(&submitted, &in), HF_OK);
    in.numbering = HF_NUMBERS_CALLERS;
    assert_int_equal(hf_submit_reserve(&submitted, &in), HF_INVALID);
    run.retired = true;
    assert_int_equal(hf_submit_reserve(&submitted, &in), HF_CLOSED);
}

static void of_ids_of_one_kind_one_letter_is_said(void **state)
{
    (void)state;
    static const struct {
        bool made;
        const char *letters;
    } kinds[] = {{false, ""}, {true, "N"}};
    hf_target *target;
    const hf_job job = {HF_JOB_INIT, .type = "t"};
    assert_int_equal(hf_submit_target(&submitted, "q", &target), HF_OK);
    for (size_t k = 0; k < 2; k++) {
        hf_batch *batch = hf_batch_new(target);
        assert_non_null(batch);
        for (uint32_t i = 0; i < 3; i++)
            assert_int_equal(
                hf_batch_add(batch, &job,
                             (hf_job_id){.text = "id", .made = kinds[k].made}, i, 5),
                HF_OK);
        assert_int_equal(hf_batch_end_call(batch, &(hf_batch_call){.n = 3}), HF_OK);
        assert_int_equal(hf_batch_seal(batch, 0), HF_OK);
        assert_int_equal(batch->made.len, strlen(kinds[k].letters));
        assert_memory_equal(batch->made.ptr, kinds[k].letters, batch->made.len);
        hf_batch_free(batch);
    }
}

static void jobs_that_are_taken_back_leave_no_trace(void **state)
{
    (void)state;
    hf_target *target;
    assert_int_equal(hf_submit_target(&submitted, "q", &target), HF_OK);
    hf_batch *batch = hf_batch_new(target);
    assert_non_null(batch);
    const hf_job job = {HF_JOB_INIT, .type = "t", .payload = "pay", .payload_len = 3};
    assert_int_equal(
        hf_batch_add(batch, &job, (hf_job_id){.text = "one", .made = false}, 0, 5),
        HF_OK);
    size_t len = batch->bytes.len;
    assert_int_equal(
        hf_batch_add(batch, &job, (hf_job_id){.text = "two", .made = true}, 1, 5), HF_OK);
    hf_batch_rewind(batch, 1);
    assert_int_equal(batch->n, 1);
    assert_int_equal(batch->bytes.len, len);
    assert_int_equal(batch->n_made, 0);
    assert_int_equal(
        hf_batch_add(batch, &job, (hf_job_id){.text = "three", .made = true}, 1, 5),
        HF_OK);
    assert_int_equal(hf_batch_end_call(batch, &(hf_batch_call){.n = 2}), HF_OK);
    assert_int_equal(hf_batch_seal(batch, 0), HF_OK);
    assert_string_equal(batch->items[1].id, "three");
    assert_int_equal(batch->made.len, 2);
    assert_memory_equal(batch->made.ptr, "CN", 2);
    assert_memory_equal((const char *)batch->items[1].record.ptr +
                            batch->items[1].record.len - 4,
                        "\npay", 4);
    hf_batch_free(batch);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_delay_shrinks_by_what_the_job_has_waited),
        TEST(a_batch_takes_jobs_up_to_its_bounds),
        TEST(only_calls_of_about_the_same_deadline_share),
        TEST(an_open_batch_waits_for_company_and_not_long),
        TEST(refused_batches_go_back_in_their_order),
        TEST(what_is_over_is_taken_out_and_no_more),
        TEST(the_buffer_is_bounded_by_jobs_and_bytes),
        TEST(of_ids_of_one_kind_one_letter_is_said),
        TEST(jobs_that_are_taken_back_leave_no_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
