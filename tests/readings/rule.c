/* rule.c - see rule.h. */
#include "tests/readings/rule.h"

#include <stddef.h>
#include <string.h>

/* A process reads 14 times in a lease, but not more often than each 150 ms. Stored
 * readings are at least 1/25 of a lease apart. */
enum { READS = 14, LEAST_MS = 150, APART = 25 };

static int64_t max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t rd_shortest(const rd_lengths *lengths)
{
    int64_t shortest = lengths->ms[0];
    for (unsigned i = 1; i < lengths->n; i++)
        shortest = min(shortest, lengths->ms[i]);
    return shortest;
}

int64_t rd_longest(const rd_lengths *lengths)
{
    int64_t longest = lengths->ms[0];
    for (unsigned i = 1; i < lengths->n; i++)
        longest = max(longest, lengths->ms[i]);
    return longest;
}

/* ---- the clock of a line ---- */

int64_t rd_start(const rd_rule *rule, const rd_clock *line, int64_t now)
{
    return rule->broken == RD_CLOCK_FOLLOWS ? now : max(now, line->now);
}

static bool of_this_line(const rd_rule *rule, const rd_clock *line,
                         const rd_reading *reading)
{
    bool exact = line->queue && rule->broken != RD_BIRTH_ABOVE;
    bool same = exact ? reading->witness == line->birth : reading->witness >= line->birth;
    return same || rule->broken == RD_BIRTH_IGNORED;
}

int64_t rd_next(const rd_rule *rule, const rd_clock *line, const rd_asker *asker,
                int64_t least, const rd_evidence *evidence)
{
    if (rule->broken == RD_CLOCK_FOLLOWS)
        return asker->now;
    int64_t clock = max(asker->now, line->now + 1);
    if (rule->broken != RD_STARTS_AHEAD)
        clock = max(clock, least + 1);
    if (evidence == NULL || evidence->n == 0 || rule->broken == RD_CLOCK_STALLS)
        return clock;
    const rd_reading *last = &evidence->list[evidence->n - 1];
    bool usable = of_this_line(rule, line, last) && asker->t_ms > last->boot_ms;
    return usable ? max(clock, last->clock + asker->t_ms - last->boot_ms) : clock;
}

void rd_move(const rd_rule *rule, rd_clock *line, int64_t clock)
{
    if (rule->broken == RD_CLOCK_FOLLOWS)
        line->now = clock;
    else if (rule->broken != RD_READINGS_MOVE_NOTHING)
        line->now = max(line->now, clock);
}

/* ---- evidence ---- */

static void drop(rd_evidence *evidence, unsigned i)
{
    evidence->n--;
    memmove(&evidence->list[i], &evidence->list[i + 1],
            (evidence->n - i) * sizeof evidence->list[0]);
}

/* The one that is missed least when it is gone: the gap is small for its age. The oldest
 * and the newest stay. */
static unsigned missed_least(const rd_evidence *evidence)
{
    const rd_reading *list = evidence->list;
    int64_t newest_ms = list[evidence->n - 1].boot_ms;
    unsigned found = 1;
    double least = 0;
    for (unsigned i = 1; i + 1 < evidence->n; i++) {
        double gap = (double)(list[i + 1].boot_ms - list[i - 1].boot_ms);
        double share = gap / (double)(newest_ms - list[i].boot_ms + 1);
        if (i == 1 || share < least) {
            found = i;
            least = share;
        }
    }
    return found;
}

/* How many stay before this one: those with a later boot time are of another boot clock,
 * and it proves all that they prove. False: it is not needed. */
static bool place_of(const rd_rule *rule, const rd_evidence *evidence,
                     const rd_reading *reading, int64_t apart_ms, unsigned *n)
{
    const rd_reading *list = evidence->list;
    *n = evidence->n;
    if (*n > 0 && reading->clock <= list[*n - 1].clock)
        return false;
    while (*n > 0 && reading->boot_ms < list[*n - 1].boot_ms &&
           rule->broken != RD_OLD_BOOT_STAYS)
        --*n;
    return *n == 0 || reading->boot_ms >= list[*n - 1].boot_ms + apart_ms;
}

