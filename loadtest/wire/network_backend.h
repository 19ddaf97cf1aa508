#ifndef LOADTEST_WIRE_NETWORK_BACKEND_H
#define LOADTEST_WIRE_NETWORK_BACKEND_H

#include "loadtest/wire/network.h"
#include "loadtest/wire/receive_stamp.h"

/* Between network.c and its two backends: nobody else includes this. */
#define NETWORK_RECEIVE_BYTES 32768

struct network_socket {
    network *network;
    const network_events *events;
    void *owner;
    network_socket *next, *previous; /* all sockets of the network */
    network_socket *next_dead;
    int fd;
    bool connecting, closed, ended; /* closed by us; ended by the peer or an error */
    bool sending;                   /* `out` is on its way, `outgoing` waits */
    bool released;
    unsigned in_flight; /* io_uring operations that still use this memory */
    text_buffer out, outgoing;
    size_t out_sent;
    struct sockaddr_storage address;
    socklen_t address_bytes;
    uint8_t *received; /* NETWORK_RECEIVE_BYTES; epoll shares one over all sockets */
    struct msghdr message;
    struct iovec message_part;
    _Alignas(struct cmsghdr) uint8_t control[RECEIVE_STAMP_CONTROL_BYTES];
};

typedef struct network_backend {
    status (*create)(network *n);
    void (*destroy)(network *n);
    /* `fd` is a fresh non-blocking socket: connect it, then receive. */
    status (*open)(network_socket *s);
    /* s->out holds bytes to send from out_sent on. */
    void (*send)(network_socket *s);
    void (*close)(network_socket *s);
    void (*wait)(network *n, uint64_t until_ns);
} network_backend;

extern const network_backend network_backend_uring, network_backend_epoll;
/* 0 if io_uring works here, else the errno of trying. */
int network_uring_probe(void);

struct network {
    const network_backend *backend;
    void *state; /* the backend's */
    network_socket *sockets, *dead;
    uint64_t arrived_ns; /* of what is being reported; 0 outside on_received */
};

/* For backends. Each may end with the socket closed by its owner. */
void network_socket_connected(network_socket *s);
/* s->message, ready for recvmsg into NETWORK_RECEIVE_BYTES at `to`; filled, it goes to
 * network_socket_received. */
struct msghdr *network_socket_message(network_socket *s, uint8_t *to);
void network_socket_received(network_socket *s, size_t bytes);
void network_socket_ended(network_socket *s, int error);
/* `bytes` of `out` were taken by the kernel; starts the next send if there is more. */
void network_socket_sent(network_socket *s, size_t bytes);
/* Once nothing refers to a closed socket any more: it is freed after the current wait. */
void network_socket_release(network_socket *s);

#endif
