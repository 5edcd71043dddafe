/* auth.c - see auth.h. */
#include "dashboard/auth.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/random.h"

enum {
    TOKENS = 64,
    TOKEN_MIN = 32,
    TOKEN_MAX = 256,
    FILE_MAX = 64 * 1024,
    SESSIONS = 256,
    SESSION_BYTES = 32,
    WRONG_MAX = 5
};

typedef struct token {
    hf_role role;
    char text[TOKEN_MAX + 1];
    char name[HF_TOKEN_NAME];
} token;

typedef struct session {
    hf_role role; /* HF_ROLE_NONE: free */
    uint64_t until_ns;
    char name[HF_SESSION_SIZE];
    char token[HF_TOKEN_NAME]; /* its name */
} session;

struct hf_auth {
    hf_auth_opts opts;
    size_t n_tokens;
    token tokens[TOKENS];
    session sessions[SESSIONS];
    uint64_t second; /* in which `wrong` tokens came */
    unsigned wrong;
};

const char *hf_role_word(hf_role role)
{
    static const char *const words[] = {"none", "read", "change"};
    return words[role];
}

/* Takes as long wherever they differ. */
static bool same(const char *a, const char *b, size_t len)
{
    unsigned char different = 0;
    for (size_t i = 0; i < len; i++)
        different |= (unsigned char)(a[i] ^ b[i]);
    return different == 0;
}

/* ---- the file of tokens ---- */

static hf_err bad_file(char *detail, const char *file, const char *why)
{
    (void)snprintf(detail, HF_DETAIL_SIZE, "the token file '%.100s': %s", file, why);
    return HF_CONFIG;
}

/* Reads all of it, with a NUL. NULL: `why` says it. */
static char *read_file(const char *file, const char **why)
{
    struct stat s;
    char *text = NULL;
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    *why = NULL;
    if (fd < 0 || fstat(fd, &s) != 0)
        *why = strerror(errno);
    else if (!S_ISREG(s.st_mode))
        *why = "it is no regular file";
    else if ((s.st_mode & (S_IRWXG | S_IRWXO)) != 0)
        *why = "others may read it: chmod 600";
    else if (s.st_size > FILE_MAX)
        *why = "it is larger than 64 KiB";
    else if ((text = calloc(1, (size_t)s.st_size + 1)) == NULL)
        *why = "out of memory";
    else if (read(fd, text, (size_t)s.st_size) != s.st_size)
        *why = "it cannot be read";
    if (fd >= 0)
        (void)close(fd);
    if (*why == NULL)
        return text;
    free(text);
    return NULL;
}

/* Reads a line "read TOKEN" or "change TOKEN NAME". Returns what is wrong, or NULL. */
static const char *read_line(char *line, token *out)
{
    char *text = strchr(line, ' ');
    if (text == NULL)
        return "expected `read TOKEN` or `change TOKEN`";
    *text++ = '\0';
    char *name = strchr(text, ' ');
    if (name != NULL)
        *name++ = '\0';
    if (name != NULL && (!hf_name_ok(name) || strlen(name) >= sizeof out->name))
        return "expected as the name of a token 1 to 32 characters of A-Z a-z 0-9 . _ : "
               "-";
    if (strcmp(line, "read") != 0 && strcmp(line, "change") != 0)
        return "expected `read TOKEN` or `change TOKEN`";
    size_t len = strlen(text);
    if (len < TOKEN_MIN || len > TOKEN_MAX)
        return "expected a token of 32 to 256 characters";
    for (const char *at = text; *at != '\0'; at++)
        if (*at <= ' ' || *at > '~')
            return "expected a token of visible ASCII characters";
    out->role = *line == 'c' ? HF_ROLE_CHANGE : HF_ROLE_READ;
    memcpy(out->text, text, len + 1);
    (void)snprintf(out->name, sizeof out->name, "%s", name == NULL ? "" : name);
    return NULL;
}

