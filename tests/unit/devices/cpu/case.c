#include "tests/unit/devices/cpu/case.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "devices/cpu/evaluate.h"
#include "devices/cpu/ops/op.h"
#include "graph/shapes/infer.h"

tensor *cpu_case_input(cpu_case *c, dtype type, const int64_t *dims, const double *numbers)
{
    int rank = 0;
    while (dims[rank] >= 0)
        rank++;
    tensor *t = &c->inputs[c->input_count++];
    cr_assert_eq(tensor_allocate(t, &c->memory, type, rank, dims), STATUS_OK);
    for (int64_t i = 0; numbers && i < tensor_count(t); i++)
        tensor_set_number(t, i, numbers[i]);
    return t;
}

tensor *cpu_case_random(cpu_case *c, dtype type, const int64_t *dims)
{
    tensor *t = cpu_case_input(c, type, dims, NULL);
    uint32_t seed = 12345u + (uint32_t)c->input_count;
    for (int64_t i = 0; i < tensor_count(t); i++) {
        seed = seed * 1664525u + 1013904223u;
        tensor_set_number(t, i, (double)(seed >> 8) / (1 << 22) - 2);
    }
    return t;
}

/* The node, and its outputs, allocated. */
static graph_node make_node(cpu_case *c, graph_op op, int output_count, const tensor **inputs,
                            graph_value_index *indices)
{
    static const graph_value_index outputs[] = {10, 11, 12, 13, 14, 15, 16, 17};
    for (int i = 0; i < c->input_count; i++) {
        inputs[i] = c->is_absent[i] ? NULL : &c->inputs[i];
        indices[i] = c->is_absent[i] ? GRAPH_NO_VALUE : i;
    }
    graph_node node = {.op = op,
                       .name = "the node",
                       .input_count = c->input_count,
                       .output_count = output_count,
                       .inputs = indices,
                       .outputs = (graph_value_index *)outputs,
                       .attribute_count = c->attribute_count,
                       .attributes = c->attributes};
    cr_assert_eq(graph_infer_node(&node, inputs, c->outputs), STATUS_OK, "%s", status_message());
    for (int i = 0; i < output_count; i++)
        cr_assert_eq(tensor_allocate(&c->outputs[i], &c->memory, c->outputs[i].dtype,
                                     c->outputs[i].rank, c->outputs[i].dims),
                     STATUS_OK);
    return node;
}

status cpu_case_run(cpu_case *c, graph_op op, int output_count)
{
    graph_value_index indices[CPU_CASE_OPERANDS];
    const tensor *inputs[CPU_CASE_OPERANDS];
    graph_node node = make_node(c, op, output_count, inputs, indices);
    return cpu_evaluate_node(&node, inputs, c->outputs, c->cancel);
}

status cpu_case_run_packed(cpu_case *c, graph_op op, int output_count, unsigned constants,
                           struct cpu_weights *weights)
{
    graph_value_index indices[CPU_CASE_OPERANDS];
    const tensor *inputs[CPU_CASE_OPERANDS], *shown[CPU_CASE_OPERANDS];
    tensor hidden[CPU_CASE_OPERANDS];
    graph_node node = make_node(c, op, output_count, inputs, indices);
    for (int i = 0; i < c->input_count; i++) {
        hidden[i] = c->inputs[i];
        if (!(constants >> i & 1))
            hidden[i].data = NULL;
        shown[i] = inputs[i] ? &hidden[i] : NULL;
    }
    cpu_prepare p = {.node = &node,
                     .inputs = shown,
                     .outputs = c->outputs,
                     .weights = weights,
                     .memory = &c->memory};
    cr_assert_eq(kernels_select(NULL, &p.kernels), STATUS_OK);
    cr_assert_eq(cpu_op_prepare(&p), STATUS_OK, "%s", status_message());
    size_t own = cpu_scratch_round(p.scratch_bytes);
    char *scratch = aligned_alloc(CPU_SCRATCH_ALIGNMENT, cpu_scratch_round(own + p.part_bytes + 1));
    cr_assert(scratch);
    status s = cpu_op_run(&(cpu_call){.node = &node,
                                      .inputs = inputs,
                                      .outputs = c->outputs,
                                      .kernels = p.kernels,
                                      .state = p.state,
                                      .scratch = scratch,
                                      .parts = scratch + own,
                                      .cancel = c->cancel});
    free(scratch);
    return s;
}

void cpu_case_dispose(cpu_case *c)
{
    arena_dispose(&c->memory);
}

double cpu_case_get(const tensor *t, int64_t i)
{
    return tensor_get_number(t, i);
}

void cpu_case_expect_near(double actual, double expected, double tolerance, int64_t at)
{
    cr_expect(fabs(actual - expected) <= tolerance, "[%lld] %g, expected %g", (long long)at, actual,
              expected);
}
