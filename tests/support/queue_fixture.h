/* queue_fixture.h - one queue on a private server, and the operations of queue/ops.h one
 * at a time: each call runs the loop until the answer is there, and leaves what it said
 * in the fixture.
 *
 * A fixture that is stopped checks the invariants over the whole queue first. */
#ifndef HF_TESTS_QUEUE_FIXTURE_H
#define HF_TESTS_QUEUE_FIXTURE_H

#include <uv.h>

#include "holdfast/admin.h"
#include "queue/ops.h"
#include "redis/server.h"
#include "tests/support/redis_fixture.h"

enum {
    HF_FIXTURE_JOBS = 1000,
    HF_FIXTURE_ERROR = 256,
    HF_FIXTURE_PAYLOAD = 64,
    HF_FIXTURE_LEASE_MS = 30000
};

/* A job as a claim gave it. */
typedef struct hf_queue_fixture_job {
    char id[HF_ID_SIZE], type[HF_ID_SIZE];
    int64_t due_ms;
    uint32_t crashes, attempts;
    bool ran_before;
    char error[HF_FIXTURE_ERROR];
    char payload[HF_FIXTURE_PAYLOAD]; /* as text, cut */
    size_t payload_len;
} hf_queue_fixture_job;

typedef struct hf_queue_fixture {
    hf_fixture redis;
    uv_loop_t loop;
    hf_server *server;
    hf_client *client;
    hf_queue queue;
    hf_admin *admin; /* of hf_queue_fixture_up_admin(); else NULL */
    uint64_t number; /* of the last claim */
    bool broken;     /* the test has broken an invariant by hand: no audit at the end */
    bool closed;

    /* Of the last answer: */
    hf_err err;
    char detail[HF_DETAIL_SIZE];
    int64_t now_ms;
    hf_err codes[HF_FIXTURE_JOBS];
    size_t n_codes;
    bool repeated, empty;
    char fence[32];
    int64_t next_ms;
    bool more;
    hf_queue_fixture_job jobs[HF_FIXTURE_JOBS];
    size_t n_jobs;
    hf_checked_queue checked[HF_SLOTS_MAX];
    hf_read_queue read;    /* of the last read */
    bool judges_by_itself; /* see hf_queue_fixture_judge() */
    size_t n_checked;
    bool *ready;                    /* the caller's, for a peek */
    const hf_queue *const *waiting; /* for their batons */
    size_t n_waiting;
    size_t which;  /* of them: whose baton was popped */
    int64_t at_ms; /* the baton's time */
    bool answered;
} hf_queue_fixture;

void hf_queue_fixture_start(hf_queue_fixture *fixture, const hf_fixture_options *options);
void hf_queue_fixture_stop(hf_queue_fixture *fixture);

/* The same for cmocka, whose state is the fixture; with an administrator or without. */
int hf_queue_fixture_up(void **state);
int hf_queue_fixture_up_admin(void **state);
int hf_queue_fixture_down(void **state);
#define HF_QUEUE_TEST(name, fixture)                                                     \
    cmocka_unit_test_prestate_setup_teardown(name, hf_queue_fixture_up,                  \
                                             hf_queue_fixture_down, fixture)
#define HF_ADMIN_TEST(name, fixture)                                                     \
    cmocka_unit_test_prestate_setup_teardown(name, hf_queue_fixture_up_admin,            \
                                             hf_queue_fixture_down, fixture)

/* An administrator of its own connection, which the caller closes. */
hf_admin *hf_queue_fixture_admin(const hf_queue_fixture *fixture);

/* Waits until the client is ready, at most 5 s. */
void hf_queue_fixture_ready(hf_queue_fixture *fixture);
void hf_queue_fixture_ready_client(hf_queue_fixture *fixture,
                                   hf_client *client); /* another one, on its loop */

/* Redis's time now. */
int64_t hf_queue_fixture_now(hf_queue_fixture *fixture);
/* When a lease ends that began at fixture->now_ms. */
int64_t hf_queue_fixture_lease_end(const hf_queue_fixture *fixture, int64_t lease_ms);

/* One job with the payload "payload"; due as in hf_enqueue_item. */
hf_err hf_queue_fixture_enqueue(hf_queue_fixture *fixture, const char *id,
                                int64_t due_ms);
/* One of the type "t", for a worker; fails the test when it is not accepted. */
void hf_queue_fixture_put(hf_queue_fixture *fixture, const char *id, const char *payload,
                          int64_t due_ms);
/* n of the type "t" in one request, due now, without payloads; their ids are given:
 * "id-0000" and so on. */
void hf_queue_fixture_fill(hf_queue_fixture *fixture, char ids[][16], size_t n);
/* n of the type "t" in one request, each behind the one before it. */
void hf_queue_fixture_put_all(hf_queue_fixture *fixture, const char *const *ids,
                              const char *const *payloads, size_t n);
hf_err hf_queue_fixture_register(hf_queue_fixture *fixture); /* its queue */
hf_err hf_queue_fixture_enqueue_items(hf_queue_fixture *fixture,
                                      const hf_enqueue_args *args,
                                      const hf_enqueue_item *items, size_t n);

/* Reads the queue's clock as this machine, which shows that; the answer is in
 * fixture->read. */
