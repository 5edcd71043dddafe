/* What `holdfast top` knows and does with it: rates, groups of dead jobs, runs, orders,
 * filters and keys. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "tests/support/eventually.h"
#include "top/format.h"
#include "top/keys.h"

#define NOW INT64_C(1800000000000)
#define SET(field, text) ((void)snprintf(field, sizeof(field), "%s", text))

enum { S = 1000, MIN = 60 * S, QUEUES = 10000 };

static hf_model model;
static hf_view view;

static void set_queues(const char *const *names, size_t n)
{
    assert_true(hf_model_set_queues(&model, (char *const *)(uintptr_t)names, n));
}

static int begin(void **state)
{
    static const char *const names[] = {"a", "b", "c"};
    (void)state;
    hf_model_init(&model);
    hf_view_init(&view);
    view.interval_ms = S;
    set_queues(names, HF_COUNT(names));
    assert_true(hf_view_settle(&view, &model));
    return 0;
}

static int end(void **state)
{
    (void)state;
    hf_model_done(&model);
    hf_view_done(&view);
    return 0;
}

static void press(int key)
{
    assert_true(hf_view_settle(&view, &model));
    hf_keys_press(&view, &model, key);
    assert_true(hf_view_settle(&view, &model));
}

static void press_all(const char *keys)
{
    for (; *keys != '\0'; keys++)
        press(*keys);
}

static const char *chosen(void)
{
    return view.pages[view.page].key;
}

/* ---- numbers ---- */

static void numbers_are_short(void **state)
{
    char out[HF_TOP_FORMAT_SIZE];
    (void)state;
    assert_string_equal(hf_top_count(999, out), "999");
    assert_string_equal(hf_top_count(12788, out), "12,788");
    assert_string_equal(hf_top_count(312499, out), "312 k");
    assert_string_equal(hf_top_count(2499000, out), "2.5 M");
    assert_string_equal(hf_top_span(41 * S, out), "41s");
    assert_string_equal(hf_top_span(432 * S, out), "7m12s");
    assert_string_equal(hf_top_span(76 * INT64_C(3600) * S, out), "3d04h");
    assert_string_equal(hf_top_span(-1, out), "-");
    assert_string_equal(hf_top_short_span(12, out), "12ms");
    assert_string_equal(hf_top_short_span(1240, out), "1.2s");
    assert_string_equal(hf_top_rate(-1, out), "-");
    assert_string_equal(hf_top_rate(0.44, out), "0.4");
    assert_string_equal(hf_top_rate(1512.3, out), "1512");
    assert_string_equal(hf_top_clock(NOW + 7 * S, out), "08:00:07Z");
}

/* ---- rates ---- */

static void take(const char *queue, int64_t at, int64_t enqueued, int64_t done,
                 int64_t failed)
{
    hf_queue_stats s = {HF_QUEUE_STATS_INIT};
    SET(s.queue, queue);
    s.now_ms = at;
    s.enqueued = enqueued;
    s.done = done;
    s.failed = failed;
    hf_model_take_stats(&model, &s);
}

static void rates_are_those_of_the_last_minute(void **state)
{
    const hf_top_queue *q = hf_model_queue(&model, "b");
    (void)state;
    take("b", NOW, 1000, 500, 0);
    assert_true(q->out_per_min < 0);
    take("b", NOW + 2 * S, 1010, 505, 0);
    assert_true(q->out_per_min < 0); /* too short */
    take("b", NOW + 30 * S, 1030, 560, 20);
    assert_true(q->in_per_min > 59 && q->in_per_min < 61);
    assert_true(q->out_per_min > 119 && q->out_per_min < 121);
    assert_true(q->failed_percent > 24 && q->failed_percent < 26);
    for (int i = 31; i <= 150; i++) /* and then nothing happens */
        take("b", NOW + i * S, 1030, 560, 20);
    assert_true(q->out_per_min >= 0 && q->out_per_min < 0.1);
    take("b", NOW + 151 * S, 3, 1, 0); /* it was removed, and came back */
    assert_true(q->out_per_min < 0);
}

static void a_history_tells_rates_at_once(void **state)
{
    hf_top_past *past = calloc(1, sizeof *past);
    (void)state;
    assert_non_null(past);
    past->counts = (hf_top_counts){NOW - 90 * S, 1000, 500, 0};
    take("b", NOW, 1090, 590, 10);
    hf_model_take_past(&model, "b", past);
    const hf_top_queue *q = hf_model_queue(&model, "b");
    assert_true(q->in_per_min > 59 && q->in_per_min < 61);
    assert_true(q->failed_percent > 9.9 && q->failed_percent < 10.1);
}

