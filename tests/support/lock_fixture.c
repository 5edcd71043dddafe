/* lock_fixture.c - see lock_fixture.h. */
#include "tests/support/lock_fixture.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { LEASE_MS = 5000, WAIT_MS = 60000, BRIEF_MS = 3000 };
enum { CONNECT_MS = 60000, REQUEST_MS = 10000 }; /* on a busy machine */
enum { WORDS_MAX = 12, NOTES_MAX = 4096 };

static void on_event(hf_lock *lock, hf_lock_event event, void *arg)
{
    hf_lock_fixture *fixture = arg;
    (void)lock;
    atomic_uint *counts[] = {&fixture->suspect, &fixture->held, &fixture->revoked,
                             &fixture->lost};
    atomic_fetch_add(counts[event], 1);
}

hf_lock_client *hf_lock_fixture_open(hf_lock_fixture *fixture, const char *url)
{
    hf_lock_client *locks = NULL;
    /* Tests let proxies and nodes be silent, and would take long. */
    const bool plain = strcmp(url, hf_fixture_url(&fixture->redis)) == 0;
    const hf_lock_client_opts opts = {
        HF_LOCK_CLIENT_OPTS_INIT,
        .server = HF_SERVER(.url = url, .connect_timeout_ms = plain ? CONNECT_MS : 0,
                            .request_timeout_ms = plain ? REQUEST_MS : BRIEF_MS),
        .on_event = on_event, .arg = fixture};
    if (hf_lock_client_open(&locks, &opts, fixture->detail) != HF_OK)
        fail_msg("no client: %s", fixture->detail);
    return locks;
}

void hf_lock_fixture_up(hf_lock_fixture *fixture, const hf_fixture_options *options)
{
    hf_fixture_start(&fixture->redis, options);
    hf_proxy_start(&fixture->proxy, fixture->redis.socket);
}

void hf_lock_fixture_down(hf_lock_fixture *fixture)
{
    hf_proxy_stop(&fixture->proxy);
    hf_fixture_stop(&fixture->redis);
}

int hf_lock_fixture_begin(void **state)
{
    hf_lock_fixture *fixture = *state;
    (void)hf_fixture_command(&fixture->redis, "FLUSHALL");
    fixture->a = hf_lock_fixture_open(fixture, hf_fixture_url(&fixture->redis));
    fixture->b = hf_lock_fixture_open(fixture, hf_fixture_url(&fixture->redis));
    atomic_store(&fixture->suspect, 0);
    atomic_store(&fixture->held, 0);
    atomic_store(&fixture->revoked, 0);
    atomic_store(&fixture->lost, 0);
    return 0;
}

int hf_lock_fixture_end(void **state)
{
    const hf_lock_fixture *fixture = *state;
    hf_lock_client_close(fixture->a, NULL, NULL);
    hf_lock_client_close(fixture->b, NULL, NULL);
    return 0;
}

static void complete(hf_lock_opts *opts, const char *const *name)
{
    if (opts->n_names == 0) {
        opts->names = name;
        opts->n_names = 1;
    }
    if (opts->lease_ms == 0)
        opts->lease_ms = LEASE_MS;
}

hf_err hf_lock_take(hf_lock_fixture *fixture, hf_lock_client *locks, const char *name,
                    hf_lock_opts opts, hf_lock **out)
{
    complete(&opts, &name);
    *out = NULL;
    return hf_lock_acquire_wait(locks, &opts, out, fixture->detail);
}

hf_lock *hf_lock_must(hf_lock_fixture *fixture, hf_lock_client *locks, const char *name,
                      hf_lock_opts opts)
{
    hf_lock *lock;
    hf_err err = hf_lock_take(fixture, locks, name, opts, &lock);
    if (err != HF_OK)
        fail_msg("%s: %s %s", name, hf_err_name(err), fixture->detail);
    /* A short lease may be over before this thread runs again. */
    assert_true(hf_lock_held(lock) || hf_lock_why(lock) == HF_LOCK_DEADLINE);
    return lock;
}

void hf_lock_refused(hf_lock_fixture *fixture, hf_lock_client *locks, const char *name,
                     hf_lock_opts opts, hf_err expected)
{
    hf_lock *lock;
    assert_int_equal(hf_lock_take(fixture, locks, name, opts, &lock), expected);
    assert_null(lock);
}

