/* main.c - the minder process itself; lock/minder/minder.h explains its purpose.
 *
 * It holds its pipe (stdin), a timer on CLOCK_BOOTTIME, and a descriptor of its worker,
 * and sleeps in poll() on the three. It reads the clock, then all records that have
 * arrived, and then acts upon the deadlines that had passed at that reading. So a record
 * that was written before the deadline that it replaces is always respected. And after
 * the minder itself was stopped for a while, it does not kill a group that has ended
 * meanwhile, whose number may belong to another by now.
 *
 * With a group it kills all that the group has started (lock/minder/family.h). A timer of
 * the kernel continues a minder that is stopped when something is due. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/text.h"
#include "holdfast/minder.h"
#include "lock/minder/family.h"
#include "lock/minder/minder.h"
#include "lock/minder/record.h"
#include "lock/minder/spawn.h"

enum {
    RECORDS_AT_ONCE = 256,
    PASS_MS = 5,       /* between two passes over the processes */
    KILL_GIB_MS = 250, /* for the end of a process, for each GiB of its memory */
    SMALL_MIB = 64,    /* less has gone within the margin of any lease */
    ALARMS = 4,
    ALARM_MS = 20,     /* between two signals to a minder that is stopped, at first */
    ALARM_GROWTH = 10, /* and of each later alarm, beside the one before */
    LINGER_MS = 5000,  /* for programs that were being started when the worker died */
    EXIT_USAGE = 64,
    EXIT_SYSTEM = 71
};

typedef struct group {
    pid_t id;
    int pidfd;  /* of its leader; -1: it could not be opened */
    bool asked; /* TERM was sent */
    bool just_asked;
    uint64_t deadline_ns, ask_ns;
    uint64_t left_ns; /* until the deadline, when that was told; 0: the lease is lost */
    hf_family family; /* all that it has started */
} group;

typedef struct minder {
    uint64_t grace_ns;
    int timer_fd, worker_fd;
    timer_t alarms[ALARMS]; /* continue this process if it is stopped */
    bool orphaned;          /* the worker is gone: no group may live */
    uint64_t linger_ns;     /* when it ends, once orphaned */
    size_t n;
    group groups[HF_MINDER_GROUPS_MAX];
    size_t dying_n; /* families whose group was killed, until they are gone */
    hf_family dying[HF_MINDER_GROUPS_MAX];
    uint64_t until_ns[HF_MINDER_GROUPS_MAX]; /* of each: no longer */
    uint64_t pass_ns;                        /* the next pass over them */
    hf_family asked[HF_MINDER_GROUPS_MAX];   /* in one turn */
} minder;

/* ---- the groups ---- */

/* When the worker has died, the number of a leader that has ended is not reserved. */
static void send_signal(const group *g, int sig)
{
    if (g->pidfd < 0 || (!hf_spawn_signal_group(g->pidfd, sig) && errno == ENOTSUP))
        kill(-g->id, sig);
}

static void drop(minder *m, group *g)
{
    hf_spawn_close_fd(&g->pidfd);
    *g = m->groups[--m->n];
}

/* A session's number is its own while its leader is not reaped. */
static void kill_family(minder *m, const group *g)
{
    hf_family family = g->family;
    if (g->pidfd < 0 || !hf_spawn_signal_group(g->pidfd, 0))
        family.session = 0;
    if (hf_family_is_empty(&family))
        return;
    if (m->dying_n == HF_MINDER_GROUPS_MAX) {
        hf_family_kill(&family, 1);
        return;
    }
    m->until_ns[m->dying_n] = hf_boot_ns() + HF_FAMILY_KILL_MS * HF_MS_NS;
    m->dying[m->dying_n++] = family;
    m->pass_ns = 0;
}

/* The group first, which takes no search. */
static void kill_group(minder *m, group *g)
{
    send_signal(g, SIGKILL);
    kill_family(m, g);
    drop(m, g);
}

static void kill_all(minder *m)
{
    while (m->n > 0)
        kill_group(m, &m->groups[0]);
}

/* One pass over those that are being killed. A pass takes its time where there are many
 * processes, and others have deadlines: the next one comes later then. */
static void look_for_dying(minder *m, uint64_t now_ns)
{
    if (m->dying_n == 0 || now_ns < m->pass_ns)
        return;
    bool again = false;
    hf_family_kill(m->dying, m->dying_n);
    for (size_t i = 0; i < m->dying_n;) {
        if (hf_family_is_gone(&m->dying[i]) || now_ns >= m->until_ns[i]) {
            m->dying[i] = m->dying[--m->dying_n];
            m->until_ns[i] = m->until_ns[m->dying_n];
        } else {
            again = again || m->dying[i].alive == 0;
            i++;
        }
    }
    uint64_t end_ns = hf_boot_ns();
    m->pass_ns = end_ns + (again ? 0 : PASS_MS * HF_MS_NS) + (end_ns - now_ns);
}

