/* The rules of what is wrong: each appears at its bound and not before it, with its
 * level, its age and its sentence. Facts alone, without Redis. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "seen/wrong.h"
#include "tests/support/eventually.h"
#include "tests/support/markdown.h"

#define NOW INT64_C(1800000000000)

#define SET(field, text) ((void)snprintf(field, sizeof(field), "%s", text))

enum { S = 1000, MIN = 60 * S, H = 60 * MIN, GIB = 1 << 30 };

static hf_facts facts;
static hf_facts_redis redis;
static hf_facts_worker workers[3];
static hf_facts_queue queue;
static hf_facts_schedule schedule;
static hf_facts_lock lock;
static hf_facts_why oldest, unhandled;
static hf_wrongs wrongs;

/* A system in which all is well, with one of each. */
static int well(void **state)
{
    (void)state;
    redis = (hf_facts_redis){.info = {.role = "master",
                                      .policy = "noeviction",
                                      .aof = true,
                                      .used_memory = 79 * (int64_t)GIB,
                                      .maxmemory = 100 * (int64_t)GIB}};
    for (size_t i = 0; i < HF_COUNT(workers); i++)
        workers[i] = (hf_facts_worker){
            .heard_ms = NOW - 9 * S, .started_ms = NOW - 9 * H, .version = "0.2.0"};
    SET(workers[0].id, "web1-11-00000000000000aa");
    SET(workers[1].id, "web2-880-00000000000000bb");
    SET(workers[2].id, "batch1-77-00000000000000cc");
    queue = (hf_facts_queue){
        .serving = 2, .alive = 2, .stats = {.queue = "mail", .ready = 12}};
    queue.stats.oldest_ready_ms = NOW - 59 * S;
    schedule = (hf_facts_schedule){.id = "nightly", .queue = "mail", .job = "j9"};
    schedule.served = true;
    schedule.next_ms = NOW - 59 * S;
    schedule.last_ms = NOW - 9 * MIN;
    schedule.passed = 1;
    lock = (hf_facts_lock){.name = "deploy/production",
                           .holder = "ci-4-22107-00000000000000dd",
                           .keeper = "ci-4-22107-00000000000000dd",
                           .holders = 1,
                           .held_ms = NOW - 13 * MIN,
                           .ends_ms = NOW + 5 * S,
                           .lease_ms = 10 * S};
    facts = (hf_facts){.now_ms = NOW,
                       .late_ms = MIN,
                       .poison = 3,
                       .redis = &redis,
                       .n_redis = 1,
                       .workers = workers,
                       .n_workers = HF_COUNT(workers),
                       .queues = &queue,
                       .n_queues = 1,
                       .schedules = &schedule,
                       .n_schedules = 1,
                       .locks = &lock,
                       .n_locks = 1};
    oldest = unhandled = (hf_facts_why){
        .why = {HF_JOB_WHY_INIT, .workers = 2, .workers_for_type = 2, .slots = 20,
                .busy = 1, .now_ms = NOW, .before = 3},
        .job = {HF_JOB_INFO_INIT, .id = "j1", .queue = "mail", .type = "mail.send",
                .state = HF_STATE_READY, .due_ms = NOW - 59 * S}};
    return 0;
}

/* ---- what each row changes ---- */

