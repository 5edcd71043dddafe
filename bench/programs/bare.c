/* bare.c - one bare loop of a crowd: a process that claims and completes jobs, one call
 * after the other, and does nothing else.
 *
 *     bare --url URL --jobs N [--batch N]
 *
 * It says `ready`, begins when its standard input ends, and ends when it has done its
 * jobs of the queue `default`, so many at a time. */
#include <stdio.h>
#include <unistd.h>

#include "bench/programs/tool.h"

int main(int argc, char **argv)
{
    const char *url = NULL;
    uint32_t jobs = 0, batch = 200;
    const option_spec specs[] = {
        {"url", &url, NULL}, {"jobs", NULL, &jobs}, {"batch", NULL, &batch}, {0}};
    if (read_options(argc, argv, specs) != argc || url == NULL || batch == 0)
        misused("--url and --jobs");
    char detail[HF_DETAIL_SIZE] = "", byte;
    hf_bare *bare;
    must(hf_bare_open(&bare, url, NULL, "hf", "default", NULL, 0, detail),
         "the connection", detail);
    (void)puts("ready");
    (void)fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
    must(hf_bare_process(bare, jobs, batch), "the loop", hf_bare_detail(bare));
    hf_bare_close(bare);
    return 0;
}
