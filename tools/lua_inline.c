/* lua_inline.c - constants and functions of modules that stand in place of their names
 * and calls: to create a function, with all that it refers to, and to call it costs a
 * script more than most of its lines. */
#include "tools/lua_chunk.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { INLINES = 256, PARAMETERS = 4, CONSTANTS = 16 };

/* A function of one `return`, with `--- @inline` above it, or a constant. */
typedef struct inlined {
    const char *name, *parameters[PARAMETERS], *returns, *file;
    size_t n, number;
    bool constant, shared, used;
} inlined;

static inlined inlines[INLINES];
static size_t n_inlines;

static size_t length_of_name(const char *s)
{
    size_t n = 0;
    while (isalnum((unsigned char)s[n]) || s[n] == '_') {
        n++;
    }
    return isdigit((unsigned char)*s) ? 0 : n;
}

static bool is_name(const char *name, const char *s, size_t n)
{
    return strlen(name) == n && strncmp(name, s, n) == 0;
}

/* The length of a name, a text, or else of one character. */
static size_t length_of_part(const char *s)
{
    size_t n = *s == '\'' || *s == '"' ? length_of_string(s) : length_of_name(s);
    return n > 0 ? n : 1;
}

/* The one that has this name; NULL: none. */
static inlined *inlined_of(const char *s, size_t n)
{
    for (size_t i = 0; i < n_inlines; i++) {
        if (is_name(inlines[i].name, s, n)) {
            return &inlines[i];
        }
    }
    return NULL;
}

/* `name(a, b)`, `return EXPRESSION` and `end`, a line each. False: it is something else.
 */
static bool read_inlined(inlined *f, const char *s)
{
    static const char RETURN[] = "\n  return ";
    f->name = copied(s, length_of_name(s));
    s += strlen(f->name);
    for (f->n = 0; *s && strchr("(,", *s) && f->n < PARAMETERS; f->n++) {
        s += 1 + strspn(s + 1, " ");
        f->parameters[f->n] = copied(s, length_of_name(s));
        s += strlen(f->parameters[f->n]);
    }
    if (*s++ != ')' || strncmp(s, RETURN, sizeof RETURN - 1) != 0) {
        return false;
    }
    s += sizeof RETURN - 1;
    f->returns = copied(s, strcspn(s, "\n"));
    return *f->name && strncmp(s + strlen(f->returns), "\nend\n", 5) == 0;
}

/* A number or a text; NULL: it is something else. Gives what follows. A number below 0
 * gets parentheses, because two signs would begin a comment. */
static const char *read_value(const char **s)
{
    size_t sign = **s == '-', n = strspn(*s + sign, "0123456789");
    char number[32];
    if (**s == '\'' || **s == '"') {
        n = length_of_string(*s);
        sign = 0;
    }
    if (n == 0 || n >= sizeof number - 4 || sign == 0) {
        const char *value = n > 0 ? copied(*s, n) : NULL;
        *s += n;
        return value;
    }
    (void)snprintf(number, sizeof number, "(-%.*s)", (int)n, *s + 1);
    *s += sign + n;
    return copied(number, strlen(number));
}

static bool took(const char **s, const char *text)
{
    size_t n = strlen(text);
    bool it_is = strncmp(*s, text, n) == 0;
    *s += it_is ? n : 0;
    return it_is;
}

/* `local NAME, ... = VALUE, ...`. Returns how many; 0: it is something else. */
static size_t read_constants(inlined f[CONSTANTS], const char *s)
{
    size_t n = 0, values = 0;
    if (!took(&s, "local ")) {
        return 0;
    }
    do {
        size_t length = length_of_name(s);
        if (length < 2 || n == CONSTANTS ||
            strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != length) {
            return 0;
        }
        f[n++] = (inlined){.name = copied(s, length), .constant = true};
        s += length;
    } while (took(&s, ", "));
    if (!took(&s, " = ")) {
        return 0;
    }
    do {
        const char *value = values < n ? read_value(&s) : NULL;
        if (!value) {
            return 0;
        }
        f[values++].returns = value;
    } while (took(&s, ", "));
    return values == n && (*s == '\n' || *s == '\0' || took(&s, " --")) ? n : 0;
}

