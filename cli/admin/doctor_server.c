/* doctor_server.c - is this Redis one that jobs can be trusted to: what it says of itself
 * by INFO (its configuration is never asked for, and never changed), how far away it is,
 * and what its clock says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/admin/doctor.h"

enum { SKEW_US = 1000000, SLOW_US = 1000, NEARLY_FULL = 90, MIB = 1 << 20 };

/* The features that a version lacks, as far as they matter here. */
typedef struct lack {
    int major, minor; /* older than this */
    const char *what;
} lack;

static const lack lacks[] = {
    {7, 0, "it reports snapshots only once it has made one"},
};

/* INFO is permitted. Without it only the version and the role are known, from HELLO. */
static bool has_info(const hf_server_info *server)
{
    return server->policy[0] != '\0';
}

static void look_at_version(hf_doctor *d, const hf_server_info *server)
{
    char *end = NULL;
    long major = strtol(server->version, &end, 10);
    long minor = *end == '.' ? strtol(end + 1, NULL, 10) : 0;
    if (!has_info(server))
        hf_doctor_note(d, "INFO is not permitted: memory, eviction policy and "
                          "persistence are not known");
    for (size_t i = 0; i < sizeof lacks / sizeof *lacks; i++) {
        const lack *l = &lacks[i];
        if (major < l->major || (major == l->major && minor < l->minor))
            hf_doctor_note(d, "this is Redis %s; before %d.%d %s", server->version,
                           l->major, l->minor, l->what);
    }
}

static const char full_text[] =
    "is reached, so new jobs are refused, and all else goes on";
static const char full_remedy[] =
    "raise maxmemory, let workers drain the queues, or remove "
    "dead jobs: holdfast dead purge";

static void look_at_memory(hf_doctor *d, const hf_server_info *server)
{
    char text[HF_DOCTOR_TEXT];
    if (server->policy[0] != '\0' && strcmp(server->policy, "noeviction") != 0)
        hf_doctor_by_hand(d, "eviction", server->policy,
                          "is the eviction policy, so keys may be evicted",
                          "set maxmemory-policy noeviction in Redis");
    if (server->maxmemory <= 0 ||
        server->used_memory / NEARLY_FULL < server->maxmemory / 100)
        return;
    bool full = server->used_memory >= server->maxmemory;
    double part = (double)server->used_memory * 100 / (double)server->maxmemory;
    snprintf(text, sizeof text, "%s: %.1f of %.1f MiB are used (%.0f %%)",
             full ? full_text : "is nearly reached", (double)server->used_memory / MIB,
             (double)server->maxmemory / MIB, part);
    hf_doctor_by_hand(d, "memory", "maxmemory", text, full_remedy);
}

static void look_at_persistence(hf_doctor *d, const hf_server_info *server)
{
    if (server->aof_failed)
        hf_doctor_by_hand(d, "persistence", "aof",
                          "the last write of the append-only file failed",
                          "look at the disk and at Redis's log: is it full, or not "
                          "writable?");
    if (server->rdb_failed)
        hf_doctor_by_hand(d, "persistence", "rdb", "the last snapshot failed",
                          "look at the disk and at Redis's log: is it full, not "
                          "writable, or has fork no memory?");
    if (has_info(server) && !server->aof && !server->rdb && !server->rdb_failed)
        hf_doctor_note(d, "this Redis has no append-only file, and has saved no snapshot "
                          "yet: without one all jobs are gone when it ends");
}

/* What processes with this configuration wait for. */
static void look_at_replicas(hf_doctor *d, const hf_server_info *server)
{
    char text[HF_DOCTOR_TEXT];
    const uint32_t wanted = d->cli->config->worker.wait_replicas;
    if (wanted == 0)
        return;
    if (!has_info(server)) {
        hf_doctor_by_hand(d, "replicas", "INFO",
                          "is not permitted: nothing is ever confirmed by replicas",
                          "permit it, or remove redis.wait_replicas");
    } else if (server->replicas < (int64_t)wanted) {
        snprintf(text, sizeof text,
                 "%lld are connected, and redis.wait_replicas is %u: no job is started, "
                 "and none is confirmed",
                 (long long)server->replicas, wanted);
        hf_doctor_by_hand(d, "replicas", "too few", text,
                          "look at the replicas and their logs, or lower "
                          "redis.wait_replicas");
    }
}

