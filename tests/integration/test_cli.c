/* The command as people and scripts meet it: the built binary against a private server.
 * What each kind of bad input ends with stands in one table. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "holdfast/tls.h"
#include "tests/support/cli_try.h"
#include "tests/support/eventually.h"

enum { LINES_MAX = 10001 };

static hf_cli_fixture *const fixture = &hf_try_fixture;

static int run_with(const char *line, const char *input)
{
    return hf_cli_fixture_run(fixture, line, input, NULL);
}

static int run(const char *line)
{
    return run_with(line, NULL);
}

static unsigned count_lines(const char *text)
{
    unsigned n = 0;
    for (; *text != '\0'; text++)
        n += *text == '\n' ? 1 : 0;
    return n;
}

/* The first word of a text, in a buffer of its own. */
static const char *first_line(const char *text)
{
    static char line[256];
    snprintf(line, sizeof line, "%.*s", (int)strcspn(text, "\n"), text);
    return line;
}

/* ---- bad input ---- */

typedef struct bad {
    const char *line;
    const char *input;
    int code;
    const char *said; /* a part of the one line on standard error */
} bad;

static const bad bad_inputs[] = {
    {"-c none", NULL, 64, "missing COMMAND (usage: holdfast COMMAND [OPTIONS])"},
    {"job show", NULL, 64, "holdfast: missing ID (usage: holdfast job show ID)"},
    {"queue", NULL, 64, "usage: holdfast queue COMMAND"},
    {"enqeue t", NULL, 64,
     "holdfast: expected a command, found 'enqeue' (did you mean 'enqueue'?)"},
    {"enqueue t --soon", NULL, 64,
     "holdfast: expected an option of 'enqueue', found '--soon'"},
    {"queue limt q", NULL, 64, "found 'queue limt' (did you mean 'queue limit'?)"},
    {"enqueue t --wiat", NULL, 64, "found '--wiat' (did you mean '--wait'?)"},
    {"enqueue", NULL, 64,
     "holdfast: enqueue: expected TYPE or --bulk FILE, found neither"},
    {"enqueue t x y @", NULL, 64, "found 'y'"},
    {"enqueue t @ --in 10", NULL, 64, "holdfast: --in: expected a duration"},
    {"enqueue t @ --in 36526d", NULL, 64,
     "--in: expected a duration with its unit (ms s m "
     "h d) from 0ms to 36525d, found '36526d'"},
    {"enqueue t @ --in 2562047788015h", NULL, 64, "holdfast: --in: expected a duration"},
    {"enqueue t @ --at @253402300800", NULL, 64, "holdfast: --at: expected a time"},
    {"enqueue t @ --in 10s --at @5", NULL, 64, "expected --in or --at, found both"},
    {"enqueue t @ --at 2030-01-31T08:00:00", NULL, 64, "holdfast: --at: expected a time"},
    {"enqueue t @ --at 2030-01-31T08:00", NULL, 64, "(add :00Z for UTC, or :00 and"},
    {"enqueue t @ --in 30m1h", NULL, 64, "holdfast: --in: expected a duration"},
    {"enqueue t @ --unique-for 5s", NULL, 64, "enqueue: --unique-for needs --unique"},
    {"enqueue t @ --on-conflict skip", NULL, 64, "enqueue: --on-conflict needs --unique"},
    {"enqueue t @ --unique k --debounce 5s", NULL, 64,
     "enqueue: --debounce needs --max-wait"},
    {"enqueue t - @ --unique k --debounce 5s --max-wait 1m --throttle 1m", "x", 64,
     "enqueue: expected no throttle with debounce, found one"},
    {"enqueue t @ --unique k --throttle 1m --unique-for 1m", NULL, 64,
     "enqueue: expected no unique_for with throttle, found one"},
    {"enqueue t @ --unique k --throttle 1m --on-conflict cancel", NULL, 64,
     "enqueue: expected no on_conflict but skip and next with throttle, found one"},
    {"enqueue t @ --run r", NULL, 64, "--run and --atomic need --bulk"},
    {"enqueue t @ --bulk f", NULL, 64, "expected TYPE or --bulk FILE, found both"},
    {"enqueue @ --bulk f --wait", NULL, 64, "expected no --wait with --bulk, found one"},
    {"enqueue t --redis http://localhost", NULL, 64,
     "holdfast: --redis: expected the URL of"},
    {"enqueue t --redis redis-cluster://localhost", NULL, 64, "not in this build"},
    {"enqueue t --redis redis://localhost:port", NULL, 64,
     "holdfast: --redis: expected the URL"},
    {"queue list @ --namespace a{b", NULL, 64, "holdfast: --namespace: expected"},
    {"queue limit q @", NULL, 64, "expected --max-running or --rate, found neither"},
    {"queue limit q @ --rate 5", NULL, 64,
     "--rate: expected JOBS/DURATION (100/1s, of 1ms to 1d) or 0, "
     "found '5'"},
    {"job list @ --after q/x", NULL, 64, "--after: expected the id of a job, or what"},
    {"job list @ -q p --after q/ready/1/x", NULL, 64,
     "--after: expected the id of a job"},
    {"dead list @ --after q/ready/1/x", NULL, 64, "--after: expected the id of a job"},
    {"job list @ -q q --after q/ready/one/x", NULL, 65, "expected an id or a cursor"},
    {"job list @ --state gone", NULL, 64, "--state: expected one of"},
    {"check", NULL, 64, "missing -c FILE (usage: holdfast check -c FILE)"},
    {"help nothing", NULL, 64, "expected a command, found 'nothing'"},

    {"enqueue t @ --id a{b", NULL, 65, "holdfast: expected a job's id (1 to 128 "},
    {"enqueue t{ @", NULL, 65, "holdfast: expected a type (1 to 128 "},
    {"enqueue t @ -q a/b", NULL, 65, "holdfast: expected a queue's name (1 to 128 "},
    {"enqueue t 12345 @ -c small.yaml", NULL, 65,
     "expected a payload of at most 4 bytes, found more"},
    {"enqueue t - @ -c small.yaml", "12345", 65,
     "expected a payload of at most 4 bytes, found more"},
    {"job show a{b @", NULL, 65, "holdfast: expected a job's id"},
    {"enqueue @ --bulk missing", NULL, 65,
     "holdfast: missing:1: expected a file that can be read"},
    {"enqueue @ --bulk -", "{\"type\":\"t\"}\n{\"type\":\"t\",}\n", 65,
     "holdfast: standard input:2: expected a JSON object, found broken JSON"},
    {"enqueue @ --bulk -", "{\"type\":\"t\",\"id\":\"a{\"}\n", 65,
     "holdfast: standard input:1: expected 1"},
    {"enqueue @ --bulk -", "{\"type\":\"t\"}\n\n{\"type\":\"t\",\"throttle\":\"1s\"}\n",
     65, "holdfast: standard input:3: 'throttle' needs 'unique'"},
    {"enqueue @ --bulk - --run a{b", "", 65, "holdfast: expected a run's id"},

    {"queue list -c missing.yaml", NULL, 78,
     "holdfast: missing.yaml:1:1: expected a file that can be read, found none (No such "
     "file"},
    {"worker -c unknown.yaml", NULL, 78,
     "holdfast: unknown.yaml:2:3: expected a key of 'worker' (concurrency, lease, "},
    {"check -c doubled.yaml", NULL, 78,
     "holdfast: doubled.yaml:3:1: expected each key once, found 'poison' again (first on "
     "line 1)"},
    {"check -c duration.yaml", NULL, 78,
     "holdfast: duration.yaml:1:17: expected a duration with its unit (ms s m h d) from "
     "1s to 1h, "
     "found '10'"},
    {"enqueue t @ -c broken.yaml", NULL, 78,
     "holdfast: broken.yaml:1:13: expected YAML, found broken"},
    {"enqueue t -c cluster.yaml", NULL, 78,
     "holdfast: cluster.yaml:1:14: expected the URL of a Redis"},
    {"worker @", NULL, 78,
     "a configuration file with 'handlers' (-c FILE), or a "
     "command after '--', is missing"},
    {"worker @ --listen x -- true", NULL, 64, "--listen: expected --dev, found none"},
    {"worker @ -c two.yaml --dev --listen x", NULL, 64,
     "--listen: expected one pool, found 2: write the command of one after '--'"},
    {"worker @ -c two.yaml --logs", NULL, 64,
     "--logs: expected a command after '--', found none"},
    {"worker @ --processes 2", NULL, 64,
     "--processes: expected a command after '--', found none"},
    {"worker @ python3", NULL, 64, "expected a command, found 'worker python3'"},
    {"worker run @ python3", NULL, 64,
     "expected nothing after 'worker run' but '-- COMMAND', found 'python3'"},
    {"worker @ -c small.yaml", NULL, 78,
     "holdfast: small.yaml:1:1: 'handlers' is missing"},
    {"enqueue t -c nopassword.yaml", NULL, 78, "password file"},
    {"workers redis://me:S3cret@h", NULL, 64,
     "expected nothing more after 'worker list', found 'redis://***@h'"},
    {"queue list -c redis://me:S3cret@h", NULL, 78, "holdfast: redis://***@h:1:1: "},
    {"job show me:S3cret@h", NULL, 65, "found '***@h'"},
    {"queue list -aS3cret", NULL, 64, "found '-a'"},
    {"--password=S3cret queue list", NULL, 64, "found '--password'"},

    {"queue list --redis redis://127.0.0.1:1 -c hasty.yaml", NULL, 69,
     "holdfast: Redis cannot be"},
    {"enqueue t --redis unix:///nowhere -c hasty.yaml", NULL, 69,
     "no such file or directory"},
    {"queue list --redis redis://no.such.host.invalid -c hasty.yaml", NULL, 69,
     "cannot be resolved"},
    {"job show nobody @", NULL, 1, "holdfast: no job 'nobody' in any queue"},
    {"job show nobody @ -q q", NULL, 1, "holdfast: no job 'nobody' in queue 'q'"},
    {"dead retry nobody @", NULL, 1, "holdfast: no job 'nobody' in any queue"},
};

