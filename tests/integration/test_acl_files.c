/* test_acl_files.c - the users of packaging/acl: each does the essentials of its work by
 * its own permissions, none has a command that its scripts do not contain, and none lacks
 * one. tests/acceptance/59-acl does their whole work. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/buf.h"
#include "lock_scripts.h"
#include "queue_scripts.h"
#include "tests/support/admin.h"
#include "tests/support/cli_fixture.h"
#include "tests/support/eventually.h"
#include "tests/support/skip.h"
#include "tests/support/worker_fixture.h"

enum { LONG_MS = 20000, TEXT_SIZE = 8192, WORD_SIZE = 32 };

static hf_cli_fixture cli;
static hf_fixture *const redis = &cli.redis;
static hf_worker_fixture worker;

static void path_of(const char *file, char out[TEXT_SIZE])
{
    (void)snprintf(out, TEXT_SIZE, HF_TEST_SOURCE "/packaging/acl/%s", file);
}

/* Its users, turned on in the file, as an administrator does it: `off` becomes `on >pw`.
 */
static void begin(const char *file)
{
    static char text[4 * TEXT_SIZE], path[TEXT_SIZE];
    hf_buf on;
    path_of(file, path);
    const char *at = hf_read_file(path, text, sizeof text);
    hf_buf_init(&on, 8 * TEXT_SIZE);
    for (const char *off; (off = strstr(at, " off ")) != NULL;
         at = off + strlen(" off ")) {
        hf_buf_add(&on, at, (size_t)(off - at));
        hf_buf_add(&on, " on >pw ", strlen(" on >pw "));
    }
    hf_buf_add(&on, at, strlen(at) + 1);
    assert_int_equal(hf_buf_err(&on), HF_OK);
    hf_cli_fixture_put(&cli, "users.acl", on.data);
    hf_buf_done(&on);
    hf_cli_fixture_path(&cli, "users.acl", path);
    hf_fixture_stop(redis);
    hf_fixture_start(redis, &(hf_fixture_options){.args = {"--aclfile", path}});
}

static int up(void **state)
{
    (void)state;
    hf_cli_fixture_start(&cli, HF_TEST_COMMAND);
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_worker_fixture_end(&worker);
    hf_cli_fixture_stop(&cli);
    return 0;
}

static const char *url_of(const char *user)
{
    static char url[HF_TEMPDIR_SIZE + 64];
    (void)snprintf(url, sizeof url, "unix://holdfast-%s:pw@%s", user, redis->socket);
    return url;
}

static void run(const char *user, const char *line, int code)
{
    char env[HF_TEMPDIR_SIZE + 96];
    (void)snprintf(env, sizeof env, "REDIS_URL=%s", url_of(user));
    int got = hf_cli_fixture_run(&cli, line, NULL, (const char *const[]){env, NULL});
    if (got != code)
        fail_msg("%s: %s: expected %d, found %d\n%s%s", user, line, code, got, cli.out,
                 cli.err);
}

/* As the dashboard asks. */
static void read_memory(const char *user)
{
    int64_t bytes = 0;
    char detail[HF_DETAIL_SIZE];
    hf_admin *admin = hf_test_admin(url_of(user));
    if (hf_admin_memory(admin, "q", &bytes, detail) != HF_OK)
        fail_msg("%s: %s", user, detail);
    assert_true(bytes > 0);
    hf_admin_close(admin);
}

