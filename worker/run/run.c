/* run.c - a job that is held: making and freeing it, lists, and the calls for C handlers
 * (holdfast/worker.h). Handlers run on the pool's threads; fields that other threads
 * change meanwhile are atomic. */
#include "worker/run/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/text.h"
#include "holdfast/admin.h"
#include "worker/handler.h"
#include "worker/program/programs.h"
#include "worker/queues/queues.h"
#include "worker/report.h"
#include "worker/worker.h"

/* ---- lists ---- */

void hf_run_push(hf_run_list *list, hf_run *run)
{
    run->next = NULL;
    run->prev = list->tail;
    if (list->tail != NULL)
        list->tail->next = run;
    else
        list->head = run;
    list->tail = run;
    list->n++;
}

void hf_run_push_front(hf_run_list *list, hf_run *run)
{
    run->prev = NULL;
    run->next = list->head;
    if (list->head != NULL)
        list->head->prev = run;
    else
        list->tail = run;
    list->head = run;
    list->n++;
}

void hf_run_remove(hf_run_list *list, hf_run *run)
{
    if (run->prev != NULL)
        run->prev->next = run->next;
    else
        list->head = run->next;
    if (run->next != NULL)
        run->next->prev = run->prev;
    else
        list->tail = run->prev;
    run->next = run->prev = NULL;
    list->n--;
}

hf_run *hf_run_pop(hf_run_list *list)
{
    hf_run *run = list->head;
    if (run != NULL)
        hf_run_remove(list, run);
    return run;
}

/* ---- events, which the watchdog leaves for the loop ---- */

void hf_run_add_event(hf_run *run, hf_lease_event event)
{
    hf_worker *w = run->worker;
    pthread_mutex_lock(&w->note_lock);
    bool first = w->events.head == NULL;
    if (run->events == 0) {
        run->event_next = NULL;
        run->event_prev = w->events.tail;
        if (w->events.tail != NULL)
            w->events.tail->event_next = run;
        else
            w->events.head = run;
        w->events.tail = run;
    }
    run->events |= 1U << event;
    pthread_mutex_unlock(&w->note_lock);
    if (first)
        uv_async_send(&w->async);
}

/* Under note_lock. */
static void unlink_event(hf_worker *w, hf_run *run)
{
    if (run->event_prev != NULL)
        run->event_prev->event_next = run->event_next;
    else
        w->events.head = run->event_next;
    if (run->event_next != NULL)
        run->event_next->event_prev = run->event_prev;
    else
        w->events.tail = run->event_prev;
    run->event_next = run->event_prev = NULL;
    run->events = 0;
}

static void forget_events(hf_run *run)
{
    pthread_mutex_lock(&run->worker->note_lock);
    if (run->events != 0)
        unlink_event(run->worker, run);
    pthread_mutex_unlock(&run->worker->note_lock);
}

hf_run *hf_run_next_event(hf_worker *w, unsigned *events)
{
    pthread_mutex_lock(&w->note_lock);
    hf_run *run = w->events.head;
    *events = run == NULL ? 0 : run->events;
    if (run != NULL)
        unlink_event(w, run);
    pthread_mutex_unlock(&w->note_lock);
    return run;
}

/* ---- making and freeing ---- */

static hf_handler *find_handler(const hf_worker *w, const char *type)
{
    hf_handler *handler = hf_handlers_find(w->handlers, w->n_handlers, type);
    return handler != NULL ? handler : hf_handlers_find(w->handlers, w->n_handlers, "*");
}

void hf_run_choose(hf_run *run)
{
    hf_handler_unref(run->handler);
    run->handler = hf_handler_ref(find_handler(run->worker, run->record.type));
    if (run->handler != NULL && !run->worker->opts.no_timeouts)
        run->timeout_ms = run->record.timeout_ms != 0 ? run->record.timeout_ms
                                                      : run->handler->timeout_ms;
}

