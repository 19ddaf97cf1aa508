#include <math.h>
#include <string.h>

#include "devices/cpu/ops/op.h"
#include "devices/cpu/ops/split.h"
#include "devices/cpu/tensor_loops/window.h"
#include "kernels/convolution.h"
#include "kernels/lines.h"

/* Pooling in F32; int8, uint8 and the other floats widen. Maxima and averages of small windows are
 * computed by planes, others are folded by lines: the rows of a window into one line with its
 * padding, that line into the results. Norms, and maxima with their places, go output by output. */

#define CANCEL_OUTPUTS 256 /* between checks for cancellation */
#define CANCEL_PLANES 64

typedef struct pool_state {
    cpu_window window;
    bool counts_padding;
    int64_t p; /* of LpPool */
    bool is_by_line, is_by_plane;
    image_window plane; /* the window within a plane */
    int64_t line;       /* floats that the windows of a line of results reach */
    int64_t lines;      /* of results at a time */
    int64_t folded;     /* where in a thread's part the planes of a window are folded into one */
    float *counts;      /* of averages: the elements that count, for each result of a plane */
} pool_state;

static status prepare_lines(cpu_prepare *p, pool_state *s);

static status prepare_pool(cpu_prepare *p)
{
    const tensor *x = p->inputs[0];
    const graph_attribute *kernel = graph_find_attribute(p->node, "kernel_shape");
    if (x->dtype != DTYPE_F32)
        return cpu_op_fail_dtype(p->node, x->dtype);
    if (!kernel)
        return status_fail(STATUS_INVALID_ARGUMENT, "kernel_shape is missing");
    pool_state *s = arena_allocate_zeroed(p->memory, 1, sizeof *s);
    if (!s)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a plan");
    s->counts_padding = graph_attribute_int(p->node, "count_include_pad", 0) != 0;
    s->p = graph_attribute_int(p->node, "p", 2);
    p->state = s;
    /* MaxPool may be asked for its indices alone. */
    bool has_values = p->node->outputs[0] != GRAPH_NO_VALUE;
    status result =
        cpu_window_init(&s->window, p->node, x, &p->outputs[has_values ? 0 : 1], kernel->ints);
    bool has_places = p->node->output_count > 1 && p->node->outputs[1] != GRAPH_NO_VALUE;
    if (result || has_places || p->node->op == GRAPH_OP_LP_POOL)
        return result;
    return prepare_lines(p, s);
}

/* The taps of one output that lie inside the input: [first, end) in each dim. */
typedef struct taps {
    int64_t first[CPU_WINDOW_DIMS], end[CPU_WINDOW_DIMS], base[CPU_WINDOW_DIMS];
} taps;

static taps taps_of(const cpu_window *w, const int64_t o[CPU_WINDOW_DIMS])
{
    taps t;
    for (int d = 0; d < CPU_WINDOW_DIMS; d++) {
        t.base[d] = o[d] * w->stride[d] - w->pad_begin[d];
        int64_t step = w->dilation[d], room = w->in[d] - 1 - t.base[d];
        t.first[d] = t.base[d] >= 0 ? 0 : (-t.base[d] + step - 1) / step;
        t.end[d] = room < 0 ? 0 : room / step + 1;
        t.end[d] = t.end[d] < w->kernel[d] ? t.end[d] : w->kernel[d];
    }
    return t;
}

typedef void (*tap_visit)(void *context, int64_t at);

/* Visits the input elements under the taps, in order. Inlined, so that `visit` is inlined too. */
static inline __attribute__((always_inline)) void each_tap(const cpu_window *w, const taps *t,
                                                           tap_visit visit, void *context)
{
    for (int64_t a = t->first[0]; a < t->end[0]; a++)
        for (int64_t b = t->first[1]; b < t->end[1]; b++)
            for (int64_t c = t->first[2]; c < t->end[2]; c++) {
                int64_t d = t->base[0] + a * w->dilation[0], h = t->base[1] + b * w->dilation[1];
                visit(context, (d * w->in[1] + h) * w->in[2] + t->base[2] + c * w->dilation[2]);
            }
}

typedef struct pool_result {
    const float *x;
    int64_t p;     /* LpPool */
    float best;    /* MaxPool */
    int64_t place; /* MaxPool: where `best` is, or -1 */
    double sum, count;
} pool_result;

static inline void visit_max(void *context, int64_t at)
{
    pool_result *r = context;
    float x = r->x[at];
    if (r->place < 0 || x > r->best || (x != x && r->best == r->best)) {
        r->best = x;
        r->place = at;
    }
}

