/* jobs.c - jobs as an administrator sees them: one of them, and a page of them. */
#include "holdfast/admin.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "admin/ask.h"
#include "admin/look.h"
#include "admin/parts.h"
#include "base/base.h"
#include "base/id.h"
#include "base/mask.h"
#include "base/structs.h"
#include "base/text.h"
#include "queue/record.h"
#include "queue/send.h"
#include "queue_scripts.h"

enum { LIST_MAX = 1000, SLICE = 200, LOOKS_MAX = 250 };

static const char *const state_names[] = {
    [HF_STATE_READY] = "ready",   [HF_STATE_DELAYED] = "delayed",
    [HF_STATE_RETRY] = "retry",   [HF_STATE_RUNNING] = "running",
    [HF_STATE_DEAD] = "dead",     [HF_STATE_DONE] = "done",
    [HF_STATE_PARKED] = "parked",
};

static void copy(char *out, size_t size, hf_bytes text)
{
    size_t len = text.len < size ? text.len : size - 1;
    memcpy(out, text.ptr, len);
    out[len] = '\0';
}

/* A lock's value is `worker:fence`, and a worker's id may have colons of its own. */
void hf_look_token(hf_job_info *out, const hf_reply *token)
{
    const char *text = hf_reply_text(token);
    const char *colon = strrchr(text, ':');
    if (colon == NULL)
        return;
    copy(out->holder, sizeof out->holder, (hf_bytes){text, (size_t)(colon - text)});
    out->fence = strtoull(colon + 1, NULL, 10);
}

/* Leaves empty what a record that cannot be read does not tell; its error says so. */
hf_err hf_look_line(hf_job_info *out, hf_bytes line)
{
    hf_record record;
    hf_err err = hf_record_read(&record, line);
    if (err == HF_OK) {
        memcpy(out->type, record.type, sizeof out->type);
        out->created_ms = record.created_ms;
        out->attempts = record.attempts;
        out->max_attempts = record.max_attempts;
        out->scheduled_ms = record.scheduled_ms;
        out->timeout_ms = record.timeout_ms;
        out->priority = record.priority;
        out->start_by_ms = record.start_by_ms;
        out->refused_ms = record.refused_ms;
        copy(out->unique, sizeof out->unique, record.unique);
        out->unique_until = record.unique_until;
        out->keep_ms = record.keep_ms;
        copy(out->on_dead, sizeof out->on_dead, record.on_dead);
        copy(out->headers, sizeof out->headers, record.headers);
        copy(out->error, sizeof out->error, record.error);
        for (size_t i = 0; i < record.error.len && i < HF_ERROR_MAX; i++) {
            if (out->error[i] == '\0')
                out->error[i] = '?';
        }
    }
    if (err == HF_PROTO) {
        memcpy(out->type, record.type, sizeof out->type);
        snprintf(out->error, sizeof out->error, "its record cannot be read: %s",
                 record.fault);
    }
    hf_record_done(&record);
    return err == HF_NOMEM ? err : HF_OK;
}

/* What result.c of the worker has written about a done job; a line that cannot be read
 * tells nothing. */
static void read_done(hf_job_info *out, hf_bytes line)
{
    json_t *root = json_loadb(line.ptr, line.len, JSON_DISABLE_EOF_CHECK, NULL);
    const char *worker = json_string_value(json_object_get(root, "worker"));
    const char *kind = json_string_value(json_object_get(root, "result"));
    out->ran_ms = json_integer_value(json_object_get(root, "ran"));
    if (worker != NULL)
        copy(out->done_by, sizeof out->done_by, (hf_bytes){worker, strlen(worker)});
    if (kind != NULL)
        out->result_kind = strcmp(kind, "json") == 0 ? HF_RESULT_JSON : HF_RESULT_BYTES;
    json_decref(root);
}

static void read_attempt(hf_job_attempt *out, const json_t *entry)
{
    const char *worker = json_string_value(json_object_get(entry, "worker"));
    const char *error = json_string_value(json_object_get(entry, "error"));
    *out = (hf_job_attempt){.ended_ms = json_integer_value(json_object_get(entry, "at")),
                            .ran_ms = json_integer_value(json_object_get(entry, "ran"))};
    if (worker != NULL)
        copy(out->worker, sizeof out->worker, (hf_bytes){worker, strlen(worker)});
    if (error != NULL)
        copy(out->error, sizeof out->error, (hf_bytes){error, strlen(error)});
}

