#include <string.h>

#include "graph/independence/rules.h"

static const char reason_inner[] = "sums over the rows";

/* a [.., M, K] times b [.., K, N], counted from the right in a result that has M and N: a vector
 * lacks M or N. */
typedef struct product {
    const row_value *a, *b;
    int rank; /* of the result with M and N */
} product;

static int dims_of(const row_value *v)
{
    return v->one.rank < 2 ? 2 : v->one.rank;
}

/* Axis of the full result for an axis of an operand. */
static int full_axis(const product *p, const row_value *v, int axis)
{
    return v == p->b && v->one.rank == 1 ? p->rank - 2 : axis + p->rank - v->one.rank;
}

/* The other operand, seen at axis `full` of the result: no rows, or the same ones. */
static bool fits(const row_call *c, const product *p, const row_value *v, int full, int64_t outer)
{
    int own = full - (p->rank - v->one.rank);
    bool is_batch = full < p->rank - 2;
    if (rows_is_same(v))
        return !is_batch || own < 0 || v->one.rank < 2 || v->one.dims[own] == 1;
    return is_batch && v->one.rank > 2 && rows_lie(c, v, (row_axis){own, outer});
}

static row_relation multiply(const row_call *c, const row_value *a, const row_value *b,
                             const row_value *out)
{
    product p = {a, b, dims_of(a) > dims_of(b) ? dims_of(a) : dims_of(b)};
    /* A split operand says for certain where the rows lie; data alone may allow several places. */
    const row_value *split =
        rows_is_same(a) || (a->relation.kind == ROWS_COUNTED && !rows_is_same(b)) ? b : a;
    const row_value *other = split == a ? b : a;
    row_axis at;
    if (!rows_find(c, split, &at))
        return split->relation.kind == ROWS_COUNTED ? rows_mixed(rows_reason_count)
                                                    : rows_undecided(rows_reason_shape);
    int full = full_axis(&p, split, at.axis);
    /* The inner dim: the last of a, the last but one of b. */
    if (split == a ? at.axis == a->one.rank - 1
                   : at.axis == (b->one.rank == 1 ? 0 : b->one.rank - 2))
        return rows_mixed(reason_inner);
    if (!fits(c, &p, other, full, at.outer))
        return rows_mixed(rows_reason_pairs);
    int axis = full - (a->one.rank == 1 && full > p.rank - 2);
    if (axis < out->one.rank && out->one.dims[axis] != split->one.dims[at.axis])
        return rows_undecided(rows_reason_shape);
    return rows_split(c, out, (row_axis){axis, at.outer});
}

row_relation independence_matmul(const row_call *c, int output)
{
    return multiply(c, c->in[0], c->in[1], &c->out[output]);
}

row_relation independence_matmul_integer(const row_call *c, int output)
{
    if (!rows_others_same(c, 3))
        return rows_mixed(rows_reason_parameter);
    return multiply(c, c->in[0], c->in[1], &c->out[output]);
}

row_relation independence_qlinear_matmul(const row_call *c, int output)
{
    if (!rows_others_same(c, 1u << 0 | 1u << 3))
        return rows_mixed(rows_reason_parameter);
    return multiply(c, c->in[0], c->in[3], &c->out[output]);
}

row_relation independence_gemm(const row_call *c, int output)
{
    const row_value *a = c->in[0], *b = c->in[1], *bias = rows_input(c, 2), *out = &c->out[output];
    int rows_of_a = graph_attribute_int(c->node, "transA", 0) != 0;
    int columns_of_b = graph_attribute_int(c->node, "transB", 0) == 0;
    row_axis at;
    if (rows_is_same(a) == rows_is_same(b))
        return rows_mixed(rows_reason_pairs);
    const row_value *split = rows_is_same(a) ? b : a;
    if (!rows_find(c, split, &at))
        return rows_undecided(rows_reason_shape);
    if (at.axis != (split == a ? rows_of_a : columns_of_b))
        return rows_mixed(reason_inner);
    at.axis = split == a ? 0 : 1;
    if (bias != NULL) {
        int own = at.axis - (2 - bias->one.rank);
        if (rows_is_same(bias) ? own >= 0 && bias->one.dims[own] != 1
                               : !rows_lie(c, bias, (row_axis){own, at.outer}))
            return rows_mixed(rows_is_same(bias) ? rows_reason_constant : rows_reason_pairs);
    }
    return rows_split(c, out, at);
}

