#include <assert.h>
#include <string.h>

#include "graph/onnx/importer.h"

/* Names of the TensorProto.DataType numbers that base/dtype.h does not have. */
static const char *unsupported_type_name(int type)
{
    switch (type) {
    case 14:
        return "COMPLEX64";
    case 15:
        return "COMPLEX128";
    case 17:
        return "FLOAT8E4M3FN";
    case 18:
        return "FLOAT8E4M3FNUZ";
    case 19:
        return "FLOAT8E5M2";
    case 20:
        return "FLOAT8E5M2FNUZ";
    case 21:
        return "UINT4";
    case 22:
        return "INT4";
    case 23:
        return "FLOAT4E2M1";
    default:
        return "unknown";
    }
}

status onnx_read_dtype(int type, const char *where, dtype *out)
{
    if (dtype_from_onnx(type, out))
        return STATUS_OK;
    return status_fail(
        STATUS_UNSUPPORTED,
        "%s has the element type %d (%s); supported: BOOL, INT8-INT64, UINT8-UINT64, "
        "FLOAT16, BFLOAT16, FLOAT, DOUBLE, STRING",
        where, type, unsupported_type_name(type));
}

static status fail_count(const char *where, size_t found, int64_t wanted)
{
    return status_fail(STATUS_CORRUPT, "%s has %zu elements where its shape has %lld", where, found,
                       (long long)wanted);
}

/* Copies `count` 32-bit items to elements of the tensor's 1, 2 or 4 byte type (onnx.proto: narrow
 * integers, bool and the bits of 16-bit floats are kept in int32_data). */
static void narrow_from_i32(const tensor *t, const int32_t *items, size_t count)
{
    size_t bytes = dtype_bytes(t->dtype);
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = (uint32_t)items[i];
        if (bytes == 1)
            ((uint8_t *)t->data)[i] = (uint8_t)bits;
        else if (bytes == 2)
            ((uint16_t *)t->data)[i] = (uint16_t)bits;
        else
            ((uint32_t *)t->data)[i] = bits;
    }
}

static status read_typed(onnx_importer *m, const Onnx__Tensor *p, const char *where, tensor *t)
{
    size_t found = 0, count = (size_t)tensor_count(t);
    const void *items = NULL;
    switch (t->dtype) {
    case DTYPE_F32:
        found = p->n_float_data;
        items = p->float_data;
        break;
    case DTYPE_F64:
        found = p->n_double_data;
        items = p->double_data;
        break;
    case DTYPE_I64:
        found = p->n_int64_data;
        items = p->int64_data;
        break;
    case DTYPE_U64:
    case DTYPE_U32:
        found = p->n_uint64_data;
        items = p->uint64_data;
        break;
    default:
        found = p->n_int32_data;
        items = p->int32_data;
        break;
    }
    if (found != count)
        return fail_count(where, found, tensor_count(t));
    if (t->dtype == DTYPE_F32 || t->dtype == DTYPE_F64 || t->dtype == DTYPE_I64 ||
        t->dtype == DTYPE_U64) {
        t->data = (void *)items; /* the parsed model is in the graph's memory */
        return STATUS_OK;
    }
    status s = tensor_allocate(t, &m->graph->memory, t->dtype, t->rank, t->dims);
    if (s)
        return s;
    if (t->dtype == DTYPE_U32)
        for (size_t i = 0; i < count; i++)
            ((uint32_t *)t->data)[i] = (uint32_t)p->uint64_data[i];
    else
        narrow_from_i32(t, items, count);
    return STATUS_OK;
}

static status read_strings(onnx_importer *m, const Onnx__Tensor *p, const char *where, tensor *t)
{
    if (p->n_string_data != (size_t)tensor_count(t))
        return fail_count(where, p->n_string_data, tensor_count(t));
    status s = tensor_allocate(t, &m->graph->memory, t->dtype, t->rank, t->dims);
    if (s)
        return s;
    for (size_t i = 0; i < p->n_string_data; i++)
        ((tensor_string *)t->data)[i] =
            (tensor_string){p->string_data[i].data, p->string_data[i].len};
    return STATUS_OK;
}

/* Uses the bytes in place when they are aligned for their type; otherwise copies them. */
static status adopt_bytes(onnx_importer *m, const uint8_t *bytes, tensor *t)
{
    if ((uintptr_t)bytes % dtype_bytes(t->dtype) == 0) {
        t->data = (void *)bytes;
        return STATUS_OK;
    }
    status s = tensor_allocate(t, &m->graph->memory, t->dtype, t->rank, t->dims);
    if (s == STATUS_OK)
        memcpy(t->data, bytes, tensor_bytes(t));
    return s;
}

/* Kernels assume that a bool is 0 or 1. */
static status check_bools(const tensor *t, const char *where)
{
    const uint8_t *bools = t->data;
    for (int64_t i = 0, count = tensor_count(t); i < count; i++)
        if (bools[i] > 1)
            return status_fail(STATUS_CORRUPT, "%s has a BOOL that is neither 0 nor 1", where);
    return STATUS_OK;
}

status onnx_read_tensor(onnx_importer *m, const Onnx__Tensor *p, const char *where, tensor *out)
{
    tensor t = {0};
    dtype type;
    status s = onnx_read_dtype(p->data_type, where, &type);
    if (s)
        return s;
    if (p->segment != NULL)
        return status_fail(STATUS_UNSUPPORTED, "%s is a segment of a larger tensor", where);
    if (p->n_dims > TENSOR_RANK_MAX)
        return status_fail(STATUS_UNSUPPORTED, "%s has rank %zu; the limit is %d", where, p->n_dims,
                           TENSOR_RANK_MAX);
    s = tensor_set_shape(&t, type, (int)p->n_dims, p->dims);
    if (s)
        return status_prefix(STATUS_CORRUPT, "%s", where);

    if (p->data_location != ONNX__TENSOR__LOCATION__DEFAULT) {
        const uint8_t *bytes = NULL;
        if (type == DTYPE_BYTES)
            return status_fail(STATUS_CORRUPT, "%s is an external tensor of strings", where);
        s = onnx_find_external(m, p, tensor_bytes(&t), &bytes);
        if (s)
            return status_prefix(s, "%s", where);
        s = tensor_bytes(&t) > 0 ? adopt_bytes(m, bytes, &t) : STATUS_OK;
    } else if (p->has_raw_data && type != DTYPE_BYTES &&
               (p->raw_data.len > 0 || tensor_bytes(&t) == 0)) {
        if (p->raw_data.len != tensor_bytes(&t))
            return status_fail(STATUS_CORRUPT, "%s has %zu bytes where its shape has %zu", where,
                               p->raw_data.len, tensor_bytes(&t));
        s = tensor_bytes(&t) > 0 ? adopt_bytes(m, p->raw_data.data, &t) : STATUS_OK;
    } else if (type == DTYPE_BYTES) {
        s = read_strings(m, p, where, &t);
    } else {
        s = read_typed(m, p, where, &t);
    }
    if (s == STATUS_OK && type == DTYPE_BOOL)
        s = check_bools(&t, where);
    if (s == STATUS_OK)
        *out = t;
    return s;
}
