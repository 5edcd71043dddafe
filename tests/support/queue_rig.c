/* queue_rig.c - see queue_rig.h. */
#include "tests/support/queue_rig.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/machine.h"
#include "queue/record.h"
#include "tests/support/eventually.h"

enum { ANSWER_MS = 20000, NOSCRIPT_TRIES = 3 };

/* ---- asking ---- */

void hf_rig_begin(hf_rig *rig)
{
    rig->answered = false;
    rig->err = HF_OK;
    rig->detail[0] = '\0';
    rig->n_codes = 0;
    rig->n_jobs = 0;
}

static void keep(hf_rig *rig, const hf_answer *answer, hf_err err)
{
    rig->answered = true;
    rig->err = err;
    (void)snprintf(rig->detail, sizeof rig->detail, "%s", answer->detail);
}

void hf_rig_on_answer(const hf_answer *answer, void *arg)
{
    keep(arg, answer, answer->err);
}

static void on_alarm(uv_timer_t *timer)
{
    (void)timer; /* it only has to end the loop's wait */
}

/* Runs the loop until *done, and fails the test when that takes too long. */
static void run_until(hf_rig *rig, const bool *done)
{
    uv_timer_t alarm;
    uint64_t until = hf_test_now_ms() + 2 * ANSWER_MS;
    assert_int_equal(uv_timer_init(&rig->loop, &alarm), 0);
    assert_int_equal(uv_timer_start(&alarm, on_alarm, 2 * ANSWER_MS, 0), 0);
    while (!*done && hf_test_now_ms() < until)
        (void)uv_run(&rig->loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&alarm, NULL);
    (void)uv_run(&rig->loop, UV_RUN_NOWAIT);
    if (!*done)
        fail_msg("no answer in time: %s", hf_client_detail(rig->client));
}

hf_err hf_rig_end(hf_rig *rig, hf_err sent)
{
    if (sent != HF_OK)
        return sent;
    run_until(rig, &rig->answered);
    return rig->err;
}

int64_t hf_rig_now(hf_rig *rig)
{
    long long seconds = 0, micros = 0;
    const char *text = hf_fixture_command(&rig->redis, "TIME");
    assert_int_equal(sscanf(text, "%lld\n%lld", &seconds, &micros), 2);
    return seconds * 1000 + micros / 1000;
}

int64_t hf_rig_lease_end(const hf_rig *rig, int64_t lease_ms)
{
    int64_t end_ms = rig->now_ms + lease_ms;
    return end_ms + end_ms % 2; /* an odd one is a newcomer's */
}

/* ---- enqueue ---- */

static void on_enqueued(const hf_answer *answer, void *arg)
{
    hf_rig *rig = arg;
    hf_enqueued read;
    keep(rig, answer, hf_enqueued_read(answer, &read));
    rig->now_ms = read.now_ms;
    rig->repeated = read.repeated;
    rig->n_codes = hf_reply_len(read.codes);
    for (size_t i = 0; i < rig->n_codes && i < HF_RIG_JOBS; i++)
        rig->codes[i] = (hf_err)hf_reply_int(hf_reply_at(read.codes, i));
}

hf_err hf_rig_enqueue_items(hf_rig *rig, const hf_enqueue_args *args,
                            const hf_enqueue_item *items, size_t n)
{
    hf_err err = HF_NOSCRIPT;
    for (int i = 0; i < NOSCRIPT_TRIES && err == HF_NOSCRIPT; i++) {
        hf_rig_begin(rig);
        err = hf_rig_end(rig, hf_op_enqueue(rig->client, &rig->queue, args, items, n, 0,
                                            on_enqueued, rig));
    }
    return err;
}

hf_err hf_rig_enqueue(hf_rig *rig, const char *id, int64_t due_ms)
{
    static const char record[] =
        "{\"v\":1,\"type\":\"t\",\"created\":1700000000000}\npayload";
    const hf_enqueue_args args = {.producer = ""};
    const hf_enqueue_item item = {id, due_ms, {record, sizeof record - 1}};
    hf_err err = hf_rig_enqueue_items(rig, &args, &item, 1);
    return err == HF_OK && rig->n_codes == 1 ? rig->codes[0] : err;
}

