/* claim_state.c - the table of worker/queues/claim_state.h. An empty cell cannot be
 * reached. */
#include "worker/queues/claim_state.h"

#include "base/base.h"

#define TO(state, does)                                                                  \
    {                                                                                    \
        .possible = true, .next = HF_Q_##state, .actions = (does)                        \
    }
#define STAY(state) TO(state, 0)

enum {
    ANSWERED = HF_DO_NOTE_ANSWER,
    LEAVES = HF_DO_DROP_TIMER | HF_DO_OWE,
    RETURNS = HF_DO_DROP_TIMER | HF_DO_END_BACKOFF | HF_DO_OWE_NOTHING
};

/* In each state of a queue that is served and has no request under way. */
#define WHILE_SERVED                                                                     \
    [HF_E_OTHER_REFUSED] = TO(BACKING_OFF, HF_DO_BACK_OFF),                              \
    [HF_E_DOUBT] = STAY(UNKNOWN), [HF_E_LEAVE] = TO(LEAVING, LEAVES)

/* The answers to a claim, and the states that follow. */
#define ANSWERS(empty, shared, more)                                                     \
    [HF_E_EMPTY] = TO(empty, ANSWERED), [HF_E_SHARED] = TO(shared, ANSWERED),            \
    [HF_E_MORE] = TO(more, ANSWERED), [HF_E_LOST] = TO(IN_DOUBT, HF_DO_NOTE_DOUBT),      \
    [HF_E_REFUSED] = TO(BACKING_OFF, HF_DO_BACK_OFF)

