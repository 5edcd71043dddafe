/* view.c - see view.h. */
#include "top/view.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/base.h"
#include "seen/offer.h"

/* What a row is sorted by. */
typedef struct place {
    double a, b;
    const char *name;
    size_t row;
    bool reverse;
} place;

void hf_view_init(hf_view *view)
{
    *view = (hf_view){.follow = true};
    for (size_t i = 0; i < HF_PAGES; i++)
        view->pages[i].sort = -1;
}

void hf_view_done(hf_view *view)
{
    free(view->order);
    view->order = NULL;
    view->n_order = view->cap_order = 0;
}

/* ---- the order of the rows ---- */

static int compare(const void *one, const void *other)
{
    const place *x = one, *y = other;
    const int sign = x->reverse ? -1 : 1;
    if (x->a != y->a)
        return x->a < y->a ? -sign : sign;
    if (x->b != y->b)
        return x->b < y->b ? -sign : sign;
    const int names = strcmp(x->name, y->name);
    return names != 0 ? sign * names : x->row < y->row ? -1 : 1;
}

static bool has_word(const char *text, const char *word)
{
    const size_t len = strlen(word);
    for (; *text != '\0'; text++)
        if (strncasecmp(text, word, len) == 0)
            return true;
    return len == 0;
}

static bool is_shown(const hf_view *view, const hf_model *model,
                     const hf_page_table *table, size_t row)
{
    char words[HF_SHOWN_SIZE];
    if (view->filter[0] == '\0')
        return true;
    table->words(model, row, words);
    return has_word(words, view->filter);
}

static place place_of(const hf_page_view *page, const hf_model *model,
                      const hf_page_table *table, size_t row)
{
    const hf_rank rank = table->rank(model, row);
    place at = {rank.a, rank.b, rank.name, row, page->reverse};
    if (page->sort < 0)
        return at;
    const hf_top_column *column = &table->columns[page->sort];
    at.a = column->number != NULL ? -column->number(model, row) : 0;
    at.b = 0;
    if (column->name != NULL)
        at.name = column->name(model, row);
    return at;
}

static bool has_room(hf_view *view, size_t n)
{
    if (n < view->cap_order)
        return true;
    size_t *order = realloc(view->order, (2 * n + 1) * sizeof *order);
    if (order == NULL)
        return false;
    view->order = order;
    view->cap_order = 2 * n + 1;
    return true;
}

static bool find_order(hf_view *view, const hf_model *model)
{
    const hf_page_table *table = hf_top_page_of(view->page);
    const size_t n = table->count(model);
    place *places = malloc((n + 1) * sizeof *places);
    bool enough = places != NULL && has_room(view, n);
    view->n_order = 0;
    for (size_t row = 0; row < n && enough; row++)
        if (is_shown(view, model, table, row))
            places[view->n_order++] = place_of(hf_view_page(view), model, table, row);
    if (enough && view->n_order > 1)
        qsort(places, view->n_order, sizeof *places, compare);
    for (size_t i = 0; i < view->n_order; i++)
        view->order[i] = places[i].row;
    free(places);
    return enough;
}

/* ---- the chosen row ---- */

bool hf_view_row(const hf_view *view, size_t *row)
{
    const size_t chosen = view->pages[view->page].chosen;
    if (chosen >= view->n_order)
        return false;
    *row = view->order[chosen];
    return true;
}

void hf_view_choose(hf_view *view, const hf_model *model, size_t at)
{
    hf_page_view *page = hf_view_page(view);
    size_t row;
    page->key[0] = '\0';
    page->chosen = at < view->n_order ? at : view->n_order > 0 ? view->n_order - 1 : 0;
    if (hf_view_row(view, &row))
        hf_top_page_of(view->page)->key(model, row, page->key);
}

