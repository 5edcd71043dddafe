/* manual.c - the manual page holdfast.yaml(5), made from the table of all keys. */
#include <string.h>

#include "base/buf.h"
#include "base/roff.h"
#include "config/config.h"
#include "config/value.h"

enum { RANGE_MAX = 1024 };

static const char example[] = "redis:\n"
                              "  url: redis://localhost:6379/0\n"
                              "worker:\n"
                              "  concurrency: 4\n"
                              "  shutdown_timeout: 1m30s\n"
                              "queues:\n"
                              "  - name: mail\n"
                              "    max_running: 2\n"
                              "retry: {max_attempts: 5, base: 1s, cap: 10m}\n"
                              "handlers:\n"
                              "  - type: email.send\n"
                              "    exec: [/usr/local/bin/send-email]\n"
                              "    timeout: 30s\n"
                              "schedules:\n"
                              "  - id: nightly\n"
                              "    queue: mail\n"
                              "    type: email.send\n"
                              "    cron: '0 3 * * *'";

static const char description[] =
    "A worker reads this file, and the other commands take from it where Redis is. It is "
    "YAML with one document. Options override the environment (REDIS_URL), which "
    "overrides the file, which overrides the defaults. A missing key has its default.\n"
    "A duration is a whole number with its unit, ms s m h d (250ms, 10s, 180d), or "
    "several, the larger unit first and each once (1h30m). A size is a number of bytes, "
    "or has a unit: KiB MiB GiB. A time has its zone: 2030-01-31T08:00:00Z.\n"
    "An unknown or repeated key, a value of the wrong kind or out of its range, an alias "
    "and a tag are errors: the command prints FILE:LINE:COL, what it expected and what "
    "it "
    "found, exits with 78, and does nothing else. holdfast check -c FILE runs this check "
    "alone.\n"
    "A worker reads its file again when it gets HUP. A change of a key that is marked "
    "\"reload\" takes effect then; the log names those that need a restart. A bad file "
    "changes nothing.";

/* `code` is bold. */
static void put_help(FILE *file, const char *text)
{
    char part[RANGE_MAX];
    for (bool code = false; *text != '\0'; code = !code) {
        size_t len = strcspn(text, "`");
        (void)snprintf(part, sizeof part, "%.*s", (int)len, text);
        fputs(code ? "\\fB" : "", file);
        hf_roff_put(file, part);
        fputs(code ? "\\fR" : "", file);
        text += len + (text[len] == '`' ? 1 : 0);
    }
}

/* "(duration; 1s to 1h; default 10s; reload)" */
static void put_facts(FILE *file, const hf_key *key)
{
    char text[RANGE_MAX] = "";
    hf_buf range;
    hf_buf_init(&range, RANGE_MAX);
    hf_value_range(key, &range);
    hf_buf_add(&range, "", 1);
    fprintf(file, " (%s", hf_key_type_name(key->type));
    if (hf_buf_err(&range) == HF_OK && *range.data != '\0') {
        (void)snprintf(text, sizeof text, "; %s", range.data);
        hf_roff_put(file, text);
    }
    hf_buf_done(&range);
    if (key->required) {
        fputs("; required", file);
    } else if (key->preset != NULL || key->unset != NULL) {
        (void)snprintf(text, sizeof text, "%s",
                       key->preset != NULL ? key->preset : key->unset);
        fputs("; default ", file);
        put_help(file, text);
    }
    fputs(key->reload && key->type != HF_KEY_MAPPING ? "; reload)\n" : ")\n", file);
}

void hf_config_manual(FILE *file)
{
    size_t n;
    const hf_key *keys = hf_schema(&n);
    fputs(".TH HOLDFAST.YAML 5 \"\" \"holdfast " HOLDFAST_VERSION "\"\n"
          ".SH NAME\nholdfast.yaml \\- the configuration file of holdfast\n"
          ".SH SYNOPSIS\n.B holdfast worker run \\-c\n.I FILE\n"
          ".SH DESCRIPTION\n",
          file);
    hf_roff_put(file, description);
    fputs("\n.SH KEYS\nA list is marked by []. TYPE stands for the name of a type.\n",
          file);
    for (size_t i = 0; i < n; i++) {
        fputs(".TP\n\\fB", file);
        hf_roff_put(file, keys[i].path);
        fputs("\\fR", file);
        put_facts(file, &keys[i]);
        put_help(file, keys[i].help);
        if (keys[i].beside != NULL)
            fprintf(file, "; only beside \\fB%s\\fR", keys[i].beside);
        fputc('\n', file);
    }
    fputs(".SH FILES\n.TP\n.I /etc/holdfast/NAME.yaml\n"
          "the file of the service holdfast\\-worker@NAME\n"
          ".SH EXAMPLES\n",
          file);
    hf_roff_example(file, example);
    fputs(".SH SEE ALSO\n.BR holdfast (1)\n", file);
}
