/* holder.h - the holder of a job, in readable form: a worker's id is host-pid-random. */
#ifndef HF_SEEN_HOLDER_H
#define HF_SEEN_HOLDER_H

#include <stdint.h>

#include "holdfast/admin.h"

typedef struct hf_holder {
    char host[HF_HOLDER_SIZE]; /* the whole id, where it has another form */
    int64_t pid;               /* 0 then */
} hf_holder;

void hf_holder_read(const char *id, hf_holder *out);

/* "web1 pid 4711" */
enum { HF_HOLDER_TEXT = HF_HOLDER_SIZE + 32 };
void hf_holder_text(const char *id, char out[HF_HOLDER_TEXT]);

#endif
