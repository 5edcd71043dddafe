/* notes.c - worker/run/notes.h, and the calls of handlers that set notes. */
#include "worker/run/notes.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/text.h"
#include "redis/args.h"
#include "worker/program/said.h"
#include "worker/run/run.h"
#include "worker/worker.h"

enum {
    TAKEN_MAX = 512 << 10,               /* bytes of one renewal */
    HEAD_MAX = 2 * (HF_DECIMAL_MAX + 1), /* of one text: its numbers */
    PERCENT_MAX = 100,
    KINDS = 3,
    HURRY_MS = 100, /* between two renewals that checkpoints ask for */
    SOON_MS = 1000  /* until one that a log asks for, or further progress */
};

struct hf_notes {
    uint64_t number;                             /* of the last change of any of them */
    uint64_t reported;                           /* changes up to this one are in Redis */
    uint64_t asked;                              /* the last change that a renewal took */
    uint64_t progress_at, checkpoint_at, log_at; /* their last changes; 0: never set */
    uint64_t progress_ns; /* when progress asked for a renewal at once */
    uint32_t percent;
    char note[HF_NOTE_MAX + 1];
    size_t checkpoint_len;
    char checkpoint[HF_CHECKPOINT_MAX];
    uint64_t log_bytes;    /* in all */
    uint64_t log_reported; /* this many of them are in Redis */
    uint64_t log_asked;    /* of the last renewal */
    bool has_log;
    char log[]; /* if it has one: a ring of its last HF_RUN_LOG_MAX bytes */
};

/* Under note_lock. NULL: out of memory. */
static hf_notes *marks_of(hf_run *run, bool with_log)
{
    hf_notes *m = run->notes;
    bool had_log = m != NULL && m->has_log;
    if (m != NULL && (had_log || !with_log))
        return m;
    hf_notes *made = realloc(m, sizeof *m + (with_log ? HF_RUN_LOG_MAX : 0));
    if (made == NULL)
        return NULL;
    if (m == NULL)
        memset(made, 0, sizeof *made);
    made->has_log = with_log;
    run->notes = made;
    return made;
}

/* The renewal that was asked for last is taken if it is still to come. */
static uint64_t next_hurry(uint64_t *hurry_ns, uint64_t wait_ns, uint64_t gap_ns)
{
    uint64_t now = hf_boot_ns();
    if (*hurry_ns > now)
        return *hurry_ns;
    uint64_t earliest = *hurry_ns + gap_ns;
    *hurry_ns = earliest > now + wait_ns ? earliest : now + wait_ns;
    return *hurry_ns;
}

/* The lease is renewed at once (all of the worker at most every 100 ms), or within a
 * second. */
static void hurry(hf_run *run, bool at_once)
{
    hf_worker *w = run->worker;
    pthread_mutex_lock(&w->note_lock);
    uint64_t at_ns = at_once ? next_hurry(&w->hurry_ns, 0, HURRY_MS * HF_MS_NS)
                             : next_hurry(&w->slow_hurry_ns, SOON_MS * HF_MS_NS, 0);
    pthread_mutex_unlock(&w->note_lock);
    if (run->lease != NULL)
        hf_watchdog_hurry(w->watchdog, run->lease, at_ns);
}

/* One line, cut between two characters. */
static void copy_note(char out[HF_NOTE_MAX + 1], const char *note)
{
    size_t len = strnlen(note, HF_NOTE_MAX + 1);
    if (len > HF_NOTE_MAX)
        for (len = HF_NOTE_MAX; len > 0 && ((unsigned char)note[len] & 0xc0) == 0x80;)
            len--;
    memcpy(out, note, len);
    out[len] = '\0';
    hf_text_plain(out);
}

/* ---- for handlers ---- */

void hf_notes_progress(hf_run *run, const uint32_t *percent, const char *note)
{
    pthread_mutex_t *lock = &run->worker->note_lock;
    pthread_mutex_lock(lock);
    hf_notes *m = marks_of(run, false);
    bool same = m == NULL ||
                (m->progress_at != 0 && (percent == NULL || m->percent == *percent) &&
                 (note == NULL || strcmp(m->note, note) == 0));
    bool at_once = false;
    if (!same) {
        uint64_t now = hf_boot_ns();
        at_once = now - m->progress_ns >= SOON_MS * HF_MS_NS;
        m->progress_ns = at_once ? now : m->progress_ns;
        m->progress_at = ++m->number;
        if (percent != NULL)
            m->percent = *percent;
        if (note != NULL)
            copy_note(m->note, note);
    }
    pthread_mutex_unlock(lock);
    if (!same)
        hurry(run, at_once); /* the first change is shown soon, and then one a second */
}