static void every_bad_input_ends_with_its_code_and_one_clear_line(void **state)
{
    (void)state;
    hf_cli_fixture_put(fixture, "small.yaml", "limits: {payload: 4}\n");
    hf_cli_fixture_put(fixture, "two.yaml", "handlers: [pool: [a], pool: [b]]\n");
    hf_cli_fixture_put(fixture, "unknown.yaml", "worker:\n  concurency: 4\n");
    hf_cli_fixture_put(fixture, "doubled.yaml", "poison: 3\nnamespace: hf\npoison: 4\n");
    hf_cli_fixture_put(fixture, "duration.yaml", "worker: {lease: 10}\n");
    hf_cli_fixture_put(fixture, "broken.yaml", "namespace: a: b\n");
    hf_cli_fixture_put(fixture, "cluster.yaml", "redis: {url: rediss+cluster://h/1}\n");
    hf_cli_fixture_put(fixture, "hasty.yaml",
                       "redis: {connect_timeout: 300ms, request_timeout: 300ms}\n");
    hf_cli_fixture_put(fixture, "nopassword.yaml",
                       "redis: {password_file: /nowhere/password}\n");
    for (size_t i = 0; i < sizeof bad_inputs / sizeof bad_inputs[0]; i++) {
        const bad *b = &bad_inputs[i];
        int code = run_with(b->line, b->input);
        if (code != b->code || strstr(fixture->err, b->said) == NULL)
            fail_msg("`%s` ended with %d instead of %d and said: %s", b->line, code,
                     b->code, fixture->err);
        if (strncmp(b->said, "usage", 5) == 0)
            continue;
        /* One line of fault; the run's id may stand before it. */
        const char *fault = strncmp(fixture->err, "run ", 4) == 0
                                ? strchr(fixture->err, '\n') + 1
                                : fixture->err;
        assert_int_equal(count_lines(fault), 1);
        assert_int_equal(strncmp(fault, "holdfast: ", 10), 0);
        assert_string_equal(fixture->out, "");
    }
    assert_string_equal(hf_fixture_command(&fixture->redis, "KEYS *"),
                        ""); /* and nothing was done */
}

