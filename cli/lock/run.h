/* run.h - one run of `holdfast lock`: shared by lock.c, which requests the lock, and
 * run.c, which runs the program under it. */
#ifndef HF_CLI_LOCK_RUN_H
#define HF_CLI_LOCK_RUN_H

#include <pthread.h>
#include <stdatomic.h>

#include "cli/cli.h"
#include "cli/lock/signals.h"
#include "cli/lock/terminal.h"
#include "holdfast/lock.h"

typedef struct hf_lock_run {
    const hf_cli *cli;
    const char *names; /* as they were given */
    char *const *argv; /* of the program; ends with NULL */
    uint32_t grace_ms;
    bool verbose;
    hf_signals signals;
    hf_terminal_of terminal;
    hf_lock *lock;
    int changed_fd; /* readable when one of these has changed; from any thread */
    atomic_bool lost, revoked, suspect;
    int loss_fd;                 /* the program's: at its end when the lock is lost */
    _Atomic int loss_ours_fd;    /* keeps it from that; -1: closed */
    bool said_lost;              /* on standard error */
    bool by_signal, by_terminal; /* the exit code at the end */

    pthread_mutex_t mutex; /* for what follows, and for the handle before the answer */
    bool answered;
    hf_err err; /* of the acquisition */
    char detail[HF_DETAIL_SIZE];
} hf_lock_run;

/* Waits until there are signals or changes, or for `ms` (-1: without a limit). */
void hf_lock_run_wait(const hf_lock_run *run, int ms);

/* One line on standard error. */
void hf_lock_run_note(const hf_lock_run *run, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* How a program ended. */
typedef struct hf_lock_end {
    int code;         /* what `holdfast lock` ends with */
    bool by_signal;   /* the program was ended by one */
    bool by_terminal; /* and by one that the terminal has sent to it alone */
} hf_lock_end;

/* Runs the program until its whole group is gone; the lock is held when it begins. */
hf_lock_end hf_lock_run_program(hf_lock_run *run);

#endif
