/* Certificates for the tests of TLS, and a client of GnuTLS whose every wish can be set. */
#pragma once

#include "tests/suites/support/process.h"

#include <gnutls/gnutls.h>

/* Writes a new key and its certificate for 127.0.0.1, which signs itself, as PEM files. `days` is
 * the time left, which may be negative. */
void make_certificate(const char *cert_file, const char *key_file, gnutls_pk_algorithm_t algorithm,
                      int days);

/* tls_client: a connection; `result` is that of its handshake. */
struct tls_client {
    int fd, result;
    gnutls_certificate_credentials_t credentials;
    gnutls_session_t session;
};

/* Connects and makes the handshake by a priority string. `resumed` holds a session, or is NULL. */
struct tls_client tls_connect(const struct server *server, const char *priorities,
                              const gnutls_datum_t *resumed);

/* Sends GET of a path and returns the status of the answer, 0 if there is none. */
int tls_get(struct tls_client *client, const char *path);

void tls_close(struct tls_client *client);
