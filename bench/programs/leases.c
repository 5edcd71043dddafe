/* leases.c - measures the cost of many leases in one watchdog, beside a bare script with
 * the same reads and writes; and the least time that a lease has left.
 *
 *     leases --url unix:///... [--leases N] [--lease MS] [--batch N] [--rounds N]
 *            [--live S]
 *
 * Real jobs are claimed, and never done. First rounds, in turns: the watchdog is told to
 * verify, and renews every lease at once; then one blocking connection sends the bare
 * script, prepared, for the same jobs in the same batches, all before it reads the first
 * answer. After that the watchdog runs undisturbed for some time, and another connection
 * reads the remaining time of random leases from Redis. The result is one line of JSON.
 */
#include <hiredis/hiredis.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uv.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/random.h"
#include "bench/programs/tool.h"
#include "lock/watchdog/watchdog.h"
#include "queue/ops.h"
#include "redis/server.h"

enum {
    WAIT_S = 20,
    CLAIM = 500,
    ALIVE_MS = 25000,
    SAMPLES = 100, /* leases that are looked at in one go */
    SAMPLE_EVERY_MS = 20,
    REQUEST_MAX = 8 << 20
};

static const char worker_id[] = "bench-12345-0123456789abcdef", queue_name[] = "leases";

/* The same reads and writes as the queue's own script, and next to nothing else. */
static const char bare_script[] =
    "local call, now = redis.call, redis.call('TIME')\n"
    "now = now[1] * 1000 + math.floor(now[2] / 1000)\n"
    "local n, keys, ends, held = (#ARGV - 4) / 2, {}, {}, 0\n"
    "local worker, at = ARGV[1], string.format('%.0f', now + ARGV[2])\n"
    "for k = 1, n do\n"
    "  keys[k] = KEYS[1] .. 'lock:' .. ARGV[3 + 2 * k]\n"
    "  ends[2 * k - 1], ends[2 * k] = at, ARGV[3 + 2 * k]\n"
    "end\n"
    "local holders = call('MGET', unpack(keys))\n"
    "call('HGET', KEYS[1] .. 'meta', 'fence')\n"
    "call('ZRANGE', KEYS[1] .. 'running', '-1', '-1', 'WITHSCORES')\n"
    "call('EXISTS', KEYS[1] .. 'cancel')\n"
    "local fence, token\n"
    "for k = 1, n do\n"
    "  if ARGV[4 + 2 * k] ~= fence then\n"
    "    fence = ARGV[4 + 2 * k]\n"
    "    token = worker .. ':' .. fence\n"
    "  end\n"
    "  held = held + (holders[k] == token and 1 or 0)\n"
    "end\n"
    "call('ZREM', KEYS[1] .. 'wake', '')\n"
    "call('ZADD', KEYS[1] .. 'running', 'XX', 'CH', unpack(ends))\n"
    "for k = 1, n do\n"
    "  call('PEXPIREAT', keys[k], at)\n"
    "end\n"
    "call('ZADD', KEYS[1] .. 'workers', now + ARGV[4], worker)\n"
    "call('ZREMRANGEBYSCORE', KEYS[1] .. 'workers', '-inf', now - 3600000)\n"
    "call('PEXPIRE', KEYS[1] .. 'workers', 7200000 + ARGV[4])\n"
    "return { 0, now, held }\n";

typedef struct held {
    char id[HF_ID_SIZE], fence[24];
    hf_lease *lease;
} held;

typedef struct bench {
    const char *url;
    uint32_t n, lease_ms, batch, rounds, live_s;
    hf_queue queue;
    held *all;
    size_t have;
    hf_err err; /* of the claim under way */
    bool answered;
    uv_loop_t loop;
    hf_client *client;
    hf_watchdog *watchdog;
    hf_server *redis;
    hf_client *renews; /* on the watchdog's thread */
    atomic_size_t renewed, lost, requests;
    sem_t round_over;
    hf_probe probe;
    hf_rng rng;
    hf_buf *bare; /* a request for each batch */
    size_t n_bare;
} bench;

/* ---- the watchdog, as a worker uses it ---- */

