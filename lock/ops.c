/* ops.c - see ops.h. */
#include "lock/ops.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/base.h"
#include "lock/lock.h"
#include "lock/names.h"
#include "lock/watchdog/lease.h"
#include "lock_scripts.h"
#include "redis/send.h"

enum {
    ACQUIRE_FIXED = 12,
    RENEW_FIXED = 3,
    RENEW_RUN = 3, /* of those that follow each other and have one form */
    RENEW_EACH_MAX = 4,
    RENEWED_FIXED = 3, /* of the answer */
    RENEWED_EACH = 5,
    RELEASE_FIXED = 6
};

static void put_names(hf_args *a, const hf_lock_of *lock)
{
    for (size_t i = 0; i < lock->n_names; i++)
        hf_args_text(a, lock->names[i]);
}

/* ---- acquire ---- */

hf_err hf_op_lock_acquire(hf_client *client, const hf_lock_of *lock,
                          const hf_acquire_args *args, uint32_t timeout_ms,
                          hf_answer_cb cb, void *arg)
{
    hf_args a;
    char flags[sizeof " wait reentrant cell"];
    hf_args_init(&a, ACQUIRE_FIXED + lock->n_names, ACQUIRE_FIXED);
    (void)snprintf(flags, sizeof flags, "%s%s%s", args->wait ? " wait" : "",
                   args->reentrant ? " reentrant" : "", lock->simple ? " cell" : "");
    hf_args_text(&a, lock->owner);
    hf_args_text(&a, lock->hold);
    hf_args_text(&a, args->client);
    hf_args_bytes(&a, (hf_bytes){&args->mode, 1});
    hf_args_int(&a, args->permits);
    hf_args_int(&a, args->limit);
    hf_args_text(&a, flags[0] == '\0' ? "-" : flags + 1);
    hf_args_int(&a, args->lease_ms);
    hf_args_int(&a, args->not_after);
    hf_args_text(&a, args->asker.machine);
    hf_args_int(&a, (int64_t)args->asker.boot_ms);
    hf_args_text(&a, args->shown);
    put_names(&a, lock);
    return hf_send_script(client, &hf_lua_lock_acquire, &lock->prefix, 1, &a, timeout_ms,
                          cb, arg);
}

hf_err hf_op_acquired_read(const hf_answer *answer, hf_acquired *out)
{
    *out = (hf_acquired){.now_ms = 0};
    hf_err err = hf_send_script_status(answer, 3, &out->now_ms);
    int64_t third =
        answer->err == HF_OK ? hf_reply_int(hf_reply_at(answer->reply, 2)) : 0;
    if (err == HF_OK) {
        out->fence = (uint64_t)third;
        return third > 0 ? HF_OK : HF_PROTO;
    }
    if (err == HF_IN_LINE) {
        out->place = (size_t)third;
        out->clock_ms = (uint64_t)hf_reply_int(hf_reply_at(answer->reply, 3));
        out->number = (uint64_t)hf_reply_int(hf_reply_at(answer->reply, 4));
        out->after_ms = (uint32_t)hf_reply_int(hf_reply_at(answer->reply, 5));
    } else if (err == HF_TAKEN) {
        out->clock_ms = (uint64_t)hf_reply_int(hf_reply_at(answer->reply, 3));
        out->number = (uint64_t)hf_reply_int(hf_reply_at(answer->reply, 4));
        out->silent_ms = (uint64_t)hf_reply_int(hf_reply_at(answer->reply, 5));
        out->after_ms = (uint32_t)hf_reply_int(hf_reply_at(answer->reply, 6));
    } else if (err == HF_LIMIT) {
        out->limit = (uint32_t)third;
    }
    return err;
}

/* ---- renew ---- */

typedef enum form { FORM_LINE, FORM_ONLY, FORM_WAITS, FORM_READ, FORM_CELL } form;

static const char *const form_words[] = {"line", "only", "waits", "read", "cell"};

