/* child.c - worker/pool/child.h. */
#include "worker/pool/child.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/text.h"
#include "worker/pool/death.h"
#include "worker/pool/launch.h"
#include "worker/pool/outputs.h"
#include "worker/pool/wire.h"

enum {
    READS = 4,        /* of a descriptor at a time */
    DRAIN_READS = 64, /* of each at the end */
    EOF_MS = 1000,    /* from the end of its socket to its own end */
    UNREAD_MS = 5000, /* a request to end a run is read in this time */
    STACK_MS = 500,   /* before KILL it may write where it hangs: at most this */
    STACK_PART = 5,   /* and at most this part of its grace */
    QUIET_MS = 5000,  /* then one with several runs is asked whether it reads */
    DEAF_MS = 15000,
    UNREAD_MAX = 4096,   /* bytes of a frame that a process reads in one piece, or not */
    REFUSED_STATUS = 78, /* docs/pipe.md; EX_CONFIG of sysexits.h */
    WHY_SIZE = HF_DEATH_SIZE
};

typedef struct slot {
    void *job; /* NULL: it is free */
    uint64_t run;
    uint64_t timeout_ns, stack_ns, kill_ns; /* CLOCK_BOOTTIME; 0: none */
    uint32_t timeout_ms;
    bool cancelled;
    hf_frame_why why;
    char *refused; /* owned: its checkpoint */
} slot;

struct hf_child {
    hf_child_opts opts; /* without deadline_ns, and without joined */
    hf_group group;
    hf_child_state state;
    hf_wire wire;
    hf_outputs outputs;
    uv_timer_t timer;
    uint64_t timer_ns; /* when it fires; 0: it does not */
    int handles;
    slot *slots;
    size_t n_slots, busy, cancelled;
    uint64_t last_run, jobs;
    uint64_t deadline_ns, ready_ns;
    uint64_t start_by_ns, exit_by_ns, eof_by_ns, unread_by_ns; /* 0: no such limit */
    uint64_t heard_ns, asked_ns;
    uint32_t strays; /* verdicts of no run */
    bool term_due, deaf_reported;
    bool in_verdict;                      /* so its output was read this very moment */
    uint64_t sent_term_ns, sent_stack_ns; /* TERM and USR2, which may end it; 0: never */
    bool broken;                          /* it did not keep to the protocol */
    bool stopped;                         /* it was told to stop, or wants to leave */
    bool killed;         /* by the worker, without a run that is to blame */
    bool blamed;         /* it was killed because of a run, */
    const slot *culprit; /* this one; NULL: it has its verdict by now */
    const slot *last;    /* its frame was written last, and is small; NULL: none */
    const slot *unread;  /* the process has ended, and never had this run */
    pid_t pid;
    char why[WHY_SIZE]; /* why the worker has ended it, then how it ended */
};

static void set_timer(hf_child *c);

/* ---- its states ---- */

static void put_stop(hf_child *c);

/* A program that joined is not the worker's to kill while it runs none of its jobs. */
static void end_process(hf_child *c)
{
    if (c->group.joined && c->busy == 0)
        hf_group_let_go(&c->group);
    else
        hf_group_end(&c->group, 0);
}

static void apply(hf_child *c, hf_child_event event)
{
    hf_child_cell cell = hf_child_state_cell(c->state, event);
    HF_ASSERT(cell.possible);
    c->state = cell.next;
    if (cell.actions & HF_CHILD_DO_STOP)
        put_stop(c);
    if (cell.actions & HF_CHILD_DO_KILL)
        end_process(c);
}

/* Of several reasons the first one counts. */
static void give_reason(hf_child *c, const char *text)
{
    if (c->why[0] == '\0')
        snprintf(c->why, sizeof c->why, "%s", text);
}

static void break_off(hf_child *c, const char *text)
{
    if (c->state == HF_CHILD_ENDED || c->state == HF_CHILD_ENDING)
        return;
    give_reason(c, text);
    c->broken = true;
    apply(c, HF_CHILD_E_BROKEN);
}

