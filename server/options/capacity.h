#ifndef SERVER_OPTIONS_CAPACITY_H
#define SERVER_OPTIONS_CAPACITY_H

#include "server/options/options.h"

/* Streams that an HTTP/2 connection may have open at once. */
#define CAPACITY_STREAMS_MAX 100

/* What one event loop may hold: the sizes of its pools, computed from the ceilings in the options
 * and from nothing else. The pools grow to these sizes as they are needed; a request beyond them
 * gets 503. */
typedef struct server_capacity {
    int requests_max;      /* open at once: arrived, and response not yet written */
    int jobs_max;          /* in use at once */
    size_t idle_bytes_max; /* memory that idle jobs keep for the next requests */
} server_capacity;

server_capacity server_capacity_of(const server_options *o);

#endif
