/* assets.c - see assets.h. */
#include "dashboard/assets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/buf.h"
#include "dashboard_pages.h"

enum { PATH = 256, PAGE_MAX = 1 << 16 };

static const char html[] = "text/html; charset=utf-8";

/* For a build without the pages. */
static const char bare[] =
    "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
    "<base href=\"./\">\n<title>holdfast</title>\n<h1>holdfast</h1>\n"
    "<p><a href=\"api/v1/overview\">What is wrong</a>, <a "
    "href=\"api/v1/queues\">queues</a>, <a href=\"api/v1/workers\">workers</a>. In a "
    "terminal: <code>holdfast wrong</code>.</p>\n</html>\n";

static const hf_asset *find(const char *path)
{
    for (size_t i = 0; pages[i].path != NULL; i++)
        if (strcmp(pages[i].path, path) == 0)
            return &pages[i];
    return NULL;
}

const hf_asset *hf_asset_find(const hf_http_target *t)
{
    char path[PATH];
    size_t len = 0;
    if (t->n_segments == 0 || strcmp(t->segments[0], "index.html") == 0)
        return NULL;
    path[0] = '\0';
    for (size_t i = 0; i < t->n_segments && len < sizeof path; i++)
        len += (size_t)snprintf(path + len, sizeof path - len, "%s%s", i > 0 ? "/" : "",
                                t->segments[i]);
    return find(path);
}

void hf_asset_send(hf_conn *conn, const hf_asset *a)
{
    const char *known = hf_conn_header(conn, "If-None-Match");
    const char *takes = hf_conn_header(conn, "Accept-Encoding");
    const bool packed =
        takes != NULL && strstr(takes, "gzip") != NULL && a->packed_len < a->len;
    hf_http_answer answer = {.status = 200,
                             .type = a->type,
                             .body = packed ? a->packed : a->bytes,
                             .len = packed ? a->packed_len : a->len,
                             .is_static = true,
                             .keep = true,
                             .headers = {{"ETag", a->etag}, {"Vary", "Accept-Encoding"}}};
    if (packed)
        answer.headers[2] = (hf_http_header){"Content-Encoding", "gzip"};
    if (known != NULL && strstr(known, a->etag) != NULL) {
        answer.status = 304;
        answer.len = 0;
        answer.headers[2] = (hf_http_header){NULL, NULL};
    }
    hf_conn_answer(conn, &answer);
}

/* The address of the base is the only thing that is written into the page. It has the
 * characters of a path that need no escape. */
void hf_asset_send_shell(hf_conn *conn, const char *base)
{
    static const char place[] = "<base href=\"./\">";
    const hf_asset *index = find("index.html");
    const char *text = index == NULL ? bare : (const char *)index->bytes;
    const char *at = strstr(text, place);
    hf_buf page;
    hf_buf_init(&page, PAGE_MAX);
    hf_buf_add(&page, text, at == NULL ? strlen(text) : (size_t)(at - text));
    if (at != NULL)
        hf_buf_printf(&page, "<base href=\"%s/\">%s", base, at + sizeof place - 1);
    hf_conn_answer(conn,
                   &(hf_http_answer){.status = hf_buf_err(&page) == HF_OK ? 200 : 500,
                                     .type = html,
                                     .body = page.data,
                                     .len = page.len});
    hf_buf_done(&page);
}

void hf_asset_send_login(hf_conn *conn, const char *base, unsigned status,
                         const char *message)
{
    hf_buf page;
    hf_buf_init(&page, PAGE_MAX);
    hf_buf_printf(
        &page,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, "
        "initial-scale=1\">\n<base href=\"%s/\">\n<title>holdfast: sign "
        "in</title>\n<link rel=\"stylesheet\" href=\"hf.css\">\n</head>\n<body>"
        "\n<main id=\"main\" class=\"login\">\n<h1>holdfast</h1>\n<form "
        "method=\"post\" action=\"login\">\n<p>%s</p>\n<p><label "
        "for=\"token\">Token</label> <input id=\"token\" name=\"token\" "
        "type=\"password\" autocomplete=\"current-password\" required> "
        "<button>Sign in</button></p>\n</form>\n</main>\n</body>\n</html>\n",
        base, message);
    hf_conn_answer(
        conn, &(hf_http_answer){
                  .status = status, .type = html, .body = page.data, .len = page.len});
    hf_buf_done(&page);
}
