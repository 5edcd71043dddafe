/* admin.c - see admin.h. */
#include "tests/support/admin.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/support/eventually.h"

hf_admin *hf_test_admin(const char *url)
{
    char detail[HF_DETAIL_SIZE];
    hf_admin *admin = NULL;
    const hf_admin_opts opts = {HF_ADMIN_OPTS_INIT, .server = HF_SERVER(.url = url)};
    if (hf_admin_open(&admin, &opts, detail) != HF_OK)
        fail_msg("no administrator: %s", detail);
    return admin;
}

static void on_finding(const hf_finding *f, void *arg)
{
    (void)fprintf(stderr, "audit of %s: I%d %s: %s\n", (const char *)arg, f->invariant,
                  f->id, f->text);
}

void hf_test_audit(hf_fixture *redis, bool idle)
{
    char detail[HF_DETAIL_SIZE];
    hf_admin *admin;
    const hf_admin_opts opts = {HF_ADMIN_OPTS_INIT,
                                .server = HF_SERVER(.url = hf_fixture_url(redis)),
                                .deadline_ms = 120000};
    if (hf_admin_open(&admin, &opts, detail) != HF_OK)
        fail_msg("no administrator: %s", detail);
    char **names;
    size_t n, found, all = 0;
    assert_int_equal(hf_admin_queues(admin, &names, &n, detail), HF_OK);
    for (size_t i = 0; i < n; i++) {
        found = 0;
        hf_err err = hf_admin_audit(admin, names[i],
                                    &(hf_audit_opts){HF_AUDIT_OPTS_INIT, .idle = idle,
                                                     .cb = on_finding, .arg = names[i]},
                                    &found, detail);
        if (err != HF_OK)
            fail_msg("audit of %s: %s", names[i], detail);
        all += found;
    }
    free(names);
    hf_admin_close(admin);
    assert_int_equal(all, 0);
}

int hf_test_audit_down(void **state)
{
    hf_test_audit(*state, false);
    return hf_fixture_down(state);
}
