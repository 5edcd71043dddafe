/* tls_peer.h - the server's side of TLS on bytes, by OpenSSL's own memory BIOs. */
#ifndef HF_TESTS_TLS_PEER_H
#define HF_TESTS_TLS_PEER_H

#include <stdbool.h>
#include <stddef.h>

#include <openssl/ssl.h>

typedef struct hf_tls_peer_opts {
    const char *dir;  /* of hf_certs_make() */
    const char *cert; /* "server", "wrong", ...; NULL: "server" */
    bool wants_client;
    int version; /* TLS1_2_VERSION or TLS1_3_VERSION alone; 0: both */
} hf_tls_peer_opts;

typedef struct hf_tls_peer {
    SSL *ssl;
    BIO *in, *out; /* sealed; owned by ssl */
} hf_tls_peer;

/* Ends the program on failure. */
void hf_tls_peer_start(hf_tls_peer *peer, const hf_tls_peer_opts *opts);
void hf_tls_peer_stop(hf_tls_peer *peer);

/* Takes sealed bytes of the client's. */
void hf_tls_peer_feed(hf_tls_peer *peer, const char *sealed, size_t len);
/* The client's bytes in clear; 0: none. Does the handshake as well. */
size_t hf_tls_peer_read(hf_tls_peer *peer, char *out, size_t size);
void hf_tls_peer_write(hf_tls_peer *peer, const char *data, size_t len);
/* Takes sealed bytes for the client out; 0: none. */
size_t hf_tls_peer_sealed(hf_tls_peer *peer, char *out, size_t size);

#endif
