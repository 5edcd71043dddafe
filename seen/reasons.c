/* reasons.c - see reasons.h. */
#include "seen/reasons.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "seen/holder.h"
#include "seen/offer.h"
#include "seen/words.h"

enum {
    US_OF_MS = 1000,
    ERROR_SIZE = 161,
    LIST_SIZE = 1024,
    SOON_MS = 2000,
    MAX_RUNNING_MAX = 1000000 /* of `queue limit` */
};

/* ---- which hold ---- */

typedef struct list {
    hf_reason *at;
    size_t n;
} list;

static void add(list *l, bool holds, hf_reason reason)
{
    if (holds)
        l->at[l->n++] = reason;
}

bool hf_why_lease_is_over(const hf_job_why *why)
{
    return why->job->state == HF_STATE_RUNNING && why->job->due_ms <= why->now_ms;
}

static bool has_no_handler(const hf_job_why *why)
{
    return why->workers > 0 && why->workers_for_type == 0;
}

static bool is_busy(const hf_job_why *why)
{
    return why->workers_for_type > 0 && why->busy >= why->slots;
}

/* A full Redis refuses new jobs alone: those that it has start and end. */
static bool is_refused(const hf_job_why *why)
{
    return why->refuses != HF_OK && why->refuses != HF_OOM;
}

bool hf_why_is_stuck(const hf_job_why *why)
{
    return why->workers_for_type == 0 || why->paused || is_refused(why);
}

/* Neither a limit nor a rate keeps a takeover. */
static void add_running(list *l, const hf_job_why *why)
{
    add(l, why->cancelling, HF_REASON_CANCELLING);
    add(l, is_refused(why), HF_REASON_REFUSED);
    add(l, true, HF_REASON_RUNNING);
    if (!hf_why_lease_is_over(why))
        return;
    add(l, why->paused, HF_REASON_PAUSED);
    add(l, why->workers == 0, HF_REASON_NO_WORKER);
    add(l, has_no_handler(why), HF_REASON_NO_WORKER_FOR_TYPE);
    add(l, is_busy(why), HF_REASON_BUSY);
}

/* A limit that is reached now says nothing about the time when a delayed job is due: only
 * a due job has such reasons. */
static void add_waiting(list *l, const hf_job_why *why)
{
    bool due = why->job->due_ms <= why->now_ms;
    /* It was put back for want of a handler: the time at which it is due again says
     * nothing. */
    const bool refused = why->job->refused_ms != 0 && has_no_handler(why);
    add(l, refused, HF_REASON_NO_WORKER_FOR_TYPE);
    add(l, !due && why->job->attempts > 0, HF_REASON_RETRY);
    add(l, !due && why->job->attempts == 0, HF_REASON_DELAYED);
    add(l, is_refused(why), HF_REASON_REFUSED);
    add(l, why->paused, HF_REASON_PAUSED);
    add(l, why->workers == 0, HF_REASON_NO_WORKER);
    add(l, !refused && has_no_handler(why), HF_REASON_NO_WORKER_FOR_TYPE);
    add(l, why->locked_until_ms > why->now_ms, HF_REASON_LOCKED);
    add(l, due && why->max_running > 0 && why->running >= why->max_running,
        HF_REASON_MAX_RUNNING);
    add(l, due && why->next_token_ms > why->now_ms, HF_REASON_RATE);
    add(l, due && is_busy(why), HF_REASON_BUSY);
    add(l, due && why->before > 0, HF_REASON_BEHIND);
    add(l, l->n > 0 && why->job->start_by_ms > 0, HF_REASON_EXPIRES);
}

size_t hf_why_reasons(const hf_job_why *why, int64_t poison, hf_reason out[HF_REASONS])
{
    list l = {.at = out};
    hf_job_state state = why->job->state;
    if (state == HF_STATE_DEAD)
        add(&l, true, HF_REASON_DEAD);
    else if (state == HF_STATE_DONE)
        add(&l, true, HF_REASON_DONE);
    else if (state == HF_STATE_PARKED)
        add(&l, true, HF_REASON_PARKED);
    else if (state == HF_STATE_RUNNING)
        add_running(&l, why);
    else
        add_waiting(&l, why);
    add(&l, l.n == 0, HF_REASON_NONE);
    if (state != HF_STATE_DEAD && why->job->crashes > 0)
        add(&l, true,
            (int64_t)why->job->crashes >= poison - 1 ? HF_REASON_SUSPECT
                                                     : HF_REASON_CRASHED);
    return l.n;
}

/* The fence is minted when a job is claimed, as the time then in microseconds; one that
 * is ahead was pushed there by a clock that went back, and tells nothing. */
