/* Every operator has a row, or is one of dynamic programs. */
#include <criterion/criterion.h>

#include "devices/cpu/dynamic/dynamic.h"
#include "devices/cpu/ops/op.h"
#include "tests/unit/devices/cpu/case.h"

Test(cpu_op, every_operator_of_the_ir_has_a_row)
{
    graph empty = {0};
    graph_attribute body = {.name = "body", .kind = GRAPH_ATTRIBUTE_GRAPH, .graph = &empty};
    for (int op = 0; op < GRAPH_OP_COUNT; op++) {
        bool has_body = op == GRAPH_OP_LOOP || op == GRAPH_OP_SCAN;
        graph_node node = {
            .op = (graph_op)op, .name = "n", .attribute_count = has_body, .attributes = &body};
        cr_expect(cpu_op_find((graph_op)op) != NULL ||
                      cpu_dynamic_check(&(graph){.nodes = &node, .node_count = 1}) == STATUS_OK,
                  "%s", graph_op_name((graph_op)op));
    }
}