static void queues_come_and_go(void **state)
{
    static const char *const names[] = {"b", "d"};
    (void)state;
    take("b", NOW, 7, 0, 0);
    set_queues(names, HF_COUNT(names));
    assert_null(hf_model_queue(&model, "a"));
    assert_int_equal(hf_model_queue(&model, "b")->stats.enqueued, 7);
    assert_false(hf_model_queue(&model, "d")->known);
}

/* ---- dead jobs ---- */

static void add_dead(const char *id, const char *error, int64_t died_ms)
{
    hf_job_info job = {HF_JOB_INFO_INIT, .due_ms = died_ms};
    SET(job.id, id);
    SET(job.queue, "q");
    SET(job.type, "t");
    SET(job.error, error);
    assert_true(hf_top_groups_add(&model.dead, &job));
}

static void errors_that_differ_in_numbers_are_one_group(void **state)
{
    (void)state;
    add_dead("1", "no answer of 10.0.4.17 after 30 s", NOW);
    add_dead("3", "no answer of 10.0.4.18 after 31 s", NOW + 2);
    add_dead("2", "no answer of 10.0.4.99 after 32 s", NOW + 1);
    add_dead("4", "user 5f3a9c21bb is unknown", NOW);
    add_dead("5", "user 77ee01d2aa is unknown", NOW);
    add_dead("6", "the added facade is bad", NOW);
    assert_int_equal(model.dead.n, 3);
    assert_string_equal(model.dead.at[0].error, "no answer of #.#.#.# after # s");
    assert_int_equal(model.dead.at[0].jobs, 3);
    assert_string_equal(model.dead.at[0].last_id, "3");
    assert_string_equal(model.dead.at[1].error, "user * is unknown");
    assert_string_equal(model.dead.at[2].error, "the added facade is bad");
}

static void too_many_errors_share_the_last_group(void **state)
{
    char error[64];
    (void)state;
    for (int i = 0; i < 2 * HF_GROUPS_MAX; i++) {
        (void)snprintf(error, sizeof error, "%c%c%c", 'g' + i % 20, 'g' + i / 20 % 20,
                       'g' + i / 400);
        add_dead("x", error, NOW);
    }
    assert_int_equal(model.dead.n, HF_GROUPS_MAX);
    assert_int_equal(model.dead.at[HF_GROUPS_MAX - 1].jobs, HF_GROUPS_MAX + 1);
    assert_int_equal(model.dead.looked_at, 2 * HF_GROUPS_MAX);
}

/* ---- runs ---- */

static void tell(const char *id, int64_t start, int64_t ended, int64_t seen,
                 hf_top_run_end how)
{
    hf_top_run run = {.fence = 1,
                      .run = 3,
                      .start_ms = start,
                      .end_ms = ended,
                      .seen_ms = seen,
                      .end = how};
    SET(run.id, id);
    SET(run.worker, "w");
    assert_true(hf_top_runs_tell(&model.runs, &run));
}

static const char *lane(int64_t now)
{
    static char out[11];
    static const char marks[] = " e#x";
    hf_lane_cell cells[10];
    hf_top_runs_lane(&model.runs, "w", now - 10 * S, S, now, cells, HF_COUNT(cells));
    for (size_t i = 0; i < HF_COUNT(cells); i++)
        out[i] = marks[cells[i]];
    return out;
}

static void a_run_that_a_list_lacks_has_ended(void **state)
{
    (void)state;
    tell("1", NOW - 5 * S, 0, NOW, HF_TOP_RUN_RUNS);
    hf_top_runs_listed(&model.runs, NOW, true, 0);
    assert_string_equal(lane(NOW), "     #####");
    hf_top_runs_listed(&model.runs, NOW + 2 * S, false, 0); /* the list was cut */
    assert_string_equal(lane(NOW + 2 * S), "   #######");
    hf_top_runs_listed(&model.runs, NOW + 2 * S, true, 0);
    assert_string_equal(lane(NOW + 4 * S), " eeeeeeee ");
    hf_top_runs_listed(&model.runs, NOW + 9 * S, true, NOW + 3 * S);
    assert_int_equal(model.runs.n, 0);
}

