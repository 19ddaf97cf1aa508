/* A whole HTTP/2 session: bytes of the peer in pieces, requests answered at different times. */
#include <stdlib.h>
#include <string.h>

#include "server/http2/session/session.h"
#include "tests/fuzz/fuzz.h"

#define STREAMS_MAX 8
#define WAITING_MAX 64
#define MEMORY_BYTES_MAX (1 << 18)
#define OUT_BYTES_MAX 3000

/* What is known of one stream, as the owner of a session knows it. */
typedef struct stream_state {
    http2_stream *stream; /* NULL: free */
    size_t unconsumed_bytes;
    bool is_ended, is_answered;
} stream_state;

typedef struct owner {
    http2_session *session;
    stream_state streams[WAITING_MAX];
    bool is_answered_at_head, is_answered_late, is_consumed_late, has_trailers, is_pausing;
    char body[20000];
} owner;

static stream_state *state_of(http2_stream *stream)
{
    stream_state *st = http2_stream_data(stream);
    assert(st != NULL && st->stream == stream);
    return st;
}

static void answer(owner *o, stream_state *st)
{
    static const http2_field fields[] = {{"content-type", "text/plain", 12, 10}},
                             trailers[] = {{"grpc-status", "0", 11, 1}};
    http2_piece pieces[] = {{o->body, 5}, {o->body + 5, sizeof o->body - 5}};
    st->is_answered = true;
    status failure = http2_session_respond(o->session, st->stream, 200, fields, 1, pieces,
                                           http2_stream_id(st->stream) % 4 == 1 ? 2 : 1, trailers,
                                           o->has_trailers ? 1 : 0);
    (void)failure; /* on_close follows */
    st->unconsumed_bytes = 0;
}

static void on_request(void *to, http2_stream *stream, const http2_head *head, bool has_body)
{
    owner *o = to;
    assert(http2_stream_data(stream) == NULL && http2_stream_id(stream) % 2 == 1);
    assert(head->method.value_bytes > 0 || head->is_too_large);
    for (int i = 0; i < head->field_count; i++)
        assert(head->fields[i].name_bytes > 0 && head->fields[i].name[0] != ':');
    stream_state *st = NULL;
    for (int i = 0; st == NULL && i < WAITING_MAX; i++)
        if (o->streams[i].stream == NULL)
            st = &o->streams[i];
    assert(st != NULL);
    *st = (stream_state){.stream = stream, .is_ended = !has_body};
    http2_stream_set_data(stream, st);
    if (o->is_pausing)
        http2_session_pause(o->session);
    if (o->is_answered_at_head || (!has_body && !o->is_answered_late))
        answer(o, st);
}

static void on_data(void *to, http2_stream *stream, const void *data, size_t bytes)
{
    owner *o = to;
    stream_state *st = state_of(stream);
    volatile uint8_t sum = 0;
    assert(!st->is_ended && !st->is_answered);
    for (size_t i = 0; i < bytes; i++)
        sum ^= ((const uint8_t *)data)[i];
    st->unconsumed_bytes += bytes;
    if (!o->is_consumed_late) {
        http2_session_consume(o->session, stream, st->unconsumed_bytes);
        st->unconsumed_bytes = 0;
    }
}

static void on_end(void *to, http2_stream *stream)
{
    owner *o = to;
    stream_state *st = state_of(stream);
    assert(!st->is_ended && !st->is_answered);
    st->is_ended = true;
    if (!o->is_answered_late)
        answer(o, st);
}

static void on_close(void *to, http2_stream *stream, bool was_answered)
{
    stream_state *st = http2_stream_data(stream);
    (void)to;
    if (st == NULL)
        return; /* its head never came */
    assert(st->stream == stream && (!was_answered || st->is_answered));
    st->stream = NULL;
}

static const http2_handler handler = {on_request, on_data, on_end, NULL, on_close};

