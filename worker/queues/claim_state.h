/* claim_state.h - the states of a queue that a worker serves: one table of states and
 * events, without I/O. worker/queues/queues.c performs the actions.
 *
 *   IDLE --BATON--> DUE --SENT--> CLAIMING --EMPTY--> IDLE, and in all:
 *
 *                 SENT                        LOST             ASKED
 *   claimable -----------> CLAIMING -------------> IN_DOUBT --------> ASKING
 *     ^   ^  ^               |  |                                       |
 *     |   |  '---- SHARED, --'  | REFUSED                               |
 *     |   |        MORE         v                                       |
 *     |   '-- BACKOFF_OVER -- BACKING_OFF                               |
 *     '------------------------ ACCOUNTED ------------------------------'
 *
 * A due baton, or a doubt, that comes during a claim leads to one more claim after it.
 * A queue that a reload takes out goes through the LEAVING states, and FREE is next. */
#ifndef HF_WORKER_QUEUES_CLAIM_STATE_H
#define HF_WORKER_QUEUES_CLAIM_STATE_H

#include <stdbool.h>

typedef enum hf_claim_state {
    HF_Q_FREE,      /* no queue has this slot */
    HF_Q_IDLE,      /* nothing to claim: its baton tells when */
    HF_Q_CONTESTED, /* more is there, but other workers may take all of it first: claimed
                       beside others only, its baton tells */
    HF_Q_READY,     /* more is there */
    HF_Q_DUE,       /* the time of its baton has come */
    HF_Q_UNKNOWN, /* a baton may have been lost: the claim sets the next wake-up again */
    HF_Q_BACKING_OFF,      /* Redis refused a request; nothing is asked for a while */
    HF_Q_CLAIMING,         /* a claim is under way */
    HF_Q_CLAIMING_DUE,     /* and DUE comes next */
    HF_Q_CLAIMING_UNKNOWN, /* and UNKNOWN comes next */
    HF_Q_CLAIMING_BACKOFF, /* and BACKING_OFF comes next */
    HF_Q_IN_DOUBT,         /* a claim was sent, and its answer never came */
    HF_Q_ASKING,           /* Redis is asked which jobs it took */
    HF_Q_LEAVING, /* served no more; its slot is free when nothing refers to it */
    HF_Q_LEAVING_CLAIMING,
    HF_Q_LEAVING_IN_DOUBT,
    HF_Q_LEAVING_ASKING,
    HF_Q_STATES
} hf_claim_state;

typedef enum hf_queue_event {
    HF_E_SLOT_TAKEN,    /* a queue gets the slot */
    HF_E_SENT,          /* a claim was sent */
    HF_E_EMPTY,         /* it was answered, and nothing more is due */
    HF_E_SHARED,        /* more is due, but other workers may take all of it */
    HF_E_MORE,          /* more is due */
    HF_E_LOST,          /* a request (claim, asking) was sent, and never answered */
    HF_E_NOT_RUN,       /* it was not executed, which is not the queue's fault */
    HF_E_REFUSED,       /* Redis refused it because of this queue */
    HF_E_OTHER_REFUSED, /* Redis refused another request of this queue */
    HF_E_BACKOFF_OVER,  /* requests may go out again */
    HF_E_BATON,         /* a baton is due */
    HF_E_DOUBT,         /* what is known may be wrong */
    HF_E_SEEN,          /* a look found something due */
    HF_E_ASKED,         /* a request for the jobs of a lost claim was sent */
    HF_E_ACCOUNTED,     /* that is given back */
    HF_E_LEAVE,         /* a reload takes the queue out */
    HF_E_RETURN,        /* a reload brings it back */
    HF_E_FREED,         /* nothing refers to it any more */
    HF_Q_EVENTS
} hf_queue_event;

/* Actions, in the order in which they are performed. */
enum {
    HF_DO_DROP_TIMER = 1 << 0,  /* the owned baton's time is forgotten */
    HF_DO_NOTE_DOUBT = 1 << 1,  /* since when the answer is missing */
    HF_DO_NOTE_ANSWER = 1 << 2, /* it can be asked: the next backoff is a short one, and
                                   the blocking call has to name it */
    HF_DO_BACK_OFF = 1 << 3,    /* unless it backs off already */
    HF_DO_END_BACKOFF = 1 << 4,
    HF_DO_OWE =
        1 << 5, /* the baton that this worker may have, and forget what was asked */
    HF_DO_OWE_NOTHING = 1 << 6
};

typedef struct hf_claim_cell {
    bool possible; /* false: this event cannot come in this state */
    hf_claim_state next;
    unsigned actions;
} hf_claim_cell;

hf_claim_cell hf_claim_state_cell(hf_claim_state state, hf_queue_event event);

/* The meaning of a state for other parts. */
enum {
    HF_Q_CLAIMABLE = 1 << 0, /* a claim may be sent */
    HF_Q_EAGER = 1 << 1,     /* and is worth sending for its own sake */
    HF_Q_BUSY = 1 << 2,      /* the claim under way will probably bring something */
    HF_Q_UNDER_WAY = 1 << 3, /* a claim, or what happened to it, is not known yet */
    HF_Q_UNHEARD = 1 << 4,   /* the blocking call does not name it */
    HF_Q_GONE = 1 << 5,      /* a reload took it out */
    HF_Q_PATIENT = 1 << 6    /* more is there, but nothing waits for a claim */
};
bool hf_claim_state_is(hf_claim_state state, unsigned traits); /* one of them at least */

/* The baton of a queue that is leaving: this worker may have it, and gives it back. */
typedef enum hf_debt {
    HF_DEBT_NONE,
    HF_DEBT_OWED,
    HF_DEBT_GIVING,      /* a check that gives it back is under way */
    HF_DEBT_GIVING_OWED, /* and another one may have come meanwhile */
    HF_DEBTS
} hf_debt;

typedef enum hf_debt_event {
    HF_DEBT_MADE,    /* it left, or a wait that named it has ended */
    HF_DEBT_SENT,    /* a check that gives batons back */
    HF_DEBT_PAID,    /* it was answered */
    HF_DEBT_FAILED,  /* it was not */
    HF_DEBT_DROPPED, /* the queue is served again */
    HF_DEBT_EVENTS
} hf_debt_event;

/* HF_DEBTS: this cannot happen. */
hf_debt hf_claim_state_debt(hf_debt debt, hf_debt_event event);

#endif
