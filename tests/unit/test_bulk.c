/* Bulk files: each line is read to the letter, payloads are passed on byte for byte, and
 * the same file always makes the same blocks. */
#include "cli/enqueue/bulk.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base64.h"
#include "tests/support/eventually.h"
#include "tests/support/tempdir.h"

enum { PAYLOAD_MAX = 1000, BLOCKS = 300, LIST_SIZE = 1 << 14 };

/* ---- lines ---- */

static void assert_payload(const char *line, const void *bytes, size_t len)
{
    char detail[HF_BULK_DETAIL_SIZE] = "";
    hf_bulk_line l;
    hf_err err = hf_bulk_line_read(&l, line, strlen(line), PAYLOAD_MAX, detail);
    if (err != HF_OK)
        fail_msg("%s", detail);
    assert_int_equal(l.job.payload_len, len);
    assert_memory_equal(l.job.payload, bytes, len);
    hf_bulk_line_done(&l);
}

static void a_json_payload_is_passed_on_byte_for_byte(void **state)
{
    (void)state;
    static const char *const values[] = {
        "0.1",
        "1.10",
        "12345678901234567890",
        "-0",
        "1E5",
        "true",
        "null",
        "[]",
        "{}",
        "{\"b\": 1,\t\"a\":[ 1 , 2.50 ]}",
        "[\"}\",\"\\\"]\",{\"x\":\"{\"}]",
        "{\"\\u0061\":\"\\u00e9\\/\"}",
        "[[[[[]]]],{\"k\":[{}]}]",
        "1e3",
        "1e999",
        "-123456789012345678901234567890.5e-7",
        "[0.1,1e400,{\"a\":1,\"b\":2,\"a\":3}]",
        "{\"a\":1,\"a\":2}",
        "[\"\\u0000\",\"\\ud800\",\"\\ud83d\\ude00\"]",
    };
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        char line[256];
        snprintf(line, sizeof line, "{\"payload\":%s,\"type\":\"t\"}", values[i]);
        assert_payload(line, values[i], strlen(values[i]));
        snprintf(line, sizeof line, " { \"type\" : \"t\" , \"payload\" : %s } ",
                 values[i]);
        assert_payload(line, values[i], strlen(values[i]));
    }
}

static void a_text_is_its_characters_and_base64_its_bytes(void **state)
{
    (void)state;
    assert_payload("{\"type\":\"t\",\"payload\":\"a\\nb\"}", "a\nb", 3);
    assert_payload("{\"type\":\"t\",\"payload\":\"a\\u0000b\"}", "a\0b", 3);
    assert_payload("{\"type\":\"t\",\"payload\":\"\\u00e9\"}", "\xC3\xA9", 2);
    assert_payload("{\"type\":\"t\",\"payload\":\"\"}", "", 0);
    assert_payload("{\"type\":\"t\"}", "", 0);
    assert_payload("{\"type\":\"t\",\"payload_base64\":\"AP8B\"}", "\x00\xFF\x01", 3);
    assert_payload("{\"type\":\"t\",\"payload_base64\":\"\"}", "", 0);
    assert_payload("{\"\\u0070ayload\":[1.0],\"type\":\"t\"}", "[1.0]", 5);
}

