#include "server/connection/tls.h"

#include "server/connection/linger.h"

#include <errno.h>
#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* PRIORITIES: the versions, key exchanges and ciphers of RFC 9325. */
#define PRIORITIES                                                                                 \
    "NONE:+VERS-TLS1.3:+VERS-TLS1.2:+ECDHE-ECDSA:+ECDHE-RSA:+AES-256-GCM:+CHACHA20-POLY1305:"      \
    "+AES-128-GCM:+AEAD:+GROUP-X25519:+GROUP-SECP256R1:+GROUP-SECP384R1:+SIGN-ALL:"                \
    "-SIGN-RSA-SHA1:-SIGN-ECDSA-SHA1:+CTYPE-X509:%SERVER_PRECEDENCE"

/* MAX_CHAIN: certificates of a chain; more are not sent. */
enum { MAX_CHAIN = 16 };

/* pair: a certificate chain in DER and its key. */
struct pair {
    gnutls_datum_t chain[MAX_CHAIN];
    unsigned n;
    gnutls_x509_privkey_t key;
    time_t until;
};

/* The pair in use. Handshakes copy it under the lock, so that it can be replaced at any time. `credentials` call for it
 * at each. */
static struct {
    pthread_rwlock_t lock;
    struct pair pair;
    gnutls_certificate_credentials_t credentials;
    gnutls_priority_t priorities;
    atomic_bool is_on;
} tls = {.lock = PTHREAD_RWLOCK_INITIALIZER};

static void free_pair(struct pair *pair)
{
    for (unsigned i = 0; i < pair->n; i++)
        gnutls_free(pair->chain[i].data);
    if (pair->key)
        gnutls_x509_privkey_deinit(pair->key);
    *pair = (struct pair){.n = 0};
}

/* ---- Files */

/* True if the public key of the certificate is that of the private one. */
static bool belong_together(gnutls_x509_crt_t certificate, gnutls_x509_privkey_t key)
{
    unsigned char a[64], b[64];
    size_t size_a = sizeof a, size_b = sizeof b;
    return gnutls_x509_crt_get_key_id(certificate, GNUTLS_KEYID_USE_SHA256, a, &size_a) == 0 &&
           gnutls_x509_privkey_get_key_id(key, GNUTLS_KEYID_USE_SHA256, b, &size_b) == 0 &&
           size_a == size_b && memcmp(a, b, size_a) == 0;
}

static int read_key(struct pair *pair, const struct srv_text *text)
{
    gnutls_datum_t pem = {(unsigned char *)text->data, (unsigned)text->size};
    int result = gnutls_x509_privkey_init(&pair->key);
    return result ? result
                  : gnutls_x509_privkey_import2(pair->key, &pem, GNUTLS_X509_FMT_PEM, NULL, 0);
}

/* Reads the chain, which `list` keeps for the caller to free. */
static int read_chain(struct pair *pair, const struct srv_text *text, gnutls_x509_crt_t **list,
                      unsigned *n_list)
{
    gnutls_datum_t pem = {(unsigned char *)text->data, (unsigned)text->size};
    int result = gnutls_x509_crt_list_import2(list, n_list, &pem, GNUTLS_X509_FMT_PEM, 0);
    for (; result == 0 && pair->n < *n_list && pair->n < MAX_CHAIN; pair->n++)
        result =
            gnutls_x509_crt_export2((*list)[pair->n], GNUTLS_X509_FMT_DER, &pair->chain[pair->n]);
    return result;
}

