#include "graph/stablehlo/text.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const element_types[DTYPE_COUNT] = {
    [DTYPE_BOOL] = "i1",  [DTYPE_U8] = "ui8",     [DTYPE_U16] = "ui16",  [DTYPE_U32] = "ui32",
    [DTYPE_U64] = "ui64", [DTYPE_I8] = "i8",      [DTYPE_I16] = "i16",   [DTYPE_I32] = "i32",
    [DTYPE_I64] = "i64",  [DTYPE_F16] = "f16",    [DTYPE_BF16] = "bf16", [DTYPE_F32] = "f32",
    [DTYPE_F64] = "f64",  [DTYPE_BYTES] = "none",
};

void stablehlo_append(emitter *e, const char *format, ...)
{
    for (;;) {
        size_t room = e->body_capacity - e->body_bytes;
        va_list args;
        va_start(args, format);
        int bytes = vsnprintf(e->body ? e->body + e->body_bytes : NULL, room, format, args);
        va_end(args);
        assert(bytes >= 0);
        if ((size_t)bytes < room) {
            e->body_bytes += (size_t)bytes;
            return;
        }
        e->body_capacity = 2 * e->body_capacity + (size_t)bytes + 4096;
        e->body = realloc(e->body, e->body_capacity);
        assert(e->body != NULL); /* loading a model is not the request path */
    }
}

void stablehlo_append_type(emitter *e, const ssa *v)
{
    stablehlo_append(e, "tensor<");
    for (int i = 0; i < v->rank; i++)
        stablehlo_append(e, "%lldx", (long long)v->dims[i]);
    stablehlo_append(e, "%s>", element_types[v->dtype]);
}

static void append_numbers(emitter *e, const char *name, int count, const int64_t *numbers)
{
    stablehlo_append(e, "%s[", name);
    for (int i = 0; i < count; i++)
        stablehlo_append(e, "%s%lld", i ? ", " : "", (long long)numbers[i]);
    stablehlo_append(e, "]");
}

static void append_array(emitter *e, const char *name, int count, const int64_t *numbers)
{
    stablehlo_append(e, "%s = array<i64", name);
    for (int i = 0; i < count; i++)
        stablehlo_append(e, "%s%lld", i ? ", " : ": ", (long long)numbers[i]);
    stablehlo_append(e, ">");
}

ssa ssa_of(dtype type, int rank, const int64_t *dims)
{
    ssa v = {.dtype = type, .rank = rank};
    assert(rank >= 0 && rank <= TENSOR_RANK_MAX);
    for (int i = 0; i < rank; i++)
        v.dims[i] = dims[i];
    return v;
}

static ssa ssa_like(const ssa *v, dtype type)
{
    return ssa_of(type, v->rank, v->dims);
}

int64_t ssa_count(const ssa *v)
{
    int64_t count = 1;
    for (int i = 0; i < v->rank; i++)
        count *= v->dims[i];
    return count;
}

/* "    %7 = " */
static ssa begin(emitter *e, ssa v)
{
    v.number = ++e->last_number;
    stablehlo_append(e, "    %%%d = ", v.number);
    return v;
}

/* " : (types of operands) -> type" and the end of the line */
static void end_function_type(emitter *e, int count, const ssa *operands, const ssa *result)
{
    stablehlo_append(e, " : (");
    for (int i = 0; i < count; i++) {
        stablehlo_append(e, i ? ", " : "");
        stablehlo_append_type(e, &operands[i]);
    }
    stablehlo_append(e, ") -> ");
    stablehlo_append_type(e, result);
    stablehlo_append(e, "\n");
}

static void end_type(emitter *e, const ssa *v)
{
    stablehlo_append(e, " : ");
    stablehlo_append_type(e, v);
    stablehlo_append(e, "\n");
}

static bool has_dims(const ssa *a, int rank, const int64_t *dims)
{
    return a->rank == rank && memcmp(a->dims, dims, (size_t)rank * sizeof *dims) == 0;
}

ssa hlo_unary(emitter *e, const char *op, ssa a)
{
    ssa v = begin(e, a);
    stablehlo_append(e, "stablehlo.%s %%%d", op, a.number);
    end_type(e, &v);
    return v;
}

