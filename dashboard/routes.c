/* routes.c - see routes.h. */
#include "dashboard/routes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/prometheus.h"
#include "base/text.h"
#include "cli/out.h"
#include "dashboard/assets.h"
#include "dashboard/changelog.h"
#include "dashboard/events.h"
#include "dashboard/routes_table.h"
#include "dashboard/timeline.h"

enum { COOKIE = 512 };

struct hf_routes {
    hf_routes_opts opts;
    hf_events *events;
};

/* A request on its way through the checks. */
typedef struct visit {
    hf_routes *routes;
    hf_conn *conn;
    hf_http_target target; /* owned, until a question takes it */
    hf_role role;
    char token[HF_TOKEN_NAME]; /* the name of the reader's, or "" */
} visit;

/* ---- short answers ---- */

static void answer_text(hf_conn *conn, unsigned status, const char *text)
{
    hf_conn_answer(conn, &(hf_http_answer){.status = status,
                                           .type = "text/plain; charset=utf-8",
                                           .body = text,
                                           .len = strlen(text)});
}

static void refuse(hf_conn *conn, unsigned status, const char *code, const char *text)
{
    json_t *object = json_pack("{s:o, s:s}", "error", hf_out_text(text), "code", code);
    char *body = hf_out_line(object);
    hf_http_answer answer = {.status = status,
                             .type = "application/json; charset=utf-8",
                             .body = body,
                             .len = body == NULL ? 0 : strlen(body)};
    json_decref(object);
    if (status == 401)
        answer.headers[0] = (hf_http_header){"WWW-Authenticate", "Bearer"};
    if (status == 429)
        answer.headers[0] = (hf_http_header){"Retry-After", "1"};
    if (status == 405)
        answer.headers[0] = (hf_http_header){"Allow", "GET, HEAD, POST"};
    hf_conn_answer(conn, &answer);
    free(body);
}

static bool is_get(const hf_conn *conn)
{
    const char *method = hf_conn_method(conn);
    return strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
}

static bool is_post(const hf_conn *conn)
{
    return strcmp(hf_conn_method(conn), "POST") == 0;
}

/* ---- where a request comes from ---- */

/* A browser says what page sent the request; one that does not names its origin at a
 * change. */
static bool comes_from_here(const visit *v)
{
    const char *site = hf_conn_header(v->conn, "Sec-Fetch-Site");
    const char *origin = hf_conn_header(v->conn, "Origin");
    if (site != NULL)
        return strcmp(site, "same-origin") == 0;
    return origin == NULL || hf_auth_knows_origin(v->routes->opts.auth, origin);
}

/* Data is for our own pages, and for what is no browser. */
static bool comes_from_another_site(const visit *v)
{
    const char *site = hf_conn_header(v->conn, "Sec-Fetch-Site");
    return site != NULL &&
           (strcmp(site, "cross-site") == 0 || strcmp(site, "same-site") == 0);
}

/* The header that is named, from a proxy on this machine; else the name of the token. */
static void name_user(const visit *v, char out[HF_ASK_WHO])
{
    const char *header = v->routes->opts.user_header;
    const char *name = header == NULL || !hf_conn_is_local(v->conn)
                           ? NULL
                           : hf_conn_header(v->conn, header);
    (void)snprintf(out, HF_ASK_WHO, "%s",
                   name != NULL          ? name
                   : v->token[0] != '\0' ? v->token
                                         : "-");
    hf_text_plain(out);
}

/* ---- signing in ---- */

static void sign_in(visit *v)
{
    char session[HF_SESSION_SIZE], cookie[COOKIE], base[COOKIE / 2];
    hf_routes *r = v->routes;
    const char *scheme = hf_conn_header(v->conn, "X-Forwarded-Proto");
    const hf_buf *body = hf_conn_body(v->conn);
    char *token = body->len < COOKIE ? strdup(body->len == 0 ? "" : body->data) : NULL;
    hf_role role = HF_ROLE_NONE;
    if (token != NULL && strncmp(token, "token=", 6) == 0 &&
        hf_target_decode(token + 6, true))
        role = hf_auth_login(r->opts.auth, token + 6, session);
    free(token);
    if (role == HF_ROLE_NONE) {
        const bool throttled = hf_auth_is_throttled(r->opts.auth);
        hf_asset_send_login(v->conn, r->opts.base, throttled ? 429 : 401,
                            throttled ? "Too many attempts. Try again in a second."
                                      : "This token is not known.");
        return;
    }
    (void)snprintf(cookie, sizeof cookie,
                   "hf=%s; HttpOnly; SameSite=Strict; Path=%s/; Max-Age=%d%s", session,
                   r->opts.base, HF_SESSION_S,
                   scheme != NULL && strcasecmp(scheme, "https") == 0 ? "; Secure" : "");
    (void)snprintf(base, sizeof base, "%s/", r->opts.base);
    hf_conn_answer(v->conn, &(hf_http_answer){
                                .status = 303,
                                .headers = {{"Location", base}, {"Set-Cookie", cookie}}});
}

