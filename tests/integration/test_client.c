/* test_client.c - the life of a client: how it connects, logs in, fails, and comes back.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/base.h"
#include "redis/server.h"
#include "tests/support/client_fixture.h"
#include "tests/support/eventually.h"
#include "tests/support/proxy.h"
#include "tests/support/redis_fixture.h"

enum { SOON_MS = 30000, FDS_MAX = 256, CYCLES = 1000 };

static hf_fixture redis; /* of each test; one that needs no server does not start it */

static int up(void **state)
{
    (void)state;
    hf_fixture_start(&redis, &(hf_fixture_options){.tcp = true});
    return 0;
}

/* ---- descriptors of this process ---- */

/* Marks every open descriptor. */
static void open_fds(bool open[FDS_MAX])
{
    for (int fd = 0; fd < FDS_MAX; fd++)
        open[fd] = fcntl(fd, F_GETFD) >= 0;
}

/* The socket that is open now and was not before. */
static int new_socket(const bool before[FDS_MAX])
{
    struct stat st;
    for (int fd = 0; fd < FDS_MAX; fd++)
        if (!before[fd] && fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode))
            return fd;
    fail_msg("no new socket");
    return -1;
}

/* ---- connecting ---- */

static void it_connects_through_a_unix_socket_and_tells_what_the_server_is(void **state)
{
    (void)state;
    hf_client_fixture fixture;
    hf_asked asked = {.answers = 0};
    hf_client_fixture_open(&fixture, redis.url, NULL);
    assert_false(hf_client_ready(fixture.client));
    assert_int_equal(hf_client_status(fixture.client), HF_CONN);
    assert_int_equal(hf_ask(&fixture, &asked, 0, "PING"), HF_CONN);
    RUN_UNTIL(&fixture, SOON_MS, fixture.ready == 1);
    const hf_server_info *server = hf_client_server(fixture.client);
    char line[64];
    (void)snprintf(line, sizeof line, "redis_version:%s\r", server->version);
    assert_non_null(strstr(hf_fixture_command(&redis, "INFO server"), line));
    assert_int_equal(strlen(server->run_id), 40);
    assert_int_equal(strlen(server->replid), 40);
    assert_string_equal(server->role, "master");
    assert_string_equal(server->policy, "noeviction");
    assert_false(server->aof || server->rdb || server->loading);
    assert_string_equal(hf_ask_now(&fixture, &asked, "CLIENT ID"), "");
    assert_int_equal(asked.number, server->client_id);
    assert_int_equal(fixture.lost, 0);
    hf_client_fixture_close(&fixture);
}

static void it_connects_through_tcp_by_address_and_by_name(void **state)
{
    (void)state;
    static const char *const hosts[] = {"127.0.0.1", "localhost"};
    for (size_t i = 0; i < HF_COUNT(hosts); i++) {
        char url[64];
        hf_client_fixture fixture;
        hf_asked asked = {.answers = 0};
        (void)snprintf(url, sizeof url, "redis://%s:%u/2", hosts[i], redis.port);
        hf_client_fixture_connect(&fixture, url);
        assert_string_equal(hf_ask_now(&fixture, &asked, "SET where there"), "OK");
        hf_client_fixture_close(&fixture);
        assert_string_equal(hf_fixture_command(&redis, "GET where"), "(nil)");
        assert_string_equal(hf_fixture_command(&redis, "SELECT 2"), "OK");
        assert_string_equal(hf_fixture_command(&redis, "GETDEL where"), "there");
        assert_string_equal(hf_fixture_command(&redis, "SELECT 0"), "OK");
    }
}

static void its_socket_is_closed_on_exec(void **state)
{
    (void)state;
    const char *const urls[] = {redis.url, redis.tcp_url};
    for (size_t i = 0; i < HF_COUNT(urls); i++) {
        bool before[FDS_MAX];
        hf_client_fixture fixture;
        open_fds(before);
        hf_client_fixture_connect(&fixture, urls[i]);
        assert_int_equal(fcntl(new_socket(before), F_GETFD), FD_CLOEXEC);
        hf_client_fixture_close(&fixture);
    }
}

