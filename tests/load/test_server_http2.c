#include "loadtest/wire/memory.h"
#include "test_server.h"

#include <assert.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct stream {
    char method[16], path[256];
    text_buffer body;
    const server_request *answer;
    size_t sent;
} stream;

static int on_begin(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    (void)user;
    if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
        nghttp2_session_set_stream_user_data(session, frame->hd.stream_id,
                                             memory_allocate(1, sizeof(stream)));
    return 0;
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
    if (name_bytes == 5 && memcmp(name, ":path", 5) == 0)
        snprintf(s->path, sizeof s->path, "%.*s", (int)value_bytes, (const char *)value);
    if (name_bytes == 7 && memcmp(name, ":method", 7) == 0)
        snprintf(s->method, sizeof s->method, "%.*s", (int)value_bytes, (const char *)value);
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
                   size_t bytes, void *user)
{
    (void)flags;
    (void)user;
    stream *s = nghttp2_session_get_stream_user_data(session, id);
    if (s != NULL)
        text_buffer_append(&s->body, data, bytes);
    return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    stream *s = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    if (s != NULL && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
        server_take(user, frame->hd.stream_id, s->method, s->path, s->body.data ? s->body.data : "",
                    s->body.bytes);
    return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t code, void *user)
{
    (void)code;
    (void)user;
    stream *s = nghttp2_session_get_stream_user_data(session, id);
    if (s != NULL) {
        text_buffer_dispose(&s->body);
        free(s);
    }
    return 0;
}

void http2_start(server_connection *c)
{
    nghttp2_session_callbacks *callbacks;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    nghttp2_session *session;
    nghttp2_session_server_new(&session, callbacks, c);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_settings_entry most = {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 1000};
    nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, &most, 1);
    c->session = session;
}

bool http2_receive(server_connection *c, const char *data, size_t bytes)
{
    return nghttp2_session_mem_recv(c->session, (const uint8_t *)data, bytes) >= 0;
}

static ssize_t read_answer(nghttp2_session *session, int32_t id, uint8_t *to, size_t bytes,
                           uint32_t *flags, nghttp2_data_source *source, void *user)
{
    (void)session;
    (void)id;
    (void)user;
    stream *s = source->ptr;
    size_t left = s->body.bytes - s->sent, part = left < bytes ? left : bytes;
    memcpy(to, s->body.data + s->sent, part);
    s->sent += part;
    if (part == left)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)part;
}

void http2_answer(server_connection *c, server_request *r)
{
    stream *s = nghttp2_session_get_stream_user_data(c->session, r->stream);
    if (s == NULL)
        return; /* reset by the client */
    char code[8];
    const char *timing = server_timing_of(r);
    snprintf(code, sizeof code, "%d", r->code);
    text_buffer_clear(&s->body);
    text_buffer_append(&s->body, r->body, r->body_bytes);
    nghttp2_nv fields[] = {{(uint8_t *)":status", (uint8_t *)code, 7, strlen(code), 0},
                           {(uint8_t *)"content-type", (uint8_t *)"application/json", 12, 16, 0},
                           {(uint8_t *)"server-timing", (uint8_t *)timing, 13, strlen(timing), 0}};
    nghttp2_data_provider provider = {.source.ptr = s, .read_callback = read_answer};
    nghttp2_submit_response(c->session, r->stream, fields, timing[0] ? 3 : 2, &provider);
}

void http2_flush(server_connection *c)
{
    const uint8_t *data;
    ssize_t bytes;
    while ((bytes = nghttp2_session_mem_send(c->session, &data)) > 0)
        text_buffer_append(&c->out, data, (size_t)bytes);
}

void http2_dispose(server_connection *c)
{
    nghttp2_session_del(c->session); /* closes streams without callbacks: theirs are lost */
    c->session = NULL;
}
