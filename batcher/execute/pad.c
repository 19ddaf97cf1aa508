#include "batcher/execute/pad.h"

#include <assert.h>

#include "models/batching/row_copy.h"

static void pad_input(const model *m, int input, const batch_member *members, int count, tensor *to)
{
    const model_tensor *declared = &m->inputs[input];
    tensor_string buffer = {0}; /* the largest element */
    if (to->dtype != DTYPE_BYTES) {
        tensor element = {.dtype = to->dtype, .data = &buffer};
        tensor_set_number(&element, 0, declared->is_mask ? 0 : declared->pad_value);
    }
    int64_t row = 0;
    for (int i = 0; i < count; i++) {
        const job *j = members[i].job;
        for (int64_t k = 0; k < members[i].rows; k++)
            row_copy(to, row++, &j->inputs[input], members[i].row + k, declared, j->length,
                     &buffer);
    }
    if (declared->batch_axis != 0)
        return;
    assert(row <= to->dims[0]);
    const batch_member *first = &members[0];
    while (row < to->dims[0])
        row_copy(to, row++, &first->job->inputs[input], first->row, declared, first->job->length,
                 &buffer);
}

void pad_batch(const model *m, const batch_member *members, int count, tensor *inputs)
{
    assert(count > 0);
    for (int i = 0; i < m->input_count; i++)
        pad_input(m, i, members, count, &inputs[i]);
}
