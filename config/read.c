/* read.c - see read.h.
 *
 * The text is gone through twice: once as events, because a loaded document shows neither
 * aliases nor that another document follows; then as a document, whose nodes carry their
 * marks. The walk down the document looks every key up in the table (schema.c). */
#include "config/read.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "config/fault.h"
#include "config/nodes.h"
#include "config/scan.h"
#include "config/value.h"

enum { PATH_SIZE = 64 };

typedef struct reader {
    hf_fault fault;
    yaml_document_t document;
    hf_config *config;
} reader;

static hf_err read_mapping(reader *r, yaml_node_t *node, const char *path, void *base);
static hf_err check_once(reader *r, yaml_node_t *mapping, const yaml_node_pair_t *pair);

/* ---- nodes ---- */

static yaml_node_t *node_at(reader *r, int index)
{
    return yaml_document_get_node(&r->document, index);
}

static const char *scalar_text(const yaml_node_t *node)
{
    return (const char *)node->data.scalar.value;
}

/* The value of a key in a mapping, or NULL. */
static yaml_node_t *value_of(reader *r, yaml_node_t *mapping, const char *name)
{
    yaml_node_pair_t *pair = mapping->data.mapping.pairs.start;
    for (; pair < mapping->data.mapping.pairs.top; pair++) {
        yaml_node_t *key = node_at(r, pair->key);
        if (key->type == YAML_SCALAR_NODE && strcmp(scalar_text(key), name) == 0)
            return node_at(r, pair->value);
    }
    return NULL;
}

/* The k-th key of a mapping. */
static const yaml_node_t *key_at(reader *r, yaml_node_t *mapping, size_t k)
{
    return node_at(r, mapping->data.mapping.pairs.start[k].key);
}

static bool is_plain(const yaml_node_t *node)
{
    return node->type == YAML_SCALAR_NODE &&
           node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}

/* The forms of "no value" in YAML. */
static bool is_null(const yaml_node_t *node)
{
    static const char *const words[] = {"", "~", "null", "Null", "NULL"};
    for (size_t i = 0; is_plain(node) && i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(scalar_text(node), words[i]) == 0)
            return true;
    }
    return false;
}

/* ---- saying what is wrong ---- */

/* "a key of 'worker' (concurrency, lease, ...)" */
static hf_err unknown_key(reader *r, const char *path, const yaml_node_t *key)
{
    hf_buf expected;
    hf_buf_init(&expected, HF_CONFIG_DETAIL_SIZE);
    if (*path == '\0')
        hf_buf_text(&expected, "a key of the file (");
    else
        hf_buf_printf(&expected, "a key of '%s' (", path);
    size_t n;
    const hf_key *keys = hf_schema(&n);
    bool first = true;
    for (size_t i = 0; i < n; i++) {
        const char *child = hf_schema_child(&keys[i], path);
        if (child == NULL)
            continue;
        hf_buf_printf(&expected, "%s%s", first ? "" : ", ", child);
        first = false;
    }
    hf_buf_text(&expected, ")");
    char shown[HF_SHOWN_SIZE];
    hf_err err = hf_buf_err(&expected);
    if (err == HF_OK)
        err = hf_fault_at(&r->fault, key->start_mark, expected.data, "%s",
                          hf_fault_node(key, shown));
    hf_buf_done(&expected);
    return err;
}

static const char *time_needs(const hf_key *key, const yaml_node_t *node)
{
    bool is_text = key->type == HF_KEY_TIME && node->type == YAML_SCALAR_NODE;
    return is_text ? hf_time_needs((const char *)node->data.scalar.value) : "";
}

/* `found` NULL: the node speaks for itself. */
static hf_err bad_value(reader *r, const hf_key *key, const yaml_node_t *node,
                        const char *found)
{
    char shown[HF_SHOWN_SIZE];
    hf_buf expected;
    hf_buf_init(&expected, HF_CONFIG_DETAIL_SIZE);
    hf_value_expected(key, &expected);
    hf_err err = hf_buf_err(&expected);
    if (found == NULL)
        found = is_null(node) ? "nothing" : hf_fault_node(node, shown);
    if (err == HF_OK)
        err = hf_fault_at(&r->fault, node->start_mark, expected.data, "%s%s", found,
                          time_needs(key, node));
    hf_buf_done(&expected);
    return err;
}