void hf_rig_put(hf_rig *rig, const char *id, const char *payload, int64_t due_ms)
{
    char record[HF_RIG_PAYLOAD + 64];
    int len = snprintf(record, sizeof record,
                       "{\"v\":1,\"type\":\"t\",\"created\":1}\n%s", payload);
    const hf_enqueue_args args = {.producer = ""};
    const hf_enqueue_item item = {id, due_ms, {record, (size_t)len}};
    assert_int_equal(hf_rig_enqueue_items(rig, &args, &item, 1), HF_OK);
    assert_int_equal(rig->n_codes, 0); /* it is new */
}

/* ---- claim ---- */

static void take_job(hf_rig_job *out, const hf_claimed_job *job)
{
    hf_record record;
    *out = (hf_rig_job){.due_ms = job->due_ms, .crashes = job->crashes};
    (void)snprintf(out->id, sizeof out->id, "%.*s", (int)job->id.len,
                   (const char *)job->id.ptr);
    if (hf_record_read(&record, job->record) == HF_OK) {
        memcpy(out->type, record.type, sizeof out->type);
        out->attempts = record.attempts;
        out->payload_len = record.payload.len;
        (void)snprintf(out->error, sizeof out->error, "%.*s", (int)record.error.len,
                       (const char *)record.error.ptr);
        (void)snprintf(out->payload, sizeof out->payload, "%.*s",
                       record.payload.len < HF_RIG_PAYLOAD ? (int)record.payload.len
                                                           : HF_RIG_PAYLOAD,
                       (const char *)record.payload.ptr);
    }
    hf_record_done(&record);
}

static void on_claimed(const hf_answer *answer, void *arg)
{
    hf_rig *rig = arg;
    hf_claimed read;
    hf_claimed_job job;
    keep(rig, answer, hf_claimed_read(answer, &read));
    rig->now_ms = read.now_ms;
    rig->next_ms = read.next_ms;
    rig->more = read.more;
    rig->n_jobs = read.n;
    (void)snprintf(rig->fence, sizeof rig->fence, "%.*s", (int)read.fence.len,
                   read.fence.len == 0 ? "" : (const char *)read.fence.ptr);
    for (size_t i = 0; i < read.n && i < HF_RIG_JOBS; i++) {
        hf_claimed_at(&read, i, &job);
        take_job(&rig->jobs[i], &job);
    }
}

void hf_rig_know_clock(hf_rig *rig)
{
    char machine[HF_MACHINE_SIZE], learned[128];
    hf_machine_id(machine);
    int64_t sent_us = (int64_t)(hf_boot_ns() / 1000);
    int64_t now_us = 1000 * (int64_t)hf_rig_now(rig);
    uint64_t read_ns = hf_boot_ns();
    (void)snprintf(learned, sizeof learned, "1 %" PRIu64 " %" PRId64 " %" PRId64, read_ns,
                   now_us - (int64_t)(read_ns / 1000), now_us + 1000 - sent_us);
    (void)hf_fixture_command(&rig->redis, "SET %sclock:%s %s PX 60000", rig->queue.prefix,
                             machine, learned);
}

hf_claim_args hf_rig_claim_args(const char *worker, uint32_t max, uint32_t lease_ms)
{
    return (hf_claim_args){.worker = worker,
                           .max = max,
                           .lease_ms = lease_ms != 0 ? lease_ms : HF_RIG_LEASE_MS,
                           .poison = 3,
                           .dead_max = 100,
                           .dead_age_ms = 1000000,
                           .clock = HF_RIG_CLOCK_TRUE,
                           .judged_ms = UINT32_MAX};
}

