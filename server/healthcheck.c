#include "server/healthcheck.h"

#include "server/net/address.h"
#include "server/net/unix_socket.h"

#include <curl/curl.h>
#include <string.h>
#include <sys/stat.h>

static size_t drop(char *bytes, size_t size, size_t n, void *unused)
{
    (void)bytes, (void)unused;
    return size * n;
}

/* ---- Flags of the server */

enum { MAX_FLAGS_SIZE = 4096, MAX_ARGUMENTS = 128 };

/* True if two links, such as /proc/1/exe, refer to the same file. */
static bool same_file(const char *a, const char *b)
{
    struct stat of_a, of_b;
    return stat(a, &of_a) == 0 && stat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
           of_a.st_ino == of_b.st_ino;
}

/* Reads the arguments of process 1, each NUL-terminated, if it runs this program; else 0 bytes. */
static size_t read_command_line(char *text, size_t size)
{
    FILE *file = same_file("/proc/1/exe", "/proc/self/exe") ? fopen("/proc/1/cmdline", "re") : NULL;
    if (!file)
        return 0;
    size_t n = fread(text, 1, size - 1, file);
    fclose(file);
    text[n] = '\0';
    return n;
}

static bool gives_addresses(int argc, char **argv)
{
    static const char flag[] = "--listen";
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], flag, strlen(flag)) == 0 && strchr("=", argv[i][strlen(flag)]))
            return true;
    return false;
}

/* Addresses of argv take the place of those of process 1. */
bool srv_healthcheck_options(struct srv_options *options, int argc, char **argv)
{
    static char text[MAX_FLAGS_SIZE]; /* options keep pointers into it */
    char *arguments[MAX_ARGUMENTS] = {argv[0]};
    int n = 1;
    size_t size = read_command_line(text, sizeof text);
    for (char *p = text + strlen(text) + 1; p < text + size && n < MAX_ARGUMENTS;
         p += strlen(p) + 1)
        arguments[n++] = p;
    for (int i = 1; i < argc && n < MAX_ARGUMENTS; i++)
        arguments[n++] = argv[i];
    if (!srv_options_read(options, n, arguments, stderr))
        return false;
    struct srv_options own;
    if (gives_addresses(argc, argv) && srv_options_read(&own, argc, argv, stderr))
        options->listen = own.listen;
    return true;
}

/* ---- Request */

/* Reads the port from the port file, for --listen with port 0. */
static bool read_port(const char *path, char *port, size_t size)
{
    FILE *file = path ? fopen(path, "re") : NULL;
    if (!file)
        return false;
    bool good = fgets(port, (int)size, file) != NULL;
    fclose(file);
    port[strcspn(port, "\n")] = '\0';
    return good;
}

/* Formats the URL of a TCP address. A wildcard address becomes the loopback address of IPv4, which [::]
 * takes, too. */
static bool make_url(const struct srv_options *options, const char *address, const char *scheme,
                     char *url, size_t size)
{
    char host[256], chosen[16];
    const char *port;
    if (!srv_split_address(address, host, sizeof host, &port))
        return false;
    if (address != options->admin_listen && strcmp(port, "0") == 0 &&
        read_port(options->port_file, chosen, sizeof chosen))
        port = chosen;
    const char *name = host;
    if (!*host || strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0)
        name = "127.0.0.1";
    snprintf(url, size, strchr(name, ':') ? "%s://[%s]:%s/readyz" : "%s://%s:%s/readyz", scheme,
             name, port);
    return true;
}

/* Sets where curl asks, and names it in `url`: --admin-listen if there is one, which answers when all connections are taken, or
 * the first address of --listen. */
static bool set_address(CURL *curl, const struct srv_options *options, char *url, size_t size)
{
    const char *address = options->admin_listen ? options->admin_listen : options->listen.items[0];
    const char *scheme = options->tls_cert && !options->admin_listen ? "https" : "http";
    const char *path = srv_unix_path(address);
    struct sockaddr_un name;
    if (srv_unix_is(address) && srv_unix_name(address, &name) == 0) {
        fprintf(stderr, "kldivd: '%s': a path or name has 1 to 107 bytes\n", address);
        return false;
    }
    if (path) {
        curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, path);
    } else if (srv_unix_is(address)) {
        curl_easy_setopt(curl, CURLOPT_ABSTRACT_UNIX_SOCKET, strchr(address, '@') + 1);
    } else if (!make_url(options, address, scheme, url, size)) {
        fprintf(stderr,
                "kldivd: --listen, --admin-listen: not HOST:PORT, unix:PATH or unix:@NAME\n");
        return false;
    }
    if (srv_unix_is(address))
        snprintf(url, size, "%s://localhost/readyz", scheme);
    bool good = curl_easy_setopt(curl, CURLOPT_URL, url) == CURLE_OK;
    if (srv_unix_is(address))
        snprintf(url, size, "%s", address);
    return good;
}

/* Gives the status, or the reason for which there is no connection; 0 if it is not known. */
static CURLcode ask(CURL *curl, long *status, long *reason)
{
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, 5L);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, drop);
    CURLcode result = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, status);
    curl_easy_getinfo(curl, CURLINFO_OS_ERRNO, reason);
    return result;
}

int srv_healthcheck(const struct srv_options *options)
{
    char url[400] = "";
    long status = 0, reason = 0;
    CURL *curl = curl_easy_init();
    CURLcode result = CURLE_FAILED_INIT;
    bool known = !curl || set_address(curl, options, url, sizeof url);
    if (curl && known)
        result = ask(curl, &status, &reason);
    curl_easy_cleanup(curl);
    if (!known)
        return 1;
    if (result != CURLE_OK)
        fprintf(stderr, "kldivd: %s: %s%s%s\n", url, curl_easy_strerror(result), reason ? ": " : "",
                reason ? strerror((int)reason) : "");
    else if (status != 200)
        fprintf(stderr, "kldivd: %s: status %ld\n", url, status);
    return result == CURLE_OK && status == 200 ? 0 : 1;
}