/* The number of entries of a list. */
static hf_err read_length(reader *r, const hf_key *key, const yaml_node_t *node,
                          size_t *length)
{
    char found[HF_SHOWN_SIZE];
    if (node->type != YAML_SEQUENCE_NODE)
        return bad_value(r, key, node, NULL);
    long n = node->data.sequence.items.top - node->data.sequence.items.start;
    *length = (size_t)n;
    if (n >= key->min && n <= key->max)
        return HF_OK;
    snprintf(found, sizeof found, n == 0 ? "an empty list" : "%ld entries", n);
    return bad_value(r, key, node, found);
}

/* ---- values ---- */

/* A scalar that is there and has no NUL inside; else what to say of it. */
static const char *scalar_fault(const yaml_node_t *node)
{
    if (node->type != YAML_SCALAR_NODE)
        return NULL;
    return strlen(scalar_text(node)) == node->data.scalar.length
               ? NULL
               : "a text with a NUL in it";
}

static hf_err read_scalar(reader *r, const hf_key *key, yaml_node_t *node, void *base)
{
    char reason[HF_DETAIL_SIZE], shown[HF_SHOWN_SIZE], found[2 * HF_DETAIL_SIZE];
    const char *fault = scalar_fault(node);
    if (node->type != YAML_SCALAR_NODE || is_null(node) || fault != NULL)
        return bad_value(r, key, node, fault);
    if ((key->type == HF_KEY_INTEGER || key->type == HF_KEY_NUMBER) && !is_plain(node)) {
        snprintf(found, sizeof found, "the text %s", hf_fault_node(node, shown));
        return bad_value(r, key, node, found);
    }
    hf_err err = hf_value_store(key, scalar_text(node), base, reason);
    if (err != HF_INVALID)
        return err;
    /* A URL may carry a password: the message names the fault, but not the URL. */
    if (key->type == HF_KEY_URL || key->type == HF_KEY_CRON) {
        snprintf(found, sizeof found, "one that cannot be used (%s)", reason);
        return bad_value(r, key, node, found);
    }
    return bad_value(r, key, node, NULL);
}

static hf_err read_words(reader *r, const hf_key *key, yaml_node_t *node, void *base)
{
    size_t n = 0;
    hf_err err = read_length(r, key, node, &n);
    if (err != HF_OK)
        return err;
    const yaml_node_item_t *start = node->data.sequence.items.start;
    char **words = calloc(n + 1, sizeof *words);
    if (words == NULL)
        return HF_NOMEM;
    *hf_value_words(key, base) = words; /* freed with its owner from here on */
    for (size_t i = 0; i < n; i++) {
        yaml_node_t *item = node_at(r, start[i]);
        const char *fault = scalar_fault(item);
        if (item->type != YAML_SCALAR_NODE || is_null(item) || fault != NULL ||
            !hf_value_word_ok(key, scalar_text(item), i))
            return bad_value(r, key, item, fault);
        words[i] = strdup(scalar_text(item));
        if (words[i] == NULL)
            return HF_NOMEM;
    }
    return HF_OK;
}

/* ---- lists of mappings ---- */

typedef struct list_kind {
    const char *path;   /* of an entry */
    const char *what;   /* an entry, for people */
    const char *unique; /* the key that tells entries apart; NULL: none does */
    hf_key_owner owner;
    size_t size;
} list_kind;

static const list_kind queue_list = {"queues[]", "queue", "name", HF_IN_QUEUE,
                                     sizeof(hf_config_queue)};
static const list_kind schedule_list = {"schedules[]", "schedule", "id", HF_IN_SCHEDULE,
                                        sizeof(hf_schedule)};
static const list_kind handler_list = {"handlers[]", "handler", NULL, HF_IN_HANDLER,
                                       sizeof(hf_config_handler)};

static char *entry_name(const list_kind *kind, char *items, size_t i)
{
    return *hf_value_text(hf_schema_find(kind->path, kind->unique, strlen(kind->unique)),
                          items + i * kind->size);
}

