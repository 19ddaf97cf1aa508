#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "devices/cpu/evaluate.h"
#include "graph/quantise/fuse.h"
#include "graph/shapes/infer.h"
#include "graph/specialise/specialise.h"
#include "tests/unit/devices/cpu/fused/net.h"

uint32_t seed;

int64_t random_below(int64_t n)
{
    seed = seed * 1664525u + 1013904223u;
    return (int64_t)(seed >> 8) % n;
}

float random_float(void)
{
    return (float)random_below(20001) / 10000.0f - 1;
}

graph_value_index constant(net *n, dtype type, int rank, const int64_t *dims, double scale)
{
    tensor t;
    cr_assert_eq(tensor_allocate(&t, &n->g->memory, type, rank, dims), STATUS_OK);
    for (int64_t i = 0; i < tensor_count(&t); i++)
        tensor_set_number(&t, i,
                          type == DTYPE_F32 ? (double)random_float() * scale
                                            : floor((double)random_float() * scale));
    return graph_add_constant(n->g, NULL, &t);
}

graph_value_index number(net *n, dtype type, double x)
{
    tensor t;
    cr_assert_eq(tensor_allocate(&t, &n->g->memory, type, 0, NULL), STATUS_OK);
    tensor_set_number(&t, 0, x);
    return graph_add_constant(n->g, NULL, &t);
}

graph_value_index node(net *n, graph_op op, int count, const graph_value_index *in,
                       int attribute_count, const graph_attribute *attributes)
{
    return graph_add(n->g, op, count, in, attribute_count, attributes);
}

graph_value_index requantise(net *n, graph_value_index x, double scale, int zero)
{
    graph_value_index s = number(n, DTYPE_F32, scale);
    graph_value_index z = number(n, n->activations, n->activations == DTYPE_U8 ? zero : zero - 128);
    return NODE(n, GRAPH_OP_DEQUANTIZE_LINEAR, NODE(n, GRAPH_OP_QUANTIZE_LINEAR, x, s, z), s, z);
}

graph_value_index weights(net *n, int rank, const int64_t *dims, int axis)
{
    graph_value_index w = constant(n, DTYPE_I8, rank, dims, 127);
    graph_value_index scale = constant(n, DTYPE_F32, 1, &dims[axis], 0);
    tensor *t = (tensor *)(uintptr_t)n->g->values[scale].constant;
    for (int64_t i = 0; i < dims[axis]; i++)
        ((float *)t->data)[i] = 0.002f + 0.0005f * (float)random_below(10);
    graph_value_index zero = constant(n, DTYPE_I8, 1, &dims[axis], 0);
    graph_attribute a = graph_make_int("axis", axis);
    return node(n, GRAPH_OP_DEQUANTIZE_LINEAR, 3, (graph_value_index[]){w, scale, zero}, 1, &a);
}

graph_value_index convolve(net *n, graph_value_index x, int64_t channels, int64_t out,
                           int64_t groups, bool is_quantised)
{
    int64_t kernel = 1 + 2 * random_below(2), stride = 1 + random_below(2);
    int64_t dims[4] = {out, channels / groups, kernel, kernel};
    int64_t pads[4] = {kernel / 2, kernel / 2, kernel / 2, random_below(2)};
    graph_value_index w =
        is_quantised ? weights(n, 4, dims, 0) : constant(n, DTYPE_F32, 4, dims, 0.3);
    graph_value_index in[3] = {x, w, constant(n, DTYPE_F32, 1, &out, 0.5)};
    graph_attribute a[3] = {
        graph_make_ints(n->g, "strides", 2, (int64_t[]){stride, 1 + random_below(2)}),
        graph_make_ints(n->g, "pads", 4, pads), graph_make_int("group", groups)};
    return node(n, GRAPH_OP_CONV, random_below(4) ? 3 : 2, in, 3, a);
}

