#ifndef LOADTEST_WIRE_CONNECTION_H
#define LOADTEST_WIRE_CONNECTION_H

#include "loadtest/wire/request.h"
#include "loadtest/wire/response.h"
#include "loadtest/wire/transport.h"

/* One connection to the target and the requests on it. The protocol is a table: HTTP/1.1 carries
 * one request at a time, HTTP/2 as many as both sides allow. Owned by one worker's thread.
 * Callbacks come from network_wait; inside them connection_submit and connection_cancel are
 * allowed, and connection_close, but not connection_open of the same connection. */
typedef struct connection_events {
    /* There is room for a request (again). */
    void (*on_room)(void *owner, connection *c);
    void (*on_response)(void *owner, connection *c, request *r, const response *a);
    /* `unprocessed`: the server did no work on it, so it is safe to send it again. */
    void (*on_lost)(void *owner, connection *c, request *r, request_error why, bool unprocessed,
                    const char *reason);
    /* After on_lost of all its requests; it is closed. `opened`: it had been usable. */
    void (*on_closed)(void *owner, connection *c, bool opened, const char *reason);
} connection_events;

typedef struct connection_protocol {
    const char *name;
    status (*start)(connection *c);
    void (*submit)(connection *c, request *r);
    void (*cancel)(connection *c, request *r);
    void (*receive)(connection *c, const uint8_t *data, size_t bytes);
    void (*flush)(connection *c);
    /* The stream is over: report every request on it. */
    void (*end)(connection *c, bool in_order, const char *reason);
    void (*dispose)(connection *c);
} connection_protocol;

extern const connection_protocol connection_http1, connection_http2;

struct connection {
    transport transport;
    const connection_protocol *protocol; /* NULL until it is negotiated */
    void *state;                         /* the protocol's */
    const connection_events *events;
    void *owner;
    const request_head *head;
    unsigned streams_max; /* the caller's limit for HTTP/2 */
    unsigned in_flight, room_max;
    uint64_t responses;   /* since it opened */
    bool opening, usable; /* usable: takes requests */
    bool keep_bodies;
    /* For the worker: its list of those with room, its dirty ones, its back-off. */
    connection *room_next, *room_previous, *dirty_next;
    bool in_room, dirty;
    unsigned failures;
    uint64_t retry_ns;
};

/* `c` is zeroed at first and reused afterwards; everything is borrowed until it is closed. */
status connection_open(connection *c, network *n, const target *to) MUST_CHECK;
/* Needs connection_has_room. Sent at the next flush. */
void connection_submit(connection *c, request *r);
/* Cancels the request: HTTP/2 resets its stream, HTTP/1.1 closes the connection. No callback for
 * the request. */
void connection_cancel(connection *c, request *r);
void connection_flush(connection *c);
/* Closes without callbacks. No request may be on it. */
void connection_close(connection *c);

static inline bool connection_is_open(const connection *c)
{
    return c->transport.socket != NULL;
}

static inline bool connection_has_room(const connection *c)
{
    return c->usable && c->in_flight < c->room_max;
}

/* For protocols: ends the connection and fails its requests. */
void connection_finish(connection *c, bool in_order, const char *reason);

#endif