static form form_of(const hf_lock_renewal *item)
{
    if (item->simple)
        return FORM_CELL;
    if (item->waits)
        return FORM_WAITS;
    if (item->shown[0] != '\0')
        return FORM_READ;
    return item->hold == NULL ? FORM_ONLY : FORM_LINE;
}

/* Whether each of a form shows what was read. */
static bool shows_reading(form of)
{
    return of == FORM_WAITS || of == FORM_READ;
}

/* How many arguments each of a form has. */
static size_t args_of(form of)
{
    return of == FORM_ONLY ? 2 : shows_reading(of) ? RENEW_EACH_MAX : 3;
}

/* How many of them have the form and the lease of the first. */
static size_t run_of(const hf_lock_renewal *items, size_t n)
{
    size_t run = 1;
    while (run < n && items[run].lease_ms == items[0].lease_ms &&
           form_of(&items[run]) == form_of(&items[0]))
        run++;
    return run;
}

static void put_run(hf_args *a, const hf_lock_renewal *items, size_t run)
{
    hf_args_int(a, (int64_t)run);
    hf_args_text(a, form_words[form_of(&items[0])]);
    hf_args_int(a, items[0].lease_ms);
    for (size_t i = 0; i < run; i++) {
        hf_args_text(a, items[i].owner);
        if (form_of(&items[i]) != FORM_ONLY)
            hf_args_text(a, items[i].hold);
        hf_args_text(a, items[i].name);
        if (shows_reading(form_of(&items[i])))
            hf_args_text(a, items[i].shown);
    }
}

hf_err hf_op_lock_renew(hf_client *client, const hf_lock_renewal *items, size_t n,
                        const hf_asker *asker, int64_t not_after, uint32_t timeout_ms,
                        hf_answer_cb cb, void *arg)
{
    hf_args a;
    hf_bytes keys[HF_LOCK_ENTRIES_MAX];
    size_t n_args = RENEW_FIXED, n_numbers = RENEW_FIXED, i = 0, run;
    HF_ASSERT(n >= 1 && n <= HF_LOCK_ENTRIES_MAX);
    for (; i < n; i += run) {
        run = run_of(items + i, n - i);
        n_args += RENEW_RUN + run * args_of(form_of(&items[i]));
        n_numbers += 2 + run;
    }
    hf_args_init(&a, n_args, n_numbers);
    hf_args_int(&a, not_after);
    hf_args_text(&a, asker->machine);
    hf_args_int(&a, (int64_t)asker->boot_ms);
    for (i = 0; i < n; i += run) {
        run = run_of(items + i, n - i);
        put_run(&a, items + i, run);
    }
    for (i = 0; i < n; i++)
        keys[i] = items[i].prefix;
    return hf_send_script(client, &hf_lua_lock_renew, keys, n, &a, timeout_ms, cb, arg);
}

hf_err hf_op_renewed_read(const hf_answer *answer, hf_lock_renewed *out)
{
    *out = (hf_lock_renewed){.reply = answer->reply, .at = RENEWED_FIXED};
    hf_err err = hf_send_script_status(answer, RENEWED_FIXED, &out->now_ms);
    if (err == HF_OK)
        out->n = (size_t)hf_reply_int(hf_reply_at(answer->reply, 2));
    return err;
}

hf_err hf_op_renewed_next(hf_lock_renewed *renewed, size_t i, hf_lease_note *what)
{
    const hf_reply *reply = renewed->reply;
    size_t place = SIZE_MAX, at;
    *what = (hf_lease_note){.value = 0};
    for (; (at = renewed->at) < hf_reply_len(reply); renewed->at += RENEWED_EACH) {
        place = (size_t)hf_reply_int(hf_reply_at(reply, at));
        if (place >= i)
            break;
    }
    if (place != i)
        return HF_OK;
    what->value = (uint64_t)hf_reply_int(hf_reply_at(reply, at + 2));
    what->after_ms = (uint32_t)hf_reply_int(hf_reply_at(reply, at + 3));
    what->clock_ms = (uint64_t)hf_reply_int(hf_reply_at(reply, at + 4));
    what->redis_ms = renewed->now_ms;
    return (hf_err)hf_reply_int(hf_reply_at(reply, at + 1));
}