static void every_key_of_a_job_is_read(void **state)
{
    (void)state;
    static const char text[] =
        "{\"type\":\"mail\",\"queue\":\"q\",\"id\":\"i-1\",\"in\":\"10s\","
        "\"max_attempts\":7,\"timeout\":\"1m\",\"priority\":\"high\","
        "\"keep\":\"1h\",\"start_within\":\"10m\",\"expired\":\"dead\",\"on_dead\":\"t."
        "died\",\"headers\":{\"tenant\": \"7\"}}";
    char detail[HF_BULK_DETAIL_SIZE];
    hf_bulk_line l;
    assert_int_equal(hf_bulk_line_read(&l, text, strlen(text), PAYLOAD_MAX, detail),
                     HF_OK);
    assert_string_equal(l.job.type, "mail");
    assert_string_equal(l.job.queue, "q");
    assert_string_equal(l.job.id, "i-1");
    assert_int_equal(l.job.delay_ms, 10000);
    assert_int_equal(l.job.at_ms, 0);
    assert_int_equal(l.job.max_attempts, 7);
    assert_int_equal(l.job.timeout_ms, 60000);
    assert_int_equal(l.job.priority, HF_PRIORITY_HIGH);
    assert_int_equal(l.job.keep_ms, 3600000);
    assert_int_equal(l.job.start_within_ms, 600000);
    assert_int_equal(l.job.expired, HF_EXPIRED_DEAD);
    assert_string_equal(l.job.on_dead, "t.died");
    assert_string_equal(l.job.headers, "{\"tenant\": \"7\"}");
    hf_bulk_line_done(&l);
    static const char least[] = "{\"type\":\"t\",\"headers\":{\"a\":\"b\"}}";
    assert_int_equal(hf_bulk_line_read(&l, least, strlen(least), PAYLOAD_MAX, detail),
                     HF_OK);
    assert_string_equal(l.job.headers, "{\"a\":\"b\"}");
    hf_bulk_line_done(&l);
    static const char at[] = "{\"type\":\"t\",\"at\":\"@1700000000.5\"}";
    assert_int_equal(hf_bulk_line_read(&l, at, strlen(at), PAYLOAD_MAX, detail), HF_OK);
    assert_int_equal(l.job.at_ms, INT64_C(1700000000500));
    assert_null(l.job.queue);
    assert_null(l.job.id);
    hf_bulk_line_done(&l);
}

static void numbers_of_a_priority_are_three_levels(void **state)
{
    static const hf_priority levels[] = {
        HF_PRIORITY_HIGH,   HF_PRIORITY_HIGH,   HF_PRIORITY_HIGH,   HF_PRIORITY_HIGH,
        HF_PRIORITY_NORMAL, HF_PRIORITY_NORMAL, HF_PRIORITY_NORMAL, HF_PRIORITY_LOW,
        HF_PRIORITY_LOW,    HF_PRIORITY_LOW};
    (void)state;
    for (unsigned i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        char line[64], detail[HF_BULK_DETAIL_SIZE];
        hf_bulk_line l;
        int len = snprintf(line, sizeof line, "{\"type\":\"t\",\"priority\":%u}", i);
        assert_int_equal(hf_bulk_line_read(&l, line, (size_t)len, PAYLOAD_MAX, detail),
                         HF_OK);
        assert_int_equal(l.job.priority, levels[i]);
        hf_bulk_line_done(&l);
    }
}

static void is_refused(const char *line, const char *expected)
{
    char detail[HF_BULK_DETAIL_SIZE] = "";
    hf_bulk_line l;
    assert_int_equal(hf_bulk_line_read(&l, line, strlen(line), PAYLOAD_MAX, detail),
                     HF_INVALID);
    if (strncmp(detail, expected, strlen(expected)) != 0)
        fail_msg("%s: %s", line, detail);
}

