/* hf-handler.c - a job's program for the acceptance scripts: it does what its arguments
 * say, one after the other, and writes down what happened when.
 *
 *   log=FILE       lines go to FILE: KIND pid job attempt fence ns [TEXT], ns on
 * CLOCK_BOOTTIME. "start" now, "beat" while it waits, "end" before it ends by itself
 *   lock=DIR hold DIR/<job> while alive; "overlap" when another process holds it already;
 *   "dying" when that one was killed before, and had no processor yet to end on
 *   append=FILE the job's id, one line
 *   beat=MS        how often a waiting handler says that it is alive (5)
 *   sleep=MS  spin=MS  exit=N  signal=N  error=TEXT (to stderr)  verdict=JSON
 *   fail-first=N   exit 1 in the first N attempts
 *   first=N        what follows is done in the first N attempts only
 *   fail-unless=FILE  exit 1 when there is no FILE
 *   ignore-term    TERM does nothing, and is noted as "term" by the next wait
 *   fork           leave a child that waits for ever; its lines count as the handler's
 *   orphan         the same, and the handler ends
 *   stdout=BYTES  stderr=BYTES
 *   read           all of stdin; "read" with the number of bytes
 *   close-stdin
 *   fds            "fds" with the open descriptors and what they are
 *   payload        more of these, separated by spaces, from stdin
 */
#define _GNU_SOURCE /* CLOCK_BOOTTIME, flock */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LINE_SIZE = 4096, FIRST_OWN_FD = 100 };

typedef struct handler {
    int log;
    long beat_ms;
    const char *id, *attempt, *fence;
} handler;

static volatile sig_atomic_t terms;

static void on_term(int number)
{
    (void)number;
    terms++;
}

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value == NULL ? "-" : value;
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

/* Whatever the file's own disk does: a line is lost only with the machine. */
static void write_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, bytes, len);
        if (n < 0 && errno != EINTR)
            _exit(90);
        bytes += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
}

static void note_as(const handler *h, pid_t pid, const char *kind, const char *text)
{
    char line[LINE_SIZE];
    if (h->log < 0)
        return;
    int n = snprintf(line, sizeof line, "%s %ld %s %s %s %llu%s%s\n", kind, (long)pid,
                     h->id, h->attempt, h->fence, (unsigned long long)now_ns(),
                     *text ? " " : "", text);
    write_all(h->log, line, n < LINE_SIZE ? (size_t)n : LINE_SIZE - 1);
}

static void note(const handler *h, const char *kind, const char *text)
{
    note_as(h, getpid(), kind, text);
}

static void finish(const handler *h, int status)
{
    note(h, "end", "");
    _exit(status);
}

/* The descriptors are moved out of the way of those that the worker gave, so that "fds"
 * can tell them apart. */
static int open_own(const char *path, int flags)
{
    int fd = open(path, flags | O_CREAT | O_CLOEXEC, 0600);
    int moved = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, FIRST_OWN_FD);
    if (moved < 0)
        _exit(91);
    (void)close(fd);
    return moved;
}

/* Z: it has ended, or there is none; K: it got a KILL, and runs no instruction of its own
 * any more; R: it runs. */
static char state_of(long pid)
{
    char path[64], line[256], state = 'Z';
    unsigned long long pending = 0;
    snprintf(path, sizeof path, "/proc/%ld/status", pid);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        (void)sscanf(line, "State: %c", &state);
        (void)sscanf(line, "ShdPnd: %llx", &pending);
    }
    if (file != NULL)
        (void)fclose(file);
    if (state == 'Z' || state == 'X')
        return 'Z';
    return (pending >> (SIGKILL - 1) & 1) != 0 ? 'K' : 'R';
}

/* Whether the leader of a group, or what it has left in its group, got a KILL and is not
 * gone. Its children have the lock as well. */
static bool is_dying(long leader)
{
    char state = state_of(leader);
    DIR *all = state == 'Z' ? opendir("/proc") : NULL;
    const struct dirent *entry;
    while (all != NULL && state != 'R' && (entry = readdir(all)) != NULL) {
        long pid = strtol(entry->d_name, NULL, 10);
        char other = pid > 0 && getpgid((pid_t)pid) == leader ? state_of(pid) : 'Z';
        state = other == 'Z' ? state : other;
    }
    if (all != NULL)
        (void)closedir(all);
    return state == 'K';
}

