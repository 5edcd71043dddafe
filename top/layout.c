/* layout.c - see layout.h. */
#include "top/layout.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "seen/offer.h"
#include "top/format.h"
#include "top/keys.h"
#include "top/layout_table.h"

enum { LINE = HF_LINE_SIZE, WIDE = 80, TALL = 20, FOOT = 2, OLD_MS = 3000 };

/* ---- the first line: the pages ---- */

static void draw_pages(hf_screen *screen, const hf_view *view)
{
    const bool brief = screen->columns < WIDE;
    unsigned at = 0;
    char text[64];
    hf_screen_paint(screen, 0, 0, screen->columns, HF_STYLE_TITLE);
    if (!brief)
        at += hf_screen_put(screen, 0, 1, 10, HF_STYLE_TITLE, "holdfast") + 1;
    for (size_t i = 0; i < HF_PAGES; i++) {
        const hf_page_table *table = hf_top_page_of((hf_top_page)i);
        (void)snprintf(text, sizeof text, " %zu %s ", i + 1,
                       brief ? table->brief : table->title);
        at += hf_screen_put(
            screen, 0, at, screen->columns,
            view->page == (hf_top_page)i ? HF_STYLE_CHOSEN : HF_STYLE_TITLE, text);
    }
    const char *mode = view->frozen ? "frozen" : view->allow_changes ? "changes" : "";
    if (screen->columns > at)
        hf_screen_put_right(screen, 0, at, screen->columns - at, HF_STYLE_TITLE, mode);
}

/* ---- the verdict ---- */

static hf_style style_of_verdict(const hf_model *model)
{
    if (!model->judged)
        return HF_STYLE_DIM;
    return model->wrongs.levels[HF_LEVEL_BAD] > 0    ? HF_STYLE_BAD
           : model->wrongs.levels[HF_LEVEL_WARN] > 0 ? HF_STYLE_WARN
           : model->wrongs.levels[HF_LEVEL_NOTE] > 0 ? HF_STYLE_BOLD
                                                     : HF_STYLE_GOOD;
}

/* Where and when: the part that says least goes first where there is no room. */
static void where(const hf_model *model, const hf_view *view, uint64_t now_ns, char *out,
                  size_t size)
{
    char clock[HF_TOP_FORMAT_SIZE], age[HF_TOP_FORMAT_SIZE] = "";
    const int64_t ms = hf_model_age_ms(model, now_ns);
    if (ms < 0)
        (void)snprintf(out, size, "%s", model->server);
    else if (ms > OLD_MS + view->interval_ms)
        (void)snprintf(out, size, "%s  %s  %s old", model->server,
                       hf_top_clock(model->now_ms, clock), hf_top_span(ms, age));
    else
        (void)snprintf(out, size, "%s  %s  %gs", model->server,
                       hf_top_clock(model->now_ms + ms, clock),
                       (double)view->interval_ms / 1000);
}

static void draw_verdict(hf_screen *screen, unsigned row, const hf_model *model,
                         const hf_view *view, uint64_t now_ns)
{
    char verdict[HF_VERDICT_SIZE] = "reading ...", place[LINE];
    const unsigned room = screen->columns;
    where(model, view, now_ns, place, sizeof place);
    if (model->judged)
        (void)hf_wrong_verdict(&model->wrongs, verdict);
    const unsigned used =
        hf_screen_put(screen, row, 0, room, style_of_verdict(model), verdict) + 1;
    hf_screen_put_right(screen, row, used, room - used, HF_STYLE_DIM, place);
}

static hf_style style_of_level(hf_wrong_level level)
{
    return level == HF_LEVEL_BAD    ? HF_STYLE_BAD
           : level == HF_LEVEL_WARN ? HF_STYLE_WARN
           : level == HF_LEVEL_NOTE ? HF_STYLE_BOLD
                                    : HF_STYLE_DIM;
}

/* The sentence, and its why in the room behind it; in full it takes rows of its own. */
static unsigned draw_wrong(hf_screen *screen, unsigned row, const hf_wrong *w, bool full)
{
    static const char *const marks[] = {"!", "~", "-", "i"};
    char command[HF_WRONG_COMMAND + 4];
    const hf_style style = style_of_level(w->level);
    (void)hf_screen_put(screen, row, 0, 1, style, marks[w->level]);
    unsigned at = 2 + hf_screen_put(screen, row, 2, screen->columns, style, w->what);
    if (!full) {
        if (at + 2 < screen->columns)
            (void)hf_screen_put(screen, row, at + 1, screen->columns, HF_STYLE_DIM,
                                w->why);
        return 1;
    }
    (void)snprintf(command, sizeof command, "$ %s", w->command);
    at = row + 1;
    if (w->why[0] != '\0')
        (void)hf_screen_put(screen, at++, 2, screen->columns, HF_STYLE_DIM, w->why);
    (void)hf_screen_put(screen, at++, 2, screen->columns, HF_STYLE_BOLD, command);
    return at - row;
}

