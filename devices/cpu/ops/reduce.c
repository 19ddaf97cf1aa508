#include <assert.h>
#include <math.h>
#include <string.h>

#include "devices/cpu/ops/op.h"
#include "devices/cpu/ops/split.h"
#include "devices/cpu/tensor_loops/block.h"
#include "devices/cpu/tensor_loops/walk.h"
#include "kernels/activation.h"
#include "kernels/lines.h"

/* Reductions over any set of axes. The input is walked as kept dims x reduced dims; each output
 * element takes its inputs in row-major order of the reduced dims, whatever else the tensor holds,
 * so its bits depend on them only. Floats accumulate in double. */

typedef enum reduce_kind {
    REDUCE_SUM,
    REDUCE_SUM_ABS,
    REDUCE_SUM_SQUARE,
    REDUCE_SUM_EXP, /* of x - maximum; the second pass of LogSumExp */
    REDUCE_PROD,
    REDUCE_MAX,
    REDUCE_MIN,
} reduce_kind;

typedef struct reduce_plan {
    cpu_walk kept, reduced; /* operand 0: the input; of `kept`, operand 1: the output */
    reduce_kind kind;
    cpu_compute compute; /* F64, I64 or U64 */
    dtype type;
    int64_t reduced_count;
    bool has_last; /* the last axis is reduced: neighbours are */
} reduce_plan;

static bool is_reduced_axis(const graph_node *node, const tensor *in, const tensor *axes, int axis)
{
    if (!axes || tensor_count(axes) == 0)
        return graph_attribute_int(node, "noop_with_empty_axes", 0) == 0;
    for (int64_t i = 0; i < tensor_count(axes); i++)
        if (cpu_axis(tensor_get_integer(axes, i), in->rank) == axis)
            return true;
    return false;
}

/* Axes that are reduced beside each other are one dim; others stay apart even where the dim between
 * them is 1, as the batch's may be: the order of a sum must not depend on it. */
static void plan_reduced(cpu_walk *w, int rank, const int64_t *dims, const int64_t *strides)
{
    *w = (cpu_walk){.rank = rank > 0 ? rank : 1, .operand_count = 1};
    w->dims[0] = w->strides[0][0] = 1;
    for (int i = 0; i < rank; i++) {
        w->dims[i] = dims[i];
        w->strides[0][i] = strides[i];
    }
}

static void plan_axes(reduce_plan *p, const graph_node *node, const tensor *in, const tensor *axes)
{
    int64_t dense[TENSOR_RANK_MAX], kept_dims[TENSOR_RANK_MAX], reduced_dims[TENSOR_RANK_MAX];
    int64_t kept[TENSOR_RANK_MAX], out[TENSOR_RANK_MAX], reduced[TENSOR_RANK_MAX];
    int kept_rank = 0, reduced_rank = 0;
    cpu_dense_strides(in->rank, in->dims, dense);
    for (int i = 0; i < in->rank; i++) {
        if (is_reduced_axis(node, in, axes, i)) {
            bool is_beside = i > 0 && is_reduced_axis(node, in, axes, i - 1);
            reduced_rank += !is_beside;
            reduced_dims[reduced_rank - 1] =
                (is_beside ? reduced_dims[reduced_rank - 1] : 1) * in->dims[i];
            reduced[reduced_rank - 1] = dense[i];
        } else {
            kept_dims[kept_rank] = in->dims[i];
            kept[kept_rank++] = dense[i];
        }
    }
    cpu_dense_strides(kept_rank, kept_dims, out);
    cpu_walk_init(&p->kept, kept_rank, kept_dims, 2, (const int64_t *const[]){kept, out});
    plan_reduced(&p->reduced, reduced_rank, reduced_dims, reduced);
    p->has_last = in->rank > 0 && is_reduced_axis(node, in, axes, in->rank - 1);
    p->reduced_count = cpu_dims_product(reduced_dims, 0, reduced_rank);
}