static float pool_max(const cpu_window *w, const taps *t, const float *x, int64_t *place)
{
    pool_result r = {.x = x, .best = -INFINITY, .place = -1};
    each_tap(w, t, visit_max, &r);
    *place = r.place;
    return r.best;
}

/* Taps that count in an average with padding: those up to the padded end. */
static double padded_count(const cpu_window *w, const taps *t)
{
    double count = 1;
    for (int d = 0; d < CPU_WINDOW_DIMS; d++) {
        int64_t room = w->in[d] + w->pad_end[d] - 1 - t->base[d];
        int64_t n = room < 0 ? 0 : room / w->dilation[d] + 1;
        count *= (double)(n < w->kernel[d] ? n : w->kernel[d]);
    }
    return count;
}

static inline void visit_average(void *context, int64_t at)
{
    pool_result *r = context;
    r->sum += (double)r->x[at];
    r->count++;
}

static float pool_average(const pool_state *s, const taps *t, const float *x)
{
    pool_result r = {.x = x};
    each_tap(&s->window, t, visit_average, &r);
    if (s->counts_padding)
        r.count = padded_count(&s->window, t);
    return r.count > 0 ? (float)(r.sum / r.count) : 0;
}

static float norm_of(double sum, int64_t p)
{
    return (float)(p == 1 ? sum : p == 2 ? sqrt(sum) : pow(sum, 1 / (double)p));
}

static double norm_term(double x, int64_t p)
{
    return p == 1 ? fabs(x) : p == 2 ? x * x : pow(fabs(x), (double)p);
}

static inline void visit_norm(void *context, int64_t at)
{
    pool_result *r = context;
    r->sum += norm_term((double)r->x[at], r->p);
}

static float pool_norm(const pool_state *s, const taps *t, const float *x)
{
    pool_result r = {.x = x, .p = s->p};
    each_tap(&s->window, t, visit_norm, &r);
    return norm_of(r.sum, s->p);
}

/* Rows or columns of dim `d` that count in an average, for taps at `base`; at least 1. */
static int64_t counted(const pool_state *s, int d, int64_t base)
{
    const cpu_window *w = &s->window;
    int64_t room = w->in[d] + (s->counts_padding ? w->pad_end[d] : 0) - 1 - base;
    int64_t step = w->dilation[d], end = room < 0 ? 0 : room / step + 1;
    int64_t first = base >= 0 || s->counts_padding ? 0 : (-base + step - 1) / step;
    end = end < w->kernel[d] ? end : w->kernel[d];
    return end - first > 1 ? end - first : 1;
}

/* Lines of results at a time: the rows under them, padded, stay in the L1 cache or not far away. */
#define BAND_FLOATS 8192

static int64_t rows_under(const cpu_window *w, int64_t lines)
{
    return (lines - 1) * w->stride[1] + (w->kernel[1] - 1) * w->dilation[1] + 1;
}

static image_window window_of(const cpu_window *w)
{
    return (image_window){.height = (size_t)w->in[1],
                          .width = (size_t)w->in[2],
                          .channels = 1,
                          .out_height = (size_t)w->out[1],
                          .out_width = (size_t)w->out[2],
                          .kernel_height = (size_t)w->kernel[1],
                          .kernel_width = (size_t)w->kernel[2],
                          .stride_y = (size_t)w->stride[1],
                          .stride_x = (size_t)w->stride[2],
                          .dilation_y = (size_t)w->dilation[1],
                          .dilation_x = (size_t)w->dilation[2],
                          .pad_top = (size_t)w->pad_begin[1],
                          .pad_left = (size_t)w->pad_begin[2]};
}

