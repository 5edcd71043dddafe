/* test_otlp.c - the ring of the module of traces, and what a collector answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "trace/otlp.h"
#include "trace/ring.h"

static hf_span span_of(const char *id)
{
    return (hf_span){.size = sizeof(hf_span),
                     .kind = HF_SPAN_PROCESS,
                     .queue = "q",
                     .type = "t",
                     .id = id,
                     .outcome = "done"};
}

static void put(hf_ring *ring, unsigned from, unsigned n)
{
    char id[16];
    for (unsigned i = from; i < from + n; i++) {
        (void)snprintf(id, sizeof id, "%u", i);
        const hf_span span = span_of(id);
        hf_ring_put(ring, &span);
    }
}

static void is(const hf_ring *ring, size_t i, const char *id)
{
    assert_string_equal(hf_ring_at(ring, i)->id, id);
}

static void spans_come_out_in_their_order(void **state)
{
    hf_ring *ring = hf_ring_new();
    (void)state;
    put(ring, 0, HF_RING_BATCH + 10);
    assert_int_equal(hf_ring_take(ring), HF_RING_BATCH);
    is(ring, 0, "0");
    is(ring, HF_RING_BATCH - 1, "511");
    hf_ring_release(ring, HF_RING_BATCH);
    put(ring, HF_RING_BATCH + 10, HF_RING_SPANS - 10); /* round the end of the ring */
    assert_int_equal(hf_ring_dropped(ring), 0);
    assert_int_equal(hf_ring_take(ring), HF_RING_BATCH);
    is(ring, 0, "512");
    assert_string_equal(hf_ring_at(ring, 0)->outcome, "done");
    hf_ring_free(ring);
}

/* Also those that are being sent take room. */
static void a_full_ring_drops_what_comes(void **state)
{
    hf_ring *ring = hf_ring_new();
    (void)state;
    put(ring, 0, HF_RING_SPANS + 7);
    assert_int_equal(hf_ring_dropped(ring), 7);
    size_t n = hf_ring_take(ring);
    put(ring, 0, 1);
    assert_int_equal(hf_ring_dropped(ring), 8);
    hf_ring_release(ring, n);
    put(ring, 0, 1);
    hf_ring_drop(ring, n);
    assert_int_equal(hf_ring_dropped(ring), 8 + n);
    hf_ring_free(ring);
}

static void a_closed_ring_gives_what_it_has(void **state)
{
    hf_ring *ring = hf_ring_new();
    (void)state;
    put(ring, 0, 3);
    hf_ring_close(ring);
    put(ring, 3, 1);
    assert_int_equal(hf_ring_take(ring), 3);
    hf_ring_release(ring, 3);
    assert_int_equal(hf_ring_take(ring), 0);
    assert_int_equal(hf_ring_dropped(ring), 1);
    hf_ring_free(ring);
}

/* Half a name would be another one. */
static void a_text_without_room_is_left_out(void **state)
{
    char name[129], address[256];
    hf_ring *ring = hf_ring_new();
    (void)state;
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    memset(address, 'a', sizeof address - 1);
    address[sizeof address - 1] = '\0';
    hf_span span = span_of(name);
    span.queue = span.type = name;
    span.server_address = address;
    hf_ring_put(ring, &span);
    hf_ring_close(ring);
    assert_int_equal(hf_ring_take(ring), 1);
    assert_string_equal(hf_ring_at(ring, 0)->queue, name);
    assert_string_equal(hf_ring_at(ring, 0)->type, name);
    is(ring, 0, name);
    assert_null(hf_ring_at(ring, 0)->server_address);
    hf_ring_free(ring);
}

static void what_a_collector_rejects_is_read(void **state)
{
    static const struct {
        const char *text;
        uint64_t n;
    } answers[] = {
        {"", 0},
        {"{}", 0},
        {"{\"partialSuccess\":{}}", 0},
        {"{\"partialSuccess\":{\"rejectedSpans\":3}}", 3},
        {" { \"partialSuccess\" : { \"errorMessage\" : \"x\", \"rejectedSpans\" : \"17\" "
         "} } ",
         17},
        {"{\"partialSuccess\":{\"rejectedSpans\":\"-1\"}}", 0},
        {"{\"partialSuccess\":{\"rejectedSpans\":\"\"}}", 0},
        {"{\"partialSuccess\":7}", 0},
        {"<html>", 0},
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT(answers); i++)
        assert_int_equal(hf_otlp_rejected(answers[i].text, strlen(answers[i].text)),
                         answers[i].n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_come_out_in_their_order),
        cmocka_unit_test(a_full_ring_drops_what_comes),
        cmocka_unit_test(a_closed_ring_gives_what_it_has),
        cmocka_unit_test(a_text_without_room_is_left_out),
        cmocka_unit_test(what_a_collector_rejects_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
