/* admin.h - opens administrators for tests. */
#ifndef HF_TESTS_ADMIN_H
#define HF_TESTS_ADMIN_H

#include "holdfast/admin.h"

/* Fails the test if it cannot. The caller closes it. */
hf_admin *hf_test_admin(const char *url);

#endif
