/* redis_fixture.c - see redis_fixture.h.
 *
 * The server's own output goes to `log` in its directory and is printed when it does not
 * come up, since that is where the reason stands. */
#include "tests/support/redis_fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/certs.h"
#include "tests/support/eventually.h"
#include "tests/support/proc.h"

#define PRELOAD "hf-clock-preload.so"

enum { START_MS = 30000, SEEN_MS = 2000, ANSWER_S = 30, MISSING = 127, START_TRIES = 5 };
enum { TLS_WORDS = 10 };
enum { CLOCK_PATH_SIZE = HF_TEMPDIR_SIZE + 8, CONFIG_PATH_SIZE = CLOCK_PATH_SIZE };

static _Noreturn void give_up(const hf_fixture *f, const char *why)
{
    char path[HF_TEMPDIR_SIZE + 8];
    char log[4096];
    (void)snprintf(path, sizeof path, "%s/log", f->dir);
    (void)fprintf(stderr, "redis fixture: %s\n%s", why,
                  hf_read_file(path, log, sizeof log));
    hf_tempdir_remove(f->dir);
    exit(1);
}

static _Noreturn void skip_all(const hf_fixture *f, const char *why)
{
    const char *require = getenv("HF_REQUIRE_REDIS");
    hf_tempdir_remove(f->dir);
    if (require != NULL && strcmp(require, "1") == 0) {
        (void)fprintf(stderr, "redis fixture: %s\n", why);
        exit(1);
    }
    (void)printf("skipped: %s\n", why);
    exit(77);
}

/* A server that did not start: Redis refuses the options of TLS, Valkey misses the code.
 */
static bool lacks_tls(const hf_fixture *f)
{
    char path[HF_TEMPDIR_SIZE + 8], log[4096];
    (void)snprintf(path, sizeof path, "%s/log", f->dir);
    (void)hf_read_file(path, log, sizeof log);
    return (strstr(log, "tls-port") != NULL && strstr(log, "Bad directive") != NULL) ||
           strstr(log, "Failed finding TLS support") != NULL;
}

static bool is_free(unsigned port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                  .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    bool found = fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) == 0;
    if (fd >= 0)
        (void)close(fd);
    return found;
}

/* Below those that the kernel gives to connections, to which it would be lost before the
 * server listens, or while it is away. A node of a cluster has two. */
static uint16_t free_port(bool cluster)
{
    enum { FIRST = 10000, PORTS = 12000, BUS = 10000 };
    for (;;) {
        unsigned number = 0;
        (void)!getrandom(&number, sizeof number, 0);
        unsigned port = FIRST + number % PORTS;
        if (is_free(port) && (!cluster || is_free(port + BUS)))
            return (uint16_t)port;
    }
}

static const char *clock_path(const hf_fixture *f, char *path)
{
    (void)snprintf(path, CLOCK_PATH_SIZE, "%s/clock", f->dir);
    return path;
}

static char *config_path(const hf_fixture *f, char *path)
{
    (void)snprintf(path, CONFIG_PATH_SIZE, "%s/conf", f->dir);
    return path;
}

/* In the child. On Debian the server and redis-check-rdb are one program that looks at
 * the name it was called by, so the latter serves where only redis-tools is installed. */
static _Noreturn void become_server(char *argv[], const hf_fixture *f, pid_t parent)
{
    char log[HF_TEMPDIR_SIZE + 8], clock[CLOCK_PATH_SIZE];
    (void)snprintf(log, sizeof log, "%s/log", f->dir);
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (fd < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0)
        _exit(1);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* it died before the line above */
        _exit(1);
    if (f->clock != NULL && (setenv(HF_SERVER_CLOCK_ENV, clock_path(f, clock), 1) != 0 ||
                             setenv("LD_PRELOAD", HF_TEST_HELPERS "/" PRELOAD, 1) != 0))
        _exit(1);
    (void)execvp("redis-server", argv);
    (void)execvp("redis-check-rdb", argv);
    _exit(MISSING);
}

