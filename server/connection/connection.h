#ifndef SERVER_CONNECTION_CONNECTION_H
#define SERVER_CONNECTION_CONNECTION_H

#include <h2o.h>
#include <netdb.h>

#include "server/connection/reserve.h"
#include "server/connection/turn.h"
#include "server/request/loop.h"

/* The connections of one loop: accepted, counted, watched, and ended when they are over a limit.
 * One thread, the loop's. */

typedef struct connection connection;

/* What a version of HTTP does with its connections. */
typedef struct connection_protocol {
    /* No new requests are wanted: the connection ends when those that run are answered. */
    void (*drain)(connection *c);
    /* The socket is being closed: frees c->state. */
    void (*dispose)(connection *c);
    /* The client has closed its side while a request is watched (connection_watch). NULL: requests
     * are not watched. */
    void (*input_ended)(connection *c);
    /* Looks at its time limits, about once a second: calls connection_end() when one has passed. */
    void (*check)(connection *c, uint64_t now_ns);
    /* Ends the connection now. Responses may be cut; the socket may be closed inside. */
    void (*abort)(connection *c, closure why);
} connection_protocol;

/* What a listening socket's `data` points to. */
typedef struct listener_context {
    h2o_accept_ctx_t accept;
    unsigned rights; /* of request_connection */
    bool is_local;
    bool is_grpc; /* of connection */
} listener_context;

typedef struct connections {
    request_loop *loop;
    void (*start)(connection *c); /* a connection was accepted: finds out what it speaks */
    struct http2_shared *http2;   /* what HTTP/2 connections share */
    /* connection.link: those that have not sent a request yet, and the others; each with the one
     * that has been without progress longest first. */
    h2o_linklist_t newcomers, clients;
    h2o_timeout_t tick, soon;
    h2o_timeout_entry_t tick_entry, relief_entry;
    /* Without a descriptor or room: listeners that are not read for a moment; a descriptor to take
     * newcomers with and tell them. */
    h2o_socket_t *paused[SERVER_LISTENERS_MAX];
    int paused_count, reserve_fd;
    h2o_timeout_t pause, room_wait;
    h2o_timeout_entry_t pause_entry;
    uint64_t exhausted_ns; /* when the log last said so */
    reserve reserve;       /* memory for libh2o when there is no other */
    turns turns;           /* how much each may do at a time */
    int hangup_fd;         /* epoll of HTTP/1 connections: has the client closed? */
    h2o_socket_t *hangup_socket;
} connections;

/* Lives from accept until the socket is closed and every request on it is released. */
struct connection {
    request_connection base; /* first */
    connections *all;
    h2o_socket_t *socket; /* NULL once closed */
    int fd;
    uint8_t stalled_ticks; /* for so many seconds, little of what is held for it has moved */
    bool is_watched;       /* its fd is in hangup_fd */
    bool is_client;        /* it has sent a request */
    bool is_old;           /* over timeouts.age_ms: drained */
    bool is_in_handshake;
    bool is_grpc;             /* its listener serves nothing else */
    bool is_replaced;         /* ended for others; it is open until the library has closed it */
    h2o_accept_ctx_t *accept; /* of its listener */
    SSL_CTX *tls;             /* a reference, during the handshake */
    /* Of the handshake: the library's reader of its messages, NULL until it has begun; and who is
     * told of its end. */
    h2o_socket_cb handshake_read, handshake_done;
    const connection_protocol *protocol; /* NULL: not known yet */
    void *state;                         /* the protocol's own */
    turn_share share;
    h2o_linklist_t link;
    uint64_t accepted_ns;
    uint64_t progress_ns; /* when a request or enough of a body came, or a response was taken */
    uint64_t moved_bytes; /* what connection_note_moved() was told last */
    uint64_t reading_ns;  /* since when a request is arriving; 0: none is, or nobody has looked */
    uint64_t ended_ns;    /* when the server ended it; 0: it has not */
    size_t leaving_bytes; /* that its end frees, told to other loops */
};

/* STATUS_IO: no descriptor is left. */
status connections_init(connections *all, request_loop *l, void (*start)(connection *c)) MUST_CHECK;
void connections_dispose(connections *all);
/* The calling thread is the loop's: before it runs. */
void connections_set_thread(connections *all);

/* Calls `visit` for each; it may end that one and no other. */
void connections_visit(connections *all, void (*visit)(connection *c, void *context),
                       void *context);

/* The last one to make progress of those that are `wanted`, or NULL. */
connection *connections_find(connections *all,
                             bool (*wanted)(const connection *c, const void *context),
                             const void *context);

/* A newcomer's; NULL: its address has too many, or memory is out. */
connection *connection_create(connections *all, h2o_socket_t *socket, uint64_t now_ns);

/* Of the loop that runs on this thread: for functions that libh2o calls without a context. */
connections *connections_of_this_thread(void);

/* library_calls_hooks.read_bytes_max */
size_t connections_read_bytes_max(size_t bytes);

/* The connection goes on with that protocol, and with no other any more. */
void connection_set_protocol(connection *c, const connection_protocol *protocol,
                             const request_transport *transport, void *state);

/* NULL: it is not an accepted socket. */
connection *connection_of(const h2o_socket_t *socket);

/* The peer's address as text, in `host`; empty when it is not known. */
request_text connection_peer(const connection *c, char host[NI_MAXHOST]);

/* A request has come: whoever sends requests is ended after who only connects. */
void connection_note_request(connection *c, uint64_t now_ns);
/* Something useful has happened. */
void connection_note_progress(connection *c, uint64_t now_ns);

/* So many bytes have moved on it in all, when its limits are looked at: much is progress, a trickle
 * beside what is held for it is none, and makes it stalled. */
void connection_note_moved(connection *c, uint64_t bytes, uint64_t now_ns);

/* Ends the connection for that reason, once; the socket may be closed inside. */
void connection_end(connection *c, closure why, uint64_t now_ns);

/* The connection ends for that reason in its own way. */
void connection_count_closure(const connection *c, closure why);

/* The connection has used up its share of this turn: `go_on` is called in the next one. */
void connection_wait_turn(connection *c, void (*go_on)(turn_share *share));

/* request_transport.close, .watch */
void connection_close_for_abuse(request_connection *c);
void connection_watch(connection *c, request *r);

#endif