void hf_run_set_progress(hf_run *run, uint32_t percent, const char *note)
{
    percent = percent < PERCENT_MAX ? percent : PERCENT_MAX;
    hf_notes_progress(run, &percent, note);
}

hf_err hf_run_set_checkpoint(hf_run *run, const void *bytes, size_t len)
{
    pthread_mutex_t *lock = &run->worker->note_lock;
    if (len > HF_CHECKPOINT_MAX)
        return HF_TOOBIG;
    pthread_mutex_lock(lock);
    hf_notes *m = marks_of(run, false);
    bool same = m != NULL && m->checkpoint_at != 0 && m->checkpoint_len == len &&
                (len == 0 || memcmp(m->checkpoint, bytes, len) == 0);
    if (m != NULL && !same) {
        m->checkpoint_at = ++m->number;
        m->checkpoint_len = len;
        if (len > 0)
            memcpy(m->checkpoint, bytes, len);
    }
    pthread_mutex_unlock(lock);
    if (m == NULL)
        return HF_NOMEM;
    if (!same)
        hurry(run, true);
    return HF_OK;
}

const void *hf_run_checkpoint(const hf_run *run, size_t *len)
{
    if (len != NULL)
        *len = run->checkpoint.len;
    return run->checkpoint.len == 0 ? "" : run->checkpoint.ptr;
}

/* Under note_lock. */
static void put_log(hf_notes *m, const char *bytes, size_t len)
{
    m->log_bytes += len > HF_RUN_LOG_MAX ? len - HF_RUN_LOG_MAX : 0;
    if (len > HF_RUN_LOG_MAX) {
        bytes += len - HF_RUN_LOG_MAX;
        len = HF_RUN_LOG_MAX;
    }
    size_t at = (size_t)(m->log_bytes % HF_RUN_LOG_MAX);
    size_t first = HF_RUN_LOG_MAX - at < len ? HF_RUN_LOG_MAX - at : len;
    memcpy(m->log + at, bytes, first);
    memcpy(m->log, bytes + first, len - first);
    m->log_bytes += len;
    m->log_at = ++m->number;
}

void hf_notes_log(hf_run *run, const void *bytes, size_t len)
{
    pthread_mutex_t *lock = &run->worker->note_lock;
    if (len == 0)
        return;
    pthread_mutex_lock(lock);
    hf_notes *m = marks_of(run, true);
    bool waits = m != NULL && m->log_at > m->asked; /* a renewal will take it */
    if (m != NULL)
        put_log(m, bytes, len);
    pthread_mutex_unlock(lock);
    if (!waits)
        hurry(run, false);
}

void hf_run_log(hf_run *run, const char *text)
{
    size_t len = strlen(text);
    hf_notes_log(run, text, len);
    if (len == 0 || text[len - 1] != '\n')
        hf_notes_log(run, "\n", 1);
}

/* ---- for programs ---- */

void hf_notes_on_output(void *job_arg, const char *bytes, size_t len, void *arg)
{
    hf_run *run = job_arg;
    (void)arg;
    if (run->handler->program.logs)
        hf_notes_log(run, bytes, len);
}

/* Nothing is left of it if memory ran out: the next line may fit. */
void hf_notes_on_update(void *job_arg, const hf_program_update *update, void *arg)
{
    hf_run *run = job_arg;
    (void)arg;
    if (update->has_progress || update->note != NULL)
        hf_notes_progress(run, update->has_progress ? &update->progress : NULL,
                          update->note);
    if (update->checkpoint != NULL)
        (void)!hf_run_set_checkpoint(run, update->checkpoint, update->checkpoint_len);
}

/* ---- a renewal ---- */

/* Under note_lock. The unreported bytes of the log, at most what is kept. */
static size_t log_left(const hf_notes *m)
{
    uint64_t left = m->log_bytes - m->log_reported;
    return left < HF_RUN_LOG_MAX ? (size_t)left : HF_RUN_LOG_MAX;
}

static size_t room_for(const hf_notes *m)
{
    return KINDS * HEAD_MAX + sizeof m->note + m->checkpoint_len + log_left(m);
}

/* A text begins with what was printed to `at`; more may follow. */
static void end_text(hf_notes_taken *t, size_t place, hf_renew_kind kind,
                     const char *from)
{
    size_t len = (size_t)(t->bytes + t->len - from);
    t->notes[t->n_notes++] = (hf_renew_note){place, kind, {from, len}};
}

/* Its digits and a blank. Answers where they are. */
static char *add_number(hf_notes_taken *t, uint64_t number)
{
    char *at = t->bytes + t->len;
    t->len += hf_args_digits(at, (int64_t)number);
    t->bytes[t->len++] = ' ';
    return at;
}

