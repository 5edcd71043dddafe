/* dump.c - see dump.h. */
#include "tests/support/dump.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TIME_DIGITS = 13, FENCE_DIGITS = 16, SLACK_MS = 3000 };

static redisReply *ask(redisContext *connection, const char *format, const char *key)
{
    redisReply *reply = redisCommand(connection, format, key);
    if (reply == NULL || reply->type == REDIS_REPLY_ERROR)
        fail_msg("%s: %s", format, reply == NULL ? connection->errstr : reply->str);
    return reply;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The elements of an answer, `step` of them in a line, in an order that does not depend
 * on how Redis keeps them. */
static char *lines(const redisReply *reply, size_t step, bool sort)
{
    size_t n = reply->elements / step, size;
    char **line = calloc(n + 1, sizeof *line), *all;
    assert_non_null(line);
    for (size_t i = 0; i < n; i++) {
        const redisReply *first = reply->element[i * step];
        const char *second = step == 2 ? reply->element[i * step + 1]->str : "";
        line[i] = malloc(strlen(first->str) + strlen(second) + 4);
        assert_non_null(line[i]);
        (void)snprintf(line[i], strlen(first->str) + strlen(second) + 4, "%s=%s",
                       first->str, second);
    }
    if (sort)
        qsort(line, n, sizeof *line, by_text);
    FILE *out = open_memstream(&all, &size);
    assert_non_null(out);
    for (size_t i = 0; i < n; i++) {
        (void)fprintf(out, "%s\n", line[i]);
        free(line[i]);
    }
    (void)fclose(out);
    free(line);
    return all;
}

/* NULL: its time was over before it was read. */
static char *value_of(redisContext *connection, const char *type, const char *key)
{
    redisReply *reply;
    char *text;
    if (strcmp(type, "none") == 0)
        return NULL;
    if (strcmp(type, "string") == 0) {
        reply = ask(connection, "GET %s", key);
        text = strdup(reply->str != NULL ? reply->str : "");
    } else if (strcmp(type, "hash") == 0) {
        reply = ask(connection, "HGETALL %s", key);
        text = lines(reply, 2, true);
    } else if (strcmp(type, "zset") == 0) {
        reply = ask(connection, "ZRANGE %s 0 -1 WITHSCORES", key);
        text = lines(reply, 2, false);
    } else if (strcmp(type, "list") == 0) {
        reply = ask(connection, "LRANGE %s 0 -1", key);
        text = lines(reply, 1, false);
    } else if (strcmp(type, "stream") == 0) {
        reply = ask(
            connection,
            "EVAL return(cjson.encode(redis.call('XRANGE',KEYS[1],'-','+'))) 1 %s", key);
        text = strdup(reply->str);
    } else {
        assert_string_equal(type, "set");
        reply = ask(connection, "SMEMBERS %s", key);
        text = lines(reply, 1, true);
    }
    freeReplyObject(reply);
    assert_non_null(text);
    reply = ask(connection, "EXISTS %s", key);
    if (reply->integer == 0) {
        free(text);
        text = NULL;
    }
    freeReplyObject(reply);
    return text;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const hf_dump_key *)a)->name, ((const hf_dump_key *)b)->name);
}

void hf_dump_take(hf_dump *out, redisContext *connection)
{
    redisReply *names = ask(connection, "KEYS %s", "*");
    out->n = 0;
    out->keys = calloc(names->elements + 1, sizeof *out->keys);
    assert_non_null(out->keys);
    for (size_t i = 0; i < names->elements; i++) {
        const char *name = names->element[i]->str;
        redisReply *type = ask(connection, "TYPE %s", name);
        redisReply *pttl = ask(connection, "PTTL %s", name);
        char *value = value_of(connection, type->str, name);
        if (value != NULL)
            out->keys[out->n++] = (hf_dump_key){.name = strdup(name),
                                                .type = strdup(type->str),
                                                .pttl_ms = pttl->integer,
                                                .value = value};
        freeReplyObject(type);
        freeReplyObject(pttl);
    }
    freeReplyObject(names);
    qsort(out->keys, out->n, sizeof *out->keys, by_name);
}