/* What only those see who look: why it is dead, and what queue/lua/lib/record.lua has
 * written of its attempts; other hands may have, too. */
static void read_past(hf_job_info *out, hf_bytes line)
{
    const bool dead = out->state == HF_STATE_DEAD;
    if (!dead && out->attempts == 0)
        return;
    json_t *root = json_loadb(line.ptr, line.len, JSON_DISABLE_EOF_CHECK, NULL);
    const char *reason = json_string_value(json_object_get(root, "reason"));
    const json_t *list = out->attempts == 0 ? NULL : json_object_get(root, "history");
    if (dead && reason != NULL)
        copy(out->reason, sizeof out->reason, (hf_bytes){reason, strlen(reason)});
    for (size_t i = 0; i < json_array_size(list) && i < HF_ATTEMPTS_KEPT; i++)
        read_attempt(&out->history[out->n_history++], json_array_get(list, i));
    json_decref(root);
}

/* {progress, bytes of the checkpoint, runs with a log}, or nothing. */
static void read_marks(hf_job_info *out, const hf_reply *marks)
{
    const char *progress = hf_reply_text(hf_reply_at(marks, 0));
    char *note;
    out->checkpoint_len = (size_t)hf_reply_int(hf_reply_at(marks, 1));
    out->logs = (size_t)hf_reply_int(hf_reply_at(marks, 2));
    out->has_progress = progress[0] != '\0' && out->state == HF_STATE_RUNNING;
    if (!out->has_progress)
        return;
    out->progress = (uint32_t)strtoul(progress, &note, 10);
    note += *note == ' ' ? 1 : 0;
    copy(out->note, sizeof out->note, (hf_bytes){note, strlen(note)});
}

/* The elements of an answer from `first` on: score, record, payload bytes, token, lease,
 * crashes; and in place `kept` until when a done job is kept. */
static hf_err read_info(hf_job_info *out, const hf_reply *reply, size_t first,
                        size_t kept)
{
    out->due_ms = hf_reply_int(hf_reply_at(reply, first));
    out->payload_len = (size_t)hf_reply_int(hf_reply_at(reply, first + 2));
    out->crashes = (uint32_t)hf_reply_int(hf_reply_at(reply, first + 5));
    if (out->state == HF_STATE_RUNNING) {
        hf_look_token(out, hf_reply_at(reply, first + 3));
        out->lease_remaining_ms = hf_reply_int(hf_reply_at(reply, first + 4));
    }
    hf_bytes line = hf_reply_bytes(hf_reply_at(reply, first + 1));
    if (out->state == HF_STATE_DONE) {
        out->kept_until_ms = hf_reply_int(hf_reply_at(reply, kept));
        read_done(out, line);
    }
    hf_err err = hf_look_line(out, line);
    read_past(out, line);
    if (out->created_ms == 0)
        out->created_ms = hf_id_made_ms(out->id);
    return err;
}

/* Its score is a time of the queue's own clock, or 0: its lease was found to be over. */
static void show_lease(hf_job_info *info, int64_t now_ms)
{
    if (info->state == HF_STATE_RUNNING && info->due_ms != 0)
        info->due_ms = now_ms + info->lease_remaining_ms;
}

static hf_job_state waiting_state(const hf_job_info *info, int64_t now_ms)
{
    if (info->due_ms <= now_ms)
        return HF_STATE_READY;
    return info->attempts > 0 ? HF_STATE_RETRY : HF_STATE_DELAYED;
}

/* ---- one job ---- */

static hf_err read_payload(void **out, hf_bytes record, size_t len)
{
    char *bytes = malloc(len + 1);
    if (bytes == NULL)
        return HF_NOMEM;
    memcpy(bytes, (const char *)record.ptr + record.len - len, len);
    bytes[len] = '\0';
    *out = bytes;
    return HF_OK;
}

