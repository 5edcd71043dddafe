/* nemesis.c - see nemesis.h. */
#include "tests/history/nemesis.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "tests/history/line.h"
#include "tests/history/play.h"

enum {
    BETWEEN_MS = 150,
    ENDS_MS = 60000,
    CLIENTS_MAX = 64,
    AFTERMATH_MS = 2000 /* so long a deed may delay what is heard */
};

static unsigned below(hf_nemesis *n, unsigned limit)
{
    return (unsigned)(hf_rng_next(&n->rng) % limit);
}

static void pause_below(hf_nemesis *n, unsigned ms)
{
    hf_test_pause_ms(1 + below(n, ms));
}

/* ---- players ---- */

/* Every second one is behind the proxy. */
static void start(hf_nemesis *n, unsigned i)
{
    char number[16], seed[24], ms[24];
    uint64_t now_ns = hf_boot_ns();
    const char *url =
        i % 2 == 0 ? n->fixture->proxy.url : hf_fixture_url(&n->fixture->redis);
    const char *const args[] = {hf_proc_self(),
                                "play",
                                url,
                                n->fixture->dir,
                                number,
                                seed,
                                ms,
                                n->spares        ? "long"
                                : n->harms_clock ? "lines"
                                                 : "short",
                                NULL};
    n->numbers[i] = 2 + n->born++; /* 1 is the fixture's own */
    (void)snprintf(number, sizeof number, "%u", n->numbers[i]);
    (void)snprintf(seed, sizeof seed, "%" PRIu64, hf_rng_next(&n->rng) >> 1);
    (void)snprintf(ms, sizeof ms, "%" PRIu64,
                   now_ns < n->until_ns ? (n->until_ns - now_ns) / HF_MS_NS : 0);
    hf_proc_start(&n->players[i], &(hf_proc_options){.args = args});
}

static void kill_player(hf_nemesis *n)
{
    unsigned i = below(n, HF_PLAYERS);
    hf_proc_kill(&n->players[i]);
    uint64_t dead_ns = hf_boot_ns();
    int fd = hf_lines_open(n->fixture->players);
    hf_line_write(fd, "{\"t\":%" PRIu64 ",\"ev\":\"killed\",\"player\":%u}", dead_ns,
                  n->numbers[i]);
    (void)close(fd);
    start(n, i);
}

static void stop_player(hf_nemesis *n)
{
    unsigned i = below(n, HF_PLAYERS);
    hf_proc_signal(&n->players[i], SIGSTOP);
    pause_below(n, 900);
    hf_proc_signal(&n->players[i], SIGCONT);
}

/* ---- Redis ---- */

static void stop_redis(hf_nemesis *n)
{
    hf_fixture_signal(&n->fixture->redis, SIGSTOP);
    pause_below(n, 350);
    hf_fixture_signal(&n->fixture->redis, SIGCONT);
}

/* The end of a pause is by Redis's clock, which may be set meanwhile. So it is ended,
 * which only a pause of writes allows. */
static void pause_clients(hf_nemesis *n)
{
    (void)hf_fixture_command(&n->fixture->redis, "CLIENT PAUSE 60000 %s", "WRITE");
    pause_below(n, 320);
    EVENTUALLY(ENDS_MS,
               strcmp(hf_fixture_command(&n->fixture->redis, "CLIENT %s", "UNPAUSE"),
                      "OK") == 0);
}

static void flush_scripts(hf_nemesis *n)
{
    (void)hf_fixture_command(&n->fixture->redis, "SCRIPT FLUSH");
}

static void kill_clients(hf_nemesis *n)
{
    long long ids[CLIENTS_MAX];
    size_t found = 0;
    const char *at = hf_fixture_command(&n->fixture->redis, "CLIENT LIST");
    for (; (at = strstr(at, "id=")) != NULL && found < CLIENTS_MAX; at = strchr(at, '\n'))
        ids[found++] = strtoll(at + 3, NULL, 10);
    for (size_t i = 0; i < found; i++)
        if (ids[i] != n->fixture->watch.id && below(n, 3) == 0)
            (void)hf_fixture_command(&n->fixture->redis, "CLIENT KILL ID %lld SKIPME yes",
                                     ids[i]);
}

/* ---- locks ---- */

static const char *any_name(hf_nemesis *n)
{
    return hf_play_names[below(n, HF_PLAY_NAMES)];
}

static void delete_lock(hf_nemesis *n)
{
    hf_history_fixture_delete(n->fixture, any_name(n));
}

/* The next fence is the time, so it rises all the same. */
static void delete_fences(hf_nemesis *n)
{
    const char *name = any_name(n);
    char key[HF_LOCK_NAME_MAX + 32];
    (void)snprintf(key, sizeof key, "hf:lock:{%.*s}:fence", (int)strcspn(name, "/"),
                   name);
    (void)hf_fixture_command(&n->fixture->redis, "DEL %s", key);
}

static void force_lock(hf_nemesis *n)
{
    const char *name = any_name(n);
    size_t taken;
    uint64_t from = hf_boot_ns();
    (void)!hf_lock_force(n->fixture->b, name, NULL, &taken, NULL);
    hf_history_fixture_took(n->fixture, name, from, hf_boot_ns());
}