static void a_bad_line_is_refused_with_what_was_expected(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"{\"type\":\"t\"", "expected a JSON object, found broken JSON"},
        {"{\"type\":\"t\"} x", "expected a JSON object, found broken JSON"},
        {"{\"type\":\"\xFF\"}", "expected a JSON object in UTF-8, found other bytes"},
        {"[1]", "expected a JSON object, found a list"},
        {"\"t\"", "expected a JSON object, found a single value"},
        {"{}", "'type' is missing"},
        {"{\"type\":\"t\",\"type\":\"u\"}", "expected each key once, found 'type' again"},
        {"{\"type\":\"t\",\"\\u0074ype\":\"u\"}",
         "expected each key once, found 'type' again"},
        {"{\"type\\u0000\":\"t\"}", "expected a key of a job (type, payload, "},
        {"{\"type\":\"t\",\"payload\":\"\\ud800\"}",
         "expected whole characters, found half a pair of \\u escapes in \"\\ud800\""},
        {"{\"type\":\"t\",\"payload\":01}",
         "expected a JSON object, found broken JSON in column 24 (expected ',' or '}')"},
        {"{\"type\":\"t\",\"prio\":1}", "expected a key of a job (type, payload, "},
        {"{\"type\":\"a b\"}",
         "expected 1 to 128 characters of A-Z a-z 0-9 . _ : - for 'type', "
         "found \"a b\""},
        {"{\"type\":7}",
         "expected 1 to 128 characters of A-Z a-z 0-9 . _ : - for 'type', found 7"},
        {"{\"type\":\"t\\u0000\"}", "expected 1 to 128 characters"},
        {"{\"type\":\"t\",\"id\":\"a{b\"}", "expected 1 to 128 characters"},
        {"{\"type\":\"t\",\"queue\":\"\"}", "expected 1 to 128 characters"},
        {"{\"type\":\"t\",\"in\":10}",
         "expected a duration with its unit (\"10s\") of at most 36525d for 'in'"},
        {"{\"type\":\"t\",\"in\":\"10\"}",
         "expected a duration with its unit (\"10s\") of at most 36525d for 'in'"},
        {"{\"type\":\"t\",\"at\":1700000000}",
         "expected a time from 1970 to 9999 with its zone"},
        {"{\"type\":\"t\",\"in\":\"36526d\"}",
         "expected a duration with its unit (\"10s\") of at most 36525d for 'in'"},
        {"{\"type\":\"t\",\"at\":\"@253402300800\"}",
         "expected a time from 1970 to 9999 with its zone"},
        {"{\"type\":\"t\",\"in\":\"1s\",\"at\":\"@1\"}",
         "expected 'in' or 'at', found both"},
        {"{\"type\":\"t\",\"timeout\":\"0\"}",
         "expected a duration from 1ms to 30d for 'timeout'"},
        {"{\"type\":\"t\",\"max_attempts\":0}", "expected an integer from 1 to 1000000"},
        {"{\"type\":\"t\",\"max_attempts\":5.0}",
         "expected an integer from 1 to 1000000"},
        {"{\"type\":\"t\",\"max_attempts\":\"5\"}",
         "expected an integer from 1 to 1000000"},
        {"{\"type\":\"t\",\"payload\":1,\"payload_base64\":\"AA==\"}",
         "expected 'payload' or 'payload_base64', found both"},
        {"{\"type\":\"t\",\"payload_base64\":\"A\"}",
         "expected base64 for 'payload_base64'"},
        {"{\"type\":\"t\",\"payload_base64\":[1]}",
         "expected base64 for 'payload_base64'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        is_refused(cases[i][0], cases[i][1]);
}

static void a_bad_option_is_refused_with_what_was_expected(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"{\"type\":\"t\",\"priority\":\"soon\"}",
         "expected high, normal, low, or an integer from 0 to 9 for 'priority'"},
        {"{\"type\":\"t\",\"priority\":10}", "expected high, normal, low"},
        {"{\"type\":\"t\",\"keep\":\"0s\"}", "expected a duration with its unit"},
        {"{\"type\":\"t\",\"start_within\":\"0\"}", "expected a duration from 1ms"},
        {"{\"type\":\"t\",\"start_within\":\"1s\",\"expired\":\"gone\"}",
         "expected drop or dead for 'expired'"},
        {"{\"type\":\"t\",\"expired\":\"dead\"}", "'expired' needs 'start_within'"},
        {"{\"type\":\"t\",\"expired\":\"drop\"}", "'expired' needs 'start_within'"},
        {"{\"type\":\"t\",\"unique_for\":\"5s\"}", "'unique_for' needs 'unique'"},
        {"{\"type\":\"t\",\"unique_until\":\"end\"}", "'unique_until' needs 'unique'"},
        {"{\"type\":\"t\",\"unique\":\"k\",\"debounce\":\"5s\"}",
         "debounce needs max_wait"},
        {"{\"type\":\"t\",\"unique\":\"k\",\"max_wait\":\"5s\"}",
         "max_wait needs debounce"},
        {"{\"type\":\"t\",\"unique\":\"k\",\"debounce\":\"1s\",\"max_wait\":\"5s\","
         "\"in\":"
         "\"1s\"}",
         "expected no delay and no time with debounce, found one"},
        {"{\"type\":\"t\",\"unique\":\"k\",\"throttle\":\"1s\",\"on_conflict\":"
         "\"cancel\"}",
         "expected no on_conflict but skip and next with throttle, found one"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        is_refused(cases[i][0], cases[i][1]);
}

