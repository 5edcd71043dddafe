/* doctor_tell.c - a finding as three lines, or as an object: the fault, its meaning and
 * its repair. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "cli/admin/doctor.h"
#include "cli/out.h"

enum { SHOWN = 20 }; /* of one kind and queue, for people */

typedef struct meaning {
    const char *check, *text;
} meaning;

/* In the order of docs/diagnose.md. */
static const meaning meanings[] = {
    {"eviction", "locks have an end, and are evicted first: a job would run twice"},
    {"memory", "when it is full, new jobs are refused; workers go on and make room"},
    {"role", "a replica accepts no writes: no job can be enqueued or claimed here"},
    {"writes", "producers and workers get an error for all that they send"},
    {"persistence", "Redis may refuse all writes (MISCONF), and loses its data when it "
                    "ends"},
    {"clock", "jobs are due by Redis's clock: a time that is typed here, or read in a "
              "log, differs there"},
    {"registry",
     "no tool lists the queue, and a purge or an audit of all queues skips it"},
    {"type", "every script fails at such a key"},
    {"sets", "the set is the state of a job; in two sets it could run again after its "
             "end"},
    {"record", "the job's data is lost or cannot be read: it cannot run"},
    {"orphan", "the job is in no set, so it never runs; it may have run already"},
    {"lock", "a lock and its job's lease must end together: else the job is taken over "
             "too soon, too late or never"},
    {"fence", "a later run must have a higher fence, or its writes are refused"},
    {"mark", "its job is gone; a new job with the same id would inherit it"},
    {"uses", "scripts ignore features that it does not name: a pause, a limit, a mark"},
    {"unique", "jobs with this key are held up, or the one that follows its holder is"},
    {"parked", "the job never runs: it waits for the end of none"},
    {"kept", "results of done jobs may stay for too long, or be missing"},
    {"key", "it stays in Redis for ever"},
    {"wake", "idle workers may miss a due job until their next check"},
    {"left", "the queue should be idle, and it is not empty"},
    {"unserved", "its jobs do not run"},
    {"worker", "it was killed, has crashed, or cannot reach Redis"},
    {"unreadable", "this part could not be checked"},
};

static const meaning *meaning_of(const char *check)
{
    static const meaning unknown = {"other", ""};
    for (size_t i = 0; i < HF_COUNT(meanings); i++) {
        if (strcmp(meanings[i].check, check) == 0)
            return &meanings[i];
    }
    return &unknown;
}

/* Counts one more of a kind, and answers how many there are now. */
static size_t count(hf_doctor *d, const char *check)
{
    hf_doctor_kind *kind = d->kinds;
    while (kind->check != NULL && strcmp(kind->check, check) != 0)
        kind++;
    HF_ASSERT(kind < d->kinds + HF_DOCTOR_KINDS - 1);
    kind->check = check;
    return ++kind->n;
}

void hf_doctor_begin(hf_doctor *d, const char *queue)
{
    d->queue = queue;
    memset(d->kinds, 0, sizeof d->kinds);
}

static const char *about(const hf_doctor *d)
{
    return d->queue != NULL ? d->queue : d->place != NULL ? d->place : "redis";
}

void hf_doctor_end(hf_doctor *d)
{
    for (const hf_doctor_kind *kind = d->kinds; kind->check != NULL; kind++) {
        if (kind->n > SHOWN && !d->cli->json)
            printf("%s: and %zu more of `%s`\n", about(d), kind->n - SHOWN, kind->check);
    }
    d->queue = NULL;
}

static void print_json(const hf_doctor *d, const hf_finding *f, const meaning *m)
{
    hf_out_json(stdout,
                json_pack("{s:o, s:s, s:o, s:o, s:o, s:s, s:o, s:b, s:b}", "queue",
                          d->queue != NULL ? hf_out_text(d->queue) : json_null(), "check",
                          m->check, "invariant",
                          f->invariant > 0 ? json_integer(f->invariant) : json_null(),
                          "id", hf_out_text(f->id), "text", hf_out_text(f->text), "means",
                          m->text, "repair", hf_out_text(f->repair), "by_hand",
                          (int)f->by_hand, "repaired", (int)f->repaired));
}

/* Text from Redis may contain any bytes. */
static void print_text(const hf_doctor *d, const hf_finding *f, const meaning *m,
                       bool first)
{
    printf("%s: ", about(d));
    if (f->invariant > 0)
        printf("I%d: ", f->invariant);
    if (d->queue == NULL || strcmp(f->id, d->queue) != 0) {
        hf_out_plain(stdout, f->id);
        printf(": ");
    }
    hf_out_plain(stdout, f->text);
    putchar('\n');
    if (first)
        printf("    means: %s\n", m->text);
    printf("    %s: ", f->by_hand    ? "by hand"
                       : f->repaired ? "repaired"
                                     : "would be repaired");
    hf_out_plain(stdout, f->repair);
    putchar('\n');
}

void hf_doctor_tell(hf_doctor *d, const hf_finding *f)
{
    if (d->fix && !f->repaired)
        return; /* reported afterwards, if it is still there */
    const meaning *m = meaning_of(f->check);
    size_t n = count(d, m->check);
    if (f->repaired) {
        d->repaired++;
    } else {
        d->found++;
        d->repairable += !f->by_hand;
    }
    hf_progress_end(&d->progress);
    if (d->cli->json)
        print_json(d, f, m);
    else if (n <= SHOWN)
        print_text(d, f, m, n == 1);
}

void hf_doctor_by_hand(hf_doctor *d, const char *check, const char *id, const char *text,
                       const char *what_to_do)
{
    hf_doctor_tell(d, &(hf_finding){.check = check,
                                    .id = id,
                                    .text = text,
                                    .repair = what_to_do,
                                    .by_hand = true});
}

/* A Redis that refuses, or a node of a cluster that is away. */
hf_err hf_doctor_unreadable(hf_doctor *d, const char *id, hf_err err)
{
    const bool refused = err == HF_REDIS || err == HF_PROTO;
    const bool away =
        err == HF_CONN || err == HF_UNSERVED || err == HF_TIMEOUT || err == HF_UNSURE;
    if (refused)
        hf_doctor_by_hand(d, "unreadable", id, d->cli->detail,
                          "repair the other findings, then check again");
    else if (away && d->cluster)
        hf_doctor_by_hand(d, "unreadable", id,
                          err == HF_UNSERVED ? hf_err_text(err) : d->cli->detail,
                          "wait for the end of a failover or a move, or start the node");
    else
        return err;
    return HF_OK;
}

void hf_doctor_note(const hf_doctor *d, const char *format, ...)
{
    va_list args;
    if (d->cli->json || d->fix)
        return;
    va_start(args, format);
    printf("note: ");
    if (d->place != NULL)
        printf("%s: ", d->place);
    vprintf(format, args);
    putchar('\n');
    va_end(args);
}
