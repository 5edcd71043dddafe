/* markdown.c - see markdown.h. */
#include "tests/support/markdown.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/tempdir.h"

#define MARK "== " /* of a section */
enum { DOCUMENT_MAX = 256 << 10, MARK_LEN = sizeof MARK - 1 };

static const char fence[] = "```";

char *hf_md_read(const char *path)
{
    char *text = malloc(DOCUMENT_MAX);
    assert_non_null(text);
    (void)hf_read_file(path, text, DOCUMENT_MAX);
    if (text[0] == '\0' || strlen(text) == DOCUMENT_MAX - 1)
        fail_msg("%s: there is no such document, or it is too large", path);
    return text;
}

static bool is_fence(const char *line)
{
    return strncmp(line, fence, sizeof fence - 1) == 0;
}

/* Where the line after this one begins; the end of the text after the last. */
static const char *next_line(const char *at)
{
    const char *end = strchr(at, '\n');
    return end == NULL ? at + strlen(at) : end + 1;
}

/* What a line says that is a comment, else "". */
static void read_note(const char *line, char out[HF_MD_SPAN])
{
    static const char open[] = "<!-- ", close[] = " -->";
    size_t len = strcspn(line, "\n"), around = sizeof open + sizeof close - 2;
    out[0] = '\0';
    if (len > around && len - around < HF_MD_SPAN &&
        strncmp(line, open, sizeof open - 1) == 0 &&
        strncmp(line + len - (sizeof close - 1), close, sizeof close - 1) == 0)
        (void)snprintf(out, HF_MD_SPAN, "%.*s", (int)(len - around),
                       line + sizeof open - 1);
}

bool hf_md_next_block(const char **at, hf_md_block *out)
{
    const char *line = *at;
    for (out->note[0] = '\0'; *line != '\0' && !is_fence(line); line = next_line(line))
        read_note(line, out->note);
    if (*line == '\0')
        return false;
    const char *info = line + sizeof fence - 1;
    (void)snprintf(out->info, sizeof out->info, "%.*s", (int)strcspn(info, "\n"), info);
    out->text = next_line(line);
    for (line = out->text; *line != '\0' && !is_fence(line);)
        line = next_line(line);
    out->len = (size_t)(line - out->text);
    *at = next_line(line);
    return true;
}

/* The first ` of a span, outside of blocks, or the end of the text. */
static const char *find_span(const char *at, const char *start)
{
    while (*at != '\0') {
        if ((at == start || at[-1] == '\n') && is_fence(at)) {
            for (at = next_line(at); *at != '\0' && !is_fence(at);)
                at = next_line(at);
            at = next_line(at);
        } else if (*at == '`') {
            return at;
        } else {
            at++;
        }
    }
    return at;
}

bool hf_md_next_span(const char **at, char out[HF_MD_SPAN])
{
    const char *open = *at, *start = *at;
    while (*(open = find_span(open, start)) != '\0') {
        size_t len = strcspn(open + 1, "`\n");
        const char *close = open + 1 + len;
        if (*close == '`' && len < HF_MD_SPAN) {
            memcpy(out, open + 1, len);
            out[len] = '\0';
            *at = close + 1;
            return true;
        }
        open = *close == '`' ? close + 1 : close;
    }
    return false;
}

/* ---- a file of many small texts ---- */

/* The line that begins a section, or the end of the text. */
static const char *find_mark(const char *at)
{
    while (*at != '\0' && strncmp(at, MARK, MARK_LEN) != 0) {
        at += strcspn(at, "\n");
        at += *at == '\n' ? 1 : 0;
    }
    return at;
}

bool hf_section_next(const char **at, hf_section *out)
{
    const char *head = find_mark(*at);
    if (*head == '\0')
        return false;
    head += MARK_LEN;
    size_t len = strcspn(head, "\n");
    assert_in_range(len, 1, HF_SECTION_NAME - 1);
    memcpy(out->name, head, len);
    out->name[len] = '\0';
    out->text = head + len + (head[len] == '\n' ? 1 : 0);
    *at = find_mark(out->text);
    out->len = (size_t)(*at - out->text);
    bool empty_line = out->len == 1 || (out->len > 1 && (*at)[-2] == '\n');
    if (**at != '\0' && empty_line)
        out->len--;
    return true;
}

char *hf_section_read(const char *path, const char *name)
{
    char *file = hf_md_read(path), *text = NULL;
    hf_section section;
    for (const char *at = file; text == NULL && hf_section_next(&at, &section);)
        if (strcmp(section.name, name) == 0)
            text = strndup(section.text, section.len);
    free(file);
    if (text == NULL)
        fail_msg("%s has no section '%s'", path, name);
    return text;
}
