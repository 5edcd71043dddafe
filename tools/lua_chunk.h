/* lua_chunk.h - a file of Lua as the linker of scripts sees it: its lines with those of
 * its steps, and which names are free, in which statement and block. */
#ifndef HF_TOOLS_LUA_CHUNK_H
#define HF_TOOLS_LUA_CHUNK_H

#include <stdbool.h>
#include <stddef.h>

#define NONE ((size_t)-1)
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { PATH = 4096 };

typedef struct line {
    const char *text, *file;
    size_t number;
} line;

typedef struct token {
    char kind;  /* n: a name, w: a word of Lua, v: a value, s: a symbol, e: the end */
    bool first; /* of its line */
    const char *text;
    size_t line;
} token;

/* Where a name is used that no local has. */
typedef struct use {
    const char *name;
    size_t line, statement;
    bool assigned;
} use;

typedef struct statement {
    size_t block, line, last; /* lines, from 0 on */
    bool first;               /* on its line */
    bool function;            /* local function */
    size_t names, n;          /* what a `local` at the top of a module declares */
} statement;

typedef struct block {
    size_t statement; /* which it is a part of */
    bool barred;      /* a loop or a function */
} block;

typedef struct local {
    const char *name;
    size_t line;
    bool used, plain; /* plain: no parameter */
} local;

/* A file, with its steps. */
typedef struct chunk {
    bool module;
    line *lines;
    token *tokens;
    use *uses;
    statement *statements;
    block *blocks;
    local *locals;      /* those that are visible */
    local *declared;    /* all that were */
    const char **names; /* at the top of a module */
    size_t n_lines, n_tokens, n_uses, n_statements, n_blocks, n_locals, n_declared,
        n_names;
    size_t at, block, statement; /* while it is parsed */
    bool broken;
} chunk;

/* Errors that were told. */
extern size_t errors;

__attribute__((format(printf, 3, 4))) void fail(const char *file, size_t number,
                                                const char *format, ...);

/* Whether a name that nothing uses is an error: not with HF_LINK_UNUSED in the
 * environment. A mutant may take away the only use of a name. */
bool refuses_unused(void);
/* Memory of zeros, up to free_all(). */
void *get(size_t size);
void free_all(void);
/* An array of n with room for one more. */
void *grown(void *array, size_t n, size_t size);
const char *copied(const char *text, size_t n);
bool same(const char *a, const char *b);
bool is_one_of(const char *text, const char *const *list, size_t n);
/* folder/prefixname. */
void path_of(char *path, const char *folder, const char *prefix, const char *name);
/* The text of a file; NULL: it cannot be read. */
char *read_file(const char *path);
/* Of a text with its quotes; 0: it does not end. */
size_t length_of_string(const char *s);
/* Notes the constants of a module, and its functions that stand in place of their calls
 * (`--- @inline`). To be called for all modules before the first read_chunk(). */
void note_inlines(const char *path, bool shared);
/* How many lines the declaration of such a one has that begins with this line; 0: none.
 */
size_t lines_inlined(const char *text);
/* A line with them. */
const char *with_inlines(const char *from, const char *file, size_t number);
/* Tells which of them no line has used. */
void check_inlines(void);
/* A script or a module; NULL: it cannot be read. Tells what is wrong with it. */
chunk *read_chunk(const char *folder, const char *path, bool module);

#endif
