/* lua_chunk.c - reads a file of Lua 5.1 with its steps. The parser checks no more than it
 * has to: Redis compiles the script again. */
#include "tools/lua_chunk.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH = 8 };

static const char *const WORDS[] = {
    "and",    "break",    "do",     "else", "elseif", "end",   "false",
    "for",    "function", "if",     "in",   "nil",    "not",   "or",
    "repeat", "local",    "return", "then", "true",   "until", "while",
};

size_t errors;
static void *all_memory; /* a list */

void *get(size_t size)
{
    void **memory = calloc(1, sizeof(void *) + size);
    if (!memory) {
        perror("link_lua");
        _Exit(71);
    }
    *memory = all_memory;
    all_memory = memory;
    return memory + 1;
}

void free_all(void)
{
    while (all_memory) {
        void **memory = all_memory;
        all_memory = *memory;
        free(memory);
    }
}

void *grown(void *array, size_t n, size_t size)
{
    if (n & (n - 1)) {
        return array;
    }
    void *more = get((n ? 2 * n : 1) * size);
    return n ? memcpy(more, array, n * size) : more;
}

const char *copied(const char *text, size_t n)
{
    return memcpy(get(n + 1), text, n);
}

bool same(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

bool is_one_of(const char *text, const char *const *list, size_t n)
{
    while (n > 0 && !same(text, list[n - 1])) {
        n--;
    }
    return n > 0;
}

void fail(const char *file, size_t number, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "%s:%zu: error: ", file, number);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    errors++;
}

bool refuses_unused(void)
{
    return getenv("HF_LINK_UNUSED") == NULL;
}

void path_of(char *path, const char *folder, const char *prefix, const char *name)
{
    int n = snprintf(path, PATH, "%s/%s%s", folder, prefix, name);
    if (n < 0 || n >= PATH) {
        fail(name, 0, "the path is too long");
    }
}

/* ---- files: lines with their steps ----------------------------------------------------
 */

char *read_file(const char *path)
{
    FILE *f = fopen(path, "r");
    if (!f) {
        return NULL;
    }
    size_t n = 0, room = 1u << 16;
    char *text = get(room + 1);
    for (size_t got; (got = fread(text + n, 1, room - n, f)) > 0;) {
        n += got;
        if (n == room) {
            text = memcpy(get(2 * room + 1), text, n);
            room *= 2;
        }
    }
    fclose(f);
    return text;
}

static void add_line(chunk *c, size_t indent, const char *text, const char *file,
                     size_t number)
{
    text = with_inlines(text, file, number);
    size_t n = strlen(text);
    char *whole = get(indent + n + 1);
    snprintf(whole, indent + n + 1, "%*s%s", n > 0 ? (int)indent : 0, "", text);
    c->lines = grown(c->lines, c->n_lines, sizeof *c->lines);
    c->lines[c->n_lines++] = (line){whole, file, number};
}

/* Adds a file of a folder with its steps. Comments of their own lines stay in scripts
 * only. */
static bool add_file(chunk *c, const char *folder, const char *path, size_t indent,
                     int depth)
{
    static const char STEP[] = "--- @step \"";
    char *text = read_file(path), *rest = text;
    if (!text || depth > DEPTH) {
        return false;
    }
    path = copied(path, strlen(path));
    for (size_t number = 1; *rest; number++) {
        char *one = rest;
        rest += strcspn(rest, "\n");
        if (*rest) {
            *rest++ = '\0';
        }
        size_t own = strspn(one, " ");
        if (strncmp(one + own, STEP, sizeof STEP - 1) == 0) {
            char *name = one + own + sizeof STEP - 1, whole[PATH];
            name[strcspn(name, "\"")] = '\0';
            path_of(whole, folder, "", name);
            if (!add_file(c, folder, whole, indent + own, depth + 1)) {
                fail(path, number, "there is no step %s, or it is a part of itself",
                     name);
            }
        } else if (c->module && lines_inlined(one) > 0) {
            for (size_t i = lines_inlined(one); i > 1 && *rest; i--, number++) {
                rest += strcspn(rest, "\n");
                rest += *rest != '\0';
            }
        } else if (strncmp(one + own, "--- @", 5) == 0) {
            fail(path, number, "expected --- @step \"steps/name.lua\"");
        } else if (strncmp(one + own, "--", 2) != 0 || (depth == 0 && !c->module)) {
            add_line(c, indent, one, path, number);
        }
    }
    return true;
}

