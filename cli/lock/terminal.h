/* terminal.h - the terminal of a program that runs in a process group of its own: it
 * is the program's while that runs in the foreground, and ours before and after. */
#ifndef HF_CLI_LOCK_TERMINAL_H
#define HF_CLI_LOCK_TERMINAL_H

#include <stdbool.h>
#include <sys/types.h>

typedef struct hf_terminal_of {
    int fd;    /* of the controlling terminal; -1: there is none */
    pid_t own; /* our process group */
    bool given;
} hf_terminal_of;

void hf_terminal_find(hf_terminal_of *t);
void hf_terminal_done(hf_terminal_of *t);

/* Is our group, or the given one, in the foreground? */
bool hf_terminal_is_ours(const hf_terminal_of *t);
bool hf_terminal_is_of(const hf_terminal_of *t, pid_t group);

/* Should the program have it from its start? Where its output goes elsewhere it may be
 * part of a pipeline whose other end reads from the terminal: then it gets the terminal
 * when it first wants it. */
bool hf_terminal_at_once(const hf_terminal_of *t);

/* Hands the terminal to the process group. The child and the parent call it, because
 * either may run first; async-signal-safe. */
void hf_terminal_give(hf_terminal_of *t, pid_t group);
/* From the group to us, if it has it. */
void hf_terminal_take_back(hf_terminal_of *t, pid_t group);

#endif
