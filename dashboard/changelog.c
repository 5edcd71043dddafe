/* changelog.c - see changelog.h. */
#include "dashboard/changelog.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli/out.h"

struct hf_changelog {
    pthread_mutex_t mutex;
    size_t n; /* ever */
    hf_changelog_entry last[HF_CHANGELOG_KEPT];
};

hf_changelog *hf_changelog_open(void)
{
    hf_changelog *log = calloc(1, sizeof *log);
    if (log == NULL || pthread_mutex_init(&log->mutex, NULL) == 0)
        return log;
    free(log);
    return NULL;
}

void hf_changelog_close(hf_changelog *log)
{
    if (log == NULL)
        return;
    (void)pthread_mutex_destroy(&log->mutex);
    free(log);
}

static void tell(const hf_changelog_entry *c)
{
    (void)fprintf(stderr, "holdfast-dashboard: change by=%s role=%s what=%s", c->by,
                  c->role, c->what);
    if (c->status != 0)
        (void)fprintf(stderr, " status=%u", c->status);
    (void)fprintf(stderr, " of=%s", c->of);
    if (c->status == 0)
        (void)fprintf(stderr, " result=%s", c->result);
    (void)fputc('\n', stderr);
}

void hf_changelog_add(hf_changelog *log, const hf_changelog_entry *change)
{
    hf_changelog_entry new = *change;
    new.at_ms = hf_wall_ms();
    hf_text_plain(new.by);
    hf_text_plain(new.of);
    hf_text_plain(new.result);
    tell(&new);
    (void)pthread_mutex_lock(&log->mutex);
    log->last[log->n++ % HF_CHANGELOG_KEPT] = new;
    (void)pthread_mutex_unlock(&log->mutex);
}

static json_t *object_of(const hf_changelog_entry *c, int64_t ahead_ms)
{
    return json_pack("{s:I, s:o, s:s, s:s, s:o, s:o, s:I}", "at_ms",
                     (json_int_t)c->at_ms + ahead_ms, "by", hf_out_text(c->by), "role",
                     c->role, "what", c->what, "of", hf_out_text(c->of), "result",
                     hf_out_text(c->result), "status", (json_int_t)c->status);
}

json_t *hf_changelog_objects(hf_changelog *log, int64_t ahead_ms)
{
    json_t *list = json_array();
    (void)pthread_mutex_lock(&log->mutex);
    for (size_t i = 0; i < log->n && i < HF_CHANGELOG_KEPT; i++)
        (void)json_array_append_new(
            list, object_of(&log->last[(log->n - 1 - i) % HF_CHANGELOG_KEPT], ahead_ms));
    (void)pthread_mutex_unlock(&log->mutex);
    return list;
}
