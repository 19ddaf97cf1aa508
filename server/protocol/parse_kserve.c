/* Body of POST /v2/models/M/infer to one job: one walk over the JSON, tensor data read in place.
 * Source: Open Inference Protocol, REST, with the binary tensor data extension. */
#include <assert.h>
#include <string.h>

#include "server/protocol/infer_inputs.h"
#include "server/protocol/tensor_scan.h"

typedef struct parser {
    infer_request *request;
    const infer_context *context;
    json_scan json;
    infer_inputs inputs;
    const char *binary, *binary_end; /* the part of the body that no tensor has yet */
    bool binary_by_default, has_outputs;
    /* Per output in the request: its own `binary_data`, or -1. */
    int8_t output_binary[MODEL_TENSORS_MAX];
} parser;

typedef struct input_fields {
    json_string name;
    bool has_name, has_datatype, has_shape, has_data;
    dtype datatype;
    int rank;
    int64_t dims[TENSOR_RANK_MAX];
    int64_t binary_bytes; /* -1: absent */
    infer_region region;
    const char *data_at; /* where `data` stands, when it came before shape and datatype */
    int data_depth;
} input_fields;

static status read_shape(json_scan *s, input_fields *f)
{
    bool is_first = true, has_element;
    status failure = json_open_array(s);
    for (f->rank = 0; !failure; f->rank++) {
        failure = json_array_next(s, &is_first, &has_element);
        if (failure || !has_element)
            break;
        if (f->rank == TENSOR_RANK_MAX)
            return json_fail(s, "at most 8 dimensions");
        if (!(failure = json_read_i64(s, &f->dims[f->rank])) && f->dims[f->rank] < 0)
            return json_fail(s, "a dimension that is not negative before this");
    }
    f->has_shape = true;
    return failure;
}

static status read_datatype(json_scan *s, input_fields *f)
{
    json_string name;
    status failure = json_read_string(s, &name);
    if (failure)
        return failure;
    if (!dtype_from_kserve_name(name.text, name.bytes, &f->datatype))
        return status_fail(STATUS_INVALID_ARGUMENT, "datatype \"%.*s\" is unknown",
                           (int)(name.bytes < 64 ? name.bytes : 64), name.text);
    f->has_datatype = true;
    return STATUS_OK;
}

/* shared_memory_region, _offset or _byte_size. */
static status read_region(json_scan *s, json_string key, infer_region *region)
{
    int64_t number = 0;
    if (json_string_is(key, "shared_memory_region"))
        return json_read_string(s, &region->name);
    status failure = json_read_i64(s, &number);
    if (!failure && number < 0)
        return json_fail(s, "a number that is not negative before this");
    *(json_string_is(key, "shared_memory_offset") ? &region->offset : &region->bytes) =
        (uint64_t)number;
    return failure;
}

static status read_input_parameters(json_scan *s, input_fields *f)
{
    json_object o;
    json_string key;
    bool has_key;
    status failure = json_open_object(s, &o);
    while (!failure && !(failure = json_object_next(s, &o, &key, &has_key)) && has_key) {
        if (json_string_is(key, "binary_data_size")) {
            failure = json_read_i64(s, &f->binary_bytes);
            if (!failure && f->binary_bytes < 0)
                return json_fail(s, "a binary_data_size that is not negative before this");
        } else if (infer_is_region_key(key)) {
            failure = read_region(s, key, &f->region);
        } else {
            failure = json_skip_value(s);
        }
    }
    return failure;
}

