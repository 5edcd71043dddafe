/* reference.c - the table of all keys as people read it, in docs/configure.md. */
#include <stdlib.h>

#include "base/buf.h"
#include "config/config.h"
#include "config/value.h"

enum { REFERENCE_MAX = 64 << 10 };

const char *hf_key_type_name(hf_key_type type)
{
    static const char *const names[] = {
        [HF_KEY_MAPPING] = "mapping",
        [HF_KEY_QUEUES] = "list of mappings",
        [HF_KEY_TEXT] = "text",
        [HF_KEY_HANDLERS] = "list of mappings",
        [HF_KEY_TYPES] = "mapping of types",
        [HF_KEY_SCHEDULES] = "list of mappings",
        [HF_KEY_CRON] = "cron expression",
        [HF_KEY_ZONE] = "time zone",
        [HF_KEY_TIME] = "time",
        [HF_KEY_NAME] = "name",
        [HF_KEY_JOB_TYPE] = "name or `*`",
        [HF_KEY_URL] = "URL",
        [HF_KEY_LISTEN] = "address",
        [HF_KEY_ENDPOINT] = "URL",
        [HF_KEY_WORDS] = "list of text",
        [HF_KEY_ENV] = "list of names, or `all`",
        [HF_KEY_INTEGER] = "integer",
        [HF_KEY_DURATION] = "duration",
        [HF_KEY_SIZE] = "size",
        [HF_KEY_CHOICE] = "word",
        [HF_KEY_NUMBER] = "number",
        [HF_KEY_PLACES] = "list of text",
    };
    return names[type];
}

static void add_row(const hf_key *key, hf_buf *out)
{
    hf_buf_printf(out, "| `%s` | %s | ", key->path, hf_key_type_name(key->type));
    if (key->preset != NULL)
        hf_buf_printf(out, "`%s`", key->preset);
    else if (key->unset != NULL)
        hf_buf_text(out, key->unset);
    hf_buf_text(out, " | ");
    hf_value_range(key, out);
    bool whole = key->type == HF_KEY_MAPPING;
    hf_buf_printf(out, " | %s | %s", whole ? "" : key->reload ? "yes" : "no", key->help);
    if (key->beside != NULL)
        hf_buf_printf(out, "; only beside `%s`", key->beside);
    hf_buf_text(out, " |\n");
}

hf_err hf_config_reference(char **text)
{
    hf_buf out;
    hf_buf_init(&out, REFERENCE_MAX);
    hf_buf_text(&out, "| key | type | default | range | reload | meaning |\n"
                      "|---|---|---|---|---|---|\n");
    size_t n;
    const hf_key *keys = hf_schema(&n);
    for (size_t i = 0; i < n; i++)
        add_row(&keys[i], &out);
    hf_err err = hf_buf_err(&out);
    if (err != HF_OK) {
        hf_buf_done(&out);
        return HF_NOMEM;
    }
    *text = out.data;
    return HF_OK;
}
