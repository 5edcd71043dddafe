/* players.c - see players.h. */
#include "tests/readings/players.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 12, COMPUTERS = 6, HOLDS = 2, OWNERS = 3 };

typedef struct mine {
    uint64_t token; /* 0: none */
    unsigned names;
    int64_t length;
    double until_us; /* by its boot clock */
} mine;

typedef struct process {
    uint64_t id; /* 0: it is dead */
    unsigned computer, life;
    const rd_boot *boot;
    int64_t length; /* of its leases in a queue */
    bool started;
    rd_us stopped_until, next_ask;
    unsigned ack_names; /* 0: it has nothing to tell */
    rd_reading ack;
    mine holds[HOLDS];
    /* The lock that it wants. */
    unsigned names;
    bool shared;
    uint64_t owner;
} process;

typedef struct computer {
    unsigned boot; /* in the ring */
    int name;
    rd_us asleep_until;
} computer;

typedef enum event_kind {
    E_START,
    E_DIE,
    E_ASK,
    E_RENEW,
    E_END,
    E_NOTICE,
    E_REQUEST,
    E_ANSWER,
    E_STEP,
    E_STEP_BACK,
    E_GLITCH,
    E_REBOOT,
    E_SLEEP,
    E_WAKE,
    E_SNAPSHOT,
    E_FAILOVER,
    E_OLD_ENDS,
    E_REMOVE,
} event_kind;

typedef struct event {
    rd_us at; /* first: rd_events */
    event_kind kind;
    unsigned slot; /* of a process, or a computer */
    uint64_t process, token;
    double step_us;
    rd_message message;
} event;

typedef struct play {
    const rd_setup *setup;
    hf_rng rng;
    rd_events events;
    rd_scripts scripts;
    rd_redis redis[2], saved;
    unsigned primary, lives;
    rd_boot boots[RD_BOOTS];
    unsigned n_boots;
    int names;
    unsigned glitches;
    double step_most_us, forward; /* of Redis's clock: how far, and how often forward */
    computer computers[COMPUTERS];
    process processes[SLOTS];
    uint64_t ids;
} play;

static bool happens(const play *p, unsigned what)
{
    return (p->setup->events & what) != 0;
}

static rd_us now_of(const play *p)
{
    return p->scripts.now;
}

static void plan(play *p, const event *e, rd_us after)
{
    event copy = *e;
    copy.at = now_of(p) + after;
    rd_events_push(&p->events, &copy);
}

static void plan_kind(play *p, event_kind kind, unsigned slot, rd_us after)
{
    plan(p, &(event){.kind = kind, .slot = slot}, after);
}

/* Of a process: void when it is dead by then. */
static void plan_own(play *p, event_kind kind, unsigned slot, uint64_t token, rd_us after)
{
    plan(
        p,
        &(event){
            .kind = kind, .slot = slot, .process = p->processes[slot].id, .token = token},
        after);
}

static void plan_ask(play *p, unsigned slot, rd_us after)
{
    process *self = &p->processes[slot];
    if (self->next_ask > now_of(p) && self->next_ask <= now_of(p) + after)
        return;
    self->next_ask = now_of(p) + after;
    plan_own(p, E_ASK, slot, 0, after);
}

/* ---- messages ---- */

static rd_us delay(play *p)
{
    if (!happens(p, RD_MESSAGES))
        return rd_between(&p->rng, 100, RD_MS);
    if (rd_chance(&p->rng, 0.03))
        return rd_between(&p->rng, 10 * RD_MS, 25 * RD_S);
    return rd_between(&p->rng, 50, 20 * RD_MS);
}

static void send(play *p, unsigned slot, rd_message *m)
{
    process *self = &p->processes[slot];
    m->slot = slot;
    m->process = self->id;
    m->life = self->life;
    m->boot = self->boot;
    m->machine = self->boot->name;
    m->sent_us = rd_boot_us(self->boot, now_of(p));
    m->paused_us = rd_boot_paused(self->boot, now_of(p));
    if ((m->verb == RD_READ || (m->verb == RD_TAKE && p->setup->locks)) &&
        self->ack_names != 0) { /* told again and again, until there is another one */
        m->ack = self->ack;
        m->ack_names = self->ack_names;
    }
    const event e = {.kind = E_REQUEST, .message = *m};
    plan(p, &e, delay(p));
    if (happens(p, RD_MESSAGES) && rd_chance(&p->rng, 0.02))
        plan(p, &e, delay(p) + delay(p)); /* executed twice */
}

