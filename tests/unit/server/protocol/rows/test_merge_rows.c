/* Rows that went to jobs by their length come back as one tensor, in order. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "server/protocol/rows/merge_rows.h"

static model the_model = {.output_count = 2};
static job jobs[2];
static job *list[2] = {&jobs[0], &jobs[1]};
static infer_row rows[3] = {{1, 0}, {0, 0}, {1, 1}};

static void make_output(int index, int rank, int sequence_axis)
{
    model_tensor *t = &the_model.outputs[index];
    *t = (model_tensor){.dtype = DTYPE_F32, .rank = rank, .sequence_axis = sequence_axis};
    for (int j = 0; j < 2; j++) {
        int64_t dims[3] = {j + 1, 2, 2}; /* of job 0: one row; of job 1: two */
        if (sequence_axis >= 0)
            dims[sequence_axis] = j + 1;
        tensor *out = &jobs[j].outputs[index];
        cr_assert_eq(tensor_allocate(out, &jobs[j].memory, DTYPE_F32, rank, dims), STATUS_OK);
        for (int64_t i = 0; i < tensor_count(out); i++)
            ((float *)out->data)[i] = (float)(100 * j + i);
    }
}

static void check(int index, const float *wanted, int64_t count)
{
    const tensor *t = &jobs[0].outputs[index];
    cr_assert_eq(tensor_count(t), count);
    for (int64_t i = 0; i < count; i++)
        cr_assert_float_eq(((float *)t->data)[i], wanted[i], 0, "element %lld", (long long)i);
}

Test(merge_rows, rows_come_back_in_order_and_shorter_ones_end_with_zeros)
{
    infer_request r = {.model = &the_model, .jobs = list, .job_count = 2, .rows = rows};
    r.row_count = 3;
    r.output_count = 2;
    r.outputs[0].index = 0;
    r.outputs[1].index = 1;
    make_output(0, 2, -1); /* [rows, 2] */
    make_output(1, 3, 1);  /* [rows, tokens, 2]: one token in job 0, two in job 1 */
    cr_assert_eq(merge_rows(&r), STATUS_OK);
    check(0, (float[]){100, 101, 0, 1, 102, 103}, 6);
    check(1, (float[]){100, 101, 102, 103, 0, 1, 0, 0, 104, 105, 106, 107}, 12);
    for (int j = 0; j < 2; j++)
        arena_dispose(&jobs[j].memory);
}

Test(merge_rows, a_sequence_axis_may_be_the_last)
{
    infer_request r = {.model = &the_model, .jobs = list, .job_count = 2, .rows = rows};
    r.row_count = 3;
    r.output_count = 1;
    r.outputs[0].index = 0;
    make_output(0, 3, 2); /* [rows, 2, tokens] */
    cr_assert_eq(merge_rows(&r), STATUS_OK);
    check(0, (float[]){100, 101, 102, 103, 0, 0, 1, 0, 104, 105, 106, 107}, 12);
    for (int j = 0; j < 2; j++)
        arena_dispose(&jobs[j].memory);
}
