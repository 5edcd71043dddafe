/* server_clock.c - see server_clock.h. The preload is made of this file too. */
#include "tests/support/server_clock.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { MS_NS = 1000000, S_NS = 1000000000, PERMILLE = 1000 };

hf_server_clock *hf_server_clock_open(const char *path, bool make)
{
    int fd = open(path, O_RDWR | O_CLOEXEC | (make ? O_CREAT : 0), 0600);
    if (fd < 0)
        return NULL;
    void *at = MAP_FAILED;
    if (!make || ftruncate(fd, (off_t)sizeof(hf_server_clock)) == 0)
        at = mmap(NULL, sizeof(hf_server_clock), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                  0);
    (void)close(fd);
    return at == MAP_FAILED ? NULL : at;
}

void hf_server_clock_close(hf_server_clock *clock)
{
    if (clock != NULL)
        (void)munmap(clock, sizeof *clock);
}

int64_t hf_server_clock_ahead(const hf_server_clock *clock, int64_t now_ns)
{
    uint64_t number, after = atomic_load(&clock->number);
    int64_t offset_ns, from_ns, permille;
    do {
        number = after;
        const hf_server_clock_state *s = &clock->state[number % 2];
        offset_ns = atomic_load(&s->offset_ns);
        from_ns = atomic_load(&s->from_ns);
        permille = atomic_load(&s->permille);
        after = atomic_load(&clock->number);
    } while (after != number);
    return offset_ns + (now_ns - from_ns) / PERMILLE * permille;
}

static int64_t monotonic_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * S_NS + now.tv_nsec;
}

/* What the rate did until now becomes part of the offset. */
static void change(hf_server_clock *clock, int64_t by_ns, int64_t permille)
{
    const int64_t now_ns = monotonic_ns();
    const uint64_t next = atomic_load(&clock->number) + 1;
    hf_server_clock_state *s = &clock->state[next % 2];
    atomic_store(&s->offset_ns, hf_server_clock_ahead(clock, now_ns) + by_ns);
    atomic_store(&s->from_ns, now_ns);
    atomic_store(&s->permille, permille);
    atomic_store(&clock->number, next);
}

void hf_server_clock_step(hf_server_clock *clock, int64_t ms)
{
    const uint64_t number = atomic_load(&clock->number);
    change(clock, ms * MS_NS, atomic_load(&clock->state[number % 2].permille));
}

void hf_server_clock_slew(hf_server_clock *clock, int permille)
{
    const int max = HF_SERVER_CLOCK_SLEW_MAX;
    change(clock, 0, permille > max ? max : permille < -max ? -max : permille);
}

void hf_server_clock_stand(hf_server_clock *clock, int64_t unix_ms)
{
    atomic_store(&clock->stands_ns, unix_ms * MS_NS);
}
