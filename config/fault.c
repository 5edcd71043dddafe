/* fault.c - see fault.h. */
#include "config/fault.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"

hf_err hf_fault_at(const hf_fault *fault, yaml_mark_t mark, const char *expected,
                   const char *format, ...)
{
    char found[HF_CONFIG_DETAIL_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(found, sizeof found, format, args);
    va_end(args);
    hf_buf line;
    hf_buf_init(&line, 4 * HF_CONFIG_DETAIL_SIZE);
    /* libyaml counts from 0, editors count from 1. */
    hf_buf_printf(&line, "%s:%zu:%zu: expected %s, found %s", fault->file, mark.line + 1,
                  mark.column + 1, expected, found);
    hf_err err = hf_buf_err(&line);
    if (err == HF_OK)
        snprintf(fault->detail, HF_CONFIG_DETAIL_SIZE, "%s", line.data);
    hf_buf_done(&line);
    return err == HF_NOMEM ? HF_NOMEM : HF_CONFIG;
}

const char *hf_fault_shown(const char *text, size_t len, char out[HF_SHOWN_SIZE])
{
    static const char more[] = "...";
    const size_t room =
        HF_SHOWN_SIZE - 2 - sizeof more; /* both ticks, the dots and the NUL */
    size_t n = len < room ? len : room;
    /* Not through the middle of a character: its later bytes are 10xxxxxx. */
    while (n > 0 && n < len && ((unsigned char)text[n] & 0xC0) == 0x80)
        n--;
    char *at = out;
    *at++ = '\'';
    for (size_t i = 0; i < n; i++)
        *at++ = (unsigned char)text[i] < 0x20 || text[i] == 0x7F ? '?' : text[i];
    snprintf(at, (size_t)(out + HF_SHOWN_SIZE - at), "%s'", n < len ? more : "");
    return out;
}

const char *hf_fault_node(const yaml_node_t *node, char out[HF_SHOWN_SIZE])
{
    if (node->type == YAML_MAPPING_NODE)
        return "a mapping";
    if (node->type == YAML_SEQUENCE_NODE)
        return "a list";
    if (node->data.scalar.length == 0)
        return node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE ? "nothing"
                                                                  : "an empty text";
    return hf_fault_shown((const char *)node->data.scalar.value, node->data.scalar.length,
                          out);
}
