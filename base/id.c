/* id.c - base/id.h. */
#include "base/id.h"

#include <string.h>

#include "base/clock.h"
#include "base/random.h"
#include "holdfast/producer.h"

enum { TIME_CHARS = 10, RANDOM_CHARS = 16, RUN_CHARS = 18 };

/* Crockford's: no I, L, O, U, and in the order of their bytes, so that text sorts as
 * numbers. */
static const char alphabet[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

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

/* The lowest 5*n bits of `value`, as n characters. */
static void put_base32(char *out, int n, uint64_t value)
{
    for (int i = n - 1; i >= 0; i--) {
        out[i] = alphabet[value & 31];
        value >>= 5;
    }
}

hf_err hf_id_maker_init(hf_id_maker *maker)
{
    unsigned char seed[10];
    hf_err err = hf_random_bytes(seed, sizeof seed);
    if (err != HF_OK)
        return err;
    *maker = (hf_id_maker){.ms = 0};
    for (size_t i = 0; i < 2; i++)
        maker->hi = maker->hi << 8 | seed[i];
    for (size_t i = 2; i < sizeof seed; i++)
        maker->lo = maker->lo << 8 | seed[i];
    return HF_OK;
}

/* The 80 random bits only count on from their random start: no two makers come near each
 * other, and nothing has to be asked of the system for each id. */
static void count_on(hf_id_maker *maker)
{
    maker->lo++;
    if (maker->lo != 0)
        return;
    maker->hi = (maker->hi + 1) & 0xffff;
    if (maker->hi == 0)
        maker->ms++;
}

void hf_id_next(hf_id_maker *maker, char out[HF_NEW_ID_SIZE])
{
    uint64_t now = (uint64_t)hf_wall_ms();
    if (now > maker->ms)
        maker->ms = now;
    count_on(maker);
    put_base32(out, TIME_CHARS, maker->ms);
    /* 16 characters of 5 bits: the upper 8 hold `hi` and the upper 24 bits of `lo`. */
    put_base32(out + TIME_CHARS, RANDOM_CHARS / 2, maker->hi << 24 | maker->lo >> 40);
    put_base32(out + TIME_CHARS + RANDOM_CHARS / 2, RANDOM_CHARS / 2, maker->lo);
    out[HF_NEW_ID_LEN] = '\0';
}

/* FNV-1a, then the finish of splitmix64, so that every bit of the text reaches every bit.
 */
static uint64_t hash_text(const char *text, uint64_t salt)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325) ^ salt;
    for (; *text != '\0'; text++)
        h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    hf_rng rng = {h};
    return hf_rng_next(&rng);
}

void hf_id_of_run(const char *run, uint64_t n, char out[HF_NEW_ID_SIZE])
{
    if (strlen(run) == HF_NEW_ID_LEN) {
        memcpy(out, run, RUN_CHARS);
    } else {
        put_base32(out, RUN_CHARS / 2, hash_text(run, 0));
        put_base32(out + RUN_CHARS / 2, RUN_CHARS / 2, hash_text(run, UINT64_C(1) << 63));
    }
    put_base32(out + RUN_CHARS, HF_NEW_ID_LEN - RUN_CHARS, n);
    out[HF_NEW_ID_LEN] = '\0';
}
