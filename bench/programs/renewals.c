/* renewals.c - what it costs to renew many held locks, beside a bare script that does the
 * same reads and writes.
 *
 *   renewals --url URL [--locks N] [--rounds N]
 *
 * Each lock has a tag of its own. The rounds take turns: the client's watchdog is told to
 * verify, so that it renews every lock at once; and one blocking connection sends the
 * bare script, ready made, for the same locks in the same batches, all before it reads
 * the first answer. One line of JSON comes of it: the medians, in all and in scripts. */
#include <getopt.h>
#include <hiredis/hiredis.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/clock.h"
#include "bench/parts.h"
#include "bench/probe.h"
#include "lock/locks.h"

enum { ROUNDS_MAX = 100, BATCH = 128, WAIT_S = 30, REQUEST_MAX = 1 << 20 };

/* For each: is its lease still there, what does its entry say, until when are its keys;
 * then its lease and its keys last longer. */
static const char bare_script[] =
    "local call, now = redis.call, redis.call('TIME')\n"
    "now = now[1] * 1000 + math.floor(now[2] / 1000)\n"
    "local lease, held, last, text = tonumber(ARGV[1]), 0, now + ARGV[1], nil\n"
    "local ends = string.format('%.0f', last)\n"
    "local keys_end = string.format('%.0f', last + 5000)\n"
    "for k = 1, #KEYS do\n"
    "  local x = KEYS[k] .. 'x:' .. ARGV[2 * k + 1]\n"
    "  local e = KEYS[k] .. 'e:' .. ARGV[2 * k + 1]\n"
    "  local owner = ARGV[2 * k]\n"
    "  if call('ZSCORE', x, owner) and call('HGET', e, owner) then\n"
    "    call('ZADD', x, 'XX', ends, owner)\n"
    "    if call('PTTL', x) < lease + 5000 then\n"
    "      call('PEXPIREAT', x, keys_end)\n"
    "      call('PEXPIREAT', e, keys_end)\n"
    "    end\n"
    "    held = held + 1\n"
    "  end\n"
    "end\n"
    "return { 0, now, held }\n";

typedef struct bench {
    const char *url;
    uint32_t n, rounds;
    hf_lock_client *locks;
    hf_lock **all;
    atomic_size_t had;
    hf_probe probe;
    hf_buf *bare; /* a request for each batch */
    size_t n_bare;
} bench;

static _Noreturn void give_up(const char *what, const char *why)
{
    (void)fprintf(stderr, "renewals: %s: %s\n", what, why);
    exit(1);
}

static void must(hf_err err, const char *what, const char *why)
{
    if (err != HF_OK)
        give_up(what, why == NULL || why[0] == '\0' ? hf_err_text(err) : why);
}

static void nap(void)
{
    const struct timespec time = {.tv_nsec = 200000};
    (void)nanosleep(&time, NULL);
}

/* ---- locks that are held ---- */

static void on_acquired(hf_lock *lock, hf_err err, const char *detail, void *arg)
{
    bench *b = arg;
    must(err, "a lock", detail);
    (void)lock;
    atomic_fetch_add(&b->had, 1);
}

static void hold_all(bench *b)
{
    enum { AT_A_TIME = 500 };
    char text[32], detail[HF_DETAIL_SIZE] = "";
    const char *name = text;
    const hf_lock_opts opts = {.names = &name, .n_names = 1};
    for (uint32_t i = 0; i < b->n; i++) {
        (void)snprintf(text, sizeof text, "lock-%u", (unsigned)i);
        must(hf_lock_acquire(b->locks, &opts, on_acquired, b, &b->all[i], detail),
             "a lock", detail);
        while (i + 1 - atomic_load(&b->had) >= AT_A_TIME)
            nap();
    }
    while (atomic_load(&b->had) < b->n)
        nap();
}

/* ---- the bare script ---- */

static void put(hf_buf *out, const char *text)
{
    hf_buf_printf(out, "$%zu\r\n%s\r\n", strlen(text), text);
}

static void make_bare(bench *b, const char *sha1)
{
    char number[16], lease[16];
    (void)snprintf(lease, sizeof lease, "%d", HF_LOCK_LEASE_MS);
    b->n_bare = (b->n + BATCH - 1) / BATCH;
    b->bare = calloc(b->n_bare, sizeof *b->bare);
    if (b->bare == NULL)
        give_up("the bare requests", hf_err_text(HF_NOMEM));
    for (size_t i = 0; i < b->n_bare; i++) {
        hf_buf *out = &b->bare[i];
        size_t from = i * BATCH, to = from + BATCH < b->n ? from + BATCH : b->n;
        hf_buf_init(out, REQUEST_MAX);
        hf_buf_printf(out, "*%zu\r\n", 4 + 3 * (to - from));
        put(out, "EVALSHA");
        put(out, sha1);
        (void)snprintf(number, sizeof number, "%zu", to - from);
        put(out, number);
        for (size_t k = from; k < to; k++)
            put(out, b->all[k]->prefix);
        put(out, lease);
        for (size_t k = from; k < to; k++) {
            put(out, b->all[k]->owner);
            put(out, b->all[k]->names[0]);
        }
        must(hf_buf_err(out), "the bare requests", NULL);
    }
}

static void load_bare(bench *b)
{
    redisReply *reply = redisCommand(b->probe.redis, "SCRIPT LOAD %s", bare_script);
    must(hf_probe_check(&b->probe, &reply), "the bare script", b->probe.detail);
    make_bare(b, reply->str);
    freeReplyObject(reply);
}

