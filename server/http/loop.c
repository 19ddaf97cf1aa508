/* One loop: a thread, its sockets, and the mailbox through which jobs come home. */
#include <assert.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log.h"
#include "server/http/edge.h"

#define TICK_MS 2
#define LOG_FLUSH_MS 500
#define JOBS_MAX 16384
#define IDLE_BYTES_MAX ((size_t)128 << 20)
#define ITERATION_MS 1000

/* Jobs go home by mailbox. The write to the event descriptor is only for a loop that sleeps: one
 * that is awake looks into the box before it sleeps again. */
void loop_on_job_done(job *j)
{
    loop *l = j->home;
    if (!mailbox_post(&l->returned, &j->node))
        return; /* whoever found the box empty has seen to the wake-up */
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&l->is_awake, memory_order_relaxed))
        return;
    uint64_t one = 1;
    ssize_t n = write(l->wake_fd, &one, sizeof(one));
    (void)n; /* full means it is awake already */
}

static void take_returned(loop *l)
{
    mailbox_node *node = mailbox_take_all(&l->returned);
    while (node != NULL) {
        mailbox_node *next = node->next;
        ticket_on_job((job *)node);
        node = next;
    }
}

void loop_command(loop *l, unsigned command)
{
    uint64_t one = 1;
    atomic_fetch_or(&l->commands, command);
    ssize_t n = write(l->wake_fd, &one, sizeof(one));
    (void)n;
}

static void close_listeners(loop *l)
{
    for (int i = 0; i < l->server->options->listener_count; i++) {
        if (l->listeners[i] == NULL)
            continue;
        accept_rest(l->listeners[i]);
        h2o_socket_close(l->listeners[i]);
        l->listeners[i] = NULL;
    }
}

static void swap_tls(loop *l)
{
    server *s = l->server;
    pthread_mutex_lock(&s->tls_lock);
    SSL_CTX *fresh = s->tls;
    SSL_CTX_up_ref(fresh);
    pthread_mutex_unlock(&s->tls_lock);
    for (int i = 0; i < s->options->listener_count; i++) {
        if (s->options->listeners[i].is_tls)
            l->accept[i].ssl_ctx = fresh;
    }
    SSL_CTX_free(l->tls); /* open connections hold it as long as they need */
    l->tls = fresh;
}

static void run_commands(loop *l)
{
    unsigned commands = atomic_exchange(&l->commands, 0);
    if (commands & COMMAND_TLS)
        swap_tls(l);
    if (commands & COMMAND_CLOSE_LISTENERS)
        close_listeners(l);
    if (commands & COMMAND_SHUTDOWN)
        h2o_context_request_shutdown(&l->context);
    if (commands & COMMAND_CONTROL)
        repository_routes_finish(l);
    if (commands & COMMAND_END)
        l->is_ending = true;
}

static void on_wake(h2o_socket_t *socket, const char *error)
{
    loop *l = socket->data;
    uint64_t count;
    if (error != NULL)
        return;
    ssize_t n = read(l->wake_fd, &count, sizeof(count));
    (void)n;
    atomic_store_explicit(&l->is_awake, true, memory_order_relaxed);
    run_commands(l);
    take_returned(l);
}

/* Runs inside the event loop, so that answers it writes are followed up before the loop sleeps. */
static void on_drain(h2o_timeout_entry_t *entry)
{
    loop *l = H2O_STRUCT_FROM_MEMBER(loop, drain_entry, entry);
    take_returned(l);
}

static void on_log_tick(h2o_timeout_entry_t *entry)
{
    loop *l = H2O_STRUCT_FROM_MEMBER(loop, log_tick_entry, entry);
    access_log_flush(l);
    h2o_timeout_link(l->context.loop, &l->log_tick, entry);
}

static void add_listener(loop *l, int i)
{
    server *s = l->server;
    h2o_accept_ctx_t *accept = &l->accept[i];
    accept->ctx = &l->context;
    accept->hosts = s->config.hosts;
    if (s->options->listeners[i].is_tls)
        accept->ssl_ctx = l->tls;
    h2o_socket_t *socket = h2o_evloop_socket_create(l->context.loop, s->listen_fds[l->index][i],
                                                    H2O_SOCKET_FLAG_DONT_READ);
    socket->data = accept;
    l->listeners[i] = socket;
    h2o_socket_read_start(socket, accept_on);
}

static h2o_socket_t *watch_descriptor(loop *l, int fd, h2o_socket_cb on_ready)
{
    h2o_socket_t *socket = h2o_evloop_socket_create(l->context.loop, fd, H2O_SOCKET_FLAG_DONT_READ);
    socket->data = l;
    h2o_socket_read_start(socket, on_ready);
    return socket;
}

status loop_init(loop *l, server *s, int index)
{
    l->server = s;
    l->index = index;
    l->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    l->hangup_fd = epoll_create1(EPOLL_CLOEXEC);
    if (l->wake_fd < 0 || l->hangup_fd < 0)
        return status_fail(STATUS_IO, "no descriptors left for loop %d", index);
    mailbox_init(&l->returned);
    mailbox_init(&l->controls);
    job_pool_init(&l->jobs, JOBS_MAX, IDLE_BYTES_MAX);
    h2o_linklist_init_anchor(&l->connections);
    if (s->tls != NULL) {
        SSL_CTX_up_ref(s->tls);
        l->tls = s->tls;
    }
    return STATUS_OK;
}

/* The library keeps thread-local state, so what belongs to the loop is made on its own thread. */
static void set_up(loop *l)
{
    h2o_context_init(&l->context, h2o_evloop_create(), &l->server->config);
    l->wake_socket = watch_descriptor(l, l->wake_fd, on_wake);
    l->hangup_socket = watch_descriptor(l, l->hangup_fd, connection_on_hangup);
    h2o_timeout_init(l->context.loop, &l->tick, TICK_MS);
    l->tick_entry.cb = ticket_on_tick;
    h2o_timeout_init(l->context.loop, &l->log_tick, LOG_FLUSH_MS);
    l->log_tick_entry.cb = on_log_tick;
    l->drain_entry.cb = on_drain;
    if (l->server->log_fd >= 0)
        h2o_timeout_link(l->context.loop, &l->log_tick, &l->log_tick_entry);
    for (int i = 0; i < l->server->options->listener_count; i++)
        add_listener(l, i);
}

void *loop_run(void *context)
{
    loop *l = context;
    set_up(l);
    h2o_barrier_wait(&l->server->started);
    while (!l->is_ending) {
        atomic_store_explicit(&l->is_awake, false, memory_order_relaxed);
        atomic_thread_fence(memory_order_seq_cst);
        if (!mailbox_is_empty(&l->returned) && !h2o_timeout_is_linked(&l->drain_entry))
            h2o_timeout_link(l->context.loop, &l->context.zero_timeout, &l->drain_entry);
        h2o_evloop_run(l->context.loop, ITERATION_MS);
    }
    access_log_flush(l);
    h2o_barrier_wait(&l->server->ended);
    /* The library keeps free lists per thread and has no way to free them: the thread stays until
     * the process ends, so that they are not lost. */
    for (;;)
        pause();
}
