#!/usr/bin/env python3
"""Small models as exporters write them, on Penstock's CPU engine beside ONNX Runtime, in alternating pairs.

    blocks.py [--program BUILD/bin/bench_models_run] [--only REGEX] [--threads 1] [--pairs 9] [--all] [--check]

Each is a few layers of an architecture that people serve, at its usual sizes, with random weights. Writes the rows above 1.3, or
all with --all. Needs numpy, onnx and onnxruntime.
"""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

import blocks_images as images
import blocks_layers as layers
import blocks_sequences as sequences
import operators
from cases import RANDOM, ints, number
from net import Net, block


def quantised():
    def quantise(n, x, scale, zero):
        return n.op("QuantizeLinear", x, number(scale), zero)

    def dequantise(n, x, scale, zero):
        return n.op("DequantizeLinear", x, number(scale), zero)

    def bytes_(*shape):
        return RANDOM.integers(-127, 128, shape).astype(np.int8)

    def qdq(n, x, zero, scale=.03):
        return dequantise(n, quantise(n, x, scale, zero), scale, zero)

    def qdq_conv(n, x, cin, cout, k, group=1):
        scales = np.full(cout, .3 / (127 * (cin // group * k * k) ** .5), np.float32)
        w = n.op("DequantizeLinear", bytes_(cout, cin // group, k, k), scales, np.zeros(cout, np.int8), axis=0)
        b = n.op("DequantizeLinear", RANDOM.integers(-99, 99, cout).astype(np.int32), scales * .03, np.zeros(cout, np.int32), axis=0)
        return n.op("Conv", x, w, b, group=group, pads=[k // 2] * 4, kernel_shape=[k, k])

    for kind, zero in (("u8", number(128, np.uint8)), ("s8", number(0, np.int8))):
        @block(f"QDQ inverted bottleneck {kind}", [1, 32, 28, 28])
        def _(n, x, zero=zero):
            x = qdq(n, x, zero)
            y = qdq(n, n.act(qdq_conv(n, x, 32, 192, 1), "Relu"), zero)
            y = qdq(n, n.act(qdq_conv(n, y, 192, 192, 3, 192), "Relu"), zero)
            y = qdq(n, qdq_conv(n, y, 192, 32, 1), zero)
            return qdq(n, n.op("Add", x, y), zero)

        @block(f"QDQ ResNet block {kind}", [1, 64, 28, 28])
        def _(n, x, zero=zero):
            x = qdq(n, x, zero)
            y = qdq(n, n.act(qdq_conv(n, x, 64, 64, 3), "Relu"), zero)
            y = qdq(n, qdq_conv(n, y, 64, 64, 3), zero)
            y = qdq(n, n.act(n.op("Add", x, y), "Relu"), zero)
            return qdq(n, n.op("GlobalAveragePool", y), zero)

        @block(f"QOperator CNN {kind}", [1, 3, 64, 64])
        def _(n, x, zero=zero):
            y = quantise(n, x, .03, zero)
            for cin, cout in ((3, 32), (32, 64)):
                w = (y, number(.03), zero, bytes_(cout, cin, 3, 3), np.full(cout, .002, np.float32), np.zeros(cout, np.int8), number(.03), zero,
                     RANDOM.integers(-99, 99, cout).astype(np.int32))
                y = n.op("QLinearConv", *w, pads=[1] * 4, strides=[2, 2], kernel_shape=[3, 3])
            return dequantise(n, y, .03, zero)

        @block(f"QDQ MLP {kind}", [16, 256])
        def _(n, x, zero=zero):
            for c, d in ((256, 512), (512, 256)):
                w = dequantise(n, bytes_(c, d), .3 / (127 * c ** .5), number(0, np.int8))
                x = n.act(n.op("Add", n.op("MatMul", qdq(n, x, zero), w), n.weights(d)), "Relu")
            return qdq(n, x, zero)

    @block("dynamically quantised MLP", [16, 256])
    def _(n, x):
        for c, d in ((256, 1024), (1024, 256)):
            q, s, z = n.op("DynamicQuantizeLinear", x, outputs=3)
            y = n.op("Cast", n.op("MatMulInteger", q, bytes_(c, d), z, number(0, np.int8)), to=TensorProto.FLOAT)
            x = n.act(n.op("Add", n.op("Mul", y, n.op("Mul", s, number(.01))), n.weights(d)), "Relu")
        return x


def halves():
    class Half(Net):
        def keep(self, array):
            array = np.asarray(array)
            return super().keep(array.astype(np.float16) if array.dtype in (np.float32, np.float64) else array)

    def block16(name, shape):
        return block(name, shape, Half, dtype=np.float16)

    @block16("f16 ResNet stage", [1, 64, 28, 28])
    def _(n, x):
        y = n.conv(n.act(n.conv(x, 64, 64, 3), "Relu"), 64, 64, 3)
        return n.act(n.op("Add", x, y), "Relu")

    @block16("f16 EfficientNet block", [1, 40, 28, 28])
    def _(n, x):
        y = n.act(n.conv(n.act(n.conv(x, 40, 240), "silu"), 240, 240, 5, group=240), "silu")
        return n.op("Add", x, n.conv(n.se(y, 240, 10, "Sigmoid", "silu"), 240, 40))

    @block16("f16 ViT block", [1, 50, 384])
    def _(n, x):
        x = n.op("Add", x, n.attention(n.norm(x, 384), 50, 384, 6))
        return n.op("Add", x, n.mlp(n.norm(x, 384), 384, 1536))


def odds():
    """What exporters write around the layers: masks, positions, shapes as values, decoding."""
    @block("causal mask and positions", [2, 24], dtype=np.int64)
    def _(n, x):
        size = n.op("Shape", x)
        t = n.op("Gather", size, number(1, np.int64), axis=0)
        at = n.op("Range", number(0, np.int64), t, number(1, np.int64))
        causal = n.op("LessOrEqual", n.op("Unsqueeze", at, ints(0)), n.op("Unsqueeze", at, ints(1)))
        padded = n.op("Equal", x, number(0, np.int64))
        mask = n.op("And", n.op("Unsqueeze", causal, ints(0)), n.op("Unsqueeze", n.op("Not", padded), ints(1)))
        e = n.op("Add", n.op("Gather", n.weights(100, 64), x), n.op("Gather", n.weights(100, 64), at))
        s = n.op("MatMul", e, n.turn(e, 0, 2, 1))
        s = n.op("Where", mask, s, number(-1e9))
        return n.op("MatMul", n.op("Softmax", s, axis=-1), e)

    @block("RoBERTa positions by CumSum", [2, 24], dtype=np.int64)
    def _(n, x):
        real = n.op("Cast", n.op("Not", n.op("Equal", x, number(1, np.int64))), to=TensorProto.INT32)
        at = n.op("Mul", n.op("CumSum", real, number(1, np.int64)), real)
        at = n.op("Add", n.op("Cast", at, to=TensorProto.INT64), number(1, np.int64))
        return n.norm(n.op("Add", n.op("Gather", n.weights(100, 64), x), n.op("Gather", n.weights(64, 64), at)), 64)

    @block("mean over the tokens that are real", [3, 16], dtype=np.int64)
    def _(n, x):
        real = n.op("Cast", n.op("Greater", x, number(40, np.int64)), to=TensorProto.FLOAT)
        real = n.op("Expand", n.op("Unsqueeze", real, ints(-1)), n.op("Shape", n.op("Gather", n.weights(100, 96), x)))
        e = n.op("Gather", n.weights(100, 96), x)
        mean = n.op("Div", n.op("ReduceSum", n.op("Mul", e, real), ints(1)), n.op("Clip", n.op("ReduceSum", real, ints(1)), number(1e-9)))
        return n.op("Div", mean, n.op("Expand", n.op("Clip", n.op("ReduceL2", mean, axes=[1]), number(1e-12)), n.op("Shape", mean)))

    @block("attention by Einsum", [1, 50, 128])
    def _(n, x):
        q, k, v = (n.op("Einsum", x, n.weights(128, 4, 32), equation="btc,chd->bthd") for _ in range(3))
        s = n.op("Softmax", n.op("Einsum", q, k, equation="bqhd,bkhd->bhqk"), axis=-1)
        return n.op("Einsum", n.op("Einsum", s, v, equation="bhqk,bkhd->bqhd"), n.weights(4, 32, 128), equation="bqhd,hdc->bqc")

    @block("relative positions by Gather and Pad (VITS)", [1, 4, 40, 32])
    def _(n, x):
        r = n.op("MatMul", x, n.turn(n.weights(1, 1, 79, 32), 0, 1, 3, 2))
        r = n.shape(n.op("Pad", r, ints(0, 0, 0, 0, 0, 0, 0, 1)), 1, 4, 40 * 80)
        r = n.shape(n.op("Pad", r, ints(0, 0, 0, 0, 0, 39)), 1, 4, 41, 79)
        return n.op("Slice", r, ints(0, 39), ints(40, 79), ints(2, 3))

    @block("LSTM with states by shapes", [2, 30, 16])
    def _(n, x):
        b = n.op("Slice", n.op("Shape", x), ints(0), ints(1), ints(0))
        h = n.op("Expand", number(0), n.op("Concat", ints(1), b, ints(32), axis=0))
        w, r, bias = (RANDOM.standard_normal(s).astype(np.float32) * .2 for s in ((1, 128, 16), (1, 128, 32), (1, 256)))
        y, last, _ = n.op("LSTM", n.turn(x, 1, 0, 2), w, r, bias, "", h, h, hidden_size=32, outputs=3)
        y = n.turn(n.op("Squeeze", y, ints(1)), 1, 0, 2)
        return n.op("Concat", n.linear(y, 32, 8), n.op("Expand", n.linear(n.turn(last, 1, 0, 2), 32, 8), ints(2, 1, 8)), axis=1)

    @block("CTC greedy decoding", [60, 40])
    def _(n, x):
        best = n.op("ArgMax", x, axis=1, keepdims=0)
        before = n.op("Concat", ints(-1), n.op("Slice", best, ints(0), ints(-1), ints(0)), axis=0)
        kept = n.op("And", n.op("Not", n.op("Equal", best, before)), n.op("Not", n.op("Equal", best, ints(0))))
        return n.op("Compress", best, kept, axis=0)

    @block("boxes above a score", [1, 300, 6])
    def _(n, x):
        score = n.op("Squeeze", n.op("Slice", x, ints(4), ints(5), ints(2)), ints(0, 2))
        at = n.op("Squeeze", n.op("NonZero", n.op("Greater", score, number(.2))), ints(0))
        rows = n.op("Gather", n.op("Squeeze", x, ints(0)), at, axis=0)
        a, b = n.op("Split", n.op("Slice", rows, ints(0), ints(4), ints(1)), ints(2, 2), outputs=2, axis=1)
        return n.op("Concat", n.op("Sub", a, n.op("Div", b, number(2))), n.op("Add", a, n.op("Div", b, number(2))), axis=1)

    @block("Unfold as im2col", [1, 16, 24, 24])
    def _(n, x):
        y = n.op("Pad", x, ints(0, 0, 1, 1, 0, 0, 1, 1))
        rows = (np.arange(3)[:, None] + np.arange(24)[None, :]).astype(np.int64)
        y = n.op("Gather", n.op("Gather", y, rows, axis=2), rows, axis=4)
        return n.op("MatMul", n.weights(1, 8, 144), n.shape(n.turn(y, 0, 1, 2, 4, 3, 5), 1, 144, 576))

    @block("warp by GridSample", [1, 16, 32, 32])
    def _(n, x):
        flow = n.act(n.conv(x, 16, 2, 3), "Tanh")
        return n.op("GridSample", x, n.turn(flow, 0, 2, 3, 1), mode="bilinear", padding_mode="border", align_corners=1)

    @block("last real step by GatherND", [2, 20, 24])
    def _(n, x):
        at = n.op("ArgMax", n.op("ReduceSum", x, ints(2), keepdims=0), axis=1)
        return n.op("GatherND", x, n.op("Concat", np.array([[0], [1]]), at, axis=1))

    @block("ScatterND of a window", [1, 40, 16])
    def _(n, x):
        at = np.stack([np.zeros(10, np.int64), np.arange(5, 15)], 1)
        return n.op("ScatterND", x, at[None], n.act(n.op("Slice", x, ints(5), ints(15), ints(1)), "Tanh"))

    @block("channels last strided slices", [1, 33, 33, 12])
    def _(n, x):
        a = n.op("Slice", x, ints(0, 0), ints(2 ** 31 - 1, 2 ** 31 - 1), ints(1, 2), ints(2, 2))
        b = n.op("Slice", x, ints(1, 1), ints(2 ** 31 - 1, 2 ** 31 - 1), ints(1, 2), ints(2, 2))
        b = n.op("Pad", b, ints(0, 0, 0, 0, 0, 1, 1, 0))
        return n.op("Slice", n.op("Concat", a, b, axis=3), ints(-1), ints(-2 ** 31), ints(3), ints(-1))

    @block("average of what is wanted of a Split", [1, 96, 20, 20])
    def _(n, x):
        _, b, _, d = n.op("Split", n.act(n.conv(x, 96, 96), "Relu"), ints(24, 24, 24, 24), outputs=4, axis=1)
        return n.op("Mean", b, d)

    @block("bilinear up and argmax (segmentation)", [1, 64, 32, 32])
    def _(n, x):
        y = n.op("Resize", n.conv(x, 64, 21), "", "", ints(1, 21, 128, 128), mode="linear", coordinate_transformation_mode="pytorch_half_pixel")
        return n.op("ArgMax", y, axis=1, keepdims=0)

    @block("weight norm and Gemm", [4, 128])
    def _(n, x):
        v = n.keep(n.weights(64, 128))
        w = n.op("Mul", v, n.op("Div", n.weights(64, 1), n.op("ReduceL2", v, axes=[1])))
        return n.op("Gemm", x, w, n.weights(64), transB=1, alpha=.5, beta=2.)

    @block("mixture of experts of four", [8, 64])
    def _(n, x):
        gate, at = n.op("TopK", n.op("Softmax", n.linear(x, 64, 4)), ints(2), outputs=2)
        gate = n.op("Div", gate, n.op("ReduceSum", gate, ints(1)))
        chosen = n.op("OneHot", at, number(4, np.int64), number([0, 1]))
        share = n.op("ReduceSum", n.op("Mul", chosen, n.op("Unsqueeze", gate, ints(-1))), ints(1), keepdims=0)
        y = n.op("Einsum", x, n.weights(4, 64, 32), equation="tc,ecd->ted")
        return n.op("ReduceSum", n.op("Mul", y, n.op("Unsqueeze", share, ints(-1))), ints(1), keepdims=0)

    @block("half inside, float outside", [1, 32, 28, 28])
    def _(n, x):
        h = n.op("Cast", x, to=TensorProto.FLOAT16)
        y = n.op("Conv", h, n.weights(32, 32, 3, 3).astype(np.float16), n.weights(32).astype(np.float16), pads=[1] * 4)
        y = n.op("Cast", n.op("Relu", y), to=TensorProto.FLOAT)
        return n.op("Add", y, n.op("Cast", n.op("Sigmoid", h), to=TensorProto.FLOAT))

    @block("image from bytes, channels last", [1, 96, 96, 3], dtype=np.uint8)
    def _(n, x):
        y = n.op("Div", n.turn(n.op("Cast", x, to=TensorProto.FLOAT), 0, 3, 1, 2), number(255))
        y = n.op("Div", n.op("Sub", y, n.weights(1, 3, 1, 1)), np.abs(n.weights(1, 3, 1, 1)) + .2)
        return n.act(n.conv(y, 3, 16, 3, 2), "Relu")

    def branches(n, condition, then, otherwise):
        graphs = []
        for build in (then, otherwise):
            b = Net()
            y = build(b)
            graphs.append(helper.make_graph(b.nodes, f"b{len(graphs)}", [], [helper.make_tensor_value_info(y, TensorProto.FLOAT, None)],
                                            [numpy_helper.from_array(a, k) for k, a in b.constants.items()]))
        for g, letter in zip(graphs, "pq"):  # names of all graphs are different
            names = {o for node in g.node for o in node.output} | {i.name for i in g.initializer}
            for node in g.node:
                for field in (node.input, node.output):
                    field[:] = [letter + i if i in names else i for i in field]
            for i in list(g.initializer) + list(g.output):
                i.name = letter + i.name
        return n.op("If", condition, then_branch=graphs[0], else_branch=graphs[1])

    @block("If before a network", [1, 3, 64, 64])
    def _(n, x):
        above = n.op("Greater", n.op("ReduceMax", x, keepdims=0), number(1))
        y = branches(n, above, lambda b: b.op("Div", "x", number(255)), lambda b: b.op("Identity", "x"))
        for cin, cout in ((3, 16), (16, 32)):
            y = n.act(n.conv(y, cin, cout, 3, 2), "Relu")
        return n.gemm(n.op("Flatten", n.op("GlobalAveragePool", y)), 32, 10)

    @block("If of different shapes behind a network", [1, 3, 64, 64])
    def _(n, x):
        y = n.act(n.conv(x, 3, 16, 3, 2), "Relu")
        n.nodes.append(helper.make_node("GlobalAveragePool", [y], ["pooled"]))
        above = n.op("Greater", n.op("ReduceMax", y, keepdims=0), number(1))
        return branches(n, above, lambda b: b.op("Flatten", "pooled"), lambda b: b.op("Identity", "pooled"))


if __name__ == "__main__":
    operators.main((images.images, images.detectors, sequences.sequences, sequences.transformers, quantised, halves, odds, *layers.FAMILIES), __doc__, "block")
