#include "server/protocol/signature.h"

#include <string.h>

#include "server/protocol/text/text_fields.h"

/* "text" and "text_pair" stand for the inputs of a model with a tokenizer. */
static const model_tensor text_inputs[] = {{.name = TEXT_INPUT,
                                            .dtype = DTYPE_BYTES,
                                            .rank = 1,
                                            .dims = {-1},
                                            .sequence_axis = -1,
                                            .is_optional = true},
                                           {.name = TEXT_PAIR_INPUT,
                                            .dtype = DTYPE_BYTES,
                                            .rank = 1,
                                            .dims = {-1},
                                            .sequence_axis = -1,
                                            .is_optional = true}};

int signature_inputs(const model *m, model_tensor out[SIGNATURE_INPUTS_MAX])
{
    int count = m->input_count;
    memcpy(out, m->inputs, (size_t)count * sizeof out[0]);
    if (m->text == NULL)
        return count;
    memcpy(out + count, text_inputs, sizeof text_inputs);
    for (int i = 0; i < count; i++)
        out[i].is_optional = true; /* a text takes their place */
    return count + 2;
}

bool signature_is_batched(const model *m)
{
    for (int i = 0; i < m->input_count; i++) {
        if (m->inputs[i].batch_axis != 0)
            return false;
    }
    return m->input_count > 0;
}

int64_t signature_dim(const model_tensor *t, int axis)
{
    return axis == t->batch_axis || axis == t->sequence_axis ? -1 : t->dims[axis];
}
