/* test_examples.c - every example does what its first lines say: each is run as a reader
 * would run it, against a private server, and what it prints is read. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "holdfast/admin.h"
#include "tests/support/eventually.h"
#include "tests/support/proc.h"
#include "tests/support/redis_fixture.h"
#include "tests/support/shards.h"
#include "tests/support/skip.h"

enum { RUN_MS = 60000, TEXT_SIZE = 16384, PATH_SIZE = 512, ARGS_MAX = 8 };

static hf_fixture redis;
static char out_path[PATH_SIZE], url_env[PATH_SIZE], lua_env[PATH_SIZE],
    outbox_env[PATH_SIZE], path_env[2 * PATH_SIZE + 4096];
static char text[TEXT_SIZE]; /* what the last program printed */

static int up(void **state)
{
    (void)state;
    hf_fixture_start(&redis, NULL);
    (void)snprintf(out_path, sizeof out_path, "%s/out", redis.dir);
    (void)snprintf(url_env, sizeof url_env, "REDIS_URL=%s", redis.url);
    (void)snprintf(lua_env, sizeof lua_env, "HOLDFAST_LUA=%s/lua", HF_TEST_BUILD);
    (void)snprintf(outbox_env, sizeof outbox_env, "OUTBOX=%s", redis.dir);
    (void)snprintf(path_env, sizeof path_env, "PATH=%s:%s", HF_TEST_BUILD,
                   getenv("PATH"));
    return 0;
}

/* Runs it where a reader stands, in the root of the sources. */
static int run(const char *const *args)
{
    const char *const env[] = {url_env, lua_env, outbox_env, path_env, NULL};
    (void)unlink(out_path);
    int status = hf_proc_run(&(hf_proc_options){.args = args,
                                                .env = env,
                                                .out = out_path,
                                                .err = out_path,
                                                .dir = HF_TEST_SOURCE},
                             RUN_MS);
    (void)hf_read_file(out_path, text, sizeof text);
    return status;
}

#define RUN(...) run((const char *const[]){__VA_ARGS__, NULL})

static void assert_printed(const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("'%s' is not in '%s'", part, text);
}

/* The word after `before` on its line: an id. */
static void word_after(const char *before, char word[HF_ID_SIZE])
{
    const char *at = strstr(text, before);
    if (at == NULL)
        fail_msg("'%s' is not in '%s'", before, text);
    else
        (void)snprintf(word, HF_ID_SIZE, "%.*s", (int)strcspn(at + strlen(before), " \n"),
                       at + strlen(before));
}

/* `holdfast worker run -c examples/handlers.yaml`, until nothing is left to do. */
static void run_handlers(void)
{
    assert_int_equal(
        RUN(HF_TEST_COMMAND, "worker", "-c", "examples/handlers.yaml", "--burst"), 0);
}

static void skip_without(const char *program, const char *arg)
{
    const char *const args[] = {program, "-c", arg, NULL};
    if (hf_proc_run(&(hf_proc_options){.args = args, .err = "/dev/null"}, RUN_MS) != 0)
        HF_SKIP("there is no /usr/bin/python3");
}

/* ---- C ---- */

static void the_service_prints_an_id_for_each_job_and_the_worker_runs_them(void **state)
{
    (void)state;
    char later[HF_ID_SIZE], report[HF_ID_SIZE], line[2 * HF_ID_SIZE];
    assert_int_equal(RUN(HF_TEST_BUILD "/examples/example_service", redis.url), 0);
    assert_printed("email.send welcome-ada accepted\n");
    assert_printed("email.send welcome-ada existed\n");
    word_after("accepted\nemail.send ", later);
    word_after("report.make ", report);
    assert_int_equal(strlen(later), 14);
    assert_int_equal(strlen(report), 14);
    assert_int_equal(hf_fixture_number(&redis, "ZCARD hf:{default}:schedule"), 5);

    assert_int_equal(RUN(HF_TEST_BUILD "/examples/example_worker", redis.url, "burst"),
                     0);
    assert_printed("welcome-ada: mail to ada@example.com\n");
    (void)snprintf(line, sizeof line, "%s: mail to ada@example.com\n", later);
    assert_printed(line);
    (void)snprintf(line, sizeof line, "%s: report of 4 words\n", report);
    assert_printed(line);
    assert_int_equal(hf_fixture_number(&redis, "EXISTS hf:{default}:jobs"), 0);
}

