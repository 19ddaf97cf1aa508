#ifndef CLI_HTTP_POST_H
#define CLI_HTTP_POST_H

#include "base/status.h"

#include <stddef.h>

/* One POST to a server, for commands. */

typedef struct http_answer {
    int code;
    char *data; /* malloc'd; the body */
    size_t bytes;
} http_answer;

typedef struct http_target {
    char host[256], port[8]; /* of a Unix socket: its path, "" */
} http_target;

/* http://HOST[:PORT] or unix:PATH. STATUS_INVALID_ARGUMENT. */
status http_target_read(const char *url, http_target *out) MUST_CHECK;

/* `key`: NULL, or sent as a bearer token. STATUS_UNAVAILABLE: no answer. */
status http_post(const http_target *to, const char *path, const char *key, const char *json,
                 http_answer *out) MUST_CHECK;

#endif