static void redis_away_short(void)
{
    redis.err = HF_CONN;
    redis.since_ms = NOW - 2999;
}
static void redis_away(void)
{
    redis.err = HF_CONN;
    SET(redis.detail, "redis.prod:6379: Connection refused");
    redis.since_ms = NOW - 3000;
}
static void redis_loading(void)
{
    redis.err = HF_LOADING;
    redis.since_ms = NOW;
}
static void redis_forbids(void)
{
    redis.err = HF_AUTH;
    SET(redis.place, "10.0.4.12:6379");
}
static void redis_replica(void)
{
    SET(redis.info.role, "slave");
    redis.refuses = HF_READONLY;
}
static void redis_refuses(void)
{
    redis.refuses = HF_MISCONF;
    SET(redis.refusal, "NOREPLICAS Not enough good replicas to write.");
}
static void redis_evicts(void)
{
    SET(redis.info.policy, "allkeys-lru");
}
static void redis_evicts_locks(void)
{
    SET(redis.info.policy, "volatile-ttl");
}
static void worker_short(void)
{
    workers[1].silent = true;
    workers[1].heard_ms = NOW - 30 * S + 1;
}
static void worker_silent(void)
{
    workers[1].silent = true;
    workers[1].heard_ms = NOW - 41 * S;
}
static void worker_silent_and_the_last_one(void)
{
    worker_silent();
    queue.serving = queue.alive = 0;
    queue.stats.ready = 0;
    queue.stats.oldest_ready_ms = 0;
    queue.stats.running = 2;
}
/* Its only other worker is quiet: what runs there may be that one's. */
static void worker_silent_beside_a_quiet_one(void)
{
    worker_silent_and_the_last_one();
    queue.alive = 1;
}
/* A paused queue takes no job over. */
static void worker_silent_in_a_pause(void)
{
    worker_silent();
    queue.stats.paused = true;
    queue.stats.running = 2;
}
static void worker_hour(void)
{
    workers[1].silent = true;
    workers[1].heard_ms = NOW - H;
}
static void worker_older(void)
{
    workers[1].silent = true;
    workers[1].heard_ms = NOW - H - 1;
}
static void unserved_short(void)
{
    queue.serving = 0;
    queue.stats.oldest_ready_ms = NOW - 15 * S + 1;
}
static void unserved(void)
{
    queue.serving = 0;
    queue.stats.oldest_ready_ms = NOW - 15 * S;
}
/* Its worker was there a moment ago: it is being replaced. */
static void unserved_lately(void)
{
    queue.serving = 0;
    queue.stats.oldest_ready_ms = NOW - 3 * H;
    queue.stats.claimed_ms = NOW - 15 * S + 1;
}
static void unserved_then(void)
{
    queue.serving = 0;
    queue.stats.oldest_ready_ms = NOW - 3 * H;
    queue.stats.claimed_ms = NOW - 15 * S;
}
static void unserved_empty(void)
{
    queue.serving = 0;
    queue.stats.ready = 0;
    queue.stats.oldest_ready_ms = 0;
}
static void unserved_paused(void)
{
    unserved();
    queue.stats.paused = true;
}
static void no_handler_short(void)
{
    queue.unhandled = &unhandled;
    unhandled.why.workers_for_type = 0;
    unhandled.job.refused_ms = NOW - 15 * S + 1;
}
static void no_handler(void)
{
    no_handler_short();
    unhandled.job.refused_ms = NOW - 15 * S;
    SET(unhandled.read.types, "report, image");
}
static void handler_came(void)
{
    no_handler();
    unhandled.why.workers_for_type = 1;
}
static void pool_down(void)
{
    workers[0].pools_down = 2;
    SET(workers[0].pool, "python worker.py");
}
static void pool_of_the_dead(void)
{
    worker_older();
    workers[1].pools_down = 1;
}
static void deaths_few(void)
{
    queue.stats.died_hour = 9;
}
static void deaths(void)
{
    queue.stats.died_hour = 10;
    queue.deaths = (hf_facts_deaths){.first_ms = NOW - 54 * MIN,
                                     .looked = 10,
                                     .alike = 9,
                                     .type = "mail.send",
                                     .error = "connection refused"};
}
static void poison(void)
{
    queue.stats.died_hour = 1;
    queue.deaths = (hf_facts_deaths){.poison = 1,
                                     .poisoned = "j7",
                                     .poison_type = "convert",
                                     .poison_alike = 1,
                                     .poison_late = 1,
                                     .poison_ms = NOW - 4 * MIN,
                                     .looked = 1};
}
/* Its workers have died, and its crashes were counted. */
static void poison_with_workers(void)
{
    poison();
    worker_silent();
    workers[1].of_poison = true;
    queue.deaths.silent = 3;
    SET(queue.deaths.killed, workers[1].id);
    queue.past = (hf_facts_past){.known = true, .crashed = 5};
}
static void poison_of_two_types(void)
{
    poison();
    queue.deaths.poison = 2;
}
/* Its crashes are not among those of the last 10 minutes. */
static void poison_long_ago(void)
{
    poison();
    queue.deaths.poison_late = 0;
    queue.past = (hf_facts_past){.known = true, .crashed = 3};
}
static void poison_and_other_crashes(void)
{
    poison();
    queue.past = (hf_facts_past){.known = true, .crashed = 6};
}
static void failing_few(void)
{
    queue.past = (hf_facts_past){.known = true, .attempts = 19, .failed = 19};
}
static void failing_less(void)
{
    queue.past = (hf_facts_past){.known = true, .attempts = 101, .failed = 20};
}
static void failing(void)
{
    queue.past = (hf_facts_past){.known = true, .attempts = 20, .failed = 4};
}
static void failing_unknown(void)
{
    queue.past = (hf_facts_past){.attempts = 20, .failed = 20, .crashed = 9, .lost = 9};
}
static void late(void)
{
    queue.stats.oldest_ready_ms = NOW - MIN;
}
static void late_and_paused(void)
{
    late();
    queue.stats.paused = true;
    queue.stats.paused_ms = NOW - MIN;
}
static void late_almost_bad(void)
{
    queue.stats.oldest_ready_ms = NOW - 10 * MIN + 1;
}
static void late_bad(void)
{
    queue.stats.oldest_ready_ms = NOW - 10 * MIN;
}
static void late_by_option(void)
{
    facts.late_ms = 5 * S;
    queue.stats.oldest_ready_ms = NOW - 5 * S;
}
static void late_of_nothing(void)
{
    queue.stats.ready = 0;
    queue.stats.oldest_ready_ms = 0;
}
static void rises_short(void)
{
    late();
    queue.past = (hf_facts_past){.known = true, .rises = 4, .rise_per_min = 308};
}
static void grows(void)
{
    queue.stats.oldest_ready_ms = NOW - 432 * S;
    queue.past = (hf_facts_past){
        .known = true, .rises = 5, .rise_per_min = 308, .done_per_min = 6};
}
static void grows_in_time(void)
{
    grows();
    queue.stats.oldest_ready_ms = NOW - 59 * S;
}
static void grows_and_is_bad(void)
{
    grows();
    late_bad();
}
static void crashes_few(void)
{
    queue.past = (hf_facts_past){.known = true, .crashed = 2};
}
static void crashes(void)
{
    queue.past = (hf_facts_past){.known = true, .crashed = 3};
}
static void lost(void)
{
    queue.past = (hf_facts_past){.known = true, .lost = 1};
}
static void tick_late(void)
{
    schedule.next_ms = NOW - MIN;
}
static void tick_late_unserved(void)
{
    tick_late();
    schedule.served = false;
}
static void tick_late_paused(void)
{
    tick_late();
    schedule.paused = true;
    schedule.passed = 9;
}
static void tick_late_in_a_paused_queue(void)
{
    tick_late();
    schedule.queue_paused = true;
}
static void ticks_pass(void)
{
    schedule.passed = 2;
    schedule.skipped = 2;
}
static void ticks_pass_in_a_paused_queue(void)
{
    ticks_pass();
    schedule.queue_paused = true;
}
static void no_next_tick(void)
{
    schedule.next_ms = 0;
}
static void lock_waits_short(void)
{
    lock.waiting = 1;
    lock.waits_ms = NOW - 30 * S + 1;
}
static void lock_waits_a_while(void)
{
    lock.waiting = 1;
    lock.waits_ms = NOW - 30 * S;
}
static void lock_waits_almost_long(void)
{
    lock.waiting = 1;
    lock.waits_ms = NOW - 10 * MIN + 1;
}
static void lock_of_many(void)
{
    lock_waits_a_while();
    lock.holders = 3;
    lock.held_ms = 0; /* other programs do not tell it */
}
static void lock_with_a_dash(void)
{
    lock_of_many();
    SET(lock.name, "-deploy");
}
static void lock_waits(void)
{
    lock.waiting = 3;
    lock.waits_ms = NOW - 10 * MIN;
}
static void lock_over_short(void)
{
    lock.ends_ms = NOW - 20 * S + 1;
}
static void lock_over(void)
{
    lock.ends_ms = NOW - 20 * S;
}
static void lock_of_another_program(void)
{
    lock.lease_ms = 0;
    lock.ends_ms = NOW - H;
}
static void memory_warn(void)
{
    redis.info.used_memory = 80 * (int64_t)GIB;
}
static void memory_almost_bad(void)
{
    redis.info.used_memory = 95 * (int64_t)GIB - 1;
}
static void memory_bad(void)
{
    redis.info.used_memory = 95 * (int64_t)GIB;
}
static void memory_without_limit(void)
{
    redis.info.maxmemory = 0;
}
static void paused_now(void)
{
    queue.stats.paused = true;
    queue.stats.paused_ms = NOW;
    queue.stats.oldest_ready_ms = NOW - 3 * H;
}
static void paused(void)
{
    paused_now();
    queue.stats.paused_ms = NOW - 58 * MIN;
}
static void paused_empty(void)
{
    paused();
    queue.stats.ready = 0;
}
static void paused_by_an_old_version(void)
{
    paused();
    queue.stats.paused_ms = 0;
}
static void versions_short(void)
{
    SET(workers[2].version, "0.1.0");
    workers[0].started_ms = NOW - H + 1;
    workers[1].started_ms = NOW - 20 * MIN;
}
static void versions(void)
{
    versions_short();
    workers[0].started_ms = NOW - H;
}
static void version_of_the_dead(void)
{
    worker_older();
    SET(workers[1].version, "0.1.0");
}
static void no_aof(void)
{
    redis.info.aof = false;
}
/* The first one has an interval, unless a zone is given. */
static void zones_of(const char *first, const char *second, const char *third)
{
    static hf_facts_schedule many[4];
    const char *const zones[] = {"", first, second, third};
    static const char *const ids[] = {"pulse", "nightly", "report", "rates"};
    for (size_t i = 0; i < HF_COUNT(many); i++) {
        many[i] = schedule;
        SET(many[i].id, ids[i]);
        SET(many[i].zone, zones[i]);
    }
    facts.schedules = many;
    facts.n_schedules = HF_COUNT(many);
}
static void two_zones(void)
{
    zones_of("Europe/Berlin", "America/New_York", "");
}
static void one_of_three_zones(void)
{
    zones_of("Europe/Berlin", "America/New_York", "Europe/Berlin");
}
static void zone_of_the_host(void)
{
    two_zones();
    SET(facts.zone, "Europe/Berlin");
}
static void host_in_utc(void)
{
    zones_of("Europe/Berlin", "Europe/Berlin", "");
    SET(facts.zone, "UTC");
}
static void all_but_the_host(void)
{
    zones_of("Europe/Berlin", "Europe/Berlin", "");
    SET(facts.zone, "Asia/Tokyo");
}
static void snapshot(void)
{
    redis.info.aof = false;
    redis.info.rdb = true;
}
static void info_is_forbidden(void)
{
    redis.info = (hf_server_info){.size = sizeof redis.info};
}
static void faults(void)
{
    queue.findings = 3;
    SET(queue.finding, "lost: is in `schedule` and has no record");
}

