#ifndef SERVER_PROTOCOL_GRPC_INFER_MESSAGE_H
#define SERVER_PROTOCOL_GRPC_INFER_MESSAGE_H

#include "base/text/text_buffer.h"
#include "server/protocol/infer.h"

/* inference.ModelInferRequest and ModelInferResponse. */

/* What a request names, found without looking at its tensors; inside the message. */
typedef struct grpc_infer_head {
    json_string model_name, model_version, id; /* text NULL: absent */
    size_t raw_bytes;                          /* of raw_input_contents: they are not parsed */
} grpc_infer_head;
status grpc_read_infer_head(grpc_infer_head *out, const char *message, size_t bytes) MUST_CHECK;

/* A request into `r`, which is initialised with its model and INFER_GRPC. Raw contents are borrowed
 * where `c` allows it. */
status grpc_parse_infer(infer_request *r, const infer_context *c, const char *message,
                        size_t bytes) MUST_CHECK;

/* The response to requests whose job is done: bytes of `out` and of the outputs, in turns. */
#define GRPC_PIECES_MAX (MODEL_TENSORS_MAX + 1)
typedef struct grpc_piece {
    const void *data; /* NULL: `bytes` of the text, where the one before it ends */
    size_t bytes;
} grpc_piece;
typedef struct grpc_pieces {
    grpc_piece of[GRPC_PIECES_MAX];
    int count;
} grpc_pieces;

/* Ends the text that stands before an output, from `*text_from` on, and adds the output; `data`
 * NULL: there is none. */
void grpc_add_piece(grpc_pieces *pieces, size_t *text_from, const text_buffer *out,
                    const void *data, size_t bytes);

/* Appends to `out`; the first piece is text and has everything that is in `out` already. The
 * outputs are borrowed from the job, with its memory. STATUS_OUT_OF_MEMORY. */
status grpc_write_infer(text_buffer *out, const infer_request *r, grpc_pieces *pieces) MUST_CHECK;

#endif
