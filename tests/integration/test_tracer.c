/* test_tracer.c - the spans that producers and workers give to a tracer: which there are,
 * and how they belong together. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/traceparent.h"
#include "holdfast/producer.h"
#include "queue_scripts.h"
#include "tests/support/eventually.h"
#include "tests/support/proxy.h"
#include "tests/support/redis_fixture.h"
#include "tests/support/worker_fixture.h"

#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"
#define SPAN "00f067aa0ba902b7"
#define HEADERS(flags) "{\"traceparent\":\"00-" TRACE "-" SPAN "-" flags "\"}"

enum { SPANS_MAX = 64, TEXT = 129 };

typedef struct seen {
    hf_span span; /* its texts are below */
    char queue[TEXT], type[TEXT], id[TEXT], outcome[TEXT], error[TEXT];
} seen;

static hf_fixture redis;
static const char *address; /* what the worker is connected to */
static hf_worker_fixture worker;
static hf_producer *producer;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static seen spans[SPANS_MAX];
static size_t n_spans;
static char told[SPANS_MAX][HF_TRACEPARENT_SIZE]; /* what handlers got, in their order */
static size_t n_told;

static void keep(char out[TEXT], const char *text)
{
    (void)snprintf(out, TEXT, "%s", text == NULL ? "-" : text);
}

static void on_span(const hf_span *span, void *arg)
{
    assert_ptr_equal(arg, spans);
    assert_string_equal(span->server_address, address);
    assert_true(span->end_ns >= span->start_ns && span->start_ns > 0);
    pthread_mutex_lock(&lock);
    assert_true(n_spans < SPANS_MAX);
    seen *s = &spans[n_spans++];
    s->span = *span;
    keep(s->queue, span->queue);
    keep(s->type, span->type);
    keep(s->id, span->id);
    keep(s->outcome, span->outcome);
    keep(s->error, span->error_type);
    pthread_mutex_unlock(&lock);
}

/* The nth of this kind, in their order; NULL: it is not there yet. */
static const seen *nth(hf_span_kind kind, size_t n)
{
    const seen *found = NULL;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < n_spans && found == NULL; i++)
        if (spans[i].span.kind == kind && n-- == 0)
            found = &spans[i];
    pthread_mutex_unlock(&lock);
    return found;
}

static uint64_t count_dropped(void *arg)
{
    return arg == spans ? 7 : 0;
}

static hf_tracer tracer(double sample, hf_trace_link link)
{
    return (hf_tracer){HF_TRACER_INIT, .on_span = on_span, .dropped = count_dropped,
                       .arg = spans,   .sample = sample,   .link = link};
}

/* "fail" fails the first time. */
static hf_verdict handle(hf_run *run, void *arg)
{
    size_t len;
    const char *payload = hf_run_payload(run, &len);
    (void)arg;
    pthread_mutex_lock(&lock);
    (void)snprintf(told[n_told++], sizeof *told, "%s", hf_run_traceparent(run));
    pthread_mutex_unlock(&lock);
    if (len == 4 && memcmp(payload, "fail", 4) == 0 && hf_run_attempt(run) == 1) {
        hf_run_set_error(run, "SMTPServerBusy: 421 for ada@example.org");
        return HF_VERDICT_RETRY;
    }
    return HF_VERDICT_DONE;
}

static int up(void **state)
{
    (void)state;
    n_spans = n_told = 0;
    memset(told, 0, sizeof told);
    hf_fixture_start(&redis, NULL);
    address = redis.socket;
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_worker_fixture_end(&worker);
    hf_producer_close(producer, NULL, NULL);
    producer = NULL;
    hf_fixture_stop(&redis);
    return 0;
}

static void begin_worker(const hf_tracer *with)
{
    const hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .tracer = with};
    hf_worker_fixture_start_own(&worker, hf_fixture_url(&redis), &opts, 0, handle, NULL);
}

static void begin_producer(const hf_tracer *with)
{
    char detail[HF_DETAIL_SIZE];
    const hf_server_opts server = {HF_SERVER_OPTS_INIT, .url = hf_fixture_url(&redis)};
    const hf_producer_opts opts = {HF_PRODUCER_OPTS_INIT, .server = &server,
                                   .tracer = with};
    assert_int_equal(hf_producer_open(&producer, &opts, detail), HF_OK);
}

