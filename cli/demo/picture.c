/* picture.c - the picture of the demo that stays: time from left to right, a lane for
 * each worker, in it a row for each slot, and each run of a job a bar. A run is drawn
 * from when its program noted its start to when it noted its end, or to the kill. */
#include <stdio.h>

#include "base/base.h"
#include "cli/demo/demo.h"

enum {
    WIDTH = 1200,
    EDGE = 16,
    LEFT = 136, /* of the lanes; the names of the workers stand beside them */
    RIGHT = WIDTH - 24,
    TOP = 148,
    ROW = 18,
    BAR = 15,
    ROWS = HF_DEMO_SLOTS + (HF_DEMO_WORKERS - 1) * HF_DEMO_SLOTS_OTHERS,
    GAP = 16, /* between two lanes */
    BOTTOM = TOP + ROWS * ROW + (HF_DEMO_WORKERS - 1) * GAP,
    HEIGHT = BOTTOM + 46,
    NAME_MIN = 64,   /* from this length on a bar shows the name of its job */
    MARK_ROOM = 270, /* for the text of a mark */
    TICKS_MAX = 16,
    TEXT_SIZE = 160,
    SVG_MAX = 1 << 20
};

#define INK "#1a1a1a"
#define FAINT "#5f6368"
#define GRID "#dadce0"
#define ALIVE "#f4f5f7" /* the lane of a worker, while it lives */
#define KILL "#c81e1e"
#define LEASE "#fdeaea"

static const hf_svg_font title_font = {20, INK, HF_SVG_LEFT, true};
static const hf_svg_font story_font = {13, INK, HF_SVG_LEFT, false};
static const hf_svg_font hint_font = {12, FAINT, HF_SVG_LEFT, false};
static const hf_svg_font legend_font = {12, INK, HF_SVG_LEFT, false};
static const hf_svg_font axis_font = {12, FAINT, HF_SVG_MIDDLE, false};
static const hf_svg_font worker_font = {14, INK, HF_SVG_LEFT, true};
static const hf_svg_font figure_font = {11, FAINT, HF_SVG_LEFT, false};
static const hf_svg_font killed_font = {11, KILL, HF_SVG_LEFT, true};
static const hf_svg_font name_font = {11, INK, HF_SVG_LEFT, false};

typedef enum look {
    LOOK_QUICK,
    LOOK_LATER,
    LOOK_FLAKY_FAILED,
    LOOK_FLAKY_DONE,
    LOOK_BROKEN_FAILED,
    LOOK_BROKEN_DEAD,
    LOOK_LONG,
    LOOK_KILLED,
    LOOKS
} look;

/* Colour-blind readers can tell these apart, too. */
static const struct {
    const char *fill, *name;
} looks[LOOKS] = {
    [LOOK_QUICK] = {"#56b4e9", "quick"},
    [LOOK_LATER] = {"#0060a0", "later"},
    [LOOK_FLAKY_FAILED] = {"#e69f00", "flaky: failed"},
    [LOOK_FLAKY_DONE] = {"#009e73", "flaky: done"},
    [LOOK_BROKEN_FAILED] = {"#cc79a7", "broken: failed"},
    [LOOK_BROKEN_DEAD] = {"#3b3b3b", "broken: dead"},
    [LOOK_LONG] = {"#f0e442", "long: done"},
    [LOOK_KILLED] = {"#f2a48a", "long: killed"},
};

typedef struct chart {
    const hf_demo *d;
    hf_svg *svg;
    hf_demo_bars bars;
} chart;

static double seconds_of(int64_t ms)
{
    return (double)ms / 1000;
}

static double x_of(const chart *c, int64_t at_ms)
{
    const int64_t start_ms = c->d->start_ms;
    double part = (double)(at_ms - start_ms) / (double)(c->bars.until_ms - start_ms);
    return LEFT + part * (RIGHT - LEFT);
}

