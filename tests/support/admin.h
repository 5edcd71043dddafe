/* admin.h - opens administrators for tests; and the audit at the end of a test: every
 * invariant, over every queue of a server. */
#ifndef HF_TESTS_ADMIN_H
#define HF_TESTS_ADMIN_H

#include <stdbool.h>

#include "holdfast/admin.h"
#include "tests/support/redis_fixture.h"

/* Fails the test if it cannot. The caller closes it. */
hf_admin *hf_test_admin(const char *url);

/* Fails the test with what was found. `idle`: nothing works on the queues any more. */
void hf_test_audit(hf_fixture *redis, bool idle);

/* For cmocka, whose state is the fixture of the server: an audit, then the server's end.
 */
int hf_test_audit_down(void **state);

#endif
