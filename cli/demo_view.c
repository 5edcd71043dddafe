/* demo_view.c - what one sees while the demo runs: on a terminal a picture that is drawn
 * over in place, in a pipe a line for each event and at most one a second for the
 * figures. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/demo.h"
#include "cli/out.h"

enum {
    COLUMNS = 80,
    ROWS = 24,
    BAR = 62,
    REDRAW_MS = 100,
    LINE_MS = 1000,
    PICTURE_MAX = 1 << 16
};

#define BOLD "1"
#define DIM "2"
#define RED "31"
#define GREEN "32"
#define YELLOW "33"

/* ---- what the terminal can do ---- */

static bool is_large_enough(void)
{
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= COLUMNS &&
           size.ws_row >= ROWS;
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

void hf_demo_view_init(hf_demo *d)
{
    const char *term = getenv("TERM");
    bool can_move =
        isatty(STDOUT_FILENO) == 1 && term != NULL && strcmp(term, "dumb") != 0;
    d->view = (hf_demo_view){.bright = can_move && hf_out_is_bright(stdout),
                             .utf8 = speaks_utf8(),
                             .shown_ms = d->start_ms,
                             .mode = can_move && is_large_enough() ? HF_DEMO_LIVE
                                                                   : HF_DEMO_LINES};
    if (d->cli->json)
        d->view.mode = HF_DEMO_SILENT;
    if (d->view.mode == HF_DEMO_LIVE)
        fputs("\033[?25l", stdout); /* no cursor */
}

void hf_demo_view_end(hf_demo *d)
{
    if (d->view.mode == HF_DEMO_LIVE)
        fputs("\033[?25h", stdout);
    d->view.mode = HF_DEMO_SILENT;
    (void)fflush(stdout);
}

/* ---- events ---- */

static double seconds_of(int64_t ms)
{
    return (double)ms / 1000;
}

void hf_demo_say(hf_demo *d, const char *format, ...)
{
    hf_demo_view *view = &d->view;
    size_t place = view->n_events++ % HF_DEMO_EVENTS;
    char *event = view->events[place];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(event, HF_DEMO_EVENT_SIZE, format, args);
    va_end(args);
    view->events_ms[place] = hf_demo_now_ms() - d->start_ms;
    if (view->mode == HF_DEMO_LINES) {
        printf("%6.1f s  %s\n", seconds_of(view->events_ms[place]), event);
        (void)fflush(stdout);
    }
    if (view->mode == HF_DEMO_LIVE)
        hf_demo_show(d, true);
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

/* ---- the picture ---- */

typedef struct picture {
    hf_buf text;
    bool bright;
    size_t rows;
} picture;

static void end_row(picture *p)
{
    hf_buf_text(&p->text, "\033[K\n");
    p->rows++;
}

static void paint(picture *p, const char *colour, const char *text)
{
    if (p->bright && colour != NULL)
        hf_buf_printf(&p->text, "\033[%sm%s\033[0m", colour, text);
    else
        hf_buf_text(&p->text, text);
}

/* Right-aligned; nothing worth looking at is dim. */
static void paint_number(picture *p, const char *colour, int64_t number)
{
    char cell[24];
    (void)snprintf(cell, sizeof cell, "%10lld", (long long)number);
    paint(p, number == 0 ? DIM : colour, cell);
}

static void draw_title(picture *p, const hf_demo *d, int64_t now_ms)
{
    char time[16];
    (void)snprintf(time, sizeof time, "%8.1f s", seconds_of(now_ms - d->start_ms));
    paint(p, BOLD, "  holdfast demo");
    paint(p, NULL, "   300 jobs, 3 workers, and one of them is killed   ");
    paint(p, BOLD, time);
    end_row(p);
    end_row(p);
}

static void draw_queues(picture *p, const hf_demo *d)
{
    paint(p, DIM, "  queue              ready   delayed   running      done      dead");
    end_row(p);
    for (size_t i = 0; i < HF_DEMO_QUEUES; i++) {
        const hf_queue_stats *s = &d->stats[i];
        hf_buf_printf(&p->text, "  %-14s", hf_demo_queue_names[i]);
        paint_number(p, NULL, s->ready);
        paint_number(p, NULL, s->delayed);
        paint_number(p, YELLOW, s->running);
        paint_number(p, GREEN, s->done);
        paint_number(p, RED, s->dead);
        end_row(p);
    }
    end_row(p);
}

static void repeat(char *out, size_t size, const char *unit, size_t n)
{
    size_t len = 0;
    out[0] = '\0';
    for (size_t i = 0; i < n && len + strlen(unit) < size; i++)
        len += (size_t)snprintf(out + len, size - len, "%s", unit);
}

static void draw_bar(picture *p, const hf_demo *d)
{
    char part[BAR * 4];
    totals t = add_up(d);
    long long settled = t.done + t.dead;
    const char *full = d->view.utf8 ? "\xE2\x94\x81" : "=",
               *rest = d->view.utf8 ? "\xE2\x94\x80" : "-";
    size_t done = (size_t)(t.done * BAR / HF_DEMO_JOBS);
    size_t dead = (size_t)(settled * BAR / HF_DEMO_JOBS) - done;
    hf_buf_text(&p->text, "  ");
    repeat(part, sizeof part, full, done);
    paint(p, GREEN, part);
    repeat(part, sizeof part, d->view.bright ? full : "x", dead);
    paint(p, RED, part);
    repeat(part, sizeof part, rest, BAR - done - dead);
    paint(p, DIM, part);
    hf_buf_printf(&p->text, "  %lld of %d", settled, HF_DEMO_JOBS);
    end_row(p);
    end_row(p);
}

static void state_of(const hf_demo *d, size_t i, int64_t running, char out[32],
                     const char **colour)
{
    const hf_demo_worker *worker = &d->workers[i];
    *colour = DIM;
    if (worker->pid == 0)
        (void)snprintf(out, 32, "not started yet");
    else if (i == 0 && d->killed_ms != 0) {
        *colour = RED;
        (void)snprintf(out, 32, "killed at %.1f s with %zu",
                       seconds_of(d->killed_ms - d->start_ms), d->n_victims);
    } else if (worker->ended && WIFEXITED(worker->status))
        (void)snprintf(out, 32, "stopped, exit code %d", WEXITSTATUS(worker->status));
    else if (worker->ended)
        (void)snprintf(out, 32, "ended by signal %d", WTERMSIG(worker->status));
    else if (running > 0) {
        *colour = GREEN;
        (void)snprintf(out, 32, "at work");
    } else
        (void)snprintf(out, 32, d->stopping ? "stopping" : "idle");
}

static void draw_workers(picture *p, const hf_demo *d)
{
    int64_t running[HF_DEMO_WORKERS] = {0}, ran[HF_DEMO_WORKERS] = {0};
    for (size_t j = 0; j < HF_DEMO_JOBS; j++) {
        const hf_demo_job *job = &d->jobs[j];
        for (size_t r = 0; r < job->n_runs && r < HF_DEMO_RUNS_MAX; r++) {
            for (size_t i = 0; i < HF_DEMO_WORKERS; i++) {
                if (d->workers[i].pid != job->runs[r].worker)
                    continue;
                running[i] +=
                    job->runs[r].end_ms == 0 && !(i == 0 && d->killed_ms != 0) ? 1 : 0;
                ran[i] += job->runs[r].end_ms != 0 ? 1 : 0;
            }
        }
    }
    paint(p, DIM,
          "  worker             pid   state                     running       ran");
    end_row(p);
    for (size_t i = 0; i < HF_DEMO_WORKERS; i++) {
        char state[32], cell[40];
        const char *colour;
        state_of(d, i, running[i], state, &colour);
        hf_buf_printf(&p->text, "  %-10zu", i + 1);
        (void)snprintf(cell, sizeof cell, "%10ld", (long)d->workers[i].pid);
        paint(p, d->workers[i].pid == 0 ? DIM : NULL,
              d->workers[i].pid == 0 ? "         -" : cell);
        (void)snprintf(cell, sizeof cell, "   %-23s", state);
        paint(p, colour, cell);
        paint_number(p, YELLOW, running[i]);
        paint_number(p, GREEN, ran[i]);
        end_row(p);
    }
    end_row(p);
}

static void draw_events(picture *p, const hf_demo *d)
{
    const hf_demo_view *view = &d->view;
    size_t n = view->n_events < HF_DEMO_EVENTS ? view->n_events : HF_DEMO_EVENTS;
    for (size_t i = view->n_events - n; i < view->n_events; i++) {
        char time[16];
        (void)snprintf(time, sizeof time, "%6.1f s  ",
                       seconds_of(view->events_ms[i % HF_DEMO_EVENTS]));
        paint(p, DIM, time);
        hf_buf_text(&p->text, view->events[i % HF_DEMO_EVENTS]);
        end_row(p);
    }
}

static void draw(hf_demo *d, int64_t now_ms)
{
    picture p = {.bright = d->view.bright};
    hf_buf_init(&p.text, PICTURE_MAX);
    if (d->view.rows > 0)
        hf_buf_printf(&p.text, "\r\033[%zuA", d->view.rows);
    draw_title(&p, d, now_ms);
    draw_queues(&p, d);
    draw_bar(&p, d);
    draw_workers(&p, d);
    draw_events(&p, d);
    if (hf_buf_err(&p.text) == HF_OK) { /* else the next one may be better */
        (void)fwrite(p.text.data, 1, p.text.len, stdout);
        (void)fflush(stdout);
        d->view.rows = p.rows;
    }
    hf_buf_done(&p.text);
}

void hf_demo_show(hf_demo *d, bool must)
{
    hf_demo_view *view = &d->view;
    int64_t now_ms = hf_demo_now_ms();
    int64_t pause_ms = view->mode == HF_DEMO_LIVE ? REDRAW_MS : LINE_MS;
    if (view->mode == HF_DEMO_SILENT || (!must && now_ms - view->shown_ms < pause_ms))
        return;
    view->shown_ms = now_ms;
    if (view->mode == HF_DEMO_LIVE && !is_large_enough()) {
        /* It was made smaller: what would be drawn over is not where it was. */
        fputs("\033[?25h", stdout);
        view->mode = HF_DEMO_LINES;
    }
    if (view->mode == HF_DEMO_LIVE)
        draw(d, now_ms);
    else
        print_line(d, now_ms);
}
