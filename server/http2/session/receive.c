/* From the peer: frames to requests, and what each frame costs. */
#include <assert.h>
#include <string.h>

#include "server/http2/session/stream.h"

/* Points on the abuse meter. A request pays nothing when it is answered. */
#define SMALL_DATA_BYTES 64
/* A head over the limit is answered with 431, for a peer that did not know. One that goes on to so
 * many times the limit is no mistake: a byte of HPACK stands for a field of kilobytes, and each is
 * checked byte by byte. */
#define HEAD_EXCESS_MAX 16
#define POINTS_FRAME 1   /* PING, SETTINGS, PRIORITY, WINDOW_UPDATE, unknown, ... */
#define CREDIT_ANSWER 10 /* a response that was sent whole */

/* The peer does too much for nothing: what is queued is dropped, GOAWAY goes out. */
static void count_points(http2_session *s, uint32_t points)
{
    if (!abuse_meter_add(&s->meter, points, s->now_ns) && !s->is_abused)
        http2_session_close_for_abuse(s);
}

/* A stream was reset: by the peer before its response, or by us for its error. */
static void count_reset(http2_session *s)
{
    uint32_t points = s->limits.abuse_points_max / s->limits.resets_max;
    count_points(s, points > 0 ? points : 1);
}

/* HEADERS and bodies pay by their answer; a DATA frame that carries next to nothing does not. A
 * reset is counted when it ends a stream. */
static bool is_useful(uint8_t type, uint8_t flags, uint32_t bytes)
{
    if (type == NGHTTP2_DATA)
        return bytes >= SMALL_DATA_BYTES || (flags & NGHTTP2_FLAG_END_STREAM);
    return type == NGHTTP2_HEADERS || type == NGHTTP2_RST_STREAM;
}

void http2_note_reset(http2_session *s, int32_t id)
{
    s->reset_ids[s->reset_count++ % RESET_IDS_KEPT] = (uint32_t)id;
}

static bool was_reset_by_us(const http2_session *s, uint32_t id)
{
    for (unsigned i = 0; i < RESET_IDS_KEPT; i++)
        if (s->reset_ids[i] == id)
            return true;
    return false;
}

