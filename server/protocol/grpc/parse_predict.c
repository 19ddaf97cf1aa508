/* tensorflow.serving.PredictRequest to one job. As in parse_infer.c, tensors stay where they are.
 */
#include <string.h>

#include "server/protocol/grpc/contents.h"
#include "server/protocol/grpc/fields.h"
#include "server/protocol/grpc/predict_message.h"
#include "server/protocol/infer_inputs.h"

/* Fields of PredictRequest, ModelSpec, an entry of a map, TensorProto and TensorShapeProto. */
enum { MODEL_SPEC = 1, INPUTS = 2, OUTPUT_FILTER = 3, STREAMED_OPTIONS = 5, REQUEST_OPTIONS = 7 };
enum { SPEC_NAME = 1, SPEC_VERSION = 2, SPEC_SIGNATURE = 3, SPEC_LABEL = 4 };
enum { ENTRY_KEY = 1, ENTRY_VALUE = 2 };
enum { TENSOR_DTYPE = 1, TENSOR_SHAPE = 2, TENSOR_CONTENT = 4 };
enum { SHAPE_DIM = 2, SHAPE_UNKNOWN_RANK = 3 };
enum { DIM_SIZE = 1 };
enum { CLIENT_ID = 1 };

typedef struct parser {
    infer_request *request;
    const infer_context *context;
    infer_inputs to;
} parser;

/* A TensorProto, without its elements. */
typedef struct tensor_fields {
    const char *data; /* the message */
    size_t bytes;
    int64_t type;
    int rank;
    int64_t dims[TENSOR_RANK_MAX];
    const char *content;
    size_t content_bytes;
} tensor_fields;

static wire_reader reader_of(const wire_field *f)
{
    return (wire_reader){f->data, f->data + f->bytes};
}

static status read_dim(tensor_fields *t, const wire_field *message)
{
    wire_field f;
    bool has_field;
    uint64_t size = 0;
    status failure = wire_expect(message, WIRE_BYTES, "tensor_shape.dim");
    if (failure)
        return failure;
    wire_reader r = reader_of(message);
    while (!(failure = wire_next(&r, &f, &has_field)) && has_field) {
        if (f.number == DIM_SIZE) {
            failure = wire_expect(&f, WIRE_VARINT, "tensor_shape.dim.size");
            size = f.value;
        }
        if (failure)
            return failure;
    }
    return failure ? failure : grpc_add_dim(t->dims, &t->rank, size, "tensor_shape");
}

static status read_shape(tensor_fields *t, const wire_field *message)
{
    wire_field f;
    bool has_field;
    status failure = wire_expect(message, WIRE_BYTES, "tensor_shape");
    if (failure)
        return failure;
    wire_reader r = reader_of(message);
    t->rank = 0;
    while (!(failure = wire_next(&r, &f, &has_field)) && has_field) {
        if (f.number == SHAPE_DIM)
            failure = read_dim(t, &f);
        else if (f.number == SHAPE_UNKNOWN_RANK && f.value != 0)
            return status_fail(STATUS_INVALID_ARGUMENT, "field \"tensor_shape\": unknown_rank");
        if (failure)
            return failure;
    }
    return failure;
}

static status read_tensor(const wire_field *message, tensor_fields *t)
{
    wire_field f;
    bool has_field;
    *t = (tensor_fields){.rank = 0};
    status failure = wire_expect(message, WIRE_BYTES, "inputs");
    if (failure)
        return failure;
    t->data = message->data;
    t->bytes = message->bytes;
    wire_reader r = reader_of(message);
    while (!(failure = wire_next(&r, &f, &has_field)) && has_field) {
        if (f.number == TENSOR_DTYPE) {
            failure = wire_expect(&f, WIRE_VARINT, "dtype");
            t->type = (int64_t)f.value;
        } else if (f.number == TENSOR_SHAPE) {
            failure = read_shape(t, &f);
        } else if (f.number == TENSOR_CONTENT) {
            failure = wire_expect(&f, WIRE_BYTES, "tensor_content");
            t->content = f.data;
            t->content_bytes = f.bytes;
        }
        if (failure)
            return failure;
    }
    return failure;
}

/* A name and its tensor. */
static status read_entry(const wire_field *entry, json_string *name, tensor_fields *t)
{
    wire_field f;
    bool has_field;
    *name = (json_string){"", 0};
    *t = (tensor_fields){.rank = 0};
    status failure = wire_expect(entry, WIRE_BYTES, "inputs");
    if (failure)
        return failure;
    wire_reader r = reader_of(entry);
    while (!(failure = wire_next(&r, &f, &has_field)) && has_field) {
        if (f.number == ENTRY_KEY)
            failure = grpc_read_text(&f, "inputs", name);
        else if (f.number == ENTRY_VALUE)
            failure = read_tensor(&f, t);
        if (failure)
            return failure;
    }
    return failure;
}