hf_err hf_rig_claim_with(hf_rig *rig, const hf_claim_args *given)
{
    hf_claim_args args = *given;
    hf_err err = HF_NOSCRIPT;
    args.number = ++rig->number;
    for (int i = 0; i < NOSCRIPT_TRIES && err == HF_NOSCRIPT; i++) {
        hf_rig_begin(rig);
        err = hf_rig_end(rig,
                         hf_op_claim(rig->client, &rig->queue, &args, on_claimed, rig));
    }
    return err;
}

size_t hf_rig_claim(hf_rig *rig, const char *worker, uint32_t max, uint32_t lease_ms)
{
    const hf_claim_args args = hf_rig_claim_args(worker, max, lease_ms);
    hf_err err = hf_rig_claim_with(rig, &args);
    if (err != HF_OK)
        fail_msg("claim: %s: %s", hf_err_name(err), rig->detail);
    return rig->n_jobs;
}

static void on_status(const hf_answer *answer, void *arg)
{
    hf_rig *rig = arg;
    keep(rig, answer, answer->err);
    if (answer->err == HF_OK)
        rig->err = (hf_err)hf_reply_int(hf_reply_at(answer->reply, 0));
    if (answer->err == HF_OK)
        rig->n_jobs = (size_t)hf_reply_int(hf_reply_at(answer->reply, 2));
}

hf_err hf_rig_unclaim(hf_rig *rig, const char *worker, uint64_t number)
{
    hf_err err = HF_NOSCRIPT;
    for (int i = 0; i < NOSCRIPT_TRIES && err == HF_NOSCRIPT; i++) {
        hf_rig_begin(rig);
        err = hf_rig_end(
            rig, hf_op_unclaim(rig->client, &rig->queue, worker, number, on_status, rig));
    }
    return err;
}

/* ---- verdicts and renewals ---- */

static void on_settled(const hf_answer *answer, void *arg)
{
    hf_rig *rig = arg;
    hf_settled read;
    keep(rig, answer, hf_settled_read(answer, &read));
    rig->now_ms = read.now_ms;
    rig->n_codes = read.n;
    for (size_t i = 0; i < read.n && i < HF_RIG_JOBS; i++)
        rig->codes[i] = (hf_err)hf_reply_int(hf_reply_at(read.codes, i));
}

hf_err hf_rig_verdicts(hf_rig *rig, hf_verdict_op op, const hf_verdict_args *args,
                       const hf_verdict_item *items, size_t n)
{
    hf_err err = HF_NOSCRIPT;
    for (int i = 0; i < NOSCRIPT_TRIES && err == HF_NOSCRIPT; i++) {
        hf_rig_begin(rig);
        err = hf_rig_end(rig, hf_op_verdict(rig->client, &rig->queue, op, args, items, n,
                                            on_settled, rig));
    }
    return err;
}

hf_err hf_rig_verdict(hf_rig *rig, hf_verdict_op op, const hf_verdict_args *args,
                      const hf_verdict_item *given)
{
    hf_verdict_item item = *given;
    if (item.fence == NULL)
        item.fence = rig->fence;
    hf_err err = hf_rig_verdicts(rig, op, args, &item, 1);
    return err == HF_OK && rig->n_codes == 1 ? rig->codes[0] : err;
}

hf_err hf_rig_complete(hf_rig *rig, const char *worker, const char *id, const char *fence)
{
    const hf_verdict_args args = {.worker = worker};
    const hf_verdict_item item = {.id = id, .fence = fence};
    return hf_rig_verdict(rig, HF_OP_COMPLETE, &args, &item);
}

hf_err hf_rig_renew_all(hf_rig *rig, const hf_renew_args *args,
                        const hf_renew_item *items, size_t n)
{
    hf_err err = HF_NOSCRIPT;
    for (int i = 0; i < NOSCRIPT_TRIES && err == HF_NOSCRIPT; i++) {
        hf_rig_begin(rig);
        err = hf_rig_end(rig, hf_op_renew(rig->client, &rig->queue, args, items, n, 0,
                                          on_settled, rig));
    }
    return err;
}

