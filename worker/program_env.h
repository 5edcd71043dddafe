/* program_env.h - the environment of a program: what HOLDFAST_* tells of the job, and the
 * few variables of the worker that are passed on. */
#ifndef HF_WORKER_PROGRAM_ENV_H
#define HF_WORKER_PROGRAM_ENV_H

#include "base/buf.h"
#include "worker/programs.h"

enum { HF_PROGRAM_ENV_MAX = 256 }; /* variables */

typedef struct hf_program_env {
    hf_buf text;                        /* owned */
    char *vars[HF_PROGRAM_ENV_MAX + 1]; /* into text, ends with NULL */
} hf_program_env;

/* HF_NOMEM, HF_TOOBIG. End with hf_program_env_done() in any case. */
HF_MUSTCHECK hf_err hf_program_env_init(hf_program_env *env, const hf_program *spec,
                                        const hf_program_job *job);
void hf_program_env_done(hf_program_env *env);

#endif
