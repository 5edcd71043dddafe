/* exit.h - the exit codes of the command: the numbers of sysexits(3) that it uses, and
 * the code for each answer of the library. */
#ifndef HF_CLI_EXIT_H
#define HF_CLI_EXIT_H

#include "holdfast/error.h"

typedef enum hf_exit {
    HF_EXIT_OK = 0,
    HF_EXIT_NO = 1, /* not found, dead, or doctor found something */
    HF_EXIT_USAGE = 64,
    HF_EXIT_DATA = 65, /* an id, a name, a payload, a line of a bulk file, a file */
    HF_EXIT_UNAVAILABLE = 69, /* Redis cannot be reached, or is too old */
    HF_EXIT_BUG = 70,
    HF_EXIT_SYSTEM = 71,      /* the system refuses memory, a process or a descriptor */
    HF_EXIT_OUTPUT = 73,      /* a file or the standard output cannot be written */
    HF_EXIT_TAKEN = 73,       /* not accepted: a dead job has the id, or the unique key */
    HF_EXIT_UNCONFIRMED = 74, /* accepted, but too few replicas have it */
    HF_EXIT_LATER = 75,       /* it may work at another time */
    HF_EXIT_UNKNOWN = 76,     /* a job has gone, and nothing tells how it ended */
    HF_EXIT_NOPERM = 77,
    HF_EXIT_CONFIG = 78
} hf_exit;

hf_exit hf_exit_code(hf_err err);

/* The code for what cannot be written, by its errno. After EPIPE it is the one that a
 * shell reports for a program that SIGPIPE ended: the command ignores SIGPIPE and exits
 * so. */
hf_exit hf_exit_of_output(int error);

/* Advice for the user; "": there is none. Static. */
const char *hf_exit_hint(hf_err err);

#endif
