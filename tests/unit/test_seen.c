/* Small parts of seen/: numbers and texts for people, the zone of this host. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "seen/words.h"
#include "seen/zones.h"
#include "tests/support/eventually.h"

static void spans_are_words(void **state)
{
    static const struct {
        int64_t ms;
        const char *text;
    } rows[] = {
        {-5, "0 s"},         {999, "0 s"},           {59999, "59 s"},
        {60000, "1 min"},    {432000, "7 min 12 s"}, {600000, "10 min"},
        {3599999, "59 min"}, {3600000, "1 h"},       {18180000, "5 h 3 min"},
        {36000000, "10 h"},  {172799999, "47 h"},    {172800000, "2 days"},
    };
    char out[HF_WORDS_SIZE], line[8];
    (void)state;
    for (size_t i = 0; i < HF_COUNT(rows); i++)
        assert_string_equal(hf_words_span(rows[i].ms, out), rows[i].text);
    assert_string_equal(hf_words_line("abcdefg", line, sizeof line), "abcdefg");
    assert_string_equal(hf_words_line("abcdefgh", line, sizeof line), "abcd...");
    assert_string_equal(hf_words_line("abc\xc3\xa4"
                                      "efgh",
                                      line, sizeof line),
                        "abc...");
    assert_string_equal(hf_words_line("a\nb \n", line, sizeof line), "a b");
}

static void a_text_without_room_ends_behind_a_word(void **state)
{
    char out[16] = "a";
    (void)state;
    hf_words_add(out, sizeof out, " %s", "bc def");
    assert_string_equal(out, "a bc def");
    hf_words_add(out, sizeof out, " %s", "ghijklmno");
    assert_string_equal(out, "a bc def ...");
    hf_words_add(out, sizeof out, "%s", "more than there is");
    assert_true(strlen(out) < sizeof out);
    out[0] = '\0';
    hf_words_add(out, sizeof out, "%s", "abcdefghijk\xc3\xa4yz12345");
    assert_string_equal(out, "abcdefghijk...");
}

static void the_zone_of_a_host_is_a_name_or_unknown(void **state)
{
    static const char *const rows[][2] = {
        {"Europe/Berlin", "Europe/Berlin"},
        {":Europe/Berlin", "Europe/Berlin"},
        {"/usr/share/zoneinfo/America/New_York", "America/New_York"},
        {"UTC", "UTC"},
        {"Etc/UTC", "UTC"},
        {"CET-1CEST,M3.5.0,M10.5.0/3", ""},
        {":/etc/localtime", ""},
    };
    char zone[HF_ZONE_SIZE];
    (void)state;
    for (size_t i = 0; i < HF_COUNT(rows); i++) {
        assert_int_equal(setenv("TZ", rows[i][0], 1), 0);
        hf_zones_host(zone);
        assert_string_equal(zone, rows[i][1]);
    }
    (void)unsetenv("TZ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_are_words),
        cmocka_unit_test(a_text_without_room_ends_behind_a_word),
        cmocka_unit_test(the_zone_of_a_host_is_a_name_or_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
