/* certs.h - authorities and certificates for one test, in PEM files in a directory.
 *
 *   ca.pem          the authority that the tests trust
 *   server.pem      for localhost, 127.0.0.1 and ::1
 *   wrong.pem       for elsewhere.example, 192.0.2.1
 *   expired.pem     for localhost, until an hour ago
 *   client.pem      for a client
 *   stranger-ca.pem another authority, with stranger.pem for localhost and clients
 *
 * Each has its key beside it: server.key and so on. */
#ifndef HF_TESTS_CERTS_H
#define HF_TESTS_CERTS_H

/* Makes them in a directory that exists. Ends the program on failure. */
void hf_certs_make(const char *dir);

/* The path of one of them, to be freed. */
char *hf_certs_path(const char *dir, const char *name);

#endif
