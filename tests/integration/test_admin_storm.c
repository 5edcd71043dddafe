/* test_admin_storm.c - workers and administrators at the same few jobs, at random: every
 * job that was accepted ends in one way and is counted so, and the invariants hold at the
 * end. The seed is printed; HF_SEED gives another one. */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/random.h"
#include "tests/support/eventually.h"
#include "tests/support/queue_fixture.h"
#include "tests/support/seed.h"

enum { JOBS = 40, ROUNDS = 1500, ADMINS = 3, SHORT_MS = 30 };

static hf_queue_fixture fixture;
static atomic_bool over;
static uint64_t seed;

typedef struct operator_ {
    pthread_t thread;
    hf_rng rng;
    int calls, faults;
} operator_;

static uint32_t below(hf_rng *rng, uint32_t n)
{
    return (uint32_t)(hf_rng_unit(rng) * n) % n;
}

static void name(char out[8], uint32_t i)
{
    (void)snprintf(out, 8, "j%02" PRIu32, i % 100);
}

static bool expected(hf_err err)
{
    return err == HF_OK || err == HF_RUNNING || err == HF_GONE || err == HF_DEAD;
}

static hf_err act(hf_admin *admin, hf_rng *rng, char detail[HF_DETAIL_SIZE])
{
    const hf_dead_filter few = {HF_DEAD_FILTER_INIT, .limit = 1 + below(rng, 3)};
    hf_job_info info = {HF_JOB_INFO_INIT};
    hf_job_why why = {HF_JOB_WHY_INIT};
    char id[8];
    size_t n;
    name(id, below(rng, JOBS));
    switch (below(rng, 16)) {
    case 0:
        return below(rng, 8) == 0 ? hf_admin_purge(admin, "q", NULL, NULL, &n, detail)
                                  : HF_OK;
    case 1:
        return hf_admin_dead_retry(admin, "q", &few, 100, NULL, NULL, &n, detail);
    case 2:
        return hf_admin_dead_purge(admin, "q", &few, NULL, NULL, &n, detail);
    case 3:
    case 4:
        return hf_admin_delete(admin, "q", id, &info, detail);
    case 5:
    case 6:
    case 7:
        return hf_admin_retry(admin, "q", id, detail);
    case 8:
        return hf_admin_why(admin, "q", id, &why, detail);
    case 9:
    case 10:
    case 11:
        return hf_admin_cancel(admin, "q", id, &info, detail);
    default:
        hf_test_pause_ms(1);
        return HF_OK;
    }
}

static void *operate(void *arg)
{
    operator_ *o = arg;
    hf_admin *admin;
    char detail[HF_DETAIL_SIZE];
    const hf_admin_opts opts = {
        HF_ADMIN_OPTS_INIT, .server = HF_SERVER(.url = hf_fixture_url(&fixture.redis))};
    if (hf_admin_open(&admin, &opts, detail) != HF_OK) {
        o->faults++;
        return NULL;
    }
    for (; !atomic_load(&over); o->calls++) {
        hf_err err = act(admin, &o->rng, detail);
        if (!expected(err)) {
            (void)fprintf(stderr, "%s: %s\n", hf_err_name(err), detail);
            o->faults++;
        }
    }
    hf_admin_close(admin);
    return NULL;
}

/* What a worker may do with what it got: renew, any verdict, or die and say nothing. */
static void work(hf_rng *rng)
{
    static hf_queue_fixture_job jobs[4];
    const hf_verdict_args args = {
        .worker = "w", .dead_max = 1000, .dead_age_ms = 1000000};
    size_t n = hf_queue_fixture_claim(&fixture, "w", 1 + below(rng, 4),
                                      SHORT_MS + below(rng, 100));
    char fence[32];
    memcpy(fence, fixture.fence, sizeof fence);
    memcpy(jobs, fixture.jobs, n * sizeof jobs[0]);
    for (size_t i = 0; i < n; i++) {
        uint32_t what = below(rng, 6);
        const hf_verdict_item item = {.id = jobs[i].id,
                                      .fence = fence,
                                      .counts = true,
                                      .due_ms = what == HF_OP_RETRY ? below(rng, 50)
                                                                    : jobs[i].due_ms,
                                      .error = {"no", what == HF_OP_RELEASE ? 0 : 2},
                                      .reason = "attempts"};
        if (below(rng, 2) == 0)
            (void)hf_queue_fixture_renew(&fixture, "w", jobs[i].id, fence,
                                         SHORT_MS + 100);
        if (what <= HF_OP_BURY)
            (void)hf_queue_fixture_verdict(&fixture, (hf_verdict_op)what, &args, &item);
    }
}

static bool drained(hf_rng *rng)
{
    work(rng);
    return hf_fixture_number(&fixture.redis, "EXISTS hf:{q}:schedule hf:{q}:running") ==
           0;
}

static void every_job_ends_once_and_is_counted_so(void **state)
{
    operator_ operators[ADMINS];
    hf_rng rng;
    hf_queue_stats stats = {HF_QUEUE_STATS_INIT};
    hf_admin *admin;
    char detail[HF_DETAIL_SIZE];
    int calls = 0;
    (void)state;
    rng.state = seed;
    for (size_t i = 0; i < ADMINS; i++) {
        operators[i] = (operator_){.calls = 0};
        operators[i].rng.state = seed + 1 + i;
        assert_int_equal(
            pthread_create(&operators[i].thread, NULL, operate, &operators[i]), 0);
    }
    for (int i = 0; i < ROUNDS; i++) {
        char id[8];
        name(id, below(&rng, JOBS));
        hf_err err =
            hf_queue_fixture_enqueue(&fixture, id, below(&rng, 3) == 0 ? -40 : 0);
        assert_true(err == HF_OK || err == HF_EXISTS || expected(err));
        if (i % 2 == 0)
            work(&rng);
    }
    atomic_store(&over, true);
    for (size_t i = 0; i < ADMINS; i++) {
        assert_int_equal(pthread_join(operators[i].thread, NULL), 0);
        assert_int_equal(operators[i].faults, 0);
        calls += operators[i].calls;
    }
    hf_queue_fixture_audit(&fixture, false);
    EVENTUALLY(20000, drained(&rng));
    admin = hf_queue_fixture_admin(&fixture);
    assert_int_equal(hf_admin_stats(admin, "q", &stats, detail), HF_OK);
    hf_admin_close(admin);
    print_message("%d calls, %lld accepted: %lld done, %lld cancelled, %lld deleted, "
                  "%lld dead\n",
                  calls, (long long)stats.enqueued, (long long)stats.done,
                  (long long)stats.cancelled, (long long)stats.deleted,
                  (long long)stats.dead);
    assert_true(stats.done > 0 && stats.cancelled > 0 && stats.deleted > 0);
    assert_int_equal(stats.done + stats.cancelled + stats.deleted + stats.dead,
                     stats.enqueued);
    hf_queue_fixture_audit(&fixture, true);
}

static int up(void **state)
{
    seed = hf_test_seed();
    return hf_queue_fixture_up(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate_setup_teardown(every_job_ends_once_and_is_counted_so,
                                                 up, hf_queue_fixture_down, &fixture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
