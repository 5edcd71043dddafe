/* test_scripts.c - no script uses a name that is not declared where it is used: Redis
 * would find that only when the line is reached. A small scanner of Lua, and what it must
 * find. */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "lock_scripts.h"
#include "queue_scripts.h"

enum { NAMES = 512, BLOCKS = 64, WORD = 64 };

static const char *const GLOBALS[] = {
    "KEYS",  "ARGV",     "redis", "string", "table",  "math",   "bit",      "cjson",
    "pairs", "tonumber", "error", "assert", "ipairs", "unpack", "tostring", "pcall",
    "type",  "select",   "next",  "and",    "break",  "do",     "else",     "elseif",
    "end",   "false",    "for",   "if",     "in",     "nil",    "not",      "or",
    "while", "repeat",   "until", "return", "then",   "true",   "local",    "function",
};

typedef struct scan {
    const char *at;
    char word[WORD];                 /* the token: a name, or one character */
    char before;                     /* the last character of the token before */
    char names[NAMES][WORD];         /* the visible ones */
    size_t n, blocks[BLOCKS], depth; /* where the names of each open block begin */
    char unknown[WORD];
} scan;

static void skip_to(scan *s, char quote)
{
    for (s->at++; *s->at && *s->at != quote; s->at++) {
        s->at += *s->at == '\\' && s->at[1];
    }
    s->at += *s->at ? 1 : 0;
}

/* The next token; a text or a number counts as `0`. False: the end. */
static bool next(scan *s)
{
    s->before = s->word[0] ? s->word[strlen(s->word) - 1] : '\0';
    for (;;) {
        s->at += strspn(s->at, " \t\r\n");
        if (strncmp(s->at, "--", 2) != 0) {
            break;
        }
        s->at += strcspn(s->at, "\n");
    }
    size_t n = 0;
    if (isalpha((unsigned char)*s->at) || *s->at == '_') {
        while (isalnum((unsigned char)*s->at) || *s->at == '_') {
            assert_true(n + 1 < sizeof s->word);
            s->word[n++] = *s->at++;
        }
    } else if (isdigit((unsigned char)*s->at)) {
        while (isalnum((unsigned char)*s->at) || *s->at == '.') {
            s->at++;
        }
        s->word[n++] = '0';
    } else if (*s->at == '\'' || *s->at == '"') {
        skip_to(s, *s->at);
        s->word[n++] = '0';
    } else if (strncmp(s->at, "..", 2) == 0) {
        s->at += 2;
        s->word[n++] = '+';
    } else if (*s->at) {
        s->word[n++] = *s->at++;
    }
    s->word[n] = '\0';
    return n > 0;
}

static bool is(const scan *s, const char *word)
{
    return strcmp(s->word, word) == 0;
}

static bool is_name(const scan *s)
{
    return isalpha((unsigned char)s->word[0]) || s->word[0] == '_';
}

static void declare(scan *s)
{
    assert_true(s->n < NAMES);
    memcpy(s->names[s->n++], s->word, WORD);
}

static void open_block(scan *s)
{
    assert_true(s->depth < BLOCKS);
    s->blocks[s->depth++] = s->n;
}

static void close_block(scan *s)
{
    assert_true(s->depth > 0);
    s->n = s->blocks[--s->depth];
}

/* A list of names to declare, up to what follows it. */
static void declare_list(scan *s)
{
    while (is_name(s) || is(s, ",")) {
        if (is(s, "in")) {
            return;
        }
        if (!is(s, ",")) {
            declare(s);
        }
        const char *at = s->at;
        char word[WORD];
        memcpy(word, s->word, WORD);
        if (!next(s)) {
            return;
        }
        if (!is(s, ",") && word[0] != ',') { /* the list is over */
            s->at = at;
            memcpy(s->word, word, WORD);
            return;
        }
    }
}

