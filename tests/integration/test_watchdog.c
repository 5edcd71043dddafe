/* test_watchdog.c - leases on a real server: strings with an end, renewed by their
 * owner's token. Servers, connections and holders fail here in all ways; each lease is
 * held in spite of it or lost in time, and no lease of another owner changes.
 *
 * This program is also a holder that is stopped, chosen by its first argument. */
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/eventually.h"
#include "tests/support/proc.h"
#include "tests/support/proxy.h"
#include "tests/support/redis_fixture.h"

#include "base/base.h"
#include "base/clock.h"
#include "lock/watchdog/watchdog.h"
#include "redis/request.h"
#include "redis/server.h"

enum { TTL_MS = 1800, SOON_MS = 15000, MANY = 10000, KEY_SIZE = 24, BATCH_MAX = 500 };

static const char renew_text[] =
    "local codes = {}\n"
    "for i = 2, #ARGV, 2 do\n"
    "  if redis.call('MGET', ARGV[i])[1] == ARGV[i + 1] then\n"
    "    redis.call('PEXPIRE', ARGV[i], ARGV[1])\n"
    "    codes[#codes + 1] = 0\n"
    "  else\n"
    "    codes[#codes + 1] = -2\n"
    "  end\n"
    "end\n"
    "return codes\n";

typedef struct holder {
    char key[KEY_SIZE], token[KEY_SIZE];
    uint32_t ttl_ms;
    hf_lease *lease;
    atomic_int renewed, lost;
    atomic_ullong lost_ns;
} holder;

static hf_fixture redis;
static hf_watchdog *watchdog;
static hf_server *server;
static hf_client *client; /* on the watchdog's thread */
static hf_script renew_script;
static char renew_sha1[48];
static atomic_int batches;
static int tokens;

/* ---- what the watchdog is given ---- */

static void on_answer(const hf_answer *answer, void *arg)
{
    hf_err codes[BATCH_MAX];
    hf_renew_batch *batch = arg;
    hf_err err = answer->err;
    if (err == HF_OK && hf_reply_len(answer->reply) != batch->n)
        err = HF_PROTO;
    for (size_t i = 0; err == HF_OK && i < batch->n; i++)
        codes[i] = (hf_err)hf_reply_int(hf_reply_at(answer->reply, i));
    hf_watchdog_answer(batch, err, answer->sent_ns, codes, NULL);
}

static void renew(hf_renew_batch *batch, void *arg)
{
    static hf_bytes args[1 + 2 * BATCH_MAX];
    char ttl[16];
    (void)arg;
    HF_ASSERT(batch->n <= BATCH_MAX);
    atomic_fetch_add(&batches, 1);
    const holder *first = hf_lease_user(batch->leases[0]);
    args[0] = (hf_bytes){ttl, (size_t)snprintf(ttl, sizeof ttl, "%u", first->ttl_ms)};
    for (size_t i = 0; i < batch->n; i++) {
        const holder *h = hf_lease_user(batch->leases[i]);
        args[1 + 2 * i] = (hf_bytes){h->key, strlen(h->key)};
        args[2 + 2 * i] = (hf_bytes){h->token, strlen(h->token)};
    }
    hf_call call = {.script = &renew_script,
                    .args = args,
                    .n_args = 1 + 2 * batch->n,
                    .timeout_ms = batch->timeout_ms,
                    .cb = on_answer,
                    .arg = batch};
    hf_err err = client == NULL ? HF_CONN : hf_request_send(client, &call);
    if (err != HF_OK)
        hf_watchdog_answer(batch, err, hf_boot_ns(), NULL, NULL);
    else if (batch->full)
        hf_client_flush(client);
}

static void on_client(hf_client *which, hf_err err, const char *detail, void *arg)
{
    (void)which, (void)detail, (void)arg;
    if (err == HF_OK)
        hf_watchdog_verify(watchdog); /* its state during the gap is unknown */
}

static void on_call(hf_watchdog *w, uv_loop_t *loop, void *arg)
{
    const hf_client_opts opts = {.loop = loop, .redis = server, .on_event = on_client};
    (void)w, (void)arg;
    HF_ASSERT(hf_client_open(&client, &opts, NULL) == HF_OK);
}

