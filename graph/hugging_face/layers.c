#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/hugging_face/hugging_face.h"

const char *hf_name(hf_builder *b, const char *format, ...)
{
    char name[300];
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    char *kept = arena_format(&b->g->memory, "%s%s", b->weights->prefix, name);
    if (kept == NULL)
        abort();
    return kept;
}

const char *hf_root_name(hf_builder *b, const char *name)
{
    char *kept = arena_format(&b->g->memory, "%s%s", b->weights->root, name);
    if (kept == NULL)
        abort();
    return kept;
}

bool hf_has(const hf_builder *b, const char *name)
{
    char full[400];
    snprintf(full, sizeof full, "%s.weight", name);
    return hf_weights_find(b->weights, full) != NULL;
}

graph_value_index hf_unary(hf_builder *b, graph_op op, graph_value_index x)
{
    return graph_add(b->g, op, 1, &x, 0, NULL);
}

graph_value_index hf_binary(hf_builder *b, graph_op op, graph_value_index x, graph_value_index y)
{
    graph_value_index inputs[] = {x, y};
    return graph_add(b->g, op, 2, inputs, 0, NULL);
}

graph_value_index hf_reduce(hf_builder *b, graph_op op, graph_value_index x, int64_t axis,
                            bool keeps_dim)
{
    graph_value_index inputs[] = {x, hf_ints(b, 1, &axis)};
    graph_attribute keep = graph_make_int("keepdims", keeps_dim);
    return graph_add(b->g, op, 2, inputs, 1, &keep);
}

graph_value_index hf_cast(hf_builder *b, graph_value_index x, dtype type)
{
    graph_attribute to = graph_make_int("to", dtype_to_onnx(type));
    return graph_add(b->g, GRAPH_OP_CAST, 1, &x, 1, &to);
}

graph_value_index hf_float(hf_builder *b, float f)
{
    return graph_add_constant_f32(b->g, NULL, 0, NULL, &f);
}

graph_value_index hf_int(hf_builder *b, int64_t i)
{
    return graph_add_constant_i64(b->g, NULL, 0, NULL, &i);
}

graph_value_index hf_ints(hf_builder *b, int count, const int64_t *ints)
{
    int64_t length = count;
    return graph_add_constant_i64(b->g, NULL, 1, &length, ints);
}

static graph_value_index add_weight(hf_builder *b, const char *name, int64_t rows, int64_t columns,
                                    bool is_matrix)
{
    graph_value_index value = 0; /* after a failure any value: the graph is destroyed */
    status s = hf_weights_add(b->weights, b->g, name, rows, columns, is_matrix, &value);
    if (b->failed == STATUS_OK)
        b->failed = s;
    return value;
}

graph_value_index hf_weight(hf_builder *b, const char *name, int64_t rows, int64_t columns)
{
    return b->failed ? 0 : add_weight(b, name, rows, columns, false);
}

static const char *below(hf_builder *b, const char *name, const char *leaf)
{
    char *full = arena_format(&b->g->memory, "%s.%s", name, leaf);
    if (full == NULL)
        abort();
    return full;
}

/* Weights are stored [out, in]. A node transposes them, so that a device that uses them as they are
 * need not read them. */
graph_value_index hf_linear(hf_builder *b, graph_value_index x, const char *name)
{
    if (b->failed)
        return x;
    graph_value_index weight = add_weight(b, below(b, name, "weight"), -1, -1, true);
    if (b->failed)
        return x;
    graph_value_index inputs[] = {x, hf_unary(b, GRAPH_OP_TRANSPOSE, weight)};
    int32_t node = graph_add_node(b->g, GRAPH_OP_MATMUL, name, 2, inputs, 1, 0, NULL);
    graph_value_index matmul = b->g->nodes[node].outputs[0];
    const char *bias = below(b, name, "bias");
    if (hf_weights_find(b->weights, bias) == NULL)
        return matmul;
    int64_t columns = b->g->values[weight].constant->dims[0];
    return hf_binary(b, GRAPH_OP_ADD, matmul, hf_weight(b, bias, columns, 0));
}

