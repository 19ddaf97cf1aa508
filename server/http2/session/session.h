#ifndef SERVER_HTTP2_SESSION_SESSION_H
#define SERVER_HTTP2_SESSION_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text/text_buffer.h"
#include "server/http2/session/memory.h"

/* The server's end of one HTTP/2 connection: bytes in, bytes out, requests between. libnghttp2 does
 * frames, HPACK, flow control and priorities (RFC 9113, RFC 9218); this adds limits, the abuse
 * meter and the two-step GOAWAY. It knows no socket, no loop and no clock, so tests and fuzzers
 * drive it directly. One thread. */
typedef struct http2_session http2_session;
typedef struct http2_stream http2_stream;

typedef struct http2_field {
    const char *name, *value; /* not terminated */
    size_t name_bytes, value_bytes;
} http2_field;

/* The head of a request. Borrowed from the stream until it is closed. */
typedef struct http2_head {
    http2_field method, scheme, authority, path; /* values only; absent: value NULL */
    http2_field *fields;                         /* the others, in order, names in lower case */
    int field_count;
    int64_t content_length; /* -1: not given */
    bool is_too_large;      /* over head_bytes_max: fields are missing; 431 is the response */
} http2_head;

typedef struct http2_limits {
    uint32_t streams_max;             /* open at once */
    uint32_t head_bytes_max;          /* names and values of a head, and 32 for each field */
    uint32_t stream_window_bytes;     /* of a body, before it is consumed */
    uint32_t connection_window_bytes; /* of all bodies */
    size_t memory_bytes_max;          /* what the library and the streams' heads may hold */
    uint32_t abuse_points_max, abuse_points_leak_per_s;
    uint32_t resets_max; /* that fill the abuse meter by themselves */
} http2_limits;
http2_limits http2_limits_default(void);

/* How the session tells its owner. No callback may destroy the session. */
typedef struct http2_handler {
    /* The head is complete. `has_body`: on_data and on_end follow; otherwise the request is whole.
     * The owner may respond at once. */
    void (*on_request)(void *owner, http2_stream *stream, const http2_head *head, bool has_body);
    /* A piece of the body. The peer may send as much again only after http2_session_consume(). */
    void (*on_data)(void *owner, http2_stream *stream, const void *data, size_t bytes);
    /* The body is complete. Trailers are checked and dropped. */
    void (*on_end)(void *owner, http2_stream *stream);
    /* What http2_session_send() was given is sent, and no longer read. May be NULL. */
    void (*on_sent)(void *owner, http2_stream *stream);
    /* The last call for this stream: it was answered, or reset by either side. Memory given to
     * http2_session_respond() is no longer read. */
    void (*on_close)(void *owner, http2_stream *stream, bool was_answered);
} http2_handler;

/* `memory` and `handler` are borrowed until the session is destroyed. NULL: no memory. */
http2_session *http2_session_create(const http2_limits *limits, http2_memory *memory,
                                    const http2_handler *handler, void *owner, uint64_t now_ns);
/* Calls on_close for every stream that is open and was told to on_request. */
void http2_session_destroy(http2_session *s);

/* The connection was upgraded from HTTP/1.1 by a request with `HTTP2-Settings: settings`
 * (base64url, RFC 7540, section 3.2.1): that request becomes stream 1, without a body; *stream is
 * then told to no callback but on_close. Before the first byte is read. */
status http2_session_upgrade(http2_session *s, const char *settings, size_t settings_bytes,
                             bool is_head, http2_stream **stream) MUST_CHECK;

/* Bytes from the peer; `*taken` of them were read: all, unless http2_session_pause() was called
 * meanwhile. STATUS_CORRUPT, STATUS_OUT_OF_MEMORY, STATUS_RESOURCE_EXHAUSTED (abuse): the
 * connection is to be closed once what http2_session_write() still gives is written. */
status http2_session_read(http2_session *s, const void *data, size_t bytes, uint64_t now_ns,
                          size_t *taken) MUST_CHECK;