/* ---- frames to it ---- */

/* TERM only says that there is something to read: the frame goes out first. */
static void term(hf_child *c)
{
    c->term_due = false;
    if (c->n_slots > 1)
        return;
    c->sent_term_ns = hf_boot_ns();
    hf_group_signal_leader(&c->group, SIGTERM);
}

static void flush(hf_child *c)
{
    c->last = c->wire.out.len > 0 ? NULL : c->last;
    if (!hf_wire_flush(&c->wire))
        break_off(c, "out of memory");
    if (c->wire.out.len > 0)
        return;
    c->unread_by_ns = 0;
    if (c->term_due)
        term(c);
}

static void on_drained(void *arg)
{
    flush(arg);
}

static void put_stop(hf_child *c)
{
    const uint32_t grace_ms = c->opts.spec->pool.grace_ms;
    hf_frame_put_stop(&c->wire.out, grace_ms);
    c->stopped = true;
    if (c->busy == 0)
        c->exit_by_ns = hf_boot_ns() + grace_ms * HF_MS_NS;
    flush(c);
}

static slot *free_slot(hf_child *c)
{
    for (size_t i = 0; i < c->n_slots; i++)
        if (c->slots[i].job == NULL)
            return &c->slots[i];
    return NULL;
}

/* Its output so far belongs to what came before. */
static void begin_output(hf_child *c)
{
    hf_outputs_read(&c->outputs, READS);
    hf_outputs_begin(&c->outputs);
}

void hf_child_send(hf_child *c, const hf_child_job *job, bool alone)
{
    hf_frame_job frame = job->frame;
    slot *s = free_slot(c);
    HF_ASSERT(s != NULL && c->state == HF_CHILD_READY);
    if (c->n_slots == 1 && !c->in_verdict)
        begin_output(c);
    frame.run = ++c->last_run;
    frame.payload_len = job->payload_len;
    frame.checkpoint_len = job->checkpoint_len;
    *s = (slot){.job = job->job, .run = frame.run, .timeout_ms = frame.timeout_ms};
    if (frame.timeout_ms > 0)
        s->timeout_ns = hf_boot_ns() + frame.timeout_ms * HF_MS_NS;
    c->busy++;
    if (c->busy == 1)
        c->heard_ns = hf_boot_ns();
    hf_buf line;
    hf_buf_init(&line, HF_FRAME_OWN_MAX + HF_FRAME_HEADERS_MAX);
    hf_frame_put_job(&line, &frame);
    const hf_wire_part parts[3] = {{line.data, line.len},
                                   {job->payload, job->payload_len},
                                   {job->checkpoint, job->checkpoint_len}};
    if (hf_buf_err(&line) != HF_OK || !hf_wire_write(&c->wire, parts))
        break_off(c, "out of memory");
    size_t len = line.len + job->payload_len + job->checkpoint_len;
    c->last = c->wire.out.len == 0 && len <= UNREAD_MAX ? s : NULL;
    if (c->wire.deaf)
        c->unread = s;
    hf_buf_done(&line);
    if (s->timeout_ns != 0 && (c->timer_ns == 0 || s->timeout_ns < c->timer_ns))
        set_timer(c);
    if (alone && c->last != NULL)
        hf_wire_spin(&c->wire);
}

/* ---- its runs are ended ---- */

static slot *slot_of(hf_child *c, const void *job)
{
    for (size_t i = 0; i < c->n_slots; i++)
        if (c->slots[i].job == job)
            return &c->slots[i];
    return NULL;
}

static slot *slot_of_run(hf_child *c, uint64_t run)
{
    for (size_t i = 0; i < c->n_slots; i++)
        if (c->slots[i].job != NULL && c->slots[i].run == run)
            return &c->slots[i];
    return NULL;
}

static void kill_for(hf_child *c, const slot *s)
{
    if (!c->blamed && !c->killed)
        c->culprit = s;
    c->blamed = !c->killed;
    if (c->state != HF_CHILD_ENDED)
        apply(c, HF_CHILD_E_KILL);
}

