#ifndef SERVER_PROTOCOL_GRPC_MESSAGE_H
#define SERVER_PROTOCOL_GRPC_MESSAGE_H

#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"
#include "base/status.h"
#include "base/text/text_buffer.h"

/* Messages without tensors, by protobuf-c. Pure. */

#define GRPC_CONTROL_BYTES_MAX 65536

/* Unpacks into `memory`, which is to be disposed of whole; at most GRPC_CONTROL_BYTES_MAX, and at
 * most some 64 times as much memory. STATUS_INVALID_ARGUMENT, STATUS_TOO_LARGE,
 * STATUS_OUT_OF_MEMORY. */
status grpc_unpack(const ProtobufCMessageDescriptor *type, arena *memory, const char *data,
                   size_t bytes, ProtobufCMessage **out) MUST_CHECK;

/* Appends a packed message. */
void grpc_pack(text_buffer *out, const ProtobufCMessage *message);

#endif
