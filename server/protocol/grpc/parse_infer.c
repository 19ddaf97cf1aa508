/* inference.ModelInferRequest to one job. protobuf-c would copy every tensor, and make a tree of
 * typed contents: here they are read where they lie, into the job. */
#include <assert.h>
#include <string.h>

#include "server/protocol/grpc/contents.h"
#include "server/protocol/grpc/fields.h"
#include "server/protocol/grpc/infer_message.h"
#include "server/protocol/grpc/wire.h"
#include "server/protocol/infer_inputs.h"

#define INPUTS_MAX (MODEL_TENSORS_MAX + 2) /* with the texts */
#define TIMEOUT_US_MAX 86400000000ll       /* longer than a day is no deadline */

typedef struct span {
    const char *data;
    size_t bytes;
} span;

typedef struct parser {
    infer_request *request;
    const infer_context *context;
    infer_inputs to;
    span inputs[INPUTS_MAX], raw[INPUTS_MAX];
    int input_count, raw_count, raw_taken, region_count;
    bool is_typed; /* outputs as typed contents */
    int8_t output_typed[MODEL_TENSORS_MAX];
} parser;

/* An entry of a map of parameters. */
typedef struct parameter {
    json_string key;
    uint32_t kind; /* the field of InferParameter; 0: none is set */
    int64_t number;
    json_string text;
} parameter;

status grpc_read_infer_head(grpc_infer_head *out, const char *message, size_t bytes)
{
    wire_reader r = {message, message + bytes};
    wire_field f;
    bool has_field;
    status failure;
    *out = (grpc_infer_head){.raw_bytes = 0};
    while (!(failure = wire_next(&r, &f, &has_field)) && has_field) {
        if (f.number == 1)
            failure = grpc_read_text(&f, "model_name", &out->model_name);
        else if (f.number == 2)
            failure = grpc_read_text(&f, "model_version", &out->model_version);
        else if (f.number == 3)
            failure = grpc_read_text(&f, "id", &out->id);
        else if (f.number == 7)
            out->raw_bytes += f.bytes;
        if (failure)
            return failure;
    }
    return failure;
}

static status read_value(parameter *p, const char *data, size_t bytes)
{
    wire_reader r = {data, data + bytes};
    wire_field f;
    bool has_field;
    status failure;
    while (!(failure = wire_next(&r, &f, &has_field)) && has_field) {
        static const wire_type types[] = {WIRE_VARINT, WIRE_VARINT, WIRE_VARINT,
                                          WIRE_BYTES,  WIRE_I64,    WIRE_VARINT};
        if (f.number > 5)
            continue;
        failure = wire_expect(&f, types[f.number], "parameters");
        if (failure)
            return failure;
        p->kind = f.number;
        p->number = (int64_t)f.value;
        p->text = (json_string){f.data, f.bytes};
    }
    return failure;
}

static status read_parameter(const wire_field *entry, parameter *p)
{
    wire_reader r;
    wire_field f;
    bool has_field;
    *p = (parameter){.key = {"", 0}};
    status failure = wire_expect(entry, WIRE_BYTES, "parameters");
    if (failure)
        return failure;
    r = (wire_reader){entry->data, entry->data + entry->bytes};
    while (!(failure = wire_next(&r, &f, &has_field)) && has_field) {
        if (f.number == 1)
            failure = grpc_read_text(&f, "parameters", &p->key);
        else if (f.number == 2 && !(failure = wire_expect(&f, WIRE_BYTES, "parameters")))
            failure = read_value(p, f.data, f.bytes);
        if (failure)
            return failure;
    }
    return failure;
}

static status expect_kind(const parameter *p, bool is_right, const char *wanted)
{
    return is_right ? STATUS_OK
                    : status_fail(STATUS_INVALID_ARGUMENT, "parameter \"%.*s\" is not %s",
                                  grpc_shown(p->key.bytes), p->key.text, wanted);
}

static status expect_bool(const parameter *p)
{
    return expect_kind(p, p->kind == 1, "a bool_param");
}

/* uint64_param beyond int64 becomes negative, and is refused where that is. */
static status expect_integer(const parameter *p)
{
    return expect_kind(p, (p->kind == 2 || p->kind == 5) && p->number >= 0,
                       "an int64_param that is not negative");
}