static void on_stop(void (*closed)(void *arg), void *closed_arg, void *arg)
{
    (void)arg;
    hf_client_close(client, closed, closed_arg);
}

static void on_event(void *user, hf_lease *lease, hf_lease_event event, void *arg)
{
    holder *h = user;
    (void)lease, (void)arg;
    if (event == HF_LEASE_LOST)
        atomic_store(&h->lost_ns, hf_boot_ns());
    atomic_fetch_add(event == HF_LEASE_RENEWED ? &h->renewed : &h->lost, 1);
}

static void start_watchdog(const char *url, uint32_t request_timeout_ms)
{
    char detail[HF_DETAIL_SIZE];
    const hf_server_opts to = {HF_SERVER_OPTS_INIT, .url = url,
                               .request_timeout_ms = request_timeout_ms};
    if (hf_server_open(&server, &to, detail) != HF_OK)
        fail_msg("%s", detail);
    hf_watchdog_opts opts = {.request_timeout_ms = server->request_timeout_ms,
                             .renew = renew,
                             .on_event = on_event,
                             .on_call = on_call,
                             .on_stop = on_stop};
    assert_int_equal(hf_watchdog_start(&watchdog, &opts), HF_OK);
    hf_watchdog_call(watchdog, hf_boot_ns());
}

static void stop_watchdog(void)
{
    hf_watchdog_stop(watchdog);
    hf_server_close(server);
    client = NULL;
}

static void use_script(const char *sha1)
{
    snprintf(renew_sha1, sizeof renew_sha1, "%s", sha1);
    renew_script = (hf_script){.name = "test/renew",
                               .text = (const unsigned char *)renew_text,
                               .len = sizeof renew_text - 1,
                               .sha1 = renew_sha1,
                               .nkeys = 0,
                               .nargs = 1};
}

static void start_with(const hf_fixture_options *options)
{
    hf_fixture_start(&redis, options);
    use_script(hf_fixture_command(&redis, "SCRIPT LOAD %s", renew_text));
    atomic_store(&batches, 0);
}

static int up(void **state)
{
    (void)state;
    start_with(NULL);
    start_watchdog(redis.url, 0);
    return 0;
}

static int down(void **state)
{
    (void)state;
    stop_watchdog();
    hf_fixture_stop(&redis);
    return 0;
}

/* ---- holders ---- */

static void take(holder *h, const char *key, uint32_t ttl_ms)
{
    memset(h, 0, sizeof *h);
    snprintf(h->key, sizeof h->key, "%s", key);
    snprintf(h->token, sizeof h->token, "t%d", ++tokens);
    h->ttl_ms = ttl_ms;
    uint64_t sent_ns = hf_boot_ns();
    assert_string_equal(
        hf_fixture_command(&redis, "SET %s %s NX PX %u", h->key, h->token, ttl_ms), "OK");
    h->lease = hf_watchdog_add(watchdog, 0, ttl_ms, sent_ns, false, h);
    assert_non_null(h->lease);
}

static void drop(holder *h)
{
    hf_watchdog_drop(watchdog, h->lease);
    h->lease = NULL;
}

static bool held(const holder *h)
{
    return !hf_lease_lost(h->lease) && atomic_load(&h->lost) == 0;
}

/* ---- tests ---- */

static void a_lease_is_held_as_long_as_wanted_and_never_close_to_its_end(void **state)
{
    (void)state;
    holder h;
    take(&h, "k", TTL_MS);
    long long least = TTL_MS;
    uint64_t until_ms = hf_test_now_ms() + 3 * TTL_MS;
    while (hf_test_now_ms() < until_ms) {
        long long left = hf_fixture_number(&redis, "PTTL k");
        least = left < least ? left : least;
        assert_true(held(&h));
        hf_test_pause_ms(5);
    }
    assert_true(least > TTL_MS / 6);
    assert_in_range(atomic_load(&h.renewed), 4, 11);
    drop(&h);
    EVENTUALLY(SOON_MS, hf_fixture_number(&redis, "EXISTS k") == 0);
}

