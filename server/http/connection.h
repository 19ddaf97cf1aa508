#ifndef SERVER_HTTP_CONNECTION_H
#define SERVER_HTTP_CONNECTION_H

#include <h2o.h>

#include "server/request/loop.h"

/* The connections of one loop: accepted, counted, watched, and closed when they go over a ceiling.
 * One thread, the loop's. */

typedef struct connections {
    request_loop *loop;
    const request_transport *transport;
    h2o_linklist_t list; /* connection.link */
    int hangup_fd;       /* epoll of HTTP/1 connections: has the client closed its side? */
    h2o_socket_t *hangup_socket;
} connections;

/* Lives from accept until the socket is closed and every request on it is released. */
typedef struct connection {
    request_connection base; /* first */
    connections *all;
    h2o_socket_t *socket; /* NULL once closed */
    int fd;
    bool is_watched; /* its fd is in hangup_fd */
    bool is_final;   /* HTTP/1: the response that was sent ends the connection */
    /* HTTP/1: the head just read is refused with this code; 0: it is not. Set while the head is
     * read, and consumed by the request that it becomes. */
    int refusal_code;
    char refusal[256];
    h2o_linklist_t link;
} connection;

/* STATUS_IO: no descriptor is left. */
status connections_init(connections *all, request_loop *l,
                        const request_transport *transport) MUST_CHECK;
void connections_dispose(connections *all);
/* On the loop's thread, before it runs. */
void connections_start(connections *all, h2o_loop_t *loop);

/* The reader of a listening socket whose `data` is its h2o_accept_ctx_t, whose `ctx` belongs to
 * the loop of `connections_start()` on this thread. */
void connection_on_accept(h2o_socket_t *listener, const char *error);
/* Accepts all that wait: before the listener is closed, because the kernel would reset them. */
void connection_accept_rest(h2o_socket_t *listener);

/* NULL: it is not an accepted socket. */
connection *connection_of(const h2o_socket_t *socket);

/* request_transport.close, .watch */
void connection_close_for_abuse(request_connection *c);
void connection_watch(connection *c, request *r);

/* Hooks of overrides/. */
bool connection_on_refused_head(const char *head, int code, const char *why);
bool connection_before_close(h2o_socket_t *socket);
void connection_before_reset(h2o_conn_t *conn);

#endif
