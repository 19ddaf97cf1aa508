#ifndef SERVER_REQUEST_ROUTES_H
#define SERVER_REQUEST_ROUTES_H

#include "server/request/request.h"

/* What answers which route: handed in from above, so that nothing below knows the handlers. */
typedef struct request_route {
    request_handler handle; /* called once the server is open */
    bool is_early;          /* and before, too */
    bool is_absent;         /* there is nothing here, whoever asks */
} request_route;

typedef struct request_routes {
    request_route of[ROUTE_KIND_COUNT];
    request_handler starting; /* the others, while the server is not open */
} request_routes;

#endif