static void a_payload_over_the_limit_is_refused(void **state)
{
    (void)state;
    char text[PAYLOAD_MAX + 64], detail[HF_BULK_DETAIL_SIZE];
    hf_bulk_line l;
    snprintf(text, sizeof text, "{\"type\":\"t\",\"payload\":\"%0*d\"}", PAYLOAD_MAX, 0);
    assert_payload(text, text + 23, PAYLOAD_MAX);
    snprintf(text, sizeof text, "{\"type\":\"t\",\"payload\":\"%0*d\"}", PAYLOAD_MAX + 1,
             0);
    assert_int_equal(hf_bulk_line_read(&l, text, strlen(text), PAYLOAD_MAX, detail),
                     HF_TOOBIG);
    assert_string_equal(detail, "expected a payload of at most 1000 bytes, found 1001");
}

static void base64_is_read_strictly(void **state)
{
    (void)state;
    static const char *const bad[] = {"A",    "AA",   "AAA",    "A===", "AA=A", "AB==",
                                      "AAB=", "AA A", "AAAA\n", "AA-_", "====", "=AAA"};
    unsigned char out[16];
    size_t n;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(hf_base64_decode(bad[i], strlen(bad[i]), out, &n));
    assert_true(hf_base64_decode("aG9sZGZhc3Q=", 12, out, &n));
    assert_int_equal(n, 8);
    assert_memory_equal(out, "holdfast", 8);
    assert_true(hf_base64_decode("+/8=", 4, out, &n));
    assert_int_equal(n, 2);
    assert_memory_equal(out, "\xFB\xFF", 2);
}

/* The vectors of RFC 4648, section 10. */
static void bytes_become_base64(void **state)
{
    static const char *const pairs[][2] = {{"", ""},
                                           {"f", "Zg=="},
                                           {"fo", "Zm8="},
                                           {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="},
                                           {"fooba", "Zm9vYmE="},
                                           {"foobar", "Zm9vYmFy"}};
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        char *text = hf_base64_encode(pairs[i][0], strlen(pairs[i][0]));
        assert_string_equal(text, pairs[i][1]);
        free(text);
    }
}

/* ---- blocks ---- */

typedef struct seen {
    unsigned n;
    char queues[BLOCKS][16];
    size_t sizes[BLOCKS];
    uint64_t firsts[BLOCKS];
    unsigned fail_at;         /* the block whose sending fails; 0: none */
    char payloads[LIST_SIZE]; /* of all jobs, in the order of the blocks, while there is
                                 room */
} seen;

static hf_err on_block(const hf_bulk_block *block, void *arg)
{
    seen *s = arg;
    assert_true(s->n < BLOCKS);
    assert_int_equal(block->number, s->n + 1);
    if (s->fail_at == s->n + 1)
        return HF_OOM;
    snprintf(s->queues[s->n], sizeof s->queues[0], "%s", block->jobs[0].queue);
    s->sizes[s->n] = block->n;
    s->firsts[s->n] = block->first;
    for (size_t i = 0; i < block->n; i++) {
        size_t len = strlen(s->payloads);
        assert_string_equal(block->jobs[i].queue, block->jobs[0].queue);
        if (len + block->jobs[i].payload_len + 2 < sizeof s->payloads)
            snprintf(s->payloads + len, sizeof s->payloads - len, "%.*s ",
                     (int)block->jobs[i].payload_len,
                     (const char *)block->jobs[i].payload);
    }
    s->n++;
    return HF_OK;
}

