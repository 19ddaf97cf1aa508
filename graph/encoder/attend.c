#include <assert.h>

#include "graph/build.h"
#include "graph/encoder/packer.h"

graph_value_index packer_constant(packer *p, const tensor *t)
{
    return graph_add_constant(p->g, NULL, t);
}

float *packer_floats(packer *p, int64_t count)
{
    float *made = arena_allocate(&p->g->memory, (size_t)count * sizeof *made);
    if (made == NULL)
        graph_lack_memory(p->g);
    return made;
}

graph_value_index packer_scaled(packer *p, graph_value_index x)
{
    return graph_binary(p->g, GRAPH_OP_MUL, x, graph_number(p->g, p->e->attention_scale));
}

graph_value_index packer_biased(packer *p, graph_value_index scores, graph_value_index bias)
{
    return bias == GRAPH_NO_VALUE ? scores : graph_binary(p->g, GRAPH_OP_ADD, scores, bias);
}

static graph_value_index clipped(packer *p, graph_value_index scores, graph_value_index bound)
{
    if (bound == GRAPH_NO_VALUE)
        bound = graph_number(p->g, ENCODER_SCORE_MAX);
    graph_attribute kept = graph_make_int("is_kept", 1);
    graph_value_index least = graph_number(p->g, (float)-ENCODER_SCORE_MAX);
    graph_value_index inputs[] = {graph_binary(p->g, GRAPH_OP_MAX, scores, least), bound};
    return graph_add(p->g, GRAPH_OP_MIN, 2, inputs, p->form.are_scores_kept, &kept);
}

graph_value_index packer_raised(packer *p, graph_value_index scores, graph_value_index bound)
{
    if (p->form.are_scores_clipped)
        return graph_unary(p->g, GRAPH_OP_EXP, clipped(p, scores, bound));
    graph_value_index top = graph_reduce(p->g, GRAPH_OP_REDUCE_MAX, scores, -1, true);
    return graph_unary(p->g, GRAPH_OP_EXP, graph_binary(p->g, GRAPH_OP_SUB, scores, top));
}

/* `number`: or -1. */
static graph_value_index add_gemm(packer *p, const encoder_linear *l, const tensor *weight,
                                  int64_t number, graph_value_index x)
{
    graph_value_index inputs[] = {x, packer_constant(p, weight),
                                  l->bias ? packer_constant(p, l->bias) : GRAPH_NO_VALUE};
    graph_attribute attributes[] = {graph_make_int("transB", l->is_transposed),
                                    graph_make_int(GRAPH_LINEAR_NUMBER, number)};
    return graph_add(p->g, GRAPH_OP_GEMM, l->bias ? 3 : 2, inputs, number < 0 ? 1 : 2, attributes);
}

graph_value_index packer_linear(packer *p, const encoder_linear *l, graph_value_index x)
{
    return add_gemm(p, l, l->weight, -1, x);
}

/* Of a linear layer of a transformer layer, for the attribute of its product. */
static int64_t linear_number(const packer *p, const encoder_layer *of, int linear)
{
    return (of - p->e->layers) * ENCODER_LINEARS + linear;
}

graph_value_index packer_einsum(packer *p, const char *equation, graph_value_index x,
                                graph_value_index y)
{
    graph_attribute a = graph_make_string("equation", equation);
    return graph_add(p->g, GRAPH_OP_EINSUM, 2, (graph_value_index[]){x, y}, 1, &a);
}

/* x [..., K] to [..., N], by the linear layer of that number; bias may be GRAPH_NO_VALUE. */
static graph_value_index multiply(packer *p, int64_t number, graph_value_index weight,
                                  bool is_transposed, graph_value_index bias, graph_value_index x)
{
    if (is_transposed)
        weight = graph_transpose(p->g, weight, 2, (int64_t[]){1, 0});
    graph_attribute linear = graph_make_int(GRAPH_LINEAR_NUMBER, number);
    x = graph_add(p->g, GRAPH_OP_MATMUL, 2, (graph_value_index[]){x, weight}, 1, &linear);
    return bias != GRAPH_NO_VALUE ? graph_binary(p->g, GRAPH_OP_ADD, x, bias) : x;
}

/* The same with its bias. */
static graph_value_index multiply_by(packer *p, int64_t number, const encoder_linear *l,
                                     graph_value_index x)
{
    const tensor *weight = packer_weight(p, number, l);
    if (weight == NULL)
        return GRAPH_NO_VALUE;
    graph_value_index bias = l->bias != NULL ? packer_constant(p, l->bias) : GRAPH_NO_VALUE;
    return multiply(p, number, packer_constant(p, weight), l->is_transposed, bias, x);
}

