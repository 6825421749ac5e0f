/* A connection to PostgreSQL: how it is made, lost, and made again. */
#pragma once

#include "api/store/engine.h"

#include <postgresql/libpq-fe.h>

/* api_postgresql_connection: in pipeline mode, and not blocking. */
struct api_postgresql_connection {
    struct api_database base;
    PGconn *pg; /* NULL while there is none */
    char *location;
    bool prepared[API_STATEMENTS];
    bool is_busy;        /* in a transaction */
    size_t unread;       /* statements that were sent, and whose results were not read */
    double sized;        /* monotonic time when `size` was asked for, in seconds; 0 if never */
    int64_t size;        /* bytes of the tables */
    double again, pause; /* monotonic time of the next attempt to connect, in seconds */
};

/* Checks the form of a URI without its scheme; connects to nothing. NULL with the reason if it is wrong.
 * Closing it frees it. */
struct api_database *api_postgresql_open(const char *path, char *reason, size_t size);
void api_postgresql_close(struct api_database *database);

/* True if there is a connection that PostgreSQL has not ended meanwhile. */
bool api_postgresql_is_connected(struct api_postgresql_connection *c);

/* Connects, unless the last attempt was a short while ago. */
bool api_postgresql_connect(struct api_postgresql_connection *c);
void api_postgresql_disconnect(struct api_postgresql_connection *c);

/* Waits until the whole next result is here, and sends what is left to send meanwhile. */
bool api_postgresql_wait(struct api_postgresql_connection *c);

/* Takes libpq's message, which may have several lines, as the reason that the connection is lost; returns
 * false. */
bool api_postgresql_fail(struct api_postgresql_connection *c, const char *message);
