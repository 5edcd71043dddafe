/* resolve.c - redis/resolve.h.
 *
 * Two sides share a `lookup`: the loop, which has the uv_async_t, and the thread, which
 * may be stuck in getaddrinfo() for half a minute. The last one to finish frees it.
 */
#include "redis/resolve.h"

#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/base.h"

typedef struct lookup {
    pthread_mutex_t mutex;
    int sides;        /* 2, then 1; freed at 0 */
    uv_async_t *wake; /* borrowed from the loop's side; NULL once that has gone */
    char host[HF_URL_HOST_MAX + 1];
    uint16_t port;
    hf_addresses found;
    const char *why; /* static text of getaddrinfo; NULL: found */
} lookup;

struct hf_resolve {
    uv_async_t wake;
    lookup *shared;
    const hf_resolve_hooks *hooks;
    void *owner;
};

static void let_go(lookup *l)
{
    HF_ASSERT(pthread_mutex_lock(&l->mutex) == 0);
    int left = --l->sides;
    HF_ASSERT(pthread_mutex_unlock(&l->mutex) == 0);
    if (left > 0)
        return;
    pthread_mutex_destroy(&l->mutex);
    free(l);
}

static int look_up(const char *host, uint16_t port, int flags, hf_addresses *out)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC,
                                   .ai_socktype = SOCK_STREAM,
                                   .ai_flags = flags | AI_NUMERICSERV};
    char service[8];
    snprintf(service, sizeof service, "%u", port);
    struct addrinfo *list = NULL;
    out->n = 0;
    int code = getaddrinfo(host, service, &hints, &list);
    if (code != 0)
        return code;
    for (const struct addrinfo *a = list; a != NULL && out->n < HF_ADDRESSES_MAX;
         a = a->ai_next) {
        hf_address *address = &out->at[out->n++];
        memcpy(&address->any, a->ai_addr, a->ai_addrlen);
        address->len = a->ai_addrlen;
    }
    freeaddrinfo(list);
    return 0;
}

void hf_resolve_path(const char *path, hf_addresses *out)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    HF_ASSERT(strlen(path) < sizeof to.sun_path);
    memcpy(to.sun_path, path, strlen(path));
    *out = (hf_addresses){.n = 1};
    memcpy(&out->at[0].any, &to, sizeof to);
    out->at[0].len = sizeof to;
}

bool hf_resolve_at_once(const hf_place *place, hf_addresses *out)
{
    return look_up(place->host, place->port, AI_NUMERICHOST, out) == 0;
}

static void *run(void *arg)
{
    lookup *l = arg;
    /* Nobody reads these two before the async has been sent. */
    int code = look_up(l->host, l->port, 0, &l->found);
    l->why = code == 0 ? NULL : gai_strerror(code);
    HF_ASSERT(pthread_mutex_lock(&l->mutex) == 0);
    if (l->wake != NULL)
        uv_async_send(l->wake);
    HF_ASSERT(pthread_mutex_unlock(&l->mutex) == 0);
    let_go(l);
    return NULL;
}

/* All signals are blocked in it: the host's handlers are not for a thread it does not
 * know. */
static hf_err start_thread(lookup *l)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_attr_t attr;
    if (pthread_attr_init(&attr) != 0)
        return HF_NOMEM;
    HF_ASSERT(pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED) == 0);
    HF_ASSERT(pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
    pthread_t thread;
    int code = pthread_create(&thread, &attr, run, l);
    HF_ASSERT(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
    pthread_attr_destroy(&attr);
    return code == 0 ? HF_OK : HF_SYSTEM;
}

static void on_closed(uv_handle_t *handle)
{
    hf_resolve *r = handle->data;
    const hf_resolve_hooks *hooks = r->hooks;
    void *owner = r->owner;
    free(r);
    hooks->on_closed(owner);
}

static void on_wake(uv_async_t *wake)
{
    hf_resolve *r = wake->data;
    lookup *l = r->shared;
    if (l == NULL)
        return; /* dropped in this same turn */
    r->shared = NULL;
    /* The thread still holds the mutex, or has let go of it; either way it is done. */
    HF_ASSERT(pthread_mutex_lock(&l->mutex) == 0);
    l->wake = NULL;
    HF_ASSERT(pthread_mutex_unlock(&l->mutex) == 0);
    uv_close((uv_handle_t *)&r->wake, on_closed);
    r->hooks->on_done(r->owner, &l->found, l->why);
    let_go(l);
}

hf_err hf_resolve_start(hf_resolve **out, uv_loop_t *loop, const hf_place *place,
                        const hf_resolve_hooks *hooks, void *owner)
{
    hf_resolve *r = calloc(1, sizeof *r);
    lookup *l = calloc(1, sizeof *l);
    if (r == NULL || l == NULL || pthread_mutex_init(&l->mutex, NULL) != 0) {
        free(r);
        free(l);
        return HF_NOMEM;
    }
    *r = (hf_resolve){.shared = l, .hooks = hooks, .owner = owner};
    l->sides = 2;
    l->port = place->port;
    snprintf(l->host, sizeof l->host, "%s", place->host);
    /* The thread comes first, because a handle that was initialised could not simply be
     * freed if it failed; the mutex keeps it from asking for `wake` before there is one.
     */
    HF_ASSERT(pthread_mutex_lock(&l->mutex) == 0);
    hf_err err = start_thread(l);
    if (err != HF_OK)
        l->sides = 1;
    else if (uv_async_init(loop, &r->wake, on_wake) != 0)
        err = HF_SYSTEM;
    else
        l->wake = &r->wake;
    HF_ASSERT(pthread_mutex_unlock(&l->mutex) == 0);
    if (err != HF_OK) {
        let_go(l);
        free(r);
        return err;
    }
    r->wake.data = r;
    *out = r;
    return HF_OK;
}

void hf_resolve_drop(hf_resolve *resolve)
{
    lookup *l = resolve->shared;
    HF_ASSERT(l != NULL);
    resolve->shared = NULL;
    HF_ASSERT(pthread_mutex_lock(&l->mutex) == 0);
    l->wake = NULL;
    HF_ASSERT(pthread_mutex_unlock(&l->mutex) == 0);
    uv_close((uv_handle_t *)&resolve->wake, on_closed);
    let_go(l);
}
