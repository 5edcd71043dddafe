/* greet.h - from a connection to READY: login, database, properties of the server. For
 * the other files of a client (conn.h). */
#ifndef HF_REDIS_GREET_H
#define HF_REDIS_GREET_H

#include "redis/conn.h"

/* Sends the greeting; in the end the client is READY, or lost. */
void hf_greet_begin(hf_client *client);

#endif