static void note_reading(play *p, process *self, const rd_message *m)
{
    if (m->reading.clock == 0)
        return;
    double noted_us = p->setup->rule.broken == RD_NOTED_BEFORE
                          ? m->sent_us
                          : rd_boot_us(self->boot, now_of(p));
    self->ack = m->reading;
    self->ack.boot_ms = (int64_t)ceil(noted_us / RD_MS);
    self->ack_names = m->ack_names;
}

/* ---- what a process does ---- */

static int64_t any_length(play *p)
{
    return p->setup->lengths.ms[rd_below(&p->rng, p->setup->lengths.n)];
}

static mine *hold_of(process *self, uint64_t token)
{
    for (unsigned i = 0; i < HOLDS; i++)
        if (self->holds[i].token == token)
            return &self->holds[i];
    return NULL;
}

static void die(play *p, unsigned slot, rd_us away)
{
    process *self = &p->processes[slot];
    for (unsigned i = 0; i < HOLDS; i++) {
        rd_token *token = rd_token_of(&p->scripts, self->holds[i].token);
        if (self->holds[i].token != 0 && token != NULL)
            token->died = now_of(p);
    }
    self->id = 0;
    rd_lengths *lengths = &p->redis[p->primary].lengths;
    if (p->setup->rule.broken == RD_LENGTH_FORGOTTEN && lengths->n > 1) {
        unsigned i = lengths->ms[0] == self->length ? 0 : 1;
        lengths->ms[i] = lengths->ms[--lengths->n];
    }
    plan_kind(p, E_START, slot, away);
}

static void start(play *p, unsigned slot)
{
    const rd_setup *setup = p->setup;
    process *self = &p->processes[slot];
    unsigned at =
        happens(p, RD_ROAM) ? rd_below(&p->rng, setup->machines) : slot % setup->machines;
    if (p->computers[at].asleep_until > now_of(p)) {
        plan_kind(p, E_START, slot, p->computers[at].asleep_until - now_of(p));
        return;
    }
    *self = (process){.id = ++p->ids,
                      .computer = at,
                      .life = p->lives,
                      .boot = &p->boots[p->computers[at].boot],
                      .length = any_length(p)};
    rd_us life = setup->life_s > 0
                     ? (rd_us)(setup->life_s * RD_S * (0.9 + 0.2 * hf_rng_unit(&p->rng)))
                     : rd_between(&p->rng, RD_S / 2.0, 60.0 * RD_S);
    plan_own(p, E_DIE, slot, 0, life);
    plan_ask(p, slot, rd_between(&p->rng, RD_MS, 50 * RD_MS));
}

static uint64_t new_token(play *p)
{
    uint64_t token = ++p->ids;
    p->scripts.tokens[token % RD_TOKENS] = (rd_token){.token = token, .died = -1};
    return token;
}

/* It asks for the same locks until it has them, so that its readings are of use. */
static void want(play *p, unsigned slot)
{
    process *self = &p->processes[slot];
    if (self->names == 0) {
        bool alone = p->setup->alone;
        self->names = alone ? 1 : 1U << rd_below(&p->rng, RD_LINES);
        if (!alone && rd_chance(&p->rng, 0.3))
            self->names |= 1U << rd_below(&p->rng, RD_LINES);
        self->shared = !alone && rd_chance(&p->rng, 0.4);
        self->owner = alone || rd_chance(&p->rng, 0.5) ? OWNERS + self->id
                                                       : 1 + rd_below(&p->rng, OWNERS);
    }
    send(p, slot,
         &(rd_message){.verb = RD_TAKE,
                       .names = self->names,
                       .token = new_token(p),
                       .owner = self->owner,
                       .shared = self->shared,
                       .length = any_length(p)});
}

static void ask(play *p, unsigned slot)
{
    process *self = &p->processes[slot];
    if (p->setup->locks && hold_of(self, 0) != NULL)
        want(p, slot);
    else if (!p->setup->locks)
        send(p, slot, &(rd_message){.verb = RD_READ, .names = 1, .length = self->length});
    double every_us = (double)rd_every_ms(&p->setup->lengths) * RD_MS;
    plan_ask(p, slot, (rd_us)(every_us * (0.9 + 0.1 * hf_rng_unit(&p->rng))));
    if (happens(p, RD_STOPS) && rd_chance(&p->rng, 0.02))
        self->stopped_until = now_of(p) + rd_between(&p->rng, RD_MS, 30.0 * RD_S);
}

