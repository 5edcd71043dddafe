/* redis_fixture.h - a private redis-server for one test program.
 *
 * It listens on a unix socket in a directory of its own, so any number of tests run at
 * once. It dies with the test (even when that crashes), and nothing else is ever ended. A
 * server takes about ten milliseconds to start, so there is no reason to share one.
 *
 *     static hf_fixture redis;
 *     const struct CMUnitTest tests[] = {HF_REDIS_TEST(a_test, &redis)};
 *
 * Without a redis-server, or for TLS with one that was built without it, the program ends
 * with 77, which means skipped; with HF_REQUIRE_REDIS=1 in the environment it ends
 * with 1. Any other fault in here ends the program with a sentence and 1: without its
 * server a test can check nothing.
 */
#ifndef HF_TESTS_REDIS_FIXTURE_H
#define HF_TESTS_REDIS_FIXTURE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <hiredis/hiredis.h>

#include "tests/support/server_clock.h"
#include "tests/support/tempdir.h"

enum { HF_FIXTURE_ARGS = 16 };

/* All zero: a unix socket, nothing persistent, no password. */
typedef struct hf_fixture_options {
    bool tcp;             /* also on 127.0.0.1, at a free port */
    bool cluster;         /* a node of a cluster, with tcp; it has no slots yet */
    bool persistent;      /* append-only file, synced at each write */
    bool clock;           /* its wall clock can be moved, see server_clock.h */
    bool tls;             /* also with TLS on 127.0.0.1; certificates are in its dir */
    bool tls_clients;     /* and it wants a certificate of each client */
    const char *password; /* requirepass; the fixture's own commands use it */
    const char *config; /* the text of a configuration file, for what no argument says */
    const char
        *args[HF_FIXTURE_ARGS]; /* more arguments, for example "--maxmemory", "2mb" */
} hf_fixture_options;

typedef struct hf_fixture {
    hf_fixture_options options; /* the strings in it are borrowed until stop */
    char dir[HF_TEMPDIR_SIZE];
    char socket[HF_TEMPDIR_SIZE + 8];
    char url[HF_TEMPDIR_SIZE + 32];
    char tcp_url[48];             /* "" without tcp */
    char tls_url[48];             /* "" without tls */
    char ca[HF_TEMPDIR_SIZE + 8]; /* the file of its authority; "" without tls */
    uint16_t port, tls_port;
    pid_t pid;              /* 0 while no server runs */
    hf_server_clock *clock; /* NULL: it runs by the real one */
    redisContext *connection;
    char *answer;
} hf_fixture;

void hf_fixture_start(hf_fixture *f, const hf_fixture_options *options);
void hf_fixture_stop(hf_fixture *f); /* ends the server and removes its directory */

/* The same for cmocka, whose state is the fixture; without options. */
int hf_fixture_up(void **state);
int hf_fixture_down(void **state);
#define HF_REDIS_TEST(name, fixture)                                                     \
    cmocka_unit_test_prestate_setup_teardown(name, hf_fixture_up, hf_fixture_down,       \
                                             fixture)

/* Ends the server with a signal and waits until it is gone; its files stay. */
void hf_fixture_kill(hf_fixture *f, int signal);
/* Starts it again on the same socket, port and files, and waits until it answers. */
void hf_fixture_restart(hf_fixture *f);
/* Sends a signal to the server: SIGSTOP, after which it does nothing more, or SIGCONT. */
void hf_fixture_signal(hf_fixture *f, int signal);

/* Moves the wall clock of a server with `clock`, at once: by a step of any size, forward
 * or (below 0) back; or by a rate, from now on, of up to 100 permille faster or slower
 * than the real one. The clock outlives the server's restart. One thread at a time. */
void hf_fixture_clock_step(hf_fixture *f, int64_t ms);
void hf_fixture_clock_slew(hf_fixture *f, int permille);
/* A step that the server's commands have seen when it returns: Valkey reads its clock
 * less often than it runs commands. Not while the server is stopped. */
void hf_fixture_clock_jump(hf_fixture *f, int64_t ms);

/* "unix:///tmp/hf-.../s". The password is not in it. */
const char *hf_fixture_url(const hf_fixture *f);

/* Runs a command, as redisCommand does, and returns the answer as text, which is borrowed
 * until the next call: a string or a status as it is, an integer in digits, "(nil)",
 * "(error) ..."; an array as its elements, each ended by a newline. "(gone)" when the
 * server did not answer within two seconds. */
const char *hf_fixture_command(hf_fixture *f, const char *format, ...);
/* The same, as a number; -1 when the answer is none. */
long long hf_fixture_number(hf_fixture *f, const char *format, ...);
/* When a key expires, in Unix milliseconds; -1 when it never does, -2 when there is none.
 * `format` gives the key's name. */
long long hf_fixture_expiry(hf_fixture *f, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* How often it has begun to execute a command, a name in small letters, since it was
 * started. Two commands that wait are not told apart while they wait. */
long long hf_fixture_calls(hf_fixture *f, const char *command);

/* A blocking connection of the test's own, authenticated; the test frees it. */
redisContext *hf_fixture_connect(const hf_fixture *f);

#endif
