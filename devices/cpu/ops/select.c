#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "devices/cpu/ops/op.h"
#include "devices/cpu/ops/split.h"
#include "devices/cpu/tensor_loops/block.h"
#include "kernels/lines.h"

/* Operators that sort or choose. Compress, NonZero and Unique have outputs whose size depends on
 * values: only constant folding runs them, and shape inference has counted the size. */

static status run_compress(const cpu_call *c)
{
    const tensor *in = c->inputs[0], *condition = c->inputs[1];
    tensor *out = &c->outputs[0];
    const graph_attribute *attribute = graph_find_attribute(c->node, "axis");
    int axis = attribute ? cpu_axis(attribute->i, in->rank) : 0;
    int64_t outer = attribute ? cpu_dims_product(in->dims, 0, axis) : 1;
    int64_t n = attribute ? in->dims[axis] : tensor_count(in);
    size_t row = (attribute ? (size_t)cpu_dims_product(in->dims, axis + 1, in->rank) : 1) *
                 dtype_bytes(in->dtype);
    int64_t choices = tensor_count(condition) < n ? tensor_count(condition) : n;
    const uint8_t *chosen = condition->data;
    char *to = out->data, *end = to + tensor_bytes(out);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < choices; i++)
            if (chosen[i]) {
                if (to + row > end)
                    return status_fail(STATUS_INVALID_ARGUMENT,
                                       "more elements chosen than the output's shape holds");
                memcpy(to, (const char *)in->data + (size_t)(o * n + i) * row, row);
                to += row;
            }
    return STATUS_OK;
}

static status run_non_zero(const cpu_call *c)
{
    const tensor *in = c->inputs[0];
    tensor *out = &c->outputs[0];
    int64_t count = tensor_count(in), found = 0, capacity = out->dims[1], *to = out->data;
    for (int64_t i = 0; i < count; i++) {
        if (tensor_get_number(in, i) == 0)
            continue;
        if (found == capacity)
            return status_fail(STATUS_INVALID_ARGUMENT,
                               "more elements are not zero than the output's shape holds");
        int64_t rest = i;
        for (int d = in->rank - 1; d >= 0; d--) {
            to[d * capacity + found] = rest % in->dims[d];
            rest /= in->dims[d];
        }
        found++;
    }
    return STATUS_OK;
}

/* An element with its place, for sorting. */
typedef struct ranked {
    union {
        double f;
        int64_t i;
        uint64_t u;
    } key;
    int64_t place;
} ranked;

static void load_ranked(const tensor *in, int64_t first, int64_t stride, int64_t n, ranked *out)
{
    cpu_compute compute = cpu_compute_of(in->dtype);
    if (compute == CPU_COMPUTE_F32)
        compute = CPU_COMPUTE_F64;
    for (int64_t i = 0; i < n; i++) {
        cpu_block x;
        cpu_load(compute, in->dtype, in->data, first + i * stride, 1, 1, &x);
        out[i].key.u = x.u64[0];
        out[i].place = i;
    }
}

#define ORDER(a, b) ((a) < (b) ? -1 : (a) > (b))
#define BY_PLACE(x, y, order) ((order) ? (order) : ORDER((x)->place, (y)->place))

/* Floats: NaN counts as the largest value. */
static int order_doubles(double a, double b)
{
    bool a_nan = a != a, b_nan = b != b;
    return a_nan || b_nan ? a_nan - b_nan : ORDER(a, b);
}

static int f64_ascending(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    int order = order_doubles(x->key.f, y->key.f);
    return BY_PLACE(x, y, order);
}

static int f64_descending(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    int order = order_doubles(y->key.f, x->key.f);
    return BY_PLACE(x, y, order);
}

static int i64_ascending(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    int order = ORDER(x->key.i, y->key.i);
    return BY_PLACE(x, y, order);
}

static int i64_descending(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    int order = ORDER(y->key.i, x->key.i);
    return BY_PLACE(x, y, order);
}

