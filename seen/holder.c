/* holder.c - see holder.h. */
#include "seen/holder.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

void hf_holder_read(const char *id, hf_holder *out)
{
    char text[HF_HOLDER_SIZE];
    *out = (hf_holder){.pid = 0};
    (void)snprintf(out->host, sizeof out->host, "%s", id);
    (void)snprintf(text, sizeof text, "%s", id);
    char *random = strrchr(text, '-');
    if (random == NULL)
        return;
    *random = '\0';
    char *pid = strrchr(text, '-');
    if (pid == NULL || pid == text || !hf_parse_int(pid + 1, 1, INT32_MAX, &out->pid))
        return;
    *pid = '\0';
    memcpy(out->host, text, sizeof text);
}

void hf_holder_text(const char *id, char out[HF_HOLDER_TEXT])
{
    hf_holder holder;
    hf_holder_read(id, &holder);
    if (holder.pid != 0)
        (void)snprintf(out, HF_HOLDER_TEXT, "%s pid %" PRId64, holder.host, holder.pid);
    else
        (void)snprintf(out, HF_HOLDER_TEXT, "%s", holder.host);
    hf_text_plain(out); /* it is text from a lock */
}
