/* What the command says: exit codes, tables, times, and the lines of the log. */
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/text.h"
#include "cli/exit.h"
#include "cli/out.h"
#include "cli/width.h"
#include "cli/worker/log.h"
#include "tests/support/eventually.h"

#define EACH_ERR(name, number, text) name,
static const hf_err all_errs[] = {HF_ERR_MAP(EACH_ERR)};
#undef EACH_ERR

/* ---- exit codes ---- */

static void every_answer_has_the_exit_code_that_is_documented(void **state)
{
    (void)state;
    static const struct {
        hf_err err;
        int code;
    } cases[] = {
        {HF_OK, 0},           {HF_EXISTS, 0},   {HF_GONE, 1},      {HF_DEAD, 1},
        {HF_INVALID, 65},     {HF_TOOBIG, 65},  {HF_CONN, 69},     {HF_TIMEOUT, 69},
        {HF_UNSUPPORTED, 69}, {HF_PROTO, 70},   {HF_REDIS, 70},    {HF_NOMEM, 71},
        {HF_FULL, 75},        {HF_OOM, 75},     {HF_READONLY, 75}, {HF_LOADING, 75},
        {HF_BUSY_SCRIPT, 75}, {HF_MISCONF, 75}, {HF_UNSURE, 75},   {HF_LOST, 75},
        {HF_AUTH, 77},        {HF_CONFIG, 78},  {HF_POLICY, 78},   {HF_UNCONFIRMED, 74},
    };
    for (size_t i = 0; i < HF_COUNT(cases); i++)
        assert_int_equal(hf_exit_code(cases[i].err), cases[i].code);
    for (size_t i = 0; i < HF_COUNT(all_errs); i++) {
        static const int codes[] = {0, 1, 65, 69, 70, 71, 74, 75, 77, 78};
        bool known = false;
        for (size_t k = 0; k < HF_COUNT(codes); k++)
            known = known || (int)hf_exit_code(all_errs[i]) == codes[k];
        assert_true(known);
        assert_non_null(hf_exit_hint(all_errs[i]));
    }
}

/* ---- tables and times ---- */

static char *print_table(hf_table *table)
{
    char *text = NULL;
    size_t len = 0;
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_true(hf_table_print(table, file));
    len = (size_t)ftell(file);
    rewind(file);
    text = calloc(1, len + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, len, file), len);
    fclose(file);
    return text;
}

static void a_table_is_aligned_by_columns_and_whole_in_a_pipe(void **state)
{
    (void)state;
    static const hf_column columns[] = {
        {"NAME", false, 0}, {"N", true, 0}, {"TEXT", false, 8}};
    hf_table table;
    hf_table_init(&table, columns, HF_COUNT(columns));
    hf_table_text(&table, "gr\xC3\xBC\xC3\x9F");
    hf_table_number(&table, 7);
    hf_table_text(&table, "two\nlines, and more than eight characters");
    hf_table_text(&table, "\xE6\x9D\xB1\xE4\xBA\xAC"); /* two wide ones */
    hf_table_number(&table, -1234);
    hf_table_text(&table, "e\xCC\x81"); /* one, of two parts */
    char *text = print_table(&table);
    assert_string_equal(text, "NAME      N  TEXT\n"
                              "gr\xC3\xBC\xC3\x9F      7  two lines, and more than eight "
                              "characters\n"
                              "\xE6\x9D\xB1\xE4\xBA\xAC  -1234  e\xCC\x81\n");
    free(text);
}

static char *print_in(size_t room, bool bright, const char *const *cells, size_t n)
{
    static const hf_column columns[] = {
        {"ID", false, 20}, {"STATE", false, 0}, {"ERROR", false, 60}};
    char *text = NULL;
    size_t len = 0;
    hf_table table;
    FILE *file = open_memstream(&text, &len);
    assert_non_null(file);
    hf_table_init(&table, columns, HF_COUNT(columns));
    for (size_t i = 0; i < n; i++)
        hf_table_text(&table, cells[i]);
    assert_true(hf_table_print_in(&table, file, room, bright));
    assert_int_equal(fclose(file), 0);
    return text;
}

