/* writes.c - whether a Redis takes writes. */
#include "holdfast/admin.h"

#include <stdio.h>

#include "admin/ask.h"
#include "queue/keys.h"

static hf_err read_nothing(const hf_answer *answer, void *out)
{
    (void)answer;
    (void)out;
    return HF_OK;
}

/* Redis refuses a SET XX of a missing key as it refuses each write. It changes nothing.
 */
hf_err hf_admin_check_writes(hf_admin *admin, const char *name,
                             char detail[HF_DETAIL_SIZE])
{
    hf_queue queue;
    hf_args args;
    char key[HF_KEY_SIZE];
    hf_admin_begin(admin, detail);
    hf_err err = hf_admin_queue(admin, name != NULL ? name : "default", &queue);
    if (err != HF_OK)
        return err;
    if (!hf_args_init(&args, 4, 0))
        return hf_admin_no_memory(admin);
    (void)snprintf(key, sizeof key, "%sprobe", queue.prefix);
    hf_args_text(&args, "SET");
    hf_args_text(&args, key);
    hf_args_text(&args, "1");
    hf_args_text(&args, "XX");
    const hf_ask ask = {.queue = &queue, .args = &args, .read = read_nothing};
    err = hf_admin_ask(admin, &ask, hf_admin_until(admin));
    hf_args_done(&args);
    return err;
}
