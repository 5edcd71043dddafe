/* fixture.c - see fixture.h. */
#include "tests/history/fixture.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/history/line.h"

enum { LEASE_MS = 20000, QUIET_MS = 30000 };

hf_lock_client *hf_history_fixture_open(const char *url)
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

void hf_history_fixture_begin(hf_history_fixture *fixture)
{
    *fixture = (hf_history_fixture){.a = NULL};
    hf_tempdir_make(fixture->dir);
    (void)snprintf(fixture->players, sizeof fixture->players, "%s/players", fixture->dir);
    (void)snprintf(fixture->server, sizeof fixture->server, "%s/server", fixture->dir);
    (void)snprintf(fixture->file, sizeof fixture->file, "%s/file", fixture->dir);
    hf_fixture_start(&fixture->redis, &(hf_fixture_options){.tcp = true, .clock = true});
    hf_proxy_start(&fixture->proxy, fixture->redis.socket);
    hf_watch_start(&fixture->watch, &fixture->redis, fixture->server);
    fixture->recorder = hf_recorder_open(fixture->players, 1);
    fixture->a = hf_history_fixture_open(fixture->proxy.url);
    fixture->b = hf_history_fixture_open(hf_fixture_url(&fixture->redis));
}

void hf_history_fixture_end(hf_history_fixture *fixture)
{
    hf_recorder_rest(fixture->recorder);
    hf_lock_client_close(fixture->a, NULL, NULL);
    hf_lock_client_close(fixture->b, NULL, NULL);
    hf_recorder_close(fixture->recorder);
    hf_watch_stop(&fixture->watch);
    hf_proxy_stop(&fixture->proxy);
    hf_fixture_stop(&fixture->redis);
    if (getenv("HF_KEEP") != NULL)
        print_message("kept: %s\n", fixture->dir);
    else
        hf_tempdir_remove(fixture->dir);
}

int hf_history_fixture_up(void **state)
{
    hf_history_fixture_begin(*state);
    return 0;
}

int hf_history_fixture_down(void **state)
{
    hf_history_fixture_end(*state);
    return 0;
}

void hf_history_fixture_took(const hf_history_fixture *fixture, const char *name,
                             uint64_t from, uint64_t to)
{
    int fd = hf_lines_open(fixture->players);
    hf_line_write(
        fd, "{\"ev\":\"took\",\"name\":\"%s\",\"from\":%" PRIu64 ",\"to\":%" PRIu64 "}",
        name, from, to);
    (void)close(fd);
}

void hf_history_fixture_disturbed(const hf_history_fixture *fixture, uint64_t from,
                                  uint64_t to)
{
    int fd = hf_lines_open(fixture->players);
    hf_line_write(
        fd, "{\"ev\":\"disturbed\",\"player\":0,\"from\":%" PRIu64 ",\"to\":%" PRIu64 "}",
        from, to);
    (void)close(fd);
}

void hf_history_fixture_delete(hf_history_fixture *fixture, const char *name)
{
    char p[HF_LOCK_NAME_MAX + 32];
    (void)snprintf(p, sizeof p, "hf:lock:{%.*s}", (int)strcspn(name, "/"), name);
    uint64_t from = hf_boot_ns();
    EVENTUALLY(QUIET_MS, hf_fixture_number(&fixture->redis,
                                           "DEL %s:x:%s %s:q:%s %s:e:%s "
                                           "%s:cell:%s",
                                           p, name, p, name, p, name, p, name) >= 0);
    hf_history_fixture_took(fixture, name, from, hf_boot_ns());
}

void hf_history_fixture_check(hf_history_fixture *fixture)
{
    hf_history *h = hf_history_new();
    hf_watch_sync(&fixture->watch);
    hf_history_players(h, fixture->players);
    hf_history_server(h, fixture->server);
    if (fixture->other_server[0] != '\0')
        hf_history_server(h, fixture->other_server);
    if (access(fixture->file, F_OK) == 0)
        hf_history_file(h, fixture->file);
    hf_history_check(h, &fixture->report);
    hf_history_free(h);
}

void hf_history_fixture_judge(hf_history_fixture *fixture)
{
    hf_history_fixture_check(fixture);
    if (hf_report_total(&fixture->report) > 0) {
        hf_report_print(&fixture->report, stderr);
        fail_msg("the history is not sound");
    }
}

hf_taken *hf_history_fixture_take(hf_history_fixture *fixture, hf_lock_client *locks,
                                  const char *name, hf_lock_opts opts)
{
    if (opts.n_names == 0) {
        opts.names = &name;
        opts.n_names = 1;
    }
    if (opts.lease_ms == 0)
        opts.lease_ms = LEASE_MS;
    return hf_record_acquire(fixture->recorder, locks, opts, -1, NULL);
}

static void *seek(void *arg)
{
    hf_seeker *s = arg;
    s->taken = hf_history_fixture_take(s->fixture, s->locks, s->name, s->opts);
    atomic_store(&s->done, true);
    return NULL;
}

void hf_seek_begin(hf_seeker *s, hf_history_fixture *fixture, hf_lock_client *locks,
                   const char *name, hf_lock_opts opts)
{
    *s = (hf_seeker){.fixture = fixture, .locks = locks, .name = name, .opts = opts};
    assert_int_equal(pthread_create(&s->thread, NULL, seek, s), 0);
}

void hf_seek_end(hf_seeker *s)
{
    assert_int_equal(pthread_join(s->thread, NULL), 0);
}

long long hf_history_fixture_queue(hf_history_fixture *fixture, const char *name)
{
    char tag[HF_LOCK_NAME_MAX + 1];
    (void)snprintf(tag, sizeof tag, "%.*s", (int)strcspn(name, "/"), name);
    return hf_fixture_number(&fixture->redis, "ZCARD hf:lock:{%s}:q:%s", tag, name);
}
