/* test_demo_pictures.c - the demo's two pictures, drawn from runs made up here: the one
 * that stays shows each run, and each that was killed with the one that followed; the one
 * in the terminal fits into it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/demo/demo.h"
#include "tests/support/eventually.h"
#include "tests/support/xml.h"

enum {
    START_MS = 1000000,
    KILL_MS = START_MS + 3000,
    AGAIN_MS = KILL_MS + 1500,
    FIRST_PID = 100,
    DRAWN_MAX = 1 << 16,
    FILE_MAX = 300000
};

static hf_demo demo;
static hf_cli cli;

static hf_demo_run *add_run(hf_demo_job *job, size_t worker, int64_t start_ms,
                            int64_t end_ms, int status)
{
    static pid_t pid = FIRST_PID;
    hf_demo_run *run = &job->runs[job->n_runs++];
    *run = (hf_demo_run){.attempt = (uint32_t)job->n_runs,
                         .pid = ++pid,
                         .worker = demo.workers[worker].pid,
                         .start_ms = start_ms,
                         .end_ms = end_ms,
                         .status = status};
    return run;
}

/* Ten long jobs in worker 1. */
static int up(void **state)
{
    (void)state;
    demo = (hf_demo){.cli = &cli, .start_ms = START_MS, .facts_fd = -1};
    for (size_t i = 0; i < HF_DEMO_WORKERS; i++)
        demo.workers[i] =
            (hf_demo_worker){.pid = (pid_t)(11 + i), .started_ms = START_MS + 10};
    for (size_t i = 0; i < HF_DEMO_JOBS; i++) {
        hf_demo_job *job = &demo.jobs[i];
        job->kind = i < HF_DEMO_OTHER_JOBS ? HF_DEMO_QUICK : HF_DEMO_LONG;
        (void)snprintf(job->id, sizeof job->id, "long-%03zu", i - HF_DEMO_OTHER_JOBS + 1);
        if (job->kind == HF_DEMO_LONG)
            add_run(job, 0, START_MS + 50, 0, 0);
    }
    demo.view = (hf_demo_view){.columns = HF_DEMO_COLUMNS, .rows = HF_DEMO_ROWS};
    return 0;
}

static void kill_worker_1(void)
{
    hf_demo_remember_victims(&demo);
    demo.killed_ms = KILL_MS;
    assert_int_equal(demo.n_victims, HF_DEMO_LONG_JOBS);
}

static void run_again(size_t first, size_t n, size_t worker, int64_t start_ms)
{
    for (size_t i = first; i < first + n; i++)
        add_run(&demo.jobs[HF_DEMO_OTHER_JOBS + i], worker, start_ms + (int64_t)i,
                start_ms + HF_DEMO_LONG_MS, 0);
}

/* ---- what is drawn ---- */

/* The caller ends it with hf_svg_done(). */
static void draw_svg(hf_svg *svg)
{
    size_t where = 0;
    assert_int_equal(hf_demo_draw_svg(&demo, svg), HF_OK);
    const char *problem = hf_xml_problem(svg->text.data, &where);
    if (problem != NULL)
        fail_msg("%s: %.60s", problem, svg->text.data + where);
    assert_true(svg->text.len < FILE_MAX);
}

static void each_killed_run_leads_to_the_one_that_followed(void **state)
{
    (void)state;
    hf_svg svg;
    kill_worker_1();
    run_again(0, 6, 1, AGAIN_MS);
    run_again(6, 4, 2, AGAIN_MS);
    draw_svg(&svg);
    assert_int_equal(hf_xml_count(svg.text.data, "run"), 20);
    assert_int_equal(hf_xml_count(svg.text.data, "again"), 10);
    assert_int_equal(hf_xml_count(svg.text.data, "kill"), 1);
    assert_int_equal(hf_xml_count(svg.text.data, "over"), 1);
    assert_non_null(strstr(svg.text.data, "10 of these ran again on another worker, "
                                          "1500 to 1509 ms after the kill."));
    assert_non_null(
        strstr(svg.text.data, "long-001, attempt 1, worker 1: 0.05 to 3.00 s, killed<"));
    assert_non_null(
        strstr(svg.text.data, "long-010: again on worker 3, 1509 ms after the kill<"));
    hf_svg_done(&svg);
}