static hf_err check_unique(reader *r, const list_kind *kind, yaml_node_t *list,
                           char *items, size_t i)
{
    char expected[HF_SHOWN_SIZE], shown[HF_SHOWN_SIZE];
    const char *name = entry_name(kind, items, i);
    for (size_t k = 0; k < i; k++) {
        if (strcmp(entry_name(kind, items, k), name) != 0)
            continue;
        yaml_node_item_t *start = list->data.sequence.items.start;
        yaml_node_t *first = value_of(r, node_at(r, start[k]), kind->unique);
        yaml_node_t *again = value_of(r, node_at(r, start[i]), kind->unique);
        snprintf(expected, sizeof expected, "each %s once", kind->what);
        return hf_fault_at(&r->fault, again->start_mark, expected,
                           "%s again (first on line %zu)", hf_fault_node(again, shown),
                           first->start_mark.line + 1);
    }
    return HF_OK;
}

/* Reads the entries into an array that *items and *n own from the start: a half-read
 * array is freed like a whole one. */
static hf_err read_list(reader *r, const hf_key *key, const list_kind *kind,
                        yaml_node_t *node, void **items, size_t *n)
{
    size_t count = 0;
    hf_err err = read_length(r, key, node, &count);
    if (err != HF_OK)
        return err;
    const yaml_node_item_t *start = node->data.sequence.items.start;
    char *array = calloc(count + 1, kind->size);
    if (array == NULL)
        return HF_NOMEM;
    *items = array;
    for (size_t i = 0; i < count && err == HF_OK; i++) {
        *n = i + 1;
        err = hf_value_preset_all(kind->owner, array + i * kind->size);
        if (err == HF_OK)
            err =
                read_mapping(r, node_at(r, start[i]), kind->path, array + i * kind->size);
        if (err == HF_OK && kind->unique != NULL)
            err = check_unique(r, kind, node, array, i);
    }
    return err;
}

/* A limit of less than one job for each shard could not be divided. */
static hf_err check_shards(reader *r, const hf_config_queue *queue, yaml_node_t *entry)
{
    char expected[HF_SHOWN_SIZE], shown[HF_SHOWN_SIZE];
    yaml_node_t *name = value_of(r, entry, "name");
    if (queue->shards == 0)
        return HF_OK;
    snprintf(expected, sizeof expected, "a name of at most %d bytes, as it has shards",
             HF_CONFIG_SHARDED_NAME_MAX);
    if (strlen(queue->name) > HF_CONFIG_SHARDED_NAME_MAX)
        return hf_fault_at(&r->fault, name->start_mark, expected, "%s",
                           hf_fault_node(name, shown));
    snprintf(expected, sizeof expected,
             "a max_running of at least %lld, one for each shard",
             (long long)queue->shards);
    if (queue->max_running == 0 || queue->max_running >= queue->shards)
        return HF_OK;
    return hf_fault_at(&r->fault, value_of(r, entry, "max_running")->start_mark, expected,
                       "%lld", (long long)queue->max_running);
}

/* `n` with this one and those before it. */
static hf_err check_number(reader *r, size_t n, const yaml_node_t *entry)
{
    char expected[HF_SHOWN_SIZE];
    if (n <= HF_CONFIG_PARTS_MAX)
        return HF_OK;
    snprintf(expected, sizeof expected, "at most %d queues and shards in all",
             HF_CONFIG_PARTS_MAX);
    return hf_fault_at(&r->fault, entry->start_mark, expected, "%zu", n);
}

static hf_err read_queues(reader *r, const hf_key *key, yaml_node_t *node)
{
    void *items = NULL;
    size_t n = 0;
    hf_err err = read_list(r, key, &queue_list, node, &items, &r->config->n_queues);
    r->config->queues = items;
    for (size_t i = 0; err == HF_OK && i < r->config->n_queues; i++) {
        yaml_node_t *entry = node_at(r, node->data.sequence.items.start[i]);
        r->config->queues[i].has_limits = value_of(r, entry, "max_running") != NULL ||
                                          value_of(r, entry, "rate") != NULL;
        n += 1 + (size_t)r->config->queues[i].shards;
        err = check_shards(r, &r->config->queues[i], entry);
        if (err == HF_OK)
            err = check_number(r, n, entry);
    }
    return err;
}