ssa hlo_binary(emitter *e, const char *op, ssa a, ssa b)
{
    assert(a.dtype == b.dtype && has_dims(&a, b.rank, b.dims));
    ssa v = begin(e, a);
    stablehlo_append(e, "stablehlo.%s %%%d, %%%d", op, a.number, b.number);
    end_type(e, &v);
    return v;
}

ssa hlo_compare(emitter *e, const char *direction, ssa a, ssa b)
{
    assert(a.dtype == b.dtype && has_dims(&a, b.rank, b.dims));
    const char *kind = dtype_is_float(a.dtype)    ? "FLOAT"
                       : dtype_is_signed(a.dtype) ? "SIGNED"
                                                  : "UNSIGNED";
    ssa v = begin(e, ssa_like(&a, DTYPE_BOOL));
    stablehlo_append(e, "stablehlo.compare %s, %%%d, %%%d, %s", direction, a.number, b.number,
                     kind);
    end_function_type(e, 2, (ssa[]){a, b}, &v);
    return v;
}

ssa hlo_select(emitter *e, ssa condition, ssa yes, ssa no)
{
    assert(condition.dtype == DTYPE_BOOL && yes.dtype == no.dtype &&
           has_dims(&yes, no.rank, no.dims));
    ssa v = begin(e, yes);
    stablehlo_append(e, "stablehlo.select %%%d, %%%d, %%%d : ", condition.number, yes.number,
                     no.number);
    stablehlo_append_type(e, &condition);
    stablehlo_append(e, ", ");
    stablehlo_append_type(e, &yes);
    stablehlo_append(e, "\n");
    return v;
}

ssa hlo_convert(emitter *e, ssa a, dtype type)
{
    if (a.dtype == type)
        return a;
    ssa v = begin(e, ssa_like(&a, type));
    stablehlo_append(e, "stablehlo.convert %%%d", a.number);
    end_function_type(e, 1, &a, &v);
    return v;
}

static void append_number(emitter *e, dtype type, double value)
{
    if (type == DTYPE_BOOL)
        stablehlo_append(e, value != 0 ? "true" : "false");
    else if (!dtype_is_float(type))
        stablehlo_append(e, "%lld", (long long)value);
    else if (type == DTYPE_F64 && !isfinite(value))
        stablehlo_append(e, isnan(value) ? "0x7FF8000000000000"
                            : value > 0  ? "0x7FF0000000000000"
                                         : "0xFFF0000000000000");
    else if (type == DTYPE_F32 && !isfinite((float)value))
        stablehlo_append(e, isnan(value) ? "0x7FC00000" : value > 0 ? "0x7F800000" : "0xFF800000");
    else if (type == DTYPE_BF16 && !isfinite(dtype_bf16_to_f32(dtype_f32_to_bf16((float)value))))
        stablehlo_append(e, isnan(value) ? "0x7FC0" : value > 0 ? "0x7F80" : "0xFF80");
    else if (type == DTYPE_F16 && !isfinite(dtype_f16_to_f32(dtype_f32_to_f16((float)value))))
        stablehlo_append(e, isnan(value) ? "0x7E00" : value > 0 ? "0x7C00" : "0xFC00");
    else
        stablehlo_append(e, "%.17e", value);
}

ssa hlo_splat(emitter *e, dtype type, int rank, const int64_t *dims, double value)
{
    ssa v = begin(e, ssa_of(type, rank, dims));
    stablehlo_append(e, "stablehlo.constant dense<");
    append_number(e, type, value);
    stablehlo_append(e, ">");
    end_type(e, &v);
    return v;
}

ssa hlo_splat_like(emitter *e, const ssa *like, double value)
{
    return hlo_splat(e, like->dtype, like->rank, like->dims, value);
}

