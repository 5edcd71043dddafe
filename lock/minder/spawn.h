/* spawn.h - starts a process. The child has work to do before it executes its program.
 *
 * The child becomes the leader of a new session and process group, with default signal
 * dispositions, an empty signal mask and no descriptors but those it is given, and tells
 * the minder of itself before it executes anything. After its deadline it executes
 * nothing: the worker may have been stopped since it chose the program. Until it has
 * executed its program, or ended, it uses the worker's memory, and the thread that
 * started it waits: nothing is copied, however large the worker is, and a fault is known
 * at once. */
#ifndef HF_LOCK_MINDER_SPAWN_H
#define HF_LOCK_MINDER_SPAWN_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "holdfast/error.h"

enum { HF_SPAWN_FDS = 5 };

typedef struct hf_spawn {
    const char *path; /* of the program; "" ends in ENOENT */
    char *const *argv;
    char *const *envp;
    const char *cwd;       /* NULL: as it is */
    int fds[HF_SPAWN_FDS]; /* become 0 to 4; the last ones may be -1. Borrowed */
    int minder_fd;         /* -1: there is none to tell. Borrowed */
    uint64_t deadline_ns;  /* of the group, if there is a minder */
    uint64_t mark, job;    /* as hf_mark_set() wants them; 0: no mark */
    int cgroup_fd;         /* as hf_cgroup_enter() wants it; -1: none. Borrowed */
    bool ends_with_us; /* killed when the thread that starts it ends (base/parent.h) */
} hf_spawn;

typedef enum hf_spawn_step {
    HF_SPAWN_NONE, /* it was executed */
    HF_SPAWN_SETUP,
    HF_SPAWN_MINDER,
    HF_SPAWN_LATE, /* the deadline of its group has passed */
    HF_SPAWN_CWD,
    HF_SPAWN_EXEC
} hf_spawn_step;

/* Why a child ended before it executed its program. */
typedef struct hf_spawn_fault {
    int32_t step; /* hf_spawn_step */
    int32_t error;
} hf_spawn_fault;

/* The caller reaps `pid`, which leads the group of the same number, and closes pidfd. */
typedef struct hf_spawned {
    pid_t pid;
    int pidfd; /* readable when the process has ended */
    hf_spawn_fault fault;
} hf_spawned;

/* Returns when the program is executed, or the child has ended: then there is a fault,
 * unless the child was killed. HF_SYSTEM with errno: nothing was started. */
HF_MUSTCHECK hf_err hf_spawn_start(const hf_spawn *spawn, hf_spawned *out);

/* Ends a group that was just started: kills it, tells the minder (unless minder_fd is -1)
 * that it is gone, and reaps its leader. */
void hf_spawn_undo(pid_t pid, int minder_fd);

/* The file of a command, found by PATH. False, with "" in `out`: there is none. A file
 * that may not be executed is accepted: exec reports that. */
bool hf_spawn_find(const char *name, char out[PATH_MAX]);

/* A close-on-exec pipe; fds[ours] does not block. False with errno. */
bool hf_spawn_pipe(int fds[2], int ours);

/* Closes *fd unless it is -1, and makes it -1. */
void hf_spawn_close_fd(int *fd);

/* Readable when the process has ended. -1 with errno. */
int hf_spawn_pidfd(pid_t pid);

/* Whether the kernel has descriptors of processes as everything here uses them.
 * HF_SYSTEM: `detail` names the version that it needs, and the one found. */
HF_MUSTCHECK hf_err hf_spawn_check(char detail[HF_DETAIL_SIZE]);

/* Signals the group whose leader `pidfd` was opened for, and never another with the same
 * number. False with errno: ESRCH (no process is left), EPERM (no permission for any of
 * the rest), ENOTSUP (the system cannot: before Linux 6.9). */
bool hf_spawn_signal_group(int pidfd, int sig);
/* The same for the group that a child of ours leads, on every system: never to another
 * group that has taken its number. False with errno. */
bool hf_spawn_signal_child(pid_t pid, int pidfd, int sig);

/* The same for the one process that `pidfd` was opened for. */
bool hf_spawn_signal(int pidfd, int sig);

/* True: a child of ours has ended, and how is known. It is not reaped. Where the host
 * ignores SIGCHLD, or waits for any child, its status is lost, and -1. */
bool hf_spawn_has_ended(int pidfd, bool *by_signal, int *status);
/* Whether all that a leader left in its group may not be signalled, once it is reaped:
 * before, its own end hides that others were not reached. By number nothing is signalled,
 * only asked. */
bool hf_spawn_left_denied(pid_t pid, int pidfd);

#endif
