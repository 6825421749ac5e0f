/* The process_* metrics of Prometheus client libraries. */
#ifndef KLDIV_SERVER_PROCESS_H
#define KLDIV_SERVER_PROCESS_H

#include "api/memory/buffer.h"

void srv_process_write(struct api_buffer *out);

#endif
