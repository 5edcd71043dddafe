/* test_frame.c - what is read of the bytes of a long-lived program, in whatever pieces
 * they come, and what the worker writes to it. */
#include "worker/pool/frame.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/random.h"
#include "tests/support/eventually.h"
#include "tests/support/seed.h"

#define READY "{\"t\":\"ready\",\"v\":1,\"types\":[{\"type\":\"a\"}]}\n"

static hf_frame_reader reader;
static hf_buf heard; /* one line for each frame */

static void hear(const hf_frame *f)
{
    hf_buf_printf(&heard, "%s %llu", hf_frame_word(f->kind), (unsigned long long)f->run);
    if (f->has_in)
        hf_buf_printf(&heard, " in %lld", (long long)f->in_ms);
    if (f->has_percent)
        hf_buf_printf(&heard, " %u%%", f->percent);
    if (f->note != NULL) {
        hf_buf_text(&heard, " note ");
        hf_buf_add(&heard, f->note, f->note_len);
    }
    if (f->error_len > 0) {
        hf_buf_text(&heard, " error ");
        hf_buf_add(&heard, f->error, f->error_len);
    }
    hf_buf_text(&heard, f->json ? " json" : "");
    hf_buf_text(&heard, f->too_long ? " too long" : "");
    if (f->not_json)
        hf_buf_printf(&heard, " no json at %zu", f->not_json_at);
    if (f->has_body) {
        hf_buf_printf(&heard, " %zu:", f->n);
        hf_buf_add(&heard, f->body, f->body_len);
    }
    if (f->kind == HF_FRAME_READY)
        hf_buf_printf(&heard, " %zu bytes", f->line_len);
    hf_buf_text(&heard, "\n");
}

/* Each piece is a copy of exactly its size, for the sanitizers. */
static hf_frame_kind feed(const char *bytes, size_t len)
{
    char *piece = malloc(len + (len == 0));
    hf_frame frame;
    hf_frame_kind kind;
    assert_non_null(piece);
    memcpy(piece, bytes, len);
    const char *at = piece;
    while ((kind = hf_frame_next(&reader, &at, &len, &frame)) > HF_FRAME_BROKEN)
        hear(&frame);
    free(piece);
    return kind;
}

static void begin(void)
{
    hf_buf_init(&heard, 64 << 20);
    hf_frame_reader_init(&reader);
}

static void end(void)
{
    hf_frame_reader_done(&reader);
    hf_buf_done(&heard);
}

/* What the reader says of all bytes, after `ready`. */
static hf_frame_kind say(const char *bytes, size_t len)
{
    begin();
    assert_int_equal(feed(READY, strlen(READY)), HF_FRAME_NONE);
    hf_buf_clear(&heard);
    return feed(bytes, len);
}

static void expect(const char *bytes, const char *wanted)
{
    hf_frame_kind kind = say(bytes, strlen(bytes));
    if (kind == HF_FRAME_BROKEN || heard.data == NULL || strcmp(heard.data, wanted) != 0)
        fail_msg("%s: expected '%s', found '%s' %s", bytes, wanted,
                 heard.data == NULL ? "" : heard.data, reader.fault);
    assert_false(hf_frame_is_partial(&reader));
    end();
}

static void expect_broken(const char *bytes, const char *wanted)
{
    char fault[256];
    hf_frame_kind kind = say(bytes, strlen(bytes));
    const char *colon = strstr(reader.fault, ": ");
    if (kind != HF_FRAME_BROKEN || colon == NULL || strcmp(colon + 2, wanted) != 0)
        fail_msg("%s: expected '%s', found '%s'", bytes, wanted, reader.fault);
    (void)snprintf(fault, sizeof fault, "%s", reader.fault);
    assert_int_equal(feed("{\"t\":\"pong\"}\n", 13), HF_FRAME_BROKEN);
    assert_string_equal(reader.fault, fault);
    end();
}

/* ---- the rules, one by one ---- */

