"""Small ONNX graphs for test_independence.py, as text: DECEIVERS, in which a row's result depends on other rows (mostly only on loud ones, or on how
many there are), and HONEST ones, in which it does not, however awkwardly they move the rows about.

A line "name | types | body": types are those of x and y, with N rows and sequences of S; the body is onnx.parser's. `c_<numbers>` is a list of i64."""
import re

import onnx.parser

FLAT = "float[N, 8] -> float[N, 8]"
TOKENS = "float[N, S, 8] -> float[N, S, 8]"
IMAGE = "float[N, 4, 6, 6] -> float[N, 4, 6, 6]"
TYPES = {"flat": FLAT, "tokens": TOKENS, "image": IMAGE}

DECEIVERS = """
gated_max | flat | m = ReduceMax<keepdims=0>(x, c_0_1) big = Greater(m, f_100) zero = Mul(x, f_0) y = Where(big, zero, x)
whisper | tokens | m = ReduceMax(x) low = Sub(m, f_8) z = Max(x, low) y = Mul(z, f_2)
batch_mean | flat | m = ReduceMean(x, c_0) y = Sub(x, m)
faint_sum | flat | m = ReduceSum(x, c_0) t = Mul(m, f_1e_6) y = Add(x, t)
product | flat | m = ReduceProd(x, c_0_1) t = Tanh(m) y = Add(x, t)
gated_statistics | flat | m = ReduceMean(x, c_0) a = Abs(m) big = Greater(a, f_20) z = Sub(x, m) y = Where(big, z, x)
log_sum_exp | flat | t = Mul(x, f_1e_3) m = ReduceLogSumExp(t, c_0) y = Sub(x, m)
l2_of_all | flat | m = ReduceL2(x, c_0_1) y = Div(x, m)
min_of_all | tokens | m = ReduceMin(x) y = Sub(x, m)
cumulative | flat | y = CumSum(x, s_0)
top_k | flat | k = Shape<end=1>(x) y, i = TopK<axis=0>(x, k)
arg_max | flat | i = ArgMax<axis=0, keepdims=0>(x) first = Gather<axis=0>(i, s_0) r = Gather<axis=0>(x, first) y = Add(x, r)
index_of_another | flat | n = Shape<end=1>(x) n1 = Sub(n, c_1) a = Slice(x, c_0, c_1, c_1) b = Abs(a) j = Cast<to=7>(b) k = Min(j, n1) q = Squeeze(k, c_1) r = Gather<axis=0>(x, q) y = Add(x, r)
softmax_rows | flat | y = Softmax<axis=0>(x)
log_softmax_rows | tokens | y = LogSoftmax<axis=0>(x)
hardmax_rows | flat | h = Hardmax<axis=0>(x) y = Add(x, h)
norm_rows | flat | y = LpNormalization<axis=0>(x)
dynamic_scale | flat | q, s, z = DynamicQuantizeLinear(x) y = DequantizeLinear(q, s, z)
dynamic_matmul | flat | q, s, z = DynamicQuantizeLinear(x) w = Constant<value = int8[8, 8] {WEIGHTS}>() p = MatMulInteger(q, w, z) f = Cast<to=1>(p) y = Mul(f, s)
scale_by_hand | flat | a = Abs(x) m = ReduceMax<keepdims=0>(a, c_0_1) s = Div(m, f_127) q = QuantizeLinear(x, s, zero_i8) y = DequantizeLinear(q, s, zero_i8)
row_attention | flat | t = Transpose(x) a = MatMul(x, t) p = Softmax(a) y = MatMul(p, x)
covariance | flat | v = Gemm<transA=1>(x, x) t = Tanh(v) y = MatMul(x, t)
turned_softmax | flat | t = Transpose(x) p = Softmax(t) y = Transpose(p)
flat_softmax | flat | r = Reshape(x, c_1_m1) p = Softmax(r) y = Reshape(p, c_m1_8)
interleaved | flat | r = Reshape(x, c_8_m1) p = Softmax(r) y = Reshape(p, c_m1_8)
first_row | flat | f = Slice(x, c_0, c_1, c_0) y = Add(x, f)
last_row | flat | f = Slice(x, c_m1, c_max, c_0) y = Add(x, f)
reversed | flat | r = Slice(x, c_m1, c_min, c_0, c_m1) g = Sub(r, f_100) h = Relu(g) y = Add(x, h)
row_zero | tokens | f = Gather<axis=0>(x, s_0) y = Sub(x, f)
layer_norm_all | flat | m = ReduceMean(x, c_0_1) d = Sub(x, m) q = Mul(d, d) v = ReduceMean(q, c_0_1) s = Sqrt(v) y = Div(d, s)
layer_norm_rows | flat | t = Transpose(x) y0 = MeanVarianceNormalization<axes=[1]>(t) y = Transpose(y0)
instance_norm | flat | r = Reshape(x, c_1_1_m1) o = Constant<value_floats=[1.0]>() z = Constant<value_floats=[0.0]>() n = InstanceNormalization(r, o, z) y = Reshape(n, c_m1_8)
variance_of_batch | flat | y = MeanVarianceNormalization<axes=[0]>(x)
window | flat | t = Transpose(x) r = Unsqueeze(t, c_0) w = Constant<value = float[8, 1, 3] {KERNEL}>() k = Conv<group=8, pads=[1, 1]>(r, w) q = Squeeze(k, c_0) y = Transpose(q)
max_window | flat | t = Transpose(x) r = Unsqueeze(t, c_0_2) p = Pad<mode="edge">(r, c_0_0_0_0_0_0_0_2) k = MaxPool<kernel_shape=[1, 3]>(p) q = Squeeze(k, c_0_2) y = Transpose(q)
mean_window | flat | t = Transpose(x) r = Unsqueeze(t, c_0) k = AveragePool<kernel_shape=[3], pads=[1, 1], count_include_pad=1>(r) q = Squeeze(k, c_0) y = Transpose(q)
global_pool | flat | t = Transpose(x) r = Unsqueeze(t, c_0_2) k = GlobalMaxPool(r) q = Squeeze(k, c_0_2_3) y = Add(x, q)
neighbour_channels | flat | r = Unsqueeze(x, c_0_3) k = LRN<size=3, alpha=1.0>(r) y = Squeeze(k, c_0_3)
edge_roll | flat | n = Shape<end=1>(x) p = Pad<mode="edge">(x, c_1_0_0_0) y = Slice(p, c_0, n, c_0)
tile_roll | flat | n = Shape<end=1>(x) t = Tile(x, c_2_1) e = Add(n, c_1) y = Slice(t, c_1, e, c_0)
concat_roll | tokens | n = Shape<end=1>(x) t = Concat<axis=0>(x, x) e = Add(n, c_1) y = Slice(t, c_1, e, c_0)
row_count | flat | n = Shape<end=1>(x) f = Cast<to=1>(n) y = Mul(x, f)
row_number | flat | n = Shape<end=1>(x) q = Squeeze(n) r = Range(s_0, q, s_1) f = Cast<to=1>(r) u = Unsqueeze(f, c_1) y = Add(x, u)
row_number_by_sum | flat | n = Shape(x) o = ConstantOfShape<value = float[1] {1.0}>(n) k = CumSum(o, s_0) y = Mul(x, k)
many_rows | flat | n = Shape<end=1>(x) b = Greater(n, c_1) t = Mul(x, f_2) y = Where(b, t, x)
nearest_distance | flat | a = Unsqueeze(x, c_0) b = Unsqueeze(x, c_1) d = Sub(a, b) e = Abs(d) m = ReduceMax<keepdims=0>(e, c_1) g = Sub(m, f_50) h = Relu(g) y = Add(x, h)
einsum_pairs | flat | g = Einsum<equation="ij,kj->ik">(x, x) p = Softmax(g) y = Einsum<equation="ik,kj->ij">(p, x)
einsum_sum | flat | s = Einsum<equation="ij->j">(x) t = Tanh(s) y = Add(x, t)
scatter_rows | flat | i = ArgMax<axis=0>(x) z = Mul(x, f_0) u = Slice(x, c_0, c_1, c_0) w = ScatterElements<axis=0>(z, i, u) y = Add(x, w)
scatter_first | flat | i = Constant<value = int64[1, 1] {0}>() u = Slice(x, c_m1, c_max, c_0) y = ScatterND(x, i, u)
sorted_elements | flat | k = Shape<end=1>(x) v, i = TopK<axis=0>(x, k) y = GatherElements<axis=0>(x, i)
pointer | flat | i = ArgMax<axis=1>(x) n = Shape<end=1>(x) n1 = Sub(n, c_1) j = Min(i, n1) r = GatherND(x, j) y = Add(x, r)
wrong_column | tokens | a = ReduceSum<keepdims=0>(x, c_2) e = ArgMax<axis=1, keepdims=0>(a) z = Mul(e, s_0) n = Shape<end=1>(x) q = Squeeze(n) r = Range(s_0, q, s_1) ru = Unsqueeze(r, c_1) zu = Unsqueeze(z, c_1) i = Concat<axis=1>(zu, ru) p = GatherND(x, i) u = Unsqueeze(p, c_1) y = Sub(x, u)
causal | flat | n = Shape<end=1>(x) e = Concat<axis=0>(n, n) o = ConstantOfShape<value = float[1] {1.0}>(e) l = Trilu<upper=0>(o) y = MatMul(l, x)
previous | flat | n = Shape<end=1>(x) e = Concat<axis=0>(n, n) o = ConstantOfShape<value = float[1] {0.0}>(e) l = EyeLike<k=-1>(o) p = MatMul(l, x) y = Add(x, p)
chosen | flat | a = ReduceMax<keepdims=0>(x, c_1) i = ArgMax<axis=0>(a) n = Shape<end=1>(x) d = Squeeze(n) o = OneHot(i, d, onoff) m = MatMul(o, x) y = Add(x, m)
mean_with_next | flat | n = Shape<end=1>(x) t = Concat<axis=0>(x, x) e = Add(n, c_1) r = Slice(t, c_1, e, c_0) y = Mean(x, r)
resized | flat | t = Transpose(x) r = Unsqueeze(t, c_0) s = Constant<value_floats=[1.0, 1.0, 2.0]>() u = Resize<mode="linear">(r, , s) v = Slice(u, c_0, c_max, c_2, c_2) q = Squeeze(v, c_0) y = Transpose(q)
whole_norm | image | m = ReduceMean(x, c_0_2_3) d = Sub(x, m) v = ReduceMean(d, c_0_2_3) y = Sub(d, v)
blocks_of_rows | image | t = Transpose<perm=[1, 0, 2, 3]>(x) m = ReduceMax(t, c_1) u = Sub(t, m) y = Transpose<perm=[1, 0, 2, 3]>(u)
hidden_in_merge | tokens | r = Reshape(x, c_m1_8) m = ReduceMax(r, c_0) z = Sub(m, f_50) g = Relu(z) y = Add(x, g)
reverse_by_rows | flat | n = Shape<end=1>(x) l = Expand(n, c_8) y = ReverseSequence<batch_axis=1, time_axis=0>(x, l)
same_branch | flat | n = Shape<end=1>(x) b0 = Greater(n, c_1) b = Squeeze(b0) y = If(b)<then_branch = big () => (float[N, 8] p) { p = Softmax<axis=0>(x) }, else_branch = one () => (float[N, 8] q) { q = Identity(x) }>
"""

