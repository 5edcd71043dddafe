/* hf-certs.c - makes the certificates of tests/support/certs.h in a directory, for the
 * acceptance scripts: hf-certs DIRECTORY. */
#include <stdio.h>

#include "tests/support/certs.h"

int main(int argc, char *argv[])
{
    if (argc != 2) {
        (void)fprintf(stderr, "usage: hf-certs DIRECTORY\n");
        return 64;
    }
    hf_certs_make(argv[1]);
    return 0;
}
