#ifndef GRAPH_SHAPES_INFER_H
#define GRAPH_SHAPES_INFER_H

#include "graph/graph.h"

/* Shapes and dtypes of the outputs of one node, all dims constant. `inputs[i]` is NULL where
 * absent; its data is NULL where the value is unknown. Writes dtype, rank and dims of outputs[0 ..
 * node->output_count); leaves data. Errors: STATUS_INVALID_ARGUMENT: inputs do not fit the operator
 * (message names shapes and attribute); STATUS_UNSUPPORTED: an output shape depends on an unknown
 * input value (message names the input's position). */
status graph_infer_node(const graph_node *node, const tensor *const *inputs,
                        tensor *outputs) MUST_CHECK;

/* Multidirectional broadcasting (onnx Broadcasting.md); INVALID_ARGUMENT when they do not fit. */
status graph_broadcast(const tensor *a, const tensor *b, int *rank,
                       int64_t dims[TENSOR_RANK_MAX]) MUST_CHECK;

/* The boxes that a NonMaxSuppression selects of its inputs: `count` rows of image, class and box,
 * for free(). `selected` NULL: only counts them. Errors of graph_infer_node(), and
 * STATUS_OUT_OF_MEMORY. */
status graph_select_boxes(const graph_node *node, const tensor *const *inputs, int64_t **selected,
                          int64_t *count) MUST_CHECK;

/* What a DFT or STFT computes, from its inputs' shapes and the values of its side inputs. */
typedef struct graph_fourier {
    int axis;                /* of the samples */
    int64_t length;          /* of the transform */
    int64_t bins_in;         /* samples of a line that are read; the others are zero */
    int64_t bins_out;        /* that are written */
    int64_t step, frames;    /* STFT; else 0 */
    int parts_in, parts_out; /* 1: real, 2: complex */
    bool is_inverse, is_onesided;
} graph_fourier;
/* Errors as graph_infer_node(), whose rules call it. */
status graph_read_fourier(const graph_node *node, const tensor *const *inputs,
                          graph_fourier *out) MUST_CHECK;

/* Products that an Einsum adds up: one for each combination of its labels' values; INT64_MAX where
 * they are more. 0 when the equation does not fit the inputs. */
int64_t graph_einsum_volume(const graph_node *node, const tensor *const *inputs);

#endif
