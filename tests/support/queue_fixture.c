/* queue_fixture.c - see queue_fixture.h. */
#include "tests/support/queue_fixture.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/machine.h"
#include "queue/record.h"
#include "tests/support/eventually.h"

enum { ANSWER_MS = 20000, TICK_MS = 100, TOGETHER = 8 };

/* ---- asking ---- */

void hf_queue_fixture_begin(hf_queue_fixture *fixture)
{
    fixture->answered = false;
    fixture->err = HF_OK;
    fixture->detail[0] = '\0';
    fixture->n_codes = 0;
    fixture->n_jobs = 0;
}

static void keep(hf_queue_fixture *fixture, const hf_answer *answer, hf_err err)
{
    fixture->answered = true;
    fixture->err = err;
    (void)snprintf(fixture->detail, sizeof fixture->detail, "%s", answer->detail);
}

void hf_queue_fixture_on_answer(const hf_answer *answer, void *arg)
{
    keep(arg, answer, answer->err);
}

static void on_alarm(uv_timer_t *timer)
{
    (void)timer; /* it only has to end the loop's wait */
}

/* Runs the loop until *done, and fails the test when that takes too long. */
static void run_until(hf_queue_fixture *fixture, const bool *done)
{
    uv_timer_t alarm;
    uint64_t until = hf_test_fair_ms() + 2 * ANSWER_MS;
    assert_int_equal(uv_timer_init(&fixture->loop, &alarm), 0);
    assert_int_equal(uv_timer_start(&alarm, on_alarm, TICK_MS, TICK_MS), 0);
    while (!*done && hf_test_fair_ms() < until)
        (void)uv_run(&fixture->loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&alarm, NULL);
    (void)uv_run(&fixture->loop, UV_RUN_NOWAIT);
    if (!*done)
        fail_msg("no answer in time: %s", hf_client_detail(fixture->client));
}

hf_err hf_queue_fixture_end(hf_queue_fixture *fixture, hf_err sent)
{
    if (sent != HF_OK)
        return sent;
    run_until(fixture, &fixture->answered);
    return fixture->err;
}

int64_t hf_queue_fixture_now(hf_queue_fixture *fixture)
{
    long long seconds = 0, micros = 0;
    const char *text = hf_fixture_command(&fixture->redis, "TIME");
    assert_int_equal(sscanf(text, "%lld\n%lld", &seconds, &micros), 2);
    return seconds * 1000 + micros / 1000;
}

int64_t hf_queue_fixture_lease_end(const hf_queue_fixture *fixture, int64_t lease_ms)
{
    return fixture->now_ms + lease_ms;
}

hf_err hf_queue_fixture_register(hf_queue_fixture *fixture)
{
    hf_err err;
    HF_QUEUE_FIXTURE_ASK(err, fixture,
                         hf_op_register(fixture->client, &fixture->queue,
                                        hf_queue_fixture_on_answer, fixture));
    return err;
}

/* ---- enqueue ---- */

static void on_enqueued(const hf_answer *answer, void *arg)
{
    hf_queue_fixture *fixture = arg;
    hf_enqueued read;
    keep(fixture, answer, hf_enqueued_read(answer, &read));
    fixture->now_ms = read.now_ms;
    fixture->repeated = read.repeated;
    fixture->n_codes = hf_reply_len(read.codes);
    for (size_t i = 0; i < fixture->n_codes && i < HF_FIXTURE_JOBS; i++)
        fixture->codes[i] = (hf_err)hf_reply_int(hf_reply_at(read.codes, i));
}

hf_err hf_queue_fixture_enqueue_items(hf_queue_fixture *fixture,
                                      const hf_enqueue_args *args,
                                      const hf_enqueue_item *items, size_t n)
{
    hf_err err;
    HF_QUEUE_FIXTURE_ASK(err, fixture,
                         hf_op_enqueue(fixture->client, &fixture->queue, args, items, n,
                                       0, on_enqueued, fixture));
    return err;
}

hf_err hf_queue_fixture_enqueue(hf_queue_fixture *fixture, const char *id, int64_t due_ms)
{
    static const char record[] =
        "{\"v\":1,\"type\":\"t\",\"created\":1700000000000}\npayload";
    const hf_enqueue_args args = {.producer = ""};
    const hf_enqueue_item item = {id, due_ms, {record, sizeof record - 1}};
    hf_err err = hf_queue_fixture_enqueue_items(fixture, &args, &item, 1);
    return err == HF_OK && fixture->n_codes == 1 ? fixture->codes[0] : err;
}

