/* more.h - tells that a list goes on behind the page that was printed. */
#ifndef HF_CLI_COMMON_MORE_H
#define HF_CLI_COMMON_MORE_H

#include "cli/cli.h"

/* On standard error, because it is no entry of the list: how to see the next page; with
 * --json {"more":true,"after":AFTER}. `what`: "job"; n are on the page. */
void hf_more_tell(const hf_cli *cli, size_t n, const char *what, const char *after);

#endif
