#ifndef SERVER_PROTOCOL_ROW_JOBS_H
#define SERVER_PROTOCOL_ROW_JOBS_H

#include "server/protocol/infer.h"

/* Rows of unknown count and lengths become jobs: they are collected in the thread's scratch
 * buffers, one per input, and then rows of equal length are gathered into a job. */

#define ROW_LENGTH_NONE (-1)

typedef struct row_set {
    infer_request *request;
    const infer_context *context;
    int64_t row_count;
    bool is_given[MODEL_TENSORS_MAX];            /* inputs that all rows have */
    int64_t counts[MODEL_TENSORS_MAX];           /* elements of each input in its scratch buffer */
    const int64_t *free_dims[MODEL_TENSORS_MAX]; /* of a row's value, where the model has none */
} row_set;

/* A row is a record of 1 + input_count integers in scratch: its length, then where the elements of
 * each input begin. */
static inline int64_t *row_record(const row_set *s, int64_t row)
{
    return (int64_t *)s->context->scratch->rows + row * (1 + s->request->model->input_count);
}

/* Makes a scratch buffer of `*bytes` at least as large as `wanted`. STATUS_OUT_OF_MEMORY. */
status row_reserve(void **data, size_t *bytes, size_t wanted) MUST_CHECK;

/* A record for row `row`, the next one, without a length. STATUS_TOO_LARGE: more rows than the
 * model's queue holds. */
status row_begin(row_set *s, int64_t row) MUST_CHECK;

/* Gathers all rows into jobs of the request, which has one already, and sets request->rows. As
 * infer_finish_job(); STATUS_INVALID_ARGUMENT: more different lengths than a request may have jobs;
 * STATUS_UNAVAILABLE: no job is free. */
status row_jobs_make(row_set *s) MUST_CHECK;

#endif
