/* tool.h - shared by the programs of the bench: options, errors, prepared requests, and
 * rounds in which two sides take turns. Each program runs one benchmark; any failure ends
 * it. */
#ifndef HF_BENCH_TOOL_H
#define HF_BENCH_TOOL_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "bench/parts.h"

/* One line on standard error with the program's name; ends the program with 1. */
_Noreturn void give_up(const char *what, const char *why);
/* The same unless err is HF_OK. `why` NULL or "": the meaning of the error. */
void must(hf_err err, const char *what, const char *why);
/* `expected ...`; ends the program with 64. */
_Noreturn void misused(const char *expected);

/* `--name VALUE`, for one of the two. */
typedef struct option_spec {
    const char *name; /* NULL: the end of the list */
    const char **text;
    uint32_t *number;
} option_spec;

/* Reads them all. Returns the place of the first word that is no option. Another option
 * ends the program with 64. */
int read_options(int argc, char **argv, const option_spec *specs);

/* ---- requests that are made before the clock starts ---- */

void put_word(hf_buf *out, const char *word);
/* A whole request; `must` for its memory. */
void make_request(hf_buf *out, size_t bytes_max, const char *const *words, size_t n);

/* The next answer to what was appended, which is no error. The caller frees it. */
struct redisReply *take_reply(hf_probe *probe, const char *what);
/* Loads a script; its SHA1 goes to `sha1`. */
enum { SHA1_SIZE = 41 };
void load_script(hf_probe *probe, const char *script, char sha1[SHA1_SIZE]);

/* ---- two sides in turns ---- */

typedef struct cost {
    double ms, redis_ms; /* from the first request to the last answer; in scripts */
} cost;

enum { COMPARE_MAX = 100 }; /* rounds */

/* One round of each side is not counted. Then this many of both in turns; the medians. */
void compare_rounds(hf_probe *probe, size_t rounds, void (*ours)(void *arg),
                    void (*bare)(void *arg), void *arg, cost medians[2]);

#endif
