/* history.c - see history.h. */
#include "tests/history/history.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "tests/history/line.h"
#include "tests/history/parts.h"

enum { SERVERS_MAX = 8 };

typedef struct guarded_file {
    uint64_t value, fence;
    char owner[HF_LOCK_OWNER_SIZE];
} guarded_file;

struct hf_history {
    hf_players players;
    hf_server *servers[SERVERS_MAX];
    size_t n_servers;
    guarded_file file;
    hf_report report; /* of what is checked while it is read */
};

/* ---- the report ---- */

const char *hf_rule_name(hf_rule rule)
{
    static const char *const names[] = {"S1",  "S2",  "S3", "S4", "S7",
                                        "S11", "S12", "O1", "O2", "O3"};
    return names[rule];
}

void hf_broken(hf_report *r, hf_rule rule, const char *format, ...)
{
    va_list args;
    if (r->broken[rule]++ > 0)
        return;
    va_start(args, format);
    (void)vsnprintf(r->first[rule], sizeof r->first[rule], format, args);
    va_end(args);
}

unsigned hf_report_total(const hf_report *r)
{
    unsigned n = 0;
    for (int rule = 0; rule < HF_RULES; rule++)
        n += r->broken[rule];
    return n;
}

void hf_report_print(const hf_report *r, FILE *to)
{
    (void)fprintf(
        to,
        "players: %zu asked, %zu acquired, %zu refused, %zu lost, %zu released, "
        "%zu killed\n",
        r->asked, r->acquired, r->refused, r->lost, r->released, r->killed);
    (void)fprintf(to,
                  "heard: %zu grants undisturbed, the last after %" PRIu64 " us, %zu "
                  "late with the machine\n",
                  r->heard, r->heard_last_us, r->heard_late);
    (void)fprintf(
        to,
        "taken on purpose: %zu times; %zu overlaps after it, the longest %" PRIu64
        " ms\n",
        r->took, r->excused, r->excused_longest_ns / HF_MS_NS);
    (void)fprintf(to,
                  "server: %zu grants, %zu after waiting, %zu messages, %zu fences "
                  "checked\n",
                  r->grants, r->waited, r->messages, r->guards);
    (void)fprintf(to, "file: %zu writes, %zu refused\n", r->writes, r->writes_refused);
    for (int rule = 0; rule < HF_RULES; rule++)
        if (r->broken[rule] > 0)
            (void)fprintf(to, "%s broken %u times: %s\n", hf_rule_name((hf_rule)rule),
                          r->broken[rule], r->first[rule]);
}

/* ---- reading ---- */

hf_history *hf_history_new(void)
{
    hf_history *h = calloc(1, sizeof *h);
    HF_ASSERT(h != NULL);
    return h;
}

void hf_history_free(hf_history *h)
{
    hf_players_done(&h->players);
    for (size_t i = 0; i < h->n_servers; i++)
        hf_server_free(h->servers[i]);
    free(h);
}

void hf_history_players(hf_history *h, const char *path)
{
    hf_lines_read(path, hf_players_line, &h->players);
}

void hf_history_server(hf_history *h, const char *path)
{
    HF_ASSERT(h->n_servers < SERVERS_MAX);
    hf_server *s = h->servers[h->n_servers++] = hf_server_new();
    hf_lines_read(path, hf_server_line, s);
}

/* The lines stand in the order of the writes: each adds one to what it read. */
static void read_write(const char *line, void *arg)
{
    hf_history *h = arg;
    guarded_file *f = &h->file;
    char owner[HF_LOCK_OWNER_SIZE];
    uint64_t fence = hf_line_number(line, "fence");
    uint64_t value = hf_line_number(line, "value");
    (void)hf_line_text(line, "owner", owner, sizeof owner);
    if (hf_line_is(line, "ev", "refused")) {
        h->report.writes_refused++;
        return;
    }
    if (fence < f->fence)
        hf_broken(&h->report, RULE_S11,
                  "write %" PRIu64 " of %s: fence %" PRIu64 " after %" PRIu64, value,
                  owner, fence, f->fence);
    if (fence == f->fence && strcmp(owner, f->owner) != 0)
        hf_broken(&h->report, RULE_S11,
                  "write %" PRIu64 ": fence %" PRIu64 " of %s was that of %s", value,
                  fence, owner, f->owner);
    f->fence = fence;
    (void)snprintf(f->owner, sizeof f->owner, "%s", owner);
    if (hf_line_is(line, "ev", "seen"))
        return;
    if (value != f->value + 1)
        hf_broken(&h->report, RULE_S1,
                  "a write was lost: %s wrote %" PRIu64 " after %" PRIu64, owner, value,
                  f->value);
    f->value = value;
    h->report.writes++;
}

void hf_history_file(hf_history *h, const char *path)
{
    h->file = (guarded_file){.value = 0};
    hf_lines_read(path, read_write, h);
}

/* ---- all of it ---- */

static bool granted_somewhere(const hf_history *h, const char *name, const hf_hold *hold)
{
    for (size_t i = 0; i < h->n_servers; i++)
        if (hf_server_granted(h->servers[i], name, hold->fence, hold->owner))
            return true;
    return false;
}

/* What players were told is what the servers did. */
static void compare(const hf_history *h, hf_report *r)
{
    for (size_t i = 0; h->n_servers > 0 && i < h->players.n_holds; i++) {
        const hf_hold *hold = &h->players.holds[i];
        char names[HF_NAMES_TEXT], *rest = names;
        if (!hold->had)
            continue;
        (void)snprintf(names, sizeof names, "%s", hold->names);
        for (char *name; (name = strtok_r(rest, ",", &rest)) != NULL;)
            if (!granted_somewhere(h, name, hold))
                hf_broken(r, RULE_S3,
                          "%s: %s was told fence %" PRIu64 ", which no server gave it",
                          name, hold->owner, hold->fence);
    }
}

void hf_history_check(hf_history *h, hf_report *out)
{
    *out = h->report;
    hf_check_belief(&h->players, out);
    hf_check_verdicts(&h->players, out);
    for (size_t i = 0; i < h->n_servers; i++)
        hf_server_check(h->servers[i], out);
    compare(h, out);
}
