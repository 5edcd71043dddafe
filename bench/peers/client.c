/* client.c - the words and the clocks of the clients in C. */
#include "bench/peers/client.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/random.h"

enum { WORDS_MIN = 5, WORDS_MAX = 6, GAP_MIN_US = 2000, GAP_US = 6000 };

static const char *own_name = "peer";
static hf_rng rng;

void peer_fail(const char *why)
{
    (void)fprintf(stderr, "%s: %s\n", own_name, why);
    (void)fflush(NULL);
    _exit(1); /* other threads may still work */
}

void peer_payload(char payload[PEER_PAYLOAD + 1], uint64_t mark)
{
    (void)snprintf(payload, PEER_MARK + 1, "%0*" PRIu64, PEER_MARK, mark);
    memset(payload + PEER_MARK, 'x', PEER_PAYLOAD - PEER_MARK);
    payload[PEER_PAYLOAD] = '\0';
}

static uint64_t read_clock(clockid_t id)
{
    struct timespec now;
    (void)clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t peer_now_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t peer_wall_ns(void)
{
    return read_clock(CLOCK_REALTIME);
}

uint64_t peer_warm_up(uint64_t n)
{
    return n / 10;
}

void peer_say_rate(uint64_t n, uint64_t since_ns)
{
    double seconds = (double)(peer_now_ns() - since_ns) / 1e9;
    printf("{\"per_s\": %.1f}\n", (double)(n - peer_warm_up(n)) / seconds);
    (void)fflush(stdout);
}

void peer_say_ready(void)
{
    printf("ready\n");
    (void)fflush(stdout);
}

void peer_say_start(const void *payload, uint64_t now_ns)
{
    printf("%.*s %" PRIu64 "\n", PEER_MARK, (const char *)payload, now_ns);
    (void)fflush(stdout);
}

void peer_pause_us(uint64_t us)
{
    (void)nanosleep(&(struct timespec){.tv_sec = (time_t)(us / 1000000),
                                       .tv_nsec = (long)(us % 1000000) * 1000},
                    NULL);
}

uint64_t peer_random(uint64_t below)
{
    return (uint64_t)(hf_rng_unit(&rng) * (double)below);
}

void peer_pause_between(void)
{
    peer_pause_us(GAP_MIN_US + peer_random(GAP_US));
}

int peer_main(const peer_client *client, int argc, char **argv)
{
    const struct {
        const char *name;
        void (*run)(const peer_args *args);
    } verbs[] = {
        {"fill", client->fill}, {"drain", client->drain},     {"work", client->work},
        {"hold", client->hold}, {"trickle", client->trickle}, {"delay", client->delay},
    };
    own_name = client->name;
    if (argc < WORDS_MIN || argc > WORDS_MAX)
        peer_fail("expected VERB SOCKET JOBS MS [CONNECTIONS]");
    const peer_args args = {.server = argv[2],
                            .n = strtoull(argv[3], NULL, 10),
                            .ms = (uint32_t)strtoul(argv[4], NULL, 10),
                            .connections = argc > 5 ? strtoul(argv[5], NULL, 10) : 1};
    rng.state = peer_now_ns();
    for (size_t i = 0; i < HF_COUNT(verbs); i++) {
        if (strcmp(argv[1], verbs[i].name) != 0)
            continue;
        verbs[i].run(&args);
        return 0;
    }
    peer_fail("there is no such verb");
}