static void put(const char *payload, const char *headers, size_t n)
{
    char detail[HF_DETAIL_SIZE];
    hf_job jobs[4];
    hf_enqueue_result results[4] = {{HF_ENQUEUE_RESULT_INIT}};
    for (size_t i = 0; i < n; i++) {
        jobs[i] = (hf_job){HF_JOB_INIT,
                           .queue = "q",
                           .type = "t",
                           .payload = payload,
                           .payload_len = strlen(payload),
                           .headers = headers};
        results[i].size = sizeof *results;
    }
    assert_int_equal(hf_enqueue_wait(producer, jobs, n, results, 0, detail), HF_OK);
}

static void hex(const uint8_t *bytes, size_t n, char out[33])
{
    for (size_t i = 0; i < n; i++)
        (void)snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

static void is_in_trace(const seen *s, const char *trace)
{
    char text[33];
    hex(s->span.self.trace_id, 16, text);
    assert_string_equal(text, trace);
}

static void is_child_of(const seen *s, const seen *parent)
{
    assert_memory_equal(s->span.self.trace_id, parent->span.self.trace_id, 16);
    assert_memory_equal(s->span.parent_id, parent->span.self.span_id, 8);
}

/* What its handler got names this span. */
static void is_told(size_t i, const seen *s, bool sampled)
{
    hf_traceparent text;
    assert_true(hf_traceparent_read(told[i], strlen(told[i]), &text));
    assert_int_equal(text.sampled, sampled);
    if (s == NULL)
        return;
    assert_memory_equal(text.trace_id, s->span.self.trace_id, 16);
    assert_memory_equal(text.span_id, s->span.self.span_id, 8);
}

static void a_trace_goes_from_the_caller_to_the_handler(void **state)
{
    const hf_tracer with = tracer(0, HF_TRACE_CHILD); /* the caller's decision counts */
    char parent[33];
    (void)state;
    begin_producer(&with);
    begin_worker(&with);
    put("hello", HEADERS("01"), 1);
    EVENTUALLY(15000, nth(HF_SPAN_SETTLE, 0) != NULL);
    const seen *enqueue = nth(HF_SPAN_ENQUEUE, 0), *process = nth(HF_SPAN_PROCESS, 0),
               *settle = nth(HF_SPAN_SETTLE, 0);
    is_in_trace(enqueue, TRACE);
    hex(enqueue->span.parent_id, 8, parent);
    assert_string_equal(parent, SPAN);
    is_child_of(process, enqueue);
    is_child_of(settle, process);
    is_told(0, process, true);
    assert_string_equal(process->queue, "q");
    assert_string_equal(process->type, "t");
    assert_string_equal(process->id, enqueue->id);
    assert_string_equal(process->outcome, "done");
    assert_string_equal(process->error, "-");
    assert_int_equal(process->span.body_bytes, 5);
    assert_int_equal(process->span.run, 1);
    assert_true(process->span.fence > 0);
    assert_int_equal(process->span.n_links, 0);
    assert_true(settle->span.start_ns == process->span.end_ns);
    assert_int_equal(hf_worker_spans_dropped(worker.worker), 7);
    char *metrics;
    size_t len;
    assert_int_equal(
        hf_worker_metrics(worker.worker, HF_METRICS_PROMETHEUS, &metrics, &len), HF_OK);
    assert_non_null(strstr(metrics, "\nholdfast_worker_spans_dropped_total 7\n"));
    free(metrics);
}

/* A slow Redis makes no run longer. */
static void a_process_ends_with_its_verdict(void **state)
{
    enum { HELD_MS = 200 };
    const hf_tracer with = tracer(1, HF_TRACE_CHILD);
    const hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .tracer = &with};
    hf_proxy proxy;
    (void)state;
    hf_proxy_start(&proxy, redis.socket);
    hf_proxy_keep_answer(&proxy, hf_lua_queue_complete.sha1);
    begin_producer(NULL);
    address = proxy.socket;
    hf_worker_fixture_start_own(&worker, proxy.url, &opts, 0, handle, NULL);
    put("hello", NULL, 1);
    EVENTUALLY(15000, hf_proxy_kept(&proxy) == 1);
    ALWAYS(HELD_MS, nth(HF_SPAN_SETTLE, 0) == NULL);
    hf_proxy_let_go(&proxy);
    EVENTUALLY(15000, nth(HF_SPAN_SETTLE, 0) != NULL);
    const hf_span *process = &nth(HF_SPAN_PROCESS, 0)->span,
                  *settle = &nth(HF_SPAN_SETTLE, 0)->span;
    assert_true(settle->start_ns == process->end_ns);
    assert_true(settle->end_ns - settle->start_ns >= (int64_t)HELD_MS * 1000000);
    hf_worker_fixture_end(&worker);
    hf_proxy_stop(&proxy);
}

