/* seed.c - see seed.h. */
#include "tests/support/seed.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/random.h"

uint64_t hf_test_seed(void)
{
    const char *given = getenv("HF_SEED");
    uint64_t seed = given == NULL ? 0 : strtoull(given, NULL, 10);
    if (given == NULL)
        assert_int_equal(hf_random_bytes(&seed, sizeof seed), HF_OK);
    print_message("HF_SEED=%" PRIu64 "\n", seed);
    return seed;
}
