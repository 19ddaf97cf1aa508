#include "build.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    HIDDEN = 12,
    NARROW = 6,
    HEADS = 3,
    SIZE = 4,
    WIDTH = 20,
    WORDS = 30,
    POSITIONS = 40,
    LAYERS = 2
};

typedef struct builder {
    graph *g;
    const encoder_form *form;
    graph_value_index ids, mask;
    uint64_t random;
} builder;

static graph_value_index weights(builder *b, int rank, const int64_t *dims, float reach)
{
    int64_t count = 1;
    for (int i = 0; i < rank; i++)
        count *= dims[i];
    float *data = malloc((size_t)count * sizeof data[0]);
    for (int64_t i = 0; i < count; i++) {
        b->random = b->random * 6364136223846793005u + 1442695040888963407u;
        data[i] = reach * ((float)(b->random >> 40) / 8388608.0f - 1);
    }
    graph_value_index v = graph_add_constant_f32(b->g, NULL, rank, dims, data);
    free(data);
    return v;
}

static graph_value_index number(builder *b, float f)
{
    return graph_add_constant_f32(b->g, NULL, 0, NULL, &f);
}

static graph_value_index whole(builder *b, int64_t i)
{
    return graph_add_constant_i64(b->g, NULL, 0, NULL, &i);
}

static graph_value_index ints(builder *b, int64_t count, const int64_t *data)
{
    return graph_add_constant_i64(b->g, NULL, 1, &count, data);
}

#define INTS(b, ...)                                                                               \
    ints(b, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__})

static graph_value_index unary(builder *b, graph_op op, graph_value_index x)
{
    return graph_add(b->g, op, 1, &x, 0, NULL);
}

static graph_value_index binary(builder *b, graph_op op, graph_value_index x, graph_value_index y)
{
    graph_value_index in[] = {x, y};
    return graph_add(b->g, op, 2, in, 0, NULL);
}

static graph_value_index where(builder *b, graph_value_index c, graph_value_index x,
                               graph_value_index y)
{
    graph_value_index in[] = {c, x, y};
    return graph_add(b->g, GRAPH_OP_WHERE, 3, in, 0, NULL);
}

static graph_value_index cast(builder *b, graph_value_index x, dtype type)
{
    graph_attribute to = graph_make_int("to", dtype_to_onnx(type));
    return graph_add(b->g, GRAPH_OP_CAST, 1, &x, 1, &to);
}

static graph_value_index reduce(builder *b, graph_op op, graph_value_index x, int64_t axis,
                                bool keeps)
{
    graph_value_index in[] = {x, INTS(b, axis)};
    graph_attribute keep = graph_make_int("keepdims", keeps);
    return graph_add(b->g, op, 2, in, 1, &keep);
}

static graph_value_index gather(builder *b, graph_value_index x, graph_value_index at, int64_t axis)
{
    graph_value_index in[] = {x, at};
    graph_attribute a = graph_make_int("axis", axis);
    return graph_add(b->g, GRAPH_OP_GATHER, 2, in, 1, &a);
}

static graph_value_index gather_at(builder *b, graph_value_index x, int64_t at, int64_t axis)
{
    return gather(b, x, graph_add_constant_i64(b->g, NULL, 0, NULL, &at), axis);
}

static graph_value_index transpose(builder *b, graph_value_index x, size_t rank,
                                   const int64_t *order)
{
    graph_attribute perm = graph_make_ints(b->g, "perm", rank, order);
    return graph_add(b->g, GRAPH_OP_TRANSPOSE, 1, &x, 1, &perm);
}

#define TRANSPOSE(b, x, ...)                                                                       \
    transpose(b, x, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__})
#define RESHAPE(b, x, ...) binary(b, GRAPH_OP_RESHAPE, x, INTS(b, __VA_ARGS__))

static graph_value_index einsum(builder *b, const char *equation, graph_value_index x,
                                graph_value_index y)
{
    graph_value_index in[] = {x, y};
    graph_attribute a = graph_make_string("equation", equation);
    return graph_add(b->g, GRAPH_OP_EINSUM, 2, in, 1, &a);
}

