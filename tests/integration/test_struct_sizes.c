/* test_struct_sizes.c - programs that were compiled with an older or a newer Holdfast:
 * their structs are smaller or larger than those of the library. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/holdfast.h"
#include "tests/support/admin.h"
#include "tests/support/eventually.h"
#include "tests/support/redis_fixture.h"

/* NEWER: the bytes that a later library has more. ARRAY_MAX: elements of a resized array.
 * */
enum { NEWER = 24, ARRAY_MAX = 4, SHRUNK_MAX = 64 };

static hf_fixture redis;
static char detail[HF_DETAIL_SIZE];
static void *shrunk[SHRUNK_MAX];
static size_t n_shrunk;

static int up(void **state)
{
    (void)state;
    hf_fixture_start(&redis, NULL);
    return 0;
}

static int down(void **state)
{
    (void)state;
    while (n_shrunk > 0)
        free(shrunk[--n_shrunk]);
    hf_test_audit(&redis, false);
    hf_fixture_stop(&redis);
    return 0;
}

/* n structs in an allocation of their own, each of `size` bytes: what the other program
 * has. Nothing behind it may be read or written. */
static void *resize(const void *ours, size_t ours_size, size_t n, size_t size)
{
    char *theirs = calloc(n, size);
    if (theirs == NULL || n_shrunk == SHRUNK_MAX || n > ARRAY_MAX) {
        free(theirs);
        fail_msg("no room");
        return NULL; /* clang-tidy does not know that fail_msg() ends the test */
    }
    shrunk[n_shrunk++] = theirs;
    for (size_t i = 0; i < n; i++) {
        memcpy(theirs + i * size, (const char *)ours + i * ours_size,
               ours_size < size ? ours_size : size);
        memcpy(theirs + i * size, &size, sizeof size);
    }
    return theirs;
}
/* OLDER: `field` and all after it did not exist. LATER: with NEWER bytes more. */
#define OLDER(type, field, ...)                                                          \
    resize(__VA_ARGS__, sizeof(type), 1, offsetof(type, field))
#define LATER(type, ...) resize(__VA_ARGS__, sizeof(type), 1, sizeof(type) + NEWER)

/* Sets the last byte, which this library does not know. */
static void *set_unknown(void *theirs)
{
    size_t size;
    memcpy(&size, theirs, sizeof size);
    ((char *)theirs)[size - 1] = 1;
    return theirs;
}

static void assert_unknown(const char *name)
{
    if (strstr(detail, name) == NULL || strstr(detail, "is set") == NULL)
        fail_msg("no word of %s: %s", name, detail);
}

static const hf_server_opts *older_server(void)
{
    return OLDER(hf_server_opts, ns, HF_SERVER(.url = hf_fixture_url(&redis)));
}

/* ---- producers ---- */

static hf_producer *open_producer(bool newer)
{
    hf_producer *producer = NULL;
    const hf_producer_opts opts = {HF_PRODUCER_OPTS_INIT, .server = older_server()};
    const void *theirs = newer ? LATER(hf_producer_opts, &opts)
                               : OLDER(hf_producer_opts, payload_max, &opts);
    if (hf_producer_open(&producer, theirs, detail) != HF_OK)
        fail_msg("%s", detail);
    return producer;
}

