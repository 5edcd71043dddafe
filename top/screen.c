/* screen.c - see screen.h. */
#include "top/screen.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/width.h"

enum { ASCII_END = 0x7f, CUT = '>', CUT_UTF8 = 0x2026 };

hf_err hf_screen_begin(hf_screen *screen, unsigned rows, unsigned columns)
{
    const size_t n = (size_t)rows * columns;
    if (screen->cells == NULL || rows != screen->rows || columns != screen->columns) {
        hf_cell *cells = calloc(n + 1, sizeof *cells);
        if (cells == NULL)
            return HF_NOMEM;
        free(screen->cells);
        screen->cells = cells;
        screen->rows = rows;
        screen->columns = columns;
    }
    for (size_t i = 0; i < n; i++)
        screen->cells[i] = (hf_cell){.c = ' '};
    return HF_OK;
}

void hf_screen_done(hf_screen *screen)
{
    free(screen->cells);
    *screen = (hf_screen){0};
}

/* The next character of a text, the columns that it takes, and its bytes. */
static size_t read_one(const hf_screen *screen, const char *text, uint32_t *c,
                       unsigned *columns)
{
    const unsigned char first = (unsigned char)text[0];
    char one[HF_CELL_SIZE] = "";
    *columns = 1;
    *c = first;
    if (first >= ' ' && first < ASCII_END)
        return 1;
    const size_t control = hf_control_len(text);
    if (control > 0) {
        *c = ' ';
        return control;
    }
    const size_t len = hf_utf8_len(text, strnlen(text, HF_CELL_SIZE - 1));
    if (len == 0 || !screen->utf8) {
        *c = '?';
        return len == 0 ? 1 : len;
    }
    memcpy(one, text, len);
    *c = hf_utf8_char(text, len);
    *columns = (unsigned)hf_width(one);
    return len;
}

static hf_cell *cell_at(hf_screen *screen, unsigned row, unsigned column)
{
    return &screen->cells[(size_t)row * screen->columns + column];
}

/* Puts the sign; half of a wide character does not stay. */
static void cut(hf_screen *screen, unsigned row, unsigned column, unsigned width,
                hf_style style)
{
    hf_cell *last = cell_at(screen, row, column + width - 1);
    if (last->c == 0 && width > 1)
        last[-1] = (hf_cell){' ', (uint8_t)style};
    *last = (hf_cell){screen->utf8 ? CUT_UTF8 : CUT, (uint8_t)style};
}

unsigned hf_screen_put(hf_screen *screen, unsigned row, unsigned column, unsigned width,
                       hf_style style, const char *text)
{
    unsigned used = 0, columns;
    uint32_t c;
    if (row >= screen->rows || column >= screen->columns)
        return 0;
    if (width > screen->columns - column)
        width = screen->columns - column;
    while (*text != '\0' && width > 0) {
        text += read_one(screen, text, &c, &columns);
        if (columns == 0) /* it joins the one before */
            continue;
        if (used + columns > width) {
            cut(screen, row, column, width, style);
            return width;
        }
        *cell_at(screen, row, column + used) = (hf_cell){c, (uint8_t)style};
        for (unsigned i = 1; i < columns; i++)
            *cell_at(screen, row, column + used + i) = (hf_cell){0, (uint8_t)style};
        used += columns;
    }
    return used;
}

void hf_screen_put_right(hf_screen *screen, unsigned row, unsigned column, unsigned width,
                         hf_style style, const char *text)
{
    const unsigned taken = (unsigned)hf_width(text);
    const unsigned before = taken < width ? width - taken : 0;
    (void)hf_screen_put(screen, row, column + before, width - before, style, text);
}

void hf_screen_paint(hf_screen *screen, unsigned row, unsigned column, unsigned width,
                     hf_style style)
{
    for (unsigned i = column; row < screen->rows && i < screen->columns && width > 0;
         i++, width--)
        cell_at(screen, row, i)->style = (uint8_t)style;
}

void hf_screen_clear(hf_screen *screen, unsigned row)
{
    for (unsigned i = 0; row < screen->rows && i < screen->columns; i++)
        *cell_at(screen, row, i) = (hf_cell){.c = ' '};
}

size_t hf_screen_utf8(uint32_t c, char out[HF_CELL_SIZE])
{
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char marks[] = {0, 0, 0xc0, 0xe0, 0xf0};
    out[n] = '\0';
    for (size_t i = n; i > 1; i--, c >>= 6)
        out[i - 1] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)(marks[n] | c);
    return n;
}

void hf_screen_row(const hf_screen *screen, unsigned row, char *out)
{
    size_t len = 0, end = 0;
    for (unsigned i = 0; i < screen->columns; i++) {
        const uint32_t c = screen->cells[(size_t)row * screen->columns + i].c;
        if (c == 0)
            continue;
        char one[HF_CELL_SIZE];
        const size_t n = hf_screen_utf8(c, one);
        memcpy(out + len, one, n);
        len += n;
        end = c == ' ' ? end : len;
    }
    out[end] = '\0';
}