/* ---- tokens ---------------------------------------------------------------------------
 */

static void add_token(chunk *c, char kind, const char *text, size_t n, size_t at,
                      bool first)
{
    text = copied(text, n);
    if (kind == 'n' && is_one_of(text, WORDS, COUNT(WORDS))) {
        kind = 'w';
    }
    c->tokens = grown(c->tokens, c->n_tokens, sizeof *c->tokens);
    c->tokens[c->n_tokens++] = (token){kind, first, text, at};
}

size_t length_of_string(const char *s)
{
    size_t n = 1;
    while (s[n] && s[n] != *s) {
        n += s[n] == '\\' && s[n + 1] ? 2 : 1;
    }
    return s[n] ? n + 1 : 0;
}

static size_t length_of_symbol(const char *s)
{
    static const char *const LONG[] = {"...", "..", "==", "~=", "<=", ">="};
    for (size_t i = 0; i < COUNT(LONG); i++) {
        if (strncmp(s, LONG[i], strlen(LONG[i])) == 0) {
            return strlen(LONG[i]);
        }
    }
    return 1;
}

static void read_tokens(chunk *c, size_t at)
{
    bool first = true;
    for (const char *s = c->lines[at].text; *(s += strspn(s, " \t\r"));) {
        size_t n = 0;
        char kind = 's';
        if (strncmp(s, "--", 2) == 0) {
            return;
        } else if (isalpha((unsigned char)*s) || *s == '_') {
            for (kind = 'n'; isalnum((unsigned char)s[n]) || s[n] == '_';) {
                n++;
            }
        } else if (isdigit((unsigned char)*s)) {
            for (kind = 'v'; isalnum((unsigned char)s[n]) || s[n] == '.';) {
                n++;
            }
        } else if (*s == '\'' || *s == '"') {
            kind = 'v';
            n = length_of_string(s);
        } else if (strncmp(s, "[[", 2) != 0 && strncmp(s, "[=", 2) != 0) {
            n = length_of_symbol(s);
        }
        if (n == 0) {
            fail(c->lines[at].file, c->lines[at].number, "a text must end on its line");
            return;
        }
        add_token(c, kind, s, n, at, first);
        s += n;
        first = false;
    }
}

/* ---- a parser of Lua: which names are free, in which statement and block --------------
 */

static const token *now(const chunk *c)
{
    return &c->tokens[c->at];
}

static bool is(const chunk *c, const char *text)
{
    const token *t = now(c);
    return (t->kind == 's' || t->kind == 'w') && same(t->text, text);
}

static void step(chunk *c)
{
    c->at += now(c)->kind != 'e';
}

static bool took(chunk *c, const char *text)
{
    bool it_is = is(c, text);
    if (it_is) {
        step(c);
    }
    return it_is;
}

/* The rest is not read. */
static void expect(chunk *c, const char *text)
{
    if (!took(c, text) && !c->broken) {
        const line *l = &c->lines[now(c)->line];
        fail(l->file, l->number, "expected %s before `%s`", text, now(c)->text);
        c->broken = true;
        c->at = c->n_tokens - 1;
    }
}

static const char *take_name(chunk *c)
{
    const char *name = now(c)->text;
    if (now(c)->kind != 'n') {
        expect(c, "a name");
    }
    step(c);
    return name;
}

static void declare(chunk *c, const char *name, size_t at, bool plain)
{
    c->locals = grown(c->locals, c->n_locals, sizeof *c->locals);
    c->locals[c->n_locals++] = (local){name, at, false, plain};
    c->declared = grown(c->declared, c->n_declared, sizeof *c->declared);
    c->declared[c->n_declared++] = (local){name, at, false, plain};
}