/* ---- logging in ---- */

/* The first event of a client with this URL; its detail must not contain the word. */
static hf_err first_event(const char *url, const char *secret)
{
    hf_client_fixture fixture;
    hf_client_fixture_open(&fixture, url, NULL);
    RUN_UNTIL(&fixture, SOON_MS, fixture.ready + fixture.lost == 1);
    assert_non_null(strstr(fixture.detail, redis.socket));
    assert_null(strstr(fixture.detail, secret));
    assert_null(strstr(hf_client_detail(fixture.client), secret));
    hf_err err = fixture.err;
    hf_client_fixture_close(&fixture);
    return err;
}

static void a_wrong_or_missing_password_is_told_and_never_repeated(void **state)
{
    (void)state;
    char url[160];
    (void)snprintf(url, sizeof url, "unix://:hunter2@%s", redis.socket);
    assert_int_equal(first_event(url, "hunter2"), HF_AUTH); /* the server has none */
    hf_fixture_command(&redis, "CONFIG SET requirepass s3cret");
    assert_int_equal(first_event(url, "hunter2"), HF_AUTH);
    assert_int_equal(first_event(redis.url, "hunter2"), HF_AUTH);
    (void)snprintf(url, sizeof url, "unix://:s3cret@%s", redis.socket);
    assert_int_equal(first_event(url, "s3cret"), HF_OK);
    (void)snprintf(url, sizeof url, "unix://default:s3cret@%s?db=1", redis.socket);
    assert_int_equal(first_event(url, "s3cret"), HF_OK);
    (void)snprintf(url, sizeof url, "unix://nobody:s3cret@%s", redis.socket);
    assert_int_equal(first_event(url, "s3cret"), HF_AUTH);
}

static void a_user_with_a_password_and_a_database_is_used(void **state)
{
    (void)state;
    char url[160];
    hf_client_fixture fixture;
    hf_asked asked = {.answers = 0};
    hf_fixture_command(&redis, "ACL SETUSER joe on >p@ss/w:rd ~* +@all");
    (void)snprintf(url, sizeof url, "unix://joe:p%%40ss%%2Fw%%3Ard@%s?db=5",
                   redis.socket);
    hf_client_fixture_connect(&fixture, url);
    assert_string_equal(hf_ask_now(&fixture, &asked, "ACL WHOAMI"), "joe");
    assert_string_equal(hf_ask_now(&fixture, &asked, "SET k five"), "OK");
    hf_client_fixture_close(&fixture);
    hf_fixture_command(&redis, "SELECT 5");
    assert_string_equal(hf_fixture_command(&redis, "GET k"), "five");
}

static void the_password_may_stand_in_a_file(void **state)
{
    (void)state;
    char file[HF_TEMPDIR_SIZE + 8];
    hf_client_fixture fixture;
    hf_fixture_command(&redis, "CONFIG SET requirepass s3cret");
    (void)snprintf(file, sizeof file, "%s/pw", redis.dir);
    hf_write_file(file, "s3cret\n");
    hf_client_fixture_open_to(&fixture,
                              &(hf_server_opts){.url = redis.url, .password_file = file});
    RUN_UNTIL(&fixture, SOON_MS, fixture.ready == 1);
    hf_client_fixture_close(&fixture);
}

