/* srv_lookup: the addresses of a receiver's host, found by a thread of its own. getaddrinfo() has no time limit, and
 * libcurl, which would run it in a thread too, waits for that thread where a transfer ends: one name that does not resolve
 * would hold up all receivers, and the end of the process. This thread can be left alone. */
#pragma once

#include <curl/curl.h>
#include <stdbool.h>

struct srv_lookup;

/* Finds the addresses of a URL's host, by a look-up that is under way if there is one of that host; wakes `multi` at its
 * end. NULL where libcurl needs no look-up of a name (the host is an address, or proxies are set in the environment), or if
 * *failed: no memory or thread is left, or too many look-ups hang. */
struct srv_lookup *srv_lookup_begin(const char *url, CURLM *multi, bool *failed);

/* True once it has ended. Its result is then an entry for CURLOPT_RESOLVE, which lives as long as the look-up is held;
 * NULL if it failed. */
bool srv_lookup_is_done(struct srv_lookup *lookup);
struct curl_slist *srv_lookup_result(struct srv_lookup *lookup);

/* Lets go of a look-up, which may be NULL; its thread may go on. */
void srv_lookup_release(struct srv_lookup *lookup);

/* No look-up wakes a handle any more; call it before that is freed. */
void srv_lookup_close(void);