static graph_value_index dense(builder *b, graph_value_index x, int64_t from, int64_t to)
{
    bool is_transposed = b->form->dense == DENSE_GEMM_TRANSPOSED;
    int64_t dims[] = {is_transposed ? to : from, is_transposed ? from : to};
    graph_value_index w = weights(b, 2, dims, 0.5f), bias = weights(b, 1, &to, 0.5f);
    if (b->form->dense == DENSE_MATMUL)
        return binary(b, GRAPH_OP_ADD, binary(b, GRAPH_OP_MATMUL, x, w), bias);
    if (b->form->dense == DENSE_BIAS_FIRST)
        return binary(b, GRAPH_OP_ADD, bias, binary(b, GRAPH_OP_MATMUL, x, w));
    graph_value_index shape = unary(b, GRAPH_OP_SHAPE, x);
    graph_value_index in[] = {RESHAPE(b, x, -1, from), w, bias};
    graph_attribute a = graph_make_int("transB", is_transposed);
    graph_value_index y = graph_add(b->g, GRAPH_OP_GEMM, 3, in, 1, &a);
    graph_value_index parts[] = {gather(b, shape, INTS(b, 0, 1), 0), INTS(b, to)};
    graph_attribute axis = graph_make_int("axis", 0);
    return binary(b, GRAPH_OP_RESHAPE, y, graph_add(b->g, GRAPH_OP_CONCAT, 2, parts, 1, &axis));
}

static graph_value_index dense_of_rows(builder *b, graph_value_index x, int64_t from, int64_t to)
{
    graph_value_index w = weights(b, 2, (int64_t[]){from, to}, 0.5f), bias = weights(b, 1, &to, 1);
    return binary(b, GRAPH_OP_ADD, binary(b, GRAPH_OP_MATMUL, x, w), bias);
}

static graph_value_index normalise_width(builder *b, graph_value_index x, int64_t width)
{
    graph_value_index scale = weights(b, 1, &width, 1), bias = weights(b, 1, &width, 0.5f);
    if (b->form->norm == NORM_FUSED) {
        graph_value_index in[] = {x, scale, bias};
        graph_attribute a[] = {graph_make_int("axis", -1), graph_make_float("epsilon", 1e-5f)};
        return graph_add(b->g, GRAPH_OP_LAYER_NORMALIZATION, 3, in, 2, a);
    }
    graph_value_index centred =
        binary(b, GRAPH_OP_SUB, x, reduce(b, GRAPH_OP_REDUCE_MEAN, x, -1, true));
    graph_value_index square = b->form->norm == NORM_POW
                                   ? binary(b, GRAPH_OP_POW, centred, number(b, 2))
                                   : binary(b, GRAPH_OP_MUL, centred, centred);
    graph_value_index variance = reduce(b, GRAPH_OP_REDUCE_MEAN, square, -1, true);
    graph_value_index deviation =
        unary(b, GRAPH_OP_SQRT, binary(b, GRAPH_OP_ADD, variance, number(b, 1e-5f)));
    if (b->form->norm == NORM_RECIPROCAL) { /* with the scale first */
        graph_value_index factor =
            binary(b, GRAPH_OP_MUL, unary(b, GRAPH_OP_RECIPROCAL, deviation), scale);
        return binary(b, GRAPH_OP_ADD, binary(b, GRAPH_OP_MUL, centred, factor), bias);
    }
    graph_value_index y = binary(b, GRAPH_OP_DIV, centred, deviation);
    return binary(b, GRAPH_OP_ADD, bias, binary(b, GRAPH_OP_MUL, y, scale));
}

static graph_value_index normalise(builder *b, graph_value_index x)
{
    return normalise_width(b, x, HIDDEN);
}

