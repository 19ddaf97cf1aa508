#include "batcher/execute/pack_copy.h"

#include <string.h>

#include "models/batching/packed_buckets.h"

static void fill_with(const tensor *t, double value)
{
    char element[16] = {0};
    size_t bytes = dtype_bytes(t->dtype);
    memset(t->data, 0, tensor_bytes(t));
    if (value == 0)
        return;
    tensor_set_number(&(tensor){.dtype = t->dtype, .data = element}, 0, value);
    for (int64_t i = 0; i < tensor_count(t); i++)
        memcpy((char *)t->data + (size_t)i * bytes, element, bytes);
}

static void clear(const model *m, tensor *inputs)
{
    for (int i = 0; i < packed_buckets_input_count(m); i++) {
        bool has_pad = i < m->input_count && !m->inputs[i].is_mask;
        fill_with(&inputs[i], has_pad ? m->inputs[i].pad_value : 0);
    }
}

/* Elements of `t` that begin at number `at`. */
static char *element_of(const tensor *t, int64_t at)
{
    return (char *)t->data + (size_t)at * dtype_bytes(t->dtype);
}

void pack_copy_in(const model *m, const batch_member *members, const pack_place *places, int count,
                  tensor *inputs)
{
    int number = 0;
    clear(m, inputs);
    for (int i = 0; i < count; i++) {
        const job *j = members[i].job;
        for (int64_t k = 0; k < members[i].rows; k++, number++) {
            pack_place place = places[number];
            packed_buckets_mark(m, inputs, number, place.row, place.offset, j->length);
            for (int t = 0; t < m->input_count; t++) {
                int64_t to = place.row * inputs[t].dims[1] + place.offset;
                memcpy(element_of(&inputs[t], to),
                       element_of(&j->inputs[t], (members[i].row + k) * j->length),
                       (size_t)j->length * dtype_bytes(inputs[t].dtype));
            }
        }
    }
}

/* Values for each token, [rows, length, n], or for each sequence, [sequences, n]. */
static void slice_sequence(const tensor *from, const model_tensor *axes, const tensor *to,
                           int64_t to_row, int number, pack_place place, int64_t length)
{
    bool is_by_token = axes->sequence_axis >= 0;
    int64_t slots = is_by_token ? from->dims[0] * from->dims[1] : from->dims[0];
    int64_t width = tensor_count(from) / slots, taken = is_by_token ? length : 1;
    int64_t first = is_by_token ? place.row * from->dims[1] + place.offset : number;
    memcpy(element_of(to, to_row * taken * width), element_of(from, first * width),
           (size_t)(taken * width) * dtype_bytes(from->dtype));
}

void pack_copy_out(const model *m, const batch_member *members, const pack_place *places, int count,
                   const tensor *outputs)
{
    int number = 0;
    for (int i = 0; i < count; i++) {
        const job *j = members[i].job;
        for (int64_t k = 0; k < members[i].rows; k++, number++)
            for (int t = 0; t < m->output_count; t++)
                slice_sequence(&outputs[t], &m->outputs[t], &j->outputs[t], members[i].row + k,
                               number, places[number], j->length);
    }
}
