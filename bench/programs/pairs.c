/* pairs.c - takes and releases an uncontended lock, over and over: with the library; with
 * a bare loop that sends the same two scripts, prepared, over one blocking connection;
 * and with a plain loop, SET NX PX and a script that compares and deletes.
 *
 *   pairs --url URL --acquire SHA1 --release SHA1 [--pairs N] [--blocks N] [--pause US]
 *
 * SHA1: of the scripts, which Redis has. The three take turns, in blocks; a pause before
 * each pair is not counted. The result is one line of JSON: microseconds for each pair,
 * and of processor time in this thread; medians of the blocks. */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "base/clock.h"
#include "bench/programs/tool.h"
#include "holdfast/lock.h"

enum { BLOCKS_MAX = 1000, REQUEST_MAX = 4096, SIDES = 3, PAUSE_MAX_US = 999999 };

/* As long as those that the library makes. */
static const char owner[] = "0123456789abcdef0123456789abcdef",
                  client_id[] = "bench-host-12345-0123456789abcdef";

static const char compare_and_delete[] =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end "
    "return 0";

typedef struct bench {
    const char *url, *acquire_sha1, *release_sha1;
    uint32_t pairs, blocks, pause_us;
    hf_lock_client *locks;
    hf_probe probe;
    hf_buf acquire, release, set, del; /* requests */
} bench;

/* ---- ready-made requests ---- */

static void make_all(bench *b)
{
    static const char prefix[] = "hf:lock:{bare}:", key[] = "plain";
    char sha1[SHA1_SIZE];
    load_script(&b->probe, compare_and_delete, sha1);
    static const char machine[] = "01234567-89ab-cdef-0123-456789abcdef";
    const char *const acquire[] = {
        "EVALSHA", b->acquire_sha1, "1", prefix,  owner, owner, client_id, "x", "1", "0",
        "-",       "30000",         "0", machine, "0",   "",    "bare"};
    const char *const release[] = {
        "EVALSHA", b->release_sha1, "1", prefix, owner, owner, "-",
        "0",       machine,         "",  "bare"};
    const char *const set[] = {"SET", key, owner, "NX", "PX", "30000"};
    const char *const del[] = {"EVALSHA", sha1, "1", key, owner};
    make_request(&b->acquire, REQUEST_MAX, acquire, HF_COUNT(acquire));
    make_request(&b->release, REQUEST_MAX, release, HF_COUNT(release));
    make_request(&b->set, REQUEST_MAX, set, HF_COUNT(set));
    make_request(&b->del, REQUEST_MAX, del, HF_COUNT(del));
}

/* Sends it and waits for its answer, which must be a good one. */
static void ask(bench *b, const hf_buf *request)
{
    redisAppendFormattedCommand(b->probe.redis, request->data, request->len);
    redisReply *reply = take_reply(&b->probe, "the bare loop");
    bool good = reply->type == REDIS_REPLY_ARRAY ? reply->element[0]->integer == 0
                                                 : reply->type != REDIS_REPLY_NIL;
    if (!good)
        give_up("the bare loop", "the lock was not to be had");
    freeReplyObject(reply);
}

/* ---- the three ---- */

static void ours(bench *b)
{
    static const char *const name = "ours";
    const hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .names = &name, .n_names = 1};
    char detail[HF_DETAIL_SIZE] = "";
    hf_lock *lock;
    must(hf_lock_acquire_wait(b->locks, &opts, &lock, detail), "the lock", detail);
    if (hf_lock_release_wait(lock, NULL) != HF_RELEASE_DONE)
        give_up("the lock", "it was lost");
}

static void bare(bench *b)
{
    ask(b, &b->acquire);
    ask(b, &b->release);
}

static void plain(bench *b)
{
    ask(b, &b->set);
    ask(b, &b->del);
}

/* ---- rounds ---- */

/* The processor time of this thread, in the kernel as well. */
static uint64_t thread_ran_ns(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* One block of one side. */
static void run_block(bench *b, void (*side)(bench *b), double *us, double *cpu_us)
{
    const struct timespec pause = {.tv_nsec = (long)b->pause_us * 1000};
    uint64_t took_ns = 0, ran_ns = 0;
    for (uint32_t i = 0; i < b->pairs; i++) {
        if (b->pause_us > 0)
            (void)nanosleep(&pause, NULL);
        uint64_t since_ns = hf_boot_ns(), before_ns = thread_ran_ns();
        side(b);
        took_ns += hf_boot_ns() - since_ns;
        ran_ns += thread_ran_ns() - before_ns;
    }
    *us = (double)took_ns / 1000 / b->pairs;
    *cpu_us = (double)ran_ns / 1000 / b->pairs;
}

static void compare(bench *b)
{
    static const char *const names[SIDES] = {"our", "bare", "plain"};
    static void (*const sides[SIDES])(bench * b) = {ours, bare, plain};
    static double us[SIDES][BLOCKS_MAX], cpu_us[SIDES][BLOCKS_MAX];
    for (size_t side = 0; side < SIDES; side++) /* not counted: overwritten */
        run_block(b, sides[side], &us[side][0], &cpu_us[side][0]);
    for (size_t block = 0; block < b->blocks; block++)
        for (size_t side = 0; side < SIDES; side++)
            run_block(b, sides[side], &us[side][block], &cpu_us[side][block]);
    for (size_t side = 0; side < SIDES; side++)
        printf("%s\"%s_us\": %.3f, \"%s_cpu_us\": %.3f", side == 0 ? "{" : ", ",
               names[side], hf_bench_median(us[side], b->blocks), names[side],
               hf_bench_median(cpu_us[side], b->blocks));
    printf("}\n");
}

/* ---- all of it ---- */

static void parse(int argc, char **argv, bench *b)
{
    const option_spec specs[] = {{"url", &b->url, NULL},
                                 {"acquire", &b->acquire_sha1, NULL},
                                 {"release", &b->release_sha1, NULL},
                                 {"pairs", NULL, &b->pairs},
                                 {"blocks", NULL, &b->blocks},
                                 {"pause", NULL, &b->pause_us},
                                 {0}};
    if (read_options(argc, argv, specs) != argc || b->url == NULL ||
        b->acquire_sha1 == NULL || b->release_sha1 == NULL || b->pairs == 0 ||
        b->blocks == 0 || b->blocks > BLOCKS_MAX || b->pause_us > PAUSE_MAX_US)
        misused("the options of the file's head");
}

int main(int argc, char **argv)
{
    char detail[HF_DETAIL_SIZE] = "";
    bench b = {.pairs = 200, .blocks = 50};
    parse(argc, argv, &b);
    must(hf_probe_open(&b.probe, b.url, NULL), "the connection", b.probe.detail);
    make_all(&b);
    must(hf_lock_client_open(&b.locks,
                             &(hf_lock_client_opts){HF_LOCK_CLIENT_OPTS_INIT,
                                                    .server = HF_SERVER(.url = b.url)},
                             detail),
         "the client", detail);
    compare(&b);
    hf_lock_client_close(b.locks, NULL, NULL);
    hf_probe_close(&b.probe);
    hf_buf_done(&b.acquire);
    hf_buf_done(&b.release);
    hf_buf_done(&b.set);
    hf_buf_done(&b.del);
    return 0;
}
