/* inbox.c - cli/conform/inbox.h. */
#define _GNU_SOURCE /* NOLINT(bugprone-reserved-identifier): memmem() */
#include "cli/conform/inbox.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/json_text.h"

enum { ANY_VERDICT = HF_FRAME_KINDS };

/* False, always. */
static bool fail(char why[HF_EXPECTED_WHY_SIZE], const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static bool fail(char why[HF_EXPECTED_WHY_SIZE], const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(why, HF_EXPECTED_WHY_SIZE, format, args);
    va_end(args);
    return false;
}

/* ---- what came ---- */

static char *copy(const char *bytes, size_t len)
{
    char *own = malloc(len + 1);
    if (own != NULL && len > 0)
        memcpy(own, bytes, len);
    return own;
}

bool hf_inbox_add(hf_inbox *box, const hf_frame *f)
{
    if (box->n == box->cap) {
        size_t cap = box->cap == 0 ? 64 : 2 * box->cap;
        hf_heard *more = realloc(box->list, cap * sizeof *more);
        if (more == NULL)
            return false;
        box->list = more;
        box->cap = cap;
    }
    hf_heard *h = &box->list[box->n++];
    bool note = f->note != NULL;
    *h = (hf_heard){.kind = f->kind,
                    .run = f->run,
                    .json = f->json,
                    .body = copy(f->body, f->body_len),
                    .body_len = f->body_len,
                    .text =
                        note ? copy(f->note, f->note_len) : copy(f->error, f->error_len),
                    .text_len = note ? f->note_len : f->error_len};
    return h->body != NULL && h->text != NULL;
}

void hf_inbox_remove(hf_inbox *box, size_t i)
{
    free(box->list[i].body);
    free(box->list[i].text);
    box->n--;
    memmove(&box->list[i], &box->list[i + 1], (box->n - i) * sizeof *box->list);
}

void hf_inbox_done(hf_inbox *box)
{
    while (box->n > 0)
        hf_inbox_remove(box, box->n - 1);
    free(box->list);
}

/* ---- what is expected ---- */

static int kind_of(const char *word)
{
    int kind = HF_FRAME_READY;
    while (kind < HF_FRAME_KINDS && strcmp(hf_frame_word((hf_frame_kind)kind), word) != 0)
        kind++;
    HF_ASSERT(kind < HF_FRAME_KINDS || strcmp(word, "verdict") == 0);
    return kind;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

size_t hf_expected_read(hf_words w, hf_expected all[HF_EXPECTED_MAX])
{
    char word[32];
    size_t n = 0;
    while (w.at < w.end) {
        hf_expected *e = &all[n++];
        HF_ASSERT(n <= HF_EXPECTED_MAX);
        *e = (hf_expected){.count = 1};
        hf_buf_init(&e->bytes, 1 << 20);
        if (is_digit(*w.at))
            e->count = hf_words_number(&w);
        e->kind = kind_of(hf_words_next(&w, word));
        e->has_run = w.at < w.end && is_digit(*w.at);
        if (e->has_run)
            e->run = hf_words_number(&w);
        if (*hf_words_next(&w, word) == '\0' || strcmp(word, "and") == 0)
            continue;
        (void)snprintf(e->what, sizeof e->what, "%.7s", word);
        hf_words_bytes(w, false, &e->bytes);
        break;
    }
    return n;
}

static bool is_kind(const hf_expected *e, const hf_heard *h)
{
    bool kind =
        e->kind == ANY_VERDICT ? hf_frame_is_verdict(h->kind) : e->kind == (int)h->kind;
    return e->count > 0 && kind && (!e->has_run || e->run == h->run);
}

static bool contains(const char *text, size_t len, const hf_buf *bytes)
{
    return bytes->len == 0 || memmem(text, len, bytes->data, bytes->len) != NULL;
}

/* Where two bodies begin to differ; SIZE_MAX: they are equal. */
static size_t differ_at(const hf_heard *h, const hf_buf *bytes)
{
    size_t i = 0;
    while (i < h->body_len && i < bytes->len && h->body[i] == bytes->data[i])
        i++;
    return i == h->body_len && i == bytes->len ? SIZE_MAX : i;
}

static bool check_json(const hf_heard *h, const hf_buf *bytes,
                       char why[HF_EXPECTED_WHY_SIZE])
{
    size_t n = h->json ? hf_json_compact(h->body, h->body_len, h->body) : 0;
    return (n == bytes->len && memcmp(h->body, bytes->data, n) == 0) ||
           fail(why, "'%s' of run %llu: expected the JSON %s as its result",
                hf_frame_word(h->kind), (unsigned long long)h->run, bytes->data);
}

/* Whether it says what is expected of it. */
static bool check_content(const hf_expected *e, const hf_heard *h,
                          char why[HF_EXPECTED_WHY_SIZE])
{
    const char *word = hf_frame_word(h->kind);
    unsigned long long number = h->run;
    if (strcmp(e->what, "error") == 0)
        return contains(h->text, h->text_len, &e->bytes) ||
               contains(h->body, h->body_len, &e->bytes) ||
               fail(why,
                    "'%s' of run %llu: expected an error with the text of its payload",
                    word, number);
    if (strcmp(e->what, "note") == 0)
        return contains(h->text, h->text_len, &e->bytes) ||
               fail(why, "'%s' of run %llu: expected a note with the text of its payload",
                    word, number);
    if (strcmp(e->what, "json") == 0)
        return check_json(h, &e->bytes, why);
    if (strcmp(e->what, "body") != 0)
        return true;
    if (h->kind == HF_FRAME_LOG)
        return contains(h->body, h->body_len, &e->bytes) ||
               fail(why, "'%s' of run %llu: expected the text of its payload", word,
                    number);
    size_t at = differ_at(h, &e->bytes);
    return at == SIZE_MAX || fail(why,
                                  "'%s' of run %llu: expected a body of %zu bytes, found "
                                  "%zu that differ at byte %zu",
                                  word, number, e->bytes.len, h->body_len, at);
}

const char *hf_expected_text(const hf_expected *all, size_t n, char out[HF_EXPECTED_SIZE])
{
    size_t len = 0;
    out[0] = '\0';
    for (size_t i = 0; i < n && len < HF_EXPECTED_SIZE; i++) {
        const hf_expected *e = &all[i];
        char count[32] = "", of[32] = "";
        if (e->count == 0)
            continue;
        if (e->count > 1)
            (void)snprintf(count, sizeof count, "%zu times ", e->count);
        if (e->has_run)
            (void)snprintf(of, sizeof of, " of run %llu", (unsigned long long)e->run);
        len += (size_t)snprintf(
            out + len, HF_EXPECTED_SIZE - len, "%s%s%s%s%s%s", len > 0 ? " and " : "",
            count, e->kind == ANY_VERDICT ? "a verdict" : "'",
            e->kind == ANY_VERDICT ? "" : hf_frame_word((hf_frame_kind)e->kind),
            e->kind == ANY_VERDICT ? "" : "'", of);
    }
    return out;
}

bool hf_inbox_look(hf_inbox *box, hf_expected *all, size_t n,
                   char why[HF_EXPECTED_WHY_SIZE])
{
    char text[HF_EXPECTED_SIZE];
    for (size_t i = 0; i < box->n;) {
        hf_heard *h = &box->list[i];
        size_t k = 0;
        while (k < n && !is_kind(&all[k], h))
            k++;
        if (k == n && hf_expected_text(all, n, text)[0] == '\0')
            return true; /* for the next step */
        if (k == n && hf_frame_is_verdict(h->kind))
            return fail(why, "expected %s, found '%s' of run %llu%s%.*s", text,
                        hf_frame_word(h->kind), (unsigned long long)h->run,
                        h->text_len > 0 ? ": " : "",
                        (int)(h->text_len < 200 ? h->text_len : 200), h->text);
        if (k < n && !check_content(&all[k], h, why))
            return false;
        if (k < n)
            all[k].count--;
        hf_inbox_remove(box, i);
    }
    return true;
}

void hf_expected_done(hf_expected *all, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hf_buf_done(&all[i].bytes);
}
