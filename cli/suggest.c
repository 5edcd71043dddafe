/* suggest.c - see suggest.h. */
#include "cli/suggest.h"

#include <string.h>

enum { WORD_MAX = 40, FAR = 3 };

/* Of a short word fewer letters may be wrong, or it is another word. */
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

/* As near as the best so far, but longer the same from the start. */
static bool begins_better(const char *word, const char *name, const char *best)
{
    size_t i = 0;
    while (best != NULL && word[i] != '\0' && word[i] == name[i] && word[i] == best[i])
        i++;
    return best != NULL && word[i] != '\0' && word[i] == name[i];
}

const char *hf_suggest_command(const hf_command *commands, const char *word)
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
    return best;
}

const char *hf_suggest_option(const hf_opt *opts, const hf_opt *more, const char *word)
{
    const char *best = NULL;
    word += strspn(word, "-");
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
