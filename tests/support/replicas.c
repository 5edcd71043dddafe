/* replicas.c - see replicas.h. */
#include "tests/support/replicas.h"

#include <string.h>

#include "tests/support/eventually.h"

enum { SYNCED_MS = 60000 };

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
