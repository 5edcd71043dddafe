/* order.c - see order.h. */
#include "admin/order.h"

#include <inttypes.h>
#include <stdio.h>

hf_err hf_order_begin(hf_order *order, size_t n, size_t n_numbers)
{
    hf_err err = HF_OK;
    if (order->until_ns == 0)
        order->until_ns = hf_admin_until(order->admin);
    if (!order->looks_only)
        err = hf_admin_clock(order->admin, order->queue, order->until_ns, &order->time);
    if (err == HF_OK && !hf_args_init(&order->args, n, n_numbers))
        err = hf_admin_no_memory(order->admin);
    return err;
}

void hf_order_end(hf_order *order)
{
    char word[HF_NEW_ID_SIZE] = "";
    if (!order->looks_only)
        hf_id_next(&order->admin->words, word);
    (void)snprintf(order->end, sizeof order->end, "%" PRId64 "%s%s",
                   order->time.not_after, word[0] != '\0' ? " " : "", word);
    hf_args_text(&order->args, order->end);
}

hf_err hf_order_send(hf_order *order, const hf_ask *ask)
{
    hf_ask whole = *ask;
    whole.args = &order->args;
    whole.writes = !order->looks_only;
    hf_err err = hf_admin_ask(order->admin, &whole, order->until_ns);
    hf_args_done(&order->args);
    return err;
}
