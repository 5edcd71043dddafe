/* metrics_server.h - the HTTP of a worker: /metrics, /healthz, /readyz (the key
 * metrics.listen).
 *
 * HTTP is served by a small process of the package holdfast-dashboard, so neither a
 * library nor a reader of the metrics gets into the worker. The process has the socket
 * that listens and one end of a pair of sockets. Over the pair it asks one byte at a
 * time, and a thread of the worker answers, which the loop never waits for. The process
 * ends with the worker, because the pair is closed then, and is started again when it
 * dies. */
#ifndef HF_CLI_WORKER_METRICS_SERVER_H
#define HF_CLI_WORKER_METRICS_SERVER_H

#include <stdint.h>

#include "cli/exit.h"
#include "cli/worker/log.h"
#include "holdfast/worker.h"

/* ---- between the two ---- */

#define HF_METRICS_PROGRAM "holdfast-metrics"
enum {
    HF_METRICS_PAIR_FD = 3, /* in the process, */
    HF_METRICS_LISTEN_FD = 4,
    HF_METRICS_ANSWER_MAX = 8 << 20
};

/* What it asks for. An answer of `len` bytes follows its head. */
typedef enum hf_metrics_ask {
    HF_METRICS_ASK_ALIVE = 'a',
    HF_METRICS_ASK_READY = 'r',
    HF_METRICS_ASK_TEXT = 't',
    HF_METRICS_ASK_OPEN = 'o' /* OpenMetrics */
} hf_metrics_ask;

typedef struct hf_metrics_head {
    uint32_t status, len; /* of HTTP; of the body */
} hf_metrics_head;

/* ---- in the worker ---- */

typedef struct hf_metrics_server hf_metrics_server;

/* Finds the program, and listens there (metrics.listen; NULL: nowhere, and *out is NULL).
 * HF_EXIT_OK, or `detail` says what is wrong. The log is borrowed. */
hf_exit hf_metrics_server_open(hf_metrics_server **out, const char *listen, hf_log *log,
                               char detail[HF_DETAIL_SIZE]);
/* Starts to answer for this worker, which is borrowed. HF_SYSTEM. NULL is fine. */
HF_MUSTCHECK hf_err hf_metrics_server_start(hf_metrics_server *server,
                                            const hf_worker *worker);
void hf_metrics_server_close(hf_metrics_server *server); /* NULL is fine */

#endif