/* A reason that leaves less to the verdict of the run comes later. */
static bool is_stronger(hf_frame_why a, hf_frame_why b)
{
    static const int ranks[] = {[HF_FRAME_WHY_TIMEOUT] = 0,
                                [HF_FRAME_WHY_STOP] = 1,
                                [HF_FRAME_WHY_CANCELLED] = 2,
                                [HF_FRAME_WHY_LOST] = 3};
    return ranks[a] > ranks[b];
}

static void ask_to_end(hf_child *c, slot *s, hf_frame_why why, uint32_t grace_ms)
{
    s->cancelled = true;
    s->why = why;
    c->cancelled++;
    apply(c, HF_CHILD_E_CANCEL);
    hf_frame_put_cancel(&c->wire.out, s->run, why, grace_ms);
    c->term_due = true;
    flush(c);
    if (c->wire.out.len > 0 && c->unread_by_ns == 0)
        c->unread_by_ns = hf_boot_ns() + UNREAD_MS * HF_MS_NS;
}

static void cancel_slot(hf_child *c, slot *s, hf_frame_why why, uint32_t grace_ms)
{
    uint64_t kill_ns = hf_boot_ns() + grace_ms * HF_MS_NS;
    uint64_t early_ms = grace_ms / STACK_PART;
    s->timeout_ns = 0;
    if (c->state == HF_CHILD_ENDED)
        return;
    if (!s->cancelled)
        ask_to_end(c, s, why, grace_ms);
    else if (is_stronger(why, s->why))
        s->why = why;
    if (s->kill_ns == 0 || kill_ns < s->kill_ns)
        s->kill_ns = kill_ns;
    if (why == HF_FRAME_WHY_TIMEOUT && early_ms > 0)
        s->stack_ns = s->kill_ns - (early_ms < STACK_MS ? early_ms : STACK_MS) * HF_MS_NS;
    if (grace_ms == 0)
        kill_for(c, s);
    set_timer(c);
}

void hf_child_cancel(hf_child *c, const void *job, hf_frame_why why, uint32_t grace_ms)
{
    slot *s = slot_of(c, job);
    if (s != NULL)
        cancel_slot(c, s, why, grace_ms);
}

void hf_child_stop(hf_child *c)
{
    if (c->state == HF_CHILD_STARTING)
        c->killed = c->stopped = true;
    apply(c, HF_CHILD_E_STOP);
    set_timer(c);
}

void hf_child_kill(hf_child *c)
{
    c->killed = true;
    if (c->state != HF_CHILD_ENDED)
        apply(c, HF_CHILD_E_KILL);
}

/* ---- its time ---- */

static void sooner(uint64_t *first_ns, uint64_t at_ns)
{
    if (at_ns != 0 && (*first_ns == 0 || at_ns < *first_ns))
        *first_ns = at_ns;
}

static uint64_t next_ns(const hf_child *c)
{
    uint64_t first = 0;
    for (size_t i = 0; i < c->n_slots; i++) {
        const slot *s = &c->slots[i];
        if (s->job == NULL)
            continue;
        sooner(&first, s->timeout_ns);
        sooner(&first, s->stack_ns);
        sooner(&first, s->kill_ns);
    }
    sooner(&first, c->start_by_ns);
    sooner(&first, c->exit_by_ns);
    sooner(&first, c->eof_by_ns);
    sooner(&first, c->unread_by_ns);
    return first;
}

static bool is_due(uint64_t at_ns, uint64_t now_ns)
{
    return at_ns != 0 && now_ns >= at_ns;
}

