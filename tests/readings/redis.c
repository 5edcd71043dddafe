/* redis.c - see redis.h. */
#include "tests/readings/redis.h"

#include <math.h>
#include <string.h>

static const int64_t keep_ms = 3600000; /* evidence of a queue expires by Redis's clock */
static const double margin = 0.99;      /* of a lease: so long its holder believes */

rd_token *rd_token_of(rd_scripts *scripts, uint64_t token)
{
    rd_token *found = &scripts->tokens[token % RD_TOKENS];
    return found->token == token ? found : NULL;
}

static int64_t next_fence(rd_redis *redis, int64_t now)
{
    int64_t least = now * 1000;
    redis->fence = redis->fence + 1 > least ? redis->fence + 1 : least;
    return redis->fence;
}

/* ---- beliefs ---- */

static void extend(rd_belief *belief, const rd_message *m)
{
    double until_us = m->sent_us + margin * (double)m->length * RD_MS;
    if (belief->boot == NULL || belief->boot != m->boot || until_us > belief->until_us)
        *belief = (rd_belief){m->boot, until_us, m->paused_us};
}

static void renewed(rd_scripts *scripts, rd_hold *hold, const rd_message *m)
{
    extend(&hold->belief, m);
    hold->renewed = hold->watched = scripts->now;
    rd_token *token = rd_token_of(scripts, m->token);
    if (token != NULL)
        extend(&token->belief, m);
}

/* How long it lasts still, in us of its own clock. */
static double left_us(const rd_belief *belief, rd_us now)
{
    return belief->boot == NULL ? 0 : belief->until_us - rd_boot_us(belief->boot, now);
}

static void count_early(rd_scripts *scripts, const rd_hold *hold, const rd_token *token)
{
    rd_figures *f = &scripts->figures;
    const rd_belief *belief = &hold->belief;
    double left = left_us(belief, scripts->now);
    if (left > 0) {
        rd_us paused = rd_boot_paused(belief->boot, scripts->now) - belief->paused_us;
        if (left <= (double)paused * belief->boot->rate) {
            f->early_paused++;
        } else {
            f->early++;
            f->earliest = (rd_us)left > f->earliest ? (rd_us)left : f->earliest;
        }
    } else if (token != NULL && left_us(&token->belief, scripts->now) > 0) {
        f->early_lost++;
    }
}

static void note(double x, double *sum, double *worst)
{
    *sum += x;
    *worst = x > *worst ? x : *worst;
}

static void found_over(rd_scripts *scripts, const rd_hold *hold)
{
    rd_figures *f = &scripts->figures;
    const rd_token *token = rd_token_of(scripts, hold->token);
    double lease_us = (double)hold->length * RD_MS, none = 0;
    f->takeovers++;
    count_early(scripts, hold, token);
    if (scripts->now < scripts->warm)
        return;
    f->timed++;
    note((double)(scripts->now - hold->renewed) / lease_us, &f->renewal_sum,
         &f->renewal_worst);
    if (token != NULL && token->died >= 0) {
        f->deaths++;
        note((double)(scripts->now - token->died) / lease_us, &f->death_sum,
             &f->death_worst);
    }
    rd_us from = hold->renewed > scripts->last_step ? hold->renewed : scripts->last_step;
    if (scripts->last_step >= 0)
        note((double)(scripts->now - from) / lease_us, &none, &f->step_worst);
}

static void watch(rd_scripts *scripts, rd_hold *hold)
{
    if (scripts->now - hold->watched < scripts->patience)
        return;
    hold->watched = scripts->now;
    scripts->figures.stuck++;
}

/* ---- evidence ---- */

static rd_evidence *evidence_of(rd_scripts *scripts, rd_redis *redis, rd_line *line,
                                int machine, int64_t now)
{
    rd_evidence *found = &line->evidence[0];
    for (unsigned i = 0; i < RD_MACHINES; i++) {
        rd_evidence *one = &line->evidence[i];
        if (one->machine == machine) {
            found = one;
            break;
        }
        if (one->asked < found->asked)
            found = one;
    }
    bool expired = !scripts->locks && found->until_ms < now;
    if (found->machine != machine || expired) {
        found->machine = machine;
        found->n = 0;
    }
    found->asked = ++redis->asked;
    found->until_ms = now + keep_ms;
    return found;
}

