/* order.h - how a call of holdfast/admin.h changes something by a script. The request
 * carries a deadline in Redis's time; a script that runs later changes nothing. It has a
 * word of its own, too: made again after its answer was lost, it gets the first answer
 * (redis/lua/lib/requests.lua).
 *
 *     hf_order order = {.admin = admin, .queue = queue};
 *     hf_err err = hf_order_begin(&order, 2, 1);
 *     if (err != HF_OK)
 *         return err;
 *     hf_order_end(&order);
 *     hf_args_text(&order.args, id);
 *     const hf_ask ask = {.script = ..., .queue = queue, .read = ...};
 *     return hf_order_send(&order, &ask); */
#ifndef HF_ADMIN_ORDER_H
#define HF_ADMIN_ORDER_H

#include "admin/ask.h"

typedef struct hf_order {
    hf_admin *admin;
    const hf_queue *queue; /* whose Redis it is; NULL: the registry's */
    uint64_t until_ns;     /* the end of the call; 0: of one that begins now */
    bool looks_only;       /* it changes nothing and may come late: the time stays 0 */
    hf_admin_time time;
    char end[HF_NEW_ID_SIZE + 24]; /* the deadline and the word */
    hf_args args;                  /* between begin and send: the script's */
} hf_order;

/* Asks for the time and makes room for n arguments; n_numbers of them are numbers. After
 * a failure there is nothing to end. */
HF_MUSTCHECK hf_err hf_order_begin(hf_order *order, size_t n, size_t n_numbers);

/* Adds the argument `not_after` with the word of the request. */
void hf_order_end(hf_order *order);

/* Asks, with these arguments, and lets go of them. `args` and `writes` of the ask are
 * not looked at. */
HF_MUSTCHECK hf_err hf_order_send(hf_order *order, const hf_ask *ask);

#endif
