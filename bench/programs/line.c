/* line.c - one client of locks, and as many acquisitions of one lock as it is told.
 *
 *   line --url URL --name NAME [--lease MS]
 *
 * It reads commands from its standard input and answers each with one line:
 *
 *   enter N FIRST   N more acquisitions, numbered from FIRST on, submitted in that order;
 *                   answered when all of them hold the lock or wait in its line
 *   keep            a granted acquisition keeps the lock (the initial mode); answered at
 *                   once
 *   drain           every holder, present or later, releases the lock and is gone;
 *                   answered when none is left
 *   turn            the same, but each enters the line again at its end; answered at once
 *   report          {"enters", "leaves": numbers of requests, "grants": [[fence, number],
 *                   ...], in the order of the callbacks}, since the last report
 *
 * It ends with its standard input. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "bench/programs/tool.h"
#include "holdfast/lock.h"

enum { LOOK_MS = 2, WORDS_MAX = 256 };

typedef enum mode { KEEP, DRAIN, TURN } mode;

typedef struct waiter {
    struct waiter *next;
    hf_lock *lock; /* from the call to the release */
    uint64_t number;
    bool held;
} waiter;

typedef struct grant {
    uint64_t fence, number;
} grant;

static uv_loop_t loop;
static hf_lock_client *locks;
static uv_timer_t look; /* while an answer is owed */
static const char *name;
static uint32_t lease_ms = HF_LOCK_LEASE_MS;
static mode now_mode;
static bool owes_entered, owes_drained;
static waiter *waiters;
static uint64_t enters, leaves;
static grant *grants;
static size_t n_grants, cap_grants;

static void say(const char *text)
{
    (void)puts(text);
    (void)fflush(stdout);
}

static void note(uint64_t fence, uint64_t number)
{
    if (n_grants == cap_grants) {
        cap_grants = cap_grants == 0 ? 1024 : cap_grants * 2;
        grants = realloc(grants, cap_grants * sizeof *grants);
        if (grants == NULL)
            give_up("a grant", hf_err_text(HF_NOMEM));
    }
    grants[n_grants++] = (grant){fence, number};
}

/* ---- acquisitions ---- */

static void give_back(waiter *w);

static void on_acquired(hf_lock *lock, hf_err err, const char *detail, void *arg)
{
    waiter *w = arg;
    if (err == HF_CLOSED)
        return;
    if (err != HF_OK)
        give_up("an acquisition", detail[0] != '\0' ? detail : hf_err_text(err));
    w->lock = lock;
    w->held = true;
    note(hf_lock_fence(lock), w->number);
    if (now_mode != KEEP)
        give_back(w);
}

static void ask(waiter *w)
{
    char detail[HF_DETAIL_SIZE] = "";
    const hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .names = &name, .n_names = 1,
                               .wait_ms = -1, .lease_ms = lease_ms};
    hf_err err = hf_lock_acquire(locks, &opts, on_acquired, w, &w->lock, detail);
    if (err != HF_OK)
        give_up("an acquisition", detail);
    enters++;
}

static void forget(waiter *w)
{
    waiter **at = &waiters;
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    free(w);
}

static void on_released(hf_lock *lock, hf_lock_release_result result, size_t left,
                        void *arg)
{
    waiter *w = arg;
    (void)lock, (void)left;
    if (result != HF_RELEASE_DONE)
        give_up("a release", "the lock was not held any more");
    if (now_mode == TURN)
        ask(w);
    else
        forget(w);
}

static void give_back(waiter *w)
{
    hf_lock *lock = w->lock;
    w->held = false;
    w->lock = NULL;
    leaves++;
    hf_lock_release(lock, on_released, w);
}

static void give_all_back(void)
{
    for (waiter *w = waiters; w != NULL; w = w->next)
        if (w->held)
            give_back(w);
}

static void enter(uint64_t n, uint64_t first)
{
    for (uint64_t i = 0; i < n; i++) {
        waiter *w = calloc(1, sizeof *w);
        if (w == NULL)
            give_up("a waiter", hf_err_text(HF_NOMEM));
        w->number = first + i;
        w->next = waiters;
        waiters = w;
        ask(w);
    }
}

