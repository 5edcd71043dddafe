/* test_shares.c - whose turn it is, to the last job: shares while claims are under way,
 * and what costs a queue nothing. claim.c, queues.c and dispatch.c as they are; Redis and
 * the threads are played by the test, which answers when it likes. The rest of the worker
 * does nothing (shares_stubs.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/random.h"
#include "tests/support/seed.h"
#include "worker/node/sites.h"
#include "worker/outbox.h"
#include "worker/queues/bundle.h"
#include "worker/queues/queues.h"
#include "worker/runner/runner.h"
#include "worker/runner/state.h"
#include "worker/runner/threads.h"
#include "worker/source/claim.h"

enum { A, B, C, QUEUES, SLOTS = 10, RUN_MS = 3 };

static hf_worker w;
static hf_queues queues;
static hf_site site, elsewhere;
static hf_site *moved_at; /* that has said so last; NULL: it has not */
static hf_bundle bundle;
static hf_server redis;
static hf_runner runner;
static hf_served slots[QUEUES];
static hf_claim_args asked[QUEUES]; /* of the claim under way */
static uint64_t trip_ns;
static hf_answer_cb answer_cb;
static void (*confirm_cb)(void *arg, hf_err err, const char *detail); /* of replicas */
static void *confirm_arg;
static int unsent = -1;         /* the queue whose claims cannot be sent */
static size_t looks;            /* queues that were looked at */
static bool others_wait;        /* more is there, but for others as well */
static size_t coming;           /* jobs of the answer that is being read */
static hf_run_list pool, ended; /* given to threads; returned by them */
static size_t begun[QUEUES], begun_all, released[QUEUES];

/* ---- Redis ---- */

hf_err hf_op_claim(hf_client *client, const hf_queue *queue, const hf_claim_args *args,
                   hf_answer_cb cb, void *arg)
{
    (void)client, (void)queue;
    hf_served *served = arg;
    assert_true(hf_claim_state_is(served->state, HF_Q_CLAIMABLE));
    if ((int)served->slot == unsent)
        return HF_NOMEM;
    asked[served->slot] = *args;
    answer_cb = cb;
    return HF_OK;
}

hf_err hf_claimed_read(const hf_answer *answer, hf_claimed *out)
{
    *out = (hf_claimed){.now_ms = 1, .n = coming, .next_ms = 1, .more = !others_wait};
    return answer->err;
}

void hf_claimed_at(const hf_claimed *claimed, size_t i, hf_claimed_job *out)
{
    assert_true(i < claimed->n);
    *out = (hf_claimed_job){.due_ms = 1};
}

hf_err hf_op_peek(hf_client *client, const hf_queue *const *list, size_t n,
                  hf_answer_cb cb, void *arg)
{
    (void)client, (void)list, (void)cb, (void)arg;
    looks += n;
    return HF_CONN;
}

/* ---- jobs ---- */

static hf_verdict nothing(hf_run *run, void *arg)
{
    (void)run, (void)arg;
    return HF_VERDICT_DONE;
}

static hf_handler handler = {.type = "t", .fn = nothing, .refs = 1};

hf_run *hf_run_new(hf_served *served, const hf_claimed_job *job, hf_bytes fence,
                   int64_t now_ms)
{
    (void)fence, (void)now_ms;
    hf_run *run = calloc(1, sizeof *run + 1);
    assert_non_null(run);
    run->worker = &w;
    run->served = served;
    run->handler = &handler;
    run->due_ms = job->due_ms;
    return run;
}

void hf_run_free(hf_run *run)
{
    free(run);
}

static void take(hf_run_list *list, hf_run *run)
{
    if (run->prev == NULL)
        list->head = run->next;
    else
        run->prev->next = run->next;
    if (run->next == NULL)
        list->tail = run->prev;
    else
        run->next->prev = run->prev;
    run->next = run->prev = NULL;
    list->n--;
}

