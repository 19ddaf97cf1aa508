/* tensorflow.serving.PredictResponse. */
#include <string.h>

#include "server/protocol/grpc/contents.h"
#include "server/protocol/grpc/predict_message.h"
#include "server/protocol/grpc/wire.h"

/* Fields of PredictResponse, ModelSpec, an entry of a map, TensorProto, TensorShapeProto. */
enum { OUTPUTS = 1, MODEL_SPEC = 2 };
enum { SPEC_NAME = 1, SPEC_VERSION = 2, SPEC_SIGNATURE = 3 };
enum { ENTRY_KEY = 1, ENTRY_VALUE = 2 };
enum { TENSOR_DTYPE = 1, TENSOR_SHAPE = 2 };
enum { SHAPE_DIM = 2, DIM_SIZE = 1 };

/* A smaller output costs less to copy than a piece of its own. */
#define COPY_BYTES_MAX 4096

/* types.proto. */
static const uint8_t numbers[DTYPE_COUNT] = {
    [DTYPE_F32] = 1,  [DTYPE_F64] = 2,   [DTYPE_I32] = 3,  [DTYPE_U8] = 4,    [DTYPE_I16] = 5,
    [DTYPE_I8] = 6,   [DTYPE_BYTES] = 7, [DTYPE_I64] = 9,  [DTYPE_BOOL] = 10, [DTYPE_BF16] = 14,
    [DTYPE_U16] = 17, [DTYPE_F16] = 19,  [DTYPE_U32] = 22, [DTYPE_U64] = 23};

bool grpc_dtype_from_tensorflow(int64_t number, dtype *out)
{
    for (int i = 0; i < DTYPE_COUNT; i++) {
        if (numbers[i] == number) {
            *out = (dtype)i;
            return true;
        }
    }
    return false;
}

int grpc_dtype_to_tensorflow(dtype type)
{
    return numbers[type];
}

/* What was appended since `from`, and `more` bytes that follow, become a field. */
static void wrap_with(text_buffer *out, size_t from, uint32_t number, size_t more)
{
    char head[WIRE_HEAD_BYTES_MAX];
    size_t bytes = out->bytes - from;
    size_t head_bytes = (size_t)(wire_write_head(head, number, bytes + more) - head);
    if (out->is_broken || text_buffer_reserve(out, head_bytes) == NULL)
        return;
    memmove(out->data + from + head_bytes, out->data + from, bytes);
    memcpy(out->data + from, head, head_bytes);
    out->bytes += head_bytes;
}

static void write_shape(text_buffer *out, const tensor *t)
{
    size_t shape = out->bytes;
    for (int i = 0; i < t->rank; i++) {
        size_t dim = out->bytes;
        wire_put_varint(out, DIM_SIZE, (uint64_t)t->dims[i]);
        wire_wrap(out, dim, SHAPE_DIM);
    }
    wire_wrap(out, shape, TENSOR_SHAPE);
}

/* The elements as they lie in memory are those of a packed field of these types. */
static bool lies_packed(const tensor *t)
{
    return (t->dtype == DTYPE_F32 || t->dtype == DTYPE_F64) && tensor_count(t) > 0;
}

/* The output but for the last `*data_bytes` of it, which are its elements. */
static void write_output(text_buffer *out, const model_tensor *declared, const tensor *t,
                         size_t *data_bytes)
{
    size_t entry = out->bytes;
    wire_put_bytes(out, ENTRY_KEY, declared->name, strlen(declared->name));
    size_t value = out->bytes;
    wire_put_varint(out, TENSOR_DTYPE, numbers[t->dtype]);
    write_shape(out, t);
    *data_bytes = lies_packed(t) ? tensor_bytes(t) : 0;
    if (*data_bytes > 0)
        wire_put_head(out, grpc_tensor_layout.field_of[t->dtype], *data_bytes);
    else
        grpc_write_contents(&grpc_tensor_layout, out, t);
    wrap_with(out, value, ENTRY_VALUE, *data_bytes);
    wrap_with(out, entry, OUTPUTS, *data_bytes);
}

static void write_spec(text_buffer *out, const model *m)
{
    size_t spec = out->bytes;
    wire_put_bytes(out, SPEC_NAME, m->name, strlen(m->name));
    size_t version = out->bytes;
    wire_put_varint(out, 1, (uint64_t)m->version);
    wire_wrap(out, version, SPEC_VERSION);
    wire_put_bytes(out, SPEC_SIGNATURE, GRPC_SIGNATURE, strlen(GRPC_SIGNATURE));
    wire_wrap(out, spec, MODEL_SPEC);
}

status grpc_write_predict(text_buffer *out, const infer_request *r, grpc_pieces *pieces)
{
    const model *m = r->model;
    size_t text_from = 0, data_bytes;
    write_spec(out, m);
    pieces->count = 0;
    for (int i = 0; i < r->output_count; i++) {
        const tensor *t = &r->jobs[0]->outputs[r->outputs[i].index];
        write_output(out, &m->outputs[r->outputs[i].index], t, &data_bytes);
        if (data_bytes <= COPY_BYTES_MAX || pieces->count + 3 > GRPC_PIECES_MAX)
            text_buffer_append(out, t->data, data_bytes);
        else
            grpc_add_piece(pieces, &text_from, out, t->data, data_bytes);
    }
    if (out->bytes > text_from || pieces->count == 0)
        grpc_add_piece(pieces, &text_from, out, NULL, 0);
    return out->is_broken ? status_fail(STATUS_OUT_OF_MEMORY, "no memory for the response")
                          : STATUS_OK;
}
