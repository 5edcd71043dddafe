/* test_pool_lone.c - for which run of a pool the loop may stand still a moment: one
 * beside which no process of any pool runs another. supervisor.c as it is; processes and
 * verdicts are played by the test. */
#include "worker/pool/supervisor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "worker/alone.h"
#include "worker/outbox.h"
#include "worker/pool/crash.h"
#include "worker/pool/judge.h"
#include "worker/pool/launch.h"
#include "worker/pool/offer.h"
#include "worker/pool/paused.h"
#include "worker/pool/pool_job.h"
#include "worker/queues/queues.h"
#include "worker/report.h"
#include "worker/run/notes.h"

enum { POOLS = 2, RUNS = 4 };

/* One process for each pool. */
struct hf_child {
    hf_child_opts opts;
    hf_run *run; /* NULL: it has none */
};

static hf_worker w;
static hf_served served;
static hf_pool_spec spec;
static hf_supervisor *pools[POOLS];
static hf_child children[POOLS];
static size_t n_children;
static hf_run *runs[RUNS];
static bool was_alone; /* the last run that was sent */

/* ---- processes ---- */

hf_err hf_child_start(hf_child **out, const hf_child_opts *opts)
{
    *out = &children[n_children++];
    **out = (hf_child){.opts = *opts};
    return HF_OK;
}

void hf_child_send(hf_child *child, const hf_child_job *job, bool alone)
{
    child->run = job->job;
    was_alone = alone;
}

bool hf_child_can_take(const hf_child *child)
{
    return child->run == NULL;
}

bool hf_child_takes_jobs(const hf_child *child)
{
    (void)child;
    return true;
}

size_t hf_child_busy(const hf_child *child)
{
    return child->run != NULL;
}

size_t hf_child_parallel(const hf_child *child)
{
    (void)child;
    return 1;
}

hf_child_state hf_child_state_of(const hf_child *child)
{
    (void)child;
    return HF_CHILD_READY;
}

uint64_t hf_child_ready_ns(const hf_child *child)
{
    (void)child;
    return 1;
}

static void end_run_of(size_t pool)
{
    hf_child *child = &children[pool];
    hf_run *run = child->run;
    const hf_child_verdict verdict = {.frame = NULL};
    child->run = NULL;
    child->opts.calls->verdict(child, run, &verdict, child->opts.arg);
}

/* ---- runs ---- */

void hf_run_push(hf_run_list *list, hf_run *run)
{
    run->prev = list->tail;
    run->next = NULL;
    *(list->tail == NULL ? &list->head : &list->tail->next) = run;
    list->tail = run;
    list->n++;
}

void hf_run_remove(hf_run_list *list, hf_run *run)
{
    *(run->prev == NULL ? &list->head : &run->prev->next) = run->next;
    *(run->next == NULL ? &list->tail : &run->next->prev) = run->prev;
    list->n--;
}

hf_run *hf_run_pop(hf_run_list *list)
{
    hf_run *run = list->head;
    if (run != NULL)
        hf_run_remove(list, run);
    return run;
}

hf_child_job hf_pool_job(hf_run *run)
{
    return (hf_child_job){.job = run};
}

bool hf_lease_lost(const hf_lease *lease)
{
    (void)lease;
    return false;
}

uint64_t hf_lease_deadline_ns(const hf_lease *lease)
{
    (void)lease;
    return UINT64_MAX;
}

bool hf_groups_ready(const hf_groups *groups)
{
    (void)groups;
    return true;
}

/* ---- what is not looked at here ---- */

#define NOTHING(name, ...)                                                               \
    void name(__VA_ARGS__)                                                               \
    {                                                                                    \
    }
#define ZERO(type, name, ...)                                                            \
    type name(__VA_ARGS__)                                                               \
    {                                                                                    \
        return 0;                                                                        \
    }
#pragma GCC diagnostic ignored "-Wunused-parameter"
NOTHING(hf_child_cancel, hf_child *child, const void *job, hf_frame_why why,
        uint32_t grace_ms)
NOTHING(hf_child_stop, hf_child *child)
NOTHING(hf_child_kill, hf_child *child)
NOTHING(hf_child_extend, hf_child *child, uint64_t deadline_ns)
NOTHING(hf_judge_verdict, hf_run *run, const hf_child_verdict *verdict)
NOTHING(hf_judge_update, hf_run *run, const hf_frame *frame)
NOTHING(hf_judge_end, hf_run *run, const hf_child_end *end)
NOTHING(hf_crash_take, hf_run_list *undecided, hf_run *run, const hf_child_end *how)
NOTHING(hf_crash_decide, hf_run_list *undecided, uint64_t now_ns)
NOTHING(hf_outbox_finish, hf_run *run)
NOTHING(hf_outbox_release, hf_run *run)
NOTHING(hf_outbox_neighbour, hf_run *run, const char *id)
NOTHING(hf_outbox_back_off, hf_run *run, int64_t delay_ms, const char *text)
NOTHING(hf_outbox_gather, hf_worker *worker)
NOTHING(hf_alone_put_back, hf_run *run)
NOTHING(hf_offer_report, const hf_offer *offer, hf_worker *worker, const char *pool)
NOTHING(hf_offer_renew, hf_offer *offer, hf_worker *worker, const hf_pool_spec *of,
        struct hf_supervisor *pool)
