/* tls.h - which certificates a TLS connection accepts and presents.
 *
 * A URL that begins with rediss:// or rediss+sentinel:// asks for TLS 1.2 or newer. By
 * default the server's certificate must be for the host of the URL, and signed by an
 * authority that the system knows. SSL_CERT_FILE and SSL_CERT_DIR name others. Without
 * them the authorities are looked for where OpenSSL was compiled to look, then where
 * Debian, RHEL, SUSE and Alpine keep theirs. The files are read again for each
 * connection, so the next connection uses a renewed certificate.
 */
#ifndef HOLDFAST_TLS_H
#define HOLDFAST_TLS_H

#include <stdbool.h>
#include <stddef.h>

#include "holdfast/error.h"
#include "holdfast/struct.h"

/* NULL means the default. All text is copied. */
typedef struct hf_tls_opts {
    size_t size;             /* HF_TLS_OPTS_INIT */
    const char *ca;          /* PEM file: authorities, instead of the system's */
    const char *cert;        /* PEM file: the client's certificate and its chain */
    const char *key;         /* PEM file: the private key of cert, not encrypted */
    const char *server_name; /* the name or address in the server's certificate, instead
                                of the host of the URL, or of the host that a Sentinel
                                names; Sentinels' certificates must have it too */
    bool skip_verify;        /* accept any certificate: not safe outside of tests */
} hf_tls_opts;
#define HF_TLS_OPTS_INIT HF_STRUCT_INIT(hf_tls_opts)

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the OpenSSL that runs, static: "3.0.19", or with the revision of the
 * package that its source was taken from, "3.5.7+debian-1~deb13u2". From any thread. */
HF_API const char *hf_tls_version(void);

#ifdef __cplusplus
}
#endif

#endif