static void a_result_is_waited_for(void **state)
{
    const char *const args[] = {HF_TEST_BUILD "/examples/example_result",
                                "one two three four", NULL};
    const char *const env[] = {url_env, NULL};
    char path[PATH_SIZE + 8];
    hf_proc asks;
    (void)state;
    (void)hf_fixture_command(&redis, "FLUSHALL");
    (void)snprintf(path, sizeof path, "%s.asked", out_path);
    hf_proc_start(&asks, &(hf_proc_options){.args = args, .env = env, .out = path});
    EVENTUALLY(15000, hf_fixture_number(&redis, "HLEN hf:{default}:waits") == 1);
    assert_int_equal(RUN(HF_TEST_BUILD "/examples/example_worker", redis.url, "burst"),
                     0);
    assert_true(hf_proc_wait(&asks, RUN_MS));
    assert_int_equal(asks.status, 0);
    (void)hf_read_file(path, text, sizeof text);
    assert_printed(": {\"words\":4}\n");
}

static void the_worker_buries_what_can_never_work(void **state)
{
    (void)state;
    assert_int_equal(
        RUN(HF_TEST_COMMAND, "enqueue", "email.send", "nobody", "--id", "bad"), 0);
    assert_int_equal(RUN(HF_TEST_BUILD "/examples/example_worker", redis.url, "burst"),
                     0);
    assert_null(strstr(text, "mail to"));
    assert_printed("outcome=dead");
    assert_int_equal(RUN(HF_TEST_COMMAND, "job", "show", "bad", "--json"), 0);
    assert_printed("\"state\":\"dead\"");
    assert_printed("no address");
}

static void the_worker_ends_with_0_when_it_is_told_to(void **state)
{
    (void)state;
    static const int signals[] = {SIGTERM, SIGINT};
    const char *const args[] = {HF_TEST_BUILD "/examples/example_worker", redis.url,
                                NULL};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        hf_proc worker;
        hf_fixture_command(&redis, "FLUSHALL");
        hf_proc_start(&worker, &(hf_proc_options){.args = args, .out = out_path});
        EVENTUALLY(15000, hf_fixture_number(&redis, "EXISTS hf:{default}:workers") == 1);
        hf_proc_signal(&worker, signals[i]);
        assert_true(hf_proc_wait(&worker, RUN_MS));
        assert_int_equal(worker.status, 0);
    }
}

