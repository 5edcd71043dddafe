/* file_watch.h - tells when files below some paths have changed: `holdfast worker
 * --watch`.
 *
 * What an editor or an interpreter leaves beside them does not count: names that begin
 * with a point or end with `~`, and what is in `__pycache__` and `node_modules`. */
#ifndef HF_CLI_WORKER_FILE_WATCH_H
#define HF_CLI_WORKER_FILE_WATCH_H

#include <stddef.h>

#include "holdfast/error.h"

enum {
    HF_FILE_WATCH_PATHS_MAX = 64,
    HF_FILE_WATCH_FOLDERS_MAX = 4096, /* of all paths together */
    HF_FILE_WATCH_QUIET_MS = 200,     /* no change for this long, then it is reported, */
    HF_FILE_WATCH_LATEST_MS = 5000    /* but after this long in any case */
};

typedef struct hf_file_watch hf_file_watch;

/* Both are called by a thread of the watch. */
typedef struct hf_file_watch_calls {
    void (*changed)(void *arg);
    /* A folder that was made later, or one below it, cannot be watched. */
    void (*unwatched)(const char *why, void *arg);
    void *arg;
} hf_file_watch_calls;

/* Starts a thread that calls `changed` after each change. A path is a file, or a folder
 * with all below it, also what is made there later. HF_INVALID with a sentence: it is
 * neither, or there are too many folders. HF_SYSTEM with a sentence, HF_NOMEM. The caller
 * owns *out. */
HF_MUSTCHECK hf_err hf_file_watch_open(hf_file_watch **out, const char *const *paths,
                                       size_t n, const hf_file_watch_calls *calls,
                                       char detail[HF_DETAIL_SIZE]);
/* Neither is called after this. NULL is fine. */
void hf_file_watch_close(hf_file_watch *watch);

#endif