static void sign_out(visit *v)
{
    char base[COOKIE / 2];
    hf_auth_logout(v->routes->opts.auth, hf_conn_header(v->conn, "Cookie"));
    (void)snprintf(base, sizeof base, "%s/", v->routes->opts.base);
    hf_conn_answer(v->conn,
                   &(hf_http_answer){.status = 303, .headers = {{"Location", base}}});
}

static void on_login(visit *v, bool in)
{
    if (is_get(v->conn))
        hf_asset_send_login(v->conn, v->routes->opts.base, 200,
                            "This dashboard needs a token.");
    else if (!is_post(v->conn))
        refuse(v->conn, 405, "method", "this address takes GET and POST");
    else if (!comes_from_here(v))
        refuse(v->conn, 403, "cross_site", "another site sent this request");
    else if (in)
        sign_in(v);
    else
        sign_out(v);
}

/* ---- questions ---- */

/* "mail", "mail/nightly", or the lock that the body names. */
static void name_subject(const hf_query *ask, char *out, size_t size)
{
    const char *name = hf_ask_text(ask, "name"), *queue = hf_ask_text(ask, "queue");
    size_t len = 0;
    out[0] = '\0';
    for (size_t i = 0; i < HF_ASK_ARGS && ask->args[i] != NULL && len < size; i++)
        len += (size_t)snprintf(out + len, size - len, "%s%s", i > 0 ? "/" : "",
                                ask->args[i]);
    if (len == 0)
        (void)snprintf(out, size, "%s", name != NULL ? name : queue != NULL ? queue : "");
}

static void note_change(const hf_query *ask)
{
    const hf_routes *routes = hf_conn_arg(ask->owner);
    hf_changelog_entry change = {.status = ask->status};
    json_t *answer = json_loads(ask->text, 0, NULL);
    const char *error = json_string_value(json_object_get(answer, "error"));
    (void)snprintf(change.by, sizeof change.by, "%s", ask->who);
    (void)snprintf(change.role, sizeof change.role, "%s", hf_role_word(ask->role));
    (void)snprintf(change.what, sizeof change.what, "%s", ask->what);
    (void)snprintf(change.result, sizeof change.result, "%s",
                   ask->status == 200 ? "done"
                   : error != NULL    ? error
                                      : "failed");
    name_subject(ask, change.of, sizeof change.of);
    hf_changelog_add(routes->opts.changelog, &change);
    json_decref(answer);
}

static void on_told(hf_query *ask, bool dropped)
{
    char file[HF_ASK_NAME + 32];
    hf_conn *conn = ask->owner;
    if (dropped || ask->text == NULL) {
        refuse(conn, dropped ? 503 : 500, "ended", "the dashboard cannot answer");
        hf_ask_free(ask);
        return;
    }
    if (ask->what != NULL)
        note_change(ask);
    hf_http_answer answer = {
        .status = ask->status, .type = ask->type, .body = ask->text, .len = ask->len};
    (void)snprintf(file, sizeof file, "attachment; filename=\"%s\"", ask->file);
    if (ask->file[0] != '\0')
        answer.headers[0] = (hf_http_header){"Content-Disposition", file};
    hf_conn_answer(conn, &answer);
    hf_ask_free(ask);
}