void hf_dump_done(hf_dump *dump)
{
    for (size_t i = 0; i < dump->n; i++) {
        free(dump->keys[i].name);
        free(dump->keys[i].type);
        free(dump->keys[i].value);
    }
    free(dump->keys);
    *dump = (hf_dump){.n = 0};
}

static size_t digits(const char *text)
{
    size_t n = 0;
    while (isdigit((unsigned char)text[n]))
        n++;
    return n;
}

/* Equal but for times that lie close together. */
static bool text_same(const char *a, const char *b)
{
    while (*a != '\0' && *b != '\0') {
        size_t n = digits(a);
        if (n == TIME_DIGITS && digits(b) == TIME_DIGITS) {
            if (llabs(strtoll(a, NULL, 10) - strtoll(b, NULL, 10)) > SLACK_MS)
                return false;
        } else {
            n = n == 0 ? 1 : n;
            if (strncmp(a, b, n) != 0)
                return false;
        }
        a += n;
        b += n;
    }
    return *a == *b;
}

static bool key_same(const hf_dump_key *a, const hf_dump_key *b)
{
    bool ends = a->pttl_ms == -1 || b->pttl_ms == -1
                    ? a->pttl_ms == b->pttl_ms
                    : llabs(a->pttl_ms - b->pttl_ms) <= SLACK_MS;
    return ends && strcmp(a->type, b->type) == 0 && text_same(a->value, b->value);
}

bool hf_dump_same(const hf_dump *a, const hf_dump *b, char *difference, size_t size)
{
    for (size_t i = 0; i < a->n && i < b->n; i++) {
        const hf_dump_key *x = &a->keys[i], *y = &b->keys[i];
        if (strcmp(x->name, y->name) == 0 && key_same(x, y))
            continue;
        (void)snprintf(difference, size,
                       "%s (%s, %lld ms)\n%s\nbecame %s (%s, %lld ms)\n%s", x->name,
                       x->type, x->pttl_ms, x->value, y->name, y->type, y->pttl_ms,
                       y->value);
        return false;
    }
    (void)snprintf(difference, size, "%zu keys became %zu", a->n, b->n);
    return a->n == b->n;
}

/* ---- answers ---- */

static void print_text(FILE *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len;) {
        size_t n = digits(text + i);
        if (n == TIME_DIGITS || n == FENCE_DIGITS)
            (void)fputc(n == TIME_DIGITS ? 'T' : 'F', out);
        else
            (void)fwrite(text + i, 1, n == 0 ? 1 : n, out);
        i += n == 0 ? 1 : n;
    }
}

static void print(FILE *out, const redisReply *reply)
{
    char number[24];
    if (reply->type == REDIS_REPLY_ARRAY) {
        (void)fputc('{', out);
        for (size_t i = 0; i < reply->elements; i++) {
            if (i > 0)
                (void)fputc(' ', out);
            print(out, reply->element[i]);
        }
        (void)fputc('}', out);
    } else if (reply->type == REDIS_REPLY_INTEGER) {
        (void)snprintf(number, sizeof number, "%lld", reply->integer);
        print_text(out, number, strlen(number));
    } else if (reply->type == REDIS_REPLY_NIL) {
        (void)fputs("(nil)", out);
    } else {
        print_text(out, reply->str, (size_t)reply->len);
    }
}

void hf_print_reply(const redisReply *reply, char *out, size_t size)
{
    char *text = NULL;
    size_t len;
    FILE *stream = open_memstream(&text, &len);
    assert_non_null(stream);
    print(stream, reply);
    (void)fclose(stream);
    /* The outermost braces say nothing. */
    bool braces = reply->type == REDIS_REPLY_ARRAY;
    (void)snprintf(out, size, "%.*s", (int)(braces ? len - 2 : len),
                   braces ? text + 1 : text);
    free(text);
}
