/* listen.h - a socket that listens: "127.0.0.1:8880", "[::1]:8880", "unix:/path".
 */
#ifndef HF_BASE_LISTEN_H
#define HF_BASE_LISTEN_H

#include <stdbool.h>

#include "holdfast/error.h"

enum { HF_LISTEN_HOST = 64, HF_LISTEN_PATH = 108 };

typedef struct hf_listen {
    int fd;                    /* -1: none */
    char host[HF_LISTEN_HOST]; /* "127.0.0.1", "[::1]"; "" of a unix socket */
    unsigned port;
    char path[HF_LISTEN_PATH]; /* of a unix socket; else "" */
    bool loopback;             /* only this machine reaches it */
} hf_listen;

/* Reads the words, and opens nothing. HF_INVALID: `detail` says what is wrong. */
HF_MUSTCHECK hf_err hf_listen_read(hf_listen *out, const char *text,
                                   char detail[HF_DETAIL_SIZE]);
/* Listens. A port 0 becomes the one that it got. A unix socket is for its user and its
 * group (NULL: the group of the process); a left one without a server is replaced.
 * HF_SYSTEM, HF_INVALID (the group): `detail` says why. */
HF_MUSTCHECK hf_err hf_listen_open(hf_listen *listen, const char *group,
                                   char detail[HF_DETAIL_SIZE]);
/* Removes the file of a unix socket; the descriptor is closed by its new owner. */
void hf_listen_done(hf_listen *listen);

/* "http://127.0.0.1:8880" or "unix:/path" */
enum { HF_LISTEN_TEXT = HF_LISTEN_PATH + 32 };
const char *hf_listen_text(const hf_listen *listen, char out[HF_LISTEN_TEXT]);

#endif
