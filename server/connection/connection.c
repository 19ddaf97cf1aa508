#include "server/connection/connection.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/connection/relief.h"
#include "server/request/request.h"

/* Taken per wake-up of a listener: more would starve the connections there are. */
#define ACCEPTS_PER_WAKE 16
#define HEALTH_CONNECTIONS_MAX 256
#define ACCEPTS_AT_CLOSE 8192 /* more than a backlog holds */
#define HANGUPS_PER_WAKE 64
#define PAUSE_MS 50
#define EXHAUSTED_LOG_NS 10000000000ull
#define CLOSING_MAX 16 /* connections above the limit, while the ones they replace are closed */
#define TICK_MS 1000
#define PROGRESS_FRACTION 64 /* of what is held must move in a tick */
/* How long a connection that was ended may take to send what it still has to, such as a TLS
 * close_notify, to a peer that does not read. */
#define LINGER_NS 5000000000ull

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

/* Of a connection that has not said what it speaks. */
static void check_beginning(connection *c, uint64_t now_ns)
{
    const server_timeouts *t = &c->all->loop->service->options->timeouts;
    if (c->is_in_handshake) {
        if (now_ns - c->accepted_ns > t->handshake_ms * 1000000)
            connection_end(c, CLOSURE_HANDSHAKE, now_ns);
    } else if (c->socket->input->size == 0) {
        if (now_ns - c->accepted_ns > t->idle_ms * 1000000)
            connection_end(c, CLOSURE_IDLE, now_ns);
    } else if (c->reading_ns == 0) {
        c->reading_ns = now_ns;
    } else if (now_ns - c->reading_ns > t->head_ms * 1000000) {
        connection_end(c, CLOSURE_HEAD, now_ns);
    }
}

static void check(connection *c, void *context)
{
    uint64_t now_ns = *(uint64_t *)context;
    uint64_t age_ms = c->all->loop->service->options->timeouts.age_ms;
    if (c->ended_ns != 0) {
        if (now_ns - c->ended_ns > LINGER_NS)
            shutdown(c->fd, SHUT_RDWR);
    } else if (c->protocol == NULL) {
        check_beginning(c, now_ns);
    } else {
        if (c->base.requests == 0)
            budget_trim(&c->base.held);
        if (age_ms > 0 && !c->is_old && now_ns - c->accepted_ns > age_ms * 1000000) {
            c->is_old = true;
            connection_count_closure(c, CLOSURE_AGE);
            c->protocol->drain(c);
        }
        c->protocol->check(c, now_ns);
    }
}

static void on_tick(h2o_timeout_entry_t *entry)
{
    connections *all = H2O_STRUCT_FROM_MEMBER(connections, tick_entry, entry);
    uint64_t now_ns = clock_now_ns();
    connections_visit(all, check, &now_ns);
    relief_restore(all);
    connections_relieve(all, now_ns);
    h2o_timeout_link(h2o_socket_get_loop(all->hangup_socket), &all->tick, entry);
}

static void on_pause_over(h2o_timeout_entry_t *entry);

void connections_start(connections *all, h2o_loop_t *loop)
{
    assert(of_this_thread == NULL);
    of_this_thread = all;
    all->hangup_socket = h2o_evloop_socket_create(loop, all->hangup_fd, H2O_SOCKET_FLAG_DONT_READ);
    all->hangup_socket->data = all;
    h2o_socket_read_start(all->hangup_socket, on_hangup);
    h2o_timeout_init(loop, &all->tick, TICK_MS);
    all->tick_entry.cb = on_tick;
    h2o_timeout_init(loop, &all->soon, 0);
    h2o_timeout_init(loop, &all->pause, PAUSE_MS);
    all->pause_entry.cb = on_pause_over;
    all->relief_entry.cb = relief_on_timeout;
    reserve_fill(&all->reserve); /* on this thread: the allocator keeps what it frees for it */
    h2o_timeout_link(loop, &all->tick, &all->tick_entry);
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
    request_connection_release(&c->base);
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
    if (moved > 0 && moved >= c->base.held.bytes / PROGRESS_FRACTION)
        connection_note_progress(c, now_ns);
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
    if (c->protocol == NULL)
        h2o_socket_close(c->socket);
    else
        c->protocol->abort(c, why);
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
    struct sockaddr_storage peer;
    bool has_peer = h2o_socket_getpeername(socket, (struct sockaddr *)&peer) > 0;
    if (budget_open(&all->loop->service->budget, &c->base.held,
                    has_peer ? (struct sockaddr *)&peer : NULL)) {
        connection_count_closure(c, CLOSURE_ADDRESS);
        free(c);
        return NULL;
    }
    c->accepted_ns = c->progress_ns = clock_now_ns();
    h2o_linklist_insert(&all->newcomers, &c->link);
    socket->on_close.cb = on_close;
    socket->on_close.data = c;
    count(all, 1);
    return c;
}

