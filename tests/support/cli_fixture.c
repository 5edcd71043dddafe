/* cli_fixture.c - see cli_fixture.h. */
#include "tests/support/cli_fixture.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/eventually.h"

enum { READ_MS = 2, RUN_MS = 60000, LINE_SIZE = 1024 };

/* ---- a terminal ---- */

static _Noreturn void become(const char *const *args, const char *const *env,
                             const char *dir, pid_t parent)
{
    /* What is ignored stays so in a new program: here, in the background, with nohup. */
    static const int ignored[] = {SIGPIPE, SIGINT, SIGQUIT, SIGHUP};
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        (void)signal(ignored[i], SIG_DFL);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || chdir(dir) != 0)
        _exit(127);
    for (; env != NULL && *env != NULL; env++)
        hf_env_add(*env);
    (void)execv(args[0], (char *const *)args);
    _exit(127);
}

void hf_terminal_start(hf_terminal *t, const char *const *args, const char *const *env,
                       const char *dir)
{
    const pid_t parent = getpid();
    t->len = 0;
    t->text[0] = '\0';
    t->status = -1;
    t->pid = forkpty(&t->fd, NULL, NULL, NULL);
    if (t->pid == 0)
        become(args, env, dir, parent);
    if (t->pid < 0 || fcntl(t->fd, F_SETFD, FD_CLOEXEC) != 0) {
        perror("forkpty");
        exit(1);
    }
}

/* Whatever is there, after waiting a little for it. False: the other side is closed. */
static bool take(hf_terminal *t)
{
    struct pollfd p = {.fd = t->fd, .events = POLLIN};
    while (poll(&p, 1, READ_MS) == 1) {
        size_t room = sizeof t->text - 1 - t->len;
        ssize_t n = room == 0 ? 0 : read(t->fd, t->text + t->len, room);
        if (n <= 0)
            return false; /* EIO: the last one has closed it */
        t->len += (size_t)n;
        t->text[t->len] = '\0';
    }
    return true;
}

bool hf_terminal_shows(hf_terminal *t, const char *text)
{
    (void)take(t);
    return strstr(t->text, text) != NULL;
}

void hf_terminal_type(hf_terminal *t, const char *text)
{
    size_t len = strlen(text);
    assert_int_equal(write(t->fd, text, len), len);
}

static bool reap(hf_terminal *t, int flags)
{
    int status;
    if (waitpid(t->pid, &status, flags) != t->pid)
        return false;
    t->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    t->pid = 0;
    return true;
}

int hf_terminal_end(hf_terminal *t, unsigned ms)
{
    const uint64_t until = hf_test_fair_ms() + ms;
    while (t->pid != 0 && !reap(t, WNOHANG) && hf_test_fair_ms() < until)
        if (!take(t))
            hf_test_pause_ms(READ_MS);
    bool late = t->pid != 0;
    if (late) {
        (void)kill(t->pid, SIGKILL);
        (void)reap(t, 0);
    }
    (void)take(t);
    (void)close(t->fd);
    t->fd = -1;
    return late ? -1 : t->status;
}

/* ---- the command ---- */

typedef struct words {
    char text[LINE_SIZE];
    const char *argv[HF_CLI_WORDS + 1];
} words;

void hf_cli_fixture_start(hf_cli_fixture *fixture, const char *command)
{
    unsetenv("REDIS_URL"); /* the test's own environment must not decide */
    fixture->command = command;
    hf_fixture_start(&fixture->redis, NULL);
    hf_tempdir_make(fixture->dir);
}

void hf_cli_fixture_stop(hf_cli_fixture *fixture)
{
    hf_fixture_stop(&fixture->redis);
    hf_tempdir_remove(fixture->dir);
}

void hf_cli_fixture_path(const hf_cli_fixture *fixture, const char *name,
                         char out[HF_CLI_PATH])
{
    snprintf(out, HF_CLI_PATH, "%s/%s", fixture->dir, name);
}

void hf_cli_fixture_put(const hf_cli_fixture *fixture, const char *name, const char *text)
{
    char path[HF_CLI_PATH];
    hf_cli_fixture_path(fixture, name, path);
    hf_write_file(path, text);
}

const char *hf_cli_fixture_get(hf_cli_fixture *fixture, const char *name)
{
    char path[HF_CLI_PATH];
    hf_cli_fixture_path(fixture, name, path);
    return hf_read_file(path, fixture->out, sizeof fixture->out);
}

bool hf_cli_fixture_has(const hf_cli_fixture *fixture, const char *name)
{
    char path[HF_CLI_PATH];
    hf_cli_fixture_path(fixture, name, path);
    return access(path, F_OK) == 0;
}

void hf_cli_fixture_remove(const hf_cli_fixture *fixture, const char *name)
{
    char path[HF_CLI_PATH];
    hf_cli_fixture_path(fixture, name, path);
    (void)unlink(path);
}

static void split(const hf_cli_fixture *fixture, words *w, const char *line)
{
    size_t n = 0;
    snprintf(w->text, sizeof w->text, "%s", line);
    w->argv[n++] = fixture->command;
    char *rest = w->text;
    for (char *word; (word = strtok_r(rest, " ", &rest)) != NULL;) {
        assert_true(n + 2 < HF_CLI_WORDS);
        if (strcmp(word, "@") == 0)
            w->argv[n++] = "--redis";
        w->argv[n++] = strcmp(word, "@") == 0 ? fixture->redis.url : word;
    }
    w->argv[n] = NULL;
}

int hf_cli_fixture_run(hf_cli_fixture *fixture, const char *line, const char *input,
                       const char *const *env)
{
    words w;
    char in[HF_CLI_PATH], out[HF_CLI_PATH], err[HF_CLI_PATH];
    split(fixture, &w, line);
    hf_cli_fixture_path(fixture, "in", in);
    hf_cli_fixture_path(fixture, "out", out);
    hf_cli_fixture_path(fixture, "err", err);
    hf_write_file(out, ""); /* what runs appends to them */
    hf_write_file(err, "");
    if (input != NULL)
        hf_write_file(in, input);
    const hf_proc_options options = {.args = w.argv,
                                     .env = env,
                                     .in = input != NULL ? in : NULL,
                                     .out = out,
                                     .err = err,
                                     .dir = fixture->dir};
    int code = hf_proc_run(&options, RUN_MS);
    hf_read_file(out, fixture->out, sizeof fixture->out);
    hf_read_file(err, fixture->err, sizeof fixture->err);
    return code;
}

void hf_cli_fixture_begin(hf_cli_fixture *fixture, hf_proc *proc, const char *line,
                          const char *log)
{
    words w;
    char err[HF_CLI_PATH];
    split(fixture, &w, line);
    hf_cli_fixture_path(fixture, log, err);
    hf_write_file(err, "");
    const hf_proc_options options = {.args = w.argv, .err = err, .dir = fixture->dir};
    hf_proc_start(proc, &options);
}

void hf_cli_fixture_at_terminal(hf_cli_fixture *fixture, hf_terminal *t, const char *line,
                                const char *const *env)
{
    words w;
    split(fixture, &w, line);
    hf_terminal_start(t, w.argv, env, fixture->dir);
}