static void act_on_slot(hf_child *c, slot *s, uint64_t now_ns)
{
    if (is_due(s->stack_ns, now_ns)) {
        s->stack_ns = 0;
        c->sent_stack_ns = now_ns;
        hf_group_signal_leader(&c->group, SIGUSR2);
    }
    if (is_due(s->kill_ns, now_ns)) {
        s->kill_ns = 0;
        kill_for(c, s);
    } else if (is_due(s->timeout_ns, now_ns)) {
        cancel_slot(c, s, HF_FRAME_WHY_TIMEOUT, c->opts.spec->pool.grace_ms);
    }
}

static const slot *first_cancelled(const hf_child *c)
{
    for (size_t i = 0; i < c->n_slots; i++)
        if (c->slots[i].job != NULL && c->slots[i].cancelled)
            return &c->slots[i];
    return NULL;
}

static void be_late(hf_child *c, uint64_t *by_ns, const char *text)
{
    *by_ns = 0;
    give_reason(c, text);
    apply(c, HF_CHILD_E_LATE);
}

/* A program that ended in time is not late because this loop was slow. */
static void on_timer(uv_timer_t *timer)
{
    hf_child *c = timer->data;
    uint64_t now_ns = hf_boot_ns();
    c->timer_ns = 0;
    if (hf_group_check(&c->group))
        return;
    hf_wire_read(&c->wire, READS);
    for (size_t i = 0; i < c->n_slots; i++)
        if (c->slots[i].job != NULL)
            act_on_slot(c, &c->slots[i], now_ns);
    if (is_due(c->start_by_ns, now_ns))
        be_late(c, &c->start_by_ns, "it was not ready in time");
    if (is_due(c->exit_by_ns, now_ns))
        be_late(c, &c->exit_by_ns, "it did not exit when it was stopped");
    if (is_due(c->unread_by_ns, now_ns)) {
        c->unread_by_ns = 0;
        kill_for(c, first_cancelled(c));
    }
    if (is_due(c->eof_by_ns, now_ns)) {
        c->eof_by_ns = 0;
        break_off(c, "protocol error: it closed its socket");
    }
    set_timer(c);
}

/* A timer that fires too early is set anew. */
static void set_timer(hf_child *c)
{
    uint64_t at_ns = next_ns(c), now_ns = hf_boot_ns();
    if (c->state == HF_CHILD_ENDED || at_ns == 0 ||
        (c->timer_ns != 0 && c->timer_ns <= at_ns))
        return;
    uint64_t wait_ms = at_ns <= now_ns ? 0 : (at_ns - now_ns) / HF_MS_NS + 1;
    c->timer_ns = at_ns;
    uv_update_time(c->opts.loop);
    uv_timer_start(&c->timer, on_timer, wait_ms, 0);
}

/* ---- what it says ---- */

static void on_ready(hf_child *c, const hf_frame *frame)
{
    char detail[HF_DETAIL_SIZE];
    hf_ready *ready;
    uint32_t most = c->opts.spec->pool.parallel;
    if (c->state != HF_CHILD_STARTING)
        return;
    hf_err err = hf_ready_read(&ready, frame->line, frame->line_len, detail);
    if (err != HF_OK) {
        break_off(c, detail);
        return;
    }
    size_t n = most == 0 || ready->parallel < most ? ready->parallel : most;
    c->slots = calloc(n, sizeof *c->slots);
    if (c->slots == NULL) {
        hf_ready_free(ready);
        break_off(c, "out of memory");
        return;
    }
    c->n_slots = n;
    if (!c->opts.calls->ready(c, ready, detail, c->opts.arg)) {
        break_off(c, detail);
        return;
    }
    c->start_by_ns = 0;
    c->ready_ns = c->heard_ns = hf_boot_ns();
    apply(c, HF_CHILD_E_READY);
}

static void end_slot(hf_child *c, slot *s)
{
    bool cancelled = s->cancelled;
    if (c->culprit == s)
        c->culprit = NULL;
    if (c->last == s)
        c->last = NULL;
    free(s->refused);
    *s = (slot){.job = NULL};
    c->busy--;
    c->jobs++;
    c->cancelled -= cancelled ? 1 : 0;
    if (cancelled && c->cancelled == 0) {
        c->term_due = false;
        c->unread_by_ns = 0;
        apply(c, HF_CHILD_E_CANCELS_OVER);
    }
    if (c->busy == 0 && c->state == HF_CHILD_STOPPING) {
        c->exit_by_ns = hf_boot_ns() + c->opts.spec->pool.grace_ms * HF_MS_NS;
        set_timer(c);
    }
}

