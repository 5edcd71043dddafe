/* requests.c - for libFuzzer: any bytes of a client of the dashboard, over a socket pair.
 * Nothing crashes, and each whole request is answered once.
 * tests/acceptance/118-fuzz-dashboard builds it. */
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <jansson.h>

#include "base/base.h"
#include "dashboard/auth.h"
#include "dashboard/http.h"
#include "dashboard/target.h"

enum { TURNS = 6, ROOM = 65536 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uv_loop_t loop;
static hf_http *http;
static hf_auth *auth;

static void check_target(const hf_http_target *t)
{
    HF_ASSERT(t->n_segments <= HF_TARGET_SEGMENTS && t->n_params <= HF_TARGET_PARAMS);
    for (size_t i = 0; i < t->n_segments; i++)
        HF_ASSERT(t->segments[i][0] != '\0' && strcmp(t->segments[i], "..") != 0);
    (void)hf_target_param(t, "after");
}

/* As the routes read a body: a form with a token, and JSON. */
static void check_body(const hf_buf *body)
{
    char session[HF_SESSION_SIZE];
    char *form = strdup(body->len == 0 ? "" : body->data);
    if (form != NULL && strncmp(form, "token=", 6) == 0 &&
        hf_target_decode(form + 6, true))
        (void)hf_auth_login(auth, form + 6, session);
    free(form);
    json_t *object =
        body->len == 0 ? NULL
                       : json_loadb(body->data, body->len, JSON_REJECT_DUPLICATES, NULL);
    const char *text = json_string_value(json_object_get(object, "confirm"));
    HF_ASSERT(text == NULL ||
              strlen(text) == json_string_length(json_object_get(object, "confirm")));
    json_decref(object);
}

static void on_request(hf_conn *conn, void *arg)
{
    hf_http_target target;
    (void)arg;
    const char *host = hf_conn_header(conn, "Host");
    if (hf_target_read(&target, hf_conn_target(conn), "/base"))
        check_target(&target);
    hf_target_done(&target);
    (void)(host != NULL && hf_auth_knows_host(auth, host));
    (void)hf_conn_repeats(conn, "Host");
    char name[HF_TOKEN_NAME];
    (void)hf_auth_role(auth, hf_conn_header(conn, "Authorization"),
                       hf_conn_header(conn, "Cookie"), name);
    HF_ASSERT(hf_conn_body(conn)->len <= HF_HTTP_BODY_MAX);
    check_body(hf_conn_body(conn));
    hf_conn_answer(
        conn,
        &(hf_http_answer){.status = 200, .type = "text/plain", .body = "ok\n", .len = 3});
}

/* With tokens, so cookies and headers are read. */
static void start(void)
{
    static const char *const hosts[] = {"jobs.example.org"};
    static const char tokens[] = "read aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa ada\n";
    char file[] = "/tmp/hf-fuzz-XXXXXX";
    const hf_auth_opts opts = {
        .address = "127.0.0.1", .hosts = hosts, .n_hosts = 1, .token_file = file};
    const int fd = mkstemp(file);
    HF_ASSERT(fd >= 0 && write(fd, tokens, sizeof tokens - 1) == sizeof tokens - 1);
    (void)close(fd);
    char detail[HF_DETAIL_SIZE];
    (void)signal(SIGPIPE, SIG_IGN);
    HF_ASSERT(uv_loop_init(&loop) == 0);
    HF_ASSERT(hf_auth_open(&auth, &opts, detail) == HF_OK);
    (void)unlink(file);
    HF_ASSERT(hf_http_open(&http, &loop, -1, on_request, NULL) == HF_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char answer[ROOM];
    int pair[2];
    if (http == NULL)
        start();
    HF_ASSERT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0);
    (void)!write(pair[0], data, size);
    hf_http_serve(http, pair[1]);
    for (int i = 0; i < TURNS; i++)
        (void)uv_run(&loop, UV_RUN_NOWAIT);
    (void)!read(pair[0], answer, sizeof answer);
    (void)close(pair[0]);
    for (int i = 0; i < TURNS; i++)
        (void)uv_run(&loop, UV_RUN_NOWAIT);
    return 0;
}
