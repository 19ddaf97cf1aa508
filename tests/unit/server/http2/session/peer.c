#include "tests/unit/server/http2/session/peer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static char body[1 << 20];

peer_request *peer_find(peer *p, int32_t id)
{
    for (int i = 0; i < p->request_count; i++)
        if (p->requests[i].id == id)
            return &p->requests[i];
    assert(p->request_count < PEER_STREAMS_MAX);
    peer_request *r = &p->requests[p->request_count++];
    r->id = id;
    return r;
}

void peer_respond(peer *p, peer_request *r)
{
    http2_field type = {"content-type", "text/plain", 12, 10};
    http2_piece pieces[2] = {{r->path, strlen(r->path)},
                             {r->body.bytes > 0 ? r->body.data : "", r->body.bytes}};
    status failure = http2_session_respond(p->server, r->stream, r->is_too_large ? 431 : 200, &type,
                                           1, pieces, r->body.bytes > 0 ? 2 : 1, NULL, 0);
    (void)failure;
}

static void on_request(void *owner, http2_stream *stream, const http2_head *head, bool has_body)
{
    peer *p = owner;
    peer_request *r = peer_find(p, http2_stream_id(stream));
    r->stream = stream;
    r->is_too_large = head->is_too_large;
    size_t n =
        head->path.value_bytes < sizeof r->path - 1 ? head->path.value_bytes : sizeof r->path - 1;
    if (n > 0)
        memcpy(r->path, head->path.value, n);
    r->path[n] = '\0';
    http2_stream_set_data(stream, r);
    if (p->is_pausing)
        http2_session_pause(p->server);
    if (has_body)
        return;
    r->is_ended = true;
    if (!p->is_holding)
        peer_respond(p, r);
}

static void on_data(void *owner, http2_stream *stream, const void *data, size_t bytes)
{
    peer *p = owner;
    peer_request *r = http2_stream_data(stream);
    text_buffer_append(&r->body, data, bytes);
    if (p->is_consuming)
        http2_session_consume(p->server, stream, bytes);
}

static void on_end(void *owner, http2_stream *stream)
{
    peer *p = owner;
    peer_request *r = http2_stream_data(stream);
    r->is_ended = true;
    if (!p->is_holding)
        peer_respond(p, r);
}

static void on_sent(void *owner, http2_stream *stream)
{
    peer_request *r = http2_stream_data(stream);
    (void)owner;
    r->sent_parts++;
}

static void on_close(void *owner, http2_stream *stream, bool was_answered)
{
    (void)owner;
    peer_request *r = http2_stream_data(stream);
    assert(!r->is_closed);
    r->stream = NULL;
    r->is_closed = true;
    r->was_answered = was_answered;
}

static const http2_handler echo = {on_request, on_data, on_end, on_sent, on_close};

static int client_header(nghttp2_session *client, const nghttp2_frame *frame, const uint8_t *name,
                         size_t name_bytes, const uint8_t *value, size_t value_bytes, uint8_t flags,
                         void *user_data)
{
    peer_request *r = peer_find(user_data, frame->hd.stream_id);
    (void)client, (void)flags, (void)value_bytes;
    if (name_bytes == 7 && memcmp(name, ":status", 7) == 0)
        r->status = atoi((const char *)value);
    if (name_bytes == 11 && memcmp(name, "grpc-status", 11) == 0)
        r->has_trailer = true;
    return 0;
}

static int client_data(nghttp2_session *client, uint8_t flags, int32_t id, const uint8_t *data,
                       size_t bytes, void *user_data)
{
    (void)client, (void)flags;
    text_buffer_append(&peer_find(user_data, id)->answer, data, bytes);
    return 0;
}

static int client_close(nghttp2_session *client, int32_t id, uint32_t code, void *user_data)
{
    peer_request *r = peer_find(user_data, id);
    (void)client;
    r->is_done = true;
    r->error = code;
    return 0;
}

static int client_frame(nghttp2_session *client, const nghttp2_frame *frame, void *user_data)
{
    peer *p = user_data;
    (void)client;
    if (frame->hd.type == NGHTTP2_GOAWAY) {
        p->goaways++;
        p->last_stream = frame->goaway.last_stream_id;
        p->goaway_error = frame->goaway.error_code;
    }
    return 0;
}

void peer_init(peer *p)
{
    memset(p, 0, sizeof *p);
    p->limits = http2_limits_default();
    p->is_consuming = true;
    p->now_ns = 1000000000;
}

void peer_start(peer *p)
{
    nghttp2_session_callbacks *callbacks;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, client_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, client_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, client_close);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, client_frame);
    nghttp2_session_client_new(&p->client, callbacks, p);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(p->client, NGHTTP2_FLAG_NONE, NULL, 0);
    p->server = http2_session_create(&p->limits, &p->memory, &echo, p, p->now_ns);
    assert(p->server != NULL);
}

void peer_dispose(peer *p)
{
    http2_session_destroy(p->server);
    http2_memory_dispose(&p->memory);
    nghttp2_session_del(p->client);
    for (int i = 0; i < p->request_count; i++) {
        text_buffer_dispose(&p->requests[i].body);
        text_buffer_dispose(&p->requests[i].answer);
    }
}

void peer_inject(peer *p, const void *data, size_t bytes)
{
    const char *at = data;
    size_t taken;
    do {
        p->failure = http2_session_read(p->server, at, bytes, p->now_ns, &taken);
        p->reads++;
        at += taken;
        bytes -= taken;
    } while (bytes > 0 && !p->failure);
}

void peer_to_server(peer *p, size_t piece)
{
    const uint8_t *data;
    ssize_t n;
    while ((n = nghttp2_session_mem_send(p->client, &data)) > 0)
        for (size_t at = 0; at < (size_t)n && !p->failure; at += piece)
            peer_inject(p, data + at, (size_t)n - at < piece ? (size_t)n - at : piece);
}

void peer_to_client(peer *p)
{
    text_buffer out = {0};
    status failure = http2_session_write(p->server, &out, 1 << 16);
    (void)failure;
    if (out.bytes > 0)
        nghttp2_session_mem_recv(p->client, (const uint8_t *)out.data, out.bytes);
    text_buffer_dispose(&out);
}

void peer_run(peer *p)
{
    for (int i = 0; i < 1000; i++) {
        peer_to_server(p, 1 << 16);
        peer_to_client(p);
        if (!nghttp2_session_want_write(p->client) && !http2_session_wants_write(p->server))
            return;
    }
}

static ssize_t give_body(nghttp2_session *client, int32_t id, uint8_t *to, size_t most,
                         uint32_t *flags, nghttp2_data_source *source, void *user_data)
{
    size_t left = (size_t)(uintptr_t)source->ptr;
    size_t n = left < most ? left : most;
    (void)client, (void)id, (void)user_data;
    memcpy(to, body, n);
    source->ptr = (void *)(uintptr_t)(left - n);
    if (left == n)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

int32_t peer_ask(peer *p, const char *path, size_t bytes)
{
#define NV(n, v) {(uint8_t *)n, (uint8_t *)(uintptr_t)(v), sizeof n - 1, strlen(v), 0}
    nghttp2_nv nv[] = {NV(":method", bytes ? "POST" : "GET"), NV(":scheme", "http"),
                       NV(":authority", "here"), NV(":path", path), NV("x-one", "1")};
#undef NV
    nghttp2_data_provider provider = {.source.ptr = (void *)(uintptr_t)bytes,
                                      .read_callback = give_body};
    return nghttp2_submit_request(p->client, NULL, nv, 5, bytes ? &provider : NULL, NULL);
}
