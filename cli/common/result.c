/* result.c - see result.h. */
#include "cli/common/result.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/json_text.h"
#include "cli/out.h"

/* Another program may have written something else; then these are its bytes. */
static bool is_json(const char *bytes, size_t len, hf_result_kind kind)
{
    hf_json_fault fault;
    return kind == HF_RESULT_JSON && hf_json_check(bytes, len, &fault);
}

static void print_json(const char *queue, const char *id, char *bytes, size_t len,
                       hf_result_kind kind)
{
    json_t *object = json_pack("{s:s, s:s}", "id", id, "queue", queue);
    if (is_json(bytes, len, kind)) {
        hf_out_json_with(stdout, object, "result", bytes,
                         hf_json_compact(bytes, len, bytes));
        return;
    }
    if (kind != HF_RESULT_NONE) {
        char *text = hf_base64_encode(bytes, len);
        if (json_object_set_new(object, "result_base64", json_string(text)) != 0) {
            json_decref(object);
            object = NULL; /* the reader gets an error instead */
        }
        free(text);
    }
    hf_out_json(stdout, object);
}

/* Of a job that is not done, or was not kept. */
static int say_none(const hf_cli *cli, hf_err err, const char *id)
{
    const char *state = err == HF_RUNNING ? "runs" : err == HF_DEAD ? "is dead" : "waits";
    if (err == HF_GONE)
        return hf_cli_say(cli, HF_EXIT_NO, "", "the result of %s is not kept", id);
    return hf_cli_say(cli, HF_EXIT_NO, "", "%s is not done: it %s", id, state);
}

void hf_result_put(const hf_cli *cli, const char *queue, const char *id, void *bytes,
                   size_t len, hf_result_kind kind)
{
    if (cli->json)
        print_json(queue, id, bytes, len, kind);
    else
        (void)fwrite(bytes, 1, len, stdout);
    if (!cli->json && kind == HF_RESULT_JSON)
        putchar('\n');
}

int hf_result_print(const hf_cli *cli, hf_admin *admin, const char *queue, const char *id)
{
    void *bytes;
    size_t len;
    hf_result_kind kind;
    hf_err err = hf_admin_result(admin, queue, id, &bytes, &len, &kind, cli->detail);
    if (err == HF_GONE || err == HF_EXISTS || err == HF_RUNNING || err == HF_DEAD)
        return say_none(cli, err, id);
    if (err != HF_OK)
        return hf_cli_fail(cli, err, cli->detail);
    hf_result_put(cli, queue, id, bytes, len, kind);
    free(bytes);
    return HF_EXIT_OK;
}
