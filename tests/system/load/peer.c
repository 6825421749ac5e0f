#include "tests/system/load/peer.h"

#include "tests/system/load/calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static FILE *report;
static char body[] = "/tmp/kldiv-load-XXXXXX";

bool peer_start(int port, double seconds)
{
    char command[400];
    struct call call;
    if (system("command -v wrk >/dev/null 2>&1") != 0 || !call_small(&call, ""))
        return false;
    const char *json = strstr(call.bytes, "\r\n\r\n") + 4;
    size_t size = strlen(json);
    int fd = mkstemp(body);
    bool written = fd >= 0 && write(fd, json, size) == (ssize_t)size;
    if (fd >= 0)
        close(fd);
    call_free(&call);
    snprintf(command, sizeof command,
             "exec wrk -t1 -c4 -d%.0fs --timeout 10s -s tests/tools/bench/small.lua "
             "http://127.0.0.1:%d/kl_div -- %s application/json 2>&1",
             seconds, port, body);
    report = written ? popen(command, "r") : NULL;
    return report != NULL;
}

/* Appends the number that follows a label of the report. */
static void take(const char *line, const char *label, const char *name, char *to, size_t size)
{
    const char *found = strstr(line, label);
    size_t used = strlen(to);
    if (found)
        snprintf(to + used, size - used, "%s%s %.*s", used ? ", " : "", name,
                 (int)strcspn(found + strlen(label), "\n"), found + strlen(label));
}

void peer_stop(char *to, size_t size)
{
    char line[300];
    *to = '\0';
    while (fgets(line, sizeof line, report)) {
        take(line, "Requests/sec: ", "200 and others a second:", to, size);
        take(line, "Non-2xx or 3xx responses: ", "not 200:", to, size);
        take(line, "Socket errors: ", "sockets:", to, size);
    }
    pclose(report);
    unlink(body);
}
