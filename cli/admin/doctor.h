/* doctor.h - shared by the parts of `holdfast doctor`: one examination, and the reporting
 * of its findings. */
#ifndef HF_CLI_ADMIN_DOCTOR_H
#define HF_CLI_ADMIN_DOCTOR_H

#include "cli/cli.h"
#include "cli/common/progress.h"

enum { HF_DOCTOR_TEXT = 512, HF_DOCTOR_KINDS = 24 };

/* How many of one kind were told about one queue. */
typedef struct hf_doctor_kind {
    const char *check; /* static */
    size_t n;
} hf_doctor_kind;

/* The jobs that a worker has locks of. */
typedef struct hf_doctor_holder {
    char worker[HF_HOLDER_SIZE];
    size_t jobs;
    int64_t until_ms;
} hf_doctor_holder;

typedef struct hf_doctor {
    const hf_cli *cli;
    hf_admin *admin;
    const char *only;  /* the one queue that is looked at; NULL: all, and the workers */
    const char *queue; /* that is looked at now; NULL: none of them */
    const char *place; /* of the node that is looked at now; NULL: of none */
    bool cluster;      /* so one node may be away, and the others are looked at */
    bool fix;          /* this pass repairs, and tells only what it repaired */
    size_t n_queues, found, repairable, repaired;
    hf_doctor_kind kinds[HF_DOCTOR_KINDS]; /* of the queue that is looked at now */
    hf_doctor_holder *holders;             /* owned */
    size_t n_holders;
    bool no_memory;
    hf_progress progress;
} hf_doctor;

/* ---- telling (doctor_tell.c) ---- */

/* Begins with what is told about a queue, NULL: of Redis; ends it: says what was left
 * out.
 */
void hf_doctor_begin(hf_doctor *d, const char *queue);
void hf_doctor_end(hf_doctor *d);

void hf_doctor_tell(hf_doctor *d, const hf_finding *finding);
/* A finding that nothing can be done about from here. */
void hf_doctor_by_hand(hf_doctor *d, const char *check, const char *id, const char *text,
                       const char *what_to_do);
/* Worth knowing, but possibly a deliberate choice: no finding. */
void hf_doctor_note(const hf_doctor *d, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Why a part could not be looked at, which must not end the look at the others, becomes a
 * finding, and HF_OK. */
HF_MUSTCHECK hf_err hf_doctor_unreadable(hf_doctor *d, const char *id, hf_err err);

/* ---- looking: HF_OK, or why it cannot go on ---- */

HF_MUSTCHECK hf_err hf_doctor_server(hf_doctor *d);
HF_MUSTCHECK hf_err hf_doctor_queues(hf_doctor *d);
HF_MUSTCHECK hf_err hf_doctor_workers(hf_doctor *d); /* after the queues */
HF_MUSTCHECK hf_err hf_doctor_types(hf_doctor *d);   /* notes, after the workers */

#endif
