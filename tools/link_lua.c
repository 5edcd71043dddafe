/* link_lua.c - puts the scripts of a folder together, while Holdfast is built.
 *
 *     link_lua FOLDER SHARED OUT PREFIX
 *
 * FOLDER/lib/ and SHARED/ have modules: plain Lua that consists of declarations, `local
 * function` and `local NAME = ...`. Each FOLDER/NAME.lua becomes OUT/PREFIXNAME.lua, with
 * the declarations that it uses: Redis runs the whole text of a script at each call. A
 * declaration stands where every run comes, or else in each branch that uses it, before
 * the first statement there that does so; never in a loop or a function. A variable,
 * written small, is there once. The declarations of lib/base.lua are the first of the
 * script. A line `--- @step "steps/x.lua"` stands for that file: it works on the locals
 * where it stands. A constant, `local NAME = VALUE` of a number or a text (or several),
 * stands in place of its name. A function with a line `--- @inline` above it consists of
 * one `return`, which stands in place of each call; its arguments are names, fields or
 * values.
 *
 * A name of a module means that everywhere: no local has it. That and names that are
 * declared nowhere, or that nothing uses, are errors. */
#include "tools/lua_chunk.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ITEMS = 2048 };

static const char *const GLOBALS[] = {
    "KEYS",  "ARGV",     "redis", "string", "table",  "math",   "bit",
    "cjson", "pairs",    "error", "assert", "ipairs", "unpack", "tostring",
    "pcall", "tonumber", "type",  "select", "next",
};

/* A declaration of a module. */
typedef struct item {
    chunk *from;
    size_t statement;
    bool base, shared, variable, used;
    size_t *needs; /* other items */
    size_t n_needs;
} item;

/* What is put before a statement of a script. */
typedef struct put {
    size_t item, statement;
} put;

static item items[ITEMS];
static size_t n_items;

/* The declaration of a name; NONE: no module has it. */
static size_t item_of(const char *name)
{
    for (size_t i = 0; i < n_items; i++) {
        const chunk *c = items[i].from;
        const statement *s = &c->statements[items[i].statement];
        if (is_one_of(name, c->names + s->names, s->n)) {
            return i;
        }
    }
    return NONE;
}

static const line *line_of(const item *it)
{
    return &it->from->lines[it->from->statements[it->statement].line];
}

static const char *name_of(const item *it)
{
    return it->from->names[it->from->statements[it->statement].names];
}

static void add_module(const char *folder, const char *path, bool base, bool shared)
{
    chunk *c = read_chunk(folder, path, true);
    for (size_t i = 0; c && i < c->n_statements; i++) {
        const statement *s = &c->statements[i];
        const line *l = &c->lines[s->line];
        for (size_t k = 0; k < s->n && s->block == 0; k++) {
            size_t other = item_of(c->names[s->names + k]);
            if (other != NONE) {
                fail(l->file, l->number, "`%s` is declared in %s, too",
                     c->names[s->names + k], line_of(&items[other])->file);
            }
        }
        if (s->block == 0 && s->n > 0 && n_items < ITEMS) {
            bool variable = !s->function && islower((unsigned char)*c->names[s->names]);
            items[n_items++] = (item){c, i, base, shared, variable, false, NULL, 0};
        }
    }
}

/* Each free name must be one of a module, or of Lua and Redis; and no local may have one
 * of a module. */
static void check_names(const chunk *c)
{
    for (size_t i = 0; i < c->n_uses; i++) {
        const line *l = &c->lines[c->uses[i].line];
        if (!is_one_of(c->uses[i].name, GLOBALS, COUNT(GLOBALS)) &&
            item_of(c->uses[i].name) == NONE) {
            fail(l->file, l->number, "`%s` is declared nowhere", c->uses[i].name);
        }
    }
    for (size_t i = 0; i < c->n_declared; i++) {
        const line *l = &c->lines[c->declared[i].line];
        size_t other = item_of(c->declared[i].name);
        if (other != NONE) {
            fail(l->file, l->number, "a local hides `%s` of %s", c->declared[i].name,
                 line_of(&items[other])->file);
        }
    }
}

/* What a declaration uses of others. */
static void find_needs(size_t one)
{
    item *it = &items[one];
    const chunk *c = it->from;
    const statement *s = &c->statements[it->statement];
    for (size_t i = 0; i < c->n_uses; i++) {
        const use *u = &c->uses[i];
        size_t other = u->line >= s->line && u->line <= s->last ? item_of(u->name) : NONE;
        if (other != NONE && other != one) {
            it->needs = grown(it->needs, it->n_needs, sizeof *it->needs);
            it->needs[it->n_needs++] = other;
        }
    }
}