static graph_value_index tanh_gelu(builder *b, graph_value_index x, bool is_power)
{
    graph_value_index cube = is_power ? binary(b, GRAPH_OP_POW, x, number(b, 3))
                                      : binary(b, GRAPH_OP_MUL, binary(b, GRAPH_OP_MUL, x, x), x);
    graph_value_index inner =
        binary(b, GRAPH_OP_ADD, x, binary(b, GRAPH_OP_MUL, number(b, 0.044715f), cube));
    inner = unary(b, GRAPH_OP_TANH, binary(b, GRAPH_OP_MUL, inner, number(b, 0.7978846f)));
    inner = binary(b, GRAPH_OP_ADD, number(b, 1), inner);
    return binary(b, GRAPH_OP_MUL, binary(b, GRAPH_OP_MUL, x, number(b, 0.5f)), inner);
}

static graph_value_index activate(builder *b, graph_value_index x)
{
    graph_value_index half = number(b, 0.5f), one = number(b, 1), e;
    switch (b->form->activation) {
    case ACTIVATION_GELU:
        return unary(b, GRAPH_OP_GELU, x);
    case ACTIVATION_DIV_FIRST:
        e = unary(b, GRAPH_OP_ERF, binary(b, GRAPH_OP_DIV, x, number(b, 1.4142135f)));
        return binary(b, GRAPH_OP_MUL, binary(b, GRAPH_OP_MUL, x, binary(b, GRAPH_OP_ADD, e, one)),
                      half);
    case ACTIVATION_HALF_FIRST:
        e = unary(b, GRAPH_OP_ERF, binary(b, GRAPH_OP_MUL, number(b, 0.70710678f), x));
        return binary(b, GRAPH_OP_MUL, binary(b, GRAPH_OP_MUL, half, x),
                      binary(b, GRAPH_OP_ADD, one, e));
    case ACTIVATION_HALF_LAST:
        e = unary(b, GRAPH_OP_ERF, binary(b, GRAPH_OP_DIV, x, number(b, 1.4142135f)));
        return binary(b, GRAPH_OP_MUL, x,
                      binary(b, GRAPH_OP_MUL, binary(b, GRAPH_OP_ADD, e, one), half));
    case ACTIVATION_TANH_POW:
        return tanh_gelu(b, x, true);
    case ACTIVATION_TANH_SQUARE:
        return tanh_gelu(b, x, false);
    case ACTIVATION_SIGMOID:
        return unary(b, GRAPH_OP_SIGMOID, x);
    case ACTIVATION_QUICK_GELU:
        e = unary(b, GRAPH_OP_SIGMOID, binary(b, GRAPH_OP_MUL, x, number(b, 1.702f)));
        return binary(b, GRAPH_OP_MUL, x, e);
    }
    abort();
}

/* [B,S,HIDDEN] to the layout that the products want. */
static graph_value_index split_heads(builder *b, graph_value_index x, bool is_key)
{
    if (b->form->product == PRODUCT_EINSUM_IN_PLACE)
        return RESHAPE(b, x, 0, 0, HEADS, SIZE);
    x = RESHAPE(b, x, 0, 0, HEADS, SIZE);
    bool swaps = is_key && b->form->product != PRODUCT_EINSUM;
    x = swaps ? TRANSPOSE(b, x, 0, 2, 3, 1) : TRANSPOSE(b, x, 0, 2, 1, 3);
    return x;
}

static graph_value_index split_merged(builder *b, graph_value_index all, int part)
{
    if (b->form->qkv == QKV_BY_GATHER) {
        all = TRANSPOSE(b, RESHAPE(b, all, 0, 0, 3, HEADS, SIZE), 2, 0, 3, 1, 4);
        all = TRANSPOSE(b, gather_at(b, all, part, 0), 0, 2, 1, 3);
        return RESHAPE(b, all, 0, 0, HIDDEN);
    }
    all = RESHAPE(b, all, 0, 0, HEADS, 3, SIZE);
    return RESHAPE(b, gather_at(b, all, part, 3), 0, 0, HIDDEN);
}