hf_err hf_look_read(hf_job_info *info, const hf_reply *reply, size_t kept, int64_t now_ms)
{
    const char *set = hf_reply_text(hf_reply_at(reply, 2));
    bool waits = strcmp(set, "schedule") == 0;
    info->state = strcmp(set, "dead") == 0     ? HF_STATE_DEAD
                  : strcmp(set, "done") == 0   ? HF_STATE_DONE
                  : strcmp(set, "parked") == 0 ? HF_STATE_PARKED
                                               : HF_STATE_RUNNING;
    copy(info->follows, sizeof info->follows,
         hf_reply_bytes(hf_reply_at(reply, kept + 1)));
    read_marks(info, hf_reply_at(reply, kept + 2));
    hf_err err = read_info(info, reply, 3, kept);
    if (err != HF_OK)
        return err;
    if (!waits) {
        info->start_by_ms = 0;
        show_lease(info, now_ms);
        return HF_OK;
    }
    info->state = waiting_state(info, now_ms);
    info->holder[0] = '\0';
    info->fence = 0;
    info->lease_remaining_ms = 0;
    return HF_OK;
}

static hf_err end_of(const char *word)
{
    static const struct {
        const char *word;
        hf_err err;
    } ends[] = {{"done", HF_OK},
                {"dead", HF_DEAD},
                {"deleted", HF_DELETED},
                {"expired", HF_EXPIRED}};
    for (size_t i = 0; i < HF_COUNT(ends); i++)
        if (strcmp(ends[i].word, word) == 0)
            return ends[i].err;
    return HF_CANCEL; /* or replaced */
}

static hf_err read_job(const hf_answer *answer, void *out)
{
    hf_look *look = out;
    hf_err err = hf_send_script_status(answer, 10, &look->now_ms);
    if (err == HF_GONE) {
        look->ended_ms = hf_reply_int(hf_reply_at(answer->reply, 2));
        look->how = end_of(hf_reply_text(hf_reply_at(answer->reply, 4)));
        look->exact = hf_reply_int(hf_reply_at(answer->reply, 5)) != 0;
    }
    if (err == HF_OK) {
        look->accepted_ms = hf_reply_int(hf_reply_at(answer->reply, 12));
        err = hf_look_read(look->info, answer->reply, 9, look->now_ms);
    }
    if (err != HF_OK || look->payload == NULL)
        return err;
    hf_bytes record = hf_reply_bytes(hf_reply_at(answer->reply, 4));
    if (record.len < look->info->payload_len)
        return HF_PROTO;
    return read_payload(look->payload, record, look->info->payload_len);
}

void hf_look_begin(hf_job_info *info, const hf_queue *queue, const char *id)
{
    *info = (hf_job_info){HF_JOB_INFO_INIT};
    copy(info->id, sizeof info->id, (hf_bytes){id, strlen(id)});
    memcpy(info->queue, queue->name, sizeof info->queue);
}

hf_err hf_look_at(hf_admin *admin, const hf_queue *queue, const char *id, hf_look *look,
                  uint64_t until_ns)
{
    hf_ask ask = {.script =
                      look->client != NULL ? &hf_lua_queue_await : &hf_lua_queue_job,
                  .queue = queue,
                  .until_ns = until_ns,
                  .read = read_job,
                  .out = look};
    hf_look_begin(look->info, queue, id);
    hf_args_text(&ask.args, id);
    hf_args_flag(&ask.args, look->payload != NULL);
    hf_args_int(&ask.args, look->accepted_ms);
    hf_args_flag(&ask.args, look->noted);
    if (look->client != NULL) {
        hf_args_text(&ask.args, look->client);
        hf_args_flag(&ask.args, !look->gives_up);
    }
    return hf_admin_ask(admin, &ask);
}

static hf_err look_in(hf_admin *admin, const hf_queue *queue, const char *id, void *arg)
{
    return hf_look_at(admin, queue, id, arg, hf_admin_until(admin));
}

hf_err hf_admin_job(hf_admin *admin, const char *name, const char *id,
                    hf_job_info *theirs, void **payload, char detail[HF_DETAIL_SIZE])
{
    hf_job_info info = {HF_JOB_INFO_INIT};
    hf_look look = {.info = &info, .payload = payload};
    hf_admin_begin(admin, detail);
    hf_err err = hf_admin_fits(admin, theirs, "hf_job_info");
    if (err != HF_OK)
        return err;
    err = hf_admin_in_queue(admin, name, id, look_in, &look);
    hf_struct_fill(theirs, &info, sizeof info);
    return err;
}

/* ---- its result ---- */

