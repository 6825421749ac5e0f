/* Pauses of the machine: a thread that sleeps for 5 ms tells how much longer it took. */
#pragma once

#include <stdbool.h>

/* Starts the thread; false if it cannot. */
bool pauses_start(void);

/* Ends it; gives the longest pause in seconds. */
double pauses_stop(void);
