/* unix_socket.h - the few socket calls that fake_redis and proxy share. */
#ifndef HF_TESTS_UNIX_SOCKET_H
#define HF_TESTS_UNIX_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Each gives a descriptor that is closed on exec, or -1. */
int hf_socket_listen(const char *path);
int hf_socket_listen_tcp(uint16_t *port); /* on 127.0.0.1, at a free port */
int hf_socket_accept(int listener);
int hf_socket_connect(const char *path);

/* Sends everything, waiting as long as it takes; false when the other side has gone. */
bool hf_socket_send(int fd, const char *bytes, size_t len);

#endif