static void a_stream_tells_how_runs_ended(void **state)
{
    (void)state;
    tell("1", NOW - 5 * S, 0, NOW, HF_TOP_RUN_RUNS);
    tell("1", NOW - 5 * S, NOW - S, 0, HF_TOP_RUN_FAILED);
    tell("2", NOW - 9 * S, NOW - 7 * S, 0, HF_TOP_RUN_ENDED);
    hf_top_runs_listed(&model.runs, NOW, true, 0);
    assert_string_equal(lane(NOW), " eee eeeex");
    /* A worker tells numbers, and no fences. */
    hf_top_run told = {.run = 3, .start_ms = NOW - 9 * S, .end_ms = NOW - 7 * S};
    SET(told.id, "2");
    SET(told.worker, "w");
    told.end = HF_TOP_RUN_FAILED;
    assert_true(hf_top_runs_tell(&model.runs, &told));
    assert_int_equal(model.runs.n, 2);
    assert_string_equal(lane(NOW), " eex eeeex");
    told.run = 4;
    assert_true(hf_top_runs_tell(&model.runs, &told));
    assert_int_equal(model.runs.n, 3);
    assert_string_equal(lane(NOW + 60 * S), "          ");
}

static void of_too_many_runs_the_first_are_forgotten(void **state)
{
    char id[24];
    (void)state;
    for (int i = 0; i < HF_RUNS_MAX + 10; i++) {
        (void)snprintf(id, sizeof id, "%d", i);
        tell(id, NOW, NOW + i, 0, HF_TOP_RUN_ENDED);
    }
    assert_int_equal(model.runs.n, HF_RUNS_MAX);
    for (size_t i = 0; i < model.runs.n; i++)
        assert_true(model.runs.at[i].end_ms >= NOW + 10);
}

/* ---- order, filter, the chosen row ---- */

static void what_is_wrong_comes_first(void **state)
{
    static hf_wrongs wrongs;
    (void)state;
    wrongs = (hf_wrongs){.n = 1, .levels = {0, 1, 0}};
    wrongs.at[0].level = HF_LEVEL_WARN;
    SET(wrongs.at[0].page, "queue/c");
    hf_model_queue(&model, "b")->stats.ready = 1000;
    hf_model_take_wrongs(&model, &wrongs);
    press('g');
    assert_string_equal(chosen(), "c");
    press('j');
    assert_string_equal(chosen(), "b");
}

static void the_chosen_row_stays_wherever_it_goes(void **state)
{
    static const char *const more[] = {"0", "a", "b", "c"}, *const less[] = {"0", "c"};
    (void)state;
    press_all("gj");
    assert_string_equal(chosen(), "b");
    set_queues(more, HF_COUNT(more));
    press(' ');
    assert_string_equal(chosen(), "b");
    set_queues(less, HF_COUNT(less));
    press(' ');
    assert_string_equal(chosen(), "c"); /* it has gone: the next one */
    press_all("ss");
    assert_string_equal(chosen(), "c");
}

static void sorting_goes_round_and_can_be_reversed(void **state)
{
    (void)state;
    hf_model_queue(&model, "b")->stats.ready = 5;
    press_all("ssg"); /* by READY */
    assert_string_equal(chosen(), "b");
    press_all("rG");
    assert_string_equal(chosen(), "b");
    for (int i = 0; i < 40 && view.pages[0].sort >= 0; i++)
        press('s');
    assert_int_equal(view.pages[0].sort, -1);
}

static void the_filter_looks_at_words(void **state)
{
    static const char *const names[] = {"Mail-in", "mail-out", "reports"};
    (void)state;
    set_queues(names, HF_COUNT(names));
    press_all("/MAIL");
    assert_int_equal(view.n_order, 2);
    press(HF_KEY_BACKSPACE);
    press_all("l-\n");
    assert_false(view.typing);
    assert_string_equal(view.filter, "MAIl-");
    press(HF_KEY_ESCAPE);
    assert_int_equal(view.n_order, 3);
    press_all("/q\x1b"); /* a letter of the filter is no key */
    assert_false(view.quit);
}

static void ten_thousand_queues_have_an_order(void **state)
{
    char **names = calloc(QUEUES, sizeof *names);
    (void)state;
    assert_non_null(names);
    for (int i = 0; i < QUEUES; i++) {
        names[i] = malloc(16);
        assert_non_null(names[i]);
        (void)snprintf(names[i], 16, "q%05d", i);
    }
    assert_true(hf_model_set_queues(&model, names, QUEUES));
    hf_model_queue(&model, "q07777")->stats.ready = 3;
    press('g');
    assert_int_equal(view.n_order, QUEUES);
    assert_string_equal(chosen(), "q07777");
    press('G');
    assert_string_equal(chosen(), "q09999");
    for (int i = 0; i < QUEUES; i++)
        free(names[i]);
    free(names);
}

/* ---- keys ---- */