static void put_file(const char *path, const char *content)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(content, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static bool has_run(const char *line)
{
    (void)hf_read_file(out_path, text, sizeof text);
    return strstr(text, line) != NULL;
}

static void the_worker_that_reloads_takes_other_queues(void **state)
{
    (void)state;
    char queues[PATH_SIZE];
    hf_proc worker;
    const char *const args[] = {HF_TEST_BUILD "/examples/example_reload", redis.url,
                                queues, NULL};
    (void)snprintf(queues, sizeof queues, "%s/queues", redis.dir);
    put_file(queues, "one 1\n");
    RUN(HF_TEST_COMMAND, "enqueue", "t", "--id", "a", "--queue", "one");
    RUN(HF_TEST_COMMAND, "enqueue", "t", "--id", "b", "--queue", "two");
    hf_proc_start(&worker,
                  &(hf_proc_options){.args = args, .out = out_path, .err = out_path});
    EVENTUALLY(15000, has_run("a of one\n"));
    put_file(queues, "one 1\none 2\n");
    hf_proc_signal(&worker, SIGHUP);
    EVENTUALLY(15000,
               has_run("nothing was changed: expected each queue once, found one\n"));
    put_file(queues, "one 1\ntwo 9\n");
    hf_proc_signal(&worker, SIGHUP);
    EVENTUALLY(15000, has_run("b of two\n"));
    hf_proc_signal(&worker, SIGTERM);
    assert_true(hf_proc_wait(&worker, RUN_MS));
    assert_int_equal(worker.status, 0);
}

static void the_service_says_when_redis_is_away(void **state)
{
    (void)state;
    hf_fixture_kill(&redis, SIGTERM);
    assert_int_equal(RUN(HF_TEST_BUILD "/examples/example_service", redis.url), 1);
    assert_memory_equal(text, "service: ", 9);
}

/* ---- programs ---- */

static void the_configuration_of_the_handlers_is_good(void **state)
{
    (void)state;
    assert_int_equal(RUN(HF_TEST_COMMAND, "check", "-c", "examples/handlers.yaml"), 0);
}

static void the_shell_handler_writes_its_mail_or_buries_its_job(void **state)
{
    (void)state;
    char path[PATH_SIZE], mail[256];
    assert_int_equal(
        RUN(HF_TEST_COMMAND, "enqueue", "email.send", "ada@example.com", "--id", "good"),
        0);
    assert_int_equal(
        RUN(HF_TEST_COMMAND, "enqueue", "email.send", "nobody", "--id", "bad"), 0);
    run_handlers();
    assert_printed("mail to ada@example.com, attempt 1");
    (void)snprintf(path, sizeof path, "%s/good.mail", redis.dir);
    assert_string_equal(hf_read_file(path, mail, sizeof mail), "To: ada@example.com\n");
    assert_int_equal(RUN(HF_TEST_COMMAND, "job", "show", "good"), 1);
    assert_int_equal(RUN(HF_TEST_COMMAND, "job", "show", "bad", "--json"), 0);
    assert_printed("\"state\":\"dead\"");
    assert_printed("no address: nobody");
}

/* A run before it has come to row 18. */
static void the_long_handler_goes_on_where_it_was(void **state)
{
    (void)state;
    char path[PATH_SIZE], rows[256];
    (void)snprintf(path, sizeof path, "%s/rows", redis.dir);
    assert_int_equal(setenv("ROWS", path, 1), 0);
    assert_int_equal(setenv("PACE", "0", 1), 0);
    assert_int_equal(RUN(HF_TEST_COMMAND, "enqueue", "rows.import", "--id", "long",
                         "--keep", "1h", "x"),
                     0);
    (void)hf_fixture_command(&redis, "HSET hf:{default}:checkpoint long %s", "1 1 - 18");
    (void)hf_fixture_command(&redis, "HSET hf:{default}:meta uses m");
    run_handlers();
    assert_string_equal(hf_read_file(path, rows, sizeof rows), "row 19\nrow 20\n");
    assert_int_equal(RUN(HF_TEST_COMMAND, "job", "result", "long"), 0);
    assert_printed("{\"rows\":20}");
}

static void the_python_handler_gives_each_verdict(void **state)
{
    (void)state;
    skip_without("/usr/bin/python3", "import json");
    assert_int_equal(
        RUN(HF_TEST_COMMAND, "enqueue", "report.make", "one two", "--id", "good"), 0);
    assert_int_equal(
        RUN(HF_TEST_COMMAND, "enqueue", "report.make", "busy now", "--id", "busy"), 0);
    assert_int_equal(RUN(HF_TEST_COMMAND, "enqueue", "report.make", " ", "--id", "empty"),
                     0);
    run_handlers();
    assert_printed("report of 2 words, fence ");
    assert_printed("the printer is busy");
    assert_int_equal(RUN(HF_TEST_COMMAND, "queue", "show", "default", "--json"), 0);
    assert_printed("\"done\":2");
    assert_printed("\"dead\":1");
    assert_int_equal(RUN(HF_TEST_COMMAND, "job", "show", "empty", "--json"), 0);
    assert_printed("nothing to report");
}

/* ---- another language ---- */

static void jobs_from_python_are_as_good_as_any(void **state)
{
    (void)state;
    char first[HF_ID_SIZE], second[HF_ID_SIZE];
    skip_without("/usr/bin/python3", "import json");
    assert_int_equal(RUN("/usr/bin/python3", "examples/enqueue.py", "default",
                         "email.send", "ada@example.com",
                         "gr\xC3\xBC\xC3\x9F@example.com"),
                     0);
    assert_int_equal(strlen(text), 2 * 27);
    (void)snprintf(first, sizeof first, "%.26s", text);
    (void)snprintf(second, sizeof second, "%.26s", text + 27);
    assert_true(strcmp(first, second) < 0);
    assert_int_equal(RUN(HF_TEST_COMMAND, "doctor"), 1);
    assert_printed("no live worker serves it, and 2 jobs are due");
    assert_printed("1 finding");
    assert_int_equal(RUN(HF_TEST_COMMAND, "queue", "list"), 0);
    assert_printed("default");
    assert_int_equal(RUN(HF_TEST_COMMAND, "job", "show", second, "--payload"), 0);
    assert_printed("gr\xC3\xBC\xC3\x9F@example.com");
    assert_int_equal(RUN(HF_TEST_BUILD "/examples/example_worker", redis.url, "burst"),
                     0);
    assert_printed(first);
    assert_printed("mail to gr\xC3\xBC\xC3\x9F@example.com");
    assert_int_equal(hf_fixture_number(&redis, "EXISTS hf:{default}:jobs"), 0);
}

static void python_gives_jobs_options(void **state)
{
    (void)state;
    skip_without("/usr/bin/python3", "import json");
    assert_int_equal(RUN("/usr/bin/python3", "examples/enqueue.py", "default", "t",
                         "--priority=high", "--start_within=600000", "one"),
                     0);
    assert_int_equal(hf_fixture_number(&redis, "ZCARD hf:{default}:schedule:h"), 1);
    assert_int_equal(hf_fixture_number(&redis, "ZCARD hf:{default}:expires"), 1);
    (void)hf_fixture_command(&redis, "FLUSHALL");
}

static void python_gets_the_id_of_the_job_that_stands_for_one(void **state)
{
    (void)state;
    char first[HF_ID_SIZE];
    skip_without("/usr/bin/python3", "import json");
    assert_int_equal(RUN("/usr/bin/python3", "examples/enqueue.py", "default", "t",
                         "--unique=7", "one"),
                     0);
    (void)snprintf(first, sizeof first, "%.26s", text);
    assert_int_equal(RUN("/usr/bin/python3", "examples/enqueue.py", "default", "t",
                         "--unique=7", "two", "three"),
                     0);
    assert_memory_equal(text, first, 26);
    assert_memory_equal(text + 27, first, 26);
    assert_int_equal(hf_fixture_number(&redis, "HLEN hf:{default}:jobs"), 1);
    (void)hf_fixture_command(&redis, "FLUSHALL");
}

static void python_finds_the_shards_of_a_queue(void **state)
{
    static hf_shards shards;
    (void)state;
    skip_without("/usr/bin/python3", "import json");
    hf_test_divide(&redis, "wide", 4, &shards);
    assert_int_equal(
        RUN("/usr/bin/python3", "examples/enqueue.py", "wide", "t", "one", "two"), 0);
    assert_int_equal(hf_test_shards_count(&redis, &shards, "schedule"), 2);
}

static void assert_refused(const char *const *args, const char *what)
{
    assert_int_equal(run(args), 64);
    assert_printed("usage: enqueue.py ");
    assert_printed(what);
    assert_int_equal(hf_fixture_number(&redis, "DBSIZE"), 0);
}

#define PYTHON(...)                                                                      \
    ((const char *const[]){"/usr/bin/python3", "examples/enqueue.py", __VA_ARGS__, NULL})

static void python_refuses_what_no_job_has(void **state)
{
    (void)state;
    skip_without("/usr/bin/python3", "import json");
    assert_int_equal(RUN("/usr/bin/python3", "examples/enqueue.py"), 64);
    assert_printed("usage: enqueue.py ");
    assert_refused(PYTHON("default", "t"), "required: PAYLOAD");
    assert_refused(PYTHON("default", "t", "--retries=3", "x"), "--retries=3");
    assert_refused(PYTHON("default", "t", "--attempts=3", "x"), "--attempts=3");
    assert_refused(PYTHON("default", "t", "--prio=high", "x"), "--prio=high");
    assert_refused(PYTHON("default", "t", "--timeout=30s", "x"), "found '30s'");
    assert_refused(PYTHON("default", "t", "--max_attempts=many", "x"), "found 'many'");
    assert_refused(PYTHON("default", "t", "--priority=urgent", "x"), "found 'urgent'");
    assert_refused(PYTHON("default", "t", "--delay=-1", "x"), "found '-1'");
    assert_refused(PYTHON("my queue", "t", "x"), "found 'my queue'");
    assert_refused(PYTHON("default", "my type", "x"), "found 'my type'");
}

/* As a program does; what it sends again after an answer that was lost is one job. */
static void python_imports_it_as_a_module(void **state)
{
    static const char program[] =
        "import sys; sys.path.insert(0, 'examples'); import enqueue, os\n"
        "class Twice(enqueue.Redis):\n"
        "    def execute_command(self, *words):\n"
        "        super().execute_command(*words)\n"
        "        return super().execute_command(*words)\n"
        "r = Twice(os.environ['REDIS_URL'])\n"
        "print(*enqueue.enqueue(r, 'default', 't', ['one', b'two'], delay_ms=60000))\n"
        "print(*enqueue.enqueue(r, 'default', 't', ['three'], priority='high'))\n"
        "for wrong in {'attempts': 3}, {'timeout': '30s'}, {'keep': True}:\n"
        "    try: enqueue.enqueue(r, 'default', 't', ['x'], **wrong)\n"
        "    except (TypeError, ValueError) as error: print(error)\n";
    (void)state;
    skip_without("/usr/bin/python3", "import json");
    assert_int_equal(RUN("/usr/bin/python3", "-c", program), 0);
    assert_printed("found 'attempts'");
    assert_printed("found '30s'");
    assert_printed("found True");
    assert_int_equal(hf_fixture_number(&redis, "HLEN hf:{default}:jobs"), 3);
    assert_int_equal(hf_fixture_number(&redis, "HGET hf:{default}:meta enqueued"), 3);
}

static void python_takes_no_single_payload_for_a_list(void **state)
{
    const char *program =
        "import sys; sys.path.insert(0, 'examples'); import enqueue, os\n"
        "r = enqueue.connect(os.environ['REDIS_URL'])\n"
        "for one in 'ada', b'ada', {'to': 'ada'}:\n"
        "    try: print(enqueue.enqueue(r, 'default', 't', one))\n"
        "    except TypeError as error: print(error)\n";
    (void)state;
    skip_without("/usr/bin/python3", "import json");
    assert_int_equal(RUN("/usr/bin/python3", "-c", program), 0);
    assert_printed("expected a list of payloads, found one str: write [payload]\n"
                   "expected a list of payloads, found one bytes: write [payload]\n"
                   "expected a list of payloads, found one dict: write [payload]\n");
    assert_int_equal(hf_fixture_number(&redis, "EXISTS hf:{default}:meta"), 0);
}

static void python_says_what_is_missing(void **state)
{
    (void)state;
    skip_without("/usr/bin/python3", "import json");
    assert_int_equal(RUN("env", "PATH=/nowhere", "/usr/bin/python3",
                         "examples/enqueue.py", "default", "t", "x"),
                     1);
    assert_printed("expected the command holdfast in PATH");
    assert_int_equal(RUN("env", "REDIS_URL=unix:///nowhere/sock", "/usr/bin/python3",
                         "examples/enqueue.py", "default", "t", "x"),
                     1);
    assert_printed("enqueue.py: [Errno 2] No such file or directory\n");
    assert_null(strstr(text, "Traceback"));
}

/* ---- locks ---- */

static void the_sale_sells_each_item_once_in_spite_of_deaths(void **state)
{
    (void)state;
    assert_int_equal(RUN(HF_TEST_BUILD "/examples/example_flash_sale", redis.url), 0);
    assert_printed("orders paid                                         100\n");
    assert_null(strstr(text, "WRONG"));
    assert_int_equal(hf_fixture_number(&redis, "EXISTS hf:{sale}:jobs hf:{sale}:dead"),
                     0);
    assert_int_equal(hf_fixture_number(&redis, "SCARD shop:{sale}:buyers"), 100);
}

static void a_guarded_store_refuses_a_holder_that_lost_the_lock(void **state)
{
    (void)state;
    char path[PATH_SIZE], report[256];
    const char *program = HF_TEST_BUILD "/examples/example_guarded_write";
    if (access(program, X_OK) != 0)
        HF_SKIP("SQLite was missing when this was built");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(RUN(program, redis.url, redis.dir), 0);
        assert_printed("first: the file refused, the row refused, fence check refused\n");
        (void)snprintf(path, sizeof path, "%s/report.txt", redis.dir);
        assert_non_null(strstr(hf_read_file(path, report, sizeof report), "\nsecond\n"));
    }
}