static void on_renewed(const hf_answer *answer, void *arg)
{
    hf_renew_batch *batch = arg;
    hf_settled settled;
    hf_err codes[HF_VERDICTS_MAX];
    hf_err err = hf_settled_read(answer, &settled);
    if (err == HF_OK && settled.n != 0 && settled.n != batch->n)
        err = HF_PROTO;
    for (size_t i = 0; err == HF_OK && i < batch->n; i++)
        codes[i] = (hf_err)hf_reply_int(hf_reply_at(settled.codes, i));
    hf_watchdog_answer(batch, err, answer->sent_ns, err == HF_OK ? codes : NULL, NULL);
}

static void renew(hf_renew_batch *batch, void *arg)
{
    bench *b = arg;
    hf_renew_item items[HF_VERDICTS_MAX];
    for (size_t i = 0; i < batch->n; i++) {
        const held *h = hf_lease_user(batch->leases[i]);
        items[i] = (hf_renew_item){.id = h->id, .fence = h->fence};
    }
    const hf_renew_args args = {
        .worker = worker_id, .lease_ms = b->lease_ms, .alive_ms = ALIVE_MS};
    atomic_fetch_add(&b->requests, 1);
    hf_err err = b->renews == NULL
                     ? HF_CONN
                     : hf_op_renew(b->renews, &b->queue, &args, items, batch->n,
                                   batch->timeout_ms, on_renewed, batch);
    if (err == HF_OK && batch->full)
        hf_client_flush(b->renews);
    if (err != HF_OK)
        hf_watchdog_answer(batch, err, hf_boot_ns(), NULL, NULL);
}

static void on_client(hf_client *client, hf_err err, const char *detail, void *arg)
{
    const bench *b = arg;
    (void)client, (void)detail;
    if (err == HF_OK)
        hf_watchdog_verify(b->watchdog);
}

static void on_call(hf_watchdog *watchdog, uv_loop_t *loop, void *arg)
{
    bench *b = arg;
    const hf_client_opts opts = {
        .loop = loop, .redis = b->redis, .on_event = on_client, .arg = b};
    (void)watchdog;
    must(hf_client_open(&b->renews, &opts, NULL), "the connection", NULL);
}

static void on_stop(void (*closed)(void *arg), void *closed_arg, void *arg)
{
    const bench *b = arg;
    hf_client_close(b->renews, closed, closed_arg);
}

static void on_event(void *user, hf_lease *lease, hf_lease_event event, void *arg)
{
    bench *b = arg;
    (void)user, (void)lease;
    if (event == HF_LEASE_LOST)
        atomic_fetch_add(&b->lost, 1);
    else if (atomic_fetch_add(&b->renewed, 1) + 1 == b->n)
        (void)sem_post(&b->round_over);
}

static void start_watchdog(bench *b)
{
    char detail[HF_DETAIL_SIZE] = "";
    must(hf_server_open(&b->redis, HF_SERVER(.url = b->url), detail), "the server",
         detail);
    const hf_watchdog_opts opts = {.request_timeout_ms = b->redis->request_timeout_ms,
                                   .batch_max = b->batch,
                                   .renew = renew,
                                   .on_event = on_event,
                                   .on_call = on_call,
                                   .on_stop = on_stop,
                                   .arg = b};
    must(hf_watchdog_start(&b->watchdog, &opts), "the watchdog", NULL);
    hf_watchdog_call(b->watchdog, hf_boot_ns());
}

/* ---- jobs that are held ---- */

static void on_claimed(const hf_answer *answer, void *arg)
{
    bench *b = arg;
    hf_claimed claimed;
    void *users[CLAIM];
    hf_lease *leases[CLAIM];
    b->answered = true;
    b->err = hf_claimed_read(answer, &claimed);
    if (b->err != HF_OK)
        return;
    held *first = b->all + b->have;
    for (size_t i = 0; i < claimed.n; i++) {
        hf_claimed_job job;
        hf_claimed_at(&claimed, i, &job);
        (void)snprintf(first[i].id, sizeof first[i].id, "%.*s", (int)job.id.len,
                       (const char *)job.id.ptr);
        (void)snprintf(first[i].fence, sizeof first[i].fence, "%.*s",
                       (int)claimed.fence.len, (const char *)claimed.fence.ptr);
        users[i] = &first[i];
    }
    hf_watchdog_add_many(b->watchdog, 0, b->lease_ms, answer->sent_ns, false, users,
                         leases, claimed.n);
    for (size_t i = 0; i < claimed.n; i++)
        first[i].lease = leases[i];
    b->have += claimed.n;
    b->err = claimed.n > 0 ? HF_OK : HF_GONE;
}

