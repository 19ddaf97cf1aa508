#include <math.h>
#include <string.h>

#include "devices/cpu/ops/op.h"
#include "devices/cpu/ops/split.h"
#include "devices/cpu/ops/weights.h"
#include "devices/cpu/signal/fft.h"
#include "devices/cpu/tensor_loops/walk.h"
#include "graph/shapes/infer.h"
#include "kernels/gemm_f32.h"

/* DFT and STFT. Short transforms are a matrix multiplication with the transform's matrix, made when
 * the plan is: frames of a signal are rows that overlap, so nothing is copied. Long ones go through
 * fft.c, one line at a time. */

/* Up to this length the matrix is used: it takes 16 MB there, and about as long as fft.c. */
#define MATRIX_LENGTH_MAX 2048
/* Lines that come one by one go through fft.c from this length on, where it is a power of two. */
#define FFT_LENGTH_MIN 128

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

/* What a matrix depends on, and all that is needed to make it. */
typedef struct matrix_source {
    const graph_fourier *shape;
    const float *window; /* NULL: none */
    const kernels *kernels;
    size_t rows, columns;
} matrix_source;

/* The transform's matrix, packed; false when memory is out. */
static bool fill_packed(const void *context, void *packed)
{
    const matrix_source *m = context;
    arena memory;
    fft transform;
    arena_init(&memory, 0);
    float *plain = arena_allocate(&memory, m->rows * m->columns * sizeof *plain);
    bool is_made =
        plain && !fft_create(&memory, m->shape->length, m->shape->is_inverse, &transform);
    if (is_made) {
        fill_matrix(m->shape, m->window, transform.turns, plain);
        m->kernels->gemm_pack_f32(plain, m->columns, 1, m->rows, m->columns, packed);
    }
    arena_dispose(&memory);
    return is_made;
}

/* The model's copy of that matrix, or NULL. */
static const float *find_matrix(const cpu_prepare *p, const matrix_source *m, size_t bytes)
{
    const graph_fourier *g = m->shape;
    const int64_t shape[] = {g->length,    g->bins_in,    g->bins_out,      g->parts_in,
                             g->parts_out, g->is_inverse, m->window != NULL};
    float identity[MATRIX_LENGTH_MAX + sizeof shape / (sizeof(float))];
    size_t window_bytes = m->window ? (size_t)g->length * sizeof(float) : 0;
    memcpy(identity, shape, sizeof shape);
    if (m->window)
        memcpy((char *)identity + sizeof shape, m->window, window_bytes);
    return p->weights ? cpu_weights_make(p->weights, identity, sizeof shape + window_bytes, bytes,
                                         fill_packed, m)
                      : NULL;
}

/* One matrix for all plans of the model: a program that runs node by node prepares its nodes in
 * each run. */
static status make_matrix(cpu_prepare *p, fourier_state *s, const tensor *window)
{
    matrix_source m = {&s->shape, window ? window->data : NULL, p->kernels, s->row_in, s->row_out};
    size_t bytes = gemm_f32_packed_count(s->row_in, s->row_out) * sizeof(float);
    s->is_window_in_matrix = m.window != NULL;
    s->matrix = find_matrix(p, &m, bytes);
    if (s->matrix)
        return STATUS_OK;
    float *own = arena_allocate_aligned(p->memory, bytes, 64);
    if (!own || !fill_packed(&m, own))
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a transform's matrix");
    s->matrix = own;
    return STATUS_OK;
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
    /* A line alone would read the whole matrix. */
    bool is_alone = s->lines == 1 && !g->frames && g->length >= FFT_LENGTH_MIN &&
                    fft_is_power_of_two(g->length);
    if (g->length <= MATRIX_LENGTH_MAX && s->row_in > 0 && !is_alone)
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

typedef struct multiply_run {
    const cpu_call *call;
    const fourier_lines *lines;
    size_t items;
} multiply_run;

static void multiply_piece(const void *context, void *memory, size_t unit)
{
    (void)memory;
    const multiply_run *r = context;
    const fourier_state *s = r->call->state;
    const fourier_lines *l = r->lines;
    size_t first = unit * r->items, left = (size_t)s->lines - first;
    r->call->kernels->gemm_f32(&(gemm_f32){.m = left < r->items ? left : r->items,
                                           .n = s->row_out,
                                           .k = s->row_in,
                                           .a = l->in + first * l->in_stride,
                                           .a_stride = l->in_stride,
                                           .b = s->matrix,
                                           .c = l->out + first * l->out_stride,
                                           .c_stride = l->out_stride});
}

static void multiply(const cpu_call *c, const fourier_state *s, const fourier_lines *l)
{
    size_t lines = (size_t)s->lines;
    multiply_run r = {c, l, cpu_split_items(c, lines, lines, 12)};
    double steps = (double)lines * (double)s->row_out * (double)s->row_in;
    cpu_split(c, steps / 32, multiply_piece, &r, (lines + r.items - 1) / r.items);
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
static void copy_lines(const kernels *k, const fourier_state *s, int64_t bins, int parts,
                       const float *from, bool is_gathering, float *to)
{
    int64_t dims[] = {s->inner, bins, parts};
    int64_t apart[] = {parts, s->inner * parts, 1}, together[] = {bins * parts, parts, 1};
    cpu_copy_strided(k, sizeof(float), 3, dims, from, is_gathering ? apart : together, to,
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
            copy_lines(c->kernels, s, g->bins_in, g->parts_in, in, true, lines);
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
            copy_lines(c->kernels, s, g->bins_out, g->parts_out, results, false, out);
    }
    return STATUS_OK;
}

static const cpu_op table[] = {
    {GRAPH_OP_DFT, prepare_fourier, run_fourier, CPU_WIDEN_FLOATS, false},
    {GRAPH_OP_STFT, prepare_fourier, run_fourier, CPU_WIDEN_FLOATS, false},
};

const cpu_op_family cpu_ops_fourier = {table, sizeof table / sizeof table[0]};
