/* frame.h - the frames of `pipe 1` (docs/pipe.md): how a worker and a long-lived program
 * speak with each other. Pure: no descriptors.
 *
 * A frame is one JSON object on one line. In some kinds `n` bytes follow the line: its
 * body. The reader takes what a program writes, in whatever pieces it comes, and says the
 * same of the same bytes however they are cut. Its memory has a bound. What it does not
 * accept is a protocol error, after which it takes nothing more. */
#ifndef HF_WORKER_POOL_FRAME_H
#define HF_WORKER_POOL_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/json_text.h"
#include "holdfast/worker.h"
#include "worker/program/said.h"

enum {
    HF_FRAME_LINE_MAX = 64 << 10,              /* bytes of a line, with its newline */
    HF_FRAME_READY_MAX = 1 << 20,              /* of the line of `ready` */
    HF_FRAME_OWN_MAX = 8 << 10,                /* of a line that the worker writes */
    HF_FRAME_BODY_MAX = 1 << 20,               /* bytes of a body that is read at all */
    HF_FRAME_TEXT_MAX = 16 << 10,              /* of a trace or a log: its end is kept */
    HF_FRAME_ERROR_MAX = HF_PROGRAM_ERROR_MAX, /* bytes of `error` */
    HF_FRAME_RESULT_MAX = HF_PROGRAM_RESULT_MAX, /* bytes of a result */
    HF_FRAME_HEADERS_MAX = 4 << 10,              /* bytes of the headers of a job */
    HF_FRAME_FAULT_SIZE = 160                    /* of a sentence about a frame */
};

typedef enum hf_frame_kind {
    HF_FRAME_NONE,   /* all bytes are taken, and no frame is whole */
    HF_FRAME_BROKEN, /* a protocol error: `fault` of the reader */
    HF_FRAME_READY,
    HF_FRAME_DONE, /* the verdicts, in the order of hf_verdict */
    HF_FRAME_RETRY,
    HF_FRAME_DEAD,
    HF_FRAME_RELEASE,
    HF_FRAME_CANCEL,
    HF_FRAME_PROGRESS,
    HF_FRAME_CHECKPOINT,
    HF_FRAME_LOG,
    HF_FRAME_PONG,
    HF_FRAME_LEAVE,
    HF_FRAME_KINDS
} hf_frame_kind;

/* What one frame says. A member that its kind does not have is zero. All text is borrowed
 * from the reader, or from the bytes that it was given, until the next call for either.
 */
typedef struct hf_frame {
    hf_frame_kind kind;
    uint64_t run;
    bool has_in; /* of RETRY and RELEASE */
    int64_t in_ms;
    bool has_percent;  /* of PROGRESS */
    uint32_t percent;  /* 0 to 100 */
    const char *note;  /* NULL: none is named; may contain NUL bytes, as `error` */
    size_t note_len;   /* at most HF_NOTE_MAX */
    const char *error; /* of RETRY, DEAD, RELEASE and CANCEL; never NULL */
    size_t error_len;  /* at most HF_FRAME_ERROR_MAX */
    bool has_body;     /* `n` is named, if only as 0 */
    bool json;         /* of DONE: a body that is not empty is JSON */
    bool too_long;     /* a part of the body was thrown away: all of a result or a
                          checkpoint, the beginning of a trace or a log */
    bool not_json;     /* of DONE: the program called it JSON */
    size_t not_json_at;
    size_t n; /* bytes that the body had */
    const char *body;
    size_t body_len;
    const char *line; /* of READY, for hf_ready_read() */
    size_t line_len;
} hf_frame;

typedef struct hf_frame_reader {
    hf_buf line, body; /* what came of one that is not whole */
    hf_frame frame;    /* whose body follows */
    size_t skip, left; /* bytes of the body to throw away, and then to take */
    bool in_body, ready;
    uint64_t at, begin; /* bytes that were taken, and before this frame */
    char error[HF_FRAME_ERROR_MAX], note[HF_NOTE_MAX];
    char fault[HF_FRAME_FAULT_SIZE]; /* "" : none. Without bytes of the program */
} hf_frame_reader;

void hf_frame_reader_init(hf_frame_reader *reader);
void hf_frame_reader_done(hf_frame_reader *reader);

/* Takes bytes from the front of a piece, until a frame is whole or there are no more.
 * Call it again until it says HF_FRAME_NONE; after HF_FRAME_BROKEN it says that always.
 */
hf_frame_kind hf_frame_next(hf_frame_reader *reader, const char **bytes, size_t *len,
                            hf_frame *out);

/* Whether a part of a frame has come: the program must not end now. */
bool hf_frame_is_partial(const hf_frame_reader *reader);

/* The word of `t`. */
const char *hf_frame_word(hf_frame_kind kind);
static inline bool hf_frame_is_verdict(hf_frame_kind kind)
{
    return kind >= HF_FRAME_DONE && kind <= HF_FRAME_CANCEL;
}
static inline hf_verdict hf_frame_verdict(hf_frame_kind kind)
{
    return (hf_verdict)((int)kind - (int)HF_FRAME_DONE);
}

/* Whether the run is dead because of the body of this frame, and the sentence for its
 * error: a result or a checkpoint that is too long, a result that is no JSON. */
bool hf_frame_is_refused(const hf_frame *frame, char why[HF_FRAME_FAULT_SIZE]);

/* The error of the job: `error`, and after a newline as much of the end of the trace as
 * there is room for. Ends with a NUL; returns its length. */
size_t hf_frame_error(const hf_frame *frame, char out[HF_FRAME_ERROR_MAX + 1]);

/* ---- what the worker writes ---- */

typedef struct hf_frame_job {
    uint64_t run;
    size_t payload_len, checkpoint_len; /* bytes that the caller sends behind the line */
    const char *id, *type, *queue;
    uint32_t attempt, max_attempts;
    uint64_t fence;
    uint32_t timeout_ms;              /* 0: none */
    int64_t created_ms, scheduled_ms; /* Unix; 0: not known; no schedule made it */
    const char *trace;                /* a traceparent; NULL: none */
    const char *headers;              /* the text of a JSON object; NULL: none */
    size_t headers_len;               /* at most HF_FRAME_HEADERS_MAX */
} hf_frame_job;

typedef enum hf_frame_why {
    HF_FRAME_WHY_TIMEOUT,
    HF_FRAME_WHY_LOST,
    HF_FRAME_WHY_CANCELLED,
    HF_FRAME_WHY_STOP
} hf_frame_why;

/* Each appends one line. kill_in_ms: the time left until KILL. */
void hf_frame_put_job(hf_buf *out, const hf_frame_job *job);
void hf_frame_put_cancel(hf_buf *out, uint64_t run, hf_frame_why why, int64_t kill_in_ms);
void hf_frame_put_stop(hf_buf *out, int64_t kill_in_ms);
void hf_frame_put_ping(hf_buf *out);

#endif
