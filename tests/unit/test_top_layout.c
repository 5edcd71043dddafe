/* What `holdfast top` draws: one system, at the three sizes, page by page, as it stands
 * in top_screens.txt. HF_WRITE_SCREENS=1 writes that file anew; then read it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "tests/support/eventually.h"
#include "tests/support/markdown.h"
#include "top/keys.h"
#include "top/layout.h"

#define SCREENS HF_TEST_SOURCE "/tests/unit/top_screens.txt"
#define NOW INT64_C(1800000000000)
#define SET(field, text) ((void)snprintf(field, sizeof(field), "%s", text))

enum { S = 1000, MIN = 60 * S, H = 60 * MIN, TEXT = 1 << 17, LINE = 1024 };

static hf_model model;
static hf_view view;
static hf_screen screen;
static char text[TEXT];

/* ---- a system with something of each kind ---- */

static hf_top_queue *queue(const char *name)
{
    hf_top_queue *q = hf_model_queue(&model, name);
    assert_non_null(q);
    q->known = true;
    q->stats.now_ms = NOW;
    return q;
}

static void make_queues(void)
{
    static const char *const names[] = {"crm-sync", "default", "mail", "reports"};
    assert_true(
        hf_model_set_queues(&model, (char *const *)(uintptr_t)names, HF_COUNT(names)));
    hf_top_queue *q = queue("mail");
    q->stats.ready = 12480;
    q->stats.oldest_ready_ms = NOW - 7 * MIN - 12 * S;
    q->stats.running = q->stats.max_running = 20;
    q->stats.delayed = 3;
    q->in_per_min = 1512;
    q->out_per_min = 1204;
    q->failed_per_min = 4.8;
    q->failed_percent = 0.4;
    q->past = calloc(1, sizeof *q->past);
    assert_non_null(q->past);
    for (int i = 0; i < HF_TOP_SPARK; i++)
        q->past->ready[i] = i < 6 ? -1 : 200 * i;
    SET(q->past->types, "mail.send,mail.bounce");
    q = queue("crm-sync");
    q->stats.paused = true;
    q->stats.ready = 217;
    q->stats.oldest_ready_ms = NOW - 58 * MIN;
    q->stats.max_running = 4;
    q->in_per_min = 4;
    q->out_per_min = q->failed_per_min = 0;
    q = queue("reports");
    q->stats.dead = 216;
    q->stats.running = 2;
}

static void add_wrong(hf_wrongs *w, hf_wrong_level level, const char *what,
                      const char *why, const char *page)
{
    hf_wrong *one = &w->at[w->n++];
    w->levels[level]++;
    one->level = level;
    SET(one->what, what);
    SET(one->why, why);
    SET(one->page, page);
    SET(one->command, "holdfast queue show mail");
}

static void make_wrongs(void)
{
    static hf_wrongs wrongs;
    wrongs = (hf_wrongs){.n = 0};
    add_wrong(&wrongs, HF_LEVEL_BAD, "Worker web2 pid 880 has been silent for 41 s.",
              "Its jobs run elsewhere when their leases are over.", "workers");
    add_wrong(&wrongs, HF_LEVEL_BAD, "Queue reports: 214 jobs died in 1 h.",
              "connect 10.0.4.17:5432: connection refused", "dead");
    add_wrong(&wrongs, HF_LEVEL_WARN, "Queue mail is late: 12480 jobs wait.",
              "20 of at most 20 run; 19 slots are free.", "queue/mail");
    add_wrong(&wrongs, HF_LEVEL_NOTE, "Queue crm-sync is paused.", "", "queue/crm-sync");
    add_wrong(&wrongs, HF_LEVEL_HINT, "Redis keeps nothing on disk.", "", "redis");
    hf_model_take_wrongs(&model, &wrongs);
}

