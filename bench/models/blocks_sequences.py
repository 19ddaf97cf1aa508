"""Blocks of blocks.py: speech, recurrent layers, transformers."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

from cases import RANDOM, ints, number
from net import Net, block


def sequences():
    @block("gated TCN", [1, 32, 200])
    def _(n, x):
        for i in range(4):
            y = n.op("Pad", x, ints(0, 0, 2 << i, 0, 0, 0))
            f, g = (n.conv(y, 32, 32, (3,), pad=(0,), dilation=1 << i) for _ in range(2))
            x = n.op("Add", x, n.conv(n.op("Mul", n.act(f, "Tanh"), n.act(g, "Sigmoid")), 32, 32, (1,)))
        return x

    @block("WaveNet block", [1, 64, 1600])
    def _(n, x):
        f, g = n.op("Split", n.conv(x, 64, 128, (3,), dilation=4), ints(64, 64), outputs=2, axis=1)
        return n.op("Add", x, n.conv(n.op("Mul", n.act(f, "Tanh"), n.act(g, "Sigmoid")), 64, 64, (1,)))

    @block("TDNN with statistics", [1, 80, 200])
    def _(n, x):
        x = n.act(n.bn(n.act(n.conv(x, 80, 256, (5,)), "Relu"), 256), "Relu")
        x = n.bn(n.act(n.conv(x, 256, 256, (3,), dilation=2), "Relu"), 256)
        mean = n.op("ReduceMean", x, axes=[2])
        d = n.op("Sub", x, mean)
        std = n.op("Sqrt", n.op("Add", n.op("ReduceMean", n.op("Mul", d, d), axes=[2]), number(1e-5)))
        return n.gemm(n.op("Flatten", n.op("Concat", mean, std, axis=1)), 512, 192)

    @block("1-d SE-Res2 (ECAPA)", [1, 128, 200])
    def _(n, x):
        parts, y = n.op("Split", x, ints(32, 32, 32, 32), outputs=4, axis=1), None
        made = [parts[0]]
        for p in parts[1:]:
            y = n.bn(n.act(n.conv(p if y is None else n.op("Add", p, y), 32, 32, (3,), dilation=2), "Relu"), 32)
            made.append(y)
        y = n.conv(n.op("Concat", *made, axis=1), 128, 128, (1,))
        g = n.act(n.conv(n.act(n.conv(n.op("ReduceMean", y, axes=[2]), 128, 32, (1,)), "Relu"), 32, 128, (1,)), "Sigmoid")
        return n.op("Add", x, n.op("Mul", y, g))

    def recurrent(n, op, x, c, hidden, directions=2):
        gates = {"LSTM": 4, "GRU": 3}[op]
        more = {"linear_before_reset": 1} if op == "GRU" else {}
        w = [RANDOM.standard_normal(s).astype(np.float32) * .1 for s in
             ((directions, gates * hidden, c), (directions, gates * hidden, hidden), (directions, 2 * gates * hidden))]
        return n.op(op, x, *w, hidden_size=hidden, direction="bidirectional" if directions == 2 else "forward", outputs=2, **more)[0]

    def along(n, y, steps, c):
        return n.shape(n.turn(y, 0, 2, 1, 3), steps, 1, c)

    @block("GRU text tagger", [32], dtype=np.int64)
    def _(n, x):
        y = n.op("Unsqueeze", n.op("Gather", n.weights(1000, 64), x), ints(1))
        return n.linear(along(n, recurrent(n, "GRU", y, 64, 64), 32, 128), 128, 20)

    @block("LSTM with CTC (OCR)", [1, 96, 1, 80])
    def _(n, x):
        y = n.turn(n.op("Squeeze", x, ints(2)), 2, 0, 1)
        for c in (96, 256):
            y = along(n, recurrent(n, "LSTM", y, c, 128), 80, 256)
        return n.op("LogSoftmax", n.linear(y, 256, 97), axis=-1)

    @block("LSTM time series", [24, 1, 8])
    def _(n, x):
        y = n.op("Squeeze", recurrent(n, "LSTM", x, 8, 50, 1), ints(1))
        return n.linear(n.op("Gather", y, number(-1, np.int64), axis=0), 50, 1)

    @block("GRU by a Loop", [1, 40, 32])
    def _(n, x):
        return loop_cell(n, x, 40, 32, 64)

    @block("GRU by a Scan", [40, 32])
    def _(n, x):
        return loop_cell(n, x, 40, 32, 64, True)

    @block("embedding bag classifier", [64], dtype=np.int64)
    def _(n, x):
        y = n.op("ReduceMean", n.op("Gather", n.weights(5000, 100), x), axes=[0])
        return n.op("Softmax", n.gemm(n.act(n.gemm(y, 100, 64), "Relu"), 64, 5))

    @block("MLP with BatchNorm", [1, 64])
    def _(n, x):
        for c, d in ((64, 128), (128, 128), (128, 64)):
            x = n.act(n.bn(n.gemm(x, c, d), d), "Relu")
        return n.act(n.gemm(x, 64, 1), "Sigmoid")


def loop_cell(n, x, steps, c, h, is_scan=False):
    """A minimal gated unit, step by step."""
    body = Net()
    at = "row" if is_scan else body.op("Gather", "x", "i", axis=1)
    row = body.op("Unsqueeze", "row", ints(0)) if is_scan else at
    both = body.op("Concat", row, "h", axis=1)
    gate = body.act(body.linear(both, c + h, h), "Sigmoid")
    new = body.act(body.linear(body.op("Concat", row, body.op("Mul", gate, "h"), axis=1), c + h, h), "Tanh")
    kept = body.op("Add", body.op("Mul", gate, "h"), body.op("Mul", body.op("Sub", number(1), gate), new))
    body.nodes += [helper.make_node("Identity", [kept], ["kept"]), helper.make_node("Identity", [kept], ["step"])]

    def value(name, type_, shape):
        return helper.make_tensor_value_info(name, type_, shape)
    state, floats = [value("h", TensorProto.FLOAT, [1, h])], TensorProto.FLOAT
    made = [value("kept", floats, [1, h]), value("step", floats, [1, h])]
    start = np.zeros((1, h), np.float32)
    initial = [numpy_helper.from_array(a, name) for name, a in body.constants.items()]
    if is_scan:
        graph = helper.make_graph(body.nodes, "body", state + [value("row", floats, [c])], made, initial)
        return n.op("Scan", start, x, outputs=2, body=graph, num_scan_inputs=1)[1]
    body.nodes.append(helper.make_node("Identity", ["go"], ["on"]))
    graph = helper.make_graph(body.nodes, "body", [value("i", TensorProto.INT64, []), value("go", TensorProto.BOOL, [])] + state,
                              [value("on", TensorProto.BOOL, [])] + made, initial)
    return n.op("Loop", number(steps, np.int64), number(True, np.bool_), start, outputs=2, body=graph)[1]


def transformers():
    for rows, c, heads in ((197, 192, 3), (50, 384, 6), (16, 128, 4)):
        for is_op in (True, False):
            @block(f"ViT block {rows}x{c}{'' if is_op else ' before opset 17'}", [1, rows, c])
            def _(n, x, rows=rows, c=c, heads=heads, is_op=is_op):
                x = n.op("Add", x, n.attention(n.norm(x, c, is_op), rows, c, heads))
                return n.op("Add", x, n.mlp(n.norm(x, c, is_op), c, 4 * c))

    @block("conformer block", [1, 100, 144])
    def _(n, x):
        x = n.op("Add", x, n.op("Mul", n.mlp(n.norm(x, 144), 144, 576, "silu"), number(.5)))
        x = n.op("Add", x, n.attention(n.norm(x, 144), 100, 144, 4))
        a, b = n.op("Split", n.conv(n.turn(n.norm(x, 144), 0, 2, 1), 144, 288, (1,)), ints(144, 144), outputs=2, axis=1)
        y = n.conv(n.op("Mul", a, n.act(b, "Sigmoid")), 144, 144, (31,), group=144)
        x = n.op("Add", x, n.turn(n.conv(n.act(n.bn(y, 144), "silu"), 144, 144, (1,)), 0, 2, 1))
        x = n.op("Add", x, n.op("Mul", n.mlp(n.norm(x, 144), 144, 576, "silu"), number(.5)))
        return n.norm(x, 144)

    @block("Swin block, shifted", [1, 28, 28, 96])
    def _(n, x):
        def roll(y, by):
            for axis in (1, 2):
                parts = [n.op("Slice", y, ints(by), ints(2 ** 40), ints(axis)), n.op("Slice", y, ints(0), ints(by), ints(axis))]
                y = n.op("Concat", *parts, axis=axis)
            return y
        y = n.shape(roll(n.norm(x, 96), 3), 1, 4, 7, 4, 7, 96)
        y = n.attention(n.shape(n.turn(y, 0, 1, 3, 2, 4, 5), 16, 49, 96), 49, 96, 3, batch=16)
        y = n.turn(n.shape(y, 1, 4, 4, 7, 7, 96), 0, 1, 3, 2, 4, 5)
        x = n.op("Add", x, roll(n.shape(y, 1, 28, 28, 96), -3))
        return n.op("Add", x, n.mlp(n.norm(x, 96), 96, 384))

    @block("decoder step with a cache of 64", [1, 1, 384])
    def _(n, x):
        y = n.norm(x, 384)
        q, k, v = (n.turn(n.shape(n.linear(y, 384, 384), 1, 1, 6, 64), 0, 2, 1, 3) for _ in range(3))
        k, v = n.op("Concat", n.weights(1, 6, 64, 64), k, axis=2), n.op("Concat", n.weights(1, 6, 64, 64), v, axis=2)
        s = n.op("Softmax", n.op("Mul", n.op("MatMul", q, n.turn(k, 0, 1, 3, 2)), number(.125)), axis=-1)
        x = n.op("Add", x, n.linear(n.shape(n.turn(n.op("MatMul", s, v), 0, 2, 1, 3), 1, 1, 384), 384, 384))
        x = n.op("Add", x, n.mlp(n.norm(x, 384), 384, 1536))
        return n.op("MatMul", n.norm(x, 384), n.weights(384, 5000))

    @block("T5 block", [1, 32, 512])
    def _(n, x):
        def rms(y):
            v = n.op("ReduceMean", n.op("Pow", y, number(2)), axes=[-1])
            return n.op("Mul", n.op("Mul", y, n.op("Reciprocal", n.op("Sqrt", n.op("Add", v, number(1e-6))))), n.weights(512) + 1)
        y = rms(x)
        q, k, v = (n.turn(n.shape(n.op("MatMul", y, n.weights(512, 512)), 1, 32, 8, 64), *p) for p in ((0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3)))
        s = n.op("Softmax", n.op("Add", n.op("MatMul", q, k), n.weights(1, 8, 32, 32)), axis=-1)
        x = n.op("Add", x, n.op("MatMul", n.shape(n.turn(n.op("MatMul", s, v), 0, 2, 1, 3), 1, 32, 512), n.weights(512, 512)))
        y = rms(x)
        y = n.op("Mul", n.act(n.op("MatMul", y, n.weights(512, 1024)), "gelu_tanh"), n.op("MatMul", y, n.weights(512, 1024)))
        return n.op("Add", x, n.op("MatMul", y, n.weights(1024, 512)))

    @block("Llama block 16x256", [1, 16, 256])
    def _(n, x):
        def rms(y):
            v = n.op("ReduceMean", n.op("Pow", y, number(2)), axes=[-1])
            return n.op("Mul", n.weights(256) + 1, n.op("Mul", y, n.op("Div", number(1), n.op("Sqrt", n.op("Add", v, number(1e-6))))))

        def rotate(y):
            a, b = n.op("Slice", y, ints(0), ints(32), ints(3)), n.op("Slice", y, ints(32), ints(2 ** 40), ints(3))
            turned = n.op("Concat", n.op("Neg", b), a, axis=-1)
            return n.op("Add", n.op("Mul", y, n.weights(1, 1, 16, 64)), n.op("Mul", turned, n.weights(1, 1, 16, 64)))
        y = rms(x)
        q, k, v = (n.turn(n.shape(n.op("MatMul", y, n.weights(256, 256)), 1, 16, 4, 64), 0, 2, 1, 3) for _ in range(3))
        s = n.op("Mul", n.op("MatMul", rotate(q), n.turn(rotate(k), 0, 1, 3, 2)), number(.125))
        s = n.op("Softmax", n.op("Add", s, n.weights(1, 1, 16, 16)), axis=-1)
        x = n.op("Add", x, n.op("MatMul", n.shape(n.turn(n.op("MatMul", s, v), 0, 2, 1, 3), 1, 16, 256), n.weights(256, 256)))
        y = rms(x)
        y = n.op("Mul", n.act(n.op("MatMul", y, n.weights(256, 688)), "silu"), n.op("MatMul", y, n.weights(256, 688)))
        return n.op("Add", x, n.op("MatMul", y, n.weights(688, 256)))

    @block("MobileViT unfold", [1, 64, 32, 32])
    def _(n, x):
        y = n.turn(n.shape(x, 64 * 16, 2, 16, 2), 0, 2, 1, 3)
        y = n.shape(n.turn(n.shape(y, 1, 64, 256, 4), 0, 3, 2, 1), 4, 256, 64)
        y = n.op("Add", y, n.attention(n.norm(y, 64), 256, 64, 4, batch=4))
        y = n.turn(n.shape(y, 1, 4, 256, 64), 0, 3, 2, 1)
        return n.shape(n.turn(n.shape(y, 64 * 16, 16, 2, 2), 0, 2, 1, 3), 1, 64, 32, 32)
