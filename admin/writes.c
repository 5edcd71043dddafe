/* writes.c - whether a Redis takes writes. */
#include "holdfast/admin.h"

#include <stdio.h>

#include "admin/ask.h"
#include "queue/keys.h"

/* Redis refuses a SET XX of a missing key as it refuses each write. It changes nothing.
 */
hf_err hf_admin_check_writes(hf_admin *admin, const char *name,
                             char detail[HF_DETAIL_SIZE])
{
    hf_queue queue;
    char key[HF_KEY_SIZE];
    hf_admin_begin(admin, detail);
    hf_err err = hf_admin_queue(admin, name != NULL ? name : "default", &queue);
    if (err != HF_OK)
        return err;
    hf_ask ask = {.queue = &queue};
    (void)snprintf(key, sizeof key, "%sprobe", queue.prefix);
    hf_args_text(&ask.args, "SET");
    hf_args_text(&ask.args, key);
    hf_args_text(&ask.args, "1");
    hf_args_text(&ask.args, "XX");
    return hf_admin_ask(admin, &ask);
}