static void renew(play *p, unsigned slot, uint64_t token)
{
    process *self = &p->processes[slot];
    mine *hold = hold_of(self, token);
    if (hold == NULL)
        return;
    if (rd_boot_us(self->boot, now_of(p)) >= hold->until_us) {
        hold->token = 0;
        return;
    }
    int64_t length = hold->length;
    if (p->setup->locks && rd_chance(&p->rng, 0.2))
        length = any_length(p); /* once longer or shorter */
    send(p, slot,
         &(rd_message){
             .verb = RD_RENEW, .names = hold->names, .token = token, .length = length});
    plan_own(p, E_RENEW, slot, token, hold->length * RD_MS / 3);
    if (happens(p, RD_STOPS) && rd_chance(&p->rng, 0.1))
        self->stopped_until = now_of(p) + rd_between(&p->rng, RD_MS, 30.0 * RD_S);
}

static void give_back(play *p, unsigned slot, uint64_t token)
{
    mine *hold = hold_of(&p->processes[slot], token);
    if (hold != NULL)
        hold->token = 0;
    send(p, slot, &(rd_message){.verb = RD_RELEASE, .token = token});
}

/* ---- answers ---- */

static void taken(play *p, unsigned slot, const rd_message *m)
{
    process *self = &p->processes[slot];
    double until_us = m->sent_us + 0.99 * (double)m->length * RD_MS;
    mine *hold = hold_of(self, 0);
    if (hold_of(self, m->token) != NULL)
        return;
    if (hold == NULL || rd_boot_us(self->boot, now_of(p)) >= until_us) {
        give_back(p, slot, m->token);
        return;
    }
    unsigned names = p->setup->locks ? m->names : 1;
    *hold = (mine){m->token, names, m->length, until_us};
    self->names = 0;
    plan_own(p, E_RENEW, slot, m->token, m->length * RD_MS / 3);
    plan_own(p, E_END, slot, m->token, rd_between(&p->rng, RD_S / 2.0, 200.0 * RD_S));
}

static void renewed(process *self, const rd_message *m, double boot_us)
{
    mine *hold = hold_of(self, m->token);
    if (hold == NULL)
        return;
    double until_us = m->sent_us + 0.99 * (double)m->length * RD_MS;
    if (!m->ok || boot_us >= hold->until_us)
        hold->token = 0;
    else if (until_us > hold->until_us)
        hold->until_us = until_us;
}

static void answered(play *p, const rd_message *m)
{
    process *self = &p->processes[m->slot];
    if (self->life != m->life)
        return; /* its connection is another one now */
    if (m->verb == RD_TAKE && m->ok)
        taken(p, m->slot, m);
    else if (m->verb == RD_RENEW)
        renewed(self, m, rd_boot_us(self->boot, now_of(p)));
    else if (m->verb == RD_READ || m->verb == RD_TAKE) {
        note_reading(p, self, m);
        if (m->after_ms > 0)
            plan_ask(p, m->slot, m->after_ms * RD_MS);
        /* It shows its first reading at once, and so does one that tries once. */
        if (!self->started && m->reading.clock != 0) {
            self->started = true;
            if (p->setup->locks)
                send(p, m->slot, &(rd_message){.verb = RD_READ, .names = m->names});
            else
                plan_ask(p, m->slot, 0);
        }
        if (m->work && hold_of(self, 0) != NULL)
            send(p, m->slot,
                 &(rd_message){.verb = RD_TAKE,
                               .names = 1 + rd_below(&p->rng, 3),
                               .token = new_token(p),
                               .length = self->length});
    }
}

/* ---- what happens to Redis ---- */

static rd_redis *redis_of(play *p, unsigned life)
{
    for (unsigned i = 0; i < 2; i++)
        if (p->redis[i].up && p->redis[i].life == life)
            return &p->redis[i];
    return NULL;
}

/* The rule needs that none of these comes when a machine has kept its name;
 * test_readings_directed.c has the reason. */
static bool of_an_earlier_boot(const play *p, const rd_message *m)
{
    for (unsigned i = 0; i < p->setup->machines; i++)
        if (&p->boots[p->computers[i].boot] == m->boot)
            return false;
    return true;
}