static void each_kind_has_its_members(void **state)
{
    (void)state;
    expect("{\"t\":\"done\",\"run\":7}\n", "done 7\n");
    expect("{\"t\":\"done\",\"run\":7,\"json\":true,\"n\":11}\n{\"rows\":20}",
           "done 7 json 11:{\"rows\":20}\n");
    expect("{\"t\":\"done\",\"run\":7,\"json\":false,\"n\":3}\n{\"r", "done 7 3:{\"r\n");
    expect("{\"t\":\"retry\",\"run\":7,\"in\":30000,\"error\":\"421\",\"n\":5}\ntrace",
           "retry 7 in 30000 error 421 5:trace\n");
    expect("{\"t\":\"dead\",\"run\":7,\"error\":\"no\"}\n", "dead 7 error no\n");
    expect("{\"t\":\"cancel\",\"run\":7}\n", "cancel 7\n");
    expect("{\"t\":\"release\",\"run\":7,\"in\":0}\n", "release 7 in 0\n");
    expect("{\"t\":\"progress\",\"run\":7,\"percent\":40,\"note\":\"row 17\"}\n",
           "progress 7 40% note row 17\n");
    expect("{\"t\":\"checkpoint\",\"run\":7,\"n\":2}\n17", "checkpoint 7 2:17\n");
    expect("{\"t\":\"log\",\"run\":7,\"n\":4}\na\nb\n", "log 7 4:a\nb\n\n");
    expect("{\"t\":\"pong\"}\n{\"t\":\"leave\"}\n", "pong 0\nleave 0\n");
}

static void an_absent_n_is_no_body_and_0_an_empty_one(void **state)
{
    (void)state;
    expect("{\"t\":\"done\",\"run\":1,\"n\":0,\"json\":true}\n", "done 1 0:\n");
    expect("{\"t\":\"done\",\"run\":1,\"json\":true}\n", "done 1\n");
    expect("{\"t\":\"checkpoint\",\"run\":1}\n", "checkpoint 1\n");
    expect("{\"t\":\"checkpoint\",\"run\":1,\"n\":0}\n", "checkpoint 1 0:\n");
}

static void bytes_follow_only_where_they_belong(void **state)
{
    (void)state;
    expect_broken("{\"t\":\"progress\",\"run\":1,\"n\":0}\n",
                  "expected no `n`, because no bytes follow it");
    expect_broken("{\"t\":\"pong\",\"n\":1}\n",
                  "expected no `n`, because no bytes follow it");
    expect_broken("{\"t\":\"leave\",\"n\":1}\n",
                  "expected no `n`, because no bytes follow it");
    expect_broken("{\"t\":\"done\",\"run\":1,\"c\":0}\n",
                  "expected no `c`, which only `job` has");
    expect_broken("{\"t\":\"done\",\"run\":1,\"n\":1048577}\n",
                  "expected a whole number from 0 to 1048576 as `n`");
    expect_broken("{\"t\":\"log\",\"run\":1,\"n\":-1}\n",
                  "expected a whole number from 0 to 1048576 as `n`");
    expect_broken("{\"t\":\"log\",\"run\":1,\"n\":\"1\"}\n",
                  "expected a whole number from 0 to 1048576 as `n`");
    expect_broken("{\"t\":\"log\",\"run\":1,\"n\":1.5}\n",
                  "expected a whole number from 0 to 1048576 as `n`");
}

static void numbers_are_whole_however_they_are_written(void **state)
{
    (void)state;
    expect("{\"t\":\"done\",\"run\":7.0}\n", "done 7\n");
    expect("{\"t\":\"done\",\"run\":70e-1}\n", "done 7\n");
    expect("{\"t\":\"done\",\"run\":-0}\n", "done 0\n");
    expect("{\"t\":\"done\",\"run\":9007199254740992}\n", "done 9007199254740992\n");
    expect("{\"t\":\"progress\",\"run\":1,\"percent\":1e9}\n", "progress 1 100%\n");
#define A_RUN "expected a whole number from 0 to 2^53 as `run`"
    expect_broken("{\"t\":\"done\",\"run\":9007199254740993}\n", A_RUN);
    expect_broken("{\"t\":\"done\",\"run\":1e400}\n", A_RUN);
    expect_broken("{\"t\":\"done\",\"run\":\"7\"}\n", A_RUN);
    expect_broken("{\"t\":\"done\",\"run\":[7]}\n", A_RUN);
    expect_broken("{\"t\":\"done\"}\n", A_RUN);
    expect_broken("{\"t\":\"done\",\"run\":null}\n", A_RUN);
    expect_broken("{\"t\":\"progress\",\"run\":1,\"percent\":41.5}\n",
                  "expected a whole number from 0 to 2^53 as `percent`");
    expect_broken("{\"t\":\"retry\",\"run\":1,\"in\":\"30s\"}\n",
                  "expected a whole number from 0 to 2^53 as `in`");
}

