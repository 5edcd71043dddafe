/* fake_redis.h - a server that follows a script, for what a real one will not do: an old
 * version, wrong shapes, half an answer, an answer that never comes.
 *
 * It understands commands (arrays of bulk strings) and nothing else. A command that
 * starts with one of the `autos` is answered at once and never seen by the script, which
 * keeps the greeting of a connection out of it. Every other command waits for an EXPECT.
 *
 *     static const hf_fake_auto autos[] = {{"INFO",
 * "$22\r\nredis_version:5.0.0\r\n\r\n\r\n"}, {NULL, NULL}}; static const hf_fake_step
 * steps[] = {HF_FAKE_EXPECT("EVALSHA"), HF_FAKE_SEND("*2\r\n:0"), HF_FAKE_CLOSE,
 * HF_FAKE_END}; hf_fake_start(&fake, autos, steps);
 *     ... the client under test connects to fake.url ...
 *     assert_null(hf_fake_stop(&fake)); */
#ifndef HF_TESTS_FAKE_REDIS_H
#define HF_TESTS_FAKE_REDIS_H

#include <stdbool.h>

#include "tests/support/tempdir.h"

typedef struct hf_fake_auto {
    const char *prefix; /* of the command's words, joined by single spaces; any case */
    const char *answer; /* raw bytes; "" swallows the command */
} hf_fake_auto;

typedef enum hf_fake_kind {
    FAKE_END,
    FAKE_EXPECT,
    FAKE_SEND,
    FAKE_CLOSE,
    FAKE_STALL
} hf_fake_kind;

typedef struct hf_fake_step {
    hf_fake_kind kind;
    const char *text;
    unsigned ms;
} hf_fake_step;

/* Takes the next command of any connection; it must contain the text. What follows is
 * about that connection. */
#define HF_FAKE_EXPECT(text)                                                             \
    {                                                                                    \
        FAKE_EXPECT, (text), 0                                                           \
    }
#define HF_FAKE_SEND(bytes)                                                              \
    {                                                                                    \
        FAKE_SEND, (bytes), 0                                                            \
    } /* without a NUL in it */
#define HF_FAKE_CLOSE                                                                    \
    {                                                                                    \
        FAKE_CLOSE, "", 0                                                                \
    }
#define HF_FAKE_STALL(ms)                                                                \
    {                                                                                    \
        FAKE_STALL, "", (ms)                                                             \
    } /* the script waits, nothing is read */
#define HF_FAKE_END                                                                      \
    {                                                                                    \
        FAKE_END, "", 0                                                                  \
    } /* from here on it is silent */

struct hf_fake_state;

typedef struct hf_fake {
    char dir[HF_TEMPDIR_SIZE];
    char socket[HF_TEMPDIR_SIZE + 8];
    char url[HF_TEMPDIR_SIZE + 32];
    struct hf_fake_state *state; /* owned */
} hf_fake;

/* `autos` (may be NULL) ends with a NULL prefix, `steps` with HF_FAKE_END; both are
 * borrowed until stop. Ends the test program when the server cannot be made. */
void hf_fake_start(hf_fake *f, const hf_fake_auto *autos, const hf_fake_step *steps);

/* True when every step was done. May be asked from any thread. */
bool hf_fake_done(const hf_fake *f);

/* Ends it. NULL when every step was done, otherwise a sentence, valid until the next
 * stop. */
const char *hf_fake_stop(hf_fake *f);

#endif