static void requested(play *p, event *e)
{
    rd_redis *redis = redis_of(p, e->message.life);
    const rd_message *m = &e->message;
    if (redis == NULL || (happens(p, RD_SAME_NAME) && of_an_earlier_boot(p, m)))
        return;
    rd_execute(&p->scripts, redis, &e->message);
    if (happens(p, RD_MESSAGES) && rd_chance(&p->rng, 0.03))
        return; /* the answer is lost */
    e->kind = E_ANSWER;
    e->slot = e->message.slot;
    e->process = e->message.process;
    plan(p, e, delay(p));
}

static double any_step(play *p)
{
    double step_us = (double)rd_between(&p->rng, RD_MS, p->step_most_us);
    return rd_chance(&p->rng, p->forward) ? step_us : -step_us;
}

static void step(play *p)
{
    rd_wall *wall = &p->redis[p->primary].wall;
    double step_us = any_step(p), how = hf_rng_unit(&p->rng);
    p->scripts.last_step = now_of(p);
    if (happens(p, RD_ONE_STEP)) {
        rd_wall_set(wall, now_of(p), step_us, wall->speed);
        plan_kind(p, E_STEP, 0, rd_between(&p->rng, 40.0 * RD_S, 200.0 * RD_S));
        return;
    }
    if (how < 0.8)
        rd_wall_set(wall, now_of(p), step_us, wall->speed);
    else
        rd_wall_set(wall, now_of(p), 0,
                    how < 0.85 ? 1 : 0.9 + 0.2 * hf_rng_unit(&p->rng));
    if (how < 0.5)
        plan(p, &(event){.kind = E_STEP_BACK, .step_us = -step_us},
             rd_between(&p->rng, RD_MS, 30.0 * RD_S));
    plan_kind(p, E_STEP, 0, rd_between(&p->rng, 5 * RD_MS, 60.0 * RD_S));
}

static void set_by(play *p, double step_us)
{
    rd_wall *wall = &p->redis[p->primary].wall;
    rd_wall_set(wall, now_of(p), step_us, wall->speed);
    p->scripts.last_step = now_of(p);
}

/* Each is further ahead than those before: it is ahead of the clock of the line, too. */
static void glitch(play *p)
{
    double day_us = ++p->glitches * 86400.0 * RD_S;
    set_by(p, day_us);
    plan(p, &(event){.kind = E_STEP_BACK, .step_us = -day_us},
         rd_between(&p->rng, RD_MS, RD_S));
    plan_kind(p, E_GLITCH, 0, rd_between(&p->rng, 5.0 * RD_S, 50.0 * RD_S));
}

static void snapshot(play *p)
{
    p->saved = p->redis[p->primary];
    plan_kind(p, E_FAILOVER, 0, rd_between(&p->rng, RD_MS, 10.0 * RD_S));
    plan_kind(p, E_SNAPSHOT, 0, rd_between(&p->rng, 12.0 * RD_S, 100.0 * RD_S));
}

/* The other Redis has the older state and a clock of its own. The old primary serves
 * those who have not noticed for a while. */
static void fail_over(play *p)
{
    rd_redis *other = &p->redis[1 - p->primary];
    if (other->up)
        return;
    rd_us left = rd_between(&p->rng, RD_MS, 8.0 * RD_S);
    plan_kind(p, E_OLD_ENDS, p->primary, left);
    *other = p->saved;
    other->up = true;
    other->life = ++p->lives;
    p->primary = 1 - p->primary;
    double how = hf_rng_unit(&p->rng);
    double behind_us = (double)rd_between(&p->rng, 100 * RD_MS, 20.0 * RD_S);
    if (how < 0.4) {
        rd_wall_set(&other->wall, now_of(p), any_step(p), 1);
    } else if (how < 0.8) { /* a little behind, and set right soon */
        rd_wall_set(&other->wall, now_of(p), -behind_us, 1);
        plan(p, &(event){.kind = E_STEP_BACK, .step_us = behind_us},
             rd_between(&p->rng, 100 * RD_MS, 20.0 * RD_S));
    }
    p->scripts.last_step = now_of(p);
    for (unsigned i = 0; i < p->setup->slots; i++)
        if (p->processes[i].id != 0)
            plan_own(p, E_NOTICE, i, 0,
                     rd_between(&p->rng, RD_MS, (double)left + 5.0 * RD_S));
}