typedef struct file {
    char dir[HF_TEMPDIR_SIZE], path[HF_TEMPDIR_SIZE + 8];
    FILE *out;
} file;

static void file_open(file *f)
{
    hf_tempdir_make(f->dir);
    snprintf(f->path, sizeof f->path, "%s/f", f->dir);
    f->out = fopen(f->path, "w");
    assert_non_null(f->out);
}

/* Reads what was written as a bulk file, and removes it. */
static hf_err file_read(file *f, size_t payload_max, bool atomic, seen *s, char *detail)
{
    fclose(f->out);
    const hf_bulk_opts opts = {.fd = open(f->path, O_RDONLY),
                               .file = "f",
                               .queue = "d",
                               .payload_max = payload_max,
                               .atomic = atomic,
                               .send = on_block,
                               .arg = s};
    assert_true(opts.fd >= 0);
    hf_err err = hf_bulk_read(&opts, detail);
    close(opts.fd);
    hf_tempdir_remove(f->dir);
    return err;
}

static void lines_of_one_queue_go_in_blocks_of_ten_thousand(void **state)
{
    (void)state;
    file f;
    seen s = {0};
    char detail[HF_BULK_DETAIL_SIZE];
    file_open(&f);
    for (int i = 0; i < 25000; i++)
        fprintf(f.out, "{\"type\":\"t\",\"payload\":%d}\n", i);
    assert_int_equal(file_read(&f, PAYLOAD_MAX, false, &s, detail), HF_OK);
    assert_int_equal(s.n, 3);
    assert_int_equal(s.sizes[0], 10000);
    assert_int_equal(s.sizes[1], 10000);
    assert_int_equal(s.sizes[2], 5000);
    assert_int_equal(s.firsts[1], 10000);
    assert_int_equal(s.firsts[2], 20000);
    assert_string_equal(s.queues[0], "d");
    assert_memory_equal(s.payloads, "0 1 2 3 4 ", 10);
}

static hf_err compare_texts(const hf_bulk_block *block, void *arg)
{
    (void)arg;
    for (size_t i = 0; i < block->n; i++) {
        const hf_job *job = &block->jobs[i];
        assert_string_equal(job->id, job->type);
        assert_string_equal(job->unique, job->type);
        assert_string_equal(job->on_dead, job->type);
        assert_string_equal(job->headers, "{\"a\":\"b\"}");
    }
    return HF_OK;
}

static void a_block_keeps_the_texts_of_its_lines(void **state)
{
    (void)state;
    file f;
    char detail[HF_BULK_DETAIL_SIZE];
    file_open(&f);
    for (int i = 0; i < 1000; i++)
        fprintf(f.out,
                "{\"type\":\"t%d\",\"id\":\"t%d\",\"unique\":\"t%d\",\"on_dead\":\"t%d\","
                "\"headers\":{\"a\":\"b\"}}\n",
                i, i, i, i);
    fclose(f.out);
    const hf_bulk_opts opts = {.fd = open(f.path, O_RDONLY),
                               .file = "f",
                               .queue = "d",
                               .payload_max = PAYLOAD_MAX,
                               .send = compare_texts};
    assert_true(opts.fd >= 0);
    assert_int_equal(hf_bulk_read(&opts, detail), HF_OK);
    close(opts.fd);
    hf_tempdir_remove(f.dir);
}

static void lines_of_several_queues_fill_a_block_for_each(void **state)
{
    (void)state;
    file f;
    seen s = {0};
    char detail[HF_BULK_DETAIL_SIZE];
    file_open(&f);
    fputs("{\"type\":\"t\",\"payload\":1,\"queue\":\"a\"}\n\n"
          "{\"type\":\"t\",\"payload\":2,\"queue\":\"b\"}\r\n"
          "   \n"
          "{\"type\":\"t\",\"payload\":3,\"queue\":\"a\"}\n"
          "{\"type\":\"t\",\"payload\":4}",
          f.out);
    assert_int_equal(file_read(&f, PAYLOAD_MAX, false, &s, detail), HF_OK);
    assert_int_equal(s.n, 3);
    assert_string_equal(s.queues[0], "a");
    assert_string_equal(s.queues[1], "b");
    assert_string_equal(s.queues[2], "d");
    assert_string_equal(s.payloads, "1 3 2 4 ");
}