/* Fills the pair, which the caller frees. */
static bool read_pair(struct pair *pair, const struct srv_text texts[2], const char *const paths[2],
                      struct srv_file_error *error)
{
    gnutls_x509_crt_t *list = NULL;
    unsigned n_list = 0;
    int for_chain = read_chain(pair, &texts[0], &list, &n_list);
    int for_key = read_key(pair, &texts[1]);
    bool good = false;
    if (for_chain < 0)
        srv_file_fail(error, "--tls-cert", "%s holds no certificate in PEM: %s", paths[0],
                      gnutls_strerror(for_chain));
    else if (for_key < 0)
        srv_file_fail(error, "--tls-key", "%s holds no private key in PEM: %s", paths[1],
                      gnutls_strerror(for_key));
    else if (!belong_together(list[0], pair->key))
        srv_file_fail(error, "--tls-key", "the key in %s is not that of the certificate in %s",
                      paths[1], paths[0]);
    else
        good = true;
    if (good)
        pair->until = gnutls_x509_crt_get_expiration_time(list[0]);
    for (unsigned i = 0; i < n_list; i++)
        gnutls_x509_crt_deinit(list[i]);
    gnutls_free(list);
    return good;
}

/* ---- Handshakes */

/* Copies the chain for one handshake. The caller frees what is there already. */
static int copy_chain(gnutls_pcert_st *chain, unsigned *n)
{
    int result = 0;
    for (*n = 0; result == 0 && *n < tls.pair.n; *n += result == 0)
        result =
            gnutls_pcert_import_x509_raw(&chain[*n], &tls.pair.chain[*n], GNUTLS_X509_FMT_DER, 0);
    return result;
}

static int copy_key(gnutls_privkey_t *key)
{
    int result = gnutls_privkey_init(key);
    return result ? result
                  : gnutls_privkey_import_x509(*key, tls.pair.key, GNUTLS_PRIVKEY_IMPORT_COPY);
}

/* Gives a handshake a copy of the pair, which GnuTLS frees with the session. It costs some 20 us of
 * a handshake's 500, and no session can outlive its certificate. */
static int retrieve(gnutls_session_t session, const struct gnutls_cert_retr_st *wanted,
                    gnutls_pcert_st **chain, unsigned *n, gnutls_ocsp_data_st **ocsp,
                    unsigned *n_ocsp, gnutls_privkey_t *key, unsigned *flags)
{
    (void)session, (void)wanted;
    *chain = gnutls_calloc(MAX_CHAIN, sizeof **chain);
    *n = *n_ocsp = 0;
    *ocsp = NULL;
    *key = NULL;
    *flags = GNUTLS_CERT_RETR_DEINIT_ALL;
    pthread_rwlock_rdlock(&tls.lock);
    int result = *chain ? copy_chain(*chain, n) : GNUTLS_E_MEMORY_ERROR;
    result = result ? result : copy_key(key);
    pthread_rwlock_unlock(&tls.lock);
    if (result == 0)
        return 0;
    for (unsigned i = 0; i < *n; i++)
        gnutls_pcert_deinit(&(*chain)[i]);
    gnutls_free(*chain);
    if (*key)
        gnutls_privkey_deinit(*key);
    return -1;
}

/* Makes what sessions share, once; false if there is no memory. */
static bool make_credentials(void)
{
    if (atomic_load(&tls.is_on))
        return true;
    if (gnutls_certificate_allocate_credentials(&tls.credentials) != 0 ||
        gnutls_priority_init(&tls.priorities, PRIORITIES, NULL) != 0)
        return false;
    gnutls_certificate_set_retrieve_function3(tls.credentials, retrieve);
    return true;
}

bool srv_tls_set(const char *cert_file, const char *key_file, struct srv_file_error *error)
{
    const char *const paths[] = {cert_file, key_file};
    struct srv_text texts[2] = {{0}};
    struct pair pair = {.n = 0};
    bool good = srv_text_read(&texts[0], "--tls-cert", cert_file, error) &&
                srv_text_read(&texts[1], "--tls-key", key_file, error) &&
                read_pair(&pair, texts, paths, error);
    if (good && !make_credentials())
        good = srv_file_fail(error, "--tls-cert", "there is no memory for it");
    if (good) {
        pthread_rwlock_wrlock(&tls.lock);
        struct pair old = tls.pair;
        tls.pair = pair;
        pthread_rwlock_unlock(&tls.lock);
        pair = old;
        atomic_store(&tls.is_on, true);
    }
    free_pair(&pair);
    srv_text_free(&texts[0]);
    srv_text_free(&texts[1]);
    return good;
}