/* At most a sixth of the screen, in full a half. */
static unsigned draw_wrongs(hf_screen *screen, unsigned row, const hf_model *model,
                            const hf_view *view)
{
    const unsigned each = view->wide ? 3 : 1;
    const unsigned most = view->wide ? screen->rows / 2 : screen->rows / 6;
    const hf_wrongs *wrongs = &model->wrongs;
    const size_t all = hf_wrong_all(wrongs);
    unsigned used = 0;
    size_t i = 0;
    char more[64];
    for (; model->judged && i < wrongs->n; i++) {
        const bool last = used + 2 * each > most;
        if (used + each > most || (last && i + 1 < all))
            break;
        used += draw_wrong(screen, row + used, &wrongs->at[i], view->wide);
    }
    if (!model->judged || i >= all)
        return used;
    (void)snprintf(more, sizeof more, "  and %zu more: 'holdfast wrong' lists them",
                   all - i);
    (void)hf_screen_put(screen, row + used, 0, screen->columns, HF_STYLE_DIM, more);
    return used + 1;
}

/* ---- the sums ---- */

static void draw_totals(hf_screen *screen, unsigned row, const hf_model *model)
{
    char ready[HF_TOP_FORMAT_SIZE], running[HF_TOP_FORMAT_SIZE],
        slots[HF_TOP_FORMAT_SIZE], done[HF_TOP_FORMAT_SIZE], failed[HF_TOP_FORMAT_SIZE],
        dead[HF_TOP_FORMAT_SIZE], oldest[HF_TOP_FORMAT_SIZE], line[LINE];
    const hf_top_totals t = hf_model_totals(model);
    (void)snprintf(line, sizeof line,
                   screen->columns < WIDE
                       ? "ready %s  run %s/%s  done %s/min  fail %s%%  dead %s"
                       : "ready %s  running %s of %s slots  done %s/min  failed %s%%  "
                         "dead %s",
                   hf_top_count(t.ready, ready), hf_top_count(t.running, running),
                   hf_top_count(t.slots, slots), hf_top_rate(t.done_per_min, done),
                   hf_top_percent(t.failed_percent, failed), hf_top_count(t.dead, dead));
    const unsigned used =
        hf_screen_put(screen, row, 0, screen->columns, HF_STYLE_PLAIN, line);
    (void)snprintf(line, sizeof line, "  oldest %s", hf_top_span(t.oldest_ms, oldest));
    if (t.oldest_ms >= 0 && used + strlen(line) <= screen->columns)
        (void)hf_screen_put(screen, row, used, screen->columns, HF_STYLE_PLAIN, line);
}

/* What a list leaves out. */
static void draw_bounds(hf_screen *screen, unsigned row, const hf_model *model,
                        const hf_view *view)
{
    char looked[HF_TOP_FORMAT_SIZE], all[HF_TOP_FORMAT_SIZE], line[LINE] = "";
    const hf_top_groups *dead = &model->dead;
    if (view->page == HF_PAGE_RUNNING && model->jobs_cut)
        (void)snprintf(line, sizeof line, "more run than are listed");
    else if (view->page == HF_PAGE_DEAD && dead->looked_at < dead->dead)
        (void)snprintf(line, sizeof line, "looked at %s of %s",
                       hf_top_count(dead->looked_at, looked),
                       hf_top_count(dead->dead, all));
    if (line[0] != '\0' && screen->columns >= WIDE)
        hf_screen_put_right(screen, row, 0, screen->columns, HF_STYLE_WARN, line);
}

/* ---- the last two lines: keys, and a command, a question or a message ---- */

static void draw_command(hf_screen *screen, unsigned row, const hf_model *model,
                         const hf_view *view)
{
    char command[HF_ROW_COMMAND] = "", line[LINE];
    size_t at;
    const hf_subject *s = &view->subject;
    if (view->over == HF_OVER_LOG)
        (void)hf_offer(command, "job logs", s->id, s->queue,
                       view->follow ? " --follow" : "");
    else if (view->over == HF_OVER_WHY && s->page == HF_PAGE_RUNNING)
        (void)hf_offer(command, "job why", s->id, s->queue, "");
    else if (hf_view_row(view, &at))
        hf_top_page_of(view->page)->command(model, at, command);
    if (command[0] == '\0')
        return;
    (void)snprintf(line, sizeof line, "$ %s", command);
    (void)hf_screen_put(screen, row, 0, screen->columns, HF_STYLE_BOLD, line);
}