static reduce_kind kind_of(graph_op op)
{
    switch (op) {
    case GRAPH_OP_REDUCE_L1:
        return REDUCE_SUM_ABS;
    case GRAPH_OP_REDUCE_L2:
    case GRAPH_OP_REDUCE_SUM_SQUARE:
        return REDUCE_SUM_SQUARE;
    case GRAPH_OP_REDUCE_PROD:
        return REDUCE_PROD;
    case GRAPH_OP_REDUCE_MAX:
    case GRAPH_OP_REDUCE_LOG_SUM_EXP:
        return REDUCE_MAX;
    case GRAPH_OP_REDUCE_MIN:
        return REDUCE_MIN;
    default:
        return REDUCE_SUM;
    }
}

static double start_f64(reduce_kind kind)
{
    return kind == REDUCE_PROD  ? 1
           : kind == REDUCE_MAX ? -(double)INFINITY
           : kind == REDUCE_MIN ? (double)INFINITY
                                : 0;
}

/* Of an empty set: the least or greatest of the type, as NumPy has it. */
static uint64_t start_integer(reduce_kind kind, dtype type)
{
    if (kind == REDUCE_MAX)
        return type == DTYPE_BOOL ? 0 : (uint64_t)dtype_integer_min(type);
    if (kind == REDUCE_MIN)
        return type == DTYPE_BOOL ? 1 : dtype_integer_max(type);
    return kind == REDUCE_PROD;
}

#define EACH(member, expression)                                                                   \
    for (size_t i = 0; i < n; i++)                                                                 \
    sum->member[i] = (expression)

/* sum[i] = sum[i] combined with x[i] */
static void combine(const reduce_plan *p, cpu_block *sum, const cpu_block *x,
                    const cpu_block *maximum, size_t n)
{
    bool is_f64 = p->compute == CPU_COMPUTE_F64, is_i64 = p->compute == CPU_COMPUTE_I64;
    const double *f = x->f64;
    const uint64_t *u = x->u64;
    const int64_t *s = x->i64;
    switch (p->kind) {
    case REDUCE_SUM:
        if (is_f64)
            EACH(f64, sum->f64[i] + f[i]);
        else
            EACH(u64, sum->u64[i] + u[i]);
        break;
    case REDUCE_SUM_ABS:
        if (is_f64)
            EACH(f64, sum->f64[i] + fabs(f[i]));
        else
            EACH(u64, sum->u64[i] + (is_i64 && s[i] < 0 ? 0 - u[i] : u[i]));
        break;
    case REDUCE_SUM_SQUARE:
        if (is_f64)
            EACH(f64, sum->f64[i] + f[i] * f[i]);
        else
            EACH(u64, sum->u64[i] + u[i] * u[i]);
        break;
    case REDUCE_SUM_EXP:
        EACH(f64, sum->f64[i] + exp(f[i] - maximum->f64[i]));
        break;
    case REDUCE_PROD:
        if (is_f64)
            EACH(f64, sum->f64[i] * f[i]);
        else
            EACH(u64, sum->u64[i] * u[i]);
        break;
    case REDUCE_MAX:
        if (is_f64)
            EACH(f64, f[i] > sum->f64[i] || f[i] != f[i] ? f[i] : sum->f64[i]);
        else if (is_i64)
            EACH(i64, s[i] > sum->i64[i] ? s[i] : sum->i64[i]);
        else
            EACH(u64, u[i] > sum->u64[i] ? u[i] : sum->u64[i]);
        break;
    case REDUCE_MIN:
        if (is_f64)
            EACH(f64, f[i] < sum->f64[i] || f[i] != f[i] ? f[i] : sum->f64[i]);
        else if (is_i64)
            EACH(i64, s[i] < sum->i64[i] ? s[i] : sum->i64[i]);
        else
            EACH(u64, u[i] < sum->u64[i] ? u[i] : sum->u64[i]);
        break;
    }
}

static void start(const reduce_plan *p, cpu_block *sum, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p->compute == CPU_COMPUTE_F64)
            sum->f64[i] = start_f64(p->kind);
        else
            sum->u64[i] = start_integer(p->kind, p->type);
}

