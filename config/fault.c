/* fault.c - see fault.h. */
#include "config/fault.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mask.h"

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
    hf_buf_printf(&line, "%s:%zu:%zu: ", fault->file, mark.line + 1, mark.column + 1);
    if (strcmp(found, "none") == 0)
        hf_buf_printf(&line, "%s is missing", expected);
    else
        hf_buf_printf(&line, "expected %s, found %s", expected, found);
    hf_err err = hf_buf_err(&line);
    if (err == HF_OK)
        hf_mask(line.data);
    if (err == HF_OK)
        snprintf(fault->detail, HF_CONFIG_DETAIL_SIZE, "%s", line.data);
    hf_buf_done(&line);
    return err == HF_NOMEM ? HF_NOMEM : HF_CONFIG;
}

const char *hf_fault_shown(const char *text, size_t len, char out[HF_SHOWN_SIZE])
{
    char *copy = strndup(text, len); /* a NUL inside ends it */
    snprintf(out, HF_SHOWN_SIZE, "'%s'", copy == NULL ? "***" : HF_FOUND(copy));
    free(copy);
    for (char *at = out; *at != '\0'; at++) {
        if ((unsigned char)*at < 0x20 || *at == 0x7F)
            *at = '?';
    }
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
