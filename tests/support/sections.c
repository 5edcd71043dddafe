/* sections.c - see sections.h. */
#include "tests/support/sections.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/markdown.h"

#define MARK "== "
enum { MARK_LEN = sizeof MARK - 1 };

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