void hf_queue_fixture_put(hf_queue_fixture *fixture, const char *id, const char *payload,
                          int64_t due_ms)
{
    char record[HF_FIXTURE_PAYLOAD + 64];
    int len = snprintf(record, sizeof record,
                       "{\"v\":1,\"type\":\"t\",\"created\":1}\n%s", payload);
    const hf_enqueue_args args = {.producer = ""};
    const hf_enqueue_item item = {id, due_ms, {record, (size_t)len}};
    assert_int_equal(hf_queue_fixture_enqueue_items(fixture, &args, &item, 1), HF_OK);
    assert_int_equal(fixture->n_codes, 0); /* it is new */
}

void hf_queue_fixture_fill(hf_queue_fixture *fixture, char ids[][16], size_t n)
{
    static const char record[] = "{\"v\":1,\"type\":\"t\",\"created\":1}\n";
    const hf_enqueue_args args = {.producer = ""};
    hf_enqueue_item *items = calloc(n, sizeof *items);
    assert_non_null(items);
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "id-%04u", (unsigned)i);
        items[i] = (hf_enqueue_item){ids[i], 0, {record, sizeof record - 1}};
    }
    assert_int_equal(hf_queue_fixture_enqueue_items(fixture, &args, items, n), HF_OK);
    free(items);
}

void hf_queue_fixture_put_all(hf_queue_fixture *fixture, const char *const *ids,
                              const char *const *payloads, size_t n)
{
    char records[TOGETHER][HF_FIXTURE_PAYLOAD + 64];
    hf_enqueue_item items[TOGETHER];
    const hf_enqueue_args args = {.producer = ""};
    assert_true(n <= TOGETHER);
    for (size_t i = 0; i < n; i++) {
        int len = snprintf(records[i], sizeof records[i],
                           "{\"v\":1,\"type\":\"t\",\"created\":1}\n%s", payloads[i]);
        items[i] = (hf_enqueue_item){ids[i], 1 + (int64_t)i, {records[i], (size_t)len}};
    }
    assert_int_equal(hf_queue_fixture_enqueue_items(fixture, &args, items, n), HF_OK);
}

/* ---- claim ---- */

static void take_job(hf_queue_fixture_job *out, const hf_claimed_job *job)
{
    hf_record record;
    *out = (hf_queue_fixture_job){
        .due_ms = job->due_ms, .crashes = job->crashes, .ran_before = job->ran_before};
    (void)snprintf(out->id, sizeof out->id, "%.*s", (int)job->id.len,
                   (const char *)job->id.ptr);
    if (hf_record_read(&record, job->record) == HF_OK) {
        memcpy(out->type, record.type, sizeof out->type);
        out->attempts = record.attempts;
        out->payload_len = record.payload.len;
        (void)snprintf(out->error, sizeof out->error, "%.*s", (int)record.error.len,
                       (const char *)record.error.ptr);
        (void)snprintf(out->payload, sizeof out->payload, "%.*s",
                       record.payload.len < HF_FIXTURE_PAYLOAD ? (int)record.payload.len
                                                               : HF_FIXTURE_PAYLOAD,
                       (const char *)record.payload.ptr);
    }
    hf_record_done(&record);
}

static void on_claimed(const hf_answer *answer, void *arg)
{
    hf_queue_fixture *fixture = arg;
    hf_claimed read;
    hf_claimed_job job;
    keep(fixture, answer, hf_claimed_read(answer, &read));
    fixture->now_ms = read.now_ms;
    fixture->next_ms = read.next_ms;
    fixture->more = read.more;
    fixture->n_jobs = read.n;
    (void)snprintf(fixture->fence, sizeof fixture->fence, "%.*s", (int)read.fence.len,
                   read.fence.len == 0 ? "" : (const char *)read.fence.ptr);
    for (size_t i = 0; i < read.n && i < HF_FIXTURE_JOBS; i++) {
        hf_claimed_at(&read, i, &job);
        take_job(&fixture->jobs[i], &job);
    }
}

static void on_read(const hf_answer *answer, void *arg)
{
    hf_queue_fixture *fixture = arg;
    keep(fixture, answer, hf_read_read(answer, &fixture->now_ms, &fixture->read, 1));
}