static hf_err not_done(hf_admin *admin, hf_job_state state)
{
    if (state == HF_STATE_RUNNING)
        return hf_admin_fail(admin, HF_RUNNING, "the job runs");
    if (state == HF_STATE_DEAD)
        return hf_admin_fail(admin, HF_DEAD, "the job is dead");
    return hf_admin_fail(admin, HF_EXISTS, "the job waits");
}

hf_err hf_admin_result(hf_admin *admin, const char *name, const char *id, void **bytes,
                       size_t *len, hf_result_kind *kind, char detail[HF_DETAIL_SIZE])
{
    hf_job_info info = {HF_JOB_INFO_INIT};
    void *found = NULL;
    hf_look look = {.info = &info, .payload = &found};
    hf_admin_begin(admin, detail);
    hf_err err = hf_admin_in_queue(admin, name, id, look_in, &look);
    if (err == HF_OK && info.state != HF_STATE_DONE)
        err = not_done(admin, info.state);
    if (err != HF_OK) {
        free(found);
        return err;
    }
    *bytes = found;
    *len = info.payload_len;
    *kind = info.result_kind;
    return HF_OK;
}

/* ---- wherever it is ---- */

static hf_err in_every_queue(hf_admin *admin, const char *id, hf_in_queue_fn fn,
                             void *arg)
{
    char **names;
    size_t n;
    hf_err err = hf_admin_queues(admin, &names, &n, admin->detail);
    if (err != HF_OK)
        return err;
    err = HF_GONE;
    for (size_t i = 0; i < n && err == HF_GONE; i++) {
        hf_queue queue;
        err = hf_admin_queue(admin, names[i], &queue);
        if (err == HF_OK)
            err = hf_admin_in_part_of(admin, &queue, id, fn, arg);
    }
    free(names);
    return err == HF_GONE ? hf_admin_fail(admin, err, "no queue has a job '%s'", id)
                          : err;
}

hf_err hf_admin_check_id(hf_admin *admin, const char *id)
{
    if (id == NULL || !hf_name_ok(id))
        return hf_admin_fail(admin, HF_INVALID, "expected an id, found '%s'",
                             HF_FOUND(id == NULL ? "" : id));
    return HF_OK;
}

hf_err hf_admin_in_queue(hf_admin *admin, const char *name, const char *id,
                         hf_in_queue_fn fn, void *arg)
{
    hf_queue queue;
    hf_err err = hf_admin_check_id(admin, id);
    if (err != HF_OK)
        return err;
    if (name == NULL)
        return in_every_queue(admin, id, fn, arg);
    err = hf_admin_queue(admin, name, &queue);
    return err != HF_OK ? err : hf_admin_in_part_of(admin, &queue, id, fn, arg);
}

/* ---- a page ---- */

/* A place in a list, for people the text "[SHARD/]SCORE/ID". It names the score, because
 * the job may be elsewhere, or have gone, when the list is continued there. */
typedef struct place {
    char id[HF_ID_SIZE]; /* "": the start, or the end */
    int64_t score;
    bool has_score; /* else the job is looked for */
    unsigned shard;
    bool has_shard;
} place;

typedef struct page {
    hf_admin *admin;
    hf_queue queue;
    hf_job_state state;
    size_t left; /* jobs that are still wanted */
    hf_job_cb cb;
    void *arg;
    hf_job_info *info; /* one, for all of them */
    place at;          /* where the list goes on */
    size_t looks;
} page;

/* The first number of the text, behind which there is a slash. */
static bool take_number(const char **text, int64_t max, int64_t *out)
{
    char digits[24];
    size_t len = strcspn(*text, "/");
    if ((*text)[len] == '\0' || len >= sizeof digits)
        return false;
    memcpy(digits, *text, len);
    digits[len] = '\0';
    *text += len + 1;
    return hf_parse_int(digits, 0, max, out);
}

static hf_err read_place(hf_admin *admin, const char *text, place *out)
{
    const char *at = text == NULL ? "" : text;
    int64_t shard = 0;
    *out = (place){.has_score = strchr(at, '/') != NULL};
    out->has_shard = strchr(at, '/') != strrchr(at, '/');
    if ((out->has_shard && !take_number(&at, HF_SHARDS_MOST - 1, &shard)) ||
        (out->has_score && !take_number(&at, HF_TIME_MAX_MS, &out->score)) ||
        (text != NULL && !hf_name_ok(at)))
        return hf_admin_fail(admin, HF_INVALID, "expected an id or a cursor, found '%s'",
                             HF_FOUND(text));
    out->shard = (unsigned)shard;
    memcpy(out->id, at, strlen(at) + 1);
    return HF_OK;
}