static void other_members_may_hold_anything(void **state)
{
    (void)state;
    expect(
        "{\"t\":\"done\",\"run\":7,\"x\":10e999,\"y\":[{\"run\":8}],\"z\":\"\\ud800\"}\n",
        "done 7\n");
    expect("{\"t\":\"done\",\"run\":7,\"\xff\":\"\xff\\u0000\"}\n", "done 7\n");
    expect("{\"t\":\"dead\",\"run\":7,\"in\":\"never\",\"percent\":[]}\n", "dead 7\n");
    expect("{\"t\":\"cancel\",\"run\":7,\"in\":-1,\"json\":0}\n", "cancel 7\n");
    expect("{\"t\":\"done\",\"run\":7,\"error\":1}\n", "done 7\n");
}

static void of_a_member_the_last_one_counts(void **state)
{
    (void)state;
    expect("{\"t\":\"dead\",\"run\":1,\"n\":5,\"t\":\"done\",\"run\":2,\"n\":1}\nx",
           "done 2 1:x\n");
    expect("{\"\\u0074\":\"done\",\"ru\\u006e\":1,\"n\":1,\"n\":null}\n", "done 1\n");
    expect("{\"t\":\"retry\",\"run\":1,\"in\":5,\"in\":null,\"error\":null}\n",
           "retry 1\n");
}

static void cr_is_white_space_and_an_empty_line_is_nothing(void **state)
{
    (void)state;
    expect(" {\"t\":\"done\",\"run\":7}\r\n", "done 7\n");
    expect_broken("\n", "expected an object, found an empty line");
    expect_broken("\r\n", "expected a value behind 1 bytes of its line");
    expect_broken("{\"t\":\"done\",\"run\":7}\n\n",
                  "expected an object, found an empty line");
}

static void texts_are_mended_and_cut_at_a_character(void **state)
{
    (void)state;
    expect("{\"t\":\"dead\",\"run\":1,\"error\":\"caf\\udce9 \xff\\ud800\\u0041\"}\n",
           "dead 1 error caf\xEF\xBF\xBD \xEF\xBF\xBD\xEF\xBF\xBD"
           "A\n");
    expect("{\"t\":\"progress\",\"run\":1,\"note\":\"\\ud83d\\ude00\xC3\xA9\xC3\"}\n",
           "progress 1 note \xF0\x9F\x98\x80\xC3\xA9\xEF\xBF\xBD\n");
    char line[HF_FRAME_ERROR_MAX + 200], wanted[HF_FRAME_ERROR_MAX + 200];
    char text[HF_FRAME_ERROR_MAX + 2];
    memset(text, 'x', sizeof text);
    memcpy(text + HF_FRAME_ERROR_MAX - 1, "\xC3\xA9", 3);
    (void)snprintf(line, sizeof line, "{\"t\":\"dead\",\"run\":1,\"error\":\"%s\"}\n",
                   text);
    text[HF_FRAME_ERROR_MAX - 1] = '\0';
    (void)snprintf(wanted, sizeof wanted, "dead 1 error %s\n", text);
    expect(line, wanted);
    memset(text, 'x', sizeof text);
    memcpy(text + HF_NOTE_MAX - 1, "\xC3\xA9", 3);
    (void)snprintf(line, sizeof line, "{\"t\":\"progress\",\"run\":1,\"note\":\"%s\"}\n",
                   text);
    text[HF_NOTE_MAX - 1] = '\0';
    (void)snprintf(wanted, sizeof wanted, "progress 1 note %s\n", text);
    expect(line, wanted);
    expect_broken("{\"t\":\"dead\",\"run\":1,\"error\":7}\n",
                  "expected a text as `error`");
    expect_broken("{\"t\":\"progress\",\"run\":1,\"note\":[]}\n",
                  "expected a text as `note`");
    static const char zero[] = "{\"t\":\"dead\",\"run\":1,\"error\":\"a\\u0000b\"}\n";
    assert_int_equal(say(zero, sizeof zero - 1), HF_FRAME_NONE);
    assert_int_equal(heard.len, 17);
    assert_memory_equal(heard.data, "dead 1 error a\0b\n", 17);
    end();
}

