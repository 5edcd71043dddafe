/* test_worker_programs.c - a worker, its programs and its minder, while Redis is away. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "holdfast/worker.h"
#include "tests/support/eventually.h"
#include "tests/support/queue_fixture.h"

enum { LEASE_MS = 2000, GRACE_MS = 400, SOON_MS = 30000 };

static hf_queue_fixture queue;
static hf_worker *worker;
static pthread_t thread;
static hf_err result;
static atomic_int ended, retried;

static void on_line(hf_log_level level, const char *message, const hf_log_field *fields,
                    size_t n, void *arg)
{
    (void)level;
    (void)arg;
    for (size_t i = 0; strcmp(message, "job") == 0 && i < n; i++) {
        if (strcmp(fields[i].key, "outcome") != 0)
            continue;
        atomic_fetch_add(&ended, 1);
        if (strcmp(fields[i].text, "retry") == 0)
            atomic_fetch_add(&retried, 1);
    }
}

static void *run(void *arg)
{
    (void)arg;
    result = hf_worker_run(worker, NULL);
    return NULL;
}

static void start(const char *const *argv, uint32_t lease_ms, uint32_t grace_ms)
{
    static const hf_worker_queue served = {HF_WORKER_QUEUE_INIT, .name = "q"};
    char detail[HF_DETAIL_SIZE];
    hf_worker_opts opts = {
        HF_WORKER_OPTS_INIT,       .server = HF_SERVER(.url = queue.redis.url),
        .queues = &served,         .n_queues = 1,
        .lease_ms = lease_ms,      .kill_grace_ms = grace_ms,
        .minder = HF_TEST_COMMAND, .log = on_line};
    const hf_program program = {HF_PROGRAM_INIT, .type = "*", .argv = argv,
                                .cwd = queue.redis.dir};
    if (hf_worker_new(&worker, &opts, detail) != HF_OK)
        fail_msg("%s", detail);
    assert_int_equal(hf_worker_handle_program(worker, &program, NULL), HF_OK);
    assert_int_equal(pthread_create(&thread, NULL, run, NULL), 0);
}

static int up(void **state)
{
    atomic_store(&ended, 0);
    atomic_store(&retried, 0);
    return hf_queue_fixture_up(state);
}

/* Redis is back: the program is run again, and its first run is not counted as failed. */
static void finish(void)
{
    hf_queue_fixture_ready(&queue);
    EVENTUALLY(SOON_MS, hf_queue_fixture_meta(&queue, "done") == 1);
    assert_int_equal(atomic_load(&retried), 0);
    assert_int_equal(hf_queue_fixture_meta(&queue, "failed"), -1);
    hf_worker_stop(worker);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(result, HF_OK);
    hf_worker_free(worker);
}

/* The minder asks the program to end while its lock still holds in Redis, which cannot be
 * asked; then Redis is back, and would take any verdict. The program sleeps when it is
 * run first; before it has begun, nothing of it could be ended. */
static void a_program_that_its_minder_ended_has_not_failed(void **state)
{
    static const char text[] = "test -e began && exit 0; : >began; exec sleep 1000";
    char began[HF_TEMPDIR_SIZE + 8];
    const char *const sleeps[] = {"/bin/sh", "-c", text, NULL};
    (void)state;
    snprintf(began, sizeof began, "%s/began", queue.redis.dir);
    assert_int_equal(hf_queue_fixture_enqueue(&queue, "a", 0), HF_OK);
    start(sleeps, LEASE_MS, GRACE_MS);
    EVENTUALLY(SOON_MS, access(began, F_OK) == 0);
    hf_fixture_signal(&queue.redis, SIGSTOP);
    EVENTUALLY(SOON_MS, atomic_load(&ended) > 0);
    hf_fixture_signal(&queue.redis, SIGCONT);
    finish();
}

/* Whether the lease that ran out has been renewed, or was lost after all. */
static bool is_decided(void)
{
    return hf_fixture_number(&queue.redis, "PTTL hf:{q}:lock:a") > 3 * LEASE_MS ||
           atomic_load(&ended) > 0;
}

/* The same, but Redis is back in time: the lease is renewed, and the program ends since
 * it was asked to. */
static void a_program_that_was_asked_to_end_has_not_failed_either(void **state)
{
    static const char text[] =
        "test -e began && exit 0; "
        "trap ': >asked; until test -e go; do sleep 0.02; done; exit 3' TERM; "
        ": >began; while :; do sleep 0.02; done";
    const char *const asks[] = {"/bin/sh", "-c", text, NULL};
    char began[HF_TEMPDIR_SIZE + 8], asked[HF_TEMPDIR_SIZE + 8], go[HF_TEMPDIR_SIZE + 8];
    (void)state;
    snprintf(began, sizeof began, "%s/began", queue.redis.dir);
    snprintf(asked, sizeof asked, "%s/asked", queue.redis.dir);
    snprintf(go, sizeof go, "%s/go", queue.redis.dir);
    assert_int_equal(hf_queue_fixture_enqueue(&queue, "a", 0), HF_OK);
    start(asks, 4 * LEASE_MS, LEASE_MS);
    EVENTUALLY(SOON_MS, access(began, F_OK) == 0);
    hf_fixture_signal(&queue.redis, SIGSTOP);
    EVENTUALLY(SOON_MS, access(asked, F_OK) == 0);
    hf_fixture_signal(&queue.redis, SIGCONT);
    hf_queue_fixture_ready(&queue);
    EVENTUALLY(SOON_MS, is_decided());
    hf_write_file(go, "");
    finish();
}

/* ---- its host ---- */

static void a_host_that_ignores_its_children_is_refused(void **state)
{
    static const char *const argv[] = {"true", NULL};
    (void)state;
    assert_true(signal(SIGCHLD, SIG_IGN) != SIG_ERR);
    start(argv, LEASE_MS, GRACE_MS);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(signal(SIGCHLD, SIG_DFL) != SIG_ERR);
    assert_int_equal(result, HF_CONFIG);
    hf_worker_free(worker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate_setup_teardown(
            a_host_that_ignores_its_children_is_refused, up, hf_queue_fixture_down,
            &queue),
        cmocka_unit_test_prestate_setup_teardown(
            a_program_that_its_minder_ended_has_not_failed, up, hf_queue_fixture_down,
            &queue),
        cmocka_unit_test_prestate_setup_teardown(
            a_program_that_was_asked_to_end_has_not_failed_either, up,
            hf_queue_fixture_down, &queue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