static uint32_t read_u32(const uint8_t *from)
{
    return (uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 | from[3];
}

/* DATA and HEADERS on a stream that the peer has ended, or has passed over, are errors (RFC 9113,
 * section 5.1); the library forgets such streams and ignores the frames. */
static bool is_on_closed_stream(http2_session *s, uint8_t type, uint32_t id)
{
    frame_scan *scan = &s->scan;
    if ((type != NGHTTP2_DATA && type != NGHTTP2_HEADERS) || id % 2 == 0)
        return false; /* or an error that the library sees */
    if (id > scan->last_id) {
        scan->last_id = type == NGHTTP2_HEADERS ? id : scan->last_id;
        return false;
    }
    return nghttp2_session_get_stream_user_data(s->library, (int32_t)id) == NULL &&
           !was_reset_by_us(s, id);
}

/* A frame begins; `payload` is what has arrived of it. The library tells of no frame that it
 * ignores, so frames are counted here. */
static void begin_frame(http2_session *s, const uint8_t *payload, size_t bytes)
{
    const uint8_t *head = s->scan.head;
    uint8_t type = head[3], flags = head[4];
    uint32_t length = read_u32(head) >> 8, id = read_u32(head + 5) & INT32_MAX;
    s->scan.skip = length;
    s->scan.head_bytes = 0;
    if (type == NGHTTP2_HEADERS)
        s->head_since_ns = s->now_ns;
    s->scan.ends_head = (type == NGHTTP2_HEADERS || type == NGHTTP2_CONTINUATION) &&
                        (flags & NGHTTP2_FLAG_END_HEADERS) != 0;
    if (type == NGHTTP2_WINDOW_UPDATE && s->updates_paid > 0)
        s->updates_paid--;
    else if (!is_useful(type, flags, length))
        count_points(s, POINTS_FRAME);
    /* A stream that depends on itself (RFC 7540, section 5.3.1): the library ignores PRIORITY. */
    bool is_circle = type == NGHTTP2_PRIORITY && length == 5 && bytes >= 4 &&
                     (read_u32(payload) & INT32_MAX) == id;
    if (is_circle)
        nghttp2_session_terminate_session(s->library, NGHTTP2_PROTOCOL_ERROR);
    else if (is_on_closed_stream(s, type, id))
        nghttp2_session_terminate_session(s->library, NGHTTP2_STREAM_CLOSED);
}

/* How much of the input belongs to the frame (or preface) that it begins with. */
static size_t scan_frame(http2_session *s, const uint8_t *data, size_t bytes)
{
    frame_scan *scan = &s->scan;
    size_t n = 0;
    if (scan->skip == 0) {
        n = FRAME_HEAD_BYTES - scan->head_bytes;
        n = n < bytes ? n : bytes;
        memcpy(scan->head + scan->head_bytes, data, n);
        scan->head_bytes += (uint32_t)n;
        if (scan->head_bytes < FRAME_HEAD_BYTES)
            return n;
        begin_frame(s, data + n, bytes - n);
    }
    size_t payload = scan->skip < bytes - n ? scan->skip : bytes - n;
    scan->skip -= (uint32_t)payload;
    if (scan->skip == 0 && scan->ends_head)
        s->head_since_ns = 0;
    return n + payload;
}

/* The library refuses the frame; where that ends its stream, a reset goes out. */
static int on_invalid_frame(nghttp2_session *library, const nghttp2_frame *frame, int error,
                            void *user_data)
{
    (void)library, (void)error;
    if (frame->hd.stream_id > 0)
        http2_note_reset(user_data, frame->hd.stream_id);
    return 0;
}

static int on_begin_headers(nghttp2_session *library, const nghttp2_frame *frame, void *user_data)
{
    http2_session *s = user_data;
    s->scan.decoded_bytes = 0;
    if (frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    http2_stream *stream = http2_stream_open(s, frame->hd.stream_id);
    if (stream == NULL) {
        http2_note_reset(s, frame->hd.stream_id);
        nghttp2_submit_rst_stream(library, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
                                  NGHTTP2_REFUSED_STREAM);
        return 0;
    }
    nghttp2_session_set_stream_user_data(library, frame->hd.stream_id, stream);
    return 0;
}

static bool grow_fields(http2_stream *stream)
{
    http2_head *head = &stream->head;
    if (head->field_count < stream->field_capacity)
        return true;
    int larger = stream->field_capacity ? 2 * stream->field_capacity : 16;
    http2_field *moved = http2_stream_allocate(stream, (size_t)larger * sizeof *moved);
    if (moved == NULL)
        return false;
    if (head->field_count > 0)
        memcpy(moved, head->fields, (size_t)head->field_count * sizeof *moved);
    head->fields = moved;
    stream->field_capacity = larger;
    return true;
}

/* Names that begin with a colon; the library has checked that there are no others of these. */
static http2_field *pseudo_field(http2_head *head, const uint8_t *name, size_t bytes)
{
    if (bytes == strlen(":path"))
        return &head->path;
    if (bytes == strlen(":authority"))
        return &head->authority;
    return name[1] == 'm' ? &head->method : &head->scheme;
}

/* The library has checked that it is all digits and fits 63 bits. */
static int64_t read_length(const uint8_t *digits, size_t bytes)
{
    int64_t length = 0;
    for (size_t i = 0; i < bytes; i++)
        length = length * 10 + (digits[i] - '0');
    return length;
}

static int on_header(nghttp2_session *library, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_bytes, const uint8_t *value, size_t value_bytes, uint8_t flags,
                     void *user_data)
{
    http2_session *s = user_data;
    http2_stream *stream = nghttp2_session_get_stream_user_data(library, frame->hd.stream_id);
    (void)flags;
    size_t cost = name_bytes + value_bytes + 32; /* RFC 9113, section 10.5.1 */
    s->scan.decoded_bytes += cost;
    if (s->scan.decoded_bytes / HEAD_EXCESS_MAX > s->limits.head_bytes_max) {
        if (!s->is_abused)
            http2_session_close_for_abuse(s);
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* the rest is not even checked */
    }
    if (stream == NULL)
        return 0;
    /* What is beyond the limit is not kept, so it does not count as held. */
    if (stream->head.is_too_large || stream->head_bytes + cost > s->limits.head_bytes_max) {
        stream->head.is_too_large = true;
        return 0;
    }
    stream->head_bytes += cost;
    s->head_bytes += cost;
    if (frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0; /* a trailer never counts as a header */
    bool is_pseudo = name_bytes > 0 && name[0] == ':';
    size_t copied = is_pseudo ? value_bytes : name_bytes + value_bytes;
    char *text = http2_stream_allocate(stream, copied);
    if (text == NULL || (!is_pseudo && !grow_fields(stream)))
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    memcpy(text, value, value_bytes);
    http2_field *field = is_pseudo ? pseudo_field(&stream->head, name, name_bytes)
                                   : &stream->head.fields[stream->head.field_count++];
    field->value = text;
    field->value_bytes = value_bytes;
    if (!is_pseudo) {
        field->name = memcpy(text + value_bytes, name, name_bytes);
        field->name_bytes = name_bytes;
        if (name_bytes == 14 && memcmp(name, "content-length", 14) == 0)
            stream->head.content_length = read_length(value, value_bytes);
    }
    return 0;
}

static void begin_request(http2_session *s, http2_stream *stream, bool has_body)
{
    const http2_field *method = &stream->head.method;
    stream->is_requested = true;
    stream->is_head_request = method->value_bytes == 4 && memcmp(method->value, "HEAD", 4) == 0;
    s->handler->on_request(s->owner, stream, &stream->head, has_body);
}

static int on_frame(nghttp2_session *library, const nghttp2_frame *frame, void *user_data)
{
    http2_session *s = user_data;
    bool is_last = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    if (frame->hd.type == NGHTTP2_PING && (frame->hd.flags & NGHTTP2_FLAG_ACK)) {
        if (s->is_draining)
            http2_session_drain(s);
        return 0;
    }
    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
        return 0;
    http2_stream *stream = nghttp2_session_get_stream_user_data(library, frame->hd.stream_id);
    if (stream == NULL)
        return 0;
    stream->is_peer_done |= is_last;
    if (!stream->is_requested)
        begin_request(s, stream, !is_last);
    else if (is_last && (!stream->is_responding || stream->is_open))
        s->handler->on_end(s->owner, stream);
    return 0;
}

static int on_data_chunk(nghttp2_session *library, uint8_t flags, int32_t id, const uint8_t *data,
                         size_t bytes, void *user_data)
{
    http2_session *s = user_data;
    http2_stream *stream = nghttp2_session_get_stream_user_data(library, id);
    (void)flags;
    if (stream == NULL || (stream->is_responding && !stream->is_open)) {
        nghttp2_session_consume(library, id, bytes); /* nobody reads it */
        return 0;
    }
    stream->unconsumed_bytes += bytes;
    s->handler->on_data(s->owner, stream, data, bytes);
    return 0;
}

static int on_stream_close(nghttp2_session *library, int32_t id, uint32_t code, void *user_data)
{
    http2_session *s = user_data;
    http2_stream *stream = nghttp2_session_get_stream_user_data(library, id);
    (void)code;
    if (stream == NULL) {
        count_reset(s);
        return 0;
    }
    nghttp2_session_set_stream_user_data(library, id, NULL);
    if (stream->unconsumed_bytes > 0)
        nghttp2_session_consume_connection(library, stream->unconsumed_bytes);
    if (stream->is_answered)
        abuse_meter_credit(&s->meter, CREDIT_ANSWER);
    else
        count_reset(s);
    if (stream->is_requested)
        s->handler->on_close(s->owner, stream, stream->is_answered);
    http2_stream_close(stream);
    return 0;
}

void http2_receive_register(nghttp2_session_callbacks *callbacks)
{
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, on_invalid_frame);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data_chunk);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
}

void http2_session_pause(http2_session *s)
{
    s->is_paused = true;
}

status http2_session_read(http2_session *s, const void *data, size_t bytes, uint64_t now_ns,
                          size_t *taken)
{
    s->now_ns = now_ns;
    s->is_paused = false;
    const uint8_t *at = data;
    ssize_t n = 0;
    while (bytes > 0 && n >= 0 && !s->is_paused) {
        size_t frame = scan_frame(s, at, bytes);
        n = nghttp2_session_mem_recv(s->library, at, frame);
        at += frame;
        bytes -= frame;
    }
    *taken = (size_t)(at - (const uint8_t *)data);
    if (n == NGHTTP2_ERR_NOMEM)
        return status_fail(STATUS_OUT_OF_MEMORY, "an HTTP/2 connection is over its memory limit");
    if (n < 0)
        return status_fail(STATUS_CORRUPT, "HTTP/2: %s", nghttp2_strerror((int)n));
    if (s->is_abused)
        return status_fail(STATUS_RESOURCE_EXHAUSTED, "HTTP/2 frames without work");
    return STATUS_OK;
}

void http2_session_consume(http2_session *s, http2_stream *stream, size_t bytes)
{
    assert(bytes <= stream->unconsumed_bytes);
    stream->unconsumed_bytes -= bytes;
    nghttp2_session_consume(s->library, stream->id, bytes);
}

void http2_session_consume_all(http2_session *s, http2_stream *stream)
{
    if (stream->unconsumed_bytes > 0)
        http2_session_consume(s, stream, stream->unconsumed_bytes);
}