void rd_store(const rd_rule *rule, const rd_clock *line, rd_evidence *evidence,
              const rd_reading *reading, const rd_lengths *lengths, int64_t before)
{
    bool ahead = reading->clock > line->now && rule->broken != RD_READINGS_MOVE_NOTHING;
    unsigned n;
    if (!of_this_line(rule, line, reading) || ahead)
        return;
    for (unsigned i = evidence->n; i > 0; i--)
        if (!of_this_line(rule, line, &evidence->list[i - 1]))
            drop(evidence, i - 1);
    if (!place_of(rule, evidence, reading, rd_shortest(lengths) / APART, &n))
        return;
    evidence->list[n] = *reading;
    evidence->n = n + 1;
    while (evidence->n > 1 && evidence->list[1].clock <= before)
        drop(evidence, 0);
    if (evidence->n > RD_READINGS)
        drop(evidence, rule->broken == RD_FORGETS_MIDDLE ? 1 : missed_least(evidence));
}

static int64_t age_of(const rd_rule *rule, const rd_reading *reading,
                      const rd_asker *asker)
{
    int64_t age = asker->t_ms - reading->boot_ms, wall = asker->now - reading->wall_ms;
    if (rule->guard == RD_BOTH_CLOCKS)
        return min(age, wall);
    if (rule->guard == RD_ROUGH_GUARD && wall < age * 7 / 8 - 1000)
        return -1;
    return age;
}

/* The newest reading that is so old. */
static const rd_reading *ripe(const rd_rule *rule, const rd_clock *line,
                              const rd_evidence *evidence, const rd_asker *asker,
                              int64_t length)
{
    for (unsigned i = evidence->n; i > 0; i--) {
        const rd_reading *reading = &evidence->list[i - 1];
        if (of_this_line(rule, line, reading) && age_of(rule, reading, asker) >= length)
            return reading;
    }
    return NULL;
}

/* ---- the end of a lease ---- */

bool rd_hold_over(const rd_rule *rule, const rd_clock *line, const rd_evidence *evidence,
                  const rd_asker *asker, int64_t start, int64_t length)
{
    if (rule->broken == RD_WALL_ENDS)
        return start + length <= asker->now;
    const rd_reading *found = ripe(rule, line, evidence, asker, length);
    return found != NULL && (found->clock > start || rule->broken == RD_START_IGNORED);
}

bool rd_job_over(const rd_rule *rule, const rd_clock *line, const rd_evidence *evidence,
                 const rd_asker *asker, int64_t end, const rd_lengths *lengths)
{
    if (rule->broken == RD_WALL_ENDS)
        return end <= asker->now;
    int64_t shortest = rd_shortest(lengths);
    for (unsigned i = 0; i < lengths->n; i++) {
        int64_t length = rule->broken == RD_ONE_LENGTH ? shortest : lengths->ms[i];
        const rd_reading *found = ripe(rule, line, evidence, asker, length);
        if (found == NULL)
            return false;
        if (end >= found->clock + length && rule->broken != RD_START_IGNORED)
            return false;
    }
    return true;
}

/* ---- when to ask again ---- */

/* Asked by the same clocks that judge: or an asker that is told 1 ms, and then is told it
 * again, asks a thousand times in a second. */
int64_t rd_hold_after(const rd_rule *rule, const rd_clock *line,
                      const rd_evidence *evidence, const rd_asker *asker, int64_t start,
                      int64_t length)
{
    int64_t after = 0;
    for (unsigned i = 0; i < evidence->n; i++) {
        const rd_reading *reading = &evidence->list[i];
        int64_t left = max(1, length - age_of(rule, reading, asker));
        if (reading->clock > start && of_this_line(rule, line, reading) &&
            (after == 0 || left < after))
            after = left;
    }
    return after;
}

int64_t rd_job_after(const rd_rule *rule, const rd_clock *line,
                     const rd_evidence *evidence, const rd_asker *asker, int64_t end,
                     const rd_lengths *lengths)
{
    int64_t after = 0;
    for (unsigned i = 0; i < lengths->n; i++) {
        int64_t length = lengths->ms[i];
        int64_t one = rd_hold_after(rule, line, evidence, asker, end - length, length);
        if (one == 0)
            return 0;
        after = max(after, one);
    }
    return after;
}

int64_t rd_every_ms(const rd_lengths *lengths)
{
    return max(LEAST_MS, rd_shortest(lengths) / READS);
}
