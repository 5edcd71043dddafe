/* ready.c - worker/pool/ready.h. */
#include "worker/pool/ready.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/base.h"
#include "base/detail.h"
#include "base/id.h"
#include "base/json_text.h"
#include "base/mask.h"
#include "base/text.h"
#include "queue/schedule.h"

#define DAY_MS INT64_C(86400000)

#define A_NAME "1 to 128 of A-Z a-z 0-9 . _ : -"

/* ---- one object of the line ---- */

/* A value as it is written. */
typedef struct raw {
    const char *ptr; /* NULL: not named, or null */
    size_t len;
} raw;

/* What is read, and how a sentence begins. After the first fault nothing is read. */
typedef struct reader {
    raw object;
    char place[HF_FOUND_SIZE + 24];
    char *detail;
    hf_err err;
} reader;

/* The last value counts. */
static raw find(const reader *r, const char *name)
{
    raw value = {NULL, 0};
    hf_json_scan scan;
    hf_json_member m;
    if (r->object.ptr == NULL)
        return value;
    hf_json_scan_start(&scan, r->object.ptr, r->object.len);
    while (hf_json_scan_next(&scan, &m)) {
        char key[24];
        size_t n = hf_json_text(m.key, m.key_len, key, sizeof key);
        if (n == strlen(name) && memcmp(key, name, n) == 0)
            value = *m.value == 'n' ? (raw){NULL, 0} : (raw){m.value, m.value_len};
    }
    return value;
}

static void refuse(reader *r, const char *expected, const char *name, raw found)
{
    char text[HF_FOUND_SIZE] = "none";
    if (r->err != HF_OK)
        return;
    if (found.ptr != NULL)
        (void)snprintf(text, sizeof text, "%.*s",
                       (int)(found.len < sizeof text ? found.len : sizeof text - 1),
                       found.ptr);
    hf_text_plain(text);
    r->err = hf_say(r->detail, HF_INVALID, "%s: expected %s as `%s`, found %s", r->place,
                    expected, name, HF_FOUND(text));
}

/* Within min..max; else 0, which may also mean that it is not named. */
static int64_t number(reader *r, const char *name, int64_t min, int64_t max)
{
    char expected[80];
    int64_t value = 0;
    raw found = find(r, name);
    if (found.ptr == NULL ||
        (hf_json_integer(found.ptr, found.len, &value) && value >= min && value <= max))
        return value;
    (void)snprintf(expected, sizeof expected, "a whole number from %lld to %lld",
                   (long long)min, (long long)max);
    refuse(r, expected, name, found);
    return 0;
}

/* A text without a NUL that fits; else "". */
static void text(reader *r, const char *name, const char *expected, char *out,
                 size_t size)
{
    enum { CHARACTER = 4 };
    char room[HF_CRON_TEXT_MAX + 1 + CHARACTER];
    raw found = find(r, name);
    size_t n = 0;
    HF_ASSERT(size + CHARACTER <= sizeof room);
    if (found.ptr != NULL && *found.ptr == '"')
        n = hf_json_text(found.ptr, found.len, room, size + CHARACTER);
    bool fits = found.ptr == NULL ||
                (*found.ptr == '"' && n < size && memchr(room, '\0', n) == NULL);
    n = fits ? n : 0;
    memcpy(out, room, n);
    out[n] = '\0';
    if (!fits)
        refuse(r, expected, name, found);
}

/* A name, or "" if it may be missing and is. */
static void name_of(reader *r, const char *name, bool required, char out[HF_ID_SIZE])
{
    text(r, name, A_NAME, out, HF_ID_SIZE);
    raw found = find(r, name);
    if ((required || found.ptr != NULL) && !hf_name_ok(out))
        refuse(r, A_NAME, name, found);
}

