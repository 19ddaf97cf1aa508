#include "kernels/embedding.h"

#include "kernels/kernels_list.h"

void embedding_sum_f32_scalar(const struct embedding_sum_f32 *e)
{
    for (size_t t = 0; t < e->tokens; t++) {
        float *out = e->out + t * e->out_stride;
        for (size_t i = 0; i < e->table_count; i++) {
            const float *row = e->tables[i] + (size_t)e->ids[i][t] * e->width;
            for (size_t x = 0; x < e->width; x++)
                out[x] = i ? out[x] + row[x] : row[x];
        }
    }
}