hf_err hf_rig_renew_with(hf_rig *rig, const hf_renew_args *args, const char *id,
                         const char *fence)
{
    const hf_renew_item item = {id, fence != NULL ? fence : rig->fence};
    hf_err err = hf_rig_renew_all(rig, args, &item, 1);
    return err == HF_OK && rig->n_codes == 1 ? rig->codes[0] : err;
}

hf_err hf_rig_renew(hf_rig *rig, const char *worker, const char *id, const char *fence,
                    uint32_t lease_ms)
{
    const hf_renew_args args = {
        .worker = worker, .lease_ms = lease_ms, .clock = {.at_least_ms = 1}};
    return hf_rig_renew_with(rig, &args, id, fence);
}

/* ---- waking up ---- */

static void on_checked(const hf_answer *answer, void *arg)
{
    hf_rig *rig = arg;
    hf_checked read;
    keep(rig, answer, hf_checked_read(answer, &read, rig->doubts, rig->n_checked));
    rig->now_ms = read.now_ms;
    rig->empty = read.empty;
    (void)snprintf(rig->learned, sizeof rig->learned, "%.*s", (int)read.learned.len,
                   read.learned.len > 0 ? (const char *)read.learned.ptr : "");
}

hf_err hf_rig_check_with(hf_rig *rig, const hf_queue *const *queues, size_t n,
                         const hf_check_args *args)
{
    hf_err err = HF_NOSCRIPT;
    rig->n_checked = n;
    for (int i = 0; i < NOSCRIPT_TRIES && err == HF_NOSCRIPT; i++) {
        hf_rig_begin(rig);
        err = hf_rig_end(rig, hf_op_check(rig->client, queues, n, args, on_checked, rig));
    }
    return err;
}

hf_err hf_rig_check_all(hf_rig *rig, const hf_queue *const *queues, size_t n,
                        const char *worker, bool give_back)
{
    const hf_check_args args = {.worker = worker,
                                .alive_ms = HF_RIG_LEASE_MS,
                                .lease_ms = HF_RIG_LEASE_MS,
                                .give_back = give_back,
                                .machine = "",
                                .learned = ""};
    return hf_rig_check_with(rig, queues, n, &args);
}

hf_err hf_rig_check(hf_rig *rig, const char *worker, bool give_back)
{
    const hf_queue *queue = &rig->queue;
    return hf_rig_check_all(rig, &queue, 1, worker, give_back);
}

static void on_peeked(const hf_answer *answer, void *arg)
{
    hf_rig *rig = arg;
    keep(rig, answer, hf_peeked_read(answer, rig->ready, rig->n_waiting));
}

hf_err hf_rig_peek(hf_rig *rig, const hf_queue *const *queues, bool *ready, size_t n)
{
    hf_err err = HF_NOSCRIPT;
    for (int i = 0; i < NOSCRIPT_TRIES && err == HF_NOSCRIPT; i++) {
        hf_rig_begin(rig);
        rig->ready = ready;
        rig->n_waiting = n;
        err = hf_rig_end(rig, hf_op_peek(rig->client, queues, n, on_peeked, rig));
    }
    return err;
}

static void on_waited(const hf_answer *answer, void *arg)
{
    hf_rig *rig = arg;
    keep(rig, answer,
         hf_wait_read(answer, rig->waiting, rig->n_waiting, &rig->which, &rig->at_ms));
}

hf_err hf_rig_wait_for(hf_rig *rig, const hf_queue *const *queues, size_t n,
                       uint32_t wait_ms)
{
    hf_rig_begin(rig);
    rig->waiting = queues;
    rig->n_waiting = n;
    return hf_rig_end(rig, hf_op_wait(rig->client, queues, n, wait_ms, on_waited, rig));
}

hf_err hf_rig_wait(hf_rig *rig, uint32_t wait_ms)
{
    const hf_queue *queue = &rig->queue;
    return hf_rig_wait_for(rig, &queue, 1, wait_ms);
}

