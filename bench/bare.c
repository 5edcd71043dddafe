/* bare.c - see bare.h. Besides probe.c this is the only file outside redis/ that uses
 * hiredis, and outside queue/ that knows its scripts.
 *
 * The comparison is fair and strict. Redis does the same for both sides: the embedded
 * scripts, by EVALSHA, with the library's records and ids as long as its ids. Everything
 * else is left out here: there are no handlers, no threads, no parsing of records, no
 * watchdog, no deadlines, no request numbers that Redis has to remember, and nothing is
 * ever sent again. A request is made once for each size of batch; from then on only its
 * ids and the fence are written over in place. hiredis sends it
 * (redisAppendFormattedCommand) and parses the answer. Each call waits for the previous
 * one, as in any simple program. */
#include "bench/bare.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/id.h"
#include "bench/probe.h"
#include "queue/ops.h"
#include "queue/record.h"
#include "queue_scripts.h"

enum {
    BLOCK_S = 10,   /* of BZPOPMIN; a baton comes long before */
    SOON_MS = 500,  /* a baton for later than that is the end of a lease */
    FENCE_LEN = 16, /* microseconds since 1970, until the year 2286 */
    REQUEST_MAX = 80 << 20,
    ENQUEUE_FIXED = 5,
    ENQUEUE_EACH = 3,
    COMPLETE_FIXED = 6,
    CLAIMED_AT = 8 /* in a claim's answer: where the jobs begin, id and record of each, or
                      a list of the ids and one of the records */
};

/* How each job of a request begins, and the fence of them all. */
static const char id_header[] = "$14\r\n", fence_header[] = "$16\r\n";
_Static_assert(HF_NEW_ID_LEN == 14 && FENCE_LEN == 16, "as the headers say");

/* A request for n jobs, which lie in it at equal distances. */
typedef struct request {
    hf_buf text;
    size_t n; /* jobs; 0: not made yet */
    size_t id_at, fence_at, each;
} request;

struct hf_bare {
    hf_probe probe;
    hf_queue queue;
    hf_buf record;
    char wake[HF_PREFIX_SIZE + 8];
    char id[HF_NEW_ID_SIZE];
    uint64_t ms, count; /* of the last id */
    request enqueue, claim, complete;
    redisReply *picked; /* the claim's answer, until it is put down */
};

/* As long as a worker's id is. */
static const char worker[] = "bare-loop-0000-0123456789abcdef";

const char *hf_bare_detail(const hf_bare *bare)
{
    return bare->probe.detail;
}

static hf_err fail(hf_bare *bare, hf_err err, const char *why)
{
    char text[HF_DETAIL_SIZE];
    (void)snprintf(text, sizeof text, "the bare loop: %.200s", why);
    return hf_probe_fail(&bare->probe, err, text);
}

/* Sends the prepared request and waits for its answer. */
static hf_err ask(hf_bare *bare, const request *r, redisReply **reply)
{
    void *got = NULL;
    if (redisAppendFormattedCommand(bare->probe.redis, r->text.data, r->text.len) ==
        REDIS_OK)
        (void)redisGetReply(bare->probe.redis, &got);
    *reply = got;
    return hf_probe_check(&bare->probe, reply);
}

static const redisReply *at(const redisReply *reply, size_t i)
{
    return reply->type == REDIS_REPLY_ARRAY && i < reply->elements ? reply->element[i]
                                                                   : NULL;
}

static bool is_ok(const redisReply *reply)
{
    const redisReply *status = at(reply, 0);
    return status != NULL && status->type == REDIS_REPLY_INTEGER &&
           status->integer == HF_OK;
}

/* ---- requests, made once ---- */

static void put(hf_buf *out, const void *data, size_t len)
{
    hf_buf_printf(out, "$%zu\r\n", len);
    hf_buf_add(out, data, len);
    hf_buf_text(out, "\r\n");
}

static void put_text(hf_buf *out, const char *text)
{
    put(out, text, strlen(text));
}

/* The beginning of each: n_args follow. */
static void begin(hf_bare *bare, request *r, const hf_script *script, size_t n_args)
{
    hf_buf_clear(&r->text);
    hf_buf_printf(&r->text, "*%zu\r\n", 4 + n_args);
    put_text(&r->text, "EVALSHA");
    put_text(&r->text, script->sha1);
    put_text(&r->text, "1");
    put(&r->text, bare->queue.prefix, bare->queue.prefix_len);
}

static hf_err made(hf_bare *bare, request *r, size_t n)
{
    hf_err err = hf_buf_err(&r->text);
    r->n = err == HF_OK ? n : 0;
    return err == HF_OK ? HF_OK : fail(bare, err, hf_err_text(err));
}

