/* writes.c - whether a Redis takes writes. */
#include "holdfast/admin.h"

#include <stdio.h>

#include "admin/ask.h"
#include "queue/keys.h"

/* From 7.0 on, Redis refuses a script whose first line names no flags as it refuses each
 * write. The script itself does nothing, so a user who may only read can send it. */
static hf_err try_script(hf_admin *admin, const hf_queue *queue)
{
    hf_ask ask = {.queue = queue};
    hf_args_text(&ask.args, "EVAL");
    hf_args_text(&ask.args, "#!lua\nreturn 1");
    hf_args_text(&ask.args, "0");
    return hf_admin_ask(admin, &ask);
}

/* Redis refuses a SET XX of a missing key as it refuses each write. It changes nothing.
 */
static hf_err try_set(hf_admin *admin, const hf_queue *queue)
{
    hf_ask ask = {.queue = queue};
    char key[HF_KEY_SIZE];
    (void)snprintf(key, sizeof key, "%sprobe", queue->prefix);
    hf_args_text(&ask.args, "SET");
    hf_args_text(&ask.args, key);
    hf_args_text(&ask.args, "1");
    hf_args_text(&ask.args, "XX");
    return hf_admin_ask(admin, &ask);
}

hf_err hf_admin_check_writes(hf_admin *admin, const char *name,
                             char detail[HF_DETAIL_SIZE])
{
    hf_queue queue;
    hf_admin_begin(admin, detail);
    hf_err err = hf_admin_queue(admin, name != NULL ? name : "default", &queue);
    if (err != HF_OK)
        return err;
    err = try_script(admin, &queue);
    if (err != HF_REDIS) /* before 7.0 Redis cannot compile it */
        return err;
    hf_admin_begin(admin, detail);
    return try_set(admin, &queue);
}