/* `n` neighbouring outputs at once: input offsets base, base + step, ... */
static void reduce_beside(const reduce_plan *p, const tensor *in, int64_t base, int64_t step,
                          size_t n, const cpu_block *maximum, cpu_block *sum)
{
    start(p, sum, n);
    cpu_cursor c;
    cpu_block x;
    int64_t run = cpu_walk_run(&p->reduced), along = cpu_walk_step(&p->reduced, 0);
    for (bool more = cpu_walk_start(&p->reduced, &c); more; more = cpu_walk_next(&p->reduced, &c))
        for (int64_t i = 0; i < run; i++) {
            cpu_load(p->compute, in->dtype, in->data, base + c.offsets[0] + i * along, step, n, &x);
            combine(p, sum, &x, maximum, n);
        }
}

/* One output whose inputs lie in long runs: a fixed number of lanes accumulates them, then the
 * lanes are combined in order. */
#define LANES 8
/* Shorter runs are reduced beside each other. */
#define ALONG_MIN (2 * LANES)

static void reduce_along(const reduce_plan *p, const tensor *in, int64_t base,
                         const cpu_block *maximum, cpu_block *sum)
{
    cpu_block lanes, x, top;
    start(p, &lanes, LANES);
    for (int i = 0; maximum && i < LANES; i++)
        top.f64[i] = maximum->f64[0];
    int64_t run = cpu_walk_run(&p->reduced), along = cpu_walk_step(&p->reduced, 0);
    cpu_cursor c;
    for (bool more = cpu_walk_start(&p->reduced, &c); more; more = cpu_walk_next(&p->reduced, &c))
        for (int64_t i = 0; i < run; i += LANES) {
            size_t n = (size_t)(run - i < LANES ? run - i : LANES);
            cpu_load(p->compute, in->dtype, in->data, base + c.offsets[0] + i * along, along, n,
                     &x);
            combine(p, &lanes, &x, &top, n);
        }
    start(p, sum, 1);
    reduce_plan fold = *p; /* the lanes hold sums already */
    if (p->kind == REDUCE_SUM_ABS || p->kind == REDUCE_SUM_SQUARE || p->kind == REDUCE_SUM_EXP)
        fold.kind = REDUCE_SUM;
    for (int i = 0; i < LANES; i++) {
        x.u64[0] = lanes.u64[i];
        combine(&fold, sum, &x, NULL, 1);
    }
}

static void finish(graph_op op, const reduce_plan *p, const cpu_block *maximum, cpu_block *sum,
                   size_t n)
{
    double count = (double)p->reduced_count;
    for (size_t i = 0; i < n; i++) {
        if (p->compute == CPU_COMPUTE_F64) {
            double x = sum->f64[i];
            sum->f64[i] = op == GRAPH_OP_REDUCE_MEAN          ? x / count
                          : op == GRAPH_OP_REDUCE_L2          ? sqrt(x)
                          : op == GRAPH_OP_REDUCE_LOG_SUM     ? log(x)
                          : op == GRAPH_OP_REDUCE_LOG_SUM_EXP ? maximum->f64[i] + log(x)
                                                              : x;
        } else if (op == GRAPH_OP_REDUCE_MEAN && p->reduced_count) {
            if (p->compute == CPU_COMPUTE_I64)
                sum->i64[i] /= p->reduced_count;
            else
                sum->u64[i] /= (uint64_t)p->reduced_count;
        } else if (op == GRAPH_OP_REDUCE_L2) {
            sum->u64[i] = (uint64_t)sqrt((double)sum->u64[i]);
        } else if (op == GRAPH_OP_REDUCE_LOG_SUM) {
            sum->i64[i] = cpu_double_to_i64(log((double)sum->i64[i]));
        }
    }
}

static void reduce_outputs(graph_op op, const reduce_plan *p, const tensor *in, int64_t base,
                           int64_t step, size_t n, bool is_along, cpu_block *sum)
{
    cpu_block maximum;
    if (is_along)
        reduce_along(p, in, base, NULL, sum);
    else
        reduce_beside(p, in, base, step, n, NULL, sum);
    if (op == GRAPH_OP_REDUCE_LOG_SUM_EXP) {
        for (size_t i = 0; i < n; i++)
            maximum.f64[i] = isinf(sum->f64[i]) ? 0 : sum->f64[i];
        reduce_plan exponents = *p;
        exponents.kind = REDUCE_SUM_EXP;
        if (is_along)
            reduce_along(&exponents, in, base, &maximum, sum);
        else
            reduce_beside(&exponents, in, base, step, n, &maximum, sum);
    }
    finish(op, p, &maximum, sum, n);
}

