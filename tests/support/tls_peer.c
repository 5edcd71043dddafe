/* tls_peer.c - see tls_peer.h. */
#include "tests/support/tls_peer.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include <openssl/err.h>

#include "tests/support/certs.h"

static void need(bool good, const char *what)
{
    if (good)
        return;
    (void)fprintf(stderr, "TLS server of the test: %s failed\n", what);
    ERR_print_errors_fp(stderr);
    exit(1);
}

static char *file_of(const hf_tls_peer_opts *opts, const char *suffix)
{
    char name[64];
    (void)snprintf(name, sizeof name, "%s%s", opts->cert == NULL ? "server" : opts->cert,
                   suffix);
    return hf_certs_path(opts->dir, name);
}

void hf_tls_peer_start(hf_tls_peer *peer, const hf_tls_peer_opts *opts)
{
    char *cert = file_of(opts, ".pem"), *key = file_of(opts, ".key");
    char *ca = hf_certs_path(opts->dir, "ca.pem");
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    need(ctx != NULL && SSL_CTX_use_certificate_chain_file(ctx, cert) == 1 &&
             SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) == 1 &&
             SSL_CTX_load_verify_locations(ctx, ca, NULL) == 1,
         "loading");
    if (opts->wants_client)
        SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    if (opts->version != 0)
        need(SSL_CTX_set_min_proto_version(ctx, opts->version) == 1 &&
                 SSL_CTX_set_max_proto_version(ctx, opts->version) == 1,
             "the version");
    *peer = (hf_tls_peer){SSL_new(ctx), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem())};
    need(peer->ssl != NULL && peer->in != NULL && peer->out != NULL, "memory");
    SSL_set_bio(peer->ssl, peer->in, peer->out);
    SSL_set_accept_state(peer->ssl);
    SSL_CTX_free(ctx);
    free(cert);
    free(key);
    free(ca);
}

void hf_tls_peer_stop(hf_tls_peer *peer)
{
    SSL_free(peer->ssl);
    *peer = (hf_tls_peer){NULL, NULL, NULL};
}

void hf_tls_peer_feed(hf_tls_peer *peer, const char *sealed, size_t len)
{
    need(len <= INT_MAX && BIO_write(peer->in, sealed, (int)len) == (int)len, "feeding");
}

size_t hf_tls_peer_read(hf_tls_peer *peer, char *out, size_t size)
{
    size_t n = 0;
    ERR_clear_error();
    return SSL_read_ex(peer->ssl, out, size, &n) == 1 ? n : 0;
}

void hf_tls_peer_write(hf_tls_peer *peer, const char *data, size_t len)
{
    size_t n = 0;
    need(SSL_write_ex(peer->ssl, data, len, &n) == 1 && n == len, "writing");
}

size_t hf_tls_peer_sealed(hf_tls_peer *peer, char *out, size_t size)
{
    int n = BIO_read(peer->out, out, size < INT_MAX ? (int)size : INT_MAX);
    return n > 0 ? (size_t)n : 0;
}