static void hold(minder *m, pid_t id, uint64_t deadline_ns, uint64_t ask_ns)
{
    uint64_t now_ns = hf_boot_ns();
    size_t i = 0;
    while (i < m->n && m->groups[i].id != id)
        i++;
    group added = {.id = id, .pidfd = -1};
    if (i == m->n) {
        added.pidfd = hf_spawn_pidfd(id);
        added.family = hf_family_of(id);
        if (ask_ns != 0) /* not its own record: its session may be that of its host */
            added.family.session = 0;
    }
    if (m->orphaned || i == HF_MINDER_GROUPS_MAX) {
        kill(-id, SIGKILL); /* what cannot be minded must not run */
        kill_family(m, &added);
        hf_spawn_close_fd(&added.pidfd);
        return;
    }
    if (i == m->n)
        m->groups[m->n++] = added;
    /* A program's own first record may come after its worker's extension. */
    if (deadline_ns > m->groups[i].deadline_ns) {
        m->groups[i].deadline_ns = deadline_ns;
        m->groups[i].left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
        m->groups[i].ask_ns = ask_ns != 0                 ? ask_ns
                              : deadline_ns > m->grace_ns ? deadline_ns - m->grace_ns
                                                          : 0;
        m->groups[i].asked = false;
    }
}

static void end_soon(minder *m, pid_t id, uint64_t deadline_ns)
{
    for (size_t i = 0; i < m->n; i++) {
        if (m->groups[i].id == id) {
            m->groups[i].ask_ns = m->groups[i].left_ns = 0;
            if (deadline_ns < m->groups[i].deadline_ns)
                m->groups[i].deadline_ns = deadline_ns;
        }
    }
}

static void forget(minder *m, pid_t id)
{
    for (size_t i = 0; i < m->n; i++) {
        if (m->groups[i].id == id) {
            if (m->groups[i].asked || m->groups[i].ask_ns == 0)
                kill_family(m, &m->groups[i]); /* it was not to go on */
            drop(m, &m->groups[i]);
            return;
        }
    }
}

/* A process whose memory has to be given back holds its locks, ports and files meanwhile:
 * a large program is killed earlier, so that it has gone when its lease is over. */
static void kill_earlier(group *g, uint64_t resident)
{
    uint64_t mib = resident >> 20;
    uint64_t cut_ns = mib < SMALL_MIB ? 0 : mib * KILL_GIB_MS * HF_MS_NS >> 10;
    if (cut_ns > g->left_ns / 4)
        cut_ns = g->left_ns / 4;
    g->deadline_ns -= cut_ns;
}

/* TERM to what the groups that just got it have started outside of them. */
static void ask_families(minder *m)
{
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++)
        if (m->groups[i].just_asked)
            m->asked[n++] = m->groups[i].family;
    if (n == 0)
        return;
    hf_family_ask(m->asked, n);
    hf_family_measure(m->asked, n);
    for (size_t i = m->n; i-- > 0;) {
        if (!m->groups[i].just_asked)
            continue;
        m->groups[i].just_asked = false;
        kill_earlier(&m->groups[i], m->asked[--n].resident);
    }
}

/* Sends what is due, and returns when the next is. */
static uint64_t act(minder *m, uint64_t now_ns)
{
    uint64_t next_ns = UINT64_MAX;
    for (size_t i = 0; i < m->n;) {
        group *g = &m->groups[i];
        if (now_ns >= g->deadline_ns) {
            kill_group(m, g);
            continue;
        }
        if (!g->asked && now_ns >= g->ask_ns) {
            send_signal(g, SIGTERM);
            g->asked = g->just_asked = true;
        }
        i++;
    }
    ask_families(m);
    look_for_dying(m, now_ns);
    for (size_t i = 0; i < m->n; i++) {
        const group *g = &m->groups[i];
        uint64_t at_ns = g->asked ? g->deadline_ns : g->ask_ns;
        next_ns = at_ns < next_ns ? at_ns : next_ns;
    }
    return m->dying_n > 0 && m->pass_ns < next_ns ? m->pass_ns : next_ns;
}

/* ---- stopped ---- */

static void on_continued(int number)
{
    (void)
        number; /* without a handler the kernel drops the signal, and repeats it never */
}

static bool start_alarms(minder *m)
{
    struct sigaction action = {.sa_handler = on_continued};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGCONT};
    sigaction(SIGCONT, &action, NULL);
    for (size_t i = 0; i < ALARMS; i++)
        if (timer_create(CLOCK_BOOTTIME, &event, &m->alarms[i]) != 0)
            return false;
    return true;
}

static struct timespec timespec_of(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / (1000 * HF_MS_NS)),
                             .tv_nsec = (long)(ns % (1000 * HF_MS_NS))};
}

/* 0, UINT64_MAX: at no time.
 *
 * A minder that was stopped (SIGSTOP) is continued by the kernel when it has something to
 * do, and again and again until it has done that: it may be stopped twice. A stop that
 * comes before the minder has taken the signal of an alarm takes the signal away, and
 * that alarm does not repeat any more. So there are several, each slower than the one
 * before. */
