#include "server/protocol/rows/merge_rows.h"

#include <string.h>

/* How many tokens the longest row has in that output. */
static int64_t longest(const infer_request *r, int output, int axis)
{
    int64_t most = 0;
    for (int i = 0; i < r->job_count; i++) {
        int64_t dim = r->jobs[i]->outputs[output].dims[axis];
        most = dim > most ? dim : most;
    }
    return most;
}

/* Copies row `from_row` of `from`, whose sequence axis may be shorter, to row `to_row`. */
static void copy_row(tensor *to, int64_t to_row, const tensor *from, int64_t from_row, int axis)
{
    int64_t outer = 1, inner = 1;
    for (int i = 1; i < to->rank; i++) {
        int64_t *product = axis >= 0 && i < axis ? &outer : &inner;
        if (i != axis)
            *product *= to->dims[i];
    }
    size_t element = dtype_bytes(to->dtype);
    size_t to_step = (size_t)inner * element, from_step = to_step;
    if (axis >= 0) {
        to_step *= (size_t)to->dims[axis];
        from_step *= (size_t)from->dims[axis];
    }
    char *target = (char *)to->data + (size_t)(to_row * outer) * to_step;
    const char *source = (const char *)from->data + (size_t)(from_row * outer) * from_step;
    for (int64_t i = 0; i < outer && from_step > 0; i++)
        memcpy(target + (size_t)i * to_step, source + (size_t)i * from_step, from_step);
}

static status merge(const infer_request *r, int output)
{
    const model_tensor *declared = &r->model->outputs[output];
    job *first = r->jobs[0];
    int axis = declared->sequence_axis;
    int64_t dims[TENSOR_RANK_MAX];
    tensor merged;
    if (declared->batch_axis != 0)
        return STATUS_OK; /* the same for all rows */
    memcpy(dims, first->outputs[output].dims, sizeof dims);
    dims[0] = r->row_count;
    if (axis >= 0)
        dims[axis] = longest(r, output, axis);
    status failure =
        tensor_allocate(&merged, &first->memory, declared->dtype, declared->rank, dims);
    if (failure)
        return failure;
    for (int64_t row = 0; row < r->row_count; row++) {
        const infer_row *where = &r->rows[row];
        copy_row(&merged, row, &r->jobs[where->job]->outputs[output], where->row, axis);
    }
    first->outputs[output] = merged;
    return STATUS_OK;
}

status merge_rows(const infer_request *r)
{
    status failure = STATUS_OK;
    if (r->rows == NULL || r->job_count == 1)
        return STATUS_OK; /* one job has its rows in order */
    for (int i = 0; !failure && i < r->output_count; i++)
        failure = merge(r, r->outputs[i].index);
    return failure;
}
