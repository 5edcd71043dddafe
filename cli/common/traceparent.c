/* traceparent.c - see traceparent.h. */
#include "cli/common/traceparent.h"

#include <stdlib.h>
#include <string.h>

#include "base/mask.h"
#include "base/traceparent.h"

static bool is_valid(const char *text)
{
    hf_traceparent ignored;
    return hf_traceparent_read(text, strlen(text), &ignored);
}

int hf_cli_traceparent(const hf_cli *cli, const char **out)
{
    const char *given = hf_argv_text(cli->args, "traceparent");
    const char *found = getenv("TRACEPARENT");
    if (given != NULL && !is_valid(given))
        return hf_cli_say(cli, HF_EXIT_USAGE, "",
                          "--traceparent: expected a W3C traceparent, found '%s'",
                          HF_FOUND(given));
    *out = given != NULL ? given : found != NULL && is_valid(found) ? found : NULL;
    return HF_EXIT_OK;
}

void hf_cli_put_trace(hf_job *job, const char *traceparent, char room[HF_TRACED_SIZE])
{
    hf_traceparent theirs;
    char text[HF_TRACEPARENT_SIZE];
    size_t len = job->headers == NULL ? 0 : strlen(job->headers);
    if (traceparent == NULL || hf_traceparent_find(job->headers, len, &theirs) ||
        !hf_traceparent_read(traceparent, strlen(traceparent), &theirs))
        return;
    hf_traceparent_write(&theirs, text);
    if (hf_traceparent_put(job->headers, len, text, room, HF_TRACED_SIZE) != 0)
        job->headers = room;
}
