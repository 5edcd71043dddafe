/* service.c - see service.h. */
#include "cli/worker/service.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

enum {
    SOON_MS = 20,             /* while something is awaited: the start, a reload */
    STATUS_MS = 10000,        /* otherwise */
    WATCHDOG_LEAST_MS = 20000 /* an idle worker's pulse may take 10 s */
};

static int64_t interval_ms(const hf_service *s)
{
    int64_t ms = STATUS_MS, third = (int64_t)s->notify.watchdog_ms / 3;
    if (third > 0 && third < ms)
        ms = third;
    return ms;
}

void hf_service_open(hf_service *s, hf_worker *worker, hf_log *log)
{
    *s = (hf_service){.worker = worker};
    if (!hf_notify_open(&s->notify))
        hf_log_write(HF_LOG_WARN,
                     "NOTIFY_SOCKET cannot be used: systemd gets no messages", NULL, 0,
                     log);
    if (s->notify.watchdog_ms != 0 && s->notify.watchdog_ms < WATCHDOG_LEAST_MS) {
        hf_log_field field = {.key = "watchdog_ms",
                              .number = (int64_t)s->notify.watchdog_ms};
        hf_log_write(HF_LOG_WARN,
                     "WatchdogSec is below 20 s: too short for an idle worker", &field, 1,
                     log);
    }
}

void hf_service_close(hf_service *s)
{
    hf_notify_close(&s->notify);
}

int64_t hf_service_wait_ms(const hf_service *s)
{
    if (s->notify.fd < 0)
        return -1;
    if (!s->ready || s->reloading || s->owes_stopping)
        return SOON_MS;
    uint64_t now = hf_boot_ns();
    return s->next_ns <= now ? 0 : (int64_t)((s->next_ns - now) / HF_MS_NS) + 1;
}

static void make_status(const hf_service *s, char out[sizeof s->status])
{
    const char *state = s->stopping ? "stopping" : s->quiet ? "quiet" : "serving";
    snprintf(out, sizeof s->status, "%s, %" PRIu32 " of %" PRIu32 " slots busy", state,
             hf_worker_running(s->worker), hf_worker_slots(s->worker));
}

static void tell_status(hf_service *s)
{
    char status[sizeof s->status];
    make_status(s, status);
    if (strcmp(status, s->status) != 0 && hf_notify_send(&s->notify, "STATUS=%s", status))
        memcpy(s->status, status, sizeof status);
}

/* Only a rise since the last report counts. */
static void tell_watchdog(hf_service *s)
{
    uint64_t pulse = hf_worker_pulse(s->worker);
    if (s->notify.watchdog_ms == 0 || pulse == s->pulse)
        return;
    s->pulse = pulse;
    (void)hf_notify_send(&s->notify, "WATCHDOG=1");
}

/* These three again until they could be sent: systemd waits for them. */
static void tell_stopping(hf_service *s)
{
    if (s->owes_stopping && hf_notify_send(&s->notify, "STOPPING=1"))
        s->owes_stopping = false;
}

static void tell_reloading(hf_service *s)
{
    if (s->owes_reloading &&
        hf_notify_send(&s->notify, "RELOADING=1\nMONOTONIC_USEC=%" PRId64,
                       s->reloading_us))
        s->owes_reloading = false;
}

static void tell_ready(hf_service *s)
{
    bool reloaded = s->reloading && hf_worker_reloads(s->worker) >= s->reloads;
    bool due = s->ready ? reloaded : hf_worker_pulse(s->worker) > 0;
    if (!due || s->stopping || s->owes_reloading ||
        !hf_notify_send(&s->notify, "READY=1"))
        return;
    s->ready = true;
    s->reloading = s->reloading && !reloaded;
    tell_status(s);
}

void hf_service_tick(hf_service *s)
{
    uint64_t now = hf_boot_ns();
    if (s->notify.fd < 0)
        return;
    tell_stopping(s);
    tell_reloading(s);
    tell_ready(s);
    if (!s->ready || now < s->next_ns)
        return;
    s->next_ns = now + (uint64_t)interval_ms(s) * HF_MS_NS;
    tell_watchdog(s);
    tell_status(s);
}

void hf_service_stopping(hf_service *s)
{
    if (s->notify.fd < 0)
        return;
    s->stopping = s->owes_stopping = true;
    tell_stopping(s);
    tell_status(s);
}

/* By the clock that systemd compares it with. */
void hf_service_reloading(hf_service *s)
{
    struct timespec now;
    if (s->notify.fd < 0)
        return;
    clock_gettime(CLOCK_MONOTONIC, &now);
    s->reloading_us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
    s->reloading = s->owes_reloading = true;
    tell_reloading(s);
}

void hf_service_reload_asked(hf_service *s)
{
    s->reloads++;
}