static void a_table_is_cut_only_as_far_as_the_terminal_needs(void **state)
{
    (void)state;
    static const char *const cells[] = {
        "an-id-of-twenty-four-chr", "dead",
        "an error of more than thirty characters \xE6\x9D\xB1\xE4\xBA\xAC"};
    static const struct {
        size_t room;
        const char *row;
    } cases[] = {
        {0, "an-id-of-twenty-four-chr  dead   an error of more than thirty characters "
            "\xE6\x9D\xB1\xE4\xBA\xAC\n"},
        {77, "an-id-of-twenty-four-chr  dead   an error of more than thirty characters "
             "\xE6\x9D\xB1\xE4\xBA\xAC\n"},
        {76, "an-id-of-twenty-four...  dead   an error of more than thirty characters "
             "\xE6\x9D\xB1\xE4\xBA\xAC\n"},
        {60, "an-id-of-twenty-f...  dead   an error of more than thirty...\n"},
        {40, "an-id-of-twen...  dead   an error of m...\n"},
        {5, "an-id-of-twen...  dead   an error of m...\n"},
    };
    for (size_t i = 0; i < HF_COUNT(cases); i++) {
        char *text = print_in(cases[i].room, false, cells, HF_COUNT(cells));
        if (strstr(text, cases[i].row) == NULL)
            fail_msg("in %zu columns: %s", cases[i].room, text);
        free(text);
    }
}

static void the_width_of_a_text_is_what_a_terminal_shows(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t width, bytes_in_3;
    } cases[] = {
        {"", 0, 0},
        {"abcd", 4, 3},
        {"\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9", 4, 6},
        {"\xE6\x9D\xB1\xE4\xBA\xAC", 4, 3}, /* half a character is not shown */
        {"e\xCC\x81"
         "ab\xCC\x81"
         "c",
         4, 7},
        {"\xF0\x9F\x90\x91", 2, 4}, /* a sheep */
        {"\xFF\xFE\xE6\x9D", 4, 3}, /* no UTF-8 */
    };
    for (size_t i = 0; i < HF_COUNT(cases); i++) {
        if (hf_width(cases[i].text) != cases[i].width ||
            hf_width_bytes(cases[i].text, 3) != cases[i].bytes_in_3)
            fail_msg("'%s' has %zu columns, %zu bytes in 3", cases[i].text,
                     hf_width(cases[i].text), hf_width_bytes(cases[i].text, 3));
    }
}

static void a_state_has_its_colour(void **state)
{
    (void)state;
    static const char *const cells[] = {"a", "dead",   "x", "b", "running", "dead",
                                        "c", "paused", "x", "d", "ready",   "x"};
    char *text = print_in(0, true, cells, HF_COUNT(cells));
    assert_string_equal(text, "\033[1mID  STATE    ERROR\n\033[0m"
                              "a   \033[31mdead\033[0m     x\n"
                              "b   \033[32mrunning\033[0m  dead\n"
                              "c   \033[33mpaused\033[0m   x\n"
                              "d   ready    x\n");
    free(text);
    text = print_in(0, false, cells, HF_COUNT(cells));
    assert_null(strchr(text, '\033'));
    free(text);
}

static void a_row_that_ends_with_nothing_has_no_blanks_at_its_end(void **state)
{
    (void)state;
    static const hf_column columns[] = {
        {"ID", false, 0}, {"DUE", false, 0}, {"TEXT", false, 8}};
    static const char *const cells[] = {"a", "later", "", "b", "now", "text"};
    hf_table table;
    hf_table_init(&table, columns, HF_COUNT(columns));
    for (size_t i = 0; i < HF_COUNT(cells); i++)
        hf_table_text(&table, cells[i]);
    char *text = print_table(&table);
    assert_string_equal(text, "ID  DUE    TEXT\n"
                              "a   later\n"
                              "b   now    text\n");
    free(text);
}

/* What is printed to a terminal of that many columns. */
static char *print_at_terminal(hf_table *table, unsigned short columns)
{
    static char text[1024];
    const struct winsize size = {.ws_row = 24, .ws_col = columns};
    int ours, theirs;
    assert_int_equal(openpty(&ours, &theirs, NULL, NULL, &size), 0);
    FILE *file = fdopen(theirs, "w");
    assert_non_null(file);
    assert_true(hf_table_print(table, file));
    fclose(file);
    /* It comes in pieces; when there is no more, the other side is closed. */
    size_t len = 0;
    for (ssize_t n; (n = read(ours, text + len, sizeof text - 1 - len)) > 0;)
        len += (size_t)n;
    text[len] = '\0';
    close(ours);
    return text;
}

