/* test_limits_random.c - the liveness rule under limits, by chance: whenever a job could
 * be claimed and a live worker has a free slot, the baton is due, or such a worker has a
 * timer that is, or is about to claim.
 *
 * Workers that are only a few variables follow the rules of waking up against the real
 * scripts on a real server, in an order that is drawn: enqueues, claims, verdicts,
 * crashes, limits that change. The test computes from the keys which jobs could be
 * claimed, without the scripts. HF_SEED repeats a run. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/random.h"
#include "queue_scripts.h"
#include "tests/support/eventually.h"
#include "tests/support/queue_fixture.h"

enum {
    WORKERS = 4,
    SLOTS = 2,
    STEPS = 4000,
    RUNS = 6,
    LEASE_MS = 150,
    SLACK_MS = 20, /* a claim that got nothing asks for the next 10 ms later */
    STARTS_MAX = 20000
};

typedef struct job {
    char id[HF_ID_SIZE], fence[32];
    int64_t due_ms;
    int64_t paid_ms; /* when a claim took a token for it; 0: it was taken over */
} job;

typedef struct worker {
    char id[16];
    bool quiet;
    int64_t timer_ms; /* of a baton; 0: none */
    bool hot;         /* it is about to claim */
    bool doubt;       /* it had a second baton: its next claim promises anew */
    job jobs[SLOTS];
    size_t n;
} worker;

typedef struct model {
    hf_queue_fixture fixture;
    hf_rng rng;
    worker workers[WORKERS];
    unsigned ids, lives, started, takeovers;
    long long max_running, rate, per_ms;
    bool paused;
    int64_t rate_since_ms;
    int64_t starts[STARTS_MAX]; /* under this rate */
    size_t n_starts;
    const char *last;
} model;

static model m;

static unsigned draw(unsigned n)
{
    return (unsigned)(hf_rng_unit(&m.rng) * n);
}

static long long ask(const char *what)
{
    return hf_fixture_number(&m.fixture.redis, what);
}

/* ---- what is true, by the keys alone ---- */

static const char oracle[] =
    "local t = redis.call('TIME') local now = t[1] * 1000 + math.floor(t[2] / 1000)\n"
    "local m = redis.call('HMGET', KEYS[1], 'paused', 'max_running', 'rate_limit',\n"
    "  'rate_per', 'tokens', 'tokens_at')\n"
    "if m[1] then return 0 end\n"
    "if redis.call('ZCOUNT', KEYS[2], 0, 0) > 0 then return 1 end\n"
    "local most = tonumber(m[2] or 0)\n"
    "if most > 0 and redis.call('ZCARD', KEYS[2]) >= most then return 0 end\n"
    "local rate = tonumber(m[3] or 0)\n"
    "if rate > 0 and m[5] and\n"
    "   m[5] + (now - m[6]) * rate / tonumber(m[4]) < 1 then return 0 end\n"
    "return redis.call('ZCOUNT', KEYS[3], '-inf', now) > 0 and 1 or 0\n";

static bool claimable(void)
{
    return hf_fixture_number(&m.fixture.redis,
                             "EVAL %s 3 hf:{q}:meta hf:{q}:running hf:{q}:schedule",
                             oracle) == 1;
}

static bool can_claim(const worker *w)
{
    return !w->quiet && w->n < SLOTS;
}

static bool somebody_comes(void)
{
    int64_t now = hf_queue_fixture_now(&m.fixture);
    bool free = false;
    for (size_t i = 0; i < WORKERS; i++) {
        const worker *w = &m.workers[i];
        if (!can_claim(w))
            continue;
        free = true;
        if (w->hot || (w->timer_ms != 0 && w->timer_ms <= now))
            return true;
    }
    return !free || hf_fixture_number(&m.fixture.redis, "ZCOUNT hf:{q}:wake -inf %lld",
                                      (long long)now) == 1;
}

/* Time passes in between, so it is looked at again before it is believed. */
static void check_liveness(void)
{
    for (int tries = 0; tries < SLACK_MS; tries++) {
        if (!claimable() || somebody_comes())
            return;
        hf_test_pause_ms(1);
    }
    fail_msg("after %s: a job could be claimed, and nobody will", m.last);
}

/* ---- what workers do ---- */