static status prepare_lines(cpu_prepare *p, pool_state *s)
{
    const cpu_window *w = &s->window;
    if (w->out_plane == 0 || w->in_plane == 0 || w->pad_begin[2] < 0)
        return STATUS_OK;
    s->line = (w->out[2] - 1) * w->stride[2] + (w->kernel[2] - 1) * w->dilation[2] + 1;
    int64_t widest = s->line > w->in[2] ? s->line : w->in[2];
    s->lines = 1;
    while (s->lines < w->out[1] && rows_under(w, 2 * s->lines) * s->line <= BAND_FLOATS)
        s->lines *= 2;
    s->lines = s->lines < w->out[1] ? s->lines : w->out[1];
    if (p->node->op != GRAPH_OP_MAX_POOL) {
        s->counts = arena_allocate(p->memory, (size_t)w->out_plane * sizeof *s->counts);
        if (!s->counts)
            return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a plan");
    }
    for (int64_t i = 0; s->counts && i < w->out_plane; i++)
        s->counts[i] =
            (float)(counted(s, 0, i / w->out[2] / w->out[1] * w->stride[0] - w->pad_begin[0]) *
                    counted(s, 1, i / w->out[2] % w->out[1] * w->stride[1] - w->pad_begin[1]) *
                    counted(s, 2, i % w->out[2] * w->stride[2] - w->pad_begin[2]));
    s->is_by_line = true;
    s->plane = window_of(w);
    s->is_by_plane = pool_planes_is_fast(&s->plane) && w->pad_begin[1] >= 0 && w->out_plane > 1;
    s->folded = rows_under(w, s->lines) * s->line + s->lines * widest;
    int64_t folded = w->kernel[0] > 1 ? w->in[1] * w->in[2] : 0;
    p->part_bytes = (size_t)(s->folded + folded) * sizeof(float);
    return STATUS_OK;
}

static void fill(float *out, int64_t count, float x)
{
    for (int64_t i = 0; i < count; i++)
        out[i] = x;
}

/* `rows` rows of a plane from row `first` on, with their padding: where they are, or in `padded`.
 * They are *pitch floats apart. */
static const float *pad_rows(const pool_state *s, const float *x, int64_t first, int64_t rows,
                             float empty, float *padded, int64_t *pitch)
{
    const cpu_window *w = &s->window;
    int64_t before = w->pad_begin[2] < s->line ? w->pad_begin[2] : s->line;
    int64_t inside = s->line - before < w->in[2] ? s->line - before : w->in[2];
    bool is_inside = first >= 0 && first + rows <= w->in[1] && inside == s->line;
    *pitch = is_inside ? w->in[2] : s->line;
    if (is_inside)
        return x + first * w->in[2];
    for (float *to = padded; rows > 0; rows--, first++, to += s->line) {
        if (first < 0 || first >= w->in[1]) {
            fill(to, s->line, empty);
            continue;
        }
        fill(to, before, empty);
        memcpy(to + before, x + first * w->in[2], (size_t)inside * sizeof *to);
        fill(to + before + inside, s->line - before - inside, empty);
    }
    return padded;
}

/* Lines first .. first + count - 1 of the results of a plane. */
static void pool_lines(const cpu_call *c, const float *x, int64_t first, int64_t count,
                       float *memory, float *out)
{
    const pool_state *s = c->state;
    const cpu_window *w = &s->window;
    bool is_max = c->node->op == GRAPH_OP_MAX_POOL;
    int64_t rows = rows_under(w, count), pitch;
    float *beside = memory + rows_under(w, s->lines) * s->line;
    const float *in = pad_rows(s, x, first * w->stride[1] - w->pad_begin[1], rows,
                               is_max ? -INFINITY : 0, memory, &pitch);
    fold_windows_f32 p = {.kind = is_max ? FOLD_MAX : FOLD_SUM,
                          .in = in,
                          .rows = (size_t)w->kernel[1],
                          .row_stride = (size_t)(w->dilation[1] * pitch),
                          .stride = 1,
                          .taps = 1,
                          .dilation = (size_t)w->dilation[2],
                          .out = beside,
                          .count = (size_t)((count - 1) * pitch + s->line)};
    bool is_apart = w->kernel[1] > 1 && w->kernel[2] > 1; /* columns first: neighbours share them */
    bool is_at_once = is_apart && w->stride[1] == 1;
    fold_windows_f32 line = {.kind = p.kind,
                             .rows = is_apart ? 1 : p.rows,
                             .row_stride = p.row_stride,
                             .stride = (size_t)w->stride[2],
                             .taps = (size_t)w->kernel[2],
                             .dilation = p.dilation,
                             .count = (size_t)w->out[2]};
    if (is_at_once)
        c->kernels->fold_windows_f32(&p);
    p.count = (size_t)s->line;
    for (int64_t i = 0; i < count; i++) {
        p.in = in + i * w->stride[1] * pitch;
        if (is_apart && !is_at_once)
            c->kernels->fold_windows_f32(&p);
        line.in = is_at_once ? beside + i * pitch : is_apart ? beside : p.in;
        line.out = out + i * w->out[2];
        c->kernels->fold_windows_f32(&line);
    }
}

/* The planes of channel `x` under the windows of result plane z, folded into one: where it is, or
 * in `folded`; NULL: they are all padding. */
