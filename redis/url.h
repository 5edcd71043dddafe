/* url.h - the parts of a URL: the address of a Redis and the login.
 *
 * Nothing of a URL is ever repeated in a detail text: an apparent port may be half of a
 * password that was not percent-encoded. */
#ifndef HF_REDIS_URL_H
#define HF_REDIS_URL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/error.h"

enum {
    HF_URL_MAX = 4096,     /* bytes of a URL */
    HF_URL_PART_MAX = 512, /* bytes of a user or password, decoded */
    HF_URL_HOST_MAX = 255,
    HF_URL_PATH_MAX = 107,   /* of a unix socket */
    HF_URL_MASTER_MAX = 128, /* characters of a name that Sentinels know a primary by */
    HF_URL_NODES_MAX = 16
};

typedef struct hf_place {
    char host[HF_URL_HOST_MAX + 1]; /* without the brackets of an IPv6 address */
    uint16_t port;
} hf_place;

/* Nodes of a cluster; any of them knows the others. */
typedef struct hf_url_cluster {
    hf_place nodes[HF_URL_NODES_MAX];
    size_t n_nodes; /* 0: it is no cluster */
} hf_url_cluster;

/* The Sentinels that know the primary, and the login for them. */
typedef struct hf_url_sentinel {
    char master[HF_URL_MASTER_MAX + 1]; /* "": no Sentinel is asked */
    hf_place nodes[HF_URL_NODES_MAX];
    size_t n_nodes;
    char user[HF_URL_PART_MAX + 1]; /* these two are not in a URL; "": none */
    char password[HF_URL_PART_MAX + 1];
} hf_url_sentinel;

typedef struct hf_url {
    char path[HF_URL_PATH_MAX + 1]; /* of a unix socket; "" means host and port */
    char host[HF_URL_HOST_MAX + 1]; /* as in hf_place; "" while only Sentinels, or nodes
                                       of a cluster, know it */
    uint16_t port;
    bool
        tls; /* rediss://...: then for the Sentinels and all nodes of a cluster as well */
    hf_url_sentinel sentinel;
    hf_url_cluster cluster;
    int32_t db;
    char user[HF_URL_PART_MAX + 1]; /* "" : none */
    char password[HF_URL_PART_MAX + 1];
} hf_url;

/* HF_INVALID: `detail` says why. The caller ends *out with hf_url_wipe(), also then. */
HF_MUSTCHECK hf_err hf_url_parse(hf_url *out, const char *text,
                                 char detail[HF_DETAIL_SIZE]);

/* The first line of a regular file becomes the password. HF_CONFIG: `detail` says why. */
HF_MUSTCHECK hf_err hf_url_read_password(char password[HF_URL_PART_MAX + 1],
                                         const char *file, char detail[HF_DETAIL_SIZE]);

/* Overwrites it: freed memory must contain no password. */
void hf_url_wipe(hf_url *url);

/* "localhost:6379", "[::1]:6379", "/run/redis.sock", "the primary of m" or "the cluster
 * of h": for people, nothing secret. */
enum { HF_URL_PLACE_SIZE = HF_URL_HOST_MAX + 24 };
void hf_url_place(const hf_url *url, char out[HF_URL_PLACE_SIZE]);
void hf_url_place_text(const hf_place *place, char out[HF_URL_PLACE_SIZE]);
bool hf_url_place_is(const hf_place *place, const hf_place *other);

#endif