void hf_run_remove(hf_run_list *list, hf_run *run)
{
    take(list, run);
}

void hf_run_push(hf_run_list *list, hf_run *run)
{
    run->prev = list->tail;
    *(list->tail == NULL ? &list->head : &list->tail->next) = run;
    list->tail = run;
    list->n++;
}

hf_run *hf_run_pop(hf_run_list *list)
{
    hf_run *run = list->head;
    if (run == NULL)
        return NULL;
    list->head = run->next;
    *(run->next == NULL ? &list->tail : &run->next->prev) = NULL;
    run->next = NULL;
    list->n--;
    return run;
}

void hf_outbox_release(hf_run *run)
{
    released[run->served->slot]++;
    run->worker->in_hand--;
    free(run);
}

void hf_outbox_finish(hf_run *run)
{
    begun[run->served->slot]++;
    begun_all++;
    run->worker->in_hand--;
    free(run);
}

void hf_outbox_cancel(hf_run *run)
{
    hf_outbox_release(run);
}

void hf_outbox_put_back(hf_run *run, int64_t delay_ms)
{
    assert_true(delay_ms > 0);
    hf_outbox_release(run);
}

/* ---- threads ---- */

void hf_threads_push(hf_threads *threads, hf_run_list *list)
{
    (void)threads;
    for (hf_run *run; (run = hf_run_pop(list)) != NULL;)
        hf_run_push(&pool, run);
}

void hf_threads_collect(hf_threads *threads, hf_run_list *out)
{
    (void)threads;
    *out = ended;
    ended = (hf_run_list){.n = 0};
}

/* None of them was begun. */
void hf_threads_take_back(hf_threads *threads, uint64_t claimed_before_ns,
                          hf_run_list *out)
{
    (void)threads, (void)claimed_before_ns;
    *out = pool;
    pool = (hf_run_list){.n = 0};
}

/* ---- sites ---- */

bool hf_site_serves(const hf_site *at)
{
    return at->worker->phase == HF_SERVING;
}

bool hf_site_can_ask(const hf_site *at)
{
    return at == &site || at == &elsewhere;
}

void hf_site_confirm(hf_site *at, hf_confirm *confirm,
                     void (*cb)(void *, hf_err, const char *), void *arg)
{
    (void)at, (void)confirm;
    confirm_cb = cb;
    confirm_arg = arg;
}

hf_site *hf_sites_find(hf_worker *worker, unsigned key_slot)
{
    (void)worker, (void)key_slot;
    return &site;
}

bool hf_site_unserved(hf_site *at, hf_err err, const char *detail)
{
    moved_at = err == HF_MOVED && strcmp(detail, "words") == 0 ? at : NULL;
    return moved_at != NULL;
}

uint64_t hf_server_trip_ns(hf_server *server)
{
    (void)server;
    return trip_ns;
}

/* ---- what happens ---- */

static bool is_claimed(int queue)
{
    return hf_claim_state_is(slots[queue].state, HF_Q_BUSY);
}

static void answer(int queue, size_t n)
{
    coming = n;
    assert_true(is_claimed(queue) && n <= asked[queue].max);
    answer_cb(&(hf_answer){.err = HF_OK, .detail = "", .sent_ns = hf_boot_ns()},
              &slots[queue]);
    hf_runner_dispatch(&w);
}

/* This many have run, in the order in which they came. */
static void run_some(size_t n)
{
    for (hf_run *run; n > 0 && (run = hf_run_pop(&pool)) != NULL; n--) {
        run->started_ns = 1;
        run->ended_ns = 1 + RUN_MS * HF_MS_NS;
        atomic_store(&run->begun_ns, 1);
        hf_run_push(&ended, run);
    }
    hf_runner_returned(&w);
}

static uint32_t under_way(int queue)
{
    return is_claimed(queue) ? asked[queue].max : 0;
}

