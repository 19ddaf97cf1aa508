/* Body of POST /v1/models/M:predict to one job per row length. Rows are read into the thread's
 * scratch buffers, since how many there are and how long shows only at the end; then rows of equal
 * length are gathered into a job. Source: TensorFlow Serving, RESTful API. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "server/protocol/infer.h"
#include "server/protocol/tensor_scan.h"

#define ROW_LENGTH_NONE (-1)

/* A row is a record of 1 + input_count integers in scratch: its length, then where the elements of
 * each input begin. */
typedef struct parser {
    infer_request *request;
    const infer_context *context;
    const model *model;
    json_scan json;
    job *first; /* holds what belongs to the request as a whole */
    tensor_scan scans[MODEL_TENSORS_MAX];
    bool is_given[MODEL_TENSORS_MAX];
    int64_t row_count; /* of the input being read, or of all */
} parser;

typedef struct growing_scan {
    tensor_scan scan; /* first: grow() gets it */
    infer_scratch *scratch;
    int index;
    int64_t count_max; /* elements: with those of the longest row that the model takes */
} growing_scan;

static status reserve(void **data, size_t *bytes, size_t wanted)
{
    if (wanted <= *bytes)
        return STATUS_OK;
    size_t larger = *bytes ? *bytes : 4096;
    while (larger < wanted)
        larger *= 2;
    void *moved = realloc(*data, larger);
    if (moved == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for %zu bytes of rows", larger);
    *data = moved;
    *bytes = larger;
    return STATUS_OK;
}

static status grow(tensor_scan *t)
{
    growing_scan *g = (growing_scan *)t;
    size_t element = dtype_bytes(t->dtype);
    if (t->count >= g->count_max)
        return status_fail(STATUS_INVALID_ARGUMENT, "more elements than a row of the model has");
    status failure = reserve(&g->scratch->data[g->index], &g->scratch->bytes[g->index],
                             ((size_t)t->count + 1) * element);
    if (failure)
        return failure;
    t->data = g->scratch->data[g->index];
    t->capacity = (int64_t)(g->scratch->bytes[g->index] / element);
    return STATUS_OK;
}

static int64_t *row_record(parser *p, int64_t row)
{
    return (int64_t *)p->context->scratch->rows + row * (1 + p->model->input_count);
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

static status new_row(parser *p, int64_t row)
{
    infer_scratch *scratch = p->context->scratch;
    if (row >= p->model->batching.queue_rows_max)
        return status_fail(STATUS_TOO_LARGE, "more than %lld rows in one request",
                           (long long)p->model->batching.queue_rows_max);
    size_t stride = (size_t)(1 + p->model->input_count) * sizeof(int64_t);
    status failure = reserve(&scratch->rows, &scratch->rows_bytes, (size_t)(row + 1) * stride);
    if (!failure)
        row_record(p, row)[0] = ROW_LENGTH_NONE;
    return failure;
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
    int64_t *record = row_record(p, row);
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
            p->is_given[i] = is_here[i];
        if (is_here[i] != p->is_given[i])
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
        bool is_named = is_named_row(p);
        if (row > 0 && is_named != are_named)
            return status_fail(STATUS_INVALID_ARGUMENT,
                               "\"instances\": either all are objects or none is");
        are_named = is_named;
        if ((failure = new_row(p, row)))
            return failure;
        if (is_named) {
            failure = read_row_object(p, row);
        } else if (only < 0) {
            return status_fail(STATUS_INVALID_ARGUMENT,
                               "the model has several inputs: instances must be objects");
        } else {
            p->is_given[only] = true;
            failure = read_row_value(p, only, row);
        }
    }
    p->row_count = row;
    if (!failure && row == 0)
        return status_fail(STATUS_INVALID_ARGUMENT, "\"instances\" is empty");
    return failure;
}

static status fail_column(const parser *p, int input)
{
    return status_fail(STATUS_INVALID_ARGUMENT,
                       "input \"%s\": not the %lld rows of the other inputs",
                       p->model->inputs[input].name, (long long)p->row_count);
}

/* One input of the column form: an array of rows. */
static status read_column(parser *p, int input)
{
    bool is_first = true, has_element;
    int64_t row = 0;
    bool is_first_column = p->row_count < 0;
    status failure = json_open_array(&p->json);
    for (; !failure; row++) {
        failure = json_array_next(&p->json, &is_first, &has_element);
        if (failure || !has_element)
            break;
        if (is_first_column && (failure = new_row(p, row)))
            return failure;
        if (!is_first_column && row >= p->row_count)
            return fail_column(p, input);
        failure = read_row_value(p, input, row);
    }
    if (failure)
        return failure;
    if (!is_first_column && row != p->row_count)
        return fail_column(p, input);
    p->row_count = row;
    p->is_given[input] = true;
    return STATUS_OK;
}

static status read_columns(parser *p)
{
    p->row_count = -1;
    status failure = STATUS_OK;
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
    if (!failure && p->row_count <= 0)
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

/* Elements of one row of that input, at that length. */
static int64_t row_elements(const model_tensor *t, int64_t length, const int64_t *free_dims)
{
    int64_t n = 1;
    for (int i = 1; i < t->rank; i++)
        n *= i == t->sequence_axis ? length : t->dims[i] >= 0 ? t->dims[i] : free_dims[i - 1];
    return n;
}

/* Gathers the rows of job `index`, which are `members`, from the scratch buffers. */
static status build_job(parser *p, int index, int64_t length, int64_t rows, const int64_t *members)
{
    const model *m = p->model;
    infer_request *r = p->request;
    job *j = r->jobs[index];
    j->rows = rows;
    j->length = length;
    for (int input = 0; input < m->input_count; input++) {
        const model_tensor *declared = &m->inputs[input];
        if (!p->is_given[input])
            continue;
        int64_t dims[TENSOR_RANK_MAX], elements;
        elements = row_elements(declared, length, p->scans[input].dims);
        dims[0] = rows;
        for (int i = 1; i < declared->rank; i++)
            dims[i] = i == declared->sequence_axis ? length
                      : declared->dims[i] >= 0     ? declared->dims[i]
                                                   : p->scans[input].dims[i - 1];
        tensor *t = &j->inputs[input];
        status failure = tensor_allocate(t, &j->memory, declared->dtype, declared->rank, dims);
        if (failure)
            return failure;
        size_t bytes = (size_t)elements * dtype_bytes(declared->dtype);
        for (int64_t i = 0; i < rows; i++) {
            int64_t row = members[i];
            int64_t offset = row_record(p, row)[1 + input];
            /* Free dims are read from the last row: all rows must have used as many elements. */
            int64_t next =
                row + 1 < p->row_count ? row_record(p, row + 1)[1 + input] : p->scans[input].count;
            if (next - offset != elements)
                return status_fail(STATUS_INVALID_ARGUMENT,
                                   "input \"%s\": row %lld has another shape than the others",
                                   declared->name, (long long)row);
            if (bytes)
                memcpy((char *)t->data + (size_t)i * bytes,
                       (const char *)p->context->scratch->data[input] +
                           (size_t)offset * dtype_bytes(declared->dtype),
                       bytes);
        }
    }
    return infer_finish_job(m, j, p->is_given, p->context->limits);
}

static status build_jobs(parser *p, const int64_t *lengths, const int64_t *counts)
{
    infer_request *r = p->request;
    size_t bytes = (size_t)p->row_count * sizeof(int64_t);
    /* The rows of each job, one job after the other. */
    int64_t *members = arena_allocate(&p->first->memory, bytes);
    int64_t *next = arena_allocate(&p->first->memory, (size_t)r->job_count * sizeof(*next));
    if (members == NULL || next == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for %lld rows",
                           (long long)p->row_count);
    for (int i = 0; i < r->job_count; i++)
        next[i] = i == 0 ? 0 : next[i - 1] + counts[i - 1];
    for (int64_t row = 0; row < p->row_count; row++)
        members[next[r->rows[row].job]++] = row;
    for (int i = 0; i < r->job_count; i++) {
        status failure = build_job(p, i, lengths[i], counts[i], members + next[i] - counts[i]);
        if (failure)
            return failure;
    }
    return STATUS_OK;
}

/* Which job each row goes to. Rows and distinct lengths are few: a linear search. */
static status group_rows(parser *p, int64_t *lengths, int64_t *counts, int capacity)
{
    infer_request *r = p->request;
    r->rows = arena_allocate(&p->first->memory, (size_t)p->row_count * sizeof(*r->rows));
    if (r->rows == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for %lld rows",
                           (long long)p->row_count);
    r->row_count = p->row_count;
    int groups = 0;
    for (int64_t row = 0; row < p->row_count; row++) {
        int64_t length = row_record(p, row)[0];
        int g = 0;
        while (g < groups && lengths[g] != length)
            g++;
        if (g == groups) {
            if (groups == capacity)
                return status_fail(STATUS_INVALID_ARGUMENT,
                                   "rows of more than %d different lengths in one request",
                                   capacity);
            lengths[groups] = length;
            counts[groups++] = 0;
            if (g > 0) {
                job *j = p->context->acquire_job(p->context->context);
                if (j == NULL)
                    return status_fail(STATUS_UNAVAILABLE, "no job is free: too many are in use");
                r->jobs[r->job_count++] = j;
            }
        }
        r->rows[row] = (infer_row){.job = g, .row = counts[g]++};
    }
    return STATUS_OK;
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
    parser p = {.request = r, .context = c, .model = m, .first = first};
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
    int capacity = r->job_capacity < c->limits->request_jobs_max ? r->job_capacity
                                                                 : c->limits->request_jobs_max;
    enum { GROUPS_MAX = 4096 };
    int64_t lengths[GROUPS_MAX], counts[GROUPS_MAX];
    failure = group_rows(&p, lengths, counts, capacity < GROUPS_MAX ? capacity : GROUPS_MAX);
    return failure ? failure : build_jobs(&p, lengths, counts);
}
