/* keys.c - see keys.h. */
#include "top/keys.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"

#define ON(page) (1U << HF_PAGE_##page)
#define ALL_PAGES 0U

typedef struct key_def {
    int key, also; /* also: another one, or 0 */
    const char *name, *what;
    unsigned pages;   /* where it works; ALL_PAGES */
    bool change;      /* only with --allow-changes */
    const char *line; /* in the line of keys, or NULL */
    void (*press)(hf_view *view, const hf_model *model);
} key_def;

/* ---- where to look ---- */

static void close_over(hf_view *view)
{
    view->over = HF_OVER_NONE;
    view->subject = (hf_subject){.over = HF_OVER_NONE};
    view->scroll = 0;
}

static void show_page(hf_view *view, hf_top_page page)
{
    close_over(view);
    view->page = page;
    view->shift = 0;
}

static void on_tab(hf_view *view, const hf_model *model)
{
    (void)model;
    show_page(view, (hf_top_page)((view->page + 1) % HF_PAGES));
}

static void move(hf_view *view, const hf_model *model, int by)
{
    size_t at = view->over != HF_OVER_NONE ? view->scroll : hf_view_page(view)->chosen;
    if (by < 0)
        at = at > (size_t)-by ? at - (size_t)-by : 0;
    else
        at += (size_t)by;
    if (view->over != HF_OVER_NONE) {
        view->scroll = at; /* the layout knows the end */
        view->follow = false;
    } else {
        hf_view_choose(view, model, at);
    }
}

static void on_up(hf_view *view, const hf_model *model)
{
    move(view, model, -1);
}

static void on_down(hf_view *view, const hf_model *model)
{
    move(view, model, 1);
}

static void on_page_up(hf_view *view, const hf_model *model)
{
    move(view, model, -(int)(view->page_rows > 0 ? view->page_rows : 1));
}

static void on_page_down(hf_view *view, const hf_model *model)
{
    move(view, model, (int)(view->page_rows > 0 ? view->page_rows : 1));
}

enum { FAR = 1 << 24 };

static void on_first(hf_view *view, const hf_model *model)
{
    move(view, model, -FAR);
}

static void on_last(hf_view *view, const hf_model *model)
{
    move(view, model, FAR);
    view->follow = view->over == HF_OVER_LOG;
}

static void on_left(hf_view *view, const hf_model *model)
{
    (void)model;
    view->shift -= view->shift > 0 ? 1 : 0;
}

static void on_right(hf_view *view, const hf_model *model)
{
    (void)model;
    view->shift += view->shift + 2 < hf_top_page_of(view->page)->n_columns ? 1 : 0;
}

static void on_wide(hf_view *view, const hf_model *model)
{
    (void)model;
    view->wide = !view->wide;
    view->shift = 0;
}

static void on_filter(hf_view *view, const hf_model *model)
{
    (void)model;
    close_over(view);
    view->typing = true;
}

static bool is_sorted_by(const hf_top_column *column)
{
    return column->number != NULL || column->name != NULL;
}

/* The next column that tells an order; behind the last one comes the usual order. */
static void on_sort(hf_view *view, const hf_model *model)
{
    hf_page_view *page = hf_view_page(view);
    const hf_page_table *table = hf_top_page_of(view->page);
    (void)model;
    do
        page->sort = page->sort + 1 < (int)table->n_columns ? page->sort + 1 : -1;
    while (page->sort >= 0 && !is_sorted_by(&table->columns[page->sort]));
    (void)snprintf(view->message, sizeof view->message, "sorted by %s",
                   page->sort < 0 ? "what is wrong, as usual"
                                  : table->columns[page->sort].title);
    if (page->sort < 0 && view->page != HF_PAGE_OVERVIEW)
        (void)snprintf(view->message, sizeof view->message, "sorted as usual");
}

static void on_reverse(hf_view *view, const hf_model *model)
{
    (void)model;
    hf_view_page(view)->reverse = !hf_view_page(view)->reverse;
}

static void on_freeze(hf_view *view, const hf_model *model)
{
    (void)model;
    view->frozen = !view->frozen;
}

/* ---- the interval ---- */

static void set_interval(hf_view *view, int by)
{
    static const int64_t steps[] = {500, 1000, 2000, 5000, 10000, 30000, 60000};
    size_t i = 0;
    while (i + 1 < HF_COUNT(steps) && steps[i] < view->interval_ms)
        i++;
    if (by > 0 && i + 1 < HF_COUNT(steps) && steps[i] <= view->interval_ms)
        i++;
    if (by < 0 && i > 0)
        i--;
    view->interval_ms = steps[i];
    (void)snprintf(view->message, sizeof view->message, "reads every %g s",
                   (double)view->interval_ms / 1000);
}

static void on_slower(hf_view *view, const hf_model *model)
{
    (void)model;
    set_interval(view, 1);
}

