#include "server/protocol/row_jobs.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

status row_reserve(void **data, size_t *bytes, size_t wanted)
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

status row_begin(row_set *s, int64_t row)
{
    infer_scratch *scratch = s->context->scratch;
    if (row >= s->request->model->batching.queue_rows_max)
        return status_fail(STATUS_TOO_LARGE, "more than %lld rows in one request",
                           (long long)s->request->model->batching.queue_rows_max);
    size_t stride = (size_t)(1 + s->request->model->input_count) * sizeof(int64_t);
    status failure = row_reserve(&scratch->rows, &scratch->rows_bytes, (size_t)(row + 1) * stride);
    if (!failure)
        row_record(s, row)[0] = ROW_LENGTH_NONE;
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
static status build_job(row_set *s, int index, int64_t length, int64_t rows, const int64_t *members)
{
    const model *m = s->request->model;
    infer_request *r = s->request;
    job *j = r->jobs[index];
    j->rows = rows;
    j->length = length;
    for (int input = 0; input < m->input_count; input++) {
        const model_tensor *declared = &m->inputs[input];
        if (!s->is_given[input])
            continue;
        int64_t dims[TENSOR_RANK_MAX], elements;
        elements = row_elements(declared, length, s->free_dims[input]);
        dims[0] = rows;
        for (int i = 1; i < declared->rank; i++)
            dims[i] = i == declared->sequence_axis ? length
                      : declared->dims[i] >= 0     ? declared->dims[i]
                                                   : s->free_dims[input][i - 1];
        tensor *t = &j->inputs[input];
        status failure = tensor_allocate(t, &j->memory, declared->dtype, declared->rank, dims);
        if (failure)
            return failure;
        size_t bytes = (size_t)elements * dtype_bytes(declared->dtype);
        for (int64_t i = 0; i < rows; i++) {
            int64_t row = members[i];
            int64_t offset = row_record(s, row)[1 + input];
            /* Free dims are read from the last row: all rows must have used as many elements. */
            int64_t next =
                row + 1 < s->row_count ? row_record(s, row + 1)[1 + input] : s->counts[input];
            if (next - offset != elements)
                return status_fail(STATUS_INVALID_ARGUMENT,
                                   "input \"%s\": row %lld has another shape than the others",
                                   declared->name, (long long)row);
            if (bytes)
                memcpy((char *)t->data + (size_t)i * bytes,
                       (const char *)s->context->scratch->data[input] +
                           (size_t)offset * dtype_bytes(declared->dtype),
                       bytes);
        }
    }
    return infer_finish_job(m, j, s->is_given, s->context->limits);
}

static status build_jobs(row_set *s, const int64_t *lengths, const int64_t *counts)
{
    infer_request *r = s->request;
    size_t bytes = (size_t)s->row_count * sizeof(int64_t);
    /* The rows of each job, one job after the other. */
    int64_t *members = arena_allocate(&r->jobs[0]->memory, bytes);
    int64_t *next = arena_allocate(&r->jobs[0]->memory, (size_t)r->job_count * sizeof(*next));
    if (members == NULL || next == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for %lld rows",
                           (long long)s->row_count);
    for (int i = 0; i < r->job_count; i++)
        next[i] = i == 0 ? 0 : next[i - 1] + counts[i - 1];
    for (int64_t row = 0; row < s->row_count; row++)
        members[next[r->rows[row].job]++] = row;
    for (int i = 0; i < r->job_count; i++) {
        status failure = build_job(s, i, lengths[i], counts[i], members + next[i] - counts[i]);
        if (failure)
            return failure;
    }
    return STATUS_OK;
}

enum { GROUPS_MAX = 4096, PLACES = 2 * GROUPS_MAX };

/* The rows' distinct lengths: one job each. */
typedef struct groups {
    int count;
    int64_t lengths[GROUPS_MAX], counts[GROUPS_MAX]; /* counts: rows */
    uint16_t places[PLACES]; /* hash table of lengths: a group's index plus 1; 0: empty */
} groups;

/* Where a length is, or would be. */
static uint16_t *find_group(groups *g, int64_t length)
{
    size_t at = (size_t)length % PLACES;
    while (g->places[at] != 0 && g->lengths[g->places[at] - 1] != length)
        at = (at + 1) % PLACES;
    return &g->places[at];
}

/* Which job each row goes to. */
static status group_rows(row_set *s, groups *g, int capacity)
{
    infer_request *r = s->request;
    assert(r->job_count == 1);
    r->rows = arena_allocate(&r->jobs[0]->memory, (size_t)s->row_count * sizeof(*r->rows));
    if (r->rows == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for %lld rows",
                           (long long)s->row_count);
    r->row_count = s->row_count;
    for (int64_t row = 0; row < s->row_count; row++) {
        int64_t length = row_record(s, row)[0];
        uint16_t *place = find_group(g, length);
        if (*place == 0) {
            if (g->count == capacity)
                return status_fail(STATUS_INVALID_ARGUMENT,
                                   "rows of more than %d different lengths in one request",
                                   capacity);
            g->lengths[g->count] = length;
            g->counts[g->count] = 0;
            *place = (uint16_t)++g->count;
            if (g->count > r->job_count) {
                job *j = s->context->acquire_job(s->context->context);
                if (j == NULL)
                    return status_fail(STATUS_UNAVAILABLE, "no job is free: too many are in use");
                r->jobs[r->job_count++] = j;
            }
        }
        int group = *place - 1;
        r->rows[row] = (infer_row){.job = group, .row = g->counts[group]++};
    }
    return STATUS_OK;
}

status row_jobs_make(row_set *s)
{
    groups g;
    infer_request *r = s->request;
    int capacity = s->context->limits->request_jobs_max;
    capacity = r->job_capacity < capacity ? r->job_capacity : capacity;
    g.count = 0;
    memset(g.places, 0, sizeof g.places);
    status failure = group_rows(s, &g, capacity < GROUPS_MAX ? capacity : GROUPS_MAX);
    return failure ? failure : build_jobs(s, g.lengths, g.counts);
}