static void pages_have_keys(void **state)
{
    (void)state;
    press('4');
    assert_int_equal(view.page, HF_PAGE_WORKERS);
    press(HF_KEY_TAB);
    assert_int_equal(view.page, HF_PAGE_LOCKS);
    press_all("6\t");
    assert_int_equal(view.page, HF_PAGE_OVERVIEW);
}

static void details_open_and_close(void **state)
{
    (void)state;
    press_all("gj\n");
    assert_int_equal(view.over, HF_OVER_DETAIL);
    assert_string_equal(view.subject.queue, "b");
    press('y');
    assert_int_equal(view.over, HF_OVER_WHY);
    press('q');
    assert_int_equal(view.over, HF_OVER_NONE);
    assert_false(view.quit);
    press('q');
    assert_true(view.quit);
}

static void the_interval_has_bounds(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++)
        press('+');
    assert_int_equal(view.interval_ms, HF_INTERVAL_MAX_MS);
    for (int i = 0; i < 20; i++)
        press('-');
    assert_int_equal(view.interval_ms, HF_INTERVAL_MIN_MS);
}

static void nothing_changes_without_permission(void **state)
{
    (void)state;
    press_all("gp");
    assert_int_equal(view.asked.kind, HF_CHANGE_NONE);
    assert_string_equal(view.message, "p needs --allow-changes");
    press('y');
    assert_int_equal(view.confirmed.kind, HF_CHANGE_NONE);
}

static void a_change_needs_its_answer(void **state)
{
    (void)state;
    view.allow_changes = true;
    press_all("gp");
    assert_int_equal(view.asked.kind, HF_CHANGE_PAUSE);
    press('j'); /* any other key is a no */
    assert_int_equal(view.confirmed.kind, HF_CHANGE_NONE);
    assert_string_equal(chosen(), "a");
    press_all("py");
    assert_int_equal(view.confirmed.kind, HF_CHANGE_PAUSE);
    assert_string_equal(view.confirmed.queue, "a");
}

/* The question is about the row that was chosen, although another one has its place. */
static void a_question_keeps_its_row(void **state)
{
    static const char *const less[] = {"b", "c"};
    (void)state;
    view.allow_changes = true;
    press_all("gp");
    set_queues(less, HF_COUNT(less));
    press('y');
    assert_string_equal(view.confirmed.queue, "a");
}

static void all_dead_jobs_of_a_type_can_be_retried(void **state)
{
    char command[HF_LINE_SIZE];
    (void)state;
    add_dead("1", "x", NOW);
    view.allow_changes = true;
    press_all("3R");
    hf_change_command(&view.asked, command);
    assert_string_equal(command, "holdfast dead retry -q q --type t");
    press_all("n\nR");
    hf_change_command(&view.asked, command);
    assert_string_equal(command, "holdfast job retry 1 -q q");
}

static void each_key_has_its_help(void **state)
{
    hf_buf help;
    (void)state;
    hf_buf_init(&help, 1 << 14);
    hf_keys_help(&view, &help);
    for (const char *key = "/ s r y l f p c R w + - ? q g G"; *key != '\0'; key++) {
        const char line[] = {'\n', ' ', *key, ' ', '\0'};
        const char dim[] = {'\n', '-', *key, ' ', '\0'};
        if (*key != ' ' && strstr(help.data, line) == NULL &&
            strstr(help.data, dim) == NULL)
            fail_msg("the help lacks %c:\n%s", *key, help.data);
    }
    hf_buf_done(&help);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(numbers_are_short),
        TEST(rates_are_those_of_the_last_minute),
        TEST(a_history_tells_rates_at_once),
        TEST(queues_come_and_go),
        TEST(errors_that_differ_in_numbers_are_one_group),
        TEST(too_many_errors_share_the_last_group),
        TEST(a_run_that_a_list_lacks_has_ended),
        TEST(a_stream_tells_how_runs_ended),
        TEST(of_too_many_runs_the_first_are_forgotten),
        TEST(what_is_wrong_comes_first),
        TEST(the_chosen_row_stays_wherever_it_goes),
        TEST(sorting_goes_round_and_can_be_reversed),
        TEST(the_filter_looks_at_words),
        TEST(ten_thousand_queues_have_an_order),
        TEST(pages_have_keys),
        TEST(details_open_and_close),
        TEST(the_interval_has_bounds),
        TEST(nothing_changes_without_permission),
        TEST(a_change_needs_its_answer),
        TEST(a_question_keeps_its_row),
        TEST(all_dead_jobs_of_a_type_can_be_retried),
        TEST(each_key_has_its_help),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
