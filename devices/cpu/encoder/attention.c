#include <math.h>
#include <string.h>

#include "devices/cpu/encoder/internal.h"
#include "kernels/attention.h"
#include "kernels/gemm_f32.h"

/* Queries, keys and values of a chunk: from their linear layer to the input of the next one. */

void cpu_encoder_rms_norm(const kernels *k, const encoder_norm *norm, size_t rows, size_t width,
                          const float *x, float *out, size_t stride)
{
    for (size_t r = 0; r < rows; r++, x += stride, out += stride) {
        double squares = 0;
        for (size_t i = 0; i < width; i++)
            squares += (double)x[i] * x[i];
        float factor = (float)(1 / sqrt(squares / (double)width + (double)norm->epsilon));
        k->mul_f32(x, 1, &factor, 0, out, width);
        k->mul_f32(out, 1, norm->scale->data, 1, out, width);
    }
}

/* Elements i and i + half of a head turn by the angle of its position. */
static void rotate(float *x, size_t half, const float *cosines, const float *sines)
{
    for (size_t i = 0; i < half; i++) {
        float a = x[i], b = x[i + half];
        x[i] = a * cosines[i] - b * sines[i];
        x[i + half] = b * cosines[i] + a * sines[i];
    }
}

void cpu_encoder_step_turn(cpu_encoder_pass *p, int worker, size_t first, size_t count)
{
    (void)worker;
    const encoder *s = &p->e->source;
    const encoder_layer *l = &s->layers[p->layer_index];
    const cpu_encoder_rotary *r = l->rotary ? cpu_encoder_rotary_of(p->e, l->rotary) : NULL;
    size_t size = (size_t)s->head_dim, heads = (size_t)s->heads,
           half = r ? (size_t)l->rotary->dims / 2 : 0;
    size_t all = heads + (size_t)s->kv_heads, begin;
    size_t rows = cpu_encoder_items(first, count, CPU_ENCODER_SPLIT_ROWS, p->tokens, &begin);
    for (size_t row = begin; row < begin + rows; row++) {
        float *x = p->scratch.qkv + row * cpu_encoder_qkv_width(s);
        size_t at = (size_t)p->scratch.ids[1][row] * half;
        if (l->query_norm.scale)
            cpu_encoder_rms_norm(p->e->options.kernels, &l->query_norm, heads, size, x, x, size);
        if (l->key_norm.scale)
            cpu_encoder_rms_norm(p->e->options.kernels, &l->key_norm, all - heads, size,
                                 x + heads * size, x + heads * size, size);
        for (size_t h = 0; h < all && r; h++)
            rotate(x + h * size, half, r->cosines + at, r->sines + at);
    }
}

/* Adds scale * x[i] . table[row of i - j] to score (i, j), or, with `of_keys`, x[j] . table[...].
 * `products` has room for a number per token and row of the table in use. */
static void add_distances(const cpu_encoder *e, const float *x, const float *table, bool of_keys,
                          size_t length, float *products, float *scores)
{
    const encoder *s = &e->source;
    size_t size = (size_t)s->head_dim, width = cpu_encoder_attended_width(s);
    int64_t reach = (int64_t)length - 1, least = encoder_distance_row(s, -reach);
    size_t rows = (size_t)(encoder_distance_row(s, reach) - least + 1);
    e->options.kernels->gemm_unpacked_f32(
        &(gemm_f32_unpacked){.m = length,
                             .n = rows,
                             .k = size,
                             .a = x,
                             .a_stride = cpu_encoder_qkv_width(s),
                             .b = table + (size_t)least * width,
                             .b_row_stride = 1,
                             .b_column_stride = width,
                             .c = products,
                             .c_stride = rows,
                             .epilogue = {.scale = s->attention_scale}});
    for (size_t i = 0; i < length; i++)
        for (size_t j = 0; j < length; j++) {
            const int32_t row =
                e->distance_rows[(size_t)e->length_max - 1 + i - j] - (int32_t)least;
            scores[i * length + j] += products[(of_keys ? j : i) * rows + (size_t)row];
        }
}

/* What distances add to the scores of one sequence and head: own->distances, [length, length].
 * Returns the length. */
static size_t score_distances(const cpu_encoder_pass *p, const cpu_encoder_scratch *own,
                              size_t sequence, size_t head)
{
    const cpu_encoder *e = p->e;
    const encoder *s = &e->source;
    const cpu_encoder_distances *d = &e->distances[p->layer_index];
    size_t first = (size_t)p->scratch.offsets[sequence], size = (size_t)s->head_dim;
    size_t length = (size_t)p->scratch.offsets[sequence + 1] - first;
    const float *q = p->scratch.qkv + first * cpu_encoder_qkv_width(s) + head * size;
    float *products = own->distances + length * length;
    memset(own->distances, 0, length * length * sizeof *own->distances);
    if (d->keys)
        add_distances(e, q, d->keys + head * size, false, length, products, own->distances);
    if (d->queries)
        add_distances(e, q + cpu_encoder_attended_width(s), d->queries + head * size, true, length,
                      products, own->distances);
    return length;
}

/* Heads [head, head + many) of some sequences; they share one key and value head, or have each
 * their own. */
static void attend(const cpu_encoder_pass *p, const cpu_encoder_scratch *own, size_t sequence,
                   size_t sequences, size_t head, size_t many)
{
    const cpu_encoder *e = p->e;
    const encoder *s = &e->source;
    const cpu_encoder_bias *b = cpu_encoder_bias_of(e, s->layers[p->layer_index].window);
    size_t heads = (size_t)s->heads, shared = heads / (size_t)s->kv_heads;
    size_t size = (size_t)s->head_dim;
    const float *keys = p->scratch.qkv + (heads + head / shared) * size;
    attention_f32 a = {.offsets = p->scratch.offsets + sequence,
                       .sequences = sequences,
                       .heads = many,
                       .head_size = size,
                       .q = p->scratch.qkv + head * size,
                       .k = keys,
                       .v = keys + (size_t)s->kv_heads * size,
                       .qkv_stride = cpu_encoder_qkv_width(s),
                       .scale = s->attention_scale,
                       .mask = p->has_mask ? p->scratch.mask : NULL,
                       .out = p->scratch.attended + head * size,
                       .out_stride = cpu_encoder_attended_width(s),
                       .workspace = own->attention};
    if (b->values) {
        a.bias_head_stride = (ptrdiff_t)b->head_stride;
        a.bias_row_stride = -1;
        a.bias = b->values + head * b->head_stride + e->length_max - 1;
    }
    if (e->distances) {
        size_t length = score_distances(p, own, sequence, head);
        a.bias_row_stride = (ptrdiff_t)length;
        a.bias = own->distances;
    }
    e->options.kernels->attention_f32(&a);
}

void cpu_encoder_step_attention(cpu_encoder_pass *p, int worker, size_t first, size_t count)
{
    const encoder *s = &p->e->source;
    cpu_encoder_scratch own = p->scratch;
    if (worker != p->worker)
        cpu_encoder_find_scratch(p->e, p->runner, worker, &own);
    size_t heads = (size_t)s->heads;
    bool is_shared = s->kv_heads != s->heads || p->e->distances;
    while (count > 0) {
        size_t sequence = first / heads, head = first % heads;
        size_t many = heads - head < count ? heads - head : count, sequences = 1;
        if (is_shared) {
            many = 1;
        } else if (head == 0 && many == heads) { /* whole sequences at once */
            sequences = count / heads;
            many = heads;
        }
        attend(p, &own, sequence, sequences, head, many);
        first += many * sequences;
        count -= many * sequences;
    }
}