/* The place of a word in the list; 0 if it is not named. */
static int word(reader *r, const char *name, const char *const words[3],
                const char *expected)
{
    char found[24];
    text(r, name, expected, found, sizeof found);
    for (int i = 0; i < 3; i++)
        if (words[i] != NULL && strcmp(found, words[i]) == 0)
            return i;
    if (found[0] != '\0')
        refuse(r, expected, name, find(r, name));
    return 0;
}

/* A member that is an object or an array; the other reader has no object if it is not
 * named. */
static reader inside(reader *r, const char *name, char opening)
{
    reader in = *r;
    in.object = find(r, name);
    if (in.object.ptr != NULL && *in.object.ptr != opening) {
        refuse(r, opening == '{' ? "an object" : "an array", name, in.object);
        in.object = (raw){NULL, 0};
        in.err = r->err;
    }
    return in;
}

/* ---- a type ---- */

/* Members as in `retry` of the configuration. */
static void read_retry(reader *r, hf_ready_type *t)
{
    static const char *const words[3] = {"exponential", "linear", "constant"};
    reader in = inside(r, "retry", '{');
    t->has_backoff = find(&in, "backoff").ptr != NULL;
    t->backoff =
        (hf_backoff_kind)word(&in, "backoff", words, "exponential, linear or constant");
    t->backoff_base_ms = (uint32_t)number(&in, "base", 1, DAY_MS);
    t->backoff_cap_ms = (uint32_t)number(&in, "cap", 1, 30 * DAY_MS);
    if (t->backoff_cap_ms != 0 && t->backoff_cap_ms < t->backoff_base_ms)
        refuse(&in, "not less than `base`", "cap", find(&in, "cap"));
    raw jitter = find(&in, "jitter");
    if (jitter.ptr != NULL) {
        json_t *value = json_loadb(jitter.ptr, jitter.len, JSON_DECODE_ANY, NULL);
        double part = json_number_value(value);
        if (!json_is_number(value) || !(part >= 0 && part <= 1))
            refuse(&in, "0 to 1", "jitter", jitter);
        t->backoff_jitter = part == 0 ? HF_JITTER_NONE : part;
        json_decref(value);
    }
    if (r->err == HF_OK)
        r->err = in.err;
}

static void read_type(reader *r, hf_ready_type *t)
{
    name_of(r, "type", true, t->type);
    if (r->err == HF_OK)
        (void)snprintf(r->place, sizeof r->place, "type '%s'", HF_FOUND(t->type));
    name_of(r, "queue", false, t->queue);
    name_of(r, "on_dead", false, t->on_dead);
    t->has_timeout = find(r, "timeout").ptr != NULL;
    t->timeout_ms = (uint32_t)number(r, "timeout", 0, 30 * DAY_MS);
    t->max_attempts = (uint32_t)number(r, "max_attempts", 1, 1000000);
    bool has_keep = find(r, "keep").ptr != NULL;
    t->keep_ms = number(r, "keep", 0, HF_DELAY_MAX_MS);
    if (has_keep && t->keep_ms == 0)
        t->keep_ms = HF_KEEP_NONE;
    read_retry(r, t);
}

/* ---- a schedule ---- */

/* A text is taken as it is, any other value as JSON. */
static void read_payload(reader *r, hf_ready_schedule *s)
{
    raw found = find(r, "payload");
    hf_json_fault fault;
    size_t n = 0;
    if (found.ptr == NULL || r->err != HF_OK)
        return;
    s->payload = malloc(found.len);
    if (s->payload == NULL) {
        r->err = hf_say_err(r->detail, HF_NOMEM);
        return;
    }
    bool good = hf_json_check(found.ptr, found.len, &fault);
    if (good && *found.ptr == '"')
        good = hf_json_decode(found.ptr, found.len, s->payload, &n);
    else if (good)
        n = hf_json_compact(found.ptr, found.len, s->payload);
    if (!good)
        refuse(r, "UTF-8", "payload", (raw){NULL, 0});
    s->schedule.payload_len = n;
}

