/* tls.c - redis/tls.h. The only file that knows OpenSSL. */
#include "redis/tls.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/base.h"
#include "base/buf.h"
#include "redis/authorities.h"

enum {
    /* Above HF_TLS_SEALED_MAX: the last records that were taken, and OpenSSL's own. */
    SEALED_LIMIT = HF_TLS_SEALED_MAX + (64 << 10),
    RECORD_MAX = 16 << 10,
    NAME_MAX_SIZE = 256
};

struct hf_tls {
    SSL *ssl;
    BIO_METHOD *method;
    const char *in; /* borrowed from hf_tls_feed() */
    size_t in_len;
    hf_buf out;  /* sealed; */
    size_t sent; /* this many bytes of it */
    bool open;
    bool asked; /* the server has asked for a certificate, and we have none */
    hf_err err;
    char why[HF_DETAIL_SIZE];
    char name[NAME_MAX_SIZE]; /* that the server's certificate must have */
};

/* ---- the bytes of OpenSSL ---- */

static int bio_read(BIO *bio, char *out, int size)
{
    hf_tls *tls = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    size_t n = tls->in_len < (size_t)size ? tls->in_len : (size_t)size;
    if (n == 0) {
        BIO_set_retry_read(bio);
        return -1;
    }
    memcpy(out, tls->in, n);
    tls->in += n;
    tls->in_len -= n;
    return (int)n;
}

static int bio_write(BIO *bio, const char *data, int len)
{
    hf_tls *tls = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    hf_buf_add(&tls->out, data, (size_t)len);
    return hf_buf_err(&tls->out) == HF_OK ? len : -1;
}

static long bio_ctrl(BIO *bio, int command, long number, void *pointer)
{
    (void)bio, (void)number, (void)pointer;
    return command == BIO_CTRL_FLUSH ? 1 : 0;
}

/* NULL: out of memory. Each connection makes its own: it is small, and needs no lock. */
static BIO_METHOD *bio_method(void)
{
    BIO_METHOD *method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "holdfast");
    if (method == NULL)
        return NULL;
    BIO_meth_set_read(method, bio_read);
    BIO_meth_set_write(method, bio_write);
    BIO_meth_set_ctrl(method, bio_ctrl);
    return method;
}

/* ---- why it has ended ---- */

/* `what` follows `why`, if there is more to say than that. */
static void end(hf_tls *tls, hf_err err, const char *why, const char *what)
{
    if (tls->err != HF_OK)
        return; /* the first reason counts */
    tls->err = err;
    snprintf(tls->why, sizeof tls->why, "%s%s%s", why, what[0] == '\0' ? "" : ": ", what);
}

/* The server's certificate is not accepted. */
static bool is_refused(const hf_tls *tls)
{
    return !tls->open && (SSL_get_verify_mode(tls->ssl) & SSL_VERIFY_PEER) != 0 &&
           SSL_get_verify_result(tls->ssl) != X509_V_OK;
}

static void end_refused(hf_tls *tls)
{
    long code = SSL_get_verify_result(tls->ssl);
    char what[HF_DETAIL_SIZE / 2];
    bool name =
        code == X509_V_ERR_HOSTNAME_MISMATCH || code == X509_V_ERR_IP_ADDRESS_MISMATCH;
    snprintf(what, sizeof what, name ? "it is not for `%.100s`" : "%s",
             name ? tls->name : X509_verify_cert_error_string(code));
    end(tls, HF_AUTH, "the server's certificate is refused", what);
}

/* An alert of the server about our certificate. A TLS 1.2 server that misses one only
 * says that the handshake has failed. */
static bool is_about_ours(const hf_tls *tls, int reason)
{
    switch (reason - SSL_AD_REASON_OFFSET) {
    case SSL_AD_BAD_CERTIFICATE:
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
    case SSL_AD_CERTIFICATE_REVOKED:
    case SSL_AD_CERTIFICATE_EXPIRED:
    case SSL_AD_CERTIFICATE_UNKNOWN:
    case SSL_AD_UNKNOWN_CA:
    case SSL_AD_ACCESS_DENIED:
    case SSL_AD_DECRYPT_ERROR:
    case SSL_AD_CERTIFICATE_REQUIRED:
        return true;
    case SSL_AD_HANDSHAKE_FAILURE:
        return tls->asked;
    default:
        return false;
    }
}

