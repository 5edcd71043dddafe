/* seed.h - random numbers that can be repeated. */
#ifndef HF_TESTS_SEED_H
#define HF_TESTS_SEED_H

#include <stdint.h>

/* HF_SEED of the environment; without it, another one each time. Prints it. */
uint64_t hf_test_seed(void);

#endif
