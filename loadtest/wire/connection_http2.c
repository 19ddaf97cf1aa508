#include "loadtest/wire/connection.h"
#include "loadtest/wire/memory.h"

#include <assert.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STREAM_WINDOW_BYTES (16 << 20)
#define CONNECTION_WINDOW_BYTES (256 << 20)
#define FIELDS_MAX 32

typedef struct stream {
    request *request; /* NULL: cancelled, waiting for its end */
    size_t body_sent;
    response response;
    struct stream *next, *previous; /* live ones; next also links the free ones */
    int32_t id;
    bool ended; /* END_STREAM arrived: the response is complete */
} stream;

typedef struct http2_state {
    nghttp2_session *session;
    stream *live, *free;
    bool draining;    /* GOAWAY came: no new streams */
    bool broken;      /* received bytes are not HTTP/2 */
    bool in_session;  /* inside nghttp2: it must not be deleted now */
    char reason[128]; /* of ending, if not empty */
} http2_state;

static stream *take_stream(connection *c)
{
    http2_state *state = c->state;
    stream *s = state->free;
    if (s != NULL)
        state->free = s->next;
    else
        s = memory_allocate(1, sizeof *s);
    response_reset(&s->response);
    s->response.keep_body = c->keep_bodies;
    s->body_sent = 0;
    s->ended = false;
    s->previous = NULL;
    s->next = state->live;
    if (s->next != NULL)
        s->next->previous = s;
    state->live = s;
    return s;
}

static void give_stream(http2_state *state, stream *s)
{
    if (s->previous != NULL)
        s->previous->next = s->next;
    else
        state->live = s->next;
    if (s->next != NULL)
        s->next->previous = s->previous;
    s->next = state->free;
    state->free = s;
}

static request *detach(connection *c, stream *s)
{
    request *r = s->request;
    if (r != NULL) {
        s->request = NULL;
        r->connection = NULL;
        r->stream = NULL;
        c->in_flight--;
    }
    return r;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_bytes, const uint8_t *value, size_t value_bytes, uint8_t flags,
                     void *user)
{
    (void)flags;
    (void)user;
    stream *s = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    if (s == NULL)
        return 0;
    if (name_bytes == 7 && memcmp(name, ":status", 7) == 0) {
        uint64_t code = 0;
        response_number((const char *)value, value_bytes, &code);
        s->response.code = (int)code;
    } else {
        response_header(&s->response, (const char *)name, name_bytes, (const char *)value,
                        value_bytes);
    }
    return 0;
}

static int on_data_chunk(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
                         size_t bytes, void *user)
{
    (void)flags;
    (void)user;
    stream *s = nghttp2_session_get_stream_user_data(session, id);
    if (s != NULL)
        response_body(&s->response, data, bytes);
    return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t code, void *user)
{
    connection *c = user;
    http2_state *state = c->state;
    stream *s = nghttp2_session_get_stream_user_data(session, id);
    if (s == NULL)
        return 0;
    nghttp2_session_set_stream_user_data(session, id, NULL);
    request *r = detach(c, s);
    if (r != NULL && code == NGHTTP2_NO_ERROR && s->ended && s->response.code != 0) {
        c->responses++;
        c->events->on_response(c->owner, c, r, &s->response);
    } else if (r != NULL) {
        char reason[64];
        snprintf(reason, sizeof reason, "the stream was reset: %s", nghttp2_http2_strerror(code));
        c->events->on_lost(c->owner, c, r, REQUEST_RESET, code == NGHTTP2_REFUSED_STREAM, reason);
    }
    give_stream(state, s);
    if (connection_has_room(c))
        c->events->on_room(c->owner, c);
    return 0;
}

