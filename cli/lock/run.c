/* run.c - the program that runs under a lock: its signals, its terminal, its end.
 *
 *   fork -> guard (the minder knows its group) -> go on -> ... -> the leader has ended
 *     -> the rest of its group has ended -> not guarded any more -> reaped
 *
 * The lock is given back afterwards. The minder asks the group to end and kills it; it is
 * killed here as well, for a minder that is stopped. */
#include "cli/lock/run.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli/lock/child.h"
#include "cli/lock/env.h"
#include "cli/lock/leftovers.h"
#include "cli/out.h"

enum {
    REST_MIN_MS = 20, /* between two looks at what is left of the group */
    REST_MAX_MS = 1000,
    KILLED_MS = 2000, /* from KILL to the end */
    FAMILY_MS = 5000, /* the same, of all that a command has started */
    NOTE_SIZE = 1024,
    EXIT_SIGNAL = 128,
    EXIT_NOT_FOUND = 127,
    EXIT_NOT_EXECUTED = 126
};

typedef struct program {
    hf_lock_run *run;
    pid_t pid; /* and its group */
    bool ended, by_signal, had_terminal;
    int status;
    bool refused;     /* the terminal, which it cannot have */
    bool ending;      /* the lock is lost: the minder has asked it to end */
    uint64_t kill_ns; /* 0: it need not be killed; after that it should be gone */
    bool killed;      /* it was, */
    bool said_alive;  /* and runs on */
    int rest_ms;      /* to the next look; 0: the leader lives */
} program;

void hf_lock_run_wait(const hf_lock_run *run, int ms)
{
    uint64_t count;
    struct pollfd fds[] = {{.fd = run->signals.fd, .events = POLLIN},
                           {.fd = run->changed_fd, .events = POLLIN}};
    (void)poll(fds, HF_COUNT(fds), ms);
    (void)!read(run->changed_fd, &count, sizeof count);
}

void hf_lock_run_note(const hf_lock_run *run, const char *format, ...)
{
    char text[NOTE_SIZE], line[NOTE_SIZE + 16];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (run->cli->json) {
        hf_cli_print_json(run->cli, json_pack("{s:o}", "note", hf_out_text(text)));
        return;
    }
    (void)snprintf(line, sizeof line, "holdfast: %s\n", text);
    hf_cli_print(run->cli, line);
}

/* A process that runs as another user cannot be signalled. kill() reports this only if it
 * reached no process of the group. */
static void say_it_runs_on(program *p, const char *why)
{
    if (!p->said_alive)
        hf_lock_run_note(
            p->run, "the command cannot be ended, and runs on: %s (process group %ld)",
            why, (long)p->pid);
    p->said_alive = true;
}

static void send_signal(const program *p, int number)
{
    (void)kill(-p->pid, number);
}

/* ---- stopping and going on ---- */

static void go_on(program *p, bool foreground)
{
    hf_terminal_of *t = &p->run->terminal;
    if (foreground && !p->ended && hf_terminal_is_ours(t))
        hf_terminal_give(t, p->pid);
    send_signal(p, SIGCONT);
}

/* No renewal is sent while we are stopped: tell the user how long the lock lasts. */
static void say_stopping(const hf_lock_run *run)
{
    char text[HF_DURATION_SIZE];
    int64_t left_ms = hf_lock_remaining_ms(run->lock) - run->grace_ms;
    left_ms = left_ms > 0 ? left_ms : 0;
    hf_format_duration(left_ms > 1000 ? left_ms / 1000 * 1000 : left_ms, text);
    hf_lock_run_note(run,
                     "stopped: lock '%s' is not renewed meanwhile, and the command is "
                     "ended in %s unless it goes on before",
                     run->names, text);
}

/* No shell gives it the terminal, and without us it would get an error instead of being
 * stopped. The kernel's way with stopped processes that no shell looks after is HUP and
 * CONT; one that wants the terminal all the same stays stopped until it is killed. */
static void refuse_terminal(program *p)
{
    if (p->refused) {
        p->kill_ns = hf_boot_ns() + p->run->grace_ms * HF_MS_NS;
        return;
    }
    p->refused = true;
    hf_lock_run_note(p->run, "the command wants the terminal, which no shell can give it "
                             "here: it is asked to end (HUP)");
    send_signal(p, SIGHUP);
    send_signal(p, SIGCONT);
}

