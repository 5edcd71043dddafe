/* futex.c - base/futex.h by the system call, for which libc has no function. */
#define _GNU_SOURCE /* NOLINT(bugprone-reserved-identifier): syscall */
#include "base/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS UINT64_C(1000000000)

_Static_assert(sizeof(atomic_uint) == sizeof(uint32_t), "what the kernel compares");

void hf_futex_wait(atomic_uint *word, unsigned seen, uint64_t ns)
{
    const struct timespec most = {.tv_sec = (time_t)(ns / SECOND_NS),
                                  .tv_nsec = (long)(ns % SECOND_NS)};
    /* The result does not matter: the caller reads the word again. */
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, &most, NULL, 0);
}

void hf_futex_wake(atomic_uint *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
