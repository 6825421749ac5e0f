#include "tests/suites/support/certificate.h"

#include <criterion/criterion.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static void write_pem(const char *path, const gnutls_datum_t *pem)
{
    FILE *file = fopen(path, "w");
    cr_assert(file && fwrite(pem->data, 1, pem->size, file) == pem->size);
    cr_assert_eq(fclose(file), 0);
}

static void describe(gnutls_x509_crt_t certificate, gnutls_x509_privkey_t key, int days)
{
    static const unsigned char loopback[] = {127, 0, 0, 1};
    time_t now = time(NULL);
    cr_assert_eq(gnutls_x509_crt_set_version(certificate, 3), 0);
    cr_assert_eq(gnutls_x509_crt_set_serial(certificate, "\1", 1), 0);
    cr_assert_eq(gnutls_x509_crt_set_activation_time(certificate, now - 86400 * 30), 0);
    cr_assert_eq(gnutls_x509_crt_set_expiration_time(certificate, now + 86400 * days), 0);
    cr_assert_eq(gnutls_x509_crt_set_dn(certificate, "CN=kldiv test", NULL), 0);
    cr_assert_eq(gnutls_x509_crt_set_subject_alt_name(certificate, GNUTLS_SAN_IPADDRESS, loopback,
                                                      sizeof loopback, GNUTLS_FSAN_SET),
                 0);
    cr_assert_eq(gnutls_x509_crt_set_basic_constraints(certificate, 1, -1), 0);
    cr_assert_eq(gnutls_x509_crt_set_key(certificate, key), 0);
    cr_assert_eq(gnutls_x509_crt_sign2(certificate, certificate, key, GNUTLS_DIG_SHA256, 0), 0);
}

void make_certificate(const char *cert_file, const char *key_file, gnutls_pk_algorithm_t algorithm,
                      int days)
{
    unsigned bits =
        algorithm == GNUTLS_PK_RSA ? 2048 : GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1);
    gnutls_x509_privkey_t key;
    gnutls_x509_crt_t certificate;
    gnutls_datum_t pem;
    cr_assert_eq(gnutls_x509_privkey_init(&key), 0);
    cr_assert_eq(gnutls_x509_crt_init(&certificate), 0);
    cr_assert_eq(gnutls_x509_privkey_generate(key, algorithm, bits, 0), 0);
    describe(certificate, key, days);
    cr_assert_eq(gnutls_x509_crt_export2(certificate, GNUTLS_X509_FMT_PEM, &pem), 0);
    write_pem(cert_file, &pem);
    gnutls_free(pem.data);
    cr_assert_eq(gnutls_x509_privkey_export2(key, GNUTLS_X509_FMT_PEM, &pem), 0);
    write_pem(key_file, &pem);
    gnutls_free(pem.data);
    gnutls_x509_crt_deinit(certificate);
    gnutls_x509_privkey_deinit(key);
}

struct tls_client tls_connect(const struct server *server, const char *priorities,
                              const gnutls_datum_t *resumed)
{
    struct tls_client client = {.fd = dial(server)};
    struct timeval patience = {.tv_sec = 20};
    setsockopt(client.fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    cr_assert_eq(gnutls_certificate_allocate_credentials(&client.credentials), 0);
    cr_assert_eq(gnutls_init(&client.session, GNUTLS_CLIENT | GNUTLS_NO_SIGNAL), 0);
    cr_assert_eq(gnutls_priority_set_direct(client.session, priorities, NULL), 0, "%s", priorities);
    gnutls_credentials_set(client.session, GNUTLS_CRD_CERTIFICATE, client.credentials);
    gnutls_transport_set_int(client.session, client.fd);
    if (resumed)
        gnutls_session_set_data(client.session, resumed->data, resumed->size);
    do
        client.result = gnutls_handshake(client.session);
    while (client.result < 0 && !gnutls_error_is_fatal(client.result));
    return client;
}

int tls_get(struct tls_client *client, const char *path)
{
    char text[4000];
    int status = 0,
        size = snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", path);
    if (gnutls_record_send(client->session, text, (size_t)size) != size)
        return 0;
    ssize_t n;
    do
        n = gnutls_record_recv(client->session, text, sizeof text - 1);
    while (n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED);
    text[n > 0 ? n : 0] = '\0';
    return sscanf(text, "HTTP/1.1 %d ", &status) == 1 ? status : 0;
}

void tls_close(struct tls_client *client)
{
    gnutls_deinit(client->session);
    gnutls_certificate_free_credentials(client->credentials);
    close(client->fd);
}
