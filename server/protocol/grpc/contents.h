#ifndef SERVER_PROTOCOL_GRPC_CONTENTS_H
#define SERVER_PROTOCOL_GRPC_CONTENTS_H

#include "base/tensor.h"
#include "base/text/text_buffer.h"

/* inference.InferTensorContents: typed elements of a tensor. */

/* Allocates the data of `t`, whose shape is set, in `memory`, and reads its elements. No more than
 * the message can hold is allocated. STATUS_INVALID_ARGUMENT: contents of another type, a number
 * that does not fit, more or fewer elements than the shape has. */
status grpc_read_contents(tensor *t, arena *memory, const char *from, size_t bytes) MUST_CHECK;

/* Appends them, as the message's one field. Not for 16-bit floats. */
void grpc_write_contents(text_buffer *out, const tensor *t);

#endif
