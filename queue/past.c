/* past.c - see past.h. */
#include "queue/past.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "queue/send.h"
#include "queue_scripts.h"

enum { FIXED_ARGS = 4, LAST = HF_HISTORY_BUCKETS - 1 };
#define MS_NS UINT64_C(1000000)
#define ROOT_2_MS UINT64_C(1414213562373) /* the root of 2 ms, in millionths of a ns */
#define ROOT_2 1.4142135623730951
#define ROOT_4_OF_2 1.189207115002721
#define SUM_MAX INT64_C(999999999999999) /* queue/lua/past.lua */

/* ---- buckets ---- */

/* With q = time / ms, rounded down after 1 ns less: 2^e <= q < 2^(e+1), so the bucket is
 * that of 2^(e+1/2) or that of 2^(e+1). */
unsigned hf_past_bucket(uint64_t ns)
{
    unsigned e = 0;
    uint64_t q = ns == 0 ? 0 : (ns - 1) / MS_NS;
    if (q == 0)
        return 0;
    if (q >= UINT64_C(1) << LAST / 2)
        return LAST;
    while (q >> (e + 1) != 0)
        e++;
    return ns <= (ROOT_2_MS << e) / MS_NS ? 2 * e + 1 : 2 * e + 2;
}

double hf_past_bound_ms(unsigned bucket)
{
    const double whole = (double)(UINT64_C(1) << bucket / 2);
    return bucket >= LAST ? (double)INFINITY : bucket % 2 == 0 ? whole : whole * ROOT_2;
}

/* The geometric mean of its bounds is wrong by the fourth root of 2 at most, 19 %. The
 * first bucket has no bound below, and the last one none above. */
static double middle(unsigned bucket)
{
    if (bucket == 0 || bucket >= LAST)
        return hf_past_bound_ms(bucket == 0 ? 0 : LAST - 1);
    return hf_past_bound_ms(bucket) / ROOT_4_OF_2;
}

double hf_past_percentile(const int64_t counts[HF_HISTORY_BUCKETS], double part)
{
    double all = 0, seen = 0;
    unsigned last = 0;
    for (unsigned i = 0; i < HF_HISTORY_BUCKETS; i++)
        all += (double)counts[i];
    for (unsigned i = 0; i < HF_HISTORY_BUCKETS; i++) {
        if (counts[i] <= 0)
            continue;
        seen += (double)counts[i];
        last = i;
        if (seen >= part * all)
            break;
    }
    return all > 0 ? middle(last) : 0;
}

/* ---- as text ---- */

static void put(hf_buf *buf, const char *name, int64_t n)
{
    if (n > 0)
        hf_buf_printf(buf, "%s%s=%" PRId64, buf->len == 0 ? "" : " ", name,
                      n < SUM_MAX ? n : SUM_MAX);
}

static void put_buckets(hf_buf *buf, char letter,
                        const int64_t counts[HF_HISTORY_BUCKETS])
{
    for (unsigned i = 0; i < HF_HISTORY_BUCKETS; i++) {
        char name[8];
        if (counts[i] == 0)
            continue;
        (void)snprintf(name, sizeof name, "%c%u", letter, i);
        put(buf, name, counts[i]);
    }
}

void hf_past_write(hf_buf *buf, const hf_past_sums *sums)
{
    put(buf, "d", sums->done);
    put(buf, "f", sums->failed);
    put(buf, "x", sums->dead);
    put(buf, "R", sums->run_ms);
    put(buf, "W", sums->wait_ms);
    put_buckets(buf, 'r', sums->runs);
    put_buckets(buf, 'w', sums->waits);
}

void hf_past_add(hf_past_sums *sums, const hf_past_sums *more)
{
    sums->done += more->done;
    sums->failed += more->failed;
    sums->dead += more->dead;
    sums->run_ms += more->run_ms;
    sums->wait_ms += more->wait_ms;
    for (unsigned i = 0; i < HF_HISTORY_BUCKETS; i++) {
        sums->runs[i] += more->runs[i];
        sums->waits[i] += more->waits[i];
    }
}

static int64_t *sum_of(hf_past_sums *sums, char name)
{
    switch (name) {
    case 'd':
        return &sums->done;
    case 'f':
        return &sums->failed;
    case 'x':
        return &sums->dead;
    case 'R':
        return &sums->run_ms;
    case 'W':
        return &sums->wait_ms;
    default:
        return NULL;
    }
}

static int64_t *bucket_of(hf_past_sums *sums, char name, unsigned long bucket)
{
    if (bucket >= HF_HISTORY_BUCKETS || (name != 'r' && name != 'w'))
        return NULL;
    return name == 'r' ? &sums->runs[bucket] : &sums->waits[bucket];
}

/* `r7=3`; what is none changes nothing. */
static void add_word(hf_past_sums *sums, const char *word, size_t len)
{
    char *end;
    const char *at = word + 1;
    int64_t *sum = sum_of(sums, word[0]);
    if (*at >= '0' && *at <= '9') {
        sum = bucket_of(sums, word[0], strtoul(at, &end, 10));
        at = end;
    }
    if (*at != '=')
        return;
    const int64_t n = strtoll(at + 1, &end, 10);
    if (sum != NULL && end == word + len && n > 0 && n <= SUM_MAX &&
        *sum <= INT64_MAX - n)
        *sum += n;
}

void hf_past_add_text(hf_past_sums *sums, const char *text)
{
    for (text += strspn(text, " "); *text != '\0'; text += strspn(text, " ")) {
        const size_t len = strcspn(text, " ");
        add_word(sums, text, len);
        text += len;
    }
}

/* ---- the request ---- */

hf_err hf_op_past(hf_client *client, const hf_queue *queue, const hf_past_args *args,
                  const hf_past_part *parts, size_t n, hf_answer_cb cb, void *arg)
{
    hf_args a;
    HF_ASSERT(n >= 1 && n <= HF_PAST_PARTS);
    hf_args_init(&a, FIXED_ARGS + 2 * n, FIXED_ARGS);
    hf_args_text(&a, args->worker);
    hf_args_int(&a, (int64_t)args->number);
    hf_args_int(&a, args->minute);
    hf_args_int(&a, args->keep_ms);
    for (size_t i = 0; i < n; i++) {
        hf_args_text(&a, parts[i].type);
        hf_args_text(&a, parts[i].sums);
    }
    return hf_queue_send(client, queue, &hf_lua_queue_past, &a, 0, cb, arg);
}

hf_err hf_past_read(const hf_answer *answer, int64_t *now_ms)
{
    *now_ms = 0;
    return hf_send_script_status(answer, 2, now_ms);
}
