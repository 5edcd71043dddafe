/* test_readings_directed.c - single steps of the rule, in their order. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/readings/redis.h"

enum { LEASE_MS = 10000 };

static rd_scripts scripts;
static rd_redis redis;
static rd_boot asker, holder;
static rd_reading ack;
static unsigned ack_names;

static int begin(void **state)
{
    (void)state;
    rd_token *tokens = calloc(RD_TOKENS, sizeof *tokens);
    if (tokens == NULL)
        return -1;
    scripts = (rd_scripts){.last_step = -1, .tokens = tokens};
    scripts.patience = 1000 * (rd_us)RD_S;
    redis = (rd_redis){.up = true, .wall = {1.7e15, 0, 1}};
    asker = (rd_boot){.name = 1, .rate = 1, .frozen_since = -1};
    holder = (rd_boot){.name = 2, .rate = 1, .frozen_since = -1};
    ack_names = 0;
    return 0;
}

static int end(void **state)
{
    (void)state;
    free(scripts.tokens);
    return 0;
}

static void pass_ms(int64_t ms)
{
    scripts.now += ms * RD_MS;
}

static void set_wall_ms(int64_t ms)
{
    rd_wall_set(&redis.wall, scripts.now, (double)ms * RD_MS, 1);
}

static rd_message from(const rd_boot *boot, rd_verb verb, uint64_t token)
{
    return (rd_message){.verb = verb,
                        .boot = boot,
                        .machine = boot->name,
                        .sent_us = rd_boot_us(boot, scripts.now),
                        .names = 1,
                        .token = token,
                        .owner = token,
                        .length = LEASE_MS};
}

static rd_message execute(rd_message m)
{
    rd_execute(&scripts, &redis, &m);
    return m;
}

/* The asker asks, or the answer to what it has sent comes: then it notes the reading. */
static rd_message question(void)
{
    rd_message m = from(&asker, scripts.locks ? RD_TAKE : RD_READ, 9);
    m.ack = ack;
    m.ack_names = ack_names;
    return m;
}

static void note(const rd_message *m)
{
    double noted_us = scripts.rule.broken == RD_NOTED_BEFORE
                          ? m->sent_us
                          : rd_boot_us(&asker, scripts.now);
    ack = m->reading;
    ack.boot_ms = (int64_t)ceil(noted_us / RD_MS);
    ack_names = m->ack_names;
}

static void ask(void)
{
    const rd_message m = execute(question());
    note(&m);
}

static void over(uint64_t takeovers, uint64_t early)
{
    assert_int_equal(scripts.figures.takeovers, takeovers);
    assert_int_equal(scripts.figures.early, early);
}

/* ---- the rule ---- */

/* The question is two leases under way, and the holder begins just before it comes. */
static void ask_with_a_long_delay(void)
{
    rd_message m = question();
    pass_ms(2 * LEASE_MS);
    (void)execute(from(&holder, RD_TAKE, 7));
    pass_ms(100);
    m = execute(m);
    pass_ms(1);
    note(&m);
    ask();
}

static void the_boot_time_of_a_reading_is_noted_after_its_answer(void **state)
{
    (void)state;
    ask_with_a_long_delay();
    over(0, 0);
    pass_ms(LEASE_MS - 1);
    ask();
    over(0, 0);
    pass_ms(1);
    ask();
    over(1, 0);
}

static void a_boot_time_that_is_noted_before_the_question_is_noticed(void **state)
{
    (void)state;
    scripts.rule.broken = RD_NOTED_BEFORE;
    ask_with_a_long_delay();
    over(1, 1);
}

static void a_lease_that_began_a_day_ahead_is_over_in_time(void **state)
{
    (void)state;
    set_wall_ms(86400000);
    (void)execute(from(&holder, RD_TAKE, 7));
    set_wall_ms(-86400000);
    ask();
    ask();
    pass_ms(LEASE_MS);
    ask();
    over(1, 0);
}

static void a_start_ahead_that_a_reading_does_not_pass_is_noticed(void **state)
{
    (void)state;
    scripts.rule.broken = RD_STARTS_AHEAD;
    set_wall_ms(86400000);
    (void)execute(from(&holder, RD_TAKE, 7));
    set_wall_ms(-86400000);
    for (unsigned i = 0; i < 100; i++) {
        ask();
        pass_ms(LEASE_MS);
    }
    over(0, 0);
}

static void a_renewal_after_the_reading_counts_behind_it(void **state)
{
    (void)state;
    (void)execute(from(&holder, RD_TAKE, 7));
    ask();
    ask();
    set_wall_ms(-3600000);
    (void)execute(from(&holder, RD_RENEW, 7));
    pass_ms(LEASE_MS);
    (void)execute(from(&holder, RD_RENEW, 7));
    ask();
    over(0, 0);
    pass_ms(LEASE_MS);
    ask();
    over(1, 0);
}