static double height_of(size_t worker)
{
    return (double)hf_demo_slots_of(worker) * ROW;
}

static double lane_of(size_t worker)
{
    double top = TOP;
    for (size_t i = 0; i < worker; i++)
        top += height_of(i) + GAP;
    return top;
}

static double middle_of(const hf_demo_bar *b)
{
    return lane_of(b->worker) + (double)b->row * ROW + (double)ROW / 2;
}

/* ---- the title ---- */

static void write_title(chart *c)
{
    char text[TEXT_SIZE];
    long long done = 0, dead = 0;
    for (size_t i = 0; i < HF_DEMO_QUEUES; i++) {
        done += c->d->stats[i].done;
        dead += c->d->stats[i].dead;
    }
    (void)snprintf(text, sizeof text,
                   "holdfast demo: %d jobs, %zu runs; %lld done, %lld dead, %lld open",
                   HF_DEMO_JOBS, hf_demo_count_runs(c->d), done, dead,
                   HF_DEMO_JOBS - done - dead);
    hf_svg_text(c->svg, EDGE, 34, &title_font, text);
}

static void write_story(chart *c)
{
    char text[TEXT_SIZE];
    const hf_demo *d = c->d;
    hf_demo_takeover t;
    hf_demo_take_over(d, &t);
    if (d->killed_ms == 0)
        (void)snprintf(text, sizeof text, "No worker was killed.");
    else
        (void)snprintf(
            text, sizeof text,
            "kill -9 for worker 1 at %.2f s, in the middle of %zu jobs. %zu of "
            "these ran again on another worker, %lld to %lld ms after the kill.",
            seconds_of(d->killed_ms - d->start_ms), t.hit, t.again, (long long)t.first_ms,
            (long long)t.last_ms);
    hf_svg_text(c->svg, EDGE, 58, &story_font, text);
    (void)snprintf(text, sizeof text,
                   "A lease lasts %d s. A bar is one run of a job, as its program noted "
                   "it; a row is a slot of its worker; a line leads to the second run.",
                   HF_DEMO_LEASE_MS / 1000);
    hf_svg_text(c->svg, EDGE, 77, &hint_font, text);
}

static void draw_legend(chart *c)
{
    for (size_t i = 0; i < LOOKS; i++) {
        double x = EDGE + (double)i * (RIGHT - EDGE) / LOOKS;
        hf_svg_rect(
            c->svg,
            &(hf_svg_box){
                .x = x, .y = 92, .width = 14, .height = 12, .fill = looks[i].fill});
        hf_svg_text(c->svg, x + 20, 102, &legend_font, looks[i].name);
    }
}

/* ---- the lanes ---- */

static void write_worker(chart *c, size_t i, size_t runs)
{
    char text[TEXT_SIZE];
    const double top = lane_of(i);
    const pid_t pid = c->d->workers[i].pid;
    (void)snprintf(text, sizeof text, "worker %zu", i + 1);
    hf_svg_text(c->svg, EDGE, top + 18, &worker_font, text);
    (void)snprintf(text, sizeof text, "pid %ld", (long)pid);
    hf_svg_text(c->svg, EDGE, top + 36, &figure_font, pid == 0 ? "not started" : text);
    (void)snprintf(text, sizeof text, "%zu runs", runs);
    hf_svg_text(c->svg, EDGE, top + 52, &figure_font, text);
    if (i == 0 && c->d->killed_ms != 0)
        hf_svg_text(c->svg, EDGE, top + 68, &killed_font, "killed");
}