/* Sums, means and extremes of F32 by kernels. Sums of SUM_ELEMENTS floats are added as doubles. */

#define SUM_ELEMENTS 256
#define FLUSH_EVERY 32 /* floats of sums beside each other */

static bool has_kernel(const reduce_plan *p, dtype type, bool is_along)
{
    return type == DTYPE_F32 && p->reduced_count > 0 &&
           (p->kind == REDUCE_SUM || p->kind == REDUCE_SUM_SQUARE || p->kind == REDUCE_MAX ||
            p->kind == REDUCE_MIN || (p->kind == REDUCE_SUM_ABS && is_along));
}

/* One run of neighbours. */
static double reduce_run(const kernels *k, reduce_kind kind, const float *x, size_t count)
{
    if (kind == REDUCE_MAX)
        return (double)k->reduce_max_f32(x, count);
    if (kind == REDUCE_MIN)
        return (double)k->reduce_min_f32(x, count);
    double sum = 0;
    float changed[SUM_ELEMENTS];
    for (size_t i = 0; i < count; i += SUM_ELEMENTS) {
        size_t n = count - i < SUM_ELEMENTS ? count - i : SUM_ELEMENTS;
        if (kind == REDUCE_SUM_SQUARE)
            k->mul_f32(x + i, 1, x + i, 1, changed, n);
        else if (kind == REDUCE_SUM_ABS)
            k->activation_f32(
                &(activation_f32){.kind = ACTIVATION_ABS, .in = x + i, .out = changed, .count = n});
        sum += (double)k->reduce_sum_f32(kind == REDUCE_SUM ? x + i : changed, n);
    }
    return sum;
}

static void reduce_along_f32(const kernels *k, const reduce_plan *p, const float *in,
                             cpu_block *sum)
{
    cpu_block x;
    cpu_cursor c;
    start(p, sum, 1);
    reduce_plan fold = *p;
    bool is_sum = p->kind == REDUCE_SUM_SQUARE || p->kind == REDUCE_SUM_ABS;
    fold.kind = is_sum ? REDUCE_SUM : p->kind;
    for (bool more = cpu_walk_start(&p->reduced, &c); more; more = cpu_walk_next(&p->reduced, &c)) {
        x.f64[0] = reduce_run(k, p->kind, in + c.offsets[0], (size_t)cpu_walk_run(&p->reduced));
        combine(&fold, sum, &x, NULL, 1);
    }
}

/* Adds `some` to the sums, and empties it. */
static void flush(float *some, cpu_block *sum, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        sum->f64[i] += (double)some[i];
        some[i] = 0;
    }
}

/* One output alone: the bits of reduce_beside_f32. */
static double reduce_one_f32(const reduce_plan *p, const float *in)
{
    int64_t run = cpu_walk_run(&p->reduced), along = cpu_walk_step(&p->reduced, 0), added = 0;
    bool is_extreme = p->kind == REDUCE_MAX || p->kind == REDUCE_MIN;
    double sum = 0;
    float some = is_extreme ? (float)start_f64(p->kind) : 0;
    cpu_cursor c;
    for (bool more = cpu_walk_start(&p->reduced, &c); more; more = cpu_walk_next(&p->reduced, &c))
        for (int64_t i = 0; i < run; i++) {
            float x = in[c.offsets[0] + i * along];
            if (p->kind == REDUCE_MAX)
                some = some > x || isnan(some) ? some : x;
            else if (p->kind == REDUCE_MIN)
                some = some < x || isnan(some) ? some : x;
            else
                some += p->kind == REDUCE_SUM_SQUARE ? x * x : x;
            if (!is_extreme && ++added % FLUSH_EVERY == 0) {
                sum += (double)some;
                some = 0;
            }
        }
    return is_extreme ? (double)some : sum + (double)some;
}