static void answer_all(void)
{
    for (int i = 0; i < QUEUES; i++)
        if (is_claimed(i))
            answer(i, asked[i].max);
}

/* All queues are busy, and every answer comes at once. */
static void run_on(size_t n)
{
    memset(begun, 0, sizeof begun);
    begun_all = 0;
    while (begun_all < n) {
        hf_claim_pump(&w);
        answer_all();
        run_some(1);
    }
}

/* When what was under way is done, and who was owed a few jobs has had them, the shares
 * are those of the weights. */
static void shares_are_even_now(void)
{
    answer_all();
    run_some(w.in_hand);
    run_on(30);
    run_on(100);
    assert_in_range(begun[A], 57, 63);
    assert_in_range(begun[B], 27, 33);
    assert_in_range(begun[C], 8, 12);
}

static int up(void **state)
{
    (void)state;
    static const uint32_t weights[QUEUES] = {6, 3, 1};
    memset(&w, 0, sizeof w);
    assert_int_equal(hf_counters_new(&w.counters), HF_OK);
    memset(&queues, 0, sizeof queues);
    w.queues = &queues;
    site = (hf_site){.worker = &w, .base.redis = &redis};
    elsewhere = site;
    site.base.next = &elsewhere.base;
    w.nodes.first = &site.base;
    bundle = (hf_bundle){.site = &site};
    queues.bundles = &bundle;
    queues.n_bundles = 1;
    memset(&runner, 0, sizeof runner);
    w.runner = &runner;
    memset(slots, 0, sizeof slots);
    memset(begun, 0, sizeof begun);
    memset(released, 0, sizeof released);
    begun_all = 0;
    others_wait = false;
    looks = 0;
    trip_ns = 50000;
    w.opts.concurrency = SLOTS;
    w.n_own = 1;
    w.opts.lease_ms = 10000;
    w.phase = HF_SERVING;
    w.serving = true;
    for (int i = 0; i < QUEUES; i++) {
        slots[i] = (hf_served){.worker = &w,
                               .site = &site,
                               .claim.site = &site,
                               .bundle = &bundle,
                               .slot = (size_t)i,
                               .whole = &slots[i].own,
                               .own = {.members = &slots[i],
                                       .n_members = 1,
                                       .index = (size_t)i,
                                       .weight = weights[i]},
                               .state = HF_Q_READY};
        queues.served[queues.n_served++] = &slots[i];
        queues.wholes[queues.n_wholes++] = &slots[i].own;
    }
    pthread_mutex_init(&w.stop_lock, NULL);
    return 0;
}

static int down(void **state)
{
    (void)state;
    for (hf_run *run; (run = hf_run_pop(&pool)) != NULL;)
        free(run);
    pthread_mutex_destroy(&w.stop_lock);
    hf_counters_free(w.counters);
    return 0;
}

/* ---- tests ---- */

static void slots_are_asked_for_by_weight(void **state)
{
    (void)state;
    hf_claim_pump(&w);
    assert_int_equal(under_way(A), 6);
    assert_int_equal(under_way(B), 3);
    assert_int_equal(under_way(C), 1);
    answer_all();
    shares_are_even_now();
}

static void what_could_not_be_sent_costs_nothing(void **state)
{
    (void)state;
    unsent = C;
    for (int i = 0; i < 100; i++)
        hf_claim_pump(&w);
    unsent = -1;
    assert_true(slots[C].own.credit > -0.01); /* a job would have cost it 1 */
    shares_are_even_now();
}

/* The answer for `c` is always quick. Of what becomes free it gets two jobs more than its
 * share, then it waits. */
static void a_share_is_kept_while_its_claim_is_under_way(void **state)
{
    (void)state;
    hf_claim_pump(&w);
    for (int i = 0; i < 100; i++) {
        if (is_claimed(C))
            answer(C, asked[C].max);
        run_some(1);
        hf_claim_pump(&w);
    }
    assert_in_range(begun[C], 1, 4);
    shares_are_even_now();
}