ssa hlo_literal(emitter *e, const tensor *t)
{
    ssa v = ssa_of(t->dtype, t->rank, t->dims);
    size_t bytes = tensor_bytes(t);
    if (t->dtype == DTYPE_BOOL && tensor_count(t) > 1) { /* packed bits in MLIR: go through bytes */
        tensor as_bytes = *t;
        as_bytes.dtype = DTYPE_U8;
        ssa u = hlo_literal(e, &as_bytes);
        return hlo_compare(e, "NE", u, hlo_splat_like(e, &u, 0));
    }
    if (bytes == 0 || tensor_count(t) == 1)
        return hlo_splat(e, t->dtype, t->rank, t->dims, bytes ? tensor_get_number(t, 0) : 0);
    v = begin(e, v);
    stablehlo_append(e, "stablehlo.constant dense<\"0x");
    for (size_t i = 0; i < bytes; i++)
        stablehlo_append(e, "%02X", ((const unsigned char *)t->data)[i]);
    stablehlo_append(e, "\">");
    end_type(e, &v);
    return v;
}

ssa hlo_broadcast(emitter *e, ssa a, int rank, const int64_t *dims, const int *map)
{
    int64_t places[TENSOR_RANK_MAX];
    for (int i = 0; i < a.rank; i++)
        places[i] = map[i];
    ssa v = begin(e, ssa_of(a.dtype, rank, dims));
    stablehlo_append(e, "stablehlo.broadcast_in_dim %%%d, ", a.number);
    append_numbers(e, "dims = ", a.rank, places);
    end_function_type(e, 1, &a, &v);
    return v;
}

ssa hlo_broadcast_to(emitter *e, ssa a, int rank, const int64_t *dims)
{
    if (has_dims(&a, rank, dims))
        return a;
    assert(a.rank <= rank);
    int map[TENSOR_RANK_MAX];
    for (int i = 0; i < a.rank; i++)
        map[i] = rank - a.rank + i;
    return hlo_broadcast(e, a, rank, dims, map);
}

ssa hlo_broadcast_along(emitter *e, ssa vector, const ssa *like, int axis)
{
    assert(ssa_count(&vector) == like->dims[axis] || ssa_count(&vector) == 1);
    if (ssa_count(&vector) == 1) {
        vector = hlo_reshape(e, vector, 0, NULL);
        return hlo_broadcast(e, vector, like->rank, like->dims, NULL);
    }
    vector = hlo_reshape(e, vector, 1, &like->dims[axis]);
    return hlo_broadcast(e, vector, like->rank, like->dims, &axis);
}

ssa hlo_reshape(emitter *e, ssa a, int rank, const int64_t *dims)
{
    if (has_dims(&a, rank, dims))
        return a;
    ssa v = ssa_of(a.dtype, rank, dims);
    assert(ssa_count(&v) == ssa_count(&a));
    v = begin(e, v);
    stablehlo_append(e, "stablehlo.reshape %%%d", a.number);
    end_function_type(e, 1, &a, &v);
    return v;
}

ssa hlo_transpose(emitter *e, ssa a, const int *permutation)
{
    ssa v = a;
    int64_t order[TENSOR_RANK_MAX];
    for (int i = 0; i < a.rank; i++) {
        order[i] = permutation[i];
        v.dims[i] = a.dims[permutation[i]];
    }
    v = begin(e, v);
    stablehlo_append(e, "stablehlo.transpose %%%d, ", a.number);
    append_numbers(e, "dims = ", a.rank, order);
    end_function_type(e, 1, &a, &v);
    return v;
}

ssa hlo_slice(emitter *e, ssa a, const int64_t *starts, const int64_t *limits,
              const int64_t *strides)
{
    ssa v = a;
    for (int i = 0; i < a.rank; i++)
        v.dims[i] = (limits[i] - starts[i] + strides[i] - 1) / strides[i];
    v = begin(e, v);
    stablehlo_append(e, "stablehlo.slice %%%d [", a.number);
    for (int i = 0; i < a.rank; i++)
        stablehlo_append(e, "%s%lld:%lld:%lld", i ? ", " : "", (long long)starts[i],
                         (long long)limits[i], (long long)strides[i]);
    stablehlo_append(e, "]");
    end_function_type(e, 1, &a, &v);
    return v;
}

