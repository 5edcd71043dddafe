/* version.c - holdfast/version.h. */
#include "holdfast/version.h"

#include <stddef.h>

#define TEXT_OF(number) #number
#define TEXT(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

int hf_version(const char **text)
{
    if (text != NULL)
        *text = TEXT(HF_VERSION_MAJOR, HF_VERSION_MINOR, HF_VERSION_PATCH);
    return HF_VERSION;
}
