#include "loadtest/wire/connection.h"

#include <assert.h>
#include <stdio.h>

static void on_open(void *owner, bool http2)
{
    connection *c = owner;
    c->opening = false;
    c->protocol = http2 ? &connection_http2 : &connection_http1;
    status s = c->protocol->start(c);
    if (s) {
        connection_finish(c, false, status_message());
        return;
    }
    c->usable = true;
    c->events->on_room(c->owner, c);
    if (connection_is_open(c))
        connection_flush(c);
}

static void on_data(void *owner, const uint8_t *data, size_t bytes)
{
    connection *c = owner;
    c->protocol->receive(c, data, bytes);
}

static void on_end(void *owner, const char *reason)
{
    connection *c = owner;
    connection_finish(c, c->transport.ended_in_order, reason);
}

static const transport_events events_of_transport = {on_open, on_data, on_end};

status connection_open(connection *c, network *n, const target *to)
{
    assert(!connection_is_open(c) && c->in_flight == 0);
    c->usable = false;
    c->opening = true;
    c->responses = 0;
    c->protocol = NULL;
    c->room_max = 0;
    status s = transport_open(&c->transport, n, to, &events_of_transport, c);
    if (s)
        c->opening = false;
    return s;
}

void connection_submit(connection *c, request *r)
{
    assert(connection_has_room(c) && r->connection == NULL);
    r->connection = c;
    c->in_flight++;
    c->protocol->submit(c, r);
}

void connection_cancel(connection *c, request *r)
{
    assert(r->connection == c && c->in_flight > 0);
    c->protocol->cancel(c, r);
    assert(r->connection == NULL);
}

void connection_flush(connection *c)
{
    if (c->protocol == NULL || !connection_is_open(c))
        return;
    c->protocol->flush(c);
    if (connection_is_open(c))
        transport_flush(&c->transport);
}

void connection_close(connection *c)
{
    c->usable = c->opening = false;
    transport_close(&c->transport);
    if (c->protocol != NULL)
        c->protocol->dispose(c);
    c->protocol = NULL;
    c->in_flight = 0;
}

void connection_finish(connection *c, bool in_order, const char *reason)
{
    bool opened = c->protocol != NULL;
    char copy[256];
    snprintf(copy, sizeof copy, "%s", reason);
    c->usable = false;
    if (opened)
        c->protocol->end(c, in_order, copy);
    assert(c->in_flight == 0);
    connection_close(c);
    c->events->on_closed(c->owner, c, opened, copy);
}