static status fail_parameter(const parameter *p)
{
    return status_fail(STATUS_UNSUPPORTED, "parameter \"%.*s\" is not supported",
                       grpc_shown(p->key.bytes), p->key.text);
}

/* shared_memory_region, _offset or _byte_size. */
static status take_region(const parameter *p, infer_region *region)
{
    if (json_string_is(p->key, "shared_memory_region")) {
        region->name = p->text;
        return expect_kind(p, p->kind == 3, "a string_param");
    }
    *(json_string_is(p->key, "shared_memory_offset") ? &region->offset : &region->bytes) =
        (uint64_t)p->number;
    return expect_integer(p);
}

/* A request of a sequence wants state that the server would keep. */
static bool is_of_sequence(const parameter *p)
{
    return json_string_is(p->key, "sequence_id") || json_string_is(p->key, "sequence_start") ||
           json_string_is(p->key, "sequence_end");
}

static status fail_sequence(const parameter *p)
{
    return status_fail(STATUS_UNSUPPORTED,
                       "parameter \"%.*s\" is not supported: the server keeps no state between "
                       "requests; it goes with them, as inputs and outputs",
                       grpc_shown(p->key.bytes), p->key.text);
}

static status take_parameter(parser *p, const wire_field *entry)
{
    infer_request *r = p->request;
    parameter it;
    status failure = read_parameter(entry, &it);
    if (failure)
        return failure;
    if (json_string_is(it.key, "timeout")) {
        failure = expect_integer(&it);
        if (!failure)
            r->timeout_ns = it.number > TIMEOUT_US_MAX ? 0 : (uint64_t)it.number * 1000;
    } else if (json_string_is(it.key, "priority")) {
        failure = expect_integer(&it);
        if (!failure)
            r->priority = it.number > 1000 ? 1000 : (int)it.number;
    } else if (json_string_is(it.key, "truncate")) {
        failure = expect_bool(&it);
        r->text_options.truncates = it.number != 0;
    } else if (json_string_is(it.key, "binary_data_output")) {
        failure = expect_bool(&it);
        p->is_typed = it.number == 0;
    } else if (is_of_sequence(&it) && (it.number != 0 || it.text.bytes > 0)) {
        failure = fail_sequence(&it);
    }
    return failure;
}

static status take_span(span *to, int *count, const wire_field *f, const char *name)
{
    status failure = wire_expect(f, WIRE_BYTES, name);
    if (failure)
        return failure;
    if (*count == INPUTS_MAX)
        return status_fail(STATUS_INVALID_ARGUMENT, "more than %d %s", INPUTS_MAX, name);
    to[(*count)++] = (span){f->data, f->bytes};
    return STATUS_OK;
}

typedef struct output_fields {
    json_string name;
    int8_t is_typed; /* -1: as the request has it */
    infer_region region;
} output_fields;

static status take_output_parameter(const wire_field *entry, output_fields *out)
{
    parameter it;
    status failure = read_parameter(entry, &it);
    if (failure)
        return failure;
    if (json_string_is(it.key, "classification") && it.number != 0)
        return fail_parameter(&it);
    if (infer_is_region_key(it.key))
        return take_region(&it, &out->region);
    if (json_string_is(it.key, "binary_data") && !(failure = expect_bool(&it)))
        out->is_typed = it.number == 0;
    return failure;
}

static status read_output_fields(const wire_field *message, output_fields *out)
{
    wire_reader r = {message->data, message->data + message->bytes};
    wire_field f;
    bool has_field;
    status failure;
    *out = (output_fields){.name = {"", 0}, .is_typed = -1};
    while (!(failure = wire_next(&r, &f, &has_field)) && has_field) {
        if (f.number == 1)
            failure = grpc_read_text(&f, "outputs.name", &out->name);
        else if (f.number == 2)
            failure = take_output_parameter(&f, out);
        if (failure)
            return failure;
    }
    return failure;
}

static status take_output(parser *p, const wire_field *f)
{
    infer_request *r = p->request;
    output_fields out;
    status failure = wire_expect(f, WIRE_BYTES, "outputs");
    if (!failure)
        failure = read_output_fields(f, &out);
    if (!failure)
        failure = infer_add_output(r, out.name);
    if (!failure)
        failure = infer_check_region(&out.region);
    if (failure)
        return failure;
    p->output_typed[r->output_count - 1] = out.is_typed;
    return out.region.name.bytes > 0
               ? infer_set_region(r, p->context, &out.region, &p->to.job->memory)
               : STATUS_OK;
}

