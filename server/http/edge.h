#ifndef SERVER_HTTP_EDGE_H
#define SERVER_HTTP_EDGE_H

#include <h2o.h>
#include <pthread.h>

#include "base/mailbox.h"
#include "base/text_buffer.h"
#include "batcher/job/pool.h"
#include "server/http/tenant.h"
#include "server/protocol/compress.h"
#include "server/protocol/infer.h"
#include "server/protocol/route.h"
#include "server/server.h"
#include "server/telemetry/record.h"

/* What the files of this room share, and nobody else sees. Owners:
 *   loop        its thread; `returned` and `commands` are how others reach it
 *   connection  its loop; lives from accept to the close of the socket, and on while tickets of
 *               abandoned requests point to it
 *   exchange    one request and its answer; lives in the request's pool and dies with it
 *   ticket      the jobs of one request; outlives the exchange when the client goes first */
typedef struct loop loop;
typedef struct connection connection;
typedef struct exchange exchange;
typedef struct ticket ticket;
typedef struct control control; /* a load or unload under way */

struct connection {
    loop *loop;
    h2o_socket_t *socket; /* NULL once closed */
    int fd;
    int references;      /* the socket, and each ticket */
    int exchanges;       /* requests being handled */
    int jobs;            /* running or abandoned */
    int resets;          /* streams closed before their answer, less those answered */
    bool is_condemned;   /* over a ceiling: being closed, nothing more is served */
    bool is_watched;     /* its fd is in loop->hangup_fd */
    bool is_final;       /* HTTP/1: what was answered ends the connection */
    exchange *pending;   /* HTTP/1: the request that waits for its jobs */
    h2o_linklist_t link; /* loop->connections */
};

struct exchange {
    h2o_req_t *request;
    connection *connection;
    control *control;
    ticket *ticket; /* NULL: none, or answered without it */
    uint64_t begin_ns, accept_ns;
    route route;
    bool is_head, is_answered, is_infer;
    int code;
    uint64_t retry_after_ns; /* of a refusal; 0: a second */
    size_t body_bytes;       /* answered */
    char *owned;             /* a malloc'd answer body, freed with the exchange */
    /* For the access log and the record; the model may be gone by then. */
    struct model_record *record;
    uint64_t stage_ns[STAGE_COUNT];
    int64_t rows, batch_rows;
};

struct ticket {
    ticket *next; /* in the free list */
    uint64_t generation;
    loop *loop;
    exchange *exchange; /* NULL: the client is gone or has its text_buffer */
    connection *connection;
    infer_request request;
    job *one_job;     /* room for the usual case */
    int jobs_waiting; /* submitted and not back */
    bool is_cancelled;
    char *unpacked;     /* malloc'd: decompressed body */
    h2o_buffer_t *body; /* taken from the request because tensors lie in it */
    uint64_t deadline_ns;
    size_t deadline_at; /* place in loop->deadlines, or SIZE_MAX */
};

enum {
    COMMAND_TLS = 1,
    COMMAND_CLOSE_LISTENERS = 2,
    COMMAND_SHUTDOWN = 4,
    COMMAND_END = 8,
    COMMAND_CONTROL = 16
};

struct loop {
    server *server;
    int index;
    pthread_t thread;
    h2o_context_t context;
    h2o_socket_t *listeners[SERVER_LISTENERS_MAX];
    h2o_accept_ctx_t accept[SERVER_LISTENERS_MAX];
    SSL_CTX *tls;

    mailbox returned; /* jobs that are done */
    mailbox controls; /* loads and unloads that are done */
    _Atomic unsigned commands;
    _Atomic bool is_awake; /* no need to write to wake_fd */
    int wake_fd;
    h2o_socket_t *wake_socket;
    int hangup_fd; /* epoll of HTTP/1 connections: has the client gone? */
    h2o_socket_t *hangup_socket;

    h2o_linklist_t connections;
    _Atomic int exchange_count, connection_count;
    _Atomic uint64_t last_request_ns;
    bool is_ending;

    job_pool jobs;
    ticket *free_tickets;
    infer_scratch scratch;
    text_buffer text;
    uint64_t load_ns, load_busy_ns; /* sample behind endpoint-load-metrics */
    double load;
    text_buffer log; /* access log lines not yet written */
    uint64_t log_since_ns;

    ticket **deadlines; /* binary heap by deadline_ns */
    size_t deadline_count, deadline_capacity;
    h2o_timeout_t tick;
    h2o_timeout_entry_t tick_entry;
    h2o_timeout_t log_tick;
    h2o_timeout_entry_t log_tick_entry, drain_entry;
};

#define SERVER_TLS_RETIRED 16

