/* screen.c - what the demo draws while it runs: the queues, the workers and what
 * they hold, where the jobs of the killed one are, and what happened last. Rows are at
 * most a column shorter than the terminal: text in its last column would make some
 * terminals wrap. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/base.h"
#include "cli/demo/demo.h"

enum {
    ROOM = 17,     /* of a queue's bar, in the smallest terminal */
    ROOM_MAX = 77, /* in any */
    PROGRESS = 6   /* of a long job's */
};

#define BOLD "1"
#define DIM "2"
#define RED "31"
#define GREEN "32"
#define YELLOW "33"

static const struct {
    const char *name, *colour;
} kinds[] = {{"quick", "36"},
             {"later", "34"},
             {"flaky", YELLOW},
             {"broken", "35"},
             {"long", GREEN}};

/* ---- rows ---- */

typedef struct screen {
    const hf_demo *d;
    hf_buf *out;
    const char *ends; /* between two rows */
    int64_t now_ms;
    size_t n; /* rows so far */
} screen;

static void begin_row(screen *s)
{
    if (s->n++ > 0)
        hf_buf_text(s->out, s->ends);
}

static void paint(screen *s, const char *colour, const char *text)
{
    if (s->d->view.bright && colour != NULL)
        hf_buf_printf(s->out, "\033[%sm%s\033[0m", colour, text);
    else
        hf_buf_text(s->out, text);
}

static void fill(screen *s, const char *colour, const char *cell, size_t n)
{
    if (n == 0)
        return;
    if (s->d->view.bright)
        hf_buf_printf(s->out, "\033[%sm", colour);
    for (size_t i = 0; i < n; i++)
        hf_buf_text(s->out, cell);
    if (s->d->view.bright)
        hf_buf_text(s->out, "\033[0m");
}

/* Right-aligned; nothing worth looking at is dim. */
static void paint_number(screen *s, const char *colour, int64_t number)
{
    char cell[24];
    (void)snprintf(cell, sizeof cell, "%8lld", (long long)number);
    paint(s, number == 0 ? DIM : colour, cell);
}

static const char *either(const screen *s, const char *utf8, const char *ascii)
{
    return s->d->view.utf8 ? utf8 : ascii;
}

static double seconds_of(int64_t ms)
{
    return (double)ms / 1000;
}

/* ---- title and queues ---- */

static void draw_title(screen *s)
{
    char text[40];
    int64_t settled = 0;
    for (size_t i = 0; i < HF_DEMO_QUEUES; i++)
        settled += s->d->stats[i].done + s->d->stats[i].dead;
    begin_row(s);
    paint(s, BOLD, "  holdfast demo");
    (void)snprintf(text, sizeof text, "%3lld of %d settled", (long long)settled,
                   HF_DEMO_JOBS);
    hf_buf_printf(s->out, "   %d workers, one of them is killed   %s", HF_DEMO_WORKERS,
                  text);
    (void)snprintf(text, sizeof text, "%6.1f s", seconds_of(s->now_ms - s->d->start_ms));
    paint(s, BOLD, text);
    begin_row(s);
}

/* How much of a bar that many are; never more than all of it. */
static size_t share(int64_t n, int64_t all, size_t room)
{
    return n >= all ? room : (size_t)(n * (int64_t)room / all);
}

static void draw_settled(screen *s, const hf_queue_stats *q, int64_t jobs)
{
    size_t room = ROOM + s->d->view.columns - HF_DEMO_COLUMNS;
    if (room > ROOM_MAX)
        room = ROOM_MAX;
    const char *full = either(s, "\xE2\x94\x81", "=");
    const int64_t settled = q->done + q->dead;
    size_t done = share(q->done, jobs, room);
    size_t dead = share(settled, jobs, room) - done;
    hf_buf_text(s->out, "  ");
    fill(s, GREEN, full, done);
    fill(s, RED, s->d->view.bright ? full : "x", dead);
    fill(s, DIM, either(s, "\xE2\x94\x80", "-"), room - done - dead);
    hf_buf_printf(s->out, " %3lld/%lld", (long long)settled, (long long)jobs);
}

static void draw_queues(screen *s)
{
    begin_row(s);
    paint(s, DIM, "  queue       ready delayed running    done    dead  settled");
    for (size_t i = 0; i < HF_DEMO_QUEUES; i++) {
        const hf_queue_stats *q = &s->d->stats[i];
        begin_row(s);
        hf_buf_printf(s->out, "  %-9s", hf_demo_queue_names[i]);
        paint_number(s, NULL, q->ready);
        paint_number(s, NULL, q->delayed);
        paint_number(s, YELLOW, q->running);
        paint_number(s, GREEN, q->done);
        paint_number(s, RED, q->dead);
        draw_settled(s, q, i == 0 ? HF_DEMO_OTHER_JOBS : HF_DEMO_LONG_JOBS);
    }
    begin_row(s);
}