static void claim_some(bench *b)
{
    size_t left = b->n - b->have;
    const hf_claim_args args = {.worker = worker_id,
                                .number = b->have + 1,
                                .max = left < CLAIM ? (uint32_t)left : CLAIM,
                                .lease_ms = b->lease_ms,
                                .alive_ms = ALIVE_MS,
                                .poison = 3,
                                .dead_max = 10000,
                                .dead_age_ms = 1000};
    b->answered = false;
    must(hf_op_claim(b->client, &b->queue, &args, on_claimed, b), "a claim", NULL);
    while (!b->answered)
        uv_run(&b->loop, UV_RUN_ONCE);
    if (b->err != HF_NOSCRIPT) /* now Redis has it */
        must(b->err, "a claim", NULL);
}

static void hold_all(bench *b)
{
    char detail[HF_DETAIL_SIZE] = "", payload[100] = {0};
    hf_bare *bare;
    must(hf_bare_open(&bare, b->url, NULL, b->queue.ns, queue_name, payload,
                      sizeof payload, detail),
         "the bare connection", detail);
    must(hf_bare_enqueue(bare, b->n, CLAIM), "enqueueing", hf_bare_detail(bare));
    hf_bare_close(bare);
    uv_loop_init(&b->loop);
    const hf_client_opts opts = {.loop = &b->loop, .redis = b->redis};
    must(hf_client_open(&b->client, &opts, detail), "the connection", detail);
    while (!hf_client_ready(b->client))
        uv_run(&b->loop, UV_RUN_ONCE);
    while (b->have < b->n)
        claim_some(b);
    hf_client_close(b->client, NULL, NULL);
    uv_run(&b->loop, UV_RUN_DEFAULT);
    uv_loop_close(&b->loop);
}

/* ---- the bare script ---- */

static void put_number(hf_buf *out, uint32_t number)
{
    char text[16];
    (void)snprintf(text, sizeof text, "%u", (unsigned)number);
    put_word(out, text);
}

static void make_bare(bench *b, const char *sha1)
{
    b->n_bare = (b->n + b->batch - 1) / b->batch;
    b->bare = calloc(b->n_bare, sizeof *b->bare);
    if (b->bare == NULL)
        give_up("the bare requests", hf_err_text(HF_NOMEM));
    for (size_t i = 0; i < b->n_bare; i++) {
        hf_buf *out = &b->bare[i];
        size_t from = i * b->batch, to = from + b->batch < b->n ? from + b->batch : b->n;
        hf_buf_init(out, REQUEST_MAX);
        hf_buf_printf(out, "*%zu\r\n", 8 + 2 * (to - from));
        put_word(out, "EVALSHA");
        put_word(out, sha1);
        put_word(out, "1");
        put_word(out, b->queue.prefix);
        put_word(out, worker_id);
        put_number(out, b->lease_ms);
        put_word(out, "0");
        put_number(out, ALIVE_MS);
        for (size_t k = from; k < to; k++) {
            put_word(out, b->all[k].id);
            put_word(out, b->all[k].fence);
        }
        must(hf_buf_err(out), "the bare requests", NULL);
    }
}

static void load_bare(bench *b)
{
    char sha1[SHA1_SIZE];
    load_script(&b->probe, bare_script, sha1);
    make_bare(b, sha1);
}

static void read_bare(bench *b, size_t n)
{
    redisReply *reply = take_reply(&b->probe, "the bare script");
    if (reply->elements != 3 || (size_t)reply->element[2]->integer != n)
        give_up("the bare script", "a lease is not held");
    freeReplyObject(reply);
}

/* ---- rounds ---- */

static double in_scripts_ms(bench *b)
{
    double ms;
    must(hf_probe_scripts(&b->probe, &ms), "INFO", b->probe.detail);
    return ms;
}

static void await_round(bench *b)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_S;
    if (sem_timedwait(&b->round_over, &until) != 0)
        give_up("a round", "not every lease was renewed in time");
}

static void our_round(void *arg)
{
    bench *b = arg;
    atomic_store(&b->renewed, 0);
    hf_watchdog_verify(b->watchdog);
    await_round(b);
}