static rd_asker asker_of(const rd_message *m, int64_t now)
{
    return (rd_asker){.now = now, .t_ms = (int64_t)floor(m->sent_us / RD_MS)};
}

/* ---- leases ---- */

static void begin_lease(rd_scripts *scripts, const rd_line *line, rd_hold *hold,
                        const rd_message *m, int64_t now)
{
    *hold = (rd_hold){.state = RD_HELD,
                      .token = m->token,
                      .owner = m->owner,
                      .shared = m->shared,
                      .start = rd_start(&scripts->rule, &line->clock, now),
                      .length = m->length};
    renewed(scripts, hold, m);
}

static void renew(rd_scripts *scripts, rd_redis *redis, rd_message *m, int64_t now)
{
    unsigned found = 0;
    for (unsigned k = 0; k < RD_LINES; k++)
        for (unsigned i = 0; i < RD_HOLDS; i++) {
            rd_line *line = &redis->lines[k];
            rd_hold *hold = &line->holds[i];
            if (hold->state != RD_HELD || hold->token != m->token)
                continue;
            hold->start = rd_start(&scripts->rule, &line->clock, now);
            if (m->length > hold->length || scripts->rule.broken == RD_RENEWAL_SHORTENS)
                hold->length = m->length;
            renewed(scripts, hold, m);
            found |= 1U << k;
        }
    m->ok = found == m->names;
}

/* ---- a queue ---- */

static void list_length(rd_lengths *lengths, int64_t ms)
{
    for (unsigned i = 0; i < lengths->n; i++)
        if (lengths->ms[i] == ms)
            return;
    if (lengths->n < RD_LENGTHS)
        lengths->ms[lengths->n++] = ms;
}

static void judge_queue(rd_scripts *scripts, rd_redis *redis, rd_message *m,
                        const rd_evidence *evidence, const rd_asker *asker)
{
    rd_line *line = &redis->lines[0];
    for (unsigned i = 0; i < RD_HOLDS; i++) {
        rd_hold *hold = &line->holds[i];
        int64_t end = hold->start + hold->length; /* its score */
        if (hold->state == RD_HELD && rd_job_over(&scripts->rule, &line->clock, evidence,
                                                  asker, end, &redis->lengths)) {
            found_over(scripts, hold);
            hold->state = RD_OVER;
        }
        m->work = m->work || hold->state != RD_HELD;
        if (hold->state != RD_HELD)
            continue;
        watch(scripts, hold);
        int64_t after = rd_job_after(&scripts->rule, &line->clock, evidence, asker, end,
                                     &redis->lengths);
        if (after > 0 && (m->after_ms == 0 || after < m->after_ms))
            m->after_ms = after;
    }
}

/* Readings before this prove nothing of leases that run, or begin next, whatever their
 * lengths. */
static int64_t needless_in_queue(const rd_redis *redis)
{
    const rd_line *line = &redis->lines[0];
    int64_t end = line->clock.now + rd_shortest(&redis->lengths);
    for (unsigned i = 0; i < RD_HOLDS; i++) {
        const rd_hold *hold = &line->holds[i];
        if (hold->state == RD_HELD && hold->start + hold->length < end)
            end = hold->start + hold->length;
    }
    return end - rd_longest(&redis->lengths);
}

/* The latest start that the ends show, if that lease is of the longest length. Where it
 * is shorter, the clock gets there in time. */
static int64_t latest_start_of_queue(const rd_redis *redis)
{
    int64_t latest = 0;
    for (unsigned i = 0; i < RD_HOLDS; i++) {
        const rd_hold *hold = &redis->lines[0].holds[i];
        if (hold->state == RD_HELD && hold->start + hold->length > latest)
            latest = hold->start + hold->length;
    }
    return latest - rd_longest(&redis->lengths);
}

static void read_queue(rd_scripts *scripts, rd_redis *redis, rd_message *m, int64_t now)
{
    rd_line *line = &redis->lines[0];
    rd_evidence *evidence = evidence_of(scripts, redis, line, m->machine, now);
    const rd_asker asker = asker_of(m, now);
    if (line->clock.birth == 0)
        rd_lose_clock(scripts, redis);
    if (m->ack_names != 0)
        rd_store(&scripts->rule, &line->clock, evidence, &m->ack, &redis->lengths,
                 needless_in_queue(redis));
    judge_queue(scripts, redis, m, evidence, &asker);
    int64_t clock = rd_next(&scripts->rule, &line->clock, &asker,
                            latest_start_of_queue(redis), evidence);
    rd_move(&scripts->rule, &line->clock, clock);
    m->reading = (rd_reading){clock, 0, now, line->clock.birth};
    m->ack_names = m->names;
}