/* ---- workers ---- */

typedef struct held {
    size_t running[HF_DEMO_LONG + 1]; /* by kind */
    size_t all, ran;
} held;

static void count_held(const hf_demo *d, held out[HF_DEMO_WORKERS])
{
    memset(out, 0, HF_DEMO_WORKERS * sizeof out[0]);
    for (size_t j = 0; j < HF_DEMO_JOBS; j++) {
        const hf_demo_job *job = &d->jobs[j];
        for (size_t r = 0; r < hf_demo_runs_of(job); r++) {
            size_t i = hf_demo_worker_of(d, &job->runs[r]);
            if (i == HF_DEMO_WORKERS)
                continue;
            out[i].ran += job->runs[r].end_ms != 0 ? 1 : 0;
            if (job->runs[r].end_ms != 0 || hf_demo_was_killed(d, &job->runs[r]))
                continue;
            out[i].running[job->kind]++;
            out[i].all++;
        }
    }
}

static const char *state_of(const hf_demo *d, size_t i, size_t running, char out[32])
{
    const hf_demo_worker *worker = &d->workers[i];
    const char *colour = DIM;
    if (worker->pid == 0)
        (void)snprintf(out, 32, "not started yet");
    else if (i == 0 && d->killed_ms != 0) {
        colour = "1;" RED;
        (void)snprintf(out, 32, "killed at %.1f s",
                       seconds_of(d->killed_ms - d->start_ms));
    } else if (worker->ended && WIFEXITED(worker->status))
        (void)snprintf(out, 32, "stopped, exit code %d", WEXITSTATUS(worker->status));
    else if (worker->ended)
        (void)snprintf(out, 32, "ended by signal %d", WTERMSIG(worker->status));
    else if (running > 0) {
        colour = GREEN;
        (void)snprintf(out, 32, d->stopping ? "stopping" : "at work");
    } else
        (void)snprintf(out, 32, d->stopping ? "stopping" : "idle");
    return colour;
}

static void draw_slots(screen *s, const held *h, size_t slots)
{
    const char *cell = either(s, "\xE2\x96\xA0", "#");
    for (size_t k = 0; k < HF_COUNT(kinds); k++)
        fill(s, kinds[k].colour, cell, h->running[k]);
    fill(s, DIM, either(s, "\xC2\xB7", "."), h->all < slots ? slots - h->all : 0);
    hf_buf_printf(s->out, "%*s  %2zu running %4zu ran", (int)(HF_DEMO_SLOTS - slots), "",
                  h->all, h->ran);
}

/* Each job that was hit, until it runs elsewhere. */
static void draw_hit(screen *s, const hf_demo_takeover *t)
{
    fill(s, RED, either(s, "\xE2\x9C\x97", "x"), t->hit - t->again);
    fill(s, DIM, either(s, "\xC2\xB7", "."), HF_DEMO_SLOTS - t->hit + t->again);
    char text[40];
    (void)snprintf(text, sizeof text, "  %2zu jobs hit", t->hit);
    paint(s, RED, text);
}

static void draw_workers(screen *s, const hf_demo_takeover *t)
{
    const hf_demo *d = s->d;
    held all[HF_DEMO_WORKERS];
    count_held(d, all);
    begin_row(s);
    paint(s, DIM, "  worker  pid      state                 ");
    paint(s, DIM, d->view.bright ? "slots:" : "slots");
    for (size_t k = 0; d->view.bright && k < HF_COUNT(kinds); k++) {
        hf_buf_text(s->out, " ");
        paint(s, kinds[k].colour, kinds[k].name);
    }
    for (size_t i = 0; i < HF_DEMO_WORKERS; i++) {
        char state[32], cell[40];
        const char *colour = state_of(d, i, all[i].all, state);
        begin_row(s);
        hf_buf_printf(s->out, "  %-8zu", i + 1);
        (void)snprintf(cell, sizeof cell, d->workers[i].pid == 0 ? "-        " : "%-9ld",
                       (long)d->workers[i].pid);
        hf_buf_text(s->out, cell);
        (void)snprintf(cell, sizeof cell, "%-22s", state);
        paint(s, colour, cell);
        if (i == 0 && d->killed_ms != 0)
            draw_hit(s, t);
        else
            draw_slots(s, &all[i], hf_demo_slots_of(i));
    }
    begin_row(s);
}

