/* feed.h - the thread that reads while the terminal is drawn. It asks Redis for at most
 * 100 scripts a second: what is looked at in each interval, the rest in turn. */
#ifndef HF_TOP_FEED_H
#define HF_TOP_FEED_H

#include "top/reader.h"

typedef struct hf_feed hf_feed;

/* HF_NOMEM, HF_SYSTEM. The reader is used by the thread until the feed is closed; its
 * model under its mutex by both. */
HF_MUSTCHECK hf_err hf_feed_open(hf_feed **out, hf_top_reader *reader);
/* Lets the thread end. False: it still waits for Redis after `ms`, and everything stays
 * in use: the process ends without more ado. */
bool hf_feed_close(hf_feed *feed, uint32_t ms);

/* Becomes readable when there is something new; hf_feed_seen() empties it. */
int hf_feed_fd(const hf_feed *feed);
void hf_feed_seen(hf_feed *feed);

/* What is looked at now. Something new is read at once. */
void hf_feed_want(hf_feed *feed, const hf_want *want);

/* Has a change made; the model's notice tells what came of it. */
void hf_feed_change(hf_feed *feed, const hf_change *change);

#endif