static void make_workers(void)
{
    static const char *const ids[] = {"web1-11-00000000000000aa",
                                      "web2-880-00000000000000bb"};
    model.workers = calloc(HF_COUNT(ids), sizeof *model.workers);
    assert_non_null(model.workers);
    model.n_workers = HF_COUNT(ids);
    for (size_t i = 0; i < HF_COUNT(ids); i++) {
        hf_top_worker *w = &model.workers[i];
        SET(w->id, ids[i]);
        SET(w->host, i == 0 ? "web1" : "web2");
        w->pid = i == 0 ? 11 : 880;
        w->heard_ms = NOW - (i == 0 ? 3 : 41) * S;
    }
    model.workers[0].started_ms = NOW - 5 * H - 3 * MIN;
    model.workers[0].running = 22;
    model.workers[0].slots = 78;
    SET(model.workers[0].state, "serving");
    SET(model.workers[0].version, "0.2.0");
    SET(model.workers[0].queues, "mail,reports");
    SET(model.workers[0].types, "mail.send,report.render");
    model.workers[1].silent = true;
}

static void add_run(const char *id, const char *worker, int64_t from, int64_t to,
                    hf_top_run_end end)
{
    hf_top_run run = {.fence = 1, .start_ms = from, .end_ms = to, .end = end};
    SET(run.id, id);
    SET(run.worker, worker);
    assert_true(hf_top_runs_tell(&model.runs, &run));
}

static void make_jobs(void)
{
    model.jobs = calloc(2, sizeof *model.jobs);
    assert_non_null(model.jobs);
    model.n_jobs = 2;
    for (size_t i = 0; i < 2; i++) {
        hf_top_job *job = &model.jobs[i];
        SET(job->id, i == 0 ? "report-2030-01" : "report-2030-02");
        SET(job->queue, "reports");
        SET(job->type, "report.render");
        SET(job->worker, "web1-11-00000000000000aa");
        job->start_ms = NOW - (i == 0 ? 30 : 95) * S;
        job->lease_ms = i == 0 ? 7 * S : 0;
        job->attempt = 1 + (uint32_t)i;
        job->max_attempts = 5;
        job->has_progress = i == 1;
        job->progress = 40;
    }
    SET(model.jobs[1].note, "page 12 of 30");
    add_run("a", "web1-11-00000000000000aa", NOW - 95 * S, 0, HF_TOP_RUN_RUNS);
    add_run("b", "web1-11-00000000000000aa", NOW - 118 * S, NOW - 100 * S,
            HF_TOP_RUN_ENDED);
    add_run("c", "web2-880-00000000000000bb", NOW - 90 * S, NOW - 60 * S,
            HF_TOP_RUN_FAILED);
}

static void make_rest(void)
{
    hf_job_info job = {HF_JOB_INFO_INIT};
    SET(job.queue, "reports");
    SET(job.type, "report.render");
    SET(job.reason, "attempts");
    for (int i = 0; i < 3; i++) {
        (void)snprintf(job.id, sizeof job.id, "dead-%d", i);
        (void)snprintf(job.error, sizeof job.error,
                       "connect 10.0.4.%d:5432: connection refused", i);
        job.due_ms = NOW - (3 - i) * MIN;
        assert_true(hf_top_groups_add(&model.dead, &job));
    }
    model.locks = calloc(1, sizeof *model.locks);
    model.types = calloc(1, sizeof *model.types);
    assert_non_null(model.locks);
    assert_non_null(model.types);
    model.n_locks = model.n_types = 1;
    SET(model.locks->name, "deploy/production");
    SET(model.locks->holder, "ci-4-22107-00000000000000dd");
    model.locks->ends_ms = NOW + 5 * S;
    model.locks->waiting = 2;
    model.locks->waits_ms = NOW - 11 * MIN;
    *model.types = (hf_top_type){.done = 4833,
                                 .failed = 61,
                                 .run_p50 = 12,
                                 .run_p99 = 1400,
                                 .wait_p50 = 2,
                                 .wait_p99 = 433000};
    SET(model.types->queue, "mail");
    SET(model.types->type, "mail.send");
}

static int begin(void **state)
{
    (void)state;
    hf_model_init(&model);
    hf_view_init(&view);
    SET(model.server, "redis.prod");
    model.now_ms = NOW;
    model.read_ns = 1;
    model.late_ms = MIN;
    model.whole = true;
    for (size_t i = 0; i < HF_PAGES; i++)
        model.listed[i] = true;
    view.interval_ms = S;
    view.utf8 = screen.utf8 = true;
    make_queues();
    make_wrongs();
    make_workers();
    make_jobs();
    make_rest();
    return 0;
}

