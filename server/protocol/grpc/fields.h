#ifndef SERVER_PROTOCOL_GRPC_FIELDS_H
#define SERVER_PROTOCOL_GRPC_FIELDS_H

#include "base/tensor.h"
#include "server/protocol/grpc/wire.h"
#include "server/protocol/text/json_scan.h"

/* Fields that messages of inference share. Pure. */

/* How many bytes of a client's text errors show, for "%.*s". */
int grpc_shown(size_t bytes);

/* A string. STATUS_INVALID_ARGUMENT, with `name`: another type, or not UTF-8. */
status grpc_read_text(const wire_field *f, const char *name, json_string *out) MUST_CHECK;

/* One more dimension of a shape. STATUS_INVALID_ARGUMENT, with `name`: negative, or too many. */
status grpc_add_dim(int64_t dims[TENSOR_RANK_MAX], int *rank, uint64_t value,
                    const char *name) MUST_CHECK;

#endif
