/* lock.c - `holdfast lock`: asks for a lock as flock(1) does, runs a program under it
 * (run.c), and gives it back. */
/* For pipe2(). */
#define _GNU_SOURCE /* NOLINT(bugprone-reserved-identifier) */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/mask.h"
#include "base/text.h"
#include "cli/lock/open.h"
#include "cli/lock/run.h"
#include "cli/waiting.h"

enum {
    GRACE_MS = 5000,
    EXIT_SIGNAL = 128,
    WHOLE_SECONDS = 9,
    FLUSH_MS = 2000 /* at the end, if the messages are not read */
};

typedef struct lock_options {
    hf_lock_opts opts;
    const char *names[HF_LOCK_NAMES_MAX];
    char *text; /* owned: the buffer of the names */
    uint32_t grace_ms;
    int busy; /* the exit code when another holder has it */
} lock_options;

/* ---- the options ---- */

static size_t tag_len(const char *name)
{
    return strcspn(name, "/");
}

static int read_names(const hf_cli *cli, lock_options *o)
{
    char *rest = o->text = strdup(hf_argv_operand(cli->args, 0));
    if (rest == NULL)
        return hf_cli_fail(cli, HF_NOMEM, "");
    o->opts.names = o->names;
    for (char *name; (name = strsep(&rest, ",")) != NULL;) {
        int code = hf_cli_check_lock(cli, "a lock's name", name);
        if (code != HF_EXIT_OK)
            return code;
        if (o->opts.n_names == HF_LOCK_NAMES_MAX)
            return hf_cli_say(cli, HF_EXIT_USAGE, "", "expected at most %d names",
                              HF_LOCK_NAMES_MAX);
        size_t len = tag_len(o->names[0] == NULL ? name : o->names[0]);
        if (len != tag_len(name) ||
            (o->names[0] != NULL && memcmp(o->names[0], name, len) != 0))
            return hf_cli_say(cli, HF_EXIT_USAGE, "",
                              "'%s' and '%s' cannot be taken together: that "
                              "needs names of one tag, as in shop/a,shop/b",
                              HF_FOUND(o->names[0]), HF_FOUND(name));
        o->names[o->opts.n_names++] = name;
    }
    return HF_EXIT_OK;
}

/* "K/N" */
static int read_permits(const hf_cli *cli, lock_options *o, const char *text)
{
    int64_t permits, limit;
    char first[24];
    const char *slash = strchr(text, '/');
    size_t len = slash == NULL ? 0 : (size_t)(slash - text);
    if (len > 0 && len < sizeof first) {
        memcpy(first, text, len);
        first[len] = '\0';
        if (hf_parse_int(slash + 1, 1, HF_LOCK_PERMITS_MAX, &limit) &&
            hf_parse_int(first, 1, limit, &permits)) {
            o->opts.mode = HF_LOCK_PERMITS;
            o->opts.permits = (uint32_t)permits;
            o->opts.limit = (uint32_t)limit;
            return HF_EXIT_OK;
        }
    }
    return hf_cli_say(cli, HF_EXIT_USAGE, "",
                      "--permits: expected K/N, K of N permits (1 <= K <= N <= %d), "
                      "found '%s'",
                      HF_LOCK_PERMITS_MAX, HF_FOUND(text));
}

static int read_mode(const hf_cli *cli, lock_options *o)
{
    const hf_argv *a = cli->args;
    const char *permits = hf_argv_text(a, "permits");
    bool shared = hf_argv_has(a, "shared"), spin = hf_argv_has(a, "spin");
    if (hf_argv_has(a, "exclusive") + shared + (permits != NULL) > 1)
        return hf_cli_say(cli, HF_EXIT_USAGE, "",
                          "expected one of --exclusive, --shared and --permits");
    if (spin && hf_argv_has(a, "fair"))
        return hf_cli_say(cli, HF_EXIT_USAGE, "", "expected --fair or --spin, not both");
    if (spin && (shared || permits != NULL || o->opts.n_names > 1))
        return hf_cli_say(cli, HF_EXIT_USAGE, "",
                          "--spin is for one name, and exclusive");
    o->opts.form = spin ? HF_LOCK_SPIN : HF_LOCK_LINE;
    o->opts.mode = shared ? HF_LOCK_SHARED : HF_LOCK_EXCLUSIVE;
    return permits == NULL ? HF_EXIT_OK : read_permits(cli, o, permits);
}