static const hf_claim_cell table[HF_Q_STATES][HF_Q_EVENTS] = {
    [HF_Q_FREE] = {[HF_E_SLOT_TAKEN] = STAY(UNKNOWN)},
    [HF_Q_IDLE] = {WHILE_SERVED, [HF_E_BATON] = STAY(DUE), [HF_E_SEEN] = STAY(CONTESTED)},
    [HF_Q_CONTESTED] = {WHILE_SERVED, [HF_E_SENT] = STAY(CLAIMING),
                        [HF_E_BATON] = STAY(DUE), [HF_E_SEEN] = STAY(CONTESTED)},
    [HF_Q_READY] = {WHILE_SERVED, [HF_E_SENT] = STAY(CLAIMING), [HF_E_BATON] = STAY(DUE),
                    [HF_E_SEEN] = STAY(READY)},
    [HF_Q_DUE] = {WHILE_SERVED, [HF_E_SENT] = STAY(CLAIMING), [HF_E_BATON] = STAY(DUE),
                  [HF_E_SEEN] = STAY(DUE)},
    /* This claim sets the next wake-up again, and puts a new baton. Any other claim
     * leaves one that is yet to come, unless no job is left, and then the timer has to
     * stay: no other worker would come at its time. */
    [HF_Q_UNKNOWN] = {WHILE_SERVED, [HF_E_SENT] = TO(CLAIMING, HF_DO_DROP_TIMER),
                      [HF_E_BATON] = STAY(UNKNOWN), [HF_E_SEEN] = STAY(UNKNOWN)},
    /* Batons that come in between are forgotten, so the claim after it sets the next
     * wake-up again. */
    [HF_Q_BACKING_OFF] = {[HF_E_OTHER_REFUSED] = STAY(BACKING_OFF),
                          [HF_E_BACKOFF_OVER] = STAY(UNKNOWN),
                          [HF_E_BATON] = STAY(BACKING_OFF),
                          [HF_E_DOUBT] = STAY(BACKING_OFF),
                          [HF_E_SEEN] = STAY(BACKING_OFF),
                          [HF_E_LEAVE] = TO(LEAVING, LEAVES)},
    [HF_Q_CLAIMING] =
        {ANSWERS(IDLE, CONTESTED, READY), [HF_E_NOT_RUN] = STAY(UNKNOWN),
         [HF_E_OTHER_REFUSED] = TO(CLAIMING_BACKOFF, HF_DO_BACK_OFF),
         [HF_E_BATON] = STAY(CLAIMING_DUE), [HF_E_DOUBT] = STAY(CLAIMING_UNKNOWN),
         [HF_E_SEEN] = STAY(CLAIMING), [HF_E_LEAVE] = TO(LEAVING_CLAIMING, LEAVES)},
    [HF_Q_CLAIMING_DUE] =
        {ANSWERS(DUE, DUE, DUE), [HF_E_NOT_RUN] = STAY(UNKNOWN),
         [HF_E_OTHER_REFUSED] = TO(CLAIMING_BACKOFF, HF_DO_BACK_OFF),
         [HF_E_BATON] = STAY(CLAIMING_DUE), [HF_E_DOUBT] = STAY(CLAIMING_UNKNOWN),
         [HF_E_SEEN] = STAY(CLAIMING_DUE), [HF_E_LEAVE] = TO(LEAVING_CLAIMING, LEAVES)},
    [HF_Q_CLAIMING_UNKNOWN] =
        {ANSWERS(UNKNOWN, UNKNOWN, UNKNOWN), [HF_E_NOT_RUN] = STAY(UNKNOWN),
         [HF_E_OTHER_REFUSED] = TO(CLAIMING_BACKOFF, HF_DO_BACK_OFF),
         [HF_E_BATON] = STAY(CLAIMING_UNKNOWN), [HF_E_DOUBT] = STAY(CLAIMING_UNKNOWN),
         [HF_E_SEEN] = STAY(CLAIMING_UNKNOWN),
         [HF_E_LEAVE] = TO(LEAVING_CLAIMING, LEAVES)},
    [HF_Q_CLAIMING_BACKOFF] =
        {ANSWERS(BACKING_OFF, BACKING_OFF, BACKING_OFF),
         [HF_E_NOT_RUN] = STAY(BACKING_OFF),
         [HF_E_OTHER_REFUSED] = STAY(CLAIMING_BACKOFF),
         [HF_E_BACKOFF_OVER] = STAY(CLAIMING_UNKNOWN),
         [HF_E_BATON] = STAY(CLAIMING_BACKOFF), [HF_E_DOUBT] = STAY(CLAIMING_BACKOFF),
         [HF_E_SEEN] = STAY(CLAIMING_BACKOFF),
         [HF_E_LEAVE] = TO(LEAVING_CLAIMING, LEAVES)},
    /* Redis is asked once the lost claim cannot be executed any more. */
    [HF_Q_IN_DOUBT] = {[HF_E_OTHER_REFUSED] = TO(IN_DOUBT, HF_DO_BACK_OFF),
                       [HF_E_BACKOFF_OVER] = STAY(IN_DOUBT),
                       [HF_E_BATON] = STAY(IN_DOUBT),
                       [HF_E_DOUBT] = STAY(IN_DOUBT),
                       [HF_E_SEEN] = STAY(IN_DOUBT),
                       [HF_E_ASKED] = STAY(ASKING),
                       [HF_E_LEAVE] = TO(LEAVING_IN_DOUBT, LEAVES)},
    [HF_Q_ASKING] = {[HF_E_LOST] = STAY(IN_DOUBT),
                     [HF_E_NOT_RUN] = STAY(IN_DOUBT),
                     [HF_E_REFUSED] = TO(IN_DOUBT, HF_DO_BACK_OFF),
                     [HF_E_OTHER_REFUSED] = TO(ASKING, HF_DO_BACK_OFF),
                     [HF_E_BACKOFF_OVER] = STAY(ASKING),
                     [HF_E_BATON] = STAY(ASKING),
                     [HF_E_DOUBT] = STAY(ASKING),
                     [HF_E_SEEN] = STAY(ASKING),
                     [HF_E_ACCOUNTED] = TO(UNKNOWN, ANSWERED | HF_DO_END_BACKOFF),
                     [HF_E_LEAVE] = TO(LEAVING_ASKING, LEAVES)},
    [HF_Q_LEAVING] = {[HF_E_OTHER_REFUSED] = TO(LEAVING, HF_DO_BACK_OFF),
                      [HF_E_BACKOFF_OVER] = STAY(LEAVING),
                      [HF_E_SEEN] = STAY(LEAVING),
                      [HF_E_RETURN] = TO(UNKNOWN, RETURNS),
                      [HF_E_FREED] = STAY(FREE)},
    [HF_Q_LEAVING_CLAIMING] = {[HF_E_EMPTY] = TO(LEAVING, ANSWERED),
                               [HF_E_SHARED] = TO(LEAVING, ANSWERED),
                               [HF_E_MORE] = TO(LEAVING, ANSWERED),
                               [HF_E_LOST] = TO(LEAVING_IN_DOUBT, HF_DO_NOTE_DOUBT),
                               [HF_E_NOT_RUN] = STAY(LEAVING),
                               [HF_E_REFUSED] = TO(LEAVING, HF_DO_BACK_OFF),
                               [HF_E_OTHER_REFUSED] =
                                   TO(LEAVING_CLAIMING, HF_DO_BACK_OFF),
                               [HF_E_BACKOFF_OVER] = STAY(LEAVING_CLAIMING),
                               [HF_E_SEEN] = STAY(LEAVING_CLAIMING),
                               [HF_E_RETURN] = TO(CLAIMING_UNKNOWN, RETURNS)},
    [HF_Q_LEAVING_IN_DOUBT] = {[HF_E_OTHER_REFUSED] =
                                   TO(LEAVING_IN_DOUBT, HF_DO_BACK_OFF),
                               [HF_E_BACKOFF_OVER] = STAY(LEAVING_IN_DOUBT),
                               [HF_E_SEEN] = STAY(LEAVING_IN_DOUBT),
                               [HF_E_ASKED] = STAY(LEAVING_ASKING),
                               [HF_E_RETURN] = TO(IN_DOUBT, RETURNS)},
    [HF_Q_LEAVING_ASKING] = {[HF_E_LOST] = STAY(LEAVING_IN_DOUBT),
                             [HF_E_NOT_RUN] = STAY(LEAVING_IN_DOUBT),
                             [HF_E_REFUSED] = TO(LEAVING_IN_DOUBT, HF_DO_BACK_OFF),
                             [HF_E_OTHER_REFUSED] = TO(LEAVING_ASKING, HF_DO_BACK_OFF),
                             [HF_E_BACKOFF_OVER] = STAY(LEAVING_ASKING),
                             [HF_E_SEEN] = STAY(LEAVING_ASKING),
                             [HF_E_ACCOUNTED] = TO(LEAVING, ANSWERED),
                             [HF_E_RETURN] = TO(ASKING, RETURNS)},
};

