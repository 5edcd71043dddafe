/* assets.h - the files of the pages, which are compiled into the program. */
#ifndef HF_DASHBOARD_ASSETS_H
#define HF_DASHBOARD_ASSETS_H

#include <stdbool.h>
#include <stddef.h>

#include "dashboard/http.h"
#include "dashboard/target.h"

typedef struct hf_asset {
    const char *path, *type, *etag;
    const unsigned char *bytes;
    size_t len;
    const unsigned char *packed; /* by gzip */
    size_t packed_len;
} hf_asset;

/* The file of this path; NULL: there is none. */
const hf_asset *hf_asset_find(const hf_http_target *target);
/* Answers with it, or that the browser has it already. */
void hf_asset_send(hf_conn *conn, const hf_asset *asset);

/* Answers with the page of every address, which knows `base` ("" or "/a/b"). */
void hf_asset_send_shell(hf_conn *conn, const char *base);
/* The form for a token. */
void hf_asset_send_login(hf_conn *conn, const char *base, unsigned status,
                         const char *message);

#endif