/* Its options of TLS, behind the others. The texts are the caller's. */
static size_t tls_words(const hf_fixture *f, char *words[TLS_WORDS])
{
    char port[8];
    (void)snprintf(port, sizeof port, "%u", (unsigned)f->tls_port);
    char *const all[TLS_WORDS] = {
        strdup("--tls-port"),         strdup(port),
        strdup("--tls-cert-file"),    hf_certs_path(f->dir, "server.pem"),
        strdup("--tls-key-file"),     hf_certs_path(f->dir, "server.key"),
        strdup("--tls-ca-cert-file"), hf_certs_path(f->dir, "ca.pem"),
        strdup("--tls-auth-clients"), strdup(f->options.tls_clients ? "yes" : "no")};
    memcpy(words, all, sizeof all);
    return TLS_WORDS;
}

static void spawn(hf_fixture *f)
{
    const hf_fixture_options *o = &f->options;
    char port[8];
    char *tls[TLS_WORDS];
    size_t n_tls = f->tls_port == 0 ? 0 : tls_words(f, tls);
    char *argv[29 + TLS_WORDS + HF_FIXTURE_ARGS], config[CONFIG_PATH_SIZE];
    size_t n = 0;
    (void)snprintf(port, sizeof port, "%u", (unsigned)f->port);
    argv[n++] = (char *)"redis-server";
    if (o->config != NULL)
        argv[n++] = config_path(f, config);
    const char *fixed[] = {"--port",        port,
                           "--bind",        "127.0.0.1",
                           "--unixsocket",  f->socket,
                           "--dir",         f->dir,
                           "--save",        "",
                           "--daemonize",   "no",
                           "--appendonly",  o->persistent ? "yes" : "no",
                           "--appendfsync", o->persistent ? "always" : "no"};
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        argv[n++] = (char *)fixed[i];
    if (o->password != NULL) {
        argv[n++] = (char *)"--requirepass";
        argv[n++] = (char *)o->password;
    }
    if (o->cluster) {
        argv[n++] = (char *)"--cluster-enabled";
        argv[n++] = (char *)"yes";
    }
    if (f->clock !=
        NULL) { /* the thread waits by this clock, and spins if it is behind */
        argv[n++] = (char *)"--jemalloc-bg-thread";
        argv[n++] = (char *)"no";
    }
    for (size_t i = 0; i < n_tls; i++)
        argv[n++] = tls[i];
    for (size_t i = 0; i < HF_FIXTURE_ARGS && o->args[i] != NULL; i++)
        argv[n++] = (char *)o->args[i];
    argv[n] = NULL;
    pid_t parent = getpid();
    (void)unlink(f->socket);
    if (f->clock != NULL)
        atomic_store(&f->clock->used, 0);
    f->pid = fork();
    if (f->pid == 0)
        become_server(argv, f, parent);
    if (f->pid < 0)
        give_up(f, "fork failed");
    for (size_t i = 0; i < n_tls; i++)
        free(tls[i]);
}

redisContext *hf_fixture_connect(const hf_fixture *f)
{
    const struct timeval wait = {.tv_sec = ANSWER_S};
    redisContext *c = redisConnectUnixWithTimeout(f->socket, wait);
    if (c == NULL || c->err != 0) {
        redisFree(c);
        return NULL;
    }
    (void)redisSetTimeout(c, wait);
    if (f->options.password != NULL)
        freeReplyObject(redisCommand(c, "AUTH %s", f->options.password));
    return c;
}

static bool answers(const hf_fixture *f)
{
    redisContext *c = hf_fixture_connect(f);
    redisReply *reply = c == NULL ? NULL : redisCommand(c, "PING");
    bool pong = reply != NULL && reply->type == REDIS_REPLY_STATUS;
    freeReplyObject(reply);
    redisFree(c);
    return pong;
}

