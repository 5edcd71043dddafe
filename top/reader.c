/* reader.c - see reader.h: the connection, and the whole with its verdict. */
#include "top/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mask.h"
#include "seen/gather.h"
#include "seen/words.h"
#include "top/reader_page.h"

enum {
    LOCKS_MS = 100,          /* to look for locks in */
    LOCKS_SHOWN_MS = 5000,   /* they are looked for so often while they are shown, */
    LOCKS_HIDDEN_MS = 60000, /* and else */
    SERVER_SHOWN = 40,
    LOG_MAX = 1 << 18
};

/* ---- life ---- */

void hf_reader_init(hf_top_reader *reader, const hf_server_opts *server, int64_t late_ms,
                    int64_t poison)
{
    const char *url = server->url != NULL ? server->url : "redis://localhost:6379";
    char text[HF_DETAIL_SIZE];
    *reader = (hf_top_reader){.server = server, .late_ms = late_ms, .poison = poison};
    reader->log_place = (hf_log_place){HF_LOG_PLACE_INIT};
    (void)pthread_mutex_init(&reader->mutex, NULL); /* cannot fail without attributes */
    hf_model_init(&reader->model);
    hf_buf_init(&reader->log, LOG_MAX);
    reader->model.late_ms = late_ms;
    (void)snprintf(text, sizeof text, "%s", url);
    hf_mask(text);
    const char *from = strstr(text, "://");
    from = from == NULL ? text : from + strlen("://");
    const bool other = server->ns != NULL && strcmp(server->ns, "hf") != 0;
    (void)snprintf(reader->model.server, sizeof reader->model.server, "%.*s%s%.*s",
                   SERVER_SHOWN, strncmp(from, "***@", 4) == 0 ? from + 4 : from,
                   other ? " " : "", SERVER_SHOWN, other ? server->ns : "");
}

void hf_reader_done(hf_top_reader *reader)
{
    hf_lock_client_close(reader->locks, NULL, NULL);
    hf_admin_close(reader->admin);
    hf_running_free(reader->running);
    free(reader->kept);
    hf_buf_done(&reader->log);
    hf_model_done(&reader->model);
    (void)pthread_mutex_destroy(&reader->mutex);
}

/* ---- whether Redis answers ---- */

static void judge(hf_top_reader *reader, const hf_facts *facts)
{
    hf_wrongs *wrongs = malloc(sizeof *wrongs);
    if (wrongs == NULL) {
        reader->out_of_memory = true;
        return;
    }
    hf_wrong_judge(facts, wrongs);
    (void)pthread_mutex_lock(&reader->mutex);
    hf_model_take_wrongs(&reader->model, wrongs);
    (void)pthread_mutex_unlock(&reader->mutex);
    free(wrongs);
}

/* A short silence is none: the verdict stays as it was. */
static void tell_away(hf_top_reader *reader, hf_err err)
{
    hf_facts facts = {.late_ms = reader->late_ms, .poison = reader->poison};
    const bool silent = err == HF_CONN || err == HF_TIMEOUT || err == HF_UNSURE;
    if (reader->away_ms == 0) /* a call that waited in vain began then */
        reader->away_ms = hf_wall_ms() - (silent ? HF_READER_ANSWER_MS : 0);
    if (silent && hf_wall_ms() - reader->away_ms < HF_READER_AWAY_MS)
        return;
    if (hf_facts_away(&facts, err, reader->detail, reader->away_ms) == HF_OK)
        judge(reader, &facts);
    hf_facts_done(&facts);
    (void)pthread_mutex_lock(&reader->mutex);
    reader->model.away = true;
    (void)pthread_mutex_unlock(&reader->mutex);
}

bool hf_reader_heard(hf_top_reader *reader, hf_err err)
{
    if (err == HF_NOMEM)
        reader->out_of_memory = true;
    if (err != HF_OK) {
        tell_away(reader, err);
        return false;
    }
    reader->away_ms = 0;
    (void)pthread_mutex_lock(&reader->mutex);
    reader->model.away = false;
    reader->model.read_ns = hf_boot_ns();
    (void)pthread_mutex_unlock(&reader->mutex);
    return true;
}

bool hf_reader_connect(hf_top_reader *reader)
{
    hf_server_opts server = *reader->server;
    const hf_admin_opts opts = {HF_ADMIN_OPTS_INIT, .server = &server,
                                .deadline_ms = HF_READER_ANSWER_MS};
    if (reader->admin != NULL)
        return true;
    server.connect_timeout_ms = HF_READER_ANSWER_MS;
    hf_err err = hf_admin_open(&reader->admin, &opts, reader->detail);
    if (err != HF_OK)
        (void)hf_reader_heard(reader, err);
    return err == HF_OK;
}

/* ---- locks: seldom, because it goes through the keys ---- */

static bool locks_are_due(hf_top_reader *reader, const hf_want *want)
{
    const uint64_t ms = want->page == HF_PAGE_LOCKS ? LOCKS_SHOWN_MS : LOCKS_HIDDEN_MS;
    const uint64_t now = hf_boot_ns();
    return reader->at.locks_ns == 0 || now - reader->at.locks_ns >= ms * HF_MS_NS;
}

static bool open_locks(hf_top_reader *reader)
{
    const hf_lock_client_opts opts = {HF_LOCK_CLIENT_OPTS_INIT, .server = reader->server};
    if (reader->locks == NULL &&
        hf_lock_client_open(&reader->locks, &opts, NULL) != HF_OK)
        reader->locks = NULL;
    return reader->locks != NULL;
}