static void work(void)
{
    hf_worker_fixture_start(&worker, url_of("worker"), &hf_brief_lease, 0);
    run("producer", "enqueue t ok -q q --wait", 0);
    run("producer", "enqueue t fail -q q --max-attempts 2 --wait", 1);
    run("producer", "enqueue t ok -q q --in 1h --id later", 0);
    run("producer",
        "enqueue t ok -q q --in 1h --wait-replicas 1 --replicas-timeout 100ms", 74);
    assert_true(hf_fixture_number(redis, "CLIENT KILL USER holdfast-worker") > 0);
    run("producer", "enqueue t ok -q q --wait", 0);
    run("reader", "queue show q", 0);
    run("reader", "job list -q q", 0);
    run("reader", "job why later", 0);
    run("reader", "dead list -q q", 0);
    run("reader", "workers", 0);
    run("reader", "doctor", 0);
    run("reader", "wrong", 0);
    run("reader", "runs", 0);
    run("reader", "locks list", 0);
    read_memory("reader");
    read_memory("administrator");
    run("administrator", "queue shards wide 4", 0);
    run("producer", "enqueue t ok -q wide", 0);
    run("producer", "enqueue t ok -q wide --id one", 0);
    run("reader", "queue shards wide", 0);
    run("reader", "queue show wide", 0);
    run("reader", "job show one", 0);
    run("administrator", "queue purge wide --yes", 0);
    run("administrator", "queue remove wide --yes", 0);
    run("administrator", "queue remove q --yes", 1);
    run("producer",
        "enqueue t -q other --unique k --start-within 1ms --expired dead --on-dead u", 0);
    run("producer", "enqueue t -q other --unique k", 0); /* its holder dies now */
    assert_int_equal(hf_fixture_number(redis, "ZCARD hf:{other}:dead"), 1);
    run("administrator", "queue purge other --yes", 0);
    run("locks", "lock n -- true", 0);
    run("locks", "lock --spin m -- true", 0);
    run("administrator", "runs", 0);
    run("administrator", "queue pause q", 0);
    run("administrator", "queue resume q", 0);
    run("administrator", "queue limit q --rate 100/1s", 0);
    run("administrator", "job cancel later", 0);
    run("administrator", "dead purge -q q --yes", 0);
    run("administrator", "doctor --fix", 0);
    run("administrator", "locks list", 0);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    /* A reader's request for reports, by `runs`, is refused, and no other request. */
    const char *log = hf_fixture_command(redis, "ACL LOG");
    assert_null(strstr(log, "holdfast-worker"));
    assert_null(strstr(log, "holdfast-producer"));
    assert_null(strstr(log, "holdfast-locks"));
    assert_null(strstr(log, "holdfast-administrator"));
}

#define OLD "this Redis is older than 7"

/* Redis 6.2 does not start with the other file. */
static bool is_new(void)
{
    return strstr(hf_fixture_command(redis, "INFO server"), "redis_version:6") == NULL;
}

static void each_user_may_do_its_work(void **state)
{
    (void)state;
    if (!is_new())
        HF_SKIP(OLD);
    begin("redis-7.acl");
    work();
}

static void each_user_may_do_its_work_by_the_plain_file(void **state)
{
    (void)state;
    begin("redis-6.2.acl");
    work();
}

static void no_user_may_do_anothers_work(void **state)
{
    (void)state;
    begin(is_new() ? "redis-7.acl" : "redis-6.2.acl");
    run("reader", "enqueue t", 77);
    run("reader", "queue pause q", 77);
    run("reader", "lock n -- true", 77);
    run("producer", "lock n -- true", 77);
    run("producer", "queue list", 77);
    run("locks", "enqueue t", 77);
}

/* Without a permission to write, and without a line in ACL LOG. */
static void a_reader_learns_that_writes_are_refused(void **state)
{
    static const char *const files[] = {"redis-7.acl", "redis-6.2.acl"};
    (void)state;
    if (!is_new())
        HF_SKIP(OLD);
    for (size_t i = 0; i < HF_COUNT(files); i++) {
        begin(files[i]);
        run("producer", "enqueue t --id j", 0);
        run("reader", "job why j", 0);
        assert_null(strstr(cli.out, "refused"));
        assert_string_equal(
            hf_fixture_command(redis, "CONFIG SET min-replicas-to-write 1"), "OK");
        run("reader", "job why j", 0);
        assert_non_null(strstr(cli.out, "refused             Redis refuses every write"));
        assert_non_null(strstr(cli.out, "NOREPLICAS"));
        run("reader", "doctor", 1);
        assert_non_null(strstr(cli.out, "every write is refused"));
        assert_null(strstr(hf_fixture_command(redis, "ACL LOG"), "holdfast-"));
    }
}

/* Whether a user may do this to a key, by the server's own word. */
static bool may(const char *user, const char *command)
{
    char words[TEXT_SIZE + 64];
    (void)snprintf(words, sizeof words, "ACL DRYRUN holdfast-%s %s", user, command);
    return strcmp(hf_fixture_command(redis, words), "OK") == 0;
}

