/* tracing.c - see tracing.h. */
#include "queue/tracing.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/detail.h"
#include "base/structs.h"
#include "base/text.h"

hf_err hf_tracer_in(hf_tracer *out, const hf_tracer *theirs, char detail[HF_DETAIL_SIZE])
{
    *out = (hf_tracer){HF_TRACER_INIT};
    if (theirs == NULL)
        return HF_OK;
    hf_err err = hf_struct_in(out, sizeof *out, theirs, "hf_tracer", detail);
    if (err != HF_OK)
        return err;
    if (out->on_span == NULL)
        return hf_say(detail, HF_INVALID, "expected an hf_tracer with on_span");
    if (!(out->sample >= 0 && out->sample <= 1))
        return hf_say(detail, HF_INVALID, "expected as sample of a tracer 0..1");
    if (out->link != HF_TRACE_CHILD && out->link != HF_TRACE_LINK)
        return hf_say(detail, HF_INVALID,
                      "expected as link of a tracer an hf_trace_link");
    return HF_OK;
}

/* By its last 56 bits, which the W3C Trace Context wants to be random. */
bool hf_tracer_samples(const hf_tracer *tracer, const uint8_t trace_id[16])
{
    enum { FIRST = 9, BITS = 56 };
    uint64_t value = 0;
    for (size_t i = FIRST; i < 16; i++)
        value = value << 8 | trace_id[i];
    return (double)value >= (1 - tracer->sample) * (double)(UINT64_C(1) << BITS);
}

/* FNV-1a leaves the upper bits of similar texts alike (the finalizer of splitmix64). */
static uint64_t mix(uint64_t hash)
{
    hash = (hash ^ hash >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    hash = (hash ^ hash >> 27) * UINT64_C(0x94d049bb133111eb);
    return hash ^ hash >> 31;
}

void hf_trace_id_of(uint8_t *out, size_t len, const char *const *texts, size_t n)
{
    uint64_t hash = HF_HASH_START;
    for (size_t i = 0; i < n; i++)
        hash = hf_hash_text(hash, texts[i]) * 31; /* "ab", "c" is not "a", "bc" */
    for (size_t at = 0; at < len; at += sizeof hash) {
        hash = mix(hash + len + at);
        memcpy(out + at, &hash, sizeof hash);
        out[at] |= hash == 0;
    }
}

void hf_span_ref_set(hf_span_ref *out, const hf_traceparent *from)
{
    memcpy(out->trace_id, from->trace_id, sizeof out->trace_id);
    memcpy(out->span_id, from->span_id, sizeof out->span_id);
}

void hf_span_server_set(hf_span_server *out, const hf_url *url)
{
    bool socket = url->path[0] != '\0';
    (void)snprintf(out->address, sizeof out->address, "%s",
                   socket ? url->path : url->host);
    out->port = socket ? 0 : url->port;
}

void hf_span_server_put(hf_span *span, const hf_span_server *server)
{
    if (server->address[0] == '\0')
        return;
    span->server_address = server->address;
    span->server_port = server->port;
}

int64_t hf_span_unix_ns(uint64_t boot_ns)
{
    return hf_wall_us() * 1000 - (int64_t)(hf_boot_ns() - boot_ns);
}