/* A script that is put together. */
typedef struct script {
    chunk *c;
    size_t order[ITEMS],
        n_order; /* of the items that it needs; each comes after those that it needs */
    char state[ITEMS]; /* w: its needs are looked at, o: it is in order */
    bool once[ITEMS];
    size_t *points[ITEMS], n_points[ITEMS]; /* statements where an item is needed */
    put *puts;
    size_t n_puts;
} script;

static void order_item(script *s, size_t one)
{
    if (s->state[one] == 'w') {
        fail(line_of(&items[one])->file, line_of(&items[one])->number,
             "`%s` needs itself by way of others", name_of(&items[one]));
    }
    if (s->state[one]) {
        return;
    }
    s->state[one] = 'w';
    for (size_t i = 0; i < items[one].n_needs; i++) {
        order_item(s, items[one].needs[i]);
    }
    s->state[one] = 'o';
    s->order[s->n_order++] = one;
}

static void add_point(script *s, size_t one, size_t at)
{
    s->points[one] = grown(s->points[one], s->n_points[one], sizeof *s->points[one]);
    s->points[one][s->n_points[one]++] = at;
}

/* The statement before which a declaration can stand: outside of loops and functions, at
 * the beginning of a line. */
static size_t point_of(const chunk *c, size_t at)
{
    size_t point = at;
    for (size_t b = c->statements[at].block; b != 0; b = c->statements[at].block) {
        at = c->blocks[b].statement;
        if (c->blocks[b].barred || !c->statements[point].first) {
            point = at;
        }
    }
    return point;
}

/* The statement of this block in which another one is; *branch: the block of it on the
 * way. */
static size_t within(const chunk *c, size_t in, size_t at, size_t *branch)
{
    *branch = NONE;
    while (c->statements[at].block != in) {
        *branch = c->statements[at].block;
        at = c->blocks[*branch].statement;
    }
    return at;
}

static void put_before(script *s, size_t one, size_t at)
{
    s->puts = grown(s->puts, s->n_puts, sizeof *s->puts);
    s->puts[s->n_puts++] = (put){one, at};
    for (size_t i = 0; i < items[one].n_needs; i++) {
        add_point(s, items[one].needs[i], at);
    }
}

/* Places an item that is needed at n points of a block. */
static void place(script *s, size_t one, size_t in, const size_t *points, size_t n)
{
    size_t first = NONE, *branches = get(n * sizeof *branches),
           *some = get(n * sizeof *some);
    bool here = false, apart = false;
    for (size_t i = 0; i < n; i++) {
        size_t at = within(s->c, in, points[i], &branches[i]);
        first = at < first ? at : first;
        here = here || branches[i] == NONE;
        apart = apart || branches[i] != branches[0];
    }
    if (here || (apart && s->once[one])) {
        put_before(s, one, first);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        size_t branch = branches[i], k = 0;
        for (size_t j = i; j < n && branch != NONE; j++) {
            if (branches[j] == branch) {
                some[k++] = points[j];
                branches[j] = NONE;
            }
        }
        if (k > 0) {
            place(s, one, branch, some, k);
        }
    }
}

/* Where a script changes a name, there is one of it. */
static void note_changes(script *s, const chunk *c, const statement *within_it)
{
    for (size_t i = 0; i < c->n_uses; i++) {
        const use *u = &c->uses[i];
        bool inside =
            !within_it || (u->line >= within_it->line && u->line <= within_it->last);
        size_t one = u->assigned && inside ? item_of(u->name) : NONE;
        if (one != NONE) {
            s->once[one] = true;
        }
    }
}

static void place_all(script *s)
{
    const chunk *c = s->c;
    for (size_t i = 0; i < c->n_uses; i++) {
        size_t one = item_of(c->uses[i].name);
        if (one != NONE) {
            add_point(s, one, point_of(c, c->uses[i].statement));
        }
    }
    for (size_t i = 0; i < n_items; i++) {
        s->once[i] = items[i].variable;
        if (s->n_points[i] > 0) {
            order_item(s, i);
        }
    }
    note_changes(s, c, NULL);
    for (size_t i = 0; i < s->n_order; i++) {
        const item *it = &items[s->order[i]];
        note_changes(s, it->from, &it->from->statements[it->statement]);
    }
    for (size_t i = s->n_order; i-- > 0;) {
        size_t one = s->order[i];
        items[one].used = true;
        if (!items[one].base) {
            place(s, one, 0, s->points[one], s->n_points[one]);
        }
    }
    for (size_t i = n_items; i-- > 0;) { /* in the order of their file */
        if (items[i].base && s->state[i]) {
            put_before(s, i, 0);
        }
    }
}

