#include "api/store/outage.h"

#include <stdio.h>

void api_outage_note(struct api_outage *outage, int64_t now, const char *reason)
{
    if (outage->since == 0)
        outage->since = now;
    snprintf(outage->error, sizeof outage->error, "%s", reason);
    for (char *p = outage->error; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 127)
            *p = ' ';
}
