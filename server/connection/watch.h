/* The watcher looks at a connection: it ends one that is late, and notices a client that leaves. */
#pragma once

#include "server/connection/connections.h"

/* Looks at a connection, as srv_look says. */
void srv_connection_look(struct srv_watched *watched, unsigned events, unsigned long long now);