static int end(void **state)
{
    (void)state;
    hf_model_done(&model);
    hf_view_done(&view);
    hf_screen_done(&screen);
    return 0;
}

/* ---- drawing ---- */

static const char *draw(unsigned columns, unsigned rows)
{
    size_t len = 0;
    char line[LINE * 4];
    assert_int_equal(hf_screen_begin(&screen, rows, columns), HF_OK);
    assert_true(hf_view_settle(&view, &model));
    hf_layout(&screen, &model, &view, 1);
    for (unsigned row = 0; row < rows; row++) {
        hf_screen_row(&screen, row, line);
        len += (size_t)snprintf(text + len, sizeof text - len, "%s\n", line);
    }
    return text;
}

static void assert_screen(const char *name, const char *found)
{
    char *expected = hf_section_read(SCREENS, name);
    if (strcmp(expected, found) != 0)
        fail_msg("%s: expected\n%s\nfound\n%s", name, expected, found);
    free(expected);
}

/* Begins the file anew if it is to be written; NULL: it is not. */
static FILE *open_screens(void)
{
    if (getenv("HF_WRITE_SCREENS") == NULL)
        return NULL;
    FILE *file = fopen(SCREENS, "w");
    assert_non_null(file);
    assert_true(fputs("What `holdfast top` draws of the system in "
                      "tests/unit/test_top_layout.c, at three sizes.\n",
                      file) >= 0);
    return file;
}

static void has(const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("expected \"%s\" in\n%s", part, text);
}

static void lacks(const char *part)
{
    if (strstr(text, part) != NULL)
        fail_msg("expected no \"%s\" in\n%s", part, text);
}

/* The style of the first cell of the row that begins with this text. */
static hf_style style_of(const char *beginning)
{
    char line[LINE * 4];
    for (unsigned row = 0; row < screen.rows; row++) {
        hf_screen_row(&screen, row, line);
        if (strncmp(line, beginning, strlen(beginning)) == 0)
            return (hf_style)screen.cells[(size_t)row * screen.columns].style;
    }
    fail_msg("no row begins with %s", beginning);
    return HF_STYLE_PLAIN;
}

/* ---- tests ---- */

static void each_page_is_as_it_stands_in_the_file(void **state)
{
    static const unsigned sizes[][2] = {{60, 12}, {80, 24}, {200, 50}};
    static const char *const pages[] = {"overview", "running", "dead",
                                        "workers",  "locks",   "types"};
    (void)state;
    FILE *file = open_screens();
    for (size_t i = 0; i < HF_COUNT(sizes); i++)
        for (size_t page = 0; page < HF_PAGES; page++) {
            char name[64];
            view.page = (hf_top_page)page;
            (void)snprintf(name, sizeof name, "%s %ux%u", pages[page], sizes[i][0],
                           sizes[i][1]);
            const char *found = draw(sizes[i][0], sizes[i][1]);
            if (file == NULL)
                assert_screen(name, found);
            else
                assert_true(fprintf(file, "\n== %s\n%s", name, found) > 0);
        }
    if (file != NULL)
        assert_int_equal(fclose(file), 0);
}

static void no_size_is_left_by_a_cell(void **state)
{
    (void)state;
    for (unsigned columns = 1; columns < 220; columns += 7)
        for (unsigned rows = 1; rows < 40; rows += 3) {
            view.page = (hf_top_page)((columns + rows) % HF_PAGES);
            view.wide = columns % 2 == 0;
            view.over = columns % 3 == 0 ? HF_OVER_HELP : HF_OVER_NONE;
            (void)draw(columns, rows);
        }
    (void)draw(59, 12);
    has("holdfast top needs 60x12, this is 59x12");
}