NOTHING(hf_offer_drop, hf_offer *offer, hf_worker *worker)
NOTHING(hf_offer_free, hf_offer *offer)
NOTHING(hf_pool_job_warn, const hf_run_list *started, uint32_t grace_ms, uint64_t now_ns)
NOTHING(hf_paused_add, hf_paused *paused, hf_served *of)
NOTHING(hf_paused_end, hf_paused *paused, hf_worker *worker)
NOTHING(hf_report, hf_worker *worker, hf_log_level level, const char *message,
        const hf_log_field *fields, size_t n)
NOTHING(hf_run_on_line, void *run, int stream, const char *text, size_t len, void *worker)
NOTHING(hf_notes_log, hf_run *run, const void *bytes, size_t len)
NOTHING(hf_queue_refund, hf_served *of, uint32_t n)
NOTHING(hf_launch_refuse, const hf_joined *joined)
NOTHING(hf_door_close, hf_door *door)
NOTHING(hf_ready_free, hf_ready *ready)
NOTHING(hf_pool_spec_unref, hf_pool_spec *of)
NOTHING(hf_counters_process_ended, hf_counters *c, const char *pool, const char *reason)
ZERO(bool, hf_ready_same, const hf_ready *a, const hf_ready *b)
ZERO(bool, hf_child_ping, hf_child *child, uint64_t now_ns)
ZERO(pid_t, hf_child_pid, const hf_child *child)
ZERO(uint64_t, hf_child_jobs, const hf_child *child)
ZERO(uint64_t, hf_child_deadline_ns, const hf_child *child)
ZERO(const char *, hf_child_why, const hf_child *child)
ZERO(bool, hf_child_was_stopped, const hf_child *child)
ZERO(bool, hf_child_refused, const hf_child *child)
ZERO(bool, hf_child_served, const hf_child *child)
ZERO(int64_t, hf_alone_patience_ms, const hf_run *run)
ZERO(uint64_t, hf_pool_job_deadline, const hf_run_list *started, const hf_child *child,
     uint64_t most_ns)
ZERO(hf_err, hf_door_open, hf_door **out, uv_loop_t *loop, const char *path,
     const hf_door_calls *calls, void *arg, char detail[HF_DETAIL_SIZE])
ZERO(hf_err, hf_offer_take, hf_offer *offer, hf_worker *worker, const hf_pool_spec *of,
     struct hf_supervisor *pool, hf_ready *ready, char detail[HF_DETAIL_SIZE])

hf_pool_spec *hf_pool_spec_ref(hf_pool_spec *of)
{
    return of;
}

static void gone(hf_worker *worker)
{
}

/* ---- the tests ---- */

static int up(void **state)
{
    static const char *const argv[] = {"a", NULL};
    (void)state;
    w = (hf_worker){.opts.lease_ms = 10000};
    spec = (hf_pool_spec){.pool = {.argv = argv, .processes = 1}};
    n_children = 0;
    for (size_t i = 0; i < RUNS; i++) {
        runs[i] = calloc(1, sizeof *runs[i] + 1);
        assert_non_null(runs[i]);
        runs[i]->worker = &w;
        runs[i]->served = &served;
    }
    for (size_t i = 0; i < POOLS; i++) {
        pools[i] = hf_supervisor_new(&w, NULL, &spec, gone);
        assert_non_null(pools[i]);
        hf_supervisor_turn(pools[i], 1);
        assert_int_equal(n_children, i + 1);
    }
    return 0;
}

static int down(void **state)
{
    (void)state;
    for (size_t i = 0; i < RUNS; i++)
        free(runs[i]);
    for (size_t i = 0; i < POOLS; i++) {
        free(children[i].opts.arg); /* what its supervisor knows of it */
        hf_supervisor_free(pools[i]);
    }
    return 0;
}

static bool starts_alone(size_t pool, size_t run)
{
    hf_supervisor_accept(pools[pool], runs[run]);
    hf_supervisor_dispatch(pools[pool]);
    assert_ptr_equal(children[pool].run, runs[run]);
    return was_alone;
}

static void a_run_beside_one_of_another_pool_is_not_alone(void **state)
{
    (void)state;
    assert_true(starts_alone(0, 0));
    assert_false(starts_alone(1, 1));
    end_run_of(1);
    end_run_of(0);
    assert_true(starts_alone(1, 2));
    end_run_of(1);
}

/* The next job is sent before the verdict of the last one is judged. */
static void the_next_run_is_alone_if_all_others_have_ended(void **state)
{
    (void)state;
    assert_true(starts_alone(0, 0));
    hf_supervisor_accept(pools[0], runs[1]);
    was_alone = false;
    end_run_of(0);
    assert_ptr_equal(children[0].run, runs[1]);
    assert_true(was_alone);
    assert_false(starts_alone(1, 2));
    hf_supervisor_accept(pools[0], runs[3]);
    was_alone = true;
    end_run_of(0);
    assert_ptr_equal(children[0].run, runs[3]);
    assert_false(was_alone);
    end_run_of(0);
    end_run_of(1);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, up, down)
    const struct CMUnitTest tests[] = {
        CASE(a_run_beside_one_of_another_pool_is_not_alone),
        CASE(the_next_run_is_alone_if_all_others_have_ended),
    };
    return cmocka_run_group_tests_name("pool_lone", tests, NULL, NULL);
}
