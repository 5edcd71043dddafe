/* test_lock_command.c - `holdfast lock` when something fails: the command under it never
 * runs beside another one's, and ends with 75 when the lock is lost.
 *
 * The command is this program again: it notes the time (CLOCK_BOOTTIME) each millisecond,
 * and ignores TERM if an argument says so. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "holdfast/lock.h"
#include "tests/support/cli_try.h"
#include "tests/support/eventually.h"

enum { LONG_MS = 30000 };

static char self[HF_CLI_PATH];
static hf_proc first, second;

/* ---- the command ---- */

static volatile sig_atomic_t asked;

static void on_term(int number)
{
    (void)number;
    asked = 1;
}

static int beat(const char *file, bool deaf)
{
    struct sigaction action = {.sa_handler = deaf ? SIG_IGN : on_term};
    const struct timespec pause = {.tv_nsec = HF_MS_NS};
    int fd = open(file, O_WRONLY | O_CREAT | O_APPEND, 0600);
    (void)sigaction(SIGTERM, &action, NULL);
    for (uint64_t now_ns; !asked; (void)nanosleep(&pause, NULL)) {
        now_ns = hf_boot_ns();
        if (write(fd, &now_ns, sizeof now_ns) != (ssize_t)sizeof now_ns)
            return 1;
    }
    return 0;
}

/* ---- the test ---- */

static void remove_marks(void)
{
    static const char *const names[] = {"one", "two", "ready", "lost", "go", "asked"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        hf_cli_fixture_remove(&hf_try_fixture, names[i]);
}

static int begin(void **state)
{
    remove_marks();
    return hf_try_clean(state);
}

static int end(void **state)
{
    (void)state;
    hf_fixture_signal(&hf_try_fixture.redis, SIGCONT);
    hf_proc_kill(&first);
    hf_proc_kill(&second);
    return 0;
}

static void start(hf_proc *proc, const char *options, const char *command,
                  const char *log)
{
    char line[2 * HF_CLI_PATH];
    (void)snprintf(line, sizeof line, "lock @ %s a %s", options, command);
    hf_cli_fixture_begin(&hf_try_fixture, proc, line, log);
}

static void start_beats(hf_proc *proc, const char *file, const char *options, bool deaf)
{
    char command[HF_CLI_PATH + 64];
    (void)snprintf(command, sizeof command, "%s beat %s%s", self, file,
                   deaf ? " deaf" : "");
    start(proc, options, command, file[0] == 'o' ? "log1" : "log2");
}

static off_t size_of(const char *name)
{
    char path[HF_CLI_PATH];
    struct stat st;
    hf_cli_fixture_path(&hf_try_fixture, name, path);
    return stat(path, &st) == 0 ? st.st_size : 0;
}

/* The first note of a file, or the last. */
static uint64_t note_of(const char *name, bool last)
{
    char path[HF_CLI_PATH];
    uint64_t at_ns = 0;
    hf_cli_fixture_path(&hf_try_fixture, name, path);
    int fd = open(path, O_RDONLY);
    off_t at = last ? size_of(name) / 8 * 8 - 8 : 0;
    assert_true(fd >= 0 && pread(fd, &at_ns, sizeof at_ns, at) == 8);
    close(fd);
    return at_ns;
}

/* The second began after the first one's last breath. */
static void did_not_overlap(void)
{
    EVENTUALLY(LONG_MS, size_of("two") >= 50 * 8);
    if (note_of("one", true) >= note_of("two", false))
        fail_msg("the first ran for %llu us beside the second",
                 (unsigned long long)(note_of("one", true) - note_of("two", false)) /
                     1000);
}

static void ended(hf_proc *proc, int code)
{
    assert_true(hf_proc_wait(proc, LONG_MS));
    assert_int_equal(proc->status, code);
}

static void logged(const char *log, const char *part)
{
    hf_try_has(hf_cli_fixture_get(&hf_try_fixture, log), part);
}

static void begin_two(const char *options)
{
    start_beats(&first, "one", options, true);
    EVENTUALLY(LONG_MS, size_of("one") > 0);
    start_beats(&second, "two", "--ttl 3s", false);
    EVENTUALLY(LONG_MS,
               hf_fixture_number(&hf_try_fixture.redis, "ZCARD hf:lock:{a}:q:a") >= 1);
}

static void one_that_is_killed_leaves_nothing_running(void **state)
{
    (void)state;
    begin_two("--ttl 3s");
    hf_proc_signal(&first, SIGKILL);
    did_not_overlap();
    hf_proc_signal(&second, SIGTERM);
    ended(&second, 0);
}

/* Its program is in a session of its own. */
static void what_left_its_group_ends_with_a_killed_holder(void **state)
{
    char command[HF_CLI_PATH + 64];
    (void)state;
    (void)snprintf(command, sizeof command, "setsid -w %s beat one deaf", self);
    start(&first, "--ttl 3s", command, "log1");
    EVENTUALLY(LONG_MS, size_of("one") > 0);
    start_beats(&second, "two", "--ttl 3s", false);
    EVENTUALLY(LONG_MS,
               hf_fixture_number(&hf_try_fixture.redis, "ZCARD hf:lock:{a}:q:a") >= 1);
    hf_proc_signal(&first, SIGKILL);
    did_not_overlap();
    hf_proc_signal(&second, SIGTERM);
    ended(&second, 0);
}

static void what_left_its_group_ends_with_a_lost_lock(void **state)
{
    char command[HF_CLI_PATH + 64];
    (void)state;
    (void)snprintf(command, sizeof command, "setsid -w %s beat one deaf", self);
    start(&first, "--ttl 3s --grace 300ms", command, "log1");
    EVENTUALLY(LONG_MS, size_of("one") > 0);
    assert_true(hf_fixture_number(&hf_try_fixture.redis,
                                  "DEL hf:lock:{a}:e:a "
                                  "hf:lock:{a}:q:a hf:lock:{a}:x:a") > 0);
    ended(&first, 75);
    off_t size = size_of("one");
    ALWAYS(300, size_of("one") == size);
}

/* The child of a process whose command line has that word in it; 0: there is none. */
static pid_t child_with(pid_t parent, const char *word)
{
    char path[64], text[512];
    pid_t found = 0;
    DIR *all = opendir("/proc");
    assert_non_null(all);
    for (const struct dirent *e; found == 0 && (e = readdir(all)) != NULL;) {
        pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);
        long its_parent = 0;
        (void)snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
        const char *end = pid > 0 && hf_read_file(path, text, sizeof text)[0] != '\0'
                              ? strrchr(text, ')')
                              : NULL;
        if (end == NULL || sscanf(end + 1, " %*c %ld", &its_parent) != 1 ||
            its_parent != parent)
            continue;
        (void)snprintf(path, sizeof path, "/proc/%ld/cmdline", (long)pid);
        FILE *file = fopen(path, "r");
        size_t n = file == NULL ? 0 : fread(text, 1, sizeof text - 1, file);
        if (file != NULL)
            (void)fclose(file);
        text[n] = '\0';
        for (size_t at = 0; at < n; at += strlen(text + at) + 1)
            if (strcmp(text + at, word) == 0)
                found = pid;
    }
    (void)closedir(all);
    return found;
}