/* The meaning of an OpenSSL error. */
static void end_failed(hf_tls *tls, int result)
{
    int kind = SSL_get_error(tls->ssl, result);
    unsigned long code = ERR_peek_error();
    int reason = ERR_GET_LIB(code) == ERR_LIB_SSL ? ERR_GET_REASON(code) : 0;
    const char *words = ERR_reason_error_string(code);
    if (kind == SSL_ERROR_ZERO_RETURN)
        end(tls, HF_CONN, "Server closed the connection", "");
    else if (hf_buf_err(&tls->out) != HF_OK)
        end(tls, HF_CONN, "TLS", hf_err_text(hf_buf_err(&tls->out)));
    else if (is_refused(tls))
        end_refused(tls);
    else if (is_about_ours(tls, reason) && tls->asked)
        end(tls, HF_AUTH, "the server wants a client certificate", "");
    else if (is_about_ours(tls, reason))
        end(tls, HF_AUTH, "the server refuses the client certificate", words);
    else if (!tls->open && (reason == SSL_R_WRONG_VERSION_NUMBER ||
                            reason == SSL_R_PACKET_LENGTH_TOO_LONG))
        end(tls, HF_CONN, "the server does not speak TLS", "");
    else
        end(tls, HF_CONN, "TLS", words == NULL ? "failed without a reason" : words);
}

/* After each call of OpenSSL: true if it has done something. */
static bool went_well(hf_tls *tls, int result)
{
    if (result > 0)
        return true;
    if (SSL_get_error(tls->ssl, result) != SSL_ERROR_WANT_READ)
        end_failed(tls, result);
    ERR_clear_error();
    return false;
}

/* ---- bytes ---- */

static void shake(hf_tls *tls)
{
    ERR_clear_error();
    if (went_well(tls, SSL_do_handshake(tls->ssl)))
        tls->open = true;
}

void hf_tls_feed(hf_tls *tls, const char *sealed, size_t len)
{
    tls->in = sealed;
    tls->in_len = len;
}

size_t hf_tls_read(hf_tls *tls, char *out, size_t size)
{
    if (tls->err == HF_OK && !tls->open)
        shake(tls);
    if (tls->err != HF_OK || !tls->open)
        return 0;
    size_t n = 0;
    ERR_clear_error();
    return went_well(tls, SSL_read_ex(tls->ssl, out, size, &n)) ? n : 0;
}

size_t hf_tls_write(hf_tls *tls, const char *data, size_t len)
{
    size_t taken = 0;
    while (tls->err == HF_OK && tls->open && taken < len &&
           tls->out.len - tls->sent < HF_TLS_SEALED_MAX) {
        size_t left = len - taken, n = 0;
        ERR_clear_error();
        int result = SSL_write_ex(tls->ssl, data + taken,
                                  left < RECORD_MAX ? left : RECORD_MAX, &n);
        if (!went_well(tls, result)) {
            end(tls, HF_CONN, "TLS", "a write waits for the server");
            break;
        }
        taken += n;
    }
    return taken;
}

hf_bytes hf_tls_sealed(const hf_tls *tls)
{
    return (hf_bytes){tls->out.data == NULL ? "" : tls->out.data + tls->sent,
                      tls->out.len - tls->sent};
}

void hf_tls_sent(hf_tls *tls, size_t len)
{
    HF_ASSERT(len <= tls->out.len - tls->sent);
    tls->sent += len;
    if (tls->sent < tls->out.len)
        return;
    tls->sent = 0;
    hf_buf_clear(&tls->out);
}

void hf_tls_close(hf_tls *tls)
{
    if (tls->err != HF_OK || !tls->open)
        return;
    ERR_clear_error();
    (void)SSL_shutdown(tls->ssl);
    ERR_clear_error();
}