static void make_qkv(builder *b, graph_value_index x, graph_value_index qkv[3])
{
    if (b->form->qkv == QKV_APART) {
        for (int i = 0; i < 3; i++)
            qkv[i] = dense(b, x, HIDDEN, HIDDEN);
        return;
    }
    graph_value_index all = dense(b, x, HIDDEN, 3 * HIDDEN);
    if (b->form->qkv == QKV_SPLIT) {
        graph_value_index in[] = {all, INTS(b, HIDDEN, HIDDEN, HIDDEN)};
        graph_attribute axis = graph_make_int("axis", -1);
        int32_t n = graph_add_node(b->g, GRAPH_OP_SPLIT, NULL, 2, in, 3, 1, &axis);
        for (int i = 0; i < 3; i++)
            qkv[i] = b->g->nodes[n].outputs[i];
        return;
    }
    for (int i = 0; i < 3; i++)
        qkv[i] = split_merged(b, all, i);
}

/* How far each key stands after each query: [S,S]. */
static graph_value_index make_distance(builder *b)
{
    graph_value_index length = gather_at(b, unary(b, GRAPH_OP_SHAPE, b->ids), 1, 0);
    graph_value_index in[] = {whole(b, 0), length, whole(b, 1)};
    graph_value_index range = graph_add(b->g, GRAPH_OP_RANGE, 3, in, 0, NULL);
    return binary(b, GRAPH_OP_SUB, binary(b, GRAPH_OP_UNSQUEEZE, range, INTS(b, 0)),
                  binary(b, GRAPH_OP_UNSQUEEZE, range, INTS(b, 1)));
}

static graph_value_index make_causal(builder *b)
{
    return binary(b, GRAPH_OP_LESS_OR_EQUAL, make_distance(b), whole(b, 0));
}

static graph_value_index make_window(builder *b)
{
    return binary(b, GRAPH_OP_LESS, unary(b, GRAPH_OP_ABS, make_distance(b)), whole(b, 20));
}

static graph_value_index mask_scores(builder *b, graph_value_index scores)
{
    graph_value_index keys = binary(b, GRAPH_OP_UNSQUEEZE, b->mask, INTS(b, 1, 2));
    graph_value_index is_key = cast(b, keys, DTYPE_BOOL), bias;
    switch (b->form->mask) {
    case MASK_SUBTRACT:
    case MASK_BEFORE_SCALE:
    case MASK_SMALL:
        bias = binary(b, GRAPH_OP_SUB, number(b, 1), cast(b, keys, DTYPE_F32));
        bias = binary(b, GRAPH_OP_MUL, bias, number(b, b->form->mask == MASK_SMALL ? -1 : -1e4f));
        return binary(b, GRAPH_OP_ADD, scores, bias);
    case MASK_WHERE:
        return where(b, is_key, scores, number(b, -FLT_MAX));
    case MASK_INFINITE:
        return binary(b, GRAPH_OP_ADD, where(b, is_key, number(b, 0), number(b, -INFINITY)),
                      scores);
    case MASK_CAUSAL:
        return where(b, binary(b, GRAPH_OP_AND, make_causal(b), is_key), scores, number(b, -1e4f));
    case MASK_FROM_IDS:
        is_key = unary(b, GRAPH_OP_NOT, binary(b, GRAPH_OP_EQUAL, b->ids, whole(b, 0)));
        return where(b, binary(b, GRAPH_OP_UNSQUEEZE, is_key, INTS(b, 1, 2)), scores,
                     number(b, -1e4f));
    case MASK_OF_QUERIES:
        is_key = binary(b, GRAPH_OP_AND, is_key,
                        cast(b, binary(b, GRAPH_OP_UNSQUEEZE, b->mask, INTS(b, 1, 3)), DTYPE_BOOL));
        return where(b, is_key, scores, number(b, -1e4f));
    case MASK_NONE:
    case MASK_AFTER_SOFTMAX:
        return scores;
    }
    abort();
}