static void a_decision_against_it_counts_everywhere(void **state)
{
    const hf_tracer with = tracer(1, HF_TRACE_CHILD);
    (void)state;
    begin_producer(&with);
    begin_worker(&with);
    put("hello", HEADERS("00"), 1);
    EVENTUALLY(15000, hf_worker_fixture_said(&worker, "outcome=done") == 1);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    assert_int_equal(n_spans, 0);
    assert_memory_equal(told[0], "00-" TRACE, 35);
    is_told(0, NULL, false);
}

static void sample_decides_for_jobs_without_a_trace(void **state)
{
    const hf_tracer none = tracer(0, HF_TRACE_CHILD), all = tracer(1, HF_TRACE_CHILD);
    (void)state;
    begin_producer(&none); /* so it makes none */
    begin_worker(&all);
    put("hello", NULL, 1);
    EVENTUALLY(15000, nth(HF_SPAN_SETTLE, 0) != NULL);
    assert_null(nth(HF_SPAN_ENQUEUE, 0));
    is_told(0, nth(HF_SPAN_PROCESS, 0), true);
    static const uint8_t no_parent[8];
    assert_memory_equal(nth(HF_SPAN_PROCESS, 0)->span.parent_id, no_parent, 8);
}

static void a_retry_is_in_the_same_trace_and_linked(void **state)
{
    const hf_tracer with = tracer(1, HF_TRACE_CHILD);
    (void)state;
    begin_producer(NULL);
    begin_worker(&with);
    put("fail", NULL, 1);
    EVENTUALLY(15000, nth(HF_SPAN_SETTLE, 1) != NULL);
    const seen *first = nth(HF_SPAN_PROCESS, 0), *second = nth(HF_SPAN_PROCESS, 1);
    assert_string_equal(first->outcome, "retry");
    assert_string_equal(first->error, "SMTPServerBusy"); /* and not for whom */
    assert_int_equal(first->span.n_links, 0);
    assert_string_equal(second->outcome, "done");
    assert_int_equal(second->span.attempt, 2);
    assert_memory_equal(second->span.self.trace_id, first->span.self.trace_id, 16);
    assert_memory_not_equal(second->span.self.span_id, first->span.self.span_id, 8);
    assert_int_equal(second->span.n_links, 1);
    assert_memory_equal(&second->span.links[0], &first->span.self,
                        sizeof first->span.self);
}

static void with_link_each_job_has_a_trace_of_its_own(void **state)
{
    const hf_tracer with = tracer(0, HF_TRACE_LINK);
    (void)state;
    begin_producer(&with);
    begin_worker(&with);
    put("hello", HEADERS("01"), 2);
    EVENTUALLY(15000, nth(HF_SPAN_SETTLE, 1) != NULL);
    const seen *enqueue = nth(HF_SPAN_ENQUEUE, 0), *one = nth(HF_SPAN_PROCESS, 0),
               *two = nth(HF_SPAN_PROCESS, 1);
    assert_null(nth(HF_SPAN_ENQUEUE, 1)); /* one request, one span */
    assert_int_equal(enqueue->span.jobs, 2);
    assert_int_equal(enqueue->span.body_bytes, 10);
    is_in_trace(enqueue, TRACE);
    assert_memory_not_equal(one->span.self.trace_id, two->span.self.trace_id, 16);
    assert_memory_not_equal(one->span.self.trace_id, enqueue->span.self.trace_id, 16);
    assert_int_equal(one->span.n_links, 1);
    assert_memory_equal(&one->span.links[0], &enqueue->span.self, sizeof(hf_span_ref));
}

