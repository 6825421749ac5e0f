/* TLS of the server's connections: 1.2 and 1.3, with forward secrecy and authenticated encryption
 * alone. There is no session to resume: each connection makes a handshake of its own. */
#pragma once

#include "server/config/text_file.h"

#include <microhttpd.h>
#include <time.h>

/* Takes a certificate chain in PEM, the server's own first, and its private key. Handshakes under
 * way keep the pair they began with. False, with the old pair kept and the reason in *error, if
 * they cannot be read or do not belong together. One thread calls it. */
bool srv_tls_set(const char *cert_file, const char *key_file, struct srv_file_error *error);

/* End of the certificate's validity, for the thread that set it. */
time_t srv_tls_until(void);

/* True once a pair was taken. */
bool srv_tls_is_on(void);

/* Flags and options of a daemon with TLS, or of one without. */
unsigned srv_tls_flags(bool on);
struct MHD_OptionItem *srv_tls_options(bool on);

/* Frees the pair, after the last handshake. */
void srv_tls_stop(void);
