#include "server/connection/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/connection/relief.h"
#include "server/connection/room.h"
#include "server/request/request.h"

/* Taken per wake-up of a listener: more would starve the connections there are. */
#define ACCEPTS_PER_WAKE 16
#define ACCEPTS_AT_CLOSE 8192 /* more than a backlog holds */
#define HANGUPS_PER_WAKE 64
#define PAUSE_MS 50
#define ROOM_WAIT_MS 5
#define EXHAUSTED_LOG_NS 10000000000ull
#define TICK_MS 1000
/* How long a connection that was ended may take to send what it still has to, such as a TLS
 * close_notify, to a peer that does not read. */
#define LINGER_NS 5000000000ull

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
    relief_relieve(all, now_ns, false);
    room_publish(all, now_ns);
    h2o_timeout_link(h2o_socket_get_loop(all->hangup_socket), &all->tick, entry);
}

void connections_help(connections *all)
{
    const service_loop *counters = &all->loop->service->loops[all->loop->index];
    if (atomic_load_explicit(&counters->rooms_wanted, memory_order_relaxed) > 0)
        room_help(all, clock_now_ns());
    if (atomic_load_explicit(&counters->is_relief_wanted, memory_order_relaxed))
        relief_help(all, clock_now_ns());
}

static void on_pause_over(h2o_timeout_entry_t *entry);

void connections_start(connections *all, h2o_loop_t *loop)
{
    connections_set_thread(all);
    all->hangup_socket = h2o_evloop_socket_create(loop, all->hangup_fd, H2O_SOCKET_FLAG_DONT_READ);
    all->hangup_socket->data = all;
    h2o_socket_read_start(all->hangup_socket, on_hangup);
    h2o_timeout_init(loop, &all->tick, TICK_MS);
    all->tick_entry.cb = on_tick;
    h2o_timeout_init(loop, &all->soon, 0);
    h2o_timeout_init(loop, &all->pause, PAUSE_MS);
    h2o_timeout_init(loop, &all->room_wait, ROOM_WAIT_MS);
    all->pause_entry.cb = on_pause_over;
    all->relief_entry.cb = relief_on_timeout;
    reserve_fill(&all->reserve); /* on this thread: the allocator keeps what it frees for it */
    h2o_timeout_link(loop, &all->tick, &all->tick_entry);
}

/* Newcomers wait in the kernel's queue: the listener, which stays readable, is not read. */
static void pause_listener(connections *all, h2o_socket_t *listener, h2o_timeout_t *how_long)
{
    if (all->paused_count < SERVER_LISTENERS_MAX) {
        all->paused[all->paused_count++] = listener;
        h2o_socket_read_stop(listener);
    }
    if (!h2o_timeout_is_linked(&all->pause_entry))
        h2o_timeout_link(h2o_socket_get_loop(all->hangup_socket), how_long, &all->pause_entry);
}

static void on_pause_over(h2o_timeout_entry_t *entry)
{
    connections *all = H2O_STRUCT_FROM_MEMBER(connections, pause_entry, entry);
    while (all->paused_count > 0)
        h2o_socket_read_start(all->paused[--all->paused_count], connection_on_accept);
}

/* No descriptor is left: who waits longest for nothing makes room. Without anybody to end, a
 * newcomer is taken and closed. */
static void out_of_descriptors(connections *all, h2o_socket_t *listener, int error)
{
    uint64_t now_ns = clock_now_ns();
    if (all->exhausted_ns == 0 || now_ns - all->exhausted_ns > EXHAUSTED_LOG_NS) {
        log_error("server", "no connection accepted: %s", strerror(error));
        all->exhausted_ns = now_ns;
    }
    if (!room_make(all, now_ns) && all->reserve_fd >= 0) {
        close(all->reserve_fd);
        int newcomer = accept4(h2o_socket_get_fd(listener), NULL, NULL, SOCK_CLOEXEC);
        if (newcomer >= 0)
            close(newcomer);
        all->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
    pause_listener(all, listener, &all->pause);
}

static bool is_exhaustion(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

/* Some of those that wait; false when none is left, or none can be taken now. */
static bool accept_some(h2o_socket_t *listener)
{
    connections *all = connections_of_this_thread();
    for (int i = 0; i < ACCEPTS_PER_WAKE; i++) {
        connection *replaced = NULL;
        uint64_t now_ns = clock_now_ns();
        if (room_find(all, now_ns, &replaced) == ROOM_NONE) {
            pause_listener(all, listener, &all->room_wait);
            return false;
        }
        h2o_socket_t *socket = h2o_evloop_socket_accept(listener);
        if (socket == NULL) {
            if (is_exhaustion(errno))
                out_of_descriptors(all, listener, errno);
            return false;
        }
        connection *c = connection_create(all, socket, now_ns);
        if (c == NULL) {
            h2o_socket_close(socket);
            continue;
        }
        if (replaced != NULL)
            connection_end(replaced, CLOSURE_ROOM, now_ns);
        listener_context *from = listener->data;
        c->accept = &from->accept;
        c->base.listener_rights = from->rights;
        c->base.is_local = from->is_local;
        c->is_grpc = from->is_grpc;
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
    connections *all = connections_of_this_thread();
    for (int i = 0; i < ACCEPTS_AT_CLOSE / ACCEPTS_PER_WAKE && accept_some(listener); i++)
        ;
    for (int i = 0; i < all->paused_count; i++) {
        if (all->paused[i] == listener)
            all->paused[i--] = all->paused[--all->paused_count];
    }
}
