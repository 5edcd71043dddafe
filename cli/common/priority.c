/* priority.c - see priority.h. */
#include "cli/common/priority.h"

#include <string.h>

#include "base/base.h"

static const char *const names[] = {
    [HF_PRIORITY_NORMAL] = "normal",
    [HF_PRIORITY_HIGH] = "high",
    [HF_PRIORITY_LOW] = "low",
};

const char *hf_priority_name(hf_priority priority)
{
    return (size_t)priority < HF_COUNT(names) ? names[priority] : "?";
}

bool hf_priority_read(const char *text, hf_priority *out)
{
    for (size_t i = 0; i < HF_COUNT(names); i++) {
        if (strcmp(text, names[i]) == 0) {
            *out = (hf_priority)i;
            return true;
        }
    }
    return false;
}