/* JSON `data` at the cursor into the tensor; the shape says how many elements. */
static status read_data(parser *p, tensor *t, json_scan *s, const char *name)
{
    int64_t count = tensor_count(t);
    /* A value is at least a digit and a comma: a shape cannot reserve more memory than was sent. */
    if (count > (s->end - s->at) / 2 + 1)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "input \"%s\": the shape has more elements than the data", name);
    size_t bytes = tensor_bytes(t);
    t->data = arena_allocate_aligned(&p->inputs.job->memory, bytes ? bytes : 1, 64);
    if (t->data == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for input \"%s\"", name);
    tensor_scan scan = {.dtype = t->dtype, .data = t->data, .capacity = count};
    status failure = tensor_scan_value(s, &scan);
    if (failure)
        return status_prefix(failure, "input \"%s\"", name);
    bool is_same = scan.rank == t->rank;
    for (int i = 0; is_same && i < t->rank; i++)
        is_same = scan.dims[i] == t->dims[i];
    /* Empty arrays end the nesting early, so [0,4] may come as []. */
    if (scan.count != count || (scan.rank > 1 && count > 0 && !is_same) ||
        (scan.rank == 0 && count != 1)) {
        char wanted[TENSOR_SHAPE_TEXT_BYTES], found[TENSOR_SHAPE_TEXT_BYTES];
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "input \"%s\": data of shape %s, but shape is %s", name,
                           tensor_shape_text(found, scan.rank, scan.dims),
                           tensor_shape_text(wanted, t->rank, t->dims));
    }
    return STATUS_OK;
}

/* What every input needs beside its name. */
static status check_fields(const input_fields *f, const char *name)
{
    if (!f->has_datatype || !f->has_shape)
        return status_fail(STATUS_INVALID_ARGUMENT, "input \"%s\" has no %s", name,
                           f->has_shape ? "datatype" : "shape");
    status failure = infer_check_region(&f->region);
    if (failure)
        return status_prefix(failure, "input \"%s\"", name);
    bool has_region = f->region.name.bytes > 0, has_binary = f->binary_bytes >= 0;
    if (has_region && (f->has_data || has_binary))
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "input \"%s\" has data in the body and in shared memory", name);
    if (!has_region && f->has_data == has_binary)
        return status_fail(STATUS_INVALID_ARGUMENT, "input \"%s\" has %s data", name,
                           f->has_data ? "both JSON and binary" : "no");
    return STATUS_OK;
}

/* The data of `t`, whose shape has been checked. */
static status fill_input(parser *p, const input_fields *f, tensor *t, const char *name)
{
    status failure;
    if (f->has_data) {
        json_scan again = p->json; /* the data, once everything about it is known */
        again.at = f->data_at;
        again.depth = f->data_depth;
        failure = read_data(p, t, &again, name);
        if (!failure && p->json.at == f->data_at)
            p->json.at = again.at;
        return failure;
    }
    if (f->binary_bytes > p->binary_end - p->binary)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "input \"%s\": %lld binary bytes, but the body has only %lld left", name,
                           (long long)f->binary_bytes, (long long)(p->binary_end - p->binary));
    bool is_borrowed;
    failure = parse_binary_tensor(t, &p->inputs.job->memory, p->binary, (size_t)f->binary_bytes,
                                  p->context->can_borrow, &is_borrowed);
    p->binary += f->binary_bytes;
    p->request->borrows_body |= !failure && is_borrowed;
    return failure ? status_prefix(failure, "input \"%s\"", name) : STATUS_OK;
}

static status finish_input(parser *p, input_fields *f)
{
    infer_slot slot;
    if (!f->has_name)
        return status_fail(STATUS_INVALID_ARGUMENT, "an input has no name");
    status failure = infer_inputs_open(&p->inputs, f->name, &slot);
    if (!failure)
        failure = check_fields(f, slot.name);
    if (!failure)
        failure = infer_inputs_shape(&p->inputs, &slot, f->datatype, f->rank, f->dims);
    if (!failure && f->region.name.bytes > 0) {
        failure = infer_inputs_read_region(&p->inputs, &slot, &f->region);
        if (failure)
            return status_prefix(failure, "input \"%s\"", slot.name);
    } else if (!failure) {
        failure = fill_input(p, f, slot.data, slot.name);
    }
    return failure ? failure : infer_inputs_close(&p->inputs, &slot);
}

/* `data` last, with shape and datatype before it, is the usual order and is read without a second
 * pass; elsewhere it is stepped over first and read when the object has ended. */
