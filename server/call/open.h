#ifndef SERVER_CALL_OPEN_H
#define SERVER_CALL_OPEN_H

#include "server/request/request.h"

/* The message of a unary gRPC call. */

/* r->body becomes the message, unpacked on a helper thread if it is compressed; then `go_on` is
 * called, perhaps at once: with STATUS_OK, or with a failure, whose message is status_message().
 * Not if the request has ended meanwhile. */
typedef void (*call_opened)(request *r, status failure);
void call_open(request *r, call_opened go_on);

#endif
