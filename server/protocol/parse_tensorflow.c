/* Body of POST /v1/models/M:predict to one job per row length. Rows are read into the thread's
 * scratch buffers, since how many there are and how long shows only at the end; then rows of equal
 * length are gathered into a job. Source: TensorFlow Serving, RESTful API. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "server/protocol/row_jobs.h"
#include "server/protocol/tensor_scan.h"
#include "server/protocol/text/text_fields.h"

typedef struct parser {
    infer_request *request;
    const infer_context *context;
    const model *model;
    json_scan json;
    job *first; /* holds what belongs to the request as a whole */
    tensor_scan scans[MODEL_TENSORS_MAX];
    row_set rows; /* row_count: of the input being read, or of all */
} parser;

typedef struct growing_scan {
    tensor_scan scan; /* first: grow() gets it */
    infer_scratch *scratch;
    int index;
    int64_t count_max; /* elements: with those of the longest row that the model takes */
} growing_scan;

static status grow(tensor_scan *t)
{
    growing_scan *g = (growing_scan *)t;
    size_t element = dtype_bytes(t->dtype);
    if (t->count >= g->count_max)
        return status_fail(STATUS_INVALID_ARGUMENT, "more elements than a row of the model has");
    status failure = row_reserve(&g->scratch->data[g->index], &g->scratch->bytes[g->index],
                                 ((size_t)t->count + 1) * element);
    if (failure)
        return failure;
    t->data = g->scratch->data[g->index];
    t->capacity = (int64_t)(g->scratch->bytes[g->index] / element);
    return STATUS_OK;
}

/* Elements of the longest row of that input. */
static int64_t row_elements_max(const model *m, const model_tensor *t)
{
    int64_t n = 1, dim;
    for (int i = 1; i < t->rank; i++) {
        dim = i == t->sequence_axis ? m->batching.sequence_max : t->dims[i];
        if (dim < 0 || (i == t->sequence_axis && dim == 0) || __builtin_mul_overflow(n, dim, &n))
            return INT64_MAX; /* it is not known: the body's length is the limit */
    }
    return n;
}

/* The value of one input in one row: its shape is the input's without the batch axis. */
static status read_row_value(parser *p, int input, int64_t row)
{
    const model_tensor *declared = &p->model->inputs[input];
    growing_scan g = {.scan = p->scans[input], .scratch = p->context->scratch, .index = input};
    tensor_scan *t = &g.scan;
    int64_t before = t->count;
    if (__builtin_add_overflow(before, row_elements_max(p->model, declared), &g.count_max))
        g.count_max = INT64_MAX;
    status failure = tensor_scan_value(&p->json, t);
    p->scans[input] = *t;
    if (failure)
        return status_prefix(failure, "input \"%s\", row %lld", declared->name, (long long)row);
    int64_t *record = row_record(&p->rows, row);
    record[1 + input] = before;
    bool fits = t->rank == declared->rank - 1;
    for (int i = 1; fits && i < declared->rank; i++) {
        int64_t dim = t->dims[i - 1];
        if (i == declared->sequence_axis) {
            if (record[0] != ROW_LENGTH_NONE && record[0] != dim)
                return status_fail(STATUS_INVALID_ARGUMENT,
                                   "input \"%s\", row %lld: %lld tokens, but another input has "
                                   "%lld",
                                   declared->name, (long long)row, (long long)dim,
                                   (long long)record[0]);
            record[0] = dim;
            failure = infer_check_size(p->model, 1, dim, p->context->limits);
            if (failure)
                return failure;
        } else if (declared->dims[i] >= 0) {
            fits = declared->dims[i] == dim;
        }
    }
    if (!fits) {
        char found[TENSOR_SHAPE_TEXT_BYTES], wanted[TENSOR_SHAPE_TEXT_BYTES];
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "input \"%s\", row %lld: shape %s, but the model takes %s (a row has "
                           "no batch)",
                           declared->name, (long long)row,
                           tensor_shape_text(found, t->rank, t->dims),
                           infer_dims_text(wanted, declared));
    }
    return STATUS_OK;
}