hf_run *hf_run_new(hf_served *served, const hf_claimed_job *job, hf_bytes fence,
                   int64_t now_ms)
{
    size_t id_room = job->id.len + 1, record_room = job->record.len + 1;
    hf_run *run =
        calloc(1, sizeof *run + id_room + record_room + job->checkpoint.len + 1);
    if (run == NULL)
        return NULL;
    hf_worker *w = served->worker;
    run->worker = w;
    run->served = served;
    memcpy(run->id, job->id.ptr, job->id.len);
    char *record = run->id + id_room;
    memcpy(record, job->record.ptr, job->record.len);
    char *checkpoint = record + record_room;
    memcpy(checkpoint, job->checkpoint.ptr, job->checkpoint.len);
    if (job->checkpoint.len <= HF_CHECKPOINT_MAX) /* else it is no run's */
        run->checkpoint = (hf_bytes){checkpoint, job->checkpoint.len};
    snprintf(run->fence, sizeof run->fence, "%.*s", (int)fence.len,
             (const char *)fence.ptr);
    run->due_ms = job->due_ms;
    run->crashes = job->crashes;
    run->isolated = w->opts.poison > 1 && job->crashes + 1 >= w->opts.poison;
    run->claimed_ns = hf_boot_ns();
    int64_t waited = now_ms - job->due_ms;
    run->wait_ms = waited > 0 ? waited : 0;
    hf_err err = hf_record_read(&run->record, (hf_bytes){record, job->record.len});
    if (err == HF_NOMEM) {
        free(run);
        return NULL;
    }
    run->alone = run->isolated || run->record.alone;
    if (err == HF_OK)
        hf_run_choose(run);
    else
        run->reason = "record"; /* no worker can run it */
    run->ran_before = job->ran_before || run->record.attempts > 0;
    served->runs++;
    return run;
}

bool hf_run_worker_stops(const hf_run *run)
{
    return run->worker->phase != HF_SERVING || atomic_load(&run->worker->stops) > 0;
}

uint32_t hf_run_max_attempts(const hf_run *run)
{
    if (run->record.max_attempts != 0)
        return run->record.max_attempts;
    if (run->handler->max_attempts != 0)
        return run->handler->max_attempts;
    return run->worker->opts.max_attempts;
}

int64_t hf_run_created_ms(const hf_run *run)
{
    return run->record.created_ms != 0 ? run->record.created_ms : hf_id_made_ms(run->id);
}

uint64_t hf_run_identity(const hf_run *run)
{
    char created[24];
    snprintf(created, sizeof created, "%lld", (long long)run->record.created_ms);
    const char *const parts[] = {run->served->born, run->served->queue.prefix, run->id,
                                 run->record.type, created};
    uint64_t hash = HF_HASH_START;
    for (size_t i = 0; i < HF_COUNT(parts); i++)
        hash = hf_hash_text(hash, parts[i]) * 31; /* "ab", "c" is not "a", "bc" */
    return hash;
}

void hf_run_free(hf_run *run)
{
    forget_events(run);
    hf_program_free(atomic_load(&run->process));
    hf_record_done(&run->record);
    hf_handler_unref(run->handler);
    run->served->runs--;
    free((void *)(uintptr_t)run->result.ptr);
    free((void *)(uintptr_t)run->words.ptr);
    free(run->notes);
    free(run->error);
    free(run);
}

void hf_run_forget(hf_run *run)
{
    if (run->lease != NULL)
        hf_watchdog_drop(run->worker->watchdog, run->lease);
    hf_run_free(run);
}

hf_run *hf_run_stand_in(hf_run *run)
{
    hf_run *stand_in = calloc(1, sizeof *stand_in + strlen(run->id) + 1);
    if (stand_in == NULL)
        return NULL;
    stand_in->worker = run->worker;
    stand_in->served = run->served;
    stand_in->served->runs++;
    stand_in->stands_in_for = run;
    stand_in->started = true;
    stand_in->due_ms = run->due_ms;
    memcpy(stand_in->fence, run->fence, sizeof stand_in->fence);
    memcpy(stand_in->id, run->id, strlen(run->id) + 1);
    return stand_in;
}