/* What was put off: bodies are consumed, one request is answered or reset. */
static void catch_up(owner *o, uint8_t options)
{
    for (int i = 0; i < WAITING_MAX; i++) {
        stream_state *st = &o->streams[i];
        if (st->stream == NULL || st->is_answered)
            continue;
        if (st->unconsumed_bytes > 0)
            http2_session_consume(o->session, st->stream, st->unconsumed_bytes);
        st->unconsumed_bytes = 0;
        if (!st->is_ended)
            continue;
        if (options & 32) {
            st->is_answered = true;
            http2_session_reset(o->session, st->stream, 2);
        } else {
            answer(o, st);
        }
        return;
    }
}

/* What is told of streams that wait is consistent. */
static void check_streams(const owner *o)
{
    int count = 0;
    for (http2_stream *s = NULL; (s = http2_session_next_stream(o->session, s)) != NULL;) {
        http2_wait why;
        size_t unsent = http2_stream_unsent_bytes(s, &why);
        assert(unsent <= sizeof o->body && (why == HTTP2_WAIT_NONE || unsent > 0));
        count++;
    }
    assert(count == http2_session_stream_count(o->session) && count <= WAITING_MAX);
}

/* Whole frames of the size the peer allows, and nothing else. */
static void check_output(const text_buffer *out)
{
    const uint8_t *at = (const uint8_t *)out->data;
    for (size_t left = out->bytes; left > 0;) {
        assert(left >= 9);
        size_t bytes = (size_t)at[0] << 16 | (size_t)at[1] << 8 | at[2];
        assert(left >= 9 + bytes);
        at += 9 + bytes;
        left -= 9 + bytes;
    }
}

static bool is_over(owner *o, text_buffer *out)
{
    text_buffer_clear(out);
    if (http2_session_write(o->session, out, OUT_BYTES_MAX))
        return true;
    check_output(out);
    assert(http2_session_held_bytes(o->session) < 2 * MEMORY_BYTES_MAX);
    check_streams(o);
    return http2_session_is_finished(o->session);
}

/* The first byte chooses how requests are served, the second how the bytes are cut. */
void fuzz_http2_session(const uint8_t *data, size_t bytes)
{
    static const char begin[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0";
    fuzz_input in = {data, bytes};
    uint8_t options = fuzz_take_byte(&in);
    size_t step = 1 + (size_t)fuzz_take_byte(&in) * 7;
    uint64_t now_ns = 1000000000;
    static owner o; /* its streams are all free at the end */
    size_t taken;
    text_buffer out = {0};
    http2_memory memory = {0};
    http2_limits limits = http2_limits_default();
    limits.streams_max = STREAMS_MAX;
    limits.memory_bytes_max = MEMORY_BYTES_MAX;
    limits.abuse_points_max = 100;
    o.is_answered_at_head = options & 1;
    o.is_answered_late = options & 2;
    o.is_consumed_late = options & 4;
    o.has_trailers = options & 8;
    o.is_pausing = options & 128;
    o.session = http2_session_create(&limits, &memory, &handler, &o, now_ns);
    assert(o.session != NULL);
    /* Most inputs begin behind the preface and the first SETTINGS. */
    bool is_broken =
        !(options & 16) && http2_session_read(o.session, begin, sizeof begin, now_ns, &taken);
    while (in.bytes > 0 && !is_broken) {
        size_t n = in.bytes < step ? in.bytes : step;
        is_broken = http2_session_read(o.session, in.data, n, now_ns, &taken) != STATUS_OK;
        assert(is_broken || (taken <= n && (taken == n || o.is_pausing) && taken > 0));
        n = is_broken ? in.bytes : taken;
        in.data += n;
        in.bytes -= n;
        now_ns += 10000000;
        if ((options & 64) && in.bytes < bytes / 2)
            http2_session_drain(o.session);
        catch_up(&o, options);
        is_broken |= is_over(&o, &out);
    }
    for (int i = 0; i < 3 * WAITING_MAX && !is_over(&o, &out); i++)
        catch_up(&o, options);
    http2_session_destroy(o.session);
    http2_memory_dispose(&memory);
    for (int i = 0; i < WAITING_MAX; i++)
        assert(o.streams[i].stream == NULL); /* on_close was called for each */
    text_buffer_dispose(&out);
}
