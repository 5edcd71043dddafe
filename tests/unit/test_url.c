/* test_url.c - where a Redis is and how to log in. */
#include "redis/url.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <cmocka.h>

#include "base/base.h"
#include "holdfast/server.h"
#include "tests/support/tempdir.h"

typedef struct url_case {
    const char *text, *path, *host;
    int port, db;
    const char *user, *password;
} url_case;

static void every_form_is_taken_apart(void **state)
{
    static const url_case cases[] = {
        {"redis://localhost", "", "localhost", 6379, 0, "", ""},
        {"redis://", "", "localhost", 6379, 0, "", ""},
        {"redis://:7000", "", "localhost", 7000, 0, "", ""},
        {"REDIS://Host.example:1", "", "Host.example", 1, 0, "", ""},
        {"redis://10.0.0.1:65535/15", "", "10.0.0.1", 65535, 15, "", ""},
        {"redis://h/", "", "h", 6379, 0, "", ""},
        {"redis://:secret@h", "", "h", 6379, 0, "", "secret"},
        {"redis://joe:secret@h:7/1", "", "h", 7, 1, "joe", "secret"},
        {"redis://joe@h", "", "h", 6379, 0, "joe", ""},
        {"rediss://joe:p@h:7/1", "", "h", 7, 1, "joe", "p"},
        {"RedisS://", "", "localhost", 6379, 0, "", ""},
        {"redis://joe:p%40ss%2Fw%3ard@h", "", "h", 6379, 0, "joe", "p@ss/w:rd"},
        {"redis://joe:a:b@c@h", "", "h", 6379, 0, "joe", "a:b@c"},
        {"redis://j%6Fe:x@h", "", "h", 6379, 0, "joe", "x"},
        {"redis://[::1]", "", "::1", 6379, 0, "", ""},
        {"redis://u:p@[fe80::1%eth0]:7000/2", "", "fe80::1%eth0", 7000, 2, "u", "p"},
        {"unix:///run/redis.sock", "/run/redis.sock", "localhost", 6379, 0, "", ""},
        {"unix:///run/r.sock?db=3", "/run/r.sock", "localhost", 6379, 3, "", ""},
        {"unix://:pw@/s", "/s", "localhost", 6379, 0, "", "pw"},
        {"unix://joe:pw@/a@b/s?db=0", "/a@b/s", "localhost", 6379, 0, "joe", "pw"},
        {"unix:///a%20b%3Fc", "/a b?c", "localhost", 6379, 0, "", ""},
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT(cases); i++) {
        char detail[HF_DETAIL_SIZE];
        hf_url url;
        if (hf_url_parse(&url, cases[i].text, detail) != HF_OK)
            fail_msg("%s: %s", cases[i].text, detail);
        assert_string_equal(url.path, cases[i].path);
        assert_string_equal(url.host, cases[i].host);
        assert_int_equal(url.port, cases[i].port);
        assert_int_equal(url.tls, strncasecmp(cases[i].text, "rediss:", 7) == 0);
        assert_int_equal(url.db, cases[i].db);
        assert_string_equal(url.user, cases[i].user);
        assert_string_equal(url.password, cases[i].password);
    }
}

