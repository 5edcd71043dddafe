/* runs.c - what workers tell about runs while a viewer watches (queue/lua/runs_read.lua).
 */
#include "holdfast/runs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/ask.h"
#include "admin/parts.h"
#include "base/base.h"
#include "base/structs.h"
#include "queue/keys.h"
#include "queue/ran.h"
#include "queue/send.h"
#include "queue_scripts.h"

enum { HEAD = 3, WATCH_MS = 20000, PLACE_SIZE = 48 };

/* A key of the registry, where the heartbeats are: `beat` sees it at no cost, and in a
 * cluster one key is for all nodes. */
hf_err hf_admin_watch(hf_admin *admin, char detail[HF_DETAIL_SIZE])
{
    hf_ask ask = {.writes = true};
    char key[HF_KEY_SIZE];
    hf_admin_begin(admin, detail);
    hf_key_watch(key, admin->ns);
    hf_args_text(&ask.args, "SET");
    hf_args_text(&ask.args, key);
    hf_args_text(&ask.args, "1");
    hf_args_text(&ask.args, "PX");
    hf_args_int(&ask.args, WATCH_MS);
    return hf_admin_ask(admin, &ask);
}

/* ---- reading ---- */

typedef struct reading {
    hf_runs_place place;
    hf_reported_run *runs; /* owned; HF_RAN_MAX of them */
    hf_runs_cb cb;
    void *arg;
    unsigned shard;
} reading;

static bool read_id(const char *text, int64_t *ms, int64_t *number)
{
    char *end;
    *ms = strtoll(text, &end, 10);
    if (end == text || *end != '-')
        return false;
    *number = strtoll(end + 1, &end, 10);
    return *end == '\0' && *ms >= 0 && *number >= 0;
}

/* What another program has written is skipped. */
static void tell(reading *r, const char *text)
{
    hf_ran_head head;
    hf_runs_entry entry = {.size = sizeof entry, .worker = head.worker, .runs = r->runs};
    if (!hf_ran_read_head(&text, &head))
        return;
    while (*text != '\0' && entry.n_runs < HF_RAN_MAX)
        entry.n_runs += hf_ran_read(&text, &r->runs[entry.n_runs]) ? 1 : 0;
    entry.at_ms = head.at_ms;
    entry.short_done = head.ok;
    entry.short_failed = head.failed;
    entry.cut = head.cut;
    r->cb(&entry, r->arg);
}

static hf_err read_entries(const hf_answer *answer, void *out)
{
    reading *r = out;
    hf_err err = hf_send_script_status(answer, HEAD, &r->place.now_ms);
    const size_t n = err == HF_OK ? hf_reply_len(answer->reply) : 0;
    for (size_t i = HEAD; i < n; i++) {
        const hf_reply *entry = hf_reply_at(answer->reply, i);
        if (!read_id(hf_reply_text(hf_reply_at(entry, 0)), &r->place.last_ms[r->shard],
                     &r->place.last_number[r->shard]))
            return HF_PROTO;
        tell(r, hf_reply_text(hf_reply_at(entry, 1)));
    }
    if (err == HF_OK && hf_reply_int(hf_reply_at(answer->reply, 2)) != 0)
        r->place.more = true;
    return err;
}

static hf_err read_part(hf_admin *admin, const hf_part *part, void *arg)
{
    reading *r = arg;
    hf_ask ask = {.script = &hf_lua_queue_runs_read,
                  .queue = part->queue,
                  .read = read_entries,
                  .out = r};
    char after[PLACE_SIZE];
    r->shard = part->i;
    int64_t ms = r->place.last_ms[r->shard], number = r->place.last_number[r->shard];
    if (ms < r->place.since_ms) { /* behind all of the ms before it */
        ms = r->place.since_ms - 1;
        number = INT64_MAX;
    }
    (void)snprintf(after, sizeof after, "%" PRId64 "-%" PRId64, ms, number);
    hf_args_text(&ask.args, after);
    return hf_admin_ask(admin, &ask);
}

static hf_err check_place(hf_admin *admin, const hf_runs_place *place)
{
    bool good = place->since_ms >= 0 && place->since_ms <= HF_TIME_MAX_MS;
    for (size_t i = 0; good && i < HF_COUNT(place->last_ms); i++)
        good = place->last_ms[i] >= 0 && place->last_number[i] >= 0;
    return good ? HF_OK
                : hf_admin_fail(admin, HF_INVALID, "expected a place of hf_admin_runs()");
}

hf_err hf_admin_runs(hf_admin *admin, const char *name, hf_runs_place *theirs,
                     hf_runs_cb cb, void *arg, char detail[HF_DETAIL_SIZE])
{
    hf_queue queue;
    reading r = {.cb = cb, .arg = arg};
    hf_admin_begin(admin, detail);
    hf_err err =
        hf_struct_in(&r.place, sizeof r.place, theirs, "hf_runs_place", admin->detail);
    if (err == HF_OK)
        err = hf_admin_fits(admin, theirs, "hf_runs_place");
    if (err == HF_OK)
        err = check_place(admin, &r.place);
    if (err == HF_OK)
        err = hf_admin_queue(admin, name, &queue);
    if (err != HF_OK)
        return err;
    r.place.more = false;
    r.runs = malloc(HF_RAN_MAX * sizeof *r.runs);
    if (r.runs == NULL)
        return hf_admin_no_memory(admin);
    err = hf_admin_in_parts(admin, &queue, read_part, &r);
    free(r.runs);
    hf_struct_fill(theirs, &r.place, sizeof r.place);
    return err;
}
