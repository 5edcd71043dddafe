/* id.c - base/id.h. */
#include "base/id.h"

#include <string.h>

#include "base/clock.h"
#include "holdfast/job.h"

enum {
    HALF_BITS = 42, /* of an id: its time, and what tells it from others of that time */
    HALF_CHARS = HF_NEW_ID_LEN / 2,
    RANDOM_BITS = HALF_BITS - 1, /* the first bit: a line of a run */
    NEAR_MS = 1000,
    DAY_MS = 86400000,
    RUN_TIME_CHARS = 10,
    RUN_CHARS = 18 /* of an id of 26 characters; the others are the line's number */
};
#define HALF_MASK ((UINT64_C(1) << HALF_BITS) - 1)
#define OF_A_RUN (UINT64_C(1) << RANDOM_BITS)
/* The start of 2020: no clock that was ever set is before it, and no id begins with `-`.
 */
#define EARLIEST_MS UINT64_C(1577836800000)

/* Both in the order of their bytes. The second is Crockford's: no I, L, O, U. */
static const char base64[] =
    "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";
static const char base32[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '.' || c == '_' || c == ':' || c == '-';
}

bool hf_name_ok_n(const char *name, size_t len)
{
    if (name == NULL || len == 0 || len > HF_NAME_MAX)
        return false;
    for (size_t i = 0; i < len; i++)
        if (!is_name_char(name[i]))
            return false;
    return true;
}

bool hf_name_ok(const char *name)
{
    /* A longer one need not be measured to its end. */
    return name != NULL && hf_name_ok_n(name, strnlen(name, HF_NAME_MAX + 1));
}

/* ---- ids ---- */

void hf_id_text(uint64_t ms, uint64_t low, char out[HF_NEW_ID_SIZE])
{
    ms += low >> HALF_BITS;
    for (int i = HALF_CHARS - 1; i >= 0; i--) {
        out[i] = base64[ms & 63];
        out[HALF_CHARS + i] = base64[low & 63];
        ms >>= 6;
        low >>= 6;
    }
    out[HF_NEW_ID_LEN] = '\0';
}

hf_err hf_id_maker_init(hf_id_maker *maker)
{
    *maker = (hf_id_maker){.ms = 0};
    return hf_random_bytes(&maker->rng, sizeof maker->rng);
}

static uint64_t now_ms(void)
{
    int64_t ms = hf_wall_ms();
    return ms > (int64_t)EARLIEST_MS ? (uint64_t)ms : EARLIEST_MS;
}

static void begin_ms(hf_id_maker *maker, uint64_t ms)
{
    maker->ms = ms;
    maker->low = hf_rng_next(&maker->rng) >> (64 - RANDOM_BITS);
}

/* Within a ms they only count on: two makers then meet in a ms when their starts lie
 * closer together than they count, and not by each id again. */
void hf_id_next(hf_id_maker *maker, char out[HF_NEW_ID_SIZE])
{
    uint64_t now = now_ms();
    if (now > maker->ms)
        begin_ms(maker, now);
    else if (++maker->low == OF_A_RUN)
        begin_ms(maker, maker->ms + 1);
    hf_id_text(maker->ms, maker->low, out);
}

bool hf_id_maker_tells(const hf_id_maker *maker, int64_t unix_ms)
{
    int64_t apart = (int64_t)maker->ms - unix_ms;
    return apart >= -NEAR_MS && apart <= NEAR_MS;
}

static bool read_base64(const char *text, size_t n, uint64_t *value)
{
    *value = 0;
    for (size_t i = 0; i < n; i++) {
        const char *at = memchr(base64, text[i], sizeof base64 - 1);
        if (at == NULL)
            return false;
        *value = *value << 6 | (uint64_t)(at - base64);
    }
    return true;
}

int64_t hf_id_made_ms(const char *id)
{
    uint64_t ms, low;
    bool ours = strlen(id) == HF_NEW_ID_LEN && read_base64(id, HALF_CHARS, &ms) &&
                read_base64(id + HALF_CHARS, HALF_CHARS, &low);
    return ours && ms >= EARLIEST_MS && ms <= now_ms() + DAY_MS ? (int64_t)ms : 0;
}

/* ---- runs ---- */

/* The lowest 5*n bits of `value`, as n characters. */
static void put_base32(char *out, int n, uint64_t value)
{
    for (int i = n - 1; i >= 0; i--) {
        out[i] = base32[value & 31];
        value >>= 5;
    }
}

/* False: a character is not in the alphabet. Bits above the 64th are lost. */
static bool read_base32(const char *text, size_t n, uint64_t *value)
{
    *value = 0;
    for (size_t i = 0; i < n; i++) {
        const char *at = strchr(base32, text[i]);
        if (at == NULL || *at == '\0')
            return false;
        *value = *value << 5 | (uint64_t)(at - base32);
    }
    return true;
}

hf_err hf_run_name(char out[HF_RUN_NAME_SIZE])
{
    uint64_t bits[2];
    hf_err err = hf_random_bytes(bits, sizeof bits);
    if (err != HF_OK)
        return err;
    put_base32(out, RUN_TIME_CHARS, now_ms());
    put_base32(out + RUN_TIME_CHARS, 8, bits[0]);
    put_base32(out + RUN_TIME_CHARS + 8, 8, bits[1]);
    out[HF_RUN_NAME_LEN] = '\0';
    return HF_OK;
}

/* FNV-1a, then the final step of splitmix64: every bit of the text changes every bit of
 * the result.
 */
static uint64_t hash_text(const char *text, uint64_t salt)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325) ^ salt;
    for (; *text != '\0'; text++)
        h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    hf_rng rng = {h};
    return hf_rng_next(&rng);
}

/* True: a name as hf_run_name() makes them. */
static bool is_made(const char *run, uint64_t *ms)
{
    uint64_t rest;
    return strlen(run) == HF_RUN_NAME_LEN && read_base32(run, RUN_TIME_CHARS, ms) &&
           read_base32(run + RUN_TIME_CHARS, HF_RUN_NAME_LEN - RUN_TIME_CHARS, &rest) &&
           *ms >= EARLIEST_MS && *ms <= HALF_MASK;
}

void hf_id_of_run(const char *run, uint64_t n, char out[HF_RUN_ID_SIZE])
{
    uint64_t ms;
    if (is_made(run, &ms)) {
        uint64_t start = hash_text(run + RUN_TIME_CHARS, 0) >> (64 - RANDOM_BITS);
        hf_id_text(ms, (start | OF_A_RUN) + n, out);
        return;
    }
    put_base32(out, RUN_CHARS / 2, hash_text(run, 0));
    put_base32(out + RUN_CHARS / 2, RUN_CHARS / 2, hash_text(run, UINT64_C(1) << 63));
    put_base32(out + RUN_CHARS, HF_RUN_ID_SIZE - 1 - RUN_CHARS, n);
    out[HF_RUN_ID_SIZE - 1] = '\0';
}
