#include <math.h>

#include "devices/cpu/recurrent/recurrent.h"
#include "kernels/gemm_f32.h"
#include "kernels/tensor_u8.h"

/* One time step. The gates of all rows come out of one matrix multiplication, or two of GRU; what
 * follows works on one row at a time, so a row's bits do not depend on the others; except where the
 * operator itself rounds all states together. */

void recurrent_multiply(const cpu_call *c, const recurrent_matrix *m, int64_t rows, const float *a,
                        const float *bias, float *out, size_t out_stride)
{
    gemm_f32_epilogue epilogue = {.bias = bias, .residual_stride = out_stride};
    if (!bias)
        epilogue.residual = out;
    if (m->packed)
        c->kernels->gemm_f32(&(gemm_f32){.m = (size_t)rows,
                                         .n = m->n,
                                         .k = m->k,
                                         .a = a,
                                         .a_stride = m->k,
                                         .b = m->packed,
                                         .c = out,
                                         .c_stride = out_stride,
                                         .epilogue = epilogue});
    else
        c->kernels->gemm_unpacked_f32(
            &(gemm_f32_unpacked){.m = (size_t)rows,
                                 .n = m->n,
                                 .k = m->k,
                                 .a = a,
                                 .a_stride = m->k,
                                 .b = (const float *)c->inputs[m->input]->data + m->offset,
                                 .b_row_stride = 1,
                                 .b_column_stride = m->k,
                                 .c = out,
                                 .c_stride = out_stride,
                                 .epilogue = epilogue});
}

static void clip(const recurrent_run *r, float *x, size_t count)
{
    float high = r->state->clip, low = -high;
    if (high <= 0)
        return;
    r->call->kernels->max_f32(x, 1, &low, 0, x, count);
    r->call->kernels->min_f32(x, 1, &high, 0, x, count);
}

/* An activation of its clipped input. */
static void activate(const recurrent_run *r, const recurrent_activation *a, float *x, size_t count)
{
    clip(r, x, count);
    recurrent_activate(r->call->kernels, a, x, count);
}

void recurrent_step_rnn(const recurrent_run *r, int64_t step, float *gates)
{
    const recurrent_state *s = r->state;
    size_t hidden = (size_t)s->hidden;
    recurrent_multiply(r->call, &r->direction->recur[0], s->rows, r->hidden, NULL, gates, hidden);
    for (int64_t row = 0; row < s->rows; row++) {
        if (step >= r->lengths[row])
            continue;
        float *h = r->hidden + row * s->hidden, *from = gates + row * s->hidden;
        activate(r, &r->direction->f, from, hidden);
        for (size_t i = 0; i < hidden; i++)
            h[i] = from[i];
    }
}

/* Gates z, r, h; H = (1 - z) * h + z * H. The reset gate r applies to the state before its
 * multiplication, or to the result where resets_after is set (linear_before_reset). */
void recurrent_step_gru(const recurrent_run *r, int64_t step, float *gates)
{
    const recurrent_state *s = r->state;
    const kernels *k = r->call->kernels;
    size_t hidden = (size_t)s->hidden, row_gates = 3 * hidden;
    recurrent_multiply(r->call, &r->direction->recur[0], s->rows, r->hidden, NULL, gates,
                       row_gates);
    if (s->resets_after)
        recurrent_multiply(r->call, &r->direction->recur[1], s->rows, r->hidden,
                           r->bias + row_gates, r->spare, hidden);
    for (int64_t row = 0; row < s->rows; row++) {
        float *zr = gates + (size_t)row * row_gates, *spare = r->spare + row * s->hidden;
        activate(r, &r->direction->f, zr, 2 * hidden);
        if (s->resets_after) {
            k->mul_f32(spare, 1, zr + hidden, 1, spare, hidden);
            k->add_f32(zr + 2 * hidden, 1, spare, 1, zr + 2 * hidden, hidden);
        } else {
            k->mul_f32(r->hidden + row * s->hidden, 1, zr + hidden, 1, spare, hidden);
        }
    }
    if (!s->resets_after)
        recurrent_multiply(r->call, &r->direction->recur[1], s->rows, r->spare, NULL,
                           gates + 2 * hidden, row_gates);
    for (int64_t row = 0; row < s->rows; row++) {
        if (step >= r->lengths[row])
            continue;
        float *z = gates + (size_t)row * row_gates, *candidate = z + 2 * hidden;
        float *h = r->hidden + row * s->hidden;
        activate(r, &r->direction->g, candidate, hidden);
        for (size_t i = 0; i < hidden; i++)
            h[i] = (1 - z[i]) * candidate[i] + z[i] * h[i];
    }
}

