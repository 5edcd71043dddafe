/* bare.c - one bare loop of a crowd: a process that claims and completes jobs, one call
 * after the other, and does nothing else.
 *
 *     bare --url URL --jobs N [--batch N]
 *
 * It says `ready`, begins when its standard input ends, and ends when it has done its
 * jobs of the queue `default`, so many at a time. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/bare.h"

static int give_up(const char *why)
{
    (void)fprintf(stderr, "bare: %s\n", why);
    return 1;
}

int main(int argc, char **argv)
{
    static const struct option names[] = {{"url", required_argument, NULL, 'u'},
                                          {"jobs", required_argument, NULL, 'j'},
                                          {"batch", required_argument, NULL, 'b'},
                                          {NULL, 0, NULL, 0}};
    const char *url = NULL;
    size_t jobs = 0, batch = 200;
    for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        if (c == 'u')
            url = optarg;
        else if (c == 'j')
            jobs = strtoul(optarg, NULL, 10);
        else if (c == 'b')
            batch = strtoul(optarg, NULL, 10);
        else
            return 64;
    }
    if (url == NULL || batch == 0 || optind != argc)
        return give_up("expected --url and --jobs");
    char detail[HF_DETAIL_SIZE] = "", byte;
    hf_bare *bare;
    if (hf_bare_open(&bare, url, NULL, "hf", "default", NULL, 0, detail) != HF_OK)
        return give_up(detail);
    (void)puts("ready");
    (void)fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
    int code =
        hf_bare_process(bare, jobs, batch) == HF_OK ? 0 : give_up(hf_bare_detail(bare));
    hf_bare_close(bare);
    return code;
}