hf_err hf_queue_fixture_read(hf_queue_fixture *fixture, const char *machine,
                             uint64_t boot_ms, const char *shown)
{
    const hf_queue *queue = &fixture->queue;
    const hf_asker asker = {machine, boot_ms};
    hf_err err;
    HF_QUEUE_FIXTURE_ASK(
        err, fixture,
        hf_op_read(fixture->client, &queue, 1, &asker, &shown, on_read, fixture));
    return err;
}

/* As a machine whose boot clock is Redis's, and which has read a lease ago. */
void hf_queue_fixture_judge(hf_queue_fixture *fixture, uint32_t lease_ms)
{
    const char *prefix = fixture->queue.prefix;
    char shown[HF_READING_SIZE];
    int64_t now_ms = hf_queue_fixture_now(fixture);
    if (hf_fixture_number(&fixture->redis, "ZCOUNT %srunning (0 %" PRId64, prefix,
                          now_ms) <= 0)
        return;
    int64_t read_ms = now_ms - lease_ms + 1;
    bool has_leases = hf_fixture_number(&fixture->redis, "EXISTS %sleases", prefix) == 1;
    if (has_leases)
        (void)hf_fixture_command(&fixture->redis, "RENAME %sleases %sleft", prefix,
                                 prefix);
    (void)hf_fixture_command(&fixture->redis, "ZADD %sleases 0 %u", prefix, lease_ms);
    (void)hf_fixture_command(&fixture->redis, "DEL %sreadings", prefix);
    assert_int_equal(hf_queue_fixture_read(fixture, "judge", (uint64_t)now_ms, ""),
                     HF_OK);
    (void)snprintf(shown, sizeof shown, "%" PRIu64 ":%" PRId64 ":%" PRId64 ":%" PRId64,
                   fixture->read.number, read_ms, read_ms, read_ms - 1);
    assert_int_equal(hf_queue_fixture_read(fixture, "judge", (uint64_t)now_ms + 1, shown),
                     HF_OK);
    (void)hf_fixture_command(&fixture->redis, "DEL %sreadings %sleases", prefix, prefix);
    if (has_leases)
        (void)hf_fixture_command(&fixture->redis, "RENAME %sleft %sleases", prefix,
                                 prefix);
}

hf_claim_args hf_queue_fixture_claim_args(const char *worker, uint32_t max,
                                          uint32_t lease_ms)
{
    return (hf_claim_args){.worker = worker,
                           .max = max,
                           .lease_ms = lease_ms != 0 ? lease_ms : HF_FIXTURE_LEASE_MS,
                           .poison = 3,
                           .dead_max = 100,
                           .dead_age_ms = 1000000};
}

hf_err hf_queue_fixture_claim_with(hf_queue_fixture *fixture, const hf_claim_args *given)
{
    hf_claim_args args = *given;
    hf_err err;
    args.number = ++fixture->number;
    if (!fixture->judges_by_itself)
        hf_queue_fixture_judge(fixture, args.lease_ms);
    HF_QUEUE_FIXTURE_ASK(
        err, fixture,
        hf_op_claim(fixture->client, &fixture->queue, &args, on_claimed, fixture));
    return err;
}

size_t hf_queue_fixture_claim(hf_queue_fixture *fixture, const char *worker, uint32_t max,
                              uint32_t lease_ms)
{
    const hf_claim_args args = hf_queue_fixture_claim_args(worker, max, lease_ms);
    hf_err err = hf_queue_fixture_claim_with(fixture, &args);
    if (err != HF_OK)
        fail_msg("claim: %s: %s", hf_err_name(err), fixture->detail);
    return fixture->n_jobs;
}

static void on_status(const hf_answer *answer, void *arg)
{
    hf_queue_fixture *fixture = arg;
    keep(fixture, answer, answer->err);
    if (answer->err == HF_OK)
        fixture->err = (hf_err)hf_reply_int(hf_reply_at(answer->reply, 0));
    if (answer->err == HF_OK)
        fixture->n_jobs = (size_t)hf_reply_int(hf_reply_at(answer->reply, 2));
}

hf_err hf_queue_fixture_unclaim(hf_queue_fixture *fixture, const char *worker,
                                uint64_t number)
{
    hf_err err;
    HF_QUEUE_FIXTURE_ASK(err, fixture,
                         hf_op_unclaim(fixture->client, &fixture->queue, worker, number,
                                       on_status, fixture));
    return err;
}

