/* pool_spec.c - worker/pool_spec.h. */
#include "worker/pool_spec.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cores.h"
#include "base/detail.h"
#include "base/id.h"
#include "base/mask.h"
#include "base/structs.h"
#include "base/text.h"
#include "base/words.h"

enum { START_TIMEOUT_MS = 30000, GRACE_MS = 5000, IDLE_MS = 600000 };

/* ---- what is allowed ---- */

static hf_err expected(char *detail, const char *what, int64_t found)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, found);
    return hf_say_expected(detail, what, text);
}

static hf_err check_options(int64_t keep_ms, const char *on_dead, char *detail)
{
    if (keep_ms < HF_KEEP_NONE || keep_ms > HF_DELAY_MAX_MS)
        return expected(detail, "keep_ms of at most 100 years", keep_ms);
    if (on_dead != NULL && !hf_name_ok(on_dead))
        return hf_say_expected(detail, HF_ON_DEAD_RULE, on_dead);
    return HF_OK;
}

static hf_err check_backoff(const hf_pool_type *type, char *detail)
{
    char found[24];
    if (type->backoff_cap_ms != 0 && type->backoff_cap_ms < type->backoff_base_ms)
        return expected(detail, "a backoff_cap_ms not below backoff_base_ms",
                        type->backoff_cap_ms);
    snprintf(found, sizeof found, "%.3f", type->backoff_jitter);
    if (!(type->backoff_jitter <= 1)) /* it may be no number */
        return hf_say_expected(detail, "a jitter of at most 1", found);
    return HF_OK;
}

static hf_err check_type(const hf_pool_type *types, size_t i, char *detail)
{
    const char *type = types[i].type;
    if (type == NULL || !hf_name_ok(type))
        return hf_say_expected(
            detail,
            "as type of a pool a name (1 to 128 characters of A-Z a-z 0-9 . _ : -)",
            type);
    for (size_t k = 0; k < i; k++)
        if (strcmp(types[k].type, type) == 0)
            return hf_say_expected(detail, "each type of a pool once", type);
    hf_err err = check_backoff(&types[i], detail);
    return err != HF_OK ? err : check_options(types[i].keep_ms, types[i].on_dead, detail);
}

static hf_err check_names(const hf_pool *pool, char *detail)
{
    size_t n = 0;
    for (; pool->env != NULL && pool->env[n] != NULL; n++)
        if (pool->env[n][0] == '\0' || strchr(pool->env[n], '=') != NULL)
            return hf_say_expected(detail, "names of variables in env", pool->env[n]);
    if (pool->env_all && n > 0)
        return hf_say_expected(detail, "either env or env_all", "both");
    return HF_OK;
}

static hf_err check(const hf_pool *pool, char *detail)
{
    bool no_program = pool->argv == NULL || pool->argv[0] == NULL;
    if (no_program ? pool->listen == NULL : pool->argv[0][0] == '\0')
        return hf_say_expected(detail, "an argv with a program", NULL);
    if (pool->listen != NULL && pool->listen[0] == '\0')
        return hf_say_expected(detail, "a listen that is not empty", "an empty text");
    if (pool->cwd != NULL && pool->cwd[0] == '\0')
        return hf_say_expected(detail, "a cwd that is not empty", "an empty text");
    if (pool->processes > HF_POOL_PROCESSES_MAX)
        return expected(detail, "1 to 256 processes of a pool", pool->processes);
    if (pool->parallel > HF_POOL_PARALLEL_MAX)
        return expected(detail, "a parallel of 1 to 1024", pool->parallel);
    if (pool->max_jobs > INT64_MAX)
        return hf_say_expected(detail, "max_jobs below 2^63", "more");
    if (pool->max_age_ms < 0 || pool->max_age_ms > HF_DELAY_MAX_MS)
        return expected(detail, "max_age_ms of at most 100 years", pool->max_age_ms);
    if (pool->max_rss < 0)
        return expected(detail, "a max_rss in bytes", pool->max_rss);
    if (pool->idle_ms < HF_IDLE_NEVER || pool->idle_ms > HF_DELAY_MAX_MS)
        return expected(detail, "idle_ms of at most 100 years", pool->idle_ms);
    if (pool->n_types > HF_TYPES_MAX || (pool->n_types > 0 && pool->types == NULL))
        return expected(detail, "at most 1000 types of a pool", (int64_t)pool->n_types);
    hf_err err = check_names(pool, detail);
    return err != HF_OK ? err : check_options(pool->keep_ms, pool->on_dead, detail);
}

