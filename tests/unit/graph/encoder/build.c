#include "tests/unit/graph/encoder/build.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/build.h"

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
    const encoder_pattern *pattern;
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

static graph_value_index whole(builder *b, int64_t i)
{
    return graph_add_constant_i64(b->g, NULL, 0, NULL, &i);
}

#define INTS(b, ...)                                                                               \
    graph_ints(b->g, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__})

static graph_value_index gather_at(builder *b, graph_value_index x, int64_t at, int64_t axis)
{
    return graph_gather(b->g, x, graph_add_constant_i64(b->g, NULL, 0, NULL, &at), axis);
}

#define TRANSPOSE(b, x, ...)                                                                       \
    graph_transpose(b->g, x, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t),                   \
                    (int64_t[]){__VA_ARGS__})
#define RESHAPE(b, x, ...) graph_binary(b->g, GRAPH_OP_RESHAPE, x, INTS(b, __VA_ARGS__))

static graph_value_index einsum(builder *b, const char *equation, graph_value_index x,
                                graph_value_index y)
{
    graph_value_index in[] = {x, y};
    graph_attribute a = graph_make_string("equation", equation);
    return graph_add(b->g, GRAPH_OP_EINSUM, 2, in, 1, &a);
}

static graph_value_index dense(builder *b, graph_value_index x, int64_t from, int64_t to)
{
    bool is_transposed = b->pattern->dense == DENSE_GEMM_TRANSPOSED;
    int64_t dims[] = {is_transposed ? to : from, is_transposed ? from : to};
    graph_value_index w = weights(b, 2, dims, 0.5f), bias = weights(b, 1, &to, 0.5f);
    if (b->pattern->dense == DENSE_MATMUL)
        return graph_binary(b->g, GRAPH_OP_ADD, graph_binary(b->g, GRAPH_OP_MATMUL, x, w), bias);
    if (b->pattern->dense == DENSE_BIAS_FIRST)
        return graph_binary(b->g, GRAPH_OP_ADD, bias, graph_binary(b->g, GRAPH_OP_MATMUL, x, w));
    graph_value_index shape = graph_unary(b->g, GRAPH_OP_SHAPE, x);
    graph_value_index in[] = {RESHAPE(b, x, -1, from), w, bias};
    graph_attribute a = graph_make_int("transB", is_transposed);
    graph_value_index y = graph_add(b->g, GRAPH_OP_GEMM, 3, in, 1, &a);
    graph_value_index parts[] = {graph_gather(b->g, shape, INTS(b, 0, 1), 0), INTS(b, to)};
    graph_attribute axis = graph_make_int("axis", 0);
    return graph_binary(b->g, GRAPH_OP_RESHAPE, y,
                        graph_add(b->g, GRAPH_OP_CONCAT, 2, parts, 1, &axis));
}

static graph_value_index dense_of_rows(builder *b, graph_value_index x, int64_t from, int64_t to)
{
    graph_value_index w = weights(b, 2, (int64_t[]){from, to}, 0.5f), bias = weights(b, 1, &to, 1);
    return graph_binary(b->g, GRAPH_OP_ADD, graph_binary(b->g, GRAPH_OP_MATMUL, x, w), bias);
}