static void a_user_without_permission_for_info_is_ready_without_it(void **state)
{
    (void)state;
    char url[160];
    hf_client_fixture fixture;
    hf_asked asked = {.answers = 0};
    hf_fixture_command(&redis, "ACL SETUSER low on >pw ~* +get +set");
    (void)snprintf(url, sizeof url, "unix://low:pw@%s", redis.socket);
    hf_client_fixture_connect(&fixture, url);
    const hf_server_info *info = hf_client_server(fixture.client); /* as HELLO told it */
    assert_true(info->version[0] != '\0' && info->client_id > 0);
    assert_string_equal(info->role, "master");
    assert_string_equal(info->policy, "");
    assert_string_equal(hf_ask_now(&fixture, &asked, "SET k v"), "OK");
    (void)hf_ask_now(&fixture, &asked, "DEL k");
    assert_int_equal(asked.err, HF_AUTH);
    hf_client_fixture_close(&fixture);
    (void)snprintf(url, sizeof url, "unix://low:pw@%s?db=1", redis.socket);
    assert_int_equal(first_event(url, ":pw"), HF_AUTH); /* SELECT is not permitted */
}

/* ---- failing, and coming back ---- */

static void it_comes_back_when_the_server_was_killed_and_started_again(void **state)
{
    (void)state;
    hf_client_fixture fixture;
    hf_asked asked = {.answers = 0};
    hf_client_fixture_connect(&fixture, redis.url);
    char run_id[48];
    memcpy(run_id, hf_client_server(fixture.client)->run_id, sizeof run_id);
    hf_fixture_kill(&redis, SIGKILL);
    RUN_UNTIL(&fixture, SOON_MS, fixture.lost >= 3); /* the loss, and two tries in vain */
    assert_int_equal(fixture.err, HF_CONN);
    assert_int_equal(hf_ask(&fixture, &asked, 0, "PING"), HF_CONN);
    hf_fixture_restart(&redis);
    RUN_UNTIL(&fixture, SOON_MS, fixture.ready == 2);
    assert_string_equal(hf_ask_now(&fixture, &asked, "PING"), "PONG");
    assert_string_not_equal(hf_client_server(fixture.client)->run_id, run_id);
    hf_client_fixture_close(&fixture);
}

static void a_replica_is_not_ready_until_it_is_a_primary(void **state)
{
    (void)state;
    hf_client_fixture fixture, reader;
    hf_asked asked = {.answers = 0};
    hf_fixture_command(&redis, "REPLICAOF 127.0.0.1 1");
    hf_client_fixture_open(&fixture, redis.url, NULL);
    RUN_UNTIL(&fixture, SOON_MS, fixture.lost == 3);
    assert_int_equal(fixture.ready, 0);
    assert_int_equal(fixture.err, HF_READONLY);
    assert_non_null(strstr(fixture.detail, "expected a primary, found a replica"));
    hf_client_fixture_open(&reader, redis.url, &(hf_client_opts){.replica_ok = true});
    RUN_UNTIL(&reader, SOON_MS, reader.ready == 1);
    assert_string_equal(hf_client_server(reader.client)->role, "slave");
    (void)hf_ask_now(&reader, &asked, "GET a");
    assert_int_equal(asked.err, HF_OK);
    hf_client_fixture_close(&reader);
    hf_fixture_command(&redis, "REPLICAOF NO ONE");
    RUN_UNTIL(&fixture, SOON_MS, fixture.ready == 1);
    hf_client_fixture_close(&fixture);
}

/* A user without INFO is told the role by HELLO. */
static void without_info_a_replica_is_not_ready_either(void **state)
{
    (void)state;
    char url[160];
    hf_client_fixture fixture;
    hf_fixture_command(&redis, "ACL SETUSER low on >pw ~* -@all");
    hf_fixture_command(&redis, "REPLICAOF 127.0.0.1 1");
    (void)snprintf(url, sizeof url, "unix://low:pw@%s", redis.socket);
    hf_client_fixture_open(&fixture, url, NULL);
    RUN_UNTIL(&fixture, SOON_MS, fixture.lost == 2);
    assert_int_equal(fixture.ready, 0);
    assert_int_equal(fixture.err, HF_READONLY);
    hf_fixture_command(&redis, "REPLICAOF NO ONE");
    RUN_UNTIL(&fixture, SOON_MS, fixture.ready == 1);
    const hf_server_info *info = hf_client_server(fixture.client);
    assert_string_equal(info->role, "master");
    assert_true(info->version[0] != '\0' && info->client_id > 0);
    assert_string_equal(info->run_id, "");
    hf_client_fixture_close(&fixture);
}