static void a_run_that_was_not_taken_over_leads_nowhere(void **state)
{
    (void)state;
    hf_svg svg;
    kill_worker_1();
    run_again(0, 3, 1, AGAIN_MS);
    draw_svg(&svg);
    assert_int_equal(hf_xml_count(svg.text.data, "run"), 13);
    assert_int_equal(hf_xml_count(svg.text.data, "again"), 3);
    assert_non_null(strstr(svg.text.data, "in the middle of 10 jobs. 3 of these"));
    hf_svg_done(&svg);
}

static void without_a_kill_nothing_is_marked(void **state)
{
    (void)state;
    hf_svg svg;
    draw_svg(&svg);
    assert_int_equal(hf_xml_count(svg.text.data, "run"), 10);
    assert_int_equal(hf_xml_count(svg.text.data, "kill"), 0);
    assert_int_equal(hf_xml_count(svg.text.data, "lease"), 0);
    assert_non_null(strstr(svg.text.data, "No worker was killed."));
    assert_non_null(strstr(svg.text.data, "no end noted"));
    hf_svg_done(&svg);
}

static void the_picture_shows_every_remembered_run(void **state)
{
    (void)state;
    hf_svg svg;
    for (size_t i = 0; i < HF_DEMO_JOBS; i++) {
        hf_demo_job *job = &demo.jobs[i];
        job->kind = HF_DEMO_FLAKY;
        for (job->n_runs = 0; job->n_runs < HF_DEMO_RUNS_MAX;) {
            int64_t start_ms = START_MS + (int64_t)(job->n_runs * 8000 + i);
            add_run(job, i % HF_DEMO_WORKERS, start_ms, start_ms + 100, 1);
        }
        job->n_runs += 3; /* that are not remembered */
    }
    assert_int_equal(hf_demo_draw_svg(&demo, &svg), HF_OK);
    assert_int_equal(hf_xml_count(svg.text.data, "run"), HF_DEMO_JOBS * HF_DEMO_RUNS_MAX);
    hf_svg_done(&svg);
}

static void in_a_row_one_bar_follows_the_other(void **state)
{
    (void)state;
    int64_t free_from[HF_DEMO_SLOTS_OTHERS] = {0};
    hf_demo_bars bars;
    for (size_t i = 0; i < 200; i++) {
        int64_t start_ms = START_MS + 500 + (int64_t)(i / HF_DEMO_SLOTS_OTHERS) * 100;
        add_run(&demo.jobs[i], 1, start_ms, start_ms + 60 + (int64_t)(i % 4) * 10, 0);
    }
    assert_int_equal(hf_demo_bars_collect(&bars, &demo, 1000), HF_OK);
    assert_int_equal(bars.n, 210);
    for (size_t i = 0; i < bars.n; i++) {
        const hf_demo_bar *b = &bars.bars[i];
        assert_true(b->row < hf_demo_slots_of(b->worker));
        if (b->worker != 1)
            continue;
        assert_true(b->start_ms >= free_from[b->row]);
        free_from[b->row] = b->end_ms;
    }
    hf_demo_bars_done(&bars);
}

/* ---- the terminal ---- */

/* Characters as one sees them: without colours, and of UTF-8 only first bytes. */
static size_t columns_of(const char *line, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        if (line[i] == '\033')
            i += strcspn(line + i, "m");
        else if (((unsigned char)line[i] & 0xC0) != 0x80)
            n++;
    }
    return n;
}