static hf_err make_enqueue(hf_bare *bare, size_t n)
{
    static const char *const fixed[ENQUEUE_FIXED] = {"", "0", "0", "0", "0"};
    request *r = &bare->enqueue;
    if (r->n == n)
        return HF_OK;
    begin(bare, r, &hf_lua_queue_enqueue, ENQUEUE_FIXED + ENQUEUE_EACH * n + 1);
    for (size_t i = 0; i < ENQUEUE_FIXED; i++)
        put_text(&r->text, fixed[i]);
    size_t start = r->text.len;
    for (size_t i = 0; i < n; i++) {
        put_text(&r->text, bare->id);
        put_text(&r->text, "0");
        put(&r->text, bare->record.data, bare->record.len);
    }
    r->id_at = start + strlen(id_header);
    r->each = (r->text.len - start) / n;
    put_text(&r->text, "N"); /* as the library does: made, and checked */
    return made(bare, r, n);
}

static hf_err make_complete(hf_bare *bare, size_t n)
{
    char jobs[24];
    request *r = &bare->complete;
    if (r->n == n)
        return HF_OK;
    (void)snprintf(jobs, sizeof jobs, "%zu", n);
    begin(bare, r, &hf_lua_queue_complete, COMPLETE_FIXED + n);
    put_text(&r->text, worker);
    put_text(&r->text, "0");
    put_text(&r->text, "0");
    put_text(&r->text, "1");
    r->fence_at = r->text.len + strlen(fence_header);
    put(&r->text, worker, FENCE_LEN);
    put_text(&r->text, jobs);
    size_t start = r->text.len;
    for (size_t i = 0; i < n; i++)
        put_text(&r->text, bare->id);
    r->id_at = start + strlen(id_header);
    r->each = (r->text.len - start) / n;
    return made(bare, r, n);
}

static hf_err make_claim(hf_bare *bare, size_t n, const char *baton)
{
    static const char rules[] = "3 10000 15552000000";
    char max[24];
    request *r = &bare->claim;
    if (r->n == n)
        return HF_OK;
    (void)snprintf(max, sizeof max, "%zu", n);
    const char *const args[] = {worker, "1", max, "10000", "0", "0", baton, max, rules};
    begin(bare, r, &hf_lua_queue_claim, HF_COUNT(args));
    for (size_t i = 0; i < HF_COUNT(args); i++)
        put_text(&r->text, args[i]);
    return made(bare, r, n);
}

/* ---- opening ---- */

static hf_err load_scripts(hf_bare *bare)
{
    const hf_script *const scripts[] = {&hf_lua_queue_enqueue, &hf_lua_queue_claim,
                                        &hf_lua_queue_complete};
    hf_err err = HF_OK;
    for (size_t i = 0; i < HF_COUNT(scripts) && err == HF_OK; i++) {
        redisReply *reply = redisCommand(bare->probe.redis, "SCRIPT LOAD %b",
                                         scripts[i]->text, scripts[i]->len);
        err = hf_probe_check(&bare->probe, &reply);
        freeReplyObject(reply);
    }
    return err;
}

static hf_err prepare(hf_bare *bare, const char *ns, const char *queue,
                      const void *payload, size_t payload_len)
{
    const hf_job job = {HF_JOB_INIT, .type = "bench", .payload = payload,
                        .payload_len = payload_len};
    hf_id_maker ids;
    hf_err err = hf_id_maker_init(&ids);
    if (err == HF_OK)
        err = hf_queue_init(&bare->queue, ns, queue);
    if (err != HF_OK)
        return fail(bare, err, hf_err_text(err));
    hf_id_next(&ids, bare->id);
    bare->ms = ids.ms;
    bare->count = ids.low;
    (void)snprintf(bare->wake, sizeof bare->wake, "%swake", bare->queue.prefix);
    hf_record_write(&bare->record, &job, 0);
    if (hf_buf_err(&bare->record) != HF_OK)
        return fail(bare, HF_NOMEM, hf_err_text(HF_NOMEM));
    return load_scripts(bare);
}

hf_err hf_bare_open(hf_bare **out, const char *url, const char *password_file,
                    const char *ns, const char *queue, const void *payload,
                    size_t payload_len, char detail[HF_DETAIL_SIZE])
{
    hf_bare *bare = calloc(1, sizeof *bare);
    if (bare == NULL)
        return HF_NOMEM;
    hf_buf_init(&bare->record, REQUEST_MAX);
    hf_buf_init(&bare->enqueue.text, REQUEST_MAX);
    hf_buf_init(&bare->claim.text, REQUEST_MAX);
    hf_buf_init(&bare->complete.text, REQUEST_MAX);
    hf_err err = hf_probe_open(&bare->probe, url, password_file);
    if (err == HF_OK)
        err = prepare(bare, ns, queue, payload, payload_len);
    if (err == HF_OK) {
        *out = bare;
        return HF_OK;
    }
    (void)snprintf(detail, HF_DETAIL_SIZE, "%s", bare->probe.detail);
    hf_bare_close(bare);
    return err;
}