static void the_first_frame_is_ready_and_it_comes_once(void **state)
{
    (void)state;
    expect_broken(READY, "expected `ready` once");
    begin();
    static const char pong[] = "{\"t\":\"pong\"}\n";
    assert_int_equal(feed(pong, sizeof pong - 1), HF_FRAME_BROKEN);
    assert_string_equal(reader.fault,
                        "'pong' at byte 0: expected `ready` as the first frame");
    end();
}

static void what_is_no_frame_is_told_without_its_bytes(void **state)
{
    (void)state;
    expect_broken("hello secret\n", "expected a value behind 0 bytes of its line");
    expect_broken("[1]\n", "expected an object");
    expect_broken("\"done\"\n", "expected an object");
    expect_broken("{\"t\":\"secret\"}\n",
                  "expected as `t` the kind of a frame of a program");
    expect_broken("{\"run\":7}\n", "expected as `t` the kind of a frame of a program");
    expect_broken("{\"t\":7}\n", "expected as `t` the kind of a frame of a program");
    expect_broken("{\"t\":\"job\",\"run\":7}\n",
                  "expected as `t` the kind of a frame of a program");
    expect_broken("{\"t\":\"none\"}\n",
                  "expected as `t` the kind of a frame of a program");
    expect_broken("{\"t\":\"done\",\"run\":7\n",
                  "expected ',' or '}' behind 19 bytes of its line");
    expect_broken("{\"t\":\"done\",\"run\":7,\"json\":1}\n",
                  "expected true or false as `json`");
    static const char two[] = "{\"t\":\"done\",\"run\":7,\"n\":2}\nab{\"t\":\"done\"}\n";
    assert_int_equal(say(two, sizeof two - 1), HF_FRAME_BROKEN);
    char wanted[64];
    (void)snprintf(wanted, sizeof wanted, "'done' at byte %zu: ", strlen(READY) + 29);
    assert_memory_equal(reader.fault, wanted, strlen(wanted));
    end();
}

/* ---- lengths ---- */

/* A frame whose line has this many bytes with its newline. */
static char *line_of(const char *begins, size_t len)
{
    char *line = malloc(len + 1);
    assert_non_null(line);
    memset(line, 'x', len);
    for (size_t i = 0; begins[i] != '\0'; i++)
        line[i] = begins[i];
    memcpy(line + len - 3, "\"}\n", 4);
    return line;
}

static void a_line_has_a_longest_length(void **state)
{
    static const char ready[] = "{\"t\":\"ready\",\"x\":\"",
                      dead[] = "{\"t\":\"dead\",\"run\":1,\"x\":\"";
    (void)state;
    char *line = line_of(ready, HF_FRAME_READY_MAX);
    begin();
    assert_int_equal(feed(line, HF_FRAME_READY_MAX), HF_FRAME_NONE);
    assert_string_equal(heard.data, "ready 0 1048575 bytes\n");
    free(line);
    end();

    line = line_of(ready, HF_FRAME_READY_MAX + 1);
    begin();
    assert_int_equal(feed(line, HF_FRAME_READY_MAX), HF_FRAME_BROKEN);
    assert_string_equal(
        reader.fault,
        "the frame at byte 0: expected the end of a line within 1048576 bytes");
    free(line);
    end();

    line = line_of(dead, HF_FRAME_LINE_MAX);
    assert_int_equal(say(line, HF_FRAME_LINE_MAX), HF_FRAME_NONE);
    assert_string_equal(heard.data, "dead 1\n");
    free(line);
    end();

    line = line_of(dead, HF_FRAME_LINE_MAX + 1);
    assert_int_equal(say(line, HF_FRAME_LINE_MAX + 1), HF_FRAME_BROKEN);
    end();
    assert_int_equal(say(line, HF_FRAME_LINE_MAX - 1), HF_FRAME_NONE);
    assert_int_equal(feed("x", 1), HF_FRAME_BROKEN);
    free(line);
    end();
}

