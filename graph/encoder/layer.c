#include <stdlib.h>
#include <string.h>

#include "graph/encoder/internal.h"

#define LAYERS_MAX 1024

/* x = norm(r + f): the two addends, of which either may be the residual. */
typedef struct residual_sum {
    graph_value_index addends[2];
} residual_sum;

static status find_sum(look *l, graph_value_index y, residual_sum *sum, encoder_norm *norm)
{
    graph_value_index x;
    if (!look_find_norm(l, y, &x, norm))
        return look_refuse(l, y, "expected a layer normalisation");
    x = match_skip_views(&l->m, x);
    const graph_node *n = match_producer(&l->m, x);
    if (n == NULL || n->op != GRAPH_OP_ADD)
        return look_refuse(l, x, "expected a dense layer plus its residual");
    for (int i = 0; i < 2; i++)
        sum->addends[i] = match_skip_views(&l->m, n->inputs[i]);
    return STATUS_OK;
}

/* norm(r + down(activation(up(r)))) with addend `side` as r. */
static status find_feed_forward(look *l, const residual_sum *sum, int side, encoder_layer *layer)
{
    found_linear down, up;
    graph_value_index r = sum->addends[side], f = sum->addends[1 - side];
    if (!look_find_linear(l, f, &down))
        return look_refuse(l, f, "expected the second dense layer of a feed-forward block");
    status s = look_activation(l, match_skip_views(&l->m, down.x), &up, &layer->activation);
    if (s)
        return s;
    if (match_skip_views(&l->m, up.x) != r)
        return look_refuse(l, f,
                           "a feed-forward block has not its own input as residual "
                           "(only encoders that normalise after the residual are known)");
    int64_t width = look_linear_columns(&up);
    if (look_linear_rows(&down) != width || look_linear_rows(&up) != l->e->hidden ||
        look_linear_columns(&down) != l->e->hidden)
        return look_refuse(l, f, "a feed-forward block's dense layers do not fit together");
    if (l->e->intermediate != 0 && l->e->intermediate != width)
        return look_refuse(l, f, "layers differ in width");
    l->e->intermediate = width;
    s = look_keep_linear(l, &up, width, NULL, NULL, 1, &layer->up);
    if (s == STATUS_OK)
        s = look_keep_linear(l, &down, look_linear_columns(&down), NULL, NULL, 1, &layer->down);
    return s;
}

/* norm(r + output(attention(r))) with addend `side` as r. */
static status find_attention(look *l, const residual_sum *sum, int side, encoder_layer *layer)
{
    found_linear output;
    graph_value_index r = sum->addends[side], f = sum->addends[1 - side], x;
    if (!look_find_linear(l, f, &output))
        return look_refuse(l, f, "expected the dense layer after attention");
    if (look_linear_rows(&output) != l->e->hidden || look_linear_columns(&output) != l->e->hidden)
        return look_refuse(l, f, "the dense layer after attention has not the hidden size");
    int64_t *rows = calloc((size_t)l->e->hidden, sizeof rows[0]);
    if (rows == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for an encoder");
    status s = look_attention(l, output.x, layer, &x, rows);
    if (s == STATUS_OK && x != r)
        s = look_refuse(l, f,
                        "attention has not its own input as residual (only encoders that "
                        "normalise after the residual are known)");
    if (s == STATUS_OK)
        s = look_keep_linear(l, &output, look_linear_columns(&output), NULL, rows, 1,
                             &layer->attention_output);
    free(rows);
    return s;
}

/* Tries both addends as the residual: one of them, or both, are dense layers. */
static status try_sides(look *l, const residual_sum *sum,
                        status (*find)(look *, const residual_sum *, int, encoder_layer *),
                        encoder_layer *layer, graph_value_index *residual)
{
    found_linear dense;
    status s = STATUS_NOT_FOUND;
    for (int side = 1; s && side >= 0; side--) {
        if (!look_find_linear(l, sum->addends[1 - side], &dense))
            continue;
        s = find(l, sum, side, layer);
        if (s == STATUS_OK)
            *residual = sum->addends[side];
    }
    return s == STATUS_NOT_FOUND
               ? look_refuse(l, sum->addends[0], "expected a dense layer plus its residual")
               : s;
}

static bool has_softmax(look *l, graph_value_index x)
{
    const graph *g = l->m.g;
    bool *needed = calloc((size_t)g->value_count + 1, sizeof needed[0]);
    bool is_found = false;
    if (needed == NULL)
        return false;
    match_cone(&l->m, x, 0, NULL, needed);
    for (int32_t i = 0; i < g->node_count && !is_found; i++)
        is_found = g->nodes[i].op == GRAPH_OP_SOFTMAX && needed[g->nodes[i].outputs[0]];
    free(needed);
    return is_found;
}

status look_layers(look *l, graph_value_index top, graph_value_index *x)
{
    encoder *e = l->e;
    encoder_layer *layers = calloc(LAYERS_MAX, sizeof layers[0]); /* the last first */
    status s = STATUS_OK;
    int count = 0;
    if (layers == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for an encoder");
    while (has_softmax(l, top)) {
        residual_sum sum;
        if (count == LAYERS_MAX) {
            s = look_refuse(l, top, "more than %d layers", LAYERS_MAX);
            goto done;
        }
        encoder_layer *layer = &layers[count++];
        if ((s = find_sum(l, top, &sum, &layer->output_norm)) ||
            (s = try_sides(l, &sum, find_feed_forward, layer, &top)) ||
            (s = find_sum(l, top, &sum, &layer->attention_norm)) ||
            (s = try_sides(l, &sum, find_attention, layer, &top)) || l->is_for_bias)
            goto done;
    }
    if (count == 0) {
        s = look_refuse(l, top, "no attention was found");
        goto done;
    }
    e->layers = arena_allocate_zeroed(&e->memory, (size_t)count, sizeof e->layers[0]);
    if (e->layers == NULL) {
        s = status_fail(STATUS_OUT_OF_MEMORY, "no memory for an encoder");
        goto done;
    }
    e->layer_count = count;
    for (int i = 0; i < count; i++)
        e->layers[i] = layers[count - 1 - i];
    *x = top;
done:
    free(layers);
    return s;
}
