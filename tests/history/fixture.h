/* fixture.h - for tests that make a history and have it checked: a server that is
 * watched, a proxy before it, two clients, and those that wait in threads of their own.
 */
#ifndef HF_TESTS_HISTORY_FIXTURE_H
#define HF_TESTS_HISTORY_FIXTURE_H

#include <pthread.h>
#include <stdatomic.h>

#include "tests/history/history.h"
#include "tests/history/record.h"
#include "tests/history/watch.h"
#include "tests/support/eventually.h"
#include "tests/support/proxy.h"
#include "tests/support/redis_fixture.h"

enum { HF_FIXTURE_PATH = HF_TEMPDIR_SIZE + 32 };

typedef struct hf_history_fixture {
    char dir[HF_TEMPDIR_SIZE];
    char players[HF_FIXTURE_PATH], server[HF_FIXTURE_PATH], file[HF_FIXTURE_PATH];
    char other_server[HF_FIXTURE_PATH]; /* the history of one more; "": there is none */
    hf_fixture redis;
    hf_proxy proxy;
    hf_watch watch;
    hf_recorder *recorder; /* of player 1 */
    hf_lock_client *a, *b; /* a is behind the proxy */
    hf_report report;      /* after hf_history_fixture_judge() */
} hf_history_fixture;

void hf_history_fixture_begin(
    hf_history_fixture *fixture); /* an empty server, and all of it */
void hf_history_fixture_end(hf_history_fixture *fixture);
/* The same for cmocka, whose state is the fixture. */
int hf_history_fixture_up(void **state);
int hf_history_fixture_down(void **state);
#define HF_HISTORY_TEST(name, fixture)                                                   \
    cmocka_unit_test_prestate_setup_teardown(name, hf_history_fixture_up,                \
                                             hf_history_fixture_down, fixture)

hf_lock_client *hf_history_fixture_open(const char *url);

/* What was deleted, or failed over, between two moments of CLOCK_BOOTTIME. */
void hf_history_fixture_took(const hf_history_fixture *fixture, const char *name,
                             uint64_t from, uint64_t to);
/* From when to when answers did not come in time. */
void hf_history_fixture_disturbed(const hf_history_fixture *fixture, uint64_t from,
                                  uint64_t to);
/* DEL of everything that there is of a lock, told to the history. */
void hf_history_fixture_delete(hf_history_fixture *fixture, const char *name);

/* Has what happened so far checked: fixture->report says how sound it is. */
void hf_history_fixture_check(hf_history_fixture *fixture);
/* The same. Prints what is wrong, and fails the test. */
void hf_history_fixture_judge(hf_history_fixture *fixture);

/* Takes a lock of the fixture's first player; what `opts` leaves open: one name, a lease
 * of 20 s. NULL: it was not had. */
hf_taken *hf_history_fixture_take(hf_history_fixture *fixture, hf_lock_client *locks,
                                  const char *name, hf_lock_opts opts);

/* The same, in a thread. */
typedef struct hf_seeker {
    hf_history_fixture *fixture;
    hf_lock_client *locks;
    const char *name;
    hf_lock_opts opts;
    hf_taken *taken; /* when it is done; NULL: not had */
    atomic_bool done;
    pthread_t thread;
} hf_seeker;

void hf_seek_begin(hf_seeker *s, hf_history_fixture *fixture, hf_lock_client *locks,
                   const char *name, hf_lock_opts opts);
void hf_seek_end(hf_seeker *s); /* joins the thread */

/* How many stand in line. */
long long hf_history_fixture_queue(hf_history_fixture *fixture, const char *name);

#endif