void hf_lock_released(hf_lock *lock)
{
    size_t left = 9;
    assert_int_equal(hf_lock_release_wait(lock, &left), HF_RELEASE_DONE);
    assert_int_equal(left, 0);
}

bool hf_lock_is_free(hf_lock_fixture *fixture, const char *name)
{
    return hf_fixture_number(&fixture->redis,
                             "EXISTS hf:lock:{%s}:e:%s hf:lock:{%s}:cell:%s", name, name,
                             name, name) == 0;
}

static void *wait_for_it(void *arg)
{
    hf_lock_waiter *w = arg;
    char detail[HF_DETAIL_SIZE];
    w->err = hf_lock_acquire_wait(w->locks, &w->opts, &w->lock, detail);
    atomic_store(&w->done, true);
    return NULL;
}

long long hf_lock_queue(hf_lock_fixture *fixture, const char *name)
{
    char tag[HF_LOCK_NAME_MAX + 1];
    (void)snprintf(tag, sizeof tag, "%.*s", (int)strcspn(name, "/"), name);
    return hf_fixture_number(&fixture->redis, "ZCARD hf:lock:{%s}:q:%s", tag, name);
}

void hf_lock_begin(hf_lock_waiter *w, hf_lock_fixture *fixture, hf_lock_client *locks,
                   const char *name, hf_lock_opts opts)
{
    pthread_t thread;
    *w = (hf_lock_waiter){.fixture = fixture, .locks = locks, .name = name, .opts = opts};
    complete(&w->opts, &w->name);
    if (w->opts.wait_ms == 0)
        w->opts.wait_ms = WAIT_MS;
    assert_int_equal(pthread_create(&thread, NULL, wait_for_it, w), 0);
    w->thread = (unsigned long)thread;
}

void hf_lock_wait_begin(hf_lock_waiter *w, hf_lock_fixture *fixture,
                        hf_lock_client *locks, const char *name, hf_lock_opts opts)
{
    long long before = hf_lock_queue(fixture, name);
    hf_lock_begin(w, fixture, locks, name, opts);
    if (w->opts.form == HF_LOCK_LINE)
        EVENTUALLY(WAIT_MS, hf_lock_queue(fixture, name) == before + 1 || w->done);
}

void hf_lock_wait_end(hf_lock_waiter *w)
{
    assert_int_equal(pthread_join((pthread_t)w->thread, NULL), 0);
}

void hf_lock_wait_released(hf_lock_waiter *w)
{
    hf_lock_wait_end(w);
    assert_int_equal(w->err, HF_OK);
    hf_lock_released(w->lock);
}

/* ---- processes of their own ---- */

void hf_locker_start(hf_locker *l, const char *dir, const char *url, const char *name,
                     const char *words)
{
    static unsigned started;
    char text[256], *rest;
    const char *args[WORDS_MAX + 5] = {HF_TEST_HELPERS "/hf-locker", url, l->log, name};
    size_t n = 4;
    (void)snprintf(l->log, sizeof l->log, "%s/locker-%u", dir, ++started);
    (void)snprintf(text, sizeof text, "%s", words);
    for (char *word = strtok_r(text, " ", &rest); word != NULL && n < WORDS_MAX + 4;
         word = strtok_r(NULL, " ", &rest))
        args[n++] = word;
    hf_proc_start(&l->proc, &(hf_proc_options){.args = args});
}

void hf_locker_kill(hf_locker *l)
{
    if (l->proc.pid > 0)
        hf_proc_kill(&l->proc);
}

size_t hf_locker_read(const hf_locker *l, hf_locker_note *notes, size_t room)
{
    FILE *file = fopen(l->log, "r");
    size_t n = 0;
    if (file == NULL)
        return 0;
    while (n < room && fscanf(file, "%15s %" SCNu64 " %" SCNu64, notes[n].kind,
                              &notes[n].ns, &notes[n].value) == 3)
        n++;
    (void)fclose(file);
    return n;
}

bool hf_locker_said(const hf_locker *l, const char *kind, hf_locker_note *note)
{
    static hf_locker_note notes[NOTES_MAX];
    for (size_t n = hf_locker_read(l, notes, NOTES_MAX); n > 0; n--)
        if (strcmp(notes[n - 1].kind, kind) == 0) {
            if (note != NULL)
                *note = notes[n - 1];
            return true;
        }
    return false;
}
