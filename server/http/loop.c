#include "server/http/loop.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/connection/listener.h"
#include "server/http/protocol.h"
#include "server/request/expire.h"
#include "server/request/request.h"

#define TICK_MS 2
#define LOG_FLUSH_MS 500
#define ITERATION_MS 1000
#define INPUT_BUFFERS 16

void loop_command(loop *l, unsigned command)
{
    atomic_fetch_or(&l->commands, command);
    request_loop_wake(&l->requests);
}

static void close_listeners(loop *l)
{
    for (int i = 0; i < l->shared->service->options->listener_count; i++) {
        if (l->listeners[i] == NULL)
            continue;
        connection_accept_rest(l->listeners[i]);
        h2o_socket_close(l->listeners[i]);
        l->listeners[i] = NULL;
    }
}

/* Open connections hold the old context as long as they need it. */
static void replace_tls(loop *l)
{
    const server_options *o = l->shared->service->options;
    SSL_CTX_free(l->tls);
    l->tls = tls_acquire(&l->shared->tls);
    for (int i = 0; i < o->listener_count; i++) {
        if (o->listeners[i].is_tls)
            l->contexts[i].accept.ssl_ctx = l->tls;
    }
}

static void drain_connection(connection *c, void *unused)
{
    (void)unused;
    if (c->protocol != NULL)
        c->protocol->drain(c);
}

/* HTTP/1: `Connection: close` with the next response; HTTP/2: GOAWAY. */
static void begin_drain(loop *l)
{
    h2o_context_request_shutdown(&l->context);
    connections_visit(&l->connections, drain_connection, NULL);
}

static void run_commands(loop *l)
{
    unsigned commands = atomic_exchange(&l->commands, 0);
    if (commands & LOOP_COMMAND_TLS)
        replace_tls(l);
    if (commands & LOOP_COMMAND_ACCESS)
        request_loop_renew_access(&l->requests);
    if (commands & LOOP_COMMAND_CLOSE_LISTENERS)
        close_listeners(l);
    if (commands & LOOP_COMMAND_SHUTDOWN)
        begin_drain(l);
    if (commands & LOOP_COMMAND_END)
        l->is_ending = true;
}

static void on_wake(h2o_socket_t *socket, const char *error)
{
    loop *l = socket->data;
    uint64_t count;
    if (error != NULL)
        return;
    ssize_t n = read(l->requests.wake_fd, &count, sizeof(count));
    (void)n;
    atomic_store_explicit(&l->requests.is_awake, true, memory_order_relaxed);
    run_commands(l);
    request_take_returned(&l->requests);
    connections_help(&l->connections);
}

/* Runs inside the event loop, so that what it writes is sent before the loop sleeps. */
static void on_drain(h2o_timeout_entry_t *entry)
{
    loop *l = H2O_STRUCT_FROM_MEMBER(loop, drain_entry, entry);
    run_commands(l);
    request_take_returned(&l->requests);
}

/* Connections go on inside the event loop: the library polls a socket whose write is done, and was
 * not told, for good (an assertion once the peer takes more). */
static void on_turn(h2o_timeout_entry_t *entry)
{
    turns_begin(&H2O_STRUCT_FROM_MEMBER(loop, turn_entry, entry)->connections.turns);
}

static void on_tick(h2o_timeout_entry_t *entry)
{
    loop *l = H2O_STRUCT_FROM_MEMBER(loop, tick_entry, entry);
    request_expire(&l->requests, clock_now_ns());
}

static void on_log_tick(h2o_timeout_entry_t *entry)
{
    loop *l = H2O_STRUCT_FROM_MEMBER(loop, log_tick_entry, entry);
    access_log_flush(&l->requests.log);
    h2o_timeout_link(l->context.loop, &l->log_tick, entry);
}

static void add_listener(loop *l, int i)
{
    const server_listener *at = &l->shared->service->options->listeners[i];
    listener_context *context = &l->contexts[i];
    context->accept.ctx = &l->context;
    context->accept.hosts = l->shared->config.hosts;
    context->rights = at->is_admin ? ACCESS_ALL : 0;
    context->is_local = at->path != NULL;
    context->is_grpc = at->is_grpc;
    h2o_socket_t *socket =
        h2o_evloop_socket_create(l->context.loop, l->listen_fds[i], H2O_SOCKET_FLAG_DONT_READ);
    socket->data = context;
    l->listeners[i] = socket;
    h2o_socket_read_start(socket, connection_on_accept);
}

/* Even if it is awake: it must begin a turn. The watchdog's thread. */
static void wake(void *context)
{
    loop *l = context;
    uint64_t one = 1;
    ssize_t n = write(l->requests.wake_fd, &one, sizeof(one));
    (void)n; /* full: it has been woken already */
}

status loop_init(loop *l, loop_shared *shared, const request_routes *routes, int index)
{
    watched *watch = &shared->service->loops[index].watch;
    *l = (loop){.shared = shared};
    snprintf(l->name, sizeof(l->name), "loop %d", index);
    watch->name = l->name;
    watch->wake = wake;
    watch->context = l;
    memset(l->listen_fds, -1, sizeof(l->listen_fds));
    status failure = request_loop_init(&l->requests, shared->service, routes, index);
    if (failure)
        return failure;
    failure = connections_init(&l->connections, &l->requests, protocol_start);
    if (failure)
        request_loop_dispose(&l->requests);
    return failure;
}