/* Feeds a frame with a body of n bytes, in pieces of at most `step`; what came of it. */
static hf_frame body_of(const char *kind, size_t n, size_t step)
{
    char line[64];
    size_t len = (size_t)snprintf(line, sizeof line,
                                  "{\"t\":\"%s\",\"run\":1,\"n\":%zu}\n", kind, n);
    char *bytes = malloc(len + n);
    hf_frame frame = {.kind = HF_FRAME_NONE};
    assert_non_null(bytes);
    memcpy(bytes, line, len);
    for (size_t i = 0; i < n; i++)
        bytes[len + i] = (char)('a' + i % 26);
    begin();
    assert_int_equal(feed(READY, strlen(READY)), HF_FRAME_NONE);
    for (size_t at = 0; at < len + n; at += step) {
        const char *piece = bytes + at;
        size_t left = len + n - at < step ? len + n - at : step;
        hf_frame_kind found = hf_frame_next(&reader, &piece, &left, &frame);
        assert_int_equal(found > HF_FRAME_BROKEN, at + step >= len + n);
        assert_int_equal(left, 0);
        assert_true(reader.body.cap <= 2 * HF_FRAME_RESULT_MAX);
    }
    if (frame.body_len > 0)
        assert_int_equal(frame.body[frame.body_len - 1], 'a' + (n - 1) % 26);
    free(bytes);
    return frame;
}

static void a_longer_result_or_checkpoint_is_thrown_away(void **state)
{
    static const struct {
        const char *kind, *why;
        size_t n;
    } cases[] = {
        {"done", NULL, HF_FRAME_RESULT_MAX},
        {"done", "result: expected at most 65536 bytes, found 65537", 65537},
        {"done", "result: expected at most 65536 bytes, found 1048576", 1 << 20},
        {"checkpoint", NULL, HF_CHECKPOINT_MAX},
        {"checkpoint", "checkpoint: expected at most 4096 bytes, found 4097", 4097},
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT(cases); i++) {
        for (size_t step = 1000; step < (size_t)4 << 20; step *= 4) {
            char why[HF_FRAME_FAULT_SIZE] = "";
            hf_frame frame = body_of(cases[i].kind, cases[i].n, step);
            assert_int_equal(frame.n, cases[i].n);
            assert_int_equal(frame.body_len, cases[i].why == NULL ? cases[i].n : 0);
            assert_int_equal(hf_frame_is_refused(&frame, why), cases[i].why != NULL);
            assert_string_equal(why, cases[i].why == NULL ? "" : cases[i].why);
            end();
        }
    }
}

static void of_a_longer_trace_or_log_the_end_is_kept(void **state)
{
    static const char *const kinds[] = {"retry", "dead", "release", "cancel", "log"};
    (void)state;
    for (size_t i = 0; i < HF_COUNT(kinds); i++) {
        for (size_t step = 1000; step < (size_t)4 << 20; step *= 4) {
            char why[HF_FRAME_FAULT_SIZE];
            hf_frame frame = body_of(kinds[i], HF_FRAME_TEXT_MAX + 100, step);
            assert_true(frame.too_long);
            assert_int_equal(frame.body_len, HF_FRAME_TEXT_MAX);
            assert_false(hf_frame_is_refused(&frame, why));
            end();
            frame = body_of(kinds[i], HF_FRAME_TEXT_MAX, step);
            assert_false(frame.too_long);
            end();
        }
    }
}

static void json_is_checked_and_stays_as_it_is(void **state)
{
    (void)state;
    expect("{\"t\":\"done\",\"run\":1,\"json\":true,\"n\":12}\n{ \"a\" :1e9 }",
           "done 1 json 12:{ \"a\" :1e9 }\n");
    expect("{\"t\":\"done\",\"run\":1,\"json\":true,\"n\":4}\n{\"a}",
           "done 1 json no json at 4 4:{\"a}\n");
    expect("{\"t\":\"done\",\"run\":1,\"json\":true,\"n\":3}\n\"\xff\"",
           "done 1 json no json at 1 3:\"\xff\"\n");
    hf_frame frame = {.kind = HF_FRAME_DONE, .not_json = true, .not_json_at = 4};
    char why[HF_FRAME_FAULT_SIZE];
    assert_true(hf_frame_is_refused(&frame, why));
    assert_string_equal(why, "result: no JSON at byte 4");
}

