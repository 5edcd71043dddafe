/* ran.c - see ran.h. */
#include "queue/ran.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/id.h"
#include "queue/send.h"
#include "queue_scripts.h"

/* By hf_run_end. */
static const char letters[] = "-dfxkcbl";
static const char *const words[] = {"runs",    "done",      "failed",   "dead",
                                    "crashed", "cancelled", "released", "lost"};

const char *hf_run_end_word(hf_run_end end)
{
    return (size_t)end < HF_COUNT(words) ? words[end] : "unknown";
}

/* ---- writing ---- */

void hf_ran_write_head(hf_buf *buf, const hf_ran_head *head)
{
    hf_buf_printf(buf, "%s %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "\n",
                  head->worker, head->at_ms, head->ok, head->failed, head->cut);
}

void hf_ran_write(hf_buf *buf, const hf_reported_run *run)
{
    hf_buf_printf(buf, "%s %s %u %u %" PRId64 " ", run->id, run->type, run->run,
                  run->slot, run->start_ms);
    if (run->end == HF_RUN_GOES_ON)
        hf_buf_text(buf, "- -\n");
    else
        hf_buf_printf(buf, "%" PRId64 " %c\n", run->ran_ms, letters[run->end]);
}

/* ---- reading ---- */

/* A word of a line; its place is then behind the space that other words follow. */
typedef struct word {
    const char *at;
    size_t len;
} word;

static word next_word(const char **line)
{
    const word w = {*line, strcspn(*line, " \n")};
    *line += w.len;
    *line += **line == ' ' && (*line)[1] != '\n';
    return w;
}

static bool take_name(const char **line, char *out, size_t size)
{
    const word w = next_word(line);
    if (w.len >= size || !hf_name_ok_n(w.at, w.len))
        return false;
    memcpy(out, w.at, w.len);
    out[w.len] = '\0';
    return true;
}

static bool take_number(const char **line, int64_t most, int64_t *out)
{
    const word w = next_word(line);
    int64_t n = 0;
    for (size_t i = 0; i < w.len; i++) {
        if (w.at[i] < '0' || w.at[i] > '9' || n > (most - (w.at[i] - '0')) / 10)
            return false;
        n = n * 10 + (w.at[i] - '0');
    }
    *out = n;
    return w.len > 0;
}

static bool take_end(const char **line, hf_run_end *end)
{
    const word w = next_word(line);
    const char *letter = w.len == 1 ? strchr(letters, w.at[0]) : NULL;
    *end = letter == NULL ? HF_RUN_GOES_ON : (hf_run_end)(letter - letters);
    return letter != NULL;
}

/* Behind the line; true if all of it was read. */
static bool leave_line(const char **text, const char *line)
{
    const bool whole = *line == '\n';
    *text += strcspn(*text, "\n");
    *text += **text == '\n';
    return whole;
}

bool hf_ran_read_head(const char **text, hf_ran_head *head)
{
    const char *line = *text;
    const bool good = take_name(&line, head->worker, sizeof head->worker) &&
                      take_number(&line, HF_TIME_MAX_MS, &head->at_ms) &&
                      take_number(&line, INT64_MAX / 2, &head->ok) &&
                      take_number(&line, INT64_MAX / 2, &head->failed) &&
                      take_number(&line, INT64_MAX / 2, &head->cut);
    return leave_line(text, line) && good;
}

/* `-` for both, or a time and a letter. */
static bool take_ran(const char **line, hf_reported_run *run)
{
    const bool runs = (*line)[0] == '-' && (*line)[1] == ' ';
    run->ran_ms = 0;
    if (runs)
        (void)next_word(line);
    else if (!take_number(line, HF_TIME_MAX_MS, &run->ran_ms))
        return false;
    return take_end(line, &run->end) && runs == (run->end == HF_RUN_GOES_ON);
}

bool hf_ran_read(const char **text, hf_reported_run *run)
{
    const char *line = *text;
    int64_t number = 0, slot = 0;
    *run = (hf_reported_run){.size = sizeof *run};
    const bool good = take_name(&line, run->id, sizeof run->id) &&
                      take_name(&line, run->type, sizeof run->type) &&
                      take_number(&line, UINT32_MAX, &number) &&
                      take_number(&line, UINT32_MAX, &slot) &&
                      take_number(&line, HF_TIME_MAX_MS, &run->start_ms) &&
                      take_ran(&line, run);
    run->run = (uint32_t)number;
    run->slot = (uint32_t)slot;
    return leave_line(text, line) && good;
}

/* ---- the request ---- */

hf_err hf_op_runs(hf_client *client, const hf_queue *queue, hf_bytes entry,
                  hf_answer_cb cb, void *arg)
{
    hf_args a;
    hf_args_init(&a, 1, 0);
    hf_args_bytes(&a, entry);
    return hf_queue_send(client, queue, &hf_lua_queue_runs, &a, 0, cb, arg);
}

hf_err hf_ran_answered(const hf_answer *answer, int64_t *now_ms)
{
    *now_ms = 0;
    return hf_send_script_status(answer, 2, now_ms);
}
