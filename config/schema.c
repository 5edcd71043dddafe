/* schema.c - the one table of all keys of the configuration file.
 *
 * A key that is not here does not exist. To add one: a member in config.h, a row here,
 * its use in a hf_config_fill_x() of config.c, and the table in docs/operating.md (a test
 * compares). */
#include "config/schema.h"

#include <string.h>

#include "base/base.h"
#include "config/config.h"

#define SECOND_MS (INT64_C(1000))
#define MINUTE_MS (60 * SECOND_MS)
#define HOUR_MS (60 * MINUTE_MS)
#define DAY_MS (24 * HOUR_MS)

#define CONFIG(member) HF_IN_CONFIG, offsetof(hf_config, member)
#define QUEUE(member) HF_IN_QUEUE, offsetof(hf_config_queue, member)
#define HANDLER(member) HF_IN_HANDLER, offsetof(hf_config_handler, member)
#define NOWHERE(owner) owner, 0

static const hf_key keys[] = {
    {.path = "redis", HF_KEY_MAPPING, NOWHERE(HF_IN_CONFIG), .help = "where Redis is"},
    {.path = "redis.url",
     HF_KEY_URL,
     CONFIG(redis_url),
     .preset = "redis://localhost:6379/0",
     .help = "`redis://[user[:password]@]host[:port][/db]` or "
             "`unix://[user[:password]@]/path[?db=N]`; `--redis` and the environment "
             "variable "
             "`REDIS_URL` go before it"},
    {.path = "redis.password_file",
     HF_KEY_TEXT,
     CONFIG(password_file),
     .unset = "none",
     .help = "a file whose first line is the password, instead of the URL's"},
    {.path = "redis.connect_timeout",
     HF_KEY_DURATION,
     CONFIG(connect_timeout_ms),
     .min = 1,
     .max = 10 * MINUTE_MS,
     .preset = "5s",
     .help = "from the name look-up to a usable connection"},
    {.path = "redis.request_timeout",
     HF_KEY_DURATION,
     CONFIG(request_timeout_ms),
     .min = 1,
     .max = 10 * MINUTE_MS,
     .preset = "1s",
     .help = "a connection that leaves a request unanswered for so long is made anew"},
    {.path = "namespace",
     HF_KEY_NAME,
     CONFIG(ns),
     .preset = "hf",
     .help = "what every key in Redis begins with"},

    {.path = "worker", HF_KEY_MAPPING, NOWHERE(HF_IN_CONFIG), .help = "how jobs are run"},
    {.path = "worker.concurrency",
     HF_KEY_INTEGER,
     CONFIG(concurrency),
     .min = 1,
     .max = 1024,
     .preset = "16",
     .help = "jobs that run at the same time"},
    {.path = "worker.lease",
     HF_KEY_DURATION,
     CONFIG(lease_ms),
     .min = SECOND_MS,
     .max = HOUR_MS,
     .preset = "10s",
     .help =
         "how long a job stays locked when its worker dies; renewed at a third of it"},
    {.path = "worker.kill_grace",
     HF_KEY_DURATION,
     CONFIG(kill_grace_ms),
     .min = 1,
     .max = 15 * MINUTE_MS,
     .preset = "1s",
     .help =
         "from TERM to KILL before the lease of a program ends; at most a quarter of the "
         "lease is used"},
    {.path = "worker.shutdown_timeout",
     HF_KEY_DURATION,
     CONFIG(shutdown_timeout_ms),
     .min = 0,
     .max = DAY_MS,
     .preset = "25s",
     .help = "how long a worker that is stopped waits for the jobs that run"},
    {.path = "worker.order",
     HF_KEY_CHOICE,
     CONFIG(strict),
     .choices = "weighted|strict",
     .preset = "weighted",
     .help = "queues by their weight, or strictly in the order of the file"},

    {.path = "queues",
     HF_KEY_QUEUES,
     CONFIG(queues),
     .max = HF_CONFIG_QUEUES_MAX,
     .unset = "`default` alone",
     .help = "the queues that are served"},
    {.path = "queues[].name",
     HF_KEY_NAME,
     QUEUE(name),
     .required = true,
     .unset = "required",
     .help = "its name"},
    {.path = "queues[].weight",
     HF_KEY_INTEGER,
     QUEUE(weight),
     .min = 1,
     .max = 1000,
     .preset = "1",
     .help = "its share where there is work in several queues"},
    {.path = "queues[].max_running",
     HF_KEY_INTEGER,
     QUEUE(max_running),
     .min = 0,
     .max = 1000000,
     .unset = "no limit",
     .help = "jobs of it that run at the same time, across all workers; 0: no limit"},
    {.path = "queues[].rate",
     HF_KEY_MAPPING,
     NOWHERE(HF_IN_QUEUE),
     .unset = "no limit",
     .help = "how many of its jobs are started in a time, across all workers"},
    {.path = "queues[].rate.limit",
     HF_KEY_INTEGER,
     QUEUE(rate_limit),
     .min = 0,
     .max = 1000000,
     .required = true,
     .unset = "required",
     .help = "jobs; 0: no limit"},
    {.path = "queues[].rate.per",
     HF_KEY_DURATION,
     QUEUE(rate_per_ms),
     .min = 1,
     .max = DAY_MS,
     .preset = "1s",
     .help = "the time"},

    {.path = "retry",
     HF_KEY_MAPPING,
     NOWHERE(HF_IN_CONFIG),
     .help = "what follows a failed attempt"},
    {.path = "retry.max_attempts",
     HF_KEY_INTEGER,
     CONFIG(max_attempts),
     .min = 1,
     .max = 1000000,
     .preset = "20",
     .help =
         "after so many failed attempts a job is dead; a handler's and a job's own go "
         "before it"},
    {.path = "retry.backoff",
     HF_KEY_CHOICE,
     CONFIG(backoff),
     .choices = "exponential|linear|constant",
     .preset = "exponential",
     .help = "how the wait grows with each failed attempt"},
    {.path = "retry.base",
     HF_KEY_DURATION,
     CONFIG(backoff_base_ms),
     .min = 1,
     .max = DAY_MS,
     .preset = "2s",
     .help = "the first wait"},
    {.path = "retry.cap",
     HF_KEY_DURATION,
     CONFIG(backoff_cap_ms),
     .min = 1,
     .max = 30 * DAY_MS,
     .preset = "1h",
     .help = "the longest wait, not below `base`"},
    {.path = "retry.jitter",
     HF_KEY_NUMBER,
     CONFIG(backoff_jitter),
     .min = 0,
     .max = 1,
     .preset = "0.2",
     .help = "the part of a wait that is put on or taken off at random"},

    {.path = "poison",
     HF_KEY_INTEGER,
     CONFIG(poison),
     .min = 1,
     .max = 1000,
     .preset = "3",
     .help = "a job whose worker died with it so often is dead"},
    {.path = "dead",
     HF_KEY_MAPPING,
     NOWHERE(HF_IN_CONFIG),
     .help = "how many dead jobs are kept"},
    {.path = "dead.max",
     HF_KEY_INTEGER,
     CONFIG(dead_max),
     .min = 1,
     .max = 10000000,
     .preset = "10000",
     .help = "jobs of a queue; the oldest go first"},
    {.path = "dead.age",
     HF_KEY_DURATION,
     CONFIG(dead_age_ms),
     .min = SECOND_MS,
     .max = 3650 * DAY_MS,
     .preset = "180d",
     .help = "how long each is kept"},
    {.path = "limits", HF_KEY_MAPPING, NOWHERE(HF_IN_CONFIG), .help = "what is refused"},
    {.path = "limits.payload",
     HF_KEY_SIZE,
     CONFIG(payload_max),
     .min = 1,
     .max = HF_PAYLOAD_CEILING,
     .preset = "1MiB",
     .help = "the largest payload that is taken"},

    {.path = "handlers",
     HF_KEY_HANDLERS,
     CONFIG(handlers),
     .max = HF_CONFIG_HANDLERS_MAX,
     .unset = "none",
     .help = "the programs that run jobs"},
    {.path = "handlers[].type",
     HF_KEY_JOB_TYPE,
     HANDLER(type),
     .required = true,
     .unset = "required",
     .help = "the type of job it takes; `\"*\"`: every type that no other takes"},
    {.path = "handlers[].exec",
     HF_KEY_WORDS,
     HANDLER(exec),
     .min = 1,
     .max = HF_CONFIG_WORDS_MAX,
     .required = true,
     .unset = "required",
     .help = "the program and its arguments; no shell"},
    {.path = "handlers[].timeout",
     HF_KEY_DURATION,
     HANDLER(timeout_ms),
     .min = 0,
     .max = 30 * DAY_MS,
     .unset = "none",
     .help = "after it the program gets TERM, and the attempt has failed; 0: none"},
    {.path = "handlers[].grace",
     HF_KEY_DURATION,
     HANDLER(grace_ms),
     .min = 1,
     .max = HOUR_MS,
     .preset = "5s",
     .help = "from that TERM to KILL"},
    {.path = "handlers[].env",
     HF_KEY_ENV,
     HANDLER(env),
     .min = 0,
     .max = HF_CONFIG_WORDS_MAX,
     .unset = "none",
     .help = "names of variables to pass on; PATH, HOME, LANG, TZ and TMPDIR always are"},
    {.path = "handlers[].cwd",
     HF_KEY_TEXT,
     HANDLER(cwd),
     .unset = "the worker's",
     .help = "the directory it runs in"},
    {.path = "handlers[].max_attempts",
     HF_KEY_INTEGER,
     HANDLER(max_attempts),
     .min = 1,
     .max = 1000000,
     .unset = "`retry.max_attempts`",
     .help = "for the jobs of this handler"},

    {.path = "log",
     HF_KEY_MAPPING,
     NOWHERE(HF_IN_CONFIG),
     .help = "what the worker tells"},
    {.path = "log.level",
     HF_KEY_CHOICE,
     CONFIG(log_level),
     .choices = "debug|info|warn|error",
     .preset = "info",
     .reload = true,
     .help = "the least that is written"},
    {.path = "log.format",
     HF_KEY_CHOICE,
     CONFIG(log_format),
     .choices = "logfmt|json",
     .preset = "logfmt",
     .reload = true,
     .help = "how it is written, on standard error"},
};

const hf_key *hf_schema(size_t *n)
{
    *n = HF_COUNT(keys);
    return keys;
}

const char *hf_schema_child(const hf_key *key, const char *path)
{
    size_t len = strlen(path);
    const char *rest = key->path;
    if (len > 0) {
        if (strncmp(key->path, path, len) != 0 || key->path[len] != '.')
            return NULL;
        rest = key->path + len + 1;
    }
    return strchr(rest, '.') == NULL && strchr(rest, '[') == NULL ? rest : NULL;
}

const hf_key *hf_schema_find(const char *path, const char *name, size_t len)
{
    for (size_t i = 0; i < HF_COUNT(keys); i++) {
        const char *child = hf_schema_child(&keys[i], path);
        if (child != NULL && strlen(child) == len && memcmp(child, name, len) == 0)
            return &keys[i];
    }
    return NULL;
}