static void draw_foot(hf_screen *screen, const hf_model *model, const hf_view *view)
{
    const unsigned row = screen->rows - FOOT;
    char line[LINE + 32], command[LINE];
    hf_keys_line(view, line);
    (void)hf_screen_put(screen, row, 0, screen->columns, HF_STYLE_DIM, line);
    if (view->asked.kind != HF_CHANGE_NONE) {
        hf_change_command(&view->asked, command);
        (void)snprintf(line, sizeof line, "$ %s", command);
        hf_screen_clear(screen, row);
        (void)hf_screen_put(screen, row, 0, screen->columns, HF_STYLE_BOLD, line);
        hf_change_question(&view->asked, command);
        (void)snprintf(line, sizeof line, "%s [y/N] ", command);
        (void)hf_screen_put(screen, row + 1, 0, screen->columns, HF_STYLE_WARN, line);
    } else if (view->typing) {
        (void)snprintf(line, sizeof line, "/%s_", view->filter);
        (void)hf_screen_put(screen, row + 1, 0, screen->columns, HF_STYLE_BOLD, line);
    } else if (view->message[0] != '\0') {
        (void)hf_screen_put(screen, row + 1, 0, screen->columns, HF_STYLE_BOLD,
                            view->message);
    } else {
        draw_command(screen, row + 1, model, view);
    }
    if (view->filter[0] != '\0' && !view->typing) {
        (void)snprintf(line, sizeof line, "  only '%s', esc shows all", view->filter);
        hf_screen_put_right(screen, row, screen->columns / 2,
                            screen->columns - screen->columns / 2, HF_STYLE_WARN, line);
    }
}

/* ---- the middle ---- */

static void draw_over(hf_screen *screen, hf_area area, const hf_model *model,
                      hf_view *view)
{
    const hf_top_text *text = view->over == HF_OVER_LOG ? &model->log : &model->detail;
    hf_buf help;
    hf_buf_init(&help, 1 << 14);
    const char *lines = text->lines.data != NULL ? text->lines.data : "-reading ...";
    if (view->over == HF_OVER_HELP) {
        hf_keys_help(view, &help);
        lines = help.data != NULL ? help.data : "";
    }
    hf_layout_lines(screen, area, lines, view->over == HF_OVER_LOG && view->follow, view);
    hf_buf_done(&help);
}

static void draw_middle(hf_screen *screen, hf_area area, const hf_model *model,
                        hf_view *view)
{
    enum { LANES_PART = 3, LEAST = 4 };
    if (view->over != HF_OVER_NONE) {
        draw_over(screen, area, model, view);
        return;
    }
    if (view->page == HF_PAGE_RUNNING && area.rows > LEAST) {
        const hf_area lanes = {area.row, area.rows / LANES_PART};
        const unsigned used = hf_layout_lanes(screen, lanes, model);
        area.row += used;
        area.rows -= used;
    }
    hf_layout_table(screen, area, model, view);
}

/* While Redis is away all below the verdict is old. */
static void pale(hf_screen *screen, unsigned from)
{
    for (unsigned row = from; row + FOOT < screen->rows; row++)
        for (unsigned i = 0; i < screen->columns; i++) {
            hf_cell *cell = &screen->cells[(size_t)row * screen->columns + i];
            cell->style = cell->style == HF_STYLE_CHOSEN ? cell->style : HF_STYLE_DIM;
        }
}

static void draw_too_small(hf_screen *screen)
{
    char text[128];
    (void)snprintf(text, sizeof text, "holdfast top needs %dx%d, this is %ux%u",
                   HF_LAYOUT_COLUMNS, HF_LAYOUT_ROWS, screen->columns, screen->rows);
    (void)hf_screen_put(screen, 0, 0, screen->columns, HF_STYLE_BOLD, text);
}

void hf_layout(hf_screen *screen, const hf_model *model, hf_view *view, uint64_t now_ns)
{
    if (screen->columns < HF_LAYOUT_COLUMNS || screen->rows < HF_LAYOUT_ROWS) {
        draw_too_small(screen);
        return;
    }
    unsigned row = 1;
    draw_pages(screen, view);
    draw_verdict(screen, row++, model, view, now_ns);
    row += draw_wrongs(screen, row, model, view);
    const unsigned old_from = row;
    draw_totals(screen, row++, model);
    if (screen->rows >= TALL) /* an empty row, or what is left out */
        draw_bounds(screen, row++, model, view);
    const hf_area middle = {row, screen->rows - FOOT - row};
    draw_middle(screen, middle, model, view);
    if (model->away)
        pale(screen, old_from);
    draw_foot(screen, model, view);
}
