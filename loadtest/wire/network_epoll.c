#include "loadtest/wire/memory.h"
#include "loadtest/wire/network_backend.h"

#include "base/clock.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define EVENTS_MAX 256

typedef struct epoll_state {
    int fd;
    bool exact; /* epoll_pwait2 exists (Linux 5.11): timeouts in ns, not ms */
    uint8_t *received;
    struct epoll_event events[EVENTS_MAX];
} epoll_state;

static status epoll_network_create(network *n)
{
    epoll_state *state = memory_allocate(1, sizeof *state);
    state->fd = epoll_create1(EPOLL_CLOEXEC);
    if (state->fd < 0) {
        free(state);
        return status_fail(STATUS_IO, "epoll_create1: %s", strerror(errno));
    }
    state->exact = true;
    state->received = memory_allocate(1, NETWORK_RECEIVE_BYTES);
    n->state = state;
    return STATUS_OK;
}

static void epoll_network_destroy(network *n)
{
    epoll_state *state = n->state;
    close(state->fd);
    free(state->received);
    free(state);
}

static status epoll_network_open(network_socket *s)
{
    epoll_state *state = s->network->state;
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = s};
    /* A connect that fails at once is told by the socket's error, like one that fails later. */
    if (connect(s->fd, (struct sockaddr *)&s->address, s->address_bytes) != 0 &&
        errno != EINPROGRESS)
        return status_fail(STATUS_UNAVAILABLE, "connect: %s", strerror(errno));
    if (epoll_ctl(state->fd, EPOLL_CTL_ADD, s->fd, &event) != 0)
        return status_fail(STATUS_IO, "epoll_ctl: %s", strerror(errno));
    return STATUS_OK;
}

static void epoll_network_send(network_socket *s)
{
    assert(s->sending && s->out_sent < s->out.bytes);
    ssize_t n = send(s->fd, s->out.data + s->out_sent, s->out.bytes - s->out_sent, MSG_NOSIGNAL);
    if (n >= 0)
        network_socket_sent(s, (size_t)n);
    /* Full: an edge of EPOLLOUT will come. Broken: reading will tell, with the error. */
}

static void epoll_network_close(network_socket *s)
{
    close(s->fd);
    network_socket_release(s);
}

static void receive(network_socket *s)
{
    epoll_state *state = s->network->state;
    while (!s->closed && !s->ended) {
        ssize_t n = recvmsg(s->fd, network_socket_message(s, state->received), 0);
        if (n > 0) {
            network_socket_received(s, (size_t)n);
            if (n < NETWORK_RECEIVE_BYTES)
                return; /* drained; what comes later makes a new edge */
        } else if (n == 0) {
            network_socket_ended(s, 0);
        } else if (errno == EAGAIN) {
            return;
        } else if (errno != EINTR) {
            network_socket_ended(s, errno);
        }
    }
}

static void handle(network_socket *s, uint32_t events)
{
    if (s->closed)
        return;
    if (s->connecting) {
        int error = 0;
        socklen_t bytes = sizeof error;
        getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &bytes);
        if (error != 0) {
            network_socket_ended(s, error);
            return;
        }
        if (!(events & EPOLLOUT))
            return;
        network_socket_connected(s);
    }
    if (!s->closed && s->sending && (events & EPOLLOUT))
        epoll_network_send(s);
    if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) {
        receive(s);
        /* A short read may stop before the end of file that came with it. */
        if (!s->closed && !s->ended && (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)))
            receive(s);
    }
}

static void epoll_network_wait(network *n, uint64_t until_ns)
{
    epoll_state *state = n->state;
    uint64_t now_ns = clock_now_ns();
    uint64_t left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
    if (left_ns > 3600000000000u)
        left_ns = 3600000000000u;
    int count = -1;
    if (state->exact) {
        struct timespec timeout = {.tv_sec = (time_t)(left_ns / 1000000000u),
                                   .tv_nsec = (long)(left_ns % 1000000000u)};
        count = epoll_pwait2(state->fd, state->events, EVENTS_MAX, &timeout, NULL);
        if (count < 0 && (errno == ENOSYS || errno == EPERM))
            state->exact = false;
    }
    if (!state->exact)
        count = epoll_wait(state->fd, state->events, EVENTS_MAX, (int)(left_ns / 1000000u));
    for (int i = 0; i < count; i++)
        handle(state->events[i].data.ptr, state->events[i].events);
}

const network_backend network_backend_epoll = {
    .create = epoll_network_create,
    .destroy = epoll_network_destroy,
    .open = epoll_network_open,
    .send = epoll_network_send,
    .close = epoll_network_close,
    .wait = epoll_network_wait,
};