static void shares_hold_with_answers_in_any_order(void **state)
{
    (void)state;
    hf_rng rng = {hf_test_seed()};
    while (begun_all < 6000) {
        hf_claim_pump(&w);
        int queue = (int)(hf_rng_next(&rng) % QUEUES);
        if (is_claimed(queue) && hf_rng_unit(&rng) < (queue == C ? 0.9 : 0.2))
            answer(queue, asked[queue].max);
        run_some((size_t)(hf_rng_next(&rng) % 4));
    }
    print_message("%zu : %zu : %zu\n", begun[A], begun[B], begun[C]);
    assert_in_range(begun[A], 3600 - 60, 3600 + 60);
    assert_in_range(begun[B], 1800 - 60, 1800 + 60);
    assert_in_range(begun[C], 600 - 30, 600 + 30);
}

/* It has more, but gives three at a time, as a queue with a limit. It is asked the more
 * often: what counts is what came. */
static void what_did_not_come_costs_nothing(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        hf_claim_pump(&w);
        if (is_claimed(A))
            answer(A, asked[A].max < 3 ? asked[A].max : 3);
        answer_all();
        run_some(w.in_hand);
    }
    print_message("%zu : %zu : %zu\n", begun[A], begun[B], begun[C]);
    assert_in_range(begun[A] * 100 / begun_all, 57, 63);
    shares_are_even_now();
}

static void a_queue_that_had_nothing_has_saved_nothing(void **state)
{
    (void)state;
    slots[A].state = HF_Q_IDLE;
    run_on(200);
    assert_int_equal(begun[A], 0);
    assert_in_range(begun[B], 145, 155);
    slots[A].state = HF_Q_READY;
    shares_are_even_now();
}

/* It is claimed when its baton comes, and with it what else may have something. */
static void what_others_may_take_first_is_left_to_the_baton(void **state)
{
    (void)state;
    others_wait = true;
    hf_claim_pump(&w);
    answer_all();
    run_some(w.in_hand);
    assert_true(hf_queues_quiet(&w)); /* so it blocks */
    hf_claim_pump(&w);
    assert_int_equal(under_way(A) + under_way(B) + under_way(C), 0);
    hf_queue_apply(&slots[B], HF_E_BATON);
    assert_false(hf_queues_quiet(&w));
    hf_claim_pump(&w);
    assert_true(under_way(A) > 0 && under_way(B) > 0);
    answer_all();
    run_some(w.in_hand);
}

/* Nothing was found: who can wait for all batons will hear of them. Who is at work on the
 * jobs of one queue cannot, and looks at the others. */
static void a_worker_about_to_block_does_not_look(void **state)
{
    (void)state;
    for (int i = 0; i < QUEUES; i++)
        slots[i].state = HF_Q_IDLE;
    hf_claim_pump(&w);
    assert_int_equal(looks, 0);
    slots[A].state = HF_Q_READY;
    hf_claim_pump(&w);
    assert_int_equal(looks, QUEUES - 1);
    assert_int_equal(under_way(A), SLOTS);
}

/* Beside verdicts that have just left: while more is there than there are slots, the next
 * claim need not go with them; a free slot, or one that will be soon, waits for nothing.
 */
static void a_claim_waits_for_verdicts_only_while_all_slots_have_work(void **state)
{
    (void)state;
    runner.mean_run_ns = 1000;
    assert_false(hf_claim_can_wait(&w));
    hf_claim_pump(&w);
    answer_all();
    assert_true(runner.c_out > SLOTS);
    assert_true(hf_claim_can_wait(&w));
    run_some(runner.c_out - SLOTS);
    assert_false(hf_claim_can_wait(&w));
    assert_true(hf_runner_wanted(&w) > 0); /* there is something to claim */
    run_some(w.in_hand);
}

