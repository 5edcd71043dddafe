/* greet.h - from a connection to READY: login, database, properties of the server. For
 * the other files of a client (client_state.h). */
#ifndef HF_REDIS_GREET_H
#define HF_REDIS_GREET_H

#include "redis/client_state.h"

/* Sends the greeting; in the end the client is READY, or lost. */
void hf_greet_begin(hf_client *client);

#endif
