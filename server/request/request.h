#ifndef SERVER_REQUEST_REQUEST_H
#define SERVER_REQUEST_REQUEST_H

#include <string.h>

#include "server/protocol/infer.h"
#include "server/protocol/language/language.h"
#include "server/protocol/route.h"
#include "server/request/deadlines.h"
#include "server/request/life.h"
#include "server/request/loop.h"
#include "server/request/transport.h"

/* One request, from its arrival until nobody uses it any more. It belongs to the thread of its
 * loop and comes from the loop's pool, so that it outlives the HTTP library's request while jobs
 * are with the batcher. life.h says what may happen to it and when; request_advance() makes it
 * happen, and request_end() ends it. */

typedef void (*request_handler)(request *r);

/* What a request waits for is done elsewhere, on any thread: the first member of a message. */
typedef struct request_message {
    mailbox_node node;
    request *request;
} request_message;

struct request {
    request *next; /* idle in the pool */
    life life;
    uint64_t serial; /* never used again: says which request a job belongs to */
    request_loop *loop;
    request_connection *connection;

    /* The transport's: its own request (NULL once the stream is closed) and a body it keeps. */
    void *stream, *kept_body;
    size_t kept_body_bytes; /* of the connection's budget */
    size_t kept_body_capacity;
    bool can_borrow_body; /* the body stays where it is until the stream is closed */
    bool reads_body;      /* a helper thread does: as if jobs borrowed it */
    char *unpacked;       /* of large_memory.h: `body` lies in it; NULL: it was not compressed */
    size_t unpacked_capacity; /* of the connection's budget */

    /* What was asked. */
    route route;
    request_text body;    /* valid while the stream is open */
    bool is_head;         /* the response has no body */
    bool is_about_server; /* its target is "*" */

    /* What it waits for. Once that is done, `resume` is called, even if the request has ended in
     * the meantime; if not, it must end it, or let it wait again. NULL: it does not wait. */
    request_handler resume;
    void *waits_for;           /* the handler's own */
    request_handler on_cancel; /* nobody waits for the response any more; at most once, or NULL */

    /* Who asks (authorize.h). */
    access_table *access;            /* a reference that keeps `identity`, or NULL */
    const access_identity *identity; /* NULL: nobody that is known */
    unsigned rights;                 /* access_right */
    bool has_key, is_ambiguous;      /* a key was sent; two were */

    /* Inference. */
    int tenant;                 /* number */
    language_request *language; /* of the loop's pool; NULL: the route is none that takes text */
    infer_request infer;
    job *one_job;             /* where infer.jobs points in the usual case */
    bool holds_model;         /* a reference to infer.model, else its jobs have them */
    int jobs_out;             /* submitted and not back */
    budget_account jobs_held; /* of the connection: what large ones hold, or not open */
    uint64_t deadline_ns;     /* UINT64_MAX: none */
    deadline deadline;
    request_handler
        on_due; /* resumed with this instead when `deadline` is due; NULL: it has passed */

    /* How it was answered. */
    int code;
    bool is_short_of_memory; /* a part of the response is missing: 503 is sent instead of it */
    size_t response_bytes;
    char *compressed;            /* malloc'd body, or NULL */
    struct model_record *record; /* NULL: it reached no model */
    record_sample sample;        /* with the stages' times */
};

static inline service *request_service(const request *r)
{
    return r->loop->service;
}
static inline request_text request_header(const request *r, const char *name)
{
    return r->connection->transport->header(r, name, strlen(name)); /* mostly of literals */
}
/* For a header that means nothing when it is there twice. */
static inline bool request_has_twice(const request *r, const char *name)
{
    return r->connection->transport->header_count(r, name, strlen(name)) > 1;
}
static inline bool request_has_ended(const request *r)
{
    return r->life.state >= LIFE_ANSWERED;
}
/* Must the body stay where it is, whatever becomes of the stream? */
static inline bool request_needs_body(const request *r)
{
    return r->reads_body || (r->jobs_out > 0 && r->infer.borrows_body);
}
static inline bool request_is_inference(const request *r)
{
    return route_is_inference(r->route.kind);
}

/* A request has arrived on `c` as the transport's `stream`. Its fields under "what was asked" are
 * the caller's to fill. NULL: the loop's ceiling of open requests is reached, or memory is out. */
request *request_begin(request_loop *l, request_connection *c, void *stream, uint64_t now_ns);

/* Gives the request's jobs back to the pool of its loop. */
void request_release_jobs(request *r);

/* The model that the route names, by version or label; the caller releases it. STATUS_NOT_FOUND,
 * STATUS_UNAVAILABLE. The server is open. */
status request_find_model(const request *r, const model **out) MUST_CHECK;

/* Lets `handle` answer the request, or set `resume`. The request may be released afterwards. */
void request_run(request *r, request_handler handle);

/* The event happens; it must be allowed now. May release the request. */
void request_advance(request *r, life_event event, uint64_t now_ns);

/* Ends the request for that reason, one of the first five events; what is still under way for it is
 * cancelled. The response is the caller's business (respond.h). */
void request_end(request *r, life_event reason);

/* Nobody waits for the response any more: tells whoever works for the request. Jobs that have begun
 * run on; all come back. */
void request_cancel(request *r);

/* Counts what the parsed jobs hold, inputs and room for outputs, until the request is released, or
 * its response is sent and counts it. STATUS_UNAVAILABLE: there is no room for it; nothing is
 * counted. */
status request_hold_jobs(request *r) MUST_CHECK;

/* Hands the admitted jobs to the batcher; `resume` is called when the last one is back. */
void request_submit(request *r, request_handler resume);

/* The request waits until `due_ns`, and is resumed with `resume` then; again: that is changed.
 * NULL: it waits no longer. It has no other deadline. */
void request_due(request *r, request_handler resume, uint64_t due_ns);

/* Memory that its response keeps until the stream is closed, for the caller to count. Once. */
size_t request_count_response(request *r);

/* The transport has closed the stream and frees what belongs to it. A request that has not ended
 * yet ends: its client is gone. May release the request. */
void request_stream_closed(request *r);

/* Takes home the jobs and messages that have come back to the loop, and resumes their requests. */
void request_take_returned(request_loop *l);
bool request_has_returned(const request_loop *l);

/* `m->request` may be resumed. Any thread; the message is the loop's until then. */
void request_post(request_message *m);

/* The loop ends: so does every request on it that has not ended. */
void request_end_all(request_loop *l);

#endif