static void without_utf8_all_is_ascii(void **state)
{
    (void)state;
    screen.utf8 = view.utf8 = false;
    SET(model.jobs[1].note, "größer 漢字");
    for (size_t page = 0; page < HF_PAGES; page++) {
        view.page = (hf_top_page)page;
        for (const char *at = draw(200, 50); *at != '\0'; at++)
            assert_true((unsigned char)*at < 0x80);
    }
}

static void wide_characters_take_two_columns(void **state)
{
    (void)state;
    assert_int_equal(hf_screen_begin(&screen, 1, 10), HF_OK);
    assert_int_equal(hf_screen_put(&screen, 0, 0, 10, HF_STYLE_PLAIN, "漢字x"), 5);
    assert_int_equal(hf_screen_put(&screen, 0, 5, 4, HF_STYLE_PLAIN, "漢字x"), 4);
    hf_screen_row(&screen, 0, text);
    assert_string_equal(text, "漢字x漢 …");
    assert_int_equal(hf_screen_put(&screen, 0, 0, 10, HF_STYLE_PLAIN, "\033[2J\n"), 5);
    hf_screen_row(&screen, 0, text);
    assert_string_equal(text, " [2J 漢 …");
}

static void what_is_old_is_pale_while_redis_is_away(void **state)
{
    (void)state;
    (void)draw(80, 24);
    assert_int_equal(style_of("mail"), HF_STYLE_CHOSEN);
    assert_int_equal(style_of("reports"), HF_STYLE_PLAIN);
    assert_int_equal(style_of("! Worker"), HF_STYLE_BAD);
    model.away = true;
    (void)draw(80, 24);
    assert_int_equal(style_of("reports"), HF_STYLE_DIM);
    assert_int_equal(style_of("! Worker"), HF_STYLE_BAD);
    model.read_ns = 1;
    assert_int_equal(hf_screen_begin(&screen, 24, 80), HF_OK);
    hf_layout(&screen, &model, &view, 1 + 95 * UINT64_C(1000000000));
    hf_screen_row(&screen, 1, text);
    has("1m35s old");
}

static void a_question_shows_its_command(void **state)
{
    (void)state;
    view.allow_changes = true;
    assert_true(hf_view_settle(&view, &model));
    hf_keys_press(&view, &model, 'p');
    (void)draw(80, 24);
    has("$ holdfast queue pause mail\nPause queue 'mail'? [y/N]\n");
    hf_keys_press(&view, &model, 'n');
    (void)draw(80, 24);
    has("nothing was done");
    assert_int_equal(view.confirmed.kind, HF_CHANGE_NONE);
}

static void long_lines_are_folded_and_scroll(void **state)
{
    (void)state;
    hf_buf_text(&model.detail.lines, "#head\n");
    for (int i = 0; i < 30; i++)
        hf_buf_printf(
            &model.detail.lines,
            " line %d of a text that is longer than a screen of sixty columns\n", i);
    view.over = HF_OVER_DETAIL;
    (void)draw(60, 12);
    has("head\n line 0 of a text that is longer than a screen of sixty\n  columns\n");
    view.scroll = 1000; /* behind the end */
    (void)draw(60, 12);
    has("line 29");
    assert_in_range(view.scroll, 50, 60);
    hf_keys_press(&view, &model, 'k');
    (void)draw(60, 12);
    lacks("line 29 of a text that is longer than a screen of sixty\n  columns\n");
}

static void nothing_and_no_data_are_told(void **state)
{
    (void)state;
    hf_model_done(&model);
    SET(model.server, "redis.prod");
    (void)draw(80, 24);
    has("reading ...");
    model.whole = model.judged = true;
    (void)draw(80, 24);
    has("All is well");
    has("there is no queue");
    SET(view.filter, "x");
    (void)draw(80, 24);
    has("nothing matches the filter");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(each_page_is_as_it_stands_in_the_file),
        TEST(no_size_is_left_by_a_cell),
        TEST(without_utf8_all_is_ascii),
        TEST(wide_characters_take_two_columns),
        TEST(what_is_old_is_pale_while_redis_is_away),
        TEST(a_question_shows_its_command),
        TEST(long_lines_are_folded_and_scroll),
        TEST(nothing_and_no_data_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
