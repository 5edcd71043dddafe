/* file_watch.c - see file_watch.h. By inotify(7).
 *
 * Of a file its folder is watched, because many editors write a new file and rename it.
 */
#include "cli/worker/file_watch.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/detail.h"
#include "base/mask.h"

enum {
    CHANGES = IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO,
    EVENTS_SIZE = 16 << 10
};

/* A folder that is watched. */
typedef struct folder {
    int id;
    char *path;
    char *only; /* this file of it alone; NULL: all, and the folders in it */
} folder;

struct hf_file_watch {
    int inotify, stop; /* `stop` is written when the thread has to end */
    folder *folders;
    size_t n;
    hf_file_watch_calls calls;
    pthread_t thread;
    bool runs;
};

/* ---- what is watched ---- */

static bool counts(const char *name)
{
    size_t len = strlen(name);
    return len > 0 && name[0] != '.' && name[len - 1] != '~' &&
           strcmp(name, "__pycache__") != 0 && strcmp(name, "node_modules") != 0;
}

static hf_err fail(char *detail, const char *path)
{
    return hf_say(detail, HF_SYSTEM, "'%s' cannot be watched: %s", HF_FOUND(path),
                  strerror(errno));
}

static bool is_whole(const hf_file_watch *w, int id)
{
    for (size_t i = 0; i < w->n; i++)
        if (w->folders[i].id == id && w->folders[i].only == NULL)
            return true;
    return false;
}

/* inotify gives a folder that is watched already its old id. */
static hf_err add_folder(hf_file_watch *w, const char *path, const char *only,
                         char *detail)
{
    int id = inotify_add_watch(w->inotify, path, CHANGES);
    if (id < 0)
        return fail(detail, path);
    if (is_whole(w, id))
        return HF_OK;
    if (w->n == HF_FILE_WATCH_FOLDERS_MAX)
        return hf_say(detail, HF_INVALID,
                      "expected at most %d folders to be watched, found more at '%s'",
                      HF_FILE_WATCH_FOLDERS_MAX, HF_FOUND(path));
    folder *grown = realloc(w->folders, (w->n + 1) * sizeof *grown);
    if (grown == NULL)
        return hf_say_err(detail, HF_NOMEM);
    w->folders = grown;
    folder *one = &w->folders[w->n++];
    *one = (folder){id, strdup(path), only == NULL ? NULL : strdup(only)};
    return one->path == NULL || (only != NULL && one->only == NULL)
               ? hf_say_err(detail, HF_NOMEM)
               : HF_OK;
}

/* It has gone, and its id with it. */
static void remove_folder(hf_file_watch *w, int id)
{
    for (size_t i = w->n; i-- > 0;) {
        if (w->folders[i].id != id)
            continue;
        free(w->folders[i].path);
        free(w->folders[i].only);
        w->folders[i] = w->folders[--w->n];
    }
}

static bool is_folder(const char *path)
{
    struct stat found;
    return lstat(path, &found) == 0 && S_ISDIR(found.st_mode);
}

static hf_err add_tree(hf_file_watch *w, const char *path, char *detail);