bool hf_view_settle(hf_view *view, const hf_model *model)
{
    hf_page_view *page = hf_view_page(view);
    char key[HF_ROW_KEY];
    if (!find_order(view, model))
        return false;
    for (size_t i = 0; i < view->n_order && page->key[0] != '\0'; i++) {
        hf_top_page_of(view->page)->key(model, view->order[i], key);
        if (strcmp(key, page->key) == 0) {
            page->chosen = i;
            return true;
        }
    }
    hf_view_choose(view, model, page->chosen); /* it has gone */
    return true;
}

#define TAKE(to, from) ((void)snprintf(to, sizeof(to), "%s", from))

hf_subject hf_view_subject(const hf_view *view, const hf_model *model, hf_over over)
{
    hf_subject s = {.over = over, .page = view->page};
    size_t row;
    if (!hf_view_row(view, &row))
        return (hf_subject){.over = HF_OVER_NONE};
    switch (view->page) {
    case HF_PAGE_RUNNING:
        TAKE(s.queue, model->jobs[row].queue);
        TAKE(s.id, model->jobs[row].id);
        break;
    case HF_PAGE_DEAD:
        TAKE(s.queue, model->dead.at[row].queue);
        TAKE(s.id, model->dead.at[row].last_id);
        break;
    case HF_PAGE_WORKERS:
        TAKE(s.id, model->workers[row].id);
        break;
    case HF_PAGE_LOCKS:
        TAKE(s.id, model->locks[row].name);
        break;
    case HF_PAGE_TYPES:
        TAKE(s.queue, model->types[row].queue);
        TAKE(s.id, model->types[row].type);
        break;
    case HF_PAGE_OVERVIEW:
    case HF_PAGES:
    default:
        TAKE(s.queue, model->queues[row].stats.queue);
        break;
    }
    return s;
}

bool hf_subject_same(const hf_subject *a, const hf_subject *b)
{
    return a->over == b->over && a->page == b->page && strcmp(a->queue, b->queue) == 0 &&
           strcmp(a->id, b->id) == 0;
}

/* ---- changes ---- */

void hf_change_question(const hf_change *change, char out[HF_LINE_SIZE])
{
    const char *queue = change->queue, *id = change->id;
    switch (change->kind) {
    case HF_CHANGE_PAUSE:
        (void)snprintf(out, HF_LINE_SIZE, "Pause queue '%s'?", queue);
        break;
    case HF_CHANGE_RESUME:
        (void)snprintf(out, HF_LINE_SIZE, "Resume queue '%s'?", queue);
        break;
    case HF_CHANGE_CANCEL:
        (void)snprintf(out, HF_LINE_SIZE, "Cancel job '%s' of queue '%s'?", id, queue);
        break;
    case HF_CHANGE_RETRY:
        (void)snprintf(out, HF_LINE_SIZE, "Run job '%s' of queue '%s' now?", id, queue);
        break;
    case HF_CHANGE_RETRY_TYPE:
        (void)snprintf(out, HF_LINE_SIZE,
                       "Run all dead jobs of type '%s' in queue '%s' again?", id, queue);
        break;
    case HF_CHANGE_NONE:
    default:
        out[0] = '\0';
        break;
    }
}

void hf_change_command(const hf_change *change, char out[HF_LINE_SIZE])
{
    char of_type[HF_ID_SIZE + 16];
    const char *queue = change->queue, *id = change->id;
    switch (change->kind) {
    case HF_CHANGE_PAUSE:
        (void)hf_offer(out, "queue pause", queue, NULL, "");
        break;
    case HF_CHANGE_RESUME:
        (void)hf_offer(out, "queue resume", queue, NULL, "");
        break;
    case HF_CHANGE_CANCEL:
        (void)hf_offer(out, "job cancel", id, queue, "");
        break;
    case HF_CHANGE_RETRY:
        (void)hf_offer(out, "job retry", id, queue, "");
        break;
    case HF_CHANGE_RETRY_TYPE:
        (void)snprintf(of_type, sizeof of_type, " --type %s", id);
        (void)hf_offer(out, "dead retry", "", queue, of_type);
        break;
    case HF_CHANGE_NONE:
    default:
        out[0] = '\0';
        break;
    }
}
