/* names.c - see names.h. */
#include "lock/names.h"

#include <stdio.h>
#include <string.h>

#include "base/id.h"

size_t hf_names_tag_len(const char *name)
{
    return strcspn(name, "/");
}

hf_err hf_lock_name_check(const char *name)
{
    if (name == NULL || strnlen(name, HF_LOCK_NAME_MAX + 1) > HF_LOCK_NAME_MAX)
        return HF_INVALID;
    size_t tag = hf_names_tag_len(name);
    if (!hf_name_ok_n(name, tag))
        return HF_INVALID;
    return name[tag] == '\0' || hf_name_ok(name + tag + 1) ? HF_OK : HF_INVALID;
}

size_t hf_names_prefix(char out[HF_TAG_PREFIX_SIZE], const char *ns, const char *name)
{
    int len = snprintf(out, HF_TAG_PREFIX_SIZE, "%s:lock:{%.*s}:", ns,
                       (int)hf_names_tag_len(name), name);
    return (size_t)len;
}
