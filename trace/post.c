/* post.c - see post.h. By the multi interface of libcurl, which can be woken. */
#define _GNU_SOURCE /* strsep(), explicit_bzero() */
#include "trace/post.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/detail.h"
#include "holdfast/version.h"

enum {
    LONGEST_MS = 10000,
    CONNECT_MS = 5000,
    FILE_MAX = 16384,
    TURN_MS = 60000,
    AFTER_MAX_S = 3600 /* a collector may name any number */
};

#define PATH "/v1/traces"

struct hf_post {
    CURLM *multi;
    CURL *easy;
    struct curl_slist *headers;
    char *url;
    hf_post_answer *answer; /* of the request that is under way */
    char error[CURL_ERROR_SIZE];
    _Atomic uint64_t end_ns;
};

/* ---- headers ---- */

static bool add_header(hf_post *p, const char *line)
{
    struct curl_slist *more = curl_slist_append(p->headers, line);
    if (more != NULL)
        p->headers = more;
    return more != NULL;
}

/* A name without spaces, a colon, and a value of visible characters. */
static bool is_header(const char *line)
{
    size_t name = strcspn(line, ": \t");
    if (name == 0 || line[name] != ':' || line[name + 1] == '\0')
        return false;
    for (const char *p = line; *p != '\0'; p++)
        if ((unsigned char)*p < ' ' && *p != '\t')
            return false;
    return true;
}

/* What the lines say may be secret: no message repeats it. */
static hf_err take_lines(hf_post *p, char *text, const char *file, char *detail)
{
    unsigned number = 0;
    char *rest = text, *line;
    while ((line = strsep(&rest, "\n")) != NULL) {
        size_t len = strlen(line);
        number++;
        if (len > 0 && line[len - 1] == '\r')
            line[len - 1] = '\0';
        if (line[0] == '\0' || line[0] == '#')
            continue;
        if (!is_header(line))
            return hf_say(
                detail, HF_CONFIG,
                "tracing.headers_file: %.200s:%u: expected 'Name: value', found "
                "another line",
                file, number);
        if (!add_header(p, line))
            return hf_say_err(detail, HF_NOMEM);
    }
    return HF_OK;
}

static hf_err read_headers(hf_post *p, const char *file, char *detail)
{
    char text[FILE_MAX + 1];
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    size_t len = 0;
    ssize_t n = fd < 0 ? -1 : 0;
    while (fd >= 0 && len < sizeof text &&
           (n = read(fd, text + len, sizeof text - len)) > 0)
        len += (size_t)n;
    int error = errno;
    if (fd >= 0)
        (void)close(fd);
    if (n < 0)
        return hf_say(detail, HF_CONFIG,
                      "tracing.headers_file: expected a file that can be read, found "
                      "'%.200s' (%s)",
                      file, strerror(error));
    if (len > FILE_MAX || memchr(text, '\0', len) != NULL)
        return hf_say(detail, HF_CONFIG,
                      "tracing.headers_file: expected a text of at most %d bytes, found "
                      "'%.200s'",
                      FILE_MAX, file);
    text[len] = '\0';
    hf_err err = take_lines(p, text, file, detail);
    explicit_bzero(text, sizeof text);
    return err;
}

static bool add_own_headers(hf_post *p, bool gzip)
{
    char agent[64];
    const char *version;
    (void)hf_version(&version);
    (void)snprintf(agent, sizeof agent, "User-Agent: holdfast/%s", version);
    return add_header(p, "Content-Type: application/json") && add_header(p, agent) &&
           add_header(p, "Expect:") && /* else it may wait a second */
           (!gzip || add_header(p, "Content-Encoding: gzip"));
}

/* ---- making ---- */

static char *url_of(const char *endpoint)
{
    size_t len = strlen(endpoint), path = sizeof PATH - 1;
    while (len > 0 && endpoint[len - 1] == '/')
        len--;
    bool whole = len > path && memcmp(endpoint + len - path, PATH, path) == 0;
    size_t size = len + path + 1;
    char *url = malloc(size);
    if (url != NULL)
        (void)snprintf(url, size, "%.*s%s", (int)len, endpoint, whole ? "" : PATH);
    return url;
}

/* Programs that the worker starts must not inherit it. */
static curl_socket_t open_socket(void *arg, curlsocktype purpose,
                                 struct curl_sockaddr *address)
{
    (void)arg;
    (void)purpose;
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static size_t on_body(char *bytes, size_t one, size_t n, void *arg)
{
    const hf_post *p = arg;
    hf_post_answer *out = p->answer;
    size_t room = sizeof out->body - out->len, len = one * n < room ? one * n : room;
    memcpy(out->body + out->len, bytes, len);
    out->len += len;
    return len; /* less than there is: the rest is not read */
}

#define SET(option, value)                                                               \
    if (curl_easy_setopt(p->easy, option, value) != CURLE_OK)                            \
    return false

static bool set_options(hf_post *p)
{
    SET(CURLOPT_URL, p->url);
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_POST, 1L);
    SET(CURLOPT_HTTPHEADER, p->headers);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_QUICK_EXIT, 1L); /* no wait for a look-up, whose thread ends by itself */
    SET(CURLOPT_TIMEOUT_MS, (long)LONGEST_MS);
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    SET(CURLOPT_ERRORBUFFER, p->error);
    SET(CURLOPT_OPENSOCKETFUNCTION, open_socket);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, p);
    return true;
}

