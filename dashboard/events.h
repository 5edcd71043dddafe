/* events.h - server-sent events: topics that windows look at. Each topic is read once a
 * second for all of its viewers, and only while it has some. A slow reader gets the
 * newest state, never what it missed. */
#ifndef HF_DASHBOARD_EVENTS_H
#define HF_DASHBOARD_EVENTS_H

#include "dashboard/ask.h"
#include "dashboard/http.h"

typedef struct hf_events hf_events;

enum { HF_EVENTS_STREAMS = 64, HF_EVENTS_TOPICS = 8 };

/* A topic of one word, as "overview", or of a word and a name, as "queue:mail", which is
 * the first argument of `run`. The last kind has no word. */
typedef struct hf_topic_kind {
    const char *word;
    bool named;
    hf_ask_run run;
    const char *with;  /* the word of another topic of this name that comes with it */
    bool away_is_fine; /* it is read without Redis, too */
} hf_topic_kind;

/* All is borrowed. HF_NOMEM. */
HF_MUSTCHECK hf_err hf_events_open(hf_events **out, uv_loop_t *loop, hf_poller *poller,
                                   const hf_topic_kind *kinds);
/* After the streams and the poller have ended. The loop has to turn once more. */
void hf_events_close(hf_events *events);

/* Answers the request with a stream of these topics, with commas between; topics that are
 * not known are left out. False: none is known, or there are too many streams. */
bool hf_events_view(hf_events *events, hf_conn *conn, const char *topics);

#endif
