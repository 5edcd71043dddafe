/* tls_front.h - ends TLS in front of a server's unix socket, as a proxy of a cloud does.
 */
#ifndef HF_TESTS_TLS_FRONT_H
#define HF_TESTS_TLS_FRONT_H

struct hf_tls_front_state;

typedef struct hf_tls_front {
    char url[48];                     /* rediss://127.0.0.1:PORT */
    struct hf_tls_front_state *state; /* owned */
} hf_tls_front;

/* `server` is the path of the server's socket. The first one of a process makes the
 * certificates of all, which the process trusts from then on (SSL_CERT_FILE). Ends the
 * program on failure. */
void hf_tls_front_start(hf_tls_front *f, const char *server);
void hf_tls_front_stop(hf_tls_front *f);

#endif