/* ---- the table ---- */

typedef struct row {
    void (*make)(void);
    const char *found; /* "rule level seconds ago: what", one on a line; "": nothing */
} row;

static const row table[] = {
    {redis_away_short, ""},
    {redis_away, "redis bad 3: Redis does not answer.\n"},
    {redis_loading, "redis bad 0: Redis is loading its data.\n"},
    {redis_forbids, "redis bad -: Redis at 10.0.4.12:6379 refuses this user.\n"},
    {redis_replica, "redis bad -: Redis is a replica.\n"},
    {redis_refuses, "redis bad -: Redis refuses every write.\n"},
    {redis_evicts, "redis bad -: Redis may evict keys.\n"},
    {redis_evicts_locks, "redis bad -: Redis may evict keys.\n"},
    {worker_short, ""},
    {worker_silent,
     "worker_silent bad 41: Worker web2 pid 880 has been silent for 41 s.\n"},
    {worker_hour,
     "worker_silent bad 3600: Worker web2 pid 880 has been silent for 1 h.\n"},
    {worker_older,
     "worker_silent note 3600: Worker web2 pid 880 has been silent for 1 h.\n"},
    {unserved_short, ""},
    {unserved, "unserved bad 15: No live worker serves queue mail; 12 jobs wait.\n"},
    {unserved_lately,
     "late bad 10800: The oldest job of queue mail waits for 3 h; 12 jobs are ready.\n"},
    {unserved_then, "unserved bad 15: No live worker serves queue mail; 12 jobs wait.\n"},
    {unserved_empty, ""},
    {unserved_paused, "paused note -: Queue mail is paused; 12 jobs wait.\n"},
    {no_handler_short, ""},
    {no_handler, "unserved bad 15: No live worker of queue mail has a handler for type "
                 "mail.send.\n"},
    {handler_came, ""},
    {pool_down,
     "pool_down bad -: The pool 'python worker.py' of worker web1 pid 11 is down.\n"},
    {pool_of_the_dead,
     "worker_silent note 3600: Worker web2 pid 880 has been silent for 1 h.\n"},
    {deaths_few, ""},
    {deaths, "deaths bad 3240: 10 jobs of queue mail died in the last hour.\n"},
    {poison, "deaths warn 240: 1 job of type convert of queue mail died as poison in "
             "the last hour.\n"},
    {poison_with_workers,
     "deaths bad 240: 1 job of type convert of queue mail died as poison in the last "
     "hour.\n"},
    {poison_of_two_types,
     "deaths warn 240: 2 jobs of queue mail died as poison in the last hour.\n"},
    {poison_long_ago,
     "deaths warn 240: 1 job of type convert of queue mail died as poison in the last "
     "hour.\n"
     "crashes warn -: 3 runs of queue mail crashed in the last 10 min.\n"},
    {poison_and_other_crashes,
     "deaths warn 240: 1 job of type convert of queue mail died as poison in the last "
     "hour.\n"
     "crashes warn -: 6 runs of queue mail crashed in the last 10 min.\n"},
    {failing_few, ""},
    {failing_less, ""},
    {failing, "failing bad -: 20 % of the attempts of queue mail failed in the last 5 "
              "min.\n"},
    {failing_unknown, ""},
    {late, "late warn 60: The oldest job of queue mail waits for 1 min; 12 jobs are "
           "ready.\n"},
    {late_and_paused,
     "paused note 60: Queue mail has been paused for 1 min; 12 jobs wait.\n"},
    {late_almost_bad, "late warn 599: The oldest job of queue mail waits for 9 min 59 s; "
                      "12 jobs are ready.\n"},
    {late_bad, "late bad 600: The oldest job of queue mail waits for 10 min; 12 jobs are "
               "ready.\n"},
    {late_by_option, "late warn 5: The oldest job of queue mail waits for 5 s; 12 jobs "
                     "are ready.\n"},
    {late_of_nothing, ""},
    {rises_short, "late warn 60: The oldest job of queue mail waits for 1 min; 12 jobs "
                  "are ready.\n"},
    {grows, "grows warn 432: Queue mail grows by 308 a minute; the oldest job waits for "
            "7 min 12 s.\n"},
    {grows_in_time, ""},
    {grows_and_is_bad,
     "late bad 600: The oldest job of queue mail waits for 10 min; 12 jobs are ready.\n"
     "grows warn 600: Queue mail grows by 308 a minute; the oldest job waits for 10 "
     "min.\n"},
    {crashes_few, ""},
    {crashes, "crashes warn -: 3 runs of queue mail crashed in the last 10 min.\n"},
    {lost, "lost warn -: 1 verdict of queue mail came too late in the last 10 min.\n"},
    {tick_late, "schedule warn 60: Schedule nightly of queue mail is 1 min late.\n"},
    {tick_late_unserved,
     "schedule warn 60: Schedule nightly of queue mail is 1 min late.\n"},
    {tick_late_paused, ""},
    {tick_late_in_a_paused_queue, ""},
    {ticks_pass, "schedule warn 540: Schedule nightly of queue mail has made no job at "
                 "its last 2 ticks.\n"},
    {ticks_pass_in_a_paused_queue, ""},
    {no_next_tick, ""},
    {lock_waits_short, ""},
    {lock_waits_a_while,
     "lock note 30: A client has waited for lock deploy/production for 30 s.\n"},
    {lock_waits_almost_long,
     "lock note 599: A client has waited for lock deploy/production for 9 min 59 s.\n"},
    {lock_waits,
     "lock warn 600: A client has waited for lock deploy/production for 10 min.\n"},
    {lock_over_short, ""},
    {lock_over,
     "lock warn 20: The lease of lock deploy/production has been over for 20 s.\n"},
    {lock_of_another_program, ""},
    {memory_warn, "memory warn -: Redis uses 80 % of its memory limit.\n"},
    {memory_almost_bad, "memory warn -: Redis uses 95 % of its memory limit.\n"},
    {memory_bad, "memory bad -: Redis uses 95 % of its memory limit.\n"},
    {memory_without_limit, ""},
    {paused_now, "paused note 0: Queue mail has been paused for 0 s; 12 jobs wait.\n"},
    {paused, "paused note 3480: Queue mail has been paused for 58 min; 12 jobs wait.\n"},
    {paused_empty, ""},
    {paused_by_an_old_version, "paused note -: Queue mail is paused; 12 jobs wait.\n"},
    {versions_short, ""},
    {versions,
     "versions note 3600: Workers of different versions run: 0.2.0 and 0.1.0.\n"},
    {version_of_the_dead,
     "worker_silent note 3600: Worker web2 pid 880 has been silent for 1 h.\n"},
    {two_zones, "zones hint -: 2 schedules are in different time zones: nightly in "
                "Europe/Berlin, report in America/New_York.\n"},
    {one_of_three_zones,
     "zones hint -: 1 schedule is not in the usual time zone: report in "
     "America/New_York.\n"},
    {zone_of_the_host,
     "zones hint -: 1 schedule is not in the usual time zone: report in "
     "America/New_York.\n"},
    {host_in_utc, ""},
    {all_but_the_host, ""},
    {no_aof, "no_aof hint -: Redis keeps nothing on disk.\n"},
    {snapshot, ""},
    {info_is_forbidden, ""},
    {faults, "doctor bad -: The data of queue mail has 3 faults.\n"},
};