/* The type and the options of its jobs, as a record has them. */
static void read_job(reader *r, hf_ready_schedule *s)
{
    static const char *const priorities[3] = {"normal", "high", "low"};
    static const char *const ends[3] = {"drop", "dead", NULL};
    hf_schedule *to = &s->schedule;
    reader in = inside(r, "job", '{');
    name_of(&in, "type", true, s->type);
    name_of(&in, "on_dead", false, s->on_dead);
    to->priority = (hf_priority)word(&in, "priority", priorities, "normal, high or low");
    to->expired = (hf_expired)word(&in, "expired", ends, "drop or dead");
    to->max_attempts = (uint32_t)number(&in, "max_attempts", 1, 1000000);
    to->timeout_ms = (uint32_t)number(&in, "timeout", 1, 30 * DAY_MS);
    to->keep_ms = number(&in, "keep", 1, HF_DELAY_MAX_MS);
    to->start_within_ms = number(&in, "start_within", 1, HF_DELAY_MAX_MS);
    read_payload(&in, s);
    if (r->err == HF_OK)
        r->err = in.err;
}

/* After it was read or moved. */
static void point_to_own(hf_ready_schedule *s)
{
    hf_schedule *to = &s->schedule;
    to->id = s->id;
    to->type = s->type;
    to->queue = s->queue[0] == '\0' ? NULL : s->queue;
    to->on_dead = s->on_dead[0] == '\0' ? NULL : s->on_dead;
    to->cron = s->cron[0] == '\0' ? NULL : s->cron;
    to->tz = s->tz[0] == '\0' ? NULL : s->tz;
    to->payload = s->payload;
}

static void read_schedule(reader *r, hf_ready_schedule *s)
{
    static const char *const missed[3] = {"once", "all", "skip"};
    static const char *const overlap[3] = {"skip", "allow", "cancel"};
    hf_schedule *to = &s->schedule;
    *to = (hf_schedule){HF_SCHEDULE_INIT};
    name_of(r, "id", true, s->id);
    if (r->err == HF_OK)
        (void)snprintf(r->place, sizeof r->place, "schedule '%s'", HF_FOUND(s->id));
    name_of(r, "queue", false, s->queue);
    text(r, "cron", "a cron expression", s->cron, sizeof s->cron);
    text(r, "tz", "a time zone", s->tz, sizeof s->tz);
    to->every_ms = number(r, "every", HF_EVERY_MIN_MS, 3650 * DAY_MS);
    to->missed = (hf_missed)word(r, "missed", missed, "once, all or skip");
    to->overlap = (hf_overlap)word(r, "overlap", overlap, "skip, allow or cancel");
    to->catch_up_ms = number(r, "catch_up", 1, 30 * DAY_MS);
    to->jitter_ms = number(r, "jitter", 0, DAY_MS);
    to->start_ms = number(r, "start", 0, HF_TIME_MAX_MS);
    to->end_ms = number(r, "end", 0, HF_TIME_MAX_MS);
    to->limit = number(r, "limit", 0, INT64_C(1000000000000));
    to->rev = number(r, "rev", 0, INT64_C(1000000000000));
    read_job(r, s);
    point_to_own(s);
    if (r->err == HF_OK)
        r->err = hf_schedule_check(to, r->detail);
}

/* ---- lists ---- */

static size_t count(raw array)
{
    size_t n = 0;
    hf_json_scan scan;
    hf_json_member item;
    if (array.ptr == NULL)
        return 0;
    hf_json_scan_start(&scan, array.ptr, array.len);
    while (hf_json_scan_item(&scan, &item))
        n++;
    return n;
}

/* How the entries of one list are read. */
typedef struct list {
    const char *name, *one;
    size_t size, max;
    void (*read)(reader *r, void *entry);
    int (*compare)(const void *a, const void *b);
} list;

