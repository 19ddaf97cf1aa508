#ifndef GRAPH_SHAPES_RULES_H
#define GRAPH_SHAPES_RULES_H

#include "graph/graph.h"
#include "graph/shapes/infer.h"

/* Shape rules: one file per operator family, one rule per operator, all listed in the table of
 * infer.c; and the helpers they are written with. Nothing outside graph/ includes this. */

/* The largest tensor of a model; a model with a larger one is rejected. */
#define INFER_TENSOR_BYTES_MAX ((int64_t)16 << 30)
#define INFER_VARIADIC 255
#define INFER_INPUTS_MAX 9
#define INFER_OUTPUTS_MAX 4

/* Sets of dtypes, one bit each. */
#define INFER_TYPE(t) (1u << (t))
#define INFER_FLOATS                                                                               \
    (INFER_TYPE(DTYPE_F16) | INFER_TYPE(DTYPE_BF16) | INFER_TYPE(DTYPE_F32) | INFER_TYPE(DTYPE_F64))
#define INFER_UNSIGNED                                                                             \
    (INFER_TYPE(DTYPE_U8) | INFER_TYPE(DTYPE_U16) | INFER_TYPE(DTYPE_U32) | INFER_TYPE(DTYPE_U64))
#define INFER_SIGNED                                                                               \
    (INFER_TYPE(DTYPE_I8) | INFER_TYPE(DTYPE_I16) | INFER_TYPE(DTYPE_I32) | INFER_TYPE(DTYPE_I64))
#define INFER_INTEGERS (INFER_UNSIGNED | INFER_SIGNED)
#define INFER_NUMBERS (INFER_FLOATS | INFER_INTEGERS)
#define INFER_BOOLS INFER_TYPE(DTYPE_BOOL)
#define INFER_8BIT_INTEGERS (INFER_TYPE(DTYPE_U8) | INFER_TYPE(DTYPE_I8))
#define INFER_INDICES (INFER_TYPE(DTYPE_I32) | INFER_TYPE(DTYPE_I64))
#define INFER_NO_STRINGS (INFER_NUMBERS | INFER_BOOLS)
#define INFER_ALL (INFER_NO_STRINGS | INFER_TYPE(DTYPE_BYTES))

/* `in` has at least INFER_INPUTS_MAX entries, NULL where absent, unless the rule is variadic (then
 * node->input_count). Writes dtype, rank and dims of `out`, which has INFER_OUTPUTS_MAX entries, or
 * node->output_count where outputs are variadic. */
typedef status (*infer_fn)(const graph_node *node, const tensor *const *in, tensor *out);

typedef struct infer_rule {
    infer_fn infer;
    uint8_t inputs_min, inputs_max; /* the first inputs_min are required */
    uint8_t outputs_max;
    uint16_t types; /* allowed for input 0 */
} infer_rule;

/* Sets dtype and shape of `t`. STATUS_INVALID_ARGUMENT: a negative dim; STATUS_UNSUPPORTED: a rank
 * over TENSOR_RANK_MAX; STATUS_TOO_LARGE: a size over the limit above. */
status infer_set(tensor *t, dtype type, int rank, const int64_t *dims) MUST_CHECK;
/* The same shape as `like`. */
status infer_set_like(tensor *t, dtype type, const tensor *like) MUST_CHECK;
/* "f32[2,3]", in one of four static buffers per thread: a message can show four tensors. */
const char *infer_text(const tensor *t);
bool infer_is_known(const tensor *t);
/* Negative axes count from the end; `what` names the attribute in the message. */
status infer_axis(const char *what, int64_t axis, int rank, int *out) MUST_CHECK;
/* The list of an attribute; NULL and *count = 0 when it is absent. */
const int64_t *infer_ints(const graph_node *node, const char *name, size_t *count);
/* The value of integer input `position` (rank 0 or 1, at most `max` elements).
 * STATUS_UNSUPPORTED when it is not known. */
status infer_known_ints(const tensor *const *in, int position, int max, int64_t *values,
                        int *count) MUST_CHECK;
