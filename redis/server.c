/* server.c - redis/server.h, and hf_server_opts_check() of holdfast/server.h. */
#include "redis/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/backoff.h"
#include "base/base.h"
#include "base/clock.h"
#include "base/server_opts.h"
#include "base/structs.h"
#include "base/tls_opts.h"
#include "redis/tls.h"

static const char default_url[] = "redis://localhost:6379/0";

/* Short beside most deadlines, so a later request still finds out that it is well again.
 */
static const hf_backoff pauses = {HF_SHAPE_EXPONENTIAL, 5, 100, 0.2};

/* ---- life ---- */

static hf_err refuse(char *detail, hf_err err, const char *why)
{
    (void)snprintf(detail, HF_DETAIL_SIZE, "%s", why);
    return err;
}

/* The files are read here as well: a bad one is reported before anything starts. */
static hf_err take_tls(hf_server *s, const hf_tls_opts *opts, char *detail)
{
    if (opts == NULL && !s->url.tls)
        return HF_OK;
    if (!s->url.tls)
        return refuse(detail, HF_CONFIG,
                      "TLS options need a URL with rediss://, rediss+sentinel:// or "
                      "rediss+cluster://");
    if (opts != NULL && (s->tls = hf_tls_opts_copy(opts)) == NULL)
        return refuse(detail, HF_NOMEM, hf_err_text(HF_NOMEM));
    return hf_tls_check(s->tls, detail);
}

static hf_err take_sentinel(hf_server *s, const hf_sentinel_opts *given, char *detail)
{
    hf_url_sentinel *to = &s->url.sentinel;
    hf_sentinel_opts opts;
    if (given == NULL)
        return HF_OK;
    hf_err err = hf_struct_in(&opts, sizeof opts, given, "hf_sentinel_opts", detail);
    if (err != HF_OK)
        return err;
    if (to->n_nodes == 0)
        return refuse(detail, HF_CONFIG,
                      "options of Sentinels need a URL with redis+sentinel://");
    if (opts.user != NULL && strlen(opts.user) > HF_URL_PART_MAX)
        return refuse(detail, HF_INVALID, "the user of the Sentinels is too long");
    if (opts.user != NULL && opts.password_file == NULL)
        return refuse(detail, HF_INVALID,
                      "the Sentinels' user is named, and there is no password");
    if (opts.user != NULL)
        (void)snprintf(to->user, sizeof to->user, "%s", opts.user);
    return opts.password_file == NULL
               ? HF_OK
               : hf_url_read_password(to->password, opts.password_file, detail);
}

/* Everything about the options that can be wrong. */
static hf_err take_options(hf_server *s, const hf_server_opts *given, char *detail)
{
    hf_server_opts opts = *given;
    hf_err err = hf_server_opts_fill(&opts, detail);
    if (err == HF_OK)
        err = hf_url_parse(&s->url, opts.url == NULL ? default_url : opts.url, detail);
    if (err == HF_OK && opts.password_file != NULL)
        err = hf_url_read_password(s->url.password, opts.password_file, detail);
    if (err == HF_OK)
        err = take_sentinel(s, opts.sentinel, detail);
    if (err != HF_OK)
        return err;
    if (s->url.user[0] != '\0' && s->url.password[0] == '\0')
        return refuse(detail, HF_INVALID,
                      "the URL names a user, and there is no password");
    hf_url_place(&s->url, s->place);
    s->connect_timeout_ms = opts.connect_timeout_ms;
    s->request_timeout_ms = opts.request_timeout_ms;
    return take_tls(s, opts.tls, detail);
}