static hf_err read_tokens(const char *file, token tokens[TOKENS], size_t *n, char *detail)
{
    char why[128];
    const char *wrong, *reason;
    unsigned number = 0;
    char *text = read_file(file, &reason), *save = NULL;
    *n = 0;
    if (text == NULL)
        return bad_file(detail, file, reason);
    for (char *line = text, *end; line != NULL && *line != '\0'; line = save) {
        end = strchr(line, '\n');
        save = end == NULL ? NULL : end + 1;
        if (end != NULL)
            *end = '\0';
        number++;
        if (*line == '\0' || *line == '#')
            continue;
        wrong =
            *n == TOKENS ? "expected at most 64 tokens" : read_line(line, &tokens[*n]);
        if (wrong != NULL) {
            (void)snprintf(why, sizeof why, "line %u: %s", number, wrong);
            free(text);
            return bad_file(detail, file, why);
        }
        ++*n;
    }
    free(text);
    return *n > 0 ? HF_OK : bad_file(detail, file, "it has no token");
}

hf_err hf_auth_reload(hf_auth *a, char detail[HF_DETAIL_SIZE])
{
    size_t n = 0;
    if (a->opts.token_file == NULL)
        return HF_OK;
    token *tokens = calloc(TOKENS, sizeof *tokens);
    if (tokens == NULL)
        return HF_NOMEM;
    hf_err err = read_tokens(a->opts.token_file, tokens, &n, detail);
    if (err == HF_OK) {
        memcpy(a->tokens, tokens, sizeof a->tokens);
        memset(a->sessions, 0, sizeof a->sessions);
        a->n_tokens = n;
    }
    free(tokens);
    return err;
}

hf_err hf_auth_open(hf_auth **out, const hf_auth_opts *opts, char detail[HF_DETAIL_SIZE])
{
    hf_auth *a = calloc(1, sizeof *a);
    if (a == NULL)
        return HF_NOMEM;
    a->opts = *opts;
    hf_err err = hf_auth_reload(a, detail);
    if (err == HF_OK)
        *out = a;
    else
        free(a);
    return err;
}

void hf_auth_close(hf_auth *a)
{
    free(a);
}

bool hf_auth_has_tokens(const hf_auth *a)
{
    return a->n_tokens > 0;
}

/* ---- hosts ---- */

/* The name without its port; of an address in brackets what is between them. */
static size_t name_of(const char **host)
{
    if (**host == '[') {
        ++*host;
        return strcspn(*host, "]");
    }
    return strcspn(*host, ":");
}

static bool is_name(const char *name, size_t len, const char *known)
{
    size_t n = name_of(&known);
    return len == n && len > 0 && strncasecmp(name, known, len) == 0;
}

/* A browser may reach a loopback address by each of its names. */
static bool is_loopback(const char *name)
{
    return strncmp(name, "127.", 4) == 0 || strcmp(name, "[::1]") == 0 || *name == '\0';
}

bool hf_auth_knows_host(const hf_auth *a, const char *host)
{
    static const char *const local[] = {"localhost", "127.0.0.1", "[::1]"};
    size_t len = name_of(&host);
    if (is_name(host, len, a->opts.address) || is_name(host, len, "localhost"))
        return true;
    for (size_t i = 0; i < HF_COUNT(local) && is_loopback(a->opts.address); i++)
        if (is_name(host, len, local[i]))
            return true;
    for (size_t i = 0; i < a->opts.n_hosts; i++)
        if (is_name(host, len, a->opts.hosts[i]))
            return true;
    return false;
}

/* The scheme may be that of a proxy, so it says nothing. */
bool hf_auth_knows_origin(const hf_auth *a, const char *origin)
{
    const char *host = strstr(origin, "://");
    return host != NULL && hf_auth_knows_host(a, host + 3);
}

/* ---- tokens and sessions ---- */

static uint64_t this_second(void)
{
    return hf_boot_ns() / (1000 * HF_MS_NS);
}

bool hf_auth_is_throttled(const hf_auth *a)
{
    return a->second == this_second() && a->wrong >= WRONG_MAX;
}

