/* test_sentinel.c - connections that Sentinels lead to the primary: which Sentinel they
 * ask and believe, and how soon they follow. The test announces failovers to a Sentinel
 * (tests/support/replicas.h). */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "holdfast/admin.h"
#include "redis/server.h"
#include "tests/support/client_fixture.h"
#include "tests/support/eventually.h"
#include "tests/support/redis_fixture.h"
#include "tests/support/replicas.h"

enum {
    LONG_MS = 30000,
    QUIET_MS = 100,
    BY_MESSAGE_MS = 500,
    BY_ASKING_MS = 1700, /* a second, and what a machine under load adds */
    SWITCHES = 4
};

static hf_fixture primary, other, replica;
static hf_fixture all[2];
static hf_fixture *const first = &all[0], *const second = &all[1];
static hf_client_fixture fixture;

static int up(void **state)
{
    static char port[8];
    (void)state;
    /* After 8 s a Sentinel makes a server a replica that it has not named for so long. */
    const hf_fixture_options options = {.tcp = true,
                                        .args = {"--repl-diskless-sync-delay", "0",
                                                 "--rename-command", "SLAVEOF",
                                                 "not-by-sentinels"}};
    hf_fixture_start(&primary, &options);
    hf_fixture_start(&other, &options);
    (void)snprintf(port, sizeof port, "%u", (unsigned)primary.port);
    hf_fixture_start(
        &replica,
        &(hf_fixture_options){.tcp = true, .args = {"--replicaof", "127.0.0.1", port}});
    EVENTUALLY(LONG_MS,
               strstr(hf_fixture_command(&replica, "ROLE"), "connected") != NULL);
    hf_sentinel_fixture_start(first, NULL, primary.port);
    hf_sentinel_fixture_start(second, NULL, primary.port);
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_fixture_stop(second);
    hf_fixture_stop(first);
    hf_fixture_stop(&replica);
    hf_fixture_stop(&other);
    hf_fixture_stop(&primary);
    return 0;
}

static void open_url(const char *url)
{
    hf_client_fixture_open(&fixture, url, NULL);
}

static void open_both(void)
{
    char url[HF_SENTINELS_URL_SIZE];
    hf_sentinels_url(all, 2, url);
    open_url(url);
}

static void connect_to_first(void)
{
    char url[HF_SENTINELS_URL_SIZE];
    hf_sentinels_url(first, 1, url);
    open_url(url);
    RUN_UNTIL(&fixture, LONG_MS, fixture.ready == 1);
}

/* And the Sentinel is heard: the next switch is told, and not asked for by chance. */
static void connect_and_listen(void)
{
    connect_to_first();
    EVENTUALLY(LONG_MS, (uv_run(&fixture.loop, UV_RUN_ONCE),
                         strstr(hf_fixture_command(first, "CLIENT LIST"),
                                "cmd=subscribe") != NULL));
    const uint64_t until_ms = hf_test_now_ms() + QUIET_MS;
    while (hf_test_now_ms() < until_ms)
        uv_run(&fixture.loop, UV_RUN_ONCE);
}

static bool is_at(const hf_fixture *server)
{
    hf_asked asked = {0};
    char port[8];
    (void)snprintf(port, sizeof port, "%u", (unsigned)server->port);
    if (hf_ask(&fixture, &asked, 0, "CONFIG SET maxclients 1000") != HF_OK)
        return false;
    RUN_UNTIL(&fixture, LONG_MS, asked.answers == 1);
    char wanted[64];
    (void)snprintf(wanted, sizeof wanted, "127.0.0.1:%u: connected",
                   (unsigned)server->port);
    return asked.err == HF_OK && strcmp(hf_client_detail(fixture.client), wanted) == 0;
}

static void expect_at(const hf_fixture *server)
{
    RUN_UNTIL(&fixture, LONG_MS, hf_client_ready(fixture.client));
    assert_true(is_at(server));
}

/* How long the client takes to be at the server, in ms. */
static unsigned time_until_at(const hf_fixture *server)
{
    char wanted[64];
    uint64_t start_ms = hf_test_fair_ms();
    (void)snprintf(wanted, sizeof wanted, "127.0.0.1:%u: connected",
                   (unsigned)server->port);
    RUN_UNTIL(&fixture, LONG_MS,
              hf_client_ready(fixture.client) &&
                  strcmp(hf_client_detail(fixture.client), wanted) == 0);
    return (unsigned)(hf_test_fair_ms() - start_ms);
}

static void expect_fault(hf_err err, const char *why)
{
    RUN_UNTIL(&fixture, LONG_MS, fixture.ready + fixture.lost > 0);
    if (fixture.ready > 0 || fixture.err != err || strstr(fixture.detail, why) == NULL)
        fail_msg("expected %s '%s', found %s '%s'", hf_err_name(err), why,
                 hf_err_name(fixture.err), fixture.detail);
}

