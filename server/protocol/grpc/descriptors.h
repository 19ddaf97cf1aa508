#ifndef SERVER_PROTOCOL_GRPC_DESCRIPTORS_H
#define SERVER_PROTOCOL_GRPC_DESCRIPTORS_H

#include <stdbool.h>
#include <stddef.h>

/* What the .proto files say, as google.protobuf.FileDescriptorProto: made when Penstock is built,
 * for server reflection. */
typedef struct grpc_descriptor {
    const char *data; /* static */
    size_t bytes;
} grpc_descriptor;

/* False: there is no file of that name. */
bool grpc_descriptor_of_file(const char *name, grpc_descriptor *out);
/* The file that has the service, method, message or field of that full name. False: none has. */
bool grpc_descriptor_of_symbol(const char *symbol, grpc_descriptor *out);

#endif
