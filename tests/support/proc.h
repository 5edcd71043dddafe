/* proc.h - running a program from a test, and ending that one program by its pid. */
#ifndef HF_TESTS_PROC_H
#define HF_TESTS_PROC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct hf_proc {
    pid_t pid;  /* 0 before it was started and after it was waited for */
    int status; /* after hf_proc_wait: the exit code, or 128 + the signal */
} hf_proc;

typedef struct hf_proc_options {
    const char *const *args; /* argv, ended by NULL; args[0] is looked up in PATH */
    const char *const *env;  /* "NAME=value" added to the environment; NULL: none */
    const char *in;          /* files; NULL: /dev/null, and for the last two: inherited */
    const char *out;
    const char *err;
    const char *dir; /* where it runs; NULL: here */
} hf_proc_options;

/* Starts the program. It is killed when the test dies. Ends the test when fork fails; a
 * program that cannot be run ends with 127. */
void hf_proc_start(hf_proc *p, const hf_proc_options *options);

/* The path of the test program itself, to start it as another process. (/proc/self/exe is
 * another program while this one runs under valgrind.) */
const char *hf_proc_self(void);

/* True when it has ended within `ms`, which count as in EVENTUALLY; then p->status holds
 * how. */
bool hf_proc_wait(hf_proc *p, unsigned ms);

/* Sends a signal to it, if it was not waited for yet; after SIGSTOP it does nothing more.
 */
void hf_proc_signal(const hf_proc *p, int signal);

/* SIGKILL, and waits until it is gone. Does nothing when it is gone already. */
void hf_proc_kill(hf_proc *p);

/* Starts it, waits up to `ms`, and returns its status; kills it and returns -1 when late.
 */
int hf_proc_run(const hf_proc_options *options, unsigned ms);

/* Sends a signal to a child of this process. After SIGSTOP it waits until it stands. */
void hf_signal_child(pid_t pid, int signal);

/* "NAME=value" into the environment of a child; ends it (127) when it is none. */
void hf_env_add(const char *pair);

/* True while a process of that pid exists and is no zombie. */
bool hf_pid_alive(pid_t pid);

/* For how long its first thread wanted a processor and had none, as the kernel counts it.
 */
uint64_t hf_pid_waited_ns(pid_t pid);

/* Whether a process has a handler for a signal. */
bool hf_pid_catches(pid_t pid, int signal);

/* Forks a child that has this number, leads a group, and ends after 30 s. 0: the system
 * does not give that number away. */
pid_t hf_fork_as(pid_t number);

#endif