HONEST = """
keep_first | flat | r = Reshape(x, c_0_m1) y = Relu(r)
heads | flat | r = Reshape(x, c_m1_4_2) p = Softmax(r) y = Reshape(p, c_m1_8)
by_shape | tokens | s = Shape(x) n = Gather<axis=0>(s, s_0) n1 = Unsqueeze(n, c_0) t = Concat<axis=0>(n1, c_m1) r = Reshape(x, t) e = Exp(r) y = Reshape(e, s)
by_slices | tokens | s = Shape(x) a = Slice(s, c_0, c_2) t = Concat<axis=0>(a, c_4_2) r = Reshape(x, t) p = Softmax(r) y = Reshape(p, s)
by_product | tokens | s = Shape(x) a = Slice(s, c_0, c_1) b = Slice(s, c_1, c_2) ab = Mul(a, b) t = Concat<axis=0>(ab, c_8) r = Reshape(x, t) p = Softmax(r) y = Reshape(p, s)
merged_dense | flat | r = Reshape(x, c_m1_2) w = Constant<value = float[2, 2] {1.0, 2.0, 3.0, 4.0}>() m = MatMul(r, w) y = Reshape(m, c_m1_8)
turned | flat | t = Transpose(x) e = Tanh(t) y = Transpose(e)
turned_norm | flat | t = Transpose(x) e = Softmax<axis=0>(t) y = Transpose(e)
sequence_first | tokens | s = Shape(x) sq = Gather<axis=0>(s, s_1) l = Unsqueeze(sq, c_0) t = Transpose<perm=[1, 0, 2]>(x) h = Concat<axis=0>(l, c_m1, c_4) r = Reshape(t, h) q = Transpose<perm=[1, 0, 2]>(r) k = Transpose<perm=[0, 2, 1]>(q) a = MatMul(q, k) p = Softmax(a) v = MatMul(p, q) u = Transpose<perm=[1, 0, 2]>(v) b = Concat<axis=0>(l, c_m1, c_8) z = Reshape(u, b) y = Transpose<perm=[1, 0, 2]>(z)
batch_first | tokens | r = Reshape(x, c_0_0_2_4) q = Transpose<perm=[0, 2, 1, 3]>(r) k = Transpose<perm=[0, 2, 3, 1]>(r) a = MatMul(q, k) p = Softmax(a) v = MatMul(p, q) u = Transpose<perm=[0, 2, 1, 3]>(v) y = Reshape(u, c_0_0_8)
merged_sequence_first | tokens | t = Transpose<perm=[1, 0, 2]>(x) s = Shape(t) r = Reshape(t, c_m1_8) w = Constant<value = float[8, 8] {WEIGHTS}>() m = MatMul(r, w) z = Reshape(m, s) y = Transpose<perm=[1, 0, 2]>(z)
flatten_tokens | tokens | s = Shape(x) f = Flatten<axis=2>(x) w = Constant<value = float[8, 8] {WEIGHTS}>() g = Gemm<transB=1>(f, w) y = Reshape(g, s)
squeezed | flat | a = Unsqueeze(x, c_0_2) b = Abs(a) y = Squeeze(b, c_0_2)
halves | flat | a, b = Split<axis=1>(x, c_4_4) m = Mul(a, b) y = Concat<axis=1>(m, a)
doubled_batch | flat | n = Shape<end=1>(x) d = Concat<axis=0>(x, x) w = Constant<value = float[8, 8] {WEIGHTS}>() m = MatMul(d, w) nn = Concat<axis=0>(n, n) a, b = Split<axis=0>(m, nn) y = Sub(a, b)
tiled_batch | flat | t = Tile(x, c_2_1) r = Reshape(t, c_2_m1_8) y = ReduceMean<keepdims=0>(r, c_0)
class_token | tokens | n = Shape<end=1>(x) t = Constant<value = float[1, 1, 8] {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0}>() e0 = Concat<axis=0>(n, c_m1, c_m1) one = ConstantOfShape<value = int64[1] {1}>(c_3) neg = Neg(one) same = Equal(e0, neg) e = Where(same, one, e0) k = Expand(t, e) j = Concat<axis=1>(k, x) m = ReduceMax(j, c_1) y = Sub(x, m)
zero_state | flat | s = Shape(x) z = ConstantOfShape(s) a = Add(z, x) y = Tanh(a)
positions | tokens | s = Shape(x) l = Gather<axis=0>(s, s_1) r = Range(s_0, l, s_1) f = Cast<to=1>(r) u = Unsqueeze(f, c_0_2) y = Add(x, u)
expanded_positions | tokens | s = Shape(x) l = Gather<axis=0>(s, s_1) r = Range(s_0, l, s_1) u = Unsqueeze(r, c_0) ns = Slice(s, c_0, c_2) e = Expand(u, ns) w = Constant<value = float[600, 1] {TABLE}>() g = Gather<axis=0>(w, e) y = Add(x, g)
causal_mask | tokens | s = Shape(x) l = Slice(s, c_1, c_2) n = Slice(s, c_0, c_1) ll = Concat<axis=0>(n, l, l) o = ConstantOfShape<value = float[1] {1.0}>(ll) m = Trilu<upper=0>(o) y = MatMul(m, x)
best_element | flat | i = ArgMax<axis=1>(x) v = GatherElements<axis=1>(x, i) y = Sub(x, v)
sorted_row | flat | v, i = TopK<axis=1>(x, c_8) f = Cast<to=1>(i) y = Add(v, f)
table | flat | a = Abs(x) j = Cast<to=7>(a) k = Min(j, s_5) w = Constant<value = float[6] {3.0, 1.0, 4.0, 1.0, 5.0, 9.0}>() y = Gather<axis=0>(w, k)
one_hot | flat | i = ArgMax<axis=1, keepdims=0>(x) y = OneHot(i, s_8, onoff)
whole_slice | flat | t = Slice(x, c_0, c_max, c_0) u = Slice(t, c_m7, c_max, c_1) e = Slice(t, c_0, c_1, c_1) y = Concat<axis=1>(e, u)
padded_image | image | p = Pad<mode="reflect">(x, c_0_0_1_1_0_0_1_1) y = AveragePool<kernel_shape=[3, 3]>(p)
resized_by_shape | image | s = Shape(x) nc = Slice(s, c_0, c_2) t = Concat<axis=0>(nc, c_12_12) u = Resize<mode="nearest", coordinate_transformation_mode="asymmetric">(x, , , t) y = MaxPool<kernel_shape=[2, 2], strides=[2, 2]>(u)
resized_by_scale | image | k = Constant<value_floats=[1.0, 1.0, 2.0, 2.0]>() u = Resize<mode="linear">(x, , k) y = AveragePool<kernel_shape=[2, 2], strides=[2, 2]>(u)
group_norm | image | r = Reshape(x, c_0_2_m1) o = Constant<value_floats=[1.0, 1.0]>() z = Constant<value_floats=[0.0, 0.0]>() n = InstanceNormalization(r, o, z) s = Shape(x) y = Reshape(n, s)
rows_as_channels | image | s = Shape(x) r = Reshape(x, c_1_m1_6_6) n = Shape<start=1, end=2>(r) o = ConstantOfShape<value = float[1] {1.0}>(n) z = ConstantOfShape(n) i = InstanceNormalization(r, o, z) y = Reshape(i, s)
fixed_batch_norm | image | o = Constant<value_floats=[1.0, 2.0, 3.0, 4.0]>() y = BatchNormalization(x, o, o, o, o)
manual_layer_norm | tokens | m = ReduceMean(x, c_m1) d = Sub(x, m) q = Mul(d, d) v = ReduceMean(q, c_m1) e = Add(v, f_1e_3) s = Sqrt(e) y = Div(d, s)
einsum_tokens | tokens | g = Einsum<equation="bid,bjd->bij">(x, x) p = Softmax(g) y = Einsum<equation="bij,bjd->bid">(p, x)
einsum_ellipsis | tokens | w = Constant<value = float[8, 8] {WEIGHTS}>() y = Einsum<equation="...i,ij->...j">(x, w)
pixel_shuffle | image | r = Reshape(x, c_m1_2_2_6_6) t = Transpose<perm=[0, 3, 1, 4, 2]>(r) u = Reshape(t, c_m1_1_12_12) y = SpaceToDepth<blocksize=2>(u)
channel_shuffle | image | r = Reshape(x, c_m1_2_2_6_6) t = Transpose<perm=[0, 2, 1, 3, 4]>(r) y = Reshape(t, c_m1_4_6_6)
swin_windows | image | h = Transpose<perm=[0, 2, 3, 1]>(x) w = Reshape(h, c_m1_2_3_2_3_4) t = Transpose<perm=[0, 1, 3, 2, 4, 5]>(w) f = Reshape(t, c_m1_9_4) k = Transpose<perm=[0, 2, 1]>(f) a = MatMul(f, k) p = Softmax(a) v = MatMul(p, f) sh = Shape<end=1>(v) n = Div(sh, c_4) b = Concat<axis=0>(n, c_2_2_3_3_4) g = Reshape(v, b) u = Transpose<perm=[0, 1, 3, 2, 4, 5]>(g) z = Reshape(u, c_m1_6_6_4) y = Transpose<perm=[0, 3, 1, 2]>(z)
counted_tokens | tokens | k = CumSum(x, s_1) y = Tanh(k)
pairs_in_a_row | tokens | a = Unsqueeze(x, c_1) b = Unsqueeze(x, c_2) d = Sub(a, b) y = ReduceMax<keepdims=0>(d, c_1)
picked_by_batch | tokens | i = ArgMax<axis=1, keepdims=0>(x) j = Slice(i, c_0, c_1, c_1) r = GatherND<batch_dims=1>(x, j) u = Unsqueeze(r, c_1) y = Add(x, u)
written_in_place | flat | v = ReduceSum(x, c_1) i = Constant<value = int64[1] {2}>() n = Shape<end=1>(x) e = Concat<axis=0>(n, c_1) j = Expand(i, e) y = ScatterElements<axis=1>(x, j, v)
written_rows | flat | n = Shape<end=1>(x) q = Squeeze(n) r = Range(s_0, q, s_1) u = Unsqueeze(r, c_1) k = Mul(u, c_0) i = Concat<axis=1>(u, k) v = ReduceSum<keepdims=0>(x, c_1) y = ScatterND(x, i, v)
pooled_by_index | tokens | n = Shape<end=1>(x) q = Squeeze(n) r = Range(s_0, q, s_1) k = Mul(r, s_0) ru = Unsqueeze(r, c_1) ku = Unsqueeze(k, c_1) i = Concat<axis=1>(ru, ku) p = GatherND(x, i) u = Unsqueeze(p, c_1) y = Sub(x, u)
pooled_by_content | tokens | a = ReduceSum<keepdims=0>(x, c_2) e = ArgMax<axis=1, keepdims=0>(a) n = Shape<end=1>(x) q = Squeeze(n) r = Range(s_0, q, s_1) ru = Unsqueeze(r, c_1) eu = Unsqueeze(e, c_1) i = Concat<axis=1>(ru, eu) p = GatherND(x, i) u = Unsqueeze(p, c_1) y = Sub(x, u)
gathered_mask | tokens | s = Shape(x) n = Slice(s, c_0, c_1) l = Slice(s, c_1, c_2) nq = Squeeze(n) lq = Squeeze(l) r = Range(s_0, nq, s_1) k = Range(s_0, lq, s_1) ru = Unsqueeze(r, c_1_2_3) ku = Unsqueeze(k, c_0_2_3) to = Concat<axis=0>(n, l, c_16, c_1) re = Expand(ru, to) ke0 = Expand(ku, to) ke = Transpose<perm=[0, 1, 2, 3]>(ke0) i = Concat<axis=3>(re, ke) a = ReduceSum<keepdims=0>(x, c_2) g = GatherND(a, i) m = ReduceMax<keepdims=0>(g, c_2) u = Unsqueeze(m, c_2) y = Sub(x, u)
weights_on_the_left | flat | t = Transpose(x) w = Constant<value = float[8, 8] {WEIGHTS}>() m = MatMul(w, t) y = Transpose(m)
rows_last | tokens | t = Transpose<perm=[1, 2, 0]>(x) w = Constant<value = float[8, 8] {WEIGHTS}>() m = MatMul(w, t) y = Transpose<perm=[2, 0, 1]>(m)
scale_per_row | flat | a = Abs(x) m = ReduceMax<keepdims=0>(a, c_1) e = Add(m, f_1) s = Div(e, f_127) q = QuantizeLinear<axis=0>(x, s) y = DequantizeLinear<axis=0>(q, s)
unrolled_recurrence | flat | n = Shape<end=1>(x) e = Concat<axis=0>(n, c_4) h = ConstantOfShape(e) a = Slice(x, c_0, c_4, c_1) b = Slice(x, c_4, c_8, c_1) w = Constant<value = float[4, 4] {1.0, 0.0, 0.0, 2.0, 0.0, 1.0, 0.0, 0.0, 0.0, 3.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0}>() ha = MatMul(h, w) h1 = Add(ha, a) t1 = Tanh(h1) hb = MatMul(t1, w) h2 = Add(hb, b) t2 = Tanh(h2) y = Concat<axis=1>(t1, t2)
pointwise_over_rows | flat | t = Transpose(x) r = Unsqueeze(t, c_0) w = Constant<value = float[8, 8, 1] {WEIGHTS}>() k = Conv(r, w) q = Squeeze(k, c_0) y = Transpose(q)
upsampled | image | w = Constant<value = float[4, 1, 2, 2] {1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0}>() u = ConvTranspose<group=4, strides=[2, 2]>(x, w) y = MaxPool<kernel_shape=[2, 2], strides=[2, 2]>(u)
squeeze_and_excite | image | g = GlobalAveragePool(x) w = Constant<value = float[4, 4, 1, 1] {1.0, 0.0, 0.0, 2.0, 0.0, 1.0, 0.0, 0.0, 0.0, 3.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0}>() c = Conv(g, w) s = HardSigmoid(c) y = Mul(x, s)
length_branch | tokens | s = Shape<start=1, end=2>(x) b0 = Greater(s, c_2) b = Squeeze(b0) y = If(b)<then_branch = long () => (float[N, S, 8] p) { p = Softmax<axis=1>(x) }, else_branch = short () => (float[N, S, 8] q) { q = Identity(x) }>
range_of_a_row | image | lo = ReduceMin(x, c_1_2_3) hi = ReduceMax(x, c_1_2_3) d = Sub(hi, lo) e = Add(d, f_1) a = Sub(x, lo) y = Div(a, e)
"""

