/* notify.h - what a service tells systemd, as sd_notify(3) describes: datagrams to the
 * socket that NOTIFY_SOCKET names. Where there is none, nothing is sent. */
#ifndef HF_CLI_WORKER_NOTIFY_H
#define HF_CLI_WORKER_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

typedef struct hf_notify {
    int fd; /* -1: there is no listener */
    struct sockaddr_un to;
    socklen_t to_len;
    uint64_t watchdog_ms; /* how often systemd expects a message; 0: never */
} hf_notify;

/* Takes NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID out of the environment, because no
 * program may inherit them. Call it before any other thread is made. False: the socket
 * cannot be used. */
bool hf_notify_open(hf_notify *notify);
void hf_notify_close(hf_notify *notify);

/* Lines as "READY=1\nSTATUS=serving". False: there was no room for it within a second,
 * and it is left out. */
bool hf_notify_send(const hf_notify *notify, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
