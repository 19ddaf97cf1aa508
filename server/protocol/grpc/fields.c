#include "server/protocol/grpc/fields.h"

int grpc_shown(size_t bytes)
{
    return (int)(bytes < 200 ? bytes : 200);
}

status grpc_read_text(const wire_field *f, const char *name, json_string *out)
{
    status failure = wire_expect(f, WIRE_BYTES, name);
    if (failure)
        return failure;
    *out = (json_string){f->data, f->bytes};
    if (!json_is_utf8(f->data, f->bytes))
        return status_fail(STATUS_INVALID_ARGUMENT, "field \"%s\" is not UTF-8", name);
    return STATUS_OK;
}

status grpc_add_dim(int64_t dims[TENSOR_RANK_MAX], int *rank, uint64_t value, const char *name)
{
    if (*rank == TENSOR_RANK_MAX)
        return status_fail(STATUS_INVALID_ARGUMENT, "field \"%s\": at most %d dimensions", name,
                           TENSOR_RANK_MAX);
    if ((int64_t)value < 0)
        return status_fail(STATUS_INVALID_ARGUMENT, "field \"%s\": a dimension is negative", name);
    dims[(*rank)++] = (int64_t)value;
    return STATUS_OK;
}
