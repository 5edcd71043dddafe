/* more.c - see more.h. */
#include "cli/common/more.h"

#include <stdio.h>

#include "cli/out.h"

void hf_more_tell(const hf_cli *cli, size_t n, const char *what, const char *after)
{
    (void)fflush(stdout); /* the page comes first */
    if (cli->json)
        hf_out_json(stderr, json_pack("{s:b, s:s}", "more", 1, "after", after));
    else
        (void)fprintf(
            stderr, "holdfast: %zu %s%s listed, there are more: go on with --after %s\n",
            n, what, n == 1 ? " is" : "s are", after);
}