/* The asker has read the earlier line, and its clock was ahead. */
static void an_ack_of_a_line_that_has_ended_comes_late(void)
{
    scripts.locks = true;
    set_wall_ms(3600000);
    (void)execute(from(&holder, RD_TAKE, 7));
    ask();
    (void)execute(from(&holder, RD_RELEASE, 7));
    set_wall_ms(-3599000);
    pass_ms(LEASE_MS);
    (void)execute(from(&holder, RD_TAKE, 8));
    set_wall_ms(3600000);
    (void)execute(question()); /* its answer is lost */
    ask();
}

static void a_reading_of_an_earlier_line_of_that_name_is_not_heeded(void **state)
{
    (void)state;
    an_ack_of_a_line_that_has_ended_comes_late();
    over(0, 0);
}

static void a_reading_of_an_earlier_line_that_is_heeded_is_noticed(void **state)
{
    (void)state;
    scripts.rule.broken = RD_BIRTH_IGNORED;
    an_ack_of_a_line_that_has_ended_comes_late();
    over(1, 1);
}

/* A queue loses its clock and its counter, after Redis's clock was set back. */
static void a_queue_has_a_lower_birth_than_before(void)
{
    (void)execute(from(&holder, RD_TAKE, 7));
    ask();
    ask();
    set_wall_ms(-3600000);
    rd_lose_clock(&scripts, &redis);
    pass_ms(LEASE_MS);
    (void)execute(from(&holder, RD_RENEW, 7));
    ask();
}

static void a_reading_of_a_higher_birth_is_not_heeded(void **state)
{
    (void)state;
    a_queue_has_a_lower_birth_than_before();
    over(0, 0);
}

static void a_reading_of_a_higher_birth_that_is_heeded_is_noticed(void **state)
{
    (void)state;
    scripts.rule.broken = RD_BIRTH_ABOVE;
    a_queue_has_a_lower_birth_than_before();
    over(1, 1);
}

/* Its boot clock stands still for the asker's benefit only if the asker is paused. */
static void a_paused_asker_finds_a_lease_over_later(void **state)
{
    (void)state;
    (void)execute(from(&holder, RD_TAKE, 7));
    ask();
    ask();
    asker.frozen_since = scripts.now;
    pass_ms(LEASE_MS);
    asker.paused_us = LEASE_MS * (rd_us)RD_MS;
    asker.frozen_since = -1;
    ask();
    over(0, 0);
    pass_ms(LEASE_MS);
    ask();
    over(1, 0);
}

/* ---- what no lease can cure ---- */

static void a_renewal_that_redis_has_lost_is_counted_by_itself(void **state)
{
    (void)state;
    scripts.tokens[7] = (rd_token){.token = 7, .died = -1};
    (void)execute(from(&holder, RD_TAKE, 7));
    ask();
    ask();
    const rd_redis saved = redis;
    pass_ms(LEASE_MS - 1000);
    (void)execute(from(&holder, RD_RENEW, 7));
    redis = saved;
    pass_ms(1000);
    ask();
    over(1, 0);
    assert_int_equal(scripts.figures.early_lost, 1);
}

static void a_holder_that_was_paused_is_counted_by_itself(void **state)
{
    (void)state;
    (void)execute(from(&holder, RD_TAKE, 7));
    ask();
    ask();
    pass_ms(LEASE_MS);
    holder.paused_us = 1000 * (rd_us)RD_MS;
    ask();
    over(1, 0);
    assert_int_equal(scripts.figures.early_paused, 1);
}

/* ---- several lines ---- */

static rd_message of_lines(unsigned names, rd_message m)
{
    m.names = names;
    return m;
}

/* One number for two lines. The clock of the second is an hour ahead. */
static void read_two_lines(void)
{
    scripts.locks = true;
    (void)execute(of_lines(1, from(&holder, RD_TAKE, 7)));
    set_wall_ms(3600000);
    (void)execute(of_lines(2, from(&holder, RD_TAKE, 8)));
    const rd_message m = execute(of_lines(3, question()));
    note(&m);
    set_wall_ms(-3600000);
}

static void a_reading_of_two_lines_is_past_the_starts_of_both(void **state)
{
    (void)state;
    read_two_lines();
    pass_ms(LEASE_MS);
    (void)execute(of_lines(3, question()));
    over(2, 0);
}

static void a_reading_of_two_lines_counts_only_for_the_one_that_goes_on(void **state)
{
    (void)state;
    read_two_lines();
    (void)execute(of_lines(1, from(&holder, RD_RELEASE, 7)));
    pass_ms(LEASE_MS);
    (void)execute(of_lines(1, from(&holder, RD_TAKE, 9)));
    (void)execute(of_lines(3, question()));
    over(1, 0); /* of the second */
}