/* ---- verdicts and renewals ---- */

static void on_settled(const hf_answer *answer, void *arg)
{
    hf_queue_fixture *fixture = arg;
    hf_settled read;
    keep(fixture, answer, hf_settled_read(answer, &read));
    fixture->now_ms = read.now_ms;
    fixture->n_codes = read.n;
    for (size_t i = 0; i < read.n && i < HF_FIXTURE_JOBS; i++)
        fixture->codes[i] = (hf_err)hf_reply_int(hf_reply_at(read.codes, i));
}

hf_err hf_queue_fixture_verdicts(hf_queue_fixture *fixture, hf_verdict_op op,
                                 const hf_verdict_args *args,
                                 const hf_verdict_item *items, size_t n)
{
    hf_err err;
    HF_QUEUE_FIXTURE_ASK(err, fixture,
                         hf_op_verdict(fixture->client, &fixture->queue, op, args, items,
                                       n, on_settled, fixture));
    return err;
}

hf_err hf_queue_fixture_verdict(hf_queue_fixture *fixture, hf_verdict_op op,
                                const hf_verdict_args *args, const hf_verdict_item *given)
{
    hf_verdict_item item = *given;
    if (item.fence == NULL)
        item.fence = fixture->fence;
    hf_err err = hf_queue_fixture_verdicts(fixture, op, args, &item, 1);
    return err == HF_OK && fixture->n_codes == 1 ? fixture->codes[0] : err;
}

hf_err hf_queue_fixture_complete(hf_queue_fixture *fixture, const char *worker,
                                 const char *id, const char *fence)
{
    const hf_verdict_args args = {.worker = worker};
    const hf_verdict_item item = {.id = id, .fence = fence};
    return hf_queue_fixture_verdict(fixture, HF_OP_COMPLETE, &args, &item);
}

hf_err hf_queue_fixture_renew_all(hf_queue_fixture *fixture, const hf_renew_args *args,
                                  const hf_renew_item *items, size_t n)
{
    hf_err err;
    HF_QUEUE_FIXTURE_ASK(err, fixture,
                         hf_op_renew(fixture->client, &fixture->queue, args, items, n, 0,
                                     on_settled, fixture));
    return err;
}

hf_err hf_queue_fixture_renew_with(hf_queue_fixture *fixture, const hf_renew_args *args,
                                   const char *id, const char *fence)
{
    const hf_renew_item item = {id, fence != NULL ? fence : fixture->fence};
    hf_err err = hf_queue_fixture_renew_all(fixture, args, &item, 1);
    return err == HF_OK && fixture->n_codes == 1 ? fixture->codes[0] : err;
}

hf_err hf_queue_fixture_renew(hf_queue_fixture *fixture, const char *worker,
                              const char *id, const char *fence, uint32_t lease_ms)
{
    const hf_renew_args args = {.worker = worker, .lease_ms = lease_ms};
    return hf_queue_fixture_renew_with(fixture, &args, id, fence);
}

/* ---- waking up ---- */

static void on_checked(const hf_answer *answer, void *arg)
{
    hf_queue_fixture *fixture = arg;
    hf_checked read;
    keep(fixture, answer,
         hf_checked_read(answer, &read, fixture->checked, fixture->n_checked));
    fixture->now_ms = read.now_ms;
    fixture->empty = read.empty;
}

hf_err hf_queue_fixture_check_with(hf_queue_fixture *fixture,
                                   const hf_queue *const *queues, size_t n,
                                   const hf_check_args *args)
{
    hf_err err;
    fixture->n_checked = n;
    HF_QUEUE_FIXTURE_ASK(
        err, fixture, hf_op_check(fixture->client, queues, n, args, on_checked, fixture));
    return err;
}

hf_err hf_queue_fixture_check_all(hf_queue_fixture *fixture,
                                  const hf_queue *const *queues, size_t n,
                                  const char *worker, bool give_back)
{
    const hf_check_args args = {.worker = worker,
                                .alive_ms = HF_FIXTURE_LEASE_MS,
                                .lease_ms = HF_FIXTURE_LEASE_MS,
                                .give_back = give_back};
    return hf_queue_fixture_check_with(fixture, queues, n, &args);
}

