/* test_pool_child.c - worker/pool/child.h alone, where a worker cannot bring about the
 * order of events. */
#include "worker/pool/child.h"

#include <stdio.h>
#include <string.h>

#include "tests/support/eventually.h"
#include "tests/support/proc.h"

enum { SOON_MS = 60000 };

static uv_loop_t loop;
static hf_groups *groups;
static hf_child *child;
static char detail[HF_DETAIL_SIZE], job_name[] = "a";
static bool is_ready, has_verdict, takes_more, has_gone;

static bool on_ready(hf_child *c, hf_ready *ready, char said[HF_DETAIL_SIZE], void *arg)
{
    (void)c, (void)said, (void)arg;
    hf_ready_free(ready);
    return is_ready = true;
}

static void on_verdict(hf_child *c, void *job, const hf_child_verdict *verdict, void *arg)
{
    (void)job, (void)arg;
    has_verdict = verdict->frame->kind == HF_FRAME_DONE && !verdict->cancelled;
    takes_more = hf_child_takes_jobs(c) || hf_child_can_take(c);
}

static void on_update(hf_child *c, void *job, const hf_frame *frame, void *arg)
{
    (void)c, (void)job, (void)frame, (void)arg;
}

static void on_line(hf_child *c, void *job, int stream, const char *text, size_t len,
                    void *arg)
{
    (void)c, (void)job, (void)stream, (void)text, (void)len, (void)arg;
}

static void on_output(hf_child *c, void *job, const char *bytes, size_t len, void *arg)
{
    (void)c, (void)job, (void)bytes, (void)len, (void)arg;
}

static void on_unanswered(hf_child *c, void *job, const hf_child_end *end, void *arg)
{
    (void)c, (void)job, (void)arg;
    fail_msg("no verdict: %s", end->text);
}

static void on_gone(hf_child *c, void *arg)
{
    (void)c, (void)arg;
    has_gone = true;
}

static const hf_child_calls calls = {.ready = on_ready,
                                     .verdict = on_verdict,
                                     .update = on_update,
                                     .line = on_line,
                                     .output = on_output,
                                     .unanswered = on_unanswered,
                                     .gone = on_gone};

static int setup(void **state)
{
    static const char *const argv[] = {HF_TEST_HELPERS "/hf-pool-program", NULL};
    const hf_pool pool = {HF_POOL_INIT, .argv = argv};
    const hf_groups_opts opts = {.minder_path = HF_TEST_COMMAND, .kill_grace_ms = 1000};
    hf_pool_spec *spec;
    (void)state;
    is_ready = has_verdict = takes_more = has_gone = false;
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(hf_groups_new(&groups, &loop, &opts, detail), HF_OK);
    hf_groups_enter(groups);
    assert_int_equal(hf_pool_spec_new(&spec, &pool, detail), HF_OK);
    const hf_child_opts how = {.loop = &loop,
                               .groups = groups,
                               .spec = spec,
                               .deadline_ns = UINT64_MAX,
                               .calls = &calls};
    assert_int_equal(hf_child_start(&child, &how), HF_OK);
    hf_pool_spec_unref(spec);
    while (!is_ready)
        uv_run(&loop, UV_RUN_ONCE);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    if (!has_gone)
        hf_child_kill(child);
    while (!has_gone)
        uv_run(&loop, UV_RUN_ONCE);
    hf_groups_leave(groups);
    hf_groups_done(groups);
    hf_groups_close(groups);
    uv_run(&loop, UV_RUN_DEFAULT);
    return uv_loop_close(&loop);
}

static void send_job(const char *type, uint32_t timeout_ms)
{
    const hf_child_job job = {.job = job_name,
                              .frame = {.id = "a",
                                        .type = type,
                                        .queue = "q",
                                        .attempt = 1,
                                        .max_attempts = 1,
                                        .fence = 1,
                                        .timeout_ms = timeout_ms},
                              .payload = "",
                              .checkpoint = ""};
    hf_child_send(child, &job, true);
}

/* The loop was slow: a timer comes first, and sees that the process has ended. Its
 * verdict is still in the socket. */
static void a_process_whose_end_is_known_takes_no_job(void **state)
{
    (void)state;
    send_job("done-crash", 1);
    pid_t pid = hf_child_pid(child);
    EVENTUALLY(SOON_MS, !hf_pid_alive(pid));
    hf_test_pause_ms(10); /* its time-out is due as well */
    while (!has_gone)
        uv_run(&loop, UV_RUN_ONCE);
    assert_true(has_verdict);
    assert_false(takes_more);
}

/* It lives, and is given up only a second later. */
static void a_process_that_closed_its_socket_takes_no_job(void **state)
{
    (void)state;
    send_job("close", 0);
    while (!has_verdict || hf_child_can_take(child))
        uv_run(&loop, UV_RUN_ONCE);
    assert_false(hf_child_takes_jobs(child));
    assert_int_equal(hf_child_state_of(child), HF_CHILD_READY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_process_whose_end_is_known_takes_no_job, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_process_that_closed_its_socket_takes_no_job,
                                        setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
