/* test_cli_exits.c - what a user can mend has a code of its own and one clear line, and
 * is never reported as a bug. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "tests/support/eventually.h"
#include "tests/support/proc.h"
#include "tests/support/redis_fixture.h"

static hf_fixture redis;
static char said[4096];

/* "$HF" is the command, "$R" the option for its Redis, "$D" a directory. */
static const struct {
    const char *line;
    int code;
    const char *text;
} table[] = {
    {"$HF queue list $R?db=99999", 78, "expected a database that this Redis has"},
    {"$HF enqueue t $R?db=99999", 78, "expected a database that this Redis has"},
    {"$HF lock l $R?db=99999 -- true", 78, "expected a database that this Redis has"},
    {"$HF locks list $R?db=99999", 78, "expected a database that this Redis has"},
    {"$HF doctor $R?db=99999", 78, "expected a database that this Redis has"},
    {"$HF queue list --redis redis://localhost:70000", 64, "port is not a number"},
    {"$HF queue list --redis unix:///$(printf %0200d 1)", 64, "longer than 107 bytes"},
    {"$HF queue list --redis http://localhost", 64, "a URL that begins with redis://"},
    {"$HF queue list -c $D", 78, "Is a directory"},
    {"$HF worker -c $D/none.yaml $R", 78, "No such file or directory"},
    {"$HF enqueue --bulk $D/none $R", 65, "No such file or directory"},
    {"$HF demo --svg $D/none/x.svg", 65, "No such file or directory"},
    {"$HF queue list $R >/dev/full", 73, "standard output cannot be written"},
    {"$HF enqueue t $R >/dev/full", 73, "standard output cannot be written"},
    {"$HF version >/dev/full", 73, "standard output cannot be written"},
    {"$HF version >&-", 73, "standard output cannot be written"},
    {"ulimit -n 5; $HF queue list $R", 71, "expected a limit of open files"},
    {"ulimit -n 8; $HF lock l $R -- true", 71, "expected a limit of open files"},
};

static int run(const char *line, const char *err)
{
    char hf[512], r[512], d[512];
    const char *const args[] = {"sh", "-c", line, NULL};
    const char *const env[] = {hf, r, d, NULL};
    (void)snprintf(hf, sizeof hf, "HF=%s", HF_TEST_COMMAND);
    (void)snprintf(r, sizeof r, "R=--redis=%s", hf_fixture_url(&redis));
    (void)snprintf(d, sizeof d, "D=%s", redis.dir);
    return hf_proc_run(
        &(hf_proc_options){.args = args, .env = env, .out = "/dev/null", .err = err},
        30000);
}

static void what_a_user_can_mend_is_no_bug(void **state)
{
    char err[sizeof redis.dir + 8];
    (void)state;
    (void)snprintf(err, sizeof err, "%s/said", redis.dir);
    for (size_t i = 0; i < HF_COUNT(table); i++) {
        hf_write_file(err, "");
        int code = run(table[i].line, err);
        (void)hf_read_file(err, said, sizeof said);
        if (code != table[i].code || strstr(said, table[i].text) == NULL)
            fail_msg("`%s` ended with %d: %s", table[i].line, code, said);
        const char *first = strstr(said, "holdfast: ");
        assert_true(first != NULL && strstr(first + 1, "holdfast: ") == NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HF_REDIS_TEST(what_a_user_can_mend_is_no_bug, &redis),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