/* The process that locked the file, by the kernel's list: a holder may be killed before
 * it writes anything. 0: it is not locked. */
static long holder_of(int fd)
{
    char line[256];
    long holder = 0, pid;
    unsigned long inode;
    struct stat st;
    FILE *file = fopen("/proc/locks", "re");
    if (file == NULL || fstat(fd, &st) != 0)
        _exit(95);
    while (holder == 0 && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "%*s FLOCK %*s %*s %ld %*x:%*x:%lu", &pid, &inode) == 2 &&
            inode == st.st_ino)
            holder = pid;
    (void)fclose(file);
    return holder;
}

/* False: another process holds it, and was not killed before this one looked. */
static bool lock_file(const handler *h, int fd)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    long holder = holder_of(fd);
    bool dying = holder != 0 && is_dying(holder), told = false;
    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        long now = holder_of(fd);
        if (now != 0 && (!dying || now != holder))
            return false;
        if (!told && dying)
            note(h, "dying", "");
        told = told || dying;
        nanosleep(&pause, NULL);
        dying = holder != 0 && is_dying(holder);
    }
    return true;
}

static void hold(const handler *h, const char *dir)
{
    char path[LINE_SIZE], text[32];
    snprintf(path, sizeof path, "%s/%s", dir, h->id);
    int fd = open_own(path, O_RDWR);
    if (!lock_file(h, fd)) {
        note(h, "overlap", "");
        return;
    }
    int n = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)n, 0) != n)
        _exit(94);
}

static void wait_as(const handler *h, pid_t pid, long ms)
{
    const uint64_t until = now_ns() + (uint64_t)ms * 1000000U;
    sig_atomic_t told = 0;
    const struct timespec pause = {.tv_sec = h->beat_ms / 1000,
                                   .tv_nsec = h->beat_ms % 1000 * 1000000};
    while (ms < 0 || now_ns() < until) {
        note_as(h, pid, "beat", "");
        if (terms > told) {
            told = terms;
            note_as(h, pid, "term", "");
        }
        nanosleep(&pause, NULL);
    }
}

static void spin(long ms)
{
    const uint64_t until = now_ns() + (uint64_t)ms * 1000000U;
    while (now_ns() < until)
        continue;
}

static void leave_child(const handler *h)
{
    pid_t parent = getpid();
    pid_t child = fork();
    if (child == 0)
        wait_as(h, parent, -1);
    char text[32];
    snprintf(text, sizeof text, "%ld", (long)child);
    note(h, "child", text);
}

static void flood(int fd, long bytes)
{
    char line[128];
    memset(line, 'x', sizeof line);
    line[sizeof line - 1] = '\n';
    for (; bytes > 0; bytes -= (long)sizeof line)
        write_all(fd, line, bytes < (long)sizeof line ? (size_t)bytes : sizeof line);
}

static void read_all(const handler *h)
{
    char chunk[65536], text[32];
    long long total = 0;
    ssize_t n;
    while ((n = read(STDIN_FILENO, chunk, sizeof chunk)) > 0)
        total += n;
    snprintf(text, sizeof text, "%lld", total);
    note(h, "read", text);
}

static void list_fds(const handler *h)
{
    char text[LINE_SIZE / 2] = "", path[64], target[256];
    size_t len = 0;
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        long fd = strtol(entry->d_name, NULL, 10);
        if (entry->d_name[0] == '.' || fd == dirfd(dir) || fd >= FIRST_OWN_FD)
            continue;
        snprintf(path, sizeof path, "/proc/self/fd/%ld", fd);
        ssize_t n = readlink(path, target, sizeof target - 1);
        target[n > 0 ? n : 0] = '\0';
        len += (size_t)snprintf(text + len, sizeof text - len, "%ld=%s ", fd, target);
        if (len >= sizeof text)
            break;
    }
    if (dir != NULL)
        (void)closedir(dir);
    note(h, "fds", text);
}

static void send_verdict(const char *json)
{
    const char *fd = getenv("HOLDFAST_VERDICT_FD");
    if (fd == NULL)
        _exit(92);
    write_all((int)strtol(fd, NULL, 10), json, strlen(json));
    write_all((int)strtol(fd, NULL, 10), "\n", 1);
}

