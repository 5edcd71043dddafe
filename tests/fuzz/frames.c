/* frames.c - for libFuzzer: any bytes of a long-lived program, whole and in pieces, give
 * the same frames and the same fault, within the bounds. tests/acceptance/90-fuzz-frames
 * builds it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/random.h"
#include "worker/pool/frame.h"
#include "worker/pool/ready.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const hf_frame *f)
{
    char error[HF_FRAME_ERROR_MAX + 1], why[HF_FRAME_FAULT_SIZE];
    HF_ASSERT(f->kind > HF_FRAME_BROKEN && f->kind < HF_FRAME_KINDS);
    HF_ASSERT(f->n <= HF_FRAME_BODY_MAX && f->body_len <= HF_FRAME_RESULT_MAX);
    HF_ASSERT(f->too_long || f->body_len == f->n);
    HF_ASSERT(f->error_len <= HF_FRAME_ERROR_MAX && f->note_len <= HF_NOTE_MAX);
    HF_ASSERT(f->percent <= 100 && f->in_ms >= 0 && f->in_ms <= HF_JSON_INTEGER_MAX);
    if (hf_frame_is_verdict(f->kind) && f->kind != HF_FRAME_DONE)
        HF_ASSERT(hf_frame_error(f, error) <= HF_FRAME_ERROR_MAX);
    if (hf_frame_is_refused(f, why))
        HF_ASSERT(f->kind == HF_FRAME_DONE || f->kind == HF_FRAME_CHECKPOINT);
}

/* `ready` is read twice: what it offers is the same as itself. */
static void check_ready(const hf_frame *f)
{
    char detail[HF_DETAIL_SIZE];
    hf_ready *one = NULL, *two = NULL;
    hf_err err = hf_ready_read(&one, f->line, f->line_len, detail);
    HF_ASSERT(err == hf_ready_read(&two, f->line, f->line_len, detail));
    HF_ASSERT(err != HF_OK || hf_ready_same(one, two));
    hf_ready_free(one);
    hf_ready_free(two);
}

static uint64_t add(uint64_t hash, const void *bytes, size_t n)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ at[i]) * UINT64_C(1099511628211);
    return hash;
}

/* What all frames say, in a number. longest: of a piece. */
static uint64_t play(const uint8_t *data, size_t size, size_t longest, uint64_t seed)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    hf_rng rng = {seed};
    hf_frame_reader r;
    hf_frame f;
    hf_frame_kind kind = HF_FRAME_NONE;
    hf_frame_reader_init(&r);
    while (size > 0 && kind != HF_FRAME_BROKEN) {
        size_t n = 1 + hf_rng_next(&rng) % longest;
        n = n < size ? n : size;
        char *piece = malloc(n); /* of exactly this size, for the sanitizers */
        HF_ASSERT(piece != NULL);
        memcpy(piece, data, n);
        data += n;
        size -= n;
        const char *at = piece;
        while ((kind = hf_frame_next(&r, &at, &n, &f)) > HF_FRAME_BROKEN) {
            check(&f);
            if (f.kind == HF_FRAME_READY)
                check_ready(&f);
            hash = add(hash, &f.kind, sizeof f.kind);
            hash = add(hash, &f.run, sizeof f.run);
            hash = add(hash, f.error, f.error_len);
            hash = add(hash, f.body, f.body_len);
        }
        free(piece);
    }
    hash = add(hash, r.fault, strlen(r.fault));
    hf_frame_reader_done(&r);
    return hash;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t seed = add(1, data, size);
    uint64_t whole = play(data, size, size + 1, 1);
    HF_ASSERT(whole == play(data, size, 1, seed));
    HF_ASSERT(whole == play(data, size, 1 + seed % 300, seed));
    return 0;
}