/* Computes node by node, as a reference would. */
static void compute(const graph *g, const tensor *input, tensor *output, arena *memory)
{
    tensor *values = calloc((size_t)g->value_count + 1, sizeof *values);
    for (int32_t v = 0; v < g->value_count; v++)
        if (g->values[v].constant)
            values[v] = *g->values[v].constant;
    values[g->inputs[0]] = *input;
    for (int32_t i = 0; i < g->node_count; i++) {
        const graph_node *n = &g->nodes[i];
        const tensor *in[16];
        tensor out[4];
        for (int k = 0; k < n->input_count; k++)
            in[k] = n->inputs[k] == GRAPH_NO_VALUE ? NULL : &values[n->inputs[k]];
        memset(out, 0, sizeof out);
        cr_assert_eq(graph_infer_node(n, in, out), STATUS_OK, "%s", status_message());
        for (int k = 0; k < n->output_count; k++) {
            if (n->outputs[k] == GRAPH_NO_VALUE)
                continue; /* operators read its shape */
            const graph_value *v = &g->values[n->outputs[k]];
            int64_t dims[TENSOR_RANK_MAX];
            for (int d = 0; d < v->shape.rank; d++)
                dims[d] = v->shape.dims[d].constant;
            cr_assert_eq(tensor_allocate(&out[k], memory, v->dtype, v->shape.rank, dims), 0);
        }
        cr_assert_eq(cpu_evaluate_node(n, in, out, NULL), STATUS_OK, "%s", status_message());
        for (int k = 0; k < n->output_count; k++)
            if (n->outputs[k] != GRAPH_NO_VALUE)
                values[n->outputs[k]] = out[k];
    }
    *output = values[g->outputs[0]];
    free(values);
}

static void plan_and_run(const graph *g, const char *level, const tensor *input, const tensor *like,
                         tensor *output, arena *memory, cpu_plan_facts *facts)
{
    const kernels *table;
    cpu_plan *plan;
    cr_assert_eq(kernels_select(level, &table), STATUS_OK);
    cr_assert_eq(cpu_plan_create(g, table, NULL, &plan), STATUS_OK, "%s", status_message());
    cr_assert_eq(tensor_allocate(output, memory, like->dtype, like->rank, like->dims), STATUS_OK);
    size_t bytes = (cpu_plan_workspace_bytes(plan) + 63) & ~(size_t)63;
    void *workspace = aligned_alloc(64, bytes);
    memset(workspace, 0xff, bytes);
    cr_assert_eq(cpu_plan_run(plan, input, output, workspace, NULL), STATUS_OK, "%s",
                 status_message());
    cpu_plan_describe(plan, facts);
    free(workspace);
    cpu_plan_destroy(plan);
}

cpu_plan_facts check_within(net *n, graph_value_index out, double step, double noise)
{
    graph *specialised;
    tensor input = {0}, expected, shape;
    arena memory = {0};
    cpu_plan_facts facts = {0};
    graph_add_output(n->g, out, "out");
    const graph_value *in = &n->g->values[n->g->inputs[0]];
    int64_t dims[TENSOR_RANK_MAX];
    for (int d = 0; d < in->shape.rank; d++)
        dims[d] = in->shape.dims[d].constant;
    cr_assert_eq(tensor_allocate(&input, &memory, DTYPE_F32, in->shape.rank, dims), STATUS_OK);
    for (int64_t i = 0; i < tensor_count(&input); i++)
        ((float *)input.data)[i] = random_float() * 2;
    shape = input;
    shape.data = NULL;
    cr_assert_eq(
        graph_specialise(n->g, &(graph_binding){.inputs = &shape}, cpu_evaluate_node, &specialised),
        STATUS_OK, "%s", status_message());
    compute(specialised, &input, &expected, &memory);
    static const char *const levels[] = {"scalar", "avx2", NULL};
    for (int l = 0; l < 3; l++) {
        tensor actual;
        plan_and_run(specialised, levels[l], &input, &expected, &actual, &memory, &facts);
        int64_t count = tensor_count(&expected), others = 0;
        for (int64_t i = 0; i < count; i++) {
            double d = fabs(tensor_get_number(&actual, i) - tensor_get_number(&expected, i));
            others += d > noise;
            cr_assert(d <= step + noise, "%s: [%lld] differs by %g of %g", levels[l], (long long)i,
                      d, step);
        }
        cr_assert(others * 100 <= count, "%lld of %lld differ", (long long)others,
                  (long long)count);
    }
    graph_destroy(specialised);
    arena_dispose(&memory);
    graph_destroy(n->g);
    return facts;
}

cpu_plan_facts check(net *n, graph_value_index out, double step)
{
    return check_within(n, out, step, 1e-4);
}

net open_net(int turn, int rank, const int64_t *dims, graph_value_index *input)
{
    net n = {.g = graph_create("net"), .activations = turn % 2 ? DTYPE_I8 : DTYPE_U8};
    graph_dim shape[TENSOR_RANK_MAX];
    for (int i = 0; i < rank; i++)
        shape[i] = graph_dim_constant(dims[i]);
    *input = graph_add_input(n.g, "x", DTYPE_F32, rank, shape);
    return n;
}