static graph_value_index normalise_width(builder *b, graph_value_index x, int64_t width)
{
    graph_value_index scale = weights(b, 1, &width, 1), bias = weights(b, 1, &width, 0.5f);
    if (b->pattern->norm == NORM_FUSED) {
        graph_value_index in[] = {x, scale, bias};
        graph_attribute a[] = {graph_make_int("axis", -1), graph_make_float("epsilon", 1e-5f)};
        return graph_add(b->g, GRAPH_OP_LAYER_NORMALIZATION, 3, in, 2, a);
    }
    graph_value_index centred =
        graph_binary(b->g, GRAPH_OP_SUB, x, graph_reduce(b->g, GRAPH_OP_REDUCE_MEAN, x, -1, true));
    graph_value_index square =
        b->pattern->norm == NORM_POW
            ? graph_binary(b->g, GRAPH_OP_POW, centred, graph_number(b->g, 2))
            : graph_binary(b->g, GRAPH_OP_MUL, centred, centred);
    graph_value_index variance = graph_reduce(b->g, GRAPH_OP_REDUCE_MEAN, square, -1, true);
    graph_value_index deviation = graph_unary(
        b->g, GRAPH_OP_SQRT, graph_binary(b->g, GRAPH_OP_ADD, variance, graph_number(b->g, 1e-5f)));
    if (b->pattern->norm == NORM_RECIPROCAL) { /* with the scale first */
        graph_value_index factor = graph_binary(
            b->g, GRAPH_OP_MUL, graph_unary(b->g, GRAPH_OP_RECIPROCAL, deviation), scale);
        return graph_binary(b->g, GRAPH_OP_ADD, graph_binary(b->g, GRAPH_OP_MUL, centred, factor),
                            bias);
    }
    graph_value_index y = graph_binary(b->g, GRAPH_OP_DIV, centred, deviation);
    return graph_binary(b->g, GRAPH_OP_ADD, bias, graph_binary(b->g, GRAPH_OP_MUL, y, scale));
}

static graph_value_index normalise(builder *b, graph_value_index x)
{
    return normalise_width(b, x, HIDDEN);
}

static graph_value_index tanh_gelu(builder *b, graph_value_index x, bool is_power)
{
    graph_value_index cube =
        is_power ? graph_binary(b->g, GRAPH_OP_POW, x, graph_number(b->g, 3))
                 : graph_binary(b->g, GRAPH_OP_MUL, graph_binary(b->g, GRAPH_OP_MUL, x, x), x);
    graph_value_index inner =
        graph_binary(b->g, GRAPH_OP_ADD, x,
                     graph_binary(b->g, GRAPH_OP_MUL, graph_number(b->g, 0.044715f), cube));
    inner = graph_unary(b->g, GRAPH_OP_TANH,
                        graph_binary(b->g, GRAPH_OP_MUL, inner, graph_number(b->g, 0.7978846f)));
    inner = graph_binary(b->g, GRAPH_OP_ADD, graph_number(b->g, 1), inner);
    return graph_binary(b->g, GRAPH_OP_MUL,
                        graph_binary(b->g, GRAPH_OP_MUL, x, graph_number(b->g, 0.5f)), inner);
}

static graph_value_index activate(builder *b, graph_value_index x)
{
    graph_value_index half = graph_number(b->g, 0.5f), one = graph_number(b->g, 1), e;
    switch (b->pattern->activation) {
    case ACTIVATION_GELU:
        return graph_unary(b->g, GRAPH_OP_GELU, x);
    case ACTIVATION_DIV_FIRST:
        e = graph_unary(b->g, GRAPH_OP_ERF,
                        graph_binary(b->g, GRAPH_OP_DIV, x, graph_number(b->g, 1.4142135f)));
        return graph_binary(
            b->g, GRAPH_OP_MUL,
            graph_binary(b->g, GRAPH_OP_MUL, x, graph_binary(b->g, GRAPH_OP_ADD, e, one)), half);
    case ACTIVATION_HALF_FIRST:
        e = graph_unary(b->g, GRAPH_OP_ERF,
                        graph_binary(b->g, GRAPH_OP_MUL, graph_number(b->g, 0.70710678f), x));
        return graph_binary(b->g, GRAPH_OP_MUL, graph_binary(b->g, GRAPH_OP_MUL, half, x),
                            graph_binary(b->g, GRAPH_OP_ADD, one, e));
    case ACTIVATION_HALF_LAST:
        e = graph_unary(b->g, GRAPH_OP_ERF,
                        graph_binary(b->g, GRAPH_OP_DIV, x, graph_number(b->g, 1.4142135f)));
        return graph_binary(
            b->g, GRAPH_OP_MUL, x,
            graph_binary(b->g, GRAPH_OP_MUL, graph_binary(b->g, GRAPH_OP_ADD, e, one), half));
    case ACTIVATION_TANH_POW:
        return tanh_gelu(b, x, true);
    case ACTIVATION_TANH_SQUARE:
        return tanh_gelu(b, x, false);
    case ACTIVATION_SIGMOID:
        return graph_unary(b->g, GRAPH_OP_SIGMOID, x);
    case ACTIVATION_QUICK_GELU:
        e = graph_unary(b->g, GRAPH_OP_SIGMOID,
                        graph_binary(b->g, GRAPH_OP_MUL, x, graph_number(b->g, 1.702f)));
        return graph_binary(b->g, GRAPH_OP_MUL, x, e);
    }
    abort();
}