/* "10", "2.5", ".25": rounded up to milliseconds. */
static bool read_seconds(const char *text, int64_t *ms)
{
    size_t whole = strspn(text, "0123456789"), part = 0;
    int64_t milli = 0;
    if (text[whole] == '.')
        part = strspn(text + whole + 1, "0123456789");
    if (whole > WHOLE_SECONDS || whole + part == 0 ||
        strlen(text) != whole + part + (text[whole] == '.'))
        return false;
    for (size_t i = 0; i < 3; i++)
        milli = milli * 10 + (i < part ? text[whole + 1 + i] - '0' : 0);
    for (size_t i = 3; i < part; i++)
        if (text[whole + 1 + i] != '0') {
            milli++;
            break;
        }
    *ms = (whole > 0 ? strtoll(text, NULL, 10) : 0) * 1000 + milli;
    return true;
}

static int read_wait(const hf_cli *cli, lock_options *o)
{
    const char *seconds = hf_argv_text(cli->args, "wait");
    bool no_wait = hf_argv_has(cli->args, "nonblock");
    o->opts.wait_ms = no_wait ? 0 : -1;
    if (seconds == NULL)
        return HF_EXIT_OK;
    if (no_wait)
        return hf_cli_say(cli, HF_EXIT_USAGE, "",
                          "expected --nonblock or --wait, not both");
    if (!read_seconds(seconds, &o->opts.wait_ms))
        return hf_cli_say(cli, HF_EXIT_USAGE, "",
                          "--wait: expected seconds, as 10 or 2.5, found '%s'",
                          HF_FOUND(seconds));
    return HF_EXIT_OK;
}

/* A single try, or a limited wait, waits no longer than that for Redis; but Redis has the
 * time of one request to answer. */
static void set_reach(const hf_cli *cli, hf_lock_opts *o)
{
    int64_t request_ms = cli->config->request_timeout_ms;
    if (o->wait_ms < 0 || o->wait_ms > UINT32_MAX)
        return;
    o->reach_ms = (uint32_t)(o->wait_ms > request_ms ? o->wait_ms : request_ms);
}

static int read_times(const hf_cli *cli, lock_options *o)
{
    const hf_argv *a = cli->args;
    uint32_t lease_ms = (uint32_t)hf_argv_number(a, "ttl", HF_LOCK_LEASE_MS);
    uint32_t usual_ms = lease_ms / 4 < GRACE_MS ? lease_ms / 4 : GRACE_MS;
    uint32_t most_ms = hf_lock_grace_max(lease_ms);
    char most[HF_DURATION_SIZE], lease[HF_DURATION_SIZE];
    o->opts.lease_ms = lease_ms;
    o->opts.max_hold_ms = (uint32_t)hf_argv_number(a, "max-hold", 0);
    o->opts.wait_replicas = (uint32_t)hf_argv_number(a, "wait-replicas", 0);
    o->grace_ms =
        (uint32_t)hf_argv_number(a, "grace", usual_ms < most_ms ? usual_ms : most_ms);
    o->busy = (int)hf_argv_number(a, "conflict-exit-code", HF_EXIT_NO);
    hf_format_duration(most_ms, most);
    hf_format_duration(lease_ms, lease);
    if (o->grace_ms > most_ms)
        return hf_cli_say(cli, HF_EXIT_USAGE, "",
                          "--grace: expected at most %s with --ttl %s, which needs the "
                          "rest for its renewals",
                          most, lease);
    return read_wait(cli, o);
}

static int read_options(const hf_cli *cli, lock_options *o)
{
    int code = read_names(cli, o);
    if (code == HF_EXIT_OK)
        code = read_mode(cli, o);
    if (code == HF_EXIT_OK)
        code = read_times(cli, o);
    if (code == HF_EXIT_OK)
        set_reach(cli, &o->opts);
    return code;
}

/* ---- asking for it ---- */

static void notify(const hf_lock_run *run)
{
    uint64_t one = 1;
    (void)!write(run->changed_fd, &one, sizeof one); /* full: it is readable */
}