static void revoke_lock(hf_nemesis *n)
{
    size_t asked;
    (void)!hf_lock_revoke(n->fixture->b, any_name(n), NULL, &asked, NULL);
}

/* ---- the way there ---- */

static void hold_answers(hf_nemesis *n)
{
    hf_proxy_set(&n->fixture->proxy, PROXY_ANSWERS, PROXY_HOLD);
    pause_below(n, 400);
    hf_proxy_set(&n->fixture->proxy, PROXY_ANSWERS, PROXY_PASS);
}

static void hold_requests(hf_nemesis *n)
{
    hf_proxy_set(&n->fixture->proxy, PROXY_REQUESTS, PROXY_HOLD);
    pause_below(n, 400);
    hf_proxy_set(&n->fixture->proxy, PROXY_REQUESTS, PROXY_PASS);
}

static void drop_answers(hf_nemesis *n)
{
    hf_proxy_set(&n->fixture->proxy, PROXY_ANSWERS, PROXY_DROP);
    pause_below(n, 200);
    hf_proxy_close_all(&n->fixture->proxy);
    hf_proxy_set(&n->fixture->proxy, PROXY_ANSWERS, PROXY_PASS);
}

static void cut_an_answer(hf_nemesis *n)
{
    hf_proxy_cut_after(&n->fixture->proxy, PROXY_ANSWERS, 1 + below(n, 600));
}

/* ---- its clock ---- */

/* Often while a player stands still, and hears nothing of it. */
static void move_clock(hf_nemesis *n)
{
    char words[96];
    unsigned which = below(n, HF_CLOCK_HARMS), i = below(n, HF_PLAYERS);
    bool stopped = below(n, 2) == 0;
    if (stopped)
        hf_proc_signal(&n->players[i], SIGSTOP);
    hf_clock_harm(&n->fixture->redis, &n->rng, which, words, sizeof words);
    n->clock[which]++;
    if (stopped) {
        pause_below(n, 900);
        hf_proc_signal(&n->players[i], SIGCONT);
    }
}

/* The first two are done most. */
static const struct {
    const char *what;
    void (*deed)(hf_nemesis *n);
} deeds[HF_DEEDS] = {
    {"players killed", kill_player},    {"players stopped", stop_player},
    {"Redis stopped", stop_redis},      {"clients paused", pause_clients},
    {"scripts flushed", flush_scripts}, {"clients killed", kill_clients},
    {"locks deleted", delete_lock},     {"fences deleted", delete_fences},
    {"locks forced", force_lock},       {"locks revoked", revoke_lock},
    {"answers held", hold_answers},     {"requests held", hold_requests},
    {"answers dropped", drop_answers},  {"answers cut", cut_an_answer}};

/* ---- all of it ---- */

static void do_one(hf_nemesis *n)
{
    unsigned i = below(n, 3) == 0 ? below(n, 2) : below(n, HF_DEEDS);
    pause_below(n, 2 * BETWEEN_MS);
    if (n->harms_clock && below(n, 2) == 0) {
        move_clock(n);
        return;
    }
    uint64_t from = hf_boot_ns();
    deeds[i].deed(n);
    n->done[i]++;
    hf_history_fixture_disturbed(n->fixture, from,
                                 hf_boot_ns() + AFTERMATH_MS * HF_MS_NS);
}

static void play(hf_nemesis *n, hf_history_fixture *fixture, uint64_t seed, unsigned ms,
                 bool spares, bool harms_clock)
{
    const hf_test_span span = hf_test_span_begin();
    *n = (hf_nemesis){.fixture = fixture,
                      .rng = {seed},
                      .spares = spares,
                      .harms_clock = harms_clock,
                      .until_ns = hf_boot_ns() + ms * HF_MS_NS};
    for (unsigned i = 0; i < HF_PLAYERS; i++)
        start(n, i);
    while (!spares && hf_boot_ns() < n->until_ns)
        do_one(n);
    for (unsigned i = 0; i < HF_PLAYERS; i++) {
        EVENTUALLY(ENDS_MS + ms, hf_proc_wait(&n->players[i], 0));
        assert_int_equal(n->players[i].status, 0);
    }
    n->busy = hf_test_span_is_busy(span);
}

void hf_nemesis_run(hf_nemesis *n, hf_history_fixture *fixture, uint64_t seed,
                    unsigned ms)
{
    play(n, fixture, seed, ms, false, false);
}

void hf_nemesis_clock(hf_nemesis *n, hf_history_fixture *fixture, uint64_t seed,
                      unsigned ms)
{
    play(n, fixture, seed, ms, false, true);
}

void hf_nemesis_spare(hf_nemesis *n, hf_history_fixture *fixture, uint64_t seed,
                      unsigned ms)
{
    play(n, fixture, seed, ms, true, false);
}

bool hf_nemesis_enough(const hf_nemesis *n, uint64_t happened)
{
    return happened > HF_PLAYERS || n->busy;
}

void hf_nemesis_print(const hf_nemesis *n)
{
    for (int i = 0; i < HF_DEEDS; i++)
        print_message("%s%u %s", i == 0 ? "done: " : ", ", n->done[i], deeds[i].what);
    for (int i = 0; i < HF_CLOCK_HARMS; i++)
        print_message("%s%u %s", i == 0 ? "\nclock: " : ", ", n->clock[i],
                      hf_clock_harms[i]);
    print_message("\n");
}
