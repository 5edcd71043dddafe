/* worker.c - making a worker: its options, its handlers, its name (holdfast/worker.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/id.h"
#include "worker/core.h"

enum { MAGIC = 0x686f6c64, HOST_MAX = 40, KILL_GRACE_MS = 1000 };

#define DAY_MS INT64_C(86400000)

/* ---- options ---- */

static bool copy_text(char **out, const char *text)
{
    *out = text == NULL ? NULL : strdup(text);
    return text == NULL || *out != NULL;
}

static uint32_t or_default(uint32_t value, uint32_t otherwise)
{
    return value == 0 ? otherwise : value;
}

static void fill_defaults(hf_worker_opts *o)
{
    o->connect_timeout_ms = or_default(o->connect_timeout_ms, 5000);
    o->request_timeout_ms = or_default(o->request_timeout_ms, 1000);
    o->concurrency = or_default(o->concurrency, 16);
    o->lease_ms = or_default(o->lease_ms, 10000);
    o->kill_grace_ms = or_default(o->kill_grace_ms, KILL_GRACE_MS);
    o->shutdown_timeout_ms = or_default(o->shutdown_timeout_ms, 25000);
    if (o->shutdown_timeout_ms == UINT32_MAX)
        o->shutdown_timeout_ms = 0;
    o->max_attempts = or_default(o->max_attempts, 20);
    o->backoff_base_ms = or_default(o->backoff_base_ms, 2000);
    o->backoff_cap_ms = or_default(o->backoff_cap_ms, 3600000);
    if (o->backoff_cap_ms < o->backoff_base_ms)
        o->backoff_cap_ms = o->backoff_base_ms;
    o->backoff_jitter = o->backoff_jitter == 0 ? 0.2 : o->backoff_jitter;
    if (o->backoff_jitter < 0)
        o->backoff_jitter = 0;
    o->poison = or_default(o->poison, 3);
    o->dead_max = or_default(o->dead_max, 10000);
    o->dead_age_ms = o->dead_age_ms <= 0 ? 180 * DAY_MS : o->dead_age_ms;
}

static hf_err refuse(char detail[HF_DETAIL_SIZE], const char *what, const char *found)
{
    if (detail != NULL)
        snprintf(detail, HF_DETAIL_SIZE, "expected %s, found %s", what, found);
    return HF_INVALID;
}

static hf_err check_opts(const hf_worker_opts *o, char detail[HF_DETAIL_SIZE])
{
    char found[24];
    snprintf(found, sizeof found, "%u", o->concurrency);
    if (o->concurrency > 1024)
        return refuse(detail, "a concurrency of 1 to 1024", found);
    snprintf(found, sizeof found, "%u ms", o->lease_ms);
    if (o->lease_ms < 1000 || o->lease_ms > 3600000)
        return refuse(detail, "a lease of 1 s to 1 h", found);
    snprintf(found, sizeof found, "%zu", o->n_queues);
    if (o->n_queues < 1 || o->n_queues > HF_QUEUES_MAX)
        return refuse(detail, "1 to 64 queues", found);
    snprintf(found, sizeof found, "%.3f", o->backoff_jitter);
    if (o->backoff_jitter > 1)
        return refuse(detail, "a jitter of at most 1", found);
    if (o->ns != NULL && !hf_name_ok(o->ns))
        return refuse(detail, "a namespace of 1 to 128 of [A-Za-z0-9._:-]", o->ns);
    if (o->url != NULL)
        return hf_url_check(o->url, detail);
    return HF_OK;
}

static hf_err add_queues(hf_worker *w, const hf_worker_opts *o,
                         char detail[HF_DETAIL_SIZE])
{
    w->served = calloc(o->n_queues, sizeof *w->served);
    if (w->served == NULL)
        return HF_NOMEM;
    for (size_t i = 0; i < o->n_queues; i++) {
        hf_served *served = &w->served[i];
        const char *name = o->queues[i].name;
        if (hf_queue_init(&served->queue, w->ns, name) != HF_OK)
            return refuse(detail, "a queue's name of 1 to 128 of [A-Za-z0-9._:-]", name);
        for (size_t k = 0; k < i; k++)
            if (strcmp(w->served[k].queue.name, name) == 0)
                return refuse(detail, "each queue once", name);
        served->worker = w;
        served->index = i;
        served->weight = or_default(o->queues[i].weight, 1);
        served->limits = o->queues[i];
        served->limits.name = NULL;
        w->n_served = i + 1;
    }
    return HF_OK;
}

