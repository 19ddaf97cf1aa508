#ifndef SERVER_PROTOCOL_GRPC_CONTENTS_H
#define SERVER_PROTOCOL_GRPC_CONTENTS_H

#include "base/tensor.h"
#include "base/text/text_buffer.h"

/* Typed elements of a tensor, as fields of a message: one field for each family of types. */
typedef struct grpc_layout {
    const char *message;           /* in errors */
    const char *const *names;      /* of fields by number; NULL: it holds no elements */
    uint32_t field_count;          /* of `names` */
    uint8_t field_of[DTYPE_COUNT]; /* 0: elements of that type are not typed */
    bool repeats_last;             /* elements that are missing are as the last one, or 0 */
} grpc_layout;

extern const grpc_layout grpc_infer_layout;  /* inference.InferTensorContents */
extern const grpc_layout grpc_tensor_layout; /* tensorflow.TensorProto */

/* Allocates the data of `t`, whose shape is set, in `memory`, and reads its elements. No more than
 * the message can hold is allocated; where elements are repeated, no more than `repeated_bytes_max`
 * beside. STATUS_INVALID_ARGUMENT: elements of another type, a number that does not fit, more or
 * fewer elements than the shape has. STATUS_TOO_LARGE. */
status grpc_read_contents(const grpc_layout *l, tensor *t, arena *memory, const char *from,
                          size_t bytes, size_t repeated_bytes_max) MUST_CHECK;

/* Appends them, as the message's one field. Not for types without one. */
void grpc_write_contents(const grpc_layout *l, text_buffer *out, const tensor *t);

#endif