/* [B,S,HIDDEN] to the layout of the matrix multiplications. */
static graph_value_index split_heads(builder *b, graph_value_index x, bool is_key)
{
    if (b->pattern->matmul == MATMUL_EINSUM_IN_PLACE)
        return RESHAPE(b, x, 0, 0, HEADS, SIZE);
    x = RESHAPE(b, x, 0, 0, HEADS, SIZE);
    bool swaps = is_key && b->pattern->matmul != MATMUL_EINSUM;
    x = swaps ? TRANSPOSE(b, x, 0, 2, 3, 1) : TRANSPOSE(b, x, 0, 2, 1, 3);
    return x;
}

static graph_value_index split_merged(builder *b, graph_value_index all, int part)
{
    if (b->pattern->qkv == QKV_BY_GATHER) {
        all = TRANSPOSE(b, RESHAPE(b, all, 0, 0, 3, HEADS, SIZE), 2, 0, 3, 1, 4);
        all = TRANSPOSE(b, gather_at(b, all, part, 0), 0, 2, 1, 3);
        return RESHAPE(b, all, 0, 0, HIDDEN);
    }
    all = RESHAPE(b, all, 0, 0, HEADS, 3, SIZE);
    return RESHAPE(b, gather_at(b, all, part, 3), 0, 0, HIDDEN);
}

