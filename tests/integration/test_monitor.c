/* test_monitor.c - docs/keys.md shows what Redis sees of one job's life, as MONITOR tells
 * it. That block is written by this program: it plays the life against a private server
 * and compares; with HF_WRITE_DOCS=1 in the environment it writes the block anew. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue_scripts.h"
#include "tests/support/eventually.h"
#include "tests/support/markdown.h"
#include "tests/support/queue_fixture.h"
#include "tests/support/tempdir.h"

#define DOCUMENT HF_TEST_SOURCE "/docs/keys.md"
#define WORKER "web1-4711-00c0ffee00c0ffee"
#define FINAL "that was all"

enum {
    TEXT_SIZE = 16384,
    TIME_DIGITS = 13,  /* Unix ms */
    FENCE_DIGITS = 16, /* Unix microseconds */
    SHA1_DIGITS = 40
};

static hf_queue_fixture fixture;

/* ---- one job's life ---- */

static void enqueue(int64_t now)
{
    char record[128];
    int n = snprintf(record, sizeof record, "{\"type\":\"greet\",\"created\":%lld}\nAda",
                     (long long)now);
    const hf_enqueue_args args = {.producer = "01M7Y0GNDW8KZGSWPCGM0CSBQW",
                                  .number = 1,
                                  .not_after = now + 60000,
                                  .remember_ms = 10000};
    const hf_enqueue_item item = {"job-1", 0, {record, (size_t)n}};
    assert_int_equal(hf_queue_fixture_register(&fixture), HF_OK);
    assert_int_equal(hf_queue_fixture_enqueue_items(&fixture, &args, &item, 1), HF_OK);
}

static void live(int64_t now)
{
    hf_claim_args claim = hf_queue_fixture_claim_args(WORKER, 16, 10000);
    fixture.judges_by_itself = true;
    enqueue(now);
    assert_int_equal(hf_queue_fixture_wait(&fixture, 5000), HF_OK);
    claim.due = true; /* as of a worker that its baton has woken */
    claim.slots = 16;
    claim.alive_ms = 25000;
    claim.not_after = now + 60000;
    claim.dead_max = 10000;
    claim.dead_age_ms = INT64_C(180) * 86400 * 1000;
    fixture.number = 0;
    assert_int_equal(hf_queue_fixture_claim_with(&fixture, &claim), HF_OK);
    assert_int_equal(fixture.n_jobs, 1);
    const hf_verdict_args args = {.worker = WORKER, .not_after = now + 60000};
    const hf_verdict_item item = {.id = "job-1"};
    assert_int_equal(hf_queue_fixture_verdict(&fixture, HF_OP_COMPLETE, &args, &item),
                     HF_OK);
}

/* ---- a line of MONITOR, made the same each time ---- */

static const char *script_of(const char *sha1)
{
    for (size_t i = 0; hf_lua_queue_all[i] != NULL; i++)
        if (strncmp(hf_lua_queue_all[i]->sha1, sha1, SHA1_DIGITS) == 0)
            return hf_lua_queue_all[i]->name + strlen("queue/");
    fail_msg("no script of ours has the SHA1 %.40s", sha1);
    return "";
}

/* Digits become what they are: a time, a fence; else they stay. */
static size_t put_word(FILE *out, const char *at)
{
    size_t n = strspn(at, "0123456789"), hex = strspn(at, "0123456789abcdef");
    if (hex == SHA1_DIGITS)
        (void)fprintf(out, "<SHA1 of %s>", script_of(at));
    else if (n == TIME_DIGITS)
        (void)fputs("<ms>", out);
    else if (n == FENCE_DIGITS)
        (void)fputs("<fence>", out);
    else
        (void)fwrite(at, 1, n = n == 0 ? 1 : n, out);
    return hex == SHA1_DIGITS ? hex : n;
}

