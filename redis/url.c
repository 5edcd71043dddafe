/* url.c - redis/url.h, and hf_url_check() of holdfast/server.h. */
#include "redis/url.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/detail.h"
#include "base/text.h"
#include "holdfast/server.h"

enum { DEFAULT_PORT = 6379, SENTINEL_PORT = 26379, DB_MAX = 1000000 };

#define SCHEMES                                                                          \
    "redis://, rediss://, unix://, redis+sentinel://, rediss+sentinel://, "              \
    "redis+cluster:// or rediss+cluster://"

static const char schemes[] = "expected a URL that begins with " SCHEMES;

/* A part of the text that is being parsed. */
typedef struct span {
    const char *at;
    size_t len;
} span;

static hf_err refuse(char *detail, const char *why)
{
    snprintf(detail, HF_DETAIL_SIZE, "%s", why);
    return HF_INVALID;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* Copies a part with its %XX decoded. False: it is too long, or contains a NUL or a bad
 * %. */
static bool decode(span in, char *out, size_t max)
{
    size_t n = 0;
    for (size_t i = 0; i < in.len; i++) {
        int c = (unsigned char)in.at[i];
        if (c == '%') {
            if (in.len - i < 3)
                return false;
            int hi = hex_digit(in.at[i + 1]), lo = hex_digit(in.at[i + 2]);
            if (hi < 0 || lo < 0)
                return false;
            c = hi * 16 + lo;
            i += 2;
        }
        if (c == '\0' || n == max)
            return false;
        out[n++] = (char)c;
    }
    out[n] = '\0';
    return true;
}

/* The offset of `c` in the part, or its length. */
static size_t find(span in, char c)
{
    const char *at = in.len == 0 ? NULL : memchr(in.at, c, in.len);
    return at == NULL ? in.len : (size_t)(at - in.at);
}

static span from(span in, size_t start)
{
    return (span){in.at + start, in.len - start};
}

static bool parse_number(span in, int64_t min, int64_t max, int64_t *out)
{
    char digits[16];
    if (in.len == 0 || in.len >= sizeof digits || in.at[0] == '-')
        return false;
    memcpy(digits, in.at, in.len);
    digits[in.len] = '\0';
    return hf_parse_int(digits, min, max, out);
}

static hf_err parse_db(hf_url *out, span in, char *detail)
{
    int64_t db = 0;
    if (!parse_number(in, 0, DB_MAX, &db))
        return refuse(detail, "the URL's database is not a number of 0..1000000");
    out->db = (int32_t)db;
    return HF_OK;
}

/* "user", ":password" or "user:password". */
static hf_err parse_login(hf_url *out, span in, char *detail)
{
    size_t colon = find(in, ':');
    if (!decode((span){in.at, colon}, out->user, HF_URL_PART_MAX))
        return refuse(detail, "the URL's user is too long or not percent-encoded");
    if (colon < in.len && !decode(from(in, colon + 1), out->password, HF_URL_PART_MAX))
        return refuse(detail, "the URL's password is too long or not percent-encoded");
    return HF_OK;
}

/* "host", "host:port", "[v6]" or "[v6]:port"; an empty host is localhost. */
static hf_err parse_place(span in, char *out_host, uint16_t *out_port, char *detail)
{
    span host = {in.at, find(in, ':')}, rest = from(in, host.len);
    if (in.len > 0 && in.at[0] == '[') {
        size_t end = find(in, ']');
        if (end == in.len)
            return refuse(detail,
                          "the URL's host begins with `[` and does not end with `]`");
        host = (span){in.at + 1, end - 1};
        rest = from(in, end + 1);
    }
    if (host.len > HF_URL_HOST_MAX || find(host, '\0') != host.len)
        return refuse(detail, "the URL's host is too long");
    if (host.len > 0) {
        memcpy(out_host, host.at, host.len);
        out_host[host.len] = '\0';
    }
    if (rest.len == 0)
        return HF_OK;
    int64_t port = 0;
    if (rest.at[0] != ':' || !parse_number(from(rest, 1), 1, UINT16_MAX, &port))
        return refuse(detail, "the URL's port is not a number of 1..65535");
    *out_port = (uint16_t)port;
    return HF_OK;
}

/* The part before the path. Its login is split off at the last @: an earlier one can only
 * be part of a password. */
static hf_err parse_authority(hf_url *out, span in, span *places, span *path,
                              char *detail)
{
    span authority = {in.at, find(in, '/')};
    if (find(in, '?') < in.len || find(in, '#') < in.len)
        return refuse(detail, "a URL of Redis has no `?` or `#`: percent-encode it");
    *path = from(in, authority.len);
    *places = authority;
    for (size_t i = authority.len; i-- > 0;) {
        if (authority.at[i] != '@')
            continue;
        *places = from(authority, i + 1);
        return parse_login(out, (span){authority.at, i}, detail);
    }
    return HF_OK;
}

static hf_err parse_tcp(hf_url *out, span in, char *detail)
{
    span place, path;
    hf_err err = parse_authority(out, in, &place, &path, detail);
    if (err == HF_OK)
        err = parse_place(place, out->host, &out->port, detail);
    if (err != HF_OK || path.len <= 1)
        return err;
    return parse_db(out, from(path, 1), detail);
}

/* "host", "host:port,[v6]:port": Sentinels, or nodes of a cluster. */
static hf_err parse_nodes(hf_place nodes[HF_URL_NODES_MAX], size_t *n, span in,
                          uint16_t port, char *detail)
{
    for (bool more = true; more;) {
        size_t len = find(in, ',');
        if (*n == HF_URL_NODES_MAX)
            return refuse(detail, port == SENTINEL_PORT
                                      ? "the URL has more than 16 Sentinels"
                                      : "the URL has more than 16 nodes");
        hf_place *node = &nodes[(*n)++];
        node->port = port;
        hf_err err = parse_place((span){in.at, len}, node->host, &node->port, detail);
        if (err != HF_OK)
            return err;
        if (node->host[0] == '\0')
            return refuse(detail, port == SENTINEL_PORT
                                      ? "the URL has a Sentinel without a host"
                                      : "the URL has a node without a host");
        more = len < in.len;
        in = from(in, more ? len + 1 : len);
    }
    return HF_OK;
}

/* The characters that Sentinel takes. */
static bool is_master(span in)
{
    static const char good[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                               "0123456789.-_";
    for (size_t i = 0; i < in.len; i++)
        if (in.at[i] == '\0' || strchr(good, in.at[i]) == NULL)
            return false;
    return in.len > 0 && in.len <= HF_URL_MASTER_MAX;
}

/* "[user:password@]h1:p1,h2:p2/master[/db]" */
static hf_err parse_sentinel(hf_url *out, span in, char *detail)
{
    span nodes, path;
    hf_err err = parse_authority(out, in, &nodes, &path, detail);
    if (err == HF_OK)
        err = parse_nodes(out->sentinel.nodes, &out->sentinel.n_nodes, nodes,
                          SENTINEL_PORT, detail);
    if (err != HF_OK)
        return err;
    span master = from(path, path.len > 0 ? 1 : 0);
    master.len = find(master, '/');
    if (!is_master(master))
        return refuse(detail,
                      "the URL's Sentinels are not followed by /MASTER, a name of "
                      "1 to 128 characters of A-Z a-z 0-9 . - _");
    memcpy(out->sentinel.master, master.at, master.len);
    out->host[0] = '\0';
    span db = from(path, master.len + 1);
    return db.len <= 1 ? HF_OK : parse_db(out, from(db, 1), detail);
}

/* "[user:password@]h1:p1,h2:p2" */
static hf_err parse_cluster(hf_url *out, span in, char *detail)
{
    span nodes, path;
    hf_err err = parse_authority(out, in, &nodes, &path, detail);
    if (err == HF_OK)
        err = parse_nodes(out->cluster.nodes, &out->cluster.n_nodes, nodes, DEFAULT_PORT,
                          detail);
    if (err == HF_OK && path.len > 1)
        err = parse_db(out, from(path, 1), detail);
    if (err == HF_OK && out->db != 0)
        err = refuse(detail, "a cluster has no database but 0");
    out->host[0] = '\0';
    return err;
}

static hf_err parse_unix(hf_url *out, span in, char *detail)
{
    size_t slash = find(in, '/');
    if (slash == in.len)
        return refuse(detail, "a unix:// URL needs a path that begins with `/`");
    if (slash > 0) {
        if (in.at[slash - 1] != '@')
            return refuse(detail, "a unix:// URL has no host: expected unix:///path");
        hf_err err = parse_login(out, (span){in.at, slash - 1}, detail);
        if (err != HF_OK)
            return err;
    }
    span path = from(in, slash);
    span query = from(path, find(path, '?'));
    path.len -= query.len;
    if (!decode(path, out->path, HF_URL_PATH_MAX))
        return refuse(detail,
                      "the URL's path is longer than 107 bytes or not percent-encoded");
    if (query.len == 0)
        return HF_OK;
    if (query.len < 4 || strncmp(query.at, "?db=", 4) != 0)
        return refuse(detail, "a unix:// URL takes `?db=N` and nothing else");
    return parse_db(out, from(query, 4), detail);
}

static bool is_scheme(span scheme, const char *name)
{
    return scheme.len == strlen(name) && strncasecmp(scheme.at, name, scheme.len) == 0;
}

/* Schemes that mean something here, which this build does not do. */
static bool is_known_elsewhere(span scheme)
{
    static const char *const names[] = {"valkeys",        "sentinel",
                                        "redis-sentinel", "rediss-sentinel",
                                        "redis-cluster",  "redis-socket"};
    for (size_t i = 0; i < HF_COUNT(names); i++)
        if (is_scheme(scheme, names[i]))
            return true;
    return false;
}

hf_err hf_url_parse(hf_url *out, const char *text, char detail[HF_DETAIL_SIZE])
{
    *out = (hf_url){.host = "localhost", .port = DEFAULT_PORT};
    size_t len = strnlen(text, HF_URL_MAX + 1);
    if (len > HF_URL_MAX)
        return refuse(detail, "the URL is longer than 4096 bytes");
    const char *mark = strstr(text, "://");
    if (mark == NULL)
        return refuse(detail, schemes);
    span scheme = {text, (size_t)(mark - text)};
    span rest = from((span){text, len}, scheme.len + 3);
    out->tls = is_scheme(scheme, "rediss") || is_scheme(scheme, "rediss+sentinel") ||
               is_scheme(scheme, "rediss+cluster");
    if (is_scheme(scheme, "redis") || is_scheme(scheme, "rediss"))
        return parse_tcp(out, rest, detail);
    if (is_scheme(scheme, "redis+sentinel") || is_scheme(scheme, "rediss+sentinel"))
        return parse_sentinel(out, rest, detail);
    if (is_scheme(scheme, "redis+cluster") || is_scheme(scheme, "rediss+cluster"))
        return parse_cluster(out, rest, detail);
    if (is_scheme(scheme, "unix"))
        return parse_unix(out, rest, detail);
    if (is_known_elsewhere(scheme))
        return refuse(detail, "that scheme is not in this build: expected " SCHEMES);
    return refuse(detail, schemes);
}

static hf_err bad_file(char *detail, const char *file, const char *why)
{
    /* Without a slash it may be the password itself. */
    if (strchr(file, '/') == NULL)
        return hf_say(detail, HF_CONFIG, "the password file: %s", why);
    return hf_say(detail, HF_CONFIG, "password file `%.160s`: %s", file, why);
}

hf_err hf_url_read_password(char password[HF_URL_PART_MAX + 1], const char *file,
                            char detail[HF_DETAIL_SIZE])
{
    /* Without O_NONBLOCK a pipe at this path would block for ever. */
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return bad_file(detail, file, "cannot be opened");
    struct stat st;
    char line[HF_URL_PART_MAX + 3]; /* a line that fits, its CR LF, and a NUL */
    size_t n = 0;
    ssize_t got = -1;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        while (n < sizeof line - 1 && (got = read(fd, line + n, sizeof line - 1 - n)) > 0)
            n += (size_t)got;
    }
    close(fd);
    line[n] = '\0';
    hf_err err = HF_OK;
    size_t len = strcspn(line, "\r\n");
    if (n == 0 && got < 0)
        err = bad_file(detail, file, "expected a regular file that can be read");
    else if (len == 0)
        err = bad_file(detail, file, "its first line is empty");
    else if (len > HF_URL_PART_MAX)
        err = bad_file(detail, file, "its first line is longer than 512 bytes");
    else
        memcpy(password, line, len);
    if (err == HF_OK)
        password[len] = '\0';
    for (volatile char *wipe = line; wipe < line + sizeof line; wipe++)
        *wipe = 0;
    return err;
}

void hf_url_wipe(hf_url *url)
{
    /* Through volatile, because a compiler may omit writes that are never read. */
    volatile unsigned char *at = (volatile unsigned char *)url;
    for (size_t i = 0; i < sizeof *url; i++)
        at[i] = 0;
}

static void put_place(const char *host, uint16_t port, char *out)
{
    bool v6 = strchr(host, ':') != NULL;
    snprintf(out, HF_URL_PLACE_SIZE, "%s%s%s:%u", v6 ? "[" : "", host, v6 ? "]" : "",
             port);
}

bool hf_url_place_is(const hf_place *place, const hf_place *other)
{
    return place->port == other->port && strcmp(place->host, other->host) == 0;
}

void hf_url_place_text(const hf_place *place, char out[HF_URL_PLACE_SIZE])
{
    put_place(place->host, place->port, out);
}

void hf_url_place(const hf_url *url, char out[HF_URL_PLACE_SIZE])
{
    if (url->path[0] != '\0')
        snprintf(out, HF_URL_PLACE_SIZE, "%s", url->path);
    else if (url->cluster.n_nodes > 0)
        snprintf(out, HF_URL_PLACE_SIZE, "the cluster of %s", url->cluster.nodes[0].host);
    else if (url->host[0] == '\0')
        snprintf(out, HF_URL_PLACE_SIZE, "the primary of %s", url->sentinel.master);
    else
        put_place(url->host, url->port, out);
}

hf_err hf_url_check(const char *url, char detail[HF_DETAIL_SIZE])
{
    char unread[HF_DETAIL_SIZE];
    hf_url parsed;
    hf_err err = hf_url_parse(&parsed, url, detail == NULL ? unread : detail);
    hf_url_wipe(&parsed);
    return err;
}
