/* Connections: taken, counted, watched, and ended when they go over a ceiling. */
#include <assert.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/log.h"
#include "server/http/edge.h"

/* Taken per wake-up of a listener: more would starve the connections there are. */
#define ACCEPTS_PER_WAKE 16
#define ACCEPTS_AT_CLOSE 8192 /* more than a backlog holds */

void connection_release(connection *c)
{
    assert(c->references > 0);
    if (--c->references == 0)
        free(c);
}

static void on_close(void *context)
{
    connection *c = context;
    loop *l = c->loop;
    c->socket = NULL;
    h2o_linklist_unlink(&c->link);
    atomic_fetch_sub_explicit(&l->server->connection_count, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&l->connection_count, 1, memory_order_relaxed);
    connection_release(c);
}

connection *connection_of(const h2o_socket_t *socket)
{
    return socket->on_close.cb == on_close ? socket->on_close.data : NULL;
}

static connection *connection_create(loop *l, h2o_socket_t *socket)
{
    connection *c = calloc(1, sizeof(*c));
    if (c == NULL)
        return NULL;
    c->loop = l;
    c->socket = socket;
    c->fd = h2o_socket_get_fd(socket);
    c->references = 1;
    h2o_linklist_insert(&l->connections, &c->link);
    socket->on_close.cb = on_close;
    socket->on_close.data = c;
    atomic_fetch_add_explicit(&l->server->connection_count, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&l->connection_count, 1, memory_order_relaxed);
    return c;
}

/* Some of those that wait; false when none is left. */
static bool accept_some(h2o_socket_t *listener)
{
    h2o_accept_ctx_t *accept = listener->data;
    loop *l = H2O_STRUCT_FROM_MEMBER(loop, context, accept->ctx);
    for (int i = 0; i < ACCEPTS_PER_WAKE; i++) {
        h2o_socket_t *socket = h2o_evloop_socket_accept(listener);
        if (socket == NULL)
            return false;
        if (atomic_load_explicit(&l->server->connection_count, memory_order_relaxed) >=
                l->server->options->limits.connections_max ||
            connection_create(l, socket) == NULL) {
            h2o_socket_close(socket);
            continue;
        }
        h2o_accept(accept, socket);
    }
    return true;
}

void accept_on(h2o_socket_t *listener, const char *error)
{
    if (error == NULL)
        accept_some(listener);
}

void accept_rest(h2o_socket_t *listener)
{
    for (int i = 0; i < ACCEPTS_AT_CLOSE / ACCEPTS_PER_WAKE && accept_some(listener); i++)
        ;
}

/* The socket may be in use by the library further up the stack, so it is only shut: the library
 * sees the end of input at its next read and closes in its own time. */
void connection_condemn(connection *c)
{
    if (c->is_condemned)
        return;
    c->is_condemned = true;
    log_debug("server", "connection closed: %d jobs, %d resets", c->jobs, c->resets);
    if (c->socket != NULL)
        shutdown(c->fd, SHUT_RDWR);
}

/* libh2o does not read an HTTP/1 socket while a handler is pending. One registration for the life
 * of the connection, edge-triggered and for hang-ups alone, costs nothing per request. */
void connection_watch(connection *c, exchange *e)
{
    c->pending = e;
    if (c->is_watched)
        return;
    struct epoll_event event = {.events = EPOLLRDHUP | EPOLLET, .data.ptr = c};
    c->is_watched = epoll_ctl(c->loop->hangup_fd, EPOLL_CTL_ADD, c->fd, &event) == 0;
}

void connection_on_hangup(h2o_socket_t *socket, const char *error)
{
    loop *l = socket->data;
    struct epoll_event events[64];
    if (error != NULL)
        return;
    int count = epoll_wait(l->hangup_fd, events, 64, 0);
    for (int i = 0; i < count; i++) {
        connection *c = events[i].data.ptr;
        exchange *e = c->pending;
        if (e == NULL || e->ticket == NULL)
            continue;
        ticket *t = e->ticket;
        t->is_cancelled = true;
        for (int j = 0; j < t->request.job_count; j++)
            atomic_store_explicit(&t->request.jobs[j]->is_cancelled, true, memory_order_relaxed);
        scheduler_nudge(l->server->work);
    }
}