static void judge(char *out, size_t size)
{
    size_t len = 0;
    hf_wrong_judge(&facts, &wrongs);
    out[0] = '\0';
    for (size_t i = 0; i < wrongs.n && len < size; i++) {
        const hf_wrong *w = &wrongs.at[i];
        char age[24] = "-";
        if (w->since_ms != 0)
            (void)snprintf(age, sizeof age, "%lld", (long long)((NOW - w->since_ms) / S));
        len += (size_t)snprintf(out + len, size - len, "%s %s %s: %s\n",
                                hf_wrong_rule_word(w->rule),
                                hf_wrong_level_word(w->level), age, w->what);
    }
}

static void each_rule_appears_at_its_bound(void **state)
{
    char found[1024];
    for (size_t i = 0; i < HF_COUNT(table); i++) {
        (void)well(state);
        judge(found, sizeof found);
        assert_string_equal(found, "");
        table[i].make();
        judge(found, sizeof found);
        if (strcmp(found, table[i].found) != 0)
            fail_msg("row %zu: found\n%sexpected\n%s", i, found, table[i].found);
        for (size_t k = 0; k < wrongs.n; k++) {
            assert_true(wrongs.at[k].command[0] != '\0');
            assert_true(wrongs.at[k].page[0] != '\0');
        }
    }
}

