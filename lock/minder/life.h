/* life.h - one minder process, as lock/minder/minder.c starts and ends it. Private to
 * it. */
#ifndef HF_LOCK_MINDER_LIFE_H
#define HF_LOCK_MINDER_LIFE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "holdfast/error.h"
#include "lock/minder/spawn.h"

typedef struct hf_minder_life {
    pid_t pid;
    int pidfd;
    int words_fd;         /* readable when it says hello, answers, or ends; -1: closed */
    int pipe_fd;          /* for records */
    hf_spawn_fault fault; /* why it could not be executed */
    uint64_t since_ns;
    bool said_hello;
    bool answers; /* when it is asked; an older one does not */
} hf_minder_life;

/* Starts `path` as a minder, which has not said hello yet. HF_SYSTEM with errno. */
HF_MUSTCHECK hf_err hf_minder_life_start(hf_minder_life *life, const char *path,
                                         const char *library_path,
                                         uint32_t kill_grace_ms);

/* Waits for its hello, at most timeout_ms. False: `detail` says why it will not come. */
bool hf_minder_life_wait(hf_minder_life *life, const char *name, uint32_t timeout_ms,
                         char detail[HF_DETAIL_SIZE]);

/* Its answer. False with errno: none now (EAGAIN), or it has closed its end (0).
 */
bool hf_minder_life_read(hf_minder_life *life);

/* Kills it and reaps it. A process that was killed is gone at once;
 * hf_minder_life_close() closes the rest. */
void hf_minder_life_kill(const hf_minder_life *life);
void hf_minder_life_reap(const hf_minder_life *life); /* it has ended */
void hf_minder_life_close(hf_minder_life *life);

#endif
