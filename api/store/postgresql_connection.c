#include "api/store/postgresql_connection.h"

#include "api/store/location.h"
#include "api/text/clock.h"

#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* reply_timeout_s: how long one response of the database may take; of a migration. */
static const double reply_timeout_s = 20, migration_timeout_s = 86400;

/* Bounds of the pause, in seconds, between attempts to connect. */
static const double shortest_pause = 0.1, longest_pause = 5;

/* The oldest version with all that the statements take, and its number in libpq. */
#define MIN_VERSION "12"
enum { MIN_VERSION_NUMBER = 120000 };

bool api_postgresql_fail(struct api_postgresql_connection *c, const char *message)
{
    char *reason = c->base.reason;
    c->base.last.is_lost = true;
    (void)api_database_fail(&c->base, "%s", *message ? message : "the connection is lost");
    for (char *end = reason + strlen(reason); end > reason && end[-1] == '\n';)
        *--end = '\0';
    for (char *p = reason; *p; p++)
        if (*p == '\n' || *p == '\t')
            *p = ' ';
    return false;
}

void api_postgresql_disconnect(struct api_postgresql_connection *c)
{
    PQfinish(c->pg);
    c->pg = NULL;
    c->is_busy = false;
    c->unread = 0;
    memset(c->prepared, 0, sizeof c->prepared);
}

static void ignore_notice(void *context, const char *message)
{
    (void)context;
    (void)message;
}

/* KEYWORDS: options before the location may be set by it, those after it may not. GSSAPI would load modules, which a
 * process that has given up its rights cannot. */
#define KEYWORDS                                                                                   \
    "connect_timeout", "tcp_user_timeout", "keepalives_idle", "gssencmode", "application_name",    \
        "dbname", "client_encoding", NULL
#define VALUES(location) "3", "10000", "10", "disable", "kldivd", location, "UTF8", NULL

/* True if no server responds there, or one that is about to start or to stop. */
static bool is_unreachable(const struct api_postgresql_connection *c)
{
    const char *const keywords[] = {KEYWORDS}, *const values[] = {VALUES(c->location)};
    PGPing ping = PQpingParams(keywords, values, 1);
    return ping == PQPING_NO_RESPONSE || ping == PQPING_REJECT;
}

/* The reason why a connection is of no use; NULL if it is of use. */
static const char *fault_of(PGconn *pg)
{
    if (!pg)
        return "no memory is left";
    if (PQstatus(pg) != CONNECTION_OK)
        return PQerrorMessage(pg);
    if (PQserverVersion(pg) < MIN_VERSION_NUMBER)
        return "it is not PostgreSQL of version " MIN_VERSION " on";
    const char *encoding = PQparameterStatus(pg, "server_encoding");
    if (!encoding || (strcmp(encoding, "UTF8") != 0 && strcmp(encoding, "SQL_ASCII") != 0))
        return "its encoding is not UTF8, which names and labels need";
    return NULL;
}

static bool refuse(struct api_postgresql_connection *c, const char *fault)
{
    api_postgresql_fail(c, fault);
    c->base.is_unreachable = !c->base.is_accepted && is_unreachable(c);
    c->pause = fmin(fmax(2 * c->pause, shortest_pause), longest_pause);
    c->again = api_seconds() + c->pause;
    api_postgresql_disconnect(c);
    return false;
}

bool api_postgresql_is_connected(struct api_postgresql_connection *c)
{
    enum { READS = 2 }; /* the message that it ends, and its end */
    for (int i = 0; c->pg && i < READS; i++)
        if (PQstatus(c->pg) != CONNECTION_OK || PQconsumeInput(c->pg) != 1)
            return false;
    return c->pg && PQstatus(c->pg) == CONNECTION_OK;
}

bool api_postgresql_connect(struct api_postgresql_connection *c)
{
    const char *const keywords[] = {KEYWORDS}, *const values[] = {VALUES(c->location)};
    if (api_seconds() < c->again)
        return false;
    api_postgresql_disconnect(c);
    c->pg = PQconnectdbParams(keywords, values, 1);
    const char *fault = fault_of(c->pg);
    if (fault)
        return refuse(c, fault);
    PQsetNoticeProcessor(c->pg, ignore_notice, NULL);
    if (PQsetnonblocking(c->pg, 1) != 0 || PQenterPipelineMode(c->pg) != 1)
        return refuse(c, PQerrorMessage(c->pg));
    c->pause = 0;
    return true;
}

void api_postgresql_close(struct api_database *database)
{
    struct api_postgresql_connection *c = (struct api_postgresql_connection *)database;
    api_postgresql_disconnect(c);
    free(c->location);
    free(c);
}

/* The reason why a location is no URI. libpq's may hold the password, which is often what is wrong. */
static const char *reason_of(const char *location, const char *message)
{
    char name[1000];
    api_store_name(location, name, sizeof name);
    return strcmp(name, location) == 0 ? message
                                       : "it is not a URI of libpq; in a password, characters such "
                                         "as %, / and @ are written %25, %2F, %40";
}

/* True if all ports are numbers, which libpq finds out when it connects. */
static bool has_ports(const PQconninfoOption *options)
{
    for (const PQconninfoOption *option = options; option && option->keyword; option++)
        if (option->val && strcmp(option->keyword, "port") == 0)
            return option->val[strspn(option->val, "0123456789,")] == '\0';
    return true;
}

/* ---- Opening */

struct api_database *api_postgresql_open(const char *path, char *reason, size_t size)
{
    static const char prefix[] = "postgresql://";
    struct api_postgresql_connection *c = calloc(1, sizeof *c);
    char *message = NULL;
    size_t n = sizeof prefix + strlen(path);
    snprintf(reason, size, "no memory is left");
    if (!c)
        return NULL;
    c->location = malloc(n);
    if (c->location)
        snprintf(c->location, n, "%s%s", prefix, path);
    PQconninfoOption *options = c->location ? PQconninfoParse(c->location, &message) : NULL;
    bool good = options && has_ports(options);
    if (message || (options && !good)) {
        api_postgresql_fail(c,
                            reason_of(c->location, message ? message : "its port is not a number"));
        snprintf(reason, size, "%s", c->base.reason);
    }
    PQfreemem(message);
    PQconninfoFree(options);
    if (good)
        return &c->base;
    api_postgresql_close(&c->base);
    return NULL;
}

bool api_postgresql_wait(struct api_postgresql_connection *c)
{
    double end = api_seconds() + (c->base.is_migrating ? migration_timeout_s : reply_timeout_s);
    for (;;) {
        int left = PQflush(c->pg);
        if (left < 0)
            return api_postgresql_fail(c, PQerrorMessage(c->pg));
        if (left == 0 && !PQisBusy(c->pg))
            return true;
        struct pollfd poller = {PQsocket(c->pg), (short)(left ? POLLIN | POLLOUT : POLLIN), 0};
        double rest = end - api_seconds();
        if (rest <= 0 || poll(&poller, 1, (int)(rest * 1e3) + 1) == 0)
            return api_postgresql_fail(c, "it does not respond");
        if ((poller.revents & ~POLLOUT) && PQconsumeInput(c->pg) != 1)
            return api_postgresql_fail(c, PQerrorMessage(c->pg));
    }
}