static const unsigned char traits_of[HF_Q_STATES] = {
    [HF_Q_CONTESTED] = HF_Q_CLAIMABLE | HF_Q_PATIENT,
    [HF_Q_READY] = HF_Q_CLAIMABLE | HF_Q_EAGER | HF_Q_PATIENT,
    [HF_Q_DUE] = HF_Q_CLAIMABLE | HF_Q_EAGER,
    [HF_Q_UNKNOWN] = HF_Q_CLAIMABLE | HF_Q_EAGER,
    [HF_Q_BACKING_OFF] = HF_Q_UNHEARD,
    [HF_Q_CLAIMING] = HF_Q_BUSY | HF_Q_UNDER_WAY,
    [HF_Q_CLAIMING_DUE] = HF_Q_BUSY | HF_Q_UNDER_WAY,
    [HF_Q_CLAIMING_UNKNOWN] = HF_Q_BUSY | HF_Q_UNDER_WAY,
    [HF_Q_CLAIMING_BACKOFF] = HF_Q_UNDER_WAY | HF_Q_UNHEARD,
    [HF_Q_IN_DOUBT] = HF_Q_UNDER_WAY | HF_Q_UNHEARD,
    [HF_Q_ASKING] = HF_Q_UNDER_WAY | HF_Q_UNHEARD,
    [HF_Q_LEAVING] = HF_Q_GONE,
    [HF_Q_LEAVING_CLAIMING] = HF_Q_UNDER_WAY | HF_Q_GONE,
    [HF_Q_LEAVING_IN_DOUBT] = HF_Q_UNDER_WAY | HF_Q_GONE,
    [HF_Q_LEAVING_ASKING] = HF_Q_UNDER_WAY | HF_Q_GONE,
};

hf_claim_cell hf_claim_state_cell(hf_claim_state state, hf_queue_event event)
{
    HF_ASSERT(state < HF_Q_STATES && event < HF_Q_EVENTS);
    return table[state][event];
}

bool hf_claim_state_is(hf_claim_state state, unsigned traits)
{
    return (traits_of[state] & traits) != 0;
}

hf_debt hf_claim_state_debt(hf_debt debt, hf_debt_event event)
{
    static const unsigned char next[HF_DEBTS][HF_DEBT_EVENTS] = {
        /* MADE, SENT, PAID, FAILED, DROPPED */
        [HF_DEBT_NONE] = {HF_DEBT_OWED, HF_DEBT_NONE, HF_DEBT_NONE, HF_DEBT_NONE,
                          HF_DEBT_NONE},
        [HF_DEBT_OWED] = {HF_DEBT_OWED, HF_DEBT_GIVING, HF_DEBT_OWED, HF_DEBT_OWED,
                          HF_DEBT_NONE},
        [HF_DEBT_GIVING] = {HF_DEBT_GIVING_OWED, HF_DEBTS, HF_DEBT_NONE, HF_DEBT_OWED,
                            HF_DEBT_NONE},
        [HF_DEBT_GIVING_OWED] = {HF_DEBT_GIVING_OWED, HF_DEBTS, HF_DEBT_OWED,
                                 HF_DEBT_OWED, HF_DEBT_NONE},
    };
    HF_ASSERT(debt < HF_DEBTS && event < HF_DEBT_EVENTS);
    return (hf_debt)next[debt][event];
}
