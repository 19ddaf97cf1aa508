#ifndef TESTS_UNIT_GRAPH_SHAPES_CASE_H
#define TESTS_UNIT_GRAPH_SHAPES_CASE_H

#include "graph/op.h"

/* One row of a table of shape rules.
 *   inputs      "f32[2,3] i64[2]={0,-1} -": dtype, dims, the value where it is known; "-": absent
 *   attributes  "axis=1 perm=[1,0] mode=CRD alpha=0.5 value=i64[1]"; "" for none
 *   expected    "f32[2,3] i64[2]", or "!invalid_argument", "!unsupported", "!too_large" */
typedef struct infer_case {
    graph_op op;
    const char *inputs, *attributes, *expected;
} infer_case;

/* Fails the Criterion test with the row's text where the rule answers otherwise. */
void infer_case_check(const infer_case *row, int line);

#define INFER_CASES(rows)                                                                          \
    for (size_t row_index = 0; row_index < sizeof(rows) / sizeof((rows)[0]); row_index++)          \
    infer_case_check(&(rows)[row_index], (int)row_index)

#endif