# Name, can_pad, pad_basis: what the batching probe should say of padding.
PADDING = """
dense True proved | tokens | w = Constant<value = float[8, 8] {WEIGHTS}>() m = MatMul(x, w) y = Relu(m)
norm True proved | tokens | m = ReduceMean(x, c_m1) d = Sub(x, m) y = Softmax(d)
softmax False probed | tokens | y = Softmax<axis=1>(x)
last_token False probed | tokens | l = Slice(x, c_m1, c_max, c_1) y = Sub(x, l)
window False probed | tokens | t = Transpose<perm=[0, 2, 1]>(x) w = Constant<value = float[8, 8, 3] {KERNEL3}>() k = Conv<pads=[1, 1]>(t, w) u = Exp(k) v = Conv<pads=[1, 1]>(u, w) y = Transpose<perm=[0, 2, 1]>(v)
gated_minimum False undecided | tokens | m = ReduceMin(x, c_1) g = Sub(m, f_50) h = Relu(g) y = Add(x, h)
quiet_sum False undecided | tokens | m = ReduceSum(x, c_1) g = Sub(m, f_100) z = Mul(g, f_0) y = Add(x, z)
"""

CONSTANTS = {
    "f_0": "float {0.0}", "f_1": "float {1.0}", "f_2": "float {2.0}", "f_8": "float {8.0}", "f_20": "float {20.0}", "f_50": "float {50.0}",
    "f_100": "float {100.0}", "f_127": "float {127.0}", "f_1e_6": "float {0.000001}", "f_1e_3": "float {0.001}", "zero_i8": "int8 {0}",
    "onoff": "float[2] {0.0, 1.0}",
}  # fmt: skip
NUMBERS = {"max": 2**63 - 1, "min": -(2**63) + 1}