/* {"x": ..., "y": ...}: every required input, nothing else, the same in each row. */
static status read_row_object(parser *p, int64_t row)
{
    json_object o;
    json_string key;
    bool has_key, is_here[MODEL_TENSORS_MAX] = {false};
    status failure = json_open_object(&p->json, &o);
    while (!failure && !(failure = json_object_next(&p->json, &o, &key, &has_key)) && has_key) {
        int input = infer_find_input(p->model, key);
        if (input < 0)
            return status_fail(STATUS_INVALID_ARGUMENT, "the model has no input \"%.*s\"",
                               (int)(key.bytes < 200 ? key.bytes : 200), key.text);
        is_here[input] = true;
        failure = read_row_value(p, input, row);
    }
    for (int i = 0; !failure && i < p->model->input_count; i++) {
        if (row == 0)
            p->rows.is_given[i] = is_here[i];
        if (is_here[i] != p->rows.is_given[i])
            return status_fail(STATUS_INVALID_ARGUMENT,
                               "instance %lld: input \"%s\" is in some instances only",
                               (long long)row, p->model->inputs[i].name);
    }
    return failure;
}

/* {"b64": ...} is a value of a single BYTES input, {"name": ...} a row by names. */
static bool is_named_row(parser *p)
{
    if (json_peek(&p->json) != '{')
        return false;
    if (p->model->input_count != 1 || p->model->inputs[0].dtype != DTYPE_BYTES)
        return true;
    json_scan ahead = p->json;
    json_object o;
    json_string key;
    bool has_key;
    return json_open_object(&ahead, &o) || json_object_next(&ahead, &o, &key, &has_key) ||
           !has_key || !json_string_is(key, "b64");
}

static int only_required_input(const model *m)
{
    int found = -1, required = 0;
    for (int i = 0; i < m->input_count; i++) {
        if (!m->inputs[i].is_optional) {
            found = i;
            required++;
        }
    }
    return required == 1 ? found : -1;
}

static status fail_mixed(void)
{
    return status_fail(STATUS_INVALID_ARGUMENT, "\"instances\": either all are texts or none is");
}

static status read_text_row(parser *p, int64_t row)
{
    if (row != p->request->texts.count)
        return fail_mixed();
    return text_read_row(&p->json, &p->request->texts);
}

static status read_instances(parser *p)
{
    bool is_first = true, has_element, are_named = false;
    int only = only_required_input(p->model);
    int64_t row = 0;
    status failure = json_open_array(&p->json);
    for (; !failure; row++) {
        failure = json_array_next(&p->json, &is_first, &has_element);
        if (failure || !has_element)
            break;
        if (p->model->text != NULL && text_is_next(&p->json)) {
            failure = read_text_row(p, row);
            continue;
        }
        bool is_named = is_named_row(p);
        if (p->request->texts.count > 0)
            return fail_mixed();
        if (row > 0 && is_named != are_named)
            return status_fail(STATUS_INVALID_ARGUMENT,
                               "\"instances\": either all are objects or none is");
        are_named = is_named;
        if ((failure = row_begin(&p->rows, row)))
            return failure;
        if (is_named) {
            failure = read_row_object(p, row);
        } else if (only < 0) {
            return status_fail(STATUS_INVALID_ARGUMENT,
                               "the model has several inputs: instances must be objects");
        } else {
            p->rows.is_given[only] = true;
            failure = read_row_value(p, only, row);
        }
    }
    p->rows.row_count = row;
    if (!failure && row == 0)
        return status_fail(STATUS_INVALID_ARGUMENT, "\"instances\" is empty");
    return failure;
}

static status fail_column(const parser *p, int input)
{
    return status_fail(STATUS_INVALID_ARGUMENT,
                       "input \"%s\": not the %lld rows of the other inputs",
                       p->model->inputs[input].name, (long long)p->rows.row_count);
}

/* One input of the column form: an array of rows. */
static status read_column(parser *p, int input)
{
    bool is_first = true, has_element;
    int64_t row = 0;
    bool is_first_column = p->rows.row_count < 0;
    status failure = json_open_array(&p->json);
    for (; !failure; row++) {
        failure = json_array_next(&p->json, &is_first, &has_element);
        if (failure || !has_element)
            break;
        if (is_first_column && (failure = row_begin(&p->rows, row)))
            return failure;
        if (!is_first_column && row >= p->rows.row_count)
            return fail_column(p, input);
        failure = read_row_value(p, input, row);
    }
    if (failure)
        return failure;
    if (!is_first_column && row != p->rows.row_count)
        return fail_column(p, input);
    p->rows.row_count = row;
    p->rows.is_given[input] = true;
    return STATUS_OK;
}