/* ---- whom it asks ---- */

static void the_primary_is_the_one_that_sentinels_name(void **state)
{
    (void)state;
    connect_to_first();
    assert_true(is_at(&primary));
    hf_client_fixture_close(&fixture);
}

static void sentinels_that_are_down_are_passed_over(void **state)
{
    (void)state;
    hf_fixture_kill(first, SIGKILL);
    open_both();
    expect_at(&primary);
    hf_client_fixture_close(&fixture);
    hf_fixture_restart(first);
    /* One that is silent has its share of the time to connect, and no more. */
    hf_fixture_signal(first, SIGSTOP);
    char url[HF_SENTINELS_URL_SIZE];
    hf_sentinels_url(all, 2, url);
    hf_client_fixture_open_to(&fixture,
                              &(hf_server_opts){.url = url, .connect_timeout_ms = 6000});
    RUN_UNTIL(&fixture, LONG_MS, fixture.ready + fixture.lost > 0);
    assert_int_equal(fixture.lost, 0);
    assert_true(is_at(&primary));
    hf_client_fixture_close(&fixture);
    hf_fixture_signal(first, SIGCONT);
}

static void when_all_are_down_it_says_so_and_continues(void **state)
{
    (void)state;
    hf_fixture_kill(first, SIGKILL);
    hf_fixture_kill(second, SIGKILL);
    open_both();
    expect_fault(HF_CONN, "the primary of m: Sentinel 127.0.0.1:");
    hf_fixture_restart(second);
    expect_at(&primary);
    hf_client_fixture_close(&fixture);
    hf_fixture_restart(first);
}

static void a_connection_outlives_its_sentinels(void **state)
{
    (void)state;
    open_both();
    expect_at(&primary);
    hf_fixture_kill(first, SIGKILL);
    hf_fixture_kill(second, SIGKILL);
    const uint64_t until_ms = hf_test_now_ms() + BY_ASKING_MS;
    while (hf_test_now_ms() < until_ms)
        uv_run(&fixture.loop, UV_RUN_ONCE);
    assert_int_equal(fixture.lost, 0);
    hf_fixture_restart(first);
    hf_fixture_restart(second);
    hf_sentinel_switch(first, other.port);
    hf_sentinel_switch(second, other.port);
    (void)time_until_at(&other);
    hf_client_fixture_close(&fixture);
}

static void it_comes_back_when_everything_was_away(void **state)
{
    (void)state;
    open_both();
    expect_at(&primary);
    hf_fixture_kill(first, SIGKILL);
    hf_fixture_kill(second, SIGKILL);
    hf_fixture_kill(&primary, SIGKILL);
    RUN_UNTIL(&fixture, LONG_MS, fixture.lost >= 3);
    hf_fixture_restart(&primary);
    hf_fixture_restart(first);
    hf_fixture_restart(second);
    expect_at(&primary);
    hf_client_fixture_close(&fixture);
}

/* ---- what is wrong is told ---- */

static void a_name_that_no_sentinel_knows_is_told_and_asked_again(void **state)
{
    (void)state;
    char url[64];
    (void)snprintf(url, sizeof url, "redis+sentinel://127.0.0.1:%u/x",
                   (unsigned)first->port);
    open_url(url);
    expect_fault(HF_CONFIG, "knows no master of the name `x`");
    assert_string_equal(hf_fixture_command(first, "SENTINEL MONITOR x 127.0.0.1 %u 1",
                                           (unsigned)other.port),
                        "OK");
    expect_at(&other);
    hf_client_fixture_close(&fixture);
}