static void submit(visit *v, const hf_route *route, json_t *body)
{
    hf_query *ask = hf_ask_new(route->run, on_told, v->conn);
    if (ask == NULL) {
        json_decref(body);
        refuse(v->conn, 500, "nomem", "out of memory");
        return;
    }
    ask->target = v->target;
    v->target = (hf_http_target){.text = NULL};
    ask->body = body;
    ask->role = v->role;
    ask->may_change = v->routes->opts.allow_changes && v->role == HF_ROLE_CHANGE;
    ask->away_is_fine = route->away_is_fine;
    ask->open_metrics = hf_prom_wants_open(hf_conn_header(v->conn, "Accept"));
    ask->what = route->change;
    name_user(v, ask->who);
    hf_route_args(route, &ask->target, ask->args);
    if (hf_poller_submit(v->routes->opts.poller, &ask->task))
        return;
    hf_ask_free(ask);
    refuse(v->conn, 503, "busy", "too many requests wait for Redis");
}

static bool is_readable(const visit *v, const hf_route *route, json_t *body)
{
    char said[HF_ROUTE_SAID];
    if (hf_route_reads(route, &v->target, body, said))
        return true;
    refuse(v->conn, 400, "invalid", said);
    return false;
}

/* Takes the body over. */
static void submit_read(visit *v, const hf_route *route, json_t *body)
{
    if (is_readable(v, route, body))
        submit(v, route, body);
    else
        json_decref(body);
}

/* Why a change is refused before anything is looked at; NULL: it is not. */
static bool is_refused(const visit *v, const hf_route *route)
{
    const char *type = hf_conn_header(v->conn, "Content-Type");
    const char *mark = hf_conn_header(v->conn, "Holdfast-Change");
    if (!comes_from_here(v))
        refuse(v->conn, 403, "cross_site", "another site sent this request");
    else if (mark == NULL || strcmp(mark, "1") != 0)
        refuse(v->conn, 403, "no_mark", "expected the header Holdfast-Change: 1");
    else if (type == NULL || strncasecmp(type, "application/json", 16) != 0)
        refuse(v->conn, 403, "type", "expected Content-Type: application/json");
    else if (route->change != NULL && !v->routes->opts.allow_changes)
        refuse(v->conn, 403, "read_only",
               "this dashboard was started without --allow-changes");
    else if (route->change != NULL && v->role != HF_ROLE_CHANGE)
        refuse(v->conn, 403, "role", "this token may read, and not change");
    else
        return false;
    return true;
}

static void on_change(visit *v, const hf_route *route)
{
    const hf_buf *body = hf_conn_body(v->conn);
    json_t *object;
    if (is_refused(v, route))
        return;
    object = body->len == 0
                 ? json_object()
                 : json_loadb(body->data, body->len, JSON_REJECT_DUPLICATES, NULL);
    if (json_is_object(object)) {
        submit_read(v, route, object);
        return;
    }
    json_decref(object);
    refuse(v->conn, 400, "json", "expected a JSON object");
}

static const hf_topic_kind topic_kinds[] = {
    {"overview", false, hf_overview_get, NULL, true},
    {"runs", false, hf_timeline_news, NULL, true},
    {"queue", true, hf_api_queue, NULL, false},
    {"job", true, hf_api_job, "log", false},
    {"log", true, hf_api_job_log_news, NULL, false},
    {"task", true, hf_api_tasks_one, NULL, true},
    {NULL, false, NULL, NULL, false}};

static void on_events(visit *v)
{
    const char *topics = hf_target_param(&v->target, "topics");
    if (!is_get(v->conn))
        refuse(v->conn, 405, "method", "this address takes GET");
    else if (!is_readable(v, hf_route_events(), NULL))
        return;
    else if (!hf_events_view(v->routes->events, v->conn,
                             topics == NULL ? "overview" : topics))
        refuse(v->conn, 503, "streams",
               "no topic is known, or too many streams are open");
}

static void refuse_address(visit *v)
{
    char text[HF_ROUTES_TEXT + 64], names[HF_ROUTES_TEXT];
    const bool post = is_post(v->conn);
    if (hf_route_find(&v->target, !post) != NULL) {
        refuse(v->conn, 405, "method",
               post ? "this address takes GET" : "this address takes POST");
        return;
    }
    (void)snprintf(text, sizeof text, "there is no such address; %s has %s",
                   post ? "POST" : "GET", hf_route_names(&v->target, post, names));
    refuse(v->conn, 404, "not_found", text);
}

