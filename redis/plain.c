/* plain.c - redis/plain.h. */
#include "redis/plain.h"

#include <string.h>

#include "redis/send.h"
#include "redis/server.h"

enum { UNENDED_MS = 500 }; /* of a wait that cannot be ended */

hf_err hf_plain_time(hf_client *client, hf_answer_cb cb, void *arg)
{
    hf_args a;
    hf_args_init(&a, 1, 0);
    hf_args_text(&a, "TIME");
    return hf_send_command(client, &a, 0, cb, arg);
}

hf_err hf_plain_time_read(const hf_answer *answer, int64_t *now_ms)
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

static void on_guard(const hf_answer *answer, void *arg)
{
    (void)answer, (void)arg;
}

/* Redis, up to 8.0 at least, crashes when CLIENT UNBLOCK finds a client whose request was
 * put off by CLIENT PAUSE ... WRITE, which FAILOVER does as well. A script before it is
 * put off by the same pause, and what follows on this connection with it. */
static hf_err send_guard(hf_client *client)
{
    hf_args a;
    hf_args_init(&a, 3, 0);
    hf_args_text(&a, "EVAL");
    hf_args_text(&a, "return 0");
    hf_args_text(&a, "0");
    return hf_send_command(client, &a, 0, on_guard, NULL);
}

static bool can_unblock(const hf_client *client, const hf_client *blocked)
{
    const hf_server_info *here = hf_client_server(client);
    const hf_server_info *there = hf_client_server(blocked);
    bool same = here->run_id[0] != '\0' && strcmp(here->run_id, there->run_id) == 0;
    return same && there->client_id > 0 &&
           (hf_client_lacks(blocked) & HF_LACKS_UNBLOCK) == 0;
}

uint32_t hf_plain_wait_ms(const hf_client *client, const hf_client *blocked, uint32_t ms)
{
    return ms < UNENDED_MS || can_unblock(client, blocked) ? ms : UNENDED_MS;
}

hf_err hf_plain_unblock(hf_client *client, const hf_client *blocked, hf_answer_cb cb,
                        void *arg)
{
    hf_args a;
    int64_t id = hf_client_server(blocked)->client_id;
    if (!can_unblock(client, blocked))
        return HF_CONN;
    hf_err err = send_guard(client);
    if (err != HF_OK)
        return err;
    hf_args_init(&a, 3, 1);
    hf_args_text(&a, "CLIENT");
    hf_args_text(&a, "UNBLOCK");
    hf_args_int(&a, id);
    return hf_send_command(client, &a, 0, cb, arg);
}
