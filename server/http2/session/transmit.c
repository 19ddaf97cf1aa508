/* To the peer: responses to frames. */
#include <assert.h>
#include <string.h>

#include "server/http2/session/stream.h"

#define CREDIT_PART 10 /* as a whole response */

static size_t bytes_left(const http2_stream *stream)
{
    size_t left = 0;
    for (int i = stream->piece; i < stream->piece_count; i++)
        left += stream->pieces[i].bytes;
    return left - stream->piece_offset;
}

size_t http2_stream_unsent_bytes(const http2_stream *stream, http2_wait *why)
{
    nghttp2_session *library = stream->session->library;
    size_t left = stream->is_responding ? bytes_left(stream) : 0;
    *why = left == 0                                              ? HTTP2_WAIT_NONE
           : nghttp2_session_get_remote_window_size(library) <= 0 ? HTTP2_WAIT_CONNECTION
           : nghttp2_session_get_stream_remote_window_size(library, stream->id) <= 0
               ? HTTP2_WAIT_STREAM
               : HTTP2_WAIT_NONE;
    return left;
}

static nghttp2_nv to_nv(const http2_field *f)
{
    return (nghttp2_nv){(uint8_t *)(uintptr_t)f->name, (uint8_t *)(uintptr_t)f->value,
                        f->name_bytes, f->value_bytes, NGHTTP2_NV_FLAG_NONE};
}

static void submit_trailers(http2_session *s, http2_stream *stream)
{
    nghttp2_nv nv[HTTP2_FIELDS_MAX];
    for (int i = 0; i < stream->trailer_count; i++)
        nv[i] = to_nv(&stream->trailers[i]);
    nghttp2_submit_trailer(s->library, stream->id, nv, (size_t)stream->trailer_count);
}

/* How much of the body goes into the next DATA frame; send_data() copies it. */
static ssize_t read_body(nghttp2_session *library, int32_t id, uint8_t *unused, size_t most,
                         uint32_t *flags, nghttp2_data_source *source, void *user_data)
{
    http2_session *s = user_data;
    http2_stream *stream = source->ptr;
    (void)library, (void)id, (void)unused;
    size_t left = bytes_left(stream);
    if (left == 0 && stream->is_open)
        return NGHTTP2_ERR_DEFERRED;
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (left > most)
        return (ssize_t)most;
    if (stream->is_open)
        return (ssize_t)left;
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (stream->trailer_count > 0) {
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        submit_trailers(s, stream);
    }
    return (ssize_t)left;
}

static int send_data(nghttp2_session *library, nghttp2_frame *frame, const uint8_t *head,
                     size_t bytes, nghttp2_data_source *source, void *user_data)
{
    http2_session *s = user_data;
    http2_stream *stream = source->ptr;
    (void)library, (void)frame;
    if (s->out->bytes >= s->out_end)
        return NGHTTP2_ERR_WOULDBLOCK;
    char *to = text_buffer_reserve(s->out, 9 + bytes);
    if (to == NULL)
        return NGHTTP2_ERR_CALLBACK_FAILURE; /* http2_session_write() says why */
    memcpy(to, head, 9);
    to += 9;
    for (size_t left = bytes; left > 0;) {
        const http2_piece *piece = &stream->pieces[stream->piece];
        size_t n = piece->bytes - stream->piece_offset;
        n = n < left ? n : left;
        memcpy(to, (const char *)piece->data + stream->piece_offset, n);
        to += n;
        left -= n;
        stream->piece_offset += n;
        if (stream->piece_offset == piece->bytes) {
            stream->piece++;
            stream->piece_offset = 0;
        }
    }
    s->out->bytes += 9 + bytes;
    s->sent_bytes += bytes;
    /* Moving bytes is work: it pays for the window updates that let them through. Go's client sends
     * two for each 4096 bytes, once it has them. */
    uint32_t updates = s->updates_paid + 2 + (uint32_t)(bytes / 1024);
    s->updates_paid = updates < UPDATES_PAID_MAX ? updates : UPDATES_PAID_MAX;
    if (stream->is_open && bytes_left(stream) == 0) {
        stream->piece_count = stream->piece = 0;
        abuse_meter_credit(&s->meter, CREDIT_PART);
        s->handler->on_sent(s->owner, stream);
    }
    return 0;
}

/* The response is sent whole: a peer that still uploads is told to stop, without an error. */
static int on_frame_sent(nghttp2_session *library, const nghttp2_frame *frame, void *user_data)
{
    (void)user_data;
    bool is_last = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    if (!is_last || (frame->hd.type != NGHTTP2_DATA && frame->hd.type != NGHTTP2_HEADERS))
        return 0;
    http2_stream *stream = nghttp2_session_get_stream_user_data(library, frame->hd.stream_id);
    if (stream == NULL)
        return 0;
    stream->is_answered = true;
    if (!stream->is_peer_done) {
        http2_note_reset(stream->session, stream->id);
        nghttp2_submit_rst_stream(library, NGHTTP2_FLAG_NONE, stream->id, NGHTTP2_NO_ERROR);
    }
    return 0;
}

void http2_transmit_register(nghttp2_session_callbacks *callbacks)
{
    nghttp2_session_callbacks_set_send_data_callback(callbacks, send_data);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
}

bool http2_session_wants_write(const http2_session *s)
{
    return nghttp2_session_want_write(s->library) != 0;
}

