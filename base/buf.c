/* buf.c - base/buf.h. */
#include "base/buf.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

enum { FIRST_CAP = 64 };

void hf_buf_init(hf_buf *buf, size_t max)
{
    *buf = (hf_buf){.max = max};
}

void hf_buf_done(hf_buf *buf)
{
    free(buf->data);
    hf_buf_init(buf, buf->max);
}

void hf_buf_clear(hf_buf *buf)
{
    buf->len = 0;
    buf->err = HF_OK;
    if (buf->data != NULL)
        buf->data[0] = '\0';
}

char *hf_buf_room(hf_buf *buf, size_t n)
{
    if (buf->err != HF_OK)
        return NULL;
    if (n > buf->max || buf->len > buf->max - n) {
        buf->err = HF_TOOBIG;
        return NULL;
    }
    size_t need = buf->len + n + 1; /* the NUL is not counted by max */
    if (need > buf->cap) {
        size_t cap = buf->cap < FIRST_CAP ? FIRST_CAP : buf->cap;
        while (cap < need)
            cap = cap > SIZE_MAX / 2 ? need : cap * 2;
        char *data = realloc(buf->data, cap);
        if (data == NULL) {
            buf->err = HF_NOMEM;
            return NULL;
        }
        buf->data = data;
        buf->cap = cap;
    }
    return buf->data + buf->len;
}

void hf_buf_took(hf_buf *buf, size_t n)
{
    HF_ASSERT(buf->len + n < buf->cap);
    buf->len += n;
    buf->data[buf->len] = '\0';
}

void hf_buf_add(hf_buf *buf, const void *data, size_t len)
{
    char *room = hf_buf_room(buf, len);
    if (room == NULL)
        return;
    if (len > 0)
        memcpy(room, data, len);
    hf_buf_took(buf, len);
}

void hf_buf_text(hf_buf *buf, const char *text)
{
    hf_buf_add(buf, text, strlen(text));
}

void hf_buf_printf(hf_buf *buf, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, format, args);
    HF_ASSERT(len >= 0);
    char *room = hf_buf_room(buf, (size_t)len);
    if (room != NULL) {
        vsnprintf(room, (size_t)len + 1, format, again);
        hf_buf_took(buf, (size_t)len);
    }
    va_end(again);
    va_end(args);
}

void hf_buf_cut(hf_buf *buf, size_t n)
{
    HF_ASSERT(n <= buf->len);
    if (n == 0)
        return;
    buf->len -= n;
    memmove(buf->data, buf->data + n, buf->len + 1);
}

hf_err hf_buf_err(const hf_buf *buf)
{
    return buf->err;
}