/* Those beyond the first n are not visible any more. */
static void forget_locals(chunk *c, size_t n)
{
    for (; c->n_locals > n; c->n_locals--) {
        const local *l = &c->locals[c->n_locals - 1];
        const line *at = &c->lines[l->line];
        if (l->plain && !l->used && *l->name != '_' && !strstr(at->file, "/steps/") &&
            refuses_unused()) {
            fail(at->file, at->number, "nothing uses `%s`", l->name);
        }
    }
}

static void use_name(chunk *c, const char *name, size_t at)
{
    for (size_t i = c->n_locals; i-- > 0;) {
        if (same(c->locals[i].name, name)) {
            c->locals[i].used = true;
            return;
        }
    }
    c->uses = grown(c->uses, c->n_uses, sizeof *c->uses);
    c->uses[c->n_uses++] = (use){name, at, c->statement, false};
}

static void read_block(chunk *c, bool barred);
static void read_expression(chunk *c);

static void read_expressions(chunk *c)
{
    do {
        read_expression(c);
    } while (took(c, ","));
}

/* Parameters and body. */
static void read_function(chunk *c)
{
    size_t visible = c->n_locals;
    expect(c, "(");
    while (!is(c, ")") && !c->broken) {
        if (!took(c, "...")) {
            size_t at = now(c)->line;
            declare(c, take_name(c), at, false);
        }
        if (!is(c, ")")) {
            expect(c, ",");
        }
    }
    step(c);
    read_block(c, true);
    expect(c, "end");
    forget_locals(c, visible);
}

static void read_table(chunk *c)
{
    expect(c, "{");
    while (!is(c, "}") && !c->broken) {
        if (took(c, "[")) {
            read_expression(c);
            expect(c, "]");
            expect(c, "=");
        } else if (now(c)->kind == 'n' && same(c->tokens[c->at + 1].text, "=")) {
            c->at += 2;
        }
        read_expression(c);
        if (!is(c, "}") && !took(c, ";")) {
            expect(c, ",");
        }
    }
    step(c);
}

/* A variable, a field or a call. True: a bare name that no local has. */
static bool read_prefix(chunk *c)
{
    bool bare = false, more = true;
    if (took(c, "(")) {
        read_expression(c);
        expect(c, ")");
    } else {
        size_t before = c->n_uses, at = now(c)->line;
        use_name(c, take_name(c), at);
        bare = c->n_uses > before;
    }
    while (more && !c->broken) {
        if (took(c, ".")) {
            take_name(c);
        } else if (took(c, "[")) {
            read_expression(c);
            expect(c, "]");
        } else if (took(c, "(")) {
            if (!is(c, ")")) {
                read_expressions(c);
            }
            expect(c, ")");
        } else if (is(c, "{")) {
            read_table(c);
        } else if (now(c)->kind == 'v' && strchr("'\"", *now(c)->text)) {
            step(c);
        } else if (took(c, ":")) {
            take_name(c);
        } else {
            more = false;
        }
        bare = bare && !more;
    }
    return bare;
}

static void read_expression(chunk *c)
{
    static const char *const BINARY[] = {"and", "or", "+",  "-", "*", "/",  "%", "^",
                                         "..",  "==", "~=", "<", ">", "<=", ">="};
    bool more = true;
    while (more && !c->broken) {
        while (took(c, "not") || took(c, "-") || took(c, "#")) {
        }
        if (now(c)->kind == 'v' || is(c, "nil") || is(c, "true") || is(c, "false") ||
            is(c, "...")) {
            step(c);
        } else if (took(c, "function")) {
            read_function(c);
        } else if (is(c, "{")) {
            read_table(c);
        } else {
            read_prefix(c);
        }
        more = now(c)->kind != 'v' && is_one_of(now(c)->text, BINARY, COUNT(BINARY));
        if (more) {
            step(c);
        }
    }
}

/* `local` was read. */
static void read_local(chunk *c)
{
    statement *s = &c->statements[c->statement];
    const char *names[64];
    size_t at[64], n = 0;
    s->function = took(c, "function");
    do {
        at[n] = now(c)->line;
        names[n++] = take_name(c);
    } while (!s->function && n < COUNT(names) && took(c, ","));
    if (c->module && c->block == 0) {
        s->names = c->n_names;
        for (s->n = n, n = 0; n < s->n; n++) {
            c->names = grown(c->names, c->n_names, sizeof *c->names);
            c->names[c->n_names++] = names[n];
        }
        n = 0;
    }
    if (s->function) { /* it may call itself */
        if (n > 0) {
            declare(c, names[0], at[0], true);
        }
        read_function(c);
        return;
    }
    if (took(c, "=")) {
        read_expressions(c);
    }
    for (size_t i = 0; i < n; i++) {
        declare(c, names[i], at[i], true);
    }
}