/* ---- its life ---- */

static bool copy_text(const char **text)
{
    if (*text != NULL)
        *text = strdup(*text);
    return *text != NULL;
}

static void free_text(const char *text)
{
    free((void *)(uintptr_t)text);
}

static void free_spec(hf_pool_spec *spec)
{
    hf_words_free(spec->pool.argv);
    hf_words_free(spec->pool.env);
    free_text(spec->pool.cwd);
    free_text(spec->pool.listen);
    free_text(spec->pool.on_dead);
    for (size_t i = 0; i < spec->pool.n_types; i++) {
        free_text(spec->pool.types[i].type);
        free_text(spec->pool.types[i].on_dead);
    }
    free((void *)(uintptr_t)spec->pool.types);
    free(spec);
}

/* The part after the last slash, then the arguments. */
static void make_name(hf_pool_spec *spec)
{
    const char *const *argv = spec->pool.argv;
    const char *slash = argv[0] == NULL ? NULL : strrchr(argv[0], '/');
    char text[HF_DETAIL_SIZE] = "those that join";
    size_t len = 0;
    for (size_t i = 0; argv[i] != NULL && len < sizeof text; i++) {
        int n = snprintf(text + len, sizeof text - len, "%s%s", i == 0 ? "" : " ",
                         i == 0 && slash != NULL ? slash + 1 : argv[i]);
        len += n > 0 ? (size_t)n : 0;
    }
    hf_mask(text);
    hf_text_plain(text);
    (void)snprintf(spec->name, sizeof spec->name, "%.*s", HF_POOL_NAME_SIZE - 1, text);
    len = strlen(spec->name);
    spec->name[len - hf_utf8_unfinished(spec->name, len)] = '\0';
}

static hf_err copy_types(hf_pool_spec *spec, const hf_pool_type *types, size_t n,
                         char *detail)
{
    hf_pool_type *copy = calloc(n + 1, sizeof *copy);
    if (copy == NULL)
        return HF_NOMEM;
    spec->pool.types = copy;
    for (size_t i = 0; i < n; i++) {
        hf_err err = check_type(types, i, detail);
        if (err != HF_OK)
            return err;
        copy[i] = types[i];
        spec->pool.n_types = i + 1;
        bool good = copy_text(&copy[i].type);
        if (!(copy_text(&copy[i].on_dead) || types[i].on_dead == NULL) || !good)
            return HF_NOMEM;
    }
    return HF_OK;
}

static hf_err own_types(hf_pool_spec *spec, const hf_pool *pool, char *detail)
{
    const void *types;
    void *copy;
    hf_err err = hf_structs_in(&types, &copy, sizeof *pool->types, pool->types,
                               pool->n_types, "hf_pool_type", detail);
    if (err == HF_OK)
        err = copy_types(spec, types, pool->n_types, detail);
    free(copy);
    return err;
}

static void fill_defaults(hf_pool *pool)
{
    uint32_t cores = pool->processes == 0 ? hf_cores() : 0;
    if (pool->processes == 0)
        pool->processes = cores < HF_POOL_PROCESSES_MAX ? cores : HF_POOL_PROCESSES_MAX;
    if (pool->start_timeout_ms == 0)
        pool->start_timeout_ms = START_TIMEOUT_MS;
    if (pool->grace_ms == 0)
        pool->grace_ms = GRACE_MS;
    if (pool->idle_ms == 0)
        pool->idle_ms = IDLE_MS;
}