static void a_caller_that_is_busy_for_two_leases_loses_nothing(void **state)
{
    (void)state;
    holder h;
    take(&h, "k", TTL_MS);
    hf_test_pause_ms(2 * TTL_MS); /* the thread that has it does nothing */
    assert_true(held(&h));
    drop(&h);
}

static void a_lock_that_is_gone_or_anothers_is_told_lost_and_not_touched(void **state)
{
    (void)state;
    static const char *const happens[] = {"DEL k", "SET k other PX 60000", "FLUSHALL",
                                          "EVAL %s 0"};
    for (size_t i = 0; i < HF_COUNT(happens); i++) {
        holder h;
        take(&h, "k", TTL_MS);
        if (i == 3)
            hf_fixture_command(&redis, happens[i],
                               "redis.call('DEL', 'k') redis.call('SADD', 'k', 'x')");
        else
            hf_fixture_command(&redis, happens[i]);
        EVENTUALLY(SOON_MS, atomic_load(&h.lost) == 1);
        assert_true(hf_lease_lost(h.lease));
        drop(&h);
        if (i == 1) {
            assert_string_equal(hf_fixture_command(&redis, "GET k"), "other");
            assert_true(hf_fixture_number(&redis, "PTTL k") > 50000);
        }
        hf_fixture_command(&redis, "DEL k");
    }
}

static void an_owner_that_took_it_again_after_a_loss_is_renewed_again(void **state)
{
    (void)state;
    holder h;
    take(&h, "k", TTL_MS);
    hf_fixture_command(&redis, "DEL k");
    EVENTUALLY(SOON_MS, atomic_load(&h.lost) == 1);
    drop(&h);
    take(&h, "k", TTL_MS);
    ALWAYS(TTL_MS + TTL_MS / 2, held(&h));
    drop(&h);
}

static void a_server_that_forgot_the_script_gets_it_again(void **state)
{
    (void)state;
    holder h;
    take(&h, "k", TTL_MS);
    for (int i = 0; i < 4; i++) {
        hf_fixture_command(&redis, "SCRIPT FLUSH");
        ALWAYS(TTL_MS / 3, held(&h));
    }
    drop(&h);
}

static void connections_that_are_killed_all_the_time_lose_no_lease(void **state)
{
    (void)state;
    holder h;
    take(&h, "k", 2 * TTL_MS);
    for (uint64_t until_ms = hf_test_now_ms() + 3 * TTL_MS;
         hf_test_now_ms() < until_ms;) {
        hf_fixture_command(&redis, "CLIENT KILL TYPE normal");
        ALWAYS(100, held(&h));
    }
    assert_true(atomic_load(&h.renewed) >= 2);
    drop(&h);
}

static void a_server_that_is_away_for_half_a_lease_loses_none(void **state)
{
    (void)state;
    holder h;
    take(&h, "k", 2 * TTL_MS);
    hf_fixture_signal(&redis, SIGSTOP);
    ALWAYS(TTL_MS, held(&h));
    hf_fixture_signal(&redis, SIGCONT);
    ALWAYS(TTL_MS, held(&h));
    hf_fixture_command(&redis, "CLIENT PAUSE %d ALL", TTL_MS);
    ALWAYS(3 * TTL_MS, held(&h));
    drop(&h);
}

static void
a_server_that_is_away_for_longer_has_its_leases_lost_before_their_end(void **state)
{
    (void)state;
    holder h;
    take(&h, "k", TTL_MS);
    EVENTUALLY(SOON_MS, atomic_load(&h.renewed) >= 1);
    hf_fixture_signal(&redis, SIGSTOP);
    uint64_t end_ns = hf_boot_ns() + TTL_MS * HF_MS_NS; /* Redis may keep it until then */
    uint64_t deadline_ns = hf_lease_deadline_ns(h.lease);
    EVENTUALLY(SOON_MS, atomic_load(&h.lost) == 1);
    assert_true(atomic_load(&h.lost_ns) >= deadline_ns);
    assert_true(deadline_ns < end_ns);
    hf_fixture_signal(&redis, SIGCONT);
    ALWAYS(TTL_MS, hf_lease_lost(h.lease) && atomic_load(&h.lost) == 1);
    drop(&h);
}

