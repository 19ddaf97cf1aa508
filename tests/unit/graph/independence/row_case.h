#ifndef TESTS_UNIT_GRAPH_INDEPENDENCE_ROW_CASE_H
#define TESTS_UNIT_GRAPH_INDEPENDENCE_ROW_CASE_H

#include "graph/op.h"

/* One row of a table of rules.
 *   inputs      "f32[B,4] f32[3*B*2] i64[2]={B,4} -": B marks the rows, with blocks before and
 *               elements after them; without B the input is the same for all. "={..}" is known (its
 * last number is repeated), and "=#" holds the numbers of the rows; "-" is absent attributes
 * "axis=1 perm=[1,0] mode=edge"; "" for none expected    for each output "same", "0" (split on axis
 * 0), "1/3" (on axis 1, after 3 blocks), "view" (split, but not along an axis), "numbered",
 * "indexed", "mixed" or "undecided" */
typedef struct row_case {
    graph_op op;
    const char *inputs, *attributes, *expected;
} row_case;

/* Fails the Criterion test where the rule answers otherwise, and where it answers that rows are
 * apart but the reference kernel computes something else. */
void row_case_check(const row_case *row, int line);

#define ROW_CASES(rows)                                                                            \
    for (size_t row_index = 0; row_index < sizeof(rows) / sizeof((rows)[0]); row_index++)          \
    row_case_check(&(rows)[row_index], (int)row_index)

#endif