/* The minder cannot end it: it is stopped before, and killed with its holder. */
static void a_command_ends_with_its_holder_and_the_minder(void **state)
{
    (void)state;
    start_beats(&first, "one", "--ttl 60s", true);
    EVENTUALLY(LONG_MS, size_of("one") > 0);
    pid_t minder = child_with(first.pid, "minder");
    pid_t command = child_with(first.pid, "beat");
    assert_true(minder > 0 && command > 0);
    assert_int_equal(kill(minder, SIGSTOP), 0);
    hf_proc_signal(&first, SIGKILL);
    const uint64_t until_ms = hf_test_fair_ms() + LONG_MS / 2;
    while (hf_pid_alive(command) && hf_test_fair_ms() < until_ms)
        hf_test_pause_ms(2);
    bool outlived = hf_pid_alive(command);
    (void)kill(minder, SIGKILL);
    if (outlived)
        (void)kill(command, SIGKILL);
    assert_false(outlived);
}

static void one_that_is_stopped_leaves_nothing_running(void **state)
{
    (void)state;
    begin_two("--ttl 3s --grace 1s");
    hf_proc_signal(&first, SIGSTOP);
    did_not_overlap();
    hf_proc_signal(&first, SIGCONT);
    ended(&first, 75);
    logged("log1", "lock 'a' is lost");
    hf_proc_signal(&second, SIGTERM);
    ended(&second, 0);
}

