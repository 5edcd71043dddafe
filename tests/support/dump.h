/* dump.h - everything that a Redis holds, to see whether something changed.
 *
 * Two dumps are the same when they have the same keys with the same types and values.
 * Times (Unix ms, wherever they stand) and what is left of a key's life may differ by a
 * little, since a test takes its time. */
#ifndef HF_TESTS_DUMP_H
#define HF_TESTS_DUMP_H

#include <stdbool.h>
#include <stddef.h>

#include <hiredis/hiredis.h>

typedef struct hf_dump_key {
    char *name, *type, *value; /* owned */
    long long pttl_ms;         /* -1: it has no end */
} hf_dump_key;

typedef struct hf_dump {
    hf_dump_key *keys; /* owned, sorted by name */
    size_t n;
} hf_dump;

/* Fails the test when Redis does not answer. */
void hf_dump_take(hf_dump *out, redisContext *connection);
void hf_dump_done(hf_dump *dump);

/* False: `difference` says which is the first. */
bool hf_dump_same(const hf_dump *a, const hf_dump *b, char *difference, size_t size);

/* An answer in one line: `0 T {a b}`. Times become T, fences (in microseconds) become F.
 */
void hf_print_reply(const redisReply *reply, char *out, size_t size);

#endif