/* One that takes a replica is ready, until it is refused. */
static void refused_as_a_replica_it_connects_less_and_less_often(void **state)
{
    (void)state;
    enum { TIMES = 7, LEAST_MS = 1000 };
    char url[160];
    hf_client_fixture fixture;
    hf_asked asked = {.answers = 0};
    hf_fixture_command(&redis, "ACL SETUSER low on >pw ~* +get +set");
    hf_fixture_command(&redis, "REPLICAOF 127.0.0.1 1");
    (void)snprintf(url, sizeof url, "unix://low:pw@%s", redis.socket);
    hf_client_fixture_open(&fixture, url, &(hf_client_opts){.replica_ok = true});
    uint64_t start = hf_test_now_ms();
    for (unsigned i = 1; i <= TIMES; i++) {
        RUN_UNTIL(&fixture, SOON_MS, fixture.ready == i);
        (void)hf_ask_now(&fixture, &asked, "SET a b");
        assert_int_equal(asked.err, HF_READONLY);
    }
    uint64_t took = hf_test_now_ms() - start;
    print_message("%d connections in %d ms\n", TIMES, (int)took);
    assert_true(took >= LEAST_MS); /* 50, 100, 200, 400, 800, 1200 ms, less a quarter */
    hf_client_fixture_close(&fixture);
}

static void it_comes_back_after_the_server_has_ended_its_connection(void **state)
{
    (void)state;
    hf_client_fixture fixture;
    hf_asked asked = {.answers = 0};
    hf_client_fixture_connect(&fixture, redis.url);
    for (unsigned i = 2; i < 5; i++) {
        hf_fixture_command(&redis, "CLIENT KILL TYPE normal SKIPME yes");
        RUN_UNTIL(&fixture, SOON_MS, fixture.ready == i);
        assert_int_equal(fixture.lost, i - 1);
        assert_string_equal(hf_ask_now(&fixture, &asked, "PING"), "PONG");
    }
    hf_client_fixture_close(&fixture);
}

static void a_name_that_does_not_resolve_is_told_and_holds_up_nothing(void **state)
{
    (void)state;
    hf_client_fixture fixture;
    hf_client_fixture_open_to(&fixture,
                              &(hf_server_opts){.url = "redis://no-such-host.invalid:1",
                                                .connect_timeout_ms = 300});
    RUN_UNTIL(&fixture, SOON_MS, fixture.lost == 2);
    assert_int_equal(fixture.err, HF_CONN);
    assert_non_null(strstr(fixture.detail, "no-such-host.invalid:1: "));
    /* Closing does not wait for a look-up, whether one is under way or not. */
    uint64_t start = hf_test_fair_ms();
    hf_client_fixture_close(&fixture);
    assert_true(hf_test_fair_ms() - start < 1500); /* a resolver takes five seconds */
}

/* A listener that never answers. */
static int silent_listener(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    (void)snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(fd, 64), 0);
    return fd;
}

static void a_server_that_says_nothing_is_given_up_in_time_and_tried_again(void **state)
{
    (void)state;
    char path[HF_TEMPDIR_SIZE + 16], url[HF_TEMPDIR_SIZE + 32];
    (void)snprintf(path, sizeof path, "%s/silent", redis.dir);
    (void)snprintf(url, sizeof url, "unix://%s", path);
    int fd = silent_listener(path);
    hf_client_fixture fixture;
    uint64_t start = hf_test_now_ms();
    hf_client_fixture_open_to(&fixture,
                              &(hf_server_opts){.url = url, .connect_timeout_ms = 100});
    RUN_UNTIL(&fixture, SOON_MS, fixture.lost == 1);
    assert_true(hf_test_now_ms() - start >= 99);
    assert_int_equal(fixture.err, HF_CONN);
    assert_non_null(strstr(fixture.detail, "no answer"));
    RUN_UNTIL(&fixture, SOON_MS, fixture.lost == 2);
    hf_client_fixture_close(&fixture);
    close(fd);
}