static fold_kind fold_of(reduce_kind kind)
{
    return kind == REDUCE_MAX          ? FOLD_MAX
           : kind == REDUCE_MIN        ? FOLD_MIN
           : kind == REDUCE_SUM_SQUARE ? FOLD_SUM_SQUARE
           : kind == REDUCE_SUM_ABS    ? FOLD_SUM_ABS
           : kind == REDUCE_PROD       ? FOLD_PRODUCT
                                       : FOLD_SUM;
}

/* `n` neighbouring outputs, whose inputs are `step` apart. */
static void reduce_beside_f32(const kernels *k, const reduce_plan *p, const float *in, int64_t step,
                              size_t n, cpu_block *sum)
{
    bool is_extreme = p->kind == REDUCE_MAX || p->kind == REDUCE_MIN;
    float some[CPU_BLOCK_ELEMENTS], apart[CPU_BLOCK_ELEMENTS];
    int64_t run = cpu_walk_run(&p->reduced), along = cpu_walk_step(&p->reduced, 0), added = 0;
    fold_rows_f32 fold = {.kind = fold_of(p->kind), .width = n, .out = some};
    cpu_cursor c;
    start(p, sum, n);
    for (size_t i = 0; i < n; i++)
        some[i] = is_extreme ? (float)sum->f64[i] : 0;
    for (bool more = cpu_walk_start(&p->reduced, &c); more; more = cpu_walk_next(&p->reduced, &c))
        for (int64_t i = 0, rows; i < run; i += rows) {
            const float *x = in + c.offsets[0] + i * along;
            int64_t room = FLUSH_EVERY - added % FLUSH_EVERY;
            rows = step != 1 ? 1 : run - i < room ? run - i : room;
            for (size_t j = 0; step != 1 && j < n; j++)
                apart[j] = x[(int64_t)j * step];
            fold.rows = (size_t)rows;
            fold.stride = (size_t)along;
            fold.in = step != 1 ? apart : x;
            k->fold_rows_f32(&fold);
            added += rows;
            if (!is_extreme && added % FLUSH_EVERY == 0)
                flush(some, sum, n);
        }
    for (size_t i = 0; is_extreme && i < n; i++)
        sum->f64[i] = (double)some[i];
    if (!is_extreme)
        flush(some, sum, n);
}

/* log of the sum of e^x of one run, whose maximum is `top`. */
static float log_sum_exp(const kernels *k, const float *x, size_t count, float top)
{
    double sum = 0;
    float some[SUM_ELEMENTS], shift = isinf(top) ? 0 : top;
    for (size_t i = 0; i < count; i += SUM_ELEMENTS) {
        size_t n = count - i < SUM_ELEMENTS ? count - i : SUM_ELEMENTS;
        k->sub_f32(x + i, 1, &shift, 0, some, n);
        k->exp_f32(some, some, n);
        sum += (double)k->reduce_sum_f32(some, n);
    }
    return (float)((double)shift + log(sum));
}

/* Folds of rows of neighbours, `along` floats each: the commonest reductions. */
static void reduce_rows_f32(const cpu_call *c, const reduce_plan *p, const float *in, size_t rows,
                            int64_t step, float *out)
{
    const kernels *k = c->kernels;
    size_t count = (size_t)cpu_walk_run(&p->reduced);
    graph_op op = c->node->op;
    bool is_product = p->kind == REDUCE_PROD,
         is_extreme = p->kind == REDUCE_MAX || p->kind == REDUCE_MIN;
    if (count <= SUM_ELEMENTS || is_product || is_extreme) {
        k->fold_each_f32(&(fold_each_f32){.kind = fold_of(p->kind),
                                          .rows = rows,
                                          .width = count,
                                          .in = in,
                                          .stride = (size_t)step,
                                          .out = out});
        float divisor = (float)p->reduced_count;
        if (op == GRAPH_OP_REDUCE_MEAN)
            k->div_f32(out, 1, &divisor, 0, out, rows);
        for (size_t i = 0; op == GRAPH_OP_REDUCE_L2 && i < rows; i++)
            out[i] = sqrtf(out[i]);
        for (size_t i = 0; op == GRAPH_OP_REDUCE_LOG_SUM_EXP && i < rows; i++)
            out[i] = log_sum_exp(k, in + (int64_t)i * step, count, out[i]);
        return;
    }
    double divisor = op == GRAPH_OP_REDUCE_MEAN ? (double)p->reduced_count : 1;
    for (size_t i = 0; i < rows; i++, in += step) {
        double sum = reduce_run(k, p->kind, in, count);
        out[i] = (float)(op == GRAPH_OP_REDUCE_L2 ? sqrt(sum) : sum / divisor);
    }
}

