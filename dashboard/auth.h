/* auth.h - who may see and change what: tokens, sessions, and the hosts that a browser
 * may have asked. */
#ifndef HF_DASHBOARD_AUTH_H
#define HF_DASHBOARD_AUTH_H

#include <stdbool.h>
#include <stddef.h>

#include "holdfast/error.h"

typedef struct hf_auth hf_auth;

typedef enum hf_role { HF_ROLE_NONE, HF_ROLE_READ, HF_ROLE_CHANGE } hf_role;
const char *hf_role_word(hf_role role);

enum { HF_SESSION_SIZE = 45, HF_SESSION_S = 12 * 3600, HF_TOKEN_NAME = 33 };

/* All is borrowed for as long as it is used. */
typedef struct hf_auth_opts {
    const char *token_file;   /* NULL: everyone may do what the options allow */
    const char *address;      /* the host that it listens on; "": a unix socket */
    const char *const *hosts; /* other names of it, n_hosts of them */
    size_t n_hosts;
    bool allow_changes;
} hf_auth_opts;

/* HF_CONFIG: the token file cannot be used, `detail` says why. HF_NOMEM, HF_SYSTEM. */
HF_MUSTCHECK hf_err hf_auth_open(hf_auth **out, const hf_auth_opts *opts,
                                 char detail[HF_DETAIL_SIZE]);
void hf_auth_close(hf_auth *auth); /* NULL is fine */

/* Reads the file again, and ends the sessions. After an error nothing has changed. */
HF_MUSTCHECK hf_err hf_auth_reload(hf_auth *auth, char detail[HF_DETAIL_SIZE]);

bool hf_auth_has_tokens(const hf_auth *auth);

/* Whether "name", "name:port" or "[::1]:port" is a name of this server: its address,
 * localhost, or one that was given. */
bool hf_auth_knows_host(const hf_auth *auth, const char *host);
/* The same of the origin of a page, "https://name:port". */
bool hf_auth_knows_origin(const hf_auth *auth, const char *origin);

/* The role of a request by these headers; each may be NULL. `name` becomes the name that
 * the file gives the token, or "". */
hf_role hf_auth_role(hf_auth *auth, const char *authorization, const char *cookie,
                     char name[HF_TOKEN_NAME]);
/* Too many tokens of the last second were wrong: none is looked at. */
bool hf_auth_is_throttled(const hf_auth *auth);

/* Begins a session for a token: its name for the cookie `hf`. HF_ROLE_NONE: the token is
 * wrong, or no session can begin. */
hf_role hf_auth_login(hf_auth *auth, const char *token, char session[HF_SESSION_SIZE]);
void hf_auth_logout(hf_auth *auth, const char *cookie);

#endif
