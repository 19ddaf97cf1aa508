#include <assert.h>
#include <string.h>

#include "graph/stablehlo/operators.h"

/* Operators that move elements about: views, slices, joins, gathers. */

static status need_constant(const emitter *e, const graph_node *n, int i, const char *what,
                            const tensor **out)
{
    const tensor *t = emit_constant(e, n, i);
    if (t == NULL)
        return status_fail(STATUS_UNSUPPORTED,
                           "its %s is computed; a static program needs it constant", what);
    *out = t;
    return STATUS_OK;
}

static status emit_reshape(emitter *e, const graph_node *n)
{
    ssa type = emit_output_type(e, n, 0);
    emit_output(e, n, 0, hlo_reshape(e, emit_input(e, n, 0), type.rank, type.dims));
    return STATUS_OK;
}

static status emit_expand(emitter *e, const graph_node *n)
{
    ssa type = emit_output_type(e, n, 0);
    emit_output(e, n, 0, hlo_broadcast_to(e, emit_input(e, n, 0), type.rank, type.dims));
    return STATUS_OK;
}

static status emit_transpose(emitter *e, const graph_node *n)
{
    ssa x = emit_input(e, n, 0);
    const graph_attribute *perm = graph_find_attribute(n, "perm");
    int order[TENSOR_RANK_MAX];
    for (int i = 0; i < x.rank; i++)
        order[i] = perm != NULL ? (int)(perm->ints[i] < 0 ? perm->ints[i] + x.rank : perm->ints[i])
                                : x.rank - 1 - i;
    emit_output(e, n, 0, hlo_transpose(e, x, order));
    return STATUS_OK;
}

static status emit_concat(emitter *e, const graph_node *n)
{
    ssa parts[64];
    if (n->input_count > 64)
        return status_fail(STATUS_UNSUPPORTED, "%d inputs; the limit is 64", n->input_count);
    for (int i = 0; i < n->input_count; i++)
        parts[i] = emit_input(e, n, i);
    emit_output(e, n, 0,
                hlo_concatenate(e, n->input_count, parts, emit_axis(n, "axis", 0, parts[0].rank)));
    return STATUS_OK;
}

static void whole(const ssa *x, int64_t *starts, int64_t *limits, int64_t *strides)
{
    for (int i = 0; i < x->rank; i++) {
        starts[i] = 0;
        limits[i] = x->dims[i];
        strides[i] = 1;
    }
}

static status emit_split(emitter *e, const graph_node *n)
{
    ssa x = emit_input(e, n, 0);
    int axis = emit_axis(n, "axis", 0, x.rank);
    int64_t starts[TENSOR_RANK_MAX], limits[TENSOR_RANK_MAX], strides[TENSOR_RANK_MAX], at = 0;
    whole(&x, starts, limits, strides);
    for (int i = 0; i < n->output_count; i++) {
        int64_t size;
        if (n->outputs[i] != GRAPH_NO_VALUE) {
            size = emit_output_type(e, n, i).dims[axis];
        } else {
            const tensor *sizes = emit_constant(e, n, 1);
            if (sizes == NULL)
                return status_fail(STATUS_UNSUPPORTED, "an unused output of unknown size");
            size = tensor_get_integer(sizes, i);
        }
        starts[axis] = at;
        limits[axis] = at += size;
        if (n->outputs[i] != GRAPH_NO_VALUE)
            emit_output(e, n, i, hlo_slice(e, x, starts, limits, strides));
    }
    return STATUS_OK;
}

