/* info.c - redis/info.h. INFO is lines of "name:value", ended by CR LF. */
#include "redis/info.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OLDEST_MAJOR = 6, OLDEST_MINOR = 2 };

/* The value of a field, which begins a line, and its length; NULL: there is none. */
static const char *find(const char *text, const char *name, size_t *len)
{
    size_t name_len = strlen(name);
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        if (*line == '\n')
            line++;
        if (strncmp(line, name, name_len) != 0 || line[name_len] != ':')
            continue;
        const char *value = line + name_len + 1;
        *len = strcspn(value, "\r\n");
        return value;
    }
    return NULL;
}

static void copy(const char *text, const char *name, char *out, size_t size)
{
    size_t len = 0;
    const char *value = find(text, name, &len);
    if (value != NULL)
        snprintf(out, size, "%.*s", (int)(len < size ? len : size - 1), value);
}

static long long number(const char *text, const char *name, long long otherwise)
{
    size_t len = 0;
    const char *value = find(text, name, &len);
    return value == NULL ? otherwise : strtoll(value, NULL, 10);
}

static bool is_error(const char *text, const char *name)
{
    size_t len = 0;
    const char *value = find(text, name, &len);
    return value != NULL && len == 3 && strncmp(value, "err", 3) == 0;
}

static bool is_node(const char *text)
{
    size_t len = 0;
    const char *value = find(text, "redis_mode", &len);
    return value != NULL && len == 7 && strncmp(value, "cluster", 7) == 0;
}

/* INFO does not tell the save points. That a snapshot was made, loaded or begun tells
 * that there are some; a server that has not come to its first one is taken to have none.
 */
static bool makes_snapshots(const char *text)
{
    return number(text, "rdb_last_bgsave_time_sec", -1) >= 0 ||
           number(text, "rdb_bgsave_in_progress", 0) > 0 ||
           number(text, "rdb_saves", 0) > 0 ||
           number(text, "rdb_last_load_keys_loaded", 0) > 0;
}

/* "12.345" of seconds. */
static int64_t seconds_ms(const char *text, const char *name)
{
    size_t len = 0;
    const char *value = find(text, name, &len);
    return value == NULL ? 0 : (int64_t)(strtod(value, NULL) * 1000);
}

static int64_t cpu_ms(const char *text)
{
    size_t len = 0;
    return find(text, "used_cpu_user", &len) == NULL
               ? -1
               : seconds_ms(text, "used_cpu_user") + seconds_ms(text, "used_cpu_sys");
}

void hf_info_parse(const char *text, hf_server_info *out)
{
    *out = (hf_server_info){.size = sizeof *out, .client_id = out->client_id};
    copy(text, "redis_version", out->version, sizeof out->version);
    copy(text, "run_id", out->run_id, sizeof out->run_id);
    copy(text, "master_replid", out->replid, sizeof out->replid);
    copy(text, "role", out->role, sizeof out->role);
    copy(text, "maxmemory_policy", out->policy, sizeof out->policy);
    out->aof = number(text, "aof_enabled", 0) != 0;
    out->rdb = makes_snapshots(text);
    out->loading = number(text, "loading", 0) != 0;
    out->aof_failed = is_error(text, "aof_last_write_status");
    out->rdb_failed = is_error(text, "rdb_last_bgsave_status");
    out->used_memory = number(text, "used_memory", 0);
    out->maxmemory = number(text, "maxmemory", 0);
    out->replicas = number(text, "connected_slaves", -1);
    out->in_cluster = is_node(text);
    out->good_replicas = number(text, "min_slaves_good_slaves", -1);
    const int64_t uptime_s = number(text, "uptime_in_seconds", -1);
    out->uptime_ms = uptime_s < 0 ? -1 : uptime_s * 1000;
    out->clients = number(text, "connected_clients", -1);
    out->blocked_clients = number(text, "blocked_clients", -1);
    out->commands = number(text, "total_commands_processed", -1);
    out->cpu_ms = cpu_ms(text);
}

bool hf_info_new_enough(const char *version)
{
    char *end = NULL;
    long major = strtol(version, &end, 10);
    long minor = *end == '.' ? strtol(end + 1, NULL, 10) : 0;
    return major > OLDEST_MAJOR || (major == OLDEST_MAJOR && minor >= OLDEST_MINOR);
}
