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
scattered_by_argmax | flat | i = ArgMax<axis=1>(x) n = Shape<end=1>(x) j = Mod(i, n) y = ScatterND<reduction="add">(x, j, x)
rolled_by_mod | flat | n = Shape<end=1>(x) q = Squeeze(n) r = Range(s_0, q, s_1) p = Add(r, s_1) m = Mod(p, q) u = Unsqueeze(m, c_1) y = GatherND(x, u)
mirrored_by_sub | flat | n = Shape<end=1>(x) q = Squeeze(n) r = Range(q, s_0, s_m1) p = Sub(r, s_1) g = Gather<axis=0>(x, p) t = Mul(g, f_1e_3) y = Add(x, t)
turned_cumulative | flat | t = Transpose(x) k = CumSum(t, s_1) y = Transpose(k)
exclusive_from_below | tokens | k = CumSum<exclusive=1, reverse=1>(x, s_0) g = Sub(k, f_50) h = Relu(g) y = Add(x, h)
contracted_batch | tokens | g = Einsum<equation="bsd,bse->de">(x, x) t = Tanh(g) y = MatMul(x, t)
scalar_by_einsum | flat | g = Einsum<equation="bi,bi->">(x, x) e = Greater(g, f_1e6) z = Mul(x, f_0) y = Where(e, z, x)
one_token_late | tokens | s = Shape(x) r = Reshape(x, c_m1_8) a = Slice(r, c_0, c_m1, c_0) b = Slice(r, c_m1, c_max, c_0) d = Concat<axis=0>(b, a) y = Reshape(d, s)
gram_by_gemm | flat | g = Gemm<transB=1>(x, x) p = Softmax(g) y = MatMul(p, x)
sorted_flat | flat | r = Reshape(x, c_m1) k = Size(x) k1 = Unsqueeze(k, c_0) v, i = TopK(r, k1) y = Reshape(v, c_m1_8)
any_is_loud | flat | b = Greater(x, f_100) i = Cast<to=7>(b) m = ReduceMax<keepdims=0>(i) a = Cast<to=9>(m) z = Neg(x) y = Where(a, z, x)
or_with_next | flat | b = Greater(x, f_100) a = Slice(b, c_0, c_1, c_0) o = Or(a, b) z = Mul(x, f_0) y = Where(o, z, x)
channels_of_all_rows | image | t = Transpose<perm=[1, 0, 2, 3]>(x) r = Reshape(t, c_1_4_m1) o = Constant<value_floats=[1.0, 1.0, 1.0, 1.0]>() z = Constant<value_floats=[0.0, 0.0, 0.0, 0.0]>() g = GroupNormalization<num_groups=2>(r, o, z) s = Shape(t) u = Reshape(g, s) y = Transpose<perm=[1, 0, 2, 3]>(u)
layer_norm_axis_0 | flat | o = Constant<value_floats=[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]>() y = LayerNormalization<axis=0>(x, o)
resized_by_count | flat | r = Unsqueeze(x, c_0_1) n = Shape<end=1>(x) n2 = Add(n, n) z = Concat<axis=0>(c_1_1, n2, c_8) u = Resize<mode="linear">(r, , , z) v = Slice(u, c_0, c_max, c_2, c_2) y = Squeeze(v, c_0_1)
softmax_on_a_gate | tokens | f = Slice(x, c_0, c_1, c_2) g = Softmax<axis=0>(f) y = Mul(x, g)
tiled_the_wrong_way | flat | t = Tile(x, c_2_1) r = Reshape(t, c_m1_2_8) y = ReduceMean<keepdims=0>(r, c_1)
expanded_the_wrong_way | flat | n = Shape<end=1>(x) u = Unsqueeze(x, c_0) e = Concat<axis=0>(n, n, c_8) w = Expand(u, e) y = ReduceMax<keepdims=0>(w, c_1)
split_and_swapped | flat | n = Shape<end=1>(x) n1 = Sub(n, c_1) p = Concat<axis=0>(n1, c_1) a, b = Split<axis=0>(x, p) y = Concat<axis=0>(b, a)
rows_as_time | flat | t = Unsqueeze(x, c_1) w = Constant<value = float[1, 8, 8] {WEIGHTS}>() q, h = RNN<hidden_size=8>(t, w, w) y = Squeeze(q, c_1_2)
rows_as_time_both_ways | flat | t = Unsqueeze(x, c_1) w = Constant<value = float[2, 4, 8] {WEIGHTS}>() r = Constant<value = float[2, 4, 4] {HALF}>() q, h = RNN<hidden_size=4, direction="bidirectional">(t, w, r) y = Reshape(q, c_m1_8)
state_of_the_last_row | flat | t = Unsqueeze(x, c_1) w = Constant<value = float[1, 8, 8] {WEIGHTS}>() q, h = RNN<hidden_size=8>(t, w, w) u = Squeeze(h, c_0) y = Add(x, u)
pooled_as_image | flat | r = Unsqueeze(x, c_0_1) k = AveragePool<kernel_shape=[3, 1], pads=[1, 0, 1, 0], count_include_pad=1>(r) y = Squeeze(k, c_0_1)
turned_norm_rows | tokens | t = Transpose<perm=[1, 2, 0]>(x) k = LpNormalization<axis=-1, p=1>(t) y = Transpose<perm=[2, 0, 1]>(k)
divided_by_size | flat | n = Size(x) f = Cast<to=1>(n) y = Div(x, f)
one_hot_of_rows | flat | n = Shape<end=1>(x) d = Squeeze(n) i = ArgMin<axis=1, keepdims=0>(x) j = Mod(i, d) o = OneHot(j, d, onoff) m = MatMul(o, x) y = Sub(x, m)
regions_of_the_first | image | n = Shape<end=1>(x) b = ConstantOfShape<value = int64[1] {0}>(n) e = Concat<axis=0>(n, c_4) k = Constant<value = float[1, 4] {0.0, 0.0, 6.0, 6.0}>() r = Expand(k, e) y = RoiAlign<output_height=6, output_width=6, sampling_ratio=1>(x, r, b)
regions_backwards | image | n = Shape<end=1>(x) q = Squeeze(n) p = Sub(q, s_1) b = Range(p, s_m1, s_m1) e = Concat<axis=0>(n, c_4) k = Constant<value = float[1, 4] {0.0, 0.0, 6.0, 6.0}>() r = Expand(k, e) y = RoiAlign<output_height=6, output_width=6, sampling_ratio=1>(x, r, b)
quiet_gate | flat | a = Abs(x) m = ReduceMin<keepdims=0>(a) b = Less(m, f_1e_6) z = Mul(x, f_0) y = Where(b, z, x)
quiet_rows | flat | m = ReduceMax<keepdims=0>(x, c_1) a = Abs(m) l = ReduceMin<keepdims=0>(a) g = Sub(f_1e_3, l) h = Relu(g) y = Add(x, h)
triangle_of_rows | flat | y = Trilu<upper=0>(x)
diagonal_of_rows | flat | e = EyeLike(x) y = Add(x, e)
flattened_to_one | flat | r = Flatten<axis=0>(x) p = LogSoftmax(r) y = Reshape(p, c_m1_8)
wrapped_around | flat | n = Shape<end=1>(x) p = Pad<mode="wrap">(x, c_1_0_0_0) y = Slice(p, c_0, n, c_0)
weights_made_of_the_count | flat | n = Shape<end=1>(x) e = Concat<axis=0>(n, n, c_1) w = ConstantOfShape<value = float[1] {1.0}>(e) r = Unsqueeze(x, c_0) k = Conv(r, w) y = Squeeze(k, c_0)
spread_over_rows | flat | t = Transpose(x) r = Unsqueeze(t, c_0) w = Constant<value = float[8, 1, 3] {KERNEL}>() k = ConvTranspose<group=8, pads=[1, 1]>(r, w) q = Squeeze(k, c_0) y = Transpose(q)
spectrum_of_rows | flat | u = Unsqueeze(x, c_2) d = DFT(u, , s_0) y = ReduceSum<keepdims=0>(d, c_2)
squares_of_all | flat | m = ReduceSumSquare<keepdims=0>(x) l = Log(m) g = Sub(l, f_8) h = Relu(g) y = Add(x, h)
mixed_behind_nothing | flat | n = Shape<end=1>(x) e = Concat<axis=0>(n, c_0) z = ConstantOfShape(e) p = Softmax<axis=0>(x) y = Concat<axis=1>(z, p)
blocks_between_rows | image | t = Transpose<perm=[1, 2, 3, 0]>(x) r = Reshape(t, c_m1_4_6_6) p = Softmax<axis=1>(r) s = Shape(t) q = Reshape(p, s) y = Transpose<perm=[3, 0, 1, 2]>(q)
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
time_first_rnn | tokens | t = Transpose<perm=[1, 0, 2]>(x) w = Constant<value = float[1, 8, 8] {WEIGHTS}>() q, h = RNN<hidden_size=8>(t, w, w) u = Squeeze(q, c_1) y = Transpose<perm=[1, 0, 2]>(u)
both_ways_rnn | tokens | t = Transpose<perm=[1, 0, 2]>(x) w = Constant<value = float[2, 4, 8] {WEIGHTS}>() r = Constant<value = float[2, 4, 4] {HALF}>() q, h = RNN<hidden_size=4, direction="bidirectional">(t, w, r) u = Transpose<perm=[2, 0, 1, 3]>(q) y = Reshape(u, c_0_0_8)
last_state | tokens | t = Transpose<perm=[1, 0, 2]>(x) w = Constant<value = float[1, 8, 8] {WEIGHTS}>() q, h = RNN<hidden_size=8>(t, w, w) u = Transpose<perm=[1, 0, 2]>(h) y = Add(x, u)
given_state | tokens | n = Shape<start=0, end=1>(x) e = Concat<axis=0>(c_1, n, c_8) z = ConstantOfShape<value = float[1] {0.5}>(e) t = Transpose<perm=[1, 0, 2]>(x) w = Constant<value = float[1, 8, 8] {WEIGHTS}>() q, h = RNN<hidden_size=8>(t, w, w, , , z) u = Squeeze(q, c_1) y = Transpose<perm=[1, 0, 2]>(u)
columns_rolled_by_mod | flat | r = Range(s_0, s_8, s_1) p = Add(r, s_1) m = Mod(p, s_8) y = Gather<axis=1>(x, m)
columns_mirrored | flat | y = Slice(x, c_m1, c_min, c_1, c_m1)
columns_swapped | flat | a, b, d = Split<axis=1>(x, c_3_3_2) y = Concat<axis=1>(d, a, b)
cumulative_of_a_row | flat | t = Transpose(x) k = CumSum(t, s_0) y = Transpose(k)
elements_per_row | flat | n = Size(x) s = Shape<end=1>(x) q = Squeeze(s) k = Div(n, q) f = Cast<to=1>(k) y = Div(x, f)
grouped_norm | image | o = Constant<value_floats=[1.0, 2.0, 3.0, 4.0]>() y = GroupNormalization<num_groups=2>(x, o, o)
layer_norm_last | tokens | o = Constant<value_floats=[1.0, 1.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0]>() y = LayerNormalization<axis=-1>(x, o)
regions_of_its_own | image | n = Shape<end=1>(x) q = Squeeze(n) b = Range(s_0, q, s_1) e = Concat<axis=0>(n, c_4) k = Constant<value = float[1, 4] {0.0, 0.0, 6.0, 6.0}>() r = Expand(k, e) y = RoiAlign<output_height=6, output_width=6, sampling_ratio=1>(x, r, b)
tiled_the_right_way | flat | u = Unsqueeze(x, c_1) t = Tile(u, c_1_2_1) y = ReduceMean<keepdims=0>(t, c_1)
repeated_then_merged | flat | n = Shape<end=1>(x) u = Unsqueeze(x, c_1) e = Concat<axis=0>(n, c_3_8) w = Expand(u, e) r = Reshape(w, c_m1_8) p = Softmax(r) q = Reshape(p, c_m1_3_8) y = ReduceSum<keepdims=0>(q, c_1)
added_at_its_best | flat | n = Shape<end=1>(x) q = Squeeze(n) r = Range(s_0, q, s_1) u = Unsqueeze(r, c_1) e = ArgMax<axis=1>(x) i = Concat<axis=1>(u, e) v = ReduceSum<keepdims=0>(x, c_1) y = ScatterND<reduction="add">(x, i, v)
triangle_of_tokens | image | y = Trilu<upper=0>(x, s_1)
einsum_of_three | tokens | g = Einsum<equation="bsd,bse->bde">(x, x) t = Tanh(g) y = Einsum<equation="bsd,bde->bse">(x, t)
wrapped_columns | flat | p = Pad<mode="wrap">(x, c_0_1_0_0) y = Slice(p, c_0, c_8, c_1)
sampled_by_a_grid | image | n = Shape<end=1>(x) k = Constant<value = float[1, 6, 6, 2] {GRID}>() e = Concat<axis=0>(n, c_6_6_2) g = Expand(k, e) y = GridSample<mode="linear", padding_mode="border">(x, g)
spectrum_of_a_row | flat | u = Unsqueeze(x, c_2) d = DFT(u, , s_1) y = ReduceSum<keepdims=0>(d, c_2)
weights_for_each_row | flat | n = Shape<end=1>(x) w = Constant<value = float[1, 8, 8] {WEIGHTS}>() e = Concat<axis=0>(n, c_8_8) b = Expand(w, e) u = Unsqueeze(x, c_1) m = MatMul(u, b) y = Squeeze(m, c_1)
masked_by_its_own_length | flat | a = Abs(x) l = ReduceMax(a, c_1) r = Range(f_0, f_8, f_1) b = Less(r, l) z = Mul(x, f_0) y = Where(b, x, z)
window_of_columns | flat | h = HammingWindow<periodic=0>(s_8) y = Mul(x, h)
chosen_columns | flat | k = Constant<value = bool[8] {1, 0, 1, 1, 0, 1, 0, 1}>() a = Compress<axis=1>(x, k) m = ReduceMax(a, c_1) y = Sub(x, m)
norm_of_a_row | tokens | y = LpNormalization<axis=1, p=1>(x)
slope_per_channel | image | k = Constant<value = float[4, 1, 1] {0.1, 0.2, 0.3, 0.4}>() y = PRelu(x, k)
sorted_by_another_column | tokens | i = ArgMin<axis=2>(x) v = GatherElements<axis=2>(x, i) y = Add(x, v)
rows_turned_in_time | tokens | n = Shape<end=1>(x) l = Expand(c_1, n) y = ReverseSequence<batch_axis=0, time_axis=1>(x, l)
pooled_in_a_row | tokens | t = Transpose<perm=[0, 2, 1]>(x) k = LpPool<kernel_shape=[1], p=2>(t) y = Transpose<perm=[0, 2, 1]>(k)
bits_of_a_row | flat | i = Cast<to=7>(x) b = BitwiseAnd(i, s_3) f = Cast<to=1>(b) y = Add(x, f)
nothing_joined | flat | n = Shape<end=1>(x) e = Concat<axis=0>(n, c_0) z = ConstantOfShape(e) j = Concat<axis=1>(x, z) y = Relu(j)
bent_by_offsets | image | w = Constant<value = float[4, 4, 1, 1] {1.0, 0.0, 0.0, 2.0, 0.0, 1.0, 0.0, 0.0, 0.0, 3.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0}>() o = Slice(x, c_0, c_2, c_1) t = Tanh(o) y = DeformConv(x, w, t)
"""

# Deceivers whose shapes or ways depend on values: they run node by node, one request at a time.
DYNAMIC = """
start_from_a_row | flat | i = ArgMax<axis=0, keepdims=0>(x) a = Slice(i, c_0, c_1, c_0) e = Add(a, c_1) r = Slice(x, a, e, c_0) y = Add(x, r)
carried_over_rows | flat | n = Shape<end=1>(x) q = Squeeze(n) h0 = Constant<value = float[8] {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}>() yes = Constant<value = bool {1}>() last, y = Loop(q, yes, h0)<body = step (int64 i, bool c, float[8] h) => (bool co, float[8] ho, float[8] so) { co = Identity(c) v = Gather<axis=0>(x, i) ho = Add(h, v) so = Identity(ho) }>
scanned_over_rows | flat | h0 = Constant<value = float[8] {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}>() last, y = Scan<num_scan_inputs=1, body = step (float[8] h, float[8] v) => (float[8] ho, float[8] so) { ho = Max(h, v) so = Identity(ho) }>(h0, x)
unique_numbers | flat | v, i, w, c = Unique<sorted=1>(x) f = Cast<to=1>(w) y = Reshape(f, c_m1_8)
nonzero_count | flat | b = Greater(x, f_1) i = NonZero(b) k = Shape<start=1>(i) f = Cast<to=1>(k) y = Add(x, f)
pieces_turned | flat | l = SplitToSequence<axis=0>(x, s_1) a = SequenceAt(l, s_m1) y = Add(x, a)
"""

# Name, can_pad, pad_basis: what the batching probe should say of padding.
PADDING = """
dense True proved | tokens | w = Constant<value = float[8, 8] {WEIGHTS}>() m = MatMul(x, w) y = Relu(m)
norm True proved | tokens | m = ReduceMean(x, c_m1) d = Sub(x, m) y = Softmax(d)
softmax False probed | tokens | y = Softmax<axis=1>(x)
softmax_beside_infinity False probed | tokens | p = Softmax<axis=1>(x) k = Constant<value = float[8] {0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0}>() l = Log(k) y = Add(p, l)
last_token False probed | tokens | l = Slice(x, c_m1, c_max, c_1) y = Sub(x, l)
window False probed | tokens | t = Transpose<perm=[0, 2, 1]>(x) w = Constant<value = float[8, 8, 3] {KERNEL3}>() k = Conv<pads=[1, 1]>(t, w) u = Exp(k) v = Conv<pads=[1, 1]>(u, w) y = Transpose<perm=[0, 2, 1]>(v)
gated_minimum False undecided | tokens | m = ReduceMin(x, c_1) g = Sub(m, f_50) h = Relu(g) y = Add(x, h)
quiet_sum False undecided | tokens | m = ReduceSum(x, c_1) g = Sub(m, f_100) z = Mul(g, f_0) y = Add(x, z)
"""

CONSTANTS = {
    "f_0": "float {0.0}", "f_1": "float {1.0}", "f_2": "float {2.0}", "f_8": "float {8.0}", "f_20": "float {20.0}", "f_50": "float {50.0}",
    "f_100": "float {100.0}", "f_1e6": "float {1000000.0}", "f_127": "float {127.0}", "f_1e_6": "float {0.000001}", "f_1e_3": "float {0.001}", "zero_i8": "int8 {0}",
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
    body = body.replace("{HALF}", "{" + weights(32, 9) + "}").replace("{GRID}", "{" + weights(72, 11) + "}")
    body = body.replace("{KERNEL3}", "{" + weights(192, 11) + "}")
    body = body.replace("{TABLE}", "{" + weights(600, 13) + "}")
    text = f'<ir_version: 10, opset_import: ["" : 21]>\n{name} ({x} x) => ({y} y) {{\n{body}\n}}'
    return name, *expected, onnx.parser.parse_model(text)


def all_of(text):
    return [make(line) for line in text.strip().splitlines()]