static void sentinels_are_taken_apart(void **state)
{
    static const struct {
        const char *text;
        size_t n;
        const char *hosts[3];
        int ports[3];
        const char *master;
        int db;
        const char *user, *password, *place;
    } cases[] = {
        {"redis+sentinel://h/m", 1, {"h"}, {26379}, "m", 0, "", "", "the primary of m"},
        {"rediss+sentinel://a:1,[::1]:2,c/my.m-1_X/3",
         3,
         {"a", "::1", "c"},
         {1, 2, 26379},
         "my.m-1_X",
         3,
         "",
         "",
         "the primary of my.m-1_X"},
        {"Redis+Sentinel://joe:p%2C@a,b/m/",
         2,
         {"a", "b"},
         {26379, 26379},
         "m",
         0,
         "joe",
         "p,",
         "the primary of m"},
        {"redis+sentinel://:a@b@10.0.0.1:7/m",
         1,
         {"10.0.0.1"},
         {7},
         "m",
         0,
         "",
         "a@b",
         "the primary of m"},
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT(cases); i++) {
        char detail[HF_DETAIL_SIZE], place[HF_URL_PLACE_SIZE];
        hf_url url;
        if (hf_url_parse(&url, cases[i].text, detail) != HF_OK)
            fail_msg("%s: %s", cases[i].text, detail);
        assert_int_equal(url.sentinel.n_nodes, cases[i].n);
        for (size_t k = 0; k < cases[i].n; k++) {
            assert_string_equal(url.sentinel.nodes[k].host, cases[i].hosts[k]);
            assert_int_equal(url.sentinel.nodes[k].port, cases[i].ports[k]);
        }
        assert_string_equal(url.sentinel.master, cases[i].master);
        assert_int_equal(url.tls, strncasecmp(cases[i].text, "rediss", 6) == 0);
        assert_string_equal(url.host, "");
        assert_int_equal(url.db, cases[i].db);
        assert_string_equal(url.user, cases[i].user);
        assert_string_equal(url.password, cases[i].password);
        hf_url_place(&url, place);
        assert_string_equal(place, cases[i].place);
    }
}

static void the_nodes_of_a_cluster_are_taken_apart(void **state)
{
    char detail[HF_DETAIL_SIZE], place[HF_URL_PLACE_SIZE];
    hf_url url;
    (void)state;
    assert_int_equal(
        hf_url_parse(&url, "Rediss+Cluster://joe:p%2C@a:1,[::1]:2,c/0", detail), HF_OK);
    assert_int_equal(url.cluster.n_nodes, 3);
    assert_string_equal(url.cluster.nodes[0].host, "a");
    assert_int_equal(url.cluster.nodes[0].port, 1);
    assert_string_equal(url.cluster.nodes[1].host, "::1");
    assert_int_equal(url.cluster.nodes[1].port, 2);
    assert_string_equal(url.cluster.nodes[2].host, "c");
    assert_int_equal(url.cluster.nodes[2].port, 6379);
    assert_string_equal(url.host, "");
    assert_string_equal(url.user, "joe");
    assert_string_equal(url.password, "p,");
    assert_true(url.tls);
    hf_url_place(&url, place);
    assert_string_equal(place, "the cluster of a");
    assert_int_equal(hf_url_parse(&url, "redis+cluster://h/", detail), HF_OK);
    assert_false(url.tls);
}

static const struct {
    const char *text, *why;
} no_urls[] = {
    {"", "expected a URL"},
    {"localhost:6379", "expected a URL"},
    {"http://h", "expected a URL"},
    {"://h", "expected a URL"},
    {"redis://h:0", "port"},
    {"redis://h:65536", "port"},
    {"redis://h:6379x", "port"},
    {"redis://h:", "port"},
    {"redis://h:-1", "port"},
    {"redis://[::1]x", "port"},
    {"redis://[::1", "host"},
    {"redis://h/x", "database"},
    {"redis://h/-1", "database"},
    {"redis://h/0/", "database"},
    {"redis://h/1000001", "database"},
    {"redis://h?db=1", "percent-encode"},
    {"redis://u:p#w@h", "percent-encode"},
    {"redis://u:%zz@h", "password"},
    {"redis://u:%4", "port"},
    {"redis://u:%4@h", "password"},
    {"redis://u:%00@h", "password"},
    {"redis://%00:p@h", "user"},
    {"unix://", "path"},
    {"unix://run/redis.sock", "no host"},
    {"unix:///s?db=", "database"},
    {"unix:///s?x=1", "?db=N"},
    {"unix:///s?db=1&x", "database"},
    {"unix:///%0", "path"},
    {"rediss://h?db=1", "percent-encode"},
    {"redis+sentinel://h", "/MASTER"},
    {"redis+sentinel://h/", "/MASTER"},
    {"redis+sentinel://h//1", "/MASTER"},
    {"redis+sentinel://h/a b", "/MASTER"},
    {"redis+sentinel://h/a%41", "/MASTER"},
    {"redis+sentinel:///m", "without a host"},
    {"redis+sentinel://h,/m", "without a host"},
    {"redis+sentinel://,h/m", "without a host"},
    {"redis+sentinel://h:0/m", "port"},
    {"redis+sentinel://h,i:x/m", "port"},
    {"redis+sentinel://h/m/x", "database"},
    {"redis+sentinel://h/m?db=1", "percent-encode"},
    {"redis+sentinel://u:%zz@h/m", "password"},
    {"redis+sentinel://a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q/m", "more than 16"},
    {"redis+cluster://", "without a host"},
    {"redis+cluster://a,,b", "without a host"},
    {"redis+cluster://h/1", "no database but 0"},
    {"redis+cluster://h/x", "database"},
    {"redis+cluster://h:0", "port"},
    {"rediss+cluster://a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q", "more than 16 nodes"},
    {"redis-sentinel://h", "not in this build"},
    {"sentinel://h", "not in this build"},
};

