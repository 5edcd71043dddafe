/* test_structs.c - structs that grow: older and newer callers. */
#include "base/structs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/server_opts.h"
#include "holdfast/version.h"

/* The same struct in three releases. */
typedef struct first {
    size_t size;
    const char *name;
} first;
typedef struct second {
    size_t size;
    const char *name;
    uint32_t limit, unused;
} second;
typedef struct third {
    size_t size;
    const char *name;
    uint32_t limit, unused;
    const char *more;
} third;

static char detail[HF_DETAIL_SIZE];

static hf_err take(second *ours, const void *theirs)
{
    memset(ours, 0xa5, sizeof *ours);
    detail[0] = '\0';
    return hf_struct_in(ours, sizeof *ours, theirs, "thing", detail);
}

static void an_older_struct_has_the_defaults_of_what_it_does_not_know(void **state)
{
    second ours;
    (void)state;
    const first old = {.size = sizeof old, .name = "a"};
    assert_int_equal(take(&ours, &old), HF_OK);
    assert_string_equal(ours.name, "a");
    assert_int_equal(ours.limit, 0);
    assert_int_equal(ours.size, sizeof ours);
    assert_int_equal(take(&ours, NULL), HF_OK);
    assert_null(ours.name);
    assert_int_equal(ours.size, sizeof ours);
}

static void a_newer_struct_is_taken_while_it_sets_nothing_unknown(void **state)
{
    second ours;
    (void)state;
    third new = {.size = sizeof new, .name = "a", .limit = 7};
    assert_int_equal(take(&ours, &new), HF_OK);
    assert_int_equal(ours.limit, 7);
    assert_int_equal(ours.size, sizeof ours);
    new.more = "b";
    assert_int_equal(take(&ours, &new), HF_INVALID);
    assert_non_null(strstr(detail, "thing"));
    assert_int_equal(hf_struct_in(&ours, sizeof ours, &new, "thing", NULL), HF_INVALID);
}

static void a_struct_without_a_size_is_refused(void **state)
{
    second ours;
    (void)state;
    const second none = {.name = "a"}, wild = {.size = SIZE_MAX, .name = "a"};
    assert_int_equal(take(&ours, &none), HF_INVALID);
    assert_non_null(strstr(detail, "thing: its size is 0: begin with THING_INIT"));
    assert_int_equal(take(&ours, &wild), HF_INVALID);
    assert_int_equal(hf_struct_can_fill(&none, "thing", detail), HF_INVALID);
    assert_int_equal(hf_struct_can_fill(&ours, "thing", detail), HF_INVALID);
}

static void an_array_has_the_stride_of_its_first_element(void **state)
{
    const void *ours;
    void *copy;
    (void)state;
    const first old[] = {{sizeof(first), "a"}, {sizeof(first), "b"}};
    assert_int_equal(hf_structs_in(&ours, &copy, sizeof(second), old, 2, "thing", detail),
                     HF_OK);
    assert_ptr_equal(ours, copy);
    assert_string_equal(((const second *)ours)[1].name, "b");
    assert_int_equal(((const second *)ours)[1].limit, 0);
    free(copy);
    third new[] = {{.size = sizeof(third), .name = "a", .limit = 1},
                   {.size = sizeof(third), .name = "b", .limit = 2}};
    assert_int_equal(hf_structs_in(&ours, &copy, sizeof(second), new, 2, "thing", detail),
                     HF_OK);
    assert_int_equal(((const second *)ours)[1].limit, 2);
    free(copy);
    new[1].more = "c";
    assert_int_equal(hf_structs_in(&ours, &copy, sizeof(second), new, 2, "thing", detail),
                     HF_INVALID);
    assert_null(copy);
}

static void an_array_of_our_own_size_is_not_copied(void **state)
{
    const void *ours;
    void *copy;
    (void)state;
    second same[] = {{.size = sizeof(second), .name = "a"},
                     {.size = sizeof(second), .name = "b"}};
    assert_int_equal(
        hf_structs_in(&ours, &copy, sizeof(second), same, 2, "thing", detail), HF_OK);
    assert_ptr_equal(ours, same);
    assert_null(copy);
    same[1].size = sizeof(first);
    assert_int_equal(
        hf_structs_in(&ours, &copy, sizeof(second), same, 2, "thing", detail),
        HF_INVALID);
    assert_non_null(strstr(detail, "thing 1"));
    same[0].size = 0;
    assert_int_equal(
        hf_structs_in(&ours, &copy, sizeof(second), same, 2, "thing", detail),
        HF_INVALID);
    assert_int_equal(
        hf_structs_in(&ours, &copy, sizeof(second), NULL, 0, "thing", detail), HF_OK);
}

