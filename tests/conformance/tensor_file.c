#include "tests/conformance/tensor_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/onnx/onnx.pb-c.h"

static void fill_typed(const Onnx__Tensor *from, tensor *t, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        size_t k = (size_t)i;
        if (k < from->n_float_data)
            ((float *)t->data)[k] = from->float_data[k];
        else if (k < from->n_double_data)
            ((double *)t->data)[k] = from->double_data[k];
        else if (k < from->n_int64_data)
            ((int64_t *)t->data)[k] = from->int64_data[k];
        else if (k < from->n_uint64_data && t->dtype == DTYPE_U64)
            ((uint64_t *)t->data)[k] = from->uint64_data[k];
        else if (k < from->n_uint64_data)
            ((uint32_t *)t->data)[k] = (uint32_t)from->uint64_data[k];
        else if (k < from->n_int32_data)
            /* Narrow types, the 16-bit floats too, lie in the low bits (little-endian). */
            memcpy((char *)t->data + k * dtype_bytes(t->dtype), &from->int32_data[k],
                   dtype_bytes(t->dtype) < 4 ? dtype_bytes(t->dtype) : 4);
    }
}

static status convert(const Onnx__Tensor *from, arena *memory, tensor *out)
{
    dtype type;
    if (!dtype_from_onnx(from->data_type, &type) || type == DTYPE_BYTES)
        return status_fail(STATUS_UNSUPPORTED, "element type %d", from->data_type);
    status s = tensor_allocate(out, memory, type, (int)from->n_dims, from->dims);
    if (s)
        return s;
    if (!from->has_raw_data)
        fill_typed(from, out, tensor_count(out));
    else if (from->raw_data.len == tensor_bytes(out))
        memcpy(out->data, from->raw_data.len ? (const void *)from->raw_data.data : "",
               from->raw_data.len);
    else
        return status_fail(STATUS_CORRUPT, "raw data of %zu bytes", from->raw_data.len);
    return STATUS_OK;
}

status tensor_file_read(const char *path, arena *memory, tensor *out)
{
    status s = STATUS_OK;
    uint8_t *bytes = NULL;
    Onnx__Tensor *message = NULL;
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return status_fail(STATUS_NOT_FOUND, "%s", path);
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    bytes = malloc((size_t)size + 1);
    if (bytes == NULL || fread(bytes, 1, (size_t)size, file) != (size_t)size) {
        s = status_fail(STATUS_IO, "%s cannot be read", path);
        goto fail;
    }
    message = onnx__tensor__unpack(NULL, (size_t)size, bytes);
    if (message == NULL) {
        s = status_fail(STATUS_CORRUPT, "%s is no tensor", path);
        goto fail;
    }
    s = convert(message, memory, out);
fail:
    onnx__tensor__free_unpacked(message, NULL);
    free(bytes);
    fclose(file);
    return s;
}
