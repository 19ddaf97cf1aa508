#include <string.h>

#include "graph/encoder/internal.h"

/* A constant of `count` numbers along its last dim; all other dims are 1. */
static bool is_vector(const tensor *t, int64_t count)
{
    return t != NULL && dtype_is_float(t->dtype) && t->rank >= 1 && t->dims[t->rank - 1] == count &&
           tensor_count(t) == count;
}

/* A constant [K,N]; dims of 1 may come before. */
static bool is_matrix(const tensor *t)
{
    if (t == NULL || !dtype_is_float(t->dtype) || t->rank < 2)
        return false;
    return tensor_count(t) == t->dims[t->rank - 1] * t->dims[t->rank - 2] && tensor_count(t) > 0;
}

/* The weights of a MatMul or Gemm: a constant, or the transpose of a constant, which stays where it
 * is. */
static const tensor *find_weight(const encoder_recogniser *r, graph_value_index v,
                                 bool *is_transposed)
{
    const tensor *t = match_constant(&r->m, v);
    const graph_node *n = t == NULL ? match_producer(&r->m, v) : NULL;
    if (n == NULL || n->op != GRAPH_OP_TRANSPOSE)
        return t;
    t = match_constant(&r->m, n->inputs[0]);
    *is_transposed = t != NULL && t->rank == 2;
    return *is_transposed ? t : NULL;
}

static bool find_matmul(const encoder_recogniser *r, graph_value_index v, found_linear *out)
{
    const match *m = &r->m;
    v = match_skip_views(m, v);
    const graph_node *n = match_producer(m, v);
    if (n == NULL || (n->op != GRAPH_OP_MATMUL && n->op != GRAPH_OP_GEMM))
        return false;
    found_linear f = {.x = n->inputs[0], .weight_scale = 1, .bias_scale = 1};
    f.weight = find_weight(r, n->inputs[1], &f.is_transposed);
    if (!is_matrix(f.weight) || match_constant(m, f.x) != NULL)
        return false;
    if (n->op == GRAPH_OP_GEMM) {
        if (graph_attribute_int(n, "transA", 0) != 0)
            return false;
        f.is_transposed ^= graph_attribute_int(n, "transB", 0) != 0;
        f.weight_scale = (double)graph_attribute_float(n, "alpha", 1);
        f.bias_scale = (double)graph_attribute_float(n, "beta", 1);
        if (graph_input_of(n, 2) != GRAPH_NO_VALUE) {
            f.bias = match_constant(m, n->inputs[2]);
            if (!is_vector(f.bias, found_linear_columns(&f)))
                return false;
        }
    }
    *out = f;
    return true;
}

bool recogniser_find_linear(const encoder_recogniser *r, graph_value_index v, found_linear *out)
{
    const match *m = &r->m;
    if (find_matmul(r, v, out))
        return true;
    v = match_skip_views(m, v);
    const graph_node *n = match_producer(m, v);
    const tensor *bias;
    graph_value_index matmul;
    if (n == NULL || n->op != GRAPH_OP_ADD || !match_one_constant(m, n, &bias, &matmul) ||
        !is_vector(bias, match_dim(m, v, -1)) || !find_matmul(r, matmul, out) ||
        out->bias != NULL || found_linear_columns(out) != match_dim(m, v, -1))
        return false;
    out->bias = bias;
    out->bias_scale = 1;
    return true;
}

int64_t found_linear_columns(const found_linear *f)
{
    return f->weight->dims[f->weight->rank - (f->is_transposed ? 2 : 1)];
}

int64_t found_linear_rows(const found_linear *f)
{
    return f->weight->dims[f->weight->rank - (f->is_transposed ? 1 : 2)];
}

static bool is_of_source(const graph *source, const void *data)
{
    for (int32_t v = 0; v < source->value_count; v++)
        if (source->values[v].constant != NULL && source->values[v].constant->data == data)
            return true;
    return false;
}

