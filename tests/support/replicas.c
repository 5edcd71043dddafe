/* replicas.c - see replicas.h. */
#include "tests/support/replicas.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/eventually.h"

enum { SYNCED_MS = 60000 };

/* No test leaves it to a Sentinel to find that a server is down, and one that only got no
 * processor for a second is not. */
enum { LONG_MS = 30000, CONFIG_SIZE = 512, DOWN_AFTER_MS = 600000 };

void hf_replicas_start(hf_fixture *replicas, size_t n, hf_fixture *primary)
{
    for (size_t i = 0; i < n; i++) {
        hf_fixture_start(&replicas[i], &(hf_fixture_options){HF_PRIMARY});
        assert_string_equal(hf_fixture_command(&replicas[i], "REPLICAOF 127.0.0.1 %u",
                                               (unsigned)primary->port),
                            "OK");
    }
    EVENTUALLY(SYNCED_MS, hf_replicas_online(primary) == n);
}

void hf_replicas_stop(hf_fixture *replicas, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hf_fixture_stop(&replicas[i]);
}

void hf_replicas_signal(hf_fixture *replicas, size_t n, int signal)
{
    for (size_t i = 0; i < n; i++)
        hf_fixture_signal(&replicas[i], signal);
}

size_t hf_replicas_online(hf_fixture *primary)
{
    size_t n = 0;
    const char *at = hf_fixture_command(primary, "INFO replication");
    while ((at = strstr(at, "state=online")) != NULL) {
        n++;
        at++;
    }
    return n;
}

/* ---- Sentinels ---- */

void hf_sentinel_fixture_start(hf_fixture *f, const hf_fixture_options *given,
                               uint16_t port)
{
    char config[CONFIG_SIZE];
    hf_fixture_options options = {0};
    if (given != NULL)
        options = *given;
    (void)snprintf(config, sizeof config,
                   "sentinel monitor m 127.0.0.1 %u 1\n"
                   "sentinel down-after-milliseconds m %d\n",
                   (unsigned)port, (int)DOWN_AFTER_MS);
    options.config = config;
    options.tcp = true;
    size_t n = 0;
    while (options.args[n] != NULL)
        n++;
    options.args[n] = "--sentinel";
    hf_fixture_start(f, &options);
    f->options.config = ""; /* that text was this function's; a restart reads the file */
}

void hf_sentinels_url(const hf_fixture *all, size_t n, char url[HF_SENTINELS_URL_SIZE])
{
    size_t len = (size_t)snprintf(url, HF_SENTINELS_URL_SIZE, "redis+sentinel://");
    for (size_t i = 0; i < n; i++)
        len += (size_t)snprintf(url + len, HF_SENTINELS_URL_SIZE - len, "%s127.0.0.1:%u",
                                i == 0 ? "" : ",", (unsigned)all[i].port);
    (void)snprintf(url + len, HF_SENTINELS_URL_SIZE - len, "/m");
}

static bool names(hf_fixture *f, uint16_t port)
{
    char wanted[32];
    (void)snprintf(wanted, sizeof wanted, "127.0.0.1\n%u\n", (unsigned)port);
    return strcmp(hf_fixture_command(f, "SENTINEL GET-MASTER-ADDR-BY-NAME m"), wanted) ==
           0;
}

/* The number of the configuration it has: each failover raises it. */
static unsigned long long epoch(hf_fixture *f)
{
    static const char field[] = "config-epoch\n";
    const char *at = strstr(hf_fixture_command(f, "SENTINEL MASTER m"), field);
    return at == NULL ? 0 : strtoull(at + strlen(field), NULL, 10);
}

void hf_sentinel_switch(hf_fixture *f, uint16_t port)
{
    unsigned long long next = epoch(f) + 1;
    char hello[256];
    (void)snprintf(hello, sizeof hello,
                   "127.0.0.1,1,0123456789012345678901234567890123456789,%llu,m,"
                   "127.0.0.1,%u,%llu",
                   next, (unsigned)port, next);
    (void)hf_fixture_command(f, "PUBLISH __sentinel__:hello %s", hello);
    EVENTUALLY(LONG_MS, names(f, port));
}

void hf_sentinel_switch_silently(hf_fixture *f, uint16_t port)
{
    assert_string_equal(hf_fixture_command(f, "SENTINEL REMOVE m"), "OK");
    assert_string_equal(
        hf_fixture_command(f, "SENTINEL MONITOR m 127.0.0.1 %u 1", (unsigned)port), "OK");
}
