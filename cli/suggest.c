/* suggest.c - see suggest.h. */
#include "cli/suggest.h"

#include <stdio.h>
#include <string.h>

enum { WORD_MAX = 40, FAR = 3 };

/* How many letters may be wrong. In a short word few, or it is another word. */
static size_t limit(size_t len)
{
    return len / 2 + 1 < FAR ? len / 2 + 1 : FAR;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* How many letters must be inserted, deleted, changed or swapped with their neighbour to
 * turn one word into the other (the Damerau-Levenshtein distance, computed with three
 * rows); FAR when a word is too long. */
static size_t distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t rows[3][WORD_MAX + 1];
    size_t *before = rows[0], *last = rows[1], *row = rows[2];
    if (a_len > WORD_MAX || b_len > WORD_MAX)
        return FAR;
    for (size_t j = 0; j <= b_len; j++)
        row[j] = before[j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        size_t *oldest = before;
        before = last;
        last = row;
        row = oldest;
        row[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            size_t change = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
            row[j] = smaller(change, smaller(last[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = smaller(row[j], before[j - 2] + 1);
        }
    }
    return row[b_len];
}

/* ---- what was found ---- */

enum { NAMES_MAX = 3, PAIR_SIZE = 96 };

typedef struct found {
    const char *prefix; /* "--" of options */
    const char *names[NAMES_MAX];
    size_t n;
} found;

static void add(found *f, const char *name)
{
    for (size_t i = 0; i < f->n; i++) {
        if (strcmp(f->names[i], name) == 0)
            return;
    }
    if (f->n < NAMES_MAX)
        f->names[f->n++] = name;
}

static void tell(const found *f, char out[HF_SUGGEST_SIZE])
{
    size_t at = 0;
    out[0] = '\0';
    for (size_t i = 0; i < f->n && at < HF_SUGGEST_SIZE; i++) {
        const char *between = i + 1 == f->n ? " or " : ", ";
        at += (size_t)snprintf(out + at, HF_SUGGEST_SIZE - at, "%s'%s%s'%s",
                               i == 0 ? " (did you mean " : between, f->prefix,
                               f->names[i], i + 1 == f->n ? "?)" : "");
    }
}

/* ---- commands ---- */

/* As near as the best so far, but longer the same from the start. */
static bool begins_better(const char *word, const char *name, const char *best)
{
    size_t i = 0;
    while (best != NULL && word[i] != '\0' && word[i] == name[i] && word[i] == best[i])
        i++;
    return best != NULL && word[i] != '\0' && word[i] == name[i];
}

static void add_alike(found *f, const hf_command *commands, const char *word)
{
    for (; commands->name != NULL; commands++) {
        if (!commands->hidden && hf_words_have(commands->alike, word, strlen(word)))
            add(f, commands->name);
    }
}

/* More than three names that begin so say too little. */
static void add_longer(found *f, const hf_command *commands, const char *word)
{
    found more = *f;
    size_t n = 0;
    for (; commands->name != NULL; commands++) {
        if (commands->hidden || strncmp(commands->name, word, strlen(word)) != 0)
            continue;
        add(&more, commands->name);
        n++;
    }
    if (n <= NAMES_MAX)
        *f = more;
}

static void add_nearest(found *f, const hf_command *commands, const char *word)
{
    const char *best = NULL;
    size_t best_distance = limit(strlen(word));
    for (; commands->name != NULL; commands++) {
        size_t d = distance(word, strlen(word), commands->name, strlen(commands->name));
        if (!commands->hidden &&
            (d < best_distance ||
             (d == best_distance && begins_better(word, commands->name, best)))) {
            best = commands->name;
            best_distance = d;
        }
    }
    if (best != NULL)
        add(f, best);
}

/* A group, such as "queue" for "quue": the help of its words is near then. */
static void add_group(found *f, const hf_command *commands, const char *word,
                      char name[PAIR_SIZE])
{
    size_t best_distance = limit(strlen(word));
    for (; commands->name != NULL; commands++) {
        size_t len = strcspn(commands->name, " ");
        bool begins =
            strlen(word) > 1 && strncmp(commands->name, word, strlen(word)) == 0;
        size_t d = begins ? 0 : distance(word, strlen(word), commands->name, len);
        if (commands->hidden || commands->name[len] == '\0' || d >= best_distance)
            continue;
        best_distance = d;
        (void)snprintf(name, PAIR_SIZE, "%.*s", (int)len, commands->name);
    }
    if (*name != '\0')
        add(f, name);
}

static void look_for(found *f, const hf_command *commands, const char *word)
{
    if (f->n == 0)
        add_alike(f, commands, word);
    if (f->n == 0 && strlen(word) > 1)
        add_longer(f, commands, word);
    if (f->n == 0)
        add_nearest(f, commands, word);
}

void hf_suggest_command(const hf_command *commands, const char *word, const char *next,
                        char out[HF_SUGGEST_SIZE])
{
    found f = {.prefix = ""};
    char pair[PAIR_SIZE], group[PAIR_SIZE] = "";
    if (*next != '\0') {
        (void)snprintf(pair, sizeof pair, "%.40s %.40s", word, next);
        look_for(&f, commands, pair);
        (void)snprintf(pair, sizeof pair, "%.40s %.40s", next, word);
        look_for(&f, commands, pair);
    }
    if (*word != '\0')
        look_for(&f, commands, word);
    if (f.n == 0)
        add_group(&f, commands, word, group);
    tell(&f, out);
}

/* ---- options ---- */

typedef bool matcher(const hf_opt *opt, const char *word, size_t len);

static bool is_alike(const hf_opt *opt, const char *word, size_t len)
{
    return hf_words_have(opt->alike, word, len);
}

static bool is_longer(const hf_opt *opt, const char *word, size_t len)
{
    return len > 1 && strncmp(opt->name, word, len) == 0;
}

static void add_options(found *f, const hf_opt *opts, const char *word, matcher *match)
{
    for (; opts != NULL && opts->name != NULL; opts++) {
        if (!opts->hidden && match(opts, word, strcspn(word, "=")))
            add(f, opts->name);
    }
}

static const char *nearest_option(const hf_opt *opts, const hf_opt *more,
                                  const char *word)
{
    const char *best = NULL;
    size_t best_distance = limit(strcspn(word, "="));
    for (int list = 0; list < 2; list++) {
        for (const hf_opt *at = list == 0 ? opts : more; at != NULL && at->name != NULL;
             at++) {
            size_t d = distance(word, strcspn(word, "="), at->name, strlen(at->name));
            if (!at->hidden && d < best_distance) {
                best = at->name;
                best_distance = d;
            }
        }
    }
    return best;
}

void hf_suggest_option(const hf_opt *opts, const hf_opt *more, const char *word,
                       char out[HF_SUGGEST_SIZE])
{
    static matcher *const ways[] = {is_alike, is_longer};
    found f = {.prefix = "--"};
    word += strspn(word, "-");
    for (size_t i = 0; i < sizeof ways / sizeof ways[0] && f.n == 0; i++) {
        add_options(&f, opts, word, ways[i]);
        add_options(&f, more, word, ways[i]);
    }
    const char *near = f.n == 0 ? nearest_option(opts, more, word) : NULL;
    if (near != NULL)
        add(&f, near);
    tell(&f, out);
}
