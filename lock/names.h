/* names.h - names of locks, their tags, and the prefix of a tag's keys. */
#ifndef HF_LOCK_NAMES_H
#define HF_LOCK_NAMES_H

#include "holdfast/job.h"
#include "holdfast/lock.h"

enum { HF_TAG_PREFIX_SIZE = 2 * HF_NAME_MAX + 16 };

/* "<ns>:lock:{tag}:" of a name that was checked. Gives its length. */
size_t hf_names_prefix(char out[HF_TAG_PREFIX_SIZE], const char *ns, const char *name);

/* The bytes of a checked name that are its tag. */
size_t hf_names_tag_len(const char *name);

#endif