struct server {
    const server_options *options;
    _Atomic bool is_open; /* what follows is set, and constant */
    repository *models;
    scheduler *work;
    device *const *devices;
    int device_count;
    const char *missing_device; /* why one is not there, or "" */
    pthread_mutex_t progress_lock;
    char progress[512]; /* of the start, before it is open */
    _Atomic uint64_t start_failures;
    int loop_count;
    loop *loops;
    h2o_globalconf_t config;
    h2o_hostconf_t *host;
    int listen_fds[SERVER_LOOPS_MAX][SERVER_LISTENERS_MAX];
    uint16_t ports[SERVER_LISTENERS_MAX];
    _Atomic bool is_draining, is_stopping;
    _Atomic int connection_count;
    int log_fd;
    uint64_t start_ns;
    recorder *recorder;
    tenant_quota quotas[SERVER_TENANTS_MAX + 1];
    h2o_barrier_t started; /* every loop listens */
    h2o_barrier_t ended;   /* no loop runs */
    /* The library's sockets point to their context without a reference until the handshake is
     * over: replaced contexts live on for this many reloads. */
    SSL_CTX *retired_tls[SERVER_TLS_RETIRED];
    unsigned tls_reloads;
    pthread_mutex_t tls_lock; /* the files are read by the main thread */
    SSL_CTX *tls;
};

/* listen.c */
status server_listen(server *s) MUST_CHECK;
/* tls.c: a context from the files; the caller owns it. */
status tls_load(const server_tls *files, SSL_CTX **out) MUST_CHECK;
/* accept.c */
void accept_on(h2o_socket_t *listener, const char *error);
/* Before the listener is closed: what the kernel has accepted for it would be reset. */
void accept_rest(h2o_socket_t *listener);
void connection_release(connection *c);
void connection_condemn(connection *c);
/* NULL: not an accepted socket. */
connection *connection_of(const h2o_socket_t *socket);
/* Notices the client leaving while `e` waits; HTTP/1 only. */
void connection_watch(connection *c, exchange *e);
void connection_on_hangup(h2o_socket_t *socket, const char *error);

/* loop.c */
status loop_init(loop *l, server *s, int index) MUST_CHECK;
void *loop_run(void *context);
void loop_command(loop *l, unsigned command);
/* Called by a slot's thread. */
void loop_on_job_done(job *j);

/* health.c: 503 for what needs models, while the server is not open. */
void serve_starting(exchange *e);

/* handle.c: libh2o calls it for each request. */
int handle_request(h2o_handler_t *self, h2o_req_t *request);
void handle_infer(exchange *e);
/* Turns the library's own error pages into our form. */
void handle_library_errors(h2o_hostconf_t *host);

/* ticket.c */
ticket *ticket_take(loop *l, exchange *e);
job *ticket_take_job(void *t);
void ticket_submit(ticket *t);
void ticket_on_job(job *j);
/* The request is gone or answered: jobs still out are dropped when they come back. */
void ticket_abandon(ticket *t);
void ticket_set_deadline(ticket *t, uint64_t deadline_ns);
void ticket_on_tick(h2o_timeout_entry_t *entry);

/* admit.c */
/* Ceilings, quotas, and whether the deadline can be met; counts the jobs as waiting. `t` has its
 * deadline; its jobs get theirs, the tenant and the class. */
status admit(exchange *e, const ticket *t) MUST_CHECK;

/* respond.c: the only place that knows HTTP codes of statuses. */
int respond_code(const exchange *e, status s);
void respond_status(exchange *e, status s, const char *message);
void respond_error(exchange *e, int code, const char *message);
/* `body` is copied. */
void respond_text(exchange *e, int code, const char *type, const char *body, size_t bytes);
void respond_infer(exchange *e, const infer_request *r);
void respond_header(exchange *e, const char *name, const char *value, size_t bytes);
/* respond_infer's writers; both append to `out`. */
void write_kserve(text_buffer *out, const infer_request *r);
void write_tensorflow(text_buffer *out, const infer_request *r);

/* metadata.c, metrics.c, status_page.c, health.c, access_log.c */
void serve_metadata(exchange *e);
void serve_tensorflow_metadata(exchange *e);
void serve_repository(exchange *e);
void repository_routes_finish(loop *l);
void repository_routes_abandon(control *c);
void serve_health(exchange *e);
void serve_metrics(exchange *e);
void serve_stats(exchange *e);
void serve_status_page(exchange *e);
void access_log(exchange *e);
void access_log_flush(loop *l);
/* endpoint-load-metrics: into `out`. */
void write_endpoint_load(text_buffer *out, loop *l);

#endif