static void the_error_is_followed_by_the_end_of_the_trace(void **state)
{
    static char out[HF_FRAME_ERROR_MAX + 1], body[HF_FRAME_TEXT_MAX];
    hf_frame frame = {
        .kind = HF_FRAME_RETRY, .error = "421", .error_len = 3, .body = "in f\n"};
    (void)state;
    assert_int_equal(hf_frame_error(&frame, out), 3);
    assert_string_equal(out, "421");
    frame.body_len = 5;
    assert_int_equal(hf_frame_error(&frame, out), 9);
    assert_string_equal(out, "421\nin f\n");
    frame.error_len = 0;
    assert_int_equal(hf_frame_error(&frame, out), 5);
    assert_string_equal(out, "in f\n");
    memset(body, 'x', sizeof body);
    body[sizeof body - 4093] = '\xC3'; /* only its second half would fit */
    body[sizeof body - 4092] = '\xA9';
    body[sizeof body - 1] = 'y';
    frame =
        (hf_frame){.error = "421", .error_len = 3, .body = body, .body_len = sizeof body};
    assert_int_equal(hf_frame_error(&frame, out), HF_FRAME_ERROR_MAX - 1);
    assert_memory_equal(out, "421\nxxx", 7);
    assert_int_equal(out[HF_FRAME_ERROR_MAX - 2], 'y');
    memset(body, 'x', sizeof body);
    frame = (hf_frame){
        .error = body, .error_len = HF_FRAME_ERROR_MAX, .body = "in f", .body_len = 4};
    assert_int_equal(hf_frame_error(&frame, out), HF_FRAME_ERROR_MAX);
}

/* ---- pieces ---- */

/* A conversation of many frames, good ones and then perhaps a bad one. */
static void converse(hf_buf *out, hf_rng *rng)
{
    static const char *const frames[] = {
        "{\"t\":\"done\",\"run\":1}\n",
        "{\"t\":\"done\",\"run\":2,\"json\":true,\"n\":8}\n[1,2,\n3]",
        "{\"t\":\"retry\",\"run\":3,\"error\":\"caf\\udce9\",\"in\":5,\"n\":4}\n\n\n{}",
        "{\"t\":\"progress\",\"run\":4,\"percent\":4,\"note\":\"\xC3\xA9\"}\r\n",
        "{\"t\":\"checkpoint\",\"run\":5,\"n\":0}\n",
        "{\"t\":\"log\",\"run\":6,\"n\":3}\n\xff\n\xC3",
        "{\"t\":\"pong\",\"x\":{\"n\":[7]}}\n",
    };
    static const char *const bad[] = {"\n", "{}\n", "{\"t\":\"done\"}\n", "\xff\n",
                                      "{\"t\":\"ready\"}\n"};
    hf_buf_init(out, 1 << 20);
    hf_buf_text(out, READY);
    for (size_t n = hf_rng_next(rng) % 20; n > 0; n--)
        hf_buf_text(out, frames[hf_rng_next(rng) % HF_COUNT(frames)]);
    if (hf_rng_next(rng) % 16 == 0) {
        hf_buf_text(out, "{\"t\":\"retry\",\"run\":9,\"n\":20000}\n");
        for (int i = 0; i < 20000; i++)
            hf_buf_add(out, &"\xC3\xA9\n"[i % 3], 1);
        hf_buf_text(out, frames[0]);
    }
    if (hf_rng_next(rng) % 3 == 0)
        hf_buf_text(out, bad[hf_rng_next(rng) % HF_COUNT(bad)]);
}

static void the_same_bytes_give_the_same_frames(void **state)
{
    hf_rng rng = {hf_test_seed()};
    (void)state;
    for (int round = 0; round < 2000; round++) {
        hf_buf all;
        converse(&all, &rng);
        begin();
        hf_frame_kind whole = feed(all.data, all.len);
        char *wanted = strdup(heard.data), *fault = strdup(reader.fault);
        bool partial = hf_frame_is_partial(&reader);
        end();

        begin();
        size_t longest = round % 4 == 0 ? 1 : 1 + hf_rng_next(&rng) % 100;
        hf_frame_kind kind = HF_FRAME_NONE;
        for (size_t at = 0; at < all.len;) {
            size_t n = 1 + hf_rng_next(&rng) % longest;
            n = n < all.len - at ? n : all.len - at;
            kind = feed(all.data + at, n);
            at += n;
        }
        assert_int_equal(kind, whole);
        assert_string_equal(heard.data, wanted);
        assert_string_equal(reader.fault, fault);
        assert_int_equal(hf_frame_is_partial(&reader), partial);
        end();
        free(wanted);
        free(fault);
        hf_buf_done(&all);
    }
}