static void take_settings(connection *c)
{
    http2_state *state = c->state;
    uint32_t remote = nghttp2_session_get_remote_settings(state->session,
                                                          NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
    unsigned before = c->room_max;
    c->room_max = remote < c->streams_max ? remote : c->streams_max;
    if (c->room_max > before && connection_has_room(c))
        c->events->on_room(c->owner, c);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    connection *c = user;
    http2_state *state = c->state;
    if ((frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
        (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)) {
        stream *s = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
        if (s != NULL)
            s->ended = true;
    }
    if (frame->hd.type == NGHTTP2_SETTINGS && !(frame->hd.flags & NGHTTP2_FLAG_ACK))
        take_settings(c);
    if (frame->hd.type == NGHTTP2_GOAWAY) {
        state->draining = true;
        c->usable = false;
        if (frame->goaway.error_code != NGHTTP2_NO_ERROR)
            snprintf(state->reason, sizeof state->reason, "GOAWAY: %s",
                     nghttp2_http2_strerror(frame->goaway.error_code));
    }
    return 0;
}

/* A stream that nghttp2 never put on the wire, after GOAWAY for example. */
static int on_frame_not_sent(nghttp2_session *session, const nghttp2_frame *frame, int error,
                             void *user)
{
    connection *c = user;
    (void)error;
    if (frame->hd.type != NGHTTP2_HEADERS)
        return 0;
    stream *s = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    if (s == NULL)
        return 0;
    nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, NULL);
    request *r = detach(c, s);
    if (r != NULL)
        c->events->on_lost(c->owner, c, r, REQUEST_RESET, true, "the server is going away");
    give_stream(c->state, s);
    return 0;
}

static ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *to, size_t bytes,
                         uint32_t *flags, nghttp2_data_source *source, void *user)
{
    (void)session;
    (void)id;
    (void)user;
    stream *s = source->ptr;
    if (s->request == NULL)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    const payload *p = s->request->payload;
    size_t left = p->body_bytes - s->body_sent;
    size_t part = left < bytes ? left : bytes;
    memcpy(to, p->body + s->body_sent, part);
    s->body_sent += part;
    if (part == left)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)part;
}

static status start(connection *c)
{
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option;
    if (nghttp2_session_callbacks_new(&callbacks) != 0 || nghttp2_option_new(&option) != 0)
        return status_fail(STATUS_OUT_OF_MEMORY, "nghttp2 is out of memory");
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data_chunk);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks, on_frame_not_sent);
    http2_state *state = memory_allocate(1, sizeof *state);
    int failed = nghttp2_session_client_new2(&state->session, callbacks, c, option);
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    if (failed) {
        free(state);
        return status_fail(STATUS_OUT_OF_MEMORY, "nghttp2 is out of memory");
    }
    /* Windows so wide that our side never slows the server down. */
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW_BYTES}};
    nghttp2_submit_settings(state->session, NGHTTP2_FLAG_NONE, settings, 2);
    nghttp2_session_set_local_window_size(state->session, NGHTTP2_FLAG_NONE, 0,
                                          CONNECTION_WINDOW_BYTES);
    c->state = state;
    /* Until its SETTINGS come, a server must allow at least what RFC 9113 recommends: 100. */
    c->room_max = c->streams_max < 100 ? c->streams_max : 100;
    return STATUS_OK;
}

static nghttp2_nv field(const char *name, const char *value)
{
    return (nghttp2_nv){.name = (uint8_t *)name,
                        .value = (uint8_t *)value,
                        .namelen = strlen(name),
                        .valuelen = strlen(value),
                        .flags = NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE};
}