static void on_acquired(hf_lock *lock, hf_err err, const char *detail, void *arg)
{
    hf_lock_run *run = arg;
    (void)lock;
    (void)pthread_mutex_lock(&run->mutex);
    run->err = err;
    (void)snprintf(run->detail, sizeof run->detail, "%s", detail);
    run->answered = true;
    (void)pthread_mutex_unlock(&run->mutex);
    notify(run);
}

/* True: there is an answer. Else it is cancelled, while the handle is still good. */
static bool is_answered(hf_lock_run *run, bool cancel)
{
    (void)pthread_mutex_lock(&run->mutex);
    bool answered = run->answered;
    if (!answered && cancel)
        hf_lock_cancel(run->lock);
    (void)pthread_mutex_unlock(&run->mutex);
    return answered;
}

static void on_event(hf_lock *lock, hf_lock_event event, void *arg)
{
    hf_lock_run *run = arg;
    (void)lock;
    if (event == HF_LOCK_EVENT_LOST) {
        int fd = atomic_exchange(&run->loss_ours_fd, -1);
        if (fd >= 0)
            (void)close(fd); /* the program sees the end of its descriptor */
        atomic_store(&run->lost, true);
    } else if (event == HF_LOCK_EVENT_REVOKED) {
        atomic_store(&run->revoked, true);
    } else if (event == HF_LOCK_EVENT_SUSPECT) {
        atomic_store(&run->suspect, true);
    }
    notify(run);
}

/* Reads the signals that have come; one that ends a program is given back, else 0. */
static int read_signals(const hf_lock_run *run)
{
    int number;
    while ((number = hf_signals_next(&run->signals)) != 0) {
        if (hf_signal_ends(number))
            return number;
        if (number == SIGTSTP)
            (void)hf_signals_stop(&run->signals, number); /* or keeps waiting */
    }
    return 0;
}

/* The handle is good until there is an answer. */
static void say_waiting(hf_lock_run *run)
{
    (void)pthread_mutex_lock(&run->mutex);
    bool silent = !run->answered && hf_lock_get_state(run->lock) == HF_LOCK_ENTERING;
    (void)pthread_mutex_unlock(&run->mutex);
    if (silent)
        hf_waiting_say(run->cli->server.url);
}

/* Until there is an answer, or a signal that ends it. 0, or that signal. */
static int wait_for_answer(hf_lock_run *run)
{
    int number = 0;
    bool to_say = hf_waiting_wanted(run->cli->json);
    uint64_t say_ns = hf_boot_ns() + HF_WAITING_MS * HF_MS_NS;
    while (!is_answered(run, number != 0)) {
        hf_lock_run_wait(run, to_say ? HF_WAITING_MS : -1);
        if (to_say && hf_boot_ns() >= say_ns) {
            to_say = false;
            say_waiting(run);
        }
        if (number == 0)
            number = read_signals(run);
    }
    return number != 0 ? number : read_signals(run);
}

static int not_had(const hf_lock_run *run, const lock_options *o)
{
    if (run->err == HF_TAKEN) {
        if (run->detail[0] != '\0')
            hf_lock_run_note(run, "lock '%s' is held; %s", run->names, run->detail);
        else if (run->verbose)
            hf_lock_run_note(run, "another client holds lock '%s'", run->names);
        return o->busy;
    }
    if (run->err == HF_INVALID)
        return hf_cli_say(run->cli, HF_EXIT_USAGE, "", "%s", run->detail);
    return hf_cli_fail(run->cli, run->err, run->detail);
}

/* ---- giving it back ---- */

static int give_back(hf_lock_run *run, int code)
{
    switch (hf_lock_release_wait(run->lock, NULL)) {
    case HF_RELEASE_EXPIRED:
    case HF_RELEASE_NOT_OWNER:
        if (run->said_lost)
            return code;
        return hf_cli_say(run->cli, HF_EXIT_LATER, "",
                          "lock '%s' was lost before the command ended", run->names);
    case HF_RELEASE_UNKNOWN:
        if (!run->said_lost)
            hf_lock_run_note(run,
                             "lock '%s' could not be given back, and ends with its lease",
                             run->names);
        return code;
    default:
        return code;
    }
}

