#include <assert.h>
#include <string.h>

#include "devices/cpu/ops/op.h"
#include "devices/cpu/ops/split.h"
#include "devices/cpu/tensor_loops/walk.h"

/* Operators that only move elements. */

static status run_view(const cpu_call *c)
{
    size_t bytes = tensor_bytes(&c->outputs[0]);
    if (bytes)
        memcpy(c->outputs[0].data, c->inputs[0]->data, bytes);
    return STATUS_OK;
}

static status run_transpose(const cpu_call *c)
{
    const tensor *in = c->inputs[0], *out = &c->outputs[0];
    const graph_attribute *perm = graph_find_attribute(c->node, "perm");
    int64_t dense[TENSOR_RANK_MAX], from[TENSOR_RANK_MAX], to[TENSOR_RANK_MAX];
    cpu_dense_strides(in->rank, in->dims, dense);
    cpu_dense_strides(out->rank, out->dims, to);
    for (int i = 0; i < in->rank; i++)
        from[i] = dense[perm ? cpu_axis(perm->ints[i], in->rank) : in->rank - 1 - i];
    cpu_split_copy(c, dtype_bytes(in->dtype), out->rank, out->dims, in->data, from, out->data, to);
    return STATUS_OK;
}

/* `rows` rows of `bytes` bytes, one after the other, to places `stride` bytes apart. */
static void copy_rows(int64_t rows, size_t bytes, const char *from, char *to, size_t stride)
{
    if (bytes == sizeof(uint32_t)) { /* Stack on a new last axis */
        for (int64_t i = 0; i < rows; i++)
            memcpy(to + (size_t)i * stride, from + (size_t)i * sizeof(uint32_t), sizeof(uint32_t));
        return;
    }
    for (int64_t i = 0; i < rows; i++)
        memcpy(to + (size_t)i * stride, from + (size_t)i * bytes, bytes);
}

static status run_concat(const cpu_call *c)
{
    tensor *out = &c->outputs[0];
    int axis = cpu_axis(graph_attribute_int(c->node, "axis", 0), out->rank);
    size_t bytes = dtype_bytes(out->dtype);
    int64_t outer = cpu_dims_product(out->dims, 0, axis),
            inner = cpu_dims_product(out->dims, axis + 1, out->rank);
    size_t out_row = (size_t)(out->dims[axis] * inner) * bytes, offset = 0;
    for (int i = 0; i < c->node->input_count; i++) {
        const tensor *in = c->inputs[i];
        size_t row = (size_t)(in->dims[axis] * inner) * bytes;
        if (row == 0)
            continue;
        copy_rows(outer, row, in->data, (char *)out->data + offset, out_row);
        offset += row;
    }
    return STATUS_OK;
}

static status run_split(const cpu_call *c)
{
    const tensor *in = c->inputs[0];
    int axis = cpu_axis(graph_attribute_int(c->node, "axis", 0), in->rank);
    size_t bytes = dtype_bytes(in->dtype);
    int64_t outer = cpu_dims_product(in->dims, 0, axis),
            inner = cpu_dims_product(in->dims, axis + 1, in->rank);
    size_t in_row = (size_t)(in->dims[axis] * inner) * bytes, offset = 0;
    for (int i = 0; i < c->node->output_count; i++) {
        tensor *out = &c->outputs[i];
        size_t row = (size_t)(out->dims[axis] * inner) * bytes;
        if (out->data && row)
            for (int64_t o = 0; o < outer; o++)
                memcpy((char *)out->data + (size_t)o * row,
                       (const char *)in->data + (size_t)o * in_row + offset, row);
        offset += row;
    }
    return STATUS_OK;
}

/* First index of a slice of a dim of size n, as in NumPy: clamped to where the step can start. */
static int64_t slice_start(int64_t start, int64_t step, int64_t n)
{
    if (start < 0)
        start = start < -n ? -1 : start + n;
    if (step > 0)
        return start < 0 ? 0 : start > n ? n : start;
    return start < 0 ? 0 : start > n - 1 ? n - 1 : start;
}