static graph_value_index attend(builder *b, graph_value_index x, int layer)
{
    const encoder_form *f = b->form;
    graph_value_index qkv[3];
    float root = sqrtf((float)SIZE) * (f->scales_unevenly && layer == 1 ? 1.5f : 1);
    make_qkv(b, x, qkv);
    if (f->scale == SCALE_QUERIES || f->scale == SCALE_BOTH)
        qkv[0] = binary(b, GRAPH_OP_MUL, qkv[0],
                        number(b, f->scale == SCALE_BOTH ? 1 / sqrtf(root) : 1 / root));
    graph_value_index q = split_heads(b, qkv[0], false), k = split_heads(b, qkv[1], true);
    graph_value_index v = split_heads(b, qkv[2], false), scores, p, mixed;
    if (f->scale == SCALE_KEYS || f->scale == SCALE_BOTH)
        k = binary(b, GRAPH_OP_DIV, k, number(b, f->scale == SCALE_BOTH ? sqrtf(root) : root));
    scores = f->product == PRODUCT_EINSUM            ? einsum(b, "bhid,bhjd->bhij", q, k)
             : f->product == PRODUCT_EINSUM_IN_PLACE ? einsum(b, "bjhd,bihd->bhij", k, q)
                                                     : binary(b, GRAPH_OP_MATMUL, q, k);
    bool is_late = f->mask == MASK_BEFORE_SCALE;
    if (!is_late && f->scale == SCALE_DIV)
        scores = binary(b, GRAPH_OP_DIV, scores, number(b, root));
    if (!is_late && f->scale == SCALE_MUL)
        scores = binary(b, GRAPH_OP_MUL, number(b, 1 / root), scores);
    if (f->attends_in_window)
        scores = where(b, make_window(b), scores, number(b, -1e4f));
    if (!(f->forgets_mask && layer == 1))
        scores = mask_scores(b, scores);
    if (is_late)
        scores = binary(b, GRAPH_OP_DIV, scores, number(b, root));
    p = unary(b, GRAPH_OP_SOFTMAX, scores);
    if (f->mask == MASK_INFINITE)
        p = where(b, unary(b, GRAPH_OP_IS_NAN, p), number(b, 0), p);
    if (f->mask == MASK_AFTER_SOFTMAX)
        p = binary(b, GRAPH_OP_MUL, p,
                   cast(b, binary(b, GRAPH_OP_UNSQUEEZE, b->mask, INTS(b, 1, 2)), DTYPE_F32));
    if (f->product == PRODUCT_EINSUM_IN_PLACE)
        return dense(b, RESHAPE(b, einsum(b, "bhij,bjhd->bihd", p, v), 0, 0, HIDDEN), HIDDEN,
                     HIDDEN);
    mixed = binary(b, GRAPH_OP_MATMUL, p, v);
    return dense(b, RESHAPE(b, TRANSPOSE(b, mixed, 0, 2, 1, 3), 0, 0, HIDDEN), HIDDEN, HIDDEN);
}

static graph_value_index add_layer(builder *b, graph_value_index x, int layer)
{
    if (b->form->normalises_first) {
        x = binary(b, GRAPH_OP_ADD, x, attend(b, normalise(b, x), layer));
        graph_value_index up = activate(b, dense(b, normalise(b, x), HIDDEN, WIDTH));
        return binary(b, GRAPH_OP_ADD, x, dense(b, up, WIDTH, HIDDEN));
    }
    graph_value_index attended = attend(b, x, layer);
    if (b->form->adds_twice)
        attended = binary(b, GRAPH_OP_ADD, attended, x);
    x = normalise(b, layer == 0 ? binary(b, GRAPH_OP_ADD, x, attended)
                                : binary(b, GRAPH_OP_ADD, attended, x));
    graph_value_index down = dense(b, activate(b, dense(b, x, HIDDEN, WIDTH)), WIDTH, HIDDEN);
    return normalise(b, binary(b, GRAPH_OP_ADD, down, x));
}