/* True: it answers. False: it ended, which a port taken meanwhile explains. */
static bool came_up(hf_fixture *f)
{
    const uint64_t until = hf_test_fair_ms() + START_MS;
    while (!answers(f)) {
        int status;
        if (waitpid(f->pid, &status, WNOHANG) == f->pid) {
            f->pid = 0;
            if (WIFEXITED(status) && WEXITSTATUS(status) == MISSING)
                skip_all(f, "there is no redis-server in PATH");
            if (f->options.tls && lacks_tls(f))
                skip_all(f, "the redis-server in PATH was built without TLS");
            return false;
        }
        if (hf_test_fair_ms() >= until) {
            hf_fixture_kill(f, SIGKILL);
            give_up(f, "the server did not answer in time");
        }
        hf_test_pause_ms(1);
    }
    if (f->clock != NULL && atomic_load(&f->clock->used) == 0)
        give_up(f, "the server runs without " PRELOAD);
    return true;
}

static void give_clock(hf_fixture *f)
{
    char path[CLOCK_PATH_SIZE];
    f->clock = hf_server_clock_open(clock_path(f, path), true);
    if (f->clock == NULL)
        give_up(f, "the file of its clock cannot be made");
}

/* Once: a Sentinel keeps what it learns there. */
static void write_config(hf_fixture *f)
{
    char path[CONFIG_PATH_SIZE];
    FILE *file = fopen(config_path(f, path), "w");
    if (file == NULL || fputs(f->options.config, file) == EOF || fclose(file) != 0)
        give_up(f, "its configuration cannot be written");
}

void hf_fixture_start(hf_fixture *f, const hf_fixture_options *options)
{
    *f = (hf_fixture){.pid = 0};
    (void)signal(SIGPIPE, SIG_IGN); /* hiredis writes to servers that have gone */
    if (options != NULL)
        f->options = *options;
    hf_tempdir_make(f->dir);
    (void)snprintf(f->socket, sizeof f->socket, "%s/s", f->dir);
    (void)snprintf(f->url, sizeof f->url, "unix://%s", f->socket);
    if (f->options.config != NULL)
        write_config(f);
    if (f->options.clock)
        give_clock(f);
    if (f->options.tls) {
        hf_certs_make(f->dir);
        (void)snprintf(f->ca, sizeof f->ca, "%s/ca.pem", f->dir);
    }
    for (int i = 0; i < START_TRIES; i++) {
        if (f->options.tcp || f->options.cluster) {
            f->port = free_port(f->options.cluster);
            (void)snprintf(f->tcp_url, sizeof f->tcp_url, "redis://127.0.0.1:%u",
                           (unsigned)f->port);
        }
        if (f->options.tls) {
            f->tls_port = free_port(f->options.cluster);
            (void)snprintf(f->tls_url, sizeof f->tls_url, "rediss://127.0.0.1:%u",
                           (unsigned)f->tls_port);
        }
        spawn(f);
        if (came_up(f))
            return;
    }
    give_up(f, "the server does not start");
}

void hf_fixture_restart(hf_fixture *f)
{
    spawn(f);
    if (!came_up(f))
        give_up(f, "the server does not start again");
}

void hf_fixture_signal(hf_fixture *f, int signal)
{
    if (f->pid > 0)
        hf_signal_child(f->pid, signal);
}