static void take_back(const hf_served *served)
{
    hf_run_list others = {.n = 0};
    for (hf_run *run = pool.head, *next; run != NULL; run = next) {
        next = run->next;
        if (run->served != served) {
            take(&pool, run);
            hf_run_push(&others, run);
        }
    }
    hf_runner_tick(&w);
    assert_int_equal(pool.n, 0);
    pool = others;
}

/* Every second time no thread comes in time to what was claimed of one queue. It is
 * asked for the more: what counts is what ran. */
static void what_was_not_started_costs_nothing(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        runner.mean_run_ns = RUN_MS * 1e6;
        hf_claim_pump(&w);
        answer_all();
        if (i % 2 == 0)
            take_back(&slots[A]);
        run_some(w.in_hand);
    }
    print_message("%zu : %zu : %zu, and %zu put back\n", begun[A], begun[B], begun[C],
                  released[A]);
    assert_true(released[A] > 500);
    assert_in_range(begun[A] * 100 / begun_all, 57, 63);
    shares_are_even_now();
}

static void a_claim_is_larger_where_redis_is_far(void **state)
{
    (void)state;
    w.opts.concurrency = 1000;
    w.n_own = 1;
    w.opts.strict = true;
    hf_claim_pump(&w);
    assert_int_equal(under_way(A), 200);
    answer(A, 0);
    trip_ns = 1000000;
    hf_claim_pump(&w);
    assert_int_equal(under_way(A), 400);
}

/* Its Redis is away, perhaps. The others need not wait for more than its jobs. */
static void a_late_answer_keeps_no_slot_from_others(void **state)
{
    (void)state;
    slots[B].state = slots[C].state = HF_Q_IDLE;
    hf_claim_pump(&w);
    assert_int_equal(under_way(A), SLOTS);
    hf_queue_apply(&slots[B], HF_E_BATON);
    hf_claim_pump(&w);
    assert_false(is_claimed(B));
    slots[A].claim.sent_ns -= 200 * HF_MS_NS;
    hf_claim_pump(&w);
    assert_int_equal(under_way(B), SLOTS);
    answer_all();
    run_some(w.in_hand);
}

/* A slot that becomes free meanwhile waits for that answer, too. */
static void in_order_no_queue_passes_a_claim_that_is_under_way(void **state)
{
    (void)state;
    w.opts.strict = true;
    slots[B].state = slots[C].state = HF_Q_IDLE;
    slots[B].site = &elsewhere;
    w.in_hand = 1;
    hf_claim_pump(&w);
    assert_int_equal(under_way(A), SLOTS - 1);
    w.in_hand = 0;
    hf_queue_apply(&slots[B], HF_E_BATON);
    hf_claim_pump(&w);
    assert_false(is_claimed(B));
    answer_all();
}

static void in_order_a_late_answer_lets_others_pass_at_other_sites_alone(void **state)
{
    (void)state;
    w.opts.strict = true;
    slots[B].state = slots[C].state = HF_Q_IDLE;
    hf_claim_pump(&w);
    assert_int_equal(under_way(A), SLOTS);
    slots[A].claim.sent_ns -= 200 * HF_MS_NS;
    hf_queue_apply(&slots[B], HF_E_BATON);
    hf_claim_pump(&w);
    assert_false(is_claimed(B));
    slots[B].site = &elsewhere;
    hf_claim_pump(&w);
    assert_int_equal(under_way(B), SLOTS);
    answer_all();
    run_some(w.in_hand);
}

/* ---- a queue of several members ---- */

static void make_one_queue_of_them(void)
{
    for (int i = A; i < C; i++)
        slots[i].next_member = &slots[i + 1];
    for (int i = A; i < QUEUES; i++)
        slots[i].whole = &slots[A].own;
    slots[A].own.n_members = QUEUES;
    queues.n_wholes = 1;
}

