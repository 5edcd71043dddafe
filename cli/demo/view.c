/* view.c - what one sees while the demo runs: on a terminal a picture that is drawn
 * over in place, in a pipe a line for each event and at most one a second for the
 * figures. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/demo/demo.h"
#include "cli/out.h"

enum { REDRAW_MS = 100, LINE_MS = 1000, SCREEN_MAX = 1 << 16, WRONG_SIZE = 256 };

/* The other screen of the terminal, without a cursor, and back. A terminal that has only
 * one is left empty. */
#define ENTER "\033[?1049h\033[?25l\033[2J"
#define LEAVE "\033[2J\033[H\033[?25h\033[?1049l"

/* ---- the abilities of the terminal ---- */

/* False: it is too small, or none. True: its size is that of the view now. */
static bool measure(hf_demo_view *view, bool *changed)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < HF_DEMO_COLUMNS ||
        size.ws_row < HF_DEMO_ROWS)
        return false;
    *changed = view->columns != size.ws_col || view->rows != size.ws_row;
    view->columns = size.ws_col;
    view->rows = size.ws_row;
    return true;
}

static bool speaks_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < HF_COUNT(names); i++) {
        const char *value = getenv(names[i]);
        if (value == NULL || *value == '\0')
            continue;
        const char *charset = strchr(value, '.');
        return charset != NULL && (strncasecmp(charset, ".UTF-8", 6) == 0 ||
                                   strncasecmp(charset, ".UTF8", 5) == 0);
    }
    return false;
}

static bool can_draw(hf_demo_view *view)
{
    bool changed;
    const char *term = getenv("TERM");
    return isatty(STDOUT_FILENO) == 1 && term != NULL && strcmp(term, "dumb") != 0 &&
           measure(view, &changed);
}

void hf_demo_view_init(hf_demo *d)
{
    hf_demo_view *view = &d->view;
    const char *term = getenv("TERM");
    *view = (hf_demo_view){.mode = HF_DEMO_SILENT,
                           .bright = term != NULL && strcmp(term, "dumb") != 0 &&
                                     hf_out_is_bright(stdout),
                           .utf8 = speaks_utf8(),
                           .columns = HF_DEMO_COLUMNS,
                           .rows = HF_DEMO_ROWS,
                           .shown_ms = d->start_ms};
    if (!d->cli->json)
        view->mode = can_draw(view) ? HF_DEMO_LIVE : HF_DEMO_LINES;
    if (view->mode == HF_DEMO_LIVE)
        fputs(ENTER, stdout);
}

/* ---- drawing ---- */

static void draw(const hf_demo *d, int64_t now_ms, const char *before, const char *ends,
                 const char *after)
{
    hf_buf text;
    hf_buf_init(&text, SCREEN_MAX);
    hf_buf_text(&text, before);
    hf_demo_draw(d, now_ms, ends, &text);
    hf_buf_text(&text, after);
    if (hf_buf_err(&text) == HF_OK) /* else the next one may be better */
        (void)fwrite(text.data, 1, text.len, stdout);
    hf_buf_done(&text);
    (void)fflush(stdout);
}

/* From the upper left corner, over the old picture, which is not cleared first. */
static void draw_over(const hf_demo *d, int64_t now_ms, bool wipe)
{
    draw(d, now_ms, wipe ? "\033[2J\033[H" : "\033[H", "\033[K\r\n", "\033[J");
}

void hf_demo_view_end(hf_demo *d, bool last)
{
    hf_demo_view *view = &d->view;
    if (view->mode == HF_DEMO_LIVE) {
        fputs(LEAVE, stdout);
        if (last) {
            view->rows = HF_DEMO_ROWS;
            draw(d, hf_demo_now_ms(), "", "\n", "\n");
        }
    }
    view->mode = HF_DEMO_SILENT;
    (void)fflush(stdout);
}