static void a_server_that_comes_back_empty_is_noticed_at_once(void **state)
{
    (void)state;
    holder h;
    take(&h, "k", 60000);
    hf_fixture_kill(&redis, SIGKILL);
    hf_fixture_restart(&redis);
    EVENTUALLY(10000, atomic_load(&h.lost) == 1); /* not at the next third */
    drop(&h);
}

static void a_server_that_comes_back_with_its_data_keeps_them(void **state)
{
    (void)state;
    holder h;
    start_with(&(hf_fixture_options){.persistent = true});
    start_watchdog(redis.url, 0);
    take(&h, "k", 30000);
    hf_fixture_kill(&redis, SIGKILL);
    hf_fixture_restart(&redis);
    EVENTUALLY(10000,
               atomic_load(&h.renewed) >= 1); /* on coming back, long before its third */
    assert_true(held(&h));
    drop(&h);
    down(state);
}

static void
answers_that_never_come_cost_a_lease_only_when_none_comes_in_time(void **state)
{
    (void)state;
    hf_proxy proxy;
    holder h;
    start_with(NULL);
    hf_proxy_start(&proxy, redis.socket);
    start_watchdog(proxy.url, 0);
    take(&h, "k", 2 * TTL_MS);
    EVENTUALLY(SOON_MS, atomic_load(&h.renewed) >= 1);
    hf_proxy_set(&proxy, PROXY_ANSWERS, PROXY_DROP);
    ALWAYS(TTL_MS, held(&h));
    hf_proxy_set(&proxy, PROXY_ANSWERS, PROXY_PASS);
    hf_proxy_close_all(&proxy); /* what was dropped is missing from its stream */
    int before = atomic_load(&h.renewed);
    EVENTUALLY(SOON_MS, atomic_load(&h.renewed) > before + 1);
    assert_true(held(&h));

    hf_proxy_set(&proxy, PROXY_ANSWERS,
                 PROXY_DROP); /* it is renewed, and we cannot know */
    EVENTUALLY(SOON_MS, atomic_load(&h.lost) == 1);
    hf_proxy_set(&proxy, PROXY_ANSWERS, PROXY_PASS);
    hf_proxy_close_all(&proxy);
    ALWAYS(TTL_MS, hf_lease_lost(h.lease) && atomic_load(&h.lost) == 1);
    drop(&h);
    stop_watchdog();
    hf_proxy_stop(&proxy);
    hf_fixture_stop(&redis);
}

static void a_renewal_under_way_does_not_bring_back_what_was_released(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        holder h = {.ttl_ms = 60000};
        snprintf(h.key, sizeof h.key, "k");
        snprintf(h.token, sizeof h.token, "t%d", ++tokens);
        uint64_t sent_ns = hf_boot_ns();
        hf_fixture_command(&redis, "SET k %s PX 60000", h.token);
        h.lease = hf_watchdog_add(watchdog, 0, 60000, sent_ns, true, &h);
        drop(&h);
        hf_fixture_command(&redis, "DEL k");
        hf_fixture_command(&redis, "SET k next PX 5000");
        assert_string_equal(hf_fixture_command(&redis, "GET k"), "next");
        assert_true(hf_fixture_number(&redis, "PTTL k") <= 5000);
    }
    EVENTUALLY(SOON_MS, hf_fixture_number(&redis, "PTTL k") <= 4900);
}