static void what_is_no_url_is_refused_with_the_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT(no_urls); i++) {
        char detail[HF_DETAIL_SIZE] = "";
        assert_int_equal(hf_url_check(no_urls[i].text, detail), HF_INVALID);
        if (strstr(detail, no_urls[i].why) == NULL)
            fail_msg("%s: said '%s'", no_urls[i].text, detail);
        assert_null(strchr(detail, '\n'));
        assert_int_equal(hf_url_check(no_urls[i].text, NULL), HF_INVALID);
    }
}

static void what_is_too_long_is_refused(void **state)
{
    (void)state;
    char text[6000], detail[HF_DETAIL_SIZE], fill[5001];
    memset(fill, 'a', sizeof fill - 1);
    fill[sizeof fill - 1] = '\0';
    static const struct {
        const char *format;
        int longest;
    } parts[] = {{"redis://%.*s", 255},
                 {"redis://%.*s:p@h", 512},
                 {"redis://u:%.*s@h", 512},
                 {"unix:///%.*s", 106}};
    for (size_t i = 0; i < HF_COUNT(parts); i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(text, sizeof text, parts[i].format, parts[i].longest, fill);
        assert_int_equal(hf_url_check(text, detail), HF_OK);
        snprintf(text, sizeof text, parts[i].format, parts[i].longest + 1, fill);
        assert_int_equal(hf_url_check(text, detail), HF_INVALID);
        snprintf(text, sizeof text, parts[i].format, 5000, fill);
        assert_int_equal(hf_url_check(text, detail), HF_INVALID);
#pragma GCC diagnostic pop
    }
}

/* An unencoded / or # in a password shifts all that follows to another part of the URL.
 */
static void no_reason_repeats_a_part_of_the_url(void **state)
{
    static const char *const bad[] = {"redis://joe:hunter2/hunter2@h",
                                      "redis://joe:hunter2#hunter2@h:1",
                                      "hunter2://h",
                                      "redis://joe:hunter2%zz@h",
                                      "redis://hunter2%zz@h",
                                      "hunter2",
                                      "unix://joe:hunter2",
                                      "unix://joe:hunter2/s",
                                      "redis://[hunter2",
                                      "redis://h:hunter2",
                                      "redis://h/hunter2",
                                      "unix:///s?hunter2"};
    (void)state;
    for (size_t i = 0; i < HF_COUNT(bad); i++) {
        char detail[HF_DETAIL_SIZE] = "";
        assert_int_equal(hf_url_check(bad[i], detail), HF_INVALID);
        if (strstr(detail, "hunter2") != NULL || strstr(detail, "joe") != NULL)
            fail_msg("%s: said '%s'", bad[i], detail);
    }
}

