/* scan.c - see scan.h.
 *
 * Aliases are refused because the place of a wrong value would be that of its anchor, and
 * tags because the types are in our table: a file that needs either means something else.
 */
#include "config/scan.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The reader counts bytes, not lines. */
static yaml_mark_t mark_of(const char *text, size_t len, size_t offset)
{
    yaml_mark_t mark = {.index = offset};
    for (size_t i = 0; i < offset && i < len; i++) {
        if (text[i] == '\n') {
            mark.line++;
            mark.column = 0;
        } else if (((unsigned char)text[i] & 0xC0) != 0x80) {
            mark.column++;
        }
    }
    return mark;
}

static hf_err broken(const hf_fault *fault, const yaml_parser_t *parser, const char *text,
                     size_t len)
{
    if (parser->error == YAML_MEMORY_ERROR)
        return HF_NOMEM;
    yaml_mark_t mark = parser->problem_mark;
    if (parser->error == YAML_READER_ERROR)
        mark = mark_of(text, len, parser->problem_offset);
    return hf_fault_at(fault, mark, "YAML", "broken YAML (%s)",
                       parser->problem == NULL ? "unknown" : parser->problem);
}

static hf_err check_tag(const hf_fault *fault, const yaml_event_t *event,
                        const yaml_char_t *tag)
{
    char shown[HF_SHOWN_SIZE];
    if (tag == NULL)
        return HF_OK;
    const char *name = (const char *)tag;
    return hf_fault_at(fault, event->start_mark, "a value without a tag", "the tag %s",
                       hf_fault_shown(name, strlen(name), shown));
}

static hf_err check_event(const hf_fault *fault, const yaml_event_t *event,
                          size_t *documents)
{
    char shown[HF_SHOWN_SIZE];
    const char *anchor;
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        *documents += 1;
        if (*documents > 1)
            return hf_fault_at(fault, event->start_mark, "one document", "a second one");
        return HF_OK;
    case YAML_ALIAS_EVENT:
        anchor = (const char *)event->data.alias.anchor;
        return hf_fault_at(fault, event->start_mark, "a value", "the alias %s",
                           hf_fault_shown(anchor, strlen(anchor), shown));
    case YAML_SCALAR_EVENT:
        return check_tag(fault, event, event->data.scalar.tag);
    case YAML_SEQUENCE_START_EVENT:
        return check_tag(fault, event, event->data.sequence_start.tag);
    case YAML_MAPPING_START_EVENT:
        return check_tag(fault, event, event->data.mapping_start.tag);
    default:
        return HF_OK;
    }
}

/* No key of ours is so deep, and the walk down the document is a recursion. */
enum { DEPTH_MAX = 16 };

static hf_err check_depth(const hf_fault *fault, const yaml_event_t *event, size_t *depth)
{
    char expected[48];
    if (event->type == YAML_SEQUENCE_END_EVENT || event->type == YAML_MAPPING_END_EVENT)
        --*depth;
    if (event->type != YAML_SEQUENCE_START_EVENT &&
        event->type != YAML_MAPPING_START_EVENT)
        return HF_OK;
    if (++*depth <= DEPTH_MAX)
        return HF_OK;
    snprintf(expected, sizeof expected, "at most %d levels", DEPTH_MAX);
    return hf_fault_at(fault, event->start_mark, expected, "more");
}

hf_err hf_config_scan(const hf_fault *fault, const char *text, size_t len)
{
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        return HF_NOMEM;
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
    size_t documents = 0, depth = 0;
    hf_err err = HF_OK;
    for (bool end = false; err == HF_OK && !end;) {
        yaml_event_t event;
        if (!yaml_parser_parse(&parser, &event)) {
            err = broken(fault, &parser, text, len);
            break;
        }
        end = event.type == YAML_STREAM_END_EVENT;
        err = check_event(fault, &event, &documents);
        if (err == HF_OK)
            err = check_depth(fault, &event, &depth);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return err;
}