/* Extremes of integers and doubles, sums of doubles. */
static bool is_plain(graph_op op, dtype type, const reduce_plan *p)
{
    bool is_extreme = op == GRAPH_OP_REDUCE_MAX || op == GRAPH_OP_REDUCE_MIN;
    bool is_sum = op == GRAPH_OP_REDUCE_SUM || op == GRAPH_OP_REDUCE_MEAN;
    return p->has_last && p->reduced.rank == 1 && p->reduced_count > 0 && plain_line_has(type) &&
           (is_extreme || (is_sum && type == DTYPE_F64));
}

/* `rows` rows of neighbours, `step` elements apart; elements from `from` on to those from `to` on.
 */
static void reduce_rows_plain(const cpu_call *c, const reduce_plan *p, int64_t from, int64_t rows,
                              int64_t step, int64_t to)
{
    int64_t bytes = (int64_t)dtype_bytes(p->type);
    fold_line fold = {.kind = fold_of(p->kind), .type = p->type, .count = (size_t)p->reduced_count};
    for (int64_t i = 0; i < rows; i++) {
        fold.in = (const char *)c->inputs[0]->data + (from + i * step) * bytes;
        fold.out = (char *)c->outputs[0].data + (to + i) * bytes;
        c->kernels->fold_line(&fold);
        if (c->node->op == GRAPH_OP_REDUCE_MEAN)
            *(double *)fold.out /= (double)p->reduced_count;
    }
}

static bool is_by_rows(graph_op op, dtype type, const reduce_plan *p)
{
    return type == DTYPE_F32 && p->reduced.rank == 1 && p->reduced_count > 0 &&
           op != GRAPH_OP_REDUCE_LOG_SUM;
}

/* A reduction of one execution, in pieces of one of the kept dims. */
typedef struct reduce_run_of {
    const cpu_call *call;
    const reduce_plan *plan;
    bool is_along, has_kernel, is_plain;
    int axis;
    int64_t items; /* of that dim in a piece */
} reduce_run_of;

static void reduce_some(const reduce_run_of *r, int64_t from, size_t n, cpu_block *sum)
{
    const cpu_call *c = r->call;
    const reduce_plan *p = r->plan;
    int64_t step = cpu_walk_step(&p->kept, 0);
    const float *in = c->inputs[0]->data;
    if (!r->has_kernel) {
        reduce_outputs(c->node->op, p, c->inputs[0], from, step, n, r->is_along, sum);
        return;
    }
    if (r->is_along)
        reduce_along_f32(c->kernels, p, in + from, sum);
    else if (n == 1)
        sum->f64[0] = reduce_one_f32(p, in + from);
    else
        reduce_beside_f32(c->kernels, p, in + from, step, n, sum);
    finish(c->node->op, p, NULL, sum, n);
}