static const float *fold_planes(const cpu_call *c, const float *x, int64_t z, float *folded)
{
    const pool_state *s = c->state;
    const cpu_window *w = &s->window;
    int64_t plane = w->in[1] * w->in[2];
    taps t = taps_of(w, (const int64_t[]){z, 0, 0});
    if (t.first[0] >= t.end[0])
        return NULL;
    x += (t.base[0] + t.first[0] * w->dilation[0]) * plane;
    if (t.end[0] - t.first[0] == 1)
        return x;
    c->kernels->fold_windows_f32(
        &(fold_windows_f32){.kind = c->node->op == GRAPH_OP_MAX_POOL ? FOLD_MAX : FOLD_SUM,
                            .in = x,
                            .rows = (size_t)(t.end[0] - t.first[0]),
                            .row_stride = (size_t)(w->dilation[0] * plane),
                            .stride = 1,
                            .taps = 1,
                            .dilation = 1,
                            .out = folded,
                            .count = (size_t)plane});
    return folded;
}

static void pool_planes(const cpu_call *c, const float *in, size_t planes, const float *divisors,
                        float *out)
{
    const pool_state *s = c->state;
    c->kernels->pool_planes_f32(&(pool_planes_f32){.window = s->plane,
                                                   .is_max = c->node->op == GRAPH_OP_MAX_POOL,
                                                   .planes = planes,
                                                   .in = in,
                                                   .divisors = divisors,
                                                   .out = out});
}

/* Result plane z of channel `x`. */
static void pool_plane(const cpu_call *c, const float *x, int64_t z, float *memory, float *out)
{
    const pool_state *s = c->state;
    const cpu_window *w = &s->window;
    int64_t count = w->out[1] * w->out[2];
    x = fold_planes(c, x, z, memory + s->folded);
    if (!x) {
        fill(out, count, c->node->op == GRAPH_OP_MAX_POOL ? -INFINITY : 0);
        return;
    }
    if (s->is_by_plane) {
        pool_planes(c, x, 1, s->counts ? s->counts + z * count : NULL, out);
        return;
    }
    for (int64_t line = 0, some; line < w->out[1]; line += some) {
        some = w->out[1] - line < s->lines ? w->out[1] - line : s->lines;
        pool_lines(c, x, line, some, memory, out + line * w->out[2]);
    }
    if (s->counts)
        c->kernels->div_f32(out, 1, s->counts + z * count, 1, out, (size_t)count);
}

/* One window without padding that is the plane: a fold of neighbours. */
static bool is_whole_plane(const cpu_window *w)
{
    bool is_whole = w->out_plane == 1;
    for (int d = 0; d < CPU_WINDOW_DIMS; d++)
        is_whole &= w->kernel[d] == w->in[d] && w->pad_begin[d] == 0 && w->pad_end[d] == 0 &&
                    (w->dilation[d] == 1 || w->kernel[d] == 1);
    return is_whole;
}

static void fold_whole_planes(const cpu_call *c, size_t first, size_t count)
{
    const pool_state *s = c->state;
    const cpu_window *w = &s->window;
    float *out = (float *)c->outputs[0].data + first;
    c->kernels->fold_each_f32(
        &(fold_each_f32){.kind = c->node->op == GRAPH_OP_MAX_POOL ? FOLD_MAX : FOLD_SUM,
                         .rows = count,
                         .width = (size_t)w->in_plane,
                         .in = (const float *)c->inputs[0]->data + first * (size_t)w->in_plane,
                         .stride = (size_t)w->in_plane,
                         .out = out});
    if (s->counts)
        c->kernels->div_f32(out, 1, s->counts, 0, out, count);
}

/* Channels first .. first + count - 1, counted over the whole batch. */
static void pool_channels(const cpu_call *c, void *memory, size_t first, size_t count)
{
    const pool_state *s = c->state;
    const cpu_window *w = &s->window;
    if (is_whole_plane(w)) {
        fold_whole_planes(c, first, count);
        return;
    }
    bool is_flat = s->is_by_plane && w->in[0] == 1 && w->out[0] == 1 && w->kernel[0] == 1;
    for (size_t i = first, some; i < first + count && !cancel_check(c->cancel); i += some) {
        const float *x = (const float *)c->inputs[0]->data + (int64_t)i * w->in_plane;
        float *out = (float *)c->outputs[0].data + (int64_t)i * w->out_plane;
        size_t left = first + count - i;
        some = !is_flat ? 1 : left < CANCEL_PLANES ? left : CANCEL_PLANES;
        if (is_flat) {
            pool_planes(c, x, some, s->counts, out);
            continue;
        }
        for (int64_t z = 0; z < w->out[0]; z++)
            pool_plane(c, x, z, memory, out + z * w->out[1] * w->out[2]);
    }
}