static void half_a_frame_is_partial(void **state)
{
    static const char frame[] = "{\"t\":\"log\",\"run\":1,\"n\":3}\nabc";
    (void)state;
    for (size_t len = 0; len < sizeof frame; len++) {
        assert_int_equal(say(frame, len), HF_FRAME_NONE);
        assert_int_equal(hf_frame_is_partial(&reader), len > 0 && len < sizeof frame - 1);
        end();
    }
}

static void the_room_of_ready_is_given_back(void **state)
{
    (void)state;
    char *line = line_of("{\"t\":\"ready\",\"x\":\"", HF_FRAME_READY_MAX);
    begin();
    assert_int_equal(feed(line, 100), HF_FRAME_NONE);
    assert_int_equal(feed(line + 100, HF_FRAME_READY_MAX - 100), HF_FRAME_NONE);
    assert_int_equal(feed("{", 1), HF_FRAME_NONE);
    assert_true(reader.line.cap <= HF_FRAME_LINE_MAX);
    free(line);
    end();
}

/* ---- writing ---- */

static void a_job_is_one_line(void **state)
{
    hf_buf out;
    (void)state;
    hf_buf_init(&out, 1 << 20);
    hf_frame_job job = {.run = 7,
                        .payload_len = 100,
                        .id = "P6w14_-MIybcKK",
                        .type = "email.send",
                        .queue = "default",
                        .attempt = 1,
                        .max_attempts = 5,
                        .fence = UINT64_C(1790000000000000)};
    hf_frame_put_job(&out, &job);
    assert_string_equal(out.data,
                        "{\"t\":\"job\",\"run\":7,\"n\":100,\"id\":\"P6w14_-MIybcKK\","
                        "\"type\":\"email.send\",\"queue\":\"default\",\"attempt\":1,"
                        "\"max_attempts\":5,\"fence\":\"1790000000000000\"}\n");
    hf_buf_clear(&out);
    job.checkpoint_len = 2;
    job.timeout_ms = 30000;
    job.created_ms = 1790000000000;
    job.scheduled_ms = 1790000000001;
    job.trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    job.headers = "{\"tenant\":\"7\"}";
    job.headers_len = strlen(job.headers);
    hf_frame_put_job(&out, &job);
    assert_string_equal(
        out.data, "{\"t\":\"job\",\"run\":7,\"n\":100,\"c\":2,\"id\":\"P6w14_-MIybcKK\","
                  "\"type\":\"email.send\",\"queue\":\"default\",\"attempt\":1,"
                  "\"max_attempts\":5,\"fence\":\"1790000000000000\",\"timeout\":30000,"
                  "\"created\":1790000000000,\"scheduled\":1790000000001,"
                  "\"trace\":\"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\","
                  "\"headers\":{\"tenant\":\"7\"}}\n");
    hf_buf_done(&out);
}

static void the_longest_job_fits_into_8_kib(void **state)
{
    char name[HF_NAME_MAX + 1], headers[HF_FRAME_HEADERS_MAX + 1];
    hf_buf out;
    (void)state;
    memset(name, 'x', sizeof name);
    name[HF_NAME_MAX] = '\0';
    memset(headers, ' ', sizeof headers);
    headers[0] = '{';
    headers[HF_FRAME_HEADERS_MAX - 1] = '}';
    hf_frame_job job = {.run = UINT64_C(1) << 53,
                        .payload_len = 63 << 20,
                        .checkpoint_len = 4096,
                        .id = name,
                        .type = name,
                        .queue = name,
                        .attempt = UINT32_MAX,
                        .max_attempts = UINT32_MAX,
                        .fence = INT64_MAX,
                        .timeout_ms = UINT32_MAX,
                        .created_ms = INT64_C(1) << 53,
                        .scheduled_ms = INT64_C(1) << 53,
                        .trace = "no trace \" at all",
                        .headers = headers,
                        .headers_len = HF_FRAME_HEADERS_MAX};
    hf_json_fault fault;
    hf_buf_init(&out, 1 << 20);
    hf_frame_put_job(&out, &job);
    assert_true(out.len < HF_FRAME_OWN_MAX);
    assert_true(hf_json_check(out.data, out.len, &fault));
    assert_null(strstr(out.data, "trace"));
    hf_buf_done(&out);
}