static void a_terminal_sees_each_row_on_one_line(void **state)
{
    (void)state;
    static const hf_column columns[] = {{"ID", false, 0}, {"TEXT", false, 60}};
    static const char line[] = "twelve and more letters, which are too many for it";
    hf_table table;
    setenv("NO_COLOR", "1", 1);
    for (unsigned short room = 40; room <= 80; room += 40) {
        hf_table_init(&table, columns, HF_COUNT(columns));
        hf_table_text(&table, "0123456789");
        hf_table_text(&table, line);
        const char *text = print_at_terminal(&table, room);
        assert_string_equal(text, room == 40
                                      ? "ID          TEXT\r\n"
                                        "0123456789  twelve and more letters, ...\r\n"
                                      : "ID          TEXT\r\n"
                                        "0123456789  twelve and more letters, which "
                                        "are too many for it\r\n");
    }
    unsetenv("NO_COLOR");
}

static void a_table_without_rows_prints_nothing(void **state)
{
    (void)state;
    static const hf_column columns[] = {{"NAME", false, 0}};
    hf_table table;
    hf_table_init(&table, columns, 1);
    char *text = print_table(&table);
    assert_string_equal(text, "");
    free(text);
}

static void times_are_told_as_people_tell_them(void **state)
{
    (void)state;
    static const struct {
        int64_t ahead_ms;
        const char *text;
    } cases[] = {{250, "in 250ms"},    {-1999, "1s ago"},
                 {599000, "in 9m59s"}, {720500, "in 12m"},
                 {-3600000, "1h ago"}, {-90000000, "1d1h ago"},
                 {0, "now"},           {INT64_C(86400000) * 30, "in 30d"}};
    const int64_t now = INT64_C(1700000000000);
    char text[HF_WHEN_SIZE], moment[HF_MOMENT_SIZE];
    for (size_t i = 0; i < HF_COUNT(cases); i++) {
        hf_format_when(now + cases[i].ahead_ms, now, text);
        assert_string_equal(text, cases[i].text);
    }
    hf_format_when(0, now, text);
    assert_string_equal(text, "-");
    hf_format_moment(now + 10000, now, moment);
    assert_string_equal(moment, "2023-11-14T22:13:30.000Z (in 10s)");
}

static void numbers_have_the_fewest_digits_that_read_back(void **state)
{
    (void)state;
    static const struct {
        const char *given, *written;
    } cases[] = {
        {"[3.4]", "[3.4]"},
        {"[0.1,-0.30,100.0,0.0]", "[0.1,-0.3,100.0,0.0]"},
        {"[1.4142135623730951]", "[1.4142135623730951]"},
        {"[1e22,1.5e300,5e-324]", "[1e22,1.5e+300,4.94065645841247e-324]"},
        {"[1.7976931348623157e308]", "[1.7976931348623157e308]"},
        {"[9007199254740993,-17,0]", "[9007199254740993,-17,0]"},
        {"{\"a\\\"3.40\":[3.4,\"3.3999999999999999\"],\"b\":null}",
         "{\"a\\\"3.40\":[3.4,\"3.3999999999999999\"],\"b\":null}"},
    };
    for (size_t i = 0; i < HF_COUNT(cases); i++) {
        json_t *object = json_loads(cases[i].given, 0, NULL);
        char *line = hf_out_line(object);
        assert_string_equal(line, cases[i].written);
        free(line);
        json_decref(object);
    }
}

static void bytes_that_are_no_text_do_not_end_a_json_line(void **state)
{
    (void)state;
    json_t *json = hf_out_text("a\xFF\xC3\xA9z");
    assert_string_equal(json_string_value(json), "a?\xC3\xA9z");
    json_decref(json);
}

/* U+009B begins a command as ESC [ does; the euro's second byte is none of these. */
#define HOSTILE                                                                          \
    "a\x11[1mb\xC2\x9B"                                                                  \
    "2mc\x7F\xC2\x80\xE2\x82\xAC\xC2\xA0"

