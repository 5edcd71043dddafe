/* value.c - see value.h. Every type of the table is a case in each of the switches below.
 */
#include "config/value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/detail.h"
#include "base/id.h"
#include "base/listen.h"
#include "base/mask.h"
#include "base/text.h"
#include "cron/expr.h"
#include "holdfast/server.h"

static const int64_t KIB = 1024, MIB = 1024 * 1024;

char **hf_value_text(const hf_key *key, void *base)
{
    return (char **)(void *)((char *)base + key->offset);
}

char ***hf_value_words(const hf_key *key, void *base)
{
    return (char ***)(void *)((char *)base + key->offset);
}

/* The ranges of the table make every cast exact. */
static void put_number(const hf_key *key, void *base, int64_t number)
{
    void *at = (char *)base + key->offset;
    if (key->size == sizeof(int64_t))
        *(int64_t *)at = number;
    else if (key->size == sizeof(uint32_t)) /* or an enum */
        *(uint32_t *)at = (uint32_t)number;
    else
        *(bool *)at = number != 0;
}

static double *real_of(const hf_key *key, void *base)
{
    return (double *)(void *)((char *)base + key->offset);
}

static bool is_list(const hf_key *key)
{
    return key->type == HF_KEY_WORDS || key->type == HF_KEY_PLACES ||
           key->type == HF_KEY_ENV;
}

static bool is_text(const hf_key *key)
{
    return key->type == HF_KEY_TEXT || key->type == HF_KEY_NAME ||
           key->type == HF_KEY_JOB_TYPE || key->type == HF_KEY_URL ||
           key->type == HF_KEY_ENDPOINT || key->type == HF_KEY_CRON ||
           key->type == HF_KEY_ZONE || key->type == HF_KEY_LISTEN;
}

/* ---- reading ---- */

/* The place of a word in "a|b|c", or -1. */
static int64_t choice_of(const char *choices, const char *word)
{
    size_t len = strlen(word);
    int64_t place = 0;
    for (const char *at = choices;; place++) {
        size_t here = strcspn(at, "|");
        if (here == len && memcmp(at, word, len) == 0)
            return place;
        if (at[here] == '\0')
            return -1;
        at += here + 1;
    }
}

/* Digits with at most one point: not what strtod() takes beyond that (nan, hex,
 * exponents). */
static bool parse_real(const char *text, double *out)
{
    size_t digits = strspn(text, "0123456789");
    const char *rest = text + digits;
    if (*rest == '.') {
        size_t more = strspn(rest + 1, "0123456789");
        if (more == 0)
            return false;
        rest += 1 + more;
    }
    if (digits == 0 || *rest != '\0' || rest - text > 32)
        return false;
    *out = strtod(text, NULL);
    return true;
}

static bool parse_number(const hf_key *key, const char *text, int64_t *out)
{
    bool good = false;
    if (key->type == HF_KEY_TIME)
        return hf_parse_time_ms(text, out) && *out > 0;
    if (key->type == HF_KEY_INTEGER)
        good = hf_parse_int(text, key->min, key->max, out);
    else if (key->type == HF_KEY_DURATION)
        good = hf_parse_duration_ms(text, out);
    else if (key->type == HF_KEY_SIZE)
        good = hf_parse_size(text, out);
    return good && *out >= key->min && *out <= key->max;
}

static bool cron_ok(const char *text, char reason[HF_DETAIL_SIZE])
{
    hf_cron cron;
    int64_t at_s;
    if (hf_cron_parse(&cron, text, reason) != HF_OK)
        return false;
    if (hf_cron_next(&cron, NULL, hf_wall_ms() / 1000, &at_s))
        return true;
    (void)hf_say(reason, HF_INVALID, "cron '%s': expected a tick within %d years",
                 HF_FOUND(text), HF_CRON_YEARS);
    return false;
}

static bool zone_ok(const char *name, char reason[HF_DETAIL_SIZE])
{
    hf_zone *zone = NULL;
    hf_err err = hf_zone_open(&zone, name, reason);
    hf_zone_free(zone);
    return err == HF_OK;
}