static void a_server_with_too_many_clients_cannot_be_reached(void **state)
{
    (void)state;
    hf_client_fixture fixture;
    hf_fixture_command(&redis, "CONFIG SET maxclients 1");
    hf_client_fixture_open(&fixture, redis.url, NULL);
    RUN_UNTIL(&fixture, SOON_MS, fixture.lost == 1);
    assert_int_equal(fixture.err, HF_CONN);
    hf_fixture_command(&redis, "CONFIG SET maxclients 100");
    RUN_UNTIL(&fixture, SOON_MS, fixture.ready == 1);
    hf_client_fixture_close(&fixture);
}

static void failed_tries_become_rarer(void **state)
{
    (void)state;
    char url[HF_TEMPDIR_SIZE + 32];
    hf_client_fixture fixture;
    (void)snprintf(url, sizeof url, "unix://%s/nobody", redis.dir);
    hf_client_fixture_open(&fixture, url, NULL);
    uint64_t start = hf_test_now_ms();
    RUN_UNTIL(&fixture, SOON_MS, fixture.lost == 5);
    /* 50, 100, 200 and 400 ms, each with at most a quarter off. */
    assert_true(hf_test_now_ms() - start >= 550);
    assert_int_equal(fixture.err, HF_CONN);
    hf_client_fixture_close(&fixture);
}

/* ---- connections that are gone only for us ---- */

/* Keeps the connection open behind the client's back, as a network that swallows packets
 * does: the server does not see its end. */
static int keep_open(const bool before[FDS_MAX])
{
    int copy = dup(new_socket(before));
    assert_true(copy >= 0);
    return copy;
}

static void what_a_lost_connection_waits_for_is_not_given_to_it_later(void **state)
{
    (void)state;
    bool before[FDS_MAX];
    hf_client_fixture fixture;
    hf_asked blocked = {.answers = 0}, asked = {.answers = 0};
    open_fds(before);
    hf_client_fixture_connect(&fixture, redis.url);
    int copy = keep_open(before);
    assert_int_equal(hf_ask(&fixture, &blocked, 60000, "BZPOPMIN baton 0"), HF_OK);
    RUN_UNTIL(&fixture, SOON_MS,
              strstr(hf_fixture_command(&redis, "INFO clients"), "blocked_clients:1"));
    hf_client_reset(fixture.client);
    assert_int_equal(blocked.answers, 0);
    RUN_UNTIL(&fixture, SOON_MS, fixture.ready == 2);
    assert_int_equal(blocked.err, HF_UNSURE);
    /* This comes after the old connection was killed, so nobody is there to take it. */
    (void)hf_ask_now(&fixture, &asked, "ZADD baton 1 x");
    assert_int_equal(hf_fixture_number(&redis, "ZCARD baton"), 1);
    hf_client_fixture_close(&fixture);
    close(copy);
}

static void every_lost_connection_is_killed_in_the_end(void **state)
{
    (void)state;
    hf_client_fixture fixture;
    int copies[12];
    hf_asked asked = {.answers = 0};
    bool before[FDS_MAX];
    open_fds(before);
    hf_client_fixture_connect(&fixture, redis.url);
    for (size_t i = 0; i < HF_COUNT(copies); i++) {
        copies[i] = keep_open(before);
        before[copies[i]] = true;
        hf_client_reset(fixture.client);
        RUN_UNTIL(&fixture, SOON_MS, fixture.ready == i + 2);
        /* The first few are lost before the kill of the one before has even been sent. */
        if (i >= 6)
            (void)hf_ask_now(&fixture, &asked, "PING");
    }
    /* The client's, and the fixture's own. */
    const char *list = hf_fixture_command(&redis, "CLIENT LIST");
    size_t n = 0;
    for (const char *at = list; (at = strstr(at, "\n")) != NULL; at++)
        n++;
    assert_int_equal(n, 2);
    hf_client_fixture_close(&fixture);
    for (size_t i = 0; i < HF_COUNT(copies); i++)
        close(copies[i]);
}

