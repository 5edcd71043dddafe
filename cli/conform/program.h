/* program.h - the program under test: a process with a socket, as a worker starts it. */
#ifndef HF_CLI_CONFORM_PROGRAM_H
#define HF_CLI_CONFORM_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "worker/pool/frame.h"

enum { HF_CONFORM_PRINTED_MAX = 1 << 20 }; /* bytes of an output that are kept */

typedef struct hf_conform_program {
    pid_t pid; /* it leads a session; 0: it was reaped, and `status` holds */
    int status;
    int fd;                /* of the socket; -1: closed */
    int number;            /* what the socket is in the program */
    ino_t inode;           /* of the program's end */
    int out_fd, err_fd;    /* -1: at their end */
    hf_buf out, err;       /* what it printed: the beginning */
    hf_buf to_write;       /* from `written` on */
    size_t written, piece; /* bytes of one write; 0: as many as possible */
    hf_frame_reader reader;
    /* For each frame. False: it must not come, and nothing is read any more. */
    bool (*on_frame)(const hf_frame *frame, void *arg);
    void *arg;
    bool refused, closed; /* on_frame said so; it has closed its end */
} hf_conform_program;

typedef struct hf_conform_start {
    char *const *argv;
    const char *versions; /* HOLDFAST_PIPE */
    int number;           /* HOLDFAST_FD */
    bool no_socket;       /* that is a pipe */
} hf_conform_start;

/* 0, or an errno: of the system, or with *exec of the program, which then has ended. */
int hf_conform_program_start(hf_conform_program *p, const hf_conform_start *start,
                             bool *exec);

/* Reads and writes what can be, and waits for more until the time at most (boot ns).
 * Returns early when something has happened. */
void hf_conform_program_turn(hf_conform_program *p, uint64_t until_ns);

/* Whether it has ended, and all that it wrote was read. */
bool hf_conform_program_is_over(const hf_conform_program *p);
bool hf_conform_program_is_written(
    const hf_conform_program *p); /* all that there is to write */

void hf_conform_program_close(hf_conform_program *p); /* our end of the socket */
/* Kills what is left of it, and frees all. */
void hf_conform_program_end(hf_conform_program *p);

/* Whether programs that it starts would inherit the socket. */
bool hf_conform_program_leaks(const hf_conform_program *p);

#endif