/* As many jobs as `names` says. */
static void claim(rd_scripts *scripts, rd_redis *redis, rd_message *m, int64_t now)
{
    rd_line *line = &redis->lines[0];
    unsigned n = 0;
    for (unsigned i = 0; i < RD_HOLDS && n < m->names; i++)
        if (line->holds[i].state != RD_HELD) {
            begin_lease(scripts, line, &line->holds[i], m, now);
            n++;
        }
    m->ok = n > 0;
}

/* ---- locks ---- */

static bool held(const rd_line *line)
{
    for (unsigned i = 0; i < RD_HOLDS; i++)
        if (line->holds[i].state == RD_HELD)
            return true;
    return false;
}

/* A line without holds ends: its keys are gone. */
static void end_line(rd_line *line)
{
    if (held(line))
        return;
    line->clock = (rd_clock){0};
    for (unsigned i = 0; i < RD_MACHINES; i++)
        line->evidence[i].machine = 0;
}

static rd_lengths lengths_of(const rd_line *line)
{
    rd_lengths lengths = {.n = 0};
    for (unsigned i = 0; i < RD_HOLDS; i++)
        if (line->holds[i].state == RD_HELD)
            list_length(&lengths, line->holds[i].length);
    return lengths;
}

static int64_t earliest_start_of_line(const rd_line *line)
{
    int64_t earliest = INT64_MAX;
    for (unsigned i = 0; i < RD_HOLDS; i++)
        if (line->holds[i].state == RD_HELD && line->holds[i].start < earliest)
            earliest = line->holds[i].start;
    return earliest;
}

/* Stores what the asker has read of this line, and takes out what it proves to be over.
 */
static void settle(rd_scripts *scripts, rd_redis *redis, rd_line *line, rd_message *m,
                   bool has_read, int64_t now)
{
    if (line->clock.birth == 0)
        return;
    const rd_asker asker = asker_of(m, now);
    rd_evidence *evidence = evidence_of(scripts, redis, line, m->machine, now);
    const rd_lengths lengths = lengths_of(line);
    if (has_read)
        rd_store(&scripts->rule, &line->clock, evidence, &m->ack, &lengths,
                 earliest_start_of_line(line));
    for (unsigned i = 0; i < RD_HOLDS; i++) {
        rd_hold *hold = &line->holds[i];
        if (hold->state != RD_HELD)
            continue;
        if (rd_hold_over(&scripts->rule, &line->clock, evidence, &asker, hold->start,
                         hold->length)) {
            found_over(scripts, hold);
            hold->state = RD_FREE;
            continue;
        }
        watch(scripts, hold);
        int64_t after = rd_hold_after(&scripts->rule, &line->clock, evidence, &asker,
                                      hold->start, hold->length);
        if (after > 0 && (m->after_ms == 0 || after < m->after_ms))
            m->after_ms = after;
    }
    end_line(line);
}

/* Holds of one owner never exclude each other. NULL: it does not fit. */
static rd_hold *room_for(rd_line *line, const rd_message *m)
{
    rd_hold *room = NULL;
    for (unsigned i = 0; i < RD_HOLDS; i++) {
        rd_hold *hold = &line->holds[i];
        if (hold->state == RD_FREE)
            room = hold;
        else if (hold->owner != m->owner && !(hold->shared && m->shared))
            return NULL;
    }
    return room;
}

/* All these lines get one number, which is past the clocks and the starts of each. */
static void read_lines(rd_scripts *scripts, rd_redis *redis, rd_message *m, int64_t now)
{
    const rd_asker asker = asker_of(m, now);
    int64_t clock = 0;
    m->ack_names = 0;
    for (unsigned k = 0; k < RD_LINES; k++) {
        const rd_line *line = &redis->lines[k];
        if ((m->names & 1U << k) == 0 || line->clock.birth == 0)
            continue;
        int64_t latest = 0;
        for (unsigned i = 0; i < RD_HOLDS; i++)
            if (line->holds[i].state == RD_HELD && line->holds[i].start > latest)
                latest = line->holds[i].start;
        int64_t next = rd_next(&scripts->rule, &line->clock, &asker, latest, NULL);
        clock = next > clock ? next : clock;
        m->ack_names |= 1U << k;
    }
    for (unsigned k = 0; k < RD_LINES; k++)
        if ((m->ack_names & 1U << k) != 0)
            rd_move(&scripts->rule, &redis->lines[k].clock, clock);
    m->reading = (rd_reading){clock, 0, now, redis->fence};
}