graph_value_index hf_layer_normalization(hf_builder *b, graph_value_index x, const char *name)
{
    if (b->failed)
        return x;
    graph_value_index inputs[] = {x, hf_weight(b, below(b, name, "weight"), -1, 0),
                                  hf_weight(b, below(b, name, "bias"), -1, 0)};
    graph_attribute attributes[] = {graph_make_int("axis", -1),
                                    graph_make_float("epsilon", (float)b->config->epsilon)};
    int32_t node =
        graph_add_node(b->g, GRAPH_OP_LAYER_NORMALIZATION, name, 3, inputs, 1, 2, attributes);
    return b->g->nodes[node].outputs[0];
}

static graph_value_index gelu(hf_builder *b, graph_value_index x, const char *approximate)
{
    graph_attribute a = graph_make_string("approximate", approximate);
    return graph_add(b->g, GRAPH_OP_GELU, 1, &x, 1, &a);
}

static graph_value_index times_sigmoid(hf_builder *b, graph_value_index x, float alpha)
{
    graph_value_index scaled = alpha == 1 ? x : hf_binary(b, GRAPH_OP_MUL, x, hf_float(b, alpha));
    return hf_binary(b, GRAPH_OP_MUL, x, hf_unary(b, GRAPH_OP_SIGMOID, scaled));
}

/* transformers/activations.py, ACT2FN: its variants of GELU by tanh differ only in rounding. */
graph_value_index hf_activation(hf_builder *b, graph_value_index x, const char *activation)
{
    static const struct {
        const char *name;
        enum { EXACT_GELU, TANH_GELU, QUICK_GELU, SILU, NOTHING, UNARY } kind;
        graph_op op;
    } table[] = {
        {"gelu", EXACT_GELU, 0},
        {"gelu_python", EXACT_GELU, 0},
        {"gelu_new", TANH_GELU, 0},
        {"gelu_fast", TANH_GELU, 0},
        {"gelu_accurate", TANH_GELU, 0},
        {"gelu_pytorch_tanh", TANH_GELU, 0},
        {"gelu_python_tanh", TANH_GELU, 0},
        {"quick_gelu", QUICK_GELU, 0},
        {"silu", SILU, 0},
        {"swish", SILU, 0},
        {"linear", NOTHING, 0},
        {"relu", UNARY, GRAPH_OP_RELU},
        {"tanh", UNARY, GRAPH_OP_TANH},
        {"sigmoid", UNARY, GRAPH_OP_SIGMOID},
        {"mish", UNARY, GRAPH_OP_MISH},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (strcmp(table[i].name, activation) != 0)
            continue;
        switch (table[i].kind) {
        case EXACT_GELU:
            return gelu(b, x, "none");
        case TANH_GELU:
            return gelu(b, x, "tanh");
        case QUICK_GELU:
            return times_sigmoid(b, x, 1.702f);
        case SILU:
            return times_sigmoid(b, x, 1);
        case NOTHING:
            return x;
        case UNARY:
            return hf_unary(b, table[i].op, x);
        }
    }
    if (b->failed == STATUS_OK)
        b->failed = status_fail(STATUS_UNSUPPORTED,
                                "config.json: %s '%s' is not supported; supported: gelu, "
                                "gelu_new, gelu_fast, gelu_pytorch_tanh, quick_gelu, silu, relu, "
                                "tanh, sigmoid, mish, linear",
                                hf_keys_of(b->config->family)->activation, activation);
    return x;
}

/* [B,S,H] to [B,H]. */
graph_value_index hf_first_token(hf_builder *b, graph_value_index x)
{
    graph_value_index inputs[] = {x, hf_int(b, 0)};
    graph_attribute axis = graph_make_int("axis", 1);
    return graph_add(b->g, GRAPH_OP_GATHER, 2, inputs, 1, &axis);
}