void hf_fixture_kill(hf_fixture *f, int signal)
{
    redisFree(f->connection);
    f->connection = NULL;
    if (f->pid <= 0)
        return;
    (void)kill(f->pid, signal);
    (void)kill(f->pid, SIGCONT); /* a stopped server takes no signal but SIGKILL */
    while (waitpid(f->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    f->pid = 0;
}

void hf_fixture_stop(hf_fixture *f)
{
    hf_fixture_kill(f, SIGKILL);
    hf_tempdir_remove(f->dir);
    hf_server_clock_close(f->clock);
    free(f->answer);
    *f = (hf_fixture){.pid = 0};
}

void hf_fixture_clock_step(hf_fixture *f, int64_t ms)
{
    hf_server_clock_step(f->clock, ms);
}

int hf_fixture_up(void **state)
{
    hf_fixture_start(*state, NULL);
    return 0;
}

int hf_fixture_down(void **state)
{
    hf_fixture_stop(*state);
    return 0;
}

static int64_t server_ms(hf_fixture *f)
{
    long long s, us;
    if (sscanf(hf_fixture_command(f, "TIME"), "%lld %lld", &s, &us) != 2)
        return 0;
    return s * 1000 + us / 1000;
}

void hf_fixture_clock_jump(hf_fixture *f, int64_t ms)
{
    int64_t before = server_ms(f);
    hf_fixture_clock_step(f, ms);
    EVENTUALLY(SEEN_MS, 2 * llabs(server_ms(f) - before) >= llabs(ms));
}

void hf_fixture_clock_slew(hf_fixture *f, int permille)
{
    hf_server_clock_slew(f->clock, permille);
}

const char *hf_fixture_url(const hf_fixture *f)
{
    return f->url;
}

static void print_reply(FILE *out, const redisReply *reply)
{
    switch (reply->type) {
    case REDIS_REPLY_INTEGER:
        (void)fprintf(out, "%lld", reply->integer);
        break;
    case REDIS_REPLY_NIL:
        (void)fputs("(nil)", out);
        break;
    case REDIS_REPLY_ARRAY:
        for (size_t i = 0; i < reply->elements; i++) {
            print_reply(out, reply->element[i]);
            (void)fputc('\n', out);
        }
        break;
    case REDIS_REPLY_ERROR:
        (void)fputs("(error) ", out); /* fall through */
    default:
        (void)fwrite(reply->str, 1, (size_t)reply->len, out);
        break;
    }
}

static const char *command(hf_fixture *f, const char *format, va_list args)
{
    size_t size;
    free(f->answer);
    f->answer = NULL;
    FILE *out = open_memstream(&f->answer, &size);
    if (out == NULL)
        give_up(f, "out of memory");
    if (f->connection == NULL)
        f->connection = hf_fixture_connect(f);
    redisReply *reply =
        f->connection == NULL ? NULL : redisvCommand(f->connection, format, args);
    if (reply != NULL) {
        print_reply(out, reply);
        freeReplyObject(reply);
    } else {
        (void)fputs("(gone)", out);
        redisFree(f->connection);
        f->connection = NULL;
    }
    (void)fclose(out);
    return f->answer;
}

const char *hf_fixture_command(hf_fixture *f, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *answer = command(f, format, args);
    va_end(args);
    return answer;
}

long long hf_fixture_number(hf_fixture *f, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *answer = command(f, format, args);
    va_end(args);
    char *end;
    long long number = strtoll(answer, &end, 10);
    return end != answer && *end == '\0' ? number : -1;
}

long long hf_fixture_expiry(hf_fixture *f, const char *format, ...)
{
    char key[256];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(key, sizeof key, format, args);
    va_end(args);
    /* PEXPIRETIME came with Redis 7.0. Without it the time left counts from a millisecond
     * that two readings of the clock agree on. */
    static const char script[] =
        "local at = redis.pcall('PEXPIRETIME', KEYS[1]) "
        "if type(at) == 'number' then return at end "
        "local function now() local t = redis.call('TIME') "
        "return t[1] * 1000 + math.floor(t[2] / 1000) end "
        "while true do local before = now() local left = redis.call('PTTL', KEYS[1]) "
        "if left < 0 then return left end "
        "if now() == before then return before + left end end";
    return hf_fixture_number(f, "EVAL %s 1 %s", script, key);
}

static long long number_of(const char *info, const char *field)
{
    const char *at = strstr(info, field);
    return at == NULL ? 0 : strtoll(at + strlen(field), NULL, 10);
}

/* From Redis 7.2 on, a command that waits counts when it ends. Valkey says 7.2 of itself.
 */
static bool counts_at_end(const char *info)
{
    long long major = number_of(info, "redis_version:");
    return major > 7 || (major == 7 && number_of(info, "redis_version:7.") >= 2);
}

long long hf_fixture_calls(hf_fixture *f, const char *command)
{
    char field[64];
    (void)snprintf(field, sizeof field, "cmdstat_%s:calls=", command);
    const char *info = hf_fixture_command(f, "INFO all");
    long long calls = number_of(info, field);
    if (strstr(command, "pop") != NULL && counts_at_end(info))
        calls += number_of(info, "blocked_clients:");
    return calls;
}