static graph_value_index embed(builder *b)
{
    int64_t width = b->form->projects ? NARROW : HIDDEN;
    graph_value_index words = weights(b, 2, (int64_t[]){WORDS, width}, 1);
    graph_value_index table = weights(b, 2, (int64_t[]){POSITIONS, width}, 1);
    graph_value_index length = gather_at(b, unary(b, GRAPH_OP_SHAPE, b->ids), 1, 0);
    graph_value_index in[] = {whole(b, 0), length, whole(b, 1)};
    graph_value_index range = graph_add(b->g, GRAPH_OP_RANGE, 3, in, 0, NULL);
    range = binary(b, GRAPH_OP_ADD, range, whole(b, 2));
    if (b->form->clips_positions)
        range = binary(b, GRAPH_OP_MIN, range, whole(b, 20));
    graph_value_index x =
        binary(b, GRAPH_OP_ADD, gather(b, words, b->ids, 0), gather(b, table, range, 0));
    if (b->form->finds_types) {
        graph_value_index types = weights(b, 2, (int64_t[]){2, width}, 1);
        graph_value_index index =
            cast(b, binary(b, GRAPH_OP_GREATER, b->ids, whole(b, 25)), DTYPE_I64);
        x = binary(b, GRAPH_OP_ADD, x, gather(b, types, index, 0));
    }
    if (b->form->normalises_first)
        return x;
    x = normalise_width(b, x, width);
    return b->form->projects ? dense(b, x, width, HIDDEN) : x;
}

static graph_value_index add_tail(builder *b, graph_value_index x)
{
    graph_value_index mask = binary(b, GRAPH_OP_UNSQUEEZE, b->mask, INTS(b, -1));
    graph_value_index weight = cast(b, mask, DTYPE_F32), sum, count;
    switch (b->form->tail) {
    case TAIL_HIDDEN:
        return x;
    case TAIL_MEAN:
        sum = reduce(b, GRAPH_OP_REDUCE_SUM, binary(b, GRAPH_OP_MUL, weight, x), 1, false);
        count = binary(b, GRAPH_OP_MAX, reduce(b, GRAPH_OP_REDUCE_SUM, weight, 1, false),
                       number(b, 1e-9f));
        return binary(b, GRAPH_OP_DIV, sum, count);
    case TAIL_MEAN_OF_ALL:
        return reduce(b, GRAPH_OP_REDUCE_MEAN, x, 1, false);
    case TAIL_MAX:
        x = where(b, cast(b, mask, DTYPE_BOOL), x, number(b, -1e9f));
        return reduce(b, GRAPH_OP_REDUCE_MAX, x, 1, false);
    case TAIL_FIRST:
        return gather_at(b, x, 0, 1);
    case TAIL_LAST:
        return gather_at(b, x, -1, 1);
    case TAIL_SPLIT_COLUMN: {
        graph_value_index both[] = {dense(b, x, HIDDEN, 2), INTS(b, 1, 1)};
        graph_attribute last = graph_make_int("axis", -1);
        int32_t split = graph_add_node(b->g, GRAPH_OP_SPLIT, NULL, 2, both, 2, 1, &last);
        return binary(b, GRAPH_OP_SQUEEZE, b->g->nodes[split].outputs[1], INTS(b, -1));
    }
    case TAIL_GATHERED_COLUMN:
        return gather_at(b, dense(b, x, HIDDEN, 2), 1, 2);
    case TAIL_CLASSES:
    case TAIL_SOFTMAX:
        x = unary(b, GRAPH_OP_TANH, dense_of_rows(b, gather_at(b, x, 0, 1), HIDDEN, 7));
        x = dense_of_rows(b, x, 7, 4);
        return b->form->tail == TAIL_SOFTMAX ? unary(b, GRAPH_OP_SOFTMAX, x) : x;
    }
    abort();
}

graph *build_encoder(const encoder_form *form)
{
    builder b = {.g = graph_create("built"), .form = form, .random = 7};
    graph_dim dims[] = {{.batch = 1}, {.sequence = 1}};
    b.ids = graph_add_input(b.g, "input_ids", DTYPE_I64, 2, dims);
    b.mask = graph_add_input(b.g, "attention_mask", DTYPE_I64, 2, dims);
    graph_value_index x = embed(&b);
    for (int i = 0; i < LAYERS; i++)
        x = add_layer(&b, x, i);
    if (form->normalises_first)
        x = normalise(&b, x);
    graph_add_output(b.g, add_tail(&b, x), "output");
    return b.g;
}