size_t lines_inlined(const char *text)
{
    inlined f[CONSTANTS];
    return same(text, "--- @inline") ? 4 : read_constants(f, text) > 0;
}

static void note(inlined f, const char *path, size_t number, bool shared)
{
    const inlined *other = inlined_of(f.name, strlen(f.name));
    if (other) {
        fail(path, number, "`%s` is declared in %s, too", f.name, other->file);
    } else if (n_inlines < INLINES) {
        f.file = copied(path, strlen(path));
        f.number = number;
        f.shared = shared;
        inlines[n_inlines++] = f;
    }
}

void note_inlines(const char *path, bool shared)
{
    size_t number = 1;
    for (const char *s = read_file(path); s && *s; number++) {
        inlined f[CONSTANTS] = {{.n = 0}};
        const char *at = s;
        size_t n = 0;
        if (took(&at, "--- @inline\n")) {
            n = took(&at, "local function ") && read_inlined(&f[0], at);
            if (n == 0) {
                fail(path, number, "expected a function of one `return` below this line");
            }
            number++;
            s += strcspn(s, "\n") + 1;
        } else {
            n = read_constants(f, s);
        }
        for (size_t i = 0; i < n; i++) {
            note(f[i], path, number, shared);
        }
        s += strcspn(s, "\n");
        s += *s != '\0';
    }
}

void check_inlines(void)
{
    for (size_t i = 0; i < n_inlines; i++) {
        if (!inlines[i].used && !inlines[i].shared) {
            fail(inlines[i].file, inlines[i].number, "no script uses `%s`",
                 inlines[i].name);
        }
    }
}

/* A line that is written. */
typedef struct written {
    char s[PATH];
    size_t n;
} written;

static void put(written *t, const char *s, size_t n)
{
    n = n < sizeof t->s - 1 - t->n ? n : sizeof t->s - 1 - t->n;
    memcpy(t->s + t->n, s, n);
    t->n += n;
    t->s[t->n] = '\0';
}

/* What is called with these arguments returns this. */
static void put_returned(written *t, const inlined *f, const char *const *args,
                         size_t n_args)
{
    size_t n = 0;
    put(t, "(", 1);
    for (const char *s = f->returns; *s; s += n) {
        n = length_of_part(s);
        const char *is = s;
        size_t length = n;
        for (size_t i = 0; i < n_args; i++) {
            if (is_name(f->parameters[i], s, n)) {
                is = args[i];
                length = strlen(is);
            }
        }
        put(t, is, length);
    }
    put(t, ")", 1);
}

/* Behind the name of a call: what it returns, in its place. Returns what follows; NULL:
 * an argument is more than a name, a field or a value. */
static const char *put_call(written *t, const inlined *f, const char *s)
{
    const char *args[PARAMETERS];
    size_t i = 0;
    bool more = *s++ == '(';
    for (; more && i < f->n; i++) {
        s += strspn(s, " ");
        const char *from = s;
        while (isalnum((unsigned char)*s) || (*s && strchr("_.[]'\"", *s))) {
            s += length_of_part(s);
        }
        if (*s != ',' && *s != ')') {
            return NULL;
        }
        args[i] = with_inlines(copied(from, (size_t)(s - from)), "", 0);
        more = *s++ == ',';
    }
    if (i < f->n || s[-1] != ')') {
        return NULL;
    }
    put_returned(t, f, args, i);
    return s;
}

const char *with_inlines(const char *from, const char *file, size_t number)
{
    written t = {.n = 0};
    bool field = false;
    size_t n = 0;
    for (const char *s = from; *s; s += n) {
        n = strncmp(s, "--", 2) == 0 ? strlen(s) : length_of_part(s);
        inlined *f = field ? NULL : inlined_of(s, n);
        field = *s == '.' || *s == ':';
        if (!f) {
            put(&t, s, n);
            continue;
        }
        f->used = true;
        const char *next = f->constant ? s + n : put_call(&t, f, s + n);
        if (!next) {
            fail(file, number, "expected %zu names or values for `%s`", f->n, f->name);
            break;
        } else if (f->constant) {
            put(&t, f->returns, strlen(f->returns));
        }
        s = next;
        n = 0;
    }
    return copied(t.s, t.n);
}