static void a_block_stays_below_its_size(void **state)
{
    (void)state;
    enum { MIB = 1 << 20 };
    file f;
    seen s = {0};
    char detail[HF_BULK_DETAIL_SIZE];
    char *payload = malloc(MIB + 1);
    assert_non_null(payload);
    memset(payload, 'x', MIB);
    payload[MIB] = '\0';
    file_open(&f);
    for (int i = 0; i < 100; i++)
        fprintf(f.out, "{\"type\":\"t\",\"payload\":\"%s\"}\n", payload);
    free(payload);
    assert_int_equal(file_read(&f, MIB, false, &s, detail), HF_OK);
    assert_int_equal(s.n, 2);
    assert_int_equal(s.sizes[0], 63);
    assert_int_equal(s.sizes[1], 37);
}

static void more_queues_than_blocks_may_be_open_send_the_oldest(void **state)
{
    (void)state;
    file f;
    seen s = {0};
    char detail[HF_BULK_DETAIL_SIZE];
    file_open(&f);
    for (int i = 0; i < HF_BULK_OPEN_BLOCKS + 2; i++)
        fprintf(f.out, "{\"type\":\"t\",\"queue\":\"q%d\"}\n", i);
    fprintf(f.out, "{\"type\":\"t\",\"queue\":\"q0\"}\n");
    assert_int_equal(file_read(&f, PAYLOAD_MAX, false, &s, detail), HF_OK);
    assert_int_equal(s.n, HF_BULK_OPEN_BLOCKS + 3);
    assert_string_equal(s.queues[0], "q0");
    assert_string_equal(s.queues[1], "q1");
    assert_string_equal(s.queues[s.n - 1], "q0");
}

static void a_bad_line_stops_its_block_and_those_before_are_sent(void **state)
{
    (void)state;
    file f;
    seen s = {0};
    char detail[HF_BULK_DETAIL_SIZE];
    file_open(&f);
    for (int i = 0; i < 10002; i++)
        fprintf(f.out, "{\"type\":\"t\"}\n");
    fprintf(f.out, "{\"type\":7}\n{\"type\":\"t\"}\n");
    assert_int_equal(file_read(&f, PAYLOAD_MAX, false, &s, detail), HF_INVALID);
    assert_int_equal(s.n, 1);
    assert_int_equal(s.sizes[0], 10000);
    assert_string_equal(detail,
                        "f:10003: expected 1 to 128 characters of A-Z a-z 0-9 . _ : - "
                        "for 'type', found 7");
}

static void a_whole_block_is_sent_before_the_next_line_is_looked_at(void **state)
{
    (void)state;
    file f;
    seen s = {0};
    char detail[HF_BULK_DETAIL_SIZE];
    file_open(&f);
    for (int i = 0; i < 10000; i++)
        fprintf(f.out, "{\"type\":\"t\"}\n");
    fprintf(f.out, "{\"type\":7}\n");
    assert_int_equal(file_read(&f, PAYLOAD_MAX, false, &s, detail), HF_INVALID);
    assert_int_equal(s.n, 1);
}

