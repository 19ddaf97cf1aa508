#include "server/connection/connection.h"

#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/request/request.h"

#define PROGRESS_FRACTION 64 /* of what is held must move in a tick */

/* The connections that this thread's loop serves: which thread this is, and nothing else. Functions
 * that libh2o calls without a context (connections_of_this_thread) find their loop by it. */
static _Thread_local connections *of_this_thread;

status connections_init(connections *all, request_loop *l, void (*start)(connection *c))
{
    *all = (connections){.loop = l,
                         .start = start,
                         .hangup_fd = epoll_create1(EPOLL_CLOEXEC),
                         .reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC)};
    h2o_linklist_init_anchor(&all->newcomers);
    h2o_linklist_init_anchor(&all->clients);
    turns_init(&all->turns);
    if (all->hangup_fd < 0)
        return status_fail(STATUS_IO, "no descriptors left for loop %d", l->index);
    return STATUS_OK;
}

void connections_dispose(connections *all)
{
    if (all->loop != NULL && all->hangup_fd >= 0)
        close(all->hangup_fd);
    if (all->loop != NULL && all->reserve_fd >= 0)
        close(all->reserve_fd);
    reserve_dispose(&all->reserve);
    *all = (connections){.hangup_fd = -1, .reserve_fd = -1};
}

void connections_visit(connections *all, void (*visit)(connection *c, void *context), void *context)
{
    h2o_linklist_t *anchors[] = {&all->newcomers, &all->clients};
    for (size_t i = 0; i < sizeof anchors / sizeof anchors[0]; i++) {
        /* Those that make progress move to the end: no further than today's. */
        h2o_linklist_t *last = anchors[i]->prev, *next;
        for (h2o_linklist_t *at = anchors[i]->next; at != anchors[i]; at = next) {
            next = at == last ? anchors[i] : at->next;
            visit(H2O_STRUCT_FROM_MEMBER(connection, link, at), context);
        }
    }
}

connection *connections_find(connections *all,
                             bool (*wanted)(const connection *c, const void *context),
                             const void *context)
{
    h2o_linklist_t *anchors[] = {&all->clients, &all->newcomers};
    for (size_t i = 0; i < sizeof anchors / sizeof anchors[0]; i++) {
        for (h2o_linklist_t *at = anchors[i]->prev; at != anchors[i]; at = at->prev) {
            connection *c = H2O_STRUCT_FROM_MEMBER(connection, link, at);
            if (wanted(c, context))
                return c;
        }
    }
    return NULL;
}

/* Those for health are counted apart: they neither take the others' room nor delay the drain. */
static void count(const connections *all, int difference)
{
    service *s = all->loop->service;
    if (!service_is_health_loop(s, all->loop->index))
        atomic_fetch_add_explicit(&s->connections, difference, memory_order_relaxed);
    atomic_fetch_add_explicit(&s->loops[all->loop->index].connections, difference,
                              memory_order_relaxed);
}

/* Of those, the ones that others replace, until they are closed. */
static void count_closing(const connections *all, int difference)
{
    service *s = all->loop->service;
    if (!service_is_health_loop(s, all->loop->index))
        atomic_fetch_add_explicit(&s->closing, difference, memory_order_relaxed);
    atomic_fetch_add_explicit(&s->loops[all->loop->index].closing, difference,
                              memory_order_relaxed);
}

static void on_close(void *context)
{
    connection *c = context;
    turn_forget(&c->share);
    SSL_CTX_free(c->tls);
    if (c->protocol != NULL)
        c->protocol->dispose(c);
    c->socket = NULL;
    h2o_linklist_unlink(&c->link);
    count(c->all, -1);
    if (c->is_replaced)
        count_closing(c->all, -1);
    size_t leaving = c->leaving_bytes;
    service *s = c->all->loop->service;
    request_connection_release(&c->base);
    atomic_fetch_sub_explicit(&s->leaving_bytes, leaving, memory_order_relaxed);
}

void connections_set_thread(connections *all)
{
    assert(of_this_thread == NULL);
    of_this_thread = all;
}

