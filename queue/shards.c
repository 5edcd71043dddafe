/* shards.c - see shards.h. */
#include "queue/shards.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/id.h"
#include "base/text.h"
#include "queue/send.h"
#include "queue_scripts.h"
#include "redis/slots.h"

/* ---- tags ---- */

/* Its slot lies in the i-th of n ranges. */
static void make_tag(char out[HF_ID_SIZE], const char *queue, unsigned i, unsigned n)
{
    const unsigned first = i * HF_SLOTS / n, end = (i + 1) * HF_SLOTS / n;
    unsigned slot = HF_SLOTS;
    for (unsigned k = 0; slot < first || slot >= end; k++) {
        int len = snprintf(out, HF_ID_SIZE, "%s/%u-%u", queue, i, k);
        HF_ASSERT(len > 0 && len < HF_ID_SIZE);
        slot = hf_slot(out, (size_t)len);
    }
}

hf_err hf_shards_make(hf_shards *out, const char *queue, unsigned n)
{
    if (n < HF_SHARDS_MIN || n > HF_SHARDS_MAX || !hf_name_ok(queue) ||
        strlen(queue) > HF_SHARDED_NAME_MAX)
        return HF_INVALID;
    out->n = n;
    for (unsigned i = 0; i < n; i++)
        make_tag(out->tags[i], queue, i, n);
    return HF_OK;
}

/* ---- the text ---- */

void hf_shards_write(const hf_shards *shards, char out[HF_SHARDS_TEXT_SIZE])
{
    size_t len = (size_t)snprintf(out, HF_SHARDS_TEXT_SIZE, "%u", shards->n);
    for (unsigned i = 0; i < shards->n; i++)
        len += (size_t)snprintf(out + len, HF_SHARDS_TEXT_SIZE - len, " %s",
                                shards->tags[i]);
    HF_ASSERT(len < HF_SHARDS_TEXT_SIZE);
}

/* What is between two slashes of keys: it must leave the braces of its prefix alone. */
static bool is_tag(const char *tag)
{
    const char *slash = strchr(tag, '/');
    return slash != NULL && hf_name_ok_n(tag, (size_t)(slash - tag)) &&
           hf_name_ok(slash + 1);
}

/* The next word of a text, cut; its place moves behind it. */
static void take_word(const char **at, char out[HF_ID_SIZE])
{
    size_t len = strcspn(*at, " ");
    (void)snprintf(out, HF_ID_SIZE, "%.*s", (int)(len < HF_ID_SIZE ? len : 0), *at);
    *at += len + ((*at)[len] == ' ');
}

hf_err hf_shards_read(hf_shards *out, const char *text)
{
    char word[HF_ID_SIZE];
    int64_t n;
    out->n = 0;
    if (text[0] == '\0')
        return HF_OK;
    take_word(&text, word);
    if (!hf_parse_int(word, HF_SHARDS_MIN, HF_SHARDS_MAX, &n))
        return HF_PROTO;
    for (int64_t i = 0; i < n; i++) {
        take_word(&text, out->tags[i]);
        if (!is_tag(out->tags[i]))
            return HF_PROTO;
    }
    if (text[0] != '\0')
        return HF_PROTO;
    out->n = (unsigned)n;
    return HF_OK;
}

/* "SHARDED holdfast: 8 wide/0-3 ...", with other words before it where Redis adds some.
 */
hf_err hf_shards_refused(hf_shards *out, const char *words)
{
    static const char before[] = "SHARDED holdfast: ";
    const char *at = strstr(words, before);
    hf_err err = at == NULL ? HF_PROTO : hf_shards_read(out, at + sizeof before - 1);
    return err == HF_OK && out->n == 0 ? HF_PROTO : err;
}

/* ---- jobs and queues ---- */

const char *hf_job_shard_text(const hf_job *job)
{
    return job->unique != NULL ? job->unique : job->id;
}

unsigned hf_shard_of_id(const char *id, unsigned n)
{
    return hf_slots_crc16(id, strlen(id)) % n;
}

uint32_t hf_shard_max_running(uint32_t max_running, unsigned i, unsigned n)
{
    return max_running / n + (i < max_running % n);
}

void hf_shards_queue(const hf_shards *shards, const hf_queue *whole, unsigned i,
                     hf_queue *out)
{
    HF_ASSERT(i < shards->n);
    *out = *whole;
    int len =
        snprintf(out->prefix, sizeof out->prefix, "%s:{%s}:", whole->ns, shards->tags[i]);
    HF_ASSERT(len > 0 && (size_t)len < sizeof out->prefix);
    out->prefix_len = (size_t)len;
}

/* ---- the script ---- */

hf_err hf_op_shards(hf_client *client, const hf_queue *queue, int64_t not_after,
                    const hf_shards *wanted, hf_answer_cb cb, void *arg)
{
    hf_args a;
    char text[HF_SHARDS_TEXT_SIZE] = "";
    if (wanted != NULL)
        hf_shards_write(wanted, text);
    hf_args_init(&a, 2, 1);
    hf_args_int(&a, not_after);
    hf_args_text(&a, text);
    return hf_queue_send(client, queue, &hf_lua_queue_shards, &a, 0, cb, arg);
}

hf_err hf_divided_read(const hf_answer *answer, hf_divided *out)
{
    hf_err err = hf_send_script_status(answer, 4, &out->now_ms);
    if (err != HF_OK)
        return err;
    (void)snprintf(out->why, sizeof out->why, "%s",
                   hf_reply_text(hf_reply_at(answer->reply, 3)));
    return hf_shards_read(&out->shards, hf_reply_text(hf_reply_at(answer->reply, 2)));
}

bool hf_divided_is(const hf_divided *divided, unsigned wanted, char why[HF_DETAIL_SIZE])
{
    const char *is = strcmp(divided->why, "paused") == 0   ? "it is paused"
                     : strcmp(divided->why, "limits") == 0 ? "it has limits"
                                                           : "it has jobs";
    if (divided->shards.n == wanted)
        return true;
    if (divided->shards.n != 0)
        (void)snprintf(why, HF_DETAIL_SIZE, "it has %u shards, and keeps this number",
                       divided->shards.n);
    else
        (void)snprintf(why, HF_DETAIL_SIZE,
                       "a queue is divided before it is used, and %s", is);
    return false;
}