/* Stops us as well, and goes on with the program when we do. */
static void stop_too(program *p, int number, bool wants)
{
    hf_terminal_of *t = &p->run->terminal;
    bool had = hf_terminal_is_of(t, p->pid);
    hf_terminal_take_back(t, p->pid);
    say_stopping(p->run);
    if (hf_signals_stop(&p->run->signals, number)) {
        go_on(p, had || wants);
    } else if (wants) {
        refuse_terminal(p);
    } else {
        hf_lock_run_note(p->run, "it goes on: no shell could continue it later");
        go_on(p, had);
    }
}

/* The program was stopped. If it only wants the terminal and we have it, it gets the
 * terminal. Otherwise we stop as well, for the shell to see, and continue together. */
static void on_stopped(program *p, int number)
{
    hf_terminal_of *t = &p->run->terminal;
    bool wants = number == SIGTTIN || number == SIGTTOU;
    if (p->ending) {
        return; /* it was told to go on as well, and is killed soon */
    } else if (wants && hf_terminal_is_ours(t)) {
        go_on(p, true);
    } else if (number == SIGSTOP && !hf_terminal_is_of(t, p->pid)) {
        return; /* another process stopped it, and will let it go on */
    } else {
        stop_too(p, wants ? number : SIGTSTP, wants);
    }
}

/* ---- its end ---- */

static void on_ended(program *p, const siginfo_t *info)
{
    p->ended = true;
    p->by_signal = info->si_code != CLD_EXITED;
    p->status = info->si_status;
    p->had_terminal = hf_terminal_is_of(&p->run->terminal, p->pid);
    p->rest_ms = REST_MIN_MS;
    hf_terminal_take_back(&p->run->terminal, p->pid);
}

static void on_child(program *p)
{
    siginfo_t info = {0};
    if (p->ended)
        return;
    if (waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        info.si_pid == p->pid) {
        on_ended(p, &info);
        return;
    }
    info = (siginfo_t){0};
    if (waitid(P_PID, (id_t)p->pid, &info, WSTOPPED | WNOHANG) == 0 &&
        info.si_pid == p->pid)
        on_stopped(p, info.si_status);
}

static const char *why_lost(const hf_lock *lock)
{
    switch (hf_lock_why(lock)) {
    case HF_LOCK_FORCED:
        return "it was taken away";
    case HF_LOCK_REFUSED:
        return "its lease is not in Redis any more";
    case HF_LOCK_MAX_HOLD:
        return "it was held for the time of --max-hold";
    default:
        return "no renewal was answered in time";
    }
}

static void say_lost(const hf_lock_run *run)
{
    (void)hf_cli_say(run->cli, HF_EXIT_LATER, "", "lock '%s' is lost: %s", run->names,
                     why_lost(run->lock));
}

static void on_lost(program *p)
{
    uint32_t grace_ms = p->run->grace_ms;
    say_lost(p->run);
    p->ending = p->run->said_lost = true;
    p->kill_ns = hf_boot_ns() + grace_ms * HF_MS_NS;
    p->killed = false;
    if (kill(-p->pid, 0) != 0 && errno == EPERM)
        say_it_runs_on(p, strerror(EPERM));
    send_signal(p, SIGCONT); /* or it could not end */
}

/* ---- while it runs ---- */

static void on_signal(program *p, int number)
{
    if (number == SIGCHLD)
        on_child(p);
    else
        send_signal(p, number);
}

static void say_changes(program *p)
{
    hf_lock_run *run = p->run;
    if (atomic_exchange(&run->revoked, false))
        hf_lock_run_note(run, "lock '%s' is asked back", run->names);
    if (atomic_exchange(&run->suspect, false) && run->verbose)
        hf_lock_run_note(run, "lock '%s': a renewal failed; %lld ms are left", run->names,
                         (long long)hf_lock_remaining_ms(run->lock));
    if (!p->ending && (atomic_load(&run->lost) || !hf_lock_held(run->lock)))
        on_lost(p);
}

static int wait_ms(const program *p)
{
    uint64_t now_ns = hf_boot_ns();
    int ms = p->rest_ms == 0 ? -1 : p->rest_ms;
    if (p->kill_ns == 0)
        return ms;
    uint64_t left_ms = p->kill_ns <= now_ns ? 0 : (p->kill_ns - now_ns) / HF_MS_NS + 1;
    return ms < 0 || left_ms < (uint64_t)ms ? (int)left_ms : ms;
}

static void kill_in_time(program *p)
{
    if (p->kill_ns == 0 || hf_boot_ns() < p->kill_ns)
        return;
    if (p->killed) {
        say_it_runs_on(p, "a part of it outlives KILL");
        p->kill_ns = 0;
        return;
    }
    send_signal(p, SIGKILL);
    p->killed = true;
    p->kill_ns = hf_boot_ns() + KILLED_MS * HF_MS_NS;
}

