/* client_fixture.h - a client on a loop of its own, for tests of the client itself: the
 * loop runs until something is true, and every answer is counted. */
#ifndef HF_TESTS_CLIENT_FIXTURE_H
#define HF_TESTS_CLIENT_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <uv.h>

#include "redis/request.h"
#include "redis/server.h"
#include "tests/support/eventually.h"

/* What happened to one request. */
typedef struct hf_asked {
    unsigned answers; /* how often the callback ran: 0 or 1, or the client is broken */
    hf_err err;
    int64_t number;
    char text[128]; /* cut */
    char detail[HF_DETAIL_SIZE];
    uint64_t sent_ns;
    void (*then)(struct hf_asked *asked); /* inside the callback; may be NULL */
    void *data;                           /* for `then` */
} hf_asked;

typedef struct hf_client_fixture {
    uv_loop_t loop;
    uv_timer_t tick; /* so that a turn of the loop never waits for long */
    hf_client *client;
    hf_client_opts opts;
    unsigned ready, lost; /* events of each kind */
    hf_err err;           /* of the last event */
    char detail[HF_DETAIL_SIZE];
    void (*on_event)(
        struct hf_client_fixture *fixture); /* inside the callback; may be NULL */
    bool closed;
} hf_client_fixture;

/* Opens a client; `opts` may be NULL, and its loop and callback are the fixture's. The
 * URL does not count if there is opts->redis. */
void hf_client_fixture_open(hf_client_fixture *fixture, const char *url,
                            const hf_client_opts *opts);
void hf_client_fixture_open_to(hf_client_fixture *fixture, const hf_server_opts *server);
/* Closes it, unless the test did, and fails if anything is left on the loop. */
void hf_client_fixture_close(hf_client_fixture *fixture);
/* For a test that calls hf_client_close() itself. */
void hf_client_fixture_on_closed(void *fixture);

/* Opens a client and waits until it is ready. */
void hf_client_fixture_connect(hf_client_fixture *fixture, const char *url);

/* One command, its words separated by single spaces. `asked` must live until the answer.
 */
HF_MUSTCHECK hf_err hf_ask(hf_client_fixture *fixture, hf_asked *asked,
                           uint32_t timeout_ms, const char *words);
void hf_on_asked(const hf_answer *answer, void *asked);

/* Asks and waits for the answer. The text is that of the answer, or the detail. */
const char *hf_ask_now(hf_client_fixture *fixture, hf_asked *asked, const char *words);

/* Runs the loop until `cond` is true; fails the test after `ms`. */
#define RUN_UNTIL(fixture, ms, cond)                                                     \
    do {                                                                                 \
        const uint64_t run_until = hf_test_fair_ms() + (uint64_t)(ms);                   \
        while (!(cond)) {                                                                \
            if (hf_test_fair_ms() >= run_until)                                          \
                fail_msg("not within %u ms: %s (last: %s)", (unsigned)(ms), #cond,       \
                         (fixture)->detail);                                             \
            uv_run(&(fixture)->loop, UV_RUN_ONCE);                                       \
        }                                                                                \
    } while (0)

#endif