graph_value_index packer_layer_linear(packer *p, const encoder_layer *of, int linear,
                                      graph_value_index x)
{
    const encoder_linear *l = linear == ENCODER_UP     ? &of->up
                              : linear == ENCODER_DOWN ? &of->down
                                                       : &of->attention_output;
    assert(linear != ENCODER_QKV);
    int64_t number = linear_number(p, of, linear);
    x = packer_read(p, number, x);
    if (p->form.are_rows_apart)
        return multiply_by(p, number, l, x);
    const tensor *weight = packer_weight(p, number, l);
    return weight == NULL ? GRAPH_NO_VALUE : add_gemm(p, l, weight, number, x);
}

graph_value_index packer_tokens(packer *p, graph_value_index x, int64_t width)
{
    if (p->form.are_rows_apart)
        return graph_reshape(p->g, x, 3, (int64_t[]){p->size.rows, p->size.length, width});
    return graph_reshape(p->g, x, 2, (int64_t[]){p->tokens, width});
}

/* --- queries, keys and values --- */

/* [tokens, hidden], of one row [1, tokens, hidden]; queries are scaled if the form says so. */
typedef struct projections {
    graph_value_index queries, keys, values;
} projections;

#define PROJECTIONS 3

static bool can_join(const encoder_linear *const l[PROJECTIONS])
{
    for (int i = 0; i < PROJECTIONS; i++)
        if (l[i]->weight->dtype != DTYPE_F32 || l[i]->is_transposed != l[0]->is_transposed ||
            (l[i]->bias == NULL) != (l[0]->bias == NULL))
            return false;
    return true;
}

static void copy_scaled(float *to, const float *from, int64_t count, float scale)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = from[i] * scale;
}

/* The three weights side by side, as one weight of three times as many outputs; those of queries
 * are scaled. */
static graph_value_index joined_weight(packer *p, const encoder_linear *const l[PROJECTIONS],
                                       const float *scales)
{
    int64_t hidden = p->e->hidden, rows = l[0]->is_transposed ? 1 : hidden;
    int64_t width = l[0]->is_transposed ? hidden * hidden : hidden; /* of one of the three */
    float *made = packer_floats(p, PROJECTIONS * hidden * hidden);
    if (made == NULL)
        return graph_lack_memory(p->g);
    for (int64_t row = 0; row < rows; row++)
        for (int i = 0; i < PROJECTIONS; i++)
            copy_scaled(made + (row * PROJECTIONS + i) * width,
                        (const float *)l[i]->weight->data + row * width, width, scales[i]);
    tensor t = {
        .dtype = DTYPE_F32, .rank = 2, .dims = {hidden, PROJECTIONS * hidden}, .data = made};
    if (l[0]->is_transposed) {
        t.dims[0] = PROJECTIONS * hidden;
        t.dims[1] = hidden;
    }
    return packer_constant(p, &t);
}

static graph_value_index joined_bias(packer *p, const encoder_linear *const l[PROJECTIONS],
                                     const float *scales)
{
    int64_t hidden = p->e->hidden;
    if (l[0]->bias == NULL)
        return GRAPH_NO_VALUE;
    float *made = packer_floats(p, PROJECTIONS * hidden);
    if (made == NULL)
        return graph_lack_memory(p->g);
    for (int i = 0; i < PROJECTIONS; i++)
        copy_scaled(made + i * hidden, l[i]->bias->data, hidden, scales[i]);
    const tensor t = {.dtype = DTYPE_F32, .rank = 1, .dims = {PROJECTIONS * hidden}, .data = made};
    return packer_constant(p, &t);
}

static graph_value_index columns(packer *p, graph_value_index x, int64_t from, int64_t to)
{
    const int64_t axis = -1;
    graph_value_index inputs[] = {x, graph_ints(p->g, 1, &from), graph_ints(p->g, 1, &to),
                                  graph_ints(p->g, 1, &axis)};
    return graph_add(p->g, GRAPH_OP_SLICE, 4, inputs, 0, NULL);
}

static projections project_joined(packer *p, int64_t number,
                                  const encoder_linear *const l[PROJECTIONS], graph_value_index x)
{
    int64_t hidden = p->e->hidden;
    const float scales[] = {p->form.are_queries_scaled ? p->e->attention_scale : 1, 1, 1};
    x = multiply(p, number, joined_weight(p, l, scales), l[0]->is_transposed,
                 joined_bias(p, l, scales), x);
    return (projections){columns(p, x, 0, hidden), columns(p, x, hidden, 2 * hidden),
                         columns(p, x, 2 * hidden, 3 * hidden)};
}