hf_err hf_queue_fixture_check(hf_queue_fixture *fixture, const char *worker,
                              bool give_back)
{
    const hf_queue *queue = &fixture->queue;
    return hf_queue_fixture_check_all(fixture, &queue, 1, worker, give_back);
}

static void on_peeked(const hf_answer *answer, void *arg)
{
    hf_queue_fixture *fixture = arg;
    keep(fixture, answer, hf_peeked_read(answer, fixture->ready, fixture->n_waiting));
}

hf_err hf_queue_fixture_peek(hf_queue_fixture *fixture, const hf_queue *const *queues,
                             bool *ready, size_t n)
{
    hf_err err;
    fixture->ready = ready;
    fixture->n_waiting = n;
    HF_QUEUE_FIXTURE_ASK(err, fixture,
                         hf_op_peek(fixture->client, queues, n, on_peeked, fixture));
    return err;
}

static void on_waited(const hf_answer *answer, void *arg)
{
    hf_queue_fixture *fixture = arg;
    keep(fixture, answer,
         hf_wait_read(answer, fixture->waiting, fixture->n_waiting, &fixture->which,
                      &fixture->at_ms));
}

hf_err hf_queue_fixture_wait_for(hf_queue_fixture *fixture, const hf_queue *const *queues,
                                 size_t n, uint32_t wait_ms)
{
    hf_queue_fixture_begin(fixture);
    fixture->waiting = queues;
    fixture->n_waiting = n;
    return hf_queue_fixture_end(
        fixture, hf_op_wait(fixture->client, queues, n, wait_ms, on_waited, fixture));
}

hf_err hf_queue_fixture_wait(hf_queue_fixture *fixture, uint32_t wait_ms)
{
    const hf_queue *queue = &fixture->queue;
    return hf_queue_fixture_wait_for(fixture, &queue, 1, wait_ms);
}

/* ---- life ---- */

static void on_event(hf_client *client, hf_err err, const char *detail, void *arg)
{
    (void)client, (void)err, (void)detail, (void)arg; /* it ends the loop's wait */
}

void hf_queue_fixture_ready_client(hf_queue_fixture *fixture, hf_client *client)
{
    uint64_t until = hf_test_fair_ms() + 2 * ANSWER_MS;
    while (!hf_client_ready(client) && hf_test_fair_ms() < until) {
        (void)uv_run(&fixture->loop, UV_RUN_NOWAIT);
        hf_test_pause_ms(1);
    }
    if (!hf_client_ready(client))
        fail_msg("not ready: %s", hf_client_detail(client));
}

void hf_queue_fixture_ready(hf_queue_fixture *fixture)
{
    hf_queue_fixture_ready_client(fixture, fixture->client);
}

void hf_queue_fixture_start(hf_queue_fixture *fixture, const hf_fixture_options *options)
{
    char detail[HF_DETAIL_SIZE];
    *fixture = (hf_queue_fixture){.number = 0};
    hf_fixture_start(&fixture->redis, options);
    assert_int_equal(uv_loop_init(&fixture->loop), 0);
    assert_int_equal(hf_queue_init(&fixture->queue, "hf", "q"), HF_OK);
    const hf_server_opts server = {.url = hf_fixture_url(&fixture->redis),
                                   .connect_timeout_ms = ANSWER_MS,
                                   .request_timeout_ms = ANSWER_MS};
    if (hf_server_open(&fixture->server, &server, detail) != HF_OK)
        fail_msg("open: %s", detail);
    const hf_client_opts opts = {
        .loop = &fixture->loop, .redis = fixture->server, .on_event = on_event};
    if (hf_client_open(&fixture->client, &opts, detail) != HF_OK)
        fail_msg("open: %s", detail);
    hf_queue_fixture_ready(fixture);
}

static void on_closed(void *arg)
{
    hf_queue_fixture *fixture = arg;
    fixture->closed = true;
}

hf_admin *hf_queue_fixture_admin(const hf_queue_fixture *fixture)
{
    char detail[HF_DETAIL_SIZE];
    hf_admin *admin = NULL;
    const hf_admin_opts opts = {HF_ADMIN_OPTS_INIT,
                                .server =
                                    HF_SERVER(.url = hf_fixture_url(&fixture->redis),
                                              .connect_timeout_ms = ANSWER_MS),
                                .deadline_ms = ANSWER_MS};
    if (hf_admin_open(&admin, &opts, detail) != HF_OK)
        fail_msg("no administrator: %s", detail);
    return admin;
}

