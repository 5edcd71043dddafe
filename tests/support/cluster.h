/* cluster.h - a private cluster: each node is an hf_fixture, and the primaries share all
 * slots evenly, in order. It takes two seconds to become usable, which Redis fixes; so a
 * test program starts one for all its tests. A node that gets no processor for a while is
 * not taken for failed, and a replica takes over only when the test says so. */
#ifndef HF_TESTS_CLUSTER_H
#define HF_TESTS_CLUSTER_H

#include "redis/slots.h"
#include "tests/support/redis_fixture.h"

enum { HF_CLUSTER_MAX = 8, HF_CLUSTER_URL_SIZE = 256 };

typedef struct hf_cluster_fixture {
    hf_fixture nodes[HF_CLUSTER_MAX]; /* the primaries, then a replica of each */
    size_t primaries, n;
    bool tls;
    char certs[6][HF_TEMPDIR_SIZE + 16]; /* arguments, with tls */
    char url[HF_CLUSTER_URL_SIZE];       /* of the first node alone */
} hf_cluster_fixture;

/* Returns when all nodes know the table and serve it. `replicas`: one for each primary.
 */
void hf_cluster_start(hf_cluster_fixture *cluster, size_t primaries, bool replicas);
/* By TLS alone, with the authority of the first node; without replicas. */
void hf_cluster_start_tls(hf_cluster_fixture *cluster, size_t primaries);
void hf_cluster_stop(hf_cluster_fixture *cluster);

/* The URL of all nodes. */
void hf_cluster_url(const hf_cluster_fixture *cluster, char out[HF_CLUSTER_URL_SIZE]);

/* The node that serves a key; NULL: none does at the moment. */
hf_fixture *hf_cluster_owner(hf_cluster_fixture *cluster, const char *key);

/* A queue's name whose slot was given to this primary; the number makes them differ. */
void hf_cluster_queue(const hf_cluster_fixture *cluster, size_t primary, unsigned number,
                      char out[32]);

/* Moves a slot and its keys, step by step as redis-cli does: first all up to the last
 * step, in which both nodes serve a part; then the rest. */
void hf_cluster_move_begin(hf_cluster_fixture *cluster, unsigned slot, hf_fixture *to);
void hf_cluster_move_end(hf_cluster_fixture *cluster, unsigned slot, hf_fixture *to);

/* Makes a replica the primary, as a person does, and returns when it is. */
void hf_cluster_promote(hf_fixture *replica);
/* The same where the primary is away. */
void hf_cluster_take_over(hf_fixture *replica);
bool hf_cluster_is_primary(hf_fixture *node);

#endif