static projections project(packer *p, const encoder_layer *l, graph_value_index x)
{
    const encoder_linear *const three[] = {&l->query, &l->key, &l->value};
    int64_t number = linear_number(p, l, ENCODER_QKV);
    /* Of one row compilers find better layouts for heads where it is a dimension of its own. */
    if (p->size.rows == 1)
        x = graph_reshape(p->g, x, 3, (int64_t[]){1, p->size.length, p->e->hidden});
    if (p->form.is_qkv_joined && can_join(three))
        return project_joined(p, number, three, x);
    x = packer_read(p, number, x);
    graph_value_index queries = multiply_by(p, number, &l->query, x);
    if (p->form.are_queries_scaled)
        queries = packer_scaled(p, queries);
    graph_value_index keys = multiply_by(p, number, &l->key, x);
    return (projections){queries, keys, multiply_by(p, number, &l->value, x)};
}

/* --- heads --- */

/* Projections to [rows, length, heads, head_dim]. */
static graph_value_index split(packer *p, graph_value_index x)
{
    const encoder *e = p->e;
    const int64_t dims[] = {p->size.rows, p->size.length, e->heads, e->head_dim};
    return graph_reshape(p->g, x, 4, dims);
}

/* Scaled and masked. */
static graph_value_index finish(packer *p, graph_value_index scores)
{
    if (!p->form.are_queries_scaled)
        scores = packer_scaled(p, scores);
    packer_note_scores(p, scores);
    return packer_biased(p, scores, p->score_bias);
}

/* [rows, heads, length, length]: how much each token attends to each. */
static graph_value_index softmax(packer *p, graph_value_index scores)
{
    graph_attribute axis = graph_make_int("axis", -1);
    scores = finish(p, scores);
    return graph_add(p->g, GRAPH_OP_SOFTMAX, 1, &scores, 1, &axis);
}

/* With transposed queries, keys and values: [rows, length, heads, head_dim]. */
static graph_value_index attend_transposed(packer *p, const projections *x)
{
    const int64_t order[] = {0, 2, 1, 3}, order_of_keys[] = {0, 2, 3, 1};
    graph_value_index queries = graph_transpose(p->g, split(p, x->queries), 4, order);
    graph_value_index keys = graph_transpose(p->g, split(p, x->keys), 4, order_of_keys);
    graph_value_index values = graph_transpose(p->g, split(p, x->values), 4, order);
    graph_value_index parts = softmax(p, graph_binary(p->g, GRAPH_OP_MATMUL, queries, keys));
    return graph_transpose(p->g, graph_binary(p->g, GRAPH_OP_MATMUL, parts, values), 4, order);
}

/* [rows, length, heads, head_dim] of [rows, heads, length, length] and values. */
static graph_value_index weigh(packer *p, graph_value_index parts, graph_value_index values)
{
    return p->form.are_values_first ? packer_einsum(p, "rkhd,rhqk->rqhd", values, parts)
                                    : packer_einsum(p, "rhqk,rkhd->rqhd", parts, values);
}

/* The softmax is divided by its sums after the values are weighed. */
static graph_value_index weigh_late(packer *p, graph_value_index scores, graph_value_index values)
{
    const int64_t order[] = {0, 2, 1, 3};
    graph_value_index raised = packer_raised(p, finish(p, scores), p->score_bound);
    graph_value_index sums = graph_reduce(p->g, GRAPH_OP_REDUCE_SUM, raised, 3, true);
    return graph_binary(p->g, GRAPH_OP_DIV, weigh(p, raised, values),
                        graph_transpose(p->g, sums, 4, order));
}

/* The same as two sums over letters: r rows, q and k tokens, h heads, d columns. The compiler
 * chooses the layouts. */
static graph_value_index attend_by_letters(packer *p, const projections *x)
{
    graph_value_index scores =
        packer_einsum(p, "rqhd,rkhd->rhqk", split(p, x->queries), split(p, x->keys));
    graph_value_index values = split(p, x->values);
    return p->form.is_softmax_late ? weigh_late(p, scores, values)
                                   : weigh(p, softmax(p, scores), values);
}

graph_value_index packer_attention(packer *p, const encoder_layer *l, graph_value_index x)
{
    const projections made = project(p, l, x);
    graph_value_index y;
    if (p->form.block_width > 0)
        y = packer_attend_in_blocks(p, made.queries, made.keys, made.values);
    else
        y = p->form.are_heads_transposed ? attend_transposed(p, &made)
                                         : attend_by_letters(p, &made);
    y = packer_tokens(p, y, p->e->hidden);
    return packer_layer_linear(p, l, ENCODER_ATTENTION_OUTPUT, y);
}
