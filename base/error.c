/* error.c - names and sentences of holdfast/error.h. */
#include "holdfast/error.h"

#define NAME_CASE(name, number, text)                                                    \
    case name:                                                                           \
        return #name;
#define TEXT_CASE(name, number, text)                                                    \
    case name:                                                                           \
        return text;

const char *hf_err_name(hf_err err)
{
    switch (err) {
        HF_ERR_MAP(NAME_CASE)
    case HF_ERR_LAST_:
        break;
    }
    return "HF_UNKNOWN";
}

const char *hf_err_text(hf_err err)
{
    switch (err) {
        HF_ERR_MAP(TEXT_CASE)
    case HF_ERR_LAST_:
        break;
    }
    return "unknown answer";
}