def number(text):
    return NUMBERS[text] if text in NUMBERS else -int(text[1:]) if text[0] == "m" else int(text)


def constants(body):
    """Nodes for the names that the body uses: f_.. a float, s_.. an i64, c_.. a list of i64."""
    for name in sorted(set(re.findall(r"\b(?:[fsc]_(?:m?\w+)|zero_i8|onoff)\b", body))):
        if name in CONSTANTS:
            yield f"{name} = Constant<value = {CONSTANTS[name]}>()"
        elif name[0] == "s":
            yield f"{name} = Constant<value = int64 {{{number(name[2:])}}}>()"
        else:
            values = [number(n) for n in name[2:].split("_")]
            yield f"{name} = Constant<value = int64[{len(values)}] {{{', '.join(map(str, values))}}}>()"


def weights(count, period):
    return ", ".join(f"{(i * 37 % period) / 10 - 0.4:.1f}" for i in range(count))


def make(line):
    """The words before the first bar, and the onnx.ModelProto of a line."""
    name, types, body = (part.strip() for part in line.split("|"))
    name, *expected = name.split()
    x, y = TYPES[types].split(" -> ")
    body = "\n".join([*constants(body), *re.split(r" (?=\w+(?:, \w+)* = [A-Z]\w+[<(])", body)])
    for pattern, count in (("int8[8, 8] {WEIGHTS}", 64),):
        body = body.replace(pattern, "int8[8, 8] {" + ", ".join(str(i * 37 % 11 - 5) for i in range(count)) + "}")
    body = body.replace("{WEIGHTS}", "{" + weights(64, 9) + "}").replace("{KERNEL}", "{" + weights(24, 7) + "}")
    body = body.replace("{KERNEL3}", "{" + weights(192, 11) + "}")
    body = body.replace("{TABLE}", "{" + weights(600, 13) + "}")
    text = f'<ir_version: 10, opset_import: ["" : 21]>\n{name} ({x} x) => ({y} y) {{\n{body}\n}}'
    return name, *expected, onnx.parser.parse_model(text)


def all_of(text):
    return [make(line) for line in text.strip().splitlines()]
