#include "loadtest/wire/network.h"

#include "base/clock.h"
#include "loadtest/wire/memory.h"
#include "loadtest/wire/network_backend.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

network_kind network_choose(const char **reason)
{
    const char *wanted = getenv("PENSTOCK_IO");
    *reason = NULL;
    if (wanted != NULL && strcmp(wanted, "epoll") == 0) {
        *reason = "PENSTOCK_IO=epoll";
        return NETWORK_EPOLL;
    }
    switch (network_uring_probe()) {
    case 0:
        return NETWORK_URING;
    case EPERM:
    case EACCES:
        *reason = "the kernel or a seccomp profile forbids io_uring (EPERM)";
        break;
    case ENOSYS:
        *reason = "the kernel has no io_uring (ENOSYS)";
        break;
    case ENOMEM:
        *reason = "io_uring may not lock enough memory (ENOMEM: raise ulimit -l)";
        break;
    default:
        *reason = "io_uring could not be set up";
    }
    return NETWORK_EPOLL;
}

const char *network_kind_name(network_kind kind)
{
    return kind == NETWORK_URING ? "io_uring" : "epoll";
}

status network_create(network **out, network_kind kind)
{
    network *n = memory_allocate(1, sizeof *n);
    n->backend = kind == NETWORK_URING ? &network_backend_uring : &network_backend_epoll;
    /* The kernel may otherwise delay every timer by 50 us to save wake-ups. */
    prctl(PR_SET_TIMERSLACK, 1UL);
    status s = n->backend->create(n);
    if (s) {
        free(n);
        return s;
    }
    *out = n;
    return STATUS_OK;
}

static void free_dead(network *n)
{
    while (n->dead != NULL) {
        network_socket *s = n->dead;
        n->dead = s->next_dead;
        text_buffer_dispose(&s->out);
        text_buffer_dispose(&s->outgoing);
        free(s->received);
        free(s);
    }
}

void network_destroy(network *n)
{
    if (n == NULL)
        return;
    for (network_socket *s = n->sockets, *next; s != NULL; s = next) {
        next = s->next;
        if (!s->closed)
            network_close(s);
    }
    n->backend->destroy(n);
    free_dead(n);
    assert(n->sockets == NULL);
    free(n);
}

status network_connect(network *n, const struct sockaddr *address, socklen_t address_bytes,
                       const network_events *events, void *owner, network_socket **out)
{
    assert(address_bytes <= sizeof(struct sockaddr_storage));
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return status_fail(errno == EMFILE || errno == ENFILE ? STATUS_RESOURCE_EXHAUSTED
                                                              : STATUS_IO,
                           "socket: %s", strerror(errno));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    receive_stamp_enable(fd);
    network_socket *s = memory_allocate(1, sizeof *s);
    s->network = n;
    s->events = events;
    s->owner = owner;
    s->fd = fd;
    s->connecting = true;
    memcpy(&s->address, address, address_bytes);
    s->address_bytes = address_bytes;
    status failed = n->backend->open(s);
    if (failed) {
        close(fd);
        free(s);
        return failed;
    }
    s->next = n->sockets;
    if (s->next != NULL)
        s->next->previous = s;
    n->sockets = s;
    *out = s;
    return STATUS_OK;
}

text_buffer *network_outgoing(network_socket *s)
{
    return &s->outgoing;
}

static void start_send(network_socket *s)
{
    text_buffer swap = s->out;
    s->out = s->outgoing;
    s->outgoing = swap;
    text_buffer_clear(&s->outgoing);
    s->out_sent = 0;
    s->sending = true;
    s->network->backend->send(s);
}

void network_flush(network_socket *s)
{
    assert(!s->closed);
    text_buffer_require(&s->outgoing, 0);
    if (s->connecting || s->ended || s->sending || s->outgoing.bytes == 0)
        return;
    start_send(s);
}

void network_close(network_socket *s)
{
    assert(!s->closed);
    s->closed = true;
    s->network->backend->close(s);
}

void network_wait(network *n, uint64_t until_ns)
{
    n->backend->wait(n, until_ns);
    free_dead(n);
}

void network_socket_connected(network_socket *s)
{
    if (s->closed || s->ended)
        return;
    s->connecting = false;
    s->events->on_connected(s->owner);
    if (!s->closed)
        network_flush(s);
}

struct msghdr *network_socket_message(network_socket *s, uint8_t *to)
{
    s->message_part = (struct iovec){.iov_base = to, .iov_len = NETWORK_RECEIVE_BYTES};
    s->message = (struct msghdr){.msg_iov = &s->message_part,
                                 .msg_iovlen = 1,
                                 .msg_control = s->control,
                                 .msg_controllen = sizeof s->control};
    return &s->message;
}

void network_socket_received(network_socket *s, size_t bytes)
{
    if (s->closed || s->ended)
        return;
    network *n = s->network;
    n->arrived_ns = receive_stamp_ns(&s->message);
    s->events->on_received(s->owner, s->message_part.iov_base, bytes);
    n->arrived_ns = 0;
}

uint64_t network_arrived_ns(const network *n)
{
    return n->arrived_ns != 0 ? n->arrived_ns : clock_now_ns();
}

void network_socket_ended(network_socket *s, int error)
{
    if (s->closed || s->ended)
        return;
    s->ended = true;
    s->events->on_closed(s->owner, error);
}

void network_socket_sent(network_socket *s, size_t bytes)
{
    s->out_sent += bytes;
    assert(s->out_sent <= s->out.bytes);
    if (s->closed || s->ended) {
        s->sending = false;
        return;
    }
    if (s->out_sent < s->out.bytes) {
        s->network->backend->send(s);
        return;
    }
    s->sending = false;
    if (s->outgoing.bytes != 0)
        start_send(s);
}

void network_socket_release(network_socket *s)
{
    assert(s->closed && s->in_flight == 0 && !s->released);
    s->released = true;
    network *n = s->network;
    if (s->previous != NULL)
        s->previous->next = s->next;
    else
        n->sockets = s->next;
    if (s->next != NULL)
        s->next->previous = s->previous;
    s->next_dead = n->dead;
    n->dead = s;
}