/* ---- retries ---- */

static hf_err check_waits(reader *r, yaml_node_t *retry, int64_t base_ms, int64_t cap_ms)
{
    char base[HF_DURATION_SIZE], cap[HF_DURATION_SIZE], expected[HF_SHOWN_SIZE];
    if (cap_ms >= base_ms)
        return HF_OK;
    hf_format_duration(base_ms, base);
    hf_format_duration(cap_ms, cap);
    yaml_node_t *at = value_of(r, retry, "cap");
    if (at == NULL)
        at = value_of(r, retry, "base");
    snprintf(expected, sizeof expected, "a cap not below the base of %s", base);
    return hf_fault_at(&r->fault, at->start_mark, expected, "%s", cap);
}

/* ---- handlers, and the types of pools ---- */

static bool is_all(const yaml_node_t *node)
{
    return node->type == YAML_SCALAR_NODE && strcmp(scalar_text(node), "all") == 0;
}

/* Options that are named with 0 are not those that are not named. */
static void take_zeros(reader *r, hf_pool_type *type, yaml_node_t *options)
{
    type->size = sizeof *type;
    if (value_of(r, options, "timeout") != NULL && type->timeout_ms == 0)
        type->timeout_ms = HF_TIMEOUT_NONE;
    if (value_of(r, options, "keep") != NULL && type->keep_ms == 0)
        type->keep_ms = HF_KEEP_NONE;
}

/* What is not named here is as the program says. */
static hf_err take_retry(reader *r, hf_pool_type *type, yaml_node_t *options)
{
    yaml_node_t *retry = value_of(r, options, "retry");
    if (retry == NULL)
        return HF_OK;
    type->has_backoff = value_of(r, retry, "backoff") != NULL;
    if (value_of(r, retry, "jitter") != NULL && type->backoff_jitter <= 0)
        type->backoff_jitter = HF_JITTER_NONE;
    return type->backoff_cap_ms == 0
               ? HF_OK
               : check_waits(r, retry, type->backoff_base_ms, type->backoff_cap_ms);
}

/* A mapping from types to options. The array belongs to the handler from the start: a
 * half-read one is freed like a whole one. */
static hf_err read_types(reader *r, const hf_key *key, yaml_node_t *node,
                         hf_config_handler *handler)
{
    static const char path[] = "handlers[].types.TYPE";
    const hf_key *name_key = hf_schema_find("handlers[].types", "TYPE", 4);
    if (node->type != YAML_MAPPING_NODE)
        return bad_value(r, key, node, NULL);
    yaml_node_pair_t *pair = node->data.mapping.pairs.start;
    long n = node->data.mapping.pairs.top - pair;
    if (n > key->max)
        return bad_value(r, key, node, "more");
    handler->types = calloc((size_t)n + 1, sizeof *handler->types);
    hf_err err = handler->types == NULL ? HF_NOMEM : HF_OK;
    for (; err == HF_OK && pair < node->data.mapping.pairs.top; pair++) {
        yaml_node_t *options = node_at(r, pair->value);
        hf_pool_type *type = &handler->types[handler->n_types++];
        err = read_scalar(r, name_key, node_at(r, pair->key), type);
        if (err == HF_OK)
            err = check_once(r, node, pair);
        if (err == HF_OK)
            err = read_mapping(r, options, path, type);
        if (err == HF_OK)
            take_zeros(r, type, options);
        if (err == HF_OK)
            err = take_retry(r, type, options);
    }
    return err;
}

/* A key of programs for each job stands in no pool, and the other way round. */
static hf_err check_beside(reader *r, yaml_node_t *entry)
{
    char expected[HF_SHOWN_SIZE];
    yaml_node_pair_t *pair = entry->data.mapping.pairs.start;
    for (; pair < entry->data.mapping.pairs.top; pair++) {
        const yaml_node_t *name = node_at(r, pair->key);
        const hf_key *key =
            hf_schema_find("handlers[]", scalar_text(name), name->data.scalar.length);
        if (key->beside == NULL || value_of(r, entry, key->beside) != NULL)
            continue;
        snprintf(expected, sizeof expected, "'%s' only beside '%s'", scalar_text(name),
                 key->beside);
        return hf_fault_at(&r->fault, name->start_mark, expected, "it beside '%s'",
                           value_of(r, entry, "pool") != NULL ? "pool" : "exec");
    }
    return HF_OK;
}