static void check_use(scan *s)
{
    for (size_t i = 0; i < HF_COUNT(GLOBALS); i++) {
        if (is(s, GLOBALS[i])) {
            return;
        }
    }
    for (size_t i = s->n; i-- > 0;) {
        if (is(s, s->names[i])) {
            return;
        }
    }
    const char *after = s->at + strspn(s->at, " \n");
    bool field =
        (s->before == '{' || s->before == ',') && *after == '=' && after[1] != '=';
    if (!field && s->before != '.' && s->before != ':' && !s->unknown[0]) {
        memcpy(s->unknown, s->word, WORD);
    }
}

/* `function name(a, b)`, with the name of a local function or without one. */
static void begin_function(scan *s, bool local)
{
    next(s);
    if (is_name(s)) {
        if (local) {
            declare(s);
        } else {
            check_use(s);
        }
        next(s);
    }
    open_block(s);
    for (next(s); is_name(s) || is(s, ","); next(s)) {
        if (is_name(s)) {
            declare(s);
        }
    }
}

/* The first name that is used and not declared; '' if there is none. A `local` is taken
 * to be visible in its own value, and a field in a constructor may have any name. */
static const char *undeclared(scan *s, const char *text)
{
    memset(s, 0, sizeof *s);
    s->at = text;
    while (next(s)) {
        if (is(s, "local")) {
            next(s);
            if (is(s, "function")) {
                begin_function(s, true);
            } else {
                declare_list(s);
            }
        } else if (is(s, "function")) {
            begin_function(s, false);
        } else if (is(s, "for")) {
            open_block(s);
            next(s);
            declare_list(s);
            while (!is(s, "do") && next(s)) {
                if (is_name(s)) {
                    check_use(s);
                }
            }
        } else if (is(s, "do") || is(s, "then") || is(s, "repeat")) {
            open_block(s);
        } else if (is(s, "else")) {
            close_block(s);
            open_block(s);
        } else if (is(s, "end") || is(s, "elseif") || is(s, "until")) {
            close_block(s);
        } else if (is_name(s)) {
            check_use(s);
        }
    }
    return s->unknown;
}

static void a_name_without_a_declaration_is_found(void **state)
{
    static const struct {
        const char *text, *name;
    } cases[] = {
        {"local a, b = 1, 'x' return a + b", ""},
        {"local a = 1 return a + c", "c"},
        {"x = 1", "x"},
        {"return f(1) local function f(a) return a end", "f"},
        {"local function f(a, b) return a.b + b:c() end return f(a)", "a"},
        {"if 1 then local a = 2 end return a", "a"},
        {"if 1 then local a = 2 else return a end", "a"},
        {"for i, v in ipairs(KEYS) do redis.call(i, v) end return v", "v"},
        {"for i = 1, n do end", "n"},
        {"local n = 2 for i = 1, n do n = { k = i, n = n, [i] = n .. 'k' } end return n",
         ""},
        {"return { k = 1, v }", "v"},
        {"local t = function(x) return x end return t == x", "x"},
        {"repeat local a = 1 until a", "a"}, /* stricter than Lua */
        {"return 'it\\'s --' -- g\n", ""},
    };
    static scan s;
    (void)state;
    for (size_t i = 0; i < HF_COUNT(cases); i++) {
        assert_string_equal(undeclared(&s, cases[i].text), cases[i].name);
    }
}

static void check_all(const hf_script *const *all)
{
    static scan s;
    for (; *all; all++) {
        const char *name = undeclared(&s, (const char *)(*all)->text);
        if (*name) {
            fail_msg(
                "%s uses `%s`, which is declared nowhere above: an include is missing",
                (*all)->name, name);
        }
        assert_int_equal(s.depth, 0); /* else the scanner has lost its way */
    }
}

static void every_script_declares_what_it_uses(void **state)
{
    (void)state;
    check_all(hf_lua_queue_all);
    check_all(hf_lua_lock_all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_without_a_declaration_is_found),
        cmocka_unit_test(every_script_declares_what_it_uses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
