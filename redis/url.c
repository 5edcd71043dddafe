/* url.c - redis/url.h, and hf_url_check() of holdfast/server.h. */
#include "redis/url.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/text.h"
#include "holdfast/server.h"

enum { DEFAULT_PORT = 6379, DB_MAX = 1000000 };

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

/* Where `c` stands in the part, or its length. */
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
static hf_err parse_place(hf_url *out, span in, char *detail)
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
        memcpy(out->host, host.at, host.len);
        out->host[host.len] = '\0';
    }
    if (rest.len == 0)
        return HF_OK;
    int64_t port = 0;
    if (rest.at[0] != ':' || !parse_number(from(rest, 1), 1, UINT16_MAX, &port))
        return refuse(detail, "the URL's port is not a number of 1..65535");
    out->port = (uint16_t)port;
    return HF_OK;
}

static hf_err parse_tcp(hf_url *out, span in, char *detail)
{
    span authority = {in.at, find(in, '/')};
    if (find(in, '?') < in.len || find(in, '#') < in.len)
        return refuse(detail,
                      "a redis:// or rediss:// URL has no `?` or `#`: percent-encode it");
    span path = from(in, authority.len);
    /* The last @: an earlier one can only be part of a password. */
    for (size_t i = authority.len; i-- > 0;) {
        if (authority.at[i] != '@')
            continue;
        hf_err err = parse_login(out, (span){authority.at, i}, detail);
        if (err != HF_OK)
            return err;
        authority = from(authority, i + 1);
        break;
    }
    hf_err err = parse_place(out, authority, detail);
    if (err != HF_OK || path.len <= 1)
        return err;
    return parse_db(out, from(path, 1), detail);
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

/* Schemes that mean something here, which this build does not do. */
static bool is_known_elsewhere(span scheme)
{
    static const char *const names[] = {"valkeys",        "sentinel",
                                        "redis-sentinel", "rediss-sentinel",
                                        "redis-cluster",  "redis-socket"};
    for (size_t i = 0; i < HF_COUNT(names); i++)
        if (scheme.len == strlen(names[i]) &&
            strncasecmp(scheme.at, names[i], scheme.len) == 0)
            return true;
    return (scheme.len > 6 && strncasecmp(scheme.at, "redis+", 6) == 0) ||
           (scheme.len > 7 && strncasecmp(scheme.at, "rediss+", 7) == 0);
}

hf_err hf_url_parse(hf_url *out, const char *text, char detail[HF_DETAIL_SIZE])
{
    *out = (hf_url){.host = "localhost", .port = DEFAULT_PORT};
    size_t len = strnlen(text, HF_URL_MAX + 1);
    if (len > HF_URL_MAX)
        return refuse(detail, "the URL is longer than 4096 bytes");
    const char *mark = strstr(text, "://");
    if (mark == NULL)
        return refuse(detail,
                      "expected a URL that begins with redis://, rediss:// or unix://");
    span scheme = {text, (size_t)(mark - text)};
    span rest = from((span){text, len}, scheme.len + 3);
    if (scheme.len == 5 && strncasecmp(text, "redis", 5) == 0)
        return parse_tcp(out, rest, detail);
    if (scheme.len == 6 && strncasecmp(text, "rediss", 6) == 0) {
        out->tls = true;
        return parse_tcp(out, rest, detail);
    }
    if (scheme.len == 4 && strncasecmp(text, "unix", 4) == 0)
        return parse_unix(out, rest, detail);
    if (is_known_elsewhere(scheme))
        return refuse(detail, "Sentinel and Cluster are not in this build: expected a "
                              "redis://, rediss:// or unix:// URL");
    return refuse(detail,
                  "expected a URL that begins with redis://, rediss:// or unix://");
}

static hf_err bad_file(char *detail, const char *file, const char *why)
{
    snprintf(detail, HF_DETAIL_SIZE, "password file `%.160s`: %s", file, why);
    return HF_CONFIG;
}

hf_err hf_url_read_password(hf_url *url, const char *file, char detail[HF_DETAIL_SIZE])
{
    /* Without O_NONBLOCK a pipe that somebody put there would hold us for ever. */
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
        memcpy(url->password, line, len);
    if (err == HF_OK)
        url->password[len] = '\0';
    for (volatile char *wipe = line; wipe < line + sizeof line; wipe++)
        *wipe = 0;
    return err;
}

void hf_url_wipe(hf_url *url)
{
    /* Through volatile, because a compiler may leave out writes that nobody reads. */
    volatile unsigned char *at = (volatile unsigned char *)url;
    for (size_t i = 0; i < sizeof *url; i++)
        at[i] = 0;
}

void hf_url_place(const hf_url *url, char out[HF_URL_PLACE_SIZE])
{
    if (url->path[0] != '\0')
        snprintf(out, HF_URL_PLACE_SIZE, "%s", url->path);
    else if (strchr(url->host, ':') != NULL)
        snprintf(out, HF_URL_PLACE_SIZE, "[%s]:%u", url->host, url->port);
    else
        snprintf(out, HF_URL_PLACE_SIZE, "%s:%u", url->host, url->port);
}

hf_err hf_url_check(const char *url, char detail[HF_DETAIL_SIZE])
{
    char unread[HF_DETAIL_SIZE];
    hf_url parsed;
    hf_err err = hf_url_parse(&parsed, url, detail == NULL ? unread : detail);
    hf_url_wipe(&parsed);
    return err;
}
