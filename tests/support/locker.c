/* locker.c - see locker.h. */
#include "tests/support/locker.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/eventually.h"

enum { WORDS_MAX = 12, NOTES_MAX = 4096 };

void hf_locker_start(hf_locker *l, const char *dir, const char *url, const char *name,
                     const char *words)
{
    static unsigned started;
    char text[256], *rest;
    const char *args[WORDS_MAX + 5] = {HF_TEST_HELPERS "/hf-locker", url, l->log, name};
    size_t n = 4;
    (void)snprintf(l->log, sizeof l->log, "%s/locker-%u", dir, ++started);
    (void)snprintf(text, sizeof text, "%s", words);
    for (char *word = strtok_r(text, " ", &rest); word != NULL && n < WORDS_MAX + 4;
         word = strtok_r(NULL, " ", &rest))
        args[n++] = word;
    hf_proc_start(&l->proc, &(hf_proc_options){.args = args});
}

void hf_locker_kill(hf_locker *l)
{
    if (l->proc.pid > 0)
        hf_proc_kill(&l->proc);
}

size_t hf_locker_read(const hf_locker *l, hf_locker_note *notes, size_t room)
{
    FILE *file = fopen(l->log, "r");
    size_t n = 0;
    if (file == NULL)
        return 0;
    while (n < room && fscanf(file, "%15s %" SCNu64 " %" SCNu64, notes[n].kind,
                              &notes[n].ns, &notes[n].value) == 3)
        n++;
    (void)fclose(file);
    return n;
}

bool hf_locker_said(const hf_locker *l, const char *kind, hf_locker_note *note)
{
    static hf_locker_note notes[NOTES_MAX];
    for (size_t n = hf_locker_read(l, notes, NOTES_MAX); n > 0; n--)
        if (strcmp(notes[n - 1].kind, kind) == 0) {
            if (note != NULL)
                *note = notes[n - 1];
            return true;
        }
    return false;
}