/* Two that hurry while a renewal is under way: the one who wants it sooner gets it. */
static void of_two_that_hurry_the_sooner_one_counts(void **state)
{
    enum { LONG_MS = 600000 };
    (void)state;
    holder h;
    start_with(NULL);
    start_watchdog(redis.url, 2 * SOON_MS);
    take(&h, "k", LONG_MS);
    hf_watchdog_hurry(watchdog, h.lease, hf_boot_ns());
    EVENTUALLY(SOON_MS, atomic_load(&h.renewed) >= 1);
    hf_fixture_signal(&redis, SIGSTOP);
    int renewed = atomic_load(&h.renewed), sent = atomic_load(&batches);
    hf_watchdog_hurry(watchdog, h.lease, hf_boot_ns());
    EVENTUALLY(SOON_MS, atomic_load(&batches) > sent);
    hf_watchdog_hurry(watchdog, h.lease, hf_boot_ns());
    hf_watchdog_hurry(watchdog, h.lease, hf_boot_ns() + LONG_MS / 6 * HF_MS_NS);
    hf_fixture_signal(&redis, SIGCONT);
    EVENTUALLY(SOON_MS, atomic_load(&h.renewed) >= renewed + 2);
    drop(&h);
    down(state);
}

/* False: one was lost, so the machine is too busy for leases of that length. */
static bool many_are_held_in_few_requests(unsigned lease_ms)
{
    enum { TIMES = 3, BATCHES = MANY / BATCH_MAX };
    static holder holders[MANY];
    static hf_lease *leases[MANY];
    static void *users[MANY];
    bool lost = false;
    memset(holders, 0, sizeof holders);
    for (size_t i = 0; i < MANY; i++) {
        snprintf(holders[i].key, sizeof holders[i].key, "many:%u", (unsigned)i);
        snprintf(holders[i].token, sizeof holders[i].token, "own");
        holders[i].ttl_ms = lease_ms;
        users[i] = &holders[i];
    }
    static const char set_all[] = "for i = 0, ARGV[1] - 1 do redis.call('SET', 'many:' "
                                  ".. i, 'own', 'PX', ARGV[2]) end";
    uint64_t sent_ns = hf_boot_ns();
    hf_fixture_command(&redis, "EVAL %s 0 %d %u", set_all, MANY, lease_ms);
    atomic_store(&batches, 0);
    hf_watchdog_add_many(watchdog, 0, lease_ms, sent_ns, false, users, leases, MANY);
    for (size_t i = 0; i < MANY && !lost; i++) {
        EVENTUALLY(2 * lease_ms + SOON_MS,
                   atomic_load(&holders[i].renewed) >= TIMES || hf_lease_lost(leases[i]));
        lost = hf_lease_lost(leases[i]);
    }
    int all = atomic_load(&batches), most = 0;
    for (size_t i = 0; i < MANY && !lost; i++) {
        int renewed = atomic_load(&holders[i].renewed);
        lost = hf_lease_lost(leases[i]);
        most = renewed > most ? renewed : most;
    }
    if (!lost) {
        assert_in_range(all, TIMES * BATCHES, 2 * most * BATCHES);
        assert_int_equal(hf_fixture_number(&redis, "DBSIZE"), MANY);
    }
    hf_watchdog_drop_many(watchdog, leases, MANY);
    return !lost;
}

static void ten_thousand_leases_are_held_in_few_requests(void **state)
{
    enum { SHORT_MS = 6000, LONG_MS = 24000 };
    (void)state;
    for (unsigned lease_ms = SHORT_MS; !many_are_held_in_few_requests(lease_ms);
         lease_ms *= 2)
        assert_true(lease_ms < LONG_MS);
}

/* ---- a holder that is stopped, a process of its own ---- */

/* holder URL SHA1 FILE: takes `k`, and writes `held` or `lost` every few ms. */
static int be_holder(char **argv)
{
    static holder h = {.key = "k", .token = "first", .ttl_ms = TTL_MS};
    use_script(argv[3]);
    start_watchdog(argv[2], 0);
    h.lease = hf_watchdog_add(watchdog, 0, TTL_MS, hf_boot_ns(), true, &h);
    int fd = open(argv[4], O_WRONLY | O_CREAT | O_APPEND, 0600);
    for (;;) {
        char line[48];
        int n = snprintf(line, sizeof line, "%s %d\n",
                         hf_lease_lost(h.lease) ? "lost" : "held", atomic_load(&h.lost));
        if (write(fd, line, (size_t)n) != n)
            return 1;
        hf_test_pause_ms(5);
    }
}