static int compare_types(const void *a, const void *b)
{
    return strcmp(((const hf_ready_type *)a)->type, ((const hf_ready_type *)b)->type);
}

static int compare_schedules(const void *a, const void *b)
{
    const hf_ready_schedule *x = a, *y = b;
    const char *in = x->queue[0] == '\0' ? "default" : x->queue;
    int order = strcmp(in, y->queue[0] == '\0' ? "default" : y->queue);
    return order != 0 ? order : strcmp(x->id, y->id);
}

static void read_one_type(reader *r, void *entry)
{
    read_type(r, entry);
}

static void read_one_schedule(reader *r, void *entry)
{
    read_schedule(r, entry);
}

static const list type_list = {
    "types",       "type",       sizeof(hf_ready_type), HF_READY_TYPES_MAX,
    read_one_type, compare_types};
static const list schedule_list = {"schedules",
                                   "schedule",
                                   sizeof(hf_ready_schedule),
                                   HF_READY_SCHEDULES_MAX,
                                   read_one_schedule,
                                   compare_schedules};

static const char *name_of_entry(const list *l, const void *entry)
{
    return l == &type_list ? ((const hf_ready_type *)entry)->type
                           : ((const hf_ready_schedule *)entry)->id;
}

/* Equal neighbours of a sorted list are the same entry twice. */
static void check_twice(reader *r, const list *l, const char *entries, size_t n)
{
    for (size_t i = 1; i < n && r->err == HF_OK; i++) {
        const void *entry = entries + i * l->size;
        if (l->compare(entries + (i - 1) * l->size, entry) == 0)
            r->err =
                hf_say(r->detail, HF_INVALID, "expected each %s once, found '%s' twice",
                       l->one, HF_FOUND(name_of_entry(l, entry)));
    }
}

/* The entries are owned by the caller also after a fault; those that were not read are
 * zero. */
static void *read_list(reader *r, const list *l, size_t *n)
{
    reader in = inside(r, l->name, '[');
    hf_json_scan scan;
    hf_json_member item;
    size_t found = count(in.object);
    *n = 0;
    if (r->err == HF_OK && found > l->max)
        r->err = hf_say(r->detail, HF_INVALID, "expected at most %zu %s, found %zu",
                        l->max, l->name, found);
    if (r->err != HF_OK)
        return NULL;
    char *entries = calloc(found + 1, l->size);
    if (entries == NULL) {
        r->err = hf_say_err(r->detail, HF_NOMEM);
        return NULL;
    }
    if (found > 0)
        hf_json_scan_start(&scan, in.object.ptr, in.object.len);
    for (; *n < found && r->err == HF_OK && hf_json_scan_item(&scan, &item); (*n)++) {
        reader one = {.object = {item.value, item.value_len}, .detail = r->detail};
        (void)snprintf(one.place, sizeof one.place, "%s[%zu]", l->name, *n);
        if (*item.value != '{')
            refuse(&one, "an object", l->name, one.object);
        else
            l->read(&one, entries + *n * l->size);
        r->err = one.err;
    }
    if (r->err == HF_OK)
        qsort(entries, *n, l->size, l->compare);
    check_twice(r, l, entries, *n);
    return entries;
}

/* ---- all of it ---- */

static void read_version(reader *r)
{
    raw found = find(r, "v");
    if (number(r, "v", 1, HF_JSON_INTEGER_MAX) == HF_READY_VERSION || r->err != HF_OK)
        return;
    r->err = hf_say(r->detail, HF_INVALID,
                    "expected version %d of the protocol pipe as `v`, found %.*s",
                    HF_READY_VERSION, found.ptr == NULL ? 4 : (int)found.len,
                    found.ptr == NULL ? "none" : found.ptr);
}

