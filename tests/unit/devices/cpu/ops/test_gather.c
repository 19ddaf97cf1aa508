/* Indices of Gather and Scatter operators. */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/unit/devices/cpu/case.h"

/* A request chooses token ids: the error names the operator, the index and the limit. */
static void expect_bad_index(graph_op op, double index)
{
    cpu_case c = {0};
    cpu_case_random(&c, DTYPE_F32, DIMS(5, 3));
    cpu_case_input(&c, DTYPE_I64, DIMS(1, 1), &index);
    if (op == GRAPH_OP_SCATTER_ELEMENTS)
        cpu_case_random(&c, DTYPE_F32, DIMS(1, 1));
    if (op == GRAPH_OP_SCATTER_ND)
        cpu_case_random(&c, DTYPE_F32, DIMS(1, 3));
    cr_expect_eq(cpu_case_run(&c, op, 1), STATUS_INVALID_ARGUMENT);
    cr_expect(strstr(status_message(), graph_op_name(op)), "%s", status_message());
    cr_expect(strstr(status_message(), index > 0 ? "5" : "-6"), "%s", status_message());
    cr_expect(strstr(status_message(), "below 5"), "%s", status_message());
    cpu_case_dispose(&c);
}

Test(cpu_gather, indices_out_of_range_are_rejected)
{
    static const graph_op ops[] = {GRAPH_OP_GATHER, GRAPH_OP_GATHER_ELEMENTS, GRAPH_OP_GATHER_ND,
                                   GRAPH_OP_SCATTER_ELEMENTS, GRAPH_OP_SCATTER_ND};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        expect_bad_index(ops[i], 5);
        expect_bad_index(ops[i], -6);
    }
}
