#ifndef GRAPH_ONNX_REWRITE_FOREST_H
#define GRAPH_ONNX_REWRITE_FOREST_H

#include "graph/onnx/rewrite/rewrite.h"

/* Decision trees as a node of domain ai.onnx.ml lists them, made into the constants of
 * penstock.Trees (graph/op.inc). Source: onnx/docs/Operators-ml.md. */

#define FOREST_NODE_INTS 5 /* what | column << 4, where true, where false, split (a double) */

typedef enum forest_branch { /* bits 0 to 2 of what a node is */
                             FOREST_LEQ,
                             FOREST_LT,
                             FOREST_GTE,
                             FOREST_GT,
                             FOREST_EQ,
                             FOREST_NEQ,
                             FOREST_BRANCHES
} forest_branch;
#define FOREST_MISSING 8 /* bit 3: NaN goes where true */

typedef struct forest {
    tensor nodes;            /* I32 [nodes, FOREST_NODE_INTS]; a place below 0 is leaf ~place */
    tensor leaves;           /* I32 [leaves + 1]: where the weights of each begin */
    tensor targets, weights; /* I32 and F32 or F64, [weights] */
    tensor roots;            /* I32 [trees]: places */
    int64_t columns;         /* that the input has at least */
} forest;

/* Of TreeEnsembleClassifier and -Regressor: `prefix` is that of the lists of weights ("class",
 * "target"). Pops the attributes. STATUS_CORRUPT: lists that do not fit each other, or nodes that
 * are no trees. STATUS_UNSUPPORTED: a mode. */
status forest_read_lists(onnx_node *n, const char *prefix, forest *out) MUST_CHECK;
/* Of TreeEnsemble (version 5). */
status forest_read_ensemble(onnx_node *n, forest *out) MUST_CHECK;

#endif