/* Is it over? Asks less and less often: other processes of the group may stay for long.
 */
static bool is_over(program *p)
{
    if (!p->ended || hf_leftovers_is_there(p->pid)) {
        if (p->ended && p->rest_ms == REST_MIN_MS && p->run->verbose)
            hf_lock_run_note(p->run, "waiting for the command's other processes");
        p->rest_ms = p->rest_ms * 2 < REST_MAX_MS ? p->rest_ms * 2 : REST_MAX_MS;
        return false;
    }
    return true;
}

static void watch(program *p)
{
    for (;;) {
        int number;
        while ((number = hf_signals_next(&p->run->signals)) != 0)
            on_signal(p, number);
        say_changes(p);
        kill_in_time(p);
        if (is_over(p))
            return;
        hf_lock_run_wait(p->run, wait_ms(p));
    }
}

/* ---- its start ---- */

static int not_executed(const hf_lock_run *run, int error)
{
    return hf_cli_say(run->cli,
                      (hf_exit)(error == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTED), "",
                      "cannot run '%s': %s", run->argv[0], strerror(error));
}

/* Its group is guarded before it runs anything. 0, or what to end with. */
static int begin(program *p)
{
    hf_lock_run *run = p->run;
    hf_lock_child child;
    bool foreground = hf_terminal_at_once(&run->terminal);
    hf_lock_env *env = hf_lock_env_make(run->lock, run->names, run->loss_fd);
    if (env == NULL)
        return hf_cli_fail(run->cli, HF_NOMEM, "");
    bool forked =
        hf_lock_child_fork(&child, &(hf_lock_child_opts){.argv = run->argv,
                                                         .envp = hf_lock_env_vars(env),
                                                         .loss_fd = run->loss_fd,
                                                         .signals = &run->signals,
                                                         .terminal = &run->terminal,
                                                         .foreground = foreground});
    int error = errno;
    hf_lock_env_free(env);
    if (!forked)
        return hf_cli_say(run->cli, HF_EXIT_SYSTEM, "", "cannot fork: %s",
                          strerror(error));
    char detail[HF_DETAIL_SIZE] = "";
    hf_err err = hf_lock_guard(run->lock, child.pid, run->grace_ms, detail);
    if (err != HF_OK) {
        hf_lock_child_undo(&child);
        if (err != HF_LOST)
            return hf_cli_fail(run->cli, err, detail);
        say_lost(run);
        run->said_lost = true;
        return HF_EXIT_LATER;
    }
    p->pid = child.pid;
    run->terminal.given = foreground;
    error = hf_lock_child_go(&child);
    return error == 0 ? 0 : not_executed(run, error);
}

/* True: its group was asked to end, because its lock was lost or about to be. */
static bool reap(const program *p)
{
    bool asked = hf_lock_guard_asked(p->run->lock);
    /* A daemon of a command that has succeeded lives on. */
    if ((p->ending || asked || p->by_signal || p->status != 0) &&
        !hf_lock_guard_kill(p->run->lock, FAMILY_MS))
        hf_lock_run_note(p->run, "processes that the command has started do not end");
    hf_err err =
        hf_lock_guard(p->run->lock, 0, 0, NULL); /* while its number is its own */
    HF_ASSERT(err == HF_OK);
    while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    return asked;
}

hf_lock_end hf_lock_run_program(hf_lock_run *run)
{
    program p = {.run = run};
    if (!hf_leftovers_adopt())
        return (hf_lock_end){.code = hf_cli_say(run->cli, HF_EXIT_SYSTEM, "", "prctl: %s",
                                                strerror(errno))};
    int failed = begin(&p);
    if (p.pid == 0)
        return (hf_lock_end){.code = failed};
    if (failed == 0) {
        watch(&p);
    } else {
        hf_terminal_take_back(&run->terminal, p.pid);
    }
    bool asked = reap(&p);
    if (failed != 0)
        return (hf_lock_end){.code = failed};
    if (p.ending)
        return (hf_lock_end){.code = HF_EXIT_LATER};
    if (asked)
        return (hf_lock_end){
            .code = hf_cli_say(run->cli, HF_EXIT_LATER, "",
                               "lock '%s' was about to be lost, because no renewal was "
                               "answered: the command was asked to end",
                               run->names)};
    return (hf_lock_end){.code = p.by_signal ? EXIT_SIGNAL + p.status : p.status,
                         .by_signal = p.by_signal,
                         .by_terminal = p.by_signal && p.had_terminal &&
                                        (p.status == SIGINT || p.status == SIGQUIT)};
}