time_t srv_tls_until(void)
{
    pthread_rwlock_rdlock(&tls.lock);
    time_t until = tls.pair.until;
    pthread_rwlock_unlock(&tls.lock);
    return until;
}

bool srv_tls_is_on(void) { return atomic_load(&tls.is_on); }

/* ---- Sessions */

/* is_amid_record: GnuTLS holds the beginning of a record, and the socket no more of it. */
struct srv_session {
    gnutls_session_t session;
    int fd;
    bool is_connected; /* the handshake is over */
    bool is_amid_record;
    bool has_read;
    bool
        is_plain; /* the client began with a letter, as requests of HTTP do, and records of TLS do not */
};

/* Receives for GnuTLS, which asks for the 5 bytes of a record's header, or for what is missing of a record. */
static ssize_t pull(gnutls_transport_ptr_t of, void *bytes, size_t size)
{
    struct srv_session *s = of;
    ssize_t n = recv(s->fd, bytes, size, 0);
    if (n < 0 && errno == EAGAIN)
        s->is_amid_record = size != 5;
    if (n > 0 && !s->has_read) {
        const char first = *(const char *)bytes;
        s->is_plain = first >= 'A' && first <= 'Z';
        s->has_read = true;
    }
    return n;
}

struct srv_session *srv_tls_begin(int fd)
{
    static const gnutls_datum_t protocol = {(unsigned char *)"http/1.1", 8};
    gnutls_transport_ptr_t receiver, sender;
    struct srv_session *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->fd = fd;
    if (gnutls_init(&s->session, GNUTLS_SERVER | GNUTLS_NO_SIGNAL | GNUTLS_NONBLOCK) != 0) {
        free(s);
        return NULL;
    }
    gnutls_transport_set_int(s->session, fd);
    gnutls_transport_get_ptr2(s->session, &receiver, &sender);
    gnutls_transport_set_ptr2(s->session, s, sender);
    gnutls_transport_set_pull_function(s->session, pull);
    if (gnutls_priority_set(s->session, tls.priorities) == 0 &&
        gnutls_credentials_set(s->session, GNUTLS_CRD_CERTIFICATE, tls.credentials) == 0 &&
        gnutls_alpn_set_protocols(s->session, &protocol, 1, 0) == 0)
        return s;
    srv_tls_end(s);
    return NULL;
}

/* The result of a system call for that of GnuTLS. */
static ssize_t result_of(ssize_t n)
{
    if (n >= 0)
        return n;
    errno = n == GNUTLS_E_AGAIN                   ? EAGAIN
            : gnutls_error_is_fatal((int)n) == 0  ? EINTR
            : n == GNUTLS_E_PREMATURE_TERMINATION ? 0
                                                  : ECONNRESET;
    return errno == 0 ? 0 : -1;
}

/* Answers a client that speaks HTTP. */
static void refuse_plain(int fd)
{
    static const char response[] = "HTTP/1.1 400 Bad Request\r\n"
                                   "Content-Type: text/plain\r\n"
                                   "Content-Length: 38\r\n"
                                   "Connection: close\r\n\r\n"
                                   "this address speaks TLS: use https://\n";
    srv_send_last(fd, response, sizeof response - 1);
}

/* Goes on with the handshake. The bytes that the server sends in it fit into the send buffer of a new socket. What it
 * has read is acknowledged at once: a client without TCP_NODELAY waits for that before its next message or its first
 * request (Nagle's algorithm), and a delayed acknowledgement takes 40 ms. */
