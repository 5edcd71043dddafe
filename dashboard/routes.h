/* routes.h - which address gives what, and to whom. */
#ifndef HF_DASHBOARD_ROUTES_H
#define HF_DASHBOARD_ROUTES_H

#include "dashboard/auth.h"
#include "dashboard/http.h"
#include "dashboard/poller.h"

typedef struct hf_routes hf_routes;

/* All is borrowed. */
typedef struct hf_routes_opts {
    hf_auth *auth;
    hf_poller *poller;
    const char *base;        /* "" or "/a/b" */
    const char *user_header; /* names the user, from a local proxy; NULL: none */
    hf_changelog *changelog; /* changelog.h */
    bool allow_changes;
    bool metrics_only; /* an exporter has no pages and no API */
} hf_routes_opts;

/* HF_NOMEM. */
HF_MUSTCHECK hf_err hf_routes_open(hf_routes **out, uv_loop_t *loop,
                                   const hf_routes_opts *opts);
/* After the poller and all connections have ended. The loop has to turn once more. */
void hf_routes_close(hf_routes *routes);

/* For hf_http_open(). */
void hf_routes_on_request(hf_conn *conn, void *routes);

#endif
