/* resolve.h - the addresses of a host name, found without holding up the loop.
 *
 * A look-up runs in a thread of its own, not in libuv's pool: the pool has four threads,
 * is shared with the whole process, and a name server that does not answer would fill it.
 * No caller waits for that thread: when a look-up is given up, its result is dropped. */
#ifndef HF_REDIS_RESOLVE_H
#define HF_REDIS_RESOLVE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include <uv.h>

#include "holdfast/error.h"
#include "redis/url.h"

enum { HF_ADDRESSES_MAX = 16 };

/* The address of a TCP server or of a unix socket. */
typedef struct hf_address {
    struct sockaddr_storage any;
    socklen_t len;
} hf_address;

typedef struct hf_addresses {
    size_t n;
    hf_address at[HF_ADDRESSES_MAX];
} hf_addresses;

typedef struct hf_resolve hf_resolve;

typedef struct hf_resolve_hooks {
    /* Once, on the loop's thread, unless it was dropped. `why` is NULL if it went well.
     */
    void (*on_done)(void *owner, const hf_addresses *found, const char *why);
    /* Once, when it is gone, after on_done or after a drop. */
    void (*on_closed)(void *owner);
} hf_resolve_hooks;

/* The one address of a unix socket. */
void hf_resolve_path(const char *path, hf_addresses *out);

/* True for a host that is an address and needs no look-up. */
bool hf_resolve_at_once(const hf_place *place, hf_addresses *out);

/* HF_NOMEM, HF_SYSTEM: no thread could be started, and no hook is called. It frees itself
 * after on_done. */
HF_MUSTCHECK hf_err hf_resolve_start(hf_resolve **out, uv_loop_t *loop,
                                     const hf_place *place, const hf_resolve_hooks *hooks,
                                     void *owner);

/* Gives it up: only on_closed will be called, at the end of this turn of the loop. */
void hf_resolve_drop(hf_resolve *resolve);

#endif
