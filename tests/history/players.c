/* players.c - reads what processes wrote of their locks. See history.h and record.c. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/history/line.h"
#include "tests/history/parts.h"

/* The acquisition that a line is about; NULL: its beginning is not there. */
static hf_hold *hold_of(hf_players *p, const char *line, bool begins)
{
    char key[64];
    bool is_new;
    size_t number;
    (void)snprintf(key, sizeof key, "%" PRIu64 " %" PRIu64,
                   hf_line_number(line, "player"), hf_line_number(line, "id"));
    if (!begins)
        return hf_table_find(&p->ids, key, &number) ? &p->holds[number] : NULL;
    number = hf_table_put(&p->ids, key, &is_new);
    p->holds = hf_array_fit(p->holds, number, &p->holds_capacity, sizeof *p->holds);
    p->n_holds = p->ids.n;
    return &p->holds[number];
}

static void begin(hf_players *p, const char *line)
{
    hf_hold *h = hold_of(p, line, true);
    char mode[4];
    h->player = (unsigned)hf_line_number(line, "player");
    h->id = hf_line_number(line, "id");
    h->asked = hf_line_number(line, "t");
    h->permits = (unsigned)hf_line_number(line, "permits");
    h->limit = (unsigned)hf_line_number(line, "limit");
    h->lease_ms = (unsigned)hf_line_number(line, "lease");
    h->mode = hf_line_text(line, "mode", mode, sizeof mode)[0];
    (void)hf_line_text(line, "names", h->names, sizeof h->names);
    (void)hf_line_text(line, "owner", h->owner, sizeof h->owner);
}

static void answered(hf_hold *h, const char *line)
{
    h->answered = hf_line_number(line, "t");
    (void)hf_line_text(line, "err", h->err, sizeof h->err);
    h->had = strcmp(h->err, "HF_OK") == 0;
    if (!h->had)
        return;
    h->until = hf_line_number(line, "until");
    h->fence = hf_line_number(line, "fence");
    h->wall_us = hf_line_number(line, "wall");
    (void)hf_line_text(line, "owner", h->owner, sizeof h->owner);
}

static void read_hold(hf_hold *h, const char *ev, const char *line)
{
    uint64_t t = hf_line_number(line, "t");
    if (strcmp(ev, "acquired") == 0) {
        answered(h, line);
    } else if (strcmp(ev, "until") == 0) {
        uint64_t until = hf_line_number(line, "until");
        h->until = until > h->until ? until : h->until;
    } else if (strcmp(ev, "lost") == 0) {
        h->lost = t;
        (void)hf_line_text(line, "why", h->why, sizeof h->why);
    } else if (strcmp(ev, "downgrade") == 0) {
        h->downgraded = t;
    } else if (strcmp(ev, "release") == 0) {
        h->release = t;
    } else if (strcmp(ev, "released") == 0) {
        h->released = t;
        (void)hf_line_text(line, "result", h->result, sizeof h->result);
    }
}

void hf_players_line(const char *line, void *players)
{
    hf_players *p = players;
    char ev[16];
    (void)hf_line_text(line, "ev", ev, sizeof ev);
    if (strcmp(ev, "acquire") == 0) {
        begin(p, line);
    } else if (strcmp(ev, "killed") == 0) {
        size_t player = hf_line_number(line, "player");
        p->killed =
            hf_array_fit(p->killed, player, &p->killed_capacity, sizeof *p->killed);
        p->killed[player] = hf_line_number(line, "t");
    } else if (strcmp(ev, "took") == 0) {
        p->took = hf_array_fit(p->took, p->n_took, &p->took_capacity, sizeof *p->took);
        hf_took *took = &p->took[p->n_took++];
        (void)hf_line_text(line, "name", took->name, sizeof took->name);
        took->from = hf_line_number(line, "from");
        took->to = hf_line_number(line, "to");
    } else if (strcmp(ev, "disturbed") == 0) {
        p->disturbed = hf_array_fit(p->disturbed, p->n_disturbed, &p->disturbed_capacity,
                                    sizeof *p->disturbed);
        p->disturbed[p->n_disturbed++] =
            (hf_disturbed){.player = (unsigned)hf_line_number(line, "player"),
                           .from = hf_line_number(line, "from"),
                           .to = hf_line_number(line, "to")};
    } else if (strcmp(ev, "late") == 0) {
        p->late = hf_array_fit(p->late, p->n_late, &p->late_capacity, sizeof *p->late);
        hf_late *late = &p->late[p->n_late++];
        *late = (hf_late){.timer = (unsigned)hf_line_number(line, "timer"),
                          .from = hf_line_number(line, "from"),
                          .to = hf_line_number(line, "to")};
        if (late->timer >= p->timers)
            p->timers = late->timer + 1;
    } else {
        hf_hold *h = hold_of(p, line, false);
        if (h != NULL)
            read_hold(h, ev, line);
    }
}

void hf_players_done(hf_players *p)
{
    free(p->holds);
    free(p->took);
    free(p->disturbed);
    free(p->late);
    free(p->killed);
    hf_table_done(&p->ids);
}

uint64_t hf_hold_end(const hf_players *p, const hf_hold *h)
{
    uint64_t end = h->until;
    const uint64_t ends[] = {h->lost, h->release,
                             h->player < p->killed_capacity ? p->killed[h->player] : 0};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (ends[i] != 0 && ends[i] < end)
            end = ends[i];
    return end;
}

const hf_took *hf_players_took(const hf_players *p, const char *name, uint64_t from,
                               uint64_t to)
{
    for (size_t i = p->n_took; i > 0; i--) {
        const hf_took *took = &p->took[i - 1];
        bool same = strcmp(took->name, "*") == 0 || strcmp(took->name, name) == 0;
        if (same && took->to >= from && took->from <= to)
            return took;
    }
    return NULL;
}
