#include "server/healthcheck.h"

#include "server/listener.h"

#include <curl/curl.h>
#include <string.h>

static size_t drop(char *bytes, size_t size, size_t n, void *unused)
{
    (void)bytes, (void)unused;
    return size * n;
}

/* A server that listens everywhere is asked on the loopback address. */
static bool make_url(const char *address, char *url, size_t size)
{
    char host[256];
    const char *port;
    if (!srv_split_address(address, host, sizeof host, &port))
        return false;
    const char *name = host;
    if (!*host || strcmp(host, "0.0.0.0") == 0)
        name = "127.0.0.1";
    else if (strcmp(host, "::") == 0)
        name = "::1";
    snprintf(url, size, strchr(name, ':') ? "http://[%s]:%s/readyz" : "http://%s:%s/readyz", name,
             port);
    return true;
}

int srv_healthcheck(const char *address)
{
    char url[400];
    long status = 0;
    if (!make_url(address, url, sizeof url)) {
        fprintf(stderr, "kldivd: --listen: '%s' is not HOST:PORT\n", address);
        return 1;
    }
    CURL *curl = curl_easy_init();
    CURLcode result = CURLE_FAILED_INIT;
    if (curl) {
        curl_easy_setopt(curl, CURLOPT_URL, url);
        curl_easy_setopt(curl, CURLOPT_PROXY, "");
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
