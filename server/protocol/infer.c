#include "server/protocol/infer.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/whole/whole.h"
#include "server/protocol/text/text_fields.h"

void infer_scratch_dispose(infer_scratch *s)
{
    for (int i = 0; i < MODEL_TENSORS_MAX; i++)
        free(s->data[i]);
    free(s->rows);
    memset(s, 0, sizeof(*s));
}

void infer_request_init(infer_request *r, const model *m, infer_protocol protocol, job **jobs,
                        int job_capacity)
{
    /* Field by field: the outputs array is large and output_count bounds it. */
    r->model = m;
    r->protocol = protocol;
    r->id = (json_string){NULL, 0};
    r->rows_as = INFER_ROWS_JSON;
    r->output_count = 0;
    r->timeout_ns = 0;
    r->priority = m->priority;
    r->jobs = jobs;
    r->job_count = 0;
    r->job_capacity = job_capacity;
    r->rows = NULL;
    r->row_count = 0;
    r->texts = (text_list){NULL, 0, 0, 0};
    r->text_options = (text_options){.truncates = true};
    r->language = NULL;
    r->borrows_body = false;
}

static int find(const model_tensor *tensors, int count, json_string name)
{
    for (int i = 0; i < count; i++) {
        if (json_string_is(name, tensors[i].name))
            return i;
    }
    return -1;
}

int infer_find_input(const model *m, json_string name)
{
    return find(m->inputs, m->input_count, name);
}

int infer_find_output(const model *m, json_string name)
{
    return find(m->outputs, m->output_count, name);
}

status infer_add_output(infer_request *r, json_string name)
{
    int index = infer_find_output(r->model, name);
    if (index < 0)
        return status_fail(STATUS_INVALID_ARGUMENT, "the model has no output \"%.*s\"",
                           (int)(name.bytes < 200 ? name.bytes : 200), name.text);
    for (int i = 0; i < r->output_count; i++) {
        if (r->outputs[i].index == index)
            return status_fail(STATUS_INVALID_ARGUMENT, "output \"%s\" twice",
                               r->model->outputs[index].name);
    }
    r->outputs[r->output_count++] = (infer_output){.index = index};
    return STATUS_OK;
}

bool infer_is_region_key(json_string key)
{
    return json_string_is(key, "shared_memory_region") ||
           json_string_is(key, "shared_memory_offset") ||
           json_string_is(key, "shared_memory_byte_size");
}

status infer_check_region(const infer_region *region)
{
    bool has_name = region->name.bytes > 0;
    if (!has_name && (region->bytes > 0 || region->offset > 0))
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "parameter \"shared_memory_region\" is missing");
    if (has_name && region->bytes == 0)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "parameter \"shared_memory_byte_size\" is missing, or 0");
    return STATUS_OK;
}

status infer_fail_region(const infer_region *region)
{
    return status_fail(STATUS_INVALID_ARGUMENT,
                       "shared memory region \"%.*s\" is not registered, or this client may not "
                       "use it",
                       (int)(region->name.bytes < 200 ? region->name.bytes : 200),
                       region->name.text);
}

status infer_set_region(infer_request *r, const infer_context *c, const infer_region *region,
                        arena *memory)
{
    infer_output *o = &r->outputs[r->output_count - 1];
    const char *name = r->model->outputs[o->index].name;
    status failure =
        c->regions != NULL ? c->regions->check(c->regions, region) : infer_fail_region(region);
    if (failure)
        return status_prefix(failure, "output \"%s\"", name);
    o->region = *region;
    o->region.name.text = arena_copy_string(memory, region->name.text, region->name.bytes);
    return o->region.name.text != NULL ? STATUS_OK
                                       : status_fail(STATUS_OUT_OF_MEMORY, "no memory for a name");
}

