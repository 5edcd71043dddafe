/* child_state.c - the table of worker/pool/child_state.h. An empty cell cannot be
 * reached. */
#include "worker/pool/child_state.h"

#include "base/base.h"

#define TO(state, does)                                                                  \
    {                                                                                    \
        .possible = true, .next = HF_CHILD_##state, .actions = (does)                    \
    }
#define STAY(state) TO(state, 0)

/* In each state of a process that lives and was not killed. */
#define WHILE_ALIVE                                                                      \
    [HF_CHILD_E_BROKEN] = TO(ENDING, HF_CHILD_DO_KILL),                                  \
    [HF_CHILD_E_LATE] = TO(ENDING, HF_CHILD_DO_KILL),                                    \
    [HF_CHILD_E_KILL] = TO(ENDING, HF_CHILD_DO_KILL), [HF_CHILD_E_ENDED] = STAY(ENDED)

static const hf_child_cell table[HF_CHILD_STATES][HF_CHILD_EVENTS] = {
    /* It has nothing to finish. */
    [HF_CHILD_STARTING] = {WHILE_ALIVE, [HF_CHILD_E_READY] = STAY(READY),
                           [HF_CHILD_E_STOP] = TO(ENDING, HF_CHILD_DO_KILL)},
    [HF_CHILD_READY] = {WHILE_ALIVE, [HF_CHILD_E_CANCEL] = STAY(CANCELLING),
                        [HF_CHILD_E_STOP] = TO(STOPPING, HF_CHILD_DO_STOP),
                        [HF_CHILD_E_LEAVE] = TO(STOPPING, HF_CHILD_DO_STOP)},
    [HF_CHILD_CANCELLING] = {WHILE_ALIVE, [HF_CHILD_E_CANCEL] = STAY(CANCELLING),
                             [HF_CHILD_E_CANCELS_OVER] = STAY(READY),
                             [HF_CHILD_E_STOP] = TO(STOPPING, HF_CHILD_DO_STOP),
                             [HF_CHILD_E_LEAVE] = TO(STOPPING, HF_CHILD_DO_STOP)},
    [HF_CHILD_STOPPING] =
        {WHILE_ALIVE, [HF_CHILD_E_CANCEL] = STAY(STOPPING),
         [HF_CHILD_E_CANCELS_OVER] = STAY(STOPPING), [HF_CHILD_E_STOP] = STAY(STOPPING),
         [HF_CHILD_E_LEAVE] = STAY(STOPPING)},
    /* Verdicts that it wrote before still come. */
    [HF_CHILD_ENDING] = {[HF_CHILD_E_CANCEL] = STAY(ENDING),
                         [HF_CHILD_E_CANCELS_OVER] = STAY(ENDING),
                         [HF_CHILD_E_READY] = STAY(ENDING),
                         [HF_CHILD_E_STOP] = STAY(ENDING),
                         [HF_CHILD_E_LEAVE] = STAY(ENDING),
                         [HF_CHILD_E_BROKEN] = STAY(ENDING),
                         [HF_CHILD_E_LATE] = STAY(ENDING),
                         [HF_CHILD_E_KILL] = STAY(ENDING),
                         [HF_CHILD_E_ENDED] = STAY(ENDED)},
    [HF_CHILD_ENDED] = {[HF_CHILD_E_CANCEL] = STAY(ENDED),
                        [HF_CHILD_E_CANCELS_OVER] = STAY(ENDED),
                        [HF_CHILD_E_READY] = STAY(ENDED),
                        [HF_CHILD_E_STOP] = STAY(ENDED),
                        [HF_CHILD_E_LEAVE] = STAY(ENDED),
                        [HF_CHILD_E_BROKEN] = STAY(ENDED),
                        [HF_CHILD_E_LATE] = STAY(ENDED),
                        [HF_CHILD_E_KILL] = STAY(ENDED)},
};

hf_child_cell hf_child_state_cell(hf_child_state state, hf_child_event event)
{
    HF_ASSERT(state < HF_CHILD_STATES && event < HF_CHILD_EVENTS);
    return table[state][event];
}

const char *hf_child_state_word(hf_child_state state)
{
    static const char *const words[HF_CHILD_STATES] = {
        [HF_CHILD_STARTING] = "starting",     [HF_CHILD_READY] = "ready",
        [HF_CHILD_CANCELLING] = "cancelling", [HF_CHILD_STOPPING] = "stopping",
        [HF_CHILD_ENDING] = "ending",         [HF_CHILD_ENDED] = "ended",
    };
    return words[state];
}