static void nothing_that_is_shown_is_a_command_to_a_terminal(void **state)
{
    (void)state;
    static const hf_column columns[] = {{"NAME", false, 0}};
    char plain[] = HOSTILE, *text = NULL;
    size_t len = 0;
    hf_table table;
    hf_text_plain(plain);
    assert_string_equal(plain, "a [1mb  2mc   \xE2\x82\xAC\xC2\xA0");
    hf_table_init(&table, columns, 1);
    hf_table_text(&table, HOSTILE);
    char *shown = print_table(&table);
    assert_string_equal(shown, "NAME\na [1mb  2mc   \xE2\x82\xAC\xC2\xA0\n");
    free(shown);
    FILE *file = open_memstream(&text, &len);
    assert_non_null(file);
    hf_out_plain(file, HOSTILE);
    hf_out_json(file, json_pack("{s:s}", "x", HOSTILE));
    assert_int_equal(fclose(file), 0);
    assert_string_equal(text,
                        "a [1mb 2mc  \xE2\x82\xAC\xC2\xA0{\"x\":\"a\\u0011[1mb\\u009b2mc"
                        "\\u007f\\u0080\xE2\x82\xAC\xC2\xA0\"}\n");
    free(text);
    assert_null(hf_out_line(NULL));
}

static void hostile_bytes_in_a_log_line_are_escaped(void **state)
{
    (void)state;
    static const hf_log_field hostile[] = {{.key = "error", .text = HOSTILE},
                                           {.key = "bare", .text = "a\xC2\x9B"}};
    static const char escaped[] =
        "a\\u0011[1mb\\u009b2mc\\u007f\\u0080\xE2\x82\xAC\xC2\xA0";
    for (int how = HF_FORMAT_LOGFMT; how <= HF_FORMAT_JSON; how++) {
        hf_buf line;
        hf_buf_init(&line, 4096);
        hf_log_format_line(&line, (hf_config_format)how, INT64_C(1700000000123),
                           HF_LOG_WARN, "job", hostile, HF_COUNT(hostile));
        hf_buf_add(&line, "", 1);
        assert_int_equal(hf_buf_err(&line), HF_OK);
        const char *text = (const char *)line.data;
        assert_non_null(strstr(text, escaped));
        assert_non_null(strstr(text, "\"a\\u009b\""));
        assert_null(strstr(text, "\xC2\x9B"));
        hf_buf_done(&line);
    }
}

/* U+202E turns the order of what follows, U+E0041 is a tag that nobody sees; U+200D joins
 * emojis. */
static void characters_that_turn_or_hide_a_text_are_escaped(void **state)
{
    static const char turned[] = "a\xE2\x80\xAE"
                                 "b\xF3\xA0\x81\x81"
                                 "c\xE2\x80\x8D"
                                 "d\xEF\xBB\xBF";
    static const hf_log_field fields[] = {{.key = "error", .text = turned}};
    char plain[sizeof turned];
    (void)state;
    memcpy(plain, turned, sizeof turned);
    hf_text_plain(plain);
    assert_string_equal(plain, "a   b    c\xE2\x80\x8D"
                               "d   ");
    json_t *object = json_pack("{s:s}", "x", turned);
    char *line = hf_out_line(object);
    json_decref(object);
    assert_string_equal(line, "{\"x\":\"a\\u202eb\\udb40\\udc41c\xE2\x80\x8D"
                              "d\\ufeff\"}");
    free(line);
    for (int how = HF_FORMAT_LOGFMT; how <= HF_FORMAT_JSON; how++) {
        hf_buf text;
        hf_buf_init(&text, 4096);
        hf_log_format_line(&text, (hf_config_format)how, INT64_C(1700000000123),
                           HF_LOG_WARN, "job", fields, HF_COUNT(fields));
        hf_buf_add(&text, "", 1);
        assert_non_null(strstr(text.data, "a\\u202eb\\udb40\\udc41c"));
        hf_buf_done(&text);
    }
}

/* ---- the log ---- */

static const hf_log_field fields[] = {
    {.key = "job", .text = "01ABC"},
    {.key = "run_ms", .number = 12},
    {.key = "error", .text = "a \"b\"\n\\c\x01"},
    {.key = "empty", .text = ""},
};

static char *format(hf_config_format how)
{
    hf_buf line;
    hf_buf_init(&line, 4096);
    hf_log_format_line(&line, how, INT64_C(1700000000123), HF_LOG_WARN, "job", fields,
                       HF_COUNT(fields));
    assert_int_equal(hf_buf_err(&line), HF_OK);
    return line.data;
}

