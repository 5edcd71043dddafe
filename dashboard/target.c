/* target.c - see target.h. */
#include "dashboard/target.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Whole characters. A terminal or a log can take none of them for a command. */
static bool is_plain(const char *text)
{
    for (size_t left = strlen(text); left > 0;) {
        size_t len = hf_utf8_len(text, left);
        if (len == 0 || hf_control_len(text) > 0)
            return false;
        text += len;
        left -= len;
    }
    return true;
}

bool hf_target_decode(char *text, bool form)
{
    char *out = text;
    for (const char *at = text; *at != '\0'; at++) {
        *out = form && *at == '+' ? ' ' : *at;
        if (*at == '%') {
            int high = digit_of(at[1]), low = high < 0 ? -1 : digit_of(at[2]);
            if (low < 0 || high + low == 0)
                return false;
            *out = (char)(high * 16 + low);
            at += 2;
        }
        out++;
    }
    *out = '\0';
    return is_plain(text);
}

static bool read_path(hf_http_target *t, char *path)
{
    char *rest = path;
    while (rest != NULL) {
        char *segment = rest, *slash = strchr(rest, '/');
        rest = slash == NULL ? NULL : slash + 1;
        if (slash != NULL)
            *slash = '\0';
        if (*segment == '\0' && rest == NULL)
            return true; /* it ended with a slash */
        if (t->n_segments == HF_TARGET_SEGMENTS || !hf_target_decode(segment, false) ||
            *segment == '\0' || strcmp(segment, ".") == 0 || strcmp(segment, "..") == 0)
            return false;
        t->segments[t->n_segments++] = segment;
    }
    return true;
}

static bool read_query(hf_http_target *t, char *query)
{
    char *rest = query;
    while (rest != NULL && *rest != '\0') {
        char *name = rest, *end = strchr(rest, '&');
        rest = end == NULL ? NULL : end + 1;
        if (end != NULL)
            *end = '\0';
        char *value = strchr(name, '=');
        if (value == NULL || t->n_params == HF_TARGET_PARAMS)
            return false;
        *value++ = '\0';
        if (!hf_target_decode(name, true) || !hf_target_decode(value, true))
            return false;
        t->params[t->n_params++] = (hf_param){name, value};
    }
    return true;
}

bool hf_target_read(hf_http_target *out, const char *sent, const char *base)
{
    const size_t len = strlen(base);
    *out = (hf_http_target){.text = strdup(sent)};
    if (out->text == NULL || sent[0] != '/')
        return false;
    char *query = strchr(out->text, '?'), *path = out->text;
    if (query != NULL)
        *query++ = '\0';
    if (strncmp(path, base, len) == 0 && (path[len] == '/' || path[len] == '\0'))
        path += len;
    if (*path == '/')
        path++;
    return read_path(out, path) && read_query(out, query);
}

void hf_target_done(hf_http_target *t)
{
    free(t->text);
    *t = (hf_http_target){.text = NULL};
}

const char *hf_target_param(const hf_http_target *t, const char *name)
{
    for (size_t i = 0; i < t->n_params; i++)
        if (strcmp(t->params[i].name, name) == 0)
            return t->params[i].value;
    return NULL;
}

bool hf_target_number(const hf_http_target *t, const char *name, int64_t min, int64_t max,
                      int64_t otherwise, int64_t *out)
{
    const char *text = hf_target_param(t, name);
    *out = otherwise;
    return text == NULL || hf_parse_int(text, min, max, out);
}

bool hf_target_duration(const hf_http_target *t, const char *name, int64_t otherwise,
                        int64_t *out)
{
    const char *text = hf_target_param(t, name);
    *out = otherwise;
    return text == NULL || (hf_parse_duration_ms(text, out) && *out > 0);
}
