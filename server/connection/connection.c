#include "server/connection/connection.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/request/request.h"

/* Taken per wake-up of a listener: more would starve the connections there are. */
#define ACCEPTS_PER_WAKE 16
#define ACCEPTS_AT_CLOSE 8192 /* more than a backlog holds */
#define HANGUPS_PER_WAKE 64

/* The connections that this thread's loop serves: which thread this is, and nothing else. Functions
 * that libh2o calls without a context (connections_of_this_thread) find their loop by it. */
static _Thread_local connections *of_this_thread;

status connections_init(connections *all, request_loop *l, void (*start)(connection *c))
{
    *all = (connections){.loop = l, .start = start, .hangup_fd = epoll_create1(EPOLL_CLOEXEC)};
    h2o_linklist_init_anchor(&all->list);
    if (all->hangup_fd < 0)
        return status_fail(STATUS_IO, "no descriptors left for loop %d", l->index);
    return STATUS_OK;
}

void connections_dispose(connections *all)
{
    if (all->loop != NULL && all->hangup_fd >= 0)
        close(all->hangup_fd);
    *all = (connections){.hangup_fd = -1};
}

static void on_hangup(h2o_socket_t *socket, const char *error)
{
    connections *all = socket->data;
    struct epoll_event events[HANGUPS_PER_WAKE];
    if (error != NULL)
        return;
    int count = epoll_wait(all->hangup_fd, events, HANGUPS_PER_WAKE, 0);
    for (int i = 0; i < count; i++) {
        connection *c = events[i].data.ptr;
        if (c->base.waiting == NULL)
            continue;
        if (events[i].events & (EPOLLHUP | EPOLLERR))
            request_cancel(c->base.waiting);
        else if (c->protocol->input_ended != NULL)
            c->protocol->input_ended(c);
    }
}

void connections_start(connections *all, h2o_loop_t *loop)
{
    assert(of_this_thread == NULL);
    of_this_thread = all;
    all->hangup_socket = h2o_evloop_socket_create(loop, all->hangup_fd, H2O_SOCKET_FLAG_DONT_READ);
    all->hangup_socket->data = all;
    h2o_socket_read_start(all->hangup_socket, on_hangup);
}

static _Atomic int *connection_count(const connections *all)
{
    return &all->loop->service->loops[all->loop->index].connections;
}

static void on_close(void *context)
{
    connection *c = context;
    h2o_timeout_unlink(&c->timer);
    SSL_CTX_free(c->tls);
    if (c->protocol != NULL)
        c->protocol->dispose(c);
    c->socket = NULL;
    h2o_linklist_unlink(&c->link);
    atomic_fetch_sub_explicit(&c->all->loop->service->connections, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(connection_count(c->all), 1, memory_order_relaxed);
    request_connection_release(&c->base);
}

connections *connections_of_this_thread(void)
{
    return of_this_thread;
}

void connection_set_protocol(connection *c, const connection_protocol *protocol,
                             const request_transport *transport, void *state)
{
    if (c->protocol != NULL)
        c->protocol->dispose(c);
    c->protocol = protocol;
    c->base.transport = transport;
    c->state = state;
}

connection *connection_of(const h2o_socket_t *socket)
{
    return socket->on_close.cb == on_close ? socket->on_close.data : NULL;
}

request_text connection_peer(const connection *c, char host[NI_MAXHOST])
{
    struct sockaddr_storage peer;
    socklen_t bytes =
        c->socket != NULL ? h2o_socket_getpeername(c->socket, (struct sockaddr *)&peer) : 0;
    size_t n = bytes ? h2o_socket_getnumerichost((struct sockaddr *)&peer, bytes, host) : SIZE_MAX;
    return (request_text){host, n == SIZE_MAX ? 0 : n};
}

static connection *connection_create(connections *all, h2o_socket_t *socket)
{
    connection *c = calloc(1, sizeof(*c));
    if (c == NULL)
        return NULL;
    c->base = (request_connection){.loop = all->loop, .references = 1};
    c->all = all;
    c->socket = socket;
    c->fd = h2o_socket_get_fd(socket);
    h2o_linklist_insert(&all->list, &c->link);
    socket->on_close.cb = on_close;
    socket->on_close.data = c;
    atomic_fetch_add_explicit(&all->loop->service->connections, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(connection_count(all), 1, memory_order_relaxed);
    return c;
}

/* Some of those that wait; false when none is left. */
static bool accept_some(h2o_socket_t *listener)
{
    connections *all = of_this_thread;
    const service *s = all->loop->service;
    for (int i = 0; i < ACCEPTS_PER_WAKE; i++) {
        h2o_socket_t *socket = h2o_evloop_socket_accept(listener);
        if (socket == NULL)
            return false;
        connection *c = atomic_load_explicit(&s->connections, memory_order_relaxed) <
                                s->options->limits.connections_max
                            ? connection_create(all, socket)
                            : NULL;
        if (c == NULL) {
            h2o_socket_close(socket);
            continue;
        }
        c->accept = listener->data;
        all->start(c);
    }
    return true;
}

void connection_on_accept(h2o_socket_t *listener, const char *error)
{
    if (error == NULL)
        accept_some(listener);
}

void connection_accept_rest(h2o_socket_t *listener)
{
    for (int i = 0; i < ACCEPTS_AT_CLOSE / ACCEPTS_PER_WAKE && accept_some(listener); i++)
        ;
}

/* The library may be using the socket further up the stack, so it is only shut down: the library
 * sees the end of input at its next read and closes in its own time. */
void connection_close_for_abuse(request_connection *base)
{
    connection *c = (connection *)base;
    if (base->is_closed_for_abuse)
        return;
    base->is_closed_for_abuse = true;
    log_debug("server", "connection closed for abuse: %d jobs, %d resets", base->jobs,
              base->resets);
    if (c->socket != NULL)
        shutdown(c->fd, SHUT_RDWR);
}

/* libh2o does not read an HTTP/1 socket while a request is pending. One registration for the life
 * of the connection, edge-triggered and for hang-ups alone, costs nothing per request. */
void connection_watch(connection *c, request *r)
{
    c->base.waiting = r;
    if (c->is_watched)
        return;
    struct epoll_event event = {.events = EPOLLRDHUP | EPOLLET, .data.ptr = c};
    c->is_watched = epoll_ctl(c->all->hangup_fd, EPOLL_CTL_ADD, c->fd, &event) == 0;
}
