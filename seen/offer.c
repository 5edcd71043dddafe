/* offer.c - see offer.h. */
#include "seen/offer.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Of the names and words of commands; other programs may have written other names. */
static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                            "0123456789._:/- ";

const char *hf_offer(char out[HF_OFFER_SIZE], const char *command, const char *name,
                     const char *queue, const char *options)
{
    const bool dash = name[0] == '-';
    const char *gap = name[0] != '\0' && !dash ? " " : "";
    const char *of = queue != NULL ? " -q " : "";
    const int len = snprintf(out, HF_OFFER_SIZE, "holdfast %s%s%s%s%s%s%s%s", command,
                             gap, dash ? "" : name, of, queue != NULL ? queue : "",
                             options, dash ? " -- " : "", dash ? name : "");
    if (len < 0 || len >= HF_OFFER_SIZE || strchr(name, ' ') != NULL ||
        out[strspn(out, plain)] != '\0')
        out[0] = '\0';
    return out;
}