/* Trilu, Det: matrices of the last two axes. */
row_relation independence_last_two(const row_call *c, int output)
{
    const row_value *x = c->in[0];
    if (!rows_others_same(c, 1))
        return rows_mixed(rows_reason_parameter);
    return rows_keep(c, x, 3u << (x->one.rank - 2), &c->out[output], rows_reason_pairs);
}

/* The axes that an Einsum's terms give the letters: the ellipsis is expanded from the right. */
typedef struct einsum_term {
    char letters[TENSOR_RANK_MAX]; /* by axis; the k-th axis of an ellipsis from the right is k */
} einsum_term;

/* Reads one term of `rank` axes at `*at`; false: it does not fit. */
static bool read_term(const char **at, int rank, einsum_term *term)
{
    char letters[2 * TENSOR_RANK_MAX];
    int count = 0, ellipsis = -1;
    for (; **at != 0 && **at != ',' && **at != '-'; (*at)++) {
        if (**at == ' ')
            continue;
        if (**at == '.') {
            if (ellipsis >= 0 || strncmp(*at, "...", 3) != 0)
                return false;
            ellipsis = count;
            *at += 2;
        } else if (count < TENSOR_RANK_MAX) {
            letters[count++] = **at;
        } else {
            return false;
        }
    }
    int hidden = ellipsis < 0 ? 0 : rank - count;
    if (hidden < 0 || count + hidden != rank)
        return false;
    for (int i = 0, from = 0; i < rank; i++) {
        bool is_hidden = ellipsis >= 0 && i >= ellipsis && i < ellipsis + hidden;
        term->letters[i] = is_hidden ? (char)(ellipsis + hidden - 1 - i) : letters[from++];
    }
    return true;
}

static int find_letter(const einsum_term *term, int rank, int letter)
{
    for (int i = 0; i < rank; i++)
        if (term->letters[i] == letter)
            return i;
    return -1;
}

row_relation independence_einsum(const row_call *c, int output)
{
    const char *at = graph_attribute_string(c->node, "equation", "");
    const row_value *out = &c->out[output];
    einsum_term terms[8], result;
    int count = c->node->input_count, axis;
    row_axis found = {-1, 1};
    int letter = -1; /* of the axis that holds the rows */
    if (count > 8)
        return rows_undecided(rows_reason_shape);
    for (int k = 0; k < count; k++) {
        if (!read_term(&at, c->in[k]->one.rank, &terms[k]))
            return rows_undecided(rows_reason_shape);
        at += *at == ',';
        if (letter >= 0 || rows_is_same(c->in[k]))
            continue;
        if (!rows_find(c, c->in[k], &found))
            return rows_undecided(rows_reason_shape);
        letter = terms[k].letters[found.axis];
    }
    /* The implicit form sums what occurs twice; the rows would be among it. */
    if (strncmp(at, "->", 2) != 0 || letter < 0)
        return rows_undecided(rows_reason_shape);
    at += 2;
    if (!read_term(&at, out->one.rank, &result))
        return rows_undecided(rows_reason_shape);
    if ((axis = find_letter(&result, out->one.rank, letter)) < 0)
        return rows_mixed(reason_inner);
    for (int k = 0; k < count; k++) {
        int rank = c->in[k]->one.rank, own = find_letter(&terms[k], rank, letter);
        bool is_twice = own >= 0 && memchr(terms[k].letters + own + 1, letter,
                                           (size_t)(rank - own - 1)) != NULL;
        if (rows_is_same(c->in[k]) ? own >= 0 && c->in[k]->one.dims[own] != 1
                                   : !rows_lie(c, c->in[k], (row_axis){own, found.outer}))
            return rows_mixed(rows_reason_pairs);
        if (is_twice)
            return rows_mixed(rows_reason_pairs);
    }
    return rows_split(c, out, (row_axis){axis, found.outer});
}
