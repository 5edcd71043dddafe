/* tls.h - how a connection by TLS trusts a server, and what it shows of itself.
 *
 * A URL that begins with rediss:// asks for TLS, 1.2 or newer. Without these options the
 * server's certificate must be one for the host of the URL, signed by an authority that
 * the system knows (SSL_CERT_FILE and SSL_CERT_DIR name others). The files are read again
 * for each connection, so a certificate that was renewed is used from the next one on. */
#ifndef HOLDFAST_TLS_H
#define HOLDFAST_TLS_H

#include <stdbool.h>
#include <stddef.h>

#include "holdfast/struct.h"

/* NULL means the default. All text is copied. */
typedef struct hf_tls_opts {
    size_t size;             /* HF_TLS_INIT */
    const char *ca;          /* a PEM file of authorities, instead of the system's */
    const char *cert;        /* a PEM file: our certificate, and those above it */
    const char *key;         /* a PEM file: the private key of that, not encrypted */
    const char *server_name; /* the name or address that the server's certificate must
                                have, instead of the host of the URL */
    bool skip_verify;        /* any certificate will do: not safe outside of tests */
} hf_tls_opts;
#define HF_TLS_INIT HF_STRUCT_INIT(hf_tls_opts)

#endif