void hf_tls_cut(hf_tls *tls)
{
    end(tls, HF_CONN,
        tls->open ? "Server closed the connection"
                  : "the server closed the connection in the TLS handshake",
        "");
}

bool hf_tls_is_open(const hf_tls *tls)
{
    return tls->open;
}

hf_err hf_tls_err(const hf_tls *tls)
{
    return tls->err;
}

const char *hf_tls_why(const hf_tls *tls)
{
    return tls->why;
}

/* ---- files and rules ---- */

static hf_err refuse(char *detail, hf_err err, const char *why)
{
    if (detail != NULL)
        snprintf(detail, HF_DETAIL_SIZE, "%s", why);
    return err;
}

static hf_err bad_file(char *detail, const char *what, const char *file, const char *why)
{
    char text[HF_DETAIL_SIZE];
    snprintf(text, sizeof text, "%s `%.120s`: %.80s", what, file, why);
    ERR_clear_error();
    return refuse(detail, HF_CONFIG, text);
}

/* Before OpenSSL opens it: a pipe would hold us for ever, and OpenSSL's words for a file
 * that is missing are long. */
static hf_err look_at(const char *what, const char *file, char *detail)
{
    struct stat st;
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return bad_file(detail, what, file, "cannot be opened");
    bool regular = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    close(fd);
    return regular ? HF_OK : bad_file(detail, what, file, "expected a regular file");
}

/* A terminal is never asked for a passphrase. */
static int no_passphrase(char *out, int size, int writing, void *arg)
{
    (void)out, (void)size, (void)writing, (void)arg;
    return -1;
}

/* SSL_CERT_FILE and SSL_CERT_DIR come before everything else that a system has. */
static bool is_system_elsewhere(char file[PATH_MAX])
{
    return getenv(X509_get_default_cert_file_env()) == NULL &&
           getenv(X509_get_default_cert_dir_env()) == NULL &&
           hf_authorities_find("", X509_get_default_cert_file(),
                               X509_get_default_cert_dir(), file);
}

/* `file` NULL: those of the system. */
static hf_err load_ca(SSL_CTX *ctx, const char *file, char *detail)
{
    static const char what[] = "TLS authorities";
    char elsewhere[PATH_MAX];
    if (file == NULL && !is_system_elsewhere(elsewhere)) {
        SSL_CTX_set_default_verify_paths(ctx);
        return HF_OK;
    }
    file = file == NULL ? elsewhere : file;
    hf_err err = look_at(what, file, detail);
    if (err == HF_OK && SSL_CTX_load_verify_locations(ctx, file, NULL) != 1)
        err = bad_file(detail, what, file, "expected certificates in PEM");
    return err;
}

static hf_err load_ours(SSL_CTX *ctx, const char *cert, const char *key, char *detail)
{
    static const char what_cert[] = "TLS certificate", what_key[] = "TLS key";
    if (cert == NULL && key == NULL)
        return HF_OK;
    if (cert == NULL || key == NULL)
        return refuse(detail, HF_CONFIG,
                      "a TLS certificate and its key belong together: one is missing");
    hf_err err = look_at(what_cert, cert, detail);
    if (err == HF_OK)
        err = look_at(what_key, key, detail);
    if (err != HF_OK)
        return err;
    if (SSL_CTX_use_certificate_chain_file(ctx, cert) != 1)
        return bad_file(detail, what_cert, cert, "expected a certificate in PEM");
    if (SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) != 1) {
        bool other = ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH;
        return bad_file(detail, what_key, key,
                        other ? "it is not the key of the certificate"
                              : "expected a private key in PEM without a passphrase");
    }
    return HF_OK;
}

/* The server wants a certificate, and there is none. */
static int on_asked(SSL *ssl, X509 **cert, EVP_PKEY **key)
{
    (void)cert, (void)key;
    hf_tls *tls = BIO_get_data(SSL_get_rbio(ssl));
    tls->asked = true;
    return 0; /* go on without one */
}