/* Without its quotes, if it can be read without. */
static const char *put_argument(FILE *out, const char *at)
{
    size_t bare = strspn(at + 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                 "0123456789-_.:{}<>() ");
    bool quoted = at[1 + bare] != '"' || bare == 0 || memchr(at + 1, ' ', bare) != NULL;
    const char *end = at + 1;
    while (*end != '"' && *end != '\0')
        end += *end == '\\' ? 2 : 1;
    assert_int_equal(*end, '"');
    if (quoted)
        (void)fputc('"', out);
    for (const char *p = at + 1; p < end;)
        p += put_word(out, p);
    if (quoted)
        (void)fputc('"', out);
    return end + 1;
}

/* `1700000000.123456 [0 lua] "TIME"`, and what a script does stands below its call. */
static void put_line(FILE *out, const char *line)
{
    const char *who = strchr(line, '['), *at = who == NULL ? NULL : strstr(who, "] \"");
    if (at == NULL) {
        fail_msg("MONITOR said '%s'", line);
        return;
    }
    if (strncmp(who, "[0 lua]", strlen("[0 lua]")) == 0)
        (void)fputs("    ", out);
    for (at += 2; *at == '"'; at += *at == ' ' ? 1 : 0) {
        at = put_argument(out, at);
        if (*at == ' ')
            (void)fputc(' ', out);
    }
    (void)fputc('\n', out);
}

/* What MONITOR says until our last word. */
static char *watch(redisContext *monitor)
{
    char *text = NULL;
    size_t len = 0;
    redisReply *reply = NULL;
    FILE *out = open_memstream(&text, &len);
    assert_non_null(out);
    for (bool over = false; !over; freeReplyObject(reply)) {
        if (redisGetReply(monitor, (void **)&reply) != REDIS_OK)
            fail_msg("MONITOR ends: %s", monitor->errstr);
        over = strstr(reply->str, FINAL) != NULL;
        if (!over)
            put_line(out, reply->str);
    }
    (void)fclose(out);
    return text;
}

/* ---- the document ---- */

static void write_anew(const char *document, const hf_md_block *block, const char *text)
{
    size_t size = strlen(document) + strlen(text) + 1;
    char *whole = malloc(size);
    assert_non_null(whole);
    (void)snprintf(whole, size, "%.*s%s%s", (int)(block->text - document), document, text,
                   block->text + block->len);
    hf_write_file(DOCUMENT, whole);
    free(whole);
}

static void the_document_shows_what_redis_sees_of_one_job(void **state)
{
    (void)state;
    hf_md_block block;
    char *document = hf_md_read(DOCUMENT);
    const char *at = document, *again = getenv("HF_WRITE_DOCS");
    int64_t now = hf_queue_fixture_now(&fixture);
    live(now); /* so that Redis knows the scripts */
    (void)hf_fixture_command(&fixture.redis, "FLUSHALL");
    redisContext *monitor = hf_fixture_connect(&fixture.redis);
    assert_non_null(monitor);
    freeReplyObject(redisCommand(monitor, "MONITOR"));
    live(now);
    (void)hf_fixture_command(&fixture.redis, "ECHO %s", FINAL);
    char *seen = watch(monitor);
    redisFree(monitor);

    bool found = false;
    while (!found && hf_md_next_block(&at, &block))
        found = strcmp(block.info, "monitor") == 0;
    assert_true(found);
    if (again != NULL && strcmp(again, "1") == 0)
        write_anew(document, &block, seen);
    else if (strlen(seen) != block.len || memcmp(seen, block.text, block.len) != 0)
        fail_msg("docs/keys.md does not show what Redis sees. This writes it anew:\n"
                 "HF_WRITE_DOCS=1 ctest --test-dir %s -R redis.monitor\nRedis sees:\n%s",
                 HF_TEST_BUILD, seen);
    free(seen);
    free(document);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HF_QUEUE_TEST(the_document_shows_what_redis_sees_of_one_job, &fixture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