static void a_stranger_behind_the_same_number_on_a_new_server_is_left_alone(void **state)
{
    (void)state;
    hf_proxy proxy;
    hf_client_fixture fixture;
    hf_proxy_start(&proxy, redis.socket);
    hf_client_fixture_connect(&fixture, proxy.url);
    int64_t id = hf_client_server(fixture.client)->client_id;
    assert_true(id > 0 && id < 50);
    hf_proxy_refuse(&proxy, true);
    hf_proxy_close_all(&proxy);
    hf_fixture_kill(&redis, SIGKILL);
    RUN_UNTIL(&fixture, SOON_MS, fixture.lost >= 1);
    hf_fixture_restart(&redis);
    /* The new server counts from 1 again; one of these has the old number. */
    redisContext *strangers[60];
    for (size_t i = 0; i < HF_COUNT(strangers); i++)
        assert_non_null(strangers[i] = hf_fixture_connect(&redis));
    hf_proxy_refuse(&proxy, false);
    RUN_UNTIL(&fixture, SOON_MS, fixture.ready == 2);
    hf_asked asked = {.answers = 0};
    (void)hf_ask_now(&fixture, &asked, "PING");
    for (size_t i = 0; i < HF_COUNT(strangers); i++) {
        redisReply *reply = redisCommand(strangers[i], "PING");
        assert_non_null(reply);
        freeReplyObject(reply);
        redisFree(strangers[i]);
    }
    hf_client_fixture_close(&fixture);
    hf_proxy_stop(&proxy);
}

/* ---- opening and closing ---- */

static void bad_options_are_refused_with_the_reason(void **state)
{
    (void)state;
    static const struct {
        hf_server_opts opts;
        hf_err err;
        const char *why;
    } cases[] = {
        {{.url = "redis-cluster://h"}, HF_INVALID, "not in this build"},
        {{.url = "redis://joe@h"}, HF_INVALID, "no password"},
        {{.connect_timeout_ms = 600001}, HF_INVALID, "time-out"},
        {{.request_timeout_ms = 600001}, HF_INVALID, "time-out"},
        {{.password_file = "/nonexistent/pw"}, HF_CONFIG, "/nonexistent/pw"},
    };
    for (size_t i = 0; i < HF_COUNT(cases); i++) {
        char detail[HF_DETAIL_SIZE] = "";
        hf_server *server = NULL;
        assert_int_equal(hf_server_open(&server, &cases[i].opts, detail), cases[i].err);
        assert_non_null(strstr(detail, cases[i].why));
        assert_int_equal(hf_server_open(&server, &cases[i].opts, NULL), cases[i].err);
        assert_null(server);
    }
}

static void closing_nothing_is_fine(void **state)
{
    (void)state;
    hf_client_close(NULL, NULL, NULL);
}

static void close_inside(hf_client_fixture *fixture)
{
    hf_client_close(fixture->client, hf_client_fixture_on_closed, fixture);
}

static void it_may_be_closed_inside_any_event(void **state)
{
    (void)state;
    hf_client_fixture fixture;
    hf_client_fixture_open(&fixture, redis.url, NULL);
    fixture.on_event = close_inside; /* when it is ready */
    RUN_UNTIL(&fixture, SOON_MS, fixture.closed);
    assert_int_equal(fixture.ready, 1);
    hf_client_fixture_close(&fixture);

    hf_client_fixture_connect(&fixture, redis.url);
    fixture.on_event = close_inside; /* when it is lost */
    hf_client_reset(fixture.client);
    RUN_UNTIL(&fixture, SOON_MS, fixture.closed);
    assert_int_equal(fixture.lost, 1);
    hf_client_fixture_close(&fixture);
}