const char *infer_dims_text(char text[TENSOR_SHAPE_TEXT_BYTES], const model_tensor *t)
{
    int n = snprintf(text, TENSOR_SHAPE_TEXT_BYTES, "[");
    for (int i = 0; i < t->rank; i++) {
        const char *comma = i ? "," : "";
        if (i == t->batch_axis)
            n += snprintf(text + n, (size_t)(TENSOR_SHAPE_TEXT_BYTES - n), "%sbatch", comma);
        else if (t->dims[i] < 0 && i != t->sequence_axis && !(t->dim_names && t->dim_names[i]))
            n += snprintf(text + n, (size_t)(TENSOR_SHAPE_TEXT_BYTES - n), "%sany", comma);
        else if (t->dims[i] < 0 && i != t->sequence_axis)
            n += snprintf(text + n, (size_t)(TENSOR_SHAPE_TEXT_BYTES - n), "%s%.23s", comma,
                          t->dim_names[i]);
        else if (i == t->sequence_axis)
            n += snprintf(text + n, (size_t)(TENSOR_SHAPE_TEXT_BYTES - n), "%ssequence", comma);
        else
            n += snprintf(text + n, (size_t)(TENSOR_SHAPE_TEXT_BYTES - n), "%s%lld", comma,
                          (long long)t->dims[i]);
    }
    snprintf(text + n, (size_t)(TENSOR_SHAPE_TEXT_BYTES - n), "]");
    return text;
}

static status fail_shape(const model_tensor *declared, const tensor *t)
{
    char given[TENSOR_SHAPE_TEXT_BYTES], wanted[TENSOR_SHAPE_TEXT_BYTES];
    return status_fail(STATUS_INVALID_ARGUMENT, "input \"%s\": shape %s, but the model takes %s",
                       declared->name, tensor_shape_text(given, t->rank, t->dims),
                       infer_dims_text(wanted, declared));
}

static status agree(int64_t *common, int64_t found, const char *input, const char *what)
{
    if (*common >= 0 && *common != found)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "input \"%s\": %lld %s, but another input has %lld", input,
                           (long long)found, what, (long long)*common);
    *common = found;
    return STATUS_OK;
}

status infer_check_input(const model *m, int index, const tensor *t, job *j)
{
    const model_tensor *declared = &m->inputs[index];
    if (t->dtype != declared->dtype)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "input \"%s\": datatype %s, but the model takes %s", declared->name,
                           dtype_kserve_name(t->dtype), dtype_kserve_name(declared->dtype));
    if (t->rank != declared->rank)
        return fail_shape(declared, t);
    for (int i = 0; i < t->rank; i++) {
        status failure = STATUS_OK;
        if (i == declared->batch_axis)
            failure = agree(&j->rows, t->dims[i], declared->name, "rows");
        else if (i == declared->sequence_axis)
            failure = agree(&j->length, t->dims[i], declared->name, "tokens");
        else if (declared->dims[i] >= 0 && declared->dims[i] != t->dims[i])
            failure = fail_shape(declared, t);
        if (failure)
            return failure;
    }
    return STATUS_OK;
}

static void fill(tensor *t, double value)
{
    int64_t count = tensor_count(t);
    if (value == 0 || t->dtype == DTYPE_BYTES)
        return; /* allocated zeroed */
    for (int64_t i = 0; i < count; i++)
        tensor_set_number(t, i, value);
}

static status fill_optional(const model *m, int index, job *j)
{
    const model_tensor *declared = &m->inputs[index];
    if (!declared->is_optional)
        return status_fail(STATUS_INVALID_ARGUMENT, "input \"%s\" is missing", declared->name);
    int64_t dims[TENSOR_RANK_MAX];
    for (int i = 0; i < declared->rank; i++)
        dims[i] = i == declared->batch_axis      ? j->rows
                  : i == declared->sequence_axis ? j->length
                                                 : declared->dims[i];
    status failure =
        tensor_allocate(&j->inputs[index], &j->memory, declared->dtype, declared->rank, dims);
    if (!failure)
        fill(&j->inputs[index], declared->is_mask ? 1 : declared->default_value);
    return failure;
}

/* Here, so that every device gives the same error: a CPU would read beyond a table, XLA clamp, ONNX
 * count from the end. */
