/* URLs of options and files that name a server. */
#pragma once

#include <stdbool.h>

/* Why a text is no URL of http or https with a host, as a part of a sentence; NULL if it is one. */
const char *api_url_reason(const char *url);
