/* zone.c - see zone.h. Of a file of version 2 or later only the second part is read,
 * whose times have 64 bits, and the rule after it. */
#include "cron/zone.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/detail.h"
#include "base/mask.h"
#include "cron/zone_rule.h"

enum { HEADER_LEN = 44, TYPE_LEN = 6, PATH_SIZE = 1024, OFFSET_MAX_S = 26 * 3600 };

/* Which file was read. */
typedef struct identity {
    dev_t dev;
    ino_t ino;
    off_t size;
    struct timespec changed;
} identity;

struct hf_zone {
    identity file; /* zeros: of none */
    size_t n;
    int64_t *times;   /* owned; when the offset changes, n of them, rising */
    int32_t *offsets; /* owned; n + 1: the first holds before all times */
    bool has_rule;    /* for what comes after the last time */
    hf_zone_rule rule;
};

/* ---- the file's format ---- */

typedef struct header {
    char version;
    size_t n_utc, n_std, n_leaps, n_times, n_types, n_chars;
} header;

/* Bytes that are left to be read. */
typedef struct bytes {
    const unsigned char *at;
    size_t left;
} bytes;

static int64_t number_at(const unsigned char *at, size_t len)
{
    uint64_t value = (at[0] & 0x80) != 0 ? UINT64_MAX : 0;
    for (size_t i = 0; i < len; i++)
        value = value << 8 | at[i];
    return (int64_t)value;
}

/* The next n bytes, or NULL. */
static const unsigned char *take(bytes *b, size_t n)
{
    if (b->left < n)
        return NULL;
    b->at += n;
    b->left -= n;
    return b->at - n;
}

static bool take_header(bytes *b, header *out)
{
    size_t *const counts[] = {&out->n_utc,   &out->n_std,   &out->n_leaps,
                              &out->n_times, &out->n_types, &out->n_chars};
    const unsigned char *at = take(b, HEADER_LEN);
    if (at == NULL || memcmp(at, "TZif", 4) != 0)
        return false;
    out->version = (char)at[4];
    for (size_t i = 0; i < HF_COUNT(counts); i++) {
        int64_t count = number_at(at + 20 + 4 * i, 4);
        if (count < 0 || count > HF_ZONE_FILE_MAX)
            return false;
        *counts[i] = (size_t)count;
    }
    return out->n_types > 0 && out->n_types <= 256;
}

/* What of a part follows its times and types. */
static size_t rest_of(const header *h, size_t time_len)
{
    return h->n_chars + h->n_leaps * (time_len + 4) + h->n_std + h->n_utc;
}

static bool put_offset(hf_zone *zone, size_t place, const unsigned char *type)
{
    int64_t offset = number_at(type, 4);
    if (offset < -OFFSET_MAX_S || offset > OFFSET_MAX_S)
        return false;
    zone->offsets[place] = (int32_t)offset;
    return true;
}

/* One part: its header was read. */
static bool take_part(hf_zone *zone, bytes *b, const header *h, size_t time_len)
{
    const unsigned char *times = take(b, h->n_times * time_len);
    const unsigned char *kinds = take(b, h->n_times);
    const unsigned char *types = take(b, h->n_types * TYPE_LEN);
    if (times == NULL || kinds == NULL || types == NULL ||
        take(b, rest_of(h, time_len)) == NULL || !put_offset(zone, 0, types))
        return false;
    for (size_t i = 0; i < h->n_times; i++) {
        zone->times[i] = number_at(times + i * time_len, time_len);
        if ((i > 0 && zone->times[i] <= zone->times[i - 1]) || kinds[i] >= h->n_types ||
            !put_offset(zone, i + 1, types + kinds[i] * (size_t)TYPE_LEN))
            return false;
    }
    zone->n = h->n_times;
    return true;
}

/* "\n<rule>\n"; an empty one means: not known. */
static bool take_rule(hf_zone *zone, bytes *b)
{
    const unsigned char *line = take(b, 1);
    const unsigned char *end = line == NULL ? NULL : memchr(b->at, '\n', b->left);
    if (end == NULL || *line != '\n')
        return false;
    zone->has_rule = end > b->at;
    return !zone->has_rule ||
           hf_zone_rule_parse(&zone->rule, (const char *)b->at, (size_t)(end - b->at));
}

static hf_err make(hf_zone **out, size_t n)
{
    hf_zone *zone = calloc(1, sizeof *zone);
    if (zone == NULL)
        return HF_NOMEM;
    zone->times = calloc(n + 1, sizeof *zone->times);
    zone->offsets = calloc(n + 1, sizeof *zone->offsets);
    if (zone->times == NULL || zone->offsets == NULL) {
        hf_zone_free(zone);
        return HF_NOMEM;
    }
    *out = zone;
    return HF_OK;
}

hf_err hf_zone_read(hf_zone **out, const void *data, size_t len,
                    char detail[HF_DETAIL_SIZE])
{
    bytes b = {data, len};
    header h;
    *out = NULL;
    bool ok = len <= HF_ZONE_FILE_MAX && take_header(&b, &h);
    size_t time_len = 4;
    if (ok && h.version != '\0') {
        time_len = 8;
        ok = take(&b, h.n_times * 5 + h.n_types * TYPE_LEN + rest_of(&h, 4)) != NULL &&
             take_header(&b, &h);
    }
    if (!ok || h.n_times * time_len > b.left)
        return hf_say(detail, HF_INVALID,
                      "expected a time zone file (TZif), found something else");
    if (h.n_leaps > 0)
        return hf_say(detail, HF_INVALID,
                      "expected a time zone without leap seconds, found one with them");
    hf_err err = make(out, h.n_times);
    if (err != HF_OK)
        return hf_say_err(detail, err);
    if (take_part(*out, &b, &h, time_len) && (time_len == 4 || take_rule(*out, &b)))
        return HF_OK;
    hf_zone_free(*out);
    *out = NULL;
    return hf_say(detail, HF_INVALID,
                  "expected a time zone file (TZif), found a damaged one");
}