static void a_long_command_is_not_disturbed(void **state)
{
    (void)state;
    start_beats(&first, "one", "--ttl 5s --grace 300ms", false);
    EVENTUALLY(LONG_MS, size_of("one") > 0);
    ALWAYS(6000, !hf_proc_wait(&first, 0));
    hf_proc_signal(&first, SIGTERM);
    ended(&first, 0);
    assert_true(note_of("one", true) - note_of("one", false) > 5500 * HF_MS_NS);
}

static void without_redis_the_command_is_ended_in_time(void **state)
{
    (void)state;
    begin_two("--ttl 3s --grace 500ms");
    hf_fixture_signal(&hf_try_fixture.redis, SIGSTOP);
    ended(&first, 75);
    logged("log1", "no renewal was answered in time");
    hf_fixture_signal(&hf_try_fixture.redis, SIGCONT);
    did_not_overlap();
    hf_proc_signal(&second, SIGTERM);
    ended(&second, 0);
}

static void a_command_that_heeds_term_may_tidy_up(void **state)
{
    (void)state;
    start_beats(&first, "one", "--ttl 6s --grace 3s", false);
    EVENTUALLY(LONG_MS, size_of("one") > 0);
    hf_fixture_signal(&hf_try_fixture.redis, SIGSTOP);
    ended(&first, 75);
    logged("log1", "the command was asked to end");
}

static bool is_there(const char *name)
{
    return hf_cli_fixture_has(&hf_try_fixture, name);
}

static void start_script(const char *options, const char *script)
{
    char command[HF_CLI_PATH + 64], path[HF_CLI_PATH];
    hf_cli_fixture_put(&hf_try_fixture, "script", script);
    hf_cli_fixture_path(&hf_try_fixture, "script", path);
    (void)snprintf(command, sizeof command, "sh %s", path);
    start(&first, options, command, "log1");
    EVENTUALLY(LONG_MS, is_there("ready"));
}

static void what_a_failed_command_has_left_ends_before_its_lock_is_free(void **state)
{
    char script[HF_CLI_PATH + 128];
    (void)state;
    (void)snprintf(
        script, sizeof script,
        ": >ready; setsid %s beat one deaf & while [ ! -s one ]; do sleep 0.01; done; "
        "exit 3",
        self);
    start_script("--ttl 60s", script);
    ended(&first, 3);
    off_t size = size_of("one");
    assert_true(size > 0);
    ALWAYS(300, size_of("one") == size);
}

/* The lock is renewed after all, before its end: the command has obeyed all the same, and
 * its 0 does not say that it did its work. */
static void a_command_that_was_asked_to_end_is_no_success(void **state)
{
    (void)state;
    start_script("--ttl 8s --grace 4s",
                 "trap ': >asked' TERM; : >ready; "
                 "while [ ! -e asked ] || [ ! -e go ]; do sleep 0.02; done; exit 0");
    hf_fixture_signal(&hf_try_fixture.redis, SIGSTOP);
    EVENTUALLY(LONG_MS, is_there("asked"));
    hf_fixture_signal(&hf_try_fixture.redis, SIGCONT);
    ALWAYS(5000, !hf_proc_wait(&first, 0)); /* past the old deadline: it was renewed */
    hf_cli_fixture_put(&hf_try_fixture, "go", "");
    ended(&first, 75);
    logged("log1", "the command was asked to end");
}

/* The command itself ended well, and what it left behind was asked. */
static void what_a_command_left_and_was_asked_to_end_is_no_success(void **state)
{
    (void)state;
    start_script("--ttl 6s --grace 3s",
                 "(trap 'exit 0' TERM; : >ready; while :; do sleep 0.02; done) & exit 0");
    hf_fixture_signal(&hf_try_fixture.redis, SIGSTOP);
    ended(&first, 75);
    logged("log1", "the command was asked to end");
}

/* Its signals are refused, as those to a command that has become another user's are. */
static void a_command_that_cannot_be_ended_is_told(void **state)
{
    static const char trials[] = HF_TEST_BUILD "/tests/helpers/hf-lock-trials";
    char log[HF_CLI_PATH];
    const char *const args[] = {
        trials,  "refused", HF_TEST_COMMAND, "lock", "--redis", hf_try_fixture.redis.url,
        "--ttl", "3s",      "--grace",       "0s",   "a",       self,
        "beat",  "one",     "deaf",          NULL};
    (void)state;
    hf_cli_fixture_path(&hf_try_fixture, "log1", log);
    hf_proc_start(&first,
                  &(hf_proc_options){
                      .args = args, .out = log, .err = log, .dir = hf_try_fixture.dir});
    EVENTUALLY(LONG_MS, size_of("one") > 0);
    pid_t command = child_with(first.pid, "beat");
    assert_true(command > 0);
    hf_try_run("locks release @ a --force --yes", 0);
    EVENTUALLY(LONG_MS, strstr(hf_cli_fixture_get(&hf_try_fixture, "log1"),
                               "the command cannot be ended, and runs on: Operation not "
                               "permitted") != NULL);
    bool runs_on = hf_pid_alive(command);
    (void)kill(command, SIGKILL);
    assert_true(runs_on);
    ended(&first, 75);
}