void loop_dispose(loop *l)
{
    for (int i = 0; i < SERVER_LISTENERS_MAX; i++) {
        if (l->listen_fds[i] >= 0)
            close(l->listen_fds[i]);
    }
    connections_dispose(&l->connections);
    request_loop_dispose(&l->requests);
}

/* A connection has an input buffer only while there is input, and the library keeps up to 16 free
 * ones for each thread. It gets them now: otherwise whenever more connections than ever before have
 * input at once. */
static void make_input_buffers(void)
{
    h2o_buffer_t *buffers[INPUT_BUFFERS];
    for (int i = 0; i < INPUT_BUFFERS; i++) {
        h2o_buffer_init(&buffers[i], &h2o_socket_buffer_prototype);
        (void)h2o_buffer_reserve(&buffers[i], 1);
    }
    for (int i = 0; i < INPUT_BUFFERS; i++)
        h2o_buffer_dispose(&buffers[i]);
}

/* The library keeps state per thread, so what belongs to the loop is made on its own thread. */
void loop_begin(loop *l)
{
    h2o_context_init(&l->context, h2o_evloop_create(), &l->shared->config);
    h2o_loop_t *events = l->context.loop;
    l->wake_socket =
        h2o_evloop_socket_create(events, l->requests.wake_fd, H2O_SOCKET_FLAG_DONT_READ);
    l->wake_socket->data = l;
    h2o_socket_read_start(l->wake_socket, on_wake);
    connections_start(&l->connections, events);
    make_input_buffers(); /* the reserve for its memory is there */
    http2_shared_start(&l->http2, &l->context, l->shared->service->helpers);
    l->connections.http2 = &l->http2;
    h2o_timeout_init(events, &l->tick, TICK_MS);
    l->tick_entry.cb = on_tick;
    h2o_timeout_init(events, &l->log_tick, LOG_FLUSH_MS);
    l->log_tick_entry.cb = on_log_tick;
    l->drain_entry.cb = on_drain;
    l->turn_entry.cb = on_turn;
    if (l->requests.log.fd >= 0)
        h2o_timeout_link(events, &l->log_tick, &l->log_tick_entry);
    for (int i = 0; i < l->shared->service->options->listener_count; i++) {
        if (l->listen_fds[i] >= 0)
            add_listener(l, i);
    }
    replace_tls(l);
}

/* A turn of the loop begins, now or, where a connection waits for it, after the sockets were
 * looked at. */
static void begin_turn(loop *l)
{
    if (!turns_are_waited_for(&l->connections.turns))
        turns_begin(&l->connections.turns);
    else if (!h2o_timeout_is_linked(&l->turn_entry))
        h2o_timeout_link(l->context.loop, &l->context.zero_timeout, &l->turn_entry);
}

/* Before the loop sleeps: what came in while it was awake, and did not wake it. */
static void look_before_sleep(loop *l)
{
    atomic_store_explicit(&l->requests.is_awake, false, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    bool has_work = request_has_returned(&l->requests) || atomic_load(&l->commands) != 0;
    if (has_work && !h2o_timeout_is_linked(&l->drain_entry))
        h2o_timeout_link(l->context.loop, &l->context.zero_timeout, &l->drain_entry);
    if (l->requests.deadlines.count > 0 && !h2o_timeout_is_linked(&l->tick_entry))
        h2o_timeout_link(l->context.loop, &l->tick, &l->tick_entry);
}

/* The library reads the clock when it has waited for its sockets: a turn is what comes after. */
void loop_turn(loop *l, int wait_ms)
{
    service_loop *counters = &l->shared->service->loops[l->requests.index];
    uint64_t before = atomic_load_explicit(&counters->watch.turns, memory_order_relaxed);
    atomic_store_explicit(&counters->watch.turns, before + 1, memory_order_relaxed);
    begin_turn(l);
    look_before_sleep(l);
    if (h2o_evloop_run(l->context.loop, wait_ms) != 0 && errno != EINTR)
        log_error("server", "an event loop cannot watch a socket: %s", strerror(errno));
    uint64_t begin_ms = h2o_now(l->context.loop), end_ms = clock_wall_ns() / 1000000;
    service_count_turn(counters, end_ms > begin_ms ? end_ms - begin_ms : 0);
}

static bool wait_at_gate(loop_shared *shared)
{
    pthread_mutex_lock(&shared->gate_lock);
    while (shared->gate == LOOP_GATE_SHUT)
        pthread_cond_wait(&shared->gate_changed, &shared->gate_lock);
    bool is_open = shared->gate == LOOP_GATE_OPEN;
    pthread_mutex_unlock(&shared->gate_lock);
    return is_open;
}

void *loop_run(void *context)
{
    loop *l = context;
    if (!wait_at_gate(l->shared))
        return NULL;
    loop_begin(l);
    h2o_barrier_wait(&l->shared->started);
    while (!l->is_ending)
        loop_turn(l, ITERATION_MS);
    request_end_all(&l->requests);
    access_log_flush(&l->requests.log);
    atomic_fetch_add(&l->shared->ended, 1);
    /* The library keeps free lists per thread and has no way to free them: the thread stays until
     * the process ends, so that they are not lost. */
    for (;;)
        pause();
}