/* A connection for which the server works at the moment stays. */
static bool make_room_in(h2o_linklist_t *anchor)
{
    for (h2o_linklist_t *at = anchor->next; at != anchor; at = at->next) {
        connection *c = H2O_STRUCT_FROM_MEMBER(connection, link, at);
        if (c->base.unanswered == 0 && c->ended_ns == 0) {
            connection_end(c, CLOSURE_ROOM, clock_now_ns());
            return true;
        }
    }
    return false;
}

/* Is there room for one more, if need be in the place of another? Those that were ended may still
 * be closing. */
static bool has_room(connections *all)
{
    const service *s = all->loop->service;
    int index = all->loop->index;
    bool is_health = service_is_health_loop(s, index);
    int open = atomic_load_explicit(is_health ? &s->loops[index].connections : &s->connections,
                                    memory_order_relaxed);
    int most = is_health ? HEALTH_CONNECTIONS_MAX : s->connections_max;
    if (!reserve_fill(&all->reserve))
        return false;
    if (open < most)
        return true;
    return open - most < CLOSING_MAX &&
           (make_room_in(&all->newcomers) || make_room_in(&all->clients));
}

static void on_pause_over(h2o_timeout_entry_t *entry)
{
    connections *all = H2O_STRUCT_FROM_MEMBER(connections, pause_entry, entry);
    while (all->paused_count > 0)
        h2o_socket_read_start(all->paused[--all->paused_count], connection_on_accept);
}

/* No descriptor is left: who waits longest for nothing makes room, and the listener, which stays
 * readable, is not read for a moment. Without anybody to end, a newcomer is taken and closed. */
static void out_of_descriptors(connections *all, h2o_socket_t *listener, int error)
{
    uint64_t now_ns = clock_now_ns();
    if (all->exhausted_ns == 0 || now_ns - all->exhausted_ns > EXHAUSTED_LOG_NS) {
        log_error("server", "no connection accepted: %s", strerror(error));
        all->exhausted_ns = now_ns;
    }
    if (!make_room_in(&all->newcomers) && !make_room_in(&all->clients) && all->reserve_fd >= 0) {
        close(all->reserve_fd);
        int newcomer = accept4(h2o_socket_get_fd(listener), NULL, NULL, SOCK_CLOEXEC);
        if (newcomer >= 0)
            close(newcomer);
        all->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
    if (all->paused_count < SERVER_LISTENERS_MAX) {
        all->paused[all->paused_count++] = listener;
        h2o_socket_read_stop(listener);
    }
    if (!h2o_timeout_is_linked(&all->pause_entry))
        h2o_timeout_link(h2o_socket_get_loop(all->hangup_socket), &all->pause, &all->pause_entry);
}

static bool is_exhaustion(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

/* Some of those that wait; false when none is left. */
static bool accept_some(h2o_socket_t *listener)
{
    connections *all = of_this_thread;
    for (int i = 0; i < ACCEPTS_PER_WAKE; i++) {
        h2o_socket_t *socket = h2o_evloop_socket_accept(listener);
        if (socket == NULL) {
            if (is_exhaustion(errno))
                out_of_descriptors(all, listener, errno);
            return false;
        }
        connection *c = has_room(all) ? connection_create(all, socket) : NULL;
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
    connections *all = of_this_thread;
    for (int i = 0; i < ACCEPTS_AT_CLOSE / ACCEPTS_PER_WAKE && accept_some(listener); i++)
        ;
    for (int i = 0; i < all->paused_count; i++) {
        if (all->paused[i] == listener)
            all->paused[i--] = all->paused[--all->paused_count];
    }
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
