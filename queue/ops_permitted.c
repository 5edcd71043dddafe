/* ops_permitted.c - may a worker's user run all that the worker's scripts contain? A
 * script that is refused a command in its middle is not rolled back, and may have taken a
 * job out of its set: so a worker asks before it begins. The commands are read from the
 * scripts' text, where each is a word of capitals in quotes. */
#include <string.h>

#include "base/base.h"
#include "queue/send.h"
#include "queue_scripts.h"

enum { WORDS_MAX = 64, WORD_MIN = 3, WORD_SIZE = 24 };

static const char capitals[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

static const hf_script *const scripts[] = {&hf_lua_queue_claim, &hf_lua_queue_unclaim,
                                           &hf_lua_queue_renew, &hf_lua_queue_complete,
                                           &hf_lua_queue_retry, &hf_lua_queue_release,
                                           &hf_lua_queue_bury,  &hf_lua_queue_check,
                                           &hf_lua_queue_peek,  &hf_lua_queue_limits};

typedef struct words {
    char at[WORDS_MAX][WORD_SIZE];
    size_t n;
} words;

static void add(words *w, const char *word, size_t len)
{
    for (size_t i = 0; i < w->n; i++)
        if (strlen(w->at[i]) == len && memcmp(w->at[i], word, len) == 0)
            return;
    HF_ASSERT(w->n < WORDS_MAX);
    memcpy(w->at[w->n], word, len);
    w->at[w->n++][len] = '\0';
}

static void add_script(words *w, const hf_script *script)
{
    for (const char *at = (const char *)script->text; (at = strchr(at, '\'')) != NULL;) {
        size_t len = strspn(++at, capitals);
        if (len >= WORD_MIN && len < WORD_SIZE && at[len] == '\'')
            add(w, at, len);
    }
}

hf_err hf_op_permitted(hf_client *client, const hf_queue *queue, hf_answer_cb cb,
                       void *arg)
{
    words w = {.n = 0};
    hf_args a;
    for (size_t i = 0; i < HF_COUNT(scripts); i++)
        add_script(&w, scripts[i]);
    hf_args_init(&a, w.n, 0);
    for (size_t i = 0; i < w.n; i++)
        hf_args_text(&a, w.at[i]);
    return hf_queue_send(client, queue, &hf_lua_queue_permitted, &a, 0, cb, arg);
}