static void write_item(FILE *out, const item *it, size_t indent)
{
    const statement *s = &it->from->statements[it->statement];
    for (size_t i = s->line; i <= s->last; i++) {
        const char *text = it->from->lines[i].text;
        fprintf(out, "%*s%s\n", *text ? (int)indent : 0, "", text);
    }
}

static bool is_comment(const line *l)
{
    return strncmp(l->text + strspn(l->text, " "), "--", 2) == 0;
}

static void write_script(const script *s, FILE *out)
{
    const chunk *c = s->c;
    size_t *at =
        get((s->n_puts + 1) * sizeof *at); /* the lines before which the puts stand */
    for (size_t i = 0; i < s->n_puts; i++) {
        size_t whole = c->statements[s->puts[i].statement].line;
        for (at[i] = whole; at[i] > 0 && is_comment(&c->lines[at[i] - 1]);) {
            at[i]--;
        }
        at[i] = at[i] > 0 ? at[i] : whole; /* the head of a script stays its head */
    }
    for (size_t i = 0; i < c->n_lines; i++) {
        for (size_t k = s->n_puts; k-- > 0;) {
            if (at[k] == i) {
                const line *l = &c->lines[c->statements[s->puts[k].statement].line];
                write_item(out, &items[s->puts[k].item], strspn(l->text, " "));
            }
        }
        fprintf(out, "%s\n", c->lines[i].text);
    }
}

static void link_script(const char *folder, const char *path, const char *to)
{
    script *s = get(sizeof *s);
    s->c = read_chunk(folder, path, false);
    if (!s->c || s->c->broken) {
        return;
    }
    check_names(s->c);
    place_all(s);
    FILE *out = errors ? NULL : fopen(to, "w");
    if (!out && !errors) {
        fail(to, 0, "%s", strerror(errno));
    } else if (out) {
        write_script(s, out);
        fclose(out);
    }
}

/* ---- folders
 * ---------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The names of the files of a folder that end with .lua, in order. */
static const char **names_in(const char *folder, size_t *n)
{
    const char **names = NULL;
    DIR *dir = opendir(folder);
    *n = 0;
    for (struct dirent *e; dir && (e = readdir(dir));) {
        size_t length = strlen(e->d_name);
        if (length > 4 && same(e->d_name + length - 4, ".lua")) {
            names = grown(names, *n, sizeof *names);
            names[(*n)++] = copied(e->d_name, length);
        }
    }
    if (dir) {
        closedir(dir);
    }
    if (*n > 0) {
        qsort(names, *n, sizeof *names, by_name);
    }
    return names;
}

static void add_modules(const char *folder, const char *lib, bool shared)
{
    char path[PATH];
    size_t n;
    const char **names = names_in(lib, &n);
    for (size_t i = 0; i < n; i++) {
        path_of(path, lib, "", names[i]);
        add_module(folder, path, same(names[i], "base.lua"), shared);
    }
}

static void note_modules(const char *lib, bool shared)
{
    char path[PATH];
    size_t n;
    const char **names = names_in(lib, &n);
    for (size_t i = 0; i < n; i++) {
        path_of(path, lib, "", names[i]);
        note_inlines(path, shared);
    }
}

static void check_modules(void)
{
    for (size_t i = 0; i < n_items; i++) {
        if (i == 0 || items[i].from != items[i - 1].from) {
            check_names(items[i].from);
        }
        find_needs(i);
    }
}

static void check_used(void)
{
    for (size_t i = 0; i < n_items; i++) {
        const line *l = line_of(&items[i]);
        if (!items[i].used && !items[i].shared) {
            fail(l->file, l->number, "no script uses `%s`", name_of(&items[i]));
        }
    }
    check_inlines();
}

int main(int argc, char **argv)
{
    char path[PATH], to[PATH];
    if (argc != 5) {
        fputs("expected: link_lua FOLDER SHARED OUT PREFIX\n", stderr);
        return 64;
    }
    path_of(path, argv[1], "", "lib");
    note_modules(path, false);
    note_modules(argv[2], true);
    add_modules(argv[1], path, false);
    add_modules(argv[1], argv[2], true);
    check_modules();
    size_t n;
    const char **names = names_in(argv[1], &n);
    for (size_t i = 0; i < n; i++) {
        path_of(path, argv[1], "", names[i]);
        path_of(to, argv[3], argv[4], names[i]);
        link_script(argv[1], path, to);
    }
    if (errors == 0 && refuses_unused()) {
        check_used();
    }
    free_all();
    return errors ? 65 : 0;
}