/* A namespace may begin with the name of another one. */
static void no_user_reaches_another_namespace(void **state)
{
    static const char *const files[] = {"redis-7.acl", "redis-6.2.acl"};
    static const char *const users[] = {"producer", "worker", "reader", "administrator",
                                        "locks"};
    static const char *const keys[] = {"hf:b:{q}:meta", "hf:b:lock:{q}:x",
                                       "hfb:{q}:meta",  "hf:b:{/}:queues",
                                       "hf.b:{q}:meta", "other"};
    (void)state;
    if (!is_new())
        HF_SKIP(OLD ", and cannot tell");
    for (size_t i = 0; i < HF_COUNT(files); i++) {
        begin(files[i]);
        for (size_t u = 0; u < HF_COUNT(users); u++) {
            for (size_t k = 0; k < HF_COUNT(keys); k++) {
                char command[TEXT_SIZE];
                (void)snprintf(command, sizeof command, "EXISTS %s", keys[k]);
                if (may(users[u], command))
                    fail_msg("%s: holdfast-%s may read %s", files[i], users[u], keys[k]);
                (void)snprintf(command, sizeof command, "DEL %s", keys[k]);
                if (may(users[u], command))
                    fail_msg("%s: holdfast-%s may delete %s", files[i], users[u],
                             keys[k]);
            }
        }
        assert_true(may("administrator", "DEL hf:{q}:meta"));
        assert_true(may("administrator", "DEL hf:lock:{q}:x"));
    }
}

static void a_producer_sees_no_heartbeat(void **state)
{
    static const char *const files[] = {"redis-7.acl", "redis-6.2.acl"};
    (void)state;
    if (!is_new())
        HF_SKIP(OLD);
    for (size_t i = 0; i < HF_COUNT(files); i++) {
        begin(files[i]);
        assert_false(may("producer", "GET hf:{/}:worker:host-1-00c0ffee00c0ffee"));
        assert_false(may("producer", "EXISTS hf:{/}:workers"));
        assert_false(may("producer", "SET hf:{/}:worker:host-1-00c0ffee00c0ffee x"));
        assert_true(may("producer", "SADD hf:{/}:queues q"));
        assert_true(may("producer", "HGET hf:{q/3-8}:meta uses"));
    }
}

/* Without it a job would leave its set and not reach another. */
static void a_worker_that_lacks_a_command_is_refused_by_name(void **state)
{
    (void)state;
    if (!is_new())
        HF_SKIP(OLD ", and cannot tell");
    begin("redis-7.acl");
    hf_cli_fixture_put(&cli, "w.yaml",
                       HF_CLI_PATIENT "handlers:\n  - {type: t, exec: [\"true\"]}\n");
    run("worker", "worker --burst -c w.yaml", 0);
    assert_string_equal(
        hf_fixture_command(redis, "ACL SETUSER holdfast-worker -hget -time -zpopmin"),
        "OK");
    run("worker", "worker --burst -c w.yaml", 77);
    assert_non_null(strstr(cli.err, "hget"));
    assert_non_null(strstr(cli.err, "time")); /* which each script needs itself */
    assert_non_null(strstr(cli.err, "zpopmin"));
}

/* ---- the files, against the scripts ---- */

static bool is_option(const char *word)
{
    static const char *const options[] = {"PXAT",  "WITHSCORES", "LIMIT",
                                          "COUNT", "MATCH",      "MAXLEN"};
    for (size_t i = 0; i < HF_COUNT(options); i++)
        if (strcmp(word, options[i]) == 0)
            return true;
    return false;
}

