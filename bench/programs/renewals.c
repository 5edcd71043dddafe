/* renewals.c - the cost of renewing many held locks, beside a bare script with the same
 * reads and writes.
 *
 *   renewals --url URL [--locks N] [--rounds N]
 *
 * Each lock has a tag of its own. The rounds take turns: the client's watchdog is told to
 * verify, and renews every lock at once; then one blocking connection sends the bare
 * script, prepared, for the same locks in the same batches, all before it reads the first
 * answer. The result is one line of JSON: the medians, in total and in scripts. */
#include <hiredis/hiredis.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "base/clock.h"
#include "bench/programs/tool.h"
#include "lock/client.h"

enum { BATCH = 128, WAIT_S = 30, REQUEST_MAX = 1 << 20 };

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
    const hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .names = &name, .n_names = 1};
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
        put_word(out, "EVALSHA");
        put_word(out, sha1);
        (void)snprintf(number, sizeof number, "%zu", to - from);
        put_word(out, number);
        for (size_t k = from; k < to; k++)
            put_word(out, b->all[k]->prefix);
        put_word(out, lease);
        for (size_t k = from; k < to; k++) {
            put_word(out, b->all[k]->owner);
            put_word(out, b->all[k]->names[0]);
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

static size_t read_bare(bench *b)
{
    redisReply *reply = take_reply(&b->probe, "the bare script");
    size_t held = (size_t)reply->element[2]->integer;
    freeReplyObject(reply);
    return held;
}

/* ---- rounds ---- */

/* Whether every lock was renewed by a request sent after that time; *at: the first one
 * not known to be. */
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

static void our_round(void *arg)
{
    bench *b = arg;
    uint32_t at = 0;
    uint64_t since_ns = hf_boot_ns(), until_ns = since_ns + WAIT_S * 1000 * HF_MS_NS;
    hf_watchdog_verify(b->locks->watchdog);
    while (!all_renewed(b, since_ns, &at)) {
        if (hf_boot_ns() > until_ns)
            give_up("a round", "not every lock was renewed in time");
        nap();
    }
}

static void bare_round(void *arg)
{
    bench *b = arg;
    size_t held = 0;
    for (size_t i = 0; i < b->n_bare; i++)
        redisAppendFormattedCommand(b->probe.redis, b->bare[i].data, b->bare[i].len);
    for (size_t i = 0; i < b->n_bare; i++)
        held += read_bare(b);
    if (held != b->n)
        give_up("the bare script", "a lock is not held");
}

static void compare(bench *b)
{
    cost found[2];
    compare_rounds(&b->probe, b->rounds, our_round, bare_round, b, found);
    printf("{\"ms\": %.3f, \"bare_ms\": %.3f, \"redis_ms\": %.3f, \"bare_redis_ms\": "
           "%.3f}\n",
           found[0].ms, found[1].ms, found[0].redis_ms, found[1].redis_ms);
}

/* ---- all of it ---- */

static void parse(int argc, char **argv, bench *b)
{
    const option_spec specs[] = {{"url", &b->url, NULL},
                                 {"locks", NULL, &b->n},
                                 {"rounds", NULL, &b->rounds},
                                 {0}};
    if (read_options(argc, argv, specs) != argc || b->url == NULL || b->n == 0 ||
        b->rounds == 0 || b->rounds > COMPARE_MAX)
        misused("the options of the file's head");
}

int main(int argc, char **argv)
{
    bench b = {.n = 10000, .rounds = 15};
    char detail[HF_DETAIL_SIZE] = "";
    parse(argc, argv, &b);
    b.all = calloc(b.n, sizeof(hf_lock *));
    if (b.all == NULL)
        give_up("the locks", hf_err_text(HF_NOMEM));
    must(hf_probe_open(&b.probe, b.url, NULL), "the connection", b.probe.detail);
    must(hf_lock_client_open(&b.locks,
                             &(hf_lock_client_opts){HF_LOCK_CLIENT_OPTS_INIT,
                                                    .server = HF_SERVER(.url = b.url)},
                             detail),
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