static void add(hf_notes_taken *t, const void *bytes, size_t len)
{
    if (len > 0)
        memcpy(t->bytes + t->len, bytes, len);
    t->len += len;
}

static void add_log(hf_notes_taken *t, size_t place, const hf_run *run, const hf_notes *m)
{
    size_t len = log_left(m), at = (size_t)((m->log_bytes - len) % HF_RUN_LOG_MAX);
    size_t first = HF_RUN_LOG_MAX - at < len ? HF_RUN_LOG_MAX - at : len;
    char *from = add_number(t, run->record.attempts + 1);
    (void)add_number(t, m->log_bytes - len);
    add(t, m->log + at, first);
    add(t, m->log, len - first);
    end_text(t, place, HF_RENEW_LOG, from);
}

/* Under note_lock, and there is room. */
static void report(hf_notes_taken *t, size_t place, const hf_run *run)
{
    hf_notes *m = run->notes;
    char *from;
    if (m->progress_at > m->reported) {
        from = add_number(t, m->percent);
        add(t, m->note, strlen(m->note));
        end_text(t, place, HF_RENEW_PROGRESS, from);
    }
    if (m->checkpoint_at > m->reported) {
        from = add_number(t, m->checkpoint_at);
        add(t, m->checkpoint, m->checkpoint_len);
        end_text(t, place, HF_RENEW_CHECKPOINT, from);
    }
    if (m->log_at > m->reported)
        add_log(t, place, run, m);
    m->asked = t->numbers[place] = m->number;
    m->log_asked = m->log_bytes;
}

/* Under note_lock. How many runs have something to report, and how many bytes. */
static size_t count_changed(hf_run *const *runs, size_t n, size_t *bytes)
{
    size_t changed = 0;
    for (size_t i = 0; i < n; i++)
        if (runs[i]->notes != NULL && runs[i]->notes->number > runs[i]->notes->reported) {
            changed++;
            *bytes += room_for(runs[i]->notes);
        }
    if (*bytes > TAKEN_MAX)
        *bytes = TAKEN_MAX;
    return changed;
}

/* Under note_lock. */
static bool take_room(hf_notes_taken *t, size_t n, size_t changed, size_t bytes)
{
    t->notes = malloc(KINDS * changed * sizeof *t->notes);
    t->numbers = calloc(n, sizeof *t->numbers);
    t->bytes = malloc(bytes);
    t->cap = bytes;
    t->n = n;
    if (t->notes != NULL && t->numbers != NULL && t->bytes != NULL)
        return true;
    hf_notes_taken_free(t);
    return false;
}

void hf_notes_take(hf_notes_taken *t, hf_run *const *runs, size_t n)
{
    size_t bytes = 0, reported = 0;
    *t = (hf_notes_taken){.n = 0};
    if (n == 0)
        return;
    pthread_mutex_lock(&runs[0]->worker->note_lock);
    size_t changed = count_changed(runs, n, &bytes);
    if (changed > 0 && take_room(t, n, changed, bytes))
        for (size_t i = 0; i < n; i++) {
            const hf_notes *m = runs[i]->notes;
            if (m == NULL || m->number <= m->reported)
                continue;
            if (room_for(m) <= t->cap - t->len) {
                report(t, i, runs[i]);
                reported++;
            }
        }
    pthread_mutex_unlock(&runs[0]->worker->note_lock);
    for (size_t i = 0; reported < changed && t->numbers != NULL && i < n; i++)
        if (t->numbers[i] == 0)
            hurry(runs[i], true);
}

void hf_notes_taken_free(hf_notes_taken *t)
{
    free(t->notes);
    free(t->numbers);
    free(t->bytes);
    *t = (hf_notes_taken){.n = 0};
}

/* ---- its answer ---- */

/* Under note_lock. */
static void note_reported(hf_notes *m, uint64_t number)
{
    if (number > m->reported)
        m->reported = number;
    if (number == m->asked)
        m->log_reported = m->log_asked;
}

void hf_notes_answered(hf_run *run, uint64_t number)
{
    if (number == 0)
        return;
    pthread_mutex_lock(&run->worker->note_lock);
    note_reported(run->notes, number);
    pthread_mutex_unlock(&run->worker->note_lock);
}

bool hf_notes_unreported(hf_run *run)
{
    pthread_mutex_lock(&run->worker->note_lock);
    const hf_notes *m = run->notes;
    bool unreported =
        m != NULL && (m->checkpoint_at > m->reported || m->log_at > m->reported);
    pthread_mutex_unlock(&run->worker->note_lock);
    return unreported;
}

void hf_notes_settle(hf_run *run)
{
    pthread_mutex_lock(&run->worker->note_lock);
    if (run->notes != NULL)
        note_reported(run->notes, run->notes->number);
    pthread_mutex_unlock(&run->worker->note_lock);
}