static void on_api(visit *v)
{
    const hf_http_target *t = &v->target;
    const hf_route *route;
    if (comes_from_another_site(v))
        refuse(v->conn, 403, "cross_site", "another site sent this request");
    else if (t->n_segments == 3 && strcmp(t->segments[2], "events") == 0)
        on_events(v);
    else if (!is_get(v->conn) && !is_post(v->conn))
        refuse(v->conn, 405, "method", "this address takes GET and POST");
    else if ((route = hf_route_find(t, is_post(v->conn))) == NULL)
        refuse_address(v);
    else if (is_post(v->conn))
        on_change(v, route);
    else
        submit_read(v, route, NULL);
}

/* ---- everything else ---- */

static bool is_at(const hf_http_target *t, size_t n, const char *first,
                  const char *second)
{
    return t->n_segments >= n && strcmp(t->segments[0], first) == 0 &&
           (second == NULL || strcmp(t->segments[1], second) == 0);
}

/* What needs the token, if there is one. */
static void on_data(visit *v)
{
    if (v->role != HF_ROLE_NONE) {
        if (is_at(&v->target, 2, "api", "v1"))
            on_api(v);
        else if (is_get(v->conn))
            submit(v, hf_route_metrics(), NULL);
        else
            refuse(v->conn, 405, "method", "this address takes GET");
    } else if (hf_auth_is_throttled(v->routes->opts.auth)) {
        refuse(v->conn, 429, "throttled", "too many wrong tokens");
    } else {
        refuse(v->conn, 401, "token", "expected a token");
    }
}

static void on_page(visit *v)
{
    const hf_asset *asset = hf_asset_find(&v->target);
    const char *last =
        v->target.n_segments == 0 ? "" : v->target.segments[v->target.n_segments - 1];
    if (!is_get(v->conn))
        refuse(v->conn, 405, "method", "this address takes GET");
    else if (asset != NULL)
        hf_asset_send(v->conn, asset);
    else if (is_at(&v->target, 1, "js", NULL) || is_at(&v->target, 1, "api", NULL) ||
             strcmp(last, "favicon.ico") == 0)
        refuse(v->conn, 404, "not_found", "there is no such address");
    else
        hf_asset_send_shell(v->conn, v->routes->opts.base);
}

static void route(visit *v)
{
    hf_auth *auth = v->routes->opts.auth;
    const char *host = hf_conn_header(v->conn, "Host");
    const bool known = host != NULL && !hf_conn_repeats(v->conn, "Host") &&
                       hf_auth_knows_host(auth, host);
    v->role = HF_ROLE_NONE;
    if (is_at(&v->target, 1, "healthz", NULL) && is_get(v->conn)) {
        answer_text(v->conn, 200, "ok\n");
        return;
    }
    if (!known) {
        refuse(v->conn, 421, "host", "this host is not known: start with --host NAME");
        return;
    }
    if (is_at(&v->target, 2, "api", "v1") || is_at(&v->target, 1, "metrics", NULL)) {
        v->role = hf_auth_role(auth, hf_conn_header(v->conn, "Authorization"),
                               hf_conn_header(v->conn, "Cookie"), v->token);
        if (v->routes->opts.metrics_only && is_at(&v->target, 1, "api", NULL))
            refuse(v->conn, 404, "not_found", "an exporter has /metrics and /healthz");
        else
            on_data(v);
    } else if (v->routes->opts.metrics_only) {
        refuse(v->conn, 404, "not_found", "an exporter has /metrics and /healthz");
    } else if (is_at(&v->target, 1, "login", NULL) ||
               is_at(&v->target, 1, "logout", NULL)) {
        on_login(v, strcmp(v->target.segments[0], "login") == 0);
    } else {
        on_page(v);
    }
}

void hf_routes_on_request(hf_conn *conn, void *arg)
{
    hf_routes *routes = arg;
    visit v = {.routes = routes, .conn = conn};
    if (hf_target_read(&v.target, hf_conn_target(conn), routes->opts.base))
        route(&v);
    else
        refuse(conn, 400, "address", "the address is not valid");
    hf_target_done(&v.target);
}

hf_err hf_routes_open(hf_routes **out, uv_loop_t *loop, const hf_routes_opts *opts)
{
    hf_routes *r = calloc(1, sizeof *r);
    if (r == NULL)
        return HF_NOMEM;
    r->opts = *opts;
    hf_err err = hf_events_open(&r->events, loop, opts->poller, topic_kinds);
    if (err == HF_OK)
        *out = r;
    else
        free(r);
    return err;
}

void hf_routes_close(hf_routes *r)
{
    if (r == NULL)
        return;
    hf_events_close(r->events);
    free(r);
}