static status run_slice(const cpu_call *c)
{
    const tensor *in = c->inputs[0], *out = &c->outputs[0], *starts = c->inputs[1];
    const tensor *axes = cpu_input(c->inputs, c->node, 3),
                 *steps = cpu_input(c->inputs, c->node, 4);
    int64_t from[TENSOR_RANK_MAX], to[TENSOR_RANK_MAX], dense[TENSOR_RANK_MAX], offset = 0;
    if (tensor_count(out) == 0)
        return STATUS_OK;
    cpu_dense_strides(in->rank, in->dims, dense);
    cpu_dense_strides(out->rank, out->dims, to);
    memcpy(from, dense, sizeof from);
    int64_t count = tensor_count(starts);
    for (int64_t i = 0; i < count; i++) {
        int axis = cpu_axis(axes ? tensor_get_integer(axes, i) : i, in->rank);
        int64_t step = steps ? tensor_get_integer(steps, i) : 1;
        int64_t start = slice_start(tensor_get_integer(starts, i), step, in->dims[axis]);
        int64_t last = start + (out->dims[axis] - 1) * step;
        /* Shape inference has checked constant starts; others are checked here. */
        if (start >= in->dims[axis] || last < 0 || last >= in->dims[axis])
            return status_fail(STATUS_INVALID_ARGUMENT,
                               "a slice from %lld to %lld is outside axis %d of size %lld",
                               (long long)start, (long long)last, axis, (long long)in->dims[axis]);
        offset += start * dense[axis];
        from[axis] = step * dense[axis];
    }
    size_t bytes = dtype_bytes(in->dtype);
    cpu_split_copy(c, bytes, out->rank, out->dims, (const char *)in->data + offset * (int64_t)bytes,
                   from, out->data, to);
    return STATUS_OK;
}

static status run_expand(const cpu_call *c)
{
    const tensor *in = c->inputs[0], *out = &c->outputs[0];
    int64_t dense[TENSOR_RANK_MAX], from[TENSOR_RANK_MAX], to[TENSOR_RANK_MAX];
    int missing = out->rank - in->rank;
    cpu_dense_strides(in->rank, in->dims, dense);
    cpu_dense_strides(out->rank, out->dims, to);
    for (int i = 0; i < out->rank; i++)
        from[i] = i < missing || in->dims[i - missing] == 1 ? 0 : dense[i - missing];
    cpu_split_copy(c, dtype_bytes(in->dtype), out->rank, out->dims, in->data, from, out->data, to);
    return STATUS_OK;
}

/* Tables for cpu_copy_mapped lie in scratch, one after the other; it is there even if all of them
 * are empty. */
static status prepare_mapped(cpu_prepare *p)
{
    p->scratch_bytes += sizeof(int64_t);
    for (int i = 0; i < p->outputs[0].rank; i++)
        p->scratch_bytes += (size_t)p->outputs[0].dims[i] * sizeof(int64_t);
    return STATUS_OK;
}

static void place_maps(const cpu_call *c, int64_t *maps[TENSOR_RANK_MAX])
{
    int64_t *next = c->scratch;
    for (int i = 0; i < c->outputs[0].rank; i++) {
        maps[i] = next;
        next += c->outputs[0].dims[i];
    }
}

/* Each dim as two: the repeats, which read the same elements, and the dim itself. */
static status run_tile(const cpu_call *c)
{
    const tensor *in = c->inputs[0], *out = &c->outputs[0];
    if (2 * in->rank <= TENSOR_RANK_MAX && tensor_count(out) > 0) {
        int64_t dims[TENSOR_RANK_MAX], from[TENSOR_RANK_MAX], to[TENSOR_RANK_MAX];
        int64_t strides[TENSOR_RANK_MAX];
        cpu_dense_strides(in->rank, in->dims, strides);
        for (int i = 0; i < in->rank; i++) {
            dims[2 * i] = out->dims[i] / in->dims[i];
            dims[2 * i + 1] = in->dims[i];
            from[2 * i] = 0;
            from[2 * i + 1] = strides[i];
        }
        cpu_dense_strides(2 * in->rank, dims, to);
        cpu_split_copy(c, dtype_bytes(in->dtype), 2 * in->rank, dims, in->data, from, out->data,
                       to);
        return STATUS_OK;
    }
    int64_t *maps[TENSOR_RANK_MAX], dense[TENSOR_RANK_MAX];
    place_maps(c, maps);
    cpu_dense_strides(in->rank, in->dims, dense);
    for (int i = 0; i < out->rank; i++)
        for (int64_t j = 0; j < out->dims[i]; j++)
            maps[i][j] = j % in->dims[i] * dense[i];
    cpu_copy_mapped(dtype_bytes(in->dtype), out->rank, out->dims, (const int64_t *const *)maps,
                    in->data, NULL, out->data);
    return STATUS_OK;
}

typedef enum pad_mode { PAD_CONSTANT, PAD_REFLECT, PAD_EDGE, PAD_WRAP } pad_mode;