static size_t read_bare(bench *b)
{
    void *got = NULL;
    (void)redisGetReply(b->probe.redis, &got);
    redisReply *reply = got;
    must(hf_probe_check(&b->probe, &reply), "the bare script", b->probe.detail);
    size_t held = (size_t)reply->element[2]->integer;
    freeReplyObject(reply);
    return held;
}

/* ---- rounds ---- */

typedef struct cost {
    double ms, redis_ms; /* from the first request to the last answer; in scripts */
} cost;

static double in_scripts_ms(bench *b)
{
    double ms;
    must(hf_probe_scripts(&b->probe, &ms), "INFO", b->probe.detail);
    return ms;
}

/* Whether all were renewed by a request that was sent after that time; *at: the first one
 * that was not seen to be. */
static bool all_renewed(const bench *b, uint64_t sent_ns, uint32_t *at)
{
    uint64_t deadline_ns = hf_lease_deadline(sent_ns, HF_LOCK_LEASE_MS);
    for (; *at < b->n; ++*at) {
        uint64_t now_ns = hf_lock_deadline_ns(b->all[*at]);
        if (now_ns == 0)
            give_up("a lock", "it was lost");
        if (now_ns < deadline_ns)
            return false;
    }
    return true;
}

static cost our_round(bench *b)
{
    double before_ms = in_scripts_ms(b);
    uint32_t at = 0;
    uint64_t since_ns = hf_boot_ns(), until_ns = since_ns + WAIT_S * 1000 * HF_MS_NS;
    hf_watchdog_verify(b->locks->watchdog);
    while (!all_renewed(b, since_ns, &at)) {
        if (hf_boot_ns() > until_ns)
            give_up("a round", "not every lock was renewed in time");
        nap();
    }
    double ms = (double)(hf_boot_ns() - since_ns) / 1e6;
    return (cost){ms, in_scripts_ms(b) - before_ms};
}

static cost bare_round(bench *b)
{
    double before_ms = in_scripts_ms(b);
    size_t held = 0;
    uint64_t since_ns = hf_boot_ns();
    for (size_t i = 0; i < b->n_bare; i++)
        redisAppendFormattedCommand(b->probe.redis, b->bare[i].data, b->bare[i].len);
    for (size_t i = 0; i < b->n_bare; i++)
        held += read_bare(b);
    double ms = (double)(hf_boot_ns() - since_ns) / 1e6;
    if (held != b->n)
        give_up("the bare script", "a lock is not held");
    return (cost){ms, in_scripts_ms(b) - before_ms};
}

static void compare(bench *b)
{
    double ms[2][ROUNDS_MAX], redis_ms[2][ROUNDS_MAX];
    (void)our_round(b); /* Redis and the allocator warm up */
    (void)bare_round(b);
    for (size_t i = 0; i < b->rounds; i++) {
        for (size_t side = 0; side < 2; side++) {
            cost found = side == 0 ? our_round(b) : bare_round(b);
            ms[side][i] = found.ms;
            redis_ms[side][i] = found.redis_ms;
        }
    }
    printf("{\"ms\": %.3f, \"bare_ms\": %.3f, \"redis_ms\": %.3f, \"bare_redis_ms\": "
           "%.3f}\n",
           hf_bench_median(ms[0], b->rounds), hf_bench_median(ms[1], b->rounds),
           hf_bench_median(redis_ms[0], b->rounds),
           hf_bench_median(redis_ms[1], b->rounds));
}

/* ---- all of it ---- */

static bool parse(int argc, char **argv, bench *b)
{
    static const struct option names[] = {{"url", required_argument, NULL, 'u'},
                                          {"locks", required_argument, NULL, 'n'},
                                          {"rounds", required_argument, NULL, 'r'},
                                          {NULL, 0, NULL, 0}};
    for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        if (c == 'u')
            b->url = optarg;
        else if (c == 'n')
            b->n = (uint32_t)strtoul(optarg, NULL, 10);
        else if (c == 'r')
            b->rounds = (uint32_t)strtoul(optarg, NULL, 10);
        else
            return false;
    }
    return b->url != NULL && b->n > 0 && b->rounds > 0 && b->rounds <= ROUNDS_MAX &&
           optind == argc;
}

int main(int argc, char **argv)
{
    bench b = {.n = 10000, .rounds = 15};
    char detail[HF_DETAIL_SIZE] = "";
    if (!parse(argc, argv, &b)) {
        (void)fprintf(stderr, "renewals: expected the options of the file's head\n");
        return 64;
    }
    b.all = calloc(b.n, sizeof(hf_lock *));
    if (b.all == NULL)
        give_up("the locks", hf_err_text(HF_NOMEM));
    must(hf_probe_open(&b.probe, b.url, NULL), "the connection", b.probe.detail);
    must(hf_lock_client_open(&b.locks, &(hf_lock_client_opts){.url = b.url}, detail),
         "the client", detail);
    hold_all(&b);
    load_bare(&b);
    compare(&b);
    hf_lock_client_close(b.locks, NULL, NULL);
    hf_probe_close(&b.probe);
    for (size_t i = 0; i < b.n_bare; i++)
        hf_buf_done(&b.bare[i]);
    free(b.bare);
    free((void *)b.all);
    return 0;
}