static hf_err set_rules(SSL_CTX *ctx, const hf_tls_opts *opts, char *detail)
{
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(ctx,
                     SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_default_passwd_cb(ctx, no_passphrase);
    SSL_CTX_set_client_cert_cb(ctx, on_asked);
    SSL_CTX_set_verify(ctx, opts->skip_verify ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
    if (SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1)
        return refuse(detail, HF_SYSTEM, "OpenSSL has no TLS 1.2");
    /* Those of the system take many milliseconds to read. */
    bool unused = opts->skip_verify && opts->ca == NULL;
    hf_err err = unused ? HF_OK : load_ca(ctx, opts->ca, detail);
    return err == HF_OK ? load_ours(ctx, opts->cert, opts->key, detail) : err;
}

/* An address is compared as an address, and is not told to the server as a name. */
static bool set_name(SSL *ssl, const char *name)
{
    unsigned char address[sizeof(struct in6_addr)];
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
    if (inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1)
        return X509_VERIFY_PARAM_set1_ip_asc(param, name) == 1;
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return X509_VERIFY_PARAM_set1_host(param, name, 0) == 1 &&
           SSL_set_tlsext_host_name(ssl, name) == 1;
}

static bool set_bio(hf_tls *tls)
{
    BIO *bio = tls->method == NULL ? NULL : BIO_new(tls->method);
    if (bio == NULL)
        return false;
    BIO_set_data(bio, tls);
    BIO_set_init(bio, 1);
    SSL_set_bio(tls->ssl, bio, bio);
    return true;
}

static hf_err set_up(hf_tls *tls, const hf_tls_opts *opts, char *detail)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    if (ctx == NULL)
        return refuse(detail, HF_NOMEM, hf_err_text(HF_NOMEM));
    hf_err err = set_rules(ctx, opts, detail);
    tls->ssl = err == HF_OK ? SSL_new(ctx) : NULL;
    tls->method = bio_method();
    SSL_CTX_free(ctx); /* the connection keeps it */
    if (err != HF_OK)
        return err;
    if (tls->ssl == NULL || !set_bio(tls))
        return refuse(detail, HF_NOMEM, hf_err_text(HF_NOMEM));
    if (!set_name(tls->ssl, tls->name))
        return refuse(detail, HF_CONFIG, "the TLS server name is not acceptable");
    SSL_set_connect_state(tls->ssl);
    shake(tls); /* our first bytes */
    return tls->err == HF_OK ? HF_OK : refuse(detail, HF_SYSTEM, tls->why);
}

hf_err hf_tls_open(hf_tls **out, const hf_tls_opts *opts, const char *host,
                   char detail[HF_DETAIL_SIZE])
{
    static const hf_tls_opts defaults = {HF_TLS_OPTS_INIT};
    const hf_tls_opts *o = opts == NULL ? &defaults : opts;
    const char *name = o->server_name == NULL ? host : o->server_name;
    hf_tls *tls = calloc(1, sizeof *tls);
    if (tls == NULL)
        return refuse(detail, HF_NOMEM, hf_err_text(HF_NOMEM));
    hf_buf_init(&tls->out, SEALED_LIMIT);
    size_t len = strlen(name);
    hf_err err = HF_CONFIG;
    if (len == 0 || len >= sizeof tls->name) {
        refuse(detail, err, "the TLS server name is empty or too long");
    } else {
        memcpy(tls->name, name, len + 1);
        err = set_up(tls, o, detail);
    }
    if (err != HF_OK) {
        hf_tls_free(tls);
        return err;
    }
    *out = tls;
    return HF_OK;
}

void hf_tls_free(hf_tls *tls)
{
    if (tls == NULL)
        return;
    SSL_free(tls->ssl);
    BIO_meth_free(tls->method);
    hf_buf_done(&tls->out);
    free(tls);
}

hf_err hf_tls_check(const hf_tls_opts *opts, char detail[HF_DETAIL_SIZE])
{
    hf_tls *tls = NULL;
    hf_err err = hf_tls_open(&tls, opts, "localhost", detail);
    if (err == HF_OK)
        hf_tls_free(tls);
    return err;
}

const char *hf_tls_version(void)
{
    return OpenSSL_version(OPENSSL_FULL_VERSION_STRING);
}