static void with_json_a_fault_is_an_object(void **state)
{
    (void)state;
    assert_int_equal(run("enqueue t --json @ --id a{b"), 65);
    json_t *fault = json_loads(fixture->err, 0, NULL);
    assert_non_null(fault);
    assert_int_equal(json_integer_value(json_object_get(fault, "code")), 65);
    assert_non_null(json_string_value(json_object_get(fault, "error")));
    assert_non_null(json_string_value(json_object_get(fault, "hint")));
    json_decref(fault);
    assert_int_equal(run("enqueue --json --bogus"), 64);
    hf_try_has(fixture->err, "\"code\":64");
}

static void a_bad_url_of_the_environment_is_usage_too(void **state)
{
    (void)state;
    static const char *const env[] = {"REDIS_URL=redis-cluster://secret:word@h", NULL};
    assert_int_equal(hf_cli_fixture_run(fixture, "enqueue t", NULL, env), 64);
    hf_try_has(fixture->err, "holdfast: REDIS_URL: expected the URL of a Redis");
    assert_null(strstr(fixture->err, "word"));
    /* A flag goes before it. */
    assert_int_equal(hf_cli_fixture_run(fixture, "enqueue t @", NULL, env), 0);
}

static void a_wrong_password_is_told_apart_from_a_redis_that_is_away(void **state)
{
    (void)state;
    hf_fixture other;
    char line[512];
    const hf_fixture_options options = {.password = "right", .tcp = true};
    hf_fixture_start(&other, &options);
    snprintf(line, sizeof line, "queue list --redis redis://:wrong@127.0.0.1:%u",
             other.port);
    hf_try_run(line, 77);
    hf_try_has(fixture->err, "holdfast: a user, a password, a permission or");
    assert_null(strstr(fixture->err, "wrong@"));
    snprintf(line, sizeof line, "enqueue t --redis redis://127.0.0.1:%u", other.port);
    hf_try_run(line, 77);
    snprintf(line, sizeof line, "enqueue t --redis redis://:right@127.0.0.1:%u",
             other.port);
    hf_try_run(line, 0);
    /* The file's password is for the file's URL, and for one that has none of its own. */
    hf_cli_fixture_put(fixture, "password", "right\n");
    hf_cli_fixture_put(fixture, "auth.yaml", "redis: {password_file: password}\n");
    snprintf(line, sizeof line, "queue list -c auth.yaml --redis redis://127.0.0.1:%u",
             other.port);
    hf_try_run(line, 0);
    snprintf(line, sizeof line,
             "queue list -c auth.yaml --redis redis://:wrong@127.0.0.1:%u", other.port);
    hf_try_run(line, 77);
    hf_fixture_stop(&other);
}

static void a_full_redis_says_try_later_and_nothing_is_half_done(void **state)
{
    (void)state;
    hf_fixture other;
    char line[512];
    const hf_fixture_options options = {.args = {"--maxmemory", "100kb"}};
    hf_fixture_start(&other, &options);
    snprintf(line, sizeof line, "enqueue t --redis %s", other.url);
    hf_try_run(line, 75);
    hf_try_has(fixture->err, "holdfast: Redis is at its memory limit");
    assert_string_equal(hf_fixture_command(&other, "EXISTS hf:{default}:jobs"), "0");
    hf_fixture_stop(&other);
}

/* The words that a process was started with, as everybody may see them. */
static bool shows(pid_t pid, const char *part)
{
    char path[64], seen[4096];
    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
    int fd = open(path, O_RDONLY);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, seen, sizeof seen - 1);
    close(fd);
    for (ssize_t i = 0; i < n; i++)
        seen[i] = seen[i] == '\0' ? ' ' : seen[i];
    seen[n > 0 ? n : 0] = '\0';
    return strstr(seen, part) != NULL;
}

