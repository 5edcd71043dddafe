/* test_queue_state.c - the table of a served queue: each cell, and what no path through
 * it may lose. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "worker/queues/claim_state.h"

/* A letter for each state, in their order. Small: nothing of a claim is under way. */
static const char letters[] = "FicrdubCDUHWAlLwa";

/* The state that follows; a dot: this event cannot come in this state. In the order of
 * the events: SLOT_TAKEN, SENT, EMPTY, SHARED, MORE; LOST, NOT_RUN, REFUSED,
 * OTHER_REFUSED, BACKOFF_OVER; BATON, DOUBT, SEEN; ASKED, ACCOUNTED; LEAVE, RETURN,
 * FREED. */
static const char *const rows[HF_Q_STATES] = {
    [HF_Q_FREE] = "u.... ..... ... .. ...",
    [HF_Q_IDLE] = "..... ...b. duc .. l..",
    [HF_Q_CONTESTED] = ".C... ...b. duc .. l..",
    [HF_Q_READY] = ".C... ...b. dur .. l..",
    [HF_Q_DUE] = ".C... ...b. dud .. l..",
    [HF_Q_UNKNOWN] = ".C... ...b. uuu .. l..",
    [HF_Q_BACKING_OFF] = "..... ...bu bbb .. l..",
    [HF_Q_CLAIMING] = "..icr WubH. DUC .. L..",
    [HF_Q_CLAIMING_DUE] = "..ddd WubH. DUD .. L..",
    [HF_Q_CLAIMING_UNKNOWN] = "..uuu WubH. UUU .. L..",
    [HF_Q_CLAIMING_BACKOFF] = "..bbb WbbHU HHH .. L..",
    [HF_Q_IN_DOUBT] = "..... ...WW WWW A. w..",
    [HF_Q_ASKING] = "..... WWWAA AAA .u a..",
    [HF_Q_LEAVING] = "..... ...ll ..l .. .uF",
    [HF_Q_LEAVING_CLAIMING] = "..lll wllLL ..L .. .U.",
    [HF_Q_LEAVING_IN_DOUBT] = "..... ...ww ..w a. .W.",
    [HF_Q_LEAVING_ASKING] = "..... wwwaa ..a .l .A.",
};

static void each_cell_is_as_it_is_written(void **state)
{
    (void)state;
    for (hf_claim_state s = HF_Q_FREE; s < HF_Q_STATES; s++) {
        const char *want = rows[s];
        for (hf_queue_event e = HF_E_SLOT_TAKEN; e < HF_Q_EVENTS; e++, want++) {
            const hf_claim_cell cell = hf_claim_state_cell(s, e);
            while (*want == ' ')
                want++;
            char found = cell.possible ? letters[cell.next] : '.';
            if (found != *want)
                fail_msg("state %c, event %d: %c, not %c", letters[s], (int)e, found,
                         *want);
        }
        assert_int_equal(*want, '\0');
    }
}

/* ---- actions ---- */

static bool only(const hf_claim_cell *cell, unsigned action)
{
    return (cell->actions & action) != 0;
}

static bool has_backoff(hf_queue_event e)
{
    return e == HF_E_REFUSED || e == HF_E_OTHER_REFUSED;
}

static bool is_answer(hf_queue_event e)
{
    return e == HF_E_EMPTY || e == HF_E_SHARED || e == HF_E_MORE || e == HF_E_ACCOUNTED;
}

static bool is_claiming(hf_claim_state s)
{
    return (s >= HF_Q_CLAIMING && s <= HF_Q_CLAIMING_BACKOFF) ||
           s == HF_Q_LEAVING_CLAIMING;
}

static void check_actions(hf_claim_state s, hf_queue_event e, const hf_claim_cell *cell)
{
    bool drops =
        (s == HF_Q_UNKNOWN && e == HF_E_SENT) || e == HF_E_LEAVE || e == HF_E_RETURN;
    bool ends = e == HF_E_RETURN || (s == HF_Q_ASKING && e == HF_E_ACCOUNTED);
    bool waits = s == HF_Q_BACKING_OFF || s == HF_Q_CLAIMING_BACKOFF; /* already */
    assert_int_equal(only(cell, HF_DO_DROP_TIMER), drops);
    assert_int_equal(only(cell, HF_DO_OWE), e == HF_E_LEAVE);
    assert_int_equal(only(cell, HF_DO_OWE_NOTHING), e == HF_E_RETURN);
    assert_int_equal(only(cell, HF_DO_END_BACKOFF), ends);
    assert_int_equal(only(cell, HF_DO_NOTE_ANSWER), is_answer(e));
    assert_int_equal(only(cell, HF_DO_NOTE_DOUBT), e == HF_E_LOST && is_claiming(s));
    if (!waits)
        assert_int_equal(only(cell, HF_DO_BACK_OFF), has_backoff(e));
}

