/* watch.c - see watch.h. */
#include "tests/history/watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "holdfast/lock.h"
#include "lock_scripts.h"
#include "tests/history/line.h"
#include "tests/support/eventually.h"
#include "tests/support/unix_socket.h"

enum { WORDS_MAX = 512, KIND_MAX = 16, MARK_MS = 30000, MARK_MAX = 32 };

typedef struct command {
    char *words[WORDS_MAX];
    size_t n;
    bool by_script;
    uint64_t at_ms;
} command;

/* ---- a line of MONITOR: +SECONDS.MICROS [DB WHO] "WORD" "WORD" ... ---- */

/* Cuts the word out in place; gives what stands behind it. */
static char *cut_word(char *at, char **word)
{
    char *to = ++at;
    *word = to;
    while (*at != '\0' && *at != '"') {
        if (*at == '\\' && at[1] != '\0')
            at++;
        *to++ = *at++;
    }
    if (*at == '"')
        at++;
    *to = '\0';
    return at;
}

static bool parse(char *line, command *c)
{
    char *end;
    uint64_t seconds = strtoull(line + 1, &end, 10);
    if (line[0] != '+' || *end != '.')
        return false;
    c->at_ms = seconds * 1000 + strtoull(end + 1, &end, 10) / 1000;
    c->n = 0;
    end = strchr(end, '[');
    char *close = end == NULL ? NULL : strchr(end, ']');
    if (close == NULL)
        return false;
    c->by_script = close - end > 4 && strncmp(close - 4, " lua", 4) == 0;
    for (char *at = close + 1; *at == ' ' && at[1] == '"' && c->n < WORDS_MAX;)
        at = cut_word(at + 1, &c->words[c->n++]);
    return c->n > 0;
}

/* "hf:lock:{tag}:kind:rest", or false. */
typedef struct key {
    char tag[HF_LOCK_NAME_MAX + 1], kind[KIND_MAX];
    const char *rest;
} key;

static bool parse_key(const char *text, key *k)
{
    const char *open = strstr(text, ":lock:{");
    const char *close = open == NULL ? NULL : strchr(open, '}');
    const char *colon = close == NULL || close[1] != ':' ? NULL : strchr(close + 2, ':');
    if (colon == NULL || colon - close - 2 >= KIND_MAX)
        return false;
    (void)snprintf(k->tag, sizeof k->tag, "%.*s", (int)(close - open - 7), open + 7);
    (void)snprintf(k->kind, sizeof k->kind, "%.*s", (int)(colon - close - 2), close + 2);
    k->rest = colon + 1;
    return true;
}

/* ---- what scripts call ---- */

static void see_entry(const hf_watch *w, const key *k, const command *c)
{
    char mode, fence[32], client[128], names[2400], holds[1500], lease[32];
    int state;
    unsigned permits;
    if (c->n < 4 || strcmp(c->words[2], "#") == 0 ||
        sscanf(c->words[3], "%c %d %u %31s %127s %2399s %1499s %31s", &mode, &state,
               &permits, fence, client, names, holds, lease) != 8)
        return;
    hf_line_write(w->out,
                  "{\"ev\":\"entry\",\"name\":\"%s\",\"owner\":\"%s\",\"mode\":\"%c\","
                  "\"granted\":%d,\"permits\":%u,\"fence\":%s,\"client\":\"%s\","
                  "\"holds\":\"%s\",\"lease\":%s}",
                  k->rest, c->words[2], mode, state != 0, permits, fence, client, holds,
                  lease);
}

static void see_lease(const hf_watch *w, const key *k, const command *c)
{
    hf_line_write(w->out,
                  "{\"ev\":\"lease\",\"name\":\"%s\",\"owner\":\"%s\",\"start\":%s}",
                  k->rest, c->words[c->n - 1], c->words[c->n - 2]);
}

