/* detail.c - see detail.h. */
#include "base/detail.h"

#include <stdarg.h>
#include <stdio.h>

hf_err hf_say(char detail[HF_DETAIL_SIZE], hf_err err, const char *format, ...)
{
    va_list args;
    if (detail == NULL)
        return err;
    va_start(args, format);
    (void)vsnprintf(detail, HF_DETAIL_SIZE, format, args);
    va_end(args);
    return err;
}

hf_err hf_say_err(char detail[HF_DETAIL_SIZE], hf_err err)
{
    return hf_say(detail, err, "%s", hf_err_text(err));
}