static hf_err check_handler(reader *r, yaml_node_t *entry)
{
    const yaml_node_t *exec = value_of(r, entry, "exec"),
                      *pool = value_of(r, entry, "pool");
    if (exec == NULL && pool == NULL)
        return hf_fault_at(&r->fault, entry->start_mark,
                           "'exec' or 'pool' in 'handlers[]'", "none");
    if (exec != NULL && pool != NULL)
        return hf_fault_at(&r->fault, pool->start_mark, "either exec or pool", "both");
    return check_beside(r, entry);
}

/* The key that names a type first, among the first n handlers: as their type, or in their
 * types. NULL: none does. */
static const yaml_node_t *named_before(reader *r, yaml_node_t *list, size_t n,
                                       const char *type)
{
    for (size_t i = 0; i < n; i++) {
        const hf_config_handler *handler = &r->config->handlers[i];
        yaml_node_t *entry = node_at(r, list->data.sequence.items.start[i]);
        if (handler->type != NULL && strcmp(handler->type, type) == 0)
            return value_of(r, entry, "type");
        for (size_t k = 0; k < handler->n_types; k++)
            if (strcmp(handler->types[k].type, type) == 0)
                return key_at(r, value_of(r, entry, "types"), k);
    }
    return NULL;
}

/* Each type has one handler. */
static hf_err check_types(reader *r, yaml_node_t *list, size_t i)
{
    char shown[HF_SHOWN_SIZE];
    const hf_config_handler *handler = &r->config->handlers[i];
    yaml_node_t *entry = node_at(r, list->data.sequence.items.start[i]);
    size_t n = handler->type != NULL ? 1 : handler->n_types;
    for (size_t k = 0; k < n; k++) {
        const char *type = handler->type != NULL ? handler->type : handler->types[k].type;
        const yaml_node_t *again = handler->type != NULL
                                       ? value_of(r, entry, "type")
                                       : key_at(r, value_of(r, entry, "types"), k);
        const yaml_node_t *first = named_before(r, list, i, type);
        if (first != NULL)
            return hf_fault_at(&r->fault, again->start_mark, "each type once",
                               "%s again (first on line %zu)",
                               hf_fault_node(again, shown), first->start_mark.line + 1);
    }
    return HF_OK;
}

static hf_err read_handlers(reader *r, const hf_key *key, yaml_node_t *node)
{
    void *items = NULL;
    size_t pools = 0;
    hf_err err = read_list(r, key, &handler_list, node, &items, &r->config->n_handlers);
    r->config->handlers = items;
    for (size_t i = 0; err == HF_OK && i < r->config->n_handlers; i++) {
        hf_config_handler *handler = &r->config->handlers[i];
        yaml_node_t *entry = node_at(r, node->data.sequence.items.start[i]);
        const yaml_node_t *env = value_of(r, entry, "env");
        handler->has_keep = value_of(r, entry, "keep") != NULL;
        handler->env_all = env != NULL && is_all(env);
        err = check_handler(r, entry);
        if (err == HF_OK)
            err = check_types(r, node, i);
        pools += handler->pool != NULL ? 1 : 0;
        if (err == HF_OK && pools > HF_POOLS_MAX)
            err = hf_fault_at(&r->fault, entry->start_mark, "at most 64 pools", "more");
    }
    return err;
}

/* A schedule has a clock of one kind, catches up only what it has missed, and its jobs
 * expire only in a time. */
