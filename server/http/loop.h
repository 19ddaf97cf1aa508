#ifndef SERVER_HTTP_LOOP_H
#define SERVER_HTTP_LOOP_H

#include <h2o.h>
#include <pthread.h>

#include "server/connection/connection.h"
#include "server/http/tls.h"
#include "server/http2/connection.h"
#include "server/request/loop.h"
#include "server/request/routes.h"

/* What all loops share; constant while they run, but for the mutex, the gate and the TLS context.
 */
typedef enum loop_gate { LOOP_GATE_SHUT, LOOP_GATE_OPEN, LOOP_GATE_CANCELLED } loop_gate;

typedef struct loop_shared {
    service *service;
    h2o_globalconf_t config;
    tls_context tls;
    pthread_mutex_t gate_lock;
    pthread_cond_t gate_changed;
    loop_gate gate;        /* threads wait here until all are there */
    h2o_barrier_t started; /* every loop listens */
    _Atomic int ended;     /* loops that run no more */
} loop_shared;

enum {
    LOOP_COMMAND_TLS = 1,             /* take the new TLS context */
    LOOP_COMMAND_CLOSE_LISTENERS = 2, /* after accepting what waits */
    LOOP_COMMAND_SHUTDOWN = 4,        /* GOAWAY, and Connection: close */
    LOOP_COMMAND_END = 8,
    LOOP_COMMAND_ACCESS = 16 /* take the new table of who is known */
};

/* An event loop: a thread, its sockets, and what its requests share. */
typedef struct loop {
    request_loop requests;
    loop_shared *shared;
    pthread_t thread;
    char name[16];
    h2o_context_t context;
    connections connections;
    http2_shared http2;
    int listen_fds[SERVER_LISTENERS_MAX];
    h2o_socket_t *listeners[SERVER_LISTENERS_MAX];
    listener_context contexts[SERVER_LISTENERS_MAX];
    SSL_CTX *tls;
    _Atomic unsigned commands;
    bool is_ending;
    h2o_socket_t *wake_socket;
    h2o_timeout_t tick, log_tick;
    h2o_timeout_entry_t tick_entry, log_tick_entry, drain_entry, turn_entry;
} loop;

/* On failure nothing is left to dispose of. */
status loop_init(loop *l, loop_shared *shared, const request_routes *routes, int index) MUST_CHECK;
/* Of a loop whose thread does not run. */
void loop_dispose(loop *l);

/* What loop_run() does: the loop's thread makes what belongs to it, once, and turns. A turn waits
 * so long for something to happen. */
void loop_begin(loop *l);
void loop_turn(loop *l, int wait_ms);

/* The body of a loop's thread; `context` is the loop. Returns only if the gate is cancelled. */
void *loop_run(void *context);

/* Any thread; the loop does it soon. */
void loop_command(loop *l, unsigned command);

#endif