static void write_file(const hf_fixture *f, const char *text,
                       char path[HF_TEMPDIR_SIZE + 8])
{
    (void)snprintf(path, HF_TEMPDIR_SIZE + 8, "%s/word", f->dir);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void the_login_at_sentinels_is_their_own(void **state)
{
    (void)state;
    static const struct {
        const char *user, *password;
        hf_err err;
    } cases[] = {{NULL, NULL, HF_AUTH},
                 {NULL, "wrong", HF_AUTH},
                 {"nobody", "right", HF_AUTH},
                 {NULL, "right", HF_OK},
                 {"default", "right\n", HF_OK}};
    hf_fixture guarded;
    char url[HF_SENTINELS_URL_SIZE], path[HF_TEMPDIR_SIZE + 8];
    assert_string_equal(hf_fixture_command(&other, "CONFIG SET requirepass of-redis"),
                        "OK");
    hf_sentinel_fixture_start(&guarded, &(hf_fixture_options){.password = "right"},
                              other.port);
    (void)snprintf(url, sizeof url, "redis+sentinel://:of-redis@127.0.0.1:%u/m",
                   (unsigned)guarded.port);
    for (size_t i = 0; i < HF_COUNT(cases); i++) {
        if (cases[i].password != NULL)
            write_file(&guarded, cases[i].password, path);
        const hf_sentinel_opts login = {HF_SENTINEL_OPTS_INIT, .user = cases[i].user,
                                        .password_file = path};
        hf_client_fixture_open_to(
            &fixture,
            &(hf_server_opts){.url = url,
                              .sentinel = cases[i].password == NULL ? NULL : &login});
        if (cases[i].err != HF_OK)
            expect_fault(cases[i].err, "Sentinel 127.0.0.1:");
        else
            expect_at(&other);
        hf_client_fixture_close(&fixture);
    }
    hf_fixture_stop(&guarded);
}

static void options_of_sentinels_need_sentinels(void **state)
{
    (void)state;
    char detail[HF_DETAIL_SIZE];
    hf_server *server;
    const struct {
        const char *url;
        hf_sentinel_opts opts;
        hf_err err;
        const char *why;
    } cases[] = {
        {"redis://h", {HF_SENTINEL_OPTS_INIT}, HF_CONFIG, "redis+sentinel://"},
        {"redis+sentinel://h/m",
         {HF_SENTINEL_OPTS_INIT, .user = "u"},
         HF_INVALID,
         "password"},
        {"redis+sentinel://h/m",
         {HF_SENTINEL_OPTS_INIT, .password_file = "/nowhere/word"},
         HF_CONFIG,
         "/nowhere/word"},
    };
    for (size_t i = 0; i < HF_COUNT(cases); i++) {
        const hf_server_opts opts = {HF_SERVER_OPTS_INIT, .url = cases[i].url,
                                     .sentinel = &cases[i].opts};
        assert_int_equal(hf_server_open(&server, &opts, detail), cases[i].err);
        if (strstr(detail, cases[i].why) == NULL)
            fail_msg("%s", detail);
    }
}

/* ---- whom it believes ---- */

static void a_sentinel_that_names_a_replica_is_not_believed(void **state)
{
    (void)state;
    hf_sentinel_switch(first, replica.port);
    open_both();
    expect_at(&primary);
    hf_client_fixture_close(&fixture);
    char url[HF_SENTINELS_URL_SIZE];
    hf_sentinels_url(first, 1, url);
    open_url(url);
    expect_fault(HF_CONN, "expected a primary, found a replica");
    hf_sentinel_switch(first, primary.port);
    expect_at(&primary);
    hf_client_fixture_close(&fixture);
}

static void a_sentinel_that_names_nothing_that_answers_is_not_believed(void **state)
{
    (void)state;
    hf_fixture_kill(&other, SIGKILL);
    hf_sentinel_switch(first, other.port);
    open_both();
    expect_at(&primary);
    hf_client_fixture_close(&fixture);
    hf_fixture_restart(&other);
}

/* ---- how soon it follows ---- */

static void it_follows_a_message_at_once(void **state)
{
    (void)state;
    connect_and_listen();
    for (unsigned i = 0; i < SWITCHES; i++) {
        const hf_fixture *to = i % 2 == 0 ? &other : &primary;
        hf_sentinel_switch(first, to->port);
        unsigned ms = time_until_at(to);
        print_message("followed a message after %u ms\n", ms);
        assert_true(ms < BY_MESSAGE_MS);
    }
    hf_client_fixture_close(&fixture);
}

static void without_a_message_it_follows_within_a_second(void **state)
{
    (void)state;
    connect_and_listen();
    hf_sentinel_switch_silently(first, other.port);
    unsigned ms = time_until_at(&other);
    print_message("followed without a message after %u ms\n", ms);
    assert_true(ms < BY_ASKING_MS);
    hf_client_fixture_close(&fixture);
}

static void it_follows_the_others_when_its_sentinel_is_silent(void **state)
{
    (void)state;
    open_both();
    expect_at(&primary);
    hf_fixture_signal(first, SIGSTOP);
    hf_sentinel_switch(second, other.port);
    unsigned ms = time_until_at(&other);
    print_message("followed another Sentinel after %u ms\n", ms);
    assert_true(ms < BY_ASKING_MS + BY_MESSAGE_MS);
    hf_client_fixture_close(&fixture);
    hf_fixture_signal(first, SIGCONT);
}

static void no_request_is_taken_once_another_primary_is_named(void **state)
{
    (void)state;
    hf_asked asked = {0};
    connect_and_listen();
    assert_int_equal(hf_ask(&fixture, &asked, LONG_MS, "BLPOP nothing 0"), HF_OK);
    hf_sentinel_switch(first, other.port);
    RUN_UNTIL(&fixture, LONG_MS, asked.answers == 1);
    assert_int_equal(asked.err, HF_UNSURE);
    assert_int_equal(hf_ask(&fixture, &asked, 0, "PING"), HF_CONN);
    (void)time_until_at(&other);
    hf_client_fixture_close(&fixture);
}

/* ---- one asks for all ---- */

static unsigned count_at_sentinel(hf_fixture *f, const char *text)
{
    unsigned n = 0;
    const char *list = hf_fixture_command(f, "CLIENT LIST");
    for (const char *at = list; (at = strstr(at, text)) != NULL; at++)
        n++;
    return n;
}

static bool is_ready_at(hf_client *client, const hf_fixture *server)
{
    char wanted[64];
    (void)snprintf(wanted, sizeof wanted, "127.0.0.1:%u: connected",
                   (unsigned)server->port);
    return hf_client_ready(client) && strcmp(hf_client_detail(client), wanted) == 0;
}

static void one_connection_asks_for_all_of_a_server(void **state)
{
    enum { N = 4 };
    (void)state;
    hf_server *server;
    hf_client *clients[N];
    uv_loop_t loop;
    char url[HF_SENTINELS_URL_SIZE], detail[HF_DETAIL_SIZE] = "";
    hf_sentinels_url(first, 1, url);
    const hf_server_opts opts = {HF_SERVER_OPTS_INIT, .url = url};
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(hf_server_open(&server, &opts, detail), HF_OK);
    for (size_t i = 0; i < N; i++)
        assert_int_equal(hf_client_open(&clients[i],
                                        &(hf_client_opts){.loop = &loop, .redis = server},
                                        detail),
                         HF_OK);
    for (size_t i = 0; i < N; i++)
        EVENTUALLY(LONG_MS,
                   (uv_run(&loop, UV_RUN_NOWAIT), is_ready_at(clients[i], &primary)));
    EVENTUALLY(LONG_MS, (uv_run(&loop, UV_RUN_NOWAIT),
                         count_at_sentinel(first, "cmd=subscribe") == 1));
    assert_int_equal(count_at_sentinel(first, "cmd=sentinel"), 1);
    /* Whichever it was: the others go on when it is closed. */
    for (size_t closed = 0; closed < N; closed++) {
        const hf_fixture *to = closed % 2 == 0 ? &other : &primary;
        hf_sentinel_switch(first, to->port);
        for (size_t i = closed; i < N; i++)
            EVENTUALLY(LONG_MS,
                       (uv_run(&loop, UV_RUN_NOWAIT), is_ready_at(clients[i], to)));
        hf_client_close(clients[closed], NULL, NULL);
    }
    hf_server_close(server);
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&loop), 0);
}