/* A node of a cluster may not have the slot that is tried; of min-replicas-to-write it
 * tells at least how many replicas count. */
static void look_at_writes(hf_doctor *d, const hf_server_info *server)
{
    char text[HF_DOCTOR_TEXT], why[HF_DETAIL_SIZE] = "";
    hf_err err = d->cluster ? HF_AUTH : hf_admin_check_writes(d->admin, NULL, why);
    bool replicas = server->good_replicas >= 0;
    if (err == HF_OK || (err == HF_AUTH && server->good_replicas != 0))
        return;
    if (err == HF_OOM) { /* `memory` says the same where INFO tells the figures */
        if (server->maxmemory <= 0)
            hf_doctor_by_hand(d, "memory", "maxmemory", full_text, full_remedy);
        return;
    }
    if (err == HF_AUTH)
        snprintf(why, sizeof why, "min-replicas-to-write is set, and no replica counts");
    snprintf(text, sizeof text,
             "every write is refused, so no job is accepted, started or ended: %.150s",
             why);
    hf_doctor_by_hand(d, "writes", "refused", text,
                      replicas ? "bring the replicas back, or lower "
                                 "min-replicas-to-write"
                               : hf_exit_hint(err));
}

static hf_err look_at_clock(hf_doctor *d)
{
    hf_round_trip trip = {HF_ROUND_TRIP_INIT};
    char text[HF_DOCTOR_TEXT];
    hf_err err = hf_admin_round_trip(d->admin, &trip, d->cli->detail);
    if (err != HF_OK)
        return err;
    int64_t off_us = llabs(trip.ahead_us);
    if (off_us - trip.unsure_us > SKEW_US) {
        snprintf(text, sizeof text,
                 "Redis's clock is %.3f s %s this host's (give or take %.3f ms)",
                 (double)off_us / 1e6, trip.ahead_us > 0 ? "ahead of" : "behind",
                 (double)trip.unsure_us / 1e3);
        hf_doctor_by_hand(d, "clock", "TIME", text,
                          "correct the wrong clock slowly; let both follow NTP");
    }
    if (trip.took_us >= SLOW_US)
        hf_doctor_note(d,
                       "a round trip to this Redis takes %.1f ms (the shortest of five): "
                       "each batch of jobs needs several",
                       (double)trip.took_us / 1e3);
    return HF_OK;
}

typedef struct server_visit {
    hf_doctor *doctor;
    hf_err err;
} server_visit;

static hf_err look_at_server(hf_doctor *d)
{
    const hf_server_info *server = hf_admin_server(d->admin);
    look_at_version(d, server);
    if (server->role[0] != '\0' && strcmp(server->role, "master") != 0)
        hf_doctor_by_hand(d, "role", server->role, "this is a replica",
                          "use the address of its primary");
    look_at_memory(d, server);
    look_at_persistence(d, server);
    look_at_replicas(d, server);
    look_at_writes(d, server);
    return look_at_clock(d);
}

static void on_server(const char *place, hf_err err, const char *detail, void *arg)
{
    server_visit *visit = arg;
    hf_doctor *d = visit->doctor;
    hf_doctor_begin(d, NULL);
    d->place = place;
    d->cluster = place != NULL;
    if (err == HF_OK)
        err = look_at_server(d);
    else
        (void)snprintf(d->cli->detail, HF_DETAIL_SIZE, "%s", detail);
    if (err != HF_OK && d->cluster)
        err = hf_doctor_unreadable(d, "node", err);
    hf_doctor_end(d);
    d->place = NULL;
    if (visit->err == HF_OK)
        visit->err = err;
}

/* Each node of a cluster, or the one Redis. */
hf_err hf_doctor_server(hf_doctor *d)
{
    server_visit visit = {d, HF_OK};
    hf_err err = hf_admin_servers(d->admin, on_server, &visit, d->cli->detail);
    return err == HF_OK ? visit.err : err;
}