static void see_queued(const hf_watch *w, const key *k, const command *c)
{
    hf_line_write(w->out,
                  "{\"ev\":\"queued\",\"name\":\"%s\",\"owner\":\"%s\",\"place\":%s}",
                  k->rest, c->words[c->n - 1], c->words[c->n - 2]);
}

static void see_gone(const hf_watch *w, const key *k, const command *c)
{
    for (size_t i = 2; i < c->n; i++)
        hf_line_write(w->out,
                      "{\"ev\":\"gone\",\"name\":\"%s\",\"owner\":\"%s\",\"at\":%" PRIu64
                      "}",
                      k->rest, c->words[i], c->at_ms);
}

static void see_told(const hf_watch *w, const key *k, const command *c)
{
    char what[16];
    unsigned long long fence;
    if (sscanf(c->words[2], "%15s %llu", what, &fence) == 2)
        hf_line_write(w->out,
                      "{\"ev\":\"told\",\"tag\":\"%s\",\"client\":\"%s\",\"what\":\"%s\","
                      "\"fence\":%llu}",
                      k->tag, k->rest, what, fence);
}

static void see_cell(const hf_watch *w, const key *k, const command *c)
{
    const char *colon = strrchr(c->words[2], ':');
    if (colon != NULL)
        hf_line_write(w->out,
                      "{\"ev\":\"cell\",\"name\":\"%s\",\"owner\":\"%.*s\",\"fence\":%s,"
                      "\"until\":%s}",
                      k->rest, (int)(colon - c->words[2]), c->words[2], colon + 1,
                      c->words[c->n - 1]);
}

static void see_cell_until(const hf_watch *w, const key *k, const command *c)
{
    hf_line_write(w->out, "{\"ev\":\"cell_until\",\"name\":\"%s\",\"until\":%s}", k->rest,
                  c->n > 2 ? c->words[2] : "0");
}

static void see_guard(const hf_watch *w, const key *k, const command *c)
{
    const char *space = strchr(c->words[2], ' ');
    if (space != NULL)
        hf_line_write(w->out,
                      "{\"ev\":\"guard\",\"resource\":\"%s\",\"fence\":%.*s,\"owner\":"
                      "\"%s\"}",
                      k->rest, (int)(space - c->words[2]), c->words[2], space + 1);
}

static void see_call(const hf_watch *w, const command *c)
{
    static const struct {
        const char *command, *kind;
        void (*see)(const hf_watch *w, const key *k, const command *c);
    } kinds[] = {{"HSET", "e", see_entry},
                 {"ZADD", "x", see_lease},
                 {"ZADD", "q", see_queued},
                 {"ZREM", "x", see_gone},
                 {"RPUSH", "in", see_told},
                 {"SET", "cell", see_cell},
                 {"PEXPIREAT", "cell", see_cell_until},
                 {"DEL", "cell", see_cell_until},
                 {"SET", "guard", see_guard}};
    key k;
    if (c->n < 2 || !parse_key(c->words[1], &k))
        return;
    for (size_t i = 0; i < HF_COUNT(kinds); i++)
        if (strcasecmp(c->words[0], kinds[i].command) == 0 &&
            strcmp(k.kind, kinds[i].kind) == 0)
            kinds[i].see(w, &k, c);
}

/* ---- what clients send ---- */

static const char *script_of(const char *sha)
{
    const struct {
        const hf_script *script;
        const char *name;
    } scripts[] = {
        {&hf_lua_lock_acquire, "acquire"}, {&hf_lua_lock_release, "release"},
        {&hf_lua_lock_renew, "renew"},     {&hf_lua_lock_force, "force"},
        {&hf_lua_lock_look, "look"},       {&hf_lua_lock_fence_check, "check"}};
    for (size_t i = 0; i < HF_COUNT(scripts); i++)
        if (strcasecmp(sha, scripts[i].script->sha1) == 0)
            return scripts[i].name;
    return "";
}