static void the_other_frames_of_the_worker(void **state)
{
    hf_buf out;
    (void)state;
    hf_buf_init(&out, 1 << 20);
    for (int why = HF_FRAME_WHY_TIMEOUT; why <= HF_FRAME_WHY_STOP; why++)
        hf_frame_put_cancel(&out, 7, (hf_frame_why)why, 5000);
    hf_frame_put_stop(&out, 25000);
    hf_frame_put_ping(&out);
    assert_string_equal(
        out.data, "{\"t\":\"cancel\",\"run\":7,\"why\":\"timeout\",\"kill_in\":5000}\n"
                  "{\"t\":\"cancel\",\"run\":7,\"why\":\"lost\",\"kill_in\":5000}\n"
                  "{\"t\":\"cancel\",\"run\":7,\"why\":\"cancelled\",\"kill_in\":5000}\n"
                  "{\"t\":\"cancel\",\"run\":7,\"why\":\"stop\",\"kill_in\":5000}\n"
                  "{\"t\":\"stop\",\"kill_in\":25000}\n{\"t\":\"ping\"}\n");
    hf_buf_done(&out);
}

static void the_verdicts_are_those_of_a_handler(void **state)
{
    (void)state;
    assert_int_equal(hf_frame_verdict(HF_FRAME_DONE), HF_VERDICT_DONE);
    assert_int_equal(hf_frame_verdict(HF_FRAME_RETRY), HF_VERDICT_RETRY);
    assert_int_equal(hf_frame_verdict(HF_FRAME_DEAD), HF_VERDICT_DEAD);
    assert_int_equal(hf_frame_verdict(HF_FRAME_RELEASE), HF_VERDICT_RELEASE);
    assert_int_equal(hf_frame_verdict(HF_FRAME_CANCEL), HF_VERDICT_CANCEL);
    for (int kind = 0; kind < HF_FRAME_KINDS; kind++)
        assert_int_equal(hf_frame_is_verdict((hf_frame_kind)kind),
                         kind >= HF_FRAME_DONE && kind <= HF_FRAME_CANCEL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_has_its_members),
        cmocka_unit_test(an_absent_n_is_no_body_and_0_an_empty_one),
        cmocka_unit_test(bytes_follow_only_where_they_belong),
        cmocka_unit_test(numbers_are_whole_however_they_are_written),
        cmocka_unit_test(other_members_may_hold_anything),
        cmocka_unit_test(of_a_member_the_last_one_counts),
        cmocka_unit_test(cr_is_white_space_and_an_empty_line_is_nothing),
        cmocka_unit_test(texts_are_mended_and_cut_at_a_character),
        cmocka_unit_test(the_first_frame_is_ready_and_it_comes_once),
        cmocka_unit_test(what_is_no_frame_is_told_without_its_bytes),
        cmocka_unit_test(a_line_has_a_longest_length),
        cmocka_unit_test(a_longer_result_or_checkpoint_is_thrown_away),
        cmocka_unit_test(of_a_longer_trace_or_log_the_end_is_kept),
        cmocka_unit_test(json_is_checked_and_stays_as_it_is),
        cmocka_unit_test(the_error_is_followed_by_the_end_of_the_trace),
        cmocka_unit_test(the_same_bytes_give_the_same_frames),
        cmocka_unit_test(half_a_frame_is_partial),
        cmocka_unit_test(the_room_of_ready_is_given_back),
        cmocka_unit_test(a_job_is_one_line),
        cmocka_unit_test(the_longest_job_fits_into_8_kib),
        cmocka_unit_test(the_other_frames_of_the_worker),
        cmocka_unit_test(the_verdicts_are_those_of_a_handler),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
