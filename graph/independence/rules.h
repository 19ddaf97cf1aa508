#ifndef GRAPH_INDEPENDENCE_RULES_H
#define GRAPH_INDEPENDENCE_RULES_H

#include "graph/independence/rows.h"

/* Inputs of one node that are followed. */
#define INDEPENDENCE_INPUTS_MAX 64

/* The rule of an operator; NULL: it has none, so its rows are undecided. */
row_rule independence_rule_of(graph_op op);

/* The rules, by file. Each describes what its operator may do with the axis that holds the rows. */
#define ROW_RULE(name) row_relation independence_##name(const row_call *, int)
/* elementwise.c */
ROW_RULE(unary);
ROW_RULE(broadcast);
ROW_RULE(quantize);
/* arrange.c */
ROW_RULE(view);
ROW_RULE(transpose);
ROW_RULE(expand);
ROW_RULE(tile);
ROW_RULE(generate);
ROW_RULE(pad);
ROW_RULE(blocks);
ROW_RULE(one_hot);
ROW_RULE(reverse_sequence);
/* join.c */
ROW_RULE(concat);
ROW_RULE(split);
ROW_RULE(slice);
/* select.c */
ROW_RULE(gather);
ROW_RULE(gather_elements);
ROW_RULE(gather_nd);
ROW_RULE(scatter_elements);
ROW_RULE(scatter_nd);
ROW_RULE(by_content);
ROW_RULE(roi_align);
ROW_RULE(deform_conv);
/* matmul.c */
ROW_RULE(matmul);
ROW_RULE(matmul_integer);
ROW_RULE(qlinear_matmul);
ROW_RULE(gemm);
ROW_RULE(last_two);
ROW_RULE(einsum);
/* reduce.c */
ROW_RULE(reduce);
ROW_RULE(arg_reduce);
ROW_RULE(along_axis);
ROW_RULE(along_axes);
ROW_RULE(cum_sum);
ROW_RULE(whole_tensor);
/* normalise.c */
ROW_RULE(batch_normalization);
ROW_RULE(instance_normalization);
ROW_RULE(group_normalization);
ROW_RULE(layer_normalization);
ROW_RULE(lrn);
/* sequence.c */
ROW_RULE(recurrent);
ROW_RULE(dft);
ROW_RULE(stft);
ROW_RULE(made_table);
ROW_RULE(columns);
/* window.c */
ROW_RULE(conv);
ROW_RULE(pool);
ROW_RULE(global_pool);
ROW_RULE(resize);
ROW_RULE(grid_sample);
#undef ROW_RULE

#endif
