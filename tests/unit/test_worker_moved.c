/* test_worker_moved.c - what a worker does with the answer of a node that does not have
 * the queue any more: outbox.c, schedules.c and leases.c as they are; Redis and the
 * watchdog are played by the test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "queue/schedule.h"
#include "queue/shards.h"
#include "worker/leases.h"
#include "worker/node/site.h"
#include "worker/outbox.h"
#include "worker/past.h"
#include "worker/queues/queues.h"
#include "worker/report.h"
#include "worker/run/notes.h"
#include "worker/run/result.h"
#include "worker/run/run.h"
#include "worker/runner/runner.h"
#include "worker/runs.h"
#include "worker/schedules.h"

static const char words[] = "MOVED 1 127.0.0.1:1";

static hf_worker w;
static hf_server redis;
static hf_site first, second;
static hf_served served;
static hf_answer_cb cb; /* of the last request, */
static void *cb_arg;
static hf_site *clock_of;       /* whose clock was read last */
static hf_site *unserved;       /* that does not have the queue; NULL: none */
static hf_server *corrected_by; /* who has told where a slot is; NULL: none has */
static hf_watchdog_opts started;
static int warnings;
static bool ticks_due;

/* ---- Redis ---- */

static hf_err sent(hf_answer_cb done, void *arg)
{
    cb = done;
    cb_arg = arg;
    return HF_OK;
}

static void answer(hf_err err)
{
    cb(&(hf_answer){.err = err, .detail = words}, cb_arg);
}

hf_err hf_op_verdict(hf_client *client, const hf_queue *queue, hf_verdict_op op,
                     const hf_verdict_args *args, const hf_verdict_item *items, size_t n,
                     hf_answer_cb done, void *arg)
{
    (void)client, (void)queue, (void)op, (void)args, (void)items, (void)n;
    return sent(done, arg);
}

hf_err hf_op_renew(hf_client *client, const hf_queue *queue, const hf_renew_args *args,
                   const hf_renew_item *items, size_t n, uint32_t timeout_ms,
                   hf_answer_cb done, void *arg)
{
    (void)client, (void)queue, (void)args, (void)items, (void)n, (void)timeout_ms;
    return sent(done, arg);
}

hf_err hf_settled_read(const hf_answer *a, hf_settled *out)
{
    *out = (hf_settled){.now_ms = 1};
    return a->err;
}

hf_err hf_op_cron_due(hf_client *client, const hf_queue *queue, const char *worker,
                      hf_answer_cb done, void *arg)
{
    (void)client, (void)queue, (void)worker;
    return sent(done, arg);
}

hf_err hf_op_cron_tick(hf_client *client, const hf_queue *queue,
                       const hf_cron_tick_args *args, hf_answer_cb done, void *arg)
{
    (void)client, (void)queue;
    assert_int_equal(args->n, 1);
    return sent(done, arg);
}

hf_err hf_cron_due_read(const hf_answer *a, hf_cron_due *out)
{
    *out = (hf_cron_due){.n = ticks_due ? 1 : 0};
    return a->err;
}

void hf_cron_due_at(const hf_cron_due *due, size_t i, hf_cron_due_one *out)
{
    (void)due, (void)i;
    *out = (hf_cron_due_one){.id = {"s", 1}};
}

hf_err hf_cron_tick_read(const hf_answer *a, bool *more, const hf_reply **codes)
{
    (void)more, (void)codes;
    return a->err;
}

/* ---- the other parts ---- */

void hf_past_note(const hf_run *run, unsigned how)
{
    (void)run, (void)how;
}

void hf_runs_ended(hf_run *run)
{
    (void)run;
}

bool hf_site_unserved(hf_site *site, hf_err err, const char *detail)
{
    if (err != HF_MOVED)
        return false;
    assert_string_equal(detail, words);
    unserved = site;
    return true;
}

bool hf_node_answered(hf_node *node, hf_node_backoff *backoff, const hf_answer *a)
{
    assert_null(backoff);
    if (a->err != HF_MOVED)
        return false;
    assert_string_equal(a->detail, words);
    corrected_by = node == &first.base ? &redis : NULL;
    return true;
}

hf_err hf_watchdog_start(hf_watchdog **out, const hf_watchdog_opts *opts)
{
    (void)out;
    started = *opts;
    return HF_OK;
}

void hf_site_clock_read(hf_site *site, int64_t now_ms, uint64_t sent_ns)
{
    (void)now_ms, (void)sent_ns;
    clock_of = site;
}

bool hf_queue_refused(hf_served *of, hf_site *site, hf_err err, const hf_answer *a)
{
    (void)of;
    return !hf_site_unserved(site, err, a->detail);
}

void hf_report(hf_worker *worker, hf_log_level level, const char *message,
               const hf_log_field *fields, size_t n)
{
    (void)worker, (void)message, (void)fields, (void)n;
    warnings += level >= HF_LOG_WARN ? 1 : 0;
}

void hf_run_push(hf_run_list *list, hf_run *run)
{
    assert_int_equal(list->n, 0);
    *list = (hf_run_list){.head = run, .tail = run, .n = 1};
}

