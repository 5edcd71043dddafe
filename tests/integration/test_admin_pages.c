/* test_admin_pages.c - lists of a queue that changes between two pages: each job that was
 * there all the time is listed once, even if the last job of a page goes away. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "tests/support/eventually.h"
#include "tests/support/queue_fixture.h"

enum { JOBS = 1000 };

static hf_queue_fixture fixture;
static hf_admin *admin; /* lists */
static char detail[HF_DETAIL_SIZE];
static hf_admin *others; /* change the queue meanwhile */

static void enqueue_all(int64_t due_ms)
{
    static char ids[JOBS][16];
    static hf_enqueue_item items[JOBS];
    static const char record[] = "{\"v\":1,\"type\":\"t\",\"created\":1}\npayload";
    const hf_enqueue_args args = {.producer = ""};
    for (unsigned i = 0; i < JOBS; i++) {
        /* Those of one time in the order of their bytes, which is not a dictionary's. */
        (void)snprintf(ids[i], sizeof ids[i], "%c%05u", i % 2 == 0 ? 'B' : 'a', i % JOBS);
        items[i] = (hf_enqueue_item){
            ids[i], due_ms != 0 ? due_ms : 1 + i / 600, {record, sizeof record - 1}};
    }
    assert_int_equal(hf_queue_fixture_enqueue_items(&fixture, &args, items, JOBS), HF_OK);
}

typedef struct seen {
    bool told[JOBS];
    size_t n;
    char last[HF_ID_SIZE];
    bool move; /* what is told goes elsewhere at once */
} seen;

static void on_job(const hf_job_info *job, void *arg)
{
    seen *s = arg;
    unsigned i = 0;
    assert_int_equal(sscanf(job->id + 1, "%5u", &i), 1); /* NOLINT: five digits */
    assert_false(s->told[i]);
    s->told[i] = true;
    s->n++;
    memcpy(s->last, job->id, sizeof s->last);
    if (s->move)
        assert_int_equal(hf_admin_cancel(others, "q", job->id, NULL, detail), HF_OK);
}

static void each_is_told_once(size_t page)
{
    seen s = {.move = true};
    char after[HF_CURSOR_SIZE] = "";
    do {
        hf_err err =
            hf_admin_list(admin, "q", HF_STATE_READY, after[0] == '\0' ? NULL : after,
                          page, on_job, &s, after, detail);
        if (err != HF_OK)
            fail_msg("%s: %s", hf_err_name(err), detail);
    } while (after[0] != '\0');
    assert_int_equal(s.n, JOBS);
}

static void what_goes_while_it_is_listed_ends_no_list(void **state)
{
    (void)state;
    enqueue_all(0);
    each_is_told_once(JOBS);
    enqueue_all(1); /* all of one time */
    each_is_told_once(JOBS);
}

static void nor_one_that_continues_page_by_page(void **state)
{
    (void)state;
    enqueue_all(0);
    each_is_told_once(70);
    enqueue_all(1);
    each_is_told_once(70);
}

/* An id names no place. */
static void an_id_is_a_place_only_where_its_job_is(void **state)
{
    seen s = {.n = 0};
    (void)state;
    enqueue_all(0);
    assert_int_equal(
        hf_admin_list(admin, "q", HF_STATE_READY, NULL, 1, on_job, &s, NULL, detail),
        HF_OK);
    assert_int_equal(
        hf_admin_list(admin, "q", HF_STATE_DEAD, s.last, 1, on_job, &s, NULL, detail),
        HF_GONE);
    assert_int_equal(
        hf_admin_list(admin, "r", HF_STATE_READY, s.last, 1, on_job, &s, NULL, detail),
        HF_GONE);
    assert_int_equal(
        hf_admin_list(others, "q", HF_STATE_READY, "none", 1, on_job, &s, NULL, detail),
        HF_GONE);
}

static int up(void **state)
{
    (void)state;
    hf_queue_fixture_start(&fixture, NULL);
    others = hf_queue_fixture_admin(&fixture);
    admin = hf_queue_fixture_admin(&fixture);
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_admin_close(admin);
    hf_admin_close(others);
    hf_queue_fixture_stop(&fixture);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_goes_while_it_is_listed_ends_no_list),
        TEST(nor_one_that_continues_page_by_page),
        TEST(an_id_is_a_place_only_where_its_job_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