static void check_limits(long long running_before, long long fresh)
{
    if (m.max_running > 0 && fresh > 0)
        assert_true(running_before + fresh <= m.max_running);
    assert_true(!m.paused || fresh == 0);
    for (long long i = 0; i < fresh && m.n_starts < STARTS_MAX; i++)
        m.starts[m.n_starts++] = m.fixture.now_ms;
    size_t in_period = 0;
    for (size_t i = m.n_starts; m.rate > 0 && i-- > 0;)
        in_period += m.starts[i] > m.fixture.now_ms - m.per_ms ? 1 : 0;
    long long burst = m.rate / 10 > 1 ? m.rate / 10 : 1;
    if (m.rate > 0)
        assert_true((long long)in_period <= m.rate + burst);
}

static void claim(worker *w, bool due)
{
    hf_claim_args args =
        hf_queue_fixture_claim_args(w->id, (uint32_t)(SLOTS - w->n), LEASE_MS);
    long long waited = ask("ZCARD hf:{q}:schedule"), ran = ask("ZCARD hf:{q}:running");
    args.slots = args.max;
    args.due = due;
    args.doubted = w->doubt;
    args.poison = 1000;
    w->hot = w->doubt = false;
    assert_int_equal(hf_queue_fixture_claim_with(&m.fixture, &args), HF_OK);
    long long fresh = waited - ask("ZCARD hf:{q}:schedule");
    check_limits(ran, fresh);
    m.started += (unsigned)fresh;
    m.takeovers += (unsigned)((long long)m.fixture.n_jobs - fresh);
    long long taken_over = (long long)m.fixture.n_jobs - fresh; /* they come first */
    for (size_t i = 0; i < m.fixture.n_jobs; i++) {
        job *j = &w->jobs[w->n++];
        (void)snprintf(j->id, sizeof j->id, "%.*s", (int)sizeof j->id - 1,
                       m.fixture.jobs[i].id);
        (void)snprintf(j->fence, sizeof j->fence, "%s", m.fixture.fence);
        j->due_ms = m.fixture.jobs[i].due_ms;
        j->paid_ms = (long long)i < taken_over ? 0 : m.fixture.now_ms;
    }
    w->hot = m.fixture.n_jobs == args.max && w->n < SLOTS;
}

/* Pops the baton, as a blocked worker is given it. */
static void wait_for_baton(worker *w)
{
    char text[64];
    (void)snprintf(text, sizeof text, "%s",
                   hf_fixture_command(&m.fixture.redis, "ZPOPMIN hf:{q}:wake"));
    char *score = strchr(text, '\n');
    if (score == NULL)
        return;
    int64_t at = (int64_t)strtod(score + 1, NULL);
    if (at <= hf_queue_fixture_now(&m.fixture))
        claim(w, true);
    else if (w->timer_ms == 0 || at < w->timer_ms)
        w->timer_ms = at;
    else
        w->doubt = w->doubt || at > w->timer_ms;
}

static void give_back(worker *w)
{
    w->timer_ms = 0;
    assert_int_equal(hf_queue_fixture_check(&m.fixture, w->id, true), HF_OK);
}

static void turn(worker *w)
{
    bool due = w->timer_ms != 0 && w->timer_ms <= hf_queue_fixture_now(&m.fixture);
    m.last = "a turn";
    if (!can_claim(w)) {
        if (due)
            give_back(w);
    } else if (due) {
        claim(w, true); /* its timer stays until the claim was sent; that is now */
        w->timer_ms = 0;
    } else if (w->hot) {
        claim(w, false);
    } else {
        wait_for_baton(w);
    }
}

/* Its token is back, so it counts for none. */
static void never_started(int64_t paid_ms)
{
    for (size_t i = m.n_starts; i-- > 0;)
        if (m.starts[i] == paid_ms) {
            m.starts[i] = 0;
            return;
        }
}

static void finish(worker *w)
{
    static const char *const names[] = {"complete", "retry", "release", "bury"};
    if (w->n == 0)
        return;
    job j = w->jobs[--w->n];
    hf_verdict_op op = draw(10) < 7 ? HF_OP_COMPLETE : (hf_verdict_op)draw(4);
    const hf_verdict_args args = {.worker = w->id, .dead_max = 100, .dead_age_ms = 1000};
    const hf_verdict_item item = {.id = j.id,
                                  .fence = j.fence,
                                  .due_ms = op == HF_OP_RETRY ? draw(30) : j.due_ms,
                                  .counts = true,
                                  .started = j.paid_ms == 0 || draw(2) == 0,
                                  .reason = "handler"};
    hf_err err = hf_queue_fixture_verdict(&m.fixture, op, &args,
                                          &item); /* its lease may have ended */
    if (op == HF_OP_RELEASE && err == HF_OK && !item.started)
        never_started(j.paid_ms);
    m.last = names[op];
    w->hot = can_claim(w);
}