ssa hlo_concatenate(emitter *e, int count, const ssa *parts, int axis)
{
    ssa v = parts[0];
    v.dims[axis] = 0;
    for (int i = 0; i < count; i++)
        v.dims[axis] += parts[i].dims[axis];
    v = begin(e, v);
    stablehlo_append(e, "stablehlo.concatenate ");
    for (int i = 0; i < count; i++)
        stablehlo_append(e, "%s%%%d", i ? ", " : "", parts[i].number);
    stablehlo_append(e, ", dim = %d", axis);
    end_function_type(e, count, parts, &v);
    return v;
}

ssa hlo_reverse(emitter *e, ssa a, int axis)
{
    ssa v = begin(e, a);
    stablehlo_append(e, "stablehlo.reverse %%%d, dims = [%d]", a.number, axis);
    end_type(e, &v);
    return v;
}

ssa hlo_iota(emitter *e, dtype type, int rank, const int64_t *dims, int axis)
{
    ssa v = begin(e, ssa_of(type, rank, dims));
    stablehlo_append(e, "stablehlo.iota dim = %d", axis);
    end_type(e, &v);
    return v;
}

ssa hlo_pad(emitter *e, ssa a, double value, const int64_t *low, const int64_t *high)
{
    static const int64_t none[TENSOR_RANK_MAX];
    ssa fill = hlo_splat(e, a.dtype, 0, NULL, value), v = a;
    for (int i = 0; i < a.rank; i++)
        v.dims[i] += low[i] + high[i];
    v = begin(e, v);
    stablehlo_append(e, "stablehlo.pad %%%d, %%%d, ", a.number, fill.number);
    append_numbers(e, "low = ", a.rank, low);
    append_numbers(e, ", high = ", a.rank, high);
    append_numbers(e, ", interior = ", a.rank, none);
    end_function_type(e, 2, (ssa[]){a, fill}, &v);
    return v;
}

ssa hlo_reduce(emitter *e, const char *op, ssa a, double start, const bool *is_reduced)
{
    int64_t axes[TENSOR_RANK_MAX];
    int axis_count = 0;
    ssa fill = hlo_splat(e, a.dtype, 0, NULL, start), v = {.dtype = a.dtype};
    for (int i = 0; i < a.rank; i++)
        if (is_reduced[i])
            axes[axis_count++] = i;
        else
            v.dims[v.rank++] = a.dims[i];
    if (axis_count == 0)
        return a;
    v = begin(e, v);
    stablehlo_append(e, "stablehlo.reduce(%%%d init: %%%d) applies stablehlo.%s across ", a.number,
                     fill.number, op);
    append_numbers(e, "dimensions = ", axis_count, axes);
    end_function_type(e, 2, (ssa[]){a, fill}, &v);
    return v;
}

ssa hlo_reduce_keep(emitter *e, const char *op, ssa a, double start, const bool *is_reduced)
{
    ssa v = hlo_reduce(e, op, a, start, is_reduced);
    int64_t dims[TENSOR_RANK_MAX];
    for (int i = 0; i < a.rank; i++)
        dims[i] = is_reduced[i] ? 1 : a.dims[i];
    return hlo_reshape(e, v, a.rank, dims);
}

ssa hlo_reduce_window(emitter *e, const char *op, ssa a, double start, const int64_t *window,
                      const int64_t *strides, const int64_t *dilations, const int64_t *low,
                      const int64_t *high)
{
    ssa fill = hlo_splat(e, a.dtype, 0, NULL, start), v = a, element = ssa_of(a.dtype, 0, NULL);
    for (int i = 0; i < a.rank; i++) {
        int64_t span = (window[i] - 1) * dilations[i] + 1;
        v.dims[i] = (a.dims[i] + low[i] + high[i] - span) / strides[i] + 1;
    }
    v = begin(e, v);
    stablehlo_append(e, "\"stablehlo.reduce_window\"(%%%d, %%%d) <{", a.number, fill.number);
    append_array(e, "window_dimensions", a.rank, window);
    append_array(e, ", window_strides", a.rank, strides);
    append_array(e, ", window_dilations", a.rank, dilations);
    stablehlo_append(e, ", padding = dense<[");
    for (int i = 0; i < a.rank; i++)
        stablehlo_append(e, "%s[%lld, %lld]", i ? ", " : "", (long long)low[i], (long long)high[i]);
    stablehlo_append(e, "]> : tensor<%dx2xi64>}> ({\n    ^bb0(%%l: ", a.rank);
    stablehlo_append_type(e, &element);
    stablehlo_append(e, ", %%r: ");
    stablehlo_append_type(e, &element);
    stablehlo_append(e, "):\n      %%s = stablehlo.%s %%l, %%r : ", op);
    stablehlo_append_type(e, &element);
    stablehlo_append(e, "\n      stablehlo.return %%s : ");
    stablehlo_append_type(e, &element);
    stablehlo_append(e, "\n    })");
    end_function_type(e, 2, (ssa[]){a, fill}, &v);
    return v;
}