static void every_rule_has_a_row(void **state)
{
    (void)state;
    for (hf_wrong_rule rule = 0; rule < HF_WRONG_COUNT; rule++) {
        size_t n = 0;
        char word[32];
        (void)snprintf(word, sizeof word, "%s ", hf_wrong_rule_word(rule));
        for (size_t i = 0; i < HF_COUNT(table); i++)
            n += strncmp(table[i].found, word, strlen(word)) == 0 ? 1 : 0;
        if (n == 0)
            fail_msg("no row makes '%s'", hf_wrong_rule_word(rule));
    }
}

static void every_rule_is_explained(void **state)
{
    (void)state;
    char *text = hf_md_read(HF_TEST_SOURCE "/docs/diagnose.md");
    for (hf_wrong_rule rule = 0; rule < HF_WRONG_COUNT; rule++) {
        char cell[48];
        (void)snprintf(cell, sizeof cell, "\n| `%s` | ", hf_wrong_rule_word(rule));
        if (strstr(text, cell) == NULL)
            fail_msg("docs/diagnose.md does not explain '%s'", hf_wrong_rule_word(rule));
    }
    free(text);
}

/* ---- whys ---- */

static void assert_why(void (*make)(void), const char *why, const char *command)
{
    char found[1024];
    make();
    judge(found, sizeof found);
    assert_true(wrongs.n > 0);
    if (strcmp(wrongs.at[0].why, why) != 0)
        fail_msg("why: found\n%s\nexpected\n%s", wrongs.at[0].why, why);
    assert_string_equal(wrongs.at[0].command, command);
}

static void limit(void)
{
    late();
    queue.oldest = &oldest;
    oldest.why.max_running = oldest.why.running = 20;
    oldest.why.n_holders = 1;
    oldest.why.held[0] = 20;
    SET(oldest.why.holders[0], workers[0].id);
}

static void limit_without_a_slot(void)
{
    limit();
    oldest.why.busy = oldest.why.slots;
}

/* What one shard may run is known, not what all may. */
static void limit_of_shards(void)
{
    limit();
    oldest.read.shards = 4;
}

/* A rate protects another service: no command raises it. */
static void rate(void)
{
    late();
    queue.oldest = &oldest;
    oldest.why.rate_limit = 5;
    oldest.why.rate_per_ms = H;
    oldest.why.next_token_ms = NOW + 1;
}

static void nothing_served(void)
{
    unserved();
    queue.oldest = &oldest;
    oldest.why.workers = 0;
    oldest.why.pools_down = 1;
}