/* Adds " name" of each command that a script contains: a word of capitals in quotes. */
static void add_commands(char *out, const hf_script *script)
{
    const char *text = (const char *)script->text;
    for (const char *at = text; (at = strchr(at, '\'')) != NULL; at++) {
        char word[WORD_SIZE], small[WORD_SIZE + 2];
        size_t n = strspn(at + 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
        if (n < 3 || n >= sizeof word || at[1 + n] != '\'')
            continue;
        (void)snprintf(word, sizeof word, "%.*s", (int)n, at + 1);
        (void)snprintf(small, sizeof small, " %s ", word);
        for (char *c = small; *c != '\0'; c++)
            *c = (char)tolower((unsigned char)*c);
        if (!is_option(word) && strstr(out, small) == NULL)
            (void)snprintf(out + strlen(out) - 1, TEXT_SIZE - strlen(out), "%s", small);
    }
}

/* Those of all scripts of a folder, or of the named ones alone. */
static void add_all(char *out, const hf_script *const *all, const char *const *names)
{
    for (; *all != NULL; all++) {
        bool wanted = names == NULL;
        for (size_t i = 0; !wanted && names[i] != NULL; i++)
            wanted = strcmp(strchr((*all)->name, '/') + 1, names[i]) == 0;
        if (wanted)
            add_commands(out, *all);
    }
}

/* What the line of a user permits, as " name name ". */
static void read_user(const char *file, const char *user, char out[TEXT_SIZE])
{
    static char text[4 * TEXT_SIZE], path[TEXT_SIZE], begins[WORD_SIZE * 2];
    path_of(file, path);
    (void)snprintf(begins, sizeof begins, "user holdfast-%s ", user);
    char *line = strstr(hf_read_file(path, text, sizeof text), begins);
    assert_non_null(line);
    line[strcspn(line, "\n")] = '\0';
    (void)snprintf(out, TEXT_SIZE, " ");
    for (char *at = line; (at = strstr(at, " +")) != NULL; at++)
        (void)snprintf(out + strlen(out), TEXT_SIZE - strlen(out), "%.*s ",
                       (int)strcspn(at + 2, " "), at + 2);
}

/* Each word of `words` is in `others`. */
static void check_words(const char *words, const char *others, const char *what)
{
    for (const char *at = words + 1; *at != '\0'; at += strcspn(at, " ") + 1) {
        char word[2 * WORD_SIZE];
        (void)snprintf(word, sizeof word, " %.*s ", (int)strcspn(at, " "), at);
        if (strstr(others, word) == NULL)
            fail_msg("%s:%s", what, word);
    }
}

static void compare(const char *user, const char *needed, bool all)
{
    static const char *const files[] = {"redis-7.acl", "redis-6.2.acl"};
    for (size_t i = 0; i < HF_COUNT(files); i++) {
        char permitted[TEXT_SIZE], what[TEXT_SIZE];
        read_user(files[i], user, permitted);
        (void)snprintf(what, sizeof what, "packaging/acl/%s: holdfast-%s lacks", files[i],
                       user);
        if (all)
            check_words(needed, permitted, what);
        (void)snprintf(what, sizeof what, "packaging/acl/%s: holdfast-%s does not need",
                       files[i], user);
        check_words(permitted, needed, what);
    }
}

#define LOGIN                                                                            \
    "cluster|slots select client|id client|kill info eval evalsha script|load time "

static void users_have_the_commands_of_their_scripts(void **state)
{
    static const char *const producers[] = {"register", "enqueue", "enqueue_with",
                                            "job",      "await",   NULL};
    static const char *const workers[] = {
        "claim",   "unclaim", "renew",   "complete", "retry",    "release",
        "bury",    "check",   "peek",    "beat",     "limits",   "register",
        "shards",  "keep",    "on_dead", "cron_put", "cron_due", "cron_tick",
        "present", "refuse",  "crash",   "past",     "runs",     NULL};
    (void)state;
    char needed[TEXT_SIZE] = " " LOGIN "set del wait role blpop client|unblock ";
    add_all(needed, hf_lua_queue_all, producers);
    compare("producer", needed, true);
    (void)snprintf(needed, sizeof needed,
                   " " LOGIN "bzpopmin client|unblock set wait role ");
    add_all(needed, hf_lua_queue_all, workers);
    compare("worker", needed, true);
    (void)snprintf(needed, sizeof needed,
                   " " LOGIN "scan smembers zscan mget blpop client|unblock ");
    add_all(needed, hf_lua_queue_all, NULL);
    add_all(needed, hf_lua_lock_all, NULL);
    (void)snprintf(needed + strlen(needed), sizeof needed - strlen(needed),
                   "memory|usage ");
    compare("administrator", needed, true);
    compare("reader", needed, false); /* it may read */
    (void)snprintf(needed, sizeof needed,
                   " " LOGIN "blpop set wait role client|unblock ");
    add_all(needed, hf_lua_lock_all, NULL);
    compare("locks", needed, true);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, up, down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(each_user_may_do_its_work),
        CASE(each_user_may_do_its_work_by_the_plain_file),
        CASE(no_user_may_do_anothers_work),
        CASE(a_reader_learns_that_writes_are_refused),
        CASE(no_user_reaches_another_namespace),
        CASE(a_producer_sees_no_heartbeat),
        CASE(a_worker_that_lacks_a_command_is_refused_by_name),
        cmocka_unit_test(users_have_the_commands_of_their_scripts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