static int shake_hands(struct srv_session *s)
{
    static const int now = 1;
    int result = gnutls_handshake(s->session);
    s->is_connected = result == 0;
    if (!gnutls_error_is_fatal(result))
        setsockopt(s->fd, IPPROTO_TCP, TCP_QUICKACK, &now, sizeof now);
    if (result < 0 && gnutls_error_is_fatal(result) && s->is_plain)
        refuse_plain(s->fd);
    else if (result < 0 && gnutls_error_is_fatal(result))
        gnutls_alert_send_appropriate(s->session, result);
    return result;
}

/* GnuTLS reads a record at a time, so that others are in the socket still. */
bool srv_tls_has_more(struct srv_session *s)
{
    int unread = 0;
    return gnutls_record_check_pending(s->session) > 0 ||
           (ioctl(s->fd, FIONREAD, &unread) == 0 && unread > 0);
}

bool srv_tls_is_amid_record(const struct srv_session *s) { return s->is_amid_record; }

/* GnuTLS ends a call also after a record of its own, with others behind it. */
ssize_t srv_tls_receive(struct srv_session *s, void *bytes, size_t size)
{
    s->is_amid_record = false;
    int result = s->is_connected ? 0 : shake_hands(s);
    ssize_t n = result_of(result < 0 ? result : gnutls_record_recv(s->session, bytes, size));
    if (n < 0 && errno == EAGAIN)
        errno = srv_tls_has_more(s) ? EINTR : EAGAIN;
    return n;
}

/* RECORD: bytes of a record, at most. TURN: bytes that are encrypted before others have their turn. */
enum { RECORD = 16 << 10, TURN = 256 << 10 };

/* Bytes of a record of what follows the first `sent` bytes of the pieces, in one piece: where they lie, or copied. */
static gnutls_datum_t next_record(unsigned char *copy, const struct iovec *pieces, size_t n,
                                  size_t sent)
{
    gnutls_datum_t next = {copy, 0};
    for (; n > 0 && sent >= pieces->iov_len; n--)
        sent -= pieces++->iov_len;
    if (n > 0 && pieces->iov_len - sent >= RECORD)
        return (gnutls_datum_t){(unsigned char *)pieces->iov_base + sent, RECORD};
    for (; n > 0 && next.size < RECORD; n--, pieces++, sent = 0) {
        size_t room = RECORD - next.size, size = pieces->iov_len - sent;
        size = size < room ? size : room;
        memcpy(copy + next.size, (const char *)pieces->iov_base + sent, size);
        next.size += (unsigned)size;
    }
    return next;
}

ssize_t srv_tls_send(struct srv_session *s, const struct iovec *pieces, size_t n, size_t *ahead)
{
    unsigned char copy[RECORD] __attribute__((uninitialized));
    size_t sent = *ahead, end = sent + TURN;
    gnutls_datum_t next;
    *ahead = 0;
    while (sent < end && (next = next_record(copy, pieces, n, sent)).size > 0) {
        ssize_t size = gnutls_record_send(s->session, next.data, next.size);
        if (size < 0 && size != GNUTLS_E_INTERRUPTED)
            return size == GNUTLS_E_AGAIN && sent > 0 ? (ssize_t)sent : result_of(size);
        sent += size > 0 ? (size_t)size : 0;
    }
    if (sent < end)
        return (ssize_t)sent;
    *ahead = sent;
    errno = EINTR;
    return -1;
}

void srv_tls_bye(struct srv_session *s)
{
    if (s->is_connected)
        gnutls_bye(s->session, GNUTLS_SHUT_WR);
}

void srv_tls_end(struct srv_session *s)
{
    srv_tls_bye(s);
    gnutls_deinit(s->session);
    free(s);
}

void srv_tls_stop(void)
{
    free_pair(&tls.pair);
    if (tls.credentials)
        gnutls_certificate_free_credentials(tls.credentials);
    if (tls.priorities)
        gnutls_priority_deinit(tls.priorities);
}