static void memory_full(void)
{
    redis.info.used_memory = redis.info.maxmemory = INT64_C(32) << 20;
    redis.refuses = HF_OOM;
    SET(redis.refusal, "OOM command not allowed when used memory > 'maxmemory'.");
}

static void memory_full_unseen(void)
{
    memory_full();
    redis.info = (hf_server_info){.size = sizeof redis.info};
}

static void no_slot_is_free(void)
{
    late();
    queue.oldest = &oldest;
    oldest.why.before = 0;
    oldest.why.busy = 20;
    SET(oldest.read.longest, "j0");
    oldest.read.longest_ms = NOW - 3 * MIN;
}

static void a_busy_queue_names_the_job_that_runs_longest(void **state)
{
    (void)well(state);
    no_slot_is_free();
    char found[1024];
    judge(found, sizeof found);
    assert_non_null(
        strstr(wrongs.at[0].why, "; job j0 of its queue runs longest, since "));
    assert_non_null(strstr(wrongs.at[0].why,
                           ": 'holdfast job cancel j0 -q mail' ends it if it hangs."));
}

#define FULL                                                                             \
    "It is full: new jobs and ticks of schedules are refused. All else goes on: the "    \
    "jobs "                                                                              \
    "that it has start and end, and make room, and locks are given. Raise maxmemory, "   \
    "or "                                                                                \
    "remove what is not needed ('holdfast dead purge')."

/* One thing, which does not say that no job starts. */
static void a_full_redis_says_what_works_and_what_does_not(void **state)
{
    (void)well(state);
    assert_why(memory_full, "32.00 of 32.00 MiB are used. " FULL, "holdfast queue list");
    assert_int_equal(wrongs.n, 1);
    assert_string_equal(wrongs.at[0].what, "Redis uses 100 % of its memory limit.");
    (void)well(state);
    assert_why(memory_full_unseen, FULL, "holdfast queue list");
    assert_int_equal(wrongs.n, 1);
    assert_int_equal(wrongs.at[0].level, HF_LEVEL_BAD);
    assert_string_equal(wrongs.at[0].what, "Redis is full.");
}

static void a_late_queue_has_the_reason_of_job_why(void **state)
{
    (void)state;
    assert_why(limit,
               "Job j1 (max_running): 20 jobs of queue 'mail' run, of at most 20 (web1 "
               "pid 11: 20): 'holdfast queue limit mail --max-running N' sets another "
               "limit. Its workers have 19 free slots.",
               "holdfast queue limit mail --max-running 39");
    (void)well(state);
    assert_why(limit_without_a_slot,
               "Job j1 (max_running): 20 jobs of queue 'mail' run, of at most 20 (web1 "
               "pid 11: 20): 'holdfast queue limit mail --max-running N' sets another "
               "limit.",
               "holdfast job why j1 -q mail");
    (void)well(state);
    char found[1024];
    for (size_t i = 0; i < 2; i++) {
        (i == 0 ? rate : limit_of_shards)();
        judge(found, sizeof found);
        assert_string_equal(wrongs.at[0].command, "holdfast job why j1 -q mail");
        (void)well(state);
    }

    (void)well(state);
    assert_why(nothing_served,
               "Job j1 (no_worker): no live worker takes jobs of queue 'mail': start "
               "one, or resume a quiet one (kill -CONT PID); 'holdfast worker list' "
               "lists the workers; 1 pool of the live workers of queue 'mail' is down: "
               "the worker's log says why ('a process of a pool does not live').",
               "holdfast worker list");
}

