/* child_state.h - the states of one process of a pool: a table of states and events,
 * without I/O. worker/pool/child.c performs the actions.
 *
 *               READY           CANCEL
 *   STARTING ----------> READY ----------> CANCELLING
 *      |                 |   ^---------------'   |
 *      |                 |      CANCELS_OVER     |
 *      |                 | STOP, LEAVE           | STOP, LEAVE
 *      | STOP, LATE,     v                       v
 *      | BROKEN       STOPPING <-----------------'
 *      v                 |
 *   ENDING <-------------' BROKEN, LATE, KILL from each of them
 *      |
 *      | ENDED from each of them
 *      v
 *    ENDED */
#ifndef HF_WORKER_POOL_CHILD_STATE_H
#define HF_WORKER_POOL_CHILD_STATE_H

#include <stdbool.h>

typedef enum hf_child_state {
    HF_CHILD_STARTING,   /* it was executed, and has not said that it is ready */
    HF_CHILD_READY,      /* it takes jobs */
    HF_CHILD_CANCELLING, /* it was asked to end a run: no job is sent before the verdict
                          */
    HF_CHILD_STOPPING,   /* it was told to stop: it finishes its runs, and exits */
    HF_CHILD_ENDING,     /* it was killed, and has not ended yet */
    HF_CHILD_ENDED,      /* its leader has ended */
    HF_CHILD_STATES
} hf_child_state;

typedef enum hf_child_event {
    HF_CHILD_E_READY,  /* it says that it is ready, and what it offers is accepted */
    HF_CHILD_E_CANCEL, /* one of its runs must end */
    HF_CHILD_E_CANCELS_OVER, /* each of those has its verdict */
    HF_CHILD_E_STOP,         /* it is not wanted any more */
    HF_CHILD_E_LEAVE,        /* it wants to be replaced */
    HF_CHILD_E_BROKEN, /* it does not keep to the protocol, or what it offers is refused
                        */
    HF_CHILD_E_LATE,   /* it did not become ready, or did not exit, in its time */
    HF_CHILD_E_KILL,   /* a run, or the whole worker, cannot wait any longer */
    HF_CHILD_E_ENDED,  /* its leader has ended */
    HF_CHILD_EVENTS
} hf_child_event;

enum {
    HF_CHILD_DO_STOP = 1 << 0, /* send the frame `stop` */
    HF_CHILD_DO_KILL = 1 << 1  /* KILL to its group */
};

typedef struct hf_child_cell {
    bool possible; /* false: this event cannot come in this state */
    hf_child_state next;
    unsigned actions;
} hf_child_cell;

hf_child_cell hf_child_state_cell(hf_child_state state, hf_child_event event);

/* The word for the log. */
const char *hf_child_state_word(hf_child_state state);

#endif
