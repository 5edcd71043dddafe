/* browser.c - `holdfast demo --dashboard`: the pages of `holdfast dashboard` over the
 * demo's Redis. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/demo/demo.h"

enum { START_MS = 10000, LOG_SIZE = 1024 };

static const char ready[] = "listening on ";

/* The beginning of what the dashboard has written. */
static const char *read_log(const char *path, char out[LOG_SIZE])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, out, LOG_SIZE - 1);
    if (fd >= 0)
        (void)close(fd);
    out[n > 0 ? n : 0] = '\0';
    return out;
}

/* The address ends before a comma: "listening on http://127.0.0.1:8880/, read only". */
static bool find_address(hf_demo *d, const char *log)
{
    const char *at = strstr(log, ready);
    if (at == NULL || strchr(at, '\n') == NULL)
        return false;
    at += sizeof ready - 1;
    (void)snprintf(d->dashboard_url, sizeof d->dashboard_url, "%.*s",
                   (int)strcspn(at, ",\n"), at);
    return true;
}

/* The first line says what is wrong, and begins with the program's name. */
static int fail(hf_demo *d, const char *log)
{
    const char *colon = strstr(log, ": ");
    const char *what = colon != NULL ? colon + 2 : "it did not answer";
    return hf_demo_wrong(d, HF_EXIT_UNAVAILABLE, "%.*s", (int)strcspn(what, "\n"), what);
}

int hf_demo_open_dashboard(hf_demo *d)
{
    char log[HF_DEMO_FILE_SIZE], text[LOG_SIZE];
    const char *argv[] = {"holdfast", "dashboard",  "--listen", "127.0.0.1:0",
                          "--redis",  d->redis.url, NULL};
    int code = hf_demo_spawn(d, "dashboard.log", argv, log, &d->dashboard);
    const int64_t until_ms = hf_demo_now_ms() + START_MS;
    while (code == HF_EXIT_OK && !find_address(d, read_log(log, text))) {
        if (hf_demo_worker_ended(&d->dashboard) || hf_demo_now_ms() >= until_ms)
            return fail(d, read_log(log, text));
        code = hf_demo_pause(d, HF_DEMO_TICK_MS);
    }
    if (code == HF_EXIT_OK)
        hf_demo_say(d, "the dashboard is at %s", d->dashboard_url);
    return code;
}

void hf_demo_keep_dashboard(hf_demo *d)
{
    if (d->cli->json)
        printf("{\"dashboard\":\"%s\"}\n", d->dashboard_url);
    else
        printf("  The dashboard stays at %s until Control-C\n", d->dashboard_url);
    (void)fflush(stdout);
    while (!hf_demo_worker_ended(&d->dashboard) &&
           hf_demo_pause(d, HF_DEMO_TICK_MS) == HF_EXIT_OK)
        continue;
    d->signal = 0; /* it was asked for */
}