static status read_version(const wire_field *message, int64_t *out)
{
    wire_field f;
    bool has_field;
    int64_t version = 0;
    status failure = wire_expect(message, WIRE_BYTES, "model_spec.version");
    if (failure)
        return failure;
    wire_reader r = reader_of(message);
    while (!(failure = wire_next(&r, &f, &has_field)) && has_field) {
        if (f.number == 1 && !(failure = wire_expect(&f, WIRE_VARINT, "model_spec.version")))
            version = (int64_t)f.value;
        if (failure)
            return failure;
    }
    if (!failure && version <= 0)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "field \"model_spec.version\" is %lld: versions begin with 1",
                           (long long)version);
    *out = version;
    return failure;
}

static status read_spec(const wire_field *message, grpc_predict_head *out, json_string *signature)
{
    wire_field f;
    bool has_field;
    status failure = wire_expect(message, WIRE_BYTES, "model_spec");
    if (failure)
        return failure;
    wire_reader r = reader_of(message);
    while (!(failure = wire_next(&r, &f, &has_field)) && has_field) {
        if (f.number == SPEC_NAME) {
            failure = grpc_read_text(&f, "model_spec.name", &out->model_name);
        } else if (f.number == SPEC_SIGNATURE) {
            failure = grpc_read_text(&f, "model_spec.signature_name", signature);
        } else if (f.number == SPEC_VERSION) {
            failure = read_version(&f, &out->version);
            out->label = (json_string){NULL, 0}; /* of a oneof the last one counts */
        } else if (f.number == SPEC_LABEL) {
            failure = grpc_read_text(&f, "model_spec.version_label", &out->label);
            out->version = 0;
        }
        if (failure)
            return failure;
    }
    return failure;
}

/* Bytes of the elements that the shape wants and the message has not; bounded. */
static size_t repeated_bytes(const tensor_fields *t)
{
    int64_t count = 1;
    dtype type;
    if (t->content_bytes > 0 || !grpc_dtype_from_tensorflow(t->type, &type))
        return 0;
    for (int i = 0; i < t->rank; i++) {
        if (__builtin_mul_overflow(count, t->dims[i], &count) || count > INT32_MAX)
            return INT32_MAX;
    }
    size_t bytes = (size_t)count * dtype_bytes(type);
    return bytes > t->bytes ? bytes - t->bytes : 0;
}

status grpc_read_predict_head(grpc_predict_head *out, const char *message, size_t bytes)
{
    wire_reader r = {message, message + bytes};
    wire_field f;
    bool has_field;
    status failure;
    json_string name;
    tensor_fields t;
    *out = (grpc_predict_head){.version = 0};
    while (!(failure = wire_next(&r, &f, &has_field)) && has_field) {
        if (f.number == MODEL_SPEC) {
            failure = read_spec(&f, out, &name);
        } else if (f.number == INPUTS && !(failure = read_entry(&f, &name, &t))) {
            out->raw_bytes += t.content_bytes;
            out->repeated_bytes += repeated_bytes(&t);
        }
        if (failure)
            return failure;
    }
    return failure;
}

static status check_signature(const wire_field *spec)
{
    grpc_predict_head head = {.version = 0};
    json_string name = {"", 0};
    status failure = read_spec(spec, &head, &name);
    if (failure || name.bytes == 0 || json_string_is(name, GRPC_SIGNATURE))
        return failure;
    return status_fail(STATUS_INVALID_ARGUMENT, "signature \"%.*s\" is unknown: there is %s",
                       grpc_shown(name.bytes), name.text, GRPC_SIGNATURE);
}

/* Options of disaggregated serving, which this server is not; who the client is is nothing that
 * changes the result. */
static status refuse_options(const wire_field *message, const char *name)
{
    wire_field f;
    bool has_field;
    status failure = wire_expect(message, WIRE_BYTES, name);
    if (failure)
        return failure;
    wire_reader r = reader_of(message);
    while (!(failure = wire_next(&r, &f, &has_field)) && has_field) {
        if (message->number != REQUEST_OPTIONS || f.number != CLIENT_ID)
            return status_fail(STATUS_UNSUPPORTED, "field \"%s\" is not supported", name);
    }
    return failure;
}

/* Strings of tensor_content: all lengths as varints, then all bytes (TensorFlow's
 * core/lib/strings/coding). */