/* Its disk is well. */
static void a_redis_without_its_replicas_is_not_said_to_have_a_bad_disk(void **state)
{
    (void)state;
    hf_fixture_command(&fixture->redis, "CONFIG SET min-replicas-to-write 1");
    hf_try_run("queue pause q --json @", 75);
    hf_fixture_command(&fixture->redis, "CONFIG SET min-replicas-to-write 0");
    json_t *fault = json_loads(fixture->err, 0, NULL);
    assert_non_null(fault);
    assert_string_equal(json_string_value(json_object_get(fault, "name")), "HF_MISCONF");
    hf_try_has(json_string_value(json_object_get(fault, "error")), "too few replicas");
    hf_try_has(json_string_value(json_object_get(fault, "error")), "NOREPLICAS");
    hf_try_has(json_string_value(json_object_get(fault, "hint")),
               "min-replicas-to-write");
    json_decref(fault);
}

static void a_password_does_not_stay_in_the_list_of_processes(void **state)
{
    (void)state;
    hf_proc p;
    hf_cli_fixture_put(fixture, "patient.yaml", "redis: {connect_timeout: 10m}\n");
    hf_cli_fixture_begin(
        fixture, &p, "queue list -c patient.yaml --redis redis://u:topsecret@127.0.0.1:1",
        "log");
    EVENTUALLY(15000, shows(p.pid, "redis://u:*********@127.0.0.1:1"));
    assert_false(shows(p.pid, "topsecret"));
    hf_proc_kill(&p);
}

/* ---- jobs ---- */

static void an_enqueued_job_can_be_looked_at(void **state)
{
    (void)state;
    hf_try_run(
        "enqueue email.send hello @ --id i1 --in 1h --max-attempts 3 --timeout 30s", 0);
    assert_string_equal(fixture->out, "i1\n");
    assert_string_equal(fixture->err, "");
    hf_try_run("job show i1 @ --json", 0);
    json_t *job = json_loads(fixture->out, 0, NULL);
    assert_non_null(job);
    assert_string_equal(json_string_value(json_object_get(job, "type")), "email.send");
    assert_string_equal(json_string_value(json_object_get(job, "queue")), "default");
    assert_string_equal(json_string_value(json_object_get(job, "state")), "delayed");
    assert_int_equal(json_integer_value(json_object_get(job, "attempts")), 0);
    assert_int_equal(json_integer_value(json_object_get(job, "timeout_ms")), 30000);
    json_int_t ahead = json_integer_value(json_object_get(job, "due_ms")) -
                       json_integer_value(json_object_get(job, "created_ms"));
    assert_in_range(ahead, 3600000 - 1000, 3600000 + 5000);
    static const char *const keys[] = {"holder", "fence", "lease_remaining_ms", "error"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        assert_true(json_is_null(json_object_get(job, keys[i])));
    json_decref(job);
    hf_try_run("job show i1 @ --payload", 0);
    assert_string_equal(fixture->out, "hello");
    hf_try_run("job show i1 @", 0);
    hf_try_has(fixture->out, "state     delayed\n");
    hf_try_has(fixture->out, "attempts  0 failed, at most 3\n");
}

static void an_id_that_exists_is_no_failure(void **state)
{
    (void)state;
    hf_try_run("enqueue t first @ --id twice", 0);
    hf_try_run("enqueue t second @ --id twice --json", 0);
    hf_try_has(fixture->out, "\"existed\":true");
    hf_try_run("job show twice @ --payload", 0);
    assert_string_equal(fixture->out, "first");
}

static void a_payload_comes_from_standard_input(void **state)
{
    (void)state;
    assert_int_equal(run_with("enqueue t - @ --id piped", "line\nline\n"), 0);
    hf_try_run("job show piped @ --payload", 0);
    assert_string_equal(fixture->out, "line\nline\n");
}

static void check_warns_of_what_a_worker_could_not_do(void **state)
{
    (void)state;
    hf_cli_fixture_put(fixture, "odd.yaml",
                       "handlers:\n"
                       "- {type: a, exec: [no-such-program]}\n"
                       "- {type: b, exec: [/etc/passwd]}\n"
                       "- {type: c, exec: ['true'], cwd: /nowhere, on_dead: lost}\n"
                       "- {type: d, exec: [sh], env: [PATH, NO_SUCH_NAME]}\n"
                       "- {type: good, exec: [sh], on_dead: a}\n"
                       "schedules:\n"
                       "- {id: s, type: other, every: 1h}\n"
                       "- {id: t, type: good, every: 1h}\n");
    hf_try_run("check -c odd.yaml", 0);
    hf_try_has(fixture->err,
               "handler 'a': there is no program 'no-such-program' that can "
               "be run in PATH\n");
    hf_try_has(fixture->err,
               "handler 'b': there is no program '/etc/passwd' that can be run\n");
    hf_try_has(fixture->err, "handler 'c': there is no directory '/nowhere' (cwd)\n");
    hf_try_has(fixture->err, "on_dead of handler 'c': no handler of this file has the "
                             "type 'lost'\n");
    hf_try_has(fixture->err, "handler 'd': the environment of this command has no "
                             "'NO_SUCH_NAME' (env)\n");
    hf_try_has(fixture->err,
               "schedule 's': no handler of this file has the type 'other'\n");
    assert_int_equal(count_lines(fixture->err), 6);
    json_t *answer = hf_try_object("check -c odd.yaml --json", 0);
    assert_int_equal(hf_try_number(answer, "warnings"), 6);
    json_decref(answer);
    hf_cli_fixture_put(fixture, "all.yaml",
                       "handlers: [{type: '*', exec: [sh], on_dead: x}]\n"
                       "schedules: [{id: s, type: other, every: 1h}]\n");
    hf_try_run("check -c all.yaml", 0);
    assert_string_equal(fixture->err, "");
}

static void a_password_file_for_all_users_is_warned_about(void **state)
{
    char path[512];
    (void)state;
    hf_cli_fixture_put(fixture, "open.password", "right\n");
    hf_cli_fixture_put(fixture, "open.yaml", "redis: {password_file: open.password}\n");
    (void)snprintf(path, sizeof path, "%s/open.password", fixture->dir);
    assert_int_equal(chmod(path, 0644), 0);
    hf_try_run("check -c open.yaml", 0);
    hf_try_has(fixture->err, "every user can read the password file 'open.password'");
    assert_int_equal(chmod(path, 0640), 0);
    hf_try_run("check -c open.yaml", 0);
    assert_string_equal(fixture->err, "");
}

static void lists_are_paged(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) {
        char line[64];
        snprintf(line, sizeof line, "enqueue t @ --id j%d --at @%d", i, 100 + i);
        hf_try_run(line, 0);
    }
    hf_try_run("job list @ --state ready --limit 2 --json", 0);
    assert_int_equal(count_lines(fixture->out), 2);
    hf_try_has(fixture->out, "\"id\":\"j0\"");
    hf_try_run("job list @ --state ready --limit 2 --after j1 --json", 0);
    hf_try_has(fixture->out, "\"id\":\"j2\"");
    hf_try_has(fixture->out, "\"id\":\"j3\"");
    hf_try_run("job list @", 0);
    assert_int_equal(count_lines(fixture->out), 6); /* with its head */
    assert_string_equal(fixture->err, "");
    hf_try_run("job list @ --limit 2", 0); /* a page that is full says how to go on */
    hf_try_has(fixture->err,
               "holdfast: 2 jobs are listed, there are more: go on with --after "
               "default/ready/101000/j1\n");
    hf_try_run("job list @ --limit 5 --json", 0); /* full, and the last one */
    assert_string_equal(fixture->err, "");
    hf_try_run("job list @ --limit 4 --json", 0);
    assert_string_equal(fixture->err,
                        "{\"more\":true,\"after\":\"default/ready/103000/j3\"}\n");
    hf_try_run("job list @ --state running", 0);
    assert_string_equal(fixture->out, "no such jobs\n");
    hf_try_run("job list @ -q empty", 0);
    assert_string_equal(fixture->out, "empty: no jobs\n");
    hf_try_run("dead list @ --json", 0);
    assert_string_equal(fixture->out, "");
}

