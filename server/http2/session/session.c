#include "server/http2/session/session.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "server/http2/session/stream.h"

http2_limits http2_limits_default(void)
{
    return (http2_limits){
        .streams_max = 100,
        .head_bytes_max = 65536,
        .stream_window_bytes = 256 << 10,
        .connection_window_bytes = 1 << 20,
        .memory_bytes_max = 4 << 20,
        .abuse_points_max = 1000,
        .abuse_points_leak_per_s = 100,
        .resets_max = 500,
    };
}

/* The library's allocator: counts what this session holds and refuses beyond its limit. */
static bool has_room(const http2_session *s, size_t bytes)
{
    return bytes <= s->limits.memory_bytes_max &&
           s->held_bytes + s->head_bytes <= s->limits.memory_bytes_max - bytes;
}

static void *counted_malloc(size_t bytes, void *context)
{
    http2_session *s = context;
    void *p = has_room(s, bytes) ? http2_memory_allocate(s->memory, bytes) : NULL;
    s->held_bytes += http2_memory_block_bytes(p);
    return p;
}

static void counted_free(void *p, void *context)
{
    http2_session *s = context;
    s->held_bytes -= http2_memory_block_bytes(p);
    http2_memory_free(s->memory, p);
}

static void *counted_calloc(size_t count, size_t bytes, void *context)
{
    if (bytes != 0 && count > SIZE_MAX / bytes)
        return NULL;
    void *p = counted_malloc(count * bytes, context);
    return p != NULL ? memset(p, 0, count * bytes) : NULL;
}

static void *counted_realloc(void *old, size_t bytes, void *context)
{
    http2_session *s = context;
    size_t before = http2_memory_block_bytes(old);
    if (bytes > before && !has_room(s, bytes - before))
        return NULL;
    void *p = http2_memory_reallocate(s->memory, old, bytes);
    if (p != NULL)
        s->held_bytes += http2_memory_block_bytes(p) - before;
    return p;
}

http2_stream *http2_stream_open(http2_session *s, int32_t id)
{
    http2_stream *stream = counted_malloc(sizeof *stream, s);
    if (stream == NULL)
        return NULL;
    memset((char *)stream + STREAM_ZEROED_FROM, 0, STREAM_ZEROED_TO - STREAM_ZEROED_FROM);
    stream->session = s;
    stream->data = NULL;
    stream->id = id;
    stream->head.content_length = -1;
    arena_init(&stream->more, STREAM_HEAD_BYTES);
    stream->next = s->open;
    stream->previous = NULL;
    if (s->open != NULL)
        s->open->previous = stream;
    s->open = stream;
    s->open_count++;
    return stream;
}

void http2_stream_close(http2_stream *stream)
{
    http2_session *s = stream->session;
    if (stream->previous != NULL)
        stream->previous->next = stream->next;
    else
        s->open = stream->next;
    if (stream->next != NULL)
        stream->next->previous = stream->previous;
    s->open_count--;
    s->head_bytes -= stream->head_bytes;
    arena_dispose(&stream->more);
    counted_free(stream, s);
}

void *http2_stream_allocate(http2_stream *stream, size_t bytes)
{
    size_t from = (stream->inline_used + 15) & ~(size_t)15;
    if (bytes > STREAM_HEAD_BYTES || from > STREAM_HEAD_BYTES - bytes)
        return arena_allocate(&stream->more, bytes);
    stream->inline_used = from + bytes;
    return stream->inline_memory + from;
}

static nghttp2_option *make_options(void)
{
    nghttp2_option *option;
    if (nghttp2_option_new(&option) != 0)
        return NULL;
    nghttp2_option_set_no_auto_window_update(option, 1);
    nghttp2_option_set_builtin_recv_extension_type(option, NGHTTP2_PRIORITY_UPDATE);
    /* Resets are counted by the abuse meter, which takes answers into account. */
    nghttp2_option_set_stream_reset_rate_limit(option, UINT64_C(1) << 32, UINT64_C(1) << 32);
    return option;
}

static nghttp2_session *make_library(http2_session *s)
{
    nghttp2_session_callbacks *callbacks;
    nghttp2_session *library = NULL;
    nghttp2_mem memory = {s, counted_malloc, counted_free, counted_calloc, counted_realloc};
    nghttp2_option *option = make_options();
    if (option == NULL)
        return NULL;
    if (nghttp2_session_callbacks_new(&callbacks) == 0) {
        http2_receive_register(callbacks);
        http2_transmit_register(callbacks);
        if (nghttp2_session_server_new3(&library, callbacks, s, option, &memory) != 0)
            library = NULL;
        nghttp2_session_callbacks_del(callbacks);
    }
    nghttp2_option_del(option);
    return library;
}

