/* admin.c - see admin.h. */
#include "tests/support/admin.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

hf_admin *hf_test_admin(const char *url)
{
    char detail[HF_DETAIL_SIZE];
    hf_admin *admin = NULL;
    const hf_admin_opts opts = {HF_ADMIN_OPTS_INIT, .server = HF_SERVER(.url = url)};
    if (hf_admin_open(&admin, &opts, detail) != HF_OK)
        fail_msg("no administrator: %s", detail);
    return admin;
}