/* host-pid-random: unique for each life of a process; a configured name would not be. */
static hf_err make_id(hf_worker *w)
{
    char host[HOST_MAX + 1] = "host";
    uint64_t random;
    if (gethostname(host, sizeof host) != 0)
        snprintf(host, sizeof host, "host");
    host[HOST_MAX] = '\0';
    for (char *p = host; *p != '\0'; p++)
        if (!hf_name_ok_n(p, 1) || *p == ':')
            *p = '_';
    hf_err err = hf_random_bytes(&random, sizeof random);
    if (err != HF_OK)
        return err;
    snprintf(w->id, sizeof w->id, "%s-%ld-%016llx", host, (long)getpid(),
             (unsigned long long)random);
    w->rng.state = random;
    return HF_OK;
}

static void init_rest(hf_worker *w)
{
    pthread_mutex_init(&w->stop_lock, NULL);
    pthread_mutex_init(&w->note_lock, NULL);
    pthread_mutex_init(&w->log_lock, NULL);
    atomic_store(&w->redis_minus_boot_us, INT64_MIN);
    w->backoff = (hf_backoff){
        .shape = (hf_backoff_shape)w->opts.backoff,
        .base_ms = w->opts.backoff_base_ms,
        .cap_ms = w->opts.backoff_cap_ms,
        .jitter = w->opts.backoff_jitter,
    };
}

hf_err hf_worker_new(hf_worker **out, const hf_worker_opts *opts,
                     char detail[HF_DETAIL_SIZE])
{
    hf_worker_opts filled = *opts;
    if (detail != NULL)
        detail[0] = '\0';
    fill_defaults(&filled);
    hf_err err = check_opts(&filled, detail);
    if (err != HF_OK)
        return err;
    hf_worker *w = calloc(1, sizeof *w);
    if (w == NULL)
        return HF_NOMEM;
    w->magic = MAGIC;
    w->opts = filled;
    init_rest(w);
    snprintf(w->ns, sizeof w->ns, "%s", filled.ns == NULL ? "hf" : filled.ns);
    if (!copy_text(&w->url, filled.url) ||
        !copy_text(&w->password_file, filled.password_file) ||
        !copy_text(&w->minder, filled.minder))
        err = HF_NOMEM;
    if (err == HF_OK)
        err = add_queues(w, &filled, detail);
    if (err == HF_OK)
        err = make_id(w);
    if (err != HF_OK) {
        hf_worker_free(w);
        return err;
    }
    w->opts.queues = NULL;
    w->opts.url = w->opts.password_file = w->opts.minder = w->opts.ns = NULL;
    if (w->opts.kill_grace_ms > w->opts.lease_ms / 4) {
        w->opts.kill_grace_ms = w->opts.lease_ms / 4;
        if (opts->kill_grace_ms != 0 && opts->kill_grace_ms != KILL_GRACE_MS)
            hf_report_text(w, HF_LOG_WARN,
                           "kill_grace was lowered to a quarter of the lease", NULL,
                           NULL);
    }
    *out = w;
    return HF_OK;
}

/* ---- handlers ---- */

static void free_list(const char *const *list)
{
    for (size_t i = 0; list != NULL && list[i] != NULL; i++)
        free((void *)(uintptr_t)list[i]);
    free((void *)(uintptr_t)list);
}

static bool copy_list(const char *const **out, const char *const *list)
{
    size_t n = 0;
    while (list != NULL && list[n] != NULL)
        n++;
    char **copy = calloc(n + 1, sizeof *copy);
    if (copy == NULL)
        return false;
    *out = (const char *const *)copy;
    for (size_t i = 0; i < n; i++)
        if ((copy[i] = strdup(list[i])) == NULL)
            return false;
    return true;
}

