#ifndef SERVER_HTTP2_SESSION_STREAM_H
#define SERVER_HTTP2_SESSION_STREAM_H

#include <nghttp2/nghttp2.h>

#include "base/arena.h"
#include "server/http2/session/abuse_meter.h"
#include "server/http2/session/session.h"

/* What session.c, receive.c and transmit.c share: the session and its streams. */

#define STREAM_HEAD_BYTES 2048 /* of a head that needs no memory of its own */

#define FRAME_HEAD_BYTES 9
#define CLIENT_PREFACE_BYTES 24

/* Where frames begin in the input (receive.c). */
typedef struct frame_scan {
    uint8_t head[FRAME_HEAD_BYTES];
    uint32_t head_bytes;  /* of the frame that begins */
    uint32_t skip;        /* of the payload, or of the preface, still to come */
    uint32_t last_id;     /* the highest stream that the peer opened */
    bool ends_head;       /* the frame is the last one of a head */
    size_t decoded_bytes; /* of the head that arrives */
} frame_scan;

/* Streams that this side has reset last: the peer may not know yet, so what it still sends on them
 * is no error. */
#define RESET_IDS_KEPT 128

struct http2_stream {
    http2_session *session;
    http2_stream *next, *previous; /* open streams; closed ones are linked by `next` */
    void *data;                    /* the owner's */
    int32_t id;
    /* From here to `pieces` zeroed when it is opened. */
    arena more; /* of the head, when `inline_memory` is full */
    size_t inline_used;
    http2_head head;
    int field_capacity;
    size_t head_bytes;
    size_t unconsumed_bytes; /* of the body: given to the owner, not yet consumed */
    bool is_requested;       /* on_request was called */
    bool is_head_request;    /* HEAD: no body in the response */
    bool is_peer_done;       /* END_STREAM was received */
    bool is_responding, is_answered;
    bool is_open;           /* the response has more parts */
    int piece_count, piece; /* `piece`: the one being sent */
    size_t piece_offset;
    http2_field *trailers; /* of http2_stream_allocate() */
    int trailer_count;
    http2_piece pieces[HTTP2_PIECES_MAX];
    char inline_memory[STREAM_HEAD_BYTES] __attribute__((aligned(16)));
};
#define STREAM_ZEROED_FROM offsetof(http2_stream, more)
#define STREAM_ZEROED_TO offsetof(http2_stream, pieces)

#define UPDATES_PAID_MAX 65536 /* for at least 64 MiB on their way */

struct http2_session {
    nghttp2_session *library;
    http2_limits limits;
    const http2_handler *handler;
    void *owner;
    uint64_t now_ns;      /* of the call that runs */
    http2_memory *memory; /* of all sessions of the loop */
    http2_stream *open;
    int open_count;
    size_t held_bytes;      /* by the library */
    size_t head_bytes;      /* by the streams */
    uint64_t head_since_ns; /* when the head that is arriving began; 0: none is */
    uint64_t sent_bytes;    /* of response bodies */
    abuse_meter meter;
    uint32_t updates_paid; /* WINDOW_UPDATE frames that the bytes sent have paid for */
    frame_scan scan;
    uint32_t reset_ids[RESET_IDS_KEPT];
    unsigned reset_count;
    bool is_abused, is_draining, is_last_stream_named;
    bool is_paused;   /* by a callback: no more frames in this call */
    text_buffer *out; /* of http2_session_write(), while it runs */
    size_t out_end;   /* how far it may grow */
};

/* NULL: over the memory limit, or no memory. */
http2_stream *http2_stream_open(http2_session *s, int32_t id);
void http2_stream_close(http2_stream *stream);
/* Memory that lives as long as the stream. NULL: there is none. */
void *http2_stream_allocate(http2_stream *stream, size_t bytes);

/* This side resets the stream. */
void http2_note_reset(http2_session *s, int32_t id);

/* receive.c, transmit.c: their callbacks of the library. */
void http2_receive_register(nghttp2_session_callbacks *callbacks);
void http2_transmit_register(nghttp2_session_callbacks *callbacks);

#endif