void hf_demo_view_stop(hf_demo *d)
{
    hf_demo_view *view = &d->view;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTSTP);
    if (view->mode == HF_DEMO_LIVE)
        fputs(LEAVE, stdout);
    (void)fflush(stdout);
    (void)raise(SIGTSTP); /* it waits until it is let through */
    (void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
    if (view->mode == HF_DEMO_LIVE)
        fputs(ENTER, stdout);
}

/* ---- events ---- */

static double seconds_of(int64_t ms)
{
    return (double)ms / 1000;
}

static void print_event(const hf_demo_view *view, size_t i)
{
    printf("%6.1f s  %s\n", seconds_of(view->events_ms[i % HF_DEMO_EVENTS]),
           view->events[i % HF_DEMO_EVENTS]);
    (void)fflush(stdout);
}

void hf_demo_say(hf_demo *d, const char *format, ...)
{
    hf_demo_view *view = &d->view;
    size_t i = view->n_events++;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(view->events[i % HF_DEMO_EVENTS], HF_DEMO_EVENT_SIZE, format, args);
    va_end(args);
    view->events_ms[i % HF_DEMO_EVENTS] = hf_demo_now_ms() - d->start_ms;
    if (view->mode == HF_DEMO_LINES)
        print_event(view, i);
    if (view->mode == HF_DEMO_LIVE)
        hf_demo_show(d, true);
}

int hf_demo_wrong(hf_demo *d, hf_exit code, const char *format, ...)
{
    char text[WRONG_SIZE];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    hf_demo_view_end(d, true);
    return hf_cli_say(d->cli, code, "", "%s", text);
}

int hf_demo_fail(hf_demo *d, hf_err err, const char *detail)
{
    hf_demo_view_end(d, true);
    return hf_cli_fail(d->cli, err, detail);
}

/* ---- lines ---- */

typedef struct totals {
    int64_t ready, delayed, running, done, dead;
} totals;

static totals add_up(const hf_demo *d)
{
    totals t = {0};
    for (size_t i = 0; i < HF_DEMO_QUEUES; i++) {
        const hf_queue_stats *s = &d->stats[i];
        t.ready += s->ready;
        t.delayed += s->delayed;
        t.running += s->running;
        t.done += s->done;
        t.dead += s->dead;
    }
    return t;
}

static void print_line(const hf_demo *d, int64_t now_ms)
{
    totals t = add_up(d);
    printf("%6.1f s  ready %lld, delayed %lld, running %lld, done %lld, dead %lld\n",
           seconds_of(now_ms - d->start_ms), (long long)t.ready, (long long)t.delayed,
           (long long)t.running, (long long)t.done, (long long)t.dead);
    (void)fflush(stdout);
}

/* ---- how things stand ---- */

/* The terminal was made too small: the text so far would disappear with its other screen.
 * */
static void go_on_with_lines(hf_demo_view *view)
{
    size_t first = view->n_events > HF_DEMO_EVENTS ? view->n_events - HF_DEMO_EVENTS : 0;
    fputs(LEAVE, stdout);
    view->mode = HF_DEMO_LINES;
    for (size_t i = first; i < view->n_events; i++)
        print_event(view, i);
}

void hf_demo_show(hf_demo *d, bool must)
{
    hf_demo_view *view = &d->view;
    bool changed = false;
    int64_t now_ms = hf_demo_now_ms();
    int64_t pause_ms = view->mode == HF_DEMO_LIVE ? REDRAW_MS : LINE_MS;
    if (view->mode == HF_DEMO_SILENT || (!must && now_ms - view->shown_ms < pause_ms))
        return;
    view->shown_ms = now_ms;
    if (view->mode == HF_DEMO_LIVE && !measure(view, &changed))
        go_on_with_lines(view);
    if (view->mode == HF_DEMO_LIVE)
        draw_over(d, now_ms, changed);
    else
        print_line(d, now_ms);
}
