/* fault.h - the one line that says what is wrong with a configuration file, and where. */
#ifndef HF_CONFIG_FAULT_H
#define HF_CONFIG_FAULT_H

#include <yaml.h>

#include "config/config.h"

typedef struct hf_fault {
    const char *file;
    char *detail; /* HF_CONFIG_DETAIL_SIZE bytes */
} hf_fault;

enum { HF_SHOWN_SIZE = 88 };

/* Writes "FILE:LINE:COL: expected ..., found ..." and returns HF_CONFIG. */
hf_err hf_fault_at(const hf_fault *fault, yaml_mark_t mark, const char *expected,
                   const char *format, ...) __attribute__((format(printf, 4, 5)));

/* A scalar for people: in ticks, masked and cut, without control characters. */
const char *hf_fault_shown(const char *text, size_t len, char out[HF_SHOWN_SIZE]);

/* Describes a node: "a mapping", "a list", "nothing", or the scalar itself. */
const char *hf_fault_node(const yaml_node_t *node, char out[HF_SHOWN_SIZE]);

#endif
