#include <stdlib.h>
#include <string.h>

#include "graph/encoder/internal.h"

#define LAYERS_MAX 1024

/* x = norm(residual + f): the two addends; either may be the residual. */
typedef struct residual_sum {
    graph_value_index addends[2];
} residual_sum;

static status find_sum(encoder_recogniser *r, graph_value_index y, residual_sum *sum,
                       encoder_norm *norm)
{
    graph_value_index x;
    if (!recogniser_find_norm(r, y, &x, norm))
        return recogniser_reject(r, y, "expected a layer normalisation");
    x = match_skip_views(&r->m, x);
    const graph_node *n = match_producer(&r->m, x);
    if (n == NULL || n->op != GRAPH_OP_ADD)
        return recogniser_reject(r, x, "expected a dense layer plus a residual");
    for (int i = 0; i < 2; i++)
        sum->addends[i] = match_skip_views(&r->m, n->inputs[i]);
    return STATUS_OK;
}

/* norm(x + down(activation(up(x)))) with addend `side` as the residual x. */
static status find_feed_forward(encoder_recogniser *r, const residual_sum *sum, int side,
                                encoder_layer *layer)
{
    found_linear down, up;
    graph_value_index residual = sum->addends[side], f = sum->addends[1 - side];
    if (!recogniser_find_linear(r, f, &down))
        return recogniser_reject(r, f, "expected the second dense layer of a feed-forward block");
    status s =
        recogniser_read_activation(r, match_skip_views(&r->m, down.x), &up, &layer->activation);
    if (s)
        return s;
    if (match_skip_views(&r->m, up.x) != residual)
        return recogniser_reject(r, f,
                                 "the residual of a feed-forward block is not its input "
                                 "(supported: encoders that normalise after the residual)");
    int64_t width = found_linear_columns(&up);
    if (found_linear_rows(&down) != width || found_linear_rows(&up) != r->e->hidden ||
        found_linear_columns(&down) != r->e->hidden)
        return recogniser_reject(r, f,
                                 "the dense layers of a feed-forward block do not fit together");
    if (r->e->intermediate != 0 && r->e->intermediate != width)
        return recogniser_reject(r, f, "layers have different intermediate sizes");
    r->e->intermediate = width;
    s = recogniser_keep_linear(r, &up, width, NULL, NULL, 1, &layer->up);
    if (s == STATUS_OK)
        s = recogniser_keep_linear(r, &down, found_linear_columns(&down), NULL, NULL, 1,
                                   &layer->down);
    return s;
}

/* norm(x + output(attention(x))) with addend `side` as the residual x. */
static status find_attention(encoder_recogniser *r, const residual_sum *sum, int side,
                             encoder_layer *layer)
{
    found_linear output;
    graph_value_index residual = sum->addends[side], f = sum->addends[1 - side], x;
    if (!recogniser_find_linear(r, f, &output))
        return recogniser_reject(r, f, "expected the dense layer after attention");
    if (found_linear_rows(&output) != r->e->hidden || found_linear_columns(&output) != r->e->hidden)
        return recogniser_reject(r, f,
                                 "the dense layer after attention does not have the hidden size");
    int64_t *rows = calloc((size_t)r->e->hidden, sizeof rows[0]);
    if (rows == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for an encoder");
    status s = recogniser_read_attention(r, output.x, layer, &x, rows);
    if (s == STATUS_OK && x != residual)
        s = recogniser_reject(
            r, f,
            "the residual of attention is not its input (supported: encoders that "
            "normalise after the residual)");
    if (s == STATUS_OK)
        s = recogniser_keep_linear(r, &output, found_linear_columns(&output), NULL, rows, 1,
                                   &layer->attention_output);
    free(rows);
    return s;
}

/* Tries both addends as the residual: one of them is a dense layer, or both are. */
static status try_sides(encoder_recogniser *r, const residual_sum *sum,
                        status (*find)(encoder_recogniser *, const residual_sum *, int,
                                       encoder_layer *),
                        encoder_layer *layer, graph_value_index *residual)
{
    found_linear dense;
    status s = STATUS_NOT_FOUND;
    for (int side = 1; s && side >= 0; side--) {
        if (!recogniser_find_linear(r, sum->addends[1 - side], &dense))
            continue;
        s = find(r, sum, side, layer);
        if (s == STATUS_OK)
            *residual = sum->addends[side];
    }
    return s == STATUS_NOT_FOUND
               ? recogniser_reject(r, sum->addends[0], "expected a dense layer plus a residual")
               : s;
}

static bool has_softmax(encoder_recogniser *r, graph_value_index x)
{
    const graph *g = r->m.g;
    bool *needed = calloc((size_t)g->value_count + 1, sizeof needed[0]);
    bool is_found = false;
    if (needed == NULL)
        return false;
    match_cone(&r->m, x, 0, NULL, needed);
    for (int32_t i = 0; i < g->node_count && !is_found; i++)
        is_found = g->nodes[i].op == GRAPH_OP_SOFTMAX && needed[g->nodes[i].outputs[0]];
    free(needed);
    return is_found;
}

status recogniser_read_layers(encoder_recogniser *r, graph_value_index top, graph_value_index *x)
{
    encoder *e = r->e;
    encoder_layer *layers = calloc(LAYERS_MAX, sizeof layers[0]); /* the last first */
    status s = STATUS_OK;
    int count = 0;
    if (layers == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for an encoder");
    while (has_softmax(r, top)) {
        residual_sum sum;
        if (count == LAYERS_MAX) {
            s = recogniser_reject(r, top, "more than %d layers", LAYERS_MAX);
            goto done;
        }
        encoder_layer *layer = &layers[count++];
        if ((s = find_sum(r, top, &sum, &layer->output_norm)) ||
            (s = try_sides(r, &sum, find_feed_forward, layer, &top)) ||
            (s = find_sum(r, top, &sum, &layer->attention_norm)) ||
            (s = try_sides(r, &sum, find_attention, layer, &top)) || r->is_for_bias)
            goto done;
    }
    if (count == 0) {
        s = recogniser_reject(r, top, "no attention was found");
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
