/* layout_table.c - see layout_table.h. */
#include "top/layout_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cli/width.h"
#include "top/pages.h"

enum { COLUMNS_MAX = 16, GAP = 1, PART = 1024 };

/* ---- columns ---- */

typedef struct fitted {
    size_t n;
    size_t column[COLUMNS_MAX];
    unsigned at[COLUMNS_MAX], width[COLUMNS_MAX];
} fitted;

/* Which columns there is room for. The first column is always there; `shift` of the
 * others are left of the screen. */
static fitted fit(const hf_page_table *table, const hf_view *view, unsigned columns)
{
    fitted f = {.n = 0};
    unsigned skip = view->shift, used = 0, flexible = COLUMNS_MAX;
    for (size_t i = 0; i < table->n_columns && f.n < COLUMNS_MAX; i++) {
        const hf_top_column *c = &table->columns[i];
        if (columns < c->from && !view->wide)
            continue;
        if (f.n > 0 && skip > 0) {
            skip--;
            continue;
        }
        const unsigned gap = f.n > 0 ? GAP : 0;
        if (used + gap + c->width > columns)
            break;
        flexible = c->flexible ? (unsigned)f.n : flexible;
        f.column[f.n] = i;
        f.width[f.n++] = c->width;
        used += gap + c->width;
    }
    if (flexible == COLUMNS_MAX && f.n > 0)
        flexible = 0;
    if (f.n > 0)
        f.width[flexible] += columns - used;
    for (size_t i = 1; i < f.n; i++)
        f.at[i] = f.at[i - 1] + f.width[i - 1] + GAP;
    return f;
}

static void put(hf_screen *screen, unsigned row, const fitted *f, size_t i, bool right,
                hf_style style, const char *text)
{
    if (right)
        hf_screen_put_right(screen, row, f->at[i], f->width[i], style, text);
    else
        (void)hf_screen_put(screen, row, f->at[i], f->width[i], style, text);
}

static void draw_heads(hf_screen *screen, unsigned row, const hf_page_table *table,
                       const hf_view *view, const fitted *f)
{
    const hf_page_view *page = &view->pages[view->page];
    char title[32];
    hf_screen_paint(screen, row, 0, screen->columns, HF_STYLE_TITLE);
    for (size_t i = 0; i < f->n; i++) {
        const hf_top_column *c = &table->columns[f->column[i]];
        const bool sorted = page->sort == (int)f->column[i];
        const bool rises = page->reverse == (c->number != NULL);
        (void)snprintf(title, sizeof title, "%s%s", c->title,
                       !sorted ? ""
                       : rises ? "^"
                               : "v");
        put(screen, row, f, i, c->right, HF_STYLE_TITLE, title);
    }
}

static void draw_row(hf_screen *screen, unsigned at, const hf_model *model,
                     const hf_page_table *table, const fitted *f, size_t row)
{
    for (size_t i = 0; i < f->n; i++) {
        const hf_top_column *c = &table->columns[f->column[i]];
        hf_shown shown = {.utf8 = screen->utf8, .room = f->width[i]};
        c->show(model, row, &shown);
        put(screen, at, f, i, c->right, shown.style, shown.text);
    }
}

static const char *empty_text(const hf_model *model, const hf_view *view)
{
    if (view->page == HF_PAGE_OVERVIEW ? !model->whole : !model->listed[view->page])
        return "reading ...";
    return view->filter[0] != '\0' ? "nothing matches the filter"
                                   : hf_top_page_of(view->page)->empty;
}

void hf_layout_table(hf_screen *screen, hf_area area, const hf_model *model,
                     hf_view *view)
{
    const hf_page_table *table = hf_top_page_of(view->page);
    hf_page_view *page = hf_view_page(view);
    const fitted f = fit(table, view, screen->columns);
    view->page_rows = area.rows > 1 ? area.rows - 1 : 1;
    draw_heads(screen, area.row, table, view, &f);
    if (page->chosen < page->top)
        page->top = page->chosen;
    if (page->chosen >= page->top + view->page_rows)
        page->top = page->chosen - view->page_rows + 1;
    if (view->n_order <= view->page_rows)
        page->top = 0;
    else if (page->top + view->page_rows > view->n_order)
        page->top = view->n_order - view->page_rows;
    for (size_t i = 0; i < view->page_rows && page->top + i < view->n_order; i++) {
        const unsigned at = area.row + 1 + (unsigned)i;
        draw_row(screen, at, model, table, &f, view->order[page->top + i]);
        if (page->top + i == page->chosen)
            hf_screen_paint(screen, at, 0, screen->columns, HF_STYLE_CHOSEN);
    }
    if (view->n_order == 0)
        (void)hf_screen_put(screen, area.row + 1, 0, screen->columns, HF_STYLE_DIM,
                            empty_text(model, view));
}

/* ---- lines ---- */

static hf_style style_of(char mark)
{
    switch (mark) {
    case '#':
        return HF_STYLE_TITLE;
    case '!':
        return HF_STYLE_BAD;
    case '~':
        return HF_STYLE_WARN;
    case '$':
        return HF_STYLE_BOLD;
    case '-':
        return HF_STYLE_DIM;
    default:
        return HF_STYLE_PLAIN;
    }
}