static bool knows(const rd_redis *redis, const rd_message *m)
{
    for (unsigned k = 0; k < RD_LINES; k++)
        for (unsigned i = 0; i < RD_HOLDS; i++)
            if (redis->lines[k].holds[i].state == RD_HELD &&
                redis->lines[k].holds[i].token == m->token)
                return true;
    return false;
}

static void acquire(rd_scripts *scripts, rd_redis *redis, rd_message *m, int64_t now)
{
    if (knows(redis, m)) {
        renew(scripts, redis, m, now);
        return;
    }
    rd_hold *rooms[RD_LINES] = {NULL};
    bool fits = true;
    for (unsigned k = 0; k < RD_LINES; k++) {
        if ((m->names & 1U << k) == 0)
            continue;
        rooms[k] = room_for(&redis->lines[k], m);
        fits = fits && rooms[k] != NULL;
    }
    for (unsigned k = 0; fits && k < RD_LINES; k++) {
        rd_line *line = &redis->lines[k];
        if (rooms[k] == NULL)
            continue;
        if (line->clock.birth == 0)
            line->clock.birth = next_fence(redis, now);
        begin_lease(scripts, line, rooms[k], m, now);
    }
    m->ok = fits;
    if (fits)
        (void)next_fence(redis, now);
    else
        read_lines(scripts, redis, m, now);
}

static void settle_all(rd_scripts *scripts, rd_redis *redis, rd_message *m, int64_t now)
{
    unsigned read = m->ack_names;
    for (unsigned k = 0; k < RD_LINES; k++)
        if ((m->names & 1U << k) != 0)
            settle(scripts, redis, &redis->lines[k], m, (read & 1U << k) != 0, now);
    m->ack_names = 0;
}

/* ---- both ---- */

static void release(rd_scripts *scripts, rd_redis *redis, const rd_message *m)
{
    rd_token *token = rd_token_of(scripts, m->token);
    if (token != NULL) /* its holder has given up, whatever comes late */
        token->belief = (rd_belief){0};
    for (unsigned k = 0; k < RD_LINES; k++) {
        rd_line *line = &redis->lines[k];
        for (unsigned i = 0; i < RD_HOLDS; i++)
            if (line->holds[i].state == RD_HELD && line->holds[i].token == m->token)
                line->holds[i].state = RD_FREE;
        if (scripts->locks)
            end_line(line);
    }
}

void rd_execute(rd_scripts *scripts, rd_redis *redis, rd_message *m)
{
    int64_t now = rd_wall_ms(&redis->wall, scripts->now);
    scripts->figures.requests++;
    scripts->figures.reads += m->verb == RD_READ;
    m->ok = m->work = false;
    m->after_ms = 0;
    m->reading = (rd_reading){0};
    if (!scripts->locks && m->length > 0)
        list_length(&redis->lengths, m->length);
    if (m->verb == RD_RENEW)
        renew(scripts, redis, m, now);
    else if (m->verb == RD_RELEASE)
        release(scripts, redis, m);
    else if (!scripts->locks && m->verb == RD_READ)
        read_queue(scripts, redis, m, now);
    else if (!scripts->locks)
        claim(scripts, redis, m, now);
    else
        settle_all(scripts, redis, m, now);
    if (scripts->locks && m->verb == RD_TAKE)
        acquire(scripts, redis, m, now);
}

void rd_remove_queue(const rd_scripts *scripts, rd_redis *redis)
{
    for (unsigned i = 0; i < RD_HOLDS; i++)
        redis->lines[0].holds[i] = (rd_hold){0};
    redis->lengths.n = 0;
    rd_lose_clock(scripts, redis);
}

void rd_lose_clock(const rd_scripts *scripts, rd_redis *redis)
{
    int64_t now = rd_wall_ms(&redis->wall, scripts->now);
    redis->fence = now * 1000 + (int64_t)(redis->asked % 1000); /* us */
    redis->lines[0].clock = (rd_clock){.queue = true, .birth = redis->fence};
}