static void bare_round(void *arg)
{
    bench *b = arg;
    for (size_t i = 0; i < b->n_bare; i++)
        redisAppendFormattedCommand(b->probe.redis, b->bare[i].data, b->bare[i].len);
    for (size_t left = b->n; left > 0; left -= left < b->batch ? left : b->batch)
        read_bare(b, left < b->batch ? left : b->batch);
}

static void compare(bench *b)
{
    cost found[2];
    compare_rounds(&b->probe, b->rounds, our_round, bare_round, b, found);
    printf("{\"round_ms\": %.3f, \"bare_round_ms\": %.3f, \"round_redis_ms\": %.3f, "
           "\"bare_round_redis_ms\": %.3f",
           found[0].ms, found[1].ms, found[0].redis_ms, found[1].redis_ms);
}

/* ---- left to itself ---- */

/* The least that is left of some leases. */
static int64_t sample(bench *b)
{
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < SAMPLES; i++)
        redisAppendCommand(b->probe.redis, "PTTL %slock:%s", b->queue.prefix,
                           b->all[hf_rng_next(&b->rng) % b->n].id);
    for (size_t i = 0; i < SAMPLES; i++) {
        redisReply *reply = take_reply(&b->probe, "PTTL");
        least = reply->integer < least ? reply->integer : least;
        freeReplyObject(reply);
    }
    return least;
}

static void live(bench *b)
{
    const struct timespec pause = {.tv_nsec = SAMPLE_EVERY_MS * 1000000};
    int64_t least = INT64_MAX;
    size_t samples = 0;
    atomic_store(&b->renewed, 0);
    atomic_store(&b->requests, 0);
    double before_ms = in_scripts_ms(b);
    uint64_t until_ns = hf_boot_ns() + b->live_s * 1000 * HF_MS_NS;
    while (hf_boot_ns() < until_ns) {
        int64_t now = sample(b);
        least = now < least ? now : least;
        samples += SAMPLES;
        (void)nanosleep(&pause, NULL);
    }
    double periods = (double)atomic_load(&b->renewed) / b->n;
    printf(", \"live_periods\": %.2f, \"live_redis_ms\": %.3f, \"live_requests\": %zu, "
           "\"samples\": %zu, \"least_ms\": %lld, \"lost\": %zu}\n",
           periods, (in_scripts_ms(b) - before_ms) / periods,
           (size_t)atomic_load(&b->requests), samples, (long long)least,
           (size_t)atomic_load(&b->lost));
}

/* ---- all of it ---- */

static void parse(int argc, char **argv, bench *b)
{
    const option_spec specs[] = {{"url", &b->url, NULL},
                                 {"leases", NULL, &b->n},
                                 {"lease", NULL, &b->lease_ms},
                                 {"batch", NULL, &b->batch},
                                 {"rounds", NULL, &b->rounds},
                                 {"live", NULL, &b->live_s},
                                 {0}};
    if (read_options(argc, argv, specs) != argc || b->url == NULL || b->n == 0 ||
        b->batch == 0 || b->batch > HF_VERDICTS_MAX || b->lease_ms < 1000 ||
        b->rounds == 0 || b->rounds > COMPARE_MAX)
        misused("--url URL and the options of the file's head");
}

int main(int argc, char **argv)
{
    bench b = {.n = 10000, .lease_ms = 10000, .batch = 500, .rounds = 9, .live_s = 10};
    parse(argc, argv, &b);
    (void)sem_init(&b.round_over, 0, 0);
    b.rng.state = hf_boot_ns();
    b.all = calloc(b.n, sizeof *b.all);
    if (b.all == NULL)
        give_up("the leases", hf_err_text(HF_NOMEM));
    must(hf_queue_init(&b.queue, "hf", queue_name), "the queue", NULL);
    must(hf_probe_open(&b.probe, b.url, NULL), "the connection", b.probe.detail);
    start_watchdog(&b);
    hold_all(&b);
    load_bare(&b);
    compare(&b);
    live(&b);
    for (size_t i = 0; i < b.n; i++)
        hf_watchdog_drop(b.watchdog, b.all[i].lease);
    hf_watchdog_stop(b.watchdog);
    hf_server_close(b.redis);
    hf_probe_close(&b.probe);
    return 0;
}