/* From a callback of http2_session_read(): it returns after this frame. */
void http2_session_pause(http2_session *s);

/* Appends what is to be sent now to `out`, about `bytes_max` at the most. Bodies of responses are
 * copied: nothing in `out` points anywhere. */
status http2_session_write(http2_session *s, text_buffer *out, size_t bytes_max) MUST_CHECK;

/* Would http2_session_write() give something, flow control aside? */
bool http2_session_wants_write(const http2_session *s);

/* Is there nothing more to read or to write, ever? Then the connection can be closed. */
bool http2_session_is_finished(const http2_session *s);
int http2_session_stream_count(const http2_session *s);
/* Open streams, in no order; `after` NULL: the first one. NULL: no more. */
http2_stream *http2_session_next_stream(const http2_session *s, const http2_stream *after);
/* When the head that is arriving began, by the times given to http2_session_read(); 0: none is. */
uint64_t http2_session_head_since_ns(const http2_session *s);
/* Bytes of response bodies written so far, of all streams. */
uint64_t http2_session_sent_bytes(const http2_session *s);
/* What has not been written of a response body, and whether that is because the stream's or the
 * connection's window is empty. */
typedef enum http2_wait { HTTP2_WAIT_NONE, HTTP2_WAIT_STREAM, HTTP2_WAIT_CONNECTION } http2_wait;
size_t http2_stream_unsent_bytes(const http2_stream *stream, http2_wait *why);
/* Bytes that the library and the heads hold now. */
size_t http2_session_held_bytes(const http2_session *s);

/* `bytes` of the body of `stream` need no room any more: opens the windows. */
void http2_session_consume(http2_session *s, http2_stream *stream, size_t bytes);
/* The same of all that has come. */
void http2_session_consume_all(http2_session *s, http2_stream *stream);

/* A piece of a response body; borrowed until on_close. */
typedef struct http2_piece {
    const void *data;
    size_t bytes;
} http2_piece;

/* The response: `fields` (with names in lower case) are copied, at most HTTP2_PIECES_MAX `pieces`
 * are borrowed until on_close. `trailers` follow the body; they are copied. STATUS_OUT_OF_MEMORY:
 * the stream is reset instead, and on_close follows. Once for each stream. */
#define HTTP2_PIECES_MAX 66
#define HTTP2_FIELDS_MAX 32
status http2_session_respond(http2_session *s, http2_stream *stream, int code,
                             const http2_field *fields, int field_count, const http2_piece *pieces,
                             int piece_count, const http2_field *trailers, int trailer_count);
/* A response in parts: its head; then parts, each after on_sent of the one before it; then
 * trailers, which end it. The body of the request goes on to arrive meanwhile. The same failure. */
status http2_session_begin(http2_session *s, http2_stream *stream, int code,
                           const http2_field *fields, int field_count);
void http2_session_send(http2_session *s, http2_stream *stream, const http2_piece *pieces,
                        int piece_count);
void http2_session_finish(http2_session *s, http2_stream *stream, const http2_field *trailers,
                          int trailer_count);
/* Ends the stream without a response. `code`: an error code of RFC 9113, section 7. */
void http2_session_reset(http2_session *s, http2_stream *stream, uint32_t code);
#define HTTP2_REFUSED_STREAM 7
#define HTTP2_CANCEL 8

/* Two-step GOAWAY (RFC 9113, section 6.8): the first call announces it and sends a PING; when the
 * PING comes back, or at the second call (after a second or so), the last stream is named. Streams
 * that are open are served to their end. */
void http2_session_drain(http2_session *s);
/* GOAWAY with ENHANCE_YOUR_CALM; the session is finished when it is written. */
void http2_session_close_for_abuse(http2_session *s);

void *http2_stream_data(const http2_stream *stream);
void http2_stream_set_data(http2_stream *stream, void *data);
int32_t http2_stream_id(const http2_stream *stream);

#endif
