/* test_auth.c - who may see and change what: tokens, sessions, hosts. */
#include "dashboard/auth.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "tests/support/eventually.h"

#define READ "rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrr"
#define CHANGE "cccccccccccccccccccccccccccccccc"

static char file[] = "/tmp/hf-tokens-XXXXXX";
static char detail[HF_DETAIL_SIZE], name[HF_TOKEN_NAME];

static int make_file(void **state)
{
    (void)state;
    int fd = mkstemp(file);
    return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(file);
}

static void write_tokens(const char *text)
{
    FILE *out = fopen(file, "w");
    assert_non_null(out);
    assert_true(fputs(text, out) >= 0);
    assert_int_equal(fclose(out), 0);
}

static hf_auth *open_auth(const char *text, bool allow_changes)
{
    hf_auth *auth = NULL;
    const hf_auth_opts opts = {
        .token_file = file, .address = "0.0.0.0", .allow_changes = allow_changes};
    write_tokens(text);
    hf_err err = hf_auth_open(&auth, &opts, detail);
    if (err != HF_OK)
        fail_msg("%s", detail);
    return auth;
}

static hf_role role_of(hf_auth *auth, const char *token)
{
    char header[320];
    (void)snprintf(header, sizeof header, "Bearer %s", token);
    return hf_auth_role(auth, header, NULL, name);
}

/* A token that is looked at: five wrong ones in a second are the last. */
static hf_role role_in_time(hf_auth *auth, const char *token)
{
    EVENTUALLY(5000, !hf_auth_is_throttled(auth));
    return role_of(auth, token);
}

static void a_token_has_its_role_and_its_name(void **state)
{
    (void)state;
    hf_auth *auth = open_auth("# who\nread " READ "\n\nchange " CHANGE " ada\n", true);
    assert_int_equal(role_of(auth, READ), HF_ROLE_READ);
    assert_string_equal(name, "");
    assert_int_equal(role_of(auth, CHANGE), HF_ROLE_CHANGE);
    assert_string_equal(name, "ada");
    assert_int_equal(role_of(auth, READ "r"), HF_ROLE_NONE);
    assert_int_equal(role_in_time(auth, "rrrr"), HF_ROLE_NONE);
    assert_string_equal(name, "");
    assert_int_equal(hf_auth_role(auth, "Basic " READ, NULL, name), HF_ROLE_NONE);
    assert_int_equal(hf_auth_role(auth, NULL, NULL, name), HF_ROLE_NONE);
    hf_auth_close(auth);
    auth = open_auth("change " CHANGE "\n", false);
    assert_int_equal(role_of(auth, CHANGE), HF_ROLE_READ); /* nothing can be changed */
    hf_auth_close(auth);
}

static void a_file_that_cannot_be_trusted_is_refused(void **state)
{
    static const char *const bad[] = {"",
                                      "# nothing\n",
                                      "write " READ "\n",
                                      "read\n",
                                      "read short\n",
                                      "read " READ " two names\n",
                                      "read " READ " \n",
                                      "read " READ " a-name-of-more-than-32-characters\n",
                                      "read rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrr\x7f\n"};
    const hf_auth_opts opts = {.token_file = file, .address = ""};
    hf_auth *auth = NULL;
    (void)state;
    for (size_t i = 0; i < HF_COUNT(bad); i++) {
        write_tokens(bad[i]);
        if (hf_auth_open(&auth, &opts, detail) != HF_CONFIG)
            fail_msg("'%s' was read", bad[i]);
    }
    write_tokens("read " READ "\n");
    assert_int_equal(chmod(file, 0640), 0);
    assert_int_equal(hf_auth_open(&auth, &opts, detail), HF_CONFIG);
    assert_non_null(strstr(detail, "chmod 600"));
    assert_int_equal(chmod(file, 0600), 0);
}

static void five_wrong_tokens_stop_all_for_the_second(void **state)
{
    unsigned wrong = 0;
    (void)state;
    hf_auth *auth = open_auth("read " READ "\n", false);
    EVENTUALLY(5000, (++wrong, role_of(auth, CHANGE) == HF_ROLE_NONE) &&
                         hf_auth_is_throttled(auth));
    assert_true(wrong >= 5);
    assert_int_equal(role_in_time(auth, READ), HF_ROLE_READ);
    hf_auth_close(auth);
}

static void cookie_of(const char *session, char out[128])
{
    (void)snprintf(out, 128, "a=b; hf=%s; c=d", session);
}

