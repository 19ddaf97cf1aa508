#include <assert.h>
#include <math.h>
#include <string.h>

#include "devices/cpu/encoder/internal.h"
#include "kernels/gemm_f32.h"

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

/* Pools the tokens whose mask is 1, in their order. */
static void pool_sequence(const kernels *k, encoder_pooling pooling, const float *x,
                          const uint8_t *mask, size_t length, size_t width, float *out)
{
    if (pooling == ENCODER_POOLING_FIRST) {
        memcpy(out, x, width * sizeof *out);
        return;
    }
    size_t count = 0;
    for (size_t i = 0; i < length; i++) {
        const float *row = x + i * width;
        if (!mask[i])
            continue;
        if (count++ == 0)
            memcpy(out, row, width * sizeof *out);
        else if (pooling == ENCODER_POOLING_MEAN)
            k->add_f32(out, 1, row, 1, out, width);
        else
            k->max_f32(out, 1, row, 1, out, width);
    }
    /* Every token is masked: the values that sentence-transformers gives. */
    float nothing = pooling == ENCODER_POOLING_MEAN ? 0 : -1e9f;
    for (size_t i = 0; count == 0 && i < width; i++)
        out[i] = nothing;
    float divisor = (float)count;
    if (pooling == ENCODER_POOLING_MEAN && count > 1)
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
    static const kernels_activation to[] = {[ENCODER_HEAD_NONE] = KERNELS_IDENTITY,
                                            [ENCODER_HEAD_TANH] = KERNELS_TANH,
                                            [ENCODER_HEAD_RELU] = KERNELS_RELU,
                                            [ENCODER_HEAD_GELU] = KERNELS_GELU};
    return to[a];
}

/* Pooled rows, or the tokens themselves; then the head's layers. `width`: of the result's rows. */
static const float *compute_rows(cpu_encoder_pass *p, int output, size_t *rows, size_t *width)
{
    const cpu_encoder *e = p->e;
    const encoder_output *o = &e->source.outputs[output];
    const cpu_encoder_scratch *s = &p->scratch;
    const kernels *k = e->options.kernels;
    const float *x = s->x;
    int next = 0;
    *rows = p->tokens;
    *width = (size_t)e->source.hidden;
    if (o->pooling != ENCODER_POOLING_NONE) {
        *rows = p->sequence_count;
        for (size_t i = 0; i < *rows; i++) {
            size_t first = (size_t)s->offsets[i];
            pool_sequence(k, o->pooling, s->x + first * *width, s->mask + first,
                          p->sequences[i].length, *width, s->pooled[next] + i * *width);
        }
        x = s->pooled[next];
        next = 1;
    }
    for (int h = 0; h < o->head_count; h++) {
        const cpu_encoder_linear *l = &e->heads[output][h];
        cpu_encoder_apply_f32(k, l, *rows, x, *width, activation_of(o->head[h].activation),
                              s->pooled[next], l->n);
        x = s->pooled[next];
        *width = l->n;
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