/* ---- the log: one line for each finished job ---- */

/* A C handler that has not returned may be writing what goes with its verdict. */
static bool handler_has_it(const hf_run *run)
{
    return run->state == HF_STARTED && run->handler->fn != NULL;
}

/* A program has its time before it is known whether it could be started. */
uint64_t hf_run_begun_ns(const hf_run *run)
{
    if (run->handler != NULL && run->handler->fn != NULL)
        return atomic_load(&run->begun_ns);
    return run->state == HF_STARTED || run->started ? run->started_ns : 0;
}

uint64_t hf_run_ran_ns(const hf_run *run)
{
    bool runs = handler_has_it(run);
    uint64_t from = runs ? atomic_load(&run->begun_ns) : run->started_ns;
    uint64_t to = runs ? hf_boot_ns() : run->ended_ns;
    return from == 0 || to < from ? 0 : to - from;
}

int64_t hf_run_ran_ms(const hf_run *run)
{
    return (int64_t)(hf_run_ran_ns(run) / HF_MS_NS);
}

void hf_run_report(hf_worker *w, hf_run *run, const char *outcome)
{
    hf_log_field fields[9];
    char in[HF_DURATION_SIZE];
    size_t n = 0;
    hf_counters_outcome(run->served->whole->counters, run->record.type, outcome);
    run->outcome = outcome;
    if (w->opts.log == NULL)
        return;
    int64_t run_ms = hf_run_ran_ms(run);
    fields[n++] = (hf_log_field){.key = "job", .text = run->id};
    fields[n++] = (hf_log_field){.key = "queue", .text = run->served->queue.name};
    fields[n++] = (hf_log_field){.key = "type", .text = run->record.type};
    fields[n++] = (hf_log_field){.key = "attempt", .number = run->record.attempts + 1};
    fields[n++] = (hf_log_field){.key = "wait_ms", .number = run->wait_ms};
    fields[n++] = (hf_log_field){.key = "run_ms", .number = run_ms};
    fields[n++] = (hf_log_field){.key = "outcome", .text = outcome};
    /* The verdict belongs to the handler's thread until it has returned, and then `op` is
     * set. */
    bool snoozed =
        run->op == HF_OP_RELEASE && run->verdict == HF_VERDICT_RELEASE && !run->released;
    if (run->op == HF_OP_RETRY || snoozed || run->waits) {
        hf_format_duration(run->delay_ms, in);
        fields[n++] = (hf_log_field){.key = "in", .text = in};
    }
    if (!handler_has_it(run) && run->error != NULL)
        fields[n++] = (hf_log_field){.key = "error", .text = run->error};
    HF_ASSERT(n <= HF_COUNT(fields));
    bool ok = !run->lost_logged && (run->op == HF_OP_COMPLETE || run->op == HF_OP_KEEP ||
                                    (run->op == HF_OP_RELEASE && run->error == NULL));
    /* It may come again and again. */
    bool again =
        run->waits || run->elsewhere ||
        (run->op == HF_OP_REFUSE && run->reason == NULL && run->record.refused_ms != 0);
    hf_report(w, again ? HF_LOG_DEBUG : ok ? HF_LOG_INFO : HF_LOG_WARN, "job", fields, n);
}

void hf_run_on_line(void *job_arg, int stream, const char *text, size_t len, void *arg)
{
    hf_run *run = job_arg;
    (void)len; /* followed by a NUL */
    hf_log_field fields[] = {{.key = "job", .text = run->id},
                             {.key = "stream",
                              .text = stream == 1   ? "stdout"
                                      : stream == 2 ? "stderr"
                                                    : "holdfast"},
                             {.key = "line", .text = text}};
    /* What the worker logs about an output, for example a verdict it cannot parse. */
    bool ours = stream != 1 && stream != 2;
    hf_report(arg, ours ? HF_LOG_WARN : HF_LOG_INFO, "output", fields, HF_COUNT(fields));
}