/* `size`: of each job; `result_size`: of each result. */
static void enqueue_sized(bool newer, size_t size, size_t result_size)
{
    static const char *const ids[2][2] = {{"a", "b"}, {"c", "d"}};
    const char *const *id = ids[newer];
    const hf_job ours[] = {{HF_JOB_INIT, .queue = "q", .type = "t", .id = id[0]},
                           {HF_JOB_INIT, .queue = "q", .type = "t", .id = id[1]}};
    const hf_enqueue_result blank[2] = {{HF_ENQUEUE_RESULT_INIT}};
    hf_producer *producer = open_producer(newer);
    void *jobs = resize(ours, sizeof ours[0], 2, size);
    char *results = resize(blank, sizeof blank[0], 2, result_size);
    assert_int_equal(hf_enqueue_wait(producer, jobs, 2, (void *)results, 0, detail),
                     HF_OK);
    for (size_t i = 0; i < 2; i++) {
        hf_err err;
        memcpy(&err, results + i * result_size + offsetof(hf_enqueue_result, err),
               sizeof err);
        assert_int_equal(err, HF_OK);
    }
    assert_int_equal(hf_enqueue_wait(producer, jobs, 2, (void *)results, 0, detail),
                     HF_OK); /* it existed */
    assert_int_equal(hf_job_check(jobs, detail), HF_OK);
    if (newer) {
        set_unknown(jobs);
        assert_int_equal(hf_job_check(jobs, detail), HF_INVALID);
        assert_unknown("hf_job");
        detail[0] = '\0';
        assert_int_equal(hf_enqueue_wait(producer, jobs, 2, NULL, 0, detail), HF_INVALID);
        assert_unknown("hf_job");
        detail[0] = '\0';
        assert_int_equal(hf_enqueue(producer, jobs, NULL, NULL, detail), HF_INVALID);
        assert_unknown("hf_job");
    }
    const hf_job unsized = {.type = "t"};
    assert_int_equal(hf_enqueue_wait(producer, &unsized, 1, NULL, 0, detail), HF_INVALID);
    assert_non_null(strstr(detail, "hf_job: its size is 0: begin with HF_JOB_INIT"));
    hf_producer_close(producer, NULL, NULL);
}

static void a_producer_takes_older_and_newer_structs(void **state)
{
    hf_producer *producer;
    (void)state;
    enqueue_sized(false, offsetof(hf_job, delay_ms), offsetof(hf_enqueue_result, id));
    enqueue_sized(true, sizeof(hf_job) + NEWER, sizeof(hf_enqueue_result) + NEWER);
    assert_int_equal(hf_fixture_number(&redis, "HLEN hf:{q}:jobs"), 4);
    const hf_producer_opts opts = {HF_PRODUCER_OPTS_INIT};
    assert_int_equal(
        hf_producer_open(&producer, set_unknown(LATER(hf_producer_opts, &opts)), detail),
        HF_INVALID);
    assert_unknown("hf_producer_opts");
    const hf_producer_opts elsewhere = {
        HF_PRODUCER_OPTS_INIT,
        .server = set_unknown(LATER(hf_server_opts, HF_SERVER(.ns = "hf")))};
    assert_int_equal(hf_producer_open(&producer, &elsewhere, detail), HF_INVALID);
    assert_unknown("hf_server_opts");
}

/* ---- admin ---- */

static hf_admin *open_admin(bool newer)
{
    hf_admin *admin = NULL;
    const hf_admin_opts opts = {HF_ADMIN_OPTS_INIT, .server = older_server()};
    const void *theirs =
        newer ? LATER(hf_admin_opts, &opts) : OLDER(hf_admin_opts, deadline_ms, &opts);
    if (hf_admin_open(&admin, theirs, detail) != HF_OK)
        fail_msg("%s", detail);
    return admin;
}