static void a_list_goes_on_where_a_job_has_gone(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) {
        char line[64];
        snprintf(line, sizeof line, "enqueue t @ --id j%d --at @%d", i, 100 + i);
        hf_try_run(line, 0);
    }
    hf_try_run("job delete j1 @ --yes", 0);
    hf_try_run("job list @ --limit 1 --after default/ready/101000/j1 --json", 0);
    hf_try_has(fixture->out, "\"id\":\"j2\"");
    /* Only an id does not tell the place: nothing is left out. */
    hf_try_run("job list @ --state ready --limit 1 --after j1 --json", 0);
    hf_try_has(fixture->out, "\"id\":\"j0\"");
    hf_try_has(fixture->err, "the job of --after has gone");
}

static void lists_show_all_queues(void **state)
{
    (void)state;
    hf_try_run("enqueue t @ --id a1 -q a --in 1h", 0);
    hf_try_run("enqueue t @ --id b1 -q b --in 1h", 0);
    hf_try_run("enqueue t @ --id b2 -q b", 0);
    hf_try_run("job list @", 0);
    hf_try_has(fixture->out, "ID  QUEUE  TYPE");
    hf_try_has(fixture->out, "\na1  a ");
    hf_try_has(fixture->out, "\nb2  b ");
    assert_int_equal(count_lines(fixture->out), 4);
    hf_try_run("job list @ --limit 1 --json", 0);
    hf_try_has(fixture->out, "\"queue\":\"a\"");
    hf_try_has(fixture->err, "\"after\":\"b/ready/\"");
    hf_try_run("job list @ --limit 1 --after b/ready/ --json", 0);
    hf_try_has(fixture->out, "\"id\":\"b2\"");
    hf_try_has(fixture->err, "\"after\":\"b/delayed/\"");
    hf_try_run("job list @ --after b/delayed/ --json", 0);
    hf_try_has(fixture->out, "\"id\":\"b1\"");
    assert_int_equal(count_lines(fixture->out), 1);
    hf_try_run("job list @ -q b --json", 0);
    assert_int_equal(count_lines(fixture->out), 2);
}

/* ---- queues ---- */

static json_t *show_queue(const char *queue)
{
    char line[128];
    snprintf(line, sizeof line, "queue show %s @ --json", queue);
    hf_try_run(line, 0);
    json_t *stats = json_loads(fixture->out, 0, NULL);
    assert_non_null(stats);
    return stats;
}

