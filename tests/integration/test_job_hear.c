/* test_job_hear.c - waiting for the ends of jobs of several queues: a queue that comes
 * while a wait for another one is under way, and more queues than one wait can name. */
#include "holdfast/job_wait.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "holdfast/admin.h"
#include "redis/listener.h"
#include "tests/support/eventually.h"
#include "tests/support/producer.h"

enum {
    FULL = HF_HEARD_MAX,
    LONG_MS = 30000,
    ENDS = 10,
    TRIES = 5,     /* a queue that is not heard yet is asked every 200 ms */
    ASK_MS = 1000, /* between two looks at a job whose end would be told */
    QUICK_TRIES = 20,
    CALM_MS = 1000,
    WAITS_IN_IT = 10, /* at most; one takes 10 s if nothing is told */
    NAME = 16
};

static hf_fixture redis;
static hf_producer *producer;
static hf_admin *admin;
static hf_waits *waits;
static char detail[HF_DETAIL_SIZE];

static void must(hf_err err)
{
    if (err != HF_OK)
        fail_msg("%s: %s", hf_err_name(err), detail);
}

static int up(void **state)
{
    (void)state;
    hf_fixture_start(&redis, NULL);
    const hf_server_opts server = {HF_SERVER_OPTS_INIT, .url = hf_fixture_url(&redis)};
    producer = hf_test_producer(&redis, (hf_producer_opts){HF_PRODUCER_OPTS_INIT});
    must(hf_admin_open(&admin, &(hf_admin_opts){HF_ADMIN_OPTS_INIT, .server = &server},
                       detail));
    must(hf_waits_open(&waits, &(hf_waits_opts){HF_WAITS_OPTS_INIT, .server = &server},
                       detail));
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_waits_close(waits);
    hf_admin_close(admin);
    hf_producer_close(producer, NULL, NULL);
    hf_fixture_stop(&redis);
    return 0;
}

/* ---- a job that is waited for ---- */

typedef struct waiting {
    char queue[NAME], id[NAME];
    uint64_t from_ms;
    atomic_int n;
    hf_err err;
} waiting;

static void on_end(const hf_job_end *end, void *arg)
{
    waiting *w = arg;
    w->err = end->err;
    atomic_fetch_add(&w->n, 1);
}

/* Redis knows that it is waited for. */
static void begin(waiting *w, const char *queue)
{
    static unsigned n;
    hf_enqueue_result made = {HF_ENQUEUE_RESULT_INIT};
    *w = (waiting){.err = HF_OK};
    (void)snprintf(w->queue, sizeof w->queue, "%s", queue);
    (void)snprintf(w->id, sizeof w->id, "job-%u", n++);
    const hf_job job = {HF_JOB_INIT, .queue = w->queue, .id = w->id, .type = "t",
                        .delay_ms = 3600000};
    must(hf_enqueue_wait(producer, &job, 1, &made, 0, detail));
    w->from_ms = hf_test_now_ms();
    must(hf_job_wait(waits, queue, w->id, made.accepted_ms, 0, on_end, w, detail));
    EVENTUALLY(LONG_MS,
               hf_fixture_number(&redis, "HEXISTS hf:{%s}:waits %s", queue, w->id) == 1);
}

/* Whether a connection was there to take the word of its end. Redis would keep the word
 * of a queue that is not heard. */
static bool end(waiting *w)
{
    char kept[128];
    must(hf_admin_cancel(admin, w->queue, w->id, NULL, detail));
    (void)snprintf(kept, sizeof kept, "%s",
                   hf_fixture_command(&redis, "KEYS hf:{%s}:told:*", w->queue));
    EVENTUALLY(LONG_MS, atomic_load(&w->n) == 1);
    assert_int_equal(w->err, HF_CANCEL);
    if (kept[0] == '\0')
        return true;
    kept[strcspn(kept, "\n")] = '\0';
    (void)hf_fixture_command(&redis, "DEL %s", kept);
    return false;
}

static bool is_heard(const char *queue)
{
    waiting w;
    begin(&w, queue);
    return end(&w);
}

/* Long before the wait that is under way ends by itself. */
static bool is_soon_heard(const char *queue)
{
    for (int i = 0; i < TRIES; i++)
        if (is_heard(queue))
            return true;
    return false;
}

/* It is told before a look that is a second after the first one. A busy machine may need
 * several tries. */
static bool is_soon_quick(const char *queue)
{
    waiting w;
    for (int i = 0; i < QUICK_TRIES; i++) {
        begin(&w, queue);
        (void)end(&w);
        if (hf_test_now_ms() - w.from_ms < ASK_MS)
            return true;
    }
    return false;
}

/* ---- tests ---- */

static void the_ends_in_a_queue_that_is_heard_are_told_at_once(void **state)
{
    waiting lasting;
    int heard = 0;
    (void)state;
    begin(&lasting, "q");
    assert_true(is_soon_heard("q"));
    for (int i = 0; i < ENDS; i++)
        heard += is_heard("q");
    assert_true(heard >= ENDS - 1); /* a wait may just have ended by itself */
    assert_true(is_soon_quick("q"));
    (void)end(&lasting);
}

static void a_second_queue_is_heard_while_a_wait_is_under_way(void **state)
{
    waiting first, second;
    (void)state;
    assert_true(is_soon_heard("first"));
    begin(&first, "first");
    assert_true(is_soon_heard("second"));
    begin(&second, "second");
    assert_true(is_soon_heard("third"));
    (void)end(&first);
    assert_true(is_soon_heard("second"));
    (void)end(&second);
}

static void a_queue_without_room_is_asked_until_others_leave(void **state)
{
    static waiting all[FULL];
    waiting one;
    char name[NAME];
    (void)state;
    for (int i = 0; i < FULL; i++) {
        (void)snprintf(name, sizeof name, "q%d", i);
        begin(&all[i], name);
    }
    assert_true(is_soon_heard(name));
    assert_false(is_heard("more"));
    assert_true(is_soon_quick("more"));
    begin(&one, "more");
    const long long before = hf_fixture_calls(&redis, "blpop");
    ALWAYS(CALM_MS, hf_fixture_calls(&redis, "blpop") - before < WAITS_IN_IT);
    (void)end(&one);
    (void)end(&all[0]);
    (void)end(&all[1]); /* the wait after this names one queue less */
    assert_true(is_soon_heard("more"));
    for (int i = 2; i < FULL; i++)
        (void)end(&all[i]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_ends_in_a_queue_that_is_heard_are_told_at_once),
        TEST(a_second_queue_is_heard_while_a_wait_is_under_way),
        TEST(a_queue_without_room_is_asked_until_others_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