static void on_faster(hf_view *view, const hf_model *model)
{
    (void)model;
    set_interval(view, -1);
}

/* ---- what lies over the page ---- */

static void open_over(hf_view *view, const hf_model *model, hf_over over)
{
    if (view->over == over && over != HF_OVER_LOG) {
        close_over(view);
        return;
    }
    const hf_subject subject = hf_view_subject(view, model, over);
    if (subject.over == HF_OVER_NONE || (over == HF_OVER_LOG && subject.id[0] == '\0'))
        return;
    view->over = over;
    view->subject = subject;
    view->scroll = 0;
    view->follow = over == HF_OVER_LOG;
}

static void on_enter(hf_view *view, const hf_model *model)
{
    open_over(view, model, HF_OVER_DETAIL);
}

static void on_why(hf_view *view, const hf_model *model)
{
    open_over(view, model, HF_OVER_WHY);
}

static void on_log(hf_view *view, const hf_model *model)
{
    open_over(view, model, HF_OVER_LOG);
}

static void on_follow(hf_view *view, const hf_model *model)
{
    if (view->over != HF_OVER_LOG)
        open_over(view, model, HF_OVER_LOG);
    else
        view->follow = !view->follow;
}

static void on_help(hf_view *view, const hf_model *model)
{
    (void)model;
    const bool open = view->over == HF_OVER_HELP;
    close_over(view);
    view->over = open ? HF_OVER_NONE : HF_OVER_HELP;
}

static void on_back(hf_view *view, const hf_model *model)
{
    (void)model;
    if (view->over != HF_OVER_NONE)
        close_over(view);
    else
        view->filter[0] = '\0';
}

static void on_quit(hf_view *view, const hf_model *model)
{
    (void)model;
    if (view->over != HF_OVER_NONE)
        close_over(view);
    else
        view->quit = true;
}

/* ---- changes: each is asked for ---- */

static void ask(hf_view *view, hf_change_kind kind, const char *queue, const char *id)
{
    view->asked = (hf_change){.kind = kind};
    (void)snprintf(view->asked.queue, sizeof view->asked.queue, "%s", queue);
    (void)snprintf(view->asked.id, sizeof view->asked.id, "%s", id);
}

static void on_pause(hf_view *view, const hf_model *model)
{
    const hf_subject s = hf_view_subject(view, model, HF_OVER_DETAIL);
    const hf_top_queue *q =
        s.over != HF_OVER_NONE ? hf_model_queue(model, s.queue) : NULL;
    if (q != NULL)
        ask(view, q->stats.paused ? HF_CHANGE_RESUME : HF_CHANGE_PAUSE, s.queue, "");
}

static void on_cancel(hf_view *view, const hf_model *model)
{
    const hf_subject s = hf_view_subject(view, model, HF_OVER_DETAIL);
    if (s.over != HF_OVER_NONE)
        ask(view, HF_CHANGE_CANCEL, s.queue, s.id);
}

/* Of a group all jobs of its type, because the command has no filter for errors; with the
 * details of a job open, this job. */
static void on_retry(hf_view *view, const hf_model *model)
{
    const hf_subject s = hf_view_subject(view, model, HF_OVER_DETAIL);
    size_t row;
    if (s.over == HF_OVER_NONE || s.queue[0] == '\0' || !hf_view_row(view, &row))
        return;
    if (view->over != HF_OVER_NONE)
        ask(view, HF_CHANGE_RETRY, view->subject.queue, view->subject.id);
    else
        ask(view, HF_CHANGE_RETRY_TYPE, s.queue, model->dead.at[row].type);
}

/* ---- the table ---- */