static status read_strings(tensor *t, arena *memory, const char *from, size_t bytes)
{
    int64_t count = tensor_count(t);
    wire_reader r = {from, from + bytes};
    uint64_t sum = 0, length;
    if ((uint64_t)count > bytes)
        return status_fail(STATUS_INVALID_ARGUMENT, "%zu bytes cannot hold %lld strings", bytes,
                           (long long)count);
    tensor_string *strings = arena_allocate(memory, (size_t)count * sizeof *strings + 1);
    if (strings == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for %lld strings", (long long)count);
    for (int64_t i = 0; i < count; i++) {
        status failure = wire_read_varint(&r, &length);
        if (failure)
            return failure;
        if (length > bytes)
            return status_fail(STATUS_INVALID_ARGUMENT, "%zu bytes end inside the strings", bytes);
        strings[i].bytes = (size_t)length;
        sum += length; /* each is no larger than the message: it does not overflow */
    }
    if (sum != (uint64_t)(r.end - r.at))
        return status_fail(STATUS_INVALID_ARGUMENT, "%zu bytes are not those of %lld strings",
                           bytes, (long long)count);
    char *copy = arena_copy_string(memory, r.at, (size_t)sum);
    if (copy == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for %lld strings", (long long)count);
    for (int64_t i = 0; i < count; i++) {
        strings[i].data = (const uint8_t *)copy;
        copy += strings[i].bytes;
    }
    t->data = strings;
    return STATUS_OK;
}

static status fill_input(parser *p, const tensor_fields *from, tensor *t)
{
    bool is_borrowed = false;
    arena *memory = &p->to.job->memory;
    if (from->content_bytes == 0)
        return grpc_read_contents(&grpc_tensor_layout, t, memory, from->data, from->bytes,
                                  p->context->limits->decompressed_bytes_max);
    if (t->dtype == DTYPE_BYTES)
        return read_strings(t, memory, from->content, from->content_bytes);
    status failure = parse_binary_tensor(t, memory, from->content, from->content_bytes,
                                         p->context->can_borrow, &is_borrowed);
    p->request->borrows_body |= !failure && is_borrowed;
    return failure;
}

static status take_input(parser *p, const wire_field *entry)
{
    json_string name;
    tensor_fields from;
    infer_slot slot;
    dtype type;
    status failure = read_entry(entry, &name, &from);
    if (!failure)
        failure = infer_inputs_open(&p->to, name, &slot);
    if (failure)
        return failure;
    if (!grpc_dtype_from_tensorflow(from.type, &type))
        return status_fail(STATUS_INVALID_ARGUMENT, "input \"%s\": dtype %lld is not supported",
                           slot.name, (long long)from.type);
    failure = infer_inputs_shape(&p->to, &slot, type, from.rank, from.dims);
    if (failure)
        return failure;
    failure = fill_input(p, &from, slot.data);
    if (failure)
        return status_prefix(failure, "input \"%s\"", slot.name);
    return infer_inputs_close(&p->to, &slot);
}

static status take_output(parser *p, const wire_field *f)
{
    infer_request *r = p->request;
    json_string name;
    status failure = grpc_read_text(f, "output_filter", &name);
    if (failure)
        return failure;
    return infer_add_output(r, name);
}

static status take_field(parser *p, const wire_field *f)
{
    switch (f->number) {
    case MODEL_SPEC:
        return check_signature(f);
    case INPUTS:
        return take_input(p, f);
    case OUTPUT_FILTER:
        return take_output(p, f);
    case STREAMED_OPTIONS:
        return refuse_options(f, "predict_streamed_options");
    case REQUEST_OPTIONS:
        return refuse_options(f, "request_options");
    default:
        return STATUS_OK;
    }
}

status grpc_parse_predict(infer_request *r, const infer_context *c, const char *message,
                          size_t bytes)
{
    parser p = {.request = r, .context = c};
    wire_reader at = {message, message + bytes};
    wire_field f;
    bool has_field;
    status failure = infer_inputs_begin(&p.to, r, c);
    while (!failure && !(failure = wire_next(&at, &f, &has_field)) && has_field) {
        failure = take_field(&p, &f);
        if (!failure && c->cancel != NULL)
            failure = cancel_check(c->cancel);
    }
    if (failure)
        return failure;
    for (int i = 0; r->output_count == 0 && i < r->model->output_count; i++)
        r->outputs[i] = (infer_output){.index = i};
    if (r->output_count == 0)
        r->output_count = r->model->output_count;
    for (int i = 0; i < r->output_count; i++)
        r->outputs[i].is_binary = true; /* no JSON, which has no NaN */
    return infer_inputs_end(&p.to);
}