static status read_input(parser *p)
{
    json_scan *s = &p->json;
    json_object o;
    json_string key;
    bool has_key, is_done = false;
    input_fields f = {.binary_bytes = -1};
    status failure = json_open_object(s, &o);
    while (!failure && !(failure = json_object_next(s, &o, &key, &has_key)) && has_key) {
        if (json_string_is(key, "name")) {
            f.has_name = true;
            failure = json_read_string(s, &f.name);
        } else if (json_string_is(key, "shape")) {
            failure = read_shape(s, &f);
        } else if (json_string_is(key, "datatype")) {
            failure = read_datatype(s, &f);
        } else if (json_string_is(key, "parameters")) {
            failure = read_input_parameters(s, &f);
        } else if (json_string_is(key, "data")) {
            json_peek(s);
            f.has_data = true;
            f.data_at = s->at;
            f.data_depth = s->depth;
            if (f.has_name && f.has_shape && f.has_datatype) {
                failure = finish_input(p, &f);
                is_done = true;
            } else {
                failure = json_skip_value(s);
            }
        } else {
            failure = json_skip_value(s);
        }
    }
    if (failure)
        return failure;
    if (is_done && (f.binary_bytes >= 0 || f.region.name.bytes > 0))
        return status_fail(STATUS_INVALID_ARGUMENT, "input \"%.*s\" has data in two places",
                           (int)(f.name.bytes < 200 ? f.name.bytes : 200), f.name.text);
    return is_done ? STATUS_OK : finish_input(p, &f);
}

static status read_output_parameters(json_scan *s, int8_t *is_binary, infer_region *region)
{
    json_object o;
    json_string key;
    bool has_key, flag;
    status failure = json_open_object(s, &o);
    while (!failure && !(failure = json_object_next(s, &o, &key, &has_key)) && has_key) {
        if (json_string_is(key, "binary_data")) {
            failure = json_read_bool(s, &flag);
            *is_binary = !failure && flag;
        } else if (infer_is_region_key(key)) {
            failure = read_region(s, key, region);
        } else if (json_string_is(key, "classification")) {
            return status_fail(STATUS_UNSUPPORTED,
                               "output parameter \"classification\" is not supported");
        } else {
            failure = json_skip_value(s);
        }
    }
    return failure;
}

static status read_output(parser *p)
{
    json_scan *s = &p->json;
    infer_request *r = p->request;
    infer_region region = {.offset = 0};
    json_object o;
    json_string key, name = {"", 0};
    bool has_key;
    int8_t is_binary = -1;
    status failure = json_open_object(s, &o);
    while (!failure && !(failure = json_object_next(s, &o, &key, &has_key)) && has_key) {
        if (json_string_is(key, "name"))
            failure = json_read_string(s, &name);
        else if (json_string_is(key, "parameters"))
            failure = read_output_parameters(s, &is_binary, &region);
        else
            failure = json_skip_value(s);
    }
    if (!failure)
        failure = infer_add_output(r, name);
    if (!failure)
        failure = infer_check_region(&region);
    if (failure)
        return failure;
    p->output_binary[r->output_count - 1] = is_binary;
    return region.name.bytes > 0 ? infer_set_region(r, p->context, &region, &p->inputs.job->memory)
                                 : STATUS_OK;
}

static status read_list(parser *p, status (*read_one)(parser *p))
{
    bool is_first = true, has_element;
    status failure = json_open_array(&p->json);
    while (!failure && !(failure = json_array_next(&p->json, &is_first, &has_element)) &&
           has_element)
        failure = read_one(p);
    return failure;
}

static bool is_of_sequence(json_string key)
{
    return json_string_is(key, "sequence_id") || json_string_is(key, "sequence_start") ||
           json_string_is(key, "sequence_end");
}

/* A request of a sequence wants state that the server would keep. 0, "" and false say that it is
 * none. */
static status read_sequence(json_scan *s, json_string key)
{
    json_string text;
    bool flag = false;
    int64_t number = 0;
    char first = json_peek(s);
    status failure = first == '"'                   ? json_read_string(s, &text)
                     : first == 't' || first == 'f' ? json_read_bool(s, &flag)
                                                    : json_read_i64(s, &number);
    if (failure || !(first == '"' ? text.bytes > 0 : flag || number != 0))
        return failure;
    return status_fail(STATUS_UNSUPPORTED,
                       "parameter \"%.*s\" is not supported: the server keeps no state between "
                       "requests; it goes with them, as inputs and outputs",
                       (int)key.bytes, key.text);
}

