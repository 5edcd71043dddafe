/* post.h - requests to a collector, one at a time, each with its answer. */
#ifndef HF_TRACE_POST_H
#define HF_TRACE_POST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/error.h"

typedef struct hf_post hf_post;

enum { HF_POST_BODY_MAX = 4096 };

typedef struct hf_post_answer {
    long status;            /* 0: none came; why[] says the reason */
    int64_t retry_after_ms; /* 0: it does not say */
    size_t len;
    char body[HF_POST_BODY_MAX]; /* its beginning */
    char why[HF_DETAIL_SIZE];
} hf_post_answer;

/* HF_CONFIG (the file of the headers), HF_NOMEM, HF_SYSTEM: `detail` says why. */
HF_MUSTCHECK hf_err hf_post_new(hf_post **out, const char *endpoint,
                                const char *headers_file, bool gzip,
                                char detail[HF_DETAIL_SIZE]);
void hf_post_free(hf_post *post);

/* Sends a body. A request that has lasted for 10 s without a part of an answer's body has
 * no answer. A longer answer than there is room for is not read to its end. */
void hf_post_send(hf_post *post, const char *body, size_t len, hf_post_answer *out);
/* Waits. False: the end has come. */
bool hf_post_rest(hf_post *post, int64_t ms);

/* Any thread: both return at this time (CLOCK_BOOTTIME) at the latest. */
void hf_post_end_at(hf_post *post, uint64_t end_ns);
bool hf_post_is_over(const hf_post *post);

#endif