connections *connections_of_this_thread(void)
{
    return of_this_thread;
}

size_t connections_read_bytes_max(size_t bytes)
{
    return of_this_thread != NULL ? turn_read_bytes_max(&of_this_thread->turns, bytes) : bytes;
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

static void move_to_end(connection *c, uint64_t now_ns)
{
    c->progress_ns = now_ns;
    h2o_linklist_unlink(&c->link);
    h2o_linklist_insert(c->is_client ? &c->all->clients : &c->all->newcomers, &c->link);
}

void connection_note_request(connection *c, uint64_t now_ns)
{
    c->is_client = true;
    c->reading_ns = 0;
    move_to_end(c, now_ns);
}

void connection_note_progress(connection *c, uint64_t now_ns)
{
    if (c->socket != NULL)
        move_to_end(c, now_ns);
}

void connection_note_moved(connection *c, uint64_t bytes, uint64_t now_ns)
{
    uint64_t moved = bytes > c->moved_bytes ? bytes - c->moved_bytes : 0;
    c->moved_bytes = bytes;
    if (moved == 0 || moved < c->base.held.bytes / PROGRESS_FRACTION) {
        c->stalled_ticks += c->stalled_ticks < UINT8_MAX;
    } else {
        c->stalled_ticks = 0;
        connection_note_progress(c, now_ns);
    }
}

void connection_count_closure(const connection *c, closure why)
{
    service_loop *counters = &c->all->loop->service->loops[c->all->loop->index];
    atomic_fetch_add_explicit(&counters->closures[why], 1, memory_order_relaxed);
    log_debug("server", "connection ended: %s", closure_name(why));
}

void connection_end(connection *c, closure why, uint64_t now_ns)
{
    if (c->ended_ns != 0 || c->socket == NULL)
        return;
    c->ended_ns = now_ns;
    h2o_linklist_unlink(&c->link); /* out of the way of who looks for the next to end */
    h2o_linklist_insert(&c->all->clients, &c->link);
    connection_count_closure(c, why);
    if (why == CLOSURE_ROOM || why == CLOSURE_MEMORY) { /* what it has is needed now */
        c->is_replaced = true;
        count_closing(c->all, 1);
        shutdown(c->fd, SHUT_RDWR);
    }
    if (c->protocol == NULL)
        h2o_socket_close(c->socket);
    else
        c->protocol->abort(c, why);
}

connection *connection_create(connections *all, h2o_socket_t *socket, uint64_t now_ns)
{
    connection *c = calloc(1, sizeof(*c));
    if (c == NULL)
        return NULL;
    c->base = (request_connection){.loop = all->loop, .references = 1};
    c->all = all;
    c->socket = socket;
    c->fd = h2o_socket_get_fd(socket);
    struct sockaddr_storage peer;
    bool has_peer = h2o_socket_getpeername(socket, (struct sockaddr *)&peer) > 0;
    if (budget_open(&all->loop->service->budget, &c->base.held,
                    has_peer ? (struct sockaddr *)&peer : NULL)) {
        connection_count_closure(c, CLOSURE_ADDRESS);
        free(c);
        return NULL;
    }
    c->accepted_ns = c->progress_ns = now_ns;
    h2o_linklist_insert(&all->newcomers, &c->link);
    socket->on_close.cb = on_close;
    socket->on_close.data = c;
    count(all, 1);
    return c;
}

/* The library may be using the socket further up the stack, so it is only shut down: the library
 * sees the end of input at its next read and closes in its own time. */
void connection_close_for_abuse(request_connection *base)
{
    connection *c = (connection *)base;
    if (base->is_closed_for_abuse)
        return;
    base->is_closed_for_abuse = true;
    connection_end(c, CLOSURE_ABUSE, clock_now_ns());
}

void connection_wait_turn(connection *c, void (*go_on)(turn_share *share))
{
    service_loop *counters = &c->base.loop->service->loops[c->base.loop->index];
    if (turn_is_waiting(&c->share))
        return;
    atomic_fetch_add_explicit(&counters->yields, 1, memory_order_relaxed);
    turn_wait(&c->all->turns, &c->share, go_on);
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