static void ask_all(hf_admin *admin, bool newer)
{
    const hf_queue_stats no_stats = {HF_QUEUE_STATS_INIT};
    const hf_job_info no_info = {HF_JOB_INFO_INIT};
    const hf_round_trip no_trip = {HF_ROUND_TRIP_INIT};
    hf_queue_stats *stats = newer ? LATER(hf_queue_stats, &no_stats)
                                  : OLDER(hf_queue_stats, oldest_ready_ms, &no_stats);
    hf_job_info *info =
        newer ? LATER(hf_job_info, &no_info) : OLDER(hf_job_info, payload_len, &no_info);
    hf_job_info *job =
        newer ? LATER(hf_job_info, &no_info) : OLDER(hf_job_info, attempts, &no_info);
    hf_round_trip *trip = newer ? LATER(hf_round_trip, &no_trip)
                                : OLDER(hf_round_trip, unsure_us, &no_trip);
    const hf_job_why no_why = {HF_JOB_WHY_INIT, .job = job};
    hf_job_why *why =
        newer ? LATER(hf_job_why, &no_why) : OLDER(hf_job_why, n_holders, &no_why);
    assert_int_equal(hf_admin_stats(admin, "q", stats, detail), HF_OK);
    assert_int_equal(stats->ready, 1);
    assert_int_equal(hf_admin_job(admin, "q", "a", info, NULL, detail), HF_OK);
    assert_string_equal(info->type, "t");
    assert_int_equal(hf_admin_why(admin, "q", "a", why, detail), HF_OK);
    assert_string_equal(job->id, "a");
    assert_int_equal(why->workers, 0);
    assert_int_equal(hf_admin_round_trip(admin, trip, detail), HF_OK);
    assert_true(trip->took_us > 0);
    const hf_audit_opts audit = {HF_AUDIT_OPTS_INIT, .fix = true};
    const void *theirs =
        newer ? LATER(hf_audit_opts, &audit) : OLDER(hf_audit_opts, cb, &audit);
    size_t n = 1;
    assert_int_equal(hf_admin_audit(admin, "q", theirs, &n, detail), HF_OK);
    assert_int_equal(n, 0);
    const hf_dead_filter filter = {HF_DEAD_FILTER_INIT, .type = "t"};
    theirs =
        newer ? LATER(hf_dead_filter, &filter) : OLDER(hf_dead_filter, since_ms, &filter);
    assert_int_equal(hf_admin_dead_purge(admin, "q", theirs, NULL, NULL, &n, detail),
                     HF_OK);
    assert_int_equal(n, 0);
}

static void ask_of_schedules(hf_admin *admin, bool newer)
{
    const hf_schedule hourly = {HF_SCHEDULE_INIT,    .id = "s",
                                .queue = "q",        .type = "t",
                                .every_ms = 3600000, .limit = newer ? 2 : 1};
    const hf_schedule_info no_info = {HF_SCHEDULE_INFO_INIT};
    const void *theirs =
        newer ? LATER(hf_schedule, &hourly) : OLDER(hf_schedule, rev, &hourly);
    hf_schedule_info *info = newer ? LATER(hf_schedule_info, &no_info)
                                   : OLDER(hf_schedule_info, payload_len, &no_info);
    assert_int_equal(hf_admin_schedule_put(admin, theirs, detail), HF_OK);
    assert_int_equal(hf_admin_schedule(admin, "q", "s", info, NULL, detail), HF_OK);
    assert_int_equal(info->every_ms, 3600000);
    assert_int_equal(info->limit, hourly.limit);
    if (newer) {
        assert_int_equal(hf_admin_schedule_put(
                             admin, set_unknown(LATER(hf_schedule, &hourly)), detail),
                         HF_INVALID);
        assert_unknown("hf_schedule");
    }
}

static void an_admin_takes_and_fills_older_and_newer_structs(void **state)
{
    size_t n;
    (void)state;
    hf_producer *producer = open_producer(false);
    const hf_job job = {HF_JOB_INIT, .queue = "q", .type = "t", .id = "a"};
    assert_int_equal(hf_enqueue_wait(producer, &job, 1, NULL, 0, detail), HF_OK);
    hf_producer_close(producer, NULL, NULL);
    for (int newer = 0; newer < 2; newer++) {
        hf_admin *admin = open_admin(newer);
        ask_all(admin, newer);
        ask_of_schedules(admin, newer);
        hf_admin_close(admin);
    }
    hf_admin *admin = open_admin(true);
    const hf_dead_filter filter = {HF_DEAD_FILTER_INIT};
    void *theirs = set_unknown(LATER(hf_dead_filter, &filter));
    assert_int_equal(hf_admin_dead_purge(admin, "q", theirs, NULL, NULL, &n, detail),
                     HF_INVALID);
    assert_non_null(strstr(detail, "hf_dead_filter"));
    hf_queue_stats unsized = {.size = 0};
    assert_int_equal(hf_admin_stats(admin, "q", &unsized, detail), HF_INVALID);
    assert_non_null(strstr(detail, "hf_queue_stats"));
    hf_admin_close(admin);
}