void hf_run_on_denied(void *job_arg, void *arg)
{
    const hf_run *run = job_arg;
    const hf_log_field fields[] = {
        {.key = "job", .text = run->id},
        {.key = "error", .text = "it runs as another user, and may outlive its lease"}};
    hf_report(arg, HF_LOG_WARN, "a program may not be ended", fields, HF_COUNT(fields));
}

/* ---- for handlers ---- */

const char *hf_run_id(const hf_run *run)
{
    return run->id;
}

const char *hf_run_type(const hf_run *run)
{
    return run->record.type;
}

const char *hf_run_queue(const hf_run *run)
{
    return run->served->queue.name;
}

const void *hf_run_payload(const hf_run *run, size_t *len)
{
    if (len != NULL)
        *len = run->record.payload.len;
    return run->record.payload.len == 0 ? "" : run->record.payload.ptr;
}

uint32_t hf_run_attempt(const hf_run *run)
{
    return run->record.attempts + 1;
}

uint64_t hf_run_fence(const hf_run *run)
{
    return strtoull(run->fence, NULL, 10);
}

int64_t hf_run_scheduled_ms(const hf_run *run)
{
    return run->record.scheduled_ms;
}

const char *hf_run_headers(const hf_run *run)
{
    return run->record.headers.ptr;
}

const char *hf_run_traceparent(const hf_run *run)
{
    return run->trace.text;
}

int64_t hf_run_remaining_ms(const hf_run *run)
{
    if (hf_run_lost(run))
        return 0;
    uint64_t deadline = hf_lease_deadline_ns(run->lease), now = hf_boot_ns();
    return deadline > now ? (int64_t)((deadline - now) / HF_MS_NS) : 0;
}

bool hf_run_lost(const hf_run *run)
{
    return atomic_load(&run->lost) || hf_lease_lost(run->lease);
}

bool hf_run_cancelled(const hf_run *run)
{
    return atomic_load(&run->cancelled);
}

bool hf_run_timed_out(const hf_run *run)
{
    return atomic_load(&run->timed_out);
}

bool hf_run_stopping(const hf_run *run)
{
    return atomic_load(&run->stopping) || hf_lease_lost(run->lease);
}

void hf_run_on_stop(hf_run *run, void (*fn)(void *arg), void *arg)
{
    pthread_mutex_t *lock = &run->worker->stop_lock;
    pthread_mutex_lock(lock);
    bool now = atomic_load(&run->stopping);
    run->stop_fn = now ? NULL : fn;
    run->stop_arg = arg;
    pthread_mutex_unlock(lock);
    if (now && fn != NULL)
        fn(arg);
}

/* Under the lock, because it must not be called after its handler returned: its thread
 * takes the lock before it forgets the function. After an event of the lease, the
 * watchdog's thread has already set `stopping`. */
void hf_run_ask_to_stop(hf_run *run)
{
    pthread_mutex_t *lock = &run->worker->stop_lock;
    pthread_mutex_lock(lock);
    atomic_store(&run->stopping, true);
    if (run->stop_fn != NULL)
        run->stop_fn(run->stop_arg);
    run->stop_fn = NULL;
    pthread_mutex_unlock(lock);
}

void hf_run_set_text(hf_run *run, const char *text, size_t len)
{
    size_t from = hf_text_end(text, len, HF_ERROR_MAX);
    text += from;
    len -= from;
    char *copy = malloc(len + 1);
    if (copy == NULL)
        return; /* the verdict counts, not its words */
    memcpy(copy, text, len);
    copy[len] = '\0';
    free(run->error);
    run->error = copy;
}

void hf_run_set_error(hf_run *run, const char *text)
{
    hf_run_set_text(run, text, strlen(text));
}

void hf_run_set_retry_in(hf_run *run, int64_t delay_ms)
{
    run->has_retry_in = true;
    run->delay_ms = delay_ms < 0                 ? 0
                    : delay_ms > HF_DELAY_MAX_MS ? HF_DELAY_MAX_MS
                                                 : delay_ms;
}