static bool is_among(const int64_t *list, int count, int64_t i)
{
    for (int k = 0; k < count; k++)
        if (list[k] == i)
            return true;
    return false;
}

ssa hlo_dot_general(emitter *e, ssa a, ssa b, const hlo_pairs *batch, const hlo_pairs *contract,
                    dtype result)
{
    ssa v = {.dtype = result};
    double depth = 1;
    for (int i = 0; i < batch->count; i++)
        v.dims[v.rank++] = a.dims[batch->a[i]];
    for (int i = 0; i < contract->count; i++) {
        assert(a.dims[contract->a[i]] == b.dims[contract->b[i]]);
        depth *= (double)a.dims[contract->a[i]];
    }
    for (int i = 0; i < a.rank; i++)
        if (!is_among(batch->a, batch->count, i) && !is_among(contract->a, contract->count, i))
            v.dims[v.rank++] = a.dims[i];
    for (int i = 0; i < b.rank; i++)
        if (!is_among(batch->b, batch->count, i) && !is_among(contract->b, contract->count, i))
            v.dims[v.rank++] = b.dims[i];
    v = begin(e, v);
    stablehlo_append(e, "stablehlo.dot_general %%%d, %%%d, ", a.number, b.number);
    if (batch->count > 0) {
        append_numbers(e, "batching_dims = ", batch->count, batch->a);
        append_numbers(e, " x ", batch->count, batch->b);
        stablehlo_append(e, ", ");
    }
    append_numbers(e, "contracting_dims = ", contract->count, contract->a);
    append_numbers(e, " x ", contract->count, contract->b);
    end_function_type(e, 2, (ssa[]){a, b}, &v);
    e->program->flops += 2.0 * (double)ssa_count(&v) * depth;
    return v;
}

ssa hlo_dot(emitter *e, ssa a, ssa b, int batch_count, int contract_a, int contract_b, dtype result)
{
    const hlo_pairs contract = {1, {contract_a}, {contract_b}};
    hlo_pairs batch = {batch_count, {0}, {0}};
    for (int i = 0; i < batch_count; i++)
        batch.a[i] = batch.b[i] = i;
    return hlo_dot_general(e, a, b, &batch, &contract, result);
}

ssa hlo_convolution(emitter *e, ssa x, ssa w, const hlo_window *window, int64_t groups, ssa type)
{
    int spatial = x.rank - 2;
    static const char *const starts[] = {"[b, f", "]x[o, i", "]->[b, f"};
    ssa v = begin(e, type);
    stablehlo_append(e, "stablehlo.convolution(%%%d, %%%d) dim_numbers = ", x.number, w.number);
    for (int part = 0; part < 3; part++) {
        stablehlo_append(e, "%s", starts[part]);
        for (int i = 0; i < spatial; i++)
            stablehlo_append(e, ", %d", i);
    }
    append_numbers(e, "], window = {stride = ", spatial, window->strides);
    stablehlo_append(e, ", pad = [");
    for (int i = 0; i < spatial; i++)
        stablehlo_append(e, "%s[%lld, %lld]", i ? ", " : "", (long long)window->low[i],
                         (long long)window->high[i]);
    append_numbers(e, "], rhs_dilate = ", spatial, window->dilations);
    stablehlo_append(e, "} {batch_group_count = 1 : i64, feature_group_count = %lld : i64}",
                     (long long)groups);
    end_function_type(e, 2, (ssa[]){x, w}, &v);
    int64_t depth = 1;
    for (int i = 1; i < w.rank; i++)
        depth *= w.dims[i];
    e->program->flops += 2.0 * (double)ssa_count(&v) * (double)depth;
    return v;
}

