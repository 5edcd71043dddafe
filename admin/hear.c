/* hear.c - see hear.h. */
#include "admin/hear.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/id.h"
#include "queue/keys.h"
#include "redis/send.h"

enum {
    LISTEN_MS = 10000, /* one wait */
    MARGIN_MS = 1000,  /* for the answer to a wait that ended */
    REST_MS = 1000     /* after a refusal */
};

typedef struct channel {
    struct channel *next;
    hf_admin *admin;
    hf_queue queue;
    hf_server *redis;  /* shared */
    hf_client *client; /* owned */
    bool listens;      /* a wait is under way */
    uint64_t rest_ns;  /* nothing is listened to before */
} channel;

typedef struct hf_hearing {
    hf_told_fn told;
    void *arg;
    char client[HF_NEW_ID_SIZE];
    channel *channels;     /* owned */
    hf_run_waiter *waiter; /* of the wait under way; or NULL */
    bool heard;            /* since the last wait */
    uv_async_t wakeup;
} hf_hearing;

static void end_wait(hf_hearing *h, hf_admin *admin)
{
    hf_run_waiter *waiter = h->waiter;
    h->heard = true;
    h->waiter = NULL;
    if (waiter != NULL)
        hf_run_loop_done(&admin->run, waiter);
}

/* ---- one channel ---- */

static void listen_to(channel *c);

static void on_told(const hf_answer *answer, void *arg)
{
    channel *c = arg;
    hf_hearing *h = c->admin->hearing;
    c->listens = false;
    if (answer->err != HF_OK) {
        c->rest_ns = hf_boot_ns() + REST_MS * HF_MS_NS;
        return;
    }
    if (hf_reply_len(answer->reply) == 2) {
        h->told(&c->queue, hf_reply_text(hf_reply_at(answer->reply, 1)), h->arg);
        end_wait(h, c->admin);
    }
    listen_to(c);
}

static void listen_to(channel *c)
{
    hf_args args;
    char key[HF_KEY_SIZE];
    if (c->listens || !hf_client_ready(c->client) || hf_boot_ns() < c->rest_ns ||
        !hf_args_init(&args, 3, 1))
        return;
    hf_key_told(key, &c->queue, c->admin->hearing->client);
    hf_args_text(&args, "BLPOP");
    hf_args_text(&args, key);
    hf_args_int(&args, LISTEN_MS / 1000);
    c->listens =
        hf_send_command(c->client, &args, LISTEN_MS + MARGIN_MS, on_told, c) == HF_OK;
}

/* It may have missed a hint: the listener looks. */
static void on_event(hf_client *client, hf_err err, const char *detail, void *arg)
{
    channel *c = arg;
    (void)client, (void)detail;
    if (err != HF_OK)
        return;
    listen_to(c);
    end_wait(c->admin->hearing, c->admin);
}

static channel *open_channel(hf_admin *admin, const hf_queue *queue)
{
    hf_server *redis = hf_admin_server_of(admin, queue);
    if (redis == NULL)
        return NULL;
    channel *c = calloc(1, sizeof *c);
    if (c == NULL) {
        hf_server_close(redis);
        return NULL;
    }
    c->admin = admin;
    c->queue = *queue;
    c->redis = redis;
    const hf_client_opts opts = {.loop = admin->run.uv,
                                 .redis = redis,
                                 .blocks = true,
                                 .on_event = on_event,
                                 .arg = c};
    if (hf_client_open(&c->client, &opts, NULL) != HF_OK) {
        hf_server_close(redis);
        free(c);
        return NULL;
    }
    c->next = admin->hearing->channels;
    admin->hearing->channels = c;
    return c;
}

static void on_closed(void *arg)
{
    channel *c = arg;
    hf_server_close(c->redis);
    free(c);
}

static channel **find(hf_admin *admin, const hf_queue *queue)
{
    channel **at = &admin->hearing->channels;
    while (*at != NULL && strcmp((*at)->queue.prefix, queue->prefix) != 0)
        at = &(*at)->next;
    return at;
}

void hf_hearing_drop(hf_admin *admin, const hf_queue *queue)
{
    channel **at = find(admin, queue), *c = *at;
    if (c == NULL)
        return;
    *at = c->next;
    hf_client_close(c->client, on_closed, c);
}

/* A queue may have moved to another node of a cluster. */
bool hf_hearing_has(hf_admin *admin, const hf_queue *queue)
{
    channel *c = *find(admin, queue);
    hf_server *redis = hf_admin_server_of(admin, queue);
    if (c != NULL && redis != NULL && c->redis != redis) {
        hf_hearing_drop(admin, queue);
        c = NULL;
    }
    hf_server_close(redis);
    if (c == NULL)
        c = open_channel(admin, queue);
    if (c == NULL)
        return false;
    listen_to(c);
    return c->listens;
}

/* ---- all of them ---- */

static void on_wakeup(uv_async_t *wakeup)
{
    hf_admin *admin = wakeup->data;
    end_wait(admin->hearing, admin);
}

hf_err hf_hearing_open(hf_admin *admin, hf_told_fn told, void *arg)
{
    hf_id_maker ids;
    hf_hearing *h = calloc(1, sizeof *h);
    if (h == NULL)
        return HF_NOMEM;
    h->told = told;
    h->arg = arg;
    hf_err err = hf_id_maker_init(&ids);
    if (err == HF_OK && uv_async_init(admin->run.uv, &h->wakeup, on_wakeup) != 0)
        err = HF_SYSTEM;
    if (err != HF_OK) {
        free(h);
        return err;
    }
    hf_id_next(&ids, h->client);
    h->wakeup.data = admin;
    admin->hearing = h;
    return HF_OK;
}

static void on_wakeup_closed(uv_handle_t *handle)
{
    free(HF_CONTAINER((uv_async_t *)handle, hf_hearing, wakeup));
}

void hf_hearing_close(hf_admin *admin)
{
    hf_hearing *h = admin->hearing;
    if (h == NULL)
        return;
    while (h->channels != NULL)
        hf_hearing_drop(admin, &h->channels->queue);
    admin->hearing = NULL;
    uv_close((uv_handle_t *)&h->wakeup, on_wakeup_closed);
}

const char *hf_hearing_client(const hf_admin *admin)
{
    return admin->hearing->client;
}

void hf_hearing_wait(hf_admin *admin, uint64_t until_ns)
{
    hf_hearing *h = admin->hearing;
    hf_run_waiter waiter = {.submits = true};
    if (!h->heard) {
        h->waiter = &waiter;
        (void)hf_run_loop_await(&admin->run, &waiter, until_ns);
        h->waiter = NULL;
    }
    h->heard = false;
}

void hf_hearing_wake(hf_admin *admin)
{
    (void)uv_async_send(&admin->hearing->wakeup);
}