http2_session *http2_session_create(const http2_limits *limits, http2_memory *memory,
                                    const http2_handler *handler, void *owner, uint64_t now_ns)
{
    http2_session *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->limits = *limits;
    s->memory = memory;
    s->handler = handler;
    s->owner = owner;
    s->now_ns = now_ns;
    s->scan.skip = CLIENT_PREFACE_BYTES;
    abuse_meter_init(&s->meter, limits->abuse_points_max, limits->abuse_points_leak_per_s, now_ns);
    s->library = make_library(s);
    nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limits->streams_max},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, limits->stream_window_bytes},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, limits->head_bytes_max},
        {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
    };
    if (s->library == NULL ||
        nghttp2_submit_settings(s->library, NGHTTP2_FLAG_NONE, settings,
                                sizeof settings / sizeof settings[0]) != 0 ||
        nghttp2_session_set_local_window_size(s->library, NGHTTP2_FLAG_NONE, 0,
                                              (int32_t)limits->connection_window_bytes) != 0) {
        http2_session_destroy(s);
        return NULL;
    }
    return s;
}

void http2_session_destroy(http2_session *s)
{
    while (s->open != NULL) {
        http2_stream *stream = s->open;
        if (stream->is_requested)
            s->handler->on_close(s->owner, stream, stream->is_answered);
        http2_stream_close(stream);
    }
    nghttp2_session_del(s->library);
    free(s);
}

/* base64url without padding (RFC 4648, section 5); -1: not that. */
static int decode_settings(const char *text, size_t bytes, uint8_t *out, size_t capacity)
{
    uint32_t bits = 0;
    int bit_count = 0, count = 0;
    for (size_t i = 0; i < bytes; i++) {
        char c = text[i];
        int v = c >= 'A' && c <= 'Z'   ? c - 'A'
                : c >= 'a' && c <= 'z' ? c - 'a' + 26
                : c >= '0' && c <= '9' ? c - '0' + 52
                : c == '-'             ? 62
                : c == '_'             ? 63
                                       : -1;
        if (v < 0)
            return -1;
        bits = bits << 6 | (uint32_t)v;
        bit_count += 6;
        if (bit_count < 8)
            continue;
        bit_count -= 8;
        if ((size_t)count == capacity)
            return -1;
        out[count++] = (uint8_t)(bits >> bit_count);
    }
    return count;
}

status http2_session_upgrade(http2_session *s, const char *settings, size_t settings_bytes,
                             bool is_head, http2_stream **stream)
{
    uint8_t payload[6 * 32];
    int bytes = decode_settings(settings, settings_bytes, payload, sizeof payload);
    if (bytes < 0)
        return status_fail(STATUS_INVALID_ARGUMENT, "HTTP2-Settings: not base64url of settings");
    http2_stream *made = http2_stream_open(s, 1);
    if (made == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for an HTTP/2 stream");
    made->is_requested = made->is_peer_done = true;
    made->is_head_request = is_head;
    int failure = nghttp2_session_upgrade2(s->library, payload, (size_t)bytes, is_head, made);
    if (failure != 0) {
        http2_stream_close(made);
        return status_fail(STATUS_INVALID_ARGUMENT, "HTTP2-Settings: %s",
                           nghttp2_strerror(failure));
    }
    *stream = made;
    return STATUS_OK;
}

bool http2_session_is_finished(const http2_session *s)
{
    return !nghttp2_session_want_read(s->library) && !nghttp2_session_want_write(s->library);
}

int http2_session_stream_count(const http2_session *s)
{
    return s->open_count;
}

http2_stream *http2_session_next_stream(const http2_session *s, const http2_stream *after)
{
    return after != NULL ? after->next : s->open;
}

uint64_t http2_session_head_since_ns(const http2_session *s)
{
    return s->head_since_ns;
}

uint64_t http2_session_sent_bytes(const http2_session *s)
{
    return s->sent_bytes;
}

size_t http2_session_held_bytes(const http2_session *s)
{
    return s->held_bytes + s->head_bytes;
}

void http2_session_drain(http2_session *s)
{
    if (s->is_last_stream_named)
        return;
    if (!s->is_draining) {
        s->is_draining = true;
        nghttp2_submit_shutdown_notice(s->library);
        nghttp2_submit_ping(s->library, NGHTTP2_FLAG_NONE, (const uint8_t *)"penstock");
        return;
    }
    s->is_last_stream_named = true;
    nghttp2_submit_goaway(s->library, NGHTTP2_FLAG_NONE,
                          nghttp2_session_get_last_proc_stream_id(s->library), NGHTTP2_NO_ERROR,
                          NULL, 0);
}

void http2_session_close_for_abuse(http2_session *s)
{
    s->is_abused = true;
    nghttp2_session_terminate_session(s->library, NGHTTP2_ENHANCE_YOUR_CALM);
}

void *http2_stream_data(const http2_stream *stream)
{
    return stream->data;
}

void http2_stream_set_data(http2_stream *stream, void *data)
{
    stream->data = data;
}

int32_t http2_stream_id(const http2_stream *stream)
{
    return stream->id;
}
