/* program.c - cli/conform/program.h. */
/* For execvpe() and pipe2(). */
#define _GNU_SOURCE /* NOLINT(bugprone-reserved-identifier) */
#include "cli/conform/program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/parent.h"

enum {
    NOT_EXECUTED = 127,
    ABOVE = 64,        /* descriptors that the child moves out of the way of its own */
    TICK_MS = 10,      /* how often it is looked whether the program has ended */
    PAUSE_NS = 200000, /* between two pieces */
    READ_SIZE = 256 << 10
};

/* ---- its start ---- */

typedef struct ends {
    int far, out, err, fault;
} ends;

static void close_all(const int *fds, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
}

static _Noreturn void be_program(const hf_conform_start *start, ends e, pid_t parent)
{
    static const int signals[] = {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGCHLD};
    char number[16];
    sigset_t none;
    (void)setsid();
    if (!hf_end_with_parent(parent, SIGKILL))
        _exit(NOT_EXECUTED);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        (void)signal(signals[i], SIG_DFL);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    e.fault = fcntl(e.fault, F_DUPFD_CLOEXEC, ABOVE);
    e.far = fcntl(e.far, F_DUPFD_CLOEXEC, ABOVE);
    int null = open("/dev/null", O_RDONLY);
    (void)snprintf(number, sizeof number, "%d", start->number);
    if (dup2(null, 0) == 0 && dup2(e.out, 1) == 1 && dup2(e.err, 2) == 2 &&
        dup2(e.far, start->number) >= 0 && setenv("HOLDFAST_FD", number, 1) == 0 &&
        setenv("HOLDFAST_PIPE", start->versions, 1) == 0) {
        if (null > 2 && null != start->number)
            (void)close(null);
        (void)execvp(start->argv[0], start->argv);
    }
    int error = errno;
    (void)!write(e.fault, &error, sizeof error);
    _exit(NOT_EXECUTED);
}

/* near[]: the socket, its outputs, the fault; far[]: the same of the program. */
static bool open_ends(int near[4], int far[4], bool no_socket)
{
    int pair[2];
    for (size_t i = 0; i < 4; i++) {
        bool done = i == 0 && !no_socket
                        ? socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0
                        : pipe2(pair, O_CLOEXEC) == 0;
        if (!done) {
            int error = errno;
            close_all(near, i);
            close_all(far, i);
            errno = error;
            return false;
        }
        near[i] = pair[0];
        far[i] = pair[1];
    }
    return true;
}

static int executed(int fault_fd)
{
    int error = 0;
    ssize_t n;
    do
        n = read(fault_fd, &error, sizeof error);
    while (n < 0 && errno == EINTR);
    (void)close(fault_fd);
    return n == (ssize_t)sizeof error ? error : 0;
}

static void make(hf_conform_program *p, const hf_conform_start *start)
{
    *p = (hf_conform_program){
        .fd = -1, .out_fd = -1, .err_fd = -1, .number = start->number};
    hf_buf_init(&p->out, HF_CONFORM_PRINTED_MAX);
    hf_buf_init(&p->err, HF_CONFORM_PRINTED_MAX);
    hf_buf_init(&p->to_write, (size_t)128 << 20);
    hf_frame_reader_init(&p->reader);
}

int hf_conform_program_start(hf_conform_program *p, const hf_conform_start *start,
                             bool *exec)
{
    int near[4], far[4];
    struct stat about;
    make(p, start);
    *exec = false;
    if (!open_ends(near, far, start->no_socket))
        return errno;
    p->inode = fstat(far[0], &about) == 0 ? about.st_ino : 0;
    pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        be_program(start, (ends){far[0], far[1], far[2], far[3]}, parent);
    int error = pid < 0 ? errno : 0;
    close_all(far, 4);
    if (pid < 0) {
        close_all(near, 4);
        return error;
    }
    p->pid = pid;
    p->fd = near[0];
    p->out_fd = near[1];
    p->err_fd = near[2];
    for (size_t i = 0; i < 3; i++)
        (void)fcntl(near[i], F_SETFL, O_NONBLOCK);
    error = executed(near[3]);
    *exec = error != 0;
    return error;
}

/* ---- reading and writing ---- */

/* What is printed beyond the room is dropped. */
static void keep(hf_buf *out, const char *bytes, size_t n)
{
    size_t room = out->max - out->len;
    hf_buf_add(out, bytes, n < room ? n : room);
}