static void members_take_turns_with_whole_claims(void **state)
{
    (void)state;
    make_one_queue_of_them();
    for (int i = 0; i < 2 * QUEUES; i++) {
        hf_claim_pump(&w);
        for (int queue = A; queue < QUEUES; queue++)
            assert_int_equal(under_way(queue) >= SLOTS, queue == i % QUEUES);
        answer_all();
        run_some(w.in_hand);
    }
}

/* A baton is due, or has to be set anew: this does not wait for another's answer. */
static void a_member_whose_baton_came_is_claimed_beside_others(void **state)
{
    (void)state;
    make_one_queue_of_them();
    runner.mean_run_ns = 1000;
    hf_claim_pump(&w);
    assert_true(is_claimed(A) && !is_claimed(B) && !is_claimed(C));
    hf_queue_apply(&slots[C], HF_E_BATON);
    hf_claim_pump(&w);
    assert_true(is_claimed(C) && !is_claimed(B));
}

static void each_site_has_a_claim_of_the_queue_under_way(void **state)
{
    (void)state;
    make_one_queue_of_them();
    slots[C].site = &elsewhere;
    runner.mean_run_ns = 1000;
    hf_claim_pump(&w);
    assert_true(is_claimed(A) && !is_claimed(B) && is_claimed(C));
    answer(A, asked[A].max);
    hf_claim_pump(&w);
    assert_true(is_claimed(B));
}

/* Slots become free one by one while a large claim is under way. */
static void no_small_claim_leaves_beside_a_large_one(void **state)
{
    (void)state;
    make_one_queue_of_them();
    slots[C].site = &elsewhere;
    hf_claim_pump(&w);
    assert_int_equal(under_way(A), SLOTS);
    answer(A, SLOTS);
    run_some(SLOTS - 2);
    hf_claim_pump(&w);
    assert_true(is_claimed(B));
    run_some(1);
    hf_claim_pump(&w);
    assert_true(hf_runner_wanted(&w) > under_way(B) && !is_claimed(C));
    answer(B, asked[B].max);
    run_some(SLOTS);
    hf_claim_pump(&w);
    assert_true(is_claimed(C));
}

/* Every second claim is a small one, and the number of members is even. */
static void members_of_claims_of_two_sizes_have_even_shares(void **state)
{
    (void)state;
    make_one_queue_of_them();
    slots[C].state = HF_Q_IDLE;
    for (int i = 0; i < 200; i++) {
        hf_claim_pump(&w);
        for (int queue = A; queue < C; queue++)
            if (is_claimed(queue))
                answer(queue, i % 2 == 0 ? asked[queue].max : 1);
        run_some(w.in_hand);
    }
    print_message("%zu : %zu\n", begun[A], begun[B]);
    assert_in_range(begun[A] * 100 / begun_all, 45, 55);
    slots[C].state = HF_Q_READY; /* it has saved nothing */
    begun[A] = begun[B] = begun_all = 0;
    for (int i = 0; i < 30; i++) {
        hf_claim_pump(&w);
        answer_all();
        run_some(w.in_hand);
    }
    assert_in_range(begun[C] * 100 / begun_all, 28, 38);
}

static void members_have_even_shares(void **state)
{
    (void)state;
    make_one_queue_of_them();
    slots[C].site = &elsewhere;
    hf_rng rng = {hf_test_seed()};
    while (begun_all < 6000) {
        hf_claim_pump(&w);
        int queue = (int)(hf_rng_next(&rng) % QUEUES);
        if (is_claimed(queue))
            answer(queue, asked[queue].max);
        run_some((size_t)(hf_rng_next(&rng) % 2));
    }
    print_message("%zu : %zu : %zu\n", begun[A], begun[B], begun[C]);
    for (int i = A; i < QUEUES; i++)
        assert_in_range(begun[i], 1800, 2200);
}

/* ---- answers of sites ---- */