/* Each hold of an owner has its own start and its own length. */
static void the_renewals_of_one_hold_do_not_keep_another(void **state)
{
    (void)state;
    scripts.locks = true;
    rd_message one = from(&holder, RD_TAKE, 7), two = from(&holder, RD_TAKE, 8);
    two.owner = one.owner;
    two.length = 3 * LEASE_MS;
    (void)execute(one);
    (void)execute(two);
    ask();
    ask();
    pass_ms(LEASE_MS);
    (void)execute(from(&holder, RD_RENEW, 8));
    ask();
    over(1, 0);
    pass_ms(LEASE_MS);
    ask();
    over(1, 0);
    pass_ms(2 * LEASE_MS);
    ask();
    over(2, 0);
}

/* ---- an earlier boot of the same name ---- */

/* A machine starts again under the name that it had, and a request from before comes when
 * the machine has evidence of its new boot. The two times have nothing in common. */
static void a_late_request_of_an_earlier_boot_comes(void)
{
    pass_ms(3 * LEASE_MS);
    const rd_message late = question();
    asker = (rd_boot){.name = 1, .since = scripts.now, .rate = 1, .frozen_since = -1};
    (void)execute(from(&holder, RD_TAKE, 7));
    pass_ms(1000);
    ask();
    ask();
    (void)execute(late);
}

static void a_request_of_an_earlier_boot_of_that_name_finds_a_lease_over(void **state)
{
    (void)state;
    a_late_request_of_an_earlier_boot_comes();
    over(1, 1);
}

static void the_guard_knows_the_request_of_an_earlier_boot(void **state)
{
    (void)state;
    scripts.rule.guard = RD_BOTH_CLOCKS;
    a_late_request_of_an_earlier_boot_comes();
    over(0, 0);
}

/* ---- a history that is lost ---- */

/* Redis goes back to an older state, on a machine whose clock is behind. A reading of the
 * history that is lost is above the starts that come after it. */
static void a_reading_of_a_lost_history_is_told(void)
{
    (void)execute(from(&holder, RD_TAKE, 7));
    ask();
    ask();
    const rd_redis saved = redis;
    pass_ms(3000);
    const rd_message m = execute(question());
    note(&m);
    redis = saved;
    set_wall_ms(-3000);
    pass_ms(1000);
    (void)execute(from(&holder, RD_RENEW, 7));
    pass_ms(5000);
}

static void a_reading_of_a_lost_history_is_dropped(void **state)
{
    (void)state;
    a_reading_of_a_lost_history_is_told();
    ack_names = 0;
    ask();
    ask();
    pass_ms(4000);
    ask();
    over(0, 0);
}

static void a_reading_of_a_lost_history_that_is_kept_is_noticed(void **state)
{
    (void)state;
    a_reading_of_a_lost_history_is_told();
    ack_names = 0;
    rd_reading kept = ack;
    ask(); /* of another process: the clock is past the reading */
    ack = kept;
    ack_names = 1;
    ask();
    pass_ms(4000);
    ask();
    over(1, 1);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(the_boot_time_of_a_reading_is_noted_after_its_answer),
        TEST(a_boot_time_that_is_noted_before_the_question_is_noticed),
        TEST(a_lease_that_began_a_day_ahead_is_over_in_time),
        TEST(a_start_ahead_that_a_reading_does_not_pass_is_noticed),
        TEST(a_renewal_after_the_reading_counts_behind_it),
        TEST(a_reading_of_an_earlier_line_of_that_name_is_not_heeded),
        TEST(a_reading_of_an_earlier_line_that_is_heeded_is_noticed),
        TEST(a_reading_of_a_higher_birth_is_not_heeded),
        TEST(a_reading_of_a_higher_birth_that_is_heeded_is_noticed),
        TEST(a_paused_asker_finds_a_lease_over_later),
        TEST(a_reading_of_a_lost_history_is_dropped),
        TEST(a_reading_of_a_lost_history_that_is_kept_is_noticed),
        TEST(a_renewal_that_redis_has_lost_is_counted_by_itself),
        TEST(a_holder_that_was_paused_is_counted_by_itself),
        TEST(a_reading_of_two_lines_is_past_the_starts_of_both),
        TEST(a_reading_of_two_lines_counts_only_for_the_one_that_goes_on),
        TEST(the_renewals_of_one_hold_do_not_keep_another),
        TEST(a_request_of_an_earlier_boot_of_that_name_finds_a_lease_over),
        TEST(the_guard_knows_the_request_of_an_earlier_boot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