static void set_alarms(minder *m, uint64_t at_ns)
{
    uint64_t every_ns = ALARM_MS * HF_MS_NS;
    bool none = at_ns == 0 || at_ns == UINT64_MAX;
    for (size_t i = 0; i < ALARMS; i++, every_ns *= ALARM_GROWTH) {
        /* A minder that runs acts before the first one. */
        uint64_t later_ns = i == 0 ? HF_MS_NS : every_ns;
        uint64_t first_ns = none ? 0 : at_ns + later_ns;
        struct itimerspec when = {.it_interval = timespec_of(every_ns),
                                  .it_value = timespec_of(first_ns)};
        (void)timer_settime(m->alarms[i], TIMER_ABSTIME, &when, NULL);
    }
}

/* ---- the pipe ---- */

/* False: the pipe has ended, or carries something else than records. */
static bool read_records(minder *m)
{
    hf_minder_record records[RECORDS_AT_ONCE];
    for (;;) {
        ssize_t n = read(STDIN_FILENO, records, sizeof records);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN;
        if (n == 0 || (size_t)n % sizeof records[0] != 0)
            return false;
        for (size_t i = 0; i < (size_t)n / sizeof records[0]; i++) {
            if (records[i].op == HF_MIND_ASK) {
                (void)!write(STDOUT_FILENO, "", 1); /* full: it has not read the others */
                continue;
            }
            if (records[i].group <= 1) /* would be everybody, or the minder's own */
                return false;
            if (records[i].op == HF_MIND_HOLD)
                hold(m, (pid_t)records[i].group, records[i].deadline_ns,
                     records[i].ask_ns);
            else if (records[i].op == HF_MIND_END)
                end_soon(m, (pid_t)records[i].group, records[i].deadline_ns);
            else if (records[i].op == HF_MIND_GONE)
                forget(m, (pid_t)records[i].group);
            else
                return false;
        }
    }
}

static void run(minder *m)
{
    for (;;) {
        struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                               {.fd = m->timer_fd, .events = POLLIN},
                               {.fd = m->orphaned ? -1 : m->worker_fd, .events = POLLIN}};
        poll(fds, HF_COUNT(fds), -1);
        bool worker_ended = fds[2].revents != 0;
        uint64_t now_ns = hf_boot_ns();
        if (!read_records(m)) {
            kill_all(m);
            break;
        }
        if (worker_ended) {
            /* The pipe has not ended: another process has it as well. A program between
             * fork and exec still sends its record, and is killed then. */
            m->orphaned = true;
            m->linger_ns = now_ns + LINGER_MS * HF_MS_NS;
            kill_all(m);
        }
        if (m->orphaned && now_ns >= m->linger_ns)
            break;
        uint64_t next_ns = act(m, now_ns);
        if (m->orphaned && m->linger_ns < next_ns)
            next_ns = m->linger_ns;
        hf_timer_set(m->timer_fd, next_ns);
        set_alarms(m, next_ns);
    }
    (void)hf_family_end(m->dying, m->dying_n,
                        hf_boot_ns() + HF_FAMILY_KILL_MS * HF_MS_NS);
    set_alarms(m, 0);
}

/* ---- start ---- */

static void ignore_signals(void)
{
    static const int ignored[] = {SIGTERM, SIGINT,  SIGHUP,  SIGQUIT, SIGPIPE,
                                  SIGTSTP, SIGUSR1, SIGUSR2, SIGALRM};
    struct sigaction action = {.sa_handler = SIG_IGN};
    for (size_t i = 0; i < HF_COUNT(ignored); i++)
        sigaction(ignored[i], &action, NULL);
}

/* One for each group; where there are none left, numbers do. */
static void allow_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

/* The worker's descriptor; -1 with errno, also if it is not our parent any more. */
static int watch_worker(pid_t worker)
{
    int fd = hf_spawn_pidfd(worker);
    if (fd < 0 || getppid() == worker)
        return fd;
    close(fd);
    errno = ESRCH;
    return -1;
}

int hf_minder_main(int argc, char **argv)
{
    static const char hello = HF_MINDER_ANSWERS;
    int64_t grace_ms, worker;
    struct stat in;
    if (argc != 4 || !hf_parse_int(argv[2], 0, UINT32_MAX, &grace_ms) ||
        !hf_parse_int(argv[3], 1, INT32_MAX, &worker) || fstat(STDIN_FILENO, &in) != 0 ||
        !S_ISFIFO(in.st_mode)) {
        fputs("holdfast: the minder is started by a worker\n", stderr);
        return EXIT_USAGE;
    }
    ignore_signals();
    allow_descriptors();
    minder *m = calloc(1, sizeof *m);
    if (m == NULL)
        return EXIT_SYSTEM;
    int status = EXIT_SYSTEM;
    m->grace_ns = (uint64_t)grace_ms * HF_MS_NS;
    m->worker_fd = watch_worker((pid_t)worker);
    m->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    if (m->worker_fd >= 0 && m->timer_fd >= 0 && start_alarms(m) && chdir("/") == 0 &&
        fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK) == 0 &&
        fcntl(STDOUT_FILENO, F_SETFL, O_NONBLOCK) == 0 &&
        write(STDOUT_FILENO, &hello, 1) == 1) {
        run(m);
        status = 0;
    }
    free(m);
    return status;
}
