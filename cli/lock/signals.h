/* signals.h - the signals of `holdfast lock`. They are blocked and read one by one, from
 * before it asks for the lock until its end: none is lost between taking the lock and
 * starting the program. Signals that were ignored from the start (nohup, a shell's
 * background) stay ignored, here and in the program. */
#ifndef HF_CLI_LOCK_SIGNALS_H
#define HF_CLI_LOCK_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

typedef struct hf_signals {
    sigset_t before;        /* the mask that we were given */
    struct sigaction child; /* what SIGCHLD did */
    int fd;                 /* readable when there is one */
} hf_signals;

/* Before any thread is started. False with errno. */
bool hf_signals_take(hf_signals *signals);

/* The next one; 0: there is none. */
int hf_signals_next(const hf_signals *signals);

/* Is this one that ends a program which does nothing about it? */
bool hf_signal_ends(int number);

/* In the child, before its exec; async-signal-safe. */
void hf_signals_give_back(const hf_signals *signals);

/* We may be ended by a signal again, as if nothing had been. */
void hf_signals_unblock(const hf_signals *signals);

/* Stops our whole process group, as the terminal does with `number`, and returns when it
 * was continued. False, at once: it was not stopped, because its group is orphaned (no
 * shell could continue it) or ignores the signal. */
bool hf_signals_stop(const hf_signals *signals, int number);

#endif
