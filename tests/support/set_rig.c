/* set_rig.c - see set_rig.h. */
#include "tests/support/set_rig.h"

#include <signal.h>
#include <stdio.h>

void hf_set_rig_up(hf_set_rig *rig, size_t n, bool persistent)
{
    rig->n = n;
    for (size_t i = 0; i < n; i++) {
        hf_fixture_start(&rig->redis[i], &(hf_fixture_options){.persistent = persistent});
        hf_proxy_start(&rig->proxy[i], rig->redis[i].socket);
        rig->urls[i] = rig->redis[i].url;
        rig->proxied[i] = rig->proxy[i].url;
    }
}

void hf_set_rig_down(hf_set_rig *rig)
{
    for (size_t i = 0; i < rig->n; i++) {
        hf_proxy_stop(&rig->proxy[i]);
        hf_fixture_stop(&rig->redis[i]);
    }
}

void hf_set_rig_begin(hf_set_rig *rig)
{
    for (size_t i = 0; i < rig->n; i++) {
        if (rig->redis[i].pid == 0)
            hf_fixture_restart(&rig->redis[i]);
        hf_fixture_signal(&rig->redis[i], SIGCONT);
        (void)hf_fixture_command(&rig->redis[i], "FLUSHALL");
        hf_proxy_set(&rig->proxy[i], PROXY_REQUESTS, PROXY_PASS);
        hf_proxy_set(&rig->proxy[i], PROXY_ANSWERS, PROXY_PASS);
        hf_proxy_refuse(&rig->proxy[i], false);
    }
    rig->request_timeout_ms = 0;
    atomic_store(&rig->suspect, 0);
    atomic_store(&rig->held, 0);
    atomic_store(&rig->revoked, 0);
    atomic_store(&rig->lost, 0);
}

hf_lock_servers *hf_set_rig_open(hf_set_rig *rig, size_t n, bool proxied)
{
    hf_lock_servers *servers = NULL;
    const hf_lock_client_opts opts = {
        HF_LOCK_CLIENT_OPTS_INIT,
        .server = HF_SERVER(.request_timeout_ms = rig->request_timeout_ms)};
    hf_err err = hf_lock_servers_open(&servers, proxied ? rig->proxied : rig->urls, n,
                                      &opts, rig->detail);
    if (err != HF_OK)
        fail_msg("no client: %s", rig->detail);
    return servers;
}

void hf_set_rig_on_event(hf_lock_set *set, hf_lock_event event, size_t member, void *arg)
{
    hf_set_rig *rig = arg;
    atomic_uint *counts[] = {&rig->suspect, &rig->held, &rig->revoked, &rig->lost};
    (void)set;
    atomic_store(&rig->member, member);
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

bool hf_set_rig_has(hf_set_rig *rig, size_t i, const char *name)
{
    return hf_fixture_number(&rig->redis[i],
                             "EXISTS hf:lock:{%s}:cell:%s hf:lock:{%s}:e:%s", name, name,
                             name, name) > 0;
}

size_t hf_set_rig_count(hf_set_rig *rig, size_t n, const char *name)
{
    size_t have = 0;
    for (size_t i = 0; i < n; i++)
        have += hf_set_rig_has(rig, i, name);
    return have;
}