static status check_ids(const model_tensor *declared, const tensor *t)
{
    int64_t per_row = t->rank > 1 && t->dims[0] > 0 ? tensor_count(t) / t->dims[0] : 1;
    for (int64_t i = 0, count = tensor_count(t); i < count; i++) {
        int64_t id = t->dtype == DTYPE_I64   ? ((const int64_t *)t->data)[i]
                     : t->dtype == DTYPE_I32 ? ((const int32_t *)t->data)[i]
                                             : tensor_get_integer(t, i);
        if (id < 0 || id >= declared->id_limit)
            return status_fail(STATUS_INVALID_ARGUMENT,
                               "input \"%s\": %lld at row %lld, position %lld; ids are 0 to %lld",
                               declared->name, (long long)id, (long long)(i / per_row),
                               (long long)(i % per_row), (long long)declared->id_limit - 1);
    }
    return STATUS_OK;
}

/* Bytes of the outputs; SIZE_MAX where they do not fit. */
static size_t output_bytes(const model *m, int64_t rows, int64_t length)
{
    size_t sum = 0, bytes;
    for (int i = 0; i < m->output_count; i++) {
        int64_t dims[TENSOR_RANK_MAX];
        tensor t;
        if (!model_tensor_dims(m, true, i, rows, length, dims))
            continue; /* job_allocate_outputs() says so */
        if (tensor_set_shape(&t, m->outputs[i].dtype, m->outputs[i].rank, dims))
            return SIZE_MAX;
        bytes = tensor_bytes(&t);
        if (__builtin_add_overflow(sum, bytes, &sum))
            return SIZE_MAX;
    }
    return sum;
}

status infer_check_size(const model *m, int64_t rows, int64_t length, const server_limits *limits)
{
    int64_t tokens_max = m->batching.sequence_max;
    if (rows > m->batching.queue_rows_max)
        return status_fail(STATUS_TOO_LARGE, "%lld rows in one request: the limit is %lld",
                           (long long)rows, (long long)m->batching.queue_rows_max);
    if (tokens_max > 0 && length > tokens_max)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "a row of %lld tokens: the model's limit is %lld", (long long)length,
                           (long long)tokens_max);
    size_t bytes = output_bytes(m, rows < 0 ? 1 : rows, length < 0 ? 1 : length);
    if (bytes > limits->output_bytes_max)
        return status_fail(STATUS_TOO_LARGE, "outputs of %zu bytes: the limit is %zu", bytes,
                           limits->output_bytes_max);
    return STATUS_OK;
}

status infer_check_texts(infer_request *r, const bool *is_given)
{
    for (int i = 0; i < r->model->input_count; i++) {
        if (is_given[i])
            return status_fail(STATUS_INVALID_ARGUMENT,
                               "inputs \"text\" and \"%s\" exclude each other",
                               r->model->inputs[i].name);
    }
    return text_check(&r->texts);
}

status infer_check_outputs(const model *m, const tensor *outputs, const server_limits *limits)
{
    size_t sum = 0;
    for (int i = 0; i < m->output_count; i++)
        sum += tensor_bytes(&outputs[i]);
    return sum <= limits->output_bytes_max
               ? STATUS_OK
               : status_fail(STATUS_TOO_LARGE, "outputs of %zu bytes: the limit is %zu", sum,
                             limits->output_bytes_max);
}

status infer_finish_job(const model *m, job *j, const bool *is_given, const server_limits *limits)
{
    if (j->rows < 0)
        j->rows = model_is_whole(m) ? whole_count_rows(m, j->inputs) : 1;
    if (j->length < 0)
        j->length = m->batching.sequence_max > 0 ? 1 : 0;
    if (j->rows == 0)
        return status_fail(STATUS_INVALID_ARGUMENT, "the batch has no rows");
    if (m->batching.sequence_max > 0 && j->length == 0)
        return status_fail(STATUS_INVALID_ARGUMENT, "rows of 0 tokens");
    status failure = infer_check_size(m, j->rows, j->length, limits);
    if (failure)
        return failure;
    for (int i = 0; i < m->input_count; i++) {
        failure = is_given[i] ? STATUS_OK : fill_optional(m, i, j);
        if (!failure && m->inputs[i].id_limit > 0)
            failure = check_ids(&m->inputs[i], &j->inputs[i]);
        if (failure)
            return failure;
    }
    return job_allocate_outputs(j);
}