static status read_parameters(parser *p)
{
    json_scan *s = &p->json;
    json_object o;
    json_string key;
    bool has_key;
    int64_t number;
    status failure = json_open_object(s, &o);
    while (!failure && !(failure = json_object_next(s, &o, &key, &has_key)) && has_key) {
        if (json_string_is(key, "binary_data_output")) {
            failure = json_read_bool(s, &p->binary_by_default);
        } else if (json_string_is(key, "truncate")) {
            failure = json_read_bool(s, &p->request->text_options.truncates);
        } else if (json_string_is(key, "timeout")) {
            failure = json_read_i64(s, &number);
            if (!failure && number < 0)
                return json_fail(s, "a timeout in microseconds before this");
            /* Longer than a day is no deadline. */
            if (!failure)
                p->request->timeout_ns = number > 86400000000ll ? 0 : (uint64_t)number * 1000;
        } else if (json_string_is(key, "priority")) {
            failure = json_read_i64(s, &number);
            if (!failure)
                p->request->priority = number < 0 ? 0 : number > 1000 ? 1000 : (int)number;
        } else if (is_of_sequence(key)) {
            failure = read_sequence(s, key);
        } else {
            failure = json_skip_value(s);
        }
    }
    return failure;
}

static status read_envelope(parser *p)
{
    json_scan *s = &p->json;
    json_object o;
    json_string key;
    bool has_key, has_inputs = false;
    status failure = json_open_object(s, &o);
    while (!failure && !(failure = json_object_next(s, &o, &key, &has_key)) && has_key) {
        if (json_string_is(key, "id")) {
            failure = json_read_string(s, &p->request->id);
        } else if (json_string_is(key, "parameters")) {
            failure = read_parameters(p);
        } else if (json_string_is(key, "inputs")) {
            has_inputs = true;
            failure = read_list(p, read_input);
        } else if (json_string_is(key, "outputs")) {
            failure = read_list(p, read_output);
        } else {
            failure = json_skip_value(s);
        }
    }
    if (!failure)
        failure = json_expect_end(s);
    if (!failure && !has_inputs)
        return status_fail(STATUS_INVALID_ARGUMENT, "\"inputs\" is missing");
    return failure;
}

status parse_kserve(infer_request *r, const infer_context *c, const char *body, size_t bytes,
                    size_t json_bytes)
{
    assert(json_bytes <= bytes);
    const model *m = r->model;
    parser p;
    status failure = infer_inputs_begin(&p.inputs, r, c);
    if (failure)
        return failure;
    arena *memory = &p.inputs.job->memory;
    p.request = r;
    p.context = c;
    p.binary = body + json_bytes;
    p.binary_end = body + bytes;
    p.binary_by_default = p.has_outputs = false;
    json_scan_init(&p.json, body, json_bytes, c->limits->json_depth_max, c->is_strict, memory);
    p.json.cancel = c->cancel;
    failure = read_envelope(&p);
    if (failure)
        return failure;
    if (p.binary != p.binary_end)
        return status_fail(STATUS_INVALID_ARGUMENT, "%zu bytes left after the binary tensors",
                           (size_t)(p.binary_end - p.binary));
    if (r->output_count == 0) {
        for (int i = 0; i < m->output_count; i++) {
            r->outputs[i] = (infer_output){.index = i};
            p.output_binary[i] = -1;
        }
        r->output_count = m->output_count;
    }
    for (int i = 0; i < r->output_count; i++)
        r->outputs[i].is_binary =
            p.output_binary[i] < 0 ? p.binary_by_default : p.output_binary[i] == 1;
    /* The id may lie in the body, which may go before the response: keep it with the job. */
    if (r->id.text) {
        r->id.text = arena_copy_string(memory, r->id.text, r->id.bytes);
        if (r->id.text == NULL)
            return status_fail(STATUS_OUT_OF_MEMORY, "no memory for the id");
    }
    return infer_inputs_end(&p.inputs);
}