/* ---- answers ---- */

static bool all_entered(void)
{
    for (const waiter *w = waiters; w != NULL; w = w->next)
        if (!w->held && hf_lock_get_state(w->lock) != HF_LOCK_WAITING)
            return false;
    return true;
}

static void on_look(uv_timer_t *timer)
{
    if (owes_entered && all_entered()) {
        owes_entered = false;
        say("entered");
    }
    if (owes_drained && waiters == NULL) {
        owes_drained = false;
        say("drained");
    }
    if (!owes_entered && !owes_drained)
        (void)uv_timer_stop(timer);
}

static void owe(bool *what)
{
    *what = true;
    (void)uv_timer_start(&look, on_look, 0, LOOK_MS);
}

static void report(void)
{
    (void)printf("{\"enters\": %" PRIu64 ", \"leaves\": %" PRIu64 ", \"grants\": [",
                 enters, leaves);
    for (size_t i = 0; i < n_grants; i++)
        (void)printf("%s[%" PRIu64 ", %" PRIu64 "]", i == 0 ? "" : ", ", grants[i].fence,
                     grants[i].number);
    say("]}");
    enters = leaves = n_grants = 0;
}

static void set_mode(mode to)
{
    now_mode = to;
    if (to != KEEP)
        give_all_back();
}

static void obey(const char *line)
{
    uint64_t n, first;
    if (sscanf(line, "enter %" SCNu64 " %" SCNu64, &n, &first) == 2) {
        enter(n, first);
        owe(&owes_entered);
    } else if (strcmp(line, "drain") == 0) {
        set_mode(DRAIN);
        owe(&owes_drained);
    } else if (strcmp(line, "report") == 0) {
        report();
    } else if (strcmp(line, "keep") == 0 || strcmp(line, "turn") == 0) {
        set_mode(line[0] == 'k' ? KEEP : TURN);
        say(line);
    } else {
        give_up(line, "there is no such command");
    }
}

static void on_input(uv_poll_t *poll, int status, int events)
{
    static char text[WORDS_MAX];
    static size_t len;
    (void)status, (void)events;
    ssize_t n = read(STDIN_FILENO, text + len, sizeof text - 1 - len);
    if (n <= 0) {
        (void)uv_poll_stop(poll);
        uv_stop(&loop);
        return;
    }
    len += (size_t)n;
    text[len] = '\0';
    for (char *end; (end = strchr(text, '\n')) != NULL;) {
        *end = '\0';
        obey(text);
        len -= (size_t)(end + 1 - text);
        memmove(text, end + 1, len + 1);
    }
}

/* ---- all of it ---- */

static const char *parse(int argc, char **argv)
{
    const char *url = NULL;
    const option_spec specs[] = {
        {"url", &url, NULL}, {"name", &name, NULL}, {"lease", NULL, &lease_ms}, {0}};
    if (read_options(argc, argv, specs) != argc || url == NULL || name == NULL)
        misused("--url URL and --name NAME");
    return url;
}

int main(int argc, char **argv)
{
    char detail[HF_DETAIL_SIZE] = "";
    uv_poll_t input;
    const char *url = parse(argc, argv);
    (void)uv_loop_init(&loop);
    (void)uv_timer_init(&loop, &look);
    if (uv_poll_init(&loop, &input, STDIN_FILENO) != 0)
        give_up("the standard input", "it is no pipe");
    (void)uv_poll_start(&input, UV_READABLE, on_input);
    hf_err err = hf_lock_client_open(
        &locks,
        &(hf_lock_client_opts){HF_LOCK_CLIENT_OPTS_INIT, .loop = &loop,
                               .server = HF_SERVER(.url = url)},
        detail);
    if (err != HF_OK)
        give_up("the client", detail);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    hf_lock_client_close(locks, NULL, NULL);
    uv_close((uv_handle_t *)&input, NULL);
    uv_close((uv_handle_t *)&look, NULL);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&loop);
    free(grants);
    return 0;
}