void hf_run_push_front(hf_run_list *list, hf_run *run)
{
    hf_run_push(list, run);
}

hf_run *hf_run_pop(hf_run_list *list)
{
    hf_run *run = list->head;
    *list = (hf_run_list){.n = 0};
    return run;
}

size_t hf_queues_slots(const hf_worker *worker)
{
    (void)worker;
    return 1;
}

hf_served *hf_queues_slot(const hf_worker *worker, size_t slot)
{
    (void)worker;
    assert_int_equal(slot, 0);
    return &served;
}

#pragma GCC diagnostic ignored "-Wunused-parameter"
#define NOTHING(name, ...)                                                               \
    void name(__VA_ARGS__)                                                               \
    {                                                                                    \
    }
#define SAYS(type, value, name, ...)                                                     \
    type name(__VA_ARGS__)                                                               \
    {                                                                                    \
        return value;                                                                    \
    }
SAYS(bool, true, hf_site_can_ask, const hf_site *site)
SAYS(bool, true, hf_site_ready, const hf_site *site)
SAYS(int64_t, 1, hf_site_not_after, const hf_site *site)
SAYS(unsigned, 0, hf_shard_of_id, const char *id, unsigned n)
SAYS(int64_t, 1, hf_server_now, hf_server *server)
SAYS(bool, false, hf_lease_lost, const hf_lease *lease)
SAYS(bool, false, hf_notes_unreported, hf_run *run)
SAYS(bool, false, hf_result_keep, hf_run *run)
SAYS(int64_t, 1, hf_run_ran_ms, const hf_run *run)
SAYS(uint64_t, 1, hf_run_ran_ns, const hf_run *run)
SAYS(uint32_t, 20, hf_run_max_attempts, const hf_run *run)
SAYS(bool, false, hf_queue_is, const hf_served *of, unsigned traits)
SAYS(bool, false, hf_queue_is_divided, const hf_served *of)
SAYS(size_t, 0, hf_queues_count, const hf_worker *worker)
SAYS(hf_served *, NULL, hf_queues_at, const hf_worker *worker, size_t i)
SAYS(hf_whole *, NULL, hf_queues_find, const hf_worker *worker, const char *name)
SAYS(hf_err, HF_OK, hf_plan_schedule_of, hf_plan_schedule *out, const hf_schedule *s)
SAYS(const char *, "q", hf_queue_whole_name, const hf_whole *whole)
SAYS(uint32_t, 0, hf_runner_slots, const hf_worker *worker)
SAYS(hf_err, HF_OK, hf_schedule_read_state, hf_schedule_state *out, hf_bytes text)
SAYS(hf_err, HF_INVALID, hf_schedule_read, hf_schedule_def *out, hf_schedule_info *info,
     hf_bytes line)
SAYS(hf_err, HF_OK, hf_cron_put_read, const hf_answer *a, bool *written)
SAYS(hf_err, HF_CONN, hf_op_cron_put, hf_client *client, const hf_queue *queue,
     const hf_cron_put_args *args, hf_answer_cb done, void *arg)
NOTHING(hf_cron_due_claimed, const hf_reply *ticks, int64_t now_ms, hf_cron_due *out)
NOTHING(hf_counters_attempt, hf_queue_counters *q, const char *type, uint64_t wait_ns,
        uint64_t run_ns)
NOTHING(hf_counters_margin, hf_counters *c, uint64_t ns, uint64_t now_ns)
NOTHING(hf_queue_registered, hf_served *of, hf_site *asked, hf_err err,
        const char *detail)
NOTHING(hf_queue_apply, hf_served *of, hf_queue_event event)
NOTHING(hf_queue_refund, hf_served *of, uint32_t n)
NOTHING(hf_plan_schedules_free, hf_plan_schedule *list, size_t n)
NOTHING(hf_notes_settle, hf_run *run)
NOTHING(hf_notes_take, hf_notes_taken *taken, hf_run *const *runs, size_t n)
NOTHING(hf_notes_taken_free, hf_notes_taken *taken)
NOTHING(hf_report_text, hf_worker *worker, hf_log_level level, const char *message,
        const char *key, const char *text)
NOTHING(hf_run_forget, hf_run *run)
NOTHING(hf_run_free, hf_run *run)
NOTHING(hf_trace_begin, hf_run *run)
NOTHING(hf_trace_end, const hf_run *run)
NOTHING(hf_run_report, hf_worker *worker, hf_run *run, const char *outcome)
NOTHING(hf_run_set_text, hf_run *run, const char *text, size_t len)
NOTHING(hf_site_confirm, hf_site *site, hf_confirm *confirm,
        void (*done)(void *, hf_err, const char *), void *arg)