int main(void)
{
#define CASE(name)                                                                       \
    cmocka_unit_test_prestate_setup_teardown(name, up, hf_fixture_down, &redis)
    const struct CMUnitTest tests[] = {
        CASE(the_service_prints_an_id_for_each_job_and_the_worker_runs_them),
        CASE(a_result_is_waited_for),
        CASE(the_worker_buries_what_can_never_work),
        CASE(the_worker_ends_with_0_when_it_is_told_to),
        CASE(the_worker_that_reloads_takes_other_queues),
        CASE(the_service_says_when_redis_is_away),
        CASE(the_configuration_of_the_handlers_is_good),
        CASE(the_shell_handler_writes_its_mail_or_buries_its_job),
        CASE(the_long_handler_goes_on_where_it_was),
        CASE(the_python_handler_gives_each_verdict),
        CASE(jobs_from_python_are_as_good_as_any),
        CASE(python_gives_jobs_options),
        CASE(python_gets_the_id_of_the_job_that_stands_for_one),
        CASE(python_finds_the_shards_of_a_queue),
        CASE(python_refuses_what_no_job_has),
        CASE(python_imports_it_as_a_module),
        CASE(python_takes_no_single_payload_for_a_list),
        CASE(python_says_what_is_missing),
        CASE(the_sale_sells_each_item_once_in_spite_of_deaths),
        CASE(a_guarded_store_refuses_a_holder_that_lost_the_lock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
