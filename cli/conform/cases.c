/* cases.c - cli/conform/cases.h. */
#include "cli/conform/cases.h"

#include <stdlib.h>
#include <string.h>

#include "conform_cases.h"

bool hf_conform_is(const hf_conform_line *line, const char *word)
{
    return line->word_len == strlen(word) &&
           memcmp(line->word, word, line->word_len) == 0;
}

bool hf_conform_next(const char **at, const char *end, hf_conform_line *out)
{
    while (*at < end) {
        const char *line = *at, *newline = memchr(line, '\n', (size_t)(end - line));
        const char *stop = newline == NULL ? end : newline;
        *at = newline == NULL ? end : newline + 1;
        if (stop == line || *line == '#')
            continue;
        const char *space = memchr(line, ' ', (size_t)(stop - line));
        out->word = line;
        out->word_len = (size_t)((space == NULL ? stop : space) - line);
        out->rest = space == NULL ? stop : space + 1;
        out->rest_len = (size_t)(stop - out->rest);
        return true;
    }
    return false;
}

/* How many begin in a text; they go to *out, unless it is NULL. */
static size_t find(const char *text, hf_conform_case *out)
{
    const char *at = text, *end = text + strlen(text);
    size_t n = 0;
    for (;;) {
        const char *before = at;
        hf_conform_line line;
        if (!hf_conform_next(&at, end, &line))
            return n;
        if (!hf_conform_is(&line, "case")) {
            continue;
        }
        if (out != NULL && n > 0)
            out[n - 1].end = before;
        if (out != NULL)
            out[n] = (hf_conform_case){line.rest, line.rest_len, at, end};
        n++;
    }
}

hf_conform_case *hf_conform_cases(size_t *n)
{
    size_t all = 0;
    for (size_t i = 0; i < sizeof hf_conform_files / sizeof *hf_conform_files; i++)
        all += find(hf_conform_files[i], NULL);
    hf_conform_case *list = calloc(all + 1, sizeof *list);
    *n = 0;
    for (size_t i = 0;
         list != NULL && i < sizeof hf_conform_files / sizeof *hf_conform_files; i++)
        *n += find(hf_conform_files[i], list + *n);
    return list;
}

/* ---- the words of a line ---- */

const char *hf_words_next(hf_words *w, char out[HF_WORD_SIZE])
{
    size_t n = 0;
    while (w->at < w->end && *w->at != ' ' && n < HF_WORD_SIZE - 1)
        out[n++] = *w->at++;
    out[n] = '\0';
    if (w->at < w->end && *w->at == ' ')
        w->at++;
    return out;
}

uint64_t hf_words_number(hf_words *w)
{
    char word[HF_WORD_SIZE];
    return strtoull(hf_words_next(w, word), NULL, 10);
}

static void add_pattern(hf_buf *out, size_t n)
{
    char *room = hf_buf_room(out, n);
    for (size_t i = 0; room != NULL && i < n; i++)
        room[i] = (char)('a' + i % 26);
    if (room != NULL)
        hf_buf_took(out, n);
}

static char byte_of(const char *hex)
{
    char digits[3] = {hex[0], hex[1], '\0'};
    return (char)strtoul(digits, NULL, 16);
}

void hf_words_bytes(hf_words w, bool json, hf_buf *out)
{
    bool all = w.end - w.at == 4 && memcmp(w.at, "@all", 4) == 0;
    for (int i = 0; all && i < 256; i++)
        hf_buf_add(out, &(char){(char)i}, 1);
    while (!all && w.at < w.end) {
        char c = *w.at++;
        if (c == '@') {
            char *after;
            add_pattern(out, strtoul(w.at, &after, 10));
            w.at = after;
            continue;
        }
        if (c == '\\' && !json) {
            c = *w.at++;
            if (c == 'x') {
                c = byte_of(w.at);
                w.at += 2;
            } else if (c != '\\')
                c = c == 'n' ? '\n' : '\t';
        }
        hf_buf_add(out, &c, 1);
    }
}
