/* test_waits.c - when a wait is looked at again. Redis and its messages are played by the
 * test: a message comes at the worst moment, and is told once. */
#include "admin/hear.h"
#include "admin/wait.h"
#include "holdfast/job_wait.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"
#include "tests/support/eventually.h"

enum { LONG_MS = 60000, TURN_MS = 10 };

static hf_admin admin;
static char detail[HF_DETAIL_SIZE];
static hf_told_fn told;
static void *told_arg;
static bool heard;     /* the thread's: a message has come since its last sleep */
static unsigned looks; /* the thread's */
static atomic_bool tells, ended; /* the first look is overtaken by a message */
static atomic_uint put_off;      /* sleeps that a message should have ended */

/* ---- the messages ---- */

hf_err hf_hearing_open(hf_admin *of, hf_told_fn fn, void *arg)
{
    (void)of;
    told = fn;
    told_arg = arg;
    return HF_OK;
}

void hf_hearing_close(hf_admin *of)
{
    (void)of;
}

bool hf_hearing_has(hf_admin *of, const hf_queue *queue)
{
    (void)of, (void)queue;
    return true;
}

void hf_hearing_drop(hf_admin *of, const hf_queue *queue)
{
    (void)of, (void)queue;
}

/* A sleep is short, but counts as long as it should be. */
void hf_hearing_wait(hf_admin *of, uint64_t until_ns)
{
    (void)of;
    if (heard && until_ns > hf_boot_ns())
        atomic_fetch_add(&put_off, 1);
    heard = false;
    if (until_ns > hf_boot_ns())
        hf_test_pause_ms(TURN_MS);
}

void hf_hearing_wake(hf_admin *of)
{
    (void)of;
}

/* ---- Redis ---- */

/* The answer of the first look was made before the job ended, and is read after the
 * message about its end. */
hf_err hf_wait_look(hf_admin *of, hf_wait *w)
{
    (void)of;
    if (++looks > 1)
        return HF_OK;
    if (atomic_load(&tells)) {
        heard = true;
        told(&w->queue, w->id, told_arg);
    }
    return HF_RUNNING;
}

bool hf_wait_goes_on(hf_err err)
{
    (void)err;
    return false;
}

bool hf_wait_give_up(hf_admin *of, hf_wait *w)
{
    (void)of, (void)w;
    return true;
}

hf_err hf_wait_timed_out(hf_admin *of, hf_err err)
{
    (void)of, (void)err;
    return HF_TIMEOUT;
}

hf_err hf_admin_open(hf_admin **out, const hf_admin_opts *opts, char why[HF_DETAIL_SIZE])
{
    (void)opts, (void)why;
    admin = (hf_admin){.ns = "hf", .detail = admin.unread};
    *out = &admin;
    return HF_OK;
}

void hf_admin_close(hf_admin *of)
{
    (void)of;
}

void hf_admin_begin(hf_admin *of, char why[HF_DETAIL_SIZE])
{
    (void)of, (void)why;
}

hf_server *hf_admin_server_of(hf_admin *of, const hf_queue *queue)
{
    (void)of, (void)queue;
    return NULL;
}

hf_err hf_admin_fail(hf_admin *of, hf_err err, const char *format, ...)
{
    (void)of, (void)format;
    return err;
}

/* ---- the tests ---- */

static void on_end(const hf_job_end *end, void *arg)
{
    (void)arg;
    if (end->err == HF_OK)
        atomic_store(&ended, true);
}

static void wait_for_one(void)
{
    hf_waits *waits;
    looks = 0;
    heard = false;
    atomic_store(&put_off, 0);
    atomic_store(&ended, false);
    assert_int_equal(hf_waits_open(&waits, &(hf_waits_opts){HF_WAITS_OPTS_INIT}, detail),
                     HF_OK);
    assert_int_equal(hf_job_wait(waits, "q", "j", 0, LONG_MS, on_end, NULL, detail),
                     HF_OK);
    EVENTUALLY(LONG_MS, atomic_load(&ended));
    hf_waits_close(waits);
    assert_int_equal(looks, 2);
}

static void an_end_that_is_told_during_a_look_is_looked_at_at_once(void **state)
{
    (void)state;
    atomic_store(&tells, true);
    wait_for_one();
    assert_int_equal(atomic_load(&put_off), 0);
}

static void without_a_message_it_is_looked_at_again_later(void **state)
{
    (void)state;
    atomic_store(&tells, false);
    uint64_t began_ms = hf_test_now_ms();
    wait_for_one();
    assert_true(hf_test_now_ms() - began_ms >= 900);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_end_that_is_told_during_a_look_is_looked_at_at_once),
        cmocka_unit_test(without_a_message_it_is_looked_at_again_later),
    };
    return cmocka_run_group_tests_name("waits", tests, NULL, NULL);
}