/* False: the end, or a fault. */
static bool read_some(int fd, char *room, size_t *n)
{
    ssize_t got = read(fd, room, READ_SIZE);
    *n = got > 0 ? (size_t)got : 0;
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

static void read_printed(int *fd, hf_buf *out, char *room)
{
    size_t n = 0;
    if (*fd < 0)
        return;
    if (read_some(*fd, room, &n)) {
        keep(out, room, n);
        return;
    }
    (void)close(*fd);
    *fd = -1;
}

static void read_frames(hf_conform_program *p, char *room)
{
    size_t n = 0;
    hf_frame frame;
    if (p->fd < 0 || p->closed || p->refused)
        return;
    if (!read_some(p->fd, room, &n)) {
        p->closed = true;
        return;
    }
    const char *at = room;
    hf_frame_kind kind;
    while (!p->refused &&
           (kind = hf_frame_next(&p->reader, &at, &n, &frame)) > HF_FRAME_NONE)
        p->refused = kind == HF_FRAME_BROKEN || !p->on_frame(&frame, p->arg);
}

static void write_some(hf_conform_program *p)
{
    size_t left = p->to_write.len - p->written;
    const struct timespec pause = {0, PAUSE_NS};
    if (p->piece != 0 && left > p->piece)
        left = p->piece;
    ssize_t n = send(p->fd, p->to_write.data + p->written, left, MSG_NOSIGNAL);
    if (n < 0 && errno == ENOTSOCK)
        n = write(p->fd, p->to_write.data + p->written, left);
    if (n < 0 && errno != EAGAIN && errno != EINTR)
        n = (ssize_t)(p->to_write.len - p->written); /* it does not read any more */
    p->written += n > 0 ? (size_t)n : 0;
    if (p->written == p->to_write.len) {
        hf_buf_clear(&p->to_write);
        p->written = 0;
    }
    if (p->piece != 0)
        (void)nanosleep(&pause, NULL);
}

bool hf_conform_program_is_written(const hf_conform_program *p)
{
    return p->written == p->to_write.len;
}

/* While it is not reaped, its number is that of its group alone. */
static void reap(hf_conform_program *p)
{
    siginfo_t about = {.si_pid = 0};
    if (p->pid == 0 ||
        waitid(P_PID, (id_t)p->pid, &about, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        about.si_pid != p->pid)
        return;
    (void)kill(-p->pid, SIGKILL); /* its children may have its outputs for ever */
    (void)waitpid(p->pid, &p->status, 0);
    p->pid = 0;
}

bool hf_conform_program_is_over(const hf_conform_program *p)
{
    return p->pid == 0 && (p->fd < 0 || p->closed || p->refused);
}

void hf_conform_program_turn(hf_conform_program *p, uint64_t until_ns)
{
    static char room[READ_SIZE];
    uint64_t now = hf_boot_ns();
    uint64_t left = until_ns > now ? (until_ns - now) / HF_MS_NS + 1 : 0;
    bool writes = !hf_conform_program_is_written(p) && p->fd >= 0;
    bool reads = p->fd >= 0 && !p->closed && !p->refused;
    struct pollfd fds[3] = {
        {reads || writes ? p->fd : -1,
         (short)((reads ? POLLIN : 0) | (writes ? POLLOUT : 0)), 0},
        {p->out_fd, POLLIN, 0},
        {p->err_fd, POLLIN, 0},
    };
    reap(p);
    (void)poll(fds, 3,
               p->pid == 0 || left == 0 ? 0
               : left < TICK_MS         ? (int)left
                                        : TICK_MS);
    read_printed(&p->out_fd, &p->out, room);
    read_printed(&p->err_fd, &p->err, room);
    read_frames(p, room);
    if (writes && (fds[0].revents & (POLLOUT | POLLERR | POLLHUP)) != 0)
        write_some(p);
}

/* ---- its end ---- */

void hf_conform_program_close(hf_conform_program *p)
{
    if (p->fd >= 0)
        (void)close(p->fd);
    p->fd = -1;
}

void hf_conform_program_end(hf_conform_program *p)
{
    if (p->pid > 0) {
        (void)kill(-p->pid, SIGKILL);
        (void)kill(p->pid, SIGKILL); /* before it leads its session */
        while (waitpid(p->pid, &p->status, 0) < 0 && errno == EINTR)
            continue;
        p->pid = 0;
    }
    hf_conform_program_close(p);
    close_all((int[]){p->out_fd, p->err_fd}, 2);
    p->out_fd = p->err_fd = -1;
    hf_buf_done(&p->out);
    hf_buf_done(&p->err);
    hf_buf_done(&p->to_write);
    hf_frame_reader_done(&p->reader);
}

/* ---- its descriptor ---- */

/* A word of a file of its process in /proc, behind `name`; "": none. */
static void proc_word(pid_t pid, const char *file, const char *name, char out[32])
{
    char path[64], line[128];
    (void)snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
    FILE *in = fopen(path, "re");
    out[0] = '\0';
    if (in == NULL)
        return;
    while (out[0] == '\0' && fgets(line, sizeof line, in) != NULL)
        if (strncmp(line, name, strlen(name)) == 0)
            (void)snprintf(out, 32, "%.31s",
                           line + strlen(name) + strspn(line + strlen(name), " \t"));
    (void)fclose(in);
}

bool hf_conform_program_leaks(const hf_conform_program *p)
{
    char path[64], file[64], word[32];
    struct stat about;
    (void)snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)p->pid, p->number);
    if (p->pid == 0 || stat(path, &about) != 0 || about.st_ino != p->inode)
        return false;
    (void)snprintf(file, sizeof file, "task/%d/children", (int)p->pid);
    proc_word(p->pid, file, "", word);
    if (word[0] != '\0') /* a shell, perhaps, that has started the program itself */
        return false;
    (void)snprintf(file, sizeof file, "fdinfo/%d", p->number);
    proc_word(p->pid, file, "flags:", word);
    return word[0] != '\0' && (strtoul(word, NULL, 8) & O_CLOEXEC) == 0;
}
