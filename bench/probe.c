/* probe.c - see probe.h. */
#include "bench/probe.h"

#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "redis/url.h"

enum {
    CONNECT_S = 5,
    ANSWER_S = 30,       /* longer than anything here takes */
    CLOCK_SAMPLES = 200, /* the fastest one counts */
    SCAN_COUNT = 1000
};

hf_err hf_probe_fail(hf_probe *probe, hf_err err, const char *why)
{
    (void)snprintf(probe->detail, sizeof probe->detail, "%.240s", why);
    return err;
}

hf_err hf_probe_check(hf_probe *probe, redisReply **reply)
{
    static const char *const refusals[] = {"NOAUTH", "WRONGPASS", "NOPERM"};
    if (*reply == NULL)
        return hf_probe_fail(probe, HF_CONN, probe->redis->errstr);
    if ((*reply)->type != REDIS_REPLY_ERROR)
        return HF_OK;
    hf_err err = HF_REDIS;
    for (size_t i = 0; i < HF_COUNT(refusals); i++) {
        if (strncmp((*reply)->str, refusals[i], strlen(refusals[i])) == 0)
            err = HF_AUTH;
    }
    (void)hf_probe_fail(probe, err, (*reply)->str);
    freeReplyObject(*reply);
    *reply = NULL;
    return err;
}

/* ---- connecting ---- */

static hf_err done(hf_probe *probe, redisReply *reply)
{
    hf_err err = hf_probe_check(probe, &reply);
    freeReplyObject(reply);
    return err;
}

static hf_err log_in(hf_probe *probe, const hf_url *url)
{
    hf_err err = HF_OK;
    if (url->user[0] != '\0')
        err = done(probe,
                   redisCommand(probe->redis, "AUTH %s %s", url->user, url->password));
    else if (url->password[0] != '\0')
        err = done(probe, redisCommand(probe->redis, "AUTH %s", url->password));
    if (err == HF_OK && url->db != 0)
        err = done(probe, redisCommand(probe->redis, "SELECT %d", (int)url->db));
    return err;
}

static hf_err dial(hf_probe *probe, const hf_url *url)
{
    const struct timeval connect = {.tv_sec = CONNECT_S}, answer = {.tv_sec = ANSWER_S};
    probe->redis = url->path[0] != '\0'
                       ? redisConnectUnixWithTimeout(url->path, connect)
                       : redisConnectWithTimeout(url->host, url->port, connect);
    if (probe->redis == NULL)
        return hf_probe_fail(probe, HF_NOMEM, hf_err_text(HF_NOMEM));
    if (probe->redis->err != 0)
        return hf_probe_fail(probe, HF_CONN, probe->redis->errstr);
    if (redisSetTimeout(probe->redis, answer) != REDIS_OK ||
        fcntl(probe->redis->fd, F_SETFD, FD_CLOEXEC) != 0)
        return hf_probe_fail(probe, HF_SYSTEM, "a connection cannot be set up");
    return log_in(probe, url);
}

hf_err hf_probe_open(hf_probe *probe, const char *text, const char *password_file)
{
    hf_url url;
    *probe = (hf_probe){.redis = NULL};
    hf_err err = hf_url_parse(&url, text, probe->detail);
    if (err == HF_OK && (url.tls || url.sentinel.n_nodes > 0 || url.cluster.n_nodes > 0))
        err = hf_probe_fail(probe, HF_CONFIG,
                            "expected a redis:// or unix:// URL: the bench has no TLS, "
                            "asks no Sentinels, and measures one Redis");
    if (err == HF_OK && password_file != NULL)
        err = hf_url_read_password(url.password, password_file, probe->detail);
    if (err == HF_OK)
        err = dial(probe, &url);
    hf_url_wipe(&url);
    if (err != HF_OK)
        hf_probe_close(probe);
    return err;
}

void hf_probe_close(hf_probe *probe)
{
    redisFree(probe->redis);
    probe->redis = NULL;
}

/* ---- asking ---- */

hf_err hf_probe_memory(hf_probe *probe, int64_t *bytes)
{
    static const char field[] = "\nused_memory:";
    redisReply *reply = redisCommand(probe->redis, "INFO memory");
    hf_err err = hf_probe_check(probe, &reply);
    if (err != HF_OK)
        return err;
    const char *found = reply->str != NULL ? strstr(reply->str, field) : NULL;
    if (found != NULL)
        *bytes = strtoll(found + strlen(field), NULL, 10);
    else
        err =
            hf_probe_fail(probe, HF_PROTO, "Redis does not say how much memory it uses");
    freeReplyObject(reply);
    return err;
}

hf_err hf_probe_scripts(hf_probe *probe, double *ms)
{
    static const char field[] = "cmdstat_evalsha:", usec[] = "usec=";
    redisReply *reply = redisCommand(probe->redis, "INFO commandstats");
    hf_err err = hf_probe_check(probe, &reply);
    if (err != HF_OK)
        return err;
    const char *at = reply->str != NULL ? strstr(reply->str, field) : NULL;
    at = at == NULL ? NULL : strstr(at, usec);
    *ms = at == NULL ? 0 : strtod(at + sizeof usec - 1, NULL) / 1000; /* none yet */
    freeReplyObject(reply);
    return err;
}

int64_t hf_probe_wall_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The shorter the way, the less is unknown about when on it the clock was read. */
hf_err hf_probe_clock(hf_probe *probe, int64_t *offset_ns)
{
    int64_t best = INT64_MAX;
    for (int i = 0; i < CLOCK_SAMPLES; i++) {
        int64_t before = hf_probe_wall_ns();
        redisReply *reply = redisCommand(probe->redis, "TIME");
        int64_t after = hf_probe_wall_ns();
        hf_err err = hf_probe_check(probe, &reply);
        if (err != HF_OK)
            return err;
        if (reply->elements == 2 && after - before < best) {
            int64_t us = strtoll(reply->element[0]->str, NULL, 10) * 1000000 +
                         strtoll(reply->element[1]->str, NULL, 10);
            best = after - before;
            *offset_ns = us * 1000 - (before + best / 2);
        }
        freeReplyObject(reply);
    }
    return best == INT64_MAX
               ? hf_probe_fail(probe, HF_PROTO, "Redis does not say its time")
               : HF_OK;
}

static hf_err wipe_some(hf_probe *probe, const redisReply *keys)
{
    hf_err err = HF_OK;
    for (size_t i = 0; i < keys->elements && err == HF_OK; i++)
        err = done(probe, redisCommand(probe->redis, "UNLINK %b", keys->element[i]->str,
                                       (size_t)keys->element[i]->len));
    return err;
}

hf_err hf_probe_wipe(hf_probe *probe, const char *ns)
{
    char cursor[24] = "0";
    do {
        redisReply *reply = redisCommand(probe->redis, "SCAN %s MATCH %s:* COUNT %d",
                                         cursor, ns, SCAN_COUNT);
        hf_err err = hf_probe_check(probe, &reply);
        if (err != HF_OK)
            return err;
        (void)snprintf(cursor, sizeof cursor, "%s", reply->element[0]->str);
        err = wipe_some(probe, reply->element[1]);
        freeReplyObject(reply);
        if (err != HF_OK)
            return err;
    } while (strcmp(cursor, "0") != 0);
    return HF_OK;
}