static status run_pool(const cpu_call *call)
{
    const pool_state *s = call->state;
    const cpu_window *w = &s->window;
    const tensor *in = call->inputs[0];
    if (s->is_by_line) {
        size_t planes = (size_t)(in->dims[0] * in->dims[1]);
        double steps = (double)(w->kernel[0] * w->kernel[1] + w->kernel[2]);
        cpu_split_rows(call, (double)planes * (double)w->out_plane * steps / 8, pool_channels,
                       planes);
        return cancel_check(call->cancel);
    }
    float *out = call->outputs[0].data;
    int64_t *places = call->node->output_count > 1 ? call->outputs[1].data : NULL;
    bool is_column_major = graph_attribute_int(call->node, "storage_order", 0) != 0;
    for (int64_t plane = 0; plane < in->dims[0] * in->dims[1]; plane++) {
        const float *x = (const float *)in->data + plane * w->in_plane;
        int64_t o[CPU_WINDOW_DIMS] = {0};
        for (int64_t i = 0; i < w->out_plane; i++) {
            status end = i % CANCEL_OUTPUTS == 0 ? cancel_check(call->cancel) : STATUS_OK;
            if (end)
                return end;
            taps t = taps_of(w, o);
            int64_t at = plane * w->out_plane + i, place;
            if (call->node->op == GRAPH_OP_MAX_POOL) {
                float best = pool_max(w, &t, x, &place);
                if (out)
                    out[at] = best;
                if (places && is_column_major && place >= 0)
                    place = place / (w->in[1] * w->in[2]) * w->in[1] * w->in[2] +
                            place % w->in[2] * w->in[1] + place / w->in[2] % w->in[1];
                if (places)
                    places[at] = place < 0 ? -1 : plane * w->in_plane + place;
            } else {
                out[at] = call->node->op == GRAPH_OP_AVERAGE_POOL ? pool_average(s, &t, x)
                                                                  : pool_norm(s, &t, x);
            }
            for (int d = CPU_WINDOW_DIMS - 1; d >= 0 && ++o[d] == w->out[d]; d--)
                o[d] = 0;
        }
    }
    return STATUS_OK;
}

static status prepare_global(cpu_prepare *p)
{
    return p->inputs[0]->dtype == DTYPE_F32 ? STATUS_OK
                                            : cpu_op_fail_dtype(p->node, p->inputs[0]->dtype);
}

static status run_global(const cpu_call *c)
{
    const tensor *in = c->inputs[0];
    int64_t n = cpu_dims_product(in->dims, 2, in->rank), planes = in->dims[0] * in->dims[1];
    int64_t p = graph_attribute_int(c->node, "p", 2);
    for (int64_t i = 0; i < planes; i++) {
        const float *x = (const float *)in->data + i * n;
        float result;
        if (c->node->op == GRAPH_OP_GLOBAL_MAX_POOL) {
            result = c->kernels->reduce_max_f32(x, (size_t)n);
        } else if (c->node->op == GRAPH_OP_GLOBAL_AVERAGE_POOL) {
            result = c->kernels->reduce_sum_f32(x, (size_t)n) / (float)n;
        } else {
            double sum = 0;
            for (int64_t j = 0; j < n; j++)
                sum += norm_term((double)x[j], p);
            result = norm_of(sum, p);
        }
        ((float *)c->outputs[0].data)[i] = result;
    }
    return STATUS_OK;
}

static const cpu_op table[] = {
    {GRAPH_OP_MAX_POOL, prepare_pool, run_pool, CPU_WIDEN_FLOATS | CPU_WIDEN_BYTE, false},
    {GRAPH_OP_AVERAGE_POOL, prepare_pool, run_pool, CPU_WIDEN_FLOATS, false},
    {GRAPH_OP_LP_POOL, prepare_pool, run_pool, CPU_WIDEN_FLOATS, false},
    {GRAPH_OP_GLOBAL_MAX_POOL, prepare_global, run_global, CPU_WIDEN_FLOATS, false},
    {GRAPH_OP_GLOBAL_AVERAGE_POOL, prepare_global, run_global, CPU_WIDEN_FLOATS, false},
    {GRAPH_OP_GLOBAL_LP_POOL, prepare_global, run_global, CPU_WIDEN_FLOATS, false},
};

const cpu_op_family cpu_ops_pool = {table, sizeof table / sizeof table[0]};
