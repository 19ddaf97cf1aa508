#include <assert.h>
#include <math.h>
#include <string.h>

#include "devices/cpu/encoder/internal.h"
#include "kernels/gemm_f32.h"
#include "kernels/rows.h"

/* From hidden states to the outputs of each segment: pooling, head layers, normalisation. Rows are
 * sequences for pooled outputs, tokens for hidden ones. */

void cpu_encoder_apply_f32(const kernels *k, const cpu_encoder_linear *l, size_t rows,
                           const float *x, size_t x_stride, kernels_activation activation,
                           float *out, size_t out_stride)
{
    assert(l->format == CPU_ENCODER_F32);
    k->gemm_f32(&(gemm_f32){.m = rows,
                            .n = l->n,
                            .k = l->k,
                            .a = x,
                            .a_stride = x_stride,
                            .b = l->weights,
                            .c = out,
                            .c_stride = out_stride,
                            .epilogue = {.scale = 1, .bias = l->bias, .activation = activation}});
}

/* Adds row * weight to out, or copies it when it is the first. */
static void add_row(const kernels *k, bool is_first, float weight, const float *row, size_t width,
                    float *out, float *scaled)
{
    if (weight != 1) {
        k->mul_f32(row, 1, &weight, 0, is_first ? out : scaled, width);
        if (!is_first)
            k->add_f32(out, 1, scaled, 1, out, width);
    } else if (is_first) {
        memcpy(out, row, width * sizeof *out);
    } else {
        k->add_f32(out, 1, row, 1, out, width);
    }
}

/* Where the first token stands that pooling takes: behind a prompt, or at 0. */
static size_t first_token(const uint8_t *mask, size_t length)
{
    size_t i = 0;
    while (i < length && mask[i] == 2)
        i++;
    return i < length ? i : 0;
}

/* The number of tokens up to the last one that pooling takes. */
static size_t last_token(const uint8_t *mask, size_t length)
{
    while (length > 0 && mask[length - 1] != 1)
        length--;
    return length;
}

/* Pools the tokens whose mask is 1, in their order. `scaled`: room for a row. */
static void pool_sequence(const kernels *k, encoder_pooling pooling, const float *x,
                          const uint8_t *mask, size_t length, size_t width, float *out,
                          float *scaled)
{
    size_t count = 0, first = 0, last = last_token(mask, length);
    while (first < last && !mask[first])
        first++;
    double weights = 0;
    if (pooling == ENCODER_POOLING_FIRST || (pooling == ENCODER_POOLING_LAST && last > 0)) {
        size_t at = pooling == ENCODER_POOLING_FIRST ? first_token(mask, length) : last - 1;
        memcpy(out, x + at * width, width * sizeof *out);
        return;
    }
    for (size_t i = 0; i < last; i++) {
        const float *row = x + i * width;
        if (mask[i] != 1)
            continue;
        size_t weight = pooling == ENCODER_POOLING_WEIGHTED_MEAN ? i - first + 1 : 1;
        if (count > 0 && pooling == ENCODER_POOLING_MAX)
            k->max_f32(out, 1, row, 1, out, width);
        else
            add_row(k, count == 0, (float)weight, row, width, out, scaled);
        weights += (double)weight;
        count++;
    }
    /* Every token is masked: the values that sentence-transformers gives. */
    float nothing = pooling == ENCODER_POOLING_MAX ? -1e9f : 0;
    for (size_t i = 0; count == 0 && i < width; i++)
        out[i] = nothing;
    float divisor = (float)(pooling == ENCODER_POOLING_MEAN_SQRT ? sqrt(weights) : weights);
    if (pooling != ENCODER_POOLING_MAX && divisor > 1)
        k->div_f32(out, 1, &divisor, 0, out, width);
}

static void normalise(float *x, size_t width, float least)
{
    double sum = 0;
    for (size_t i = 0; i < width; i++)
        sum += (double)x[i] * x[i];
    float norm = (float)sqrt(sum);
    norm = norm > least ? norm : least;
    for (size_t i = 0; i < width && norm > 0; i++)
        x[i] /= norm;
}