static int u64_ascending(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    int order = ORDER(x->key.u, y->key.u);
    return BY_PLACE(x, y, order);
}

static int u64_descending(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    int order = ORDER(y->key.u, x->key.u);
    return BY_PLACE(x, y, order);
}

typedef int (*ranked_order)(const void *, const void *);

static ranked_order order_of(dtype type, bool is_descending)
{
    switch (cpu_compute_of(type)) {
    case CPU_COMPUTE_I64:
        return is_descending ? i64_descending : i64_ascending;
    case CPU_COMPUTE_U64:
        return is_descending ? u64_descending : u64_ascending;
    default:
        return is_descending ? f64_descending : f64_ascending;
    }
}

/* A heap sort: qsort may allocate, and a run allocates nothing. The order is total (by place last),
 * so the result is stable. */
static void sift_down(ranked *items, int64_t root, int64_t n, ranked_order order)
{
    for (int64_t child; (child = 2 * root + 1) < n; root = child) {
        if (child + 1 < n && order(&items[child], &items[child + 1]) < 0)
            child++;
        if (order(&items[root], &items[child]) >= 0)
            return;
        ranked swap = items[root];
        items[root] = items[child];
        items[child] = swap;
    }
}

static void sort_ranked(ranked *items, int64_t n, ranked_order order)
{
    for (int64_t i = n / 2 - 1; i >= 0; i--)
        sift_down(items, i, n, order);
    for (int64_t i = n - 1; i > 0; i--) {
        ranked swap = items[0];
        items[0] = items[i];
        items[i] = swap;
        sift_down(items, 0, i, order);
    }
}

/* The first `count` of all, in order, at the front. */
static void sort_first(ranked *items, int64_t n, int64_t count, ranked_order order)
{
    if (count < 1)
        return;
    for (int64_t i = count / 2 - 1; i >= 0; i--)
        sift_down(items, i, count, order); /* the last of them is at the root */
    for (int64_t i = count; i < n; i++)
        if (order(&items[i], &items[0]) < 0) {
            items[0] = items[i];
            sift_down(items, 0, count, order);
        }
    sort_ranked(items, count, order);
}

/* F32: value and place in one number, so that the first in order is the largest of numbers: the
 * value's bits as an unsigned number that rises with it (NaN: the highest), then the place,
 * inverted. */
static uint64_t float_rank(float x, uint32_t place, bool is_largest)
{
    uint32_t bits;
    x = x == 0 ? 0 : x; /* -0 is 0 */
    memcpy(&bits, &x, sizeof bits);
    bits ^= (uint32_t)((int32_t)bits >> 31) | 0x80000000u;
    bits = x != x ? UINT32_MAX : bits;
    return (uint64_t)(is_largest ? bits : ~bits) << 32 | (uint32_t)~place;
}

/* The least of a heap is at its root. */
static void sink(uint64_t *heap, int64_t root, int64_t n)
{
    uint64_t x = heap[root];
    for (int64_t child; (child = 2 * root + 1) < n; root = child) {
        child += child + 1 < n && heap[child + 1] < heap[child];
        if (heap[child] >= x)
            break;
        heap[root] = heap[child];
    }
    heap[root] = x;
}

/* The first k of n floats that are `stride` apart, in order. */
static void rank_floats(const float *x, int64_t stride, int64_t n, int64_t k, bool is_largest,
                        uint64_t *heap)
{
    if (k < 1)
        return;
    for (int64_t i = 0; i < k; i++)
        heap[i] = float_rank(x[i * stride], (uint32_t)i, is_largest);
    for (int64_t i = k / 2 - 1; i >= 0; i--)
        sink(heap, i, k);
    float least = x[(uint32_t)~heap[0] * stride];
    for (int64_t i = k; i < n; i++) {
        float y = x[i * stride];
        if (is_largest ? y <= least : y >= least) /* most: NaN is neither */
            continue;
        uint64_t rank = float_rank(y, (uint32_t)i, is_largest);
        if (rank > heap[0]) {
            heap[0] = rank;
            sink(heap, 0, k);
            least = x[(uint32_t)~heap[0] * stride];
        }
    }
    for (int64_t last = k - 1; last > 0; last--) { /* the least goes to the end */
        uint64_t root = heap[0];
        heap[0] = heap[last];
        heap[last] = root;
        sink(heap, 0, last);
    }
}

