/* locker.h - processes of their own that take locks (tests/helpers/hf-locker.c), to be
 * stopped and killed, and what they wrote down. */
#ifndef HF_TESTS_LOCKER_H
#define HF_TESTS_LOCKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/support/proc.h"
#include "tests/support/tempdir.h"

typedef struct hf_locker {
    hf_proc proc;
    char log[HF_TEMPDIR_SIZE + 32];
} hf_locker;

/* One line of its log. */
typedef struct hf_locker_note {
    char kind[16];
    uint64_t ns, value;
} hf_locker_note;

/* `words`: its further arguments, separated by spaces. The log is made in dir. */
void hf_locker_start(hf_locker *l, const char *dir, const char *url, const char *name,
                     const char *words);
void hf_locker_kill(hf_locker *l); /* SIGKILL; does nothing when it has ended */

/* What it wrote so far, as many as there is room for; gives how many. */
size_t hf_locker_read(const hf_locker *l, hf_locker_note *notes, size_t room);
/* The last one of a kind. False: there is none. `note` may be NULL. */
bool hf_locker_said(const hf_locker *l, const char *kind, hf_locker_note *note);

#endif
