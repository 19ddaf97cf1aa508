#ifndef SERVER_INFER_BODY_H
#define SERVER_INFER_BODY_H

#include "server/protocol/compress.h"
#include "server/protocol/language/language.h"
#include "server/request/request.h"

/* The body of an inference request, and what its headers say about it: all that parsing needs of
 * the request, so that any thread can do it. */
typedef struct infer_body {
    bool is_kserve, is_grpc, is_predict; /* is_predict: TensorFlow Serving's, is_grpc too */
    request_text text;                   /* as received */
    content_coding coding;
    bool has_json_bytes;
    uint64_t json_bytes;    /* Inference-Header-Content-Length: the rest is binary; gRPC: of what
                             * is not raw, and of elements that it says but has not */
    bool names_regions;     /* of shared memory, which the client may use */
    bool can_borrow;        /* the body stays where it is until the jobs are back */
    budget_account *held;   /* counts it decompressed; of the thread that parses */
    budget_account *parsed; /* counts what it becomes, while it is parsed; or NULL: it is small */
} infer_body;

/* On the loop's thread. Of a gRPC call the body is its message already. STATUS_INVALID_ARGUMENT,
 * STATUS_UNSUPPORTED_CODING. */
status infer_body_read_headers(const request *r, infer_body *out) MUST_CHECK;

/* Would parsing it hold a loop? Compressed bodies, JSON over 64 KiB, anything over 1 MiB, and
 * tensors in shared memory. */
bool infer_body_is_long(const infer_body *b);

/* Decompresses it where necessary, and parses it into `q`, which is initialised. `c` is complete
 * but for `can_borrow`. Any thread. */
status infer_body_parse(const infer_body *b, infer_request *q, infer_context *c,
                        size_t decompressed_bytes_max) MUST_CHECK;
/* The same of a body of a route that takes text. `l` is complete but for `keeps_body`. */
status infer_body_parse_language(const infer_body *b, language_request *r, route_kind kind,
                                 language_limits *l, size_t decompressed_bytes_max) MUST_CHECK;

#endif