int64_t hf_why_held_since(const hf_job_why *why)
{
    int64_t ms = (int64_t)(why->job->fence / US_OF_MS);
    return why->job->state == HF_STATE_RUNNING && ms <= why->now_ms ? ms : 0;
}

/* ---- pieces of sentences ---- */

typedef struct telling {
    const hf_reason_facts *of;
    const hf_job_why *why;
    hf_reason reason;
    char *out; /* HF_REASON_TEXT_SIZE */
} telling;

static const char *when(const telling *t, int64_t ms, char out[HF_MOMENT_SIZE])
{
    hf_format_moment(ms, t->why->now_ms, out);
    return out;
}

static const char *one_line(const char *text, char out[ERROR_SIZE])
{
    return hf_words_line(*text == '\0' ? "no error was recorded" : text, out, ERROR_SIZE);
}

static void say(const telling *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void say(const telling *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    hf_words_add_args(t->out, HF_REASON_TEXT_SIZE, format, args);
    va_end(args);
}

/* The command in quotes between two texts, or nothing where there is none. */
static void offer_job(const telling *t, const char *before, const char *command,
                      const char *id, const char *after)
{
    char text[HF_OFFER_SIZE];
    if (hf_offer(text, command, id, t->of->queue, "")[0] != '\0')
        say(t, "%s'%s'%s", before, text, after);
}

static void offer_queue(const telling *t, const char *command, const char *options,
                        const char *after)
{
    char text[HF_OFFER_SIZE];
    if (hf_offer(text, command, t->why->job->queue, NULL, options)[0] != '\0')
        say(t, ": '%s'%s", text, after);
}

/* " (web1 pid 12: 3, web2 pid 9: 2)" */
static const char *holders(const hf_job_why *why, char out[LIST_SIZE])
{
    char who[HF_HOLDER_TEXT];
    int64_t told = 0;
    out[0] = '\0';
    for (size_t i = 0; i < why->n_holders; i++) {
        hf_holder_text(why->holders[i], who);
        hf_words_add(out, LIST_SIZE, "%s%s: %" PRId64, i == 0 ? " (" : ", ", who,
                     why->held[i]);
        told += why->held[i];
    }
    if (why->n_holders > 0)
        hf_words_add(out, LIST_SIZE, "%s)", told < why->running ? " and others" : "");
    return out;
}

/* ---- a sentence for each reason ---- */

static void say_running(const telling *t)
{
    char who[HF_HOLDER_TEXT], since[HF_MOMENT_SIZE], end[HF_MOMENT_SIZE];
    const hf_job_info *job = t->why->job;
    hf_holder_text(job->holder, who);
    int64_t since_ms = hf_why_held_since(t->why); /* 0: Redis's clock went back */
    when(t, since_ms, since);
    when(t, job->due_ms, end);
    if (hf_why_lease_is_over(t->why) && t->why->workers == 0)
        say(t,
            "its holder is gone, and no live worker serves queue '%s': the job waits "
            "until one starts, which takes it over",
            job->queue);
    else if (hf_why_lease_is_over(t->why) && job->due_ms == 0)
        say(t, "its holder is gone: its lease is over, and the next claim takes the job "
               "over");
    else if (hf_why_lease_is_over(t->why))
        say(t,
            "its holder has not renewed its lease: a worker that serves the queue proves "
            "that it is over, within about a lease, and takes the job over");
    else {
        say(t, "%s runs it%s%s, with a lease until %s that is renewed", who,
            since_ms != 0 ? " since " : "", since_ms != 0 ? since : "", end);
        offer_job(t, ": ", "job cancel", job->id, " ends it");
    }
}

/* Whether it would start at once if it were due. */
static bool has_room(const hf_job_why *why)
{
    return why->busy < why->slots && why->next_token_ms <= why->now_ms &&
           (why->max_running == 0 || why->running < why->max_running);
}

static void say_waiting(const telling *t)
{
    const bool failed = t->reason == HF_REASON_RETRY;
    char due[HF_MOMENT_SIZE], error[ERROR_SIZE];
    const hf_job_info *job = t->why->job;
    when(t, job->due_ms, due);
    if (failed)
        say(t, "attempt %" PRIu32 " failed (%s); ", job->attempts,
            one_line(job->error, error));
    else if (job->error[0] != '\0')
        say(t, "it was put back (%s); ", one_line(job->error, error));
    say(t, "%s due at %s", failed ? "the next is" : "it is", due);
    if (!hf_why_is_stuck(t->why))
        offer_job(t, ": ", "job retry", job->id,
                  has_room(t->why) ? " runs it now" : " makes it due now");
}

static void say_parked(const telling *t)
{
    const hf_job_info *job = t->why->job;
    if (t->of->follows_dead) {
        say(t,
            "it follows %s, which is dead and holds its unique key until it is done "
            "or removed",
            job->follows);
        offer_job(t, ": ", "job retry", job->follows, "");
        offer_job(t, " or ", "job delete", job->follows, "");
        return;
    }
    say(t,
        "it follows %s, which holds its unique key, and is due when that one has ended",
        job->follows[0] != '\0' ? job->follows : "a job that is gone");
    offer_job(t, ": ", "job why", job->follows[0] != '\0' ? job->follows : job->id,
              " tells more");
}

static void say_dead(const telling *t)
{
    char died[HF_MOMENT_SIZE], error[ERROR_SIZE];
    const hf_job_info *job = t->why->job;
    say(t, "it died at %s: %s", when(t, job->due_ms, died), one_line(job->error, error));
    offer_job(t, "; ", "job retry", job->id,
              hf_why_is_stuck(t->why) ? " lets it wait for a worker again"
                                      : " runs it again");
}

bool hf_reason_is_limit(hf_reason reason)
{
    return reason == HF_REASON_MAX_RUNNING || reason == HF_REASON_RATE;
}

static void say_limit(const telling *t)
{
    char text[LIST_SIZE], per[HF_DURATION_SIZE], next[HF_MOMENT_SIZE];
    char whole[64] = "";
    const hf_job_why *why = t->why;
    const char *its = t->of->shards == 0 ? "" : "its shard of ";
    if (t->of->shards > 0)
        (void)snprintf(whole, sizeof whole, " for all %u shards together", t->of->shards);
    if (t->reason == HF_REASON_MAX_RUNNING) {
        say(t, "%" PRId64 " %s of %squeue '%s' run%s, of at most %" PRId64 "%s",
            why->running, why->running == 1 ? "job" : "jobs", its, why->job->queue,
            why->running == 1 ? "s" : "", why->max_running, holders(why, text));
        offer_queue(t, "queue limit", " --max-running N", " sets another limit");
        say(t, "%s", whole);
        return;
    }
    hf_format_duration(why->rate_per_ms, per);
    say(t, "%squeue '%s' may start %" PRId64 " job%s in %s, and the next one at %s", its,
        why->job->queue, why->rate_limit, why->rate_limit == 1 ? "" : "s", per,
        when(t, why->next_token_ms, next));
    offer_queue(t, "queue limit", " --rate N/s", " sets another rate");
    say(t, "%s", whole);
}

/* A long time tells that a program hangs. */
static void say_longest(const telling *t)
{
    char since[HF_MOMENT_SIZE];
    const char *id = t->of->longest;
    if (id[0] == '\0')
        return;
    say(t, "; job %s of its queue runs longest, since %s", id,
        when(t, t->of->longest_ms, since));
    offer_job(t, ": ", "job cancel", id, " ends it if it hangs");
}

static void say_no_handler(const telling *t)
{
    const hf_job_why *why = t->why;
    const bool one = why->workers == 1;
    say(t, "no handler for type '%s' in the %" PRId64 " live worker%s of queue '%s'",
        why->job->type, why->workers, one ? "" : "s", why->job->queue);
    if (t->of->types[0] != '\0')
        say(t, ", which take%s %s", one ? "s" : "", t->of->types);
    say(t, ": deploy a worker that has one");
    if (why->job->state != HF_STATE_RUNNING) /* a running one cannot be deleted */
        offer_job(t, "; if the type is mistyped, ", "job delete", why->job->id,
                  " and enqueue the job again");
}

static void say_workers(const telling *t)
{
    const hf_job_why *why = t->why;
    const char *queue = why->job->queue;
    if (t->reason == HF_REASON_NO_WORKER)
        say(t,
            "no live worker takes jobs of queue '%s': start one, or resume a quiet "
            "one (kill -CONT PID); 'holdfast worker list' lists the workers",
            queue);
    else if (t->reason == HF_REASON_BUSY && why->slots == 0)
        say(t,
            "the %" PRId64 " live worker%s that take%s it have no slot now: pools have "
            "none before their programs are ready",
            why->workers_for_type, why->workers_for_type == 1 ? "" : "s",
            why->workers_for_type == 1 ? "s" : "");
    else if (t->reason == HF_REASON_BUSY)
        say(t,
            "all %" PRId64 " slots of the workers that take it (%" PRId64
            ") are in use: start another one, raise worker.concurrency, or give its "
            "pool more "
            "processes",
            why->slots, why->workers_for_type);
    else
        say_no_handler(t);
    if (t->reason == HF_REASON_BUSY && why->slots > 0)
        say_longest(t);
    if (why->pools_down > 0)
        say(t,
            "\n%" PRId64
            " pool%s of the live workers of queue '%s' %s down: the worker's "
            "log says why ('a process of a pool does not live')",
            why->pools_down, why->pools_down == 1 ? "" : "s", queue,
            why->pools_down == 1 ? "is" : "are");
}

/* A worker that was killed counts as alive until its heartbeat is over. */
static void say_none(const telling *t)
{
    char due[HF_WHEN_SIZE];
    const hf_job_why *why = t->why;
    hf_format_when(why->job->due_ms, why->now_ms, due);
    if (why->now_ms - why->job->due_ms < SOON_MS)
        say(t, "nothing holds it up: it starts at any moment");
    else
        say(t,
            "nothing holds it up, but it was due %s: the worker that takes it may be "
            "dead; 'holdfast worker list' shows when each was heard of",
            due);
}

/* Of a crash that a takeover found nothing is known but the time. */
static void say_crashes(const telling *t)
{
    char error[ERROR_SIZE];
    const hf_job_info *job = t->why->job;
    say(t, "it crashed %" PRIu32 " time%s", job->crashes, job->crashes == 1 ? "" : "s");
    if (job->error[0] != '\0')
        say(t, " (%s)", one_line(job->error, error));
    if (t->reason == HF_REASON_SUSPECT)
        say(t, ": it runs alone, and is dead after one crash more");
}

static void say_done(const telling *t)
{
    char end[HF_MOMENT_SIZE];
    say(t, "it is done, and kept until %s", when(t, t->why->job->kept_until_ms, end));
}

static void say_cancelling(const telling *t)
{
    say(t, "it was asked to end: %s",
        hf_why_lease_is_over(t->why)
            ? "its lease is over, and the worker that takes it over removes it"
            : "its holder learns of it when it next renews the lease");
}

static void say_paused(const telling *t)
{
    say(t, "queue '%s' is paused", t->why->job->queue);
    offer_queue(t, "queue resume", "",
                t->why->workers > 0 ? " starts its jobs again" : " ends the pause");
}

static void say_refused(const telling *t)
{
    char refusal[HF_DETAIL_SIZE];
    (void)snprintf(refusal, sizeof refusal, "%s", t->why->refusal);
    hf_text_plain(refusal);
    say(t, "Redis refuses every write, so no job starts or ends: %s", refusal);
}

static void say_locked(const telling *t)
{
    char end[HF_MOMENT_SIZE];
    say(t, "an earlier run of it holds its lock until %s",
        when(t, t->why->locked_until_ms, end));
}

static void say_behind(const telling *t)
{
    const bool one = t->why->before == 1;
    say(t, "%" PRId64 " %s due and come%s first", t->why->before,
        one ? "job is" : "jobs are", one ? "s" : "");
}

static void say_expires(const telling *t)
{
    char end[HF_MOMENT_SIZE];
    say(t, "it expires at %s if it has not started until then",
        when(t, t->why->job->start_by_ms, end));
}

#define ROW(name, word, say_it) {word, say_it},
static const struct {
    const char *word;
    void (*say_it)(const telling *t);
} rows[] = {HF_REASON_MAP(ROW)};
#undef ROW

const char *hf_reason_word(hf_reason reason)
{
    return rows[reason].word;
}

const char *hf_reason_text(const hf_reason_facts *facts, hf_reason reason,
                           char out[HF_REASON_TEXT_SIZE])
{
    const telling t = {facts, facts->why, reason, out};
    out[0] = '\0';
    rows[reason].say_it(&t);
    return out;
}

/* ---- what removes it ---- */

/* As many more as its workers have free slots. Of a divided queue `why` knows the part of
 * one shard alone. */
static void raise_limit(const hf_reason_facts *facts, char *out)
{
    const hf_job_why *why = facts->why;
    const int64_t limit = why->max_running + why->slots - why->busy;
    char option[48];
    if (facts->shards > 1 || why->slots <= why->busy || limit > MAX_RUNNING_MAX)
        return;
    (void)snprintf(option, sizeof option, " --max-running %" PRId64, limit);
    (void)hf_offer(out, "queue limit", why->job->queue, NULL, option);
}

const char *hf_reason_remedy(const hf_reason_facts *facts, hf_reason reason,
                             char out[HF_REASON_COMMAND_SIZE])
{
    out[0] = '\0';
    if (reason == HF_REASON_PAUSED)
        (void)hf_offer(out, "queue resume", facts->why->job->queue, NULL, "");
    else if (reason == HF_REASON_MAX_RUNNING)
        raise_limit(facts, out);
    return out;
}