NOTHING(hf_site_confirm_report, hf_site *site, hf_err err, const char *detail)
NOTHING(hf_site_pause, hf_site *site, hf_err err)
SAYS(bool, false, hf_site_clock_sample, hf_site *site, int64_t now_ms, uint64_t sent_ns)
SAYS(bool, false, hf_client_was_idle, const hf_client *client)
SAYS(hf_err, HF_OK, hf_lease_answer, const hf_lease *lease, hf_lease_note *note)
SAYS(uint64_t, 1, hf_lease_deadline_ns, const hf_lease *lease)
SAYS(uint64_t, 1, hf_lease_deadline, uint64_t sent_ns, uint32_t ttl_ms)
SAYS(void *, (void *)lease, hf_lease_user, const hf_lease *lease)
SAYS(hf_err, HF_NOMEM, hf_node_second_replicas, hf_node *node)
NOTHING(hf_node_second_confirm, hf_node *node, hf_confirm *confirm)
NOTHING(hf_nodes_second_turn, hf_nodes *nodes, uv_loop_t *loop)
NOTHING(hf_nodes_second_close, hf_nodes *nodes, void (*done)(void *), void *arg)
NOTHING(hf_client_flush, hf_client *client)
NOTHING(hf_notes_answered, hf_run *run, uint64_t numbers)
NOTHING(hf_program_extend, hf_process *process, uint64_t deadline_ns)
NOTHING(hf_report_outage, hf_worker *worker, hf_outage *outage, const char *message,
        hf_err err, const char *detail)
NOTHING(hf_run_add_event, hf_run *run, hf_lease_event event)
NOTHING(hf_watchdog_answer, hf_renew_batch *batch, hf_err err, uint64_t sent_ns,
        const hf_err *codes, const hf_lease_note *notes)
NOTHING(hf_watchdog_call, hf_watchdog *dog, uint64_t at_ns)
NOTHING(hf_watchdog_verify, hf_watchdog *dog)
SAYS(uint64_t, 0, hf_watchdog_verify_ns, const hf_watchdog *dog)
NOTHING(hf_watchdog_drop_many, hf_watchdog *watchdog, hf_lease *const *leases, size_t n)

/* ---- tests ---- */

static int up(void **state)
{
    (void)state;
    memset(&w, 0, sizeof w);
    first = second = (hf_site){.worker = &w, .base.redis = &redis};
    served = (hf_served){.worker = &w, .site = &first, .whole = &served.own};
    served.own = (hf_whole){.members = &served, .n_members = 1};
    w.phase = HF_SERVING;
    w.registry = &first;
    w.nodes.first = &first.base;
    pthread_mutex_init(&w.note_lock, NULL);
    corrected_by = NULL;
    clock_of = unserved = NULL;
    warnings = 0;
    ticks_due = false;
    assert_int_equal(hf_outbox_open(&w), HF_OK);
    assert_int_equal(hf_schedules_new(&w), HF_OK);
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_outbox_close(&w);
    hf_schedules_free(&w);
    pthread_mutex_destroy(&w.note_lock);
    return 0;
}

/* A verdict came too late, so the lease is renewed first; and the queue has moved
 * meanwhile. */
static void the_answer_to_a_renewal_is_of_the_site_that_was_asked(void **state)
{
    (void)state;
    hf_run *run = calloc(1, sizeof *run + 1);
    assert_non_null(run);
    run->worker = &w;
    run->served = &served;
    w.in_hand = 1;
    hf_outbox_release(run);
    assert_true(hf_outbox_flush(&w));
    served.site = &second;
    answer(HF_DEADLINE);
    assert_ptr_equal(clock_of, &first);
    answer(HF_MOVED);
    assert_ptr_equal(clock_of, &second);
    assert_ptr_equal(unserved, &second);
    hf_outbox_forget(&w);
    free(run);
}

static void a_move_is_no_refusal_of_ticks(void **state)
{
    (void)state;
    hf_schedules_checked(&served, true);
    answer(HF_MOVED);
    assert_ptr_equal(unserved, &first);
    unserved = NULL;
    ticks_due = true;
    hf_schedules_checked(&served, true);
    answer(HF_OK); /* and the ticks are sent */
    answer(HF_MOVED);
    assert_ptr_equal(unserved, &first);
    assert_int_equal(warnings, 0);
    assert_int_equal(served.requests, 0);
}

/* On the watchdog's thread: the loop may be busy. */
static void a_refused_renewal_corrects_the_table(void **state)
{
    (void)state;
    hf_run *run = calloc(1, sizeof *run + 1);
    hf_lease *lease = (hf_lease *)run;
    hf_renew_batch batch = {.n = 1, .leases = &lease};
    run->served = &served;
    first.base.second.client = (hf_client *)&redis; /* never looked into */
    assert_int_equal(hf_leases_start(&w), HF_OK);
    w.async.pending = 1; /* nobody is woken */
    started.renew(&batch, &w);
    answer(HF_MOVED);
    assert_ptr_equal(corrected_by, &redis);
    free(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            the_answer_to_a_renewal_is_of_the_site_that_was_asked, up, down),
        cmocka_unit_test_setup_teardown(a_move_is_no_refusal_of_ticks, up, down),
        cmocka_unit_test_setup_teardown(a_refused_renewal_corrects_the_table, up, down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
