#include "loadtest/fetch.h"

#include "base/clock.h"
#include "loadtest/wire/connection.h"
#include "loadtest/workload/request_source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FETCH_TIMEOUT_NS 10000000000u

typedef struct fetching {
    request request;
    bool sent, done;
    status status;
    int code;
    text_buffer *into;
} fetching;

static void on_room(void *owner, connection *c)
{
    fetching *f = owner;
    if (f->sent)
        return;
    f->sent = true;
    connection_submit(c, &f->request);
}

static void on_response(void *owner, connection *c, request *r, const response *a)
{
    fetching *f = owner;
    (void)c;
    (void)r;
    f->done = true;
    f->code = a->code;
    text_buffer_append(f->into, a->body.data, a->body.bytes);
    text_buffer_require(f->into, 0);
}

static void on_lost(void *owner, connection *c, request *r, request_error why, bool unprocessed,
                    const char *reason)
{
    fetching *f = owner;
    (void)c;
    (void)r;
    (void)why;
    (void)unprocessed;
    f->done = true;
    f->status = status_fail(STATUS_UNAVAILABLE, "%s", reason);
}

static void on_closed(void *owner, connection *c, bool opened, const char *reason)
{
    fetching *f = owner;
    (void)c;
    (void)opened;
    if (!f->done)
        f->status = status_fail(STATUS_UNAVAILABLE, "%s", reason);
    f->done = true;
}

status fetch(const target *t, const char *method, const char *path, const char *body,
             const request_header *headers, size_t header_count, int *code, text_buffer *reply)
{
    static const connection_events events = {on_room, on_response, on_lost, on_closed};
    request_head head = {.method = method,
                         .authority = t->authority,
                         .path = path,
                         .scheme = t->tls ? "https" : "http",
                         .headers = headers,
                         .header_count = header_count};
    payload p;
    request_source_payload(&p, body ? body : "", body ? strlen(body) : 0, 0, &head);
    fetching f = {.request.payload = &p, .into = reply};
    connection c = {
        .events = &events, .owner = &f, .head = &head, .streams_max = 1, .keep_bodies = true};
    network *n;
    const char *reason;
    status s = network_create(&n, network_choose(&reason));
    if (s)
        goto done;
    s = connection_open(&c, n, t);
    uint64_t end_ns = clock_now_ns() + FETCH_TIMEOUT_NS;
    while (!s && !f.done && clock_now_ns() < end_ns) {
        network_wait(n, end_ns);
        if (connection_is_open(&c))
            connection_flush(&c);
    }
    if (!s && !f.done)
        s = status_fail(STATUS_DEADLINE_EXCEEDED, "no response to %s %s within %u s", method, path,
                        (unsigned)(FETCH_TIMEOUT_NS / 1000000000u));
    if (!s)
        s = f.status;
    if (connection_is_open(&c))
        connection_close(&c);
    network_destroy(n);
    *code = f.code;
done:
    free((char *)p.body);
    free((char *)p.http1);
    return s;
}
