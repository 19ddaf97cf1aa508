/* Every operator has a row. */
#include <criterion/criterion.h>

#include "devices/cpu/ops/op.h"
#include "tests/unit/devices/cpu/case.h"

Test(cpu_op, every_operator_of_the_ir_has_a_row)
{
    for (int op = 0; op < GRAPH_OP_COUNT; op++) /* an If is decided before a device sees it */
        cr_expect(op == GRAPH_OP_IF || cpu_op_find((graph_op)op) != NULL, "%s",
                  graph_op_name((graph_op)op));
}