static status run_top_k_floats(const cpu_call *c)
{
    const tensor *in = c->inputs[0];
    float *values = c->outputs[0].data;
    int64_t *places = c->node->output_count > 1 ? c->outputs[1].data : NULL;
    int axis = cpu_axis(graph_attribute_int(c->node, "axis", -1), in->rank);
    bool is_largest = graph_attribute_int(c->node, "largest", 1) != 0;
    int64_t n = in->dims[axis], k = c->outputs[0].dims[axis], count = k < n ? k : n;
    int64_t outer = cpu_dims_product(in->dims, 0, axis);
    int64_t inner = cpu_dims_product(in->dims, axis + 1, in->rank);
    for (int64_t row = 0; row < outer * inner; row++) {
        const float *x = (const float *)in->data + row / inner * n * inner + row % inner;
        int64_t to = row / inner * k * inner + row % inner;
        rank_floats(x, inner, n, count, is_largest, c->scratch);
        for (int64_t i = 0; i < count; i++) {
            int64_t place = (uint32_t) ~(uint32_t)((uint64_t *)c->scratch)[i];
            if (values)
                values[to + i * inner] = x[place * inner];
            if (places)
                places[to + i * inner] = place;
        }
    }
    return STATUS_OK;
}

static status prepare_top_k(cpu_prepare *p)
{
    const tensor *in = p->inputs[0];
    if (in->dtype >= DTYPE_BYTES)
        return cpu_op_fail_dtype(p->node, in->dtype);
    int axis = cpu_axis(graph_attribute_int(p->node, "axis", -1), in->rank);
    p->scratch_bytes = (size_t)in->dims[axis] * sizeof(ranked);
    return STATUS_OK;
}

static status run_top_k(const cpu_call *c)
{
    const tensor *in = c->inputs[0];
    if (in->dtype == DTYPE_F32 && tensor_count(in) <= UINT32_MAX && c->outputs[0].rank == in->rank)
        return run_top_k_floats(c);
    tensor *values = &c->outputs[0];
    int64_t *places = c->node->output_count > 1 ? c->outputs[1].data : NULL;
    int axis = cpu_axis(graph_attribute_int(c->node, "axis", -1), in->rank);
    ranked_order order = order_of(in->dtype, graph_attribute_int(c->node, "largest", 1) != 0);
    int64_t n = in->dims[axis], k = values->dims[axis];
    int64_t outer = cpu_dims_product(in->dims, 0, axis),
            inner = cpu_dims_product(in->dims, axis + 1, in->rank);
    size_t bytes = dtype_bytes(in->dtype);
    ranked *items = c->scratch;
    for (int64_t row = 0; row < outer * inner; row++) {
        int64_t o = row / inner, first = o * n * inner + row % inner;
        load_ranked(in, first, inner, n, items);
        sort_first(items, n, k < n ? k : n, order);
        for (int64_t i = 0; i < k && i < n; i++) {
            int64_t to = (o * k + i) * inner + row % inner;
            if (values->data)
                memcpy((char *)values->data + (size_t)to * bytes,
                       (const char *)in->data + (size_t)(first + items[i].place * inner) * bytes,
                       bytes);
            if (places)
                places[to] = items[i].place;
        }
    }
    return STATUS_OK;
}

/* Unique: the items along an axis (or all elements), compared element by element. */
typedef struct unique_items {
    const tensor *in;
    int64_t outer, n, inner;
} unique_items;