static int run_under(hf_lock_run *run)
{
    hf_lock_end end = hf_lock_run_program(run);
    int code = give_back(run, end.code);
    if (!end.by_signal || code != end.code)
        return code;
    run->by_signal = true;
    run->by_terminal = end.by_terminal;
    return code;
}

static int with_client(hf_lock_run *run, hf_lock_client *locks, lock_options *o)
{
    uint64_t from_ns = hf_boot_ns();
    o->opts.on_event = on_event;
    o->opts.event_arg = run;
    hf_err err =
        hf_lock_acquire(locks, &o->opts, on_acquired, run, &run->lock, run->detail);
    if (err != HF_OK) {
        run->err = err;
        return not_had(run, o);
    }
    int number = wait_for_answer(run);
    if (number != 0) {
        if (run->err == HF_OK)
            (void)hf_lock_release_wait(run->lock, NULL);
        run->by_signal = true;
        return EXIT_SIGNAL + number;
    }
    if (run->err != HF_OK)
        return not_had(run, o);
    if (run->verbose)
        hf_lock_run_note(run, "lock '%s' is held after %" PRIu64 " ms, fence %" PRIu64,
                         run->names, (hf_boot_ns() - from_ns) / HF_MS_NS,
                         hf_lock_fence(run->lock));
    return run_under(run);
}

/* ---- life ---- */

/* The program's descriptor is made first, to get a low number: some shells accept only
 * one digit. */
static bool open_fds(hf_lock_run *run)
{
    int loss[2];
    if (pipe2(loss, O_CLOEXEC) != 0)
        return false;
    run->loss_fd = loss[0];
    atomic_init(&run->loss_ours_fd, loss[1]);
    run->changed_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return run->changed_fd >= 0 && hf_signals_take(&run->signals);
}

static void close_fds(hf_lock_run *run)
{
    int fds[] = {run->loss_fd, atomic_load(&run->loss_ours_fd), run->changed_fd,
                 run->signals.fd};
    for (size_t i = 0; i < HF_COUNT(fds); i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
    hf_terminal_done(&run->terminal);
}

/* One line of standard error, where lines are missing. */
static void tell_gap(hf_buf *out, uint64_t lines, void *arg)
{
    const hf_cli *cli = arg;
    hf_buf_printf(out,
                  cli->json ? "{\"note\":\"%" PRIu64 " lines are missing\"}\n"
                            : "holdfast: %" PRIu64 " lines are missing\n",
                  lines);
}

int hf_cmd_lock(hf_cli *cli)
{
    lock_options o = {.opts = {HF_LOCK_OPTS_INIT}};
    hf_lock_run run = {.cli = cli,
                       .mutex = PTHREAD_MUTEX_INITIALIZER,
                       .names = hf_argv_operand(cli->args, 0),
                       .argv = (char *const *)&cli->args->operands[1],
                       .verbose = hf_argv_has(cli->args, "verbose"),
                       .signals = {.fd = -1},
                       .terminal = {.fd = -1},
                       .changed_fd = -1,
                       .loss_fd = -1};
    hf_lock_client *locks = NULL;
    atomic_init(&run.loss_ours_fd, -1);
    int code = read_options(cli, &o);
    run.grace_ms = o.grace_ms;
    if (code == HF_EXIT_OK && !open_fds(&run))
        code = hf_cli_say(cli, HF_EXIT_SYSTEM, "", "cannot prepare: %s", strerror(errno));
    hf_terminal_find(&run.terminal);
    if (code == HF_EXIT_OK) /* without one, a message waits for its stream */
        cli->writer = hf_writer_open(STDERR_FILENO, tell_gap, cli);
    if (code == HF_EXIT_OK)
        code = hf_cli_locks(cli, &locks);
    if (code == HF_EXIT_OK)
        code = with_client(&run, locks, &o);
    hf_lock_client_close(locks, NULL, NULL);
    close_fds(&run);
    hf_writer_close(cli->writer, FLUSH_MS);
    cli->writer = NULL;
    free(o.text);
    if (run.by_signal)
        hf_signals_unblock(&run.signals); /* we end as it did, where main() does that */
    if (run.by_terminal)
        (void)kill(0, code - EXIT_SIGNAL); /* it was for all that run here */
    return code;
}
