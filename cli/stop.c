/* stop.c - see stop.h. */
#include "cli/stop.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

#include "base/base.h"

static const struct {
    int number;
    const char *name;
} signals[] = {{SIGINT, "SIGINT"}, {SIGTERM, "SIGTERM"}, {SIGHUP, "SIGHUP"}};

static struct sigaction before[HF_COUNT(signals)];
static atomic_int asked;
static int ends[2] = {-1, -1}; /* of a pipe; the handler writes to the second */

/* It may run on any thread, so a flag alone would not end a wait. */
static void on_signal(int number)
{
    int none = 0, saved = errno;
    if (atomic_compare_exchange_strong(&asked, &none, number)) {
        ssize_t n = write(ends[1], "", 1);
        (void)n; /* without a pipe a wait ends with the second signal */
    } else {
        (void)raise(number); /* another one than the first: its handler is reset, too */
    }
    errno = saved;
}

static void open_pipe(void)
{
    if (ends[0] >= 0 || pipe(ends) != 0)
        return;
    for (size_t i = 0; i < HF_COUNT(ends); i++)
        (void)fcntl(ends[i], F_SETFD, FD_CLOEXEC);
    (void)fcntl(ends[1], F_SETFL, O_NONBLOCK);
}

void hf_stop_start(void)
{
    /* Restarting: what standard output has taken of a line must not be cut. */
    struct sigaction action = {.sa_handler = on_signal,
                               .sa_flags = SA_RESTART | (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    open_pipe();
    for (size_t i = 0; i < HF_COUNT(signals); i++) {
        (void)sigaction(signals[i].number, NULL, &before[i]); /* they exist */
        if (before[i].sa_handler != SIG_IGN)
            (void)sigaction(signals[i].number, &action, NULL);
    }
}

void hf_stop_end(void)
{
    for (size_t i = 0; i < HF_COUNT(signals); i++)
        (void)sigaction(signals[i].number, &before[i], NULL);
}

int hf_stop_asked(void)
{
    return atomic_load(&asked);
}

const char *hf_stop_name(void)
{
    for (size_t i = 0; i < HF_COUNT(signals); i++)
        if (signals[i].number == hf_stop_asked())
            return signals[i].name;
    return "";
}

int hf_stop_code(int code)
{
    return hf_stop_asked() == 0 ? code : 128 + hf_stop_asked();
}

bool hf_stop_until_readable(int fd)
{
    struct pollfd fds[] = {{.fd = ends[0], .events = POLLIN},
                           {.fd = fd, .events = POLLIN}};
    /* Anything else than a byte is for the caller's read() to report. */
    while (hf_stop_asked() == 0 && poll(fds, HF_COUNT(fds), -1) < 0 && errno == EINTR)
        ;
    return hf_stop_asked() == 0;
}

bool hf_stop_pause(int ms)
{
    struct pollfd fds[] = {{.fd = ends[0], .events = POLLIN}, {.fd = STDOUT_FILENO}};
    int n = hf_stop_asked() == 0 ? poll(fds, HF_COUNT(fds), ms) : 0;
    return hf_stop_asked() == 0 && (n <= 0 || (fds[1].revents & POLLERR) == 0);
}
