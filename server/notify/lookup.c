#include "server/notify/lookup.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* MAX_LOOKUPS: under way at once; one of a host is under way only once. MAX_ADDRESSES: of a host that are tried. */
enum { MAX_LOOKUPS = 64, MAX_ADDRESSES = 8 };

struct srv_lookup {
    struct srv_lookup *next; /* of those under way */
    unsigned refcount;
    bool is_done;
    struct curl_slist *result;
    char host[256], port[8];
};

/* Look-ups under way, and the handle that is told of their ends. */
static struct {
    pthread_mutex_t lock;
    struct srv_lookup *first;
    size_t n;
    CURLM *multi;
} lookups = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Frees a look-up without holders; under the lock. */
static void drop(struct srv_lookup *lookup)
{
    if (--lookup->refcount > 0)
        return;
    curl_slist_free_all(lookup->result);
    free(lookup);
}

/* Writes an entry of addresses that libcurl replaces by the next one, as it has a plus; NULL if there are none. */
static struct curl_slist *entry_of(const struct srv_lookup *lookup, const struct addrinfo *list)
{
    char address[NI_MAXHOST];
    char text[sizeof lookup->host + sizeof lookup->port + MAX_ADDRESSES * (sizeof address + 3)];
    size_t n = 0, size = (size_t)snprintf(text, sizeof text, "+%s:%s:", lookup->host, lookup->port);
    for (; list && n < MAX_ADDRESSES; list = list->ai_next)
        if (getnameinfo(list->ai_addr, list->ai_addrlen, address, sizeof address, NULL, 0,
                        NI_NUMERICHOST) == 0)
            size += (size_t)snprintf(text + size, sizeof text - size,
                                     list->ai_family == AF_INET6 ? "%s[%s]" : "%s%s",
                                     n++ > 0 ? "," : "", address);
    return n > 0 ? curl_slist_append(NULL, text) : NULL;
}

static void *look_up(void *argument)
{
    static const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
    struct srv_lookup *lookup = argument, **link = &lookups.first;
    struct addrinfo *list = NULL;
    struct curl_slist *result = NULL;
    if (getaddrinfo(lookup->host, lookup->port, &hints, &list) == 0) {
        result = entry_of(lookup, list);
        freeaddrinfo(list);
    }
    pthread_mutex_lock(&lookups.lock);
    lookup->result = result;
    lookup->is_done = true;
    while (*link != lookup)
        link = &(*link)->next;
    *link = lookup->next;
    lookups.n--;
    if (lookups.multi)
        curl_multi_wakeup(lookups.multi);
    drop(lookup);
    pthread_mutex_unlock(&lookups.lock);
    return NULL;
}

/* Splits a URL of a name that libcurl would look up itself; false if it would not, or memory is exhausted (*failed). */
static bool split(const char *url, struct srv_lookup *to, bool *failed)
{
    static const char *const proxies[] = {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy",
                                          "ALL_PROXY"};
    unsigned char address[sizeof(struct in6_addr)];
    char *host = NULL, *port = NULL;
    for (size_t i = 0; i < sizeof proxies / sizeof *proxies; i++)
        if (getenv(proxies[i]))
            return false;
    CURLU *parts = curl_url();
    *failed = !parts || curl_url_set(parts, CURLUPART_URL, url, 0) != CURLUE_OK ||
              curl_url_get(parts, CURLUPART_HOST, &host, 0) != CURLUE_OK ||
              curl_url_get(parts, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) != CURLUE_OK ||
              strlen(host) >= sizeof to->host;
    bool is_name = !*failed && *host != '[' && inet_pton(AF_INET, host, address) != 1;
    if (is_name) {
        snprintf(to->host, sizeof to->host, "%s", host);
        snprintf(to->port, sizeof to->port, "%s", port);
    }
    curl_free(host);
    curl_free(port);
    curl_url_cleanup(parts);
    return is_name;
}

/* The look-up of a host that is under way, or NULL; under the lock. */
static struct srv_lookup *find(const struct srv_lookup *like)
{
    struct srv_lookup *lookup = lookups.first;
    while (lookup &&
           (strcmp(lookup->host, like->host) != 0 || strcmp(lookup->port, like->port) != 0))
        lookup = lookup->next;
    return lookup;
}

/* Starts a thread for a new look-up; NULL if that fails. Under the lock. */
static struct srv_lookup *start(const struct srv_lookup *like)
{
    pthread_t thread;
    struct srv_lookup *lookup = lookups.n < MAX_LOOKUPS ? malloc(sizeof *lookup) : NULL;
    if (!lookup)
        return NULL;
    *lookup = *like;
    lookup->refcount = 1; /* the thread's */
    lookup->next = lookups.first;
    if (pthread_create(&thread, NULL, look_up, lookup) != 0) {
        drop(lookup);
        return NULL;
    }
    pthread_detach(thread);
    lookups.first = lookup;
    lookups.n++;
    return lookup;
}

struct srv_lookup *srv_lookup_begin(const char *url, CURLM *multi, bool *failed)
{
    struct srv_lookup like = {.refcount = 0};
    *failed = false;
    if (!split(url, &like, failed))
        return NULL;
    pthread_mutex_lock(&lookups.lock);
    lookups.multi = multi;
    struct srv_lookup *lookup = find(&like);
    lookup = lookup ? lookup : start(&like);
    if (lookup)
        lookup->refcount++;
    pthread_mutex_unlock(&lookups.lock);
    *failed = !lookup;
    return lookup;
}

bool srv_lookup_is_done(struct srv_lookup *lookup)
{
    pthread_mutex_lock(&lookups.lock);
    bool is_done = lookup->is_done;
    pthread_mutex_unlock(&lookups.lock);
    return is_done;
}

struct curl_slist *srv_lookup_result(struct srv_lookup *lookup) { return lookup->result; }

void srv_lookup_release(struct srv_lookup *lookup)
{
    pthread_mutex_lock(&lookups.lock);
    if (lookup)
        drop(lookup);
    pthread_mutex_unlock(&lookups.lock);
}

void srv_lookup_close(void)
{
    pthread_mutex_lock(&lookups.lock);
    lookups.multi = NULL;
    pthread_mutex_unlock(&lookups.lock);
}
