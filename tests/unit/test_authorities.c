/* test_authorities.c - where a system keeps the authorities that it trusts. */
#include "redis/authorities.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "tests/support/tempdir.h"

enum { PATH_SIZE = HF_TEMPDIR_SIZE + 128 };

static char root[HF_TEMPDIR_SIZE];

static int make(void **state)
{
    (void)state;
    hf_tempdir_make(root);
    return 0;
}

static int clear(void **state)
{
    (void)state;
    hf_tempdir_remove(root);
    return 0;
}

/* A file below the root, with its directories. */
static void put(const char *path)
{
    char full[PATH_SIZE];
    (void)snprintf(full, sizeof full, "%s%s", root, path);
    for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')) != NULL;
         slash++) {
        *slash = '\0';
        (void)mkdir(full, 0700);
        *slash = '/';
    }
    hf_write_file(full, "");
}

/* "": none is needed, or there is none. */
static const char *found(const char *file, const char *dir)
{
    static char path[PATH_MAX];
    return hf_authorities_find(root, file, dir, path) ? path + strlen(root) : "";
}

static const char *found_by_debian(void)
{
    return found("/usr/lib/ssl/cert.pem", "/usr/lib/ssl/certs");
}

static const char *found_by_wheel(void)
{
    return found("/etc/ssl/cert.pem", "/etc/ssl/certs");
}

static void the_own_place_of_openssl_comes_first(void **state)
{
    (void)state;
    put("/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem");
    put("/etc/ssl/certs/5ed36f99.0");
    assert_string_equal(found_by_wheel(), "");
    assert_string_not_equal(found_by_debian(), "");
    put("/usr/lib/ssl/cert.pem");
    assert_string_equal(found_by_debian(), "");
}

static void a_directory_without_hashes_holds_nothing(void **state)
{
    (void)state;
    put("/etc/ssl/certs/ca-certificates.crt");
    put("/etc/ssl/certs/ISRG_Root_X1.pem");
    put("/etc/ssl/certs/5ed36f9.0");
    put("/etc/ssl/certs/5ed36f99");
    put("/etc/ssl/certs/5ed36f99a.0");
    assert_string_equal(found_by_wheel(), "/etc/ssl/certs/ca-certificates.crt");
}

static void each_distribution_is_known(void **state)
{
    static const char *const bundles[] = {
        "/etc/ssl/cert.pem",
        "/var/lib/ca-certificates/ca-bundle.pem",
        "/etc/pki/tls/certs/ca-bundle.crt",
        "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
        "/etc/ssl/certs/ca-certificates.crt",
    };
    (void)state;
    assert_string_equal(found_by_debian(), "");
    for (size_t i = 0; i < sizeof bundles / sizeof bundles[0]; i++) {
        put(bundles[i]);
        assert_string_equal(found_by_debian(), bundles[i]);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, clear)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_own_place_of_openssl_comes_first),
        TEST(a_directory_without_hashes_holds_nothing),
        TEST(each_distribution_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
