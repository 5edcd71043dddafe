/* rig.c - see rig.h. */
#include "tests/history/rig.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/history/line.h"

enum { LEASE_MS = 20000, QUIET_MS = 30000 };

hf_lock_client *hf_history_rig_open(const char *url)
{
    hf_lock_client *locks = NULL;
    char detail[HF_DETAIL_SIZE];
    const hf_lock_client_opts opts = {
        HF_LOCK_CLIENT_OPTS_INIT,
        .server = HF_SERVER(.url = url, .connect_timeout_ms = QUIET_MS,
                            .request_timeout_ms = QUIET_MS)};
    if (hf_lock_client_open(&locks, &opts, detail) != HF_OK)
        fail_msg("no client: %s", detail);
    return locks;
}

void hf_history_rig_begin(hf_history_rig *rig)
{
    *rig = (hf_history_rig){.a = NULL};
    hf_tempdir_make(rig->dir);
    (void)snprintf(rig->players, sizeof rig->players, "%s/players", rig->dir);
    (void)snprintf(rig->server, sizeof rig->server, "%s/server", rig->dir);
    (void)snprintf(rig->file, sizeof rig->file, "%s/file", rig->dir);
    hf_fixture_start(&rig->redis, &(hf_fixture_options){.tcp = true, .clock = true});
    hf_proxy_start(&rig->proxy, rig->redis.socket);
    hf_watch_start(&rig->watch, &rig->redis, rig->server);
    rig->recorder = hf_recorder_open(rig->players, 1);
    rig->a = hf_history_rig_open(rig->proxy.url);
    rig->b = hf_history_rig_open(hf_fixture_url(&rig->redis));
}

void hf_history_rig_end(hf_history_rig *rig)
{
    hf_recorder_rest(rig->recorder);
    hf_lock_client_close(rig->a, NULL, NULL);
    hf_lock_client_close(rig->b, NULL, NULL);
    hf_recorder_close(rig->recorder);
    hf_watch_stop(&rig->watch);
    hf_proxy_stop(&rig->proxy);
    hf_fixture_stop(&rig->redis);
    if (getenv("HF_KEEP") != NULL)
        print_message("kept: %s\n", rig->dir);
    else
        hf_tempdir_remove(rig->dir);
}

void hf_history_rig_took(const hf_history_rig *rig, const char *name, uint64_t from,
                         uint64_t to)
{
    int fd = hf_lines_open(rig->players);
    hf_line_write(
        fd, "{\"ev\":\"took\",\"name\":\"%s\",\"from\":%" PRIu64 ",\"to\":%" PRIu64 "}",
        name, from, to);
    (void)close(fd);
}

void hf_history_rig_disturbed(const hf_history_rig *rig, uint64_t from, uint64_t to)
{
    int fd = hf_lines_open(rig->players);
    hf_line_write(
        fd, "{\"ev\":\"disturbed\",\"player\":0,\"from\":%" PRIu64 ",\"to\":%" PRIu64 "}",
        from, to);
    (void)close(fd);
}

void hf_history_rig_delete(hf_history_rig *rig, const char *name)
{
    char p[HF_LOCK_NAME_MAX + 32];
    (void)snprintf(p, sizeof p, "hf:lock:{%.*s}", (int)strcspn(name, "/"), name);
    uint64_t from = hf_boot_ns();
    EVENTUALLY(QUIET_MS, hf_fixture_number(&rig->redis,
                                           "DEL %s:x:%s %s:q:%s %s:e:%s "
                                           "%s:cell:%s",
                                           p, name, p, name, p, name, p, name) >= 0);
    hf_history_rig_took(rig, name, from, hf_boot_ns());
}

void hf_history_rig_check(hf_history_rig *rig)
{
    hf_history *h = hf_history_new();
    hf_watch_sync(&rig->watch);
    hf_history_players(h, rig->players);
    hf_history_server(h, rig->server);
    if (rig->other_server[0] != '\0')
        hf_history_server(h, rig->other_server);
    if (access(rig->file, F_OK) == 0)
        hf_history_file(h, rig->file);
    hf_history_check(h, &rig->report);
    hf_history_free(h);
}

void hf_history_rig_judge(hf_history_rig *rig)
{
    hf_history_rig_check(rig);
    if (hf_report_total(&rig->report) > 0) {
        hf_report_print(&rig->report, stderr);
        fail_msg("the history is not sound");
    }
}

hf_taken *hf_history_rig_take(hf_history_rig *rig, hf_lock_client *locks,
                              const char *name, hf_lock_opts opts)
{
    if (opts.n_names == 0) {
        opts.names = &name;
        opts.n_names = 1;
    }
    if (opts.lease_ms == 0)
        opts.lease_ms = LEASE_MS;
    return hf_record_acquire(rig->recorder, locks, opts, -1, NULL);
}

static void *seek(void *arg)
{
    hf_seeker *s = arg;
    s->taken = hf_history_rig_take(s->rig, s->locks, s->name, s->opts);
    atomic_store(&s->done, true);
    return NULL;
}

void hf_seek_begin(hf_seeker *s, hf_history_rig *rig, hf_lock_client *locks,
                   const char *name, hf_lock_opts opts)
{
    *s = (hf_seeker){.rig = rig, .locks = locks, .name = name, .opts = opts};
    assert_int_equal(pthread_create(&s->thread, NULL, seek, s), 0);
}

void hf_seek_end(hf_seeker *s)
{
    assert_int_equal(pthread_join(s->thread, NULL), 0);
}

long long hf_history_rig_queue(hf_history_rig *rig, const char *name)
{
    char tag[HF_LOCK_NAME_MAX + 1];
    (void)snprintf(tag, sizeof tag, "%.*s", (int)strcspn(name, "/"), name);
    return hf_fixture_number(&rig->redis, "ZCARD hf:lock:{%s}:q:%s", tag, name);
}
