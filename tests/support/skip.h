/* skip.h - a test that cannot be run here says why. tests/skips shows it, and knows the
 * reasons that count. */
#ifndef HF_TESTS_SKIP_H
#define HF_TESTS_SKIP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define HF_SKIP(why)                                                                     \
    do {                                                                                 \
        print_message("skipped: %s\n", why);                                             \
        skip();                                                                          \
    } while (0)

#endif
