/* plain.c - the two plain commands that queues and locks both send: the end of another
 * connection's wait, and the time. */
#include <string.h>

#include "redis/send.h"

hf_err hf_redis_time(hf_client *client, hf_answer_cb cb, void *arg)
{
    hf_args a;
    if (!hf_args_init(&a, 1, 0))
        return HF_NOMEM;
    hf_args_text(&a, "TIME");
    return hf_command_send(client, &a, 0, cb, arg);
}

hf_err hf_time_read(const hf_answer *answer, int64_t *now_ms)
{
    if (answer->err != HF_OK)
        return answer->err;
    int64_t seconds = hf_reply_int(hf_reply_at(answer->reply, 0));
    int64_t micros = hf_reply_int(hf_reply_at(answer->reply, 1));
    if (hf_reply_len(answer->reply) != 2 || seconds <= 0)
        return HF_PROTO;
    *now_ms = seconds * 1000 + micros / 1000;
    return HF_OK;
}

hf_err hf_redis_unblock(hf_client *client, const hf_client *blocked, hf_answer_cb cb,
                        void *arg)
{
    hf_args a;
    const hf_server_info *here = hf_client_server(client);
    const hf_server_info *there = hf_client_server(blocked);
    int64_t id = there->client_id;
    bool same = here->run_id[0] != '\0' && strcmp(here->run_id, there->run_id) == 0;
    if (id <= 0 || !same)
        return HF_CONN;
    if (!hf_args_init(&a, 3, 1))
        return HF_NOMEM;
    hf_args_text(&a, "CLIENT");
    hf_args_text(&a, "UNBLOCK");
    hf_args_int(&a, id);
    return hf_command_send(client, &a, 0, cb, arg);
}