static void see_script(const hf_watch *w, const command *c)
{
    const char *name = script_of(c->words[1]);
    bool enter = strcmp(name, "acquire") == 0, leave = strcmp(name, "release") == 0;
    size_t argv = 3 + strtoul(c->words[2], NULL, 10); /* ARGV[1] */
    bool owned = (enter || leave) && c->n > argv + 1;
    hf_line_write(w->out,
                  "{\"ev\":\"script\",\"what\":\"%s\",\"owner\":\"%s\",\"hold\":\"%s\","
                  "\"limit\":%s}",
                  name, owned ? c->words[argv] : "", owned ? c->words[argv + 1] : "",
                  enter && c->n > argv + 5 ? c->words[argv + 5] : "0");
}

static void see_deleted(const hf_watch *w, const command *c)
{
    key k;
    for (size_t i = 1; i < c->n; i++)
        if (parse_key(c->words[i], &k))
            hf_line_write(w->out, "{\"ev\":\"wiped\",\"name\":\"%s\"}", k.rest);
}

static void see(hf_watch *w, const command *c)
{
    bool script = strcasecmp(c->words[0], "EVALSHA") == 0;
    atomic_fetch_add(&w->commands, c->by_script || script);
    if (c->by_script) {
        see_call(w, c);
        return;
    }
    if (script && c->n > 3) {
        see_script(w, c);
        return;
    }
    hf_line_write(w->out, "{\"ev\":\"script\",\"what\":\"\"}");
    if (strcasecmp(c->words[0], "DEL") == 0 || strcasecmp(c->words[0], "UNLINK") == 0)
        see_deleted(w, c);
    else if (strncasecmp(c->words[0], "FLUSH", 5) == 0)
        hf_line_write(w->out, "{\"ev\":\"wiped\",\"name\":\"*\"}");
    else if (c->n > 1 && strcmp(c->words[0], "ECHO") == 0)
        atomic_store(&w->marks, (unsigned)strtoul(c->words[1], NULL, 10));
}

static void *watch(void *arg)
{
    hf_watch *w = arg;
    command *c = malloc(sizeof *c);
    char *line = NULL;
    size_t size = 0;
    HF_ASSERT(c != NULL);
    while (getline(&line, &size, w->file) > 0)
        if (parse(line, c))
            see(w, c);
    free(line);
    free(c);
    return NULL;
}

/* ---- its life ---- */

void hf_watch_start(hf_watch *w, hf_fixture *redis, const char *path)
{
    static const char hello[] = "CLIENT ID\r\nMONITOR\r\n";
    char text[32] = "";
    size_t len = 0;
    *w = (hf_watch){.redis = redis, .in = hf_socket_connect(redis->socket)};
    w->out = hf_lines_open(path);
    if (w->in < 0 || !hf_socket_send(w->in, hello, sizeof hello - 1))
        fail_msg("no MONITOR");
    while (len + 1 < sizeof text && strchr(text, '\n') == NULL)
        if (read(w->in, text + len++, 1) != 1)
            fail_msg("no MONITOR");
    w->id = strtoll(text + 1, NULL, 10);
    w->file = fdopen(w->in, "r");
    if (w->file == NULL || pthread_create(&w->thread, NULL, watch, w) != 0)
        fail_msg("no thread");
    hf_watch_sync(w);
}

void hf_watch_sync(hf_watch *w)
{
    const unsigned mark = ++w->marked;
    char text[MARK_MAX];
    (void)snprintf(text, sizeof text, "%u", mark);
    /* The fixture answers "(gone)" while its server is stopped for long. */
    EVENTUALLY(MARK_MS, strcmp(hf_fixture_command(w->redis, "ECHO %s", text), text) == 0);
    EVENTUALLY(MARK_MS, atomic_load(&w->marks) == mark);
}

void hf_watch_stop(hf_watch *w)
{
    (void)shutdown(w->in, SHUT_RDWR);
    (void)pthread_join(w->thread, NULL);
    (void)fclose(w->file);
    (void)close(w->out);
}