static void read_assignment_or_call(chunk *c)
{
    bool more = true;
    while (more && !c->broken) {
        bool bare = read_prefix(c);
        more = is(c, ",");
        if (bare && (more || is(c, "="))) {
            c->uses[c->n_uses - 1].assigned = true;
        }
        if (more) {
            step(c);
        }
    }
    if (took(c, "=")) {
        read_expressions(c);
    }
}

/* `for` was read. */
static void read_for(chunk *c)
{
    const char *names[16];
    size_t at[16], n = 0, visible = c->n_locals;
    do {
        at[n] = now(c)->line;
        names[n++] = take_name(c);
    } while (n < COUNT(names) && took(c, ","));
    if (!took(c, "=")) {
        expect(c, "in");
    }
    read_expressions(c);
    expect(c, "do");
    for (size_t i = 0; i < n; i++) {
        declare(c, names[i], at[i], false);
    }
    read_block(c, true);
    expect(c, "end");
    forget_locals(c, visible);
}

/* `if` was read. */
static void read_if(chunk *c)
{
    do {
        read_expression(c);
        expect(c, "then");
        read_block(c, false);
    } while (took(c, "elseif"));
    if (took(c, "else")) {
        read_block(c, false);
    }
    expect(c, "end");
}

static void read_statement(chunk *c)
{
    if (took(c, "local")) {
        read_local(c);
    } else if (c->module && c->block == 0) {
        expect(c, "local");
    } else if (took(c, "if")) {
        read_if(c);
    } else if (took(c, "for")) {
        read_for(c);
    } else if (took(c, "while")) {
        read_expression(c);
        expect(c, "do");
        read_block(c, true);
        expect(c, "end");
    } else if (took(c, "do")) {
        read_block(c, false);
        expect(c, "end");
    } else if (took(c, "repeat")) { /* stricter than Lua: its locals end before `until` */
        read_block(c, true);
        expect(c, "until");
        read_expression(c);
    } else if (took(c, "return")) {
        if (!is(c, "end") && !is(c, "else") && !is(c, "elseif") && !is(c, "until") &&
            now(c)->kind != 'e') {
            read_expressions(c);
        }
    } else if (!took(c, "break")) {
        read_assignment_or_call(c);
    }
    took(c, ";");
}

static void read_block(chunk *c, bool barred)
{
    size_t outer = c->block, within = c->statement, visible = c->n_locals;
    c->blocks = grown(c->blocks, c->n_blocks, sizeof *c->blocks);
    c->blocks[c->n_blocks] = (block){within, barred};
    c->block = c->n_blocks++;
    while (now(c)->kind != 'e' && !is(c, "end") && !is(c, "else") && !is(c, "elseif") &&
           !is(c, "until")) {
        size_t one = c->n_statements++;
        c->statements = grown(c->statements, one, sizeof *c->statements);
        c->statements[one] =
            (statement){.block = c->block, .line = now(c)->line, .first = now(c)->first};
        c->statement = one;
        read_statement(c);
        c->statements[one].last = c->tokens[c->at - 1].line;
    }
    forget_locals(c, visible);
    c->block = outer;
    c->statement = within;
}

chunk *read_chunk(const char *folder, const char *path, bool module)
{
    chunk *c = get(sizeof *c);
    c->module = module;
    c->statement = NONE;
    if (!add_file(c, folder, path, 0, 0)) {
        fail(path, 0, "%s", strerror(errno));
        return NULL;
    }
    for (size_t i = 0; i < c->n_lines; i++) {
        read_tokens(c, i);
    }
    add_token(c, 'e', "the end", 7, c->n_lines ? c->n_lines - 1 : 0, false);
    read_block(c, false);
    if (now(c)->kind != 'e') {
        expect(c, "the end");
    }
    return c;
}
