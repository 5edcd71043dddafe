/* look.h - one job, as the synchronous calls of holdfast/admin.h see it. */
#ifndef HF_ADMIN_LOOK_H
#define HF_ADMIN_LOOK_H

#include "admin/ask.h"

typedef struct hf_look {
    hf_job_info *info;
    void **payload; /* NULL: not asked for */
    const char
        *client; /* that is informed of the end of a job that waits or runs; NULL: none */
    bool gives_up;       /* it is not told any more */
    bool noted;          /* as the argument of queue/lua/await.lua */
    int64_t accepted_ms; /* of the job; 0: any of this id. Then it is that of the one that
                            was found */
    int64_t now_ms;      /* when it was looked */
    /* HF_GONE: when a job of this id has ended, and how (HF_OK: it is done); 0: nothing
     * tells it. exact: it is the job that was accepted then; else any of this id within
     * the last minute, and not one that was done or died. */
    int64_t ended_ms;
    hf_err how;
    bool exact;
} hf_look;

HF_MUSTCHECK hf_err hf_look_at(hf_admin *admin, const hf_queue *queue, const char *id,
                               hf_look *look, uint64_t until_ns);

/* An info with only its id and queue. */
void hf_look_begin(hf_job_info *info, const hf_queue *queue, const char *id);

/* The answer of job.lua and why.lua, from the set's name in place 2 on; in place `kept`
 * until when a done job is kept. */
HF_MUSTCHECK hf_err hf_look_read(hf_job_info *info, const hf_reply *reply, size_t kept,
                                 int64_t now_ms);

/* The first line of a record, with which the rest of `out` stays as it is. HF_NOMEM. */
HF_MUSTCHECK hf_err hf_look_line(hf_job_info *out, hf_bytes line);

void hf_look_token(hf_job_info *out, const hf_reply *token); /* its holder and fence */

#endif
