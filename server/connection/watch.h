/* What the watcher does when it looks at a connection: it ends late ones, and notices clients that leave. */
#pragma once

#include "server/connection/connections.h"

/* Looks at a connection, as srv_look says. */
void srv_connection_look(struct srv_watched *watched, unsigned events, unsigned long long now);
