/* connect.h - from nothing to a connection: Sentinels, names, addresses, deadlines,
 * back-off. For the other files of a client (conn.h). */
#ifndef HF_REDIS_CONNECT_H
#define HF_REDIS_CONNECT_H

#include "redis/conn.h"

void hf_connect_begin(hf_client *client);
void hf_connect_wait(hf_client *client);
/* The Sentinels have answered, or this connection is the one to watch them. */
void hf_connect_on_news(hf_client *client);
void hf_connect_on_timer(uv_timer_t *timer);

#endif
