/* test_child_state.c - the states of one process of a pool: each cell of the table. */
#include "worker/pool/child_state.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "tests/support/eventually.h"

enum { STOP = HF_CHILD_DO_STOP, KILL = HF_CHILD_DO_KILL };

typedef struct expected {
    hf_child_state from;
    hf_child_event event;
    hf_child_state to;
    unsigned actions;
} expected;

#define S(name) HF_CHILD_##name
#define E(name) HF_CHILD_E_##name

static const expected cells[] = {
    {S(STARTING), E(READY), S(READY), 0},
    {S(STARTING), E(STOP), S(ENDING), KILL},
    {S(STARTING), E(BROKEN), S(ENDING), KILL},
    {S(STARTING), E(LATE), S(ENDING), KILL},
    {S(STARTING), E(KILL), S(ENDING), KILL},
    {S(STARTING), E(ENDED), S(ENDED), 0},
    {S(READY), E(CANCEL), S(CANCELLING), 0},
    {S(READY), E(STOP), S(STOPPING), STOP},
    {S(READY), E(LEAVE), S(STOPPING), STOP},
    {S(READY), E(BROKEN), S(ENDING), KILL},
    {S(READY), E(LATE), S(ENDING), KILL},
    {S(READY), E(KILL), S(ENDING), KILL},
    {S(READY), E(ENDED), S(ENDED), 0},
    {S(CANCELLING), E(CANCEL), S(CANCELLING), 0},
    {S(CANCELLING), E(CANCELS_OVER), S(READY), 0},
    {S(CANCELLING), E(STOP), S(STOPPING), STOP},
    {S(CANCELLING), E(LEAVE), S(STOPPING), STOP},
    {S(CANCELLING), E(BROKEN), S(ENDING), KILL},
    {S(CANCELLING), E(LATE), S(ENDING), KILL},
    {S(CANCELLING), E(KILL), S(ENDING), KILL},
    {S(CANCELLING), E(ENDED), S(ENDED), 0},
    /* It is told once. */
    {S(STOPPING), E(CANCEL), S(STOPPING), 0},
    {S(STOPPING), E(CANCELS_OVER), S(STOPPING), 0},
    {S(STOPPING), E(STOP), S(STOPPING), 0},
    {S(STOPPING), E(LEAVE), S(STOPPING), 0},
    {S(STOPPING), E(BROKEN), S(ENDING), KILL},
    {S(STOPPING), E(LATE), S(ENDING), KILL},
    {S(STOPPING), E(KILL), S(ENDING), KILL},
    {S(STOPPING), E(ENDED), S(ENDED), 0},
};

static const expected *find(hf_child_state from, hf_child_event event)
{
    for (size_t i = 0; i < HF_COUNT(cells); i++)
        if (cells[i].from == from && cells[i].event == event)
            return &cells[i];
    return NULL;
}

/* What is not listed cannot happen: a program that has not said that it is ready has no
 * run, and one that has does not say it again (worker/pool/frame.c). */
static void each_cell_of_a_living_process_is_as_listed(void **state)
{
    (void)state;
    for (unsigned from = 0; from <= HF_CHILD_STOPPING; from++)
        for (unsigned event = 0; event < HF_CHILD_EVENTS; event++) {
            const expected *want = find(from, event);
            hf_child_cell cell = hf_child_state_cell(from, event);
            if (cell.possible != (want != NULL))
                fail_msg("%s, event %u: possible %d", hf_child_state_word(from), event,
                         cell.possible);
            if (want != NULL && (cell.next != want->to || cell.actions != want->actions))
                fail_msg("%s, event %u: to %s with %u", hf_child_state_word(from), event,
                         hf_child_state_word(cell.next), cell.actions);
        }
}

/* A kill takes a moment, in which all may come; and nothing is asked of it any more. */
static void one_that_was_killed_only_ends(void **state)
{
    (void)state;
    for (unsigned event = 0; event < HF_CHILD_EVENTS; event++) {
        hf_child_cell cell = hf_child_state_cell(HF_CHILD_ENDING, event);
        assert_true(cell.possible);
        assert_int_equal(cell.actions, 0);
        assert_int_equal(cell.next,
                         event == HF_CHILD_E_ENDED ? HF_CHILD_ENDED : HF_CHILD_ENDING);
    }
}

static void nothing_leads_out_of_the_end(void **state)
{
    (void)state;
    for (unsigned event = 0; event < HF_CHILD_EVENTS; event++) {
        hf_child_cell cell = hf_child_state_cell(HF_CHILD_ENDED, event);
        assert_int_equal(cell.possible, event != HF_CHILD_E_ENDED); /* it ends once */
        if (cell.possible) {
            assert_int_equal(cell.next, HF_CHILD_ENDED);
            assert_int_equal(cell.actions, 0);
        }
    }
}

static void a_process_never_becomes_young_again(void **state)
{
    (void)state;
    for (unsigned from = 0; from < HF_CHILD_STATES; from++)
        for (unsigned event = 0; event < HF_CHILD_EVENTS; event++) {
            hf_child_cell cell = hf_child_state_cell(from, event);
            bool back = from == HF_CHILD_CANCELLING && event == HF_CHILD_E_CANCELS_OVER;
            if (cell.possible && !back)
                assert_true(cell.next >= from);
        }
}

static void each_state_has_a_word_of_its_own(void **state)
{
    (void)state;
    for (unsigned a = 0; a < HF_CHILD_STATES; a++)
        for (unsigned b = 0; b < a; b++)
            assert_string_not_equal(hf_child_state_word(a), hf_child_state_word(b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_cell_of_a_living_process_is_as_listed),
        cmocka_unit_test(one_that_was_killed_only_ends),
        cmocka_unit_test(nothing_leads_out_of_the_end),
        cmocka_unit_test(a_process_never_becomes_young_again),
        cmocka_unit_test(each_state_has_a_word_of_its_own)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