/* Its connection is another one: what it has read before it does not tell. */
static void notice(play *p, unsigned slot)
{
    process *self = &p->processes[slot];
    self->life = p->lives;
    self->ack_names = 0;
}

static void remove_by_hand(play *p)
{
    if (rd_chance(&p->rng, 0.5))
        rd_remove_queue(&p->scripts, &p->redis[p->primary]);
    else
        rd_lose_clock(&p->scripts, &p->redis[p->primary]);
    plan_kind(p, E_REMOVE, 0, rd_between(&p->rng, 10.0 * RD_S, 300.0 * RD_S));
}

/* ---- what happens to machines ---- */

static void boot(play *p, unsigned at, double base_us)
{
    computer *c = &p->computers[at];
    if (c->name == 0)
        c->name = p->setup->clones_s > 0 ? 1 : ++p->names;
    c->boot = p->n_boots++ % RD_BOOTS;
    p->boots[c->boot] = (rd_boot){.name = c->name,
                                  .since = now_of(p),
                                  .base_us = base_us,
                                  .rate = 1 + 200e-6 * (2 * hf_rng_unit(&p->rng) - 1),
                                  .frozen_since = -1};
}

static void wake(play *p, unsigned at)
{
    rd_boot *b = &p->boots[p->computers[at].boot];
    b->paused_us = rd_boot_paused(b, now_of(p));
    b->frozen_since = -1;
}

static void reboot(play *p, unsigned at)
{
    computer *c = &p->computers[at];
    for (unsigned i = 0; i < p->setup->slots; i++)
        if (p->processes[i].id != 0 && p->processes[i].computer == at)
            die(p, i, rd_between(&p->rng, 10 * RD_MS, 3.0 * RD_S));
    wake(p, at);
    c->asleep_until = 0;
    if (!happens(p, RD_SAME_NAME))
        c->name = 0;
    boot(p, at, 0);
    plan_kind(p, E_REBOOT, at, rd_between(&p->rng, 5.0 * RD_S, 2000.0 * RD_S));
}

static void sleep_for_a_while(play *p, unsigned at)
{
    computer *c = &p->computers[at];
    bool pause =
        happens(p, RD_PAUSES) && (!happens(p, RD_SUSPENDS) || rd_chance(&p->rng, 0.5));
    rd_us length = rd_between(&p->rng, 100 * RD_MS, 40.0 * RD_S);
    plan_kind(p, E_SLEEP, at, length + rd_between(&p->rng, RD_S, 300.0 * RD_S));
    c->asleep_until = now_of(p) + length;
    if (pause) {
        rd_boot *b = &p->boots[c->boot];
        if (b->frozen_since < 0)
            b->frozen_since = now_of(p);
        plan(p, &(event){.kind = E_WAKE, .slot = at, .token = c->boot}, length);
    }
}

/* ---- the run ---- */

/* Processes that are stopped, and those of machines that sleep, act later. */
static bool put_off(play *p, event *e)
{
    const process *self = &p->processes[e->slot];
    bool acts = e->kind == E_ASK || e->kind == E_RENEW || e->kind == E_END ||
                e->kind == E_ANSWER || e->kind == E_NOTICE;
    if (!acts)
        return false;
    rd_us until = p->computers[self->computer].asleep_until;
    if (self->stopped_until > until)
        until = self->stopped_until;
    if (until <= now_of(p))
        return false;
    plan(p, e, until - now_of(p) + rd_between(&p->rng, 1, RD_MS));
    return true;
}

static void happen_to_process(play *p, event *e)
{
    process *self = &p->processes[e->slot];
    if (self->id != e->process || put_off(p, e))
        return;
    switch (e->kind) {
    case E_DIE:
        die(p, e->slot,
            (rd_us)(p->setup->gap_s * RD_S) +
                (happens(p, RD_STOPS) ? rd_between(&p->rng, RD_MS, 3.0 * RD_S) : RD_MS));
        break;
    case E_ASK:
        if (now_of(p) >= self->next_ask)
            ask(p, e->slot);
        break;
    case E_RENEW:
        renew(p, e->slot, e->token);
        break;
    case E_END:
        if (hold_of(self, e->token) != NULL)
            give_back(p, e->slot, e->token);
        break;
    case E_NOTICE:
        notice(p, e->slot);
        break;
    default:
        answered(p, &e->message);
        break;
    }
}

