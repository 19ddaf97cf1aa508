#ifndef LOADTEST_WIRE_TRANSPORT_H
#define LOADTEST_WIRE_TRANSPORT_H

#include "loadtest/wire/network.h"
#include "loadtest/wire/target.h"

/* A byte stream to the target: a socket, with TLS around it where the URL says https. Owned by one
 * thread, like its network. */
typedef struct ssl_st SSL;

typedef struct transport_events {
    void (*on_open)(void *owner, bool http2); /* what was agreed by ALPN or by prior knowledge */
    void (*on_data)(void *owner, const uint8_t *data, size_t bytes);
    /* `reason` is valid during the call. The owner must still call transport_close. */
    void (*on_end)(void *owner, const char *reason);
} transport_events;

typedef struct transport {
    const target *target;
    const transport_events *events;
    void *owner;
    network_socket *socket; /* NULL when closed */
    SSL *tls;               /* NULL without TLS */
    text_buffer plain;      /* with TLS: what is to be encrypted at the next flush */
    bool open;
    bool ended_in_order; /* at on_end: the peer closed, nothing broke */
} transport;

status transport_open(transport *t, network *n, const target *to, const transport_events *events,
                      void *owner) MUST_CHECK;
/* Where to append bytes to send; holds until transport_flush. */
text_buffer *transport_outgoing(transport *t);
void transport_flush(transport *t);
void transport_close(transport *t);

#endif
