/* test_svg.c - a picture is well-formed with any text in it, nothing crosses its edge,
 * and it grows to its maximum and not beyond. */
#include "cli/demo/svg.h"

#include <math.h>
#include <string.h>

#include "tests/support/eventually.h"
#include "tests/support/xml.h"

enum { MAX = 1 << 16 };

static const hf_svg_font font = {12, "#000000", HF_SVG_LEFT, false};

static void assert_well_formed(const char *text)
{
    size_t where = 0;
    const char *problem = hf_xml_problem(text, &where);
    if (problem != NULL)
        fail_msg("%s: %.60s", problem, text + where);
}

static void what_is_written_is_escaped(void **state)
{
    (void)state;
    hf_svg svg;
    const char *text = "<a & \"b\" 'c'> \x01\n\xC3\xBC\xFF ]]> <script>";
    hf_svg_begin(&svg, 100, 50, text, MAX);
    hf_svg_text(&svg, 1, 2, &font, text);
    hf_svg_rect(&svg,
                &(hf_svg_box){.width = 1, .height = 1, .fill = "#fff", .tip = text});
    hf_svg_line(&svg, &(hf_svg_stroke){.x2 = 1, .stroke = "#fff", .tip = text});
    hf_svg_curve(&svg, &(hf_svg_stroke){.x2 = 1, .stroke = "#fff", .tip = text});
    assert_int_equal(hf_svg_end(&svg), HF_OK);
    assert_well_formed(svg.text.data);
    assert_non_null(strstr(svg.text.data, "&lt;a &amp; &quot;b&quot; &#39;c&#39;&gt; "
                                          "????? ]]&gt; &lt;script&gt;</text>"));
    assert_null(strstr(svg.text.data, "<script"));
    hf_svg_done(&svg);
}

static void nothing_reaches_over_the_edge(void **state)
{
    (void)state;
    static const struct {
        hf_svg_box box;
        const char *attributes;
    } cases[] = {
        {{.x = 10, .y = 5, .width = 20, .height = 10},
         "x=\"10.0\" y=\"5.0\" width=\"20.0\" height=\"10.0\""},
        {{.x = -10, .y = -5, .width = 20, .height = 10},
         "x=\"0.0\" y=\"0.0\" width=\"10.0\" height=\"5.0\""},
        {{.x = 90, .y = 45, .width = 20, .height = 10},
         "x=\"90.0\" y=\"45.0\" width=\"10.0\" height=\"5.0\""},
        {{.x = 1e300, .y = -1e300, .width = 1e300, .height = 1e301},
         "x=\"100.0\" y=\"0.0\" width=\"0.0\" height=\"50.0\""},
        {{.x = 50, .y = 5, .width = -20, .height = 10},
         "x=\"50.0\" y=\"5.0\" width=\"0.0\" height=\"10.0\""},
        {{.x = NAN, .y = INFINITY, .width = NAN, .height = 1},
         "x=\"0.0\" y=\"50.0\" width=\"0.0\" height=\"0.0\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hf_svg svg;
        hf_svg_box box = cases[i].box;
        box.fill = "#123456";
        hf_svg_begin(&svg, 100, 50, "edges", MAX);
        hf_svg_rect(&svg, &box);
        assert_int_equal(hf_svg_end(&svg), HF_OK);
        const char *last = strstr(svg.text.data, "</title>");
        last =
            strstr(strstr(last, "<rect") + 1, "<rect"); /* the first one is the ground */
        if (strncmp(last + strlen("<rect "), cases[i].attributes,
                    strlen(cases[i].attributes)) != 0)
            fail_msg("expected %s, found %s", cases[i].attributes, last);
        hf_svg_done(&svg);
    }
}

static void lines_are_cut_as_well(void **state)
{
    (void)state;
    hf_svg svg;
    const hf_svg_stroke far = {
        .x1 = -7, .y1 = 60, .x2 = 700, .y2 = -1, .stroke = "#fff", .width = 1.5};
    hf_svg_begin(&svg, 100, 50, "edges", MAX);
    hf_svg_line(&svg, &far);
    hf_svg_curve(&svg, &far);
    assert_int_equal(hf_svg_end(&svg), HF_OK);
    assert_non_null(
        strstr(svg.text.data, "<line x1=\"0.0\" y1=\"50.0\" x2=\"100.0\" y2=\"0.0\""));
    assert_non_null(
        strstr(svg.text.data, "d=\"M0.0 50.0C50.0 50.0 50.0 0.0 100.0 0.0\""));
    hf_svg_done(&svg);
}

static void it_has_a_white_ground_and_no_script(void **state)
{
    (void)state;
    hf_svg svg;
    hf_svg_begin(&svg, 100, 50, "ground", MAX);
    assert_int_equal(hf_svg_end(&svg), HF_OK);
    assert_non_null(strstr(svg.text.data, "<rect x=\"0.0\" y=\"0.0\" width=\"100.0\" "
                                          "height=\"50.0\" fill=\"#ffffff\"/>"));
    assert_well_formed(svg.text.data);
    hf_svg_done(&svg);
}

static void one_that_is_too_big_says_so(void **state)
{
    (void)state;
    hf_svg svg;
    hf_svg_begin(&svg, 100, 50, "big", 2000);
    for (int i = 0; i < 100; i++)
        hf_svg_text(&svg, 1, 2, &font, "more and more");
    assert_int_equal(hf_svg_end(&svg), HF_TOOBIG);
    assert_true(svg.text.len <= 2000);
    hf_svg_done(&svg);
}

/* What the tests above hold against each picture finds what is wrong. */
static void what_is_not_well_formed_is_noticed(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "text",
                                      "<a>",
                                      "<a></b>",
                                      "<a/><b/>",
                                      "<a b=c/>",
                                      "<a b=\"c/>",
                                      "<a>&</a>",
                                      "<a b=\"<\"/>",
                                      "<a>\xC3\xBC</a>",
                                      "<a>&foo;</a>",
                                      "<a b=\"c\"d=\"e\"/>",
                                      "<a></a",
                                      "<a/>x",
                                      "<1/>"};
    size_t where;
    assert_null(
        hf_xml_problem("<?xml version=\"1.0\"?>\n<a b=\"c\">x &lt; y<d/></a>\n", &where));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (hf_xml_problem(bad[i], &where) == NULL)
            fail_msg("not noticed: %s", bad[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_escaped),
        cmocka_unit_test(nothing_reaches_over_the_edge),
        cmocka_unit_test(lines_are_cut_as_well),
        cmocka_unit_test(it_has_a_white_ground_and_no_script),
        cmocka_unit_test(one_that_is_too_big_says_so),
        cmocka_unit_test(what_is_not_well_formed_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