/* NaN is the largest, and equals itself. */
static int compare_elements(const tensor *t, int64_t a, int64_t b)
{
    if (dtype_is_float(t->dtype))
        return order_doubles(tensor_get_number(t, a), tensor_get_number(t, b));
    int64_t x = tensor_get_integer(t, a), y = tensor_get_integer(t, b);
    return t->dtype == DTYPE_U64 ? ORDER((uint64_t)x, (uint64_t)y) : ORDER(x, y);
}

static int compare_items(const unique_items *u, int64_t a, int64_t b)
{
    for (int64_t o = 0; o < u->outer; o++)
        for (int64_t i = 0; i < u->inner; i++) {
            int order = compare_elements(u->in, (o * u->n + a) * u->inner + i,
                                         (o * u->n + b) * u->inner + i);
            if (order)
                return order;
        }
    return 0;
}

static unique_items items_of(const graph_node *node, const tensor *in)
{
    const graph_attribute *attribute = graph_find_attribute(node, "axis");
    if (!attribute)
        return (unique_items){in, 1, tensor_count(in), 1};
    int axis = cpu_axis(attribute->i, in->rank);
    return (unique_items){in, cpu_dims_product(in->dims, 0, axis), in->dims[axis],
                          cpu_dims_product(in->dims, axis + 1, in->rank)};
}

static status prepare_unique(cpu_prepare *p)
{
    if (p->inputs[0]->dtype >= DTYPE_BYTES)
        return cpu_op_fail_dtype(p->node, p->inputs[0]->dtype);
    unique_items u = items_of(p->node, p->inputs[0]);
    p->scratch_bytes = (size_t)u.n * 3 * sizeof(int64_t);
    return STATUS_OK;
}

/* to[a..end) = the sorted from[a..b) and from[b..end); of equal ones the former come first. */
static void merge_places(const unique_items *u, const int64_t *from, int64_t a, int64_t b,
                         int64_t end, int64_t *to)
{
    int64_t middle = b;
    for (int64_t i = a; i < end; i++) {
        bool is_second = a == middle || (b < end && compare_items(u, from[a], from[b]) > 0);
        to[i] = from[is_second ? b++ : a++];
    }
}

/* All places, by what lies there, then by place. */
static void sort_places(const unique_items *u, int64_t *places, int64_t *spare)
{
    for (int64_t i = 0; i < u->n; i++)
        places[i] = i;
    for (int64_t run = 1; run < u->n; run *= 2) {
        for (int64_t a = 0; a < u->n; a += 2 * run) {
            int64_t b = u->n - a < run ? u->n : a + run, end = u->n - b < run ? u->n : b + run;
            merge_places(u, places, a, b, end, spare);
        }
        memcpy(places, spare, (size_t)u->n * sizeof places[0]);
    }
}

/* Numbers the distinct items in the requested order: `numbers` of the items, `firsts` of the
 * distinct ones. Returns how many those are. `spare`: room for as many. */
static int64_t find_distinct(const unique_items *u, bool is_sorted, int64_t *firsts,
                             int64_t *numbers, int64_t *spare)
{
    int64_t found = 0, next = 0;
    sort_places(u, spare, numbers);
    for (int64_t i = 0; i < u->n; i++) {
        if (i == 0 || compare_items(u, spare[i - 1], spare[i]) != 0)
            firsts[found++] = spare[i];
        numbers[spare[i]] = found - 1;
    }
    for (int64_t i = 0; !is_sorted && i < u->n; i++) { /* spare: their numbers as they appear */
        if (firsts[numbers[i]] == i)
            spare[numbers[i]] = next++;
        numbers[i] = spare[numbers[i]];
    }
    for (int64_t i = 0, number = 0; !is_sorted && i < u->n; i++)
        if (numbers[i] == number)
            firsts[number++] = i;
    return found;
}