static void no_login_gets_into_the_log(void **state)
{
    static const hf_log_field urls[] = {{.key = "error", .text = "at redis://:S3cret@h"}};
    (void)state;
    for (int how = HF_FORMAT_LOGFMT; how <= HF_FORMAT_JSON; how++) {
        hf_buf line;
        hf_buf_init(&line, 4096);
        hf_log_format_line(&line, (hf_config_format)how, INT64_C(1700000000123),
                           HF_LOG_WARN, "no redis://:S3cret@h", urls, HF_COUNT(urls));
        hf_buf_add(&line, "", 1);
        assert_non_null(strstr(line.data, "no redis://***@h"));
        assert_non_null(strstr(line.data, "at redis://***@h"));
        hf_buf_done(&line);
    }
}

static void a_logfmt_line_quotes_what_needs_it(void **state)
{
    (void)state;
    char *line = format(HF_FORMAT_LOGFMT);
    assert_string_equal(
        line, "ts=2023-11-14T22:13:20.123Z level=warn msg=job job=01ABC run_ms=12 "
              "error=\"a \\\"b\\\"\\n\\\\c\\u0001\" empty=\"\"");
    free(line);
}

static void a_json_line_is_one_object(void **state)
{
    (void)state;
    char *line = format(HF_FORMAT_JSON);
    json_t *object = json_loads(line, 0, NULL);
    assert_non_null(object);
    assert_null(strchr(line, '\n'));
    assert_string_equal(json_string_value(json_object_get(object, "ts")),
                        "2023-11-14T22:13:20.123Z");
    assert_string_equal(json_string_value(json_object_get(object, "level")), "warn");
    assert_string_equal(json_string_value(json_object_get(object, "msg")), "job");
    assert_int_equal(json_integer_value(json_object_get(object, "run_ms")), 12);
    assert_string_equal(json_string_value(json_object_get(object, "error")),
                        fields[2].text);
    json_decref(object);
    free(line);
}

static void
the_log_leaves_out_what_is_below_its_level_and_shortens_what_is_huge(void **state)
{
    (void)state;
    char text[256];
    hf_log log;
    FILE *file = tmpfile();
    char *huge = calloc(1, 1 << 20);
    assert_non_null(file);
    assert_non_null(huge);
    memset(huge, 'x', (1 << 20) - 1);
    const hf_log_field field = {.key = "line", .text = huge};
    const hf_config config = {.log_level = HF_LOG_WARN};
    assert_true(hf_log_open(&log, fileno(file), &config));
    hf_log_write(HF_LOG_INFO, "unheard", NULL, 0, &log);
    hf_log_write(HF_LOG_ERROR, "heard", &field, 1, &log);
    hf_log_close(&log);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    assert_null(strstr(text, "unheard"));
    assert_non_null(strstr(text, " level=error msg=heard\n"));
    fclose(file);
    free(huge);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_answer_has_the_exit_code_that_is_documented),
        cmocka_unit_test(a_table_is_aligned_by_columns_and_whole_in_a_pipe),
        cmocka_unit_test(a_table_is_cut_only_as_far_as_the_terminal_needs),
        cmocka_unit_test(the_width_of_a_text_is_what_a_terminal_shows),
        cmocka_unit_test(a_state_has_its_colour),
        cmocka_unit_test(a_row_that_ends_with_nothing_has_no_blanks_at_its_end),
        cmocka_unit_test(a_terminal_sees_each_row_on_one_line),
        cmocka_unit_test(a_table_without_rows_prints_nothing),
        cmocka_unit_test(times_are_told_as_people_tell_them),
        cmocka_unit_test(numbers_have_the_fewest_digits_that_read_back),
        cmocka_unit_test(bytes_that_are_no_text_do_not_end_a_json_line),
        cmocka_unit_test(nothing_that_is_shown_is_a_command_to_a_terminal),
        cmocka_unit_test(hostile_bytes_in_a_log_line_are_escaped),
        cmocka_unit_test(characters_that_turn_or_hide_a_text_are_escaped),
        cmocka_unit_test(no_login_gets_into_the_log),
        cmocka_unit_test(a_logfmt_line_quotes_what_needs_it),
        cmocka_unit_test(a_json_line_is_one_object),
        cmocka_unit_test(
            the_log_leaves_out_what_is_below_its_level_and_shortens_what_is_huge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
