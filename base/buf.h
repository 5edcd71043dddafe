/* buf.h - bytes that grow, up to a maximum given at the start.
 *
 * A failed append (past the maximum, or out of memory) leaves what was there, and is
 * remembered: append many, ask hf_buf_err() once. */
#ifndef HF_BASE_BUF_H
#define HF_BASE_BUF_H

#include <stddef.h>

#include "holdfast/error.h"

typedef struct hf_buf {
    char
        *data; /* owned; always followed by a NUL once anything was appended, else NULL */
    size_t len, cap, max;
    hf_err err; /* HF_OK, HF_TOOBIG or HF_NOMEM */
} hf_buf;

void hf_buf_init(hf_buf *buf, size_t max);
void hf_buf_done(hf_buf *buf);  /* frees; may be used again after init */
void hf_buf_clear(hf_buf *buf); /* empties, keeps the memory, forgets the error */
void hf_buf_add(hf_buf *buf, const void *data, size_t len);
void hf_buf_text(hf_buf *buf, const char *text);
void hf_buf_printf(hf_buf *buf, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void hf_buf_cut(hf_buf *buf, size_t n); /* removes the first n bytes */
hf_err hf_buf_err(const hf_buf *buf);

/* Room for n more bytes. The caller writes them, and then says how many there were. NULL:
 * refused, and remembered as above. */
char *hf_buf_room(hf_buf *buf, size_t n);
void hf_buf_took(hf_buf *buf, size_t n);

#endif
