#ifndef SERVER_REQUEST_RESPOND_H
#define SERVER_REQUEST_RESPOND_H

#include "server/request/request.h"

/* Responses. Each of these ends the request and sends its response; it is called once, on the
 * loop's thread, for a request that has not ended. This is the only place that turns a status into
 * an HTTP code, and its gRPC status (server/protocol/grpc/call.h). Without memory for a response or
 * a header of it, the request is answered 503. */

/* The HTTP code of a status, as KServe and TensorFlow Serving have it. The latter's routes differ:
 * a full queue is 503, not 429. */
int respond_code(status s, bool is_tensorflow);

/* A success, or what is said of readiness: `text` is copied. */
void respond_text(request *r, int code, const char *type, const char *text, size_t bytes);
/* The same of a buffer, which stays the caller's. */
void respond_buffer(request *r, int code, const char *type, const text_buffer *body);
/* 204, without a body. */
void respond_nothing(request *r);

/* A success whose text costs much to make (shared_text.h): one made earlier, or what `write`
 * appends to `out`. `about`: what it depends on beside the route. */
void respond_shared(request *r, const char *type, const void *about,
                    void (*write)(request *r, const void *about, text_buffer *out));

/* A success whose body is that JSON; disposes of it. */
void respond_json(request *r, text_buffer *body);

/* The same, not copied and not compressed: the request takes its memory. */
void respond_large_json(request *r, text_buffer *body);

/* A success in pieces, at most MODEL_TENSORS_MAX + 1. They must live until the stream is closed;
 * what lies in the request's jobs does. The array may be changed. */
void respond_pieces(request *r, const char *type, request_text *pieces, int count);

/* The coding that the client takes, and a success whose pieces the caller has compressed with it:
 * takes `data`, which was malloc'd. */
content_coding respond_coding(const request *r);
void respond_compressed(request *r, const char *type, content_coding coding, char *data,
                        size_t bytes);

/* A message of a gRPC call. It begins with GRPC_FRAME_HEAD_BYTES of room, which are filled in; the
 * buffer stays the caller's. Pieces: as respond_pieces(). */
void respond_grpc(request *r, const text_buffer *message);
void respond_grpc_pieces(request *r, request_text *pieces, int count);

/* {"error": message}, or as the API of the route has it. `retry_after_ns`, of a status that says
 * "try later": 0: a second. */
void respond_refusal(request *r, status s, const char *message, uint64_t retry_after_ns);
void respond_status(request *r, status s, const char *message);
/* The same with the HTTP code itself. */
void respond_error(request *r, int code, const char *message);

/* Adds a header to the response that is sent later; the value is copied. */
void respond_header(request *r, const char *name, const char *value, size_t bytes);

#endif
