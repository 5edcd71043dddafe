/* otlp.c - see otlp.h. */
#include "trace/otlp.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json_text.h"
#include "holdfast/version.h"

#define SCHEMA "https://opentelemetry.io/schemas/1.44.0"

/* ---- values ---- */

typedef struct attributes {
    hf_buf *out;
    bool some;
} attributes;

static void begin_value(attributes *a, const char *key)
{
    hf_buf_text(a->out, a->some ? ",{\"key\":\"" : "{\"key\":\"");
    hf_buf_text(a->out, key);
    a->some = true;
}

/* NULL: it is not there. */
static void add_text(attributes *a, const char *key, const char *value)
{
    if (value == NULL)
        return;
    begin_value(a, key);
    hf_buf_text(a->out, "\",\"value\":{\"stringValue\":\"");
    hf_json_escape(a->out, value, strlen(value));
    hf_buf_text(a->out, "\"}}");
}

static void add_number(attributes *a, const char *key, uint64_t value)
{
    begin_value(a, key);
    hf_buf_printf(a->out, "\",\"value\":{\"intValue\":\"%" PRIu64 "\"}}", value);
}

static void add_count(attributes *a, const char *key, uint64_t value)
{
    if (value != 0)
        add_number(a, key, value);
}

static void add_hex(hf_buf *out, const uint8_t *bytes, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    char text[32];
    for (size_t i = 0; i < n; i++) {
        text[2 * i] = digits[bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 15];
    }
    hf_buf_add(out, text, 2 * n);
}

/* ---- the request ---- */

void hf_otlp_begin(hf_buf *out, const char *service)
{
    char host[256];
    const char *version;
    attributes a = {out, false};
    bool named = gethostname(host, sizeof host) == 0;
    host[sizeof host - 1] = '\0';
    hf_buf_text(out, "{\"resourceSpans\":[{\"resource\":{\"attributes\":[");
    (void)hf_version(&version);
    add_text(&a, "service.name", service);
    add_text(&a, "service.version", version);
    add_text(&a, "host.name", named ? host : NULL);
    add_number(&a, "process.pid", (uint64_t)getpid());
    hf_buf_text(out,
                "]},\"scopeSpans\":[{\"scope\":{\"name\":\"holdfast\",\"version\":\"");
    hf_buf_text(out, version);
    hf_buf_text(out, "\"},\"schemaUrl\":\"" SCHEMA "\",\"spans\":[");
}

void hf_otlp_end(hf_buf *out)
{
    hf_buf_text(out, "]}],\"schemaUrl\":\"" SCHEMA "\"}]}");
}

/* ---- a span ---- */

static const struct {
    const char *name, *type; /* of the operation */
    int kind;                /* PRODUCER, CONSUMER, CLIENT */
} kinds[] = {
    [HF_SPAN_ENQUEUE] = {"enqueue", "send", 4},
    [HF_SPAN_PROCESS] = {"process", "process", 5},
    [HF_SPAN_SETTLE] = {"settle", "settle", 3},
};

static void add_ids(hf_buf *out, const hf_span *span)
{
    static const uint8_t none[sizeof span->parent_id];
    hf_buf_text(out, "{\"traceId\":\"");
    add_hex(out, span->self.trace_id, sizeof span->self.trace_id);
    hf_buf_text(out, "\",\"spanId\":\"");
    add_hex(out, span->self.span_id, sizeof span->self.span_id);
    if (memcmp(span->parent_id, none, sizeof none) != 0) {
        hf_buf_text(out, "\",\"parentSpanId\":\"");
        add_hex(out, span->parent_id, sizeof span->parent_id);
    }
    hf_buf_text(out, "\",\"flags\":1,");
}

static void add_links(hf_buf *out, const hf_span *span)
{
    for (uint32_t i = 0; i < span->n_links; i++) {
        hf_buf_text(out, i == 0 ? ",\"links\":[{\"traceId\":\"" : ",{\"traceId\":\"");
        add_hex(out, span->links[i].trace_id, sizeof span->links[i].trace_id);
        hf_buf_text(out, "\",\"spanId\":\"");
        add_hex(out, span->links[i].span_id, sizeof span->links[i].span_id);
        hf_buf_text(out, "\"}");
    }
    if (span->n_links > 0)
        hf_buf_text(out, "]");
}

static void add_attributes(hf_buf *out, const hf_span *span)
{
    attributes a = {out, false};
    add_text(&a, "messaging.system", "holdfast");
    add_text(&a, "messaging.destination.name", span->queue);
    add_text(&a, "messaging.operation.name", kinds[span->kind].name);
    add_text(&a, "messaging.operation.type", kinds[span->kind].type);
    add_text(&a, "messaging.message.id", span->id);
    add_text(&a, "messaging.client.id", span->client);
    add_text(&a, "server.address", span->server_address);
    add_count(&a, "server.port", span->server_port);
    add_text(&a, "error.type", span->error_type);
    add_text(&a, "holdfast.job.type", span->type);
    if (span->jobs > 1)
        add_number(&a, "messaging.batch.message_count", span->jobs);
    else
        add_number(&a, "messaging.message.body.size", span->body_bytes);
    add_count(&a, "holdfast.job.attempt", span->attempt);
    add_count(&a, "holdfast.job.run", span->run);
    add_count(&a, "holdfast.job.fence", span->fence);
    if (span->kind != HF_SPAN_PROCESS)
        return;
    add_text(&a, "holdfast.job.outcome", span->outcome);
    add_number(&a, "holdfast.job.wait_ms", (uint64_t)span->wait_ms);
}

void hf_otlp_add(hf_buf *out, const hf_span *span, bool first)
{
    if (!first)
        hf_buf_text(out, ",");
    add_ids(out, span);
    hf_buf_printf(out, "\"name\":\"%s %s\",\"kind\":%d,", kinds[span->kind].name,
                  span->queue, kinds[span->kind].kind);
    hf_buf_printf(out,
                  "\"startTimeUnixNano\":\"%" PRId64 "\",\"endTimeUnixNano\":\"%" PRId64
                  "\",\"attributes\":[",
                  span->start_ns, span->end_ns);
    add_attributes(out, span);
    hf_buf_text(out, "]");
    add_links(out, span);
    hf_buf_text(out, span->error_type == NULL ? "}" : ",\"status\":{\"code\":2}}");
}

/* ---- the answer ---- */

static bool find(const char *object, size_t len, const char *key, hf_json_member *out)
{
    hf_json_scan scan;
    hf_json_scan_start(&scan, object, len);
    while (hf_json_scan_next(&scan, out))
        if (out->key_len == strlen(key) && memcmp(out->key, key, out->key_len) == 0)
            return true;
    return false;
}

/* {"partialSuccess":{"rejectedSpans":"3"}}, where the number may be one, or a text. */
uint64_t hf_otlp_rejected(const char *answer, size_t len)
{
    hf_json_fault fault;
    hf_json_member part, count;
    int64_t n;
    if (!hf_json_check(answer, len, &fault) ||
        !find(answer, len, "\"partialSuccess\"", &part) ||
        !find(part.value, part.value_len, "\"rejectedSpans\"", &count))
        return 0;
    bool quoted = count.value_len > 2 && *count.value == '"';
    return hf_json_integer(count.value + quoted, count.value_len - 2 * (size_t)quoted,
                           &n) &&
                   n > 0
               ? (uint64_t)n
               : 0;
}
