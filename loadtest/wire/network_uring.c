#include "loadtest/wire/memory.h"
#include "loadtest/wire/network_backend.h"

#include "base/clock.h"

#include <assert.h>
#include <errno.h>
#include <liburing.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ENTRIES 1024
#define COMPLETIONS 8192

/* The operation lies in the low bits of user_data, the socket above. */
enum { OPERATION_CONNECT, OPERATION_RECEIVE, OPERATION_SEND, OPERATION_MASK = 7 };

typedef struct uring_state {
    struct io_uring ring;
    bool poll_first; /* Linux 5.19, as COOP_TASKRUN */
} uring_state;

static int set_up(struct io_uring *ring, unsigned entries, bool *recent)
{
    /* Newest first: completions are made only when we ask for them, then on any syscall of ours,
     * then by interrupting us. */
    static const unsigned flags[] = {IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
                                     IORING_SETUP_COOP_TASKRUN, 0};
    int error = 0;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        struct io_uring_params parameters = {.flags = flags[i] | IORING_SETUP_CQSIZE |
                                                      IORING_SETUP_CLAMP,
                                             .cq_entries = COMPLETIONS};
        error = -io_uring_queue_init_params(entries, ring, &parameters);
        if (error == 0 && !(parameters.features & IORING_FEAT_EXT_ARG)) {
            io_uring_queue_exit(ring); /* no timeout in the wait itself: older than 5.11 */
            return ENOSYS;
        }
        *recent = flags[i] != 0;
        if (error != EINVAL)
            break;
    }
    return error;
}

int network_uring_probe(void)
{
    struct io_uring ring;
    bool recent;
    int error = set_up(&ring, 8, &recent);
    if (error == 0)
        io_uring_queue_exit(&ring);
    return error;
}

static status uring_network_create(network *n)
{
    uring_state *state = memory_allocate(1, sizeof *state);
    int error = set_up(&state->ring, ENTRIES, &state->poll_first);
    if (error != 0) {
        free(state);
        return status_fail(STATUS_IO, "io_uring: %s", strerror(error));
    }
    n->state = state;
    return STATUS_OK;
}

static struct io_uring_sqe *next_entry(network_socket *s)
{
    uring_state *state = s->network->state;
    struct io_uring_sqe *sqe = io_uring_get_sqe(&state->ring);
    while (sqe == NULL) { /* full: hand over what is there */
        io_uring_submit(&state->ring);
        sqe = io_uring_get_sqe(&state->ring);
    }
    s->in_flight++;
    return sqe;
}

static void tag(struct io_uring_sqe *sqe, network_socket *s, int operation)
{
    assert(((uintptr_t)s & OPERATION_MASK) == 0);
    io_uring_sqe_set_data64(sqe, (uint64_t)(uintptr_t)s | (uint64_t)operation);
}

static void start_receive(network_socket *s)
{
    struct io_uring_sqe *sqe = next_entry(s);
    io_uring_prep_recvmsg(sqe, s->fd, network_socket_message(s, s->received), 0);
    /* The response never arrives at once: wait first instead of a useless try. */
    if (((uring_state *)s->network->state)->poll_first)
        sqe->ioprio |= IORING_RECVSEND_POLL_FIRST;
    tag(sqe, s, OPERATION_RECEIVE);
}

static status uring_network_open(network_socket *s)
{
    s->received = memory_allocate(1, NETWORK_RECEIVE_BYTES);
    struct io_uring_sqe *sqe = next_entry(s);
    io_uring_prep_connect(sqe, s->fd, (struct sockaddr *)&s->address, s->address_bytes);
    tag(sqe, s, OPERATION_CONNECT);
    return STATUS_OK;
}

static void uring_network_send(network_socket *s)
{
    struct io_uring_sqe *sqe = next_entry(s);
    io_uring_prep_send(sqe, s->fd, s->out.data + s->out_sent, s->out.bytes - s->out_sent,
                       MSG_NOSIGNAL | MSG_WAITALL);
    tag(sqe, s, OPERATION_SEND);
}

static void release_if_idle(network_socket *s)
{
    if (!s->closed || s->in_flight != 0 || s->released)
        return;
    close(s->fd);
    network_socket_release(s);
}