void hf_zone_free(hf_zone *zone)
{
    if (zone == NULL)
        return;
    free(zone->times);
    free(zone->offsets);
    free(zone);
}

/* ---- the folder of the files ---- */

/* No name leads out of the folder: neither "/etc/passwd" nor "../x". */
static bool name_ok(const char *name)
{
    size_t len = strlen(name), part = 0;
    for (size_t i = 0; i <= len; i++) {
        char c = name[i];
        if (c == '/' || c == '\0') {
            if (part == 0 || name[i - part] == '.')
                return false;
            part = 0;
            continue;
        }
        if (!(c >= 'A' && c <= 'Z') && !(c >= 'a' && c <= 'z') &&
            !(c >= '0' && c <= '9') && strchr("_+-.", c) == NULL)
            return false;
        part++;
    }
    return len <= HF_ZONE_NAME_MAX;
}

static bool path_of(const char *name, char out[PATH_SIZE])
{
    const char *folder = getenv("TZDIR");
    if (folder == NULL || *folder == '\0')
        folder = "/usr/share/zoneinfo";
    int len = snprintf(out, PATH_SIZE, "%s/%s", folder, name);
    return len > 0 && len < PATH_SIZE;
}

static identity identity_of(const struct stat *s)
{
    return (identity){s->st_dev, s->st_ino, s->st_size, s->st_ctim};
}

static bool same_file(const identity *a, const identity *b)
{
    return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
           a->changed.tv_sec == b->changed.tv_sec &&
           a->changed.tv_nsec == b->changed.tv_nsec;
}

/* All of an open file, at most `max` bytes. -1: it cannot be read. */
static ssize_t read_all(int fd, unsigned char *out, size_t max)
{
    size_t len = 0;
    while (len < max) {
        ssize_t n = read(fd, out + len, max - len);
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        len += (size_t)n;
    }
    return (ssize_t)len;
}

static hf_err read_file(hf_zone **out, int fd, const struct stat *s,
                        char detail[HF_DETAIL_SIZE])
{
    if (!S_ISREG(s->st_mode))
        return hf_say(detail, HF_INVALID, "expected a time zone, found no file");
    if (s->st_size > HF_ZONE_FILE_MAX)
        return hf_say(detail, HF_INVALID, "expected a file of at most %d bytes",
                      HF_ZONE_FILE_MAX);
    unsigned char *data = malloc((size_t)s->st_size + 1);
    if (data == NULL)
        return hf_say_err(detail, HF_NOMEM);
    ssize_t len = read_all(fd, data, (size_t)s->st_size);
    hf_zone *zone = NULL;
    hf_err err = len < 0 ? hf_say(detail, HF_INVALID, "the file cannot be read")
                         : hf_zone_read(&zone, data, (size_t)len, detail);
    free(data);
    if (zone != NULL) {
        zone->file = identity_of(s);
        *out = zone;
    }
    return err;
}

hf_err hf_zone_open(hf_zone **out, const char *name, char detail[HF_DETAIL_SIZE])
{
    char path[PATH_SIZE], why[HF_DETAIL_SIZE] = "";
    struct stat s;
    *out = NULL;
    if (strcmp(name, "UTC") == 0) {
        hf_err made = make(out, 0);
        return made == HF_OK ? HF_OK : hf_say_err(detail, made);
    }
    if (!name_ok(name) || !path_of(name, path))
        return hf_say(detail, HF_INVALID,
                      "expected a time zone (Europe/Berlin, UTC), found '%s'",
                      HF_FOUND(name));
    /* Without O_NONBLOCK a pipe of this name would stop the caller. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &s) != 0) {
        if (fd >= 0)
            close(fd);
        return hf_say(detail, HF_INVALID,
                      "expected a time zone (Europe/Berlin, UTC), found '%s'",
                      HF_FOUND(name));
    }
    hf_err err = read_file(out, fd, &s, why);
    close(fd);
    return err == HF_OK
               ? HF_OK
               : hf_say(detail, err, "time zone '%s': %.100s", HF_FOUND(name), why);
}

bool hf_zone_is_current(const hf_zone *zone, const char *name)
{
    char path[PATH_SIZE];
    struct stat s;
    if (zone->file.ino == 0 || !path_of(name, path) || stat(path, &s) != 0)
        return true;
    identity now = identity_of(&s);
    return same_file(&zone->file, &now);
}

/* ---- spans ---- */

/* How many of the changes are not after this time. */
static size_t changes_until(const hf_zone *zone, int64_t unix_s)
{
    size_t low = 0, high = zone->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (zone->times[middle] <= unix_s)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

hf_zone_span hf_zone_span_at(const hf_zone *zone, int64_t unix_s)
{
    hf_zone_span span = {INT64_MIN, INT64_MAX, 0};
    if (zone == NULL)
        return span;
    size_t place = changes_until(zone, unix_s);
    if (place == zone->n && zone->has_rule)
        span = hf_zone_rule_span(&zone->rule, unix_s);
    else
        span.offset = zone->offsets[place];
    if (place > 0 && span.from < zone->times[place - 1])
        span.from = zone->times[place - 1];
    if (place < zone->n)
        span.until = zone->times[place];
    return span;
}