hf_err hf_queue_fixture_read(hf_queue_fixture *fixture, const char *machine,
                             uint64_t boot_ms, const char *shown);
/* Finds over what is over by Redis's clock, which runs true here. Each claim of the
 * fixture does so first, unless the test judges by itself. */
void hf_queue_fixture_judge(hf_queue_fixture *fixture, uint32_t lease_ms);

/* The common case: HF_FIXTURE_LEASE_MS when lease_ms is 0, poison 3, dead 100 jobs and
 * 1000 s. */
hf_claim_args hf_queue_fixture_claim_args(const char *worker, uint32_t max,
                                          uint32_t lease_ms);
hf_err hf_queue_fixture_claim_with(hf_queue_fixture *fixture, const hf_claim_args *args);
/* Answers how many jobs it got; fails the test when the claim did. */
size_t hf_queue_fixture_claim(hf_queue_fixture *fixture, const char *worker, uint32_t max,
                              uint32_t lease_ms);
hf_err hf_queue_fixture_unclaim(hf_queue_fixture *fixture, const char *worker,
                                uint64_t number);

/* For one job, with the code for it, or the fault. A fence NULL: that of the last claim.
 */
hf_err hf_queue_fixture_complete(hf_queue_fixture *fixture, const char *worker,
                                 const char *id, const char *fence);
hf_err hf_queue_fixture_renew(hf_queue_fixture *fixture, const char *worker,
                              const char *id, const char *fence, uint32_t lease_ms);
hf_err hf_queue_fixture_renew_with(hf_queue_fixture *fixture, const hf_renew_args *args,
                                   const char *id, const char *fence);
hf_err hf_queue_fixture_verdict(hf_queue_fixture *fixture, hf_verdict_op op,
                                const hf_verdict_args *args, const hf_verdict_item *item);

/* Several at once: the request's answer, and a code for each in fixture->codes; n_codes
 * is 0 when each is HF_OK. */
hf_err hf_queue_fixture_verdicts(hf_queue_fixture *fixture, hf_verdict_op op,
                                 const hf_verdict_args *args,
                                 const hf_verdict_item *items, size_t n);
hf_err hf_queue_fixture_renew_all(hf_queue_fixture *fixture, const hf_renew_args *args,
                                  const hf_renew_item *items, size_t n);

hf_err hf_queue_fixture_check(hf_queue_fixture *fixture, const char *worker,
                              bool give_back);
hf_err hf_queue_fixture_check_with(hf_queue_fixture *fixture,
                                   const hf_queue *const *queues, size_t n,
                                   const hf_check_args *args);
hf_err hf_queue_fixture_check_all(hf_queue_fixture *fixture,
                                  const hf_queue *const *queues, size_t n,
                                  const char *worker, bool give_back);
hf_err hf_queue_fixture_peek(hf_queue_fixture *fixture, const hf_queue *const *queues,
                             bool *ready, size_t n);
hf_err hf_queue_fixture_wait(hf_queue_fixture *fixture, uint32_t wait_ms);
hf_err hf_queue_fixture_wait_for(hf_queue_fixture *fixture, const hf_queue *const *queues,
                                 size_t n, uint32_t wait_ms);

/* For requests that the fixture has no call for: the callback, and the wait for it. */
void hf_queue_fixture_begin(hf_queue_fixture *fixture);
void hf_queue_fixture_on_answer(const hf_answer *answer, void *fixture);
hf_err hf_queue_fixture_end(hf_queue_fixture *fixture, hf_err sent);

/* Both: `err` becomes what was answered. Redis may not know the script of a request yet:
 * it is loaded then, and the request is made again. */
#define HF_QUEUE_FIXTURE_ASK(err, fixture, request)                                      \
    do {                                                                                 \
        unsigned ask_tries = 3;                                                          \
        do {                                                                             \
            hf_queue_fixture_begin(fixture);                                             \
            (err) = hf_queue_fixture_end(fixture, request);                              \
        } while ((err) == HF_NOSCRIPT && --ask_tries > 0);                               \
    } while (0)

/* A field of the meta of the queue "q", for example "done"; -1: it has none. */
long long hf_queue_fixture_meta(hf_queue_fixture *fixture, const char *field);

/* As if another worker had taken over a job that runs: it has the lock, and a lease that
 * outlasts the test. */
void hf_test_take_over(hf_fixture *redis, const char *queue, const char *id);

/* How often the data of this Redis have been changed, ever. */
long long hf_queue_fixture_writes(hf_queue_fixture *fixture);

/* Fails the test with what an audit of the queue finds. */
void hf_queue_fixture_audit(hf_queue_fixture *fixture, bool idle);

/* ---- schedules: of the queue "q" of a fixture that has an administrator ---- */

/* Writes a schedule as a command does; its type is "t" where none is given. */
void hf_schedule_fixture_put(hf_queue_fixture *q, hf_schedule schedule);
hf_schedule_info hf_schedule_fixture_info(hf_queue_fixture *q, const char *id);
/* As if its next tick were at next_ms. */
void hf_schedule_fixture_set_next(hf_queue_fixture *q, const char *id, int64_t next_ms);
/* How many jobs the queue has ever accepted. */
long long hf_schedule_fixture_enqueued(hf_queue_fixture *q);

#endif