static void uring_network_close(network_socket *s)
{
    /* Makes whatever is in flight complete: a connect or receive in progress, a blocked send. */
    shutdown(s->fd, SHUT_RDWR);
    if (s->connecting && s->in_flight != 0) {
        uring_state *state = s->network->state;
        struct io_uring_sqe *sqe = io_uring_get_sqe(&state->ring);
        if (sqe != NULL) {
            io_uring_prep_cancel64(sqe, (uint64_t)(uintptr_t)s | OPERATION_CONNECT, 0);
            io_uring_sqe_set_data64(sqe, 0);
        }
    }
    release_if_idle(s);
}

static void complete(network_socket *s, int operation, int result)
{
    s->in_flight--;
    switch (operation) {
    case OPERATION_CONNECT:
        if (result < 0) {
            network_socket_ended(s, -result);
        } else if (!s->closed) {
            start_receive(s);
            network_socket_connected(s);
        }
        break;
    case OPERATION_RECEIVE:
        if (result > 0) {
            network_socket_received(s, (size_t)result);
            if (!s->closed && !s->ended)
                start_receive(s);
        } else if (result == -EINTR || result == -EAGAIN) {
            if (!s->closed)
                start_receive(s);
        } else {
            network_socket_ended(s, -result);
        }
        break;
    default:
        if (result >= 0)
            network_socket_sent(s, (size_t)result);
        else if ((result == -EINTR || result == -EAGAIN) && !s->closed)
            uring_network_send(s);
        else
            s->sending = false; /* broken: the receive tells, with the peer's last words */
    }
    release_if_idle(s);
}

static unsigned reap(uring_state *state)
{
    struct io_uring_cqe *cqes[256];
    unsigned total = 0, count;
    /* Bounded, so that a fast server cannot delay the next arrivals. */
    while (total < 1024 && (count = io_uring_peek_batch_cqe(&state->ring, cqes, 256)) != 0) {
        struct {
            uint64_t data;
            int result;
        } done[256];
        for (unsigned i = 0; i < count; i++) {
            done[i].data = cqes[i]->user_data;
            done[i].result = cqes[i]->res;
        }
        io_uring_cq_advance(&state->ring, count);
        for (unsigned i = 0; i < count; i++)
            if (done[i].data != 0)
                complete((network_socket *)(uintptr_t)(done[i].data & ~(uint64_t)OPERATION_MASK),
                         (int)(done[i].data & OPERATION_MASK), done[i].result);
        total += count;
        if (count < 256)
            break;
    }
    return total;
}

static void uring_network_wait(network *n, uint64_t until_ns)
{
    uring_state *state = n->state;
    uint64_t now_ns = clock_now_ns();
    uint64_t left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
    if (io_uring_cq_ready(&state->ring) != 0)
        left_ns = 0;
    if (left_ns == 0) {
        io_uring_submit_and_get_events(&state->ring);
    } else {
        struct io_uring_cqe *cqe;
        struct __kernel_timespec timeout = {.tv_sec = (int64_t)(left_ns / 1000000000u),
                                            .tv_nsec = (long long)(left_ns % 1000000000u)};
        io_uring_submit_and_wait_timeout(&state->ring, &cqe, 1, &timeout, NULL);
    }
    reap(state);
}

static void uring_network_destroy(network *n)
{
    uring_state *state = n->state;
    /* Every socket is closed by now, and shut down: their last operations end soon. */
    uint64_t give_up_ns = clock_now_ns() + 1000000000u;
    while (n->sockets != NULL && clock_now_ns() < give_up_ns)
        uring_network_wait(n, clock_now_ns() + 10000000u);
    io_uring_queue_exit(&state->ring);
    while (n->sockets != NULL) { /* the ring is gone, and with it what it still held */
        n->sockets->in_flight = 0;
        release_if_idle(n->sockets);
    }
    free(state);
}

const network_backend network_backend_uring = {
    .create = uring_network_create,
    .destroy = uring_network_destroy,
    .open = uring_network_open,
    .send = uring_network_send,
    .close = uring_network_close,
    .wait = uring_network_wait,
};