static const char *tail(const char *path)
{
    static char line[64];
    FILE *file = fopen(path, "r");
    line[0] = '\0';
    if (file == NULL)
        return line;
    if (fseek(file, -7, SEEK_END) == 0 && fgets(line, sizeof line, file) != NULL)
        line[strcspn(line, "\n")] = '\0';
    fclose(file);
    return line;
}

static void
a_holder_that_was_stopped_knows_that_it_lost_before_anything_else(void **state)
{
    (void)state;
    static const unsigned stops_ms[] = {TTL_MS / 2, TTL_MS + 200, 2 * TTL_MS};
    for (size_t i = 0; i < HF_COUNT(stops_ms); i++) {
        char path[HF_TEMPDIR_SIZE + 16];
        static char lines[1 << 16];
        hf_proc proc;
        bool loses = stops_ms[i] > TTL_MS;
        snprintf(path, sizeof path, "%s/told", redis.dir);
        unlink(path);
        hf_fixture_command(&redis, "SET k first PX %d", TTL_MS);
        const char *args[] = {"/proc/self/exe", "holder", redis.url,
                              renew_sha1,       path,     NULL};
        hf_proc_start(&proc, &(hf_proc_options){.args = args});
        EVENTUALLY(SOON_MS, strcmp(tail(path), "held 0") == 0);
        EVENTUALLY(SOON_MS, hf_fixture_number(&redis, "PTTL k") > TTL_MS - 50);
        hf_proc_signal(&proc, SIGSTOP);
        size_t before = strlen(hf_read_file(path, lines, sizeof lines));
        uint64_t until_ms = hf_test_now_ms() + stops_ms[i];
        if (loses)
            EVENTUALLY(SOON_MS,
                       strcmp(hf_fixture_command(&redis, "SET k second NX PX 60000"),
                              "OK") == 0);
        EVENTUALLY(SOON_MS, hf_test_now_ms() >= until_ms);
        hf_proc_signal(&proc, SIGCONT);
        if (loses) {
            EVENTUALLY(SOON_MS, strcmp(tail(path), "lost 1") == 0);
            /* Not one line of belief after it went on; the first may be half an old one.
             */
            const char *after = hf_read_file(path, lines, sizeof lines) + before;
            assert_true(strlen(after) > 0);
            assert_null(strstr(after, "\nheld"));
            assert_string_equal(hf_fixture_command(&redis, "GET k"), "second");
        } else {
            ALWAYS(TTL_MS, strcmp(tail(path), "held 0") == 0);
        }
        hf_proc_kill(&proc);
        hf_fixture_command(&redis, "DEL k");
    }
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "holder") == 0)
        return be_holder(argv);
#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)
    const struct CMUnitTest tests[] = {
        TEST(a_lease_is_held_as_long_as_wanted_and_never_close_to_its_end),
        TEST(a_caller_that_is_busy_for_two_leases_loses_nothing),
        TEST(a_lock_that_is_gone_or_anothers_is_told_lost_and_not_touched),
        TEST(an_owner_that_took_it_again_after_a_loss_is_renewed_again),
        TEST(a_server_that_forgot_the_script_gets_it_again),
        TEST(connections_that_are_killed_all_the_time_lose_no_lease),
        TEST(a_server_that_is_away_for_half_a_lease_loses_none),
        TEST(a_server_that_is_away_for_longer_has_its_leases_lost_before_their_end),
        TEST(a_server_that_comes_back_empty_is_noticed_at_once),
        cmocka_unit_test(a_server_that_comes_back_with_its_data_keeps_them),
        cmocka_unit_test(
            answers_that_never_come_cost_a_lease_only_when_none_comes_in_time),
        TEST(a_renewal_under_way_does_not_bring_back_what_was_released),
        cmocka_unit_test(of_two_that_hurry_the_sooner_one_counts),
        TEST(ten_thousand_leases_are_held_in_few_requests),
        TEST(a_holder_that_was_stopped_knows_that_it_lost_before_anything_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