static void read_client(reader *r, char out[HF_READY_CLIENT_MAX + 1])
{
    raw found = find(r, "client");
    size_t n = 0;
    if (found.ptr != NULL && *found.ptr != '"')
        refuse(r, "a text", "client", found);
    else if (found.ptr != NULL)
        n = hf_json_text(found.ptr, found.len, out, HF_READY_CLIENT_MAX);
    out[n] = '\0';
    hf_text_plain(out);
}

hf_err hf_ready_read(hf_ready **out, const char *line, size_t len,
                     char detail[HF_DETAIL_SIZE])
{
    reader r = {.object = {line, len}, .place = "ready", .detail = detail};
    hf_ready *ready = calloc(1, sizeof *ready);
    if (ready == NULL)
        return hf_say_err(detail, HF_NOMEM);
    read_version(&r);
    read_client(&r, ready->client);
    ready->parallel = (uint32_t)number(&r, "parallel", 1, HF_READY_PARALLEL_MAX);
    if (ready->parallel == 0)
        ready->parallel = 1;
    ready->types = read_list(&r, &type_list, &ready->n_types);
    ready->schedules = read_list(&r, &schedule_list, &ready->n_schedules);
    for (size_t i = 0; i < ready->n_schedules; i++)
        point_to_own(&ready->schedules[i]);
    if (r.err == HF_OK && ready->n_types == 0)
        r.err = hf_say(detail, HF_INVALID, "expected at least one entry in `types`");
    if (r.err != HF_OK)
        hf_ready_free(ready);
    else
        *out = ready;
    return r.err;
}

void hf_ready_free(hf_ready *ready)
{
    if (ready == NULL)
        return;
    for (size_t i = 0; i < ready->n_schedules; i++)
        free(ready->schedules[i].payload);
    free(ready->schedules);
    free(ready->types);
    free(ready);
}

/* ---- two of them ---- */

static bool same_type(const hf_ready_type *a, const hf_ready_type *b)
{
    return strcmp(a->type, b->type) == 0 && strcmp(a->queue, b->queue) == 0 &&
           strcmp(a->on_dead, b->on_dead) == 0 && a->has_timeout == b->has_timeout &&
           a->timeout_ms == b->timeout_ms && a->max_attempts == b->max_attempts &&
           a->keep_ms == b->keep_ms && a->has_backoff == b->has_backoff &&
           a->backoff == b->backoff && a->backoff_base_ms == b->backoff_base_ms &&
           a->backoff_cap_ms == b->backoff_cap_ms &&
           a->backoff_jitter == b->backoff_jitter;
}

/* By what goes to Redis. */
static bool same_schedule(const hf_ready_schedule *a, const hf_ready_schedule *b)
{
    hf_buf x, y;
    hf_buf_init(&x, HF_PAYLOAD_CEILING);
    hf_buf_init(&y, HF_PAYLOAD_CEILING);
    hf_schedule_write(&x, &a->schedule);
    hf_schedule_write(&y, &b->schedule);
    bool same = compare_schedules(a, b) == 0 && a->schedule.rev == b->schedule.rev &&
                hf_buf_err(&x) == HF_OK && hf_buf_err(&y) == HF_OK && x.len == y.len &&
                memcmp(x.data, y.data, x.len) == 0;
    hf_buf_done(&x);
    hf_buf_done(&y);
    return same;
}

bool hf_ready_same(const hf_ready *a, const hf_ready *b)
{
    bool same = a->parallel == b->parallel && a->n_types == b->n_types &&
                a->n_schedules == b->n_schedules;
    for (size_t i = 0; same && i < a->n_types; i++)
        same = same_type(&a->types[i], &b->types[i]);
    for (size_t i = 0; same && i < a->n_schedules; i++)
        same = same_schedule(&a->schedules[i], &b->schedules[i]);
    return same;
}

const hf_ready_type *hf_ready_find(const hf_ready *ready, const char *type)
{
    size_t low = 0, high = ready->n_types;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = strcmp(ready->types[mid].type, type);
        if (order == 0)
            return &ready->types[mid];
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}