static void put_place(const place *at, char out[HF_CURSOR_SIZE])
{
    char shard[16] = "";
    if (at->has_shard)
        (void)snprintf(shard, sizeof shard, "%u/", at->shard);
    out[0] = '\0';
    if (at->id[0] != '\0')
        (void)snprintf(out, HF_CURSOR_SIZE, "%s%" PRId64 "/%s", shard, at->score, at->id);
}

static void move_to(page *p, const hf_reply *id, const hf_reply *score)
{
    copy(p->at.id, sizeof p->at.id, hf_reply_bytes(id));
    p->at.score = hf_reply_int(score);
    p->at.has_score = true;
}

static hf_err tell(page *p, const hf_reply *entry, int64_t now_ms)
{
    hf_job_info *info = p->info;
    *info = (hf_job_info){HF_JOB_INFO_INIT, .state = p->state};
    copy(info->id, sizeof info->id, hf_reply_bytes(hf_reply_at(entry, 0)));
    memcpy(info->queue, p->queue.name, sizeof info->queue);
    read_marks(info, hf_reply_at(entry, 8));
    hf_err err = read_info(info, entry, 1, 7);
    if (err != HF_OK)
        return err;
    if (p->state < HF_STATE_RUNNING)
        info->state = waiting_state(info, now_ms);
    else
        info->start_by_ms = 0;
    show_lease(info, now_ms);
    move_to(p, hf_reply_at(entry, 0), hf_reply_at(entry, 1));
    p->cb(info, p->arg);
    return HF_OK;
}

static hf_err read_page(const hf_answer *answer, void *out)
{
    page *p = out;
    int64_t now_ms;
    hf_err err = hf_send_script_status(answer, 4, &now_ms);
    size_t n = hf_reply_len(answer->reply);
    for (size_t i = 4; err == HF_OK && i < n && p->left > 0; i++, p->left--)
        err = tell(p, hf_reply_at(answer->reply, i), now_ms);
    if (err == HF_OK && p->left > 0)
        move_to(p, hf_reply_at(answer->reply, 2), hf_reply_at(answer->reply, 3));
    return err;
}

static hf_err ask_page(page *p)
{
    hf_ask ask = {
        .script = &hf_lua_queue_list, .queue = &p->queue, .read = read_page, .out = p};
    /* Those that failed before may be few among many that wait. */
    bool sparse = p->state == HF_STATE_RETRY;
    const place from = p->at;
    hf_args_text(&ask.args, state_names[p->state]);
    hf_args_text(&ask.args, from.id);
    hf_args_int(&ask.args, sparse || p->left > SLICE ? SLICE : (int64_t)p->left);
    if (from.has_score && from.id[0] != '\0')
        hf_args_int(&ask.args, from.score);
    else
        hf_args_text(&ask.args, "");
    return hf_admin_ask(p->admin, &ask);
}

/* From p->at on. At the end of the queue it is none. */
static hf_err list_queue(page *p, const hf_queue *queue)
{
    hf_err err;
    p->queue = *queue;
    do
        err = ask_page(p);
    while (err == HF_OK && p->left > 0 && p->at.id[0] != '\0' && ++p->looks < LOOKS_MAX);
    return err;
}

static hf_err list_shard(page *p, const hf_shards *shards, const hf_queue *whole,
                         unsigned i)
{
    hf_queue shard;
    hf_shards_queue(shards, whole, i, &shard);
    p->at.shard = i;
    p->at.has_shard = true;
    return list_queue(p, &shard);
}

/* From behind a job of any shard. */
static hf_err list_behind(page *p, const hf_shards *shards, const hf_queue *whole)
{
    const place from = p->at;
    hf_err err = HF_GONE;
    for (unsigned k = 0; k < shards->n && err == HF_GONE; k++) {
        p->at = from;
        err = list_shard(p, shards, whole, hf_part_for(shards, from.id, k));
    }
    return err;
}