status http2_session_write(http2_session *s, text_buffer *out, size_t bytes_max)
{
    s->out = out;
    s->out_end = out->bytes + bytes_max;
    while (out->bytes < s->out_end) {
        const uint8_t *data;
        ssize_t n = nghttp2_session_mem_send(s->library, &data);
        if (n > 0)
            text_buffer_append(out, data, (size_t)n);
        if (out->is_broken)
            return status_fail(STATUS_OUT_OF_MEMORY, "no memory for HTTP/2 output");
        if (n < 0)
            return status_fail(n == NGHTTP2_ERR_NOMEM ? STATUS_OUT_OF_MEMORY : STATUS_INTERNAL,
                               "HTTP/2: %s", nghttp2_strerror((int)n));
        if (n == 0)
            break;
    }
    return STATUS_OK;
}

static const char *copy_text(http2_stream *stream, const char *text, size_t bytes)
{
    char *copy = http2_stream_allocate(stream, bytes);
    return copy != NULL && bytes > 0 ? memcpy(copy, text, bytes) : copy;
}

static bool copy_trailers(http2_stream *stream, const http2_field *trailers, int count)
{
    if (count == 0)
        return true;
    stream->trailers = http2_stream_allocate(stream, (size_t)count * sizeof *trailers);
    if (stream->trailers == NULL)
        return false;
    for (int i = 0; i < count; i++) {
        http2_field *to = &stream->trailers[i];
        *to = trailers[i];
        to->name = copy_text(stream, to->name, to->name_bytes);
        to->value = copy_text(stream, to->value, to->value_bytes);
        if (to->name == NULL || to->value == NULL)
            return false;
    }
    stream->trailer_count = count;
    return true;
}

static status submit(http2_session *s, http2_stream *stream, int code, const http2_field *fields,
                     int field_count, bool has_body)
{
    char digits[3] = {(char)('0' + code / 100), (char)('0' + code / 10 % 10),
                      (char)('0' + code % 10)};
    nghttp2_nv nv[HTTP2_FIELDS_MAX];
    nv[0] = (nghttp2_nv){(uint8_t *)(uintptr_t) ":status", (uint8_t *)digits, 7, 3,
                         NGHTTP2_NV_FLAG_NONE};
    for (int i = 0; i < field_count; i++)
        nv[i + 1] = to_nv(&fields[i]);
    nghttp2_data_provider body = {.source.ptr = stream, .read_callback = read_body};
    int failure = nghttp2_submit_response(s->library, stream->id, nv, (size_t)field_count + 1,
                                          has_body ? &body : NULL);
    if (failure == 0)
        return STATUS_OK;
    stream->is_open = false;
    http2_session_reset(s, stream, NGHTTP2_INTERNAL_ERROR);
    return status_fail(STATUS_OUT_OF_MEMORY, "HTTP/2 response: %s", nghttp2_strerror(failure));
}

status http2_session_respond(http2_session *s, http2_stream *stream, int code,
                             const http2_field *fields, int field_count, const http2_piece *pieces,
                             int piece_count, const http2_field *trailers, int trailer_count)
{
    assert(code >= 100 && code <= 999 && !stream->is_responding && field_count < HTTP2_FIELDS_MAX &&
           piece_count <= HTTP2_PIECES_MAX && trailer_count <= HTTP2_FIELDS_MAX);
    stream->is_responding = true;
    if (stream->unconsumed_bytes > 0)
        http2_session_consume(s, stream, stream->unconsumed_bytes);
    if (!stream->is_head_request && piece_count > 0)
        memcpy(stream->pieces, pieces, (size_t)piece_count * sizeof *pieces);
    stream->piece_count = stream->is_head_request ? 0 : piece_count;
    bool has_body = bytes_left(stream) > 0 || trailer_count > 0;
    if (!copy_trailers(stream, trailers, trailer_count)) {
        http2_session_reset(s, stream, NGHTTP2_INTERNAL_ERROR);
        return status_fail(STATUS_OUT_OF_MEMORY, "HTTP/2 response: no memory for its trailers");
    }
    return submit(s, stream, code, fields, field_count, has_body);
}

status http2_session_begin(http2_session *s, http2_stream *stream, int code,
                           const http2_field *fields, int field_count)
{
    assert(!stream->is_responding && field_count < HTTP2_FIELDS_MAX);
    stream->is_responding = stream->is_open = true;
    return submit(s, stream, code, fields, field_count, true);
}

void http2_session_send(http2_session *s, http2_stream *stream, const http2_piece *pieces,
                        int piece_count)
{
    assert(stream->is_open && stream->piece_count == 0 && piece_count <= HTTP2_PIECES_MAX);
    memcpy(stream->pieces, pieces, (size_t)piece_count * sizeof *pieces);
    stream->piece_count = piece_count;
    stream->piece_offset = 0;
    nghttp2_session_resume_data(s->library, stream->id); /* fails where it does not wait */
}

void http2_session_finish(http2_session *s, http2_stream *stream, const http2_field *trailers,
                          int trailer_count)
{
    assert(stream->is_open);
    stream->is_open = false;
    http2_session_consume_all(s, stream);
    if (copy_trailers(stream, trailers, trailer_count))
        nghttp2_session_resume_data(s->library, stream->id);
    else
        http2_session_reset(s, stream, NGHTTP2_INTERNAL_ERROR);
}

void http2_session_reset(http2_session *s, http2_stream *stream, uint32_t code)
{
    stream->is_responding = true;
    http2_note_reset(s, stream->id);
    nghttp2_submit_rst_stream(s->library, NGHTTP2_FLAG_NONE, stream->id, code);
}