static void each_action_belongs_to_its_events(void **state)
{
    (void)state;
    for (hf_claim_state s = HF_Q_FREE; s < HF_Q_STATES; s++)
        for (hf_queue_event e = HF_E_SLOT_TAKEN; e < HF_Q_EVENTS; e++) {
            const hf_claim_cell cell = hf_claim_state_cell(s, e);
            if (cell.possible)
                check_actions(s, e, &cell);
        }
}

/* ---- paths ---- */

static void every_state_is_reached_and_left(void **state)
{
    (void)state;
    bool reached[HF_Q_STATES] = {[HF_Q_FREE] = true}, more = true;
    while (more) {
        more = false;
        for (hf_claim_state s = HF_Q_FREE; s < HF_Q_STATES; s++)
            for (hf_queue_event e = HF_E_SLOT_TAKEN; reached[s] && e < HF_Q_EVENTS; e++) {
                const hf_claim_cell cell = hf_claim_state_cell(s, e);
                if (cell.possible && !reached[cell.next])
                    reached[cell.next] = more = true;
            }
    }
    for (hf_claim_state s = HF_Q_FREE; s < HF_Q_STATES; s++)
        assert_true(reached[s]);
}

/* What comes next when Redis answers everything and nothing more happens. */
static hf_claim_state next_quietly(hf_claim_state s, bool *sent)
{
    static const hf_queue_event quiet[] = {HF_E_SENT, HF_E_EMPTY, HF_E_BACKOFF_OVER,
                                           HF_E_ASKED, HF_E_ACCOUNTED};
    if (s == HF_Q_IN_DOUBT)
        return hf_claim_state_cell(s, HF_E_ASKED).next;
    if (s == HF_Q_ASKING)
        return hf_claim_state_cell(s, HF_E_ACCOUNTED).next;
    for (size_t i = 0; i < sizeof quiet / sizeof quiet[0]; i++) {
        const hf_claim_cell cell = hf_claim_state_cell(s, quiet[i]);
        if (cell.possible) {
            *sent = *sent || quiet[i] == HF_E_SENT;
            return cell.next;
        }
    }
    return s;
}

/* However the requests under way end, a claim is sent after a due baton and after a
 * doubt. */
static void no_baton_and_no_doubt_is_forgotten(void **state)
{
    (void)state;
    static const hf_queue_event wakes[] = {HF_E_BATON, HF_E_DOUBT};
    static const hf_queue_event ends[] = {HF_E_EMPTY,         HF_E_SHARED,  HF_E_MORE,
                                          HF_E_LOST,          HF_E_NOT_RUN, HF_E_REFUSED,
                                          HF_E_OTHER_REFUSED, HF_E_SEEN,    HF_E_BATON};
    for (hf_claim_state s = HF_Q_FREE; s < HF_Q_STATES; s++)
        for (size_t i = 0; i < 2 * (sizeof ends / sizeof ends[0]); i++) {
            hf_claim_cell cell = hf_claim_state_cell(s, wakes[i % 2]);
            if (!cell.possible)
                continue;
            const hf_claim_cell after = hf_claim_state_cell(cell.next, ends[i / 2]);
            hf_claim_state now = after.possible ? after.next : cell.next;
            bool sent = false;
            for (int steps = 0; steps < 6 && !sent; steps++) {
                assert_int_not_equal(now, HF_Q_IDLE);
                assert_int_not_equal(now, HF_Q_CONTESTED);
                now = next_quietly(now, &sent);
            }
            assert_true(sent);
        }
}

/* After a lost answer the queue is claimed again only when what was taken is known. */
static void a_doubt_about_a_claim_ends_by_asking_alone(void **state)
{
    (void)state;
    for (hf_queue_event e = HF_E_SLOT_TAKEN; e < HF_Q_EVENTS; e++) {
        const hf_claim_cell in_doubt = hf_claim_state_cell(HF_Q_IN_DOUBT, e);
        const hf_claim_cell asking = hf_claim_state_cell(HF_Q_ASKING, e);
        if (in_doubt.possible)
            assert_true(hf_claim_state_is(in_doubt.next, HF_Q_UNDER_WAY));
        if (asking.possible && e != HF_E_ACCOUNTED)
            assert_true(hf_claim_state_is(asking.next, HF_Q_UNDER_WAY));
    }
}

/* ---- traits ---- */