static void draw_lanes(chart *c)
{
    size_t runs[HF_DEMO_WORKERS] = {0};
    for (size_t i = 0; i < c->bars.n; i++)
        runs[c->bars.bars[i].worker]++;
    for (size_t i = 0; i < HF_DEMO_WORKERS; i++) {
        const hf_demo_worker *worker = &c->d->workers[i];
        int64_t end_ms = worker->ended ? worker->ended_ms : c->bars.until_ms;
        if (i == 0 && c->d->killed_ms != 0)
            end_ms = c->d->killed_ms;
        write_worker(c, i, runs[i]);
        if (worker->pid == 0)
            continue;
        double x = x_of(c, worker->started_ms);
        hf_svg_rect(c->svg, &(hf_svg_box){.x = x,
                                          .y = lane_of(i),
                                          .width = x_of(c, end_ms) - x,
                                          .height = height_of(i),
                                          .fill = ALIVE});
    }
}

static void draw_axis(chart *c)
{
    static const int64_t steps_s[] = {1, 2, 5, 10, 20, 60};
    int64_t span_s = (c->bars.until_ms - c->d->start_ms) / 1000, step_s = steps_s[0];
    for (size_t i = 0; i < HF_COUNT(steps_s) && span_s / step_s > TICKS_MAX; i++)
        step_s = steps_s[i];
    for (int64_t at_s = 0; at_s <= span_s; at_s += step_s) {
        char text[TEXT_SIZE];
        double x = x_of(c, c->d->start_ms + at_s * 1000);
        hf_svg_line(c->svg, &(hf_svg_stroke){.x1 = x,
                                             .y1 = TOP,
                                             .x2 = x,
                                             .y2 = BOTTOM + 5,
                                             .stroke = GRID,
                                             .width = 1});
        (void)snprintf(text, sizeof text, "%lld", (long long)at_s);
        hf_svg_text(c->svg, x, BOTTOM + 19, &axis_font, text);
    }
    hf_svg_text(c->svg, (double)(LEFT + RIGHT) / 2, BOTTOM + 37, &axis_font,
                "seconds since the demo began");
}

/* ---- the runs ---- */

static look look_of(const hf_demo_bar *b)
{
    const hf_demo_run *run = b->run;
    switch (b->job->kind) {
    case HF_DEMO_QUICK:
        return LOOK_QUICK;
    case HF_DEMO_LATER:
        return LOOK_LATER;
    case HF_DEMO_FLAKY:
        return run->end_ms != 0 && run->status == 0 ? LOOK_FLAKY_DONE : LOOK_FLAKY_FAILED;
    case HF_DEMO_BROKEN:
        return run->attempt >= HF_DEMO_ATTEMPTS ? LOOK_BROKEN_DEAD : LOOK_BROKEN_FAILED;
    case HF_DEMO_LONG:
        break;
    }
    return b->killed ? LOOK_KILLED : LOOK_LONG;
}

static const char *outcome_of(const hf_demo_bar *b)
{
    if (b->killed)
        return "killed";
    if (b->run->end_ms == 0)
        return "no end noted";
    return b->run->status == 0 ? "done" : "failed";
}

static void draw_bar(chart *c, const hf_demo_bar *b)
{
    char tip[TEXT_SIZE];
    const int64_t start_ms = c->d->start_ms;
    const double top = middle_of(b) - (double)BAR / 2, x = x_of(c, b->start_ms);
    double width = x_of(c, b->drawn_ms) - x - 0.5;
    (void)snprintf(tip, sizeof tip, "%s, attempt %u, worker %zu: %.2f to %.2f s, %s",
                   b->job->id, (unsigned)b->run->attempt, b->worker + 1,
                   seconds_of(b->start_ms - start_ms), seconds_of(b->end_ms - start_ms),
                   outcome_of(b));
    hf_svg_rect(c->svg, &(hf_svg_box){.x = x,
                                      .y = top,
                                      .width = width > 1 ? width : 1,
                                      .height = BAR,
                                      .fill = looks[look_of(b)].fill,
                                      .class = "run",
                                      .tip = tip});
    if (width >= NAME_MIN)
        hf_svg_text(c->svg, x + 5, top + 11, &name_font, b->job->id);
}

