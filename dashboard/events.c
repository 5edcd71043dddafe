/* events.c - see events.h. */
#include "dashboard/events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/id.h"

enum {
    TURN_MS = 1000,
    LIVE_MS = 4000, /* an unchanged topic is sent again: the window sees that it lives */
    PING_MS = 15000,
    NAME = HF_ID_SIZE + 16
};

typedef struct topic {
    struct topic *next;
    hf_events *events;
    const hf_topic_kind *kind;
    char name[NAME]; /* as it was asked for */
    size_t viewers;
    bool asked;        /* the poller has the question */
    char *text;        /* owned: the newest state; NULL: none yet */
    const char *event; /* static: what it is sent as */
    uint64_t print;    /* of the text, without its clocks */
    uint64_t number;   /* rises with each state to send */
    uint64_t sent_ns;
    uint64_t place[2]; /* as hf_query has it */
} topic;

typedef struct viewer {
    struct viewer *next;
    hf_events *events;
    hf_stream *stream;
    topic *topics[HF_EVENTS_TOPICS];
    uint64_t sent[HF_EVENTS_TOPICS]; /* their numbers */
    size_t n;
    bool begun, ping;
    uint64_t wrote_ns;
} viewer;

struct hf_events {
    hf_poller *poller;
    const hf_topic_kind *kinds;
    uv_timer_t timer;
    topic *topics;
    viewer *viewers;
    size_t n;
};

/* ---- topics ---- */

static void topic_free(topic *t)
{
    topic **at = &t->events->topics;
    while (*at != t)
        at = &(*at)->next;
    *at = t->next;
    free(t->text);
    free(t);
}

static void topic_leave(topic *t)
{
    if (--t->viewers == 0 && !t->asked)
        topic_free(t);
}

/* FNV-1a of a text, without the numbers that always change. */
static uint64_t print_of(const char *text)
{
    static const char *const clocks[] = {
        "\"now_ms\":", "\"age_ms\":", "\"look\":", "\"from_look\":"};
    uint64_t print = UINT64_C(14695981039346656037);
    for (; *text != '\0'; text++) {
        for (size_t i = 0; i < HF_COUNT(clocks) && *text == '"'; i++) {
            size_t len = strlen(clocks[i]);
            if (strncmp(text, clocks[i], len) == 0)
                text += len + strspn(text + len, "-0123456789");
        }
        print = (print ^ (unsigned char)*text) * UINT64_C(1099511628211);
    }
    return print;
}

static void wake_viewers(const topic *t)
{
    for (viewer *v = t->events->viewers; v != NULL; v = v->next)
        for (size_t i = 0; i < v->n; i++)
            if (v->topics[i] == t)
                hf_stream_wake(v->stream);
}

static void take_state(topic *t, hf_query *ask)
{
    const char *event = ask->status == 200   ? t->kind->word
                        : ask->status == 503 ? "away"
                                             : "error";
    const uint64_t print = print_of(ask->text), now = hf_boot_ns();
    if (t->text != NULL && print == t->print && event == t->event &&
        now - t->sent_ns < LIVE_MS * HF_MS_NS)
        return;
    free(t->text);
    t->text = ask->text;
    ask->text = NULL;
    t->event = event;
    t->print = print;
    t->sent_ns = now;
    t->number++;
    wake_viewers(t);
}

static void on_told(hf_query *ask, bool dropped)
{
    topic *t = ask->owner;
    t->asked = false;
    memcpy(t->place, ask->place, sizeof t->place);
    if (!dropped && ask->text != NULL && t->viewers > 0)
        take_state(t, ask);
    if (t->viewers == 0)
        topic_free(t);
    hf_ask_free(ask);
}

static void ask_for(topic *t)
{
    hf_query *ask = t->asked ? NULL : hf_ask_new(t->kind->run, on_told, t);
    if (ask == NULL)
        return;
    ask->away_is_fine = t->kind->away_is_fine;
    memcpy(ask->place, t->place, sizeof ask->place);
    if (t->kind->named) {
        ask->target.text = strdup(strchr(t->name, ':') + 1);
        ask->args[0] = ask->target.text;
    }
    t->asked = (!t->kind->named || ask->args[0] != NULL) &&
               hf_poller_submit(t->events->poller, &ask->task);
    if (!t->asked)
        hf_ask_free(ask);
}

static const hf_topic_kind *kind_of(const hf_events *e, const char *name)
{
    const char *colon = strchr(name, ':');
    size_t len = colon == NULL ? strlen(name) : (size_t)(colon - name);
    for (const hf_topic_kind *k = e->kinds; k->word != NULL; k++)
        if (strlen(k->word) == len && strncmp(k->word, name, len) == 0 &&
            k->named == (colon != NULL) && (colon == NULL || hf_name_ok(colon + 1)))
            return k;
    return NULL;
}