static void on_verdict(hf_child *c, const hf_frame *frame)
{
    char why[HF_FRAME_FAULT_SIZE];
    slot *s = slot_of_run(c, frame->run);
    if (s == NULL) {
        c->strays++;
        return;
    }
    bool refused = hf_frame_is_refused(frame, why);
    hf_child_verdict verdict = {.frame = frame,
                                .cancelled = s->cancelled,
                                .why = s->why,
                                .refused = s->refused != NULL ? s->refused
                                           : refused          ? why
                                                              : NULL};
    void *job = s->job;
    if (c->n_slots == 1)
        begin_output(c); /* and ends that of this run */
    char *kept = s->refused;
    s->refused = NULL;
    end_slot(c, s);
    c->in_verdict = true;
    c->opts.calls->verdict(c, job, &verdict, c->opts.arg);
    c->in_verdict = false;
    free(kept);
}

static void on_update(hf_child *c, const hf_frame *frame)
{
    char why[HF_FRAME_FAULT_SIZE];
    slot *s = slot_of_run(c, frame->run);
    if (s == NULL)
        return; /* it has its verdict */
    if (!hf_frame_is_refused(frame, why))
        c->opts.calls->update(c, s->job, frame, c->opts.arg);
    else if (s->refused == NULL)
        s->refused = strdup(why);
}

static void on_frame(const hf_frame *frame, void *arg)
{
    hf_child *c = arg;
    c->heard_ns = hf_boot_ns();
    c->asked_ns = 0;
    c->deaf_reported = false;
    if (frame->kind == HF_FRAME_READY) {
        on_ready(c, frame);
    } else if (hf_frame_is_verdict(frame->kind)) {
        on_verdict(c, frame);
    } else if (frame->kind == HF_FRAME_LEAVE) {
        apply(c, HF_CHILD_E_LEAVE);
        set_timer(c);
    } else if (frame->kind != HF_FRAME_PONG) {
        on_update(c, frame);
    }
}

static void on_broken(const char *why, void *arg)
{
    char text[HF_FRAME_FAULT_SIZE + 32];
    snprintf(text, sizeof text, "protocol error: %s", why);
    break_off(arg, text);
}

/* Its own end is seen by its pidfd, a moment later. */
static void on_socket_ended(void *arg)
{
    hf_child *c = arg;
    if (c->state == HF_CHILD_ENDED)
        return;
    if (c->group.joined && c->busy == 0) {
        hf_group_let_go(&c->group);
        return;
    }
    c->eof_by_ns = hf_boot_ns() + EOF_MS * HF_MS_NS;
    set_timer(c);
}

/* ---- its outputs ---- */

/* The job that they belong to; NULL: that is not known. */
static void *only_job(const hf_child *c)
{
    return c->n_slots == 1 ? c->slots[0].job : NULL;
}

static void on_line(int stream, const char *text, size_t len, void *arg)
{
    hf_child *c = arg;
    c->opts.calls->line(c, only_job(c), stream, text, len, c->opts.arg);
}

static void on_bytes(const char *bytes, size_t len, void *arg)
{
    hf_child *c = arg;
    c->opts.calls->output(c, only_job(c), bytes, len, c->opts.arg);
}

/* ---- its end ---- */

static void free_child(hf_child *c)
{
    for (size_t i = 0; i < c->n_slots; i++)
        free(c->slots[i].refused);
    free(c->slots);
    hf_wire_done(&c->wire);
    hf_pool_spec_unref(c->opts.spec);
    free(c);
}

