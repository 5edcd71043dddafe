/* test_sigpipe.c - writing to what was closed is only an error, and changes nothing about
 * the signal for the host. */
#include "base/fdlock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

static bool is_pending(void)
{
    sigset_t pending;
    assert_int_equal(sigpending(&pending), 0);
    return sigismember(&pending, SIGPIPE) == 1;
}

static bool is_blocked(void)
{
    sigset_t blocked;
    assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &blocked), 0);
    return sigismember(&blocked, SIGPIPE) == 1;
}

static void block(int how)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    assert_int_equal(pthread_sigmask(how, &set, NULL), 0);
}

/* A write that nobody can read, between begin and end. */
static void write_to_nobody(void)
{
    int fds[2];
    hf_sigpipe guard;
    assert_int_equal(pipe(fds), 0);
    close(fds[0]);
    hf_sigpipe_begin(&guard);
    assert_int_equal(write(fds[1], "x", 1), -1);
    int code = errno;
    hf_sigpipe_end(&guard);
    assert_int_equal(code, EPIPE);
    close(fds[1]);
}

static void a_write_to_a_closed_pipe_does_not_end_the_process(void **state)
{
    (void)state;
    struct sigaction now;
    assert_int_equal(sigaction(SIGPIPE, NULL, &now), 0);
    assert_true(now.sa_handler == SIG_DFL);
    write_to_nobody();
    assert_false(is_pending());
    assert_false(is_blocked());
}

static void a_host_that_blocks_the_signal_keeps_blocking_it(void **state)
{
    (void)state;
    block(SIG_BLOCK);
    write_to_nobody();
    assert_true(is_blocked());
    assert_false(is_pending()); /* or it would end the host when it unblocks */
    block(SIG_UNBLOCK);
}

static void a_signal_that_was_waiting_before_is_left_to_the_host(void **state)
{
    (void)state;
    block(SIG_BLOCK);
    assert_int_equal(pthread_kill(pthread_self(), SIGPIPE), 0);
    write_to_nobody();
    assert_true(is_pending());
    int taken = 0;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    assert_int_equal(sigwait(&set, &taken), 0);
    block(SIG_UNBLOCK);
}

static void a_descriptor_is_marked_close_on_exec(void **state)
{
    (void)state;
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(fcntl(fds[0], F_GETFD), 0);
    assert_true(hf_fd_cloexec(fds[0]));
    assert_int_equal(fcntl(fds[0], F_GETFD), FD_CLOEXEC);
    close(fds[0]);
    close(fds[1]);
    assert_false(hf_fd_cloexec(fds[0]));
    assert_int_equal(errno, EBADF);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_write_to_a_closed_pipe_does_not_end_the_process),
        cmocka_unit_test(a_host_that_blocks_the_signal_keeps_blocking_it),
        cmocka_unit_test(a_signal_that_was_waiting_before_is_left_to_the_host),
        cmocka_unit_test(a_descriptor_is_marked_close_on_exec),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