/* a += peephole * cell, where there are peepholes. */
static void peep(const recurrent_run *r, int gate, const float *cell, float *a)
{
    size_t hidden = (size_t)r->state->hidden;
    if (r->peepholes)
        for (size_t i = 0; i < hidden; i++)
            a[i] += r->peepholes[(size_t)gate * hidden + i] * cell[i];
}

/* The states as the next step sees them: rounded to 8 bits over their range where the operator asks
 * for it, by the formula of DynamicQuantizeLinear (onnx Operators.md). */
static const float *states_for_step(const recurrent_run *r)
{
    const recurrent_state *s = r->state;
    const kernels *k = r->call->kernels;
    size_t count = (size_t)(s->rows * s->hidden);
    if (!s->rounds_states)
        return r->hidden;
    float low = fminf(0, k->reduce_min_f32(r->hidden, count));
    float high = fmaxf(0, k->reduce_max_f32(r->hidden, count));
    float scale = high == low ? 1 : (high - low) / 255;
    int32_t zero = (int32_t)fminf(fmaxf(nearbyintf(-low / scale), 0), 255);
    k->quantise_tensor_u8(&(quantise_tensor_u8){
        .x = r->hidden, .count = count, .scale = scale, .zero = zero, .out = r->bytes});
    k->dequantise_u8(&(dequantise_u8){
        .in = r->bytes, .count = count, .scale = scale, .zero = zero, .out = r->spare});
    return r->spare;
}

/* Gates i, o, f, c; C = f * C + i * c; H = o * h(C). The output gate sees the new C. C is not
 * clipped before h: the standard leaves it open, and ONNX Runtime does not. */
void recurrent_step_lstm(const recurrent_run *r, int64_t step, float *gates)
{
    const recurrent_state *s = r->state;
    const recurrent_direction *d = r->direction;
    const kernels *k = r->call->kernels;
    size_t n = (size_t)s->hidden;
    recurrent_multiply(r->call, &d->recur[0], s->rows, states_for_step(r), NULL, gates, 4 * n);
    for (int64_t row = 0; row < s->rows; row++) {
        if (step >= r->lengths[row])
            continue;
        float *i = gates + (size_t)row * 4 * n, *o = i + n, *f = o + n, *c = f + n;
        float *cell = r->cell + row * s->hidden, *h = r->hidden + row * s->hidden;
        if (r->peepholes) {
            peep(r, 0, cell, i);
            peep(r, 2, cell, f);
            activate(r, &d->f, i, n);
            activate(r, &d->f, f, n);
        } else {
            activate(r, &d->f, i, 3 * n);
        }
        for (size_t j = 0; s->couples_forget && j < n; j++)
            f[j] = 1 - i[j];
        activate(r, &d->g, c, n);
        for (size_t j = 0; j < n; j++)
            cell[j] = f[j] * cell[j] + i[j] * c[j];
        if (r->peepholes) {
            peep(r, 1, cell, o);
            activate(r, &d->f, o, n);
        }
        for (size_t j = 0; j < n; j++)
            h[j] = cell[j];
        recurrent_activate(k, &d->h, h, n);
        k->mul_f32(h, 1, o, 1, h, n);
    }
}