static status emit_slice(emitter *e, const graph_node *n)
{
    const tensor *starts_in = NULL, *ends_in = NULL, *axes = NULL, *steps = NULL;
    status s = need_constant(e, n, 1, "start", &starts_in);
    if (s == STATUS_OK)
        s = need_constant(e, n, 2, "end", &ends_in);
    if (s == STATUS_OK && emit_has_input(n, 3))
        s = need_constant(e, n, 3, "list of axes", &axes);
    if (s == STATUS_OK && emit_has_input(n, 4))
        s = need_constant(e, n, 4, "list of steps", &steps);
    if (s)
        return s;
    ssa x = emit_input(e, n, 0), type = emit_output_type(e, n, 0);
    int64_t starts[TENSOR_RANK_MAX], limits[TENSOR_RANK_MAX], strides[TENSOR_RANK_MAX];
    bool is_reversed[TENSOR_RANK_MAX] = {false};
    whole(&x, starts, limits, strides);
    for (int64_t i = 0; i < tensor_count(starts_in); i++) {
        int64_t axis = axes ? tensor_get_integer(axes, i) : i,
                step = steps ? tensor_get_integer(steps, i) : 1;
        axis += axis < 0 ? x.rank : 0;
        int64_t size = x.dims[axis], count = type.dims[axis],
                start = tensor_get_integer(starts_in, i);
        start += start < 0 ? size : 0;
        start = start < 0 ? 0 : start > size ? size : start;
        if (step < 0 && start == size)
            start = size - 1;
        /* The output's size is known, so only where it begins matters. Backwards: the same elements
         * forwards, then reversed. */
        strides[axis] = step < 0 ? -step : step;
        is_reversed[axis] = step < 0;
        starts[axis] = step < 0 ? start + (count - 1) * step : start;
        limits[axis] =
            count == 0 ? (starts[axis] = 0) : starts[axis] + (count - 1) * strides[axis] + 1;
    }
    ssa v = hlo_slice(e, x, starts, limits, strides);
    for (int i = 0; i < x.rank; i++)
        if (is_reversed[i])
            v = hlo_reverse(e, v, i);
    emit_output(e, n, 0, v);
    return STATUS_OK;
}

static status emit_pad(emitter *e, const graph_node *n)
{
    const tensor *pads = NULL, *value = NULL, *axes = NULL;
    status s = need_constant(e, n, 1, "pads", &pads);
    if (s == STATUS_OK && emit_has_input(n, 2))
        s = need_constant(e, n, 2, "pad value", &value);
    if (s == STATUS_OK && emit_has_input(n, 3))
        s = need_constant(e, n, 3, "list of axes", &axes);
    if (s)
        return s;
    if (strcmp(graph_attribute_string(n, "mode", "constant"), "constant") != 0)
        return status_fail(STATUS_UNSUPPORTED, "only mode \"constant\"");
    ssa x = emit_input(e, n, 0);
    int64_t low[TENSOR_RANK_MAX] = {0}, high[TENSOR_RANK_MAX] = {0}, count = tensor_count(pads) / 2;
    for (int64_t i = 0; i < count; i++) {
        int64_t axis = axes ? tensor_get_integer(axes, i) : i;
        axis += axis < 0 ? x.rank : 0;
        low[axis] = tensor_get_integer(pads, i);
        high[axis] = tensor_get_integer(pads, i + count);
    }
    emit_output(e, n, 0, hlo_pad(e, x, value ? tensor_get_number(value, 0) : 0, low, high));
    return STATUS_OK;
}

static status emit_tile(emitter *e, const graph_node *n)
{
    ssa x = emit_input(e, n, 0), type = emit_output_type(e, n, 0);
    /* [a, b] -> [r, a, s, b] -> [r a, s b] */
    int64_t dims[TENSOR_RANK_MAX];
    int map[TENSOR_RANK_MAX];
    if (2 * x.rank > TENSOR_RANK_MAX)
        return status_fail(STATUS_UNSUPPORTED, "rank %d; the limit is %d", x.rank,
                           TENSOR_RANK_MAX / 2);
    for (int i = 0; i < x.rank; i++) {
        dims[2 * i] = x.dims[i] ? type.dims[i] / x.dims[i] : 0;
        dims[2 * i + 1] = x.dims[i];
        map[i] = 2 * i + 1;
    }
    ssa v = hlo_broadcast(e, x, 2 * x.rank, dims, map);
    emit_output(e, n, 0, hlo_reshape(e, v, type.rank, type.dims));
    return STATUS_OK;
}

/* Negative indices count from the end (ONNX Gather); XLA clamps those beyond. The lookup takes
 * 32-bit indices. */
static ssa wrap_indices(emitter *e, ssa indices, int64_t size)
{
    ssa narrow = hlo_convert(e, indices, DTYPE_I32);
    ssa is_negative = hlo_compare(e, "LT", narrow, hlo_splat_like(e, &narrow, 0));
    return hlo_select(e, is_negative, hlo_scalar_binary(e, "add", narrow, (double)size), narrow);
}

/* One of two rows for each index: a select is cheaper than a gather. Odd is row 1, also -1. */
static ssa select_row(emitter *e, ssa x, ssa indices, const ssa *type)
{
    ssa rows[2];
    for (int i = 0; i < 2; i++) {
        rows[i] =
            hlo_slice(e, x, (int64_t[]){i, 0}, (int64_t[]){i + 1, x.dims[1]}, (int64_t[]){1, 1});
        rows[i] =
            hlo_broadcast_along(e, hlo_reshape(e, rows[i], 1, &x.dims[1]), type, type->rank - 1);
    }
    ssa low = hlo_scalar_binary(e, "and", indices, 1);
    ssa is_odd = hlo_compare(e, "NE", low, hlo_splat_like(e, &low, 0));
    int map[TENSOR_RANK_MAX] = {0, 1, 2, 3, 4, 5, 6, 7};
    is_odd = hlo_broadcast(e, is_odd, type->rank, type->dims, map);
    return hlo_select(e, is_odd, rows[1], rows[0]);
}