static bool show_locks(hf_top_reader *reader)
{
    const size_t n = reader->n_kept;
    hf_facts_lock *copy = malloc((n + 1) * sizeof *copy);
    if (copy == NULL)
        return false;
    if (n > 0)
        memcpy(copy, reader->kept, n * sizeof *copy);
    (void)pthread_mutex_lock(&reader->mutex);
    free(reader->model.locks);
    reader->model.locks = copy;
    reader->model.n_locks = n;
    reader->model.listed[HF_PAGE_LOCKS] = true;
    (void)pthread_mutex_unlock(&reader->mutex);
    return true;
}

/* The facts get the locks of the last look, or keep those of this one. */
static void share_locks(hf_top_reader *reader, hf_facts *facts, bool looked)
{
    if (looked) {
        free(reader->kept);
        reader->kept = facts->locks;
        reader->n_kept = facts->n_locks;
        reader->at.locks_ns = hf_boot_ns();
        reader->out_of_memory = !show_locks(reader) || reader->out_of_memory;
    }
    facts->locks = reader->kept;
    facts->n_locks = reader->n_kept;
}

static void take_locks_back(hf_facts *facts)
{
    facts->locks = NULL;
    facts->n_locks = 0;
}

/* ---- the whole ---- */

static bool set_queues(hf_top_reader *reader, const hf_facts *facts)
{
    char **names = calloc(facts->n_queues + 1, sizeof *names);
    if (names == NULL)
        return false;
    for (size_t i = 0; i < facts->n_queues; i++)
        names[i] = facts->queues[i].stats.queue;
    bool done = hf_model_set_queues(&reader->model, names, facts->n_queues);
    free(names);
    return done;
}

static void take_queues(hf_top_reader *reader, const hf_facts *facts)
{
    (void)pthread_mutex_lock(&reader->mutex);
    bool done = set_queues(reader, facts);
    for (size_t i = 0; i < facts->n_queues && done; i++) {
        const hf_facts_queue *q = &facts->queues[i];
        hf_top_queue *known = hf_model_queue(&reader->model, q->stats.queue);
        if (q->stats.now_ms == 0)
            known->failed = true;
        else if (q->stats.now_ms > known->stats.now_ms)
            hf_model_take_stats(&reader->model, &q->stats);
    }
    reader->model.whole = true;
    (void)pthread_mutex_unlock(&reader->mutex);
    reader->out_of_memory = !done || reader->out_of_memory;
}

/* Redis as a whole failed, and no node of a cluster. */
static bool has_failed(hf_top_reader *reader, const hf_facts *facts)
{
    const hf_facts_redis *r = facts->redis;
    if (facts->n_redis != 1 || r->err == HF_OK)
        return false;
    (void)snprintf(reader->detail, sizeof reader->detail, "%s", r->detail);
    return true;
}

/* Each reading sees a node for the first time; only here it is known how long it has been
 * silent. */
static void remember_silence(hf_top_reader *reader, hf_facts *facts)
{
    for (size_t i = 0; i < facts->n_redis && i < HF_READER_NODES; i++) {
        hf_facts_redis *r = &facts->redis[i];
        size_t at = 0;
        while (at < HF_READER_NODES && strcmp(reader->silent[at].place, r->place) != 0)
            at++;
        if (at < HF_READER_NODES && r->err == HF_OK)
            reader->silent[at].place[0] = '\0';
        else if (at < HF_READER_NODES)
            r->since_ms = reader->silent[at].since_ms;
        if (at < HF_READER_NODES || r->err == HF_OK)
            continue;
        for (at = 0; at < HF_READER_NODES; at++)
            if (reader->silent[at].place[0] == '\0')
                break;
        if (at == HF_READER_NODES)
            continue;
        (void)snprintf(reader->silent[at].place, HF_FACTS_PLACE, "%s", r->place);
        reader->silent[at].since_ms = r->since_ms;
    }
}

static bool on_between(void *arg)
{
    hf_top_reader *reader = arg;
    if (reader->between != NULL && !reader->between(reader->arg))
        reader->stopped = true;
    return !reader->stopped;
}

void hf_reader_whole(hf_top_reader *reader, const hf_want *want,
                     bool (*between)(void *arg), void *arg)
{
    hf_facts facts = {.late_ms = reader->late_ms, .poison = reader->poison};
    hf_gather_opts gather = {.locks_ms = LOCKS_MS, .between = on_between, .arg = reader};
    if (!hf_reader_connect(reader))
        return;
    reader->between = between;
    reader->arg = arg;
    reader->stopped = false;
    gather.admin = reader->admin;
    if (locks_are_due(reader, want) && open_locks(reader))
        gather.locks = reader->locks;
    hf_err err = hf_facts_gather(&gather, &facts);
    reader->out_of_memory = err == HF_NOMEM || reader->out_of_memory;
    if (has_failed(reader, &facts)) {
        (void)hf_reader_heard(reader, facts.redis->err);
    } else if (err == HF_OK && !reader->stopped) {
        (void)hf_reader_heard(reader, HF_OK);
        remember_silence(reader, &facts);
        share_locks(reader, &facts, gather.locks != NULL);
        take_queues(reader, &facts);
        judge(reader, &facts);
        take_locks_back(&facts);
    }
    hf_facts_done(&facts);
}
