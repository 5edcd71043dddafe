/* test_cli_streams.c - the command with standard streams that were closed before it
 * began: no socket takes their place, so nothing that is printed goes to Redis. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "tests/support/eventually.h"
#include "tests/support/proc.h"
#include "tests/support/redis_fixture.h"

static hf_fixture redis;

/* The exit code of `holdfast WORDS`, with what the shell does to its streams. */
static int run(const char *words)
{
    char line[512];
    (void)snprintf(line, sizeof line, "REDIS_URL=%s '%s' %s", hf_fixture_url(&redis),
                   HF_TEST_COMMAND, words);
    const char *const args[] = {"sh", "-c", line, NULL};
    return hf_proc_run(&(hf_proc_options){.args = args}, 30000);
}

static void closed_streams_are_no_sockets(void **state)
{
    static const struct {
        const char *words;
        int code;
    } cases[] = {
        {"job show one >&- 2>/dev/null", 73},
        {"job list >&- 2>&-", 73},
        {"job list --json <&- >&- 2>&-", 73},
        {"queue list <&- >/dev/null", 0},
        {"queue purge q --yes <&- 2>&- >/dev/null", 0},
        {"job show none <&- 2>&- >/dev/null", 1},
        {"job cancel one <&- 2>&- >&-", 73},
        {"queue purge q --yes >&- 2>&-", 73},
        {"job delete one <&- >&- 2>&-", 64},
        {"doctor >&- 2>&-", 73},
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT(cases); i++) {
        assert_int_equal(run("enqueue t --id one >/dev/null"), 0);
        int code = run(cases[i].words);
        if (code != cases[i].code)
            fail_msg("%s: %d", cases[i].words, code);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HF_REDIS_TEST(closed_streams_are_no_sockets, &redis),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
