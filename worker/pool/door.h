/* door.h - a socket at a path, for programs that were started by hand and join a
 * pool: under a debugger, for example.
 *
 * Only this user's processes get in: the file has mode 0600, and the kernel says whose a
 * connection is. Belongs to the loop. */
#ifndef HF_WORKER_POOL_DOOR_H
#define HF_WORKER_POOL_DOOR_H

#include <sys/types.h>
#include <uv.h>

#include "holdfast/error.h"

/* A program that has connected. */
typedef struct hf_joined {
    int fd; /* the socket; it does not block */
    pid_t pid;
    int pidfd; /* readable when it has ended */
} hf_joined;

typedef struct hf_door hf_door;

typedef struct hf_door_calls {
    void (*joined)(const hf_joined *joined, void *arg); /* both descriptors are its own */
    void (*refused)(const char *why, void *arg);
} hf_door_calls;

/* A file that an earlier worker has left at the path is removed. HF_SYSTEM with a
 * sentence: the path cannot be used, or a process listens there; HF_NOMEM. `calls` is
 * borrowed. */
HF_MUSTCHECK hf_err hf_door_open(hf_door **out, uv_loop_t *loop, const char *path,
                                 const hf_door_calls *calls, void *arg,
                                 char detail[HF_DETAIL_SIZE]);
/* Removes the file; no call comes any more. It is freed when the loop has turned. NULL is
 * fine. */
void hf_door_close(hf_door *door);

#endif