/* ---- administration ---- */

/* Only where its loop has not turned for a while is a connection made anew. */
static void the_first_call_of_administration_keeps_the_connection(void **state)
{
    (void)state;
    hf_admin *admin;
    hf_queue_stats stats = {HF_QUEUE_STATS_INIT};
    char url[HF_SENTINELS_URL_SIZE], detail[HF_DETAIL_SIZE] = "";
    hf_sentinels_url(first, 1, url);
    const hf_admin_opts opts = {HF_ADMIN_OPTS_INIT, .server = HF_SERVER(.url = url)};
    assert_int_equal(hf_admin_open(&admin, &opts, detail), HF_OK);
    int64_t id = hf_admin_server(admin)->client_id;
    assert_int_equal(hf_admin_stats(admin, "q", &stats, detail), HF_OK);
    assert_int_equal(hf_admin_server(admin)->client_id, id);
    hf_admin_close(admin);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_primary_is_the_one_that_sentinels_name),
        TEST(sentinels_that_are_down_are_passed_over),
        TEST(when_all_are_down_it_says_so_and_continues),
        TEST(a_connection_outlives_its_sentinels),
        TEST(it_comes_back_when_everything_was_away),
        TEST(a_name_that_no_sentinel_knows_is_told_and_asked_again),
        TEST(the_login_at_sentinels_is_their_own),
        cmocka_unit_test(options_of_sentinels_need_sentinels),
        TEST(a_sentinel_that_names_a_replica_is_not_believed),
        TEST(a_sentinel_that_names_nothing_that_answers_is_not_believed),
        TEST(it_follows_a_message_at_once),
        TEST(without_a_message_it_follows_within_a_second),
        TEST(it_follows_the_others_when_its_sentinel_is_silent),
        TEST(no_request_is_taken_once_another_primary_is_named),
        TEST(one_connection_asks_for_all_of_a_server),
        TEST(the_first_call_of_administration_keeps_the_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
