/* eventually.h - waiting for something to become true, with a deadline and without a
 * guess.
 *
 * A test never sleeps for a fixed time. It says what it waits for; when that is not true
 * in time, the test fails and the expression is printed. */
#ifndef HF_TESTS_EVENTUALLY_H
#define HF_TESTS_EVENTUALLY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

uint64_t hf_test_now_ms(void);      /* a clock that only goes forward */
void hf_test_pause_ms(unsigned ms); /* for the polls below, and for nothing else */
/* Between two asks of a wait that began then: an eighth of what it took so far, 2 to 10
 * ms. A short wait ends soon, and a long one costs little. */
void hf_test_pause_since(uint64_t from_ms);
unsigned hf_test_asks(uint64_t ms); /* how often a condition is asked at least */

/* A clock for deadlines and upper bounds. While more threads want a processor than there
 * are, it runs slower: as fast as each of them gets on. So a bound is as tight as it
 * looks on an idle machine, and a busy one has more time. */
uint64_t hf_test_fair_ms(void);

/* A time in which something happens, and whether each thread had less than half of a
 * processor in it: who came first, and how soon, then tells little about the product. */
typedef struct hf_test_span {
    uint64_t from_ms, fair_from_ms;
} hf_test_span;

hf_test_span hf_test_span_begin(void);
bool hf_test_span_is_busy(hf_test_span span);

/* Becomes the value of `cond`, asked with these pauses until it is true or `ms` of the
 * clock above have passed. A machine that stood still did so for what is waited for as
 * well: so it is also asked as often as a machine that runs would ask in a part of that
 * time. */
#define EVENTUALLY(ms, cond)                                                             \
    do {                                                                                 \
        const uint64_t eventually_from = hf_test_now_ms();                               \
        const uint64_t eventually_until = hf_test_fair_ms() + (uint64_t)(ms);            \
        unsigned eventually_asks = hf_test_asks((uint64_t)(ms));                         \
        while (!(cond)) {                                                                \
            if (hf_test_fair_ms() >= eventually_until && eventually_asks == 0)           \
                fail_msg("not within %u ms: %s", (unsigned)(ms), #cond);                 \
            hf_test_pause_since(eventually_from);                                        \
            eventually_asks -= eventually_asks > 0;                                      \
        }                                                                                \
    } while (0)

/* Fails as soon as `cond` is not true at some moment of the next `ms`. */
#define ALWAYS(ms, cond)                                                                 \
    do {                                                                                 \
        const uint64_t always_until = hf_test_now_ms() + (uint64_t)(ms);                 \
        while (hf_test_now_ms() < always_until) {                                        \
            if (!(cond))                                                                 \
                fail_msg("not true for %u ms: %s", (unsigned)(ms), #cond);               \
            hf_test_pause_ms(2);                                                         \
        }                                                                                \
    } while (0)

#endif