status infer_unknown(int position) MUST_CHECK; /* that failure, for inputs of other types */
status infer_expect_type(const tensor *t, int position, uint32_t types) MUST_CHECK;
status infer_expect_same_type(const tensor *a, const tensor *b) MUST_CHECK;
/* `t` is one-dimensional with `n` elements. */
status infer_expect_vector(const tensor *t, int position, int64_t n) MUST_CHECK;
/* The string attribute is one of `choices` (NULL-terminated) or absent. */
status infer_expect_choice(const graph_node *node, const char *name,
                           const char *const *choices) MUST_CHECK;
/* `from` broadcasts to `to` without changing it. */
bool infer_broadcasts_to(const tensor *from, const tensor *to);

status infer_same(const graph_node *, const tensor *const *, tensor *) MUST_CHECK;

/* The rules, by file. */
#define INFER_RULE(name) status infer_##name(const graph_node *, const tensor *const *, tensor *)
/* elementwise.c */
INFER_RULE(to_bool);
INFER_RULE(broadcast);
INFER_RULE(compare);
INFER_RULE(bit_shift);
INFER_RULE(pow);
INFER_RULE(prelu);
INFER_RULE(where);
INFER_RULE(clip);
INFER_RULE(gelu);
INFER_RULE(cast);
INFER_RULE(cast_like);
INFER_RULE(bit_cast);
INFER_RULE(along_axis);
INFER_RULE(cum_sum);
INFER_RULE(trilu);
/* detection.c */
INFER_RULE(non_max_suppression);
INFER_RULE(roi_align);
INFER_RULE(deform_conv);
/* signal.c */
INFER_RULE(dft);
INFER_RULE(stft);
INFER_RULE(window);
INFER_RULE(mel_weight_matrix);
/* recurrent.c */
INFER_RULE(recurrent);
/* reduce.c */
INFER_RULE(reduce);
INFER_RULE(arg_reduce);
/* view.c */
INFER_RULE(shape);
INFER_RULE(size);
INFER_RULE(reshape);
INFER_RULE(flatten);
INFER_RULE(squeeze);
INFER_RULE(unsqueeze);
INFER_RULE(transpose);
INFER_RULE(depth_to_space);
INFER_RULE(space_to_depth);
INFER_RULE(reverse_sequence);
/* rearrange.c */
INFER_RULE(expand);
INFER_RULE(tile);
INFER_RULE(concat);
INFER_RULE(split);
INFER_RULE(slice);
INFER_RULE(pad);
/* generate.c */
INFER_RULE(constant_of_shape);
INFER_RULE(eye_like);
INFER_RULE(range);
INFER_RULE(one_hot);
/* resize.c */
INFER_RULE(resize);
INFER_RULE(upsample);
INFER_RULE(grid_sample);
/* gather.c */
INFER_RULE(gather);
INFER_RULE(gather_elements);
INFER_RULE(gather_nd);
INFER_RULE(scatter_elements);
INFER_RULE(scatter_nd);
/* select.c */
INFER_RULE(top_k);
INFER_RULE(trees);
INFER_RULE(squared_distance);
INFER_RULE(couple);
INFER_RULE(non_zero);
INFER_RULE(compress);
INFER_RULE(unique);
/* matmul.c */
INFER_RULE(matmul);
INFER_RULE(matmul_integer);
INFER_RULE(qlinear_matmul);
INFER_RULE(gemm);
INFER_RULE(det);
/* einsum.c */
INFER_RULE(einsum);
/* convolution.c */
INFER_RULE(conv);
INFER_RULE(conv_integer);
INFER_RULE(qlinear_conv);
INFER_RULE(conv_transpose);
INFER_RULE(pool);
INFER_RULE(global_pool);
/* normalise.c */
INFER_RULE(batch_normalization);
INFER_RULE(instance_normalization);
INFER_RULE(layer_normalization);
INFER_RULE(group_normalization);
INFER_RULE(lrn);
INFER_RULE(mean_variance_normalization);
INFER_RULE(lp_normalization);
/* quantise.c */
INFER_RULE(quantize_linear);
INFER_RULE(dequantize_linear);
INFER_RULE(dynamic_quantize_linear);
#undef INFER_RULE

#endif
