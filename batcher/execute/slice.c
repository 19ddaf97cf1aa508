#include "batcher/execute/slice.h"

#include "models/batching/row_copy.h"

void slice_batch(const model *m, const batch_member *members, int count, const tensor *outputs)
{
    for (int output = 0; output < m->output_count; output++) {
        int64_t row = 0;
        for (int i = 0; i < count; i++) {
            const job *j = members[i].job;
            for (int64_t k = 0; k < members[i].rows; k++)
                row_copy(&j->outputs[output], members[i].row + k, &outputs[output], row++,
                         &m->outputs[output], j->length, NULL);
        }
    }
}
