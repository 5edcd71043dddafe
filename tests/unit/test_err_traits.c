/* test_err_traits.c - what each answer means to the sender of the request. */
#include "redis/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

#define NUMBER(name, number, text) name,

static const hf_err all[] = {HF_ERR_MAP(NUMBER)};

/* The letter of each trait, in the order of the bits. */
static const char letters[] = "NAPWCQL";

/* One row for each fault: N not done, A at once, P passes, W no writes, C of the cluster,
 * Q of the queue, L lasts. */
static const struct {
    hf_err err;
    const char *traits;
} rows[] = {
    {HF_DEADLINE, "NA"}, {HF_INVALID, "N"},    {HF_TOOBIG, "N"},
    {HF_NOMEM, "N"},     {HF_BUSY, "N"},       {HF_CLOSED, "N"},
    {HF_TIMEOUT, "N"},   {HF_FORKED, "N"},     {HF_SYSTEM, "N"},
    {HF_CONN, "NP"},     {HF_AUTH, "NQL"},     {HF_UNSUPPORTED, "NL"},
    {HF_POLICY, "N"},    {HF_NOSCRIPT, "NA"},  {HF_OOM, "NW"},
    {HF_READONLY, "NW"}, {HF_LOADING, "NP"},   {HF_BUSY_SCRIPT, "NP"},
    {HF_MISCONF, "NW"},  {HF_REDIS, "Q"},      {HF_PROTO, "Q"},
    {HF_MOVED, "NPC"},   {HF_UNSERVED, "NPC"}, {HF_SHARDED, "N"},
    {HF_CONFIG, "NL"},   {HF_UNSURE, ""},      {HF_UNCONFIRMED, ""},
};

static const char *traits_of(hf_err err)
{
    for (size_t i = 0; i < HF_COUNT(rows); i++)
        if (rows[i].err == err)
            return rows[i].traits;
    return NULL;
}

static void each_fault_has_the_traits_of_its_row(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT(rows); i++)
        for (size_t k = 0; k < sizeof letters - 1; k++) {
            bool expected = strchr(rows[i].traits, letters[k]) != NULL;
            if (hf_err_is(rows[i].err, 1U << k) != expected)
                fail_msg("%s: %c is %d", hf_err_name(rows[i].err), letters[k], !expected);
        }
}

static void every_fault_has_a_row(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT(all); i++)
        if (all[i] <= HF_INVALID && traits_of(all[i]) == NULL)
            fail_msg("%s has no row", hf_err_name(all[i]));
}

static void other_answers_have_no_traits(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT(all); i++)
        if (traits_of(all[i]) == NULL)
            assert_false(hf_err_is(all[i], ~0U));
    assert_false(hf_err_is(HF_ERR_LAST_, ~0U));
    assert_false(hf_err_is((hf_err)12345, ~0U));
    assert_false(hf_err_is((hf_err)-12345, ~0U));
}

static void one_of_several_traits_is_enough(void **state)
{
    (void)state;
    assert_true(hf_err_is(HF_OOM, HF_ERR_PASSES | HF_ERR_NO_WRITES));
    assert_false(hf_err_is(HF_OOM, HF_ERR_PASSES | HF_ERR_AT_ONCE));
    assert_false(hf_err_is(HF_OOM, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_fault_has_the_traits_of_its_row),
        cmocka_unit_test(every_fault_has_a_row),
        cmocka_unit_test(other_answers_have_no_traits),
        cmocka_unit_test(one_of_several_traits_is_enough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
