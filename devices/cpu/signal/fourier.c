#include <math.h>
#include <string.h>

#include "devices/cpu/ops/op.h"
#include "devices/cpu/signal/fft.h"
#include "devices/cpu/tensor_loops/walk.h"
#include "graph/shapes/infer.h"
#include "kernels/gemm_f32.h"

/* DFT and STFT. Short transforms are a matrix multiplication with the transform's matrix, made when
 * the plan is: frames of a signal are rows that overlap, so nothing is copied. Long ones go through
 * fft.c, one line at a time. */

/* Up to this length the matrix is used: it takes 16 MB there, and about as long as fft.c. */
#define MATRIX_LENGTH_MAX 2048

typedef struct fourier_state {
    graph_fourier shape;
    int64_t lines, inner; /* lines of each outer index, `inner` elements apart */
    int64_t outer;
    size_t row_in, row_out; /* numbers of a line that are read and written */
    const float *matrix;    /* packed [row_in, row_out]; NULL: by fft.c */
    bool is_window_in_matrix;
    fft transform;
} fourier_state;

/* Element (t, part) of a line adds to bin (f, part): a turn by 2 pi f t / length. */
static void fill_matrix(const graph_fourier *g, const float *window, const double *turns, float *to)
{
    bool is_to_real = g->parts_out == 1;
    double scale = g->is_inverse ? 1 / (double)g->length : 1;
    for (int64_t t = 0; t < g->bins_in; t++)
        for (int part = 0; part < g->parts_in; part++)
            for (int64_t bin = 0; bin < g->bins_out; bin++) {
                const double *w = turns + 2 * (t * bin % g->length);
                double weight = scale * (window ? (double)window[t] : 1);
                /* The bins that a one-sided spectrum leaves out mirror the others. */
                if (is_to_real && t > 0 && 2 * t != g->length)
                    weight *= 2;
                *to++ = (float)(weight * (part == 0 ? w[0] : -w[1]));
                if (!is_to_real)
                    *to++ = (float)(weight * (part == 0 ? w[1] : w[0]));
            }
}

static status make_matrix(cpu_prepare *p, fourier_state *s, const tensor *window)
{
    const graph_fourier *g = &s->shape;
    size_t count = s->row_in * s->row_out, packed = gemm_f32_packed_count(s->row_in, s->row_out);
    arena memory;
    arena_init(&memory, 0);
    float *plain = arena_allocate(&memory, count * sizeof *plain);
    float *matrix = arena_allocate_aligned(p->memory, packed * sizeof *matrix, 64);
    status end = plain && matrix
                     ? fft_create(&memory, g->length, g->is_inverse, &s->transform)
                     : status_fail(STATUS_OUT_OF_MEMORY, "no memory for a transform's matrix");
    if (!end) {
        s->is_window_in_matrix = window && window->data;
        fill_matrix(g, s->is_window_in_matrix ? window->data : NULL, s->transform.turns, plain);
        p->kernels->gemm_pack_f32(plain, s->row_out, 1, s->row_in, s->row_out, matrix);
        s->matrix = matrix;
    }
    arena_dispose(&memory);
    return end;
}

static status prepare_fourier(cpu_prepare *p)
{
    const tensor *x = p->inputs[0];
    const tensor *window = p->node->op == GRAPH_OP_STFT ? cpu_input(p->inputs, p->node, 2) : NULL;
    if (x->dtype != DTYPE_F32)
        return cpu_op_fail_dtype(p->node, x->dtype);
    fourier_state *s = arena_allocate_zeroed(p->memory, 1, sizeof *s);
    if (!s)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a plan");
    status end = graph_read_fourier(p->node, p->inputs, &s->shape);
    if (end)
        return end;
    const graph_fourier *g = &s->shape;
    s->row_in = (size_t)(g->bins_in * g->parts_in);
    s->row_out = (size_t)(g->bins_out * g->parts_out);
    s->outer = cpu_dims_product(x->dims, 0, g->axis);
    s->inner = g->frames ? 1 : cpu_dims_product(x->dims, g->axis + 1, x->rank - 1);
    s->lines = g->frames ? g->frames : s->inner;
    if (g->length <= MATRIX_LENGTH_MAX && s->row_in > 0)
        end = make_matrix(p, s, window);
    else
        end = fft_create(p->memory, g->length, g->is_inverse, &s->transform);
    /* Lines that are copied, and three of fft.c. */
    size_t rows = (size_t)s->lines * (s->row_in + s->row_out) * sizeof(float);
    p->scratch_bytes =
        cpu_scratch_round(rows) + cpu_scratch_round((size_t)g->length * 6 * sizeof(double));
    p->state = s;
    return end;
}

/* Where a run finds the lines of one outer index. */
typedef struct fourier_lines {
    const float *in;
    size_t in_stride;
    float *out;
    size_t out_stride;
} fourier_lines;

static void multiply(const cpu_call *c, const fourier_state *s, const fourier_lines *l)
{
    c->kernels->gemm_f32(&(gemm_f32){.m = (size_t)s->lines,
                                     .n = s->row_out,
                                     .k = s->row_in,
                                     .a = l->in,
                                     .a_stride = l->in_stride,
                                     .b = s->matrix,
                                     .c = l->out,
                                     .c_stride = l->out_stride});
}