/* The bytes of a line's text that fit into a row: at a space, if there is one in its
 * second half. */
static size_t fold(const char *text, size_t len, unsigned columns)
{
    char line[PART];
    const size_t n = len < sizeof line - 1 ? len : sizeof line - 1;
    memcpy(line, text, n);
    line[n] = '\0';
    const size_t room = hf_width_bytes(line, columns);
    if (room >= len || room == 0)
        return len;
    for (size_t at = room; at > room / 2; at--)
        if (text[at] == ' ')
            return at;
    return room;
}

/* Draws the rows from the first-th on, if `draw`, and answers how many there are in all.
 */
static size_t draw_lines(hf_screen *screen, hf_area area, const char *lines, size_t first,
                         bool draw)
{
    char part[PART];
    size_t at = 0;
    while (*lines != '\0') {
        const char mark = *lines++;
        const size_t len = strcspn(lines, "\n");
        const hf_style style = style_of(mark);
        size_t from = 0;
        do {
            const size_t n = fold(lines + from, len - from, screen->columns - 2);
            if (draw && at >= first && at - first < area.rows) {
                const size_t bytes = n < sizeof part - 1 ? n : sizeof part - 1;
                memcpy(part, lines + from, bytes);
                part[bytes] = '\0';
                (void)hf_screen_put(screen, area.row + (unsigned)(at - first),
                                    mark == '#' ? 0
                                    : from > 0  ? 2
                                                : 1,
                                    screen->columns, style, part);
            }
            from += n;
            while (from < len && lines[from] == ' ')
                from++;
            at++;
        } while (from < len);
        lines += len + (lines[len] == '\n' ? 1 : 0);
    }
    return at;
}

void hf_layout_lines(hf_screen *screen, hf_area area, const char *lines, bool follow,
                     hf_view *view)
{
    const size_t all = draw_lines(screen, area, lines, 0, false);
    const size_t last = all > area.rows ? all - area.rows : 0;
    view->page_rows = area.rows;
    if (follow || view->scroll > last)
        view->scroll = last;
    (void)draw_lines(screen, area, lines, view->scroll, true);
}

/* ---- lanes ---- */

enum { LANE_NAME = 19, LANE_CELLS = 60, LANE_STEP_MS = 2000 };

static size_t order_of_lanes(const hf_model *model, size_t *rows, size_t most)
{
    size_t n = 0;
    for (size_t i = 0; i < model->n_workers && n < most; i++) /* the silent come first */
        if (model->workers[i].silent &&
            model->now_ms - model->workers[i].heard_ms < LANE_CELLS * LANE_STEP_MS)
            rows[n++] = i;
    for (size_t i = 0; i < model->n_workers && n < most; i++)
        if (!model->workers[i].silent)
            rows[n++] = i;
    return n;
}

static void draw_lane(hf_screen *screen, unsigned row, const hf_model *model,
                      const hf_top_worker *w, unsigned cells)
{
    static const char *const blocks[] = {" ", "▒", "█", "x"};
    static const char *const plain[] = {" ", ":", "#", "x"};
    static const hf_style styles[] = {HF_STYLE_DIM, HF_STYLE_DIM, HF_STYLE_RUNS,
                                      HF_STYLE_BAD};
    hf_lane_cell lane[LANE_CELLS];
    char name[HF_SHOWN_SIZE];
    const int64_t from = model->now_ms - (int64_t)cells * LANE_STEP_MS;
    hf_top_runs_lane(&model->runs, w->id, from, LANE_STEP_MS, model->now_ms, lane, cells);
    (void)snprintf(name, sizeof name, "%.60s %" PRId64, w->host, w->pid);
    (void)hf_screen_put(screen, row, 0, LANE_NAME - 1,
                        w->silent ? HF_STYLE_BAD : HF_STYLE_PLAIN, name);
    for (unsigned i = 0; i < cells; i++)
        (void)hf_screen_put(screen, row, LANE_NAME + i, 1, styles[lane[i]],
                            screen->utf8 ? blocks[lane[i]] : plain[lane[i]]);
    const int64_t heard = (w->heard_ms - from) / LANE_STEP_MS;
    if (w->silent && w->heard_ms >= from && heard < (int64_t)cells)
        (void)hf_screen_put(screen, row, LANE_NAME + (unsigned)heard, 1, HF_STYLE_BAD,
                            "|");
}

unsigned hf_layout_lanes(hf_screen *screen, hf_area area, const hf_model *model)
{
    size_t rows[32];
    const unsigned room = screen->columns - LANE_NAME;
    const unsigned cells = room < LANE_CELLS ? room : LANE_CELLS;
    size_t most = area.rows < HF_COUNT(rows) ? area.rows : HF_COUNT(rows);
    const size_t n = order_of_lanes(model, rows, most);
    for (size_t i = 0; i < n; i++)
        draw_lane(screen, area.row + (unsigned)i, model, &model->workers[rows[i]], cells);
    return (unsigned)n;
}