/* ---- workers ---- */

static hf_verdict stop_after(hf_run *run, void *arg)
{
    (void)run;
    hf_worker_stop(*(hf_worker **)arg);
    return HF_VERDICT_DONE;
}

static void on_log(hf_log_level level, const char *message, const hf_log_field *fields,
                   size_t n, void *arg)
{
    (void)level;
    if (strcmp(message, "job") == 0 && n > 1)
        *(bool *)arg = strcmp(hf_log_field_at(fields, 1)->key, "queue") == 0;
}

static void run_sized(bool newer)
{
    static const char *const argv[] = {"true", NULL};
    hf_worker *worker = NULL;
    bool told = false;
    const hf_worker_queue ours[] = {{HF_WORKER_QUEUE_INIT, .name = "p"},
                                    {HF_WORKER_QUEUE_INIT, .name = "q"}};
    const size_t size =
        newer ? sizeof(hf_worker_queue) + NEWER : offsetof(hf_worker_queue, has_limits);
    hf_worker_opts opts = {HF_WORKER_OPTS_INIT,
                           .server = older_server(),
                           .queues = resize(ours, sizeof ours[0], 2, size),
                           .n_queues = 2,
                           .log = on_log,
                           .log_arg = &told};
    const hf_program program = {HF_PROGRAM_INIT, .type = "x", .argv = argv};
    const void *theirs =
        newer ? LATER(hf_worker_opts, &opts) : OLDER(hf_worker_opts, strict, &opts);
    assert_int_equal(hf_worker_new(&worker, theirs, detail), HF_OK);
    assert_int_equal(hf_worker_handle(worker, "t", 0, stop_after, &worker, NULL), HF_OK);
    assert_int_equal(hf_worker_run(worker, detail), HF_OK);
    assert_int_equal(told, newer); /* an older one knows no log */
    hf_worker_free(worker);
    assert_int_equal(hf_worker_new(&worker, theirs, detail), HF_OK);
    theirs = newer ? LATER(hf_program, &program) : OLDER(hf_program, env, &program);
    assert_int_equal(hf_worker_handle_program(worker, theirs, NULL), HF_OK);
    hf_worker_free(worker);
    if (!newer)
        return;
    assert_int_equal(
        hf_worker_new(&worker, set_unknown(LATER(hf_worker_opts, &opts)), detail),
        HF_INVALID);
    assert_unknown("hf_worker_opts");
    set_unknown((void *)(uintptr_t)opts.queues);
    assert_int_equal(hf_worker_new(&worker, &opts, detail), HF_INVALID);
    assert_unknown("hf_worker_queue");
}

static void a_worker_takes_older_and_newer_structs(void **state)
{
    (void)state;
    for (int newer = 0; newer < 2; newer++) {
        hf_producer *producer = open_producer(newer);
        const hf_job job = {HF_JOB_INIT, .queue = "q", .type = "t"};
        assert_int_equal(hf_enqueue_wait(producer, &job, 1, NULL, 0, detail), HF_OK);
        hf_producer_close(producer, NULL, NULL);
        run_sized(newer);
    }
    assert_int_equal(hf_fixture_number(&redis, "HLEN hf:{q}:jobs"), 0);
}

/* ---- locks ---- */