static hf_err check_schedule(reader *r, const hf_schedule *schedule, yaml_node_t *entry)
{
    char shown[HF_SHOWN_SIZE];
    yaml_node_t *every = value_of(r, entry, "every"), *tz = value_of(r, entry, "tz");
    if (schedule->cron == NULL && every == NULL)
        return hf_fault_at(&r->fault, entry->start_mark,
                           "'cron' or 'every' in 'schedules[]'", "none");
    if (schedule->cron != NULL && every != NULL)
        return hf_fault_at(&r->fault, every->start_mark, "either cron or every", "both");
    if (every != NULL && tz != NULL)
        return hf_fault_at(&r->fault, tz->start_mark, "a tz only beside cron", "%s",
                           hf_fault_node(tz, shown));
    yaml_node_t *catch_up = value_of(r, entry, "catch_up");
    if (catch_up != NULL && schedule->missed != HF_MISSED_ALL)
        return hf_fault_at(&r->fault, catch_up->start_mark,
                           "catch_up only with missed: all", "%s",
                           hf_fault_node(catch_up, shown));
    yaml_node_t *expired = value_of(r, entry, "expired");
    if (schedule->expired != HF_EXPIRED_DROP && schedule->start_within_ms == 0)
        return hf_fault_at(&r->fault, expired->start_mark,
                           "expired: dead only with start_within", "%s",
                           hf_fault_node(expired, shown));
    return HF_OK;
}

static hf_err read_schedules(reader *r, const hf_key *key, yaml_node_t *node)
{
    void *items = NULL;
    hf_err err = read_list(r, key, &schedule_list, node, &items, &r->config->n_schedules);
    r->config->schedules = items;
    for (size_t i = 0; err == HF_OK && i < r->config->n_schedules; i++) {
        hf_schedule *schedule = &r->config->schedules[i];
        schedule->size = sizeof *schedule;
        schedule->payload_len = schedule->payload == NULL ? 0 : strlen(schedule->payload);
        err = check_schedule(r, schedule, node_at(r, node->data.sequence.items.start[i]));
    }
    return err;
}

/* Its queue is one of the file. */
static hf_err check_schedule_queues(reader *r, yaml_node_t *root)
{
    const hf_config *config = r->config;
    char shown[HF_SHOWN_SIZE];
    yaml_node_t *list = value_of(r, root, "schedules");
    for (size_t i = 0; i < config->n_schedules; i++) {
        const char *queue = config->schedules[i].queue;
        bool known =
            config->n_queues == 0 && (queue == NULL || strcmp(queue, "default") == 0);
        for (size_t k = 0; k < config->n_queues; k++)
            known = known || strcmp(config->queues[k].name,
                                    queue == NULL ? "default" : queue) == 0;
        if (known)
            continue;
        yaml_node_t *entry = node_at(r, list->data.sequence.items.start[i]);
        yaml_node_t *at = value_of(r, entry, "queue");
        return hf_fault_at(&r->fault, (at != NULL ? at : entry)->start_mark,
                           "a queue of 'queues'", "%s",
                           at != NULL ? hf_fault_node(at, shown) : "default");
    }
    return HF_OK;
}

/* ---- mappings ---- */

static hf_err read_value(reader *r, const hf_key *key, yaml_node_t *node, void *base)
{
    switch (key->type) {
    case HF_KEY_MAPPING:
        return read_mapping(r, node, key->path, base);
    case HF_KEY_QUEUES:
        return read_queues(r, key, node);
    case HF_KEY_HANDLERS:
        return read_handlers(r, key, node);
    case HF_KEY_TYPES:
        return read_types(r, key, node, base);
    case HF_KEY_SCHEDULES:
        return read_schedules(r, key, node);
    case HF_KEY_WORDS:
    case HF_KEY_PLACES:
        return read_words(r, key, node, base);
    case HF_KEY_ENV: /* the owner sees the word */
        return is_all(node) ? HF_OK : read_words(r, key, node, base);
    default:
        return read_scalar(r, key, node, base);
    }
}

/* A key that stood there before. */
static hf_err check_once(reader *r, yaml_node_t *mapping, const yaml_node_pair_t *pair)
{
    char shown[HF_SHOWN_SIZE];
    yaml_node_t *key = node_at(r, pair->key);
    const yaml_node_pair_t *before = mapping->data.mapping.pairs.start;
    for (; before < pair; before++) {
        yaml_node_t *other = node_at(r, before->key);
        if (strcmp(scalar_text(other), scalar_text(key)) == 0)
            return hf_fault_at(&r->fault, key->start_mark, "each key once",
                               "%s again (first on line %zu)", hf_fault_node(key, shown),
                               other->start_mark.line + 1);
    }
    return HF_OK;
}

