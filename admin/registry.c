/* registry.c - see registry.h. */
#include "admin/registry.h"

#include "base/id.h"
#include "queue/keys.h"
#include "queue_scripts.h"

typedef struct members {
    hf_names *names;
    bool valid; /* those that a call can use, or the others */
} members;

static hf_err read_members(const hf_answer *answer, void *out)
{
    const members *m = out;
    if (!hf_reply_is_array(answer->reply))
        return HF_PROTO;
    for (size_t i = 0; i < hf_reply_len(answer->reply); i++) {
        const hf_reply *name = hf_reply_at(answer->reply, i);
        hf_bytes bytes = hf_reply_bytes(name);
        if (hf_name_ok_n(bytes.ptr, bytes.len) == m->valid)
            hf_names_add(m->names, hf_reply_text(name));
    }
    return HF_OK;
}

hf_err hf_registry_names(hf_admin *admin, bool valid, hf_names *names)
{
    char key[HF_KEY_SIZE];
    members m = {names, valid};
    hf_ask ask = {.read = read_members, .out = &m};
    hf_key_queues(key, admin->ns);
    hf_args_text(&ask.args, "SMEMBERS");
    hf_args_text(&ask.args, key);
    return hf_admin_ask(admin, &ask);
}

hf_err hf_admin_queues(hf_admin *admin, char ***out, size_t *n,
                       char detail[HF_DETAIL_SIZE])
{
    hf_names names;
    hf_admin_begin(admin, detail);
    hf_names_init(&names);
    hf_err err = hf_registry_names(admin, true, &names);
    if (err != HF_OK) {
        hf_names_done(&names);
        return err;
    }
    err = hf_names_take(&names, out, n);
    return err == HF_OK ? err : hf_admin_fail(admin, err, "%s", hf_err_text(err));
}

hf_err hf_registry_add(hf_admin *admin, const hf_queue *queue)
{
    hf_ask ask = {.script = &hf_lua_queue_register};
    hf_args_text(&ask.args, queue->name);
    return hf_admin_ask(admin, &ask);
}
