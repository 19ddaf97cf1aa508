#ifndef LOADTEST_WIRE_RESPONSE_H
#define LOADTEST_WIRE_RESPONSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text/text_buffer.h"

/* One response, of HTTP/1.1 or HTTP/2. Owned by a connection (one per stream) and valid during the
 * callback that delivers it. */
#define RESPONSE_TIMING_BYTES_MAX 512

typedef struct response {
    int code;                   /* HTTP status; 0 before it is known */
    uint64_t body_bytes;        /* received, decoded from chunks */
    uint64_t header_json_bytes; /* Inference-Header-Content-Length; 0 when absent */
    bool keep_body;             /* the caller wants the bytes, not only their number */
    bool compressed;            /* Content-Encoding other than identity */
    uint16_t timing_bytes;
    char timing[RESPONSE_TIMING_BYTES_MAX]; /* Server-Timing, several headers joined by ',' */
    text_buffer body;                       /* filled if keep_body, or for the start of an error */
} response;

#define RESPONSE_ERROR_BYTES_MAX 512 /* of the body of a response that is not 2xx */

void response_reset(response *a);
/* One header field; `name` in any case. Those of no interest are ignored. */
void response_header(response *a, const char *name, size_t name_bytes, const char *value,
                     size_t value_bytes);
void response_body(response *a, const void *data, size_t bytes);

/* True and a number if `text` is all decimal digits and fits. */
bool response_number(const char *text, size_t bytes, uint64_t *value);

/* Server-Timing (W3C): calls back for each metric that has a duration, in ns. Names are at most
 * `SERVER_TIMING_NAME_BYTES_MAX` - 1 bytes (longer ones are cut). Malformed parts are skipped. */
#define SERVER_TIMING_NAME_BYTES_MAX 24
typedef void server_timing_each(void *context, const char *name, uint64_t duration_ns);
void server_timing_parse(const char *text, size_t bytes, server_timing_each *each, void *context);

#endif