/* From each run that was killed to the next one of its job. */
static void draw_links(chart *c)
{
    for (size_t i = 0; i < c->bars.n; i++) {
        char tip[TEXT_SIZE];
        const hf_demo_bar *b = &c->bars.bars[i];
        const hf_demo_run *again = b->killed ? hf_demo_rerun(c->d, b->job) : NULL;
        const hf_demo_bar *next =
            again != NULL ? hf_demo_bars_find(&c->bars, again) : NULL;
        if (next == NULL)
            continue;
        (void)snprintf(tip, sizeof tip, "%s: again on worker %zu, %lld ms after the kill",
                       b->job->id, next->worker + 1,
                       (long long)(next->start_ms - c->d->killed_ms));
        hf_svg_curve(c->svg, &(hf_svg_stroke){.x1 = x_of(c, b->end_ms),
                                              .y1 = middle_of(b),
                                              .x2 = x_of(c, next->start_ms),
                                              .y2 = middle_of(next),
                                              .stroke = KILL,
                                              .width = 1.2,
                                              .class = "again",
                                              .tip = tip});
    }
}

/* ---- the kill ---- */

/* Its text is to the right of the line, unless there is no room. */
static void draw_mark(chart *c, double x, double y, bool dashed, const char *class,
                      const char *text)
{
    const bool left = x > RIGHT - MARK_ROOM;
    const hf_svg_font font = {12, KILL, left ? HF_SVG_RIGHT : HF_SVG_LEFT, !dashed};
    hf_svg_line(c->svg, &(hf_svg_stroke){.x1 = x,
                                         .y1 = y - 10,
                                         .x2 = x,
                                         .y2 = BOTTOM,
                                         .stroke = KILL,
                                         .width = dashed ? 1.2 : 2,
                                         .dashed = dashed,
                                         .class = class});
    hf_svg_text(c->svg, left ? x - 6 : x + 6, y, &font, text);
}

/* A lease was renewed at some time before the kill, so it was over less than its length
 * after it. */
static void draw_lease(chart *c)
{
    const int64_t killed_ms = c->d->killed_ms;
    if (killed_ms == 0)
        return;
    double x = x_of(c, killed_ms);
    hf_svg_rect(c->svg, &(hf_svg_box){.x = x,
                                      .y = TOP,
                                      .width = x_of(c, killed_ms + HF_DEMO_LEASE_MS) - x,
                                      .height = BOTTOM - TOP,
                                      .fill = LEASE,
                                      .class = "lease"});
}

static void draw_kill(chart *c)
{
    char text[TEXT_SIZE];
    const int64_t killed_ms = c->d->killed_ms;
    if (killed_ms == 0)
        return;
    draw_mark(c, x_of(c, killed_ms), TOP - 20, false, "kill", "kill -9 for worker 1");
    (void)snprintf(text, sizeof text, "%d s later: the last of its leases is over",
                   HF_DEMO_LEASE_MS / 1000);
    draw_mark(c, x_of(c, killed_ms + HF_DEMO_LEASE_MS), TOP - 6, true, "over", text);
}

/* ---- all of it ---- */

hf_err hf_demo_draw_svg(const hf_demo *d, hf_svg *svg)
{
    chart c = {.d = d, .svg = svg};
    hf_svg_begin(svg, WIDTH, HEIGHT, "holdfast demo", SVG_MAX);
    if (hf_demo_bars_collect(&c.bars, d, RIGHT - LEFT) != HF_OK)
        return HF_NOMEM;
    draw_lanes(&c);
    draw_lease(&c);
    draw_axis(&c);
    draw_kill(&c);
    for (size_t i = 0; i < c.bars.n; i++)
        draw_bar(&c, &c.bars.bars[i]);
    draw_links(&c);
    write_title(&c);
    write_story(&c);
    draw_legend(&c);
    hf_demo_bars_done(&c.bars);
    return hf_svg_end(svg);
}
