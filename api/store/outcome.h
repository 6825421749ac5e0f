/* api_store_outcome: how a transaction went. One that failed may be run again, unless it is uncertain. */
#pragma once

#include <stdbool.h>

struct api_store_outcome {
    bool is_lost;      /* the connection failed, or a wait was too long: others will fail as well */
    bool is_uncertain; /* its commit was asked for, and nobody knows whether it was done */
    bool is_new;       /* it had to connect: the database may be another copy of the one before */
    bool has_written;  /* it ran a statement that writes */
    bool out_of_memory; /* it failed for that, which says nothing of the database */
};