static hf_err own(hf_pool_spec *spec, const hf_pool *pool, char *detail)
{
    spec->pool = *pool;
    spec->pool.types = NULL;
    spec->pool.n_types = 0;
    fill_defaults(&spec->pool);
    bool cwd = copy_text(&spec->pool.cwd) || pool->cwd == NULL;
    bool on_dead = copy_text(&spec->pool.on_dead) || pool->on_dead == NULL;
    bool listen = copy_text(&spec->pool.listen) || pool->listen == NULL;
    spec->pool.argv = hf_words_copy(pool->argv);
    spec->pool.env = hf_words_copy(pool->env);
    if (!cwd || !on_dead || !listen || spec->pool.argv == NULL || spec->pool.env == NULL)
        return HF_NOMEM;
    make_name(spec);
    return own_types(spec, pool, detail);
}

hf_err hf_pool_spec_new(hf_pool_spec **out, const hf_pool *pool,
                        char detail[HF_DETAIL_SIZE])
{
    hf_err err = check(pool, detail);
    if (err != HF_OK)
        return err;
    hf_pool_spec *spec = calloc(1, sizeof *spec);
    if (spec == NULL)
        return hf_say_err(detail, HF_NOMEM);
    spec->refs = 1;
    err = own(spec, pool, detail);
    if (err == HF_OK) {
        *out = spec;
        return HF_OK;
    }
    free_spec(spec);
    return err == HF_NOMEM ? hf_say_err(detail, err) : err;
}

hf_pool_spec *hf_pool_spec_ref(hf_pool_spec *spec)
{
    if (spec != NULL)
        spec->refs++;
    return spec;
}

void hf_pool_spec_unref(hf_pool_spec *spec)
{
    if (spec != NULL && --spec->refs == 0)
        free_spec(spec);
}

/* ---- comparing ---- */

static bool same_backoff(const hf_pool_type *a, const hf_pool_type *b)
{
    return a->has_backoff == b->has_backoff && a->backoff == b->backoff &&
           a->backoff_base_ms == b->backoff_base_ms &&
           a->backoff_cap_ms == b->backoff_cap_ms &&
           a->backoff_jitter == b->backoff_jitter;
}

static bool same_type(const hf_pool_type *a, const hf_pool_type *b)
{
    return b != NULL && a->timeout_ms == b->timeout_ms &&
           a->max_attempts == b->max_attempts && a->keep_ms == b->keep_ms &&
           hf_text_same(a->on_dead, b->on_dead) && same_backoff(a, b);
}

/* In any order. */
static bool same_types(const hf_pool_spec *a, const hf_pool_spec *b)
{
    if (a->pool.n_types != b->pool.n_types)
        return false;
    for (size_t i = 0; i < a->pool.n_types; i++)
        if (!same_type(&a->pool.types[i], hf_pool_spec_type(b, a->pool.types[i].type)))
            return false;
    return true;
}

bool hf_pool_spec_same_program(const hf_pool_spec *a, const hf_pool_spec *b)
{
    return hf_words_same(a->pool.argv, b->pool.argv) &&
           hf_text_same(a->pool.cwd, b->pool.cwd) &&
           hf_text_same(a->pool.listen, b->pool.listen);
}

bool hf_pool_spec_same(const hf_pool_spec *a, const hf_pool_spec *b)
{
    const hf_pool *x = &a->pool, *y = &b->pool;
    return hf_pool_spec_same_program(a, b) && hf_words_same(x->env, y->env) &&
           x->env_all == y->env_all && x->processes == y->processes &&
           x->parallel == y->parallel && x->start_timeout_ms == y->start_timeout_ms &&
           x->grace_ms == y->grace_ms && x->max_jobs == y->max_jobs &&
           x->max_age_ms == y->max_age_ms && x->max_rss == y->max_rss &&
           x->idle_ms == y->idle_ms && x->logs == y->logs &&
           x->start_tries == y->start_tries && x->timeout_ms == y->timeout_ms &&
           x->max_attempts == y->max_attempts && x->keep_ms == y->keep_ms &&
           hf_text_same(x->on_dead, y->on_dead) && same_types(a, b);
}

/* ---- types ---- */