static void it_may_be_closed_in_any_state(void **state)
{
    (void)state;
    char silent[HF_TEMPDIR_SIZE + 16], silent_url[HF_TEMPDIR_SIZE + 32];
    (void)snprintf(silent, sizeof silent, "%s/silent", redis.dir);
    (void)snprintf(silent_url, sizeof silent_url, "unix://%s", silent);
    int fd = silent_listener(silent);
    const char *const urls[] = {redis.url,
                                redis.tcp_url,
                                silent_url,
                                "unix:///nonexistent/s",
                                "redis://localhost:1",
                                "redis://no-such-host.invalid"};
    /* After this many turns of the loop it is somewhere on its way. */
    for (size_t i = 0; i < HF_COUNT(urls); i++)
        for (int turns = 0; turns < 12; turns++) {
            hf_client_fixture fixture;
            hf_client_fixture_open(&fixture, urls[i], NULL);
            for (int turn = 0; turn < turns; turn++)
                uv_run(&fixture.loop, UV_RUN_NOWAIT);
            hf_client_fixture_close(&fixture);
        }
    close(fd);
}

static void a_thousand_clients_leave_nothing_behind(void **state)
{
    (void)state;
    bool before[FDS_MAX], after[FDS_MAX];
    open_fds(before); /* a resolver that an earlier test left may still end */
    for (int i = 0; i < CYCLES; i++) {
        hf_client_fixture fixture;
        hf_asked asked = {.answers = 0};
        hf_client_fixture_connect(&fixture, i % 2 == 0 ? redis.url : redis.tcp_url);
        assert_int_equal(hf_ask(&fixture, &asked, 0, "PING"), HF_OK);
        hf_client_fixture_close(&fixture);
        assert_int_equal(asked.answers, 1);
    }
    open_fds(after);
    for (int fd = 0; fd < FDS_MAX; fd++)
        assert_true(before[fd] || !after[fd]);
}

#define CASE(test)                                                                       \
    cmocka_unit_test_prestate_setup_teardown(test, up, hf_fixture_down, &redis)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(it_connects_through_a_unix_socket_and_tells_what_the_server_is),
        CASE(it_connects_through_tcp_by_address_and_by_name),
        CASE(its_socket_is_closed_on_exec),
        CASE(a_wrong_or_missing_password_is_told_and_never_repeated),
        CASE(a_user_with_a_password_and_a_database_is_used),
        CASE(the_password_may_stand_in_a_file),
        CASE(a_user_without_permission_for_info_is_ready_without_it),
        CASE(it_comes_back_when_the_server_was_killed_and_started_again),
        CASE(a_replica_is_not_ready_until_it_is_a_primary),
        CASE(without_info_a_replica_is_not_ready_either),
        CASE(refused_as_a_replica_it_connects_less_and_less_often),
        CASE(it_comes_back_after_the_server_has_ended_its_connection),
        cmocka_unit_test(a_name_that_does_not_resolve_is_told_and_holds_up_nothing),
        CASE(a_server_that_says_nothing_is_given_up_in_time_and_tried_again),
        CASE(a_server_with_too_many_clients_cannot_be_reached),
        CASE(failed_tries_become_rarer),
        CASE(what_a_lost_connection_waits_for_is_not_given_to_it_later),
        CASE(every_lost_connection_is_killed_in_the_end),
        CASE(a_stranger_behind_the_same_number_on_a_new_server_is_left_alone),
        cmocka_unit_test(bad_options_are_refused_with_the_reason),
        cmocka_unit_test(closing_nothing_is_fine),
        CASE(it_may_be_closed_inside_any_event),
        CASE(it_may_be_closed_in_any_state),
        CASE(a_thousand_clients_leave_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
