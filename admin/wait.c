/* wait.c - waiting for the end of a job.
 *
 * The job is known by its id and by when it was accepted (queue/lua/lib/marks.lua): each
 * exit leaves a word for the clients that wait for it. Without such a word nothing is
 * known of a job that is not there, but what a cancelled, deleted or expired job of this
 * id leaves for a minute. That counts if it is younger than the last look at the living
 * job, or than its acceptance.
 *
 * Redis tells the end (admin/hear.h). Where it cannot, the wait asks again and again. */
#include "admin/wait.h"

#include <stdio.h>
#include <stdlib.h>

#include "admin/hear.h"
#include "admin/parts.h"
#include "base/base.h"
#include "base/clock.h"
#include "base/text.h"
#include "redis/err.h"

enum {
    POLL_FIRST_MS = 5,
    POLL_LAST_MS = 200,
    ASK_MS = 1000 /* again, although an end would be told: an older worker tells none */
};

static uint64_t sooner(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The sentence of each end. */
static hf_err ended(hf_admin *admin, hf_err how)
{
    static const char *const sentences[] = {
        [-HF_DEAD] = "the job died",
        [-HF_CANCEL] = "the job was cancelled",
        [-HF_DELETED] = "the job was deleted",
        [-HF_EXPIRED] = "the job did not start in time",
        [-HF_GONE] = "the job is not there, and nothing tells how it ended"};
    return how == HF_OK ? how : hf_admin_fail(admin, how, "%s", sentences[-how]);
}

/* In one queue, or in one shard after the other until one knows the job. If none does,
 * each may tell the end of some job of this id. */
typedef struct search {
    hf_look look;
    hf_wait *of;
    int64_t ended_ms;
    hf_err how;
    bool told; /* the end of this job */
} search;

/* To note a client is a write; to look is none. */
static bool refuses_notes(hf_err err)
{
    return err == HF_AUTH || err == HF_REDIS || hf_err_is(err, HF_ERR_NO_WRITES);
}

static hf_err ask(hf_admin *admin, const hf_queue *queue, search *s)
{
    const uint64_t until_ns = sooner(s->of->until_ns, hf_admin_until(admin));
    s->look.accepted_ms = s->of->accepted_ms;
    hf_err err = hf_look_at(admin, queue, s->of->id, &s->look, until_ns);
    if (!refuses_notes(err) || s->look.client == NULL || s->look.gives_up)
        return err;
    s->of->not_permitted = err == HF_AUTH || err == HF_REDIS;
    s->look.client = NULL;
    return hf_look_at(admin, queue, s->of->id, &s->look, until_ns);
}

static uint64_t life_of(hf_admin *admin, const hf_queue *queue)
{
    hf_server *redis = hf_admin_server_of(admin, queue);
    uint64_t life = redis == NULL ? 0 : hf_server_life(redis);
    hf_server_close(redis);
    return life;
}

/* After a fail-over Redis may not know the wait any more, although it has the job. */
static hf_err ask_again_in_another_life(hf_admin *admin, const hf_queue *queue, search *s)
{
    hf_wait *w = s->of;
    uint64_t life = life_of(admin, queue);
    s->look.noted = w->noted_in != 0 && w->noted_in == life;
    hf_err err = ask(admin, queue, s);
    if (err == HF_GONE && s->look.noted && life_of(admin, queue) != life) {
        s->look.noted = false;
        err = ask(admin, queue, s);
    }
    if (err == HF_OK)
        w->noted_in = s->look.client != NULL ? life : 0;
    return err;
}

static hf_err look_in(hf_admin *admin, const hf_queue *queue, const char *id, void *arg)
{
    search *s = arg;
    (void)id;
    hf_err err = ask_again_in_another_life(admin, queue, s);
    if (err == HF_OK)
        s->of->queue = *queue;
    if (err == HF_GONE && s->look.exact) {
        s->told = true;
        return s->look.how; /* no other shard knows it */
    }
    if (err == HF_GONE && s->look.ended_ms > s->ended_ms) {
        s->ended_ms = s->look.ended_ms;
        s->how = s->look.how;
    }
    return err;
}

/* It is there. */
static hf_err found(hf_admin *admin, hf_wait *w, const search *s, void *bytes)
{
    const hf_job_info *info = s->look.info;
    if (info->state == HF_STATE_DONE) {
        w->kind = info->result_kind;
        w->result = bytes;
        w->len = info->payload_len;
        return HF_OK;
    }
    free(bytes);
    if (info->state == HF_STATE_DEAD)
        return hf_admin_fail(admin, HF_DEAD, "%s", hf_text_gist(info->error));
    w->alive_ms = s->look.now_ms;
    w->accepted_ms = s->look.accepted_ms;
    w->seen = true;
    return HF_RUNNING;
}

hf_err hf_wait_look(hf_admin *admin, hf_wait *w)
{
    hf_job_info info = {HF_JOB_INFO_INIT};
    void *bytes = NULL;
    search s = {.look = {.info = &info, .payload = &bytes}, .of = w};
    if (admin->hearing != NULL && !w->not_permitted)
        s.look.client = hf_hearing_client(admin);
    const hf_queue queue = w->queue;
    hf_err err = hf_admin_in_part_of(admin, &queue, w->id, look_in, &s);
    if (err == HF_OK && !s.told)
        return found(admin, w, &s, bytes);
    free(bytes);
    if (s.told)
        return ended(admin, err);
    if (err == HF_GONE)
        return ended(admin, s.ended_ms != 0 && s.ended_ms >= w->alive_ms ? s.how : err);
    return err;
}

bool hf_wait_goes_on(hf_err err)
{
    return err == HF_UNSURE || err == HF_TIMEOUT || err == HF_NOMEM ||
           hf_err_is(err, HF_ERR_PASSES | HF_ERR_NO_WRITES);
}

hf_err hf_wait_timed_out(hf_admin *admin, hf_err err)
{
    char why[HF_DETAIL_SIZE];
    (void)snprintf(why, sizeof why, "%s", admin->detail);
    return err == HF_RUNNING ? hf_admin_fail(admin, HF_TIMEOUT, "the job is not done yet")
                             : hf_admin_fail(admin, HF_TIMEOUT,
                                             "Redis did not say in time: %.200s", why);
}

bool hf_wait_give_up(hf_admin *admin, hf_wait *w)
{
    hf_job_info info = {HF_JOB_INFO_INIT};
    search s = {.look = {.info = &info, .gives_up = true}, .of = w};
    const hf_queue queue = w->queue;
    if (admin->hearing == NULL || w->not_permitted || !w->seen)
        return true;
    s.look.client = hf_hearing_client(admin);
    w->until_ns = hf_boot_ns() + HF_GIVE_UP_MS * HF_MS_NS;
    hf_err err = hf_admin_in_part_of(admin, &queue, w->id, look_in, &s);
    return err == HF_OK || err == HF_GONE;
}

/* ---- a call that waits ---- */

static void on_told(const hf_queue *queue, const char *id, void *arg)
{
    (void)queue, (void)id, (void)arg; /* there is one */
}

/* Until the next look. */
static void pause(hf_admin *admin, const hf_wait *w, uint32_t *pause_ms)
{
    bool told =
        admin->hearing != NULL && !w->not_permitted && hf_hearing_has(admin, &w->queue);
    uint64_t now_ns = hf_boot_ns();
    if (told) {
        hf_hearing_wait(admin, sooner(w->until_ns, now_ns + ASK_MS * HF_MS_NS));
        return;
    }
    hf_admin_idle(admin, sooner(w->until_ns, now_ns + *pause_ms * HF_MS_NS));
    *pause_ms = *pause_ms * 3 / 2 < POLL_LAST_MS ? *pause_ms * 3 / 2 : POLL_LAST_MS;
}

/* While Redis is away a wait with a deadline goes on until then; one without an end ends
 * with the fault of a look, which has the deadline of any call. */
static hf_err wait_for(hf_admin *admin, hf_wait *w)
{
    uint32_t pause_ms = POLL_FIRST_MS;
    for (;;) {
        hf_err err = hf_wait_look(admin, w);
        bool goes_on =
            err == HF_RUNNING || (w->until_ns != UINT64_MAX && hf_wait_goes_on(err));
        if (!goes_on)
            return err;
        if (hf_boot_ns() < w->until_ns)
            pause(admin, w, &pause_ms);
        if (hf_boot_ns() < w->until_ns)
            continue;
        if (err == HF_RUNNING)
            (void)hf_wait_give_up(admin, w);
        return w->seen ? hf_wait_timed_out(admin, err) : err;
    }
}

hf_err hf_admin_wait_result(hf_admin *admin, const char *name, const char *id,
                            int64_t accepted_ms, uint32_t deadline_ms, void **bytes,
                            size_t *len, hf_result_kind *kind,
                            char detail[HF_DETAIL_SIZE])
{
    hf_wait w = {.id = id,
                 .until_ns = deadline_ms == 0 ? UINT64_MAX
                                              : hf_boot_ns() + deadline_ms * HF_MS_NS,
                 .accepted_ms = accepted_ms,
                 .alive_ms = accepted_ms};
    *bytes = NULL;
    hf_admin_begin(admin, detail);
    hf_err err = hf_admin_queue(admin, name, &w.queue); /* NULL is no name here */
    if (err == HF_OK)
        err = hf_admin_check_id(admin, id);
    if (err != HF_OK)
        return err;
    err = hf_hearing_open(admin, on_told, NULL);
    if (err != HF_OK)
        return hf_admin_fail(admin, err, "%s", hf_err_text(err));
    err = wait_for(admin, &w);
    *bytes = w.result;
    *len = w.len;
    *kind = w.kind;
    hf_hearing_close(admin);
    return err;
}

hf_err hf_admin_wait(hf_admin *admin, const char *name, const char *id,
                     int64_t accepted_ms, uint32_t deadline_ms,
                     char detail[HF_DETAIL_SIZE])
{
    void *bytes;
    size_t len;
    hf_result_kind kind;
    hf_err err = hf_admin_wait_result(admin, name, id, accepted_ms, deadline_ms, &bytes,
                                      &len, &kind, detail);
    free(bytes);
    return err;
}