static void perform(handler *h, char *action);

static void perform_payload(handler *h)
{
    static char text[65536];
    size_t len = 0;
    ssize_t n;
    while (len < sizeof text - 1 &&
           (n = read(STDIN_FILENO, text + len, sizeof text - 1 - len)) > 0)
        len += (size_t)n;
    text[len] = '\0';
    for (char *at = text; *at != '\0';) {
        size_t word = strcspn(at, " \n");
        char *next = at + word + (at[word] != '\0' ? 1 : 0);
        at[word] = '\0';
        if (word > 0)
            perform(h, at);
        at = next;
    }
}

static void start_log(handler *h, const char *path)
{
    h->log = open_own(path, O_WRONLY | O_APPEND);
    note(h, "start", "");
}

static void append_id(const handler *h, const char *path)
{
    char line[256];
    int fd = open_own(path, O_WRONLY | O_APPEND);
    int n = snprintf(line, sizeof line, "%s\n", h->id);
    write_all(fd, line, (size_t)n);
    (void)close(fd);
}

static bool is(const char *name, size_t len, const char *wanted)
{
    return strlen(wanted) == len && strncmp(name, wanted, len) == 0;
}

/* Those that take no value. */
static bool perform_plain(handler *h, const char *name, size_t len)
{
    if (is(name, len, "ignore-term"))
        (void)signal(SIGTERM, on_term);
    else if (is(name, len, "fork") || is(name, len, "orphan"))
        leave_child(h);
    else if (is(name, len, "read"))
        read_all(h);
    else if (is(name, len, "close-stdin"))
        (void)close(STDIN_FILENO);
    else if (is(name, len, "fds"))
        list_fds(h);
    else if (is(name, len, "payload"))
        perform_payload(h);
    else
        return false;
    if (is(name, len, "orphan"))
        finish(h, 0);
    return true;
}

static bool perform_number(handler *h, const char *name, size_t len, long n)
{
    if (is(name, len, "beat"))
        h->beat_ms = n;
    else if (is(name, len, "sleep"))
        wait_as(h, getpid(), n);
    else if (is(name, len, "spin"))
        spin(n);
    else if (is(name, len, "exit"))
        finish(h, (int)n);
    else if (is(name, len, "signal"))
        (void)raise((int)n);
    else if (is(name, len, "stdout"))
        flood(STDOUT_FILENO, n);
    else if (is(name, len, "stderr"))
        flood(STDERR_FILENO, n);
    else if (is(name, len, "fail-first") && strtol(h->attempt, NULL, 10) <= n)
        finish(h, 1);
    else if (is(name, len, "first") && strtol(h->attempt, NULL, 10) > n)
        finish(h, 0);
    else
        return is(name, len, "fail-first") || is(name, len, "first");
    return true;
}

static void perform(handler *h, char *action)
{
    size_t len = strcspn(action, "=");
    const char *value = action[len] == '=' ? action + len + 1 : "";
    if (is(action, len, "log"))
        start_log(h, value);
    else if (is(action, len, "lock"))
        hold(h, value);
    else if (is(action, len, "append"))
        append_id(h, value);
    else if (is(action, len, "fail-unless") && access(value, F_OK) != 0)
        finish(h, 1);
    else if (is(action, len, "fail-unless"))
        return;
    else if (is(action, len, "error"))
        write_all(STDERR_FILENO, value, strlen(value));
    else if (is(action, len, "verdict"))
        send_verdict(value);
    else if (!perform_plain(h, action, len) &&
             !perform_number(h, action, len, strtol(value, NULL, 10))) {
        (void)fprintf(stderr, "hf-handler: what is '%s'?\n", action);
        _exit(93);
    }
}

int main(int argc, char **argv)
{
    handler h = {.log = -1,
                 .beat_ms = 5,
                 .id = variable("HOLDFAST_JOB_ID"),
                 .attempt = variable("HOLDFAST_ATTEMPT"),
                 .fence = variable("HOLDFAST_FENCE")};
    for (int i = 1; i < argc; i++)
        perform(&h, argv[i]);
    finish(&h, 0);
}
