/* schedules.c - the schedules of a queue: written, paused, removed, run. Each is one
 * script; a schedule of a divided queue is in the shard of its id. */
#include "holdfast/admin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/parts.h"
#include "admin/registry.h"
#include "admin/remove.h"
#include "base/base.h"
#include "base/id.h"
#include "base/structs.h"
#include "queue/schedule.h"
#include "queue/send.h"
#include "queue_scripts.h"

static void add_time(hf_args *args, bool there, int64_t ms)
{
    if (there)
        hf_args_int(args, ms);
    else
        hf_args_text(args, "");
}

/* ---- writing ---- */

static hf_err put_in(hf_admin *admin, const hf_queue *queue, const char *id, void *arg)
{
    const hf_buf *value = arg;
    const char *nl = memchr(value->data, '\n', value->len);
    hf_schedule_def def;
    hf_zone *zone = NULL;
    hf_ask ask = {.script = &hf_lua_queue_cron_put, .queue = queue};
    int64_t next_ms = 0;
    hf_err err = hf_schedule_read(
        &def, NULL, (hf_bytes){value->data, nl == NULL ? 0 : (size_t)(nl - value->data)});
    if (err == HF_OK && def.tz[0] != '\0')
        err = hf_zone_open(&zone, def.tz, admin->detail);
    if (err != HF_OK)
        return err;
    hf_ask_order(&ask, admin);
    def.ticks.zone = zone;
    bool has_next = hf_ticks_next(&def.ticks, ask.time.now_ms, &next_ms);
    hf_zone_free(zone);
    hf_ask_word(&ask, admin);
    hf_args_text(&ask.args, id);
    add_time(&ask.args, has_next, next_ms);
    hf_args_bytes(&ask.args, (hf_bytes){value->data, value->len});
    hf_args_text(&ask.args, ""); /* an order, not what a file says */
    hf_args_int(&ask.args, 0);
    return hf_admin_ask(admin, &ask);
}

hf_err hf_admin_schedule_put(hf_admin *admin, const hf_schedule *theirs,
                             char detail[HF_DETAIL_SIZE])
{
    hf_schedule schedule;
    hf_queue queue;
    hf_buf value;
    hf_admin_begin(admin, detail);
    hf_err err =
        hf_struct_in(&schedule, sizeof schedule, theirs, "hf_schedule", admin->detail);
    if (err == HF_OK)
        err = hf_schedule_check(&schedule, admin->detail);
    if (err == HF_OK)
        err = hf_admin_queue(admin, schedule.queue == NULL ? "default" : schedule.queue,
                             &queue);
    if (err != HF_OK)
        return err;
    hf_buf_init(&value, HF_PAYLOAD_CEILING + 4096);
    hf_schedule_write(&value, &schedule);
    err = hf_buf_err(&value);
    if (err != HF_OK)
        err = hf_admin_fail(admin, err, "%s", hf_err_text(err));
    else
        err = hf_registry_add(admin, &queue);
    if (err == HF_OK)
        err = hf_admin_in_part_of(admin, &queue, schedule.id, put_in, &value);
    hf_buf_done(&value);
    return err;
}

/* ---- changing ---- */

typedef struct change {
    const char *what;
    bool has_with;
    int64_t next_ms;
    char job[HF_NEW_ID_SIZE]; /* run */
} change;

static hf_err change_in(hf_admin *admin, const hf_queue *queue, const char *id, void *arg)
{
    const change *c = arg;
    hf_ask ask = {.script = &hf_lua_queue_cron_change, .queue = queue};
    hf_ask_order(&ask, admin);
    hf_ask_word(&ask, admin);
    hf_args_text(&ask.args, id);
    hf_args_text(&ask.args, c->what);
    if (c->job[0] != '\0')
        hf_args_text(&ask.args, c->job);
    else
        add_time(&ask.args, c->has_with, c->next_ms);
    return hf_admin_ask(admin, &ask);
}

static hf_err change_one(hf_admin *admin, const char *name, const char *id, change *c)
{
    hf_queue queue;
    hf_err err = hf_admin_queue(admin, name, &queue);
    if (err == HF_OK)
        err = hf_admin_check_id(admin, id);
    return err == HF_OK ? hf_admin_in_part_of(admin, &queue, id, change_in, c) : err;
}

hf_err hf_admin_schedule_remove(hf_admin *admin, const char *queue, const char *id,
                                char detail[HF_DETAIL_SIZE])
{
    change c = {.what = "remove"};
    hf_queue whole;
    hf_admin_begin(admin, detail);
    hf_err err = change_one(admin, queue, id, &c);
    if (err == HF_OK && hf_admin_queue(admin, queue, &whole) == HF_OK)
        hf_forget_unused(admin, &whole);
    return err;
}

hf_err hf_admin_schedule_run(hf_admin *admin, const char *queue, const char *id,
                             char *job, char detail[HF_DETAIL_SIZE])
{
    change c = {.what = "run"};
    hf_id_maker ids;
    hf_admin_begin(admin, detail);
    hf_err err = hf_id_maker_init(&ids);
    if (err != HF_OK)
        return err;
    hf_id_next(&ids, c.job);
    memcpy(job, c.job, sizeof c.job);
    return change_one(admin, queue, id, &c);
}

/* ---- pause and resume ---- */

/* Its next tick is reckoned here: Redis knows no time zones. */
static hf_err reckon(hf_admin *admin, const char *name, const char *id, change *c)
{
    hf_schedule_info info = {HF_SCHEDULE_INFO_INIT};
    hf_zone *zone = NULL;
    hf_err err = hf_admin_schedule(admin, name, id, &info, NULL, admin->detail);
    if (err == HF_OK && info.tz[0] != '\0')
        err = hf_zone_open(&zone, info.tz, admin->detail);
    hf_ticks ticks = {.every_ms = info.every_ms,
                      .start_ms = info.start_ms,
                      .end_ms = info.end_ms,
                      .zone = zone};
    if (err == HF_OK && info.every_ms == 0)
        err = hf_cron_parse(&ticks.cron, info.cron, admin->detail);
    if (err == HF_OK)
        c->has_with = (info.limit == 0 || info.accepted < info.limit) &&
                      hf_ticks_next(&ticks, info.now_ms, &c->next_ms);
    hf_zone_free(zone);
    return err;
}

hf_err hf_admin_schedule_pause(hf_admin *admin, const char *queue, const char *id,
                               bool paused, char detail[HF_DETAIL_SIZE])
{
    change c = {.what = paused ? "pause" : "resume"};
    hf_admin_begin(admin, detail);
    hf_err err = paused ? HF_OK : reckon(admin, queue, id, &c);
    return err == HF_OK ? change_one(admin, queue, id, &c) : err;
}