static status emit_gather(emitter *e, const graph_node *n)
{
    ssa x = emit_input(e, n, 0), type = emit_output_type(e, n, 0);
    int axis = emit_axis(n, "axis", 0, x.rank);
    if (axis == 0 && x.rank == 2 && x.dims[0] == 2 && emit_constant(e, n, 0) != NULL) {
        ssa row = select_row(e, x, emit_input(e, n, 1), &type);
        emit_output(e, n, 0, row);
        return STATUS_OK;
    }
    ssa indices = wrap_indices(e, emit_input(e, n, 1), x.dims[axis]);
    int64_t offsets[TENSOR_RANK_MAX], sizes[TENSOR_RANK_MAX], collapsed = axis;
    int offset_count = 0;
    for (int i = 0; i < x.rank; i++) {
        sizes[i] = i == axis ? 1 : x.dims[i];
        if (i != axis)
            offsets[offset_count++] = i < axis ? i : i - 1 + indices.rank;
    }
    hlo_gather_dims gathered = {indices.rank, 1, offset_count, &collapsed, offsets, sizes};
    emit_output(e, n, 0, hlo_gather(e, x, indices, &gathered, type));
    return STATUS_OK;
}

static status emit_gather_nd(emitter *e, const graph_node *n)
{
    if (graph_attribute_int(n, "batch_dims", 0) != 0)
        return status_fail(STATUS_UNSUPPORTED, "only batch_dims 0");
    ssa x = emit_input(e, n, 0), raw = emit_input(e, n, 1), type = emit_output_type(e, n, 0);
    int depth = (int)raw.dims[raw.rank - 1];
    /* Each coordinate wraps by its own dimension. */
    int64_t sizes_of_dims[TENSOR_RANK_MAX];
    tensor table = {.dtype = DTYPE_I64, .rank = 1, .dims = {depth}, .data = sizes_of_dims};
    for (int i = 0; i < depth; i++)
        sizes_of_dims[i] = x.dims[i];
    ssa indices = hlo_convert(e, raw, DTYPE_I64);
    ssa size = hlo_broadcast_along(e, hlo_literal(e, &table), &indices, indices.rank - 1);
    ssa is_negative = hlo_compare(e, "LT", indices, hlo_splat_like(e, &indices, 0));
    indices = hlo_select(e, is_negative, hlo_binary(e, "add", indices, size), indices);
    int64_t collapsed[TENSOR_RANK_MAX], offsets[TENSOR_RANK_MAX], sizes[TENSOR_RANK_MAX];
    for (int i = 0; i < x.rank; i++) {
        sizes[i] = i < depth ? 1 : x.dims[i];
        if (i < depth)
            collapsed[i] = i;
        else
            offsets[i - depth] = indices.rank - 1 + i - depth;
    }
    hlo_gather_dims gathered = {indices.rank - 1, depth, x.rank - depth, collapsed, offsets, sizes};
    emit_output(e, n, 0, hlo_gather(e, x, indices, &gathered, type));
    return STATUS_OK;
}

/* out[i0..] = x[i0.., indices[i0..], ..]: a gather of single elements by full coordinates. */
static status emit_gather_elements(emitter *e, const graph_node *n)
{
    ssa x = emit_input(e, n, 0), type = emit_output_type(e, n, 0);
    int axis = emit_axis(n, "axis", 0, x.rank);
    ssa indices = wrap_indices(e, emit_input(e, n, 1), x.dims[axis]), parts[TENSOR_RANK_MAX];
    int64_t dims[TENSOR_RANK_MAX], collapsed[TENSOR_RANK_MAX], sizes[TENSOR_RANK_MAX];
    if (x.rank + 1 > TENSOR_RANK_MAX)
        return status_fail(STATUS_UNSUPPORTED, "rank %d", x.rank);
    memcpy(dims, indices.dims, sizeof dims);
    dims[x.rank] = 1;
    for (int i = 0; i < x.rank; i++) {
        parts[i] = i == axis ? hlo_reshape(e, indices, x.rank + 1, dims)
                             : hlo_iota(e, DTYPE_I32, x.rank + 1, dims, i);
        collapsed[i] = i;
        sizes[i] = 1;
    }
    ssa coordinates = hlo_concatenate(e, x.rank, parts, x.rank);
    hlo_gather_dims gathered = {x.rank, x.rank, 0, collapsed, NULL, sizes};
    emit_output(e, n, 0, hlo_gather(e, x, coordinates, &gathered, type));
    return STATUS_OK;
}