/* Where element j of a padded dim comes from, or -1: `j` counts from the unpadded start. */
static int64_t pad_source(pad_mode mode, int64_t j, int64_t n)
{
    if (j >= 0 && j < n)
        return j;
    int64_t period;
    switch (mode) {
    case PAD_EDGE:
        return j < 0 ? 0 : n - 1;
    case PAD_WRAP:
        return (j % n + n) % n;
    case PAD_REFLECT:
        if (n == 1)
            return 0;
        period = 2 * (n - 1);
        j = (j % period + period) % period;
        return j < n ? j : period - j;
    case PAD_CONSTANT:
        break;
    }
    return -1;
}

#define PAD_FEW 8

/* How a tensor is padded. The last dim is copied in runs, the others go through tables. */
typedef struct padding {
    pad_mode mode;
    size_t bytes;       /* of an element */
    int64_t begin, in;  /* of the last dim */
    const int64_t *map; /* of the last dim: which element is where; -1: the fill */
    const void *fill;
} padding;

/* Mostly few elements: without calls. */
static void fill_edge(const padding *p, int64_t count, char *to)
{
    if (p->bytes != sizeof(uint32_t) || count > PAD_FEW) {
        if (count > 0)
            cpu_fill(p->bytes, p->fill, to, count);
        return;
    }
    uint32_t x;
    memcpy(&x, p->fill, sizeof x);
    for (int64_t i = 0; i < count; i++)
        memcpy(to + i * (int64_t)sizeof x, &x, sizeof x);
}

/* Elements j .. end - 1 of a padded line, whose unpadded elements are at `from`. */
static void pad_edge(const padding *p, const char *from, int64_t j, int64_t end, char *to)
{
    to += j * (int64_t)p->bytes;
    if (p->mode == PAD_CONSTANT) {
        fill_edge(p, end - j, to);
        return;
    }
    for (; j < end; j++, to += p->bytes) {
        const void *source = p->map[j] < 0 ? p->fill : from + p->map[j] * (int64_t)p->bytes;
        if (p->bytes == sizeof(uint32_t))
            memcpy(to, source, sizeof(uint32_t));
        else
            memcpy(to, source, p->bytes);
    }
}

/* One line of `out` elements; `from` NULL: all are the fill. */
static void pad_line(const padding *p, const char *from, int64_t out, char *to)
{
    int64_t first = p->begin < 0 ? 0 : p->begin, end = p->begin + p->in;
    end = end < out ? end : out;
    if (!from) {
        cpu_fill(p->bytes, p->fill, to, out);
        return;
    }
    if (first >= end) {
        pad_edge(p, from, 0, out, to);
        return;
    }
    pad_edge(p, from, 0, first, to);
    memcpy(to + first * (int64_t)p->bytes, from + (first - p->begin) * (int64_t)p->bytes,
           (size_t)(end - first) * p->bytes);
    pad_edge(p, from, end, out, to);
}

static void pad_lines(const padding *p, int rank, const int64_t *dims, int64_t *const *maps,
                      const char *from, char *to)
{
    int64_t index[TENSOR_RANK_MAX] = {0}, lines = cpu_dims_product(dims, 0, rank - 1);
    size_t line_bytes = (size_t)dims[rank - 1] * p->bytes;
    for (int64_t line = 0; line < lines; line++, to += line_bytes) {
        int64_t base = 0;
        bool is_filled = false;
        for (int i = 0; i < rank - 1; i++) {
            base += maps[i][index[i]];
            is_filled |= maps[i][index[i]] < 0;
        }
        pad_line(p, is_filled ? NULL : from + base * (int64_t)p->bytes, dims[rank - 1], to);
        for (int i = rank - 2; i >= 0 && ++index[i] == dims[i]; i--)
            index[i] = 0;
    }
}

typedef struct pad_dims {
    int rank;
    int64_t begin[TENSOR_RANK_MAX], in[TENSOR_RANK_MAX], out[TENSOR_RANK_MAX];
} pad_dims;

/* Inner dims that are not padded become part of the last one that is: as more of its elements where
 * these are filled with a constant, else as larger elements. */
static void merge_inner(padding *p, pad_dims *d)
{
    int64_t inner = 1;
    while (d->rank > 1 && d->begin[d->rank - 1] == 0 && d->in[d->rank - 1] == d->out[d->rank - 1])
        inner *= d->in[--d->rank];
    if (p->mode != PAD_CONSTANT) {
        p->bytes *= (size_t)inner;
        return;
    }
    d->begin[d->rank - 1] *= inner;
    d->in[d->rank - 1] *= inner;
    d->out[d->rank - 1] *= inner;
}