hf_err hf_post_new(hf_post **out, const char *endpoint, const char *headers_file,
                   bool gzip, char detail[HF_DETAIL_SIZE])
{
    hf_post *p = calloc(1, sizeof *p);
    if (p == NULL)
        return hf_say_err(detail, HF_NOMEM);
    atomic_init(&p->end_ns, UINT64_MAX);
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        free(p);
        return hf_say(detail, HF_SYSTEM, "libcurl cannot be used");
    }
    p->multi = curl_multi_init();
    p->easy = curl_easy_init();
    p->url = url_of(endpoint);
    hf_err err = HF_OK;
    if (headers_file != NULL)
        err = read_headers(p, headers_file, detail);
    if (err == HF_OK && (p->multi == NULL || p->easy == NULL || p->url == NULL ||
                         !add_own_headers(p, gzip) || !set_options(p)))
        err = hf_say(detail, HF_SYSTEM, "libcurl cannot be used");
    if (err == HF_OK)
        *out = p;
    else
        hf_post_free(p);
    return err;
}

void hf_post_free(hf_post *p)
{
    if (p == NULL)
        return;
    curl_easy_cleanup(p->easy);
    curl_multi_cleanup(p->multi);
    curl_slist_free_all(p->headers);
    free(p->url);
    free(p);
    curl_global_cleanup();
}

/* ---- time ---- */

void hf_post_end_at(hf_post *p, uint64_t end_ns)
{
    atomic_store(&p->end_ns, end_ns);
    (void)curl_multi_wakeup(p->multi);
}

bool hf_post_is_over(const hf_post *p)
{
    return hf_boot_ns() >= atomic_load(&p->end_ns);
}

/* Sleeps until something happens, this moment, or the end. */
static void sleep_until(hf_post *p, uint64_t until_ns)
{
    uint64_t end = atomic_load(&p->end_ns), now = hf_boot_ns();
    uint64_t to = end < until_ns ? end : until_ns;
    uint64_t ms = to <= now ? 0 : (to - now) / HF_MS_NS + 1;
    (void)curl_multi_poll(p->multi, NULL, 0, ms < TURN_MS ? (int)ms : TURN_MS, NULL);
}

bool hf_post_rest(hf_post *p, int64_t ms)
{
    uint64_t until = hf_boot_ns() + (uint64_t)ms * HF_MS_NS;
    while (hf_boot_ns() < until) {
        if (until > atomic_load(&p->end_ns))
            return false; /* nothing is sent any more */
        sleep_until(p, until);
    }
    return true;
}

/* ---- a request ---- */

/* Once there is a part of its body, the answer is known, however long the rest is. */
static void take_answer(hf_post *p, CURLcode result, hf_post_answer *out)
{
    curl_off_t after_s = 0;
    if (result != CURLE_OK && out->len == 0) {
        (void)snprintf(out->why, sizeof out->why, "%s",
                       p->error[0] != '\0' ? p->error : curl_easy_strerror(result));
        return;
    }
    (void)curl_easy_getinfo(p->easy, CURLINFO_RESPONSE_CODE, &out->status);
    (void)curl_easy_getinfo(p->easy, CURLINFO_RETRY_AFTER, &after_s);
    after_s = after_s < 0 ? 0 : after_s > AFTER_MAX_S ? AFTER_MAX_S : after_s;
    out->retry_after_ms = (int64_t)after_s * 1000;
    (void)snprintf(out->why, sizeof out->why, "the collector answered %ld", out->status);
}

/* Whether it has ended. */
static bool has_ended(hf_post *p, hf_post_answer *out)
{
    int left;
    CURLMsg *message;
    while ((message = curl_multi_info_read(p->multi, &left)) != NULL)
        if (message->msg == CURLMSG_DONE) {
            take_answer(p, message->data.result, out);
            return true;
        }
    return false;
}

void hf_post_send(hf_post *p, const char *body, size_t len, hf_post_answer *out)
{
    int running = 1;
    out->status = 0;
    out->retry_after_ms = 0;
    out->len = 0;
    (void)snprintf(out->why, sizeof out->why, "no time was left");
    p->answer = out;
    p->error[0] = '\0';
    (void)curl_easy_setopt(p->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)len);
    (void)curl_easy_setopt(p->easy, CURLOPT_POSTFIELDS, body);
    if (curl_multi_add_handle(p->multi, p->easy) != CURLM_OK)
        return;
    while (!hf_post_is_over(p)) {
        if (curl_multi_perform(p->multi, &running) != CURLM_OK || has_ended(p, out))
            break;
        sleep_until(p, UINT64_MAX);
    }
    (void)curl_multi_remove_handle(p->multi, p->easy);
}
