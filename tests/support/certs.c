/* certs.c - see certs.h. */
#include "tests/support/certs.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

enum { HOUR_S = 3600, YEAR_S = 365 * 24 * HOUR_S };

typedef struct identity {
    EVP_PKEY *key;
    X509 *cert;
} identity;

static void need(bool good, const char *what)
{
    if (good)
        return;
    (void)fprintf(stderr, "certificates for the test: %s failed\n", what);
    exit(1);
}

char *hf_certs_path(const char *dir, const char *name)
{
    size_t size = strlen(dir) + strlen(name) + 8;
    char *path = malloc(size);
    need(path != NULL, "malloc");
    (void)snprintf(path, size, "%s/%s", dir, name);
    return path;
}

static FILE *create(const char *dir, const char *name, const char *suffix)
{
    char file[64];
    (void)snprintf(file, sizeof file, "%s%s", name, suffix);
    char *path = hf_certs_path(dir, file);
    FILE *out = fopen(path, "we");
    need(out != NULL, path);
    free(path);
    return out;
}

static void save(const char *dir, const char *name, const identity *id)
{
    FILE *cert = create(dir, name, ".pem");
    need(PEM_write_X509(cert, id->cert) == 1 && fclose(cert) == 0, "a certificate");
    FILE *key = create(dir, name, ".key");
    need(PEM_write_PrivateKey(key, id->key, NULL, NULL, 0, NULL, NULL) == 1 &&
             fclose(key) == 0,
         "a key");
}

static void extend(X509 *cert, int kind, const char *value)
{
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, kind, value);
    need(extension != NULL && X509_add_ext(cert, extension, -1) == 1, "an extension");
    X509_EXTENSION_free(extension);
}

/* `names` is NULL for an authority. */
static identity make(const char *dir, const char *name, const identity *issuer,
                     const char *names, long end_s)
{
    static long serial;
    identity id = {EVP_EC_gen("P-256"), X509_new()};
    need(id.key != NULL && id.cert != NULL, "a key");
    X509_NAME *subject = X509_get_subject_name(id.cert);
    need(X509_set_version(id.cert, 2) == 1 &&
             ASN1_INTEGER_set(X509_get_serialNumber(id.cert), ++serial) == 1 &&
             X509_gmtime_adj(X509_getm_notBefore(id.cert), -YEAR_S) != NULL &&
             X509_gmtime_adj(X509_getm_notAfter(id.cert), end_s) != NULL &&
             X509_set_pubkey(id.cert, id.key) == 1 &&
             X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                                        (const unsigned char *)name, -1, -1, 0) == 1,
         "a certificate");
    const identity *signer = issuer == NULL ? &id : issuer;
    need(X509_set_issuer_name(id.cert, X509_get_subject_name(signer->cert)) == 1,
         "an issuer");
    if (names == NULL)
        extend(id.cert, NID_basic_constraints, "critical,CA:TRUE");
    else
        extend(id.cert, NID_subject_alt_name, names);
    need(X509_sign(id.cert, signer->key, EVP_sha256()) > 0, "a signature");
    save(dir, name, &id);
    return id;
}

static void forget(identity id)
{
    EVP_PKEY_free(id.key);
    X509_free(id.cert);
}

void hf_certs_make(const char *dir)
{
    static const char here[] = "DNS:localhost,IP:127.0.0.1,IP:::1";
    identity ca = make(dir, "ca", NULL, NULL, YEAR_S);
    identity stranger = make(dir, "stranger-ca", NULL, NULL, YEAR_S);
    forget(make(dir, "server", &ca, here, YEAR_S));
    forget(make(dir, "wrong", &ca, "DNS:elsewhere.example,IP:192.0.2.1", YEAR_S));
    forget(make(dir, "expired", &ca, here, -HOUR_S));
    forget(make(dir, "client", &ca, "DNS:client.example", YEAR_S));
    forget(make(dir, "stranger", &stranger, here, YEAR_S));
    forget(ca);
    forget(stranger);
}