static void reduce_piece(const void *context, void *memory, size_t unit)
{
    (void)memory;
    const reduce_run_of *r = context;
    const reduce_plan *p = r->plan;
    tensor *out = &r->call->outputs[0];
    cpu_walk kept = p->kept;
    int64_t first = (int64_t)unit * r->items, left = kept.dims[r->axis] - first;
    kept.dims[r->axis] = left < r->items ? left : r->items;
    int64_t from = first * kept.strides[0][r->axis], to = first * kept.strides[1][r->axis];
    int64_t run = cpu_walk_run(&kept), step = cpu_walk_step(&kept, 0);
    int64_t group = r->is_along ? 1 : CPU_BLOCK_ELEMENTS;
    cpu_block sum;
    cpu_cursor at;
    bool is_fast = r->is_along && is_by_rows(r->call->node->op, r->call->inputs[0]->dtype, p);
    for (bool more = cpu_walk_start(&kept, &at); more; more = cpu_walk_next(&kept, &at))
        for (int64_t i = 0; i < run; i += group) {
            if (r->is_plain) {
                reduce_rows_plain(r->call, p, from + at.offsets[0], run, step, to + at.offsets[1]);
                break;
            }
            if (is_fast) {
                reduce_rows_f32(r->call, p,
                                (const float *)r->call->inputs[0]->data + from + at.offsets[0],
                                (size_t)run, step, (float *)out->data + to + at.offsets[1]);
                break;
            }
            size_t n = (size_t)(run - i < group ? run - i : group);
            reduce_some(r, from + at.offsets[0] + i * step, n, &sum);
            cpu_store(p->compute, out->dtype, &sum, out->data, to + at.offsets[1] + i, 1, n);
        }
}

static status run_reduce(const cpu_call *c)
{
    const tensor *in = c->inputs[0];
    graph_op op = c->node->op;
    reduce_plan p = {.kind = kind_of(op), .compute = cpu_compute_of(in->dtype), .type = in->dtype};
    if (p.compute == CPU_COMPUTE_F32 || op == GRAPH_OP_REDUCE_LOG_SUM_EXP)
        p.compute = CPU_COMPUTE_F64;
    plan_axes(&p, c->node, in, cpu_input(c->inputs, c->node, 1));
    bool is_along =
        p.has_last && (cpu_walk_run(&p.reduced) >= ALONG_MIN || is_by_rows(op, in->dtype, &p));
    bool is_one_pass = c->node->op != GRAPH_OP_REDUCE_LOG_SUM_EXP;
    reduce_run_of r = {.call = c, .plan = &p, .is_along = is_along};
    r.has_kernel = is_one_pass && has_kernel(&p, in->dtype, is_along);
    r.is_plain = is_along && is_plain(op, in->dtype, &p);
    for (int i = 1; i < p.kept.rank; i++)
        r.axis = p.kept.dims[i] > p.kept.dims[r.axis] ? i : r.axis;
    size_t count = (size_t)p.kept.dims[r.axis];
    bool is_last = r.axis == p.kept.rank - 1 && !is_along;
    r.items = (int64_t)cpu_split_items(c, count, count, is_last ? 16 : 1);
    if (count > 0)
        cpu_split(c, (double)tensor_count(in) / (r.has_kernel ? 4 : 1), reduce_piece, &r,
                  (count + (size_t)r.items - 1) / (size_t)r.items);
    return STATUS_OK;
}

static const cpu_op table[] = {
    {GRAPH_OP_REDUCE_L1, cpu_op_prepare_numbers, run_reduce, 0, false},
    {GRAPH_OP_REDUCE_L2, cpu_op_prepare_numbers, run_reduce, 0, false},
    {GRAPH_OP_REDUCE_LOG_SUM, cpu_op_prepare_numbers, run_reduce, 0, false},
    {GRAPH_OP_REDUCE_LOG_SUM_EXP, cpu_op_prepare_numbers, run_reduce, 0, false},
    {GRAPH_OP_REDUCE_MAX, cpu_op_prepare_numbers, run_reduce, 0, false},
    {GRAPH_OP_REDUCE_MEAN, cpu_op_prepare_numbers, run_reduce, 0, false},
    {GRAPH_OP_REDUCE_MIN, cpu_op_prepare_numbers, run_reduce, 0, false},
    {GRAPH_OP_REDUCE_PROD, cpu_op_prepare_numbers, run_reduce, 0, false},
    {GRAPH_OP_REDUCE_SUM, cpu_op_prepare_numbers, run_reduce, 0, false},
    {GRAPH_OP_REDUCE_SUM_SQUARE, cpu_op_prepare_numbers, run_reduce, 0, false},
};

const cpu_op_family cpu_ops_reduce = {table, sizeof table / sizeof table[0]};