static void a_claim_is_sent_in_claimable_states_alone(void **state)
{
    (void)state;
    for (hf_claim_state s = HF_Q_FREE; s < HF_Q_STATES; s++) {
        bool sends = hf_claim_state_cell(s, HF_E_SENT).possible;
        bool ends = hf_claim_state_cell(s, HF_E_EMPTY).possible ||
                    hf_claim_state_cell(s, HF_E_ASKED).possible ||
                    hf_claim_state_cell(s, HF_E_ACCOUNTED).possible;
        bool gone = hf_claim_state_cell(s, HF_E_RETURN).possible;
        assert_int_equal(hf_claim_state_is(s, HF_Q_CLAIMABLE), sends);
        assert_int_equal(hf_claim_state_is(s, HF_Q_UNDER_WAY), ends);
        assert_int_equal(hf_claim_state_is(s, HF_Q_GONE), gone);
        if (hf_claim_state_is(s, HF_Q_EAGER))
            assert_true(hf_claim_state_is(s, HF_Q_CLAIMABLE));
        if (hf_claim_state_is(s, HF_Q_BUSY))
            assert_true(hf_claim_state_is(s, HF_Q_UNDER_WAY));
        if (hf_claim_state_is(s, HF_Q_UNHEARD))
            assert_false(hf_claim_state_is(s, HF_Q_CLAIMABLE | HF_Q_BUSY | HF_Q_GONE));
    }
}

/* ---- batons that are owed ---- */

static hf_debt after(hf_debt debt, const hf_debt_event *events, size_t n)
{
    for (size_t i = 0; i < n; i++)
        debt = hf_claim_state_debt(debt, events[i]);
    return debt;
}

#define AFTER(debt, ...)                                                                 \
    after(debt, (const hf_debt_event[]){__VA_ARGS__},                                    \
          sizeof((const hf_debt_event[]){__VA_ARGS__}) / sizeof(hf_debt_event))

static void a_baton_is_owed_until_it_was_given_back(void **state)
{
    (void)state;
    const hf_debt none = HF_DEBT_NONE;
    for (hf_debt d = none; d < HF_DEBTS; d++)
        assert_int_equal(hf_claim_state_debt(d, HF_DEBT_DROPPED), none);
    assert_int_equal(AFTER(none, HF_DEBT_SENT, HF_DEBT_PAID), none);
    assert_int_equal(AFTER(none, HF_DEBT_SENT, HF_DEBT_FAILED), none);
    assert_int_equal(AFTER(none, HF_DEBT_MADE, HF_DEBT_MADE), HF_DEBT_OWED);
    assert_int_equal(AFTER(none, HF_DEBT_MADE, HF_DEBT_SENT), HF_DEBT_GIVING);
    assert_int_equal(AFTER(none, HF_DEBT_MADE, HF_DEBT_SENT, HF_DEBT_PAID), none);
    assert_int_equal(AFTER(none, HF_DEBT_MADE, HF_DEBT_SENT, HF_DEBT_FAILED),
                     HF_DEBT_OWED);
}

/* The check that is under way has left without it. */
static void a_baton_that_comes_while_one_is_given_back_is_owed(void **state)
{
    (void)state;
    const hf_debt twice = AFTER(HF_DEBT_GIVING, HF_DEBT_MADE);
    assert_int_equal(twice, HF_DEBT_GIVING_OWED);
    assert_int_equal(hf_claim_state_debt(twice, HF_DEBT_MADE), twice);
    assert_int_equal(hf_claim_state_debt(twice, HF_DEBT_PAID), HF_DEBT_OWED);
    assert_int_equal(hf_claim_state_debt(twice, HF_DEBT_FAILED), HF_DEBT_OWED);
    /* One check at a time; an answer may be that of an earlier life of the queue. */
    assert_int_equal(hf_claim_state_debt(HF_DEBT_GIVING, HF_DEBT_SENT), HF_DEBTS);
    assert_int_equal(hf_claim_state_debt(twice, HF_DEBT_SENT), HF_DEBTS);
    assert_int_equal(hf_claim_state_debt(HF_DEBT_OWED, HF_DEBT_PAID), HF_DEBT_OWED);
    assert_int_equal(hf_claim_state_debt(HF_DEBT_OWED, HF_DEBT_FAILED), HF_DEBT_OWED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_cell_is_as_it_is_written),
        cmocka_unit_test(each_action_belongs_to_its_events),
        cmocka_unit_test(every_state_is_reached_and_left),
        cmocka_unit_test(no_baton_and_no_doubt_is_forgotten),
        cmocka_unit_test(a_doubt_about_a_claim_ends_by_asking_alone),
        cmocka_unit_test(a_claim_is_sent_in_claimable_states_alone),
        cmocka_unit_test(a_baton_is_owed_until_it_was_given_back),
        cmocka_unit_test(a_baton_that_comes_while_one_is_given_back_is_owed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