static void what_is_filled_never_goes_beyond_the_callers_size(void **state)
{
    (void)state;
    const second ours = {.size = sizeof ours, .name = "a", .limit = 7, .unused = 8};
    struct {
        first old;
        char after[16];
    } guarded = {.old = {.size = sizeof(first)}};
    memset(guarded.after, 'x', sizeof guarded.after);
    hf_struct_fill(&guarded.old, &ours, sizeof ours);
    assert_string_equal(guarded.old.name, "a");
    assert_int_equal(guarded.old.size, sizeof(first));
    for (size_t i = 0; i < sizeof guarded.after; i++)
        assert_int_equal(guarded.after[i], 'x');
    third new = {.size = sizeof new, .more = "left from before"};
    hf_struct_fill(&new, &ours, sizeof ours);
    assert_int_equal(new.limit, 7);
    assert_null(new.more);
    assert_int_equal(new.size, sizeof new);
}

static void a_servers_options_are_filled_in_and_owned(void **state)
{
    hf_server_opts ours;
    (void)state;
    char url[] = "redis://h";
    assert_int_equal(hf_server_opts_in(&ours, NULL, detail), HF_OK);
    assert_string_equal(ours.ns, "hf");
    assert_null(ours.url);
    assert_int_equal(ours.connect_timeout_ms, 5000);
    assert_int_equal(ours.request_timeout_ms, 1000);
    assert_int_equal(
        hf_server_opts_in(&ours, HF_SERVER(.url = url, .connect_timeout_ms = 7), detail),
        HF_OK);
    assert_int_equal(hf_server_opts_own(&ours), HF_OK);
    url[0] = 'x';
    assert_string_equal(ours.url, "redis://h");
    assert_null(ours.password_file);
    assert_int_equal(ours.connect_timeout_ms, 7);
    hf_server_opts_free(&ours);
    assert_null(ours.url);
}

static void bad_options_of_a_server_are_named(void **state)
{
    hf_server_opts ours;
    (void)state;
    assert_int_equal(hf_server_opts_in(&ours, HF_SERVER(.ns = "a b"), detail),
                     HF_INVALID);
    assert_non_null(strstr(detail, "namespace"));
    assert_int_equal(
        hf_server_opts_in(&ours, HF_SERVER(.connect_timeout_ms = 600001), detail),
        HF_INVALID);
    assert_non_null(strstr(detail, "time-out"));
    assert_int_equal(
        hf_server_opts_in(&ours, HF_SERVER(.request_timeout_ms = 600001), NULL),
        HF_INVALID);
    assert_int_equal(hf_server_opts_in(&ours, &(hf_server_opts){.ns = "hf"}, detail),
                     HF_INVALID);
    assert_non_null(strstr(detail, "hf_server_opts"));
}

static void the_version_is_that_of_the_build(void **state)
{
    const char *text = NULL;
    (void)state;
    assert_int_equal(hf_version(&text), HF_VERSION);
    assert_int_equal(hf_version(NULL), HF_VERSION);
    assert_string_equal(text, HOLDFAST_VERSION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_older_struct_has_the_defaults_of_what_it_does_not_know),
        cmocka_unit_test(a_newer_struct_is_taken_while_it_sets_nothing_unknown),
        cmocka_unit_test(a_struct_without_a_size_is_refused),
        cmocka_unit_test(an_array_has_the_stride_of_its_first_element),
        cmocka_unit_test(an_array_of_our_own_size_is_not_copied),
        cmocka_unit_test(what_is_filled_never_goes_beyond_the_callers_size),
        cmocka_unit_test(a_servers_options_are_filled_in_and_owned),
        cmocka_unit_test(bad_options_of_a_server_are_named),
        cmocka_unit_test(the_version_is_that_of_the_build),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