static void submit(connection *c, request *r)
{
    http2_state *state = c->state;
    const request_head *head = c->head;
    const payload *p = r->payload;
    stream *s = take_stream(c);
    s->request = r;
    r->stream = s;
    nghttp2_nv fields[FIELDS_MAX];
    size_t count = 0;
    fields[count++] = field(":method", head->method);
    fields[count++] = field(":scheme", head->scheme);
    fields[count++] = field(":authority", head->authority);
    fields[count++] = field(":path", head->path);
    if (p->content_type != NULL) {
        fields[count++] = field("content-type", p->content_type);
        fields[count++] = field("content-length", p->length_text);
    }
    if (p->header_json_bytes != 0)
        fields[count++] = field("inference-header-content-length", p->header_json_text);
    for (size_t i = 0; i < head->header_count && count < FIELDS_MAX; i++)
        fields[count++] = field(head->headers[i].name, head->headers[i].value);
    nghttp2_data_provider provider = {.source.ptr = s, .read_callback = read_body};
    s->id = nghttp2_submit_request(state->session, NULL, fields, count,
                                   p->body_bytes != 0 ? &provider : NULL, s);
    if (s->id < 0) {
        /* Stream ids are used up, or the session is ending: another connection will take it. */
        c->usable = false;
        state->draining = true;
        detach(c, s);
        give_stream(state, s);
        c->events->on_lost(c->owner, c, r, REQUEST_RESET, true, nghttp2_strerror(s->id));
    }
}

static void cancel(connection *c, request *r)
{
    http2_state *state = c->state;
    stream *s = r->stream;
    detach(c, s);
    nghttp2_submit_rst_stream(state->session, NGHTTP2_FLAG_NONE, s->id, NGHTTP2_CANCEL);
}

static void receive(connection *c, const uint8_t *data, size_t bytes)
{
    http2_state *state = c->state;
    state->in_session = true;
    ssize_t used = nghttp2_session_mem_recv(state->session, data, bytes);
    state->in_session = false;
    if (used < 0) {
        state->broken = true;
        connection_finish(c, false, nghttp2_strerror((int)used));
        return;
    }
    if (nghttp2_session_want_write(state->session))
        connection_flush(c);
    if (!connection_is_open(c))
        return;
    bool over =
        !nghttp2_session_want_read(state->session) && !nghttp2_session_want_write(state->session);
    if (over && !state->draining) { /* nghttp2 ended the session */
        state->broken = true;
        connection_finish(c, false, "the response is not HTTP/2");
        return;
    }
    if (over || (state->draining && c->in_flight == 0))
        connection_finish(c, true, state->reason[0] ? state->reason : "the server is going away");
}

static void flush(connection *c)
{
    http2_state *state = c->state;
    if (state->in_session)
        return; /* the end of `receive` does it */
    const uint8_t *data;
    ssize_t bytes;
    text_buffer *out = transport_outgoing(&c->transport);
    state->in_session = true;
    while ((bytes = nghttp2_session_mem_send(state->session, &data)) > 0)
        text_buffer_append(out, data, (size_t)bytes);
    state->in_session = false;
    if (bytes < 0)
        connection_finish(c, false, nghttp2_strerror((int)bytes));
}

static void end(connection *c, bool in_order, const char *reason)
{
    http2_state *state = c->state;
    (void)in_order;
    /* Streams above a GOAWAY's last id were already closed by nghttp2, as refused. */
    while (state->live != NULL) {
        stream *s = state->live;
        request *r = detach(c, s);
        give_stream(state, s);
        if (r != NULL)
            c->events->on_lost(c->owner, c, r, state->broken ? REQUEST_PROTOCOL : REQUEST_CLOSED,
                               false, state->reason[0] ? state->reason : reason);
    }
}

static void dispose(connection *c)
{
    http2_state *state = c->state;
    assert(!state->in_session);
    nghttp2_session_del(state->session);
    for (stream *list = state->live, *next; list != NULL; list = next) {
        next = list->next;
        text_buffer_dispose(&list->response.body);
        free(list);
    }
    for (stream *list = state->free, *next; list != NULL; list = next) {
        next = list->next;
        text_buffer_dispose(&list->response.body);
        free(list);
    }
    free(state);
    c->state = NULL;
}

const connection_protocol connection_http2 = {
    .name = "HTTP/2",
    .start = start,
    .submit = submit,
    .cancel = cancel,
    .receive = receive,
    .flush = flush,
    .end = end,
    .dispose = dispose,
};