static void the_place_is_told_without_the_login(void **state)
{
    static const char *const cases[][2] = {
        {"redis://joe:pw@example.com:7/3", "example.com:7"},
        {"redis://joe:pw@[::1]", "[::1]:6379"},
        {"unix://joe:pw@/run/s?db=1", "/run/s"},
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT(cases); i++) {
        char detail[HF_DETAIL_SIZE], place[HF_URL_PLACE_SIZE];
        hf_url url;
        assert_int_equal(hf_url_parse(&url, cases[i][0], detail), HF_OK);
        hf_url_place(&url, place);
        assert_string_equal(place, cases[i][1]);
    }
}

static void wiping_leaves_nothing(void **state)
{
    (void)state;
    char detail[HF_DETAIL_SIZE];
    hf_url url;
    assert_int_equal(hf_url_parse(&url, "redis://joe:secret@h", detail), HF_OK);
    hf_url_wipe(&url);
    for (size_t i = 0; i < sizeof url; i++)
        assert_int_equal(((const unsigned char *)&url)[i], 0);
}

static void the_password_is_the_first_line_of_its_file(void **state)
{
    (void)state;
    char dir[HF_TEMPDIR_SIZE], file[HF_TEMPDIR_SIZE + 8], detail[HF_DETAIL_SIZE];
    hf_tempdir_make(dir);
    snprintf(file, sizeof file, "%s/p", dir);
    hf_url url;
    assert_int_equal(hf_url_parse(&url, "redis://joe:old@h", detail), HF_OK);
    static const char *const forms[] = {"secret", "secret\n", "secret\r\n",
                                        "secret\nmore\n"};
    for (size_t i = 0; i < HF_COUNT(forms); i++) {
        memcpy(url.password, "old", 4);
        hf_write_file(file, forms[i]);
        assert_int_equal(hf_url_read_password(url.password, file, detail), HF_OK);
        assert_string_equal(url.password, "secret");
    }
    char line[602];
    memset(line, 'a', sizeof line - 1);
    line[512] = '\0';
    hf_write_file(file, line);
    assert_int_equal(hf_url_read_password(url.password, file, detail), HF_OK);
    assert_string_equal(url.password, line);
    hf_tempdir_remove(dir);
}

static void a_password_file_that_is_none_is_an_error_of_the_configuration(void **state)
{
    (void)state;
    char dir[HF_TEMPDIR_SIZE], file[HF_TEMPDIR_SIZE + 8], detail[HF_DETAIL_SIZE];
    hf_tempdir_make(dir);
    snprintf(file, sizeof file, "%s/p", dir);
    hf_url url;
    assert_int_equal(hf_url_parse(&url, "redis://:old@h", detail), HF_OK);
    assert_int_equal(hf_url_read_password(url.password, file, detail), HF_CONFIG);
    assert_non_null(strstr(detail, file));
    assert_int_equal(hf_url_read_password(url.password, dir, detail), HF_CONFIG);
    assert_int_equal(hf_url_read_password(url.password, "/dev/zero", detail), HF_CONFIG);
    hf_write_file(file, "");
    assert_int_equal(hf_url_read_password(url.password, file, detail), HF_CONFIG);
    hf_write_file(file, "\nsecret\n");
    assert_int_equal(hf_url_read_password(url.password, file, detail), HF_CONFIG);
    char line[601];
    memset(line, 'a', sizeof line - 1);
    line[513] = '\0';
    hf_write_file(file, line);
    assert_int_equal(hf_url_read_password(url.password, file, detail), HF_CONFIG);
    assert_null(strstr(detail, "aaaa"));
    assert_string_equal(url.password, "old");
    hf_tempdir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_is_taken_apart),
        cmocka_unit_test(sentinels_are_taken_apart),
        cmocka_unit_test(the_nodes_of_a_cluster_are_taken_apart),
        cmocka_unit_test(what_is_no_url_is_refused_with_the_reason),
        cmocka_unit_test(what_is_too_long_is_refused),
        cmocka_unit_test(no_reason_repeats_a_part_of_the_url),
        cmocka_unit_test(the_place_is_told_without_the_login),
        cmocka_unit_test(wiping_leaves_nothing),
        cmocka_unit_test(the_password_is_the_first_line_of_its_file),
        cmocka_unit_test(a_password_file_that_is_none_is_an_error_of_the_configuration),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