/* The queue has moved before the answer came. */
static void an_answer_is_credited_to_the_site_that_gave_it(void **state)
{
    (void)state;
    hf_claim_pump(&w);
    site.refused = elsewhere.refused = HF_REDIS;
    slots[A].site = &elsewhere;
    answer(A, 0);
    assert_int_equal(site.refused, HF_OK);
    assert_int_equal(elsewhere.refused, HF_REDIS);
}

/* The registry may be on another node than the queue. */
static void a_refused_registration_corrects_the_table(void **state)
{
    (void)state;
    slots[A].requests = 1;
    slots[A].registration.done = true;
    hf_queue_registered(&slots[A], &elsewhere, HF_MOVED, "words");
    assert_ptr_equal(moved_at, &elsewhere);
    assert_false(slots[A].registration.done);
}

/* A is answered in the same round in which B was found to be divided, for example. */
static void no_claim_leaves_before_what_has_to_be_registered(void **state)
{
    (void)state;
    slots[B].state = slots[C].state = HF_Q_IDLE;
    trip_ns = 1000000;
    hf_claim_pump(&w);
    slots[B].state = HF_Q_UNKNOWN;
    site.register_due = true;
    answer(A, 1);
    assert_int_equal(slots[B].state, HF_Q_UNKNOWN);
    site.register_due = false; /* the next turn begins with it */
    hf_claim_pump(&w);
    assert_true(is_claimed(B));
}

/* Its only job was given back meanwhile. */
static void a_queue_that_leaves_stays_until_replicas_have_answered(void **state)
{
    (void)state;
    queues.slots = slots;
    queues.n_slots = QUEUES;
    site.base.replicas = (hf_replicas *)&site; /* never looked into */
    slots[B].state = slots[C].state = HF_Q_IDLE;
    hf_claim_pump(&w);
    answer(A, 1);
    hf_outbox_release(hf_run_pop(&runner.confirming));
    hf_queue_apply(&slots[A], HF_E_LEAVE);
    hf_queue_debt(&slots[A], HF_DEBT_DROPPED);
    (void)hf_queues_room(&w);
    assert_int_equal(slots[A].state, HF_Q_LEAVING);
    confirm_cb(confirm_arg, HF_OK, "");
    (void)hf_queues_room(&w);
    assert_int_equal(slots[A].state, HF_Q_FREE);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, up, down)
    const struct CMUnitTest tests[] = {
        CASE(slots_are_asked_for_by_weight),
        CASE(what_could_not_be_sent_costs_nothing),
        CASE(a_share_is_kept_while_its_claim_is_under_way),
        CASE(shares_hold_with_answers_in_any_order),
        CASE(what_did_not_come_costs_nothing),
        CASE(a_queue_that_had_nothing_has_saved_nothing),
        CASE(what_others_may_take_first_is_left_to_the_baton),
        CASE(a_worker_about_to_block_does_not_look),
        CASE(a_claim_waits_for_verdicts_only_while_all_slots_have_work),
        CASE(what_was_not_started_costs_nothing),
        CASE(a_claim_is_larger_where_redis_is_far),
        CASE(a_late_answer_keeps_no_slot_from_others),
        CASE(in_order_no_queue_passes_a_claim_that_is_under_way),
        CASE(in_order_a_late_answer_lets_others_pass_at_other_sites_alone),
        CASE(members_take_turns_with_whole_claims),
        CASE(a_member_whose_baton_came_is_claimed_beside_others),
        CASE(each_site_has_a_claim_of_the_queue_under_way),
        CASE(no_small_claim_leaves_beside_a_large_one),
        CASE(members_have_even_shares),
        CASE(members_of_claims_of_two_sizes_have_even_shares),
        CASE(an_answer_is_credited_to_the_site_that_gave_it),
        CASE(a_refused_registration_corrects_the_table),
        CASE(no_claim_leaves_before_what_has_to_be_registered),
        CASE(a_queue_that_leaves_stays_until_replicas_have_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
