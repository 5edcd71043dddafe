/* groups.c - see groups.h. */
#include "top/groups.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "seen/words.h"

enum { ID_DIGITS = 8 };

/* The digits of a number, or the hexadecimal ones of an id, at the beginning of a word.
 */
static size_t span_of(const char *text, int (*is)(int))
{
    size_t n = 0;
    while (is((unsigned char)text[n]) != 0)
        n++;
    return n;
}

/* In place: no text gets longer. */
static void generalize(char *text)
{
    char *to = text;
    bool in_word = false;
    while (*text != '\0') {
        const size_t hex = in_word ? 0 : span_of(text, isxdigit);
        const size_t digits = span_of(text, isdigit);
        if (hex >= ID_DIGITS && isalnum((unsigned char)text[hex]) == 0) {
            *to++ = '*';
            text += hex;
        } else if (digits > 0) {
            *to++ = '#';
            text += digits;
        } else {
            in_word = isalnum((unsigned char)*text) != 0;
            *to++ = *text++;
        }
    }
    *to = '\0';
}

static hf_top_group *find(hf_top_groups *groups, uint64_t hash)
{
    for (size_t i = 0; i < groups->n; i++)
        if (groups->at[i].hash == hash)
            return &groups->at[i];
    return NULL;
}

static uint64_t hash_of(const hf_top_group *g)
{
    uint64_t hash = hf_hash_text(HF_HASH_START, g->queue);
    hash = hf_hash_text(hf_hash_text(hash, " "), g->type);
    hash = hf_hash_text(hf_hash_text(hash, " "), g->reason);
    return hf_hash_text(hf_hash_text(hash, " "), g->error);
}

bool hf_top_groups_add(hf_top_groups *groups, const hf_job_info *job)
{
    hf_top_group one = {.jobs = 0};
    groups->looked_at++;
    memcpy(one.queue, job->queue, sizeof one.queue);
    memcpy(one.type, job->type, sizeof one.type);
    memcpy(one.reason, job->reason, sizeof one.reason);
    (void)hf_words_line(hf_text_gist(job->error), one.error, sizeof one.error);
    generalize(one.error);
    one.hash = hash_of(&one);
    if (groups->at == NULL)
        groups->at = calloc(HF_GROUPS_MAX, sizeof *groups->at);
    if (groups->at == NULL)
        return false;
    hf_top_group *g = find(groups, one.hash);
    if (g == NULL && groups->n >= HF_GROUPS_MAX - 1) {
        one = (hf_top_group){.error = "other errors"};
        one.hash = hash_of(&one);
        g = find(groups, one.hash);
    }
    if (g == NULL) {
        g = &groups->at[groups->n++];
        *g = one;
    }
    g->jobs++;
    if (g->first_ms == 0 || job->due_ms < g->first_ms)
        g->first_ms = job->due_ms;
    if (job->due_ms >= g->last_ms) {
        g->last_ms = job->due_ms;
        memcpy(g->last_id, job->id, sizeof g->last_id);
        if (g->queue[0] == '\0')
            g->last_id[0] = '\0'; /* it is one of many kinds */
    }
    return true;
}

void hf_top_groups_done(hf_top_groups *groups)
{
    free(groups->at);
    *groups = (hf_top_groups){0};
}
