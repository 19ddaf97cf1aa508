#include "server/options/capacity.h"

/* Every connection may have a request open. So many may at the same time have all the streams and
 * all the jobs that one connection is allowed. */
#define BUSY_CONNECTIONS 64
#define CONNECTIONS_FULL_OF_JOBS 16

/* The bodies that idle jobs keep room for, in units of the largest one allowed. */
#define IDLE_BODIES 2
#define IDLE_BYTES_MIN ((size_t)32 << 20)
#define IDLE_BYTES_MAX ((size_t)256 << 20)

server_capacity server_capacity_of(const server_options *o)
{
    const server_limits *l = &o->limits;
    size_t idle =
        l->body_bytes_max < IDLE_BYTES_MAX ? IDLE_BODIES * l->body_bytes_max : IDLE_BYTES_MAX;
    idle = idle > IDLE_BYTES_MAX ? IDLE_BYTES_MAX : idle < IDLE_BYTES_MIN ? IDLE_BYTES_MIN : idle;
    int64_t requests =
        (int64_t)l->connections_max + (int64_t)BUSY_CONNECTIONS * CAPACITY_STREAMS_MAX;
    int64_t jobs =
        requests + (int64_t)CONNECTIONS_FULL_OF_JOBS * l->connection_jobs_max + l->request_jobs_max;
    return (server_capacity){.requests_max = requests < INT32_MAX ? (int)requests : INT32_MAX,
                             .jobs_max = jobs < INT32_MAX ? (int)jobs : INT32_MAX,
                             .idle_bytes_max = idle};
}