/* ---- the long jobs, and where they are ---- */

static void draw_progress(screen *s, const hf_demo_run *run)
{
    int64_t ran_ms = s->now_ms - run->start_ms;
    size_t full = share(ran_ms < 0 ? 0 : ran_ms, HF_DEMO_LONG_MS, PROGRESS);
    if (run->end_ms != 0) {
        paint(s, GREEN, "done  ");
        return;
    }
    fill(s, GREEN, either(s, "\xE2\x94\x81", "="), full);
    fill(s, DIM, either(s, "\xE2\x94\x80", "-"), PROGRESS - full);
}

/* All of them 39 columns: "  long-001  1 -> 2 after 1630 ms ======" */
static void draw_move(screen *s, const hf_demo_job *job)
{
    char text[48];
    const hf_demo *d = s->d;
    const hf_demo_run *first = &job->runs[0], *again = hf_demo_rerun(d, job);
    const char *arrow = either(s, "\xE2\x86\x92", "->"), *pad = either(s, " ", "");
    hf_buf_printf(s->out, "  %s  ", job->id);
    if (job->n_runs == 0) {
        hf_buf_printf(s->out, "%-27s", "waits for a worker");
        return;
    }
    hf_buf_printf(s->out, "%zu", hf_demo_worker_of(d, first) + 1);
    if (again != NULL) {
        (void)snprintf(text, sizeof text, " %s %zu", arrow,
                       hf_demo_worker_of(d, again) + 1);
        paint(s, BOLD, text);
        hf_buf_printf(s->out, " after %4lld ms %s",
                      (long long)(again->start_ms - d->killed_ms), pad);
        draw_progress(s, again);
    } else if (hf_demo_was_killed(d, first)) {
        (void)snprintf(text, sizeof text, " %s ? waits %4lld ms %s", arrow,
                       (long long)(s->now_ms - d->killed_ms), pad);
        paint(s, RED, text);
        hf_buf_text(s->out, "      ");
    } else {
        hf_buf_printf(s->out, "%-20s", "");
        draw_progress(s, first);
    }
}

static void draw_moves(screen *s, const hf_demo_takeover *t)
{
    const hf_demo *d = s->d;
    const size_t half = HF_DEMO_LONG_JOBS / 2;
    char text[HF_DEMO_COLUMNS];
    begin_row(s);
    if (d->killed_ms == 0)
        (void)snprintf(text, sizeof text, "  the %d jobs of worker 1: %d s each",
                       HF_DEMO_LONG_JOBS, HF_DEMO_LONG_MS / 1000);
    else
        (void)snprintf(text, sizeof text,
                       "  the %zu jobs of worker 1: %zu moved to worker 2, %zu to worker "
                       "3, %zu still to come",
                       t->hit, t->by[1], t->by[2], t->hit - t->again);
    paint(s, d->killed_ms == 0 ? DIM : BOLD, text);
    const hf_demo_job *jobs = &d->jobs[HF_DEMO_OTHER_JOBS];
    for (size_t i = 0; i < half; i++) {
        begin_row(s);
        draw_move(s, &jobs[i]);
        draw_move(s, &jobs[half + i]);
    }
    begin_row(s);
}

static void draw_events(screen *s)
{
    const hf_demo_view *view = &s->d->view;
    size_t room = (view->rows > HF_DEMO_ROWS ? view->rows : HF_DEMO_ROWS) - s->n;
    size_t n = view->n_events < HF_DEMO_EVENTS ? view->n_events : HF_DEMO_EVENTS;
    n = n < room ? n : room;
    for (size_t i = view->n_events - n; i < view->n_events; i++) {
        char time[16];
        begin_row(s);
        int len = snprintf(time, sizeof time, "%6.1f s  ",
                           seconds_of(view->events_ms[i % HF_DEMO_EVENTS]));
        paint(s, DIM, time);
        hf_buf_printf(s->out, "%.*s", (int)view->columns - 1 - len,
                      view->events[i % HF_DEMO_EVENTS]);
    }
}

void hf_demo_draw(const hf_demo *d, int64_t now_ms, const char *ends, hf_buf *out)
{
    screen s = {.d = d, .out = out, .ends = ends, .now_ms = now_ms};
    hf_demo_takeover t;
    hf_demo_take_over(d, &t);
    draw_title(&s);
    draw_queues(&s);
    draw_workers(&s, &t);
    draw_moves(&s, &t);
    draw_events(&s);
}