static hf_err add_inside(hf_file_watch *w, const char *path, DIR *dir, char *detail)
{
    char inner[PATH_MAX];
    const struct dirent *entry;
    hf_err err = HF_OK;
    while (err == HF_OK && (entry = readdir(dir)) != NULL) {
        int n = snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
        if (n > 0 && (size_t)n < sizeof inner && counts(entry->d_name) &&
            is_folder(inner))
            err = add_tree(w, inner, detail);
        if (err != HF_OK && !is_folder(inner))
            err = HF_OK; /* it has gone meanwhile */
    }
    return err;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as a path is long */
static hf_err add_tree(hf_file_watch *w, const char *path, char *detail)
{
    hf_err err = add_folder(w, path, NULL, detail);
    DIR *dir = err == HF_OK ? opendir(path) : NULL;
    if (err == HF_OK && dir == NULL)
        return fail(detail, path);
    if (err == HF_OK)
        err = add_inside(w, path, dir, detail);
    if (dir != NULL)
        (void)closedir(dir);
    return err;
}

static hf_err add_file(hf_file_watch *w, const char *path, char *detail)
{
    char folder_of[PATH_MAX];
    const char *slash = strrchr(path, '/');
    if (slash == NULL)
        return add_folder(w, ".", path, detail);
    (void)snprintf(folder_of, sizeof folder_of, "%.*s",
                   slash == path ? 1 : (int)(slash - path), path);
    return add_folder(w, folder_of, slash + 1, detail);
}

static hf_err add_path(hf_file_watch *w, const char *path, char *detail)
{
    struct stat found;
    if (stat(path, &found) != 0)
        return fail(detail, path);
    if (S_ISDIR(found.st_mode))
        return add_tree(w, path, detail);
    if (S_ISREG(found.st_mode))
        return add_file(w, path, detail);
    return hf_say(detail, HF_INVALID, "expected a file or a folder to watch, found '%s'",
                  HF_FOUND(path));
}

/* ---- what happens ---- */

/* A folder that is new is watched as well. It may be gone already. */
static void enter(hf_file_watch *w, const folder *in, const char *name)
{
    char path[PATH_MAX], why[HF_DETAIL_SIZE] = "";
    int n = snprintf(path, sizeof path, "%s/%s", in->path, name);
    if (n > 0 && (size_t)n < sizeof path && is_folder(path) &&
        add_tree(w, path, why) != HF_OK && is_folder(path))
        w->calls.unwatched(why, w->calls.arg);
}

static bool matters_in(hf_file_watch *w, size_t i, const struct inotify_event *event,
                       const char *name)
{
    const folder one = w->folders[i];
    if (one.only != NULL)
        return strcmp(one.only, name) == 0;
    if (!counts(name))
        return false;
    if ((event->mask & IN_ISDIR) != 0 && (event->mask & (IN_CREATE | IN_MOVED_TO)) != 0)
        enter(w, &one, name);
    return true;
}

/* `name`: what in the folder; event->len bytes with NULs behind it, 0: the folder. */
static bool matters(hf_file_watch *w, const struct inotify_event *event, const char *name)
{
    bool does = (event->mask & IN_Q_OVERFLOW) != 0;
    size_t n = w->n; /* of those that are added now none had the event */
    for (size_t i = 0; event->len > 0 && i < n; i++)
        if (w->folders[i].id == event->wd)
            does = matters_in(w, i, event, name) || does;
    if ((event->mask & IN_IGNORED) != 0)
        remove_folder(w, event->wd);
    return does;
}

/* Whether one of the events that are there matters. */
static bool read_events(hf_file_watch *w)
{
    char events[EVENTS_SIZE];
    bool any = false;
    ssize_t len = read(w->inotify, events, sizeof events);
    for (ssize_t at = 0; at < len;) {
        struct inotify_event event;
        memcpy(&event, &events[at], sizeof event);
        any = matters(w, &event, &events[at + (ssize_t)sizeof event]) || any;
        at += (ssize_t)(sizeof event + event.len);
    }
    return any;
}

static void *run(void *arg)
{
    hf_file_watch *w = arg;
    struct pollfd fds[] = {{.fd = w->inotify, .events = POLLIN},
                           {.fd = w->stop, .events = POLLIN}};
    uint64_t first_ns = 0;
    for (;;) {
        int ready = poll(fds, 2, first_ns == 0 ? -1 : HF_FILE_WATCH_QUIET_MS);
        if (fds[1].revents != 0)
            return NULL;
        bool more = ready > 0 && read_events(w);
        uint64_t now = hf_boot_ns();
        if (more && first_ns == 0)
            first_ns = now;
        if (first_ns != 0 &&
            (ready == 0 || now - first_ns > HF_FILE_WATCH_LATEST_MS * HF_MS_NS)) {
            first_ns = 0;
            w->calls.changed(w->calls.arg);
        }
    }
}

/* ---- its life ---- */

static hf_err open_all(hf_file_watch *w, const char *const *paths, size_t n, char *detail)
{
    hf_err err = HF_OK;
    w->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    w->stop = eventfd(0, EFD_CLOEXEC);
    if (w->inotify < 0 || w->stop < 0)
        return fail(detail, paths[0]);
    for (size_t i = 0; err == HF_OK && i < n; i++)
        err = add_path(w, paths[i], detail);
    if (err == HF_OK && pthread_create(&w->thread, NULL, run, w) != 0)
        return fail(detail, paths[0]);
    w->runs = err == HF_OK;
    return err;
}

hf_err hf_file_watch_open(hf_file_watch **out, const char *const *paths, size_t n,
                          const hf_file_watch_calls *calls, char detail[HF_DETAIL_SIZE])
{
    hf_file_watch *w = calloc(1, sizeof *w);
    if (w == NULL)
        return hf_say_err(detail, HF_NOMEM);
    *w = (hf_file_watch){.inotify = -1, .stop = -1, .calls = *calls};
    hf_err err = open_all(w, paths, n, detail);
    if (err == HF_OK)
        *out = w;
    else
        hf_file_watch_close(w);
    return err;
}

void hf_file_watch_close(hf_file_watch *w)
{
    const uint64_t one = 1;
    if (w == NULL)
        return;
    if (w->runs && write(w->stop, &one, sizeof one) == (ssize_t)sizeof one)
        (void)pthread_join(w->thread, NULL);
    if (w->inotify >= 0)
        (void)close(w->inotify);
    if (w->stop >= 0)
        (void)close(w->stop);
    for (size_t i = 0; i < w->n; i++) {
        free(w->folders[i].path);
        free(w->folders[i].only);
    }
    free(w->folders);
    free(w);
}
