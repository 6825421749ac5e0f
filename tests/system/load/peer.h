/* wrk, a benchmark of HTTP, as another good client, where it is installed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Starts wrk for `seconds` on 4 connections; false if it is not installed. */
bool peer_start(int port, double seconds);

/* Waits until wrk ends, and tells its report in a line. */
void peer_stop(char *to, size_t size);