/* DepthToSpace and SpaceToDepth are a reshape, a transpose and a reshape (onnx Operators.md). */
static status emit_depth_to_space(emitter *e, const graph_node *n)
{
    ssa x = emit_input(e, n, 0), type = emit_output_type(e, n, 0);
    int64_t b = graph_attribute_int(n, "blocksize", 1), c = x.dims[1], h = x.dims[2], w = x.dims[3];
    bool is_crd = strcmp(graph_attribute_string(n, "mode", "DCR"), "CRD") == 0;
    ssa v;
    if (n->op == GRAPH_OP_SPACE_TO_DEPTH)
        v = hlo_transpose(e, hlo_reshape(e, x, 6, (int64_t[]){x.dims[0], c, h / b, b, w / b, b}),
                          is_crd ? (int[]){0, 1, 3, 5, 2, 4} : (int[]){0, 3, 5, 1, 2, 4});
    else if (is_crd)
        v = hlo_transpose(e, hlo_reshape(e, x, 6, (int64_t[]){x.dims[0], c / (b * b), b, b, h, w}),
                          (int[]){0, 1, 4, 2, 5, 3});
    else
        v = hlo_transpose(e, hlo_reshape(e, x, 6, (int64_t[]){x.dims[0], b, b, c / (b * b), h, w}),
                          (int[]){0, 3, 4, 1, 5, 2});
    emit_output(e, n, 0, hlo_reshape(e, v, type.rank, type.dims));
    return STATUS_OK;
}

static status emit_constant_of_shape(emitter *e, const graph_node *n)
{
    ssa type = emit_output_type(e, n, 0);
    const graph_attribute *value = graph_find_attribute(n, "value");
    emit_output(
        e, n, 0,
        hlo_splat_like(e, &type,
                       value != NULL && value->t != NULL ? tensor_get_number(value->t, 0) : 0));
    return STATUS_OK;
}

static status emit_trilu(emitter *e, const graph_node *n)
{
    ssa x = emit_input(e, n, 0);
    const tensor *k = NULL;
    status s = emit_has_input(n, 1) ? need_constant(e, n, 1, "diagonal", &k) : STATUS_OK;
    if (s)
        return s;
    ssa rows = hlo_iota(e, DTYPE_I32, x.rank, x.dims, x.rank - 2);
    ssa columns = hlo_iota(e, DTYPE_I32, x.rank, x.dims, x.rank - 1);
    ssa edge = hlo_scalar_binary(e, "add", rows, k ? (double)tensor_get_integer(k, 0) : 0);
    ssa keep = hlo_compare(e, graph_attribute_int(n, "upper", 1) ? "GE" : "LE", columns, edge);
    emit_output(e, n, 0, hlo_select(e, keep, x, hlo_splat_like(e, &x, 0)));
    return STATUS_OK;
}

emit_fn emit_find_shape(graph_op op)
{
    switch (op) {
    case GRAPH_OP_IDENTITY:
    case GRAPH_OP_RESHAPE:
    case GRAPH_OP_FLATTEN:
    case GRAPH_OP_SQUEEZE:
    case GRAPH_OP_UNSQUEEZE:
        return emit_reshape;
    case GRAPH_OP_EXPAND:
        return emit_expand;
    case GRAPH_OP_TRANSPOSE:
        return emit_transpose;
    case GRAPH_OP_CONCAT:
        return emit_concat;
    case GRAPH_OP_SPLIT:
        return emit_split;
    case GRAPH_OP_SLICE:
        return emit_slice;
    case GRAPH_OP_PAD:
        return emit_pad;
    case GRAPH_OP_TILE:
        return emit_tile;
    case GRAPH_OP_GATHER:
        return emit_gather;
    case GRAPH_OP_GATHER_ND:
        return emit_gather_nd;
    case GRAPH_OP_GATHER_ELEMENTS:
        return emit_gather_elements;
    case GRAPH_OP_DEPTH_TO_SPACE:
    case GRAPH_OP_SPACE_TO_DEPTH:
        return emit_depth_to_space;
    case GRAPH_OP_CONSTANT_OF_SHAPE:
        return emit_constant_of_shape;
    case GRAPH_OP_TRILU:
        return emit_trilu;
    default:
        return NULL;
    }
}