/* One line as complex numbers, zero beyond its end; a one-sided spectrum is completed. */
static void load_line(const graph_fourier *g, const float *in, const float *window, double *to)
{
    memset(to, 0, (size_t)g->length * 2 * sizeof *to);
    for (int64_t t = 0; t < g->bins_in; t++) {
        double scale = window ? (double)window[t] : 1;
        to[2 * t] = scale * (double)in[t * g->parts_in];
        to[2 * t + 1] = g->parts_in == 2 ? scale * (double)in[2 * t + 1] : 0;
        if (g->parts_out == 1 && t == 0)
            to[1] = 0;
        if (g->parts_out == 1 && t > 0) {
            to[2 * (g->length - t)] = to[2 * t];
            to[2 * (g->length - t) + 1] = -to[2 * t + 1];
        }
    }
}

static status transform_lines(const cpu_call *c, const fourier_state *s, const float *window,
                              const fourier_lines *l, double *spare)
{
    const graph_fourier *g = &s->shape;
    double *in = spare, *out = in + 2 * g->length, *rest = out + 2 * g->length;
    double scale = g->is_inverse ? 1 / (double)g->length : 1;
    for (int64_t i = 0; i < s->lines; i++) {
        status end = cancel_check(c->cancel);
        if (end)
            return end;
        load_line(g, l->in + (size_t)i * l->in_stride, window, in);
        fft_run(&s->transform, in, out, rest);
        float *to = l->out + (size_t)i * l->out_stride;
        for (int64_t k = 0; k < g->bins_out; k++)
            for (int part = 0; part < g->parts_out; part++)
                to[k * g->parts_out + part] = (float)(scale * out[2 * k + part]);
    }
    return STATUS_OK;
}

/* Lines of an axis that is not the last one are copied to scratch, and their results back. */
static void copy_lines(const fourier_state *s, int64_t bins, int parts, const float *from,
                       bool is_gathering, float *to)
{
    int64_t dims[] = {s->inner, bins, parts};
    int64_t apart[] = {parts, s->inner * parts, 1}, together[] = {bins * parts, parts, 1};
    cpu_copy_strided(sizeof(float), 3, dims, from, is_gathering ? apart : together, to,
                     is_gathering ? together : apart);
}

/* Frames times a window that is not a constant. */
static void weigh_frames(const fourier_state *s, const float *in, const float *window, float *to)
{
    const graph_fourier *g = &s->shape;
    for (int64_t i = 0; i < s->lines; i++)
        for (int64_t t = 0; t < g->length; t++)
            for (int part = 0; part < g->parts_in; part++)
                *to++ = in[(i * g->step + t) * g->parts_in + part] * window[t];
}

static status run_fourier(const cpu_call *c)
{
    const fourier_state *s = c->state;
    const graph_fourier *g = &s->shape;
    const tensor *x = c->inputs[0], *window = NULL;
    if (g->frames && !s->is_window_in_matrix)
        window = cpu_input(c->inputs, c->node, 2);
    size_t step_in = (size_t)(x->dims[g->axis] * g->parts_in) * (size_t)s->inner;
    size_t step_out = (g->frames ? (size_t)g->frames : (size_t)s->inner) * s->row_out;
    float *lines = c->scratch, *results = lines + (size_t)s->lines * s->row_in;
    double *spare =
        (double *)((char *)c->scratch +
                   cpu_scratch_round((size_t)s->lines * (s->row_in + s->row_out) * sizeof(float)));
    if (tensor_count(&c->outputs[0]) == 0)
        return STATUS_OK;
    for (int64_t o = 0; o < s->outer; o++) {
        const float *in = (const float *)x->data + (size_t)o * step_in;
        float *out = (float *)c->outputs[0].data + (size_t)o * step_out;
        fourier_lines l = {in, g->frames ? (size_t)(g->step * g->parts_in) : s->row_in, out,
                           s->row_out};
        if (s->inner > 1) {
            copy_lines(s, g->bins_in, g->parts_in, in, true, lines);
            l.in = lines;
            l.out = results;
        } else if (s->matrix && window) {
            weigh_frames(s, in, window->data, lines);
            l.in = lines;
            l.in_stride = s->row_in;
        }
        status end = cancel_check(c->cancel);
        if (s->matrix)
            multiply(c, s, &l);
        else if (!end)
            end = transform_lines(
                c, s, g->frames && cpu_input(c->inputs, c->node, 2) ? c->inputs[2]->data : NULL, &l,
                spare);
        if (end)
            return end;
        if (s->inner > 1)
            copy_lines(s, g->bins_out, g->parts_out, results, false, out);
    }
    return STATUS_OK;
}

static const cpu_op table[] = {
    {GRAPH_OP_DFT, prepare_fourier, run_fourier, CPU_WIDEN_FLOATS, false},
    {GRAPH_OP_STFT, prepare_fourier, run_fourier, CPU_WIDEN_FLOATS, false},
};

const cpu_op_family cpu_ops_fourier = {table, sizeof table / sizeof table[0]};