const hf_pool_type *hf_pool_spec_type(const hf_pool_spec *spec, const char *type)
{
    for (size_t i = 0; i < spec->pool.n_types; i++)
        if (strcmp(spec->pool.types[i].type, type) == 0)
            return &spec->pool.types[i];
    return NULL;
}

hf_pool_type hf_pool_spec_options(const hf_pool_spec *spec, const hf_pool_type *said)
{
    const hf_pool *pool = &spec->pool;
    const hf_pool_type rest = {HF_POOL_TYPE_INIT, .timeout_ms = pool->timeout_ms,
                               .max_attempts = pool->max_attempts,
                               .keep_ms = pool->keep_ms, .on_dead = pool->on_dead};
    const hf_pool_type *order[] = {hf_pool_spec_type(spec, said->type), said, &rest};
    hf_pool_type out = {HF_POOL_TYPE_INIT, .type = said->type};
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        if (order[i] == NULL)
            continue;
        out.timeout_ms = out.timeout_ms != 0 ? out.timeout_ms : order[i]->timeout_ms;
        out.max_attempts =
            out.max_attempts != 0 ? out.max_attempts : order[i]->max_attempts;
        out.keep_ms = out.keep_ms != 0 ? out.keep_ms : order[i]->keep_ms;
        out.on_dead = out.on_dead != NULL ? out.on_dead : order[i]->on_dead;
    }
    if (out.timeout_ms == HF_TIMEOUT_NONE)
        out.timeout_ms = 0;
    return out;
}

static void take_backoff(hf_backoff *to, const hf_pool_type *from)
{
    if (from->has_backoff)
        to->shape = (hf_backoff_shape)from->backoff;
    if (from->backoff_base_ms != 0)
        to->base_ms = from->backoff_base_ms;
    if (from->backoff_cap_ms != 0)
        to->cap_ms = from->backoff_cap_ms;
    if (to->cap_ms < to->base_ms && from->backoff_cap_ms != 0)
        to->base_ms = to->cap_ms;
    else if (to->cap_ms < to->base_ms)
        to->cap_ms = to->base_ms;
    if (from->backoff_jitter != 0)
        to->jitter = from->backoff_jitter < 0 ? 0 : from->backoff_jitter;
}

hf_backoff hf_pool_spec_backoff(const hf_pool_spec *spec, const hf_pool_type *said,
                                const hf_backoff *rest)
{
    const hf_pool_type *first = hf_pool_spec_type(spec, said->type);
    hf_backoff out = *rest;
    take_backoff(&out, said);
    if (first != NULL)
        take_backoff(&out, first);
    return out;
}

hf_pool_spec *hf_pool_specs_with(hf_pool_spec *const *list, size_t n, const char *type)
{
    for (size_t i = 0; i < n; i++)
        if (hf_pool_spec_type(list[i], type) != NULL)
            return list[i];
    return NULL;
}

hf_err hf_pool_specs_fit(hf_pool_spec *const *list, size_t n, const hf_pool_spec *spec,
                         char detail[HF_DETAIL_SIZE])
{
    for (size_t i = 0; i < spec->pool.n_types; i++) {
        const char *type = spec->pool.types[i].type;
        const hf_pool_spec *other = hf_pool_specs_with(list, n, type);
        if (other != NULL)
            return hf_say(detail, HF_INVALID,
                          "expected one handler for each type, found '%s' in the pools "
                          "'%s' and '%s'",
                          type, other->name, spec->name);
    }
    return HF_OK;
}

hf_err hf_pool_spec_beside(const hf_pool_spec *spec, hf_handler *const *list, size_t n,
                           char detail[HF_DETAIL_SIZE])
{
    for (size_t i = 0; i < spec->pool.n_types; i++) {
        const char *type = spec->pool.types[i].type;
        if (hf_handlers_find(list, n, type) != NULL)
            return hf_say(detail, HF_INVALID,
                          "expected one handler for each type, found '%s' with a handler "
                          "of its own and in the pool '%s'",
                          type, spec->name);
    }
    return HF_OK;
}