/* Its login would be in messages; a file has it (tracing.headers_file). */
static bool endpoint_ok(const char *url)
{
    size_t scheme = strncmp(url, "http://", 7) == 0    ? 7
                    : strncmp(url, "https://", 8) == 0 ? 8
                                                       : 0;
    const char *host = url + scheme;
    for (const char *p = url; *p != '\0'; p++)
        if ((unsigned char)*p <= ' ' || strchr("@?#\"<>\\", *p) != NULL)
            return false;
    return scheme != 0 && *host != '\0' && *host != '/' && *host != ':';
}

static bool text_ok(const hf_key *key, const char *text, char reason[HF_DETAIL_SIZE])
{
    hf_listen listen;
    if (key->type == HF_KEY_NAME)
        return hf_name_ok(text);
    if (key->type == HF_KEY_JOB_TYPE)
        return strcmp(text, "*") == 0 || hf_name_ok(text);
    if (key->type == HF_KEY_ENDPOINT)
        return endpoint_ok(text);
    if (key->type == HF_KEY_URL)
        return hf_url_check(text, reason) == HF_OK;
    if (key->type == HF_KEY_LISTEN)
        return hf_listen_read(&listen, text, reason) == HF_OK;
    if (key->type == HF_KEY_CRON)
        return cron_ok(text, reason);
    if (key->type == HF_KEY_ZONE)
        return zone_ok(text, reason);
    return *text != '\0';
}

static hf_err store_text(const hf_key *key, const char *text, void *base)
{
    char *copy = strdup(text);
    if (copy == NULL)
        return HF_NOMEM;
    free(*hf_value_text(key, base));
    *hf_value_text(key, base) = copy;
    return HF_OK;
}

hf_err hf_value_store(const hf_key *key, const char *text, void *base,
                      char reason[HF_DETAIL_SIZE])
{
    reason[0] = '\0';
    if (is_text(key))
        return text_ok(key, text, reason) ? store_text(key, text, base) : HF_INVALID;
    if (key->type == HF_KEY_NUMBER) {
        double real = 0;
        if (!parse_real(text, &real) || real < (double)key->min ||
            real > (double)key->max)
            return HF_INVALID;
        *real_of(key, base) = real;
        return HF_OK;
    }
    int64_t number = 0;
    if (key->type == HF_KEY_CHOICE) {
        number = choice_of(key->choices, text);
        if (number < 0)
            return HF_INVALID;
    } else if (!parse_number(key, text, &number)) {
        return HF_INVALID;
    }
    put_number(key, base, number);
    return HF_OK;
}

static bool env_name_ok(const char *word)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
    if (*word == '\0' || strchr(letters, *word) == NULL)
        return false;
    return word[strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
                             "0123456789")] == '\0';
}

/* Nothing that means something else in a URL. */
static bool place_ok(const char *word)
{
    char url[HF_DETAIL_SIZE], unread[HF_DETAIL_SIZE];
    if (*word == '\0' || *word == ':' || strpbrk(word, "/,@") != NULL)
        return false;
    int n = snprintf(url, sizeof url, "redis://%s", word);
    return n < (int)sizeof url && hf_url_check(url, unread) == HF_OK;
}

bool hf_value_word_ok(const hf_key *key, const char *word, size_t i)
{
    if (key->type == HF_KEY_ENV)
        return env_name_ok(word);
    if (key->type == HF_KEY_PLACES)
        return place_ok(word);
    return i > 0 || *word != '\0';
}

/* ---- whole structs ---- */

void hf_value_free_all(hf_key_owner owner, void *base)
{
    size_t n;
    const hf_key *keys = hf_schema(&n);
    for (size_t i = 0; i < n; i++) {
        if (keys[i].owner != owner)
            continue;
        if (is_text(&keys[i])) {
            free(*hf_value_text(&keys[i], base));
            *hf_value_text(&keys[i], base) = NULL;
        } else if (is_list(&keys[i])) {
            char **words = *hf_value_words(&keys[i], base);
            for (size_t k = 0; words != NULL && words[k] != NULL; k++)
                free(words[k]);
            free(words);
            *hf_value_words(&keys[i], base) = NULL;
        }
    }
}