static kernels_activation activation_of(encoder_head_activation a)
{
    static const kernels_activation to[] = {
        [ENCODER_HEAD_NONE] = KERNELS_IDENTITY,       [ENCODER_HEAD_TANH] = KERNELS_TANH,
        [ENCODER_HEAD_RELU] = KERNELS_RELU,           [ENCODER_HEAD_GELU] = KERNELS_GELU,
        [ENCODER_HEAD_GELU_TANH] = KERNELS_GELU_TANH, [ENCODER_HEAD_SILU] = KERNELS_SILU,
        [ENCODER_HEAD_SIGMOID] = KERNELS_SIGMOID};
    return to[a];
}

/* One layer of a head, from rows x to rows out (not x): returns the width of a result. */
static size_t apply_head_layer(const kernels *k, const encoder_head_layer *layer,
                               const cpu_encoder_linear *linear, size_t rows, const float *x,
                               size_t width, float *out)
{
    if (layer->linear.weight) {
        cpu_encoder_apply_f32(k, linear, rows, x, width, activation_of(layer->activation), out,
                              linear->n);
        width = linear->n;
    } else {
        memcpy(out, x, rows * width * sizeof *out);
    }
    if (layer->norm.scale)
        k->layer_norm_f32(
            &(layer_norm_f32){.rows = rows,
                              .width = width,
                              .x = out,
                              .x_stride = width,
                              .gamma = layer->norm.scale->data,
                              .beta = layer->norm.bias ? layer->norm.bias->data : NULL,
                              .epsilon = layer->norm.epsilon,
                              .out = out,
                              .out_stride = width});
    for (size_t r = 0; r < rows && layer->is_normalised; r++)
        normalise(out + r * width, width, layer->norm_epsilon);
    return width;
}

/* A row for each sequence: the results of the poolings side by side. */
static void pool_sequences(const cpu_encoder_pass *p, const encoder_output *o, float *out,
                           float *scaled)
{
    const cpu_encoder_scratch *s = &p->scratch;
    size_t width = (size_t)p->e->source.hidden;
    for (size_t i = 0; i < p->sequence_count; i++) {
        size_t first = (size_t)s->offsets[i];
        for (int n = 0; n <= o->also_count; n++, out += width)
            pool_sequence(p->e->options.kernels, n == 0 ? o->pooling : o->also[n - 1],
                          s->x + first * width, s->mask + first, p->sequences[i].length, width, out,
                          scaled);
    }
}

/* Pooled rows, or the tokens themselves; then the head's layers. `width`: of the result's rows. */
static const float *compute_rows(cpu_encoder_pass *p, int output, size_t *rows, size_t *width)
{
    const cpu_encoder *e = p->e;
    const encoder_output *o = &e->source.outputs[output];
    const cpu_encoder_scratch *s = &p->scratch;
    const float *x = s->x;
    int next = 0;
    *rows = p->tokens;
    *width = (size_t)e->source.hidden;
    if (o->pooling != ENCODER_POOLING_NONE) {
        *rows = p->sequence_count;
        pool_sequences(p, o, s->pooled[0], s->pooled[1]);
        *width *= (size_t)(1 + o->also_count);
        x = s->pooled[0];
        next = 1;
    }
    for (int h = 0; h < o->head_count; h++) {
        *width = apply_head_layer(e->options.kernels, &o->head[h], &e->heads[output][h], *rows, x,
                                  *width, s->pooled[next]);
        x = s->pooled[next];
        next = 1 - next;
    }
    return x;
}

void cpu_encoder_write_outputs(cpu_encoder_pass *p)
{
    const encoder *source = &p->e->source;
    for (int o = 0; o < source->output_count; o++) {
        size_t rows, width, row = 0;
        bool is_hidden = source->outputs[o].pooling == ENCODER_POOLING_NONE;
        const float *x = compute_rows(p, o, &rows, &width);
        for (size_t i = 0; i < p->sequence_count; i++) {
            const cpu_encoder_sequence *s = &p->sequences[i];
            size_t count = is_hidden ? s->length : 1;
            assert(!is_hidden || s->length == (size_t)s->segment->length);
            float *out = (float *)s->segment->outputs[o].data + (size_t)s->row * count * width;
            memcpy(out, x + row * width, count * width * sizeof *out);
            for (size_t r = 0; r < count && source->outputs[o].is_normalised; r++)
                normalise(out + r * width, width, source->outputs[o].norm_epsilon);
            row += count;
        }
    }
}
