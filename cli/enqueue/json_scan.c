/* json_scan.c - see json_scan.h. Never reads past the end of any text. */
#include "cli/enqueue/json_scan.h"

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void skip_space(hf_json_scan *scan)
{
    while (scan->at < scan->end && is_space(*scan->at))
        scan->at++;
}

/* Over a string, from its first quote to behind its last. */
static void skip_string(hf_json_scan *scan)
{
    for (scan->at++; scan->at < scan->end; scan->at++) {
        if (*scan->at == '\\' && scan->at + 1 < scan->end)
            scan->at++;
        else if (*scan->at == '"') {
            scan->at++;
            return;
        }
    }
}

/* Over an object or a list: brackets in strings do not count, and all others match. */
static void skip_nested(hf_json_scan *scan)
{
    size_t depth = 0;
    while (scan->at < scan->end) {
        char c = *scan->at;
        if (c == '"') {
            skip_string(scan);
            continue;
        }
        scan->at++;
        if (c == '{' || c == '[')
            depth++;
        else if ((c == '}' || c == ']') && --depth == 0)
            return;
    }
}

static void skip_value(hf_json_scan *scan)
{
    char c = scan->at < scan->end ? *scan->at : ',';
    if (c == '"') {
        skip_string(scan);
    } else if (c == '{' || c == '[') {
        skip_nested(scan);
    } else {
        while (scan->at < scan->end && *scan->at != ',' && *scan->at != '}' &&
               !is_space(*scan->at))
            scan->at++;
    }
}

void hf_json_scan_start(hf_json_scan *scan, const char *object, size_t len)
{
    *scan = (hf_json_scan){object, object + len};
    skip_space(scan);
    if (scan->at < scan->end && *scan->at == '{')
        scan->at++;
}

bool hf_json_scan_next(hf_json_scan *scan, hf_json_member *out)
{
    while (scan->at < scan->end && (is_space(*scan->at) || *scan->at == ','))
        scan->at++;
    if (scan->at >= scan->end || *scan->at != '"')
        return false;
    out->key = scan->at;
    skip_string(scan);
    out->key_len = (size_t)(scan->at - out->key);
    while (scan->at < scan->end && (is_space(*scan->at) || *scan->at == ':'))
        scan->at++;
    out->value = scan->at;
    skip_value(scan);
    out->value_len = (size_t)(scan->at - out->value);
    return true;
}