hf_err hf_value_preset_all(hf_key_owner owner, void *base)
{
    char reason[HF_DETAIL_SIZE];
    size_t n;
    const hf_key *keys = hf_schema(&n);
    for (size_t i = 0; i < n; i++) {
        if (keys[i].owner != owner || keys[i].preset == NULL)
            continue;
        hf_err err = hf_value_store(&keys[i], keys[i].preset, base, reason);
        HF_ASSERT(err != HF_INVALID);
        if (err != HF_OK)
            return err;
    }
    return HF_OK;
}

/* ---- saying what is expected ---- */

static void add_quantity(const hf_key *key, int64_t value, hf_buf *out)
{
    if (key->type == HF_KEY_DURATION && value != 0) {
        char text[HF_DURATION_SIZE];
        hf_format_duration(value, text);
        hf_buf_text(out, text);
    } else if (key->type == HF_KEY_SIZE && value != 0 && value % MIB == 0) {
        hf_buf_printf(out, "%lldMiB", (long long)(value / MIB));
    } else if (key->type == HF_KEY_SIZE && value != 0 && value % KIB == 0) {
        hf_buf_printf(out, "%lldKiB", (long long)(value / KIB));
    } else {
        hf_buf_printf(out, "%lld", (long long)value);
    }
}

void hf_value_range(const hf_key *key, hf_buf *out)
{
    if (key->type == HF_KEY_CHOICE) {
        for (const char *at = key->choices;;) {
            size_t len = strcspn(at, "|");
            hf_buf_add(out, at, len);
            if (at[len] == '\0')
                return;
            at += len + 1;
            hf_buf_text(out, strchr(at, '|') != NULL ? ", " : " or ");
        }
    }
    if (key->type >= HF_KEY_INTEGER) {
        add_quantity(key, key->min, out);
        hf_buf_text(out, " to ");
        add_quantity(key, key->max, out);
    } else if (key->max > 0 && key->min > 0) {
        hf_buf_printf(out, "%lld to %lld entries", (long long)key->min,
                      (long long)key->max);
    } else if (key->max > 0) {
        hf_buf_printf(out, "at most %lld entries", (long long)key->max);
    } else if (key->type == HF_KEY_NAME || key->type == HF_KEY_JOB_TYPE) {
        hf_buf_text(out, "1 to 128 of A-Z a-z 0-9 . _ : -");
    }
}

void hf_value_expected(const hf_key *key, hf_buf *out)
{
    static const char *const words[] = {
        [HF_KEY_MAPPING] = "a mapping",
        [HF_KEY_QUEUES] = "a list of mappings, ",
        [HF_KEY_HANDLERS] = "a list of mappings, ",
        [HF_KEY_TYPES] = "a mapping from types to options, ",
        [HF_KEY_SCHEDULES] = "a list of mappings, ",
        [HF_KEY_TEXT] = "a text that is not empty",
        [HF_KEY_NAME] = "a name, ",
        [HF_KEY_JOB_TYPE] = "\"*\" or a name, ",
        [HF_KEY_URL] = "the URL of a Redis",
        [HF_KEY_LISTEN] = "an address as 127.0.0.1:9464, [::1]:9464 or unix:PATH",
        [HF_KEY_ENDPOINT] = "a URL of http or https without a login",
        [HF_KEY_CRON] = "a cron expression (minute hour day month weekday)",
        [HF_KEY_ZONE] = "a time zone (Europe/Berlin, UTC)",
        [HF_KEY_TIME] = "a time with its zone (2030-01-31T08:00:00Z)",
        [HF_KEY_WORDS] = "a program and its arguments as a list of ",
        [HF_KEY_PLACES] = "a list of \"host\" or \"host:port\", ",
        [HF_KEY_ENV] = "\"all\" or a list of names of environment variables, ",
        [HF_KEY_INTEGER] = "an integer from ",
        [HF_KEY_DURATION] = "a duration with its unit (ms s m h d) from ",
        [HF_KEY_SIZE] = "a size (bytes, or with KiB MiB GiB) from ",
        [HF_KEY_CHOICE] = "",
        [HF_KEY_NUMBER] = "a number from ",
    };
    hf_buf_text(out, words[key->type]);
    hf_value_range(key, out);
}
