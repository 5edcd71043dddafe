/* groups.h - process groups: each is led by a process that this worker started, and knows
 * its minder.
 *
 *   started -> its leader has ended (pidfd), but is not reaped, so its number is still
 * its own -> KILL to what is left of the group -> `ended` reads what is in its pipes ->
 *   where that asks for it, KILL to all that the group has started, and they have gone ->
 *   the minder forgets the group -> the leader is reaped -> `gone`
 *
 * The leader has a session and a group of its own, and the minder (lock/minder/minder.h)
 * knows the group and its deadline before the leader's first instruction. The group never
 * outlives its leader: processes that the leader leaves behind are killed before it is
 * reaped, while no other group can have its number.
 *
 * Belongs to one worker; call from its loop's thread only, except hf_group_extend(). */
#ifndef HF_WORKER_GROUP_GROUPS_H
#define HF_WORKER_GROUP_GROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "holdfast/error.h"
#include "lock/minder/cgroup.h"
#include "lock/minder/family.h"
#include "lock/minder/minder.h"
#include "lock/minder/spawn.h"
#include "lock/minder/sweeper.h"

typedef struct hf_groups hf_groups;

typedef struct hf_groups_opts {
    const char *minder_path; /* NULL: `holdfast`, found by PATH */
    uint32_t kill_grace_ms;  /* the minder sends TERM this long before the deadline */
    bool cgroup;             /* each group gets one of its own (lock/minder/cgroup.h) */
    /* The minder went, or came back. Never called from inside a call of the user's; not
     * for the first one, which is there when hf_groups_new() returns. May be NULL. */
    void (*on_ready)(bool ready, void *arg);
    void *arg;
} hf_groups_opts;

typedef struct hf_group hf_group;

typedef struct hf_group_calls {
    /* The leader has ended: read what it wrote. True: all that it has started must have
     * ended, too, before `gone`. */
    bool (*ended)(hf_group *group);
    /* Some of its processes may not be signalled: they became another user. Once. */
    void (*denied)(hf_group *group);
    void (*gone)(hf_group *group); /* may free it */
} hf_group_calls;

/* Part of its owner's struct. It must not move, or be freed, from hf_group_start() until
 * `gone`, and while hf_group_extend() may be called. The members are for this part alone,
 * but for the results. */
struct hf_group {
    hf_groups *owner;
    const hf_group_calls *calls;
    hf_group *prev, *next; /* in owner->running */
    pid_t pid;             /* of its leader, and its own; 0: not started, or reaped */
    int pidfd;
    hf_minded minded;
    hf_family family; /* all that it has started */
    hf_cgroup cgroup; /* mark 0: none, or it is removed */
    hf_sweep sweep;
    uv_poll_t watch;  /* on pidfd */
    uv_timer_t timer; /* for KILL */
    int handles;      /* that are not closed yet */
    bool asked, denied_reported;
    bool joined; /* it was not started here: it leads no group, and its status is lost */
    /* results */
    hf_spawn_fault fault; /* why it was not executed */
    bool over;            /* its leader has ended, */
    bool told;            /* and that may be its answer to the minder's TERM */
    bool by_signal;       /* `status` is the signal, else the exit status */
    int status;
};

typedef struct hf_group_start_opts {
    const char *const *argv; /* argv[0] is found by PATH */
    char *const *envp;
    const char *cwd;       /* NULL: as it is */
    int fds[HF_SPAWN_FDS]; /* as hf_spawn has them. Borrowed */
    uint64_t deadline_ns;  /* CLOCK_BOOTTIME: KILL, unless hf_group_extend() moves it */
    uint64_t identity;     /* of its job, for hf_groups_sweep(); 0: of none */
} hf_group_start_opts;

/* Starts the minder, and waits until it says that it is there (5 s at most). Must be
 * called before the worker starts threads. HF_SYSTEM (also where no cgroup can be made),
 * HF_NOMEM, HF_CONFIG (no such command, or it is no minder); then `detail` (may be NULL)
 * says why. The caller owns *out and ends it with hf_groups_close(). */
HF_MUSTCHECK hf_err hf_groups_new(hf_groups **out, uv_loop_t *loop,
                                  const hf_groups_opts *opts,
                                  char detail[HF_DETAIL_SIZE]);
/* Whether the minder lives. Without it nothing is started. */
bool hf_groups_ready(const hf_groups *groups);
pid_t hf_groups_minder_pid(const hf_groups *groups);
bool hf_groups_closing(const hf_groups *groups);

/* A user of it, who may start groups and sweeps: the minder stays until the last one has
 * left. What a user has may call hf_group_extend() longer, until it is done. */
void hf_groups_enter(hf_groups *groups);
void hf_groups_leave(hf_groups *groups);
void hf_groups_done(hf_groups *groups);
/* No group is started any more. Ends the minder when its last user has left, and is freed
 * when the last one is done. */
void hf_groups_close(hf_groups *groups);

/* KILL to all that an earlier run of a job has left on this machine, until it is gone or
 * 10 s have passed; then sweep->cb, never from inside this call. */
void hf_groups_sweep(hf_groups *groups, hf_sweep *sweep, uint64_t identity);

/* Before all other calls; `calls` is borrowed. */
void hf_group_init(hf_group *group, hf_groups *groups, const hf_group_calls *calls);
/* Starts it. HF_OK: `gone` is called exactly once, never from inside this call,
 * also if its leader could not be executed (group->fault). HF_BUSY (the minder is not
 * ready), HF_SYSTEM (descriptors, processes; errno is kept): nothing was started. */
HF_MUSTCHECK hf_err hf_group_start(hf_group *group, const hf_group_start_opts *how);
/* The same for a live process that this worker has not started. Takes pidfd. The minder
 * does not know it: nothing ends it when this process cannot. HF_SYSTEM: errno is kept.
 */
HF_MUSTCHECK hf_err hf_group_join(hf_group *group, pid_t pid, int pidfd);
/* Leaves a joined process to itself: `ended` and `gone` follow, never from inside this
 * call. */
void hf_group_let_go(hf_group *group);
/* From any thread: the lease holds until deadline_ns; never shortens. Nothing happens
 * when it has ended. */
void hf_group_extend(hf_group *group, uint64_t deadline_ns);
/* A signal to the whole group; to its leader alone. Nothing happens when the leader has
 * ended. */
void hf_group_signal(hf_group *group, int sig);
void hf_group_signal_leader(const hf_group *group, int sig);
/* TERM now, once; KILL after grace_ms (0: KILL at once). May be called again, to end it
 * sooner. Nothing happens when its leader has ended. */
void hf_group_end(hf_group *group, uint32_t grace_ms);
/* True: its leader has ended. Calls `ended` if that was not known yet. */
bool hf_group_check(hf_group *group);

#endif
