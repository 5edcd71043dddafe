/* set_fixture.c - see set_fixture.h. */
#include "tests/support/set_fixture.h"

#include <signal.h>
#include <stdio.h>

void hf_set_fixture_up(hf_set_fixture *fixture, size_t n, bool persistent)
{
    fixture->n = n;
    for (size_t i = 0; i < n; i++) {
        hf_fixture_start(&fixture->redis[i],
                         &(hf_fixture_options){.persistent = persistent});
        hf_proxy_start(&fixture->proxy[i], fixture->redis[i].socket);
        fixture->urls[i] = fixture->redis[i].url;
        fixture->proxied[i] = fixture->proxy[i].url;
    }
}

void hf_set_fixture_down(hf_set_fixture *fixture)
{
    for (size_t i = 0; i < fixture->n; i++) {
        hf_proxy_stop(&fixture->proxy[i]);
        hf_fixture_stop(&fixture->redis[i]);
    }
}

void hf_set_fixture_begin(hf_set_fixture *fixture)
{
    for (size_t i = 0; i < fixture->n; i++) {
        if (fixture->redis[i].pid == 0)
            hf_fixture_restart(&fixture->redis[i]);
        hf_fixture_signal(&fixture->redis[i], SIGCONT);
        (void)hf_fixture_command(&fixture->redis[i], "FLUSHALL");
        hf_proxy_set(&fixture->proxy[i], PROXY_REQUESTS, PROXY_PASS);
        hf_proxy_set(&fixture->proxy[i], PROXY_ANSWERS, PROXY_PASS);
        hf_proxy_refuse(&fixture->proxy[i], false);
    }
    fixture->request_timeout_ms = 0;
    atomic_store(&fixture->suspect, 0);
    atomic_store(&fixture->held, 0);
    atomic_store(&fixture->revoked, 0);
    atomic_store(&fixture->lost, 0);
}

hf_lock_servers *hf_set_fixture_open(hf_set_fixture *fixture, size_t n, bool proxied)
{
    hf_lock_servers *servers = NULL;
    const hf_lock_client_opts opts = {
        HF_LOCK_CLIENT_OPTS_INIT,
        .server = HF_SERVER(.request_timeout_ms = fixture->request_timeout_ms)};
    hf_err err = hf_lock_servers_open(
        &servers, proxied ? fixture->proxied : fixture->urls, n, &opts, fixture->detail);
    if (err != HF_OK)
        fail_msg("no client: %s", fixture->detail);
    return servers;
}

void hf_set_fixture_on_event(hf_lock_set *set, hf_lock_event event, size_t member,
                             void *arg)
{
    hf_set_fixture *fixture = arg;
    atomic_uint *counts[] = {&fixture->suspect, &fixture->held, &fixture->revoked,
                             &fixture->lost};
    (void)set;
    atomic_store(&fixture->member, member);
    atomic_fetch_add(counts[event], 1);
}

void hf_set_on_acquired(hf_lock_set *set, hf_err err, const char *detail, void *arg)
{
    hf_set_told *told = arg;
    (void)detail;
    told->set = set;
    told->err = err;
    told->acquired++;
}

void hf_set_on_released(hf_lock_set *set, hf_lock_release_result result,
                        const hf_lock_release_result *each, size_t n, void *arg)
{
    hf_set_told *told = arg;
    (void)set;
    (void)each;
    told->n = n;
    told->result = result;
    told->released++;
}

void hf_set_on_closed(void *arg)
{
    hf_set_told *told = arg;
    told->closed++;
}

bool hf_set_turn(uv_loop_t *loop)
{
    (void)uv_run(loop, UV_RUN_NOWAIT);
    return true;
}

bool hf_set_fixture_has(hf_set_fixture *fixture, size_t i, const char *name)
{
    return hf_fixture_number(&fixture->redis[i],
                             "EXISTS hf:lock:{%s}:cell:%s hf:lock:{%s}:e:%s", name, name,
                             name, name) > 0;
}

size_t hf_set_fixture_count(hf_set_fixture *fixture, size_t n, const char *name)
{
    size_t have = 0;
    for (size_t i = 0; i < n; i++)
        have += hf_set_fixture_has(fixture, i, name);
    return have;
}