/* Gives the number of its rows. */
static size_t check_screen(size_t columns, size_t rows, bool utf8, bool bright,
                           int64_t now_ms)
{
    hf_buf out;
    size_t n = 0;
    hf_buf_init(&out, DRAWN_MAX);
    demo.view.columns = columns;
    demo.view.rows = rows;
    demo.view.utf8 = utf8;
    demo.view.bright = bright;
    hf_demo_draw(&demo, now_ms, "\n", &out);
    hf_buf_text(&out, "\n");
    assert_int_equal(hf_buf_err(&out), HF_OK);
    for (const char *line = out.data; *line != '\0'; n++) {
        size_t len = strcspn(line, "\n");
        if (columns_of(line, len) >= columns)
            fail_msg("%zu columns: %.*s", columns_of(line, len), (int)len, line);
        line += len + 1;
    }
    for (const char *c = out.data; !utf8 && *c != '\0'; c++)
        assert_true((unsigned char)*c < 0x80);
    if (!bright)
        assert_null(strchr(out.data, '\033'));
    hf_buf_done(&out);
    assert_true(n <= rows);
    return n;
}

static void check_screens(int64_t now_ms)
{
    static const size_t sizes[][2] = {{80, 24}, {81, 25}, {132, 50}, {400, 100}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (int k = 0; k < 4; k++)
            (void)check_screen(sizes[i][0], sizes[i][1], k & 1, k & 2, now_ms);
    }
}

static void fill_figures(void)
{
    for (size_t i = 0; i < HF_DEMO_QUEUES; i++)
        demo.stats[i] =
            (hf_queue_stats){HF_QUEUE_STATS_INIT, .ready = 999, .delayed = 999,
                             .running = 999,      .done = 280,  .dead = 20};
    for (size_t i = 0; i < HF_DEMO_WORKERS; i++)
        demo.workers[i].pid = (pid_t)4194304; /* the largest one of Linux */
    for (size_t i = 0; i < HF_DEMO_EVENTS + 3; i++)
        hf_demo_say(&demo, "%0100d", 0);        /* longer than there is room */
    for (size_t i = 0; i < HF_DEMO_EVENTS; i++) /* not when the machine was started */
        demo.view.events_ms[i] = i % 2 == 0 ? 1234 : INT64_C(1234567890);
}

static void the_screen_never_exceeds_the_terminal(void **state)
{
    (void)state;
    fill_figures();
    check_screens(START_MS);
    check_screens(START_MS + 60000);
    demo.workers[0].pid = 11; /* the ten jobs are its own again */
    kill_worker_1();
    demo.workers[0].pid = 4194304;
    for (size_t i = 0; i < HF_DEMO_LONG_JOBS; i++)
        demo.jobs[HF_DEMO_OTHER_JOBS + i].runs[0].worker = 4194304;
    demo.workers[1].pid = demo.workers[2].pid = 4194303;
    check_screens(KILL_MS + 10);
    check_screens(KILL_MS + 9999);
    run_again(0, 10, 1, AGAIN_MS);
    check_screens(AGAIN_MS + 100);
    check_screens(START_MS + 80000);
}

static void it_uses_the_rows_that_there_are(void **state)
{
    (void)state;
    fill_figures();
    assert_int_equal(check_screen(80, 24, true, true, KILL_MS), 24);
    assert_int_equal(check_screen(80, 30, true, true, KILL_MS), 30);
    assert_true(check_screen(80, 100, true, true, KILL_MS) > 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(each_killed_run_leads_to_the_one_that_followed, up),
        cmocka_unit_test_setup(a_run_that_was_not_taken_over_leads_nowhere, up),
        cmocka_unit_test_setup(without_a_kill_nothing_is_marked, up),
        cmocka_unit_test_setup(the_picture_shows_every_remembered_run, up),
        cmocka_unit_test_setup(in_a_row_one_bar_follows_the_other, up),
        cmocka_unit_test_setup(the_screen_never_exceeds_the_terminal, up),
        cmocka_unit_test_setup(it_uses_the_rows_that_there_are, up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
