#ifndef SERVER_ACCESS_RIGHTS_H
#define SERVER_ACCESS_RIGHTS_H

#include "server/protocol/route.h"

/* What somebody may do, and which of it each route asks for: one table for all protocols. */
typedef enum access_right {
    ACCESS_INFER = 1,         /* run models, tokenize */
    ACCESS_READ = 2,          /* what models there are, statistics, metrics */
    ACCESS_ADMIN = 4,         /* load and unload */
    ACCESS_SHARED_MEMORY = 8, /* name regions of it, and tensors in them */
    ACCESS_ALL = ACCESS_INFER | ACCESS_READ | ACCESS_ADMIN | ACCESS_SHARED_MEMORY,
    ACCESS_OPEN = 16, /* of a route: anybody may */
} access_right;

/* One of the above. 0: the table has no entry, and nobody may. */
access_right access_right_of(route_kind kind);

/* "infer", "read", "admin", "shared_memory"; 0: there is no right of that name. */
access_right access_right_named(const char *name, size_t bytes);

#endif