static const struct {
    void (*make)(void);
    const char *why, *command;
} other_whys[] = {
    {redis_away, "redis.prod:6379: Connection refused.", "holdfast doctor"},
    {redis_refuses,
     "No job is accepted, started or ended: NOREPLICAS Not enough good replicas to "
     "write.",
     "holdfast doctor"},
    {worker_silent,
     "It sends no heartbeat, and did not sign off: it was killed, has crashed, or "
     "cannot reach Redis. Its jobs run elsewhere once their leases are over.",
     "holdfast worker list"},
    {worker_silent_beside_a_quiet_one,
     "It sends no heartbeat, and did not sign off: it was killed, has crashed, or "
     "cannot reach Redis. Its jobs run elsewhere once their leases are over and a live "
     "worker takes jobs of their queue.",
     "holdfast worker list"},
    {worker_silent_in_a_pause,
     "It sends no heartbeat, and did not sign off: it was killed, has crashed, or "
     "cannot reach Redis. Its jobs run elsewhere once their leases are over and a live "
     "worker takes jobs of their queue.",
     "holdfast worker list"},
    {failing,
     "4 of 20 failed. A job that failed waits for its next attempt, and is dead after "
     "its last one.",
     "holdfast job list -q mail --state retry"},
    {redis_evicts,
     "Its maxmemory-policy is allkeys-lru. It may evict any key: jobs would be lost, or "
     "run twice.",
     "redis-cli config set maxmemory-policy noeviction"},
    {redis_evicts_locks,
     "Its maxmemory-policy is volatile-ttl. It may evict locks, as they have an end: a "
     "job would run twice.",
     "redis-cli config set maxmemory-policy noeviction"},
    {lock_with_a_dash,
     "ci-4 pid 22107 holds it, with 2 other holds: the command asks for it, and "
     "takes nothing away. 1 client waits.",
     "holdfast lock revoke -- -deploy"},
    {worker_silent_and_the_last_one,
     "It sends no heartbeat, and did not sign off: it was killed, has crashed, or "
     "cannot reach Redis. No live worker serves queue mail: what ran there waits "
     "until one starts.",
     "holdfast worker list"},
    {deaths,
     "9 of 10 that were looked at have the type mail.send and one error: connection "
     "refused.",
     "holdfast dead list -q mail --since 1h"},
    {poison, "Workers or processes died while they ran job j7 of type convert.",
     "holdfast dead list -q mail --type convert --since 1h"},
    {poison_with_workers,
     "Workers or processes died while they ran job j7 of type convert. 3 workers "
     "fell "
     "silent meanwhile: web2 pid 880 and others.",
     "holdfast dead list -q mail --type convert --since 1h"},
    {tick_late_unserved,
     "A worker decides on each tick, and no live worker serves its queue.",
     "holdfast cron show nightly -q mail"},
    {ticks_pass,
     "Ticks were skipped because job j9, of the tick before, had not ended, or were "
     "missed.",
     "holdfast cron show nightly -q mail"},
    {lost,
     "The lease was over by then: a worker was stopped, or could not reach Redis. Such a "
     "verdict is refused: the job has run again or will, unless it is dead or was "
     "removed.",
     "holdfast queue show mail"},
    {lock_waits,
     "ci-4 pid 22107 has held it for 13 min: the command asks for it, and takes "
     "nothing away. 3 clients wait.",
     "holdfast lock revoke deploy/production"},
    {lock_of_many,
     "ci-4 pid 22107 holds it, with 2 other holds: the command asks for it, and "
     "takes nothing away. 1 client waits.",
     "holdfast lock revoke deploy/production"},
    {lock_over,
     "ci-4 pid 22107 has not renewed it, and no other client has proved that it is "
     "over.",
     "holdfast lock show deploy/production"},
    {paused, "", "holdfast queue resume mail"},
    {one_of_three_zones,
     "The usual one here is Europe/Berlin. A schedule's hours are those of its zone: "
     "give it another one if that is not meant.",
     "holdfast cron show report -q mail"},
    {faults, "lost: is in `schedule` and has no record.", "holdfast doctor -q mail"},
};

static void the_other_whys_name_what_is_known(void **state)
{
    for (size_t i = 0; i < HF_COUNT(other_whys); i++) {
        (void)well(state);
        assert_why(other_whys[i].make, other_whys[i].why, other_whys[i].command);
    }
}

/* It was retried when it was looked at, and its workers had left. */
static void retried_without_a_worker(void)
{
    no_handler();
    unhandled.why.workers = 0;
    unhandled.job.state = HF_STATE_RETRY;
    unhandled.job.attempts = 1;
    unhandled.job.due_ms = NOW + MIN;
}

static void where_no_worker_lives_one_has_to_start(void **state)
{
    (void)state;
    retried_without_a_worker();
    hf_wrong_judge(&facts, &wrongs);
    assert_int_equal(wrongs.n, 1);
    assert_non_null(strstr(wrongs.at[0].why, "(no_worker): no live worker takes jobs of "
                                             "queue 'mail': start one"));
    assert_null(strstr(wrongs.at[0].why, "job retry"));
}

/* ---- the longest names ---- */

static void fill(char *out, size_t size, char c)
{
    memset(out, c, size - 1);
    out[size - 1] = '\0';
}

#define FILL(field, c) fill(field, sizeof(field), c)

static void lengthen_why(hf_facts_why *of)
{
    FILL(of->job.id, 'j');
    FILL(of->job.queue, 'q');
    FILL(of->job.type, 't');
    FILL(of->job.error, 'e');
    FILL(of->read.types, 'y');
    of->why.n_holders = HF_COUNT(of->why.holders);
    for (size_t i = 0; i < of->why.n_holders; i++)
        FILL(of->why.holders[i], 'w');
    of->why.pools_down = of->why.before = INT64_MAX;
    if (of->read.longest[0] != '\0')
        FILL(of->read.longest, 'l');
}

static void lengthen(void)
{
    FILL(queue.stats.queue, 'q');
    lengthen_why(&oldest);
    lengthen_why(&unhandled);
    for (size_t i = 0; i < HF_COUNT(workers); i++) {
        FILL(workers[i].id, 'w');
        FILL(workers[i].pool, 'p');
    }
    FILL(queue.deaths.type, 't');
    FILL(queue.deaths.poisoned, 'j');
    FILL(queue.deaths.poison_type, 't');
    FILL(queue.deaths.killed, 'w');
    FILL(schedule.id, 's');
    FILL(schedule.queue, 'q');
    FILL(schedule.job, 'j');
    FILL(lock.name, 'n');
    FILL(lock.holder, 'h');
    FILL(lock.keeper, 'h');
    FILL(redis.place, 'r');
}

static void assert_whole(void (*make)(void))
{
    (void)well(NULL);
    make();
    lengthen();
    hf_wrong_judge(&facts, &wrongs);
    for (size_t i = 0; i < wrongs.n; i++) {
        const hf_wrong *w = &wrongs.at[i];
        assert_true(w->what[strlen(w->what) - 1] == '.');
        assert_true(w->why[0] == '\0' || w->why[strlen(w->why) - 1] == '.');
        assert_null(strstr(w->what, "..."));
        assert_null(strstr(w->why, "..."));
        assert_true(strncmp(w->command, "holdfast ", 9) == 0 ||
                    strncmp(w->command, "redis-cli ", 10) == 0);
        assert_true(strlen(w->command) + 1 < sizeof w->command);
        assert_true(strlen(w->page) + 1 < sizeof w->page);
    }
}

