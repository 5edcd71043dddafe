/* lock_fixture.h - a private server and clients of locks, for tests of what they promise;
 * and processes of their own that take locks (tests/helpers/hf-locker.c), to be stopped
 * and killed, and what they wrote down. */
#ifndef HF_TESTS_LOCK_FIXTURE_H
#define HF_TESTS_LOCK_FIXTURE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/lock.h"
#include "tests/support/eventually.h"
#include "tests/support/proc.h"
#include "tests/support/proxy.h"
#include "tests/support/redis_fixture.h"
#include "tests/support/tempdir.h"

typedef struct hf_lock_fixture {
    hf_fixture redis;
    hf_proxy proxy;        /* before it, for clients of the test's own */
    hf_lock_client *a, *b; /* two clients, with threads of their own */
    char detail[HF_DETAIL_SIZE];
    atomic_uint suspect, held, revoked, lost; /* events of all locks */
} hf_lock_fixture;

/* Before all tests of a program and after them, in its main(). */
void hf_lock_fixture_up(hf_lock_fixture *fixture, const hf_fixture_options *options);
void hf_lock_fixture_down(hf_lock_fixture *fixture);

/* For cmocka, whose state is the fixture: each test begins with an empty server. */
int hf_lock_fixture_begin(void **state);
int hf_lock_fixture_end(void **state);
#define HF_LOCK_TEST(name, fixture)                                                      \
    cmocka_unit_test_prestate_setup_teardown(name, hf_lock_fixture_begin,                \
                                             hf_lock_fixture_end, fixture)

/* One more client. */
hf_lock_client *hf_lock_fixture_open(hf_lock_fixture *fixture, const char *url);

/* Takes a lock; what `opts` leaves open: one name, no wait, a lease of 5 s. */
hf_err hf_lock_take(hf_lock_fixture *fixture, hf_lock_client *locks, const char *name,
                    hf_lock_opts opts, hf_lock **out);
/* The same, and fails the test if it is not had. */
hf_lock *hf_lock_must(hf_lock_fixture *fixture, hf_lock_client *locks, const char *name,
                      hf_lock_opts opts);

/* Fails the test if it is had, or refused with another error. */
void hf_lock_refused(hf_lock_fixture *fixture, hf_lock_client *locks, const char *name,
                     hf_lock_opts opts, hf_err expected);
/* Gives it back, and fails the test if it was not held to the end, or once more. */
void hf_lock_released(hf_lock *lock);
/* Nobody holds a lock whose name is its tag, nor stands in line for it. */
bool hf_lock_is_free(hf_lock_fixture *fixture, const char *name);

/* Somebody who waits in a thread of the test's own. */
typedef struct hf_lock_waiter {
    hf_lock_fixture *fixture;
    hf_lock_client *locks;
    const char *name;
    hf_lock_opts opts;
    hf_lock *lock; /* set when it is held */
    hf_err err;
    atomic_bool done;
    unsigned long thread;
} hf_lock_waiter;

/* Begins to ask for it. */
void hf_lock_begin(hf_lock_waiter *w, hf_lock_fixture *fixture, hf_lock_client *locks,
                   const char *name, hf_lock_opts opts);
/* Begins to wait (as long as opts.wait_ms says; 0: 20 s) and returns when it stands in
 * line. */
void hf_lock_wait_begin(hf_lock_waiter *w, hf_lock_fixture *fixture,
                        hf_lock_client *locks, const char *name, hf_lock_opts opts);
void hf_lock_wait_end(hf_lock_waiter *w); /* joins the thread */
/* The same, and gives back the lock, which it must have. */
void hf_lock_wait_released(hf_lock_waiter *w);

/* How many stand in line for it. */
long long hf_lock_queue(hf_lock_fixture *fixture, const char *name);

/* ---- processes of their own ---- */

typedef struct hf_locker {
    hf_proc proc;
    char log[HF_TEMPDIR_SIZE + 32];
} hf_locker;

/* One line of its log. */
typedef struct hf_locker_note {
    char kind[16];
    uint64_t ns, value;
} hf_locker_note;

/* `words`: its further arguments, separated by spaces. The log is made in dir. */
void hf_locker_start(hf_locker *l, const char *dir, const char *url, const char *name,
                     const char *words);
void hf_locker_kill(hf_locker *l); /* SIGKILL; does nothing when it has ended */

/* What it wrote so far, as many as there is room for; gives how many. */
size_t hf_locker_read(const hf_locker *l, hf_locker_note *notes, size_t room);
/* The last one of a kind. False: there is none. `note` may be NULL. */
bool hf_locker_said(const hf_locker *l, const char *kind, hf_locker_note *note);

#endif