static void a_lock_that_is_taken_away_ends_the_command(void **state)
{
    (void)state;
    start_beats(&first, "one", "--ttl 12s --grace 100ms", true);
    EVENTUALLY(LONG_MS, size_of("one") > 0);
    hf_try_run("locks release @ a --force --yes", 0);
    ended(&first, 75);
    logged("log1", "lock 'a' is lost: it was taken away");
}

static void a_lock_whose_keys_are_deleted_ends_the_command(void **state)
{
    (void)state;
    start_beats(&first, "one", "--ttl 12s --grace 100ms", true);
    EVENTUALLY(LONG_MS, size_of("one") > 0);
    assert_true(hf_fixture_number(&hf_try_fixture.redis,
                                  "DEL hf:lock:{a}:e:a "
                                  "hf:lock:{a}:q:a hf:lock:{a}:x:a") > 0);
    ended(&first, 75);
    logged("log1", "lock 'a' is lost: its lease is not in Redis any more");
}

static void one_that_is_held_for_too_long_is_lost(void **state)
{
    (void)state;
    start_beats(&first, "one", "--ttl 60s --grace 100ms --max-hold 2s", true);
    ended(&first, 75);
    logged("log1", "lock 'a' is lost: it was held for the time of --max-hold");
    hf_try_run("lock @ -n a true", 0);
}

static void the_descriptor_tells_of_a_loss(void **state)
{
    (void)state;
    start_script("--ttl 20s --grace 2s",
                 "trap '' TERM; : >ready; cat <&$HOLDFAST_LOCK_FD; : >lost; sleep 1000");
    hf_try_run("locks release @ a --force --yes", 0);
    ended(&first, 75);
    assert_true(is_there("lost"));
}

static void one_that_is_asked_back_says_so_and_continues(void **state)
{
    (void)state;
    start_beats(&first, "one", "--ttl 12s", false);
    EVENTUALLY(LONG_MS, size_of("one") > 0);
    hf_try_run("locks revoke @ a", 0);
    EVENTUALLY(LONG_MS, strstr(hf_cli_fixture_get(&hf_try_fixture, "log1"),
                               "lock 'a' is asked back") != NULL);
    hf_proc_signal(&first, SIGTERM);
    ended(&first, 0);
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "beat") == 0)
        return beat(argv[2], argc > 3);
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
        TEST(one_that_is_killed_leaves_nothing_running),
        TEST(what_left_its_group_ends_with_a_killed_holder),
        TEST(what_left_its_group_ends_with_a_lost_lock),
        TEST(a_command_ends_with_its_holder_and_the_minder),
        TEST(one_that_is_stopped_leaves_nothing_running),
        TEST(what_a_failed_command_has_left_ends_before_its_lock_is_free),
        TEST(a_long_command_is_not_disturbed),
        TEST(without_redis_the_command_is_ended_in_time),
        TEST(a_command_that_heeds_term_may_tidy_up),
        TEST(a_command_that_was_asked_to_end_is_no_success),
        TEST(what_a_command_left_and_was_asked_to_end_is_no_success),
        TEST(a_command_that_cannot_be_ended_is_told),
        TEST(a_lock_that_is_taken_away_ends_the_command),
        TEST(a_lock_whose_keys_are_deleted_ends_the_command),
        TEST(one_that_is_held_for_too_long_is_lost),
        TEST(the_descriptor_tells_of_a_loss),
        TEST(one_that_is_asked_back_says_so_and_continues),
    };
    if (readlink("/proc/self/exe", self, sizeof self - 1) <= 0)
        return 1;
    hf_try_up(HF_TEST_COMMAND, NULL);
    int failures = cmocka_run_group_tests_name("lock_command", tests, NULL, NULL);
    hf_try_down();
    return failures;
}