static void late_without_a_handler(void)
{
    late();
    no_handler();
    queue.oldest = &oldest;
    oldest.why.workers_for_type = 0;
}

static void texts_are_whole_with_the_longest_names(void **state)
{
    static void (*const others[])(void) = {
        limit,           nothing_served,           no_slot_is_free,       rate,
        limit_of_shards, retried_without_a_worker, late_without_a_handler};
    (void)state;
    for (size_t i = 0; i < HF_COUNT(table); i++)
        assert_whole(table[i].make);
    for (size_t i = 0; i < HF_COUNT(other_whys); i++)
        assert_whole(other_whys[i].make);
    for (size_t i = 0; i < HF_COUNT(others); i++)
        assert_whole(others[i]);
}

/* ---- the list ---- */

static void the_worst_comes_first_and_then_the_oldest(void **state)
{
    char found[2048];
    (void)state;
    faults(); /* bad, of no known age */
    worker_silent();
    paused_now();
    tick_late();
    schedule.next_ms = NOW - 2 * MIN;
    no_aof();
    deaths();
    judge(found, sizeof found);
    assert_string_equal(
        found, "deaths bad 3240: 10 jobs of queue mail died in the last hour.\n"
               "worker_silent bad 41: Worker web2 pid 880 has been silent for 41 s.\n"
               "doctor bad -: The data of queue mail has 3 faults.\n"
               "schedule warn 120: Schedule nightly of queue mail is 2 min late.\n"
               "paused note 0: Queue mail has been paused for 0 s; 12 jobs wait.\n"
               "no_aof hint -: Redis keeps nothing on disk.\n");
    assert_int_equal(hf_wrong_things(&wrongs), 4);
    assert_int_equal(hf_wrong_all(&wrongs), 6);
}

static void of_many_the_worst_twenty_stay_and_all_are_counted(void **state)
{
    enum { MANY = 60 };
    static hf_facts_worker many[MANY];
    (void)state;
    no_aof();
    for (int i = 0; i < MANY; i++) {
        many[i] = workers[0];
        many[i].silent = true;
        many[i].heard_ms = NOW - (i % 2 == 0 ? H : 0) - (31 + i) * S;
    }
    facts.workers = many;
    facts.n_workers = MANY;
    tick_late();
    hf_wrong_judge(&facts, &wrongs);
    assert_int_equal(wrongs.n, HF_WRONG_MAX);
    assert_int_equal(wrongs.levels[HF_LEVEL_BAD], MANY / 2);
    assert_int_equal(wrongs.levels[HF_LEVEL_NOTE], MANY / 2);
    assert_int_equal(wrongs.levels[HF_LEVEL_HINT], 1);
    assert_int_equal(hf_wrong_things(&wrongs), MANY / 2 + 1);
    for (size_t i = 0; i < wrongs.n; i++) {
        assert_int_equal(wrongs.at[i].level, HF_LEVEL_BAD);
        assert_true(wrongs.at[i].since_ms == NOW - (31 + 59 - 2 * (int64_t)i) * S);
    }
}

static void assert_verdict(const char *word, const char *sentence)
{
    char text[HF_VERDICT_SIZE];
    hf_wrong_judge(&facts, &wrongs);
    assert_string_equal(hf_wrong_verdict_word(&wrongs), word);
    assert_string_equal(hf_wrong_verdict(&wrongs, text), sentence);
}

static void the_verdict_counts_things_or_else_notes_and_no_hints(void **state)
{
    (void)state;
    assert_verdict("good", "All is well");
    no_aof();
    assert_verdict("good", "All is well");
    paused_now();
    assert_verdict("note", "Nothing is wrong; 1 thing to note");
    worker_older();
    assert_verdict("note", "Nothing is wrong; 2 things to note");
    queue.stats.paused = false;
    late();
    assert_verdict("warn", "1 thing is wrong");
    worker_silent();
    assert_verdict("bad", "2 things are wrong");
}

static void a_text_of_another_hand_commands_no_terminal(void **state)
{
    (void)state;
    deaths();
    SET(queue.deaths.error, "a\033[31mb\nc");
    hf_wrong_judge(&facts, &wrongs);
    assert_null(strchr(wrongs.at[0].why, '\033'));
    assert_null(strchr(wrongs.at[0].why, '\n'));
}

#define TEST(name) cmocka_unit_test_setup(name, well)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_rule_appears_at_its_bound),
        TEST(every_rule_has_a_row),
        TEST(every_rule_is_explained),
        TEST(a_late_queue_has_the_reason_of_job_why),
        TEST(a_busy_queue_names_the_job_that_runs_longest),
        TEST(a_full_redis_says_what_works_and_what_does_not),
        TEST(the_other_whys_name_what_is_known),
        TEST(where_no_worker_lives_one_has_to_start),
        TEST(texts_are_whole_with_the_longest_names),
        TEST(the_worst_comes_first_and_then_the_oldest),
        TEST(of_many_the_worst_twenty_stay_and_all_are_counted),
        TEST(the_verdict_counts_things_or_else_notes_and_no_hints),
        TEST(a_text_of_another_hand_commands_no_terminal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