static void on_closed(void *arg)
{
    hf_child *c = arg;
    if (--c->handles > 0)
        return;
    if (c->opts.calls != NULL)
        c->opts.calls->gone(c, c->opts.arg);
    free_child(c);
}

static void on_timer_closed(uv_handle_t *handle)
{
    on_closed(handle->data);
}

static void close_all(hf_child *c)
{
    hf_outputs_close(&c->outputs);
    hf_wire_close(&c->wire);
    uv_close((uv_handle_t *)&c->timer, on_timer_closed);
}

static hf_child_fate fate_of(const hf_child *c, const slot *s)
{
    bool obeyed = c->stopped && !c->group.by_signal && c->group.status == 0;
    if (s->cancelled)
        return HF_FATE_CANCELLED;
    if (c->blamed)
        return HF_FATE_NEIGHBOUR;
    if (c->killed || c->group.joined || hf_death_may_be_the_minders(&c->group) ||
        obeyed || c->unread == s)
        return HF_FATE_STOPPED;
    return HF_FATE_CRASHED;
}

/* A signal of ours has ended it, though it was no KILL. */
static bool ended_by_our_signal(const hf_child *c)
{
    const uint32_t grace_ms = c->opts.spec->pool.grace_ms;
    return hf_death_is_by(&c->group, SIGTERM, c->sent_term_ns, grace_ms) ||
           hf_death_is_by(&c->group, SIGUSR2, c->sent_stack_ns, grace_ms);
}

/* What it wrote before it died counts. */
static bool on_ended(hf_group *group)
{
    hf_child *c = HF_CONTAINER(group, hf_child, group);
    uv_timer_stop(&c->timer);
    hf_wire_read(&c->wire, DRAIN_READS);
    if (c->last != NULL && hf_wire_has_unread(&c->wire))
        c->unread = c->last;
    hf_outputs_read(&c->outputs, DRAIN_READS);
    hf_outputs_end(&c->outputs);
    apply(c, HF_CHILD_E_ENDED);
    if (group->joined) /* its status is not known */
        give_reason(c, "it has left");
    if (!c->blamed && ended_by_our_signal(c)) {
        c->blamed = true;
        c->culprit = first_cancelled(c);
    }
    return c->busy > 0;
}

static void on_gone(hf_group *group)
{
    hf_child *c = HF_CONTAINER(group, hf_child, group);
    char text[WHY_SIZE], stderr_end[HF_PROGRAM_ERROR_MAX + 1];
    hf_child_end end = {.by_signal = group->by_signal && c->why[0] == '\0',
                        .culprit = c->culprit == NULL ? NULL : c->culprit->job,
                        .text = c->why,
                        .stderr_end = stderr_end};
    hf_program_output_error(&c->outputs.text, stderr_end);
    hf_death_describe(
        &(hf_death){group, &c->opts.spec->pool, c->why, c->busy > 0, stderr_end}, text);
    memcpy(c->why, text, sizeof text);
    for (size_t i = 0; i < c->n_slots; i++) {
        const slot *s = &c->slots[i];
        end.fate = fate_of(c, s);
        end.why = s->why;
        if (s->job != NULL)
            c->opts.calls->unanswered(c, s->job, &end, c->opts.arg);
    }
    close_all(c);
}

static const hf_group_calls group_calls = {.ended = on_ended, .gone = on_gone};
static const hf_outputs_calls outputs_calls = {
    .line = on_line, .bytes = on_bytes, .closed = on_closed};
static const hf_wire_calls wire_calls = {.frame = on_frame,
                                         .broken = on_broken,
                                         .ended = on_socket_ended,
                                         .drained = on_drained,
                                         .closed = on_closed};

/* ---- its start ---- */