static void a_queue_is_shown_with_all_its_numbers(void **state)
{
    (void)state;
    static const char *const keys[] = {
        "queue",           "paused",      "ready",       "delayed", "running", "dead",
        "enqueued",        "done",        "failed",      "lost",    "unsure",  "crashed",
        "oldest_ready_ms", "next_due_ms", "max_running", "workers"};
    hf_try_run("enqueue t @ -q q1", 0);
    hf_try_run("enqueue t @ -q q1 --in 1h", 0);
    json_t *stats = show_queue("q1");
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        assert_non_null(json_object_get(stats, keys[i]));
    assert_int_equal(json_integer_value(json_object_get(stats, "ready")), 1);
    assert_int_equal(json_integer_value(json_object_get(stats, "delayed")), 1);
    assert_int_equal(json_integer_value(json_object_get(stats, "enqueued")), 2);
    assert_true(json_is_integer(json_object_get(stats, "oldest_ready_ms")));
    assert_true(json_is_integer(json_object_get(stats, "next_due_ms")));
    json_decref(stats);
    hf_try_run("queue list @", 0);
    assert_int_equal(count_lines(fixture->out), 2);
    hf_try_has(fixture->out, "q1 ");
    hf_try_run("queue show q1 @", 0);
    hf_try_has(fixture->out, "ready 1  delayed 1  running 0  dead 0");
}

static void an_unknown_queue_is_told_in_one_line(void **state)
{
    (void)state;
    hf_cli_fixture_put(fixture, "named.yaml", "queues: [{name: new}]\n");
    hf_try_run("enqueue t @ -q q1", 0);
    hf_try_run("queue show q2 @", 1);
    assert_string_equal(fixture->out, "");
    hf_try_has(fixture->err, "holdfast: no queue 'q2'");
    assert_int_equal(count_lines(fixture->err), 1);
    hf_try_run("queue show q2 @ --json", 1);
    assert_string_equal(fixture->out, "");
    hf_try_run("queue show new @", 1);
    hf_try_run("queue show new @ -c named.yaml", 0); /* it has its place */
    hf_try_has(fixture->out, "ready 0  delayed 0  running 0  dead 0");
    hf_try_run("queue purge q1 @ --yes", 0); /* an empty one is there as well */
    hf_try_run("queue show q1 @", 0);
}

static void a_queue_is_paused_resumed_and_limited(void **state)
{
    (void)state;
    hf_try_run("enqueue t @", 0);
    hf_try_run("queue pause default @", 0);
    json_t *stats = show_queue("default");
    assert_true(json_is_true(json_object_get(stats, "paused")));
    json_decref(stats);
    hf_try_run("queue limit default @ --max-running 5 --rate 100/2s", 0);
    assert_string_equal(fixture->out, "default: max_running 5  rate 100/2s\n");
    hf_try_run("queue resume default @", 0);
    stats = show_queue("default");
    assert_true(json_is_false(json_object_get(stats, "paused")));
    assert_int_equal(json_integer_value(json_object_get(stats, "max_running")), 5);
    assert_int_equal(json_integer_value(json_object_get(stats, "rate_limit")), 100);
    assert_int_equal(json_integer_value(json_object_get(stats, "rate_per_ms")), 2000);
    json_decref(stats);
    hf_try_run("queue limit default @ --rate 0", 0);
    assert_string_equal(fixture->out, "default: max_running 5  rate no limit\n");
    stats = show_queue("default");
    assert_int_equal(json_integer_value(json_object_get(stats, "max_running")), 5);
    assert_int_equal(json_integer_value(json_object_get(stats, "rate_limit")), 0);
    json_decref(stats);
}

static void a_slip_of_the_pen_is_seen_when_a_queue_is_paused(void **state)
{
    (void)state;
    hf_try_run("enqueue t @ -q mail", 0);
    hf_try_run("queue pause mail @", 0);
    assert_string_equal(fixture->out, "mail: paused\n");
    hf_try_run("queue pause mial @", 0);
    assert_string_equal(fixture->out,
                        "mial: paused (nothing was ever put into it, and no "
                        "worker serves it)\n");
    hf_try_run("queue list @", 0);
    hf_try_has(fixture->out, "\nmial   paused ");
    hf_try_run("doctor @", 0);
}

static void check_counts_what_a_worker_would_have(void **state)
{
    (void)state;
    hf_cli_fixture_put(fixture, "none.yaml", "");
    hf_try_run("check -c none.yaml", 0);
    assert_string_equal(fixture->out,
                        "none.yaml: good (queues: 1, handlers: 0, which a worker "
                        "needs)\n");
    hf_cli_fixture_put(fixture, "two.yaml",
                       "queues: [{name: a}, {name: b}]\n"
                       "handlers: [{type: t, exec: [t]}]\n");
    hf_try_run("check -c two.yaml", 0);
    assert_string_equal(fixture->out, "two.yaml: good (queues: 2, handlers: 1)\n");
    hf_cli_fixture_put(
        fixture, "pools.yaml",
        "handlers: [{pool: [sh]}, {pool: [no-such-thing], env: [NO_VAR]}]\n"
        "schedules: [{id: s, every: 1h, type: t}]\n");
    hf_try_run("check -c pools.yaml", 0);
    assert_string_equal(fixture->out, "pools.yaml: good (queues: 1, handlers: 2, pools "
                                      "among them: 2, schedules: 1)\n");
    hf_try_has(fixture->err, "pool 'no-such-thing': there is no program");
    hf_try_has(fixture->err, "pool 'no-such-thing': the environment of this command has "
                             "no 'NO_VAR' (env)");
    assert_null(strstr(fixture->err, "no handler of this file"));
    hf_try_run("check -c pools.yaml --json", 0);
    hf_try_has(fixture->out, "\"handlers\":2,\"pools\":2,");
}

/* ---- bulk ---- */

