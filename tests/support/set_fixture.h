/* set_fixture.h - several private servers, each with a proxy before it, and clients of
 * all of them, for tests of locks over several servers. */
#ifndef HF_TESTS_SET_FIXTURE_H
#define HF_TESTS_SET_FIXTURE_H

#include <stdatomic.h>

#include <uv.h>

#include "holdfast/lock_set.h"
#include "tests/support/eventually.h"
#include "tests/support/proxy.h"
#include "tests/support/redis_fixture.h"

enum { HF_SET_SERVERS = 5 };

typedef struct hf_set_fixture {
    size_t n;
    uint32_t request_timeout_ms; /* of clients that are opened; 0: the default */
    hf_fixture redis[HF_SET_SERVERS];
    hf_proxy proxy[HF_SET_SERVERS];
    const char *urls[HF_SET_SERVERS];    /* of the servers */
    const char *proxied[HF_SET_SERVERS]; /* of the proxies */
    char detail[HF_DETAIL_SIZE];
    atomic_uint suspect, held, revoked, lost; /* events */
    atomic_size_t member;                     /* of the last one */
} hf_set_fixture;

/* Before all tests of a program and after them, in its main(). n servers; persistent ones
 * keep everything when they are killed. */
void hf_set_fixture_up(hf_set_fixture *fixture, size_t n, bool persistent);
void hf_set_fixture_down(hf_set_fixture *fixture);
/* For each test: all servers run and are empty, the proxies pass, no event was seen. */
void hf_set_fixture_begin(hf_set_fixture *fixture);

/* A client with a thread of its own, of the first n servers, or of their proxies. */
hf_lock_servers *hf_set_fixture_open(hf_set_fixture *fixture, size_t n, bool proxied);

/* Counts events; arg is the fixture. */
void hf_set_fixture_on_event(hf_lock_set *set, hf_lock_event event, size_t member,
                             void *arg);

/* What the callbacks of a client on a loop of the test's have told; arg of each is one.
 */
typedef struct hf_set_told {
    hf_lock_set *set;
    int acquired, released, closed; /* how often */
    hf_err err;                     /* of the last that was acquired */
    size_t n;                       /* how many results the last release had */
    hf_lock_release_result result;
} hf_set_told;

void hf_set_on_acquired(hf_lock_set *set, hf_err err, const char *detail, void *arg);
void hf_set_on_released(hf_lock_set *set, hf_lock_release_result result,
                        const hf_lock_release_result *each, size_t n, void *arg);
void hf_set_on_closed(void *arg);
/* Does what the loop has to do at once; true, so that it fits in EVENTUALLY(). */
bool hf_set_turn(uv_loop_t *loop);

/* What server i has as the cell or the line of a lock whose name is its tag. */
bool hf_set_fixture_has(hf_set_fixture *fixture, size_t i, const char *name);
/* On how many of the first n it is. */
size_t hf_set_fixture_count(hf_set_fixture *fixture, size_t n, const char *name);

#endif
