#ifndef SERVER_PROTOCOL_ROUTE_METHOD_H
#define SERVER_PROTOCOL_ROUTE_METHOD_H

#include "server/protocol/route.h"

/* Methods of gRPC services: "/SERVICE/METHOD" to what it asks for. Pure. */

/* ROUTE_UNKNOWN: there is none. */
route_kind route_method_find(const char *path, size_t bytes);

/* The full names of the services, NULL at the end. Static. */
const char *const *route_method_services(void);

#endif