void hf_queue_fixture_stop(hf_queue_fixture *fixture)
{
    hf_admin_close(fixture->admin);
    if (!fixture->broken)
        hf_queue_fixture_audit(fixture, false);
    hf_client_close(fixture->client, on_closed, fixture);
    hf_server_close(fixture->server);
    while (!fixture->closed)
        (void)uv_run(&fixture->loop, UV_RUN_ONCE);
    (void)uv_run(&fixture->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&fixture->loop), 0);
    hf_fixture_stop(&fixture->redis);
}

int hf_queue_fixture_up(void **state)
{
    hf_queue_fixture_start(*state, NULL);
    return 0;
}

int hf_queue_fixture_up_admin(void **state)
{
    hf_queue_fixture *fixture = *state;
    hf_queue_fixture_start(fixture, NULL);
    fixture->admin = hf_queue_fixture_admin(fixture);
    return 0;
}

int hf_queue_fixture_down(void **state)
{
    hf_queue_fixture_stop(*state);
    return 0;
}

static void on_finding(const hf_finding *f, void *arg)
{
    /* The fixture's own wait for a baton is no worker that lives. */
    if (strcmp(f->check, "wake") == 0 && f->invariant == 10)
        return;
    (*(size_t *)arg)++;
    (void)fprintf(stderr, "I%d: %s %s\n", f->invariant, f->id, f->text);
}

long long hf_queue_fixture_meta(hf_queue_fixture *fixture, const char *field)
{
    return hf_fixture_number(&fixture->redis, "HGET hf:{q}:meta %s", field);
}

void hf_test_take_over(hf_fixture *redis, const char *queue, const char *id)
{
    static const char script[] =
        "redis.call('SET', KEYS[1] .. 'lock:' .. ARGV[1], 'other:1', 'PX', 3600000) "
        "return redis.call('ZINCRBY', KEYS[1] .. 'running', 3600000, ARGV[1])";
    const char *at =
        hf_fixture_command(redis, "EVAL %s 1 hf:{%s}: %s", script, queue, id);
    if (strspn(at, "0123456789.e+") != strlen(at))
        fail_msg("%s", at);
}

long long hf_queue_fixture_writes(hf_queue_fixture *fixture)
{
    const char *info = hf_fixture_command(&fixture->redis, "INFO persistence");
    const char *field = strstr(info, "rdb_changes_since_last_save:");
    assert_non_null(field);
    return strtoll(strchr(field, ':') + 1, NULL, 10);
}

void hf_queue_fixture_audit(hf_queue_fixture *fixture, bool idle)
{
    hf_admin *admin = hf_queue_fixture_admin(fixture);
    size_t found = 0, told;
    hf_err err = hf_admin_audit(admin, fixture->queue.name,
                                &(hf_audit_opts){HF_AUDIT_OPTS_INIT, .idle = idle,
                                                 .cb = on_finding, .arg = &found},
                                &told, fixture->detail);
    if (err != HF_OK)
        fail_msg("audit: %s: %s", hf_err_name(err), fixture->detail);
    hf_admin_close(admin);
    assert_int_equal(found, 0);
}

/* ---- schedules ---- */

void hf_schedule_fixture_put(hf_queue_fixture *q, hf_schedule schedule)
{
    char detail[HF_DETAIL_SIZE] = "";
    schedule.size = sizeof schedule;
    schedule.queue = "q";
    schedule.type = schedule.type == NULL ? "t" : schedule.type;
    if (hf_admin_schedule_put(q->admin, &schedule, detail) != HF_OK)
        fail_msg("%s", detail);
}

hf_schedule_info hf_schedule_fixture_info(hf_queue_fixture *q, const char *id)
{
    hf_schedule_info info = {HF_SCHEDULE_INFO_INIT};
    assert_int_equal(hf_admin_schedule(q->admin, "q", id, &info, NULL, NULL), HF_OK);
    return info;
}

void hf_schedule_fixture_set_next(hf_queue_fixture *q, const char *id, int64_t next_ms)
{
    (void)hf_fixture_command(&q->redis, "ZADD hf:{q}:cron_next %lld %s",
                             (long long)next_ms, id);
}

long long hf_schedule_fixture_enqueued(hf_queue_fixture *q)
{
    long long n = hf_queue_fixture_meta(q, "enqueued");
    return n < 0 ? 0 : n;
}