static void a_session_has_the_role_of_its_token(void **state)
{
    char session[HF_SESSION_SIZE], cookie[128], other[HF_SESSION_SIZE];
    (void)state;
    hf_auth *auth = open_auth("read " READ " bob\nchange " CHANGE "\n", true);
    assert_int_equal(hf_auth_login(auth, READ, session), HF_ROLE_READ);
    assert_int_equal(hf_auth_login(auth, CHANGE, other), HF_ROLE_CHANGE);
    assert_string_not_equal(session, other);
    cookie_of(session, cookie);
    assert_int_equal(hf_auth_role(auth, NULL, cookie, name), HF_ROLE_READ);
    assert_string_equal(name, "bob");
    cookie_of(other, cookie);
    assert_int_equal(hf_auth_role(auth, NULL, cookie, name), HF_ROLE_CHANGE);
    hf_auth_logout(auth, cookie);
    assert_int_equal(hf_auth_role(auth, NULL, cookie, name), HF_ROLE_NONE);
    cookie_of(session, cookie);
    session[3] = session[3] == 'A' ? 'B' : 'A';
    assert_int_equal(hf_auth_role(auth, NULL, cookie, name), HF_ROLE_READ);
    cookie_of(session, cookie);
    assert_int_equal(hf_auth_role(auth, NULL, cookie, name), HF_ROLE_NONE);
    assert_int_equal(hf_auth_role(auth, NULL, "hf=", name), HF_ROLE_NONE);
    assert_int_equal(hf_auth_role(auth, NULL, "", name), HF_ROLE_NONE);
    hf_auth_close(auth);
}

/* A wrong token is never made good by a cookie, and an old file is not. */
static void a_reload_ends_the_sessions(void **state)
{
    char session[HF_SESSION_SIZE], cookie[128];
    (void)state;
    hf_auth *auth = open_auth("read " READ "\n", true);
    assert_int_equal(hf_auth_login(auth, READ, session), HF_ROLE_READ);
    cookie_of(session, cookie);
    assert_int_equal(hf_auth_role(auth, "Bearer x", cookie, name), HF_ROLE_NONE);
    write_tokens("bad\n");
    assert_int_equal(hf_auth_reload(auth, detail), HF_CONFIG);
    assert_int_equal(hf_auth_role(auth, NULL, cookie, name), HF_ROLE_READ);
    write_tokens("change " CHANGE "\n");
    assert_int_equal(hf_auth_reload(auth, detail), HF_OK);
    assert_int_equal(hf_auth_role(auth, NULL, cookie, name), HF_ROLE_NONE);
    assert_int_equal(role_in_time(auth, READ), HF_ROLE_NONE);
    assert_int_equal(role_in_time(auth, CHANGE), HF_ROLE_CHANGE);
    hf_auth_close(auth);
}

static void without_tokens_everyone_may_what_is_allowed(void **state)
{
    hf_auth *auth = NULL;
    hf_auth_opts opts = {.address = "127.0.0.1"};
    (void)state;
    assert_int_equal(hf_auth_open(&auth, &opts, detail), HF_OK);
    assert_int_equal(hf_auth_role(auth, NULL, NULL, name), HF_ROLE_READ);
    hf_auth_close(auth);
    opts.allow_changes = true;
    assert_int_equal(hf_auth_open(&auth, &opts, detail), HF_OK);
    assert_int_equal(hf_auth_role(auth, NULL, NULL, name), HF_ROLE_CHANGE);
    hf_auth_close(auth);
}

static void only_its_own_hosts_are_known(void **state)
{
    static const char *const named[] = {"jobs.example.org"};
    static const char *const good[] = {
        "127.0.0.1",  "127.0.0.1:8880",   "localhost:1",         "LOCALHOST",
        "[::1]:8880", "jobs.example.org", "Jobs.Example.org:443"};
    static const char *const bad[] = {"",
                                      ":80",
                                      "evil.example",
                                      "jobs.example.org.evil",
                                      "xjobs.example.org",
                                      "127.0.0.2",
                                      "[::2]",
                                      "["};
    const hf_auth_opts opts = {.address = "127.0.0.1", .hosts = named, .n_hosts = 1};
    hf_auth *auth = NULL;
    (void)state;
    assert_int_equal(hf_auth_open(&auth, &opts, detail), HF_OK);
    for (size_t i = 0; i < HF_COUNT(good); i++)
        assert_true(hf_auth_knows_host(auth, good[i]));
    for (size_t i = 0; i < HF_COUNT(bad); i++)
        if (hf_auth_knows_host(auth, bad[i]))
            fail_msg("'%s' is known", bad[i]);
    assert_true(hf_auth_knows_origin(auth, "https://jobs.example.org"));
    assert_false(hf_auth_knows_origin(auth, "https://evil.example"));
    assert_false(hf_auth_knows_origin(auth, "null"));
    hf_auth_close(auth);
    auth = open_auth("read " READ "\n", false); /* it listens on 0.0.0.0 */
    assert_false(hf_auth_knows_host(auth, "127.0.0.1"));
    hf_auth_close(auth);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_has_its_role_and_its_name),
        cmocka_unit_test(a_file_that_cannot_be_trusted_is_refused),
        cmocka_unit_test(five_wrong_tokens_stop_all_for_the_second),
        cmocka_unit_test(a_session_has_the_role_of_its_token),
        cmocka_unit_test(a_reload_ends_the_sessions),
        cmocka_unit_test(without_tokens_everyone_may_what_is_allowed),
        cmocka_unit_test(only_its_own_hosts_are_known),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
