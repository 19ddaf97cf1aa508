#include "server/http/connection.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/http/overrides/socket_close.h"
#include "server/request/request.h"

/* Taken per wake-up of a listener: more would starve the connections there are. */
#define ACCEPTS_PER_WAKE 16
#define ACCEPTS_AT_CLOSE 8192 /* more than a backlog holds */
#define HANGUPS_PER_WAKE 64

#define LATE_BODY "{\"error\":\"the request did not arrive in time\"}"
#define LATE_BODY_BYTES 46
_Static_assert(sizeof(LATE_BODY) - 1 == LATE_BODY_BYTES, "Content-Length of the late response");

/* The connections that this thread's loop serves: which thread this is, and nothing else. Functions
 * that libh2o calls without a context (connection_on_refused_head) find their loop by it. */
static _Thread_local connections *of_this_thread;

status connections_init(connections *all, request_loop *l, const request_transport *transport)
{
    *all =
        (connections){.loop = l, .transport = transport, .hangup_fd = epoll_create1(EPOLL_CLOEXEC)};
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
        if (c->base.waiting != NULL)
            request_cancel(c->base.waiting);
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
    c->socket = NULL;
    h2o_linklist_unlink(&c->link);
    atomic_fetch_sub_explicit(&c->all->loop->service->connections, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(connection_count(c->all), 1, memory_order_relaxed);
    request_connection_release(&c->base);
}

connection *connection_of(const h2o_socket_t *socket)
{
    return socket->on_close.cb == on_close ? socket->on_close.data : NULL;
}

static connection *connection_create(connections *all, h2o_socket_t *socket)
{
    connection *c = calloc(1, sizeof(*c));
    if (c == NULL)
        return NULL;
    c->base = (request_connection){.transport = all->transport, .loop = all->loop, .references = 1};
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
        if (atomic_load_explicit(&s->connections, memory_order_relaxed) >=
                s->options->limits.connections_max ||
            connection_create(all, socket) == NULL) {
            h2o_socket_close(socket);
            continue;
        }
        h2o_accept(listener->data, socket);
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

/* picohttpparser gets bytes and nothing else, so the connection is the one whose input they are. It
 * is searched for only when a head is refused, which ends that connection. */
static connection *find_by_input(const char *head)
{
    h2o_linklist_t *anchor = &of_this_thread->list;
    for (h2o_linklist_t *at = anchor->prev; at != anchor; at = at->prev) {
        connection *c = H2O_STRUCT_FROM_MEMBER(connection, link, at);
        if (c->socket->input->size > 0 && c->socket->input->bytes == head)
            return c;
    }
    return NULL;
}

bool connection_on_refused_head(const char *head, int code, const char *why)
{
    connection *c = find_by_input(head);
    if (c == NULL)
        return false;
    c->refusal_code = code;
    snprintf(c->refusal, sizeof(c->refusal), "%s", why);
    return true;
}

/* Counts two; each request that ends takes one back, the reset one included. So a peer whose
 * requests are mostly answered never comes near the ceiling. */
void connection_before_reset(h2o_conn_t *conn)
{
    h2o_socket_t *socket = conn->callbacks->get_socket(conn);
    connection *c = socket != NULL ? connection_of(socket) : NULL;
    if (c == NULL)
        return;
    c->base.resets += 2;
    if (c->base.resets > c->base.loop->service->options->limits.connection_resets_max)
        connection_close_for_abuse(&c->base);
}

/* Closed in the middle of an HTTP/1 request, with nothing sent and the client still there. A frame
 * of HTTP/2 begins with the zero byte of its length, a method with a letter. */
static bool is_late(const connection *c, h2o_socket_t *socket)
{
    char byte;
    if (c->base.is_closed_for_abuse || c->is_final || c->base.requests > 0 ||
        socket->input->size == 0 || socket->input->bytes[0] < 'A' ||
        socket->input->bytes[0] > 'Z' || h2o_socket_is_writing(socket))
        return false;
    return recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

static void on_late_written(h2o_socket_t *socket, const char *error)
{
    (void)error;
    socket_close_now(socket);
}

/* libh2o closes a connection whose request did not arrive in time: say so first. */
bool connection_before_close(h2o_socket_t *socket)
{
    static const char response[] =
        "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n"
        "Content-Type: application/json\r\nContent-Length: 46\r\n\r\n" LATE_BODY;
    connection *c = connection_of(socket);
    if (c == NULL || !is_late(c, socket))
        return false;
    c->is_final = true;
    request_loop *l = c->base.loop;
    record_sample sample = {.begin_ns = clock_now_ns(), .code = 408, .bucket_index = -1};
    record_request(l->service->recorder, NULL, l->index, &sample, sample.begin_ns);
    h2o_iovec_t piece = h2o_iovec_init(response, sizeof(response) - 1);
    h2o_socket_read_stop(socket);
    h2o_socket_write(socket, &piece, 1, on_late_written);
    return true;
}