/* The whole message, but for what is in the inputs: raw contents may stand before or behind. */
static status read_envelope(parser *p, wire_reader r)
{
    wire_field f;
    bool has_field;
    status failure;
    while (!(failure = wire_next(&r, &f, &has_field)) && has_field) {
        if (f.number == 3)
            failure = grpc_read_text(&f, "id", &p->request->id);
        else if (f.number == 4)
            failure = take_parameter(p, &f);
        else if (f.number == 5)
            failure = take_span(p->inputs, &p->input_count, &f, "inputs");
        else if (f.number == 6)
            failure = take_output(p, &f);
        else if (f.number == 7)
            failure = take_span(p->raw, &p->raw_count, &f, "raw_input_contents");
        if (failure)
            return failure;
    }
    return failure;
}

typedef struct input_fields {
    json_string name, datatype;
    int rank;
    int64_t dims[TENSOR_RANK_MAX];
    bool has_contents;
    span contents;
    infer_region region;
} input_fields;

/* Packed, or one by one. */
static status read_shape(input_fields *f, const wire_field *field)
{
    if (field->type != WIRE_BYTES) {
        status failure = wire_expect(field, WIRE_VARINT, "inputs.shape");
        return failure ? failure : grpc_add_dim(f->dims, &f->rank, field->value, "inputs.shape");
    }
    wire_reader r = {field->data, field->data + field->bytes};
    while (r.at < r.end) {
        uint64_t value;
        status failure = wire_read_varint(&r, &value);
        if (!failure)
            failure = grpc_add_dim(f->dims, &f->rank, value, "inputs.shape");
        if (failure)
            return failure;
    }
    return STATUS_OK;
}

static status read_input_fields(const span *message, input_fields *out)
{
    wire_reader r = {message->data, message->data + message->bytes};
    wire_field f;
    bool has_field;
    status failure;
    parameter it;
    *out = (input_fields){.name = {"", 0}, .datatype = {"", 0}};
    while (!(failure = wire_next(&r, &f, &has_field)) && has_field) {
        if (f.number == 1) {
            failure = grpc_read_text(&f, "inputs.name", &out->name);
        } else if (f.number == 2) {
            failure = grpc_read_text(&f, "inputs.datatype", &out->datatype);
        } else if (f.number == 3) {
            failure = read_shape(out, &f);
        } else if (f.number == 4) {
            failure = read_parameter(&f, &it);
            if (!failure && infer_is_region_key(it.key))
                failure = take_region(&it, &out->region);
        } else if (f.number == 5 && !(failure = wire_expect(&f, WIRE_BYTES, "inputs.contents"))) {
            if (out->has_contents)
                return status_fail(STATUS_INVALID_ARGUMENT, "an input has two \"contents\"");
            out->has_contents = true;
            out->contents = (span){f.data, f.bytes};
        }
        if (failure)
            return failure;
    }
    return failure;
}

/* One for each input that does not lie in shared memory. */
static status fail_raw_count(const parser *p)
{
    return status_fail(STATUS_INVALID_ARGUMENT,
                       "field \"raw_input_contents\" has %d tensors for %d inputs%s", p->raw_count,
                       p->input_count, p->region_count > 0 ? ", some in shared memory" : "");
}

/* The data of `t`, whose shape has been checked. */
static status fill_input(parser *p, const input_fields *f, tensor *t, const char *name)
{
    status failure;
    bool is_borrowed = false;
    if (p->raw_count == 0) {
        failure = grpc_read_contents(&grpc_infer_layout, t, &p->to.job->memory, f->contents.data,
                                     f->contents.bytes, 0);
        return failure ? status_prefix(failure, "input \"%s\"", name) : STATUS_OK;
    }
    if (f->has_contents && f->contents.bytes > 0)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "input \"%s\": contents and raw_input_contents exclude each other",
                           name);
    if (p->raw_taken == p->raw_count)
        return fail_raw_count(p);
    const span *raw = &p->raw[p->raw_taken++];
    failure = parse_binary_tensor(t, &p->to.job->memory, raw->data, raw->bytes,
                                  p->context->can_borrow, &is_borrowed);
    p->request->borrows_body |= !failure && is_borrowed;
    return failure ? status_prefix(failure, "input \"%s\"", name) : STATUS_OK;
}

