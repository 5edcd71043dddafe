/* client_fixture.c - see client_fixture.h. */
#include "tests/support/client_fixture.h"

#include <stdio.h>
#include <string.h>

enum { TICK_MS = 2, WAIT_MS = 30000, WORDS_MAX = 16 };

static void on_tick(uv_timer_t *tick)
{
    (void)tick;
}

static void on_event(hf_client *client, hf_err err, const char *detail, void *arg)
{
    hf_client_fixture *fixture = arg;
    assert_ptr_equal(client, fixture->client);
    assert_false(fixture->closed);
    assert_int_equal(hf_client_ready(client), err == HF_OK);
    assert_int_equal(hf_client_status(client), err);
    if (err == HF_OK)
        fixture->ready++;
    else
        fixture->lost++;
    fixture->err = err;
    (void)snprintf(fixture->detail, sizeof fixture->detail, "%s", detail);
    if (fixture->on_event != NULL)
        fixture->on_event(fixture);
}

static void open_with(hf_client_fixture *fixture, const hf_client_opts *opts)
{
    char detail[HF_DETAIL_SIZE] = "";
    *fixture = (hf_client_fixture){.opts = *opts};
    assert_int_equal(uv_loop_init(&fixture->loop), 0);
    assert_int_equal(uv_timer_init(&fixture->loop, &fixture->tick), 0);
    assert_int_equal(uv_timer_start(&fixture->tick, on_tick, TICK_MS, TICK_MS), 0);
    fixture->opts.loop = &fixture->loop;
    fixture->opts.on_event = on_event;
    fixture->opts.arg = fixture;
    if (hf_client_open(&fixture->client, &fixture->opts, detail) != HF_OK)
        fail_msg("%s", detail);
}

static hf_server *open_server(const hf_server_opts *opts)
{
    hf_server *server;
    char detail[HF_DETAIL_SIZE] = "";
    if (hf_server_open(&server, opts, detail) != HF_OK)
        fail_msg("%s", detail);
    return server;
}

void hf_client_fixture_open_to(hf_client_fixture *fixture, const hf_server_opts *server)
{
    hf_server *redis = open_server(server);
    open_with(fixture, &(hf_client_opts){.redis = redis});
    hf_server_close(redis); /* the connection holds it */
}

void hf_client_fixture_open(hf_client_fixture *fixture, const char *url,
                            const hf_client_opts *opts)
{
    hf_client_opts all = {.redis = NULL};
    if (opts != NULL)
        all = *opts;
    hf_server *redis =
        all.redis != NULL ? NULL : open_server(&(hf_server_opts){.url = url});
    if (redis != NULL)
        all.redis = redis;
    open_with(fixture, &all);
    hf_server_close(redis);
}

void hf_client_fixture_connect(hf_client_fixture *fixture, const char *url)
{
    hf_client_fixture_open(fixture, url, NULL);
    RUN_UNTIL(fixture, WAIT_MS, fixture->ready == 1);
}

void hf_client_fixture_on_closed(void *arg)
{
    hf_client_fixture *fixture = arg;
    assert_false(fixture->closed);
    fixture->closed = true;
    fixture->client = NULL;
}

void hf_client_fixture_close(hf_client_fixture *fixture)
{
    if (fixture->client != NULL)
        hf_client_close(fixture->client, hf_client_fixture_on_closed, fixture);
    RUN_UNTIL(fixture, WAIT_MS, fixture->closed);
    uv_close((uv_handle_t *)&fixture->tick, NULL);
    assert_int_equal(uv_run(&fixture->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&fixture->loop), 0);
}

void hf_on_asked(const hf_answer *answer, void *arg)
{
    hf_asked *asked = arg;
    assert_int_equal(asked->answers, 0);
    assert_non_null(answer->detail);
    assert_int_equal(answer->err != HF_OK, answer->reply == NULL);
    asked->answers++;
    asked->err = answer->err;
    asked->number = hf_reply_int(answer->reply);
    asked->sent_ns = answer->sent_ns;
    (void)snprintf(asked->text, sizeof asked->text, "%s", hf_reply_text(answer->reply));
    (void)snprintf(asked->detail, sizeof asked->detail, "%s", answer->detail);
    if (asked->then != NULL)
        asked->then(asked);
}

hf_err hf_ask(hf_client_fixture *fixture, hf_asked *asked, uint32_t timeout_ms,
              const char *words)
{
    hf_bytes args[WORDS_MAX];
    size_t n = 0;
    for (const char *at = words; at != NULL && n < WORDS_MAX; n++) {
        const char *space = strchr(at, ' ');
        args[n] = (hf_bytes){at, space == NULL ? strlen(at) : (size_t)(space - at)};
        at = space == NULL ? NULL : space + 1;
    }
    asked->answers = 0;
    const hf_call call = {.args = args,
                          .n_args = n,
                          .timeout_ms = timeout_ms,
                          .cb = hf_on_asked,
                          .arg = asked};
    hf_err err = hf_request_send(fixture->client, &call);
    /* The answer never comes from inside the call. */
    assert_int_equal(asked->answers, 0);
    return err;
}

const char *hf_ask_now(hf_client_fixture *fixture, hf_asked *asked, const char *words)
{
    assert_int_equal(hf_ask(fixture, asked, 0, words), HF_OK);
    RUN_UNTIL(fixture, WAIT_MS, asked->answers == 1);
    return asked->err == HF_OK ? asked->text : asked->detail;
}