/* Of the last dim only what is outside is looked up, and no constants. */
static void fill_maps(const padding *p, const pad_dims *d, int64_t *maps[TENSOR_RANK_MAX])
{
    int64_t dense[TENSOR_RANK_MAX];
    cpu_dense_strides(d->rank, d->in, dense);
    for (int i = 0; i < d->rank; i++) {
        bool is_last = i + 1 == d->rank;
        for (int64_t j = 0; j < d->out[i] && !(is_last && p->mode == PAD_CONSTANT); j++) {
            int64_t from = j - d->begin[i];
            if (is_last && from >= 0 && from < d->in[i]) {
                j = d->begin[i] + d->in[i] - 1;
                continue;
            }
            if (from < 0 || from >= d->in[i])
                from = d->in[i] ? pad_source(p->mode, from, d->in[i]) : -1;
            maps[i][j] = from < 0 ? -1 : from * dense[i];
        }
    }
}

static status run_pad(const cpu_call *c)
{
    static const uint8_t zeros[16];
    const tensor *in = c->inputs[0], *out = &c->outputs[0], *pads = c->inputs[1];
    const tensor *value = cpu_input(c->inputs, c->node, 2),
                 *axes = cpu_input(c->inputs, c->node, 3);
    const char *name = graph_attribute_string(c->node, "mode", "constant");
    padding p = {.mode = name[0] == 'r'   ? PAD_REFLECT
                         : name[0] == 'e' ? PAD_EDGE
                         : name[0] == 'w' ? PAD_WRAP
                                          : PAD_CONSTANT,
                 .bytes = dtype_bytes(in->dtype),
                 .fill = value ? value->data : zeros};
    int64_t begin[TENSOR_RANK_MAX] = {0}, padded = tensor_count(pads) / 2;
    pad_dims d = {.rank = out->rank};
    if (tensor_count(out) == 0)
        return STATUS_OK;
    if (out->rank == 0) {
        memcpy(out->data, in->data, p.bytes);
        return STATUS_OK;
    }
    for (int64_t i = 0; i < padded; i++)
        begin[cpu_axis(axes ? tensor_get_integer(axes, i) : i, in->rank)] =
            tensor_get_integer(pads, i);
    for (int i = 0; i < out->rank; i++) {
        d.begin[i] = begin[i];
        d.in[i] = in->dims[i];
        d.out[i] = out->dims[i];
    }
    merge_inner(&p, &d);
    int64_t *maps[TENSOR_RANK_MAX];
    place_maps(c, maps);
    fill_maps(&p, &d, maps);
    p.begin = d.begin[d.rank - 1];
    p.in = d.in[d.rank - 1];
    p.map = maps[d.rank - 1];
    pad_lines(&p, d.rank, d.out, maps, in->data, out->data);
    return STATUS_OK;
}

/* [n, c, h, w] with blocks of b: both are a transpose of six dims. */
static status run_depth_to_space(const cpu_call *c)
{
    const tensor *in = c->inputs[0], *out = &c->outputs[0];
    int64_t b = graph_attribute_int(c->node, "blocksize", 1);
    bool is_crd = graph_attribute_string(c->node, "mode", "DCR")[0] == 'C';
    int64_t n = out->dims[0], depth = out->dims[1], h = in->dims[2], w = in->dims[3];
    /* Output dims n, depth, h, bh, w, bw. */
    int64_t dims[] = {n, depth, h, b, w, b}, from[6], to[6], plane = h * w;
    cpu_dense_strides(6, dims, to);
    from[0] = depth * b * b * plane;
    from[1] = is_crd ? b * b * plane : plane;
    from[3] = is_crd ? b * plane : b * depth * plane;
    from[5] = is_crd ? plane : depth * plane;
    from[2] = w;
    from[4] = 1;
    cpu_split_copy(c, dtype_bytes(in->dtype), 6, dims, in->data, from, out->data, to);
    return STATUS_OK;
}

static status run_space_to_depth(const cpu_call *c)
{
    const tensor *in = c->inputs[0], *out = &c->outputs[0];
    int64_t b = graph_attribute_int(c->node, "blocksize", 1);
    int64_t n = in->dims[0], depth = in->dims[1], h = out->dims[2], w = out->dims[3];
    /* Output dims n, bh, bw, depth, h, w. */
    int64_t dims[] = {n, b, b, depth, h, w}, to[6], row = w * b, plane = h * b * row;
    int64_t from[] = {depth * plane, row, 1, plane, b * row, b};
    cpu_dense_strides(6, dims, to);
    if (graph_attribute_string(c->node, "mode", "DCR")[0] == 'C') { /* n, depth, bh, bw, h, w */
        to[3] = b * b * h * w;
        to[1] = b * h * w;
        to[2] = h * w;
    }
    cpu_split_copy(c, dtype_bytes(in->dtype), 6, dims, in->data, from, out->data, to);
    return STATUS_OK;
}