/* ---- life ---- */

static void on_event(hf_client *client, hf_err err, const char *detail, void *arg)
{
    (void)client, (void)err, (void)detail, (void)arg; /* it ends the loop's wait */
}

void hf_rig_ready_client(hf_rig *rig, hf_client *client)
{
    uint64_t until = hf_test_now_ms() + 2 * ANSWER_MS;
    while (!hf_client_ready(client) && hf_test_now_ms() < until) {
        (void)uv_run(&rig->loop, UV_RUN_NOWAIT);
        hf_test_pause_ms(1);
    }
    if (!hf_client_ready(client))
        fail_msg("not ready: %s", hf_client_detail(client));
}

void hf_rig_ready(hf_rig *rig)
{
    hf_rig_ready_client(rig, rig->client);
}

void hf_rig_start(hf_rig *rig, const hf_fixture_options *options)
{
    char detail[HF_DETAIL_SIZE];
    *rig = (hf_rig){.number = 0};
    hf_fixture_start(&rig->redis, options);
    assert_int_equal(uv_loop_init(&rig->loop), 0);
    assert_int_equal(hf_queue_init(&rig->queue, "hf", "q"), HF_OK);
    const hf_client_opts opts = {.loop = &rig->loop,
                                 .server = {.url = hf_fixture_url(&rig->redis),
                                            .connect_timeout_ms = ANSWER_MS,
                                            .request_timeout_ms = ANSWER_MS},
                                 .on_event = on_event};
    if (hf_client_open(&rig->client, &opts, detail) != HF_OK)
        fail_msg("open: %s", detail);
    hf_rig_ready(rig);
}

static void on_closed(void *arg)
{
    hf_rig *rig = arg;
    rig->closed = true;
}

hf_admin *hf_rig_admin(const hf_rig *rig)
{
    char detail[HF_DETAIL_SIZE];
    hf_admin *admin = NULL;
    const hf_admin_opts opts = {HF_ADMIN_OPTS_INIT,
                                .server = HF_SERVER(.url = hf_fixture_url(&rig->redis),
                                                    .connect_timeout_ms = ANSWER_MS),
                                .deadline_ms = ANSWER_MS};
    if (hf_admin_open(&admin, &opts, detail) != HF_OK)
        fail_msg("no administrator: %s", detail);
    return admin;
}

void hf_rig_stop(hf_rig *rig)
{
    if (!rig->broken)
        hf_rig_audit(rig, false);
    hf_client_close(rig->client, on_closed, rig);
    while (!rig->closed)
        (void)uv_run(&rig->loop, UV_RUN_ONCE);
    (void)uv_run(&rig->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&rig->loop), 0);
    hf_fixture_stop(&rig->redis);
}

static void on_finding(const hf_finding *f, void *arg)
{
    /* The rig's own wait for a baton is no worker that lives. */
    if (strcmp(f->check, "wake") == 0 && f->invariant == 10)
        return;
    (*(size_t *)arg)++;
    (void)fprintf(stderr, "I%d: %s %s\n", f->invariant, f->id, f->text);
}

long long hf_rig_writes(hf_rig *rig)
{
    const char *info = hf_fixture_command(&rig->redis, "INFO persistence");
    const char *field = strstr(info, "rdb_changes_since_last_save:");
    assert_non_null(field);
    return strtoll(strchr(field, ':') + 1, NULL, 10);
}

void hf_rig_audit(hf_rig *rig, bool idle)
{
    hf_admin *admin = hf_rig_admin(rig);
    size_t found = 0, told;
    hf_err err = hf_admin_audit(admin, rig->queue.name,
                                &(hf_audit_opts){HF_AUDIT_OPTS_INIT, .idle = idle,
                                                 .cb = on_finding, .arg = &found},
                                &told);
    if (err != HF_OK)
        fail_msg("audit: %s: %s", hf_err_name(err), hf_admin_detail(admin));
    hf_admin_close(admin);
    assert_int_equal(found, 0);
}