static hf_err check_required(reader *r, yaml_node_t *node, const char *path)
{
    char expected[PATH_SIZE * 2];
    size_t n;
    const hf_key *keys = hf_schema(&n);
    for (size_t i = 0; i < n; i++) {
        const char *child = hf_schema_child(&keys[i], path);
        const char *beside = keys[i].beside;
        if (child == NULL || !keys[i].required || value_of(r, node, child) != NULL ||
            (beside != NULL && value_of(r, node, beside) == NULL))
            continue;
        snprintf(expected, sizeof expected, "'%s' in '%s'", child, path);
        return hf_fault_at(&r->fault, node->start_mark, expected, "none");
    }
    return HF_OK;
}

static hf_err read_mapping(reader *r, yaml_node_t *node, const char *path, void *base)
{
    char shown[HF_SHOWN_SIZE];
    if (node->type != YAML_MAPPING_NODE)
        return hf_fault_at(&r->fault, node->start_mark, "a mapping", "%s",
                           is_null(node) ? "nothing" : hf_fault_node(node, shown));
    yaml_node_pair_t *pair = node->data.mapping.pairs.start;
    for (; pair < node->data.mapping.pairs.top; pair++) {
        yaml_node_t *name = node_at(r, pair->key);
        const hf_key *key =
            name->type != YAML_SCALAR_NODE
                ? NULL
                : hf_schema_find(path, scalar_text(name), name->data.scalar.length);
        if (key == NULL)
            return unknown_key(r, path, name);
        hf_err err = check_once(r, node, pair);
        if (err == HF_OK)
            err = read_value(r, key, node_at(r, pair->value), base);
        if (err != HF_OK)
            return err;
    }
    return check_required(r, node, path);
}

/* ---- the whole ---- */

typedef hf_err (*put_fn)(hf_config *config, bool has_url, const char **expected,
                         char found[HF_DETAIL_SIZE]);

/* The mapping `redis.NAME` has the servers of the URL. */
static hf_err check_nodes(reader *r, yaml_node_t *redis, const char *name, put_fn put)
{
    yaml_node_t *at = redis == NULL ? NULL : value_of(r, redis, name);
    const char *expected;
    char found[HF_DETAIL_SIZE];
    if (at == NULL)
        return HF_OK;
    bool has_url =
        value_of(r, redis, "url") != NULL ||
        (put == hf_config_put_cluster && value_of(r, redis, "sentinel") != NULL);
    hf_err err = put(r->config, has_url, &expected, found);
    return err != HF_INVALID
               ? err
               : hf_fault_at(&r->fault, at->start_mark, expected, "%s", found);
}

/* The checks that concern several keys. */
static hf_err check_whole(reader *r, yaml_node_t *root)
{
    const hf_config *config = r->config;
    yaml_node_t *redis = value_of(r, root, "redis");
    hf_err err = check_nodes(r, redis, "sentinel", hf_config_put_sentinels);
    if (err == HF_OK)
        err = check_nodes(r, redis, "cluster", hf_config_put_cluster);
    if (err == HF_OK)
        err = check_schedule_queues(r, root);
    yaml_node_t *retry = value_of(r, root, "retry");
    return err != HF_OK || retry == NULL
               ? err
               : check_waits(r, retry, config->worker.backoff_base_ms,
                             config->worker.backoff_cap_ms);
}

hf_err hf_config_read(hf_config *config, const char *file, const char *text, size_t len,
                      char detail[HF_CONFIG_DETAIL_SIZE])
{
    reader r = {.fault = {file, detail}, .config = config};
    hf_err err = hf_config_scan(&r.fault, text, len);
    if (err != HF_OK)
        return err;
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        return HF_NOMEM;
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
    /* The scan found nothing wrong with it, so only memory can be short. */
    bool loaded = yaml_parser_load(&parser, &r.document);
    yaml_parser_delete(&parser);
    if (!loaded)
        return HF_NOMEM;
    yaml_node_t *root = yaml_document_get_root_node(&r.document);
    if (root != NULL && !is_null(root)) {
        err = read_mapping(&r, root, "", config);
        if (err == HF_OK)
            err = check_whole(&r, root);
    }
    yaml_document_delete(&r.document);
    return err;
}
