#ifndef LOADTEST_WIRE_NETWORK_H
#define LOADTEST_WIRE_NETWORK_H

#include "base/status.h"
#include "base/text/text_buffer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* Sockets and one alarm, through io_uring or epoll. One network per thread, used only by it. */
typedef struct network network;
typedef struct network_socket network_socket;

typedef enum network_kind { NETWORK_URING, NETWORK_EPOLL } network_kind;

/* What happens to a socket. Called from network_wait (never from within the other calls), and not
 * any more after network_close. */
typedef struct network_events {
    void (*on_connected)(void *owner);
    /* `data` is valid during the call. */
    void (*on_received)(void *owner, const uint8_t *data, size_t bytes);
    /* The connection is over: 0 when the peer closed in order, else an errno. The owner must still
     * call network_close. */
    void (*on_closed)(void *owner, int error);
} network_events;

/* The kind to use: io_uring, unless PENSTOCK_IO=epoll or the kernel refuses it. `reason` (static)
 * is NULL for io_uring, else one clause that says why not. Any thread. */
network_kind network_choose(const char **reason);
const char *network_kind_name(network_kind kind);

/* Created by the thread that uses it. */
status network_create(network **out, network_kind kind) MUST_CHECK;
/* Closes every socket without events. */
void network_destroy(network *n);

/* Starts to connect; on_connected or on_closed follows. `address` is copied, `events` and `owner`
 * are borrowed until network_close. */
status network_connect(network *n, const struct sockaddr *address, socklen_t address_bytes,
                       const network_events *events, void *owner, network_socket **out) MUST_CHECK;

/* Bytes appended here go out at the next network_flush; the pointer holds until then. */
text_buffer *network_outgoing(network_socket *s);
void network_flush(network_socket *s);

/* When the data of the on_received under way reached this machine (base/clock.h); outside one, the
 * present time. */
uint64_t network_arrived_ns(const network *n);

/* Ends the socket; bytes not yet sent may be lost. `s` is gone. */
void network_close(network_socket *s);

/* Sends what was flushed, then waits until something happened or `until_ns` (base/clock.h) has
 * come, whichever is first, and reports what happened. A time in the past does not wait. */
void network_wait(network *n, uint64_t until_ns);

#endif
