/* xml.c - a look at our own pictures, from the first byte to the last. */
#include "tests/support/xml.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { DEPTH_MAX = 16, NAME_SIZE = 32 };

typedef struct reader {
    const char *at;
    const char *problem;
    char open[DEPTH_MAX][NAME_SIZE];
    size_t depth;
} reader;

static void wrong(reader *r, const char *problem)
{
    if (r->problem == NULL)
        r->problem = problem;
}

static void skip_blanks(reader *r)
{
    while (isspace((unsigned char)*r->at))
        r->at++;
}

static void read_name(reader *r, char out[NAME_SIZE])
{
    size_t n =
        strspn(r->at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ:-0123456789");
    if (n == 0 || n >= NAME_SIZE || !isalpha((unsigned char)*r->at))
        wrong(r, "expected a name");
    n = n < NAME_SIZE ? n : NAME_SIZE - 1;
    (void)snprintf(out, NAME_SIZE, "%.*s", (int)n, r->at);
    r->at += n;
}

static void read_entity(reader *r)
{
    static const char *const known[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strncmp(r->at, known[i], strlen(known[i])) == 0) {
            r->at += strlen(known[i]);
            return;
        }
    }
    wrong(r, "an & that begins no entity");
}

/* Up to one of `ends`, which stays. */
static void read_text(reader *r, const char *ends)
{
    while (r->problem == NULL && *r->at != '\0' && strchr(ends, *r->at) == NULL) {
        unsigned char c = (unsigned char)*r->at;
        if (c == '&')
            read_entity(r);
        else if (c == '<' || c > '~' || (c < ' ' && c != '\n'))
            wrong(r, "a byte that has to be escaped");
        else
            r->at++;
    }
}

static void read_attributes(reader *r)
{
    for (;;) {
        char name[NAME_SIZE];
        bool blank = isspace((unsigned char)*r->at);
        skip_blanks(r);
        if (r->problem != NULL || strchr("/>?", *r->at) != NULL)
            return;
        if (!blank)
            wrong(r, "expected a blank before an attribute");
        read_name(r, name);
        if (strncmp(r->at, "=\"", 2) != 0) {
            wrong(r, "expected =\"");
            return;
        }
        r->at += 2;
        read_text(r, "\"");
        if (*r->at != '"') {
            wrong(r, "an attribute without end");
            return;
        }
        r->at++;
    }
}

static void expect(reader *r, const char *text)
{
    if (strncmp(r->at, text, strlen(text)) == 0)
        r->at += strlen(text);
    else
        wrong(r, "a tag without end");
}

static void read_tag(reader *r)
{
    char name[NAME_SIZE];
    if (r->at[1] == '/') {
        r->at += 2;
        read_name(r, name);
        expect(r, ">");
        if (r->depth == 0 || strcmp(r->open[--r->depth], name) != 0)
            wrong(r, "an end of what was not begun");
        return;
    }
    r->at++;
    read_name(r, name);
    read_attributes(r);
    if (*r->at == '/') {
        expect(r, "/>");
    } else if (r->depth == DEPTH_MAX) {
        wrong(r, "nested too deep");
    } else {
        expect(r, ">");
        memcpy(r->open[r->depth++], name, NAME_SIZE);
    }
}

const char *hf_xml_problem(const char *text, size_t *where)
{
    reader r = {.at = text};
    if (strncmp(text, "<?xml", 5) == 0) {
        r.at += 5;
        read_attributes(&r);
        expect(&r, "?>\n");
    }
    do {
        if (*r.at == '<')
            read_tag(&r);
        else
            wrong(&r, "expected an element");
        if (r.depth > 0)
            read_text(&r, "<");
    } while (r.problem == NULL && r.depth > 0 && *r.at != '\0');
    skip_blanks(&r);
    if (r.depth > 0 || *r.at != '\0')
        wrong(&r, r.depth > 0 ? "an element without end" : "more than one element");
    *where = (size_t)(r.at - text);
    return r.problem;
}

size_t hf_xml_count(const char *text, const char *class)
{
    char attribute[64];
    size_t n = 0;
    (void)snprintf(attribute, sizeof attribute, " class=\"%s\"", class);
    for (const char *at = text; (at = strstr(at, attribute)) != NULL; at++)
        n++;
    return n;
}