static const key_def keys[] = {
    {HF_KEY_TAB, 0, "1-6, tab", "another page", ALL_PAGES, false, NULL, on_tab},
    {HF_KEY_DOWN, 'j', "j, down", "the next row", ALL_PAGES, false, NULL, on_down},
    {HF_KEY_UP, 'k', "k, up", "the row before", ALL_PAGES, false, NULL, on_up},
    {HF_KEY_PAGE_DOWN, 0, "page down", "a screen further", ALL_PAGES, false, NULL,
     on_page_down},
    {HF_KEY_PAGE_UP, 0, "page up", "a screen back", ALL_PAGES, false, NULL, on_page_up},
    {HF_KEY_HOME, 'g', "g", "the first row", ALL_PAGES, false, NULL, on_first},
    {HF_KEY_END, 'G', "G", "the last row", ALL_PAGES, false, NULL, on_last},
    {'/', 0, "/", "filter the rows; esc ends it", ALL_PAGES, false, "/ filter",
     on_filter},
    {'s', 0, "s", "sort by the next column", ALL_PAGES, false, "s sort", on_sort},
    {'r', 0, "r", "reverse the order", ALL_PAGES, false, NULL, on_reverse},
    {HF_KEY_ENTER, '\r', "enter", "open the row: all about it, with why", ALL_PAGES,
     false, "enter open", on_enter},
    {'y', 0, "y", "why it waits, or died", ALL_PAGES, false, "y why", on_why},
    {'l', 0, "l", "the log of the job", ON(RUNNING) | ON(DEAD), false, "l log", on_log},
    {'f', 0, "f", "follow the log, or stay where it is", ON(RUNNING) | ON(DEAD), false,
     "f follow", on_follow},
    {'p', 0, "p", "pause the queue, or resume it", ON(OVERVIEW), true, "p pause",
     on_pause},
    {'c', 0, "c", "cancel the job", ON(RUNNING), true, "c cancel", on_cancel},
    {'R', 0, "R", "run dead jobs of this type again; in details, this job", ON(DEAD),
     true, "R retry", on_retry},
    {'w', 0, "w", "wide: all columns, and reasons in full", ALL_PAGES, false, "w wide",
     on_wide},
    {HF_KEY_LEFT, 0, "left", "columns further left", ALL_PAGES, false, NULL, on_left},
    {HF_KEY_RIGHT, 0, "right", "columns further right", ALL_PAGES, false, NULL, on_right},
    {' ', 0, "space", "freeze the screen, or go on", ALL_PAGES, false, NULL, on_freeze},
    {'+', '=', "+", "read more rarely, up to 60 s", ALL_PAGES, false, NULL, on_slower},
    {'-', 0, "-", "read more often, down to 0.5 s", ALL_PAGES, false, NULL, on_faster},
    {'?', 0, "?", "this help", ALL_PAGES, false, "? help", on_help},
    {HF_KEY_ESCAPE, 0, "esc", "back; without the filter", ALL_PAGES, false, NULL,
     on_back},
    {'q', 0, "q", "back, or quit", ALL_PAGES, false, "q quit", on_quit},
};

static bool works_on(const key_def *key, hf_top_page page)
{
    return key->pages == ALL_PAGES || (key->pages & (1U << page)) != 0;
}

static void press_in_filter(hf_view *view, int key)
{
    const size_t len = strlen(view->filter);
    if (key == HF_KEY_ENTER || key == '\r') {
        view->typing = false;
    } else if (key == HF_KEY_ESCAPE) {
        view->typing = false;
        view->filter[0] = '\0';
    } else if (key == HF_KEY_BACKSPACE || key == '\b') {
        if (len > 0)
            view->filter[len - 1] = '\0';
    } else if (key >= ' ' && key < HF_KEY_BACKSPACE && len + 1 < sizeof view->filter) {
        view->filter[len] = (char)key;
        view->filter[len + 1] = '\0';
    }
}

static void press_at_question(hf_view *view, int key)
{
    if (key == 'y' || key == 'Y')
        view->confirmed = view->asked;
    else
        (void)snprintf(view->message, sizeof view->message, "nothing was done");
    view->asked = (hf_change){.kind = HF_CHANGE_NONE};
}

void hf_keys_press(hf_view *view, const hf_model *model, int key)
{
    view->message[0] = '\0';
    if (view->asked.kind != HF_CHANGE_NONE) {
        press_at_question(view, key);
        return;
    }
    if (view->typing) {
        press_in_filter(view, key);
        return;
    }
    if (key >= '1' && key < '1' + HF_PAGES) {
        show_page(view, (hf_top_page)(key - '1'));
        return;
    }
    for (size_t i = 0; i < HF_COUNT(keys); i++) {
        const key_def *k = &keys[i];
        if ((k->key != key && (k->also == 0 || k->also != key)) ||
            !works_on(k, view->page))
            continue;
        if (k->change && !view->allow_changes)
            (void)snprintf(view->message, sizeof view->message,
                           "%s needs --allow-changes", k->name);
        else
            k->press(view, model);
        return;
    }
}

/* ---- what the keys are ---- */

void hf_keys_help(const hf_view *view, hf_buf *out)
{
    hf_buf_text(out, "#keys\n");
    for (size_t i = 0; i < HF_COUNT(keys); i++) {
        const key_def *k = &keys[i];
        hf_buf_printf(out, "%c%-10s %s%s\n",
                      k->change && !view->allow_changes ? '-' : ' ', k->name, k->what,
                      k->change ? " (only with --allow-changes)" : "");
    }
}

void hf_keys_line(const hf_view *view, char out[HF_LINE_SIZE])
{
    size_t len = 0;
    out[0] = '\0';
    for (size_t i = 0; i < HF_COUNT(keys) && len < HF_LINE_SIZE; i++) {
        const key_def *k = &keys[i];
        if (k->line != NULL && works_on(k, view->page) &&
            (!k->change || view->allow_changes))
            len += (size_t)snprintf(out + len, HF_LINE_SIZE - len, "%s%s",
                                    len > 0 ? "  " : " ", k->line);
    }
}