static void atomic_sends_one_block_or_nothing(void **state)
{
    (void)state;
    static const struct {
        int lines;
        const char *last;
        hf_err err;
        unsigned blocks;
    } cases[] = {{9999, "{\"type\":\"t\"}", HF_OK, 1},
                 {10000, "{\"type\":\"t\"}", HF_INVALID, 0},
                 {1, "{\"type\":\"t\",\"queue\":\"other\"}", HF_INVALID, 0},
                 {1, "{\"type\":7}", HF_INVALID, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        file f;
        seen s = {0};
        char detail[HF_BULK_DETAIL_SIZE];
        file_open(&f);
        for (int k = 0; k < cases[i].lines; k++)
            fprintf(f.out, "{\"type\":\"t\"}\n");
        fprintf(f.out, "%s\n", cases[i].last);
        assert_int_equal(file_read(&f, PAYLOAD_MAX, true, &s, detail), cases[i].err);
        assert_int_equal(s.n, cases[i].blocks);
        if (i == 1)
            assert_string_equal(
                detail, "f:10001: expected at most one block with --atomic (10000 "
                        "jobs of one queue, less than 64MiB), found more");
    }
}

static void a_block_that_cannot_be_sent_ends_the_whole(void **state)
{
    (void)state;
    file f;
    seen s = {.fail_at = 2};
    char detail[HF_BULK_DETAIL_SIZE];
    file_open(&f);
    for (int i = 0; i < 30000; i++)
        fprintf(f.out, "{\"type\":\"t\"}\n");
    assert_int_equal(file_read(&f, PAYLOAD_MAX, false, &s, detail), HF_OOM);
    assert_int_equal(s.n, 1);
    assert_string_equal(detail, "");
}

static void a_line_without_an_end_is_not_read_for_ever(void **state)
{
    (void)state;
    int pair[2];
    char detail[HF_BULK_DETAIL_SIZE];
    seen s = {0};
    assert_int_equal(pipe(pair), 0);
    pid_t pid = fork();
    if (pid == 0) {
        char spaces[65536];
        memset(spaces, ' ', sizeof spaces);
        close(pair[0]);
        while (write(pair[1], spaces, sizeof spaces) > 0) /* SIGPIPE ends it */
            ;
        _exit(0);
    }
    close(pair[1]);
    const hf_bulk_opts opts = {.fd = pair[0],
                               .file = "f",
                               .queue = "d",
                               .payload_max = 10,
                               .send = on_block,
                               .arg = &s};
    assert_int_equal(hf_bulk_read(&opts, detail), HF_TOOBIG);
    assert_string_equal(detail,
                        "f:1: expected a line of at most 64MiB, found a longer one");
    close(pair[0]);
}

static void an_empty_file_has_no_blocks(void **state)
{
    (void)state;
    file f;
    seen s = {0};
    char detail[HF_BULK_DETAIL_SIZE];
    file_open(&f);
    assert_int_equal(file_read(&f, PAYLOAD_MAX, true, &s, detail), HF_OK);
    assert_int_equal(s.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_json_payload_is_passed_on_byte_for_byte),
        cmocka_unit_test(a_text_is_its_characters_and_base64_its_bytes),
        cmocka_unit_test(every_key_of_a_job_is_read),
        cmocka_unit_test(bytes_become_base64),
        cmocka_unit_test(numbers_of_a_priority_are_three_levels),
        cmocka_unit_test(a_bad_line_is_refused_with_what_was_expected),
        cmocka_unit_test(a_bad_option_is_refused_with_what_was_expected),
        cmocka_unit_test(a_payload_over_the_limit_is_refused),
        cmocka_unit_test(base64_is_read_strictly),
        cmocka_unit_test(lines_of_one_queue_go_in_blocks_of_ten_thousand),
        cmocka_unit_test(a_block_keeps_the_texts_of_its_lines),
        cmocka_unit_test(lines_of_several_queues_fill_a_block_for_each),
        cmocka_unit_test(a_block_stays_below_its_size),
        cmocka_unit_test(more_queues_than_blocks_may_be_open_send_the_oldest),
        cmocka_unit_test(a_bad_line_stops_its_block_and_those_before_are_sent),
        cmocka_unit_test(a_whole_block_is_sent_before_the_next_line_is_looked_at),
        cmocka_unit_test(atomic_sends_one_block_or_nothing),
        cmocka_unit_test(a_block_that_cannot_be_sent_ends_the_whole),
        cmocka_unit_test(a_line_without_an_end_is_not_read_for_ever),
        cmocka_unit_test(an_empty_file_has_no_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