static status run_unique(const cpu_call *c)
{
    unique_items u = items_of(c->node, c->inputs[0]);
    int64_t *firsts = c->scratch, *numbers = firsts + u.n;
    bool is_sorted = graph_attribute_int(c->node, "sorted", 1) != 0;
    int64_t found = find_distinct(&u, is_sorted, firsts, numbers, numbers + u.n);
    tensor *out = &c->outputs[0];
    int64_t item = u.outer * u.inner, capacity = tensor_count(out) / (item > 0 ? item : 1);
    if (found != capacity && item > 0)
        return status_fail(STATUS_INVALID_ARGUMENT, "%lld distinct items, expected %lld",
                           (long long)found, (long long)capacity);
    size_t row = (size_t)u.inner * dtype_bytes(u.in->dtype);
    for (int64_t o = 0; out->data && o < u.outer; o++)
        for (int64_t i = 0; i < found; i++)
            memcpy((char *)out->data + (size_t)(o * found + i) * row,
                   (const char *)u.in->data + (size_t)(o * u.n + firsts[i]) * row, row);
    int64_t *side[3] = {0};
    for (int i = 1; i < c->node->output_count; i++)
        side[i - 1] = c->outputs[i].data;
    for (int64_t i = 0; i < found; i++) {
        if (side[0])
            side[0][i] = firsts[i];
        if (side[2])
            side[2][i] = 0;
    }
    for (int64_t i = 0; i < u.n; i++) {
        if (side[1])
            side[1][i] = numbers[i];
        if (side[2])
            side[2][numbers[i]]++;
    }
    return STATUS_OK;
}

/* Whether x comes before the best so far. The first NaN wins, as in NumPy. */
#define IS_BETTER(x, best)                                                                         \
    ((x) != (x)         ? (best) == (best)                                                         \
     : (best) != (best) ? false                                                                    \
     : is_max           ? (x) > (best)                                                             \
                        : (x) < (best))

/* F32 rows beside each other: `count` of them, from x on, each with its elements `inner` apart. */
static void arg_beside(const kernels *k, bool is_max, bool is_last, const float *x, int64_t n,
                       int64_t inner, int64_t count, int64_t *out)
{
    float best[CPU_BLOCK_ELEMENTS];
    int32_t places[CPU_BLOCK_ELEMENTS];
    assert(count <= CPU_BLOCK_ELEMENTS);
    k->arg_rows_f32(&(arg_rows_f32){.is_max = is_max,
                                    .is_last = is_last,
                                    .rows = (size_t)n,
                                    .width = (size_t)count,
                                    .in = x,
                                    .stride = (size_t)inner,
                                    .best = best,
                                    .out = places});
    for (int64_t j = 0; j < count; j++)
        out[j] = places[j];
}

/* One F32 row of neighbours: its extreme, then where that is. */
static int64_t arg_along(const kernels *k, bool is_max, bool is_last, const float *x, int64_t n)
{
    float best = (is_max ? k->reduce_max_f32 : k->reduce_min_f32)(x, (size_t)n);
    int64_t place = 0;
    if (best != best) /* the first NaN */
        for (; x[place] == x[place]; place++)
            ;
    else if (is_last)
        for (place = n - 1; x[place] != best; place--)
            ;
    else
        for (; x[place] != best; place++)
            ;
    return place;
}

static void arg_f32(const cpu_call *c, void *memory, size_t first, size_t count)
{
    (void)memory;
    const tensor *in = c->inputs[0];
    int axis = cpu_axis(graph_attribute_int(c->node, "axis", 0), in->rank);
    bool is_max = c->node->op == GRAPH_OP_ARG_MAX;
    bool is_last = graph_attribute_int(c->node, "select_last_index", 0) != 0;
    int64_t n = in->dims[axis], inner = cpu_dims_product(in->dims, axis + 1, in->rank);
    for (size_t o = first; o < first + count; o++) {
        const float *x = (const float *)in->data + (int64_t)o * n * inner;
        int64_t *out = (int64_t *)c->outputs[0].data + (int64_t)o * inner;
        if (inner == 1) {
            *out = arg_along(c->kernels, is_max, is_last, x, n);
            continue;
        }
        for (int64_t j = 0; j < inner; j += CPU_BLOCK_ELEMENTS)
            arg_beside(c->kernels, is_max, is_last, x + j, n, inner,
                       inner - j < CPU_BLOCK_ELEMENTS ? inner - j : CPU_BLOCK_ELEMENTS, out + j);
    }
}