static void free_server(hf_server *s)
{
    hf_url_wipe(&s->url);
    free(s->tls);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static hf_server *make_server(void)
{
    hf_server *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    pthread_mutex_init(&s->lock, NULL);
    s->refs = 1;
    return s;
}

/* `err` is what its options have come to. */
static hf_err hand_out(hf_server **out, hf_server *s, hf_err err, char *detail)
{
    if (err == HF_OK && hf_random_bytes(&s->rng.state, sizeof s->rng.state) != HF_OK)
        err = refuse(detail, HF_SYSTEM, "the system gives no random numbers");
    if (err == HF_OK)
        *out = s;
    else
        free_server(s);
    return err;
}

hf_err hf_server_open(hf_server **out, const hf_server_opts *opts,
                      char detail[HF_DETAIL_SIZE])
{
    char unused[HF_DETAIL_SIZE];
    char *why = detail != NULL ? detail : unused;
    hf_server *s = make_server();
    if (s == NULL)
        return refuse(why, HF_NOMEM, hf_err_text(HF_NOMEM));
    return hand_out(out, s, take_options(s, opts, why), why);
}

hf_err hf_server_open_at(hf_server **out, const hf_url *url, const hf_tls_opts *tls,
                         uint32_t connect_timeout_ms, uint32_t request_timeout_ms,
                         char detail[HF_DETAIL_SIZE])
{
    hf_server *s = make_server();
    if (s == NULL)
        return refuse(detail, HF_NOMEM, hf_err_text(HF_NOMEM));
    s->url = *url;
    hf_url_place(&s->url, s->place);
    s->connect_timeout_ms = connect_timeout_ms;
    s->request_timeout_ms = request_timeout_ms;
    return hand_out(out, s, take_tls(s, tls, detail), detail);
}

hf_err hf_server_open_node(hf_server **out, const hf_server *given, const hf_place *place,
                           uint32_t connect_timeout_ms, uint32_t request_timeout_ms,
                           char detail[HF_DETAIL_SIZE])
{
    hf_url url = {.port = place->port, .tls = given->url.tls};
    memcpy(url.host, place->host, sizeof url.host);
    memcpy(url.user, given->url.user, sizeof url.user);
    memcpy(url.password, given->url.password, sizeof url.password);
    hf_err err = hf_server_open_at(out, &url, given->tls, connect_timeout_ms,
                                   request_timeout_ms, detail);
    hf_url_wipe(&url);
    if (err == HF_OK)
        (*out)->in_cluster = true;
    return err;
}

hf_err hf_server_opts_check(const hf_server_opts *opts, char detail[HF_DETAIL_SIZE])
{
    hf_server_opts ours;
    hf_server *s = NULL;
    char unused[HF_DETAIL_SIZE];
    char *why = detail != NULL ? detail : unused;
    hf_err err = hf_server_opts_in(&ours, opts, why);
    if (err == HF_OK)
        err = hf_server_open(&s, &ours, why);
    hf_server_close(s);
    return err;
}

void hf_server_unref(hf_server *s)
{
    pthread_mutex_lock(&s->lock);
    bool last = --s->refs == 0;
    pthread_mutex_unlock(&s->lock);
    if (last)
        free_server(s);
}

void hf_server_close(hf_server *s)
{
    if (s != NULL)
        hf_server_unref(s);
}

hf_server *hf_server_share(hf_server *s)
{
    pthread_mutex_lock(&s->lock);
    s->refs++;
    pthread_mutex_unlock(&s->lock);
    return s;
}

bool hf_server_is_shared(hf_server *s)
{
    pthread_mutex_lock(&s->lock);
    bool shared = s->refs > 1;
    pthread_mutex_unlock(&s->lock);
    return shared;
}

/* ---- connections ---- */

void hf_server_join(hf_server *s, hf_server_seat *seat)
{
    pthread_mutex_lock(&s->lock);
    s->refs++;
    seat->prev = NULL;
    seat->next = s->seats;
    if (s->seats != NULL)
        s->seats->prev = seat;
    s->seats = seat;
    pthread_mutex_unlock(&s->lock);
}

/* Under the lock: a seat that has left is sent nothing more. */
static void tell_all(hf_server *s)
{
    for (hf_server_seat *seat = s->seats; seat != NULL; seat = seat->next)
        uv_async_send(&seat->news);
}

void hf_server_leave(hf_server *s, hf_server_seat *seat)
{
    pthread_mutex_lock(&s->lock);
    if (seat->prev != NULL)
        seat->prev->next = seat->next;
    else
        s->seats = seat->next;
    if (seat->next != NULL)
        seat->next->prev = seat->prev;
    if (s->watcher == seat) {
        s->watcher = NULL;
        tell_all(s); /* another one takes it over */
    }
    pthread_mutex_unlock(&s->lock);
}

void hf_server_drop(hf_server *s)
{
    pthread_mutex_lock(&s->lock);
    atomic_fetch_add(&s->drops, 1);
    tell_all(s);
    pthread_mutex_unlock(&s->lock);
}

/* ---- Sentinels ---- */

uint64_t hf_server_find(hf_server *s, const hf_place *bad)
{
    pthread_mutex_lock(&s->lock);
    s->asked = s->awaited = true;
    if (bad != NULL && hf_url_place_is(bad, &s->word.primary))
        s->doubted = true;
    uint64_t answers = s->answers;
    if (s->watcher != NULL)
        uv_async_send(&s->watcher->news);
    pthread_mutex_unlock(&s->lock);
    return answers;
}

bool hf_server_word_after(hf_server *s, uint64_t answers, hf_server_word *out)
{
    pthread_mutex_lock(&s->lock);
    bool after = s->answers > answers;
    if (after)
        *out = s->word;
    pthread_mutex_unlock(&s->lock);
    return after;
}

hf_watch hf_server_watches(hf_server *s, hf_server_seat *seat)
{
    hf_watch what = HF_WATCH_NOT;
    pthread_mutex_lock(&s->lock);
    if (s->watcher == NULL) {
        s->watcher = seat;
        s->asked = true;
    }
    if (s->watcher == seat) {
        what = !s->asked ? HF_WATCH_ON : s->doubted ? HF_WATCH_DOUBT : HF_WATCH_ASK;
        s->asked = s->doubted = false;
    }
    pthread_mutex_unlock(&s->lock);
    return what;
}

/* Under the lock. There is a word each second: one that changes nothing wakes no
 * connection, unless one waits for it. */
static void take_word(hf_server *s, hf_err err, const char *why, bool changes)
{
    s->word.err = err;
    s->word.drops = atomic_load(&s->drops);
    (void)snprintf(s->word.why, sizeof s->word.why, "%s", why);
    s->answers++;
    if (changes || s->awaited)
        tell_all(s);
    s->awaited = false;
}

void hf_server_named(hf_server *s, const hf_place *primary)
{
    pthread_mutex_lock(&s->lock);
    bool another = !hf_url_place_is(primary, &s->word.primary);
    if (another) {
        if (s->word.primary.port != 0)
            atomic_fetch_add(&s->drops, 1);
        s->word.primary = *primary;
    }
    take_word(s, HF_OK, "", another);
    pthread_mutex_unlock(&s->lock);
}

void hf_server_not_named(hf_server *s, hf_err err, const char *why)
{
    pthread_mutex_lock(&s->lock);
    take_word(s, err, why, false);
    pthread_mutex_unlock(&s->lock);
}

/* ---- its life ---- */

static bool is_slave(const hf_server_info *greeting)
{
    return strcmp(greeting->role, "slave") == 0;
}

/* A replica is the life of no primary, and only a connection that reads is ready there.
 */
uint64_t hf_server_greeted(hf_server *s, const hf_server_info *greeting,
                           uint64_t *ready_ns)
{
    bool known = greeting->run_id[0] != '\0'; /* else any may be another */
    pthread_mutex_lock(&s->lock);
    *ready_ns = hf_boot_ns();
    if (!is_slave(greeting)) {
        bool another = !known || strcmp(s->greeting.run_id, greeting->run_id) != 0 ||
                       strcmp(s->greeting.replid, greeting->replid) != 0;
        s->greeting = *greeting;
        s->greeted_ns = *ready_ns;
        s->trip_ns = 0;
        if (another && known && s->lives > 0)
            tell_all(s);
        if (another || s->lives == 0)
            s->lives++;
    }
    uint64_t life = s->lives;
    pthread_mutex_unlock(&s->lock);
    return life;
}

void hf_server_is_replica(hf_server *s, const char *run_id)
{
    if (run_id[0] == '\0')
        return;
    pthread_mutex_lock(&s->lock);
    (void)snprintf(s->replica, sizeof s->replica, "%s", run_id);
    s->replica_ns = hf_boot_ns();
    tell_all(s);
    pthread_mutex_unlock(&s->lock);
}

hf_err hf_server_has_left(hf_server *s, const hf_server_info *greeting, uint64_t ready_ns)
{
    const char *run_id = greeting->run_id;
    hf_err err = HF_OK;
    pthread_mutex_lock(&s->lock);
    if (run_id[0] != '\0' && !is_slave(greeting) && s->replica_ns > ready_ns &&
        strcmp(s->replica, run_id) == 0)
        err = HF_READONLY;
    else if (run_id[0] != '\0' && s->greeting.run_id[0] != '\0' &&
             s->greeted_ns > ready_ns &&
             (strcmp(s->greeting.run_id, run_id) != 0 ||
              strcmp(s->greeting.replid, greeting->replid) != 0))
        err = HF_CONN; /* of an earlier life: it would be taken for one for ever */
    pthread_mutex_unlock(&s->lock);
    return err;
}

/* ---- its clock ---- */

int64_t hf_server_sample(hf_server *s, int64_t now_ms, uint64_t sent_ns)
{
    pthread_mutex_lock(&s->lock);
    uint64_t read_ns = hf_boot_ns();
    int64_t step_ms = hf_remote_clock_read(&s->clock, sent_ns, read_ns, now_ms);
    if (s->trip_ns == 0 || read_ns - sent_ns < s->trip_ns)
        s->trip_ns = read_ns - sent_ns;
    pthread_mutex_unlock(&s->lock);
    return step_ms;
}

uint64_t hf_server_life(hf_server *s)
{
    pthread_mutex_lock(&s->lock);
    uint64_t life = s->lives;
    pthread_mutex_unlock(&s->lock);
    return life;
}

uint64_t hf_server_trip_ns(hf_server *s)
{
    pthread_mutex_lock(&s->lock);
    uint64_t trip_ns = s->trip_ns;
    pthread_mutex_unlock(&s->lock);
    return trip_ns;
}

int64_t hf_server_now(hf_server *s)
{
    pthread_mutex_lock(&s->lock);
    int64_t now_ms = s->clock.known ? hf_remote_clock_now(&s->clock, hf_boot_ns()) : 0;
    pthread_mutex_unlock(&s->lock);
    return now_ms;
}

uint64_t hf_server_when(hf_server *s, int64_t at_ms)
{
    pthread_mutex_lock(&s->lock);
    uint64_t when_ns = s->clock.known ? hf_remote_clock_when(&s->clock, at_ms) : 0;
    pthread_mutex_unlock(&s->lock);
    return when_ns;
}

/* ---- the pause ---- */

/* One that does not know the script has been sent it by now: the next try will do. */
void hf_server_pause(hf_server *s, hf_err err, uint64_t sent_ns)
{
    if (sent_ns < s->paused_ns)
        return;
    bool at_once = err == HF_NOSCRIPT && s->refusals == 0;
    s->refusals++;
    int64_t ms = at_once ? 0 : hf_backoff_ms(&pauses, s->refusals, &s->rng);
    s->paused_ns = hf_boot_ns();
    s->pause_until_ns = s->paused_ns + (uint64_t)ms * HF_MS_NS;
}
