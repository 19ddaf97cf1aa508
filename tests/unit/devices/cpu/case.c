#include "tests/unit/devices/cpu/case.h"

#include <criterion/criterion.h>
#include <math.h>

#include "devices/cpu/evaluate.h"
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

status cpu_case_run(cpu_case *c, graph_op op, int output_count)
{
    graph_value_index indices[CPU_CASE_OPERANDS];
    const tensor *inputs[CPU_CASE_OPERANDS];
    for (int i = 0; i < c->input_count; i++) {
        inputs[i] = c->is_absent[i] ? NULL : &c->inputs[i];
        indices[i] = c->is_absent[i] ? GRAPH_NO_VALUE : i;
    }
    graph_node node = {.op = op,
                       .name = "the node",
                       .input_count = c->input_count,
                       .output_count = output_count,
                       .inputs = indices,
                       .outputs = (graph_value_index[]){10, 11, 12, 13, 14, 15, 16, 17},
                       .attribute_count = c->attribute_count,
                       .attributes = c->attributes};
    cr_assert_eq(graph_infer_node(&node, inputs, c->outputs), STATUS_OK, "%s", status_message());
    for (int i = 0; i < output_count; i++)
        cr_assert_eq(tensor_allocate(&c->outputs[i], &c->memory, c->outputs[i].dtype,
                                     c->outputs[i].rank, c->outputs[i].dims),
                     STATUS_OK);
    return cpu_evaluate_node(&node, inputs, c->outputs, c->cancel);
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