static void lock_sized(bool newer)
{
    static const char *const name = "n";
    hf_lock_client *client = NULL;
    hf_lock *lock = NULL;
    const hf_lock_client_opts opts = {HF_LOCK_CLIENT_OPTS_INIT, .server = older_server()};
    const hf_lock_opts one = {HF_LOCK_OPTS_INIT, .names = &name, .n_names = 1};
    const hf_lock_look no_look = {HF_LOCK_LOOK_INIT};
    const void *theirs = newer ? LATER(hf_lock_client_opts, &opts)
                               : OLDER(hf_lock_client_opts, on_event, &opts);
    assert_int_equal(hf_lock_client_open(&client, theirs, detail), HF_OK);
    theirs = newer ? LATER(hf_lock_opts, &one) : OLDER(hf_lock_opts, form, &one);
    assert_int_equal(hf_lock_acquire_wait(client, theirs, &lock, detail), HF_OK);
    hf_lock_look *look =
        resize(&no_look, sizeof no_look, 1, sizeof no_look + (newer ? NEWER : 0));
    assert_int_equal(hf_lock_look_at(client, name, 10, look, detail), HF_OK);
    assert_int_equal(look->n, 1);
    assert_true(hf_lock_look_entry(look, 0)->granted);
    assert_int_equal(hf_lock_look_entry(look, 0)->size, sizeof(hf_lock_entry));
    assert_null(hf_lock_look_entry(look, 1));
    hf_lock_look_done(look);
    assert_int_equal(hf_lock_release_wait(lock, NULL), HF_RELEASE_DONE);
    if (newer) {
        theirs = set_unknown(LATER(hf_lock_opts, &one));
        assert_int_equal(hf_lock_acquire_wait(client, theirs, &lock, detail), HF_INVALID);
        assert_unknown("hf_lock_opts");
    }
    hf_lock_client_close(client, NULL, NULL);
}

static void a_lock_client_takes_older_and_newer_structs(void **state)
{
    (void)state;
    lock_sized(false);
    lock_sized(true);
}

static void a_set_takes_older_and_newer_structs(void **state)
{
    static const char *const names[] = {"x", "y"};
    hf_lock_servers *servers = NULL;
    hf_lock_set *set = NULL;
    (void)state;
    const char *const url = hf_fixture_url(&redis);
    const hf_lock_opts locks[] = {{HF_LOCK_OPTS_INIT, .names = &names[0], .n_names = 1},
                                  {HF_LOCK_OPTS_INIT, .names = &names[1], .n_names = 1}};
    const hf_multilock_member ours[] = {
        {HF_MULTILOCK_MEMBER_INIT, .lock = OLDER(hf_lock_opts, form, &locks[0])},
        {HF_MULTILOCK_MEMBER_INIT, .lock = LATER(hf_lock_opts, &locks[1])}};
    hf_multilock_member *members =
        resize(ours, sizeof ours[0], 2, sizeof ours[0] + NEWER);
    const hf_multilock_opts opts = {HF_MULTILOCK_OPTS_INIT, .members = members,
                                    .n_members = 2};
    assert_int_equal(hf_lock_servers_open(&servers, &url, 1, NULL, detail), HF_OK);
    const void *older = OLDER(hf_multilock_opts, wait_ms, &opts);
    assert_int_equal(hf_multilock_acquire_wait(servers, older, &set, detail), HF_OK);
    assert_int_equal(hf_lock_set_release_wait(set, NULL), HF_RELEASE_DONE);
    set_unknown(members);
    assert_int_equal(hf_multilock_acquire_wait(servers, &opts, &set, detail), HF_INVALID);
    assert_unknown("hf_multilock_member");
    /* One server is too few; the options are looked at first. */
    const hf_redlock_opts red = {HF_REDLOCK_OPTS_INIT, .name = "r"};
    older = OLDER(hf_redlock_opts, fixed, &red);
    assert_int_equal(hf_redlock_acquire_wait(servers, older, &set, detail), HF_INVALID);
    assert_non_null(strstr(detail, "odd number"));
    const void *newer = set_unknown(LATER(hf_redlock_opts, &red));
    assert_int_equal(hf_redlock_acquire_wait(servers, newer, &set, detail), HF_INVALID);
    assert_unknown("hf_redlock_opts");
    hf_lock_servers_close(servers, NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_producer_takes_older_and_newer_structs, up,
                                        down),
        cmocka_unit_test_setup_teardown(an_admin_takes_and_fills_older_and_newer_structs,
                                        up, down),
        cmocka_unit_test_setup_teardown(a_worker_takes_older_and_newer_structs, up, down),
        cmocka_unit_test_setup_teardown(a_lock_client_takes_older_and_newer_structs, up,
                                        down),
        cmocka_unit_test_setup_teardown(a_set_takes_older_and_newer_structs, up, down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