static void renew_all(worker *w)
{
    for (size_t i = 0; i < w->n; i++)
        (void)hf_queue_fixture_renew(&m.fixture, w->id, w->jobs[i].id, w->jobs[i].fence,
                                     LEASE_MS);
    m.last = "a renewal";
}

/* Its jobs stay locked until their leases end. Whose timer dies with him is another
 * matter: then a check has to find it. */
static void crash(worker *w)
{
    if (w->timer_ms != 0 || w->hot || w->doubt)
        return;
    (void)snprintf(w->id, sizeof w->id, "w%u", m.lives++);
    w->n = 0;
    m.last = "a crash";
}

static void become_quiet(worker *w)
{
    w->quiet = !w->quiet;
    if (w->quiet && (w->timer_ms != 0 || w->hot))
        give_back(w);
    w->hot = !w->quiet;
    m.last = w->quiet ? "quiet" : "its end";
}

/* ---- what others do ---- */

static void enqueue(void)
{
    char id[16];
    for (unsigned n = 1 + draw(4); n > 0; n--) {
        (void)snprintf(id, sizeof id, "j%u", m.ids++);
        assert_int_equal(hf_queue_fixture_enqueue(&m.fixture, id,
                                                  draw(2) == 0 ? 0 : -(int64_t)draw(40)),
                         HF_OK);
    }
    m.last = "an enqueue";
}

static void pause_or_resume(void)
{
    m.paused = !m.paused;
    hf_fixture_command(&m.fixture.redis, "EVAL %s 1 hf:{q}: 0 %d",
                       (const char *)hf_lua_queue_pause.text, m.paused);
    m.last = hf_lua_queue_pause.name;
}

static void change_limits(void)
{
    const char *text = (const char *)hf_lua_queue_limits.text;
    if (draw(2) == 0) {
        m.max_running = draw(3) == 0 ? 0 : 1 + draw(6);
        hf_fixture_command(&m.fixture.redis, "EVAL %s 1 hf:{q}: 0 %s max_running %lld",
                           text, "", m.max_running);
    }
    if (draw(2) == 0) {
        m.rate = draw(2) == 0 ? 0 : 1 + draw(40);
        m.per_ms = 20 + draw(200);
        m.n_starts = 0;
        hf_fixture_command(&m.fixture.redis,
                           "EVAL %s 1 hf:{q}: 0 %s rate_limit %lld rate_per %lld", text,
                           "", m.rate, m.per_ms);
    }
    m.last = hf_lua_queue_limits.name;
}

static void step(void)
{
    worker *w = &m.workers[draw(WORKERS)];
    unsigned chance = draw(100);
    if (chance < 50)
        turn(w);
    else if (chance < 68)
        finish(w);
    else if (chance < 82)
        enqueue();
    else if (chance < 86)
        renew_all(w);
    else if (chance < 88)
        crash(w);
    else if (chance < 90)
        become_quiet(w);
    else if (chance < 91 || (m.paused && chance < 94))
        pause_or_resume();
    else if (chance < 95)
        change_limits();
    else
        hf_test_pause_ms(draw(8));
}

static void one_run(unsigned long long seed)
{
    memset(&m, 0, sizeof m);
    m.rng.state = seed;
    hf_queue_fixture_start(&m.fixture, NULL);
    for (size_t i = 0; i < WORKERS; i++)
        (void)snprintf(m.workers[i].id, sizeof m.workers[i].id, "w%u", m.lives++);
    for (int i = 0; i < STEPS; i++) {
        step();
        check_liveness();
    }
    print_message("seed %llu: %u jobs, %u started, %u taken over\n", seed, m.ids,
                  m.started, m.takeovers);
    assert_true(m.started > STEPS / 80); /* fewer on a busy machine */
    assert_true(m.takeovers > 0);
    hf_queue_fixture_stop(&m.fixture);
}

static void a_worker_that_could_claim_will(void **state)
{
    (void)state;
    const char *given = getenv("HF_SEED");
    uint64_t seed = given == NULL ? 0 : strtoull(given, NULL, 10);
    if (given == NULL)
        assert_int_equal(hf_random_bytes(&seed, sizeof seed), HF_OK);
    for (unsigned i = 0; i < RUNS; i++) {
        print_message("HF_SEED=%" PRIu64 "\n", seed + i);
        one_run(seed + i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_worker_that_could_claim_will)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
