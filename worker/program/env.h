/* env.h - the environment of a program: HOLDFAST_* describes its job, and a few variables
 * of the worker are passed on. */
#ifndef HF_WORKER_PROGRAM_ENV_H
#define HF_WORKER_PROGRAM_ENV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "holdfast/worker.h"

/* The job as the program sees it. All borrowed until done_cb. */
typedef struct hf_program_job {
    const char *id, *type, *queue;
    const char *fence; /* decimal digits */
    uint32_t attempt;  /* 1 the first time */
    uint64_t identity; /* a hash that no other job has, here or at another Redis */
    bool ran_before;   /* it may have: what is left of that run ends first */
    const void *payload;
    size_t payload_len;
    uint64_t deadline_ns; /* of the lease, CLOCK_BOOTTIME; hf_program_extend() moves it */
    uint32_t timeout_ms;  /* the job's, else the program's; 0: none */
    int64_t scheduled_unix_ms; /* its tick; 0: of no schedule */
    const char *headers;       /* JSON; NULL or "": none */
    const char *traceparent;   /* as `headers` */
    int64_t deadline_unix_ms;  /* end of the time-out for people's clocks; 0: not told */
    const void *checkpoint;    /* of an earlier run */
    size_t checkpoint_len;
} hf_program_job;

typedef struct hf_program_env {
    hf_buf text; /* owned */
    char **vars; /* owned; into text, ends with NULL */
} hf_program_env;

/* HF_NOMEM, HF_TOOBIG. End with hf_program_env_done() in any case. */
HF_MUSTCHECK hf_err hf_program_env_init(hf_program_env *env, const hf_program *spec,
                                        const hf_program_job *job);
void hf_program_env_done(hf_program_env *env);

/* The steps of it, for programs that get their jobs in another way: begin, add any
 * variables, pass on those of the worker (PATH and its like, and these names or all), and
 * end. */
void hf_program_env_begin(hf_program_env *env);
void hf_program_env_add(hf_program_env *env, const char *name, const char *value);
void hf_program_env_pass(hf_program_env *env, const char *const *names, bool all);
HF_MUSTCHECK hf_err hf_program_env_end(hf_program_env *env);

#endif
