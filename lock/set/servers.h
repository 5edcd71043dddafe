/* servers.h - the client of several servers: a loop, and a client of locks for each
 * server on it. */
#ifndef HF_LOCK_SET_SERVERS_H
#define HF_LOCK_SET_SERVERS_H

#include "lock/set/set.h"

/* At the end of everything on the loop. */
void hf_servers_settle(hf_lock_servers *servers);

#endif