/* `t` without its leading dims of 1, as `rank` dims. */
static tensor squeeze_to(const tensor *t, int rank)
{
    tensor flat = *t;
    flat.rank = rank;
    for (int i = 0; i < rank; i++)
        flat.dims[i] = t->dims[t->rank - rank + i];
    return flat;
}

status recogniser_keep_tensor(encoder_recogniser *r, const tensor *t, int rank, const tensor **out)
{
    tensor *kept = arena_allocate(&r->e->memory, sizeof *kept);
    if (kept == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for an encoder");
    tensor flat = squeeze_to(t, rank);
    if (t->dtype == DTYPE_F32 && is_of_source(r->source, t->data)) {
        *kept = flat;
    } else {
        status s = tensor_allocate(kept, &r->e->memory, DTYPE_F32, flat.rank, flat.dims);
        if (s)
            return s;
        if (t->dtype == DTYPE_F32)
            memcpy(kept->data, t->data, tensor_bytes(t));
        for (int64_t i = 0; t->dtype != DTYPE_F32 && i < tensor_count(t); i++)
            ((float *)kept->data)[i] = (float)tensor_get_number(t, i);
    }
    *out = kept;
    return STATUS_OK;
}

static bool is_in_order(int64_t count, const int64_t *places, int64_t all)
{
    for (int64_t i = 0; places != NULL && i < count; i++)
        if (places[i] != i)
            return false;
    return count == all;
}

/* A copy with its columns and rows in another order, [rows, column_count]. */
static status copy_linear(encoder_recogniser *r, const found_linear *f, int64_t column_count,
                          const int64_t *columns, const int64_t *rows, double scale,
                          encoder_linear *out)
{
    int64_t row_count = found_linear_rows(f), all = found_linear_columns(f);
    tensor *weight = arena_allocate(&r->e->memory, sizeof *weight);
    tensor *bias = arena_allocate(&r->e->memory, sizeof *bias);
    if (weight == NULL || bias == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for an encoder");
    status s =
        tensor_allocate(weight, &r->e->memory, DTYPE_F32, 2, (int64_t[]){row_count, column_count});
    if (s == STATUS_OK && f->bias != NULL)
        s = tensor_allocate(bias, &r->e->memory, DTYPE_F32, 1, &column_count);
    if (s)
        return s;
    for (int64_t i = 0; i < row_count; i++)
        for (int64_t c = 0; c < column_count; c++) {
            int64_t row = rows != NULL ? rows[i] : i, column = columns != NULL ? columns[c] : c;
            int64_t from = f->is_transposed ? column * row_count + row : row * all + column;
            ((float *)weight->data)[i * column_count + c] =
                (float)(tensor_get_number(f->weight, from) * f->weight_scale * scale);
        }
    for (int64_t c = 0; f->bias != NULL && c < column_count; c++)
        ((float *)bias->data)[c] =
            (float)(tensor_get_number(f->bias, columns != NULL ? columns[c] : c) * f->bias_scale *
                    scale);
    *out = (encoder_linear){.weight = weight, .bias = f->bias != NULL ? bias : NULL};
    return STATUS_OK;
}

status recogniser_keep_linear(encoder_recogniser *r, const found_linear *f, int64_t column_count,
                              const int64_t *columns, const int64_t *rows, double scale,
                              encoder_linear *out)
{
    int64_t row_count = found_linear_rows(f);
    bool is_plain = is_in_order(column_count, columns, found_linear_columns(f)) &&
                    is_in_order(row_count, rows, row_count) && scale == 1 && f->weight_scale == 1 &&
                    (f->bias == NULL || f->bias_scale == 1);
    if (!is_plain)
        return copy_linear(r, f, column_count, columns, rows, scale, out);
    encoder_linear kept = {.is_transposed = f->is_transposed};
    status s = recogniser_keep_tensor(r, f->weight, 2, &kept.weight);
    if (s == STATUS_OK && f->bias != NULL)
        s = recogniser_keep_tensor(r, f->bias, 1, &kept.bias);
    if (s == STATUS_OK)
        *out = kept;
    return s;
}