static void write_lines(const char *name, int n, const char *last)
{
    char path[HF_CLI_PATH];
    hf_cli_fixture_path(fixture, name, path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int i = 0; i < n; i++)
        fprintf(file, "{\"type\":\"t\",\"payload\":{\"n\":%d}}\n", i);
    fputs(last, file);
    fclose(file);
}

static void a_bulk_file_prints_an_id_for_each_line(void **state)
{
    (void)state;
    write_lines("f", 3, "{\"type\":\"t\",\"queue\":\"other\",\"id\":\"mine\"}\n");
    hf_try_run("enqueue @ --bulk f", 0);
    assert_int_equal(count_lines(fixture->out), 4);
    hf_try_has(fixture->out, "mine\n");
    assert_int_equal(strncmp(fixture->err, "run ", 4), 0);
    assert_int_equal(hf_fixture_number(&fixture->redis, "ZCARD hf:{default}:schedule"),
                     3);
    assert_int_equal(hf_fixture_number(&fixture->redis, "ZCARD hf:{other}:schedule"), 1);
}

static void quiet_prints_the_counts_of_a_bulk_file(void **state)
{
    (void)state;
    hf_cli_fixture_put(fixture, "ids.jsonl",
                       "{\"type\":\"t\",\"id\":\"a\"}\n{\"type\":\"t\",\"id\":\"b\"}\n");
    hf_try_run("enqueue @ --bulk ids.jsonl --quiet", 0);
    assert_string_equal(fixture->out, "2 jobs were accepted\n");
    hf_cli_fixture_put(fixture, "ids.jsonl",
                       "{\"type\":\"t\",\"id\":\"a\"}\n{\"type\":\"t\",\"id\":\"c\"}\n");
    hf_try_run("enqueue @ --bulk ids.jsonl --quiet", 0);
    assert_string_equal(fixture->out, "1 job was accepted, 1 existed already\n");
    hf_try_run("enqueue @ --bulk ids.jsonl --quiet --json", 0);
    assert_string_equal(fixture->out, "{\"accepted\":0,\"existed\":2}\n");
    hf_try_run("enqueue t @ --quiet", 64);
    hf_try_has(fixture->err, "--quiet needs --bulk");
}

static void a_bad_line_keeps_its_block_out_and_the_run_can_continue(void **state)
{
    (void)state;
    char run_id[256], line[512], before[HF_CLI_TEXT];
    write_lines("f", LINES_MAX, "{\"type\":7}\n");
    hf_try_run("enqueue @ --bulk f", 65);
    assert_int_equal(hf_fixture_number(&fixture->redis, "ZCARD hf:{default}:schedule"),
                     10000);
    hf_try_has(fixture->err, "holdfast: f:10002: expected 1 to 128 characters");
    hf_try_has(fixture->err, "(10000 jobs were accepted; go on with --run ");
    snprintf(run_id, sizeof run_id, "%s", first_line(fixture->err) + 4);
    snprintf(before, sizeof before, "%.1000s", fixture->out);
    hf_fixture_command(
        &fixture->redis,
        "DEL hf:{default}:schedule hf:{default}:jobs"); /* as if they ran */
    write_lines("f", LINES_MAX, "");
    snprintf(line, sizeof line, "enqueue @ --bulk f --run %s", run_id);
    hf_try_run(line, 0);
    assert_int_equal(strncmp(fixture->out, before, 1000), 0); /* the same ids */
    assert_int_equal(hf_fixture_number(&fixture->redis, "ZCARD hf:{default}:schedule"),
                     1);
}

static void atomic_refuses_a_second_block_before_anything_is_sent(void **state)
{
    (void)state;
    write_lines("f", LINES_MAX, "");
    hf_try_run("enqueue @ --bulk f --atomic", 65);
    hf_try_has(fixture->err, "f:10001: expected at most one block with --atomic");
    assert_string_equal(fixture->out, "");
    assert_int_equal(hf_fixture_number(&fixture->redis, "EXISTS hf:{default}:schedule"),
                     0);
    write_lines("f", LINES_MAX - 1, "");
    hf_try_run("enqueue @ --bulk f --atomic", 0);
    assert_int_equal(hf_fixture_number(&fixture->redis, "ZCARD hf:{default}:schedule"),
                     10000);
}

/* ---- the rest ---- */

static void doctor_is_quiet_about_a_sound_queue_and_names_what_is_wrong(void **state)
{
    (void)state;
    hf_try_run("enqueue t @ --id sound --in 1h", 0);
    hf_try_run("doctor @", 0);
    hf_fixture_command(&fixture->redis, "HDEL hf:{default}:jobs sound");
    hf_try_run("doctor @", 1);
    hf_try_has(fixture->out, "default: I1: sound: ");
    hf_try_run("doctor @ --json", 1);
    hf_try_has(fixture->out, "\"invariant\":1,\"id\":\"sound\"");
}

static void the_script_is_printed_as_redis_runs_it(void **state)
{
    (void)state;
    hf_try_run("script enqueue --sha1", 0);
    char sha1[256];
    snprintf(sha1, sizeof sha1, "%s", first_line(fixture->out));
    hf_try_run("script enqueue", 0);
    assert_string_equal(
        hf_fixture_command(&fixture->redis, "SCRIPT LOAD %s", fixture->out), sha1);
    hf_try_run("script register --sha1", 0);
    snprintf(sha1, sizeof sha1, "%s", first_line(fixture->out));
    hf_try_run("script register", 0);
    assert_string_equal(
        hf_fixture_command(&fixture->redis, "SCRIPT LOAD %s", fixture->out), sha1);
    hf_try_run("script enqueue --json", 0);
    json_t *script = json_loads(fixture->out, 0, NULL);
    assert_non_null(script);
    assert_string_equal(json_string_value(json_object_get(script, "name")), "enqueue");
    assert_int_equal(json_array_size(json_object_get(script, "keys")), 1);
    assert_true(json_array_size(json_object_get(script, "args")) > 1);
    json_decref(script);
}