static void free_handler(hf_handler *handler)
{
    if (handler == NULL)
        return;
    free_list(handler->program.argv);
    free_list(handler->program.env);
    free((void *)(uintptr_t)handler->program.cwd);
    free(handler);
}

static hf_err add_handler(hf_worker *w, const char *type, hf_handler **out)
{
    HF_ASSERT(w->magic == MAGIC);
    if (w->ran)
        return HF_BUSY;
    if (type == NULL || (strcmp(type, "*") != 0 && !hf_name_ok(type)) ||
        w->n_handlers == HF_COUNT(w->handlers))
        return HF_INVALID;
    for (size_t i = 0; i < w->n_handlers; i++)
        if (strcmp(w->handlers[i]->type, type) == 0)
            return HF_INVALID;
    hf_handler *handler = calloc(1, sizeof *handler);
    if (handler == NULL)
        return HF_NOMEM;
    snprintf(handler->type, sizeof handler->type, "%s", type);
    *out = handler;
    return HF_OK;
}

hf_err hf_worker_handle(hf_worker *w, const char *type, uint32_t timeout_ms,
                        hf_handler_fn fn, void *arg)
{
    hf_handler *handler;
    hf_err err = fn == NULL ? HF_INVALID : add_handler(w, type, &handler);
    if (err != HF_OK)
        return err;
    handler->fn = fn;
    handler->arg = arg;
    handler->timeout_ms = timeout_ms;
    w->handlers[w->n_handlers++] = handler;
    return HF_OK;
}

hf_err hf_worker_handle_program(hf_worker *w, const hf_program *program)
{
    hf_handler *handler;
    char *cwd = NULL;
    if (program->argv == NULL || program->argv[0] == NULL)
        return HF_INVALID;
    hf_err err = add_handler(w, program->type, &handler);
    if (err != HF_OK)
        return err;
    handler->program = *program;
    handler->program.type = handler->type;
    handler->program.argv = handler->program.env = NULL;
    handler->program.grace_ms = or_default(program->grace_ms, 5000);
    handler->timeout_ms = program->timeout_ms;
    handler->max_attempts = program->max_attempts;
    bool ok = copy_text(&cwd, program->cwd);
    handler->program.cwd = cwd;
    ok = ok && copy_list(&handler->program.argv, program->argv) &&
         copy_list(&handler->program.env, program->env);
    if (!ok) {
        free_handler(handler);
        return HF_NOMEM;
    }
    w->has_programs = true;
    w->handlers[w->n_handlers++] = handler;
    return HF_OK;
}

/* ---- from any thread ---- */

static void wake(hf_worker *w)
{
    if (atomic_load(&w->async_ready))
        uv_async_send(&w->async);
}

void hf_worker_stop(hf_worker *w)
{
    atomic_fetch_add(&w->stops, 1);
    wake(w);
}

void hf_worker_quiet(hf_worker *w)
{
    atomic_fetch_add(&w->quiets, 1);
    wake(w);
}

void hf_worker_resume(hf_worker *w)
{
    atomic_fetch_add(&w->resumes, 1);
    wake(w);
}

/* ---- the rest ---- */

void hf_worker_free(hf_worker *w)
{
    if (w == NULL)
        return;
    HF_ASSERT(w->magic == MAGIC);
    hf_life_free(w);
    for (size_t i = 0; i < w->n_handlers; i++)
        free_handler(w->handlers[i]);
    pthread_mutex_destroy(&w->stop_lock);
    pthread_mutex_destroy(&w->note_lock);
    pthread_mutex_destroy(&w->log_lock);
    free(w->served);
    free(w->url);
    free(w->password_file);
    free(w->minder);
    w->magic = 0;
    free(w);
}

const char *hf_worker_id(const hf_worker *w)
{
    return w->id;
}

size_t hf_worker_unreturned(const hf_worker *w)
{
    return w->unreturned;
}