void hf_bare_close(hf_bare *bare)
{
    if (bare == NULL)
        return;
    freeReplyObject(bare->picked);
    hf_probe_close(&bare->probe);
    hf_buf_done(&bare->record);
    hf_buf_done(&bare->enqueue.text);
    hf_buf_done(&bare->claim.text);
    hf_buf_done(&bare->complete.text);
    free(bare);
}

/* ---- the loops ---- */

/* The one after the id before, as the library makes them, but without a clock. */
static void put_next_id(hf_bare *bare, char *out)
{
    hf_id_text(bare->ms, ++bare->count, bare->id);
    memcpy(out, bare->id, HF_NEW_ID_LEN);
}

hf_err hf_bare_enqueue(hf_bare *bare, size_t n, size_t batch)
{
    hf_err err = HF_OK;
    while (n > 0 && err == HF_OK) {
        redisReply *reply;
        request *r = &bare->enqueue;
        err = make_enqueue(bare, n < batch ? n : batch);
        if (err != HF_OK)
            break;
        for (size_t i = 0; i < r->n; i++)
            put_next_id(bare, r->text.data + r->id_at + i * r->each);
        err = ask(bare, r, &reply);
        if (err != HF_OK)
            break;
        if (!is_ok(reply))
            err = fail(bare, HF_PROTO, "jobs were not accepted");
        freeReplyObject(reply);
        n -= r->n;
    }
    return err;
}

/* Completes all jobs of a claim's answer; *n: how many they were. */
static hf_err complete(hf_bare *bare, const redisReply *claimed, size_t *n)
{
    const redisReply *fence = at(claimed, 2);
    redisReply *reply;
    request *r = &bare->complete;
    const redisReply *ids = at(claimed, CLAIMED_AT);
    bool listed = ids != NULL && ids->type == REDIS_REPLY_ARRAY;
    *n = ids == NULL ? 0 : listed ? ids->elements : (claimed->elements - CLAIMED_AT) / 2;
    if (*n == 0)
        return HF_OK;
    hf_err err = make_complete(bare, *n);
    if (err != HF_OK)
        return err;
    if (fence->len != FENCE_LEN)
        return fail(bare, HF_PROTO, "a fence of another length than expected");
    for (size_t i = 0; i < *n; i++) {
        const redisReply *id =
            listed ? ids->element[i] : claimed->element[CLAIMED_AT + 2 * i];
        if (id->len != HF_NEW_ID_LEN)
            return fail(bare, HF_PROTO, "a job that is not ours");
        memcpy(r->text.data + r->id_at + i * r->each, id->str, HF_NEW_ID_LEN);
    }
    memcpy(r->text.data + r->fence_at, fence->str, FENCE_LEN);
    err = ask(bare, r, &reply);
    if (err == HF_OK && (!is_ok(reply) || at(reply, 2) != NULL)) /* a code for each */
        err = fail(bare, HF_PROTO, "jobs were not completed");
    freeReplyObject(reply);
    return err;
}

hf_err hf_bare_process(hf_bare *bare, size_t n, size_t batch)
{
    hf_err err = HF_OK;
    while (n > 0 && err == HF_OK) {
        redisReply *reply;
        size_t done = 0;
        err = make_claim(bare, n < batch ? n : batch, "");
        if (err != HF_OK)
            break;
        err = ask(bare, &bare->claim, &reply);
        if (err == HF_OK)
            err = complete(bare, reply, &done);
        freeReplyObject(reply);
        if (err == HF_OK && done == 0)
            err = fail(bare, HF_PROTO, "jobs are missing");
        n -= done < n ? done : n;
    }
    return err;
}

/* Until there is a baton whose time has come. */
static hf_err wait_for_baton(hf_bare *bare)
{
    for (;;) {
        redisReply *reply =
            redisCommand(bare->probe.redis, "BZPOPMIN %s %d", bare->wake, BLOCK_S);
        hf_err err = hf_probe_check(&bare->probe, &reply);
        if (err != HF_OK)
            return err;
        const redisReply *score = at(reply, 2);
        double due_ms = score == NULL ? -1 : strtod(score->str, NULL);
        freeReplyObject(reply);
        if (due_ms < 0)
            return fail(bare, HF_TIMEOUT, "no baton came");
        if (due_ms <= (double)hf_wall_ms() + SOON_MS)
            return HF_OK;
    }
}

hf_err hf_bare_pick_up(hf_bare *bare, uint64_t *picked_ns)
{
    hf_err err = make_claim(bare, 1, "doubted");
    while (err == HF_OK) {
        err = wait_for_baton(bare);
        if (err == HF_OK)
            err = ask(bare, &bare->claim, &bare->picked);
        *picked_ns = hf_boot_ns();
        if (err == HF_OK && at(bare->picked, CLAIMED_AT) != NULL)
            break;
        freeReplyObject(bare->picked);
        bare->picked = NULL;
    }
    return err;
}

hf_err hf_bare_put_down(hf_bare *bare)
{
    size_t n;
    hf_err err = complete(bare, bare->picked, &n);
    freeReplyObject(bare->picked);
    bare->picked = NULL;
    return err;
}