static void help_goes_to_standard_output_and_knows_every_command(void **state)
{
    (void)state;
    hf_try_run("", 0);
    assert_string_equal(fixture->err, "");
    hf_try_has(fixture->out, "holdfast help lists all commands");
    hf_try_run("--help", 0);
    hf_try_has(fixture->out, "enqueue TYPE [PAYLOAD|-]");
    hf_try_run("help queue", 0);
    hf_try_has(fixture->out, "queue resume Q");
    hf_try_run("help job show", 0);
    hf_try_has(fixture->out, "usage: holdfast job show ID");
    hf_try_run("enqueue --help", 0);
    hf_try_has(fixture->out, "--max-attempts N");
    hf_try_run("version", 0);
    char version[128];
    (void)snprintf(version, sizeof version, "holdfast %s (OpenSSL %s)\n",
                   HOLDFAST_VERSION, hf_tls_version());
    assert_string_equal(fixture->out, version);
    assert_string_equal(fixture->err, "");
    json_t *versions = hf_try_object("version --json", 0);
    assert_string_equal(hf_try_text(versions, "version"), HOLDFAST_VERSION);
    assert_string_equal(hf_try_text(versions, "openssl"), hf_tls_version());
    json_decref(versions);
}

static void the_manual_page_is_that_of_the_table(void **state)
{
    (void)state;
    char page[HF_CLI_TEXT];
    hf_try_run("help --man", 0);
    hf_read_file(HF_TEST_SOURCE "/man/holdfast.1", page, sizeof page);
    if (strcmp(page, fixture->out) != 0)
        fail_msg("man/holdfast.1 is not that of the table: run ./dev generate");
    hf_try_run("check --man", 0);
    hf_read_file(HF_TEST_SOURCE "/man/holdfast.yaml.5", page, sizeof page);
    if (strcmp(page, fixture->out) != 0)
        fail_msg("man/holdfast.yaml.5 is not that of the table: run ./dev generate");
}

/* The lines between .EX and .EE, without what hides them from roff. */
static void the_example_of_the_manual_page_is_a_good_file(void **state)
{
    (void)state;
    char yaml[HF_CLI_TEXT] = "";
    size_t n = 0;
    hf_try_run("check --man", 0);
    const char *at = strstr(fixture->out, "\n.EX\n"),
               *end = strstr(fixture->out, "\n.EE\n");
    if (at == NULL || end == NULL) {
        fail_msg("the page has no example");
        return; /* an analyzer does not know that fail_msg() is left */
    }
    for (at += strlen("\n.EX\n"); at <= end; at++) {
        bool quote = strncmp(at, "\\(aq", 4) == 0;
        if (*at != '\\' || quote)
            yaml[n++] = quote ? '\'' : *at;
        at += quote ? 3 : 0;
    }
    hf_cli_fixture_put(fixture, "shown.yaml", yaml);
    hf_try_run("check -c shown.yaml", 0);
}

#define TEST(name) cmocka_unit_test_setup(name, hf_try_clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_bad_input_ends_with_its_code_and_one_clear_line),
        TEST(with_json_a_fault_is_an_object),
        TEST(a_bad_url_of_the_environment_is_usage_too),
        TEST(a_wrong_password_is_told_apart_from_a_redis_that_is_away),
        TEST(a_full_redis_says_try_later_and_nothing_is_half_done),
        TEST(a_redis_without_its_replicas_is_not_said_to_have_a_bad_disk),
        TEST(a_password_does_not_stay_in_the_list_of_processes),
        TEST(an_enqueued_job_can_be_looked_at),
        TEST(an_id_that_exists_is_no_failure),
        TEST(a_payload_comes_from_standard_input),
        TEST(check_warns_of_what_a_worker_could_not_do),
        TEST(a_password_file_for_all_users_is_warned_about),
        TEST(lists_are_paged),
        TEST(a_list_goes_on_where_a_job_has_gone),
        TEST(lists_show_all_queues),
        TEST(a_queue_is_shown_with_all_its_numbers),
        TEST(an_unknown_queue_is_told_in_one_line),
        TEST(a_queue_is_paused_resumed_and_limited),
        TEST(a_slip_of_the_pen_is_seen_when_a_queue_is_paused),
        TEST(check_counts_what_a_worker_would_have),
        TEST(a_bulk_file_prints_an_id_for_each_line),
        TEST(quiet_prints_the_counts_of_a_bulk_file),
        TEST(a_bad_line_keeps_its_block_out_and_the_run_can_continue),
        TEST(atomic_refuses_a_second_block_before_anything_is_sent),
        TEST(doctor_is_quiet_about_a_sound_queue_and_names_what_is_wrong),
        TEST(the_script_is_printed_as_redis_runs_it),
        TEST(help_goes_to_standard_output_and_knows_every_command),
        TEST(the_manual_page_is_that_of_the_table),
        TEST(the_example_of_the_manual_page_is_a_good_file),
    };
    hf_try_up(HF_TEST_COMMAND, NULL);
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    hf_try_down();
    return failures;
}