static void happen(play *p, event *e)
{
    switch (e->kind) {
    case E_START:
        start(p, e->slot);
        break;
    case E_REQUEST:
        requested(p, e);
        break;
    case E_STEP:
        step(p);
        break;
    case E_STEP_BACK:
        set_by(p, e->step_us);
        break;
    case E_GLITCH:
        glitch(p);
        break;
    case E_REBOOT:
        reboot(p, e->slot);
        break;
    case E_SLEEP:
        sleep_for_a_while(p, e->slot);
        break;
    case E_WAKE:
        if (p->computers[e->slot].boot == e->token)
            wake(p, e->slot);
        break;
    case E_SNAPSHOT:
        snapshot(p);
        break;
    case E_FAILOVER:
        fail_over(p);
        break;
    case E_OLD_ENDS:
        p->redis[e->slot].up = false;
        break;
    case E_REMOVE:
        remove_by_hand(p);
        break;
    default:
        happen_to_process(p, e);
        break;
    }
}

static void begin(play *p)
{
    const rd_setup *setup = p->setup;
    p->lives = 1;
    p->step_most_us = setup->step_s > 0
                          ? setup->step_s * RD_S
                          : (double)rd_between(&p->rng, RD_S, 86400.0 * RD_S);
    p->forward = 0.3 + 0.6 * hf_rng_unit(&p->rng);
    p->redis[0] = (rd_redis){.up = true, .life = 1, .wall = {1.7e15, 0, 1}};
    for (unsigned i = 0; i < setup->machines; i++) {
        boot(p, i, hf_rng_unit(&p->rng) * 20 * RD_S + i * setup->clones_s * RD_S);
        if (happens(p, RD_REBOOTS))
            plan_kind(p, E_REBOOT, i, rd_between(&p->rng, 5.0 * RD_S, 2000.0 * RD_S));
        if (happens(p, RD_SUSPENDS | RD_PAUSES))
            plan_kind(p, E_SLEEP, i, rd_between(&p->rng, RD_S, 300.0 * RD_S));
    }
    for (unsigned i = 0; i < setup->slots; i++)
        plan_kind(p, E_START, i, rd_between(&p->rng, RD_MS, RD_S));
    if (happens(p, RD_STEPS | RD_ONE_STEP))
        plan_kind(p, E_STEP, 0, RD_S);
    if (happens(p, RD_DAY_BACK))
        plan(p, &(event){.kind = E_STEP_BACK, .step_us = -86400.0 * RD_S},
             60 * (rd_us)RD_S);
    if (happens(p, RD_GLITCHES))
        plan_kind(p, E_GLITCH, 0, RD_S);
    if (happens(p, RD_FAILOVERS))
        plan_kind(p, E_SNAPSHOT, 0, 10 * (rd_us)RD_S);
    if (happens(p, RD_REMOVALS) && !setup->locks)
        plan_kind(p, E_REMOVE, 0, 10 * (rd_us)RD_S);
}

rd_figures rd_play(const rd_setup *setup, uint64_t seed, uint64_t takeovers)
{
    enum { STUCK = 3 };
    play *p = calloc(1, sizeof *p);
    if (p == NULL)
        abort();
    p->setup = setup;
    p->rng.state = seed;
    p->events.size = sizeof(event);
    p->scripts =
        (rd_scripts){.rule = setup->rule, .locks = setup->locks, .last_step = -1};
    unsigned patience = setup->patience == 0 ? 100 : setup->patience;
    p->scripts.warm = 3 * rd_longest(&setup->lengths) * RD_MS;
    p->scripts.patience = patience * rd_longest(&setup->lengths) * RD_MS;
    p->scripts.tokens = calloc(RD_TOKENS, sizeof *p->scripts.tokens);
    if (p->scripts.tokens == NULL)
        abort();
    begin(p);
    rd_figures *figures = &p->scripts.figures;
    event e;
    while (figures->takeovers < takeovers && figures->stuck < STUCK &&
           rd_events_pop(&p->events, &e)) {
        p->scripts.now = e.at;
        happen(p, &e);
    }
    rd_figures result = *figures;
    result.process_leases = (double)(now_of(p)) * setup->slots /
                            (double)(rd_longest(&setup->lengths) * RD_MS);
    rd_events_free(&p->events);
    free(p->scripts.tokens);
    free(p);
    return result;
}
