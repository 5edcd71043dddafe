/* url.h - where a Redis is and how to log in, taken apart.
 *
 * Nothing of a URL is ever repeated in a detail text: what looks like a port may be half
 * of a password that was not percent-encoded. */
#ifndef HF_REDIS_URL_H
#define HF_REDIS_URL_H

#include <stdbool.h>
#include <stdint.h>

#include "holdfast/error.h"

enum {
    HF_URL_MAX = 4096,     /* bytes of a URL */
    HF_URL_PART_MAX = 512, /* bytes of a user or password, decoded */
    HF_URL_HOST_MAX = 255,
    HF_URL_PATH_MAX = 107 /* of a unix socket */
};

typedef struct hf_url {
    char path[HF_URL_PATH_MAX + 1]; /* of a unix socket; "" means host and port */
    char host[HF_URL_HOST_MAX + 1]; /* without the brackets of an IPv6 address */
    uint16_t port;
    bool tls; /* rediss:// */
    int32_t db;
    char user[HF_URL_PART_MAX + 1]; /* "" : none */
    char password[HF_URL_PART_MAX + 1];
} hf_url;

/* HF_INVALID: `detail` says why. The caller ends *out with hf_url_wipe(), also then. */
HF_MUSTCHECK hf_err hf_url_parse(hf_url *out, const char *text,
                                 char detail[HF_DETAIL_SIZE]);

/* The first line of a regular file becomes the password. HF_CONFIG: `detail` says why. */
HF_MUSTCHECK hf_err hf_url_read_password(hf_url *url, const char *file,
                                         char detail[HF_DETAIL_SIZE]);

/* Overwrites it, so that no password stays behind in memory that was given back. */
void hf_url_wipe(hf_url *url);

/* "localhost:6379", "[::1]:6379" or "/run/redis.sock": for people, nothing secret. */
enum { HF_URL_PLACE_SIZE = HF_URL_HOST_MAX + 16 };
void hf_url_place(const hf_url *url, char out[HF_URL_PLACE_SIZE]);

#endif
