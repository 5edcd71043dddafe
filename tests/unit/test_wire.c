/* test_wire.c - the socket of a process of a pool: what the end of the process tells. */
#include "worker/pool/wire.h"

#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "tests/support/eventually.h"

static unsigned ended;

static void on_frame(const hf_frame *frame, void *arg)
{
    (void)frame, (void)arg;
}

static void on_broken(const char *why, void *arg)
{
    (void)why, (void)arg;
}

static void on_event(void *arg)
{
    (void)arg;
}

static void on_ended(void *arg)
{
    (void)arg;
    ended++;
}

static const hf_wire_calls calls = {.frame = on_frame,
                                    .broken = on_broken,
                                    .drained = on_event,
                                    .ended = on_ended,
                                    .closed = on_event};

/* The kernel says once that something was not read. */
static void what_was_not_read_is_known_after_a_spin(void **state)
{
    uv_loop_t loop;
    hf_wire wire;
    int far;
    (void)state;
    const hf_wire_part parts[3] = {{"a job\n", 6}, {"", 0}, {"", 0}};
    for (int read_it = 0; read_it < 2; read_it++) {
        char bytes[16];
        ended = 0;
        assert_int_equal(uv_loop_init(&loop), 0);
        hf_wire_init(&wire, &calls, NULL);
        assert_true(hf_wire_open(&wire, &loop, &far));
        assert_true(hf_wire_write(&wire, parts));
        if (read_it)
            assert_int_equal(read(far, bytes, sizeof bytes), 6);
        close(far);
        hf_spin_read(&wire.spin, hf_boot_ns()); /* so it is worth a spin */
        hf_wire_spin(&wire);
        hf_wire_read(&wire, 1);
        assert_int_equal(ended, 1);
        assert_int_equal(hf_wire_has_unread(&wire), !read_it);
        hf_wire_close(&wire);
        uv_run(&loop, UV_RUN_DEFAULT);
        hf_wire_done(&wire);
        assert_int_equal(uv_loop_close(&loop), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_not_read_is_known_after_a_spin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
