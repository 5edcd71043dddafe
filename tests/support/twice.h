/* twice.h - scripts that are sent twice with the same arguments, and once after their
 * time.
 *
 * An answer that gets lost leads to a second sending, so the second must find what the
 * first did and change nothing. Whether something changed is seen in a dump of the whole
 * server: types, values, and ends. Times may differ by what passes during the test. */
#ifndef HF_TESTS_TWICE_H
#define HF_TESTS_TWICE_H

#include "redis/script.h"
#include "tests/support/dump.h"
#include "tests/support/redis_fixture.h"

enum { HF_TWICE_KEYS = 4, HF_TWICE_ARGS = 32 };

typedef struct hf_sending {
    const char *what;
    const hf_script *script;
    const char *keys[HF_TWICE_KEYS]; /* none: the prefix of the suite */
    const char *args[HF_TWICE_ARGS]; /* $T: not_after; $W: and a word */
    int not_after;       /* its place among the arguments, from 1; 0: it has none */
    const char *first;   /* the answer; T for each time in it, F for each fence */
    const char *second;  /* NULL: the same as the first */
    const char *counted; /* told to the suite when the second was sent */
    bool reads;          /* the first changes nothing either */
    bool again;          /* the second does more of the same */
} hf_sending;

typedef struct hf_twice {
    const char *prefix;
    const hf_sending *table;
    size_t n;
    const hf_script *const *all; /* ends with NULL */
    void (*prepare)(void);       /* makes the server what it is before each sending */
    const char *(*expand)(const char *arg); /* NULL: only $T */
    void (*uncount)(const char *counted);   /* NULL: nothing is counted */
    long long fresh_ms; /* what was prepared is true for so long; 0: for the whole test */
    hf_fixture redis;   /* these two: of hf_twice_up() */
    redisContext *connection;
} hf_twice;

/* A server of its own, and a connection to it: before all tests of a program and after
 * them, in its main(). */
void hf_twice_up(hf_twice *suite);
void hf_twice_down(hf_twice *suite);

/* The answer; the caller frees it. `keys` as in hf_sending, or NULL; `args` ends with
 * NULL. late: $T is a time that is over. */
redisReply *hf_twice_send(hf_twice *suite, const hf_script *script,
                          const char *const keys[HF_TWICE_KEYS], const char *const *args,
                          bool late);

/* The three tests, whose state is the suite: each script of `all` is in the table; sent
 * twice, each does its work once; sent late, those with a not_after answer "-4 T" and
 * change nothing. */
void hf_twice_the_table_names_every_script(void **state);
void hf_twice_every_script_does_its_work_once(void **state);
void hf_twice_no_script_changes_anything_after_its_time(void **state);
#define HF_TWICE_TESTS(suite)                                                            \
    cmocka_unit_test_prestate(hf_twice_the_table_names_every_script, suite),             \
        cmocka_unit_test_prestate(hf_twice_every_script_does_its_work_once, suite),      \
        cmocka_unit_test_prestate(hf_twice_no_script_changes_anything_after_its_time,    \
                                  suite)

#endif
