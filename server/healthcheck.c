#include "server/healthcheck.h"

#include "server/listener.h"

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
    return srv_options_read(options, n, arguments, stderr);
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

/* Formats the URL, of --admin-listen if there is one, which answers when all connections are taken.
 * A wildcard address becomes the loopback address of IPv4, which [::] takes, too. */
static bool make_url(const struct srv_options *options, char *url, size_t size)
{
    char host[256], chosen[16];
    const char *port;
    bool is_admin = options->admin_listen != NULL;
    if (!srv_split_address(is_admin ? options->admin_listen : options->listen, host, sizeof host,
                           &port))
        return false;
    if (!is_admin && strcmp(port, "0") == 0 && read_port(options->port_file, chosen, sizeof chosen))
        port = chosen;
    const char *name = host;
    if (!*host || strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0)
        name = "127.0.0.1";
    snprintf(url, size, strchr(name, ':') ? "%s://[%s]:%s/readyz" : "%s://%s:%s/readyz",
             options->tls_cert && !is_admin ? "https" : "http", name, port);
    return true;
}

int srv_healthcheck(const struct srv_options *options)
{
    char url[400];
    long status = 0;
    if (!make_url(options, url, sizeof url)) {
        fprintf(stderr, "kldivd: --listen, --admin-listen: not HOST:PORT\n");
        return 1;
    }
    CURL *curl = curl_easy_init();
    CURLcode result = CURLE_FAILED_INIT;
    if (curl) {
        curl_easy_setopt(curl, CURLOPT_URL, url);
        curl_easy_setopt(curl, CURLOPT_PROXY, "");
        curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
        curl_easy_setopt(curl, CURLOPT_TIMEOUT, 5L);
        curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, drop);
        result = curl_easy_perform(curl);
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
        curl_easy_cleanup(curl);
    }
    if (result != CURLE_OK)
        fprintf(stderr, "kldivd: %s: %s\n", url, curl_easy_strerror(result));
    else if (status != 200)
        fprintf(stderr, "kldivd: %s: status %ld\n", url, status);
    return result == CURLE_OK && status == 200 ? 0 : 1;
}