ssa hlo_gather(emitter *e, ssa x, ssa indices, const hlo_gather_dims *dims, ssa type)
{
    ssa v = begin(e, type);
    stablehlo_append(e, "\"stablehlo.gather\"(%%%d, %%%d) <{dimension_numbers = ", x.number,
                     indices.number);
    append_numbers(e, "#stablehlo.gather<offset_dims = ", dims->offset_count, dims->offsets);
    append_numbers(e, ", collapsed_slice_dims = ", dims->collapsed_count, dims->collapsed);
    append_numbers(e, ", start_index_map = ", dims->collapsed_count, dims->collapsed);
    stablehlo_append(e, ", index_vector_dim = %d>, indices_are_sorted = false", dims->index_dim);
    append_array(e, ", slice_sizes", x.rank, dims->slice_sizes);
    stablehlo_append(e, "}>");
    end_function_type(e, 2, (ssa[]){x, indices}, &v);
    return v;
}

ssa hlo_barrier(emitter *e, ssa a)
{
    return hlo_unary(e, "optimization_barrier", a);
}

void hlo_broadcast_pair(emitter *e, ssa *a, ssa *b)
{
    int rank = a->rank > b->rank ? a->rank : b->rank;
    int64_t dims[TENSOR_RANK_MAX];
    for (int i = 0; i < rank; i++) {
        int64_t x = i < rank - a->rank ? 1 : a->dims[i - rank + a->rank];
        int64_t y = i < rank - b->rank ? 1 : b->dims[i - rank + b->rank];
        assert(x == y || x == 1 || y == 1);
        dims[i] = x == 1 ? y : x;
    }
    *a = hlo_broadcast_to(e, *a, rank, dims);
    *b = hlo_broadcast_to(e, *b, rank, dims);
}

ssa hlo_broadcast_binary(emitter *e, const char *op, ssa a, ssa b)
{
    hlo_broadcast_pair(e, &a, &b);
    return hlo_binary(e, op, a, b);
}

ssa hlo_scalar_binary(emitter *e, const char *op, ssa a, double b)
{
    return hlo_binary(e, op, a, hlo_splat_like(e, &a, b));
}

ssa hlo_clamp(emitter *e, ssa x, double low, double high)
{
    return hlo_scalar_binary(e, "minimum", hlo_scalar_binary(e, "maximum", x, low), high);
}

/* erf(x) by Abramowitz and Stegun 7.1.26: 1 - (a1 t + ... + a5 t^5) exp(-x^2), t = 1/(1 + p|x|);
 * |error| <= 1.5e-7. StableHLO proper has no erf. */
ssa hlo_erf(emitter *e, ssa x)
{
    static const double a[5] = {0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429};
    ssa wide = hlo_convert(e, x, DTYPE_F32);
    ssa magnitude = hlo_unary(e, "abs", wide);
    ssa below =
        hlo_scalar_binary(e, "add", hlo_scalar_binary(e, "multiply", magnitude, 0.3275911), 1);
    ssa t = hlo_binary(e, "divide", hlo_splat_like(e, &wide, 1), below);
    ssa sum = hlo_scalar_binary(e, "multiply", t, a[4]);
    for (int i = 3; i >= 0; i--)
        sum = hlo_binary(e, "multiply", hlo_scalar_binary(e, "add", sum, a[i]), t);
    ssa fall =
        hlo_unary(e, "exponential", hlo_unary(e, "negate", hlo_binary(e, "multiply", wide, wide)));
    ssa rest = hlo_binary(e, "multiply", sum, fall);
    ssa positive = hlo_binary(e, "subtract", hlo_splat_like(e, &wide, 1), rest);
    ssa signed_value = hlo_binary(e, "multiply", positive, hlo_unary(e, "sign", wide));
    return hlo_convert(e, signed_value, x.dtype);
}