/* One shard after the other. */
static hf_err list_shards(page *p, const hf_queue *whole)
{
    const hf_shards *shards = &p->admin->shards;
    if (p->at.has_shard && p->at.shard >= shards->n)
        return hf_admin_fail(p->admin, HF_INVALID, "expected one of %u shards, found %u",
                             shards->n, p->at.shard);
    bool looks_for = p->at.id[0] != '\0' && !p->at.has_shard;
    hf_err err = looks_for ? list_behind(p, shards, whole)
                           : list_shard(p, shards, whole, p->at.shard);
    while (err == HF_OK && p->left > 0 && p->at.id[0] == '\0' &&
           p->at.shard + 1 < shards->n)
        err = list_shard(p, shards, whole, p->at.shard + 1);
    return err <= HF_INVALID
               ? hf_admin_name_shard(p->admin, err, shards->tags[p->at.shard])
               : err;
}

static hf_err list_all(page *p, const hf_queue *whole)
{
    hf_err err = list_queue(p, whole);
    return err == HF_SHARDED ? list_shards(p, whole) : err;
}

static void tell_none(const hf_job_info *info, void *arg)
{
    (void)info;
    (void)arg;
}

/* Whether a full page is the last one is seen only behind it. */
static hf_err find_end(page *p, const hf_queue *whole)
{
    page behind = *p;
    behind.left = 1;
    behind.looks = 0;
    behind.cb = tell_none;
    hf_err err = list_all(&behind, whole);
    if (err == HF_OK && behind.left > 0 && behind.at.id[0] == '\0')
        p->at.id[0] = '\0';
    return err;
}

hf_err hf_admin_list(hf_admin *admin, const char *name, hf_job_state state,
                     const char *after, size_t limit, hf_job_cb cb, void *arg,
                     char next[HF_CURSOR_SIZE], char detail[HF_DETAIL_SIZE])
{
    hf_queue queue;
    hf_job_info info = {HF_JOB_INFO_INIT};
    page p = {.admin = admin,
              .state = state,
              .left = limit,
              .cb = cb,
              .arg = arg,
              .info = &info};
    hf_admin_begin(admin, detail);
    hf_err err = read_place(admin, after, &p.at); /* it may be in `next` */
    if (next != NULL)
        next[0] = '\0';
    if (err == HF_OK)
        err = hf_admin_queue(admin, name, &queue);
    if (err != HF_OK)
        return err;
    if (limit < 1 || limit > LIST_MAX || (size_t)state >= HF_COUNT(state_names))
        return hf_admin_fail(admin, HF_INVALID, "expected a state, and 1 to %d jobs",
                             LIST_MAX);
    err = list_all(&p, &queue);
    if (err == HF_OK && p.left == 0 && next != NULL)
        err = find_end(&p, &queue);
    if (err == HF_OK && next != NULL)
        put_place(&p.at, next);
    return err;
}

/* ---- those that died lately ---- */

typedef struct deaths {
    page page;
    int64_t since_ms;
} deaths;

/* From behind all that died before. The id comes after all that are possible. */
static hf_err deaths_in(hf_admin *admin, const hf_part *part, void *arg)
{
    deaths *d = arg;
    (void)admin;
    if (d->page.left == 0)
        return HF_OK;
    d->page.at = (place){.id = "~", .score = d->since_ms - 1, .has_score = true};
    return list_queue(&d->page, part->queue);
}

hf_err hf_admin_deaths(hf_admin *admin, const char *name, int64_t since_ms, size_t limit,
                       hf_job_cb cb, void *arg, char detail[HF_DETAIL_SIZE])
{
    hf_queue queue;
    hf_job_info info = {HF_JOB_INFO_INIT};
    deaths d = {.page = {.admin = admin,
                         .state = HF_STATE_DEAD,
                         .left = limit,
                         .cb = cb,
                         .arg = arg,
                         .info = &info},
                .since_ms = since_ms};
    hf_admin_begin(admin, detail);
    hf_err err = hf_admin_queue(admin, name, &queue);
    if (err != HF_OK)
        return err;
    if (limit < 1 || limit > LIST_MAX || since_ms < 1 || since_ms > HF_TIME_MAX_MS)
        return hf_admin_fail(admin, HF_INVALID, "expected a time, and 1 to %d jobs",
                             LIST_MAX);
    return hf_admin_in_parts(admin, &queue, deaths_in, &d);
}