static hf_child *new_child(const hf_child_opts *opts)
{
    hf_child *c = calloc(1, sizeof *c);
    if (c == NULL)
        return NULL;
    c->opts = *opts;
    c->opts.spec = hf_pool_spec_ref(opts->spec);
    c->deadline_ns = opts->deadline_ns;
    if (opts->joined == NULL)
        c->start_by_ns = hf_boot_ns() + opts->spec->pool.start_timeout_ms * HF_MS_NS;
    hf_group_init(&c->group, opts->groups, &group_calls);
    hf_wire_init(&c->wire, &wire_calls, c);
    hf_outputs_init(&c->outputs, &outputs_calls, c);
    uv_timer_init(opts->loop, &c->timer);
    c->timer.data = c;
    c->handles++;
    return c;
}

static hf_err launch(hf_child *c, const hf_child_opts *opts)
{
    const hf_launch how = {.loop = opts->loop,
                           .pool = &opts->spec->pool,
                           .group = &c->group,
                           .wire = &c->wire,
                           .outputs = &c->outputs};
    return opts->joined != NULL ? hf_launch_join(&how, opts->joined, &c->handles)
                                : hf_launch_start(&how, opts->deadline_ns, &c->handles);
}

hf_err hf_child_start(hf_child **out, const hf_child_opts *opts)
{
    hf_child *c = new_child(opts);
    if (c == NULL) {
        hf_launch_refuse(opts->joined);
        return HF_NOMEM;
    }
    hf_err err = launch(c, opts);
    int error = errno;
    if (err == HF_OK) {
        c->pid = c->group.pid;
        set_timer(c);
        *out = c;
    } else {
        c->opts.calls = NULL; /* it was never there */
        close_all(c);
    }
    errno = error;
    return err;
}

/* ---- the interface ---- */

bool hf_child_takes_jobs(const hf_child *c)
{
    return hf_wire_is_open(&c->wire) && !c->group.over &&
           (c->state == HF_CHILD_READY || c->state == HF_CHILD_CANCELLING);
}

bool hf_child_can_take(const hf_child *c)
{
    return hf_child_takes_jobs(c) && c->state == HF_CHILD_READY && c->busy < c->n_slots &&
           c->wire.out.len == 0;
}

void hf_child_extend(hf_child *c, uint64_t deadline_ns)
{
    if (deadline_ns <= c->deadline_ns)
        return;
    c->deadline_ns = deadline_ns;
    hf_group_extend(&c->group, deadline_ns);
}

bool hf_child_ping(hf_child *c, uint64_t now_ns)
{
    if (c->n_slots < 2 || c->busy == 0 || !hf_child_takes_jobs(c))
        return false;
    if (c->asked_ns == 0 && now_ns > c->heard_ns + QUIET_MS * HF_MS_NS) {
        c->asked_ns = now_ns;
        hf_frame_put_ping(&c->wire.out);
        flush(c);
    }
    bool deaf = c->asked_ns != 0 && now_ns > c->asked_ns + DEAF_MS * HF_MS_NS;
    bool reported = c->deaf_reported;
    c->deaf_reported = reported || deaf;
    return deaf && !reported;
}

pid_t hf_child_pid(const hf_child *c)
{
    return c->pid;
}

hf_child_state hf_child_state_of(const hf_child *c)
{
    return c->state;
}

size_t hf_child_busy(const hf_child *c)
{
    return c->busy;
}

size_t hf_child_parallel(const hf_child *c)
{
    return c->n_slots;
}

uint64_t hf_child_jobs(const hf_child *c)
{
    return c->jobs;
}

uint64_t hf_child_deadline_ns(const hf_child *c)
{
    return c->deadline_ns;
}

uint64_t hf_child_ready_ns(const hf_child *c)
{
    return c->ready_ns;
}

const char *hf_child_why(const hf_child *c)
{
    return c->why;
}

bool hf_child_was_stopped(const hf_child *c)
{
    return c->stopped;
}

bool hf_child_refused(const hf_child *c)
{
    return c->ready_ns == 0 && c->group.over && !c->group.by_signal &&
           c->group.status == REFUSED_STATUS && c->group.fault.step == HF_SPAWN_NONE;
}

bool hf_child_served(const hf_child *c)
{
    return c->last_run > (c->unread != NULL ? 1 : 0) && !c->broken;
}
