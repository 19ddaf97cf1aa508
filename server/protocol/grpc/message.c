#include "server/protocol/grpc/message.h"

#define MEMORY_BYTES_MAX (64 * (size_t)GRPC_CONTROL_BYTES_MAX)

typedef struct bounded {
    arena *memory;
    size_t left;
    bool is_short;
} bounded;

static void *allocate(void *context, size_t bytes)
{
    bounded *b = context;
    void *p = bytes <= b->left ? arena_allocate(b->memory, bytes ? bytes : 1) : NULL;
    b->is_short |= p == NULL;
    b->left -= p != NULL ? bytes : 0;
    return p;
}

static void let_go(void *context, void *p)
{
    (void)context, (void)p; /* the arena goes whole */
}

status grpc_unpack(const ProtobufCMessageDescriptor *type, arena *memory, const char *data,
                   size_t bytes, ProtobufCMessage **out)
{
    bounded b = {memory, MEMORY_BYTES_MAX, false};
    ProtobufCAllocator allocator = {allocate, let_go, &b};
    if (bytes > GRPC_CONTROL_BYTES_MAX)
        return status_fail(STATUS_TOO_LARGE, "%s of %zu bytes: the limit is %d", type->short_name,
                           bytes, GRPC_CONTROL_BYTES_MAX);
    *out = protobuf_c_message_unpack(type, &allocator, bytes, (const uint8_t *)data);
    if (*out != NULL)
        return STATUS_OK;
    if (b.is_short)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a message");
    return status_fail(STATUS_INVALID_ARGUMENT, "the message is no %s", type->short_name);
}

void grpc_pack(text_buffer *out, const ProtobufCMessage *message)
{
    size_t bytes = protobuf_c_message_get_packed_size(message);
    char *room = text_buffer_reserve(out, bytes + 1);
    if (room != NULL)
        out->bytes += protobuf_c_message_pack(message, (uint8_t *)room);
}
