#include "graph/quantise/internal.h"

/* Finds the nodes that are fused: layers with their epilogues (layer.c), sums of quantised tensors,
 * and moves of int8 and uint8 tensors. */

static void count_uses(fusion *w)
{
    const graph *g = w->g;
    for (int32_t n = 0; n < g->node_count; n++)
        for (int i = 0; i < g->nodes[n].input_count; i++) {
            graph_value_index v = g->nodes[n].inputs[i];
            if (v == GRAPH_NO_VALUE)
                continue;
            w->first_reader[v] = w->uses[v]++ ? w->first_reader[v] : n;
            w->reader[v] = n;
        }
    for (int i = 0; i < g->output_count; i++)
        w->uses[g->outputs[i]]++;
}

/* b's shape is that of a, or the end of it. */
static bool is_trailing(const fusion *w, graph_value_index a, graph_value_index b)
{
    int rank = fusion_rank(w, a), b_rank = fusion_rank(w, b), skipped = 0;
    while (skipped < b_rank && fusion_dim(w, b, skipped) == 1 && b_rank - skipped > 1)
        skipped++;
    if (b_rank > rank)
        return false;
    for (int i = skipped; i < b_rank; i++)
        if (fusion_dim(w, b, i) != fusion_dim(w, a, rank - b_rank + i))
            return false;
    return true;
}

static bool has_shape_of(const fusion *w, graph_value_index a, graph_value_index b)
{
    bool is_same = fusion_rank(w, a) == fusion_rank(w, b);
    for (int i = 0; is_same && i < fusion_rank(w, a); i++)
        is_same = fusion_dim(w, a, i) == fusion_dim(w, b, i);
    return is_same;
}

/* QuantizeLinear(Relu?(Add(DequantizeLinear, DequantizeLinear))) at a QuantizeLinear node. */
static status match_sum(fusion *w, int32_t at)
{
    const graph_node *n = &w->g->nodes[at], *add = fusion_producer(w, n->inputs[0]);
    fused_sum s = {.has_relu = add && add->op == GRAPH_OP_RELU};
    const graph_node *relu = s.has_relu ? add : NULL;
    if (relu && w->uses[relu->outputs[0]] == 1)
        add = fusion_producer(w, relu->inputs[0]);
    if (!add || add->op != GRAPH_OP_ADD || w->uses[add->outputs[0]] != 1 ||
        !fusion_read_parameters(w, n, &s.y) ||
        (fusion_type(w, n->outputs[0]) != DTYPE_U8 && !w->is_shifted[n->outputs[0]]) ||
        !fusion_find_uint8(w, add->inputs[0], &s.a) || !fusion_find_uint8(w, add->inputs[1], &s.b))
        return STATUS_OK;
    if (!has_shape_of(w, s.a.value, add->outputs[0])) {
        quantised_tensor swap = s.a;
        s.a = s.b;
        s.b = swap;
    }
    if (!has_shape_of(w, s.a.value, add->outputs[0]) || !is_trailing(w, s.a.value, s.b.value) ||
        fusion_count(w, s.b.value) == 0)
        return STATUS_OK;
    fused_sum *kept = arena_allocate(&w->made->memory, sizeof *kept);
    if (!kept)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory to fuse \"%s\"", w->g->name);
    *kept = s;
    w->roles[at].sum = kept;
    w->roles[w->g->values[add->outputs[0]].producer].is_absorbed = true;
    if (relu)
        w->roles[w->g->values[relu->outputs[0]].producer].is_absorbed = true;
    return STATUS_OK;
}

/* QuantizeLinear(move(DequantizeLinear(x))) with one scale throughout: x itself is moved. */
static void match_move(fusion *w, int32_t at)
{
    const graph_node *n = &w->g->nodes[at], *move = fusion_producer(w, n->inputs[0]);
    quantised_tensor from, to;
    if (!move || !fusion_is_move(move) || move->op == GRAPH_OP_SLICE ||
        w->uses[move->outputs[0]] != 1 || !fusion_read_parameters(w, n, &to) ||
        !fusion_find_uint8(w, move->inputs[0], &from) || from.scale != to.scale ||
        from.zero != to.zero ||
        (fusion_type(w, n->outputs[0]) != DTYPE_U8 && !w->is_shifted[n->outputs[0]]))
        return;
    w->roles[at].moved = from.value;
    w->roles[w->g->values[move->outputs[0]].producer].is_absorbed = true;
}

/* x * Sigmoid(x) where no layer makes x. */
static void match_silu(fusion *w, int32_t at)
{
    const graph_node *n = &w->g->nodes[at];
    graph_value_index v = n->inputs[0], gate = n->outputs[0];
    int32_t next = w->uses[gate] == 1 ? w->reader[gate] : -1;
    if (w->roles[at].is_absorbed || next < 0 || w->g->values[v].constant ||
        fusion_type(w, v) != DTYPE_F32)
        return;
    const graph_node *product = &w->g->nodes[next];
    bool is_silu = product->op == GRAPH_OP_MUL && product->input_count == 2 &&
                   product->inputs[product->inputs[0] == gate] == v;
    if (!is_silu || w->roles[next].is_absorbed || w->roles[next].layer || w->roles[next].sum)
        return;
    w->roles[at].is_absorbed = true;
    w->roles[next].is_silu = true;
}

status fusion_match(fusion *w)
{
    const graph *g = w->g;
    count_uses(w);
    fusion_find_shifted(w);
    status s = STATUS_OK;
    for (int32_t n = 0; n < g->node_count; n++)
        w->roles[n].moved = GRAPH_NO_VALUE;
    for (int32_t n = 0; !s && n < g->node_count; n++) {
        switch (g->nodes[n].op) {
        case GRAPH_OP_CONV:
        case GRAPH_OP_CONV_TRANSPOSE:
        case GRAPH_OP_MATMUL:
        case GRAPH_OP_GEMM:
            s = fusion_match_layer(w, n);
            break;
        case GRAPH_OP_CONV_INTEGER:
        case GRAPH_OP_MATMUL_INTEGER:
            s = fusion_match_dynamic_layer(w, n);
            break;
        case GRAPH_OP_QLINEAR_CONV:
        case GRAPH_OP_QLINEAR_MATMUL:
            s = fusion_match_qlinear_layer(w, n);
            break;
        case GRAPH_OP_SIGMOID:
            match_silu(w, n);
            break;
        case GRAPH_OP_QUANTIZE_LINEAR:
            if (!w->roles[n].layer && !w->roles[n].is_absorbed) {
                s = match_sum(w, n);
                if (!w->roles[n].sum)
                    match_move(w, n);
            }
            break;
        default:
            break;
        }
    }
    return s;
}