static status run_reverse_sequence(const cpu_call *c)
{
    const tensor *in = c->inputs[0], *lengths = c->inputs[1], *out = &c->outputs[0];
    int batch_axis = (int)graph_attribute_int(c->node, "batch_axis", 1);
    int time_axis = (int)graph_attribute_int(c->node, "time_axis", 0);
    size_t bytes = dtype_bytes(in->dtype);
    int64_t inner = cpu_dims_product(in->dims, 2, in->rank);
    int64_t strides[2] = {in->dims[1] * inner, inner};
    for (int64_t b = 0; b < in->dims[batch_axis]; b++) {
        int64_t length = tensor_get_integer(lengths, b), times = in->dims[time_axis];
        if (length < 0 || length > times)
            return status_fail(STATUS_INVALID_ARGUMENT, "sequence length %lld is outside [0, %lld]",
                               (long long)length, (long long)times);
        for (int64_t t = 0; t < times; t++) {
            int64_t s = t < length ? length - 1 - t : t;
            memcpy((char *)out->data +
                       (b * strides[batch_axis] + t * strides[time_axis]) * (int64_t)bytes,
                   (const char *)in->data +
                       (b * strides[batch_axis] + s * strides[time_axis]) * (int64_t)bytes,
                   (size_t)inner * bytes);
        }
    }
    return STATUS_OK;
}

static status run_trilu(const cpu_call *c)
{
    const tensor *in = c->inputs[0], *diagonal = cpu_input(c->inputs, c->node, 1);
    tensor *out = &c->outputs[0];
    bool is_upper = graph_attribute_int(c->node, "upper", 1) != 0;
    int64_t k = diagonal ? tensor_get_integer(diagonal, 0) : 0;
    int64_t h = in->dims[in->rank - 2], w = in->dims[in->rank - 1];
    int64_t planes = cpu_dims_product(in->dims, 0, in->rank - 2);
    size_t bytes = dtype_bytes(in->dtype);
    if (tensor_count(in) == 0)
        return STATUS_OK;
    memset(out->data, 0, tensor_bytes(out));
    for (int64_t r = 0; r < planes * h; r++) {
        int64_t i = r % h;
        /* Column j is kept when j - i >= k (upper) or <= k (lower); k may be any number. */
        int64_t edge = k > w + h ? w + h : k < -(w + h) ? -(w + h) : k;
        int64_t first = is_upper ? i + edge : 0, end = is_upper ? w : i + edge + 1;
        first = first < 0 ? 0 : first;
        end = end > w ? w : end;
        if (first < end)
            memcpy((char *)out->data + (r * w + first) * (int64_t)bytes,
                   (const char *)in->data + (r * w + first) * (int64_t)bytes,
                   (size_t)(end - first) * bytes);
    }
    return STATUS_OK;
}

static const cpu_op table[] = {
    {GRAPH_OP_IDENTITY, NULL, run_view, 0, true},
    {GRAPH_OP_RESHAPE, NULL, run_view, 0, true},
    {GRAPH_OP_FLATTEN, NULL, run_view, 0, true},
    {GRAPH_OP_SQUEEZE, NULL, run_view, 0, true},
    {GRAPH_OP_UNSQUEEZE, NULL, run_view, 0, true},
    {GRAPH_OP_TRANSPOSE, NULL, run_transpose, 0, false},
    {GRAPH_OP_CONCAT, NULL, run_concat, 0, false},
    {GRAPH_OP_SPLIT, NULL, run_split, 0, false},
    {GRAPH_OP_SLICE, NULL, run_slice, 0, false},
    {GRAPH_OP_EXPAND, NULL, run_expand, 0, false},
    {GRAPH_OP_TILE, prepare_mapped, run_tile, 0, false},
    {GRAPH_OP_PAD, prepare_mapped, run_pad, 0, false},
    {GRAPH_OP_DEPTH_TO_SPACE, NULL, run_depth_to_space, 0, false},
    {GRAPH_OP_SPACE_TO_DEPTH, NULL, run_space_to_depth, 0, false},
    {GRAPH_OP_REVERSE_SEQUENCE, NULL, run_reverse_sequence, 0, false},
    {GRAPH_OP_TRILU, NULL, run_trilu, 0, false},
};

const cpu_op_family cpu_ops_move = {table, sizeof table / sizeof table[0]};
