/* unique.c - see unique.h. */
#include "cli/common/unique.h"

#include <string.h>

#include "base/base.h"

static const char *const untils[] = {
    [HF_UNIQUE_UNTIL_END] = "end",
    [HF_UNIQUE_UNTIL_START] = "start",
    [HF_UNIQUE_UNTIL_DONE] = "done",
};
static const char *const actions[] = {
    [HF_ON_CONFLICT_SKIP] = "skip",
    [HF_ON_CONFLICT_REPLACE] = "replace",
    [HF_ON_CONFLICT_NEXT] = "next",
    [HF_ON_CONFLICT_CANCEL] = "cancel",
};

/* The place of a word; n: it is not among them. */
static size_t find(const char *const *words, size_t n, const char *text)
{
    size_t i = 0;
    while (i < n && strcmp(words[i], text) != 0)
        i++;
    return i;
}

bool hf_unique_until_read(const char *text, hf_unique_until *out)
{
    size_t i = find(untils, HF_COUNT(untils), text);
    if (i < HF_COUNT(untils))
        *out = (hf_unique_until)i;
    return i < HF_COUNT(untils);
}

bool hf_on_conflict_read(const char *text, hf_on_conflict *out)
{
    size_t i = find(actions, HF_COUNT(actions), text);
    if (i < HF_COUNT(actions))
        *out = (hf_on_conflict)i;
    return i < HF_COUNT(actions);
}

const char *hf_conflict_name(hf_conflict conflict)
{
    static const char *const names[] = {
        [HF_CONFLICT_SKIPPED] = "skipped",
        [HF_CONFLICT_REPLACED] = "replaced",
        [HF_CONFLICT_PARKED] = "parked",
    };
    return (size_t)conflict < HF_COUNT(names) ? names[conflict] : NULL;
}