static void count_wrong(hf_auth *a)
{
    if (a->second != this_second())
        a->wrong = 0;
    a->second = this_second();
    a->wrong++;
}

/* NULL: it is none of them, or none is looked at. */
static const token *token_of(hf_auth *a, const char *text)
{
    const token *found = NULL;
    const size_t len = strlen(text);
    if (hf_auth_is_throttled(a))
        return NULL;
    for (size_t i = 0; i < a->n_tokens; i++) {
        const token *t = &a->tokens[i];
        if (strlen(t->text) == len && same(t->text, text, len))
            found = t;
    }
    if (found == NULL)
        count_wrong(a);
    return found;
}

/* The value of the cookie `hf`; NULL: there is none of this length. */
static const char *session_in(const char *cookie)
{
    for (const char *at = cookie; at != NULL && *at != '\0';) {
        at += strspn(at, " ;");
        size_t len = strcspn(at, ";");
        if (len == 3 + HF_SESSION_SIZE - 1 && strncmp(at, "hf=", 3) == 0)
            return at + 3;
        at += len;
    }
    return NULL;
}

static session *session_of(hf_auth *a, const char *cookie)
{
    const char *name = session_in(cookie);
    session *found = NULL;
    for (size_t i = 0; i < SESSIONS && name != NULL; i++) {
        session *s = &a->sessions[i];
        if (s->role != HF_ROLE_NONE && s->until_ns > hf_boot_ns() &&
            same(s->name, name, HF_SESSION_SIZE - 1))
            found = s;
    }
    return found;
}

static hf_role at_most(const hf_auth *a, hf_role role)
{
    return role == HF_ROLE_CHANGE && !a->opts.allow_changes ? HF_ROLE_READ : role;
}

hf_role hf_auth_role(hf_auth *a, const char *authorization, const char *cookie,
                     char name[HF_TOKEN_NAME])
{
    name[0] = '\0';
    if (!hf_auth_has_tokens(a))
        return at_most(a, HF_ROLE_CHANGE);
    if (authorization != NULL && strncasecmp(authorization, "Bearer ", 7) == 0) {
        const token *t = token_of(a, authorization + 7);
        if (t != NULL)
            memcpy(name, t->name, sizeof t->name);
        return t == NULL ? HF_ROLE_NONE : at_most(a, t->role);
    }
    const session *s = session_of(a, cookie);
    if (s != NULL)
        memcpy(name, s->token, sizeof s->token);
    return s == NULL ? HF_ROLE_NONE : at_most(a, s->role);
}

/* A free place, or that of the session that ends first. */
static session *place_for_session(hf_auth *a)
{
    session *best = &a->sessions[0];
    for (size_t i = 0; i < SESSIONS; i++) {
        session *s = &a->sessions[i];
        if (s->role == HF_ROLE_NONE || s->until_ns <= hf_boot_ns())
            return s;
        if (s->until_ns < best->until_ns)
            best = s;
    }
    return best;
}

hf_role hf_auth_login(hf_auth *a, const char *text, char out[HF_SESSION_SIZE])
{
    unsigned char bytes[SESSION_BYTES];
    const token *t = token_of(a, text);
    if (t == NULL || hf_random_bytes(bytes, sizeof bytes) != HF_OK)
        return HF_ROLE_NONE;
    char *name = hf_base64_encode(bytes, sizeof bytes); /* 44 characters */
    if (name == NULL)
        return HF_ROLE_NONE;
    session *s = place_for_session(a);
    *s = (session){.role = t->role,
                   .until_ns = hf_boot_ns() + UINT64_C(1000) * HF_SESSION_S * HF_MS_NS};
    (void)snprintf(s->name, sizeof s->name, "%s", name);
    memcpy(s->token, t->name, sizeof s->token);
    memcpy(out, s->name, sizeof s->name);
    free(name);
    return at_most(a, t->role);
}

void hf_auth_logout(hf_auth *a, const char *cookie)
{
    session *s = session_of(a, cookie);
    if (s != NULL)
        *s = (session){.role = HF_ROLE_NONE};
}