static void jobs_without_a_trace_each_begin_one(void **state)
{
    const hf_tracer with = tracer(1, HF_TRACE_CHILD);
    (void)state;
    begin_producer(&with);
    begin_worker(&with);
    put("hello", NULL, 3);
    EVENTUALLY(15000, nth(HF_SPAN_SETTLE, 2) != NULL);
    for (size_t i = 0; i < 3; i++) {
        const seen *process = nth(HF_SPAN_PROCESS, i), *enqueue = NULL;
        for (size_t k = 0; k < 3; k++)
            if (strcmp(nth(HF_SPAN_ENQUEUE, k)->id, process->id) == 0)
                enqueue = nth(HF_SPAN_ENQUEUE, k);
        assert_non_null(enqueue);
        is_child_of(process, enqueue);
    }
}

static atomic_int answers;

static void on_answer(const hf_enqueue_result *result, const char *detail, void *arg)
{
    (void)detail;
    assert_int_equal(result->err, HF_OK);
    assert_ptr_equal(arg, &answers);
    atomic_fetch_add(&answers, 1);
}

static void a_call_with_a_callback_has_its_span_as_well(void **state)
{
    const hf_tracer with = tracer(0, HF_TRACE_CHILD);
    const hf_job job = {HF_JOB_INIT, .queue = "q", .type = "t", .headers = HEADERS("01")};
    char detail[HF_DETAIL_SIZE];
    (void)state;
    begin_producer(&with);
    assert_int_equal(hf_enqueue(producer, &job, on_answer, &answers, detail), HF_OK);
    EVENTUALLY(15000, atomic_load(&answers) == 1);
    const seen *enqueue = nth(HF_SPAN_ENQUEUE, 0);
    is_in_trace(enqueue, TRACE);
    assert_string_equal(enqueue->type, "t");
    assert_string_not_equal(enqueue->id, "-");
}

static void without_a_tracer_a_handler_gets_the_trace_of_the_job(void **state)
{
    (void)state;
    begin_producer(NULL);
    begin_worker(NULL);
    put("hello", HEADERS("01"), 1);
    EVENTUALLY(15000, hf_worker_fixture_said(&worker, "outcome=done") == 1);
    put("hello", NULL, 1);
    EVENTUALLY(15000, hf_worker_fixture_said(&worker, "outcome=done") == 2);
    assert_string_equal(told[0], "00-" TRACE "-" SPAN "-01");
    assert_string_equal(told[1], "");
    assert_int_equal(hf_worker_spans_dropped(worker.worker), 0);
}

static void a_wrong_tracer_is_refused(void **state)
{
    hf_tracer wrong[] = {tracer(1.5, HF_TRACE_CHILD), tracer(-1, HF_TRACE_CHILD),
                         tracer(1, (hf_trace_link)2), tracer(1, HF_TRACE_CHILD)};
    hf_worker *made = NULL;
    char detail[HF_DETAIL_SIZE];
    (void)state;
    wrong[3].on_span = NULL;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .tracer = &wrong[i]};
        const hf_producer_opts also = {HF_PRODUCER_OPTS_INIT, .tracer = &wrong[i]};
        assert_int_equal(hf_worker_new(&made, &opts, detail), HF_INVALID);
        assert_int_equal(hf_producer_open(&producer, &also, detail), HF_INVALID);
        assert_non_null(strstr(detail, "tracer"));
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_trace_goes_from_the_caller_to_the_handler),
        TEST(a_process_ends_with_its_verdict),
        TEST(a_decision_against_it_counts_everywhere),
        TEST(sample_decides_for_jobs_without_a_trace),
        TEST(a_retry_is_in_the_same_trace_and_linked),
        TEST(with_link_each_job_has_a_trace_of_its_own),
        TEST(jobs_without_a_trace_each_begin_one),
        TEST(a_call_with_a_callback_has_its_span_as_well),
        TEST(without_a_tracer_a_handler_gets_the_trace_of_the_job),
        TEST(a_wrong_tracer_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