static status read_columns(parser *p)
{
    p->rows.row_count = -1;
    status failure = STATUS_OK;
    if (p->model->text != NULL && text_columns_are_next(&p->json))
        return text_read_columns(&p->json, &p->request->texts);
    if (json_peek(&p->json) != '{') {
        int only = only_required_input(p->model);
        if (only < 0)
            return status_fail(STATUS_INVALID_ARGUMENT,
                               "the model has several inputs: \"inputs\" must be an object");
        failure = read_column(p, only);
    } else {
        json_object o;
        json_string key;
        bool has_key;
        failure = json_open_object(&p->json, &o);
        while (!failure && !(failure = json_object_next(&p->json, &o, &key, &has_key)) && has_key) {
            int input = infer_find_input(p->model, key);
            if (input < 0)
                return status_fail(STATUS_INVALID_ARGUMENT, "the model has no input \"%.*s\"",
                                   (int)(key.bytes < 200 ? key.bytes : 200), key.text);
            failure = read_column(p, input);
        }
    }
    if (!failure && p->rows.row_count <= 0)
        return status_fail(STATUS_INVALID_ARGUMENT, "\"inputs\" is empty");
    return failure;
}

static status read_envelope(parser *p)
{
    json_object o;
    json_string key, text;
    bool has_key, has_rows = false;
    status failure = json_open_object(&p->json, &o);
    while (!failure && !(failure = json_object_next(&p->json, &o, &key, &has_key)) && has_key) {
        bool is_instances = json_string_is(key, "instances");
        if (is_instances || json_string_is(key, "inputs")) {
            if (has_rows)
                return status_fail(STATUS_INVALID_ARGUMENT,
                                   "\"instances\" and \"inputs\" exclude each other");
            has_rows = true;
            p->request->protocol = is_instances ? INFER_TENSORFLOW_ROWS : INFER_TENSORFLOW_COLUMNS;
            failure = is_instances ? read_instances(p) : read_columns(p);
        } else if (json_string_is(key, "signature_name")) {
            failure = json_read_string(&p->json, &text);
            if (!failure && !json_string_is(text, "serving_default") && text.bytes > 0)
                return status_fail(STATUS_INVALID_ARGUMENT,
                                   "signature \"%.*s\" is unknown: there is serving_default",
                                   (int)(text.bytes < 100 ? text.bytes : 100), text.text);
        } else {
            failure = json_skip_value(&p->json);
        }
    }
    if (!failure)
        failure = json_expect_end(&p->json);
    if (!failure && !has_rows)
        return status_fail(STATUS_INVALID_ARGUMENT, "\"instances\" or \"inputs\" is missing");
    return failure;
}

status parse_tensorflow(infer_request *r, const infer_context *c, const char *body, size_t bytes)
{
    const model *m = r->model;
    for (int i = 0; i < m->input_count; i++) {
        if (m->inputs[i].batch_axis != 0)
            return status_fail(STATUS_UNSUPPORTED,
                               "input \"%s\" has no batch dimension: use /v2/models/%s/infer",
                               m->inputs[i].name, m->name);
    }
    job *first = c->acquire_job(c->context);
    if (first == NULL)
        return status_fail(STATUS_UNAVAILABLE, "no job is free: too many are in use");
    r->jobs[r->job_count++] = first;
    parser p = {.request = r,
                .context = c,
                .model = m,
                .rows = {.request = r, .context = c},
                .first = first};
    for (int i = 0; i < m->input_count; i++) {
        size_t element = dtype_bytes(m->inputs[i].dtype);
        p.scans[i] = (tensor_scan){.dtype = m->inputs[i].dtype,
                                   .data = c->scratch->data[i],
                                   .capacity = (int64_t)(c->scratch->bytes[i] / element),
                                   .grow = grow,
                                   .takes_base64 = true};
    }
    json_scan_init(&p.json, body, bytes, c->limits->json_depth_max, c->is_strict, &first->memory);
    p.json.cancel = c->cancel;
    status failure = read_envelope(&p);
    if (failure)
        return failure;
    for (int i = 0; i < m->output_count; i++)
        r->outputs[i] = (infer_output){.index = i, .is_binary = false};
    r->output_count = m->output_count;
    if (r->texts.count > 0)
        return STATUS_OK; /* rows are made of them when they are tokens */
    for (int i = 0; i < m->input_count; i++) {
        p.rows.counts[i] = p.scans[i].count;
        p.rows.free_dims[i] = p.scans[i].dims;
    }
    return row_jobs_make(&p.rows);
}
