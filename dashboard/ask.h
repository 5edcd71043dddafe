/* ask.h - a question of the API: what was asked, and what Redis answered. The poller
 * answers it, and the loop sends the answer. */
#ifndef HF_DASHBOARD_ASK_H
#define HF_DASHBOARD_ASK_H

#include <jansson.h>

#include "dashboard/auth.h"
#include "dashboard/poller.h"
#include "dashboard/target.h"

typedef struct hf_query hf_query;

/* Answers by hf_ask_give(), hf_ask_bytes() or hf_ask_refuse(), and returns HF_OK; else
 * its fault is the answer, with r->detail. */
typedef hf_err (*hf_ask_run)(hf_query *ask, hf_reader *r);

enum { HF_ASK_ARGS = 3, HF_ASK_WHO = 96, HF_ASK_NAME = 160 };

struct hf_query {
    hf_poll_task task;
    hf_ask_run run;
    hf_http_target target;         /* owned */
    const char *args[HF_ASK_ARGS]; /* what stood in the places of the route */
    json_t *body;                  /* owned: of a change, an object; else NULL */
    const char *what;              /* a change, for the log: "pause"; else NULL */
    hf_role role;
    bool may_change; /* the dashboard allows it, and the role */
    char who[HF_ASK_WHO];
    bool open_metrics; /* the reader prefers OpenMetrics */
    bool away_is_fine; /* the answer is useful even without Redis */
    uint64_t place[2]; /* of a topic: where its last answer ended; and then this one */
    /* The answer. */
    unsigned status;
    char *text; /* owned */
    size_t len;
    const char *type;       /* static */
    char file[HF_ASK_NAME]; /* the name that a browser saves it under, or "" */
    void (*told)(hf_query *ask, bool dropped); /* on the loop; ends it by hf_ask_free() */
    void *owner;
};

/* `task` is ready to be submitted then. NULL: no memory. */
hf_query *hf_ask_new(hf_ask_run run, void (*told)(hf_query *ask, bool dropped),
                     void *owner);
void hf_ask_free(hf_query *ask);

/* Takes the object over, and adds now_ms and age_ms. */
hf_err hf_ask_give(hf_query *ask, const hf_reader *r, json_t *object, int64_t age_ms);
hf_err hf_ask_refuse(hf_query *ask, unsigned status, const char *code, const char *format,
                     ...) __attribute__((format(printf, 4, 5)));
/* Takes the bytes over. */
hf_err hf_ask_bytes(hf_query *ask, char *bytes, size_t len, const char *type,
                    const char *file_end);

/* A list: takes `items` over. next: "" at the end. */
hf_err hf_ask_list(hf_query *ask, const hf_reader *r, json_t *items, const char *next,
                   size_t looked_at);

/* The parameter, which is a name; NULL: not given. *good false: it is none, and that is
 * the answer. */
const char *hf_ask_name(hf_query *ask, const char *param, bool *good);
/* ?limit= of 1..200. 0: it is none, and that is the answer. */
size_t hf_ask_limit(hf_query *ask);
const char *hf_ask_param(const hf_query *ask, const char *name);

/* Of the body of a change; NULL: there is no such text. */
const char *hf_ask_text(const hf_query *ask, const char *name);
/* A null is as if it were not given. */
bool hf_ask_has(const hf_query *ask, const char *name);
bool hf_ask_integer(const hf_query *ask, const char *name, int64_t min, int64_t max,
                    int64_t otherwise, int64_t *out);

#endif
