/* tls.h - one connection's TLS, as bytes in and bytes out.
 *
 * Nothing here reads a socket or waits. OpenSSL reads and writes through a BIO of our
 * own: it reads the bytes given to hf_tls_feed(), and the bytes that it writes are kept
 * for hf_tls_sealed(). So TLS is tested without sockets, and redis/link.c uses its socket
 * as it does without TLS.
 *
 *              SHAKING ---------------------> OPEN
 *                 |  the server's certificate   |  noise, a bad record, an alert,
 *                 |  is accepted                |  close_notify, hf_tls_cut()
 *                 '--------------> ENDED <------'
 *
 * ENDED is final: nothing more is read or accepted for writing. */
#ifndef HF_REDIS_TLS_H
#define HF_REDIS_TLS_H

#include <stdbool.h>
#include <stddef.h>

#include "holdfast/tls.h"
#include "redis/request.h"

typedef struct hf_tls hf_tls;

/* Reads the files that `opts` names (NULL: the defaults) and begins a handshake. The
 * server's certificate must be one for `host`, a name or an address, unless the options
 * name another. HF_CONFIG (a file, the options), HF_NOMEM, HF_SYSTEM:
 * `detail` says why. */
HF_MUSTCHECK hf_err hf_tls_open(hf_tls **out, const hf_tls_opts *opts, const char *host,
                                char detail[HF_DETAIL_SIZE]);
void hf_tls_free(hf_tls *tls); /* NULL is accepted */

/* Whether a connection could be opened with these options now; answers as above. */
HF_MUSTCHECK hf_err hf_tls_check(const hf_tls_opts *opts, char detail[HF_DETAIL_SIZE]);

/* Gives it bytes of the server's. They are borrowed until hf_tls_read() gives 0. */
void hf_tls_feed(hf_tls *tls, const char *sealed, size_t len);
/* Writes the decrypted bytes of the server to `out` and returns their number. 0: all fed
 * bytes are used, or it has ENDED. This also continues the handshake. */
size_t hf_tls_read(hf_tls *tls, char *out, size_t size);

/* Takes bytes for the server and says how many. Fewer than `len`: HF_TLS_SEALED_MAX are
 * kept already. 0 though nothing is kept: it is not OPEN. */
enum { HF_TLS_SEALED_MAX = 256 << 10 };
size_t hf_tls_write(hf_tls *tls, const char *data, size_t len);

/* The bytes to send to the server, borrowed until the next call; and the report of how
 * many were sent. */
hf_bytes hf_tls_sealed(const hf_tls *tls);
void hf_tls_sent(hf_tls *tls, size_t len);

/* Says goodbye (close_notify), if it is OPEN. */
void hf_tls_close(hf_tls *tls);
/* The server's bytes have come to their end: it has ENDED. */
void hf_tls_cut(hf_tls *tls);

bool hf_tls_is_open(const hf_tls *tls);
/* HF_OK until it has ENDED. Then HF_AUTH when a certificate was refused, the server's or
 * ours, else HF_CONN; and the reason, a sentence that lives as long as `tls`. */
hf_err hf_tls_err(const hf_tls *tls);
const char *hf_tls_why(const hf_tls *tls);

#endif