static void make_qkv(builder *b, graph_value_index x, graph_value_index qkv[3])
{
    if (b->pattern->qkv == QKV_APART) {
        for (int i = 0; i < 3; i++)
            qkv[i] = dense(b, x, HIDDEN, HIDDEN);
        return;
    }
    graph_value_index all = dense(b, x, HIDDEN, 3 * HIDDEN);
    if (b->pattern->qkv == QKV_SPLIT) {
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

/* The distance from each query to each key: [S,S]. */
static graph_value_index make_distance(builder *b)
{
    graph_value_index length = gather_at(b, graph_unary(b->g, GRAPH_OP_SHAPE, b->ids), 1, 0);
    graph_value_index in[] = {whole(b, 0), length, whole(b, 1)};
    graph_value_index range = graph_add(b->g, GRAPH_OP_RANGE, 3, in, 0, NULL);
    return graph_binary(b->g, GRAPH_OP_SUB,
                        graph_binary(b->g, GRAPH_OP_UNSQUEEZE, range, INTS(b, 0)),
                        graph_binary(b->g, GRAPH_OP_UNSQUEEZE, range, INTS(b, 1)));
}

static graph_value_index make_causal(builder *b)
{
    return graph_binary(b->g, GRAPH_OP_LESS_OR_EQUAL, make_distance(b), whole(b, 0));
}

static graph_value_index make_window(builder *b)
{
    return graph_binary(b->g, GRAPH_OP_LESS, graph_unary(b->g, GRAPH_OP_ABS, make_distance(b)),
                        whole(b, 20));
}

static graph_value_index mask_scores(builder *b, graph_value_index scores)
{
    graph_value_index keys = graph_binary(b->g, GRAPH_OP_UNSQUEEZE, b->mask, INTS(b, 1, 2));
    graph_value_index is_key = graph_cast(b->g, keys, DTYPE_BOOL), bias;
    switch (b->pattern->mask) {
    case MASK_SUBTRACT:
    case MASK_BEFORE_SCALE:
    case MASK_SMALL:
        bias = graph_binary(b->g, GRAPH_OP_SUB, graph_number(b->g, 1),
                            graph_cast(b->g, keys, DTYPE_F32));
        bias = graph_binary(b->g, GRAPH_OP_MUL, bias,
                            graph_number(b->g, b->pattern->mask == MASK_SMALL ? -1 : -1e4f));
        return graph_binary(b->g, GRAPH_OP_ADD, scores, bias);
    case MASK_WHERE:
        return graph_where(b->g, is_key, scores, graph_number(b->g, -FLT_MAX));
    case MASK_INFINITE:
        return graph_binary(
            b->g, GRAPH_OP_ADD,
            graph_where(b->g, is_key, graph_number(b->g, 0), graph_number(b->g, -INFINITY)),
            scores);
    case MASK_CAUSAL:
        return graph_where(b->g, graph_binary(b->g, GRAPH_OP_AND, make_causal(b), is_key), scores,
                           graph_number(b->g, -1e4f));
    case MASK_FROM_IDS:
        is_key = graph_unary(b->g, GRAPH_OP_NOT,
                             graph_binary(b->g, GRAPH_OP_EQUAL, b->ids, whole(b, 0)));
        return graph_where(b->g, graph_binary(b->g, GRAPH_OP_UNSQUEEZE, is_key, INTS(b, 1, 2)),
                           scores, graph_number(b->g, -1e4f));
    case MASK_OF_QUERIES:
        is_key = graph_binary(
            b->g, GRAPH_OP_AND, is_key,
            graph_cast(b->g, graph_binary(b->g, GRAPH_OP_UNSQUEEZE, b->mask, INTS(b, 1, 3)),
                       DTYPE_BOOL));
        return graph_where(b->g, is_key, scores, graph_number(b->g, -1e4f));
    case MASK_NONE:
    case MASK_AFTER_SOFTMAX:
        return scores;
    }
    abort();
}

static graph_value_index attend(builder *b, graph_value_index x, int layer)
{
    const encoder_pattern *f = b->pattern;
    graph_value_index qkv[3];
    float root = sqrtf((float)SIZE) * (f->scales_unevenly && layer == 1 ? 1.5f : 1);
    make_qkv(b, x, qkv);
    if (f->scale == SCALE_QUERIES || f->scale == SCALE_BOTH)
        qkv[0] =
            graph_binary(b->g, GRAPH_OP_MUL, qkv[0],
                         graph_number(b->g, f->scale == SCALE_BOTH ? 1 / sqrtf(root) : 1 / root));
    graph_value_index q = split_heads(b, qkv[0], false), k = split_heads(b, qkv[1], true);
    graph_value_index v = split_heads(b, qkv[2], false), scores, p, mixed;
    if (f->scale == SCALE_KEYS || f->scale == SCALE_BOTH)
        k = graph_binary(b->g, GRAPH_OP_DIV, k,
                         graph_number(b->g, f->scale == SCALE_BOTH ? sqrtf(root) : root));
    scores = f->matmul == MATMUL_EINSUM            ? einsum(b, "bhid,bhjd->bhij", q, k)
             : f->matmul == MATMUL_EINSUM_IN_PLACE ? einsum(b, "bjhd,bihd->bhij", k, q)
                                                   : graph_binary(b->g, GRAPH_OP_MATMUL, q, k);
    bool is_late = f->mask == MASK_BEFORE_SCALE;
    if (!is_late && f->scale == SCALE_DIV)
        scores = graph_binary(b->g, GRAPH_OP_DIV, scores, graph_number(b->g, root));
    if (!is_late && f->scale == SCALE_MUL)
        scores = graph_binary(b->g, GRAPH_OP_MUL, graph_number(b->g, 1 / root), scores);
    if (f->attends_in_window)
        scores = graph_where(b->g, make_window(b), scores, graph_number(b->g, -1e4f));
    if (!(f->forgets_mask && layer == 1))
        scores = mask_scores(b, scores);
    if (is_late)
        scores = graph_binary(b->g, GRAPH_OP_DIV, scores, graph_number(b->g, root));
    p = graph_unary(b->g, GRAPH_OP_SOFTMAX, scores);
    if (f->mask == MASK_INFINITE)
        p = graph_where(b->g, graph_unary(b->g, GRAPH_OP_IS_NAN, p), graph_number(b->g, 0), p);
    if (f->mask == MASK_AFTER_SOFTMAX)
        p = graph_binary(b->g, GRAPH_OP_MUL, p,
                         graph_cast(b->g,
                                    graph_binary(b->g, GRAPH_OP_UNSQUEEZE, b->mask, INTS(b, 1, 2)),
                                    DTYPE_F32));
    if (f->matmul == MATMUL_EINSUM_IN_PLACE)
        return dense(b, RESHAPE(b, einsum(b, "bhij,bjhd->bihd", p, v), 0, 0, HIDDEN), HIDDEN,
                     HIDDEN);
    mixed = graph_binary(b->g, GRAPH_OP_MATMUL, p, v);
    return dense(b, RESHAPE(b, TRANSPOSE(b, mixed, 0, 2, 1, 3), 0, 0, HIDDEN), HIDDEN, HIDDEN);
}

static graph_value_index add_layer(builder *b, graph_value_index x, int layer)
{
    if (b->pattern->normalises_first) {
        x = graph_binary(b->g, GRAPH_OP_ADD, x, attend(b, normalise(b, x), layer));
        graph_value_index up = activate(b, dense(b, normalise(b, x), HIDDEN, WIDTH));
        return graph_binary(b->g, GRAPH_OP_ADD, x, dense(b, up, WIDTH, HIDDEN));
    }
    graph_value_index attended = attend(b, x, layer);
    if (b->pattern->adds_twice)
        attended = graph_binary(b->g, GRAPH_OP_ADD, attended, x);
    x = normalise(b, layer == 0 ? graph_binary(b->g, GRAPH_OP_ADD, x, attended)
                                : graph_binary(b->g, GRAPH_OP_ADD, attended, x));
    graph_value_index down = dense(b, activate(b, dense(b, x, HIDDEN, WIDTH)), WIDTH, HIDDEN);
    return normalise(b, graph_binary(b->g, GRAPH_OP_ADD, down, x));
}

static graph_value_index embed(builder *b)
{
    int64_t width = b->pattern->projects ? NARROW : HIDDEN;
    graph_value_index words = weights(b, 2, (int64_t[]){WORDS, width}, 1);
    graph_value_index table = weights(b, 2, (int64_t[]){POSITIONS, width}, 1);
    graph_value_index length = gather_at(b, graph_unary(b->g, GRAPH_OP_SHAPE, b->ids), 1, 0);
    graph_value_index in[] = {whole(b, 0), length, whole(b, 1)};
    graph_value_index range = graph_add(b->g, GRAPH_OP_RANGE, 3, in, 0, NULL);
    range = graph_binary(b->g, GRAPH_OP_ADD, range, whole(b, 2));
    if (b->pattern->clips_positions)
        range = graph_binary(b->g, GRAPH_OP_MIN, range, whole(b, 20));
    graph_value_index x = graph_binary(b->g, GRAPH_OP_ADD, graph_gather(b->g, words, b->ids, 0),
                                       graph_gather(b->g, table, range, 0));
    if (b->pattern->finds_types) {
        graph_value_index types = weights(b, 2, (int64_t[]){2, width}, 1);
        graph_value_index index =
            graph_cast(b->g, graph_binary(b->g, GRAPH_OP_GREATER, b->ids, whole(b, 25)), DTYPE_I64);
        x = graph_binary(b->g, GRAPH_OP_ADD, x, graph_gather(b->g, types, index, 0));
    }
    if (b->pattern->normalises_first)
        return x;
    x = normalise_width(b, x, width);
    return b->pattern->projects ? dense(b, x, width, HIDDEN) : x;
}

static graph_value_index add_outputs(builder *b, graph_value_index x)
{
    graph_value_index mask = graph_binary(b->g, GRAPH_OP_UNSQUEEZE, b->mask, INTS(b, -1));
    graph_value_index weight = graph_cast(b->g, mask, DTYPE_F32), sum, count;
    switch (b->pattern->output) {
    case OUTPUT_HIDDEN:
        return x;
    case OUTPUT_MEAN:
        sum = graph_reduce(b->g, GRAPH_OP_REDUCE_SUM, graph_binary(b->g, GRAPH_OP_MUL, weight, x),
                           1, false);
        count = graph_binary(b->g, GRAPH_OP_MAX,
                             graph_reduce(b->g, GRAPH_OP_REDUCE_SUM, weight, 1, false),
                             graph_number(b->g, 1e-9f));
        return graph_binary(b->g, GRAPH_OP_DIV, sum, count);
    case OUTPUT_MEAN_OF_ALL:
        return graph_reduce(b->g, GRAPH_OP_REDUCE_MEAN, x, 1, false);
    case OUTPUT_MAX:
        x = graph_where(b->g, graph_cast(b->g, mask, DTYPE_BOOL), x, graph_number(b->g, -1e9f));
        return graph_reduce(b->g, GRAPH_OP_REDUCE_MAX, x, 1, false);
    case OUTPUT_FIRST:
        return gather_at(b, x, 0, 1);
    case OUTPUT_LAST:
        return gather_at(b, x, -1, 1);
    case OUTPUT_SPLIT_COLUMN: {
        graph_value_index both[] = {dense(b, x, HIDDEN, 2), INTS(b, 1, 1)};
        graph_attribute last = graph_make_int("axis", -1);
        int32_t split = graph_add_node(b->g, GRAPH_OP_SPLIT, NULL, 2, both, 2, 1, &last);
        return graph_binary(b->g, GRAPH_OP_SQUEEZE, b->g->nodes[split].outputs[1], INTS(b, -1));
    }
    case OUTPUT_GATHERED_COLUMN:
        return gather_at(b, dense(b, x, HIDDEN, 2), 1, 2);
    case OUTPUT_CLASSES:
    case OUTPUT_SOFTMAX:
        x = graph_unary(b->g, GRAPH_OP_TANH, dense_of_rows(b, gather_at(b, x, 0, 1), HIDDEN, 7));
        x = dense_of_rows(b, x, 7, 4);
        return b->pattern->output == OUTPUT_SOFTMAX ? graph_unary(b->g, GRAPH_OP_SOFTMAX, x) : x;
    }
    abort();
}

graph *build_encoder(const encoder_pattern *pattern)
{
    builder b = {.g = graph_create("built"), .pattern = pattern, .random = 7};
    graph_dim dims[] = {{.batch = 1}, {.sequence = 1}};
    b.ids = graph_add_input(b.g, "input_ids", DTYPE_I64, 2, dims);
    b.mask = graph_add_input(b.g, "attention_mask", DTYPE_I64, 2, dims);
    graph_value_index x = embed(&b);
    for (int i = 0; i < LAYERS; i++)
        x = add_layer(&b, x, i);
    if (pattern->normalises_first)
        x = normalise(&b, x);
    graph_add_output(b.g, add_outputs(&b, x), "output");
    return b.g;
}
