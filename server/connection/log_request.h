#ifndef SERVER_CONNECTION_LOG_REQUEST_H
#define SERVER_CONNECTION_LOG_REQUEST_H

#include "server/connection/connection.h"
#include "server/request/request.h"

/* Writes the request's line to the access log, if there is one. Its stream is still there;
 * `method`, `path` and `protocol` ("h2", "http/1.1") are what its protocol knows of it. */
void log_request(const request *r, request_text method, request_text path, const char *protocol);

#endif
