/* audit.h - the audit at the end of a test: every invariant, over every queue of a
 * server. */
#ifndef HF_TESTS_AUDIT_H
#define HF_TESTS_AUDIT_H

#include <stdbool.h>

#include "tests/support/redis_fixture.h"

/* Fails the test with what was found. `idle`: nothing works on the queues any more. */
void hf_test_audit(hf_fixture *redis, bool idle);

#endif