/* Rows of neighbours, of integers or doubles. */
static void arg_plain(const cpu_call *c, void *memory, size_t first, size_t count)
{
    (void)memory;
    const tensor *in = c->inputs[0];
    size_t n = (size_t)in->dims[cpu_axis(graph_attribute_int(c->node, "axis", 0), in->rank)];
    place_line p = {.is_max = c->node->op == GRAPH_OP_ARG_MAX,
                    .is_last = graph_attribute_int(c->node, "select_last_index", 0) != 0,
                    .type = in->dtype,
                    .count = n};
    for (size_t row = first; row < first + count; row++) {
        p.in = (const char *)in->data + row * n * dtype_bytes(in->dtype);
        ((int64_t *)c->outputs[0].data)[row] = (int64_t)c->kernels->place_line(&p);
    }
}

static status run_arg(const cpu_call *c)
{
    const tensor *in = c->inputs[0];
    int64_t *out = c->outputs[0].data;
    int axis = cpu_axis(graph_attribute_int(c->node, "axis", 0), in->rank);
    bool is_max = c->node->op == GRAPH_OP_ARG_MAX;
    bool is_last = graph_attribute_int(c->node, "select_last_index", 0) != 0;
    int64_t n = in->dims[axis], outer = cpu_dims_product(in->dims, 0, axis);
    int64_t inner = cpu_dims_product(in->dims, axis + 1, in->rank);
    cpu_compute compute = cpu_compute_of(in->dtype);
    if (in->dtype == DTYPE_F32 && n > 0 && n <= INT32_MAX) {
        cpu_split_rows(c, (double)tensor_count(in) / 2, arg_f32, (size_t)outer);
        return STATUS_OK;
    }
    if (inner == 1 && n > 0 && plain_line_has(in->dtype)) {
        cpu_split_rows(c, (double)tensor_count(in) / 4, arg_plain, (size_t)outer);
        return STATUS_OK;
    }
    compute = compute == CPU_COMPUTE_F32 ? CPU_COMPUTE_F64 : compute;
    for (int64_t row = 0; row < outer * inner; row++) {
        int64_t first = row / inner * n * inner + row % inner, place = 0;
        cpu_block x, best;
        cpu_load(compute, in->dtype, in->data, first, 1, 1, &best);
        for (int64_t i = 1; i < n; i++) {
            cpu_load(compute, in->dtype, in->data, first + i * inner, 1, 1, &x);
            bool is_better = compute == CPU_COMPUTE_F64   ? IS_BETTER(x.f64[0], best.f64[0])
                             : compute == CPU_COMPUTE_I64 ? IS_BETTER(x.i64[0], best.i64[0])
                                                          : IS_BETTER(x.u64[0], best.u64[0]);
            bool is_equal =
                compute == CPU_COMPUTE_F64 ? x.f64[0] == best.f64[0] : x.u64[0] == best.u64[0];
            if (is_better || (is_last && is_equal)) {
                best = x;
                place = i;
            }
        }
        out[row] = place;
    }
    return STATUS_OK;
}

static const cpu_op table[] = {
    {GRAPH_OP_ARG_MAX, cpu_op_prepare_numbers, run_arg, 0, false},
    {GRAPH_OP_ARG_MIN, cpu_op_prepare_numbers, run_arg, 0, false},
    {GRAPH_OP_COMPRESS, NULL, run_compress, 0, false},
    {GRAPH_OP_NON_ZERO, NULL, run_non_zero, 0, false},
    {GRAPH_OP_TOP_K, prepare_top_k, run_top_k, 0, false},
    {GRAPH_OP_UNIQUE, prepare_unique, run_unique, 0, false},
};

const cpu_op_family cpu_ops_select = {table, sizeof table / sizeof table[0]};