/* NULL: it is not known, or there is no memory. */
static topic *topic_of(hf_events *e, const char *name)
{
    const hf_topic_kind *kind = kind_of(e, name);
    for (topic *t = e->topics; t != NULL; t = t->next)
        if (strcmp(t->name, name) == 0)
            return t;
    topic *t = kind == NULL ? NULL : calloc(1, sizeof *t);
    if (t == NULL)
        return NULL;
    *t = (topic){.next = e->topics, .events = e, .kind = kind};
    (void)snprintf(t->name, sizeof t->name, "%s", name);
    e->topics = t;
    return t;
}

/* ---- viewers ---- */

static bool fill(hf_buf *out, void *arg)
{
    viewer *v = arg;
    if (!v->begun)
        hf_buf_text(out, "retry: 2000\n\n");
    v->begun = true;
    for (size_t i = 0; i < v->n; i++) {
        const topic *t = v->topics[i];
        if (t->text == NULL || v->sent[i] == t->number)
            continue;
        hf_buf_printf(out, "event: %s\ndata: ", t->event);
        hf_buf_text(out, t->text);
        hf_buf_text(out, "\n\n");
        v->sent[i] = t->number;
    }
    if (v->ping && out->len == 0)
        hf_buf_text(out, ": ping\n\n");
    v->ping = false;
    if (hf_buf_err(out) != HF_OK)
        hf_buf_clear(out); /* too large: it is skipped */
    if (out->len > 0)
        v->wrote_ns = hf_boot_ns();
    return out->len > 0;
}

static void on_gone(void *arg)
{
    viewer *v = arg;
    hf_events *e = v->events;
    viewer **at = &e->viewers;
    while (*at != v)
        at = &(*at)->next;
    *at = v->next;
    e->n--;
    for (size_t i = 0; i < v->n; i++)
        topic_leave(v->topics[i]);
    if (e->n == 0)
        (void)uv_timer_stop(&e->timer);
    free(v);
}

/* NULL: it is not known, or the viewer has it, or no room for it. */
static const topic *add_topic(viewer *v, const char *name)
{
    topic *t = v->n < HF_EVENTS_TOPICS ? topic_of(v->events, name) : NULL;
    for (size_t i = 0; i < v->n; i++)
        if (v->topics[i] == t)
            return NULL;
    if (t == NULL)
        return NULL;
    t->viewers++;
    v->topics[v->n++] = t;
    return t;
}

static void add_topics(viewer *v, const char *names)
{
    char name[NAME];
    for (const char *at = names; *at != '\0';) {
        size_t len = strcspn(at, ",");
        const topic *t = NULL;
        if (len < sizeof name) {
            (void)snprintf(name, sizeof name, "%.*s", (int)len, at);
            t = add_topic(v, name);
        }
        if (t != NULL && t->kind->with != NULL) {
            (void)snprintf(name, sizeof name, "%s%s", t->kind->with,
                           strchr(t->name, ':'));
            (void)add_topic(v, name);
        }
        at += len + (at[len] == ',' ? 1 : 0);
    }
}

static void on_turn(uv_timer_t *timer)
{
    hf_events *e = timer->data;
    const uint64_t now = hf_boot_ns();
    for (topic *t = e->topics; t != NULL; t = t->next)
        if (t->viewers > 0)
            ask_for(t);
    for (viewer *v = e->viewers; v != NULL; v = v->next) {
        if (now - v->wrote_ns < PING_MS * HF_MS_NS)
            continue;
        v->ping = true;
        hf_stream_wake(v->stream);
    }
}

bool hf_events_view(hf_events *e, hf_conn *conn, const char *topics)
{
    viewer *v = e->n >= HF_EVENTS_STREAMS ? NULL : calloc(1, sizeof *v);
    if (v == NULL)
        return false;
    *v = (viewer){.next = e->viewers, .events = e, .wrote_ns = hf_boot_ns()};
    e->viewers = v;
    e->n++;
    add_topics(v, topics);
    const hf_stream_source source = {fill, on_gone, v};
    if (v->n > 0)
        v->stream = hf_conn_stream(conn, "text/event-stream", &source);
    if (v->stream == NULL) {
        on_gone(v);
        return false;
    }
    for (size_t i = 0; i < v->n; i++)
        if (v->topics[i]->text == NULL)
            ask_for(v->topics[i]);
    if (!uv_is_active((uv_handle_t *)&e->timer))
        (void)uv_timer_start(&e->timer, on_turn, TURN_MS, TURN_MS);
    return true;
}

/* ---- open and close ---- */

hf_err hf_events_open(hf_events **out, uv_loop_t *loop, hf_poller *poller,
                      const hf_topic_kind *kinds)
{
    hf_events *e = calloc(1, sizeof *e);
    if (e == NULL)
        return HF_NOMEM;
    *e = (hf_events){.poller = poller, .kinds = kinds};
    (void)uv_timer_init(loop, &e->timer);
    e->timer.data = e;
    *out = e;
    return HF_OK;
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void hf_events_close(hf_events *e)
{
    if (e == NULL)
        return;
    for (topic *t = e->topics, *next; t != NULL; t = next) {
        next = t->next;
        topic_free(t);
    }
    uv_close((uv_handle_t *)&e->timer, on_closed);
}