static status fill_from_region(parser *p, const input_fields *f, infer_slot *slot)
{
    p->region_count++;
    if (f->has_contents && f->contents.bytes > 0)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "input \"%s\": contents and shared memory exclude each other",
                           slot->name);
    status failure = infer_inputs_read_region(&p->to, slot, &f->region);
    return failure ? status_prefix(failure, "input \"%s\"", slot->name) : STATUS_OK;
}

static status read_datatype(const input_fields *f, const char *name, dtype *out)
{
    if (dtype_from_kserve_name(f->datatype.text, f->datatype.bytes, out))
        return STATUS_OK;
    return status_fail(STATUS_INVALID_ARGUMENT, "input \"%s\": datatype \"%.*s\" is unknown", name,
                       (int)(f->datatype.bytes < 64 ? f->datatype.bytes : 64), f->datatype.text);
}

static status take_input(parser *p, const span *message)
{
    input_fields f;
    infer_slot slot;
    dtype type = DTYPE_F32;
    status failure = read_input_fields(message, &f);
    if (!failure)
        failure = infer_inputs_open(&p->to, f.name, &slot);
    if (!failure)
        failure = read_datatype(&f, slot.name, &type);
    if (!failure)
        failure = infer_inputs_shape(&p->to, &slot, type, f.rank, f.dims);
    if (!failure)
        failure = infer_check_region(&f.region);
    if (!failure && f.region.name.bytes > 0)
        failure = fill_from_region(p, &f, &slot);
    else if (!failure)
        failure = fill_input(p, &f, slot.data, slot.name);
    return failure ? failure : infer_inputs_close(&p->to, &slot);
}

static status take_inputs(parser *p)
{
    status failure = p->raw_count > p->input_count ? fail_raw_count(p) : STATUS_OK;
    for (int i = 0; i < p->input_count && !failure; i++) {
        failure = take_input(p, &p->inputs[i]);
        if (!failure && p->context->cancel != NULL)
            failure = cancel_check(p->context->cancel);
    }
    return !failure && p->raw_taken != p->raw_count ? fail_raw_count(p) : failure;
}

/* Typed where that was asked for; Triton answers with raw contents, and halves have no typed ones.
 */
static void choose_outputs(parser *p)
{
    infer_request *r = p->request;
    const model *m = r->model;
    if (r->output_count == 0) {
        for (int i = 0; i < m->output_count; i++) {
            r->outputs[i] = (infer_output){.index = i};
            p->output_typed[i] = -1;
        }
        r->output_count = m->output_count;
    }
    bool any_typed = false, any_raw = false;
    for (int i = 0; i < r->output_count; i++) {
        bool is_typed = p->output_typed[i] < 0 ? p->is_typed : p->output_typed[i] == 1;
        dtype type = m->outputs[r->outputs[i].index].dtype;
        if (r->outputs[i].region.name.bytes > 0)
            continue;
        bool has_type = type != DTYPE_F16 && type != DTYPE_BF16;
        any_typed |= is_typed && has_type;
        any_raw |= !is_typed || !has_type;
    }
    for (int i = 0; i < r->output_count; i++)
        r->outputs[i].is_binary = any_raw || !any_typed;
}

status grpc_parse_infer(infer_request *r, const infer_context *c, const char *message, size_t bytes)
{
    parser p;
    status failure = infer_inputs_begin(&p.to, r, c);
    if (failure)
        return failure;
    p.request = r;
    p.context = c;
    p.input_count = p.raw_count = p.raw_taken = p.region_count = 0;
    p.is_typed = false;
    failure = read_envelope(&p, (wire_reader){message, message + bytes});
    if (!failure)
        failure = take_inputs(&p);
    if (failure)
        return failure;
    choose_outputs(&p);
    /* The message may go before the response: keep the id with the job. */
    if (r->id.text != NULL) {
        r->id.text = arena_copy_string(&p.to.job->memory, r->id.text, r->id.bytes);
        if (r->id.text == NULL)
            return status_fail(STATUS_OUT_OF_MEMORY, "no memory for the id");
    }
    return infer_inputs_end(&p.to);
}