/* ---- release ---- */

hf_err hf_op_lock_release(hf_client *client, const hf_lock_of *lock,
                          const hf_release_args *args, uint32_t timeout_ms,
                          hf_answer_cb cb, void *arg)
{
    hf_args a;
    hf_args_init(&a, RELEASE_FIXED + lock->n_names, 1);
    hf_args_text(&a, lock->owner);
    hf_args_text(&a, lock->hold);
    hf_args_text(&a, lock->simple ? "cell" : args->downgrade ? "downgrade" : "-");
    hf_args_int(&a, args->not_after);
    hf_args_text(&a, args->machine);
    hf_args_text(&a, args->shown);
    put_names(&a, lock);
    return hf_send_script(client, &hf_lua_lock_release, &lock->prefix, 1, &a, timeout_ms,
                          cb, arg);
}

hf_err hf_op_released_read(const hf_answer *answer, hf_released *out)
{
    *out = (hf_released){.now_ms = 0};
    hf_err err = hf_send_script_status(answer, 4, &out->now_ms);
    if (err != HF_OK)
        return err;
    for (size_t i = 2; i + 1 < hf_reply_len(answer->reply); i += 2) {
        int64_t code = hf_reply_int(hf_reply_at(answer->reply, i));
        int64_t left = hf_reply_int(hf_reply_at(answer->reply, i + 1));
        if (code < HF_RELEASE_DONE || code > HF_RELEASE_NOT_OWNER)
            return HF_PROTO;
        if (code > (int64_t)out->result)
            out->result = (hf_lock_release_result)code;
        if ((size_t)left > out->left)
            out->left = (size_t)left;
    }
    return HF_OK;
}

/* ---- the rest ---- */

hf_err hf_op_lock_force(hf_client *client, hf_bytes prefix, const char *name,
                        const char *owner, uint64_t fence, bool revoke, int64_t not_after,
                        const char *word, hf_answer_cb cb, void *arg)
{
    hf_args a;
    char end[HF_ID_SIZE + 24];
    (void)snprintf(end, sizeof end, "%" PRId64 " %s", not_after, word);
    hf_args_init(&a, 5, 1);
    hf_args_text(&a, name);
    hf_args_text(&a, owner);
    hf_args_flag(&a, revoke);
    hf_args_text(&a, end);
    if (fence == 0)
        hf_args_text(&a, "");
    else
        hf_args_int(&a, (int64_t)fence);
    return hf_send_script(client, &hf_lua_lock_force, &prefix, 1, &a, 0, cb, arg);
}

hf_err hf_op_lock_look(hf_client *client, hf_bytes prefix, const char *name, size_t limit,
                       hf_answer_cb cb, void *arg)
{
    hf_args a;
    hf_args_init(&a, 2, 1);
    hf_args_text(&a, name);
    hf_args_int(&a, (int64_t)limit);
    return hf_send_script(client, &hf_lua_lock_look, &prefix, 1, &a, 0, cb, arg);
}

hf_err hf_op_fence_check(hf_client *client, hf_bytes prefix, const char *resource,
                         uint64_t fence, const char *owner, int64_t remember_ms,
                         hf_answer_cb cb, void *arg)
{
    hf_args a;
    hf_args_init(&a, 4, 2);
    hf_args_text(&a, resource);
    hf_args_int(&a, (int64_t)fence);
    hf_args_text(&a, owner);
    hf_args_int(&a, remember_ms);
    return hf_send_script(client, &hf_lua_lock_fence_check, &prefix, 1, &a, 0, cb, arg);
}
