#!/usr/bin/env python3
"""Small models as exporters write them, on Penstock's CPU engine beside ONNX Runtime, in alternating pairs.

    blocks.py [--program BUILD/bin/bench_models_run] [--only REGEX] [--threads 1] [--pairs 9] [--all] [--check]

Each is a few layers of an architecture that people serve, at its usual sizes, with random weights. Writes the rows above 1.3, or
all with --all. Needs numpy, onnx and onnxruntime.
"""
import numpy as np
from onnx import TensorProto, helper

import operators
from operators import RANDOM, case, ints, number


class Net:
    """Nodes and constants; every method returns the name of its output."""

    def __init__(self):
        self.nodes, self.constants = [], {}

    def name(self):
        return f"v{len(self.nodes)}"

    def keep(self, array):
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(array)
        return name

    def op(self, op, *inputs, outputs=1, **attributes):
        names = [i if isinstance(i, str) else self.keep(i) for i in inputs]
        made = [self.name()] if outputs == 1 else [f"{self.name()}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, names, made, name=f"n{len(self.nodes)}", **attributes))
        return made[0] if outputs == 1 else made

    def weights(self, *shape):
        return (RANDOM.standard_normal(shape) / np.sqrt(max(1, np.prod(shape[1:])))).astype(np.float32)

    def conv(self, x, cin, cout, k=1, stride=1, group=1, pad=None, dilation=1, bias=True):
        kernel = [k, k] if isinstance(k, int) else list(k)
        pads = [(d - 1) // 2 * dilation for d in kernel] if pad is None else list(pad)
        inputs = [x, self.weights(cout, cin // group, *kernel)] + ([self.weights(cout)] if bias else [])
        return self.op("Conv", *inputs, group=group, pads=pads * 2, strides=[stride] * len(kernel), dilations=[dilation] * len(kernel), kernel_shape=kernel)

    def up(self, x, cin, cout):
        return self.op("ConvTranspose", x, self.weights(cin, cout, 2, 2), self.weights(cout), strides=[2, 2], kernel_shape=[2, 2])

    def bn(self, x, c):
        return self.op("BatchNormalization", x, np.abs(self.weights(c)) + 1, self.weights(c), self.weights(c), np.abs(self.weights(c)) + 1)

    def act(self, x, kind):
        if kind == "silu":
            return self.op("Mul", x, self.op("Sigmoid", x))
        if kind == "hardswish":  # as before opset 14
            return self.op("Div", self.op("Mul", x, self.op("Clip", self.op("Add", x, number(3)), number(0), number(6))), number(6))
        if kind == "gelu":
            y = self.op("Add", self.op("Erf", self.op("Div", x, number(2 ** .5))), number(1))
            return self.op("Mul", self.op("Mul", x, y), number(.5))
        if kind == "gelu_tanh":
            cube = self.op("Mul", self.op("Pow", x, number(3)), number(.044715))
            y = self.op("Tanh", self.op("Mul", self.op("Add", x, cube), number((2 / np.pi) ** .5)))
            return self.op("Mul", self.op("Mul", x, number(.5)), self.op("Add", y, number(1)))
        if kind == "relu6":
            return self.op("Clip", x, number(0), number(6))
        return self.op(kind, x)

    def linear(self, x, n_in, n_out):
        return self.op("Add", self.op("MatMul", x, self.weights(n_in, n_out)), self.weights(n_out))

    def gemm(self, x, n_in, n_out):
        return self.op("Gemm", x, self.weights(n_out, n_in), self.weights(n_out), transB=1)

    def norm(self, x, c, is_op=True):
        if is_op:
            return self.op("LayerNormalization", x, self.weights(c) + 1, self.weights(c), axis=-1)
        d = self.op("Sub", x, self.op("ReduceMean", x, axes=[-1]))
        v = self.op("ReduceMean", self.op("Pow", d, number(2)), axes=[-1])
        y = self.op("Div", d, self.op("Sqrt", self.op("Add", v, number(1e-5))))
        return self.op("Add", self.op("Mul", y, self.weights(c) + 1), self.weights(c))

    def turn(self, x, *perm):
        return self.op("Transpose", x, perm=perm)

    def shape(self, x, *dims):
        return self.op("Reshape", x, ints(*dims))

    def attention(self, x, rows, c, heads, out=None, batch=1):
        q, k, v = (self.turn(self.shape(self.linear(x, c, c), batch, rows, heads, c // heads), *p) for p in ((0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3)))
        s = self.op("Softmax", self.op("Mul", self.op("MatMul", q, k), number((c // heads) ** -.5)), axis=-1)
        y = self.shape(self.turn(self.op("MatMul", s, v), 0, 2, 1, 3), batch, rows, c)
        return self.linear(y, c, out or c)

    def mlp(self, x, c, inner, kind="gelu"):
        return self.linear(self.act(self.linear(x, c, inner), kind), inner, c)

    def se(self, x, c, inner, gate="HardSigmoid", kind="Relu"):
        y = self.op("GlobalAveragePool", x)
        return self.op("Mul", x, self.act(self.conv(self.act(self.conv(y, c, inner), kind), inner, c), gate))

    def end(self, name, x, y, **more):
        self.nodes.append(helper.make_node("Identity", [y], ["y"]))
        case(name, x, self.nodes, self.constants, **more)


def block(name, shape, **more):
    """Decorates a function (net, "x") -> output."""
    def add(build):
        net = Net()
        net.end(name, shape, build(net, "x"), **more)
        return build
    return add


def images():
    @block("ResNet stage 28", [1, 128, 28, 28])
    def _(n, x):
        for _ in range(2):
            y = n.conv(n.act(n.conv(x, 128, 128, 3), "Relu"), 128, 128, 3)
            x = n.act(n.op("Add", x, y), "Relu")
        return x

    @block("ResNet bottlenecks 14", [1, 1024, 14, 14])
    def _(n, x):
        for _ in range(2):
            y = n.act(n.conv(n.act(n.conv(x, 1024, 256), "Relu"), 256, 256, 3), "Relu")
            x = n.act(n.op("Add", n.conv(y, 256, 1024), x), "Relu")
        return x

    @block("classifier tail", [1, 512, 7, 7])
    def _(n, x):
        return n.op("Softmax", n.gemm(n.op("Flatten", n.op("GlobalAveragePool", n.act(n.bn(x, 512), "Relu"))), 512, 1000))

    @block("LeNet", [1, 1, 28, 28])
    def _(n, x):
        x = n.op("MaxPool", n.act(n.conv(x, 1, 8, 5), "Relu"), kernel_shape=[2, 2], strides=[2, 2])
        x = n.op("MaxPool", n.act(n.conv(x, 8, 16, 5), "Relu"), kernel_shape=[2, 2], strides=[2, 2])
        return n.gemm(n.shape(x, 1, -1), 784, 10)

    @block("MobileNetV2 blocks 28", [1, 32, 28, 28])
    def _(n, x):
        for _ in range(2):
            y = n.act(n.conv(n.act(n.conv(x, 32, 192), "relu6"), 192, 192, 3, group=192), "relu6")
            x = n.op("Add", x, n.conv(y, 192, 32))
        return x

    for gate in ("HardSigmoid", "Sigmoid"):
        @block(f"MobileNetV3 block {gate}", [1, 80, 14, 14])
        def _(n, x, gate=gate):
            kind = "hardswish" if gate == "Sigmoid" else "HardSwish"
            y = n.act(n.conv(n.act(n.conv(x, 80, 480), kind), 480, 480, 5, group=480), kind)
            return n.op("Add", x, n.conv(n.se(y, 480, 120, gate), 480, 80))

    @block("EfficientNet block", [1, 40, 28, 28])
    def _(n, x):
        y = n.act(n.conv(n.act(n.conv(x, 40, 240), "silu"), 240, 240, 5, group=240), "silu")
        return n.op("Add", x, n.conv(n.se(y, 240, 10, "Sigmoid", "silu"), 240, 40))

    @block("ShuffleNetV2 block", [1, 116, 28, 28])
    def _(n, x):
        a, b = n.op("Split", x, ints(58, 58), outputs=2, axis=1)
        b = n.act(n.conv(n.conv(n.act(n.conv(b, 58, 58), "Relu"), 58, 58, 3, group=58), 58, 58), "Relu")
        y = n.shape(n.op("Concat", a, b, axis=1), 1, 2, 58, 28, 28)
        return n.shape(n.turn(y, 0, 2, 1, 3, 4), 1, 116, 28, 28)

    for channels, size in ((96, 56), (192, 28)):
        @block(f"ConvNeXt block {size}", [1, channels, size, size])
        def _(n, x, c=channels):
            y = n.norm(n.turn(n.conv(x, c, c, 7, group=c), 0, 2, 3, 1), c)
            y = n.op("Mul", n.mlp(y, c, 4 * c), n.weights(c))
            return n.op("Add", x, n.turn(y, 0, 3, 1, 2))

    @block("DenseNet layers", [1, 64, 28, 28])
    def _(n, x):
        for i in range(4):
            c = 64 + 32 * i
            y = n.conv(n.act(n.bn(x, c), "Relu"), c, 128, bias=False)
            x = n.op("Concat", x, n.conv(n.act(n.bn(y, 128), "Relu"), 128, 32, 3, bias=False), axis=1)
        return x

    @block("Inception branches", [1, 192, 35, 35])
    def _(n, x):
        a = n.act(n.conv(x, 192, 64), "Relu")
        b = n.act(n.conv(n.act(n.conv(x, 192, 48), "Relu"), 48, 64, 5), "Relu")
        d = n.act(n.conv(n.op("AveragePool", x, kernel_shape=[3, 3], pads=[1] * 4, count_include_pad=1), 192, 32), "Relu")
        return n.op("Concat", a, b, d, axis=1)

    @block("U-Net end", [1, 64, 64, 64])
    def _(n, x):
        skip = n.act(n.conv(x, 64, 64, 3), "Relu")
        y = n.act(n.conv(n.op("MaxPool", skip, kernel_shape=[2, 2], strides=[2, 2]), 64, 128, 3), "Relu")
        y = n.op("Concat", n.up(y, 128, 64), skip, axis=1)
        return n.act(n.conv(n.act(n.conv(y, 128, 64, 3), "Relu"), 64, 1), "Sigmoid")

    @block("FPN top", [1, 256, 20, 20])
    def _(n, x):
        y = n.op("Resize", n.conv(x, 256, 96), "", np.array([1, 1, 2, 2], np.float32), mode="nearest", coordinate_transformation_mode="asymmetric",
                 nearest_mode="floor")
        return n.act(n.conv(y, 96, 96, 3), "Relu")

    @block("super resolution PixelShuffle", [1, 1, 96, 96])
    def _(n, x):
        y = n.act(n.conv(n.act(n.conv(x, 1, 64, 5), "Relu"), 64, 32, 3), "Relu")
        return n.op("DepthToSpace", n.conv(y, 32, 9, 3), blocksize=3, mode="CRD")

    @block("PReLU face net", [1, 64, 56, 56])
    def _(n, x):
        for _ in range(2):
            y = n.op("PRelu", n.bn(n.conv(n.bn(x, 64), 64, 64, 3, bias=False), 64), n.weights(64, 1, 1))
            x = n.op("Add", x, n.bn(n.conv(y, 64, 64, 3, bias=False), 64))
        return x

    @block("channels last as tf2onnx writes", [1, 96, 96, 3])
    def _(n, x):
        y = n.act(n.conv(n.turn(x, 0, 3, 1, 2), 3, 32, 3, 2), "relu6")
        y = n.act(n.conv(n.act(n.conv(y, 32, 32, 3, group=32), "relu6"), 32, 64), "relu6")
        return n.op("Softmax", n.linear(n.op("ReduceMean", n.turn(y, 0, 2, 3, 1), axes=[1, 2], keepdims=0), 64, 10))

    @block("CBAM", [1, 128, 28, 28])
    def _(n, x):
        def gate(y):
            return n.conv(n.act(n.conv(y, 128, 8), "Relu"), 8, 128)
        x = n.op("Mul", x, n.act(n.op("Add", gate(n.op("GlobalAveragePool", x)), gate(n.op("GlobalMaxPool", x))), "Sigmoid"))
        y = n.op("Concat", n.op("ReduceMean", x, axes=[1]), n.op("ReduceMax", x, axes=[1]), axis=1)
        return n.op("Mul", x, n.act(n.conv(y, 2, 1, 7), "Sigmoid"))

    @block("InstanceNorm style block", [1, 64, 64, 64])
    def _(n, x):
        y = n.op("Pad", x, ints(0, 0, 1, 1, 0, 0, 1, 1), mode="reflect")
        y = n.op("InstanceNormalization", n.conv(y, 64, 64, 3, pad=(0, 0)), n.weights(64) + 1, n.weights(64))
        return n.op("Add", x, n.act(y, "Relu"))

    @block("GroupNorm block (diffusion)", [1, 128, 32, 32])
    def _(n, x):
        y = n.op("InstanceNormalization", n.shape(x, 1, 32, -1), np.ones(32, np.float32), np.zeros(32, np.float32))
        y = n.op("Add", n.op("Mul", n.shape(y, 1, 128, 32, 32), n.weights(128, 1, 1)), n.weights(128, 1, 1))
        return n.op("Add", x, n.conv(n.act(y, "silu"), 128, 128, 3))


def detectors():
    @block("YOLO C2f", [1, 64, 40, 40])
    def _(n, x):
        a, b = n.op("Split", n.act(n.conv(x, 64, 64), "silu"), ints(32, 32), outputs=2, axis=1)
        c = n.op("Add", b, n.act(n.conv(n.act(n.conv(b, 32, 32, 3), "silu"), 32, 32, 3), "silu"))
        return n.act(n.conv(n.op("Concat", a, b, c, axis=1), 96, 64), "silu")

    @block("YOLO SPPF", [1, 256, 20, 20])
    def _(n, x):
        x = n.act(n.conv(x, 256, 128), "silu")
        all_ = [x]
        for _ in range(3):
            all_.append(n.op("MaxPool", all_[-1], kernel_shape=[5, 5], pads=[2] * 4))
        return n.act(n.conv(n.op("Concat", *all_, axis=1), 512, 256), "silu")

    @block("YOLOv8 head (DFL)", [1, 144, 2100])
    def _(n, x):
        box, cls = n.op("Split", x, ints(64, 80), outputs=2, axis=1)
        d = n.op("Softmax", n.turn(n.shape(box, 1, 4, 16, 2100), 0, 2, 1, 3), axis=1)
        d = n.shape(n.op("Conv", d, np.arange(16, dtype=np.float32).reshape(1, 16, 1, 1)), 1, 4, 2100)
        a, b = n.op("Split", d, ints(2, 2), outputs=2, axis=1)
        grid = n.weights(1, 2, 2100)
        low, high = n.op("Sub", grid, a), n.op("Add", b, grid)
        size = n.op("Div", n.op("Add", low, high), number(2))
        box = n.op("Mul", n.op("Concat", size, n.op("Sub", high, low), axis=1), n.weights(1, 2100))
        return n.op("Concat", box, n.act(cls, "Sigmoid"), axis=1)

    @block("YOLOv5 head", [1, 255, 20, 20])
    def _(n, x):
        y = n.act(n.turn(n.shape(x, 1, 3, 85, 20, 20), 0, 1, 3, 4, 2), "Sigmoid")
        xy, wh, rest = n.op("Split", y, ints(2, 2, 81), outputs=3, axis=4)
        xy = n.op("Mul", n.op("Add", n.op("Mul", xy, number(2)), n.weights(1, 3, 20, 20, 2)), number(32))
        wh = n.op("Mul", n.op("Pow", n.op("Mul", wh, number(2)), number(2)), n.weights(1, 3, 1, 1, 2))
        return n.shape(n.op("Concat", xy, wh, rest, axis=4), 1, 1200, 85)

    @block("TopK tail", [1, 8400, 84])
    def _(n, x):
        box, cls = n.op("Split", x, ints(4, 80), outputs=2, axis=2)
        _, at = n.op("TopK", n.op("ReduceMax", cls, axes=[2], keepdims=0), ints(300), outputs=2, axis=1)
        at = n.op("Tile", n.op("Unsqueeze", at, ints(2)), ints(1, 1, 4))
        return n.op("GatherElements", box, at, axis=1)

    def detector(n, x, cells):
        for cin, cout in ((3, 16), (16, 32), (32, 64)):
            x = n.act(n.conv(x, cin, cout, 3, 2), "Relu")
        boxes = n.act(n.shape(n.turn(n.conv(x, 64, 4), 0, 2, 3, 1), 1, cells, 4), "Sigmoid")
        scores = n.act(n.shape(n.conv(x, 64, 2), 1, 2, cells), "Sigmoid")
        found = n.op("NonMaxSuppression", boxes, scores, ints(20), number([.5]), number([.4]))
        at = n.op("Squeeze", n.op("Slice", found, ints(2), ints(3), ints(1)), ints(1))
        return n.op("Gather", boxes, at, axis=1)

    @block("detector with NonMaxSuppression", [1, 3, 128, 128])
    def _(n, x):
        return detector(n, x, 256)


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
    initial = [operators.numpy_helper.from_array(a, name) for name, a in body.constants.items()]
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


def quantised():
    def quantise(n, x, scale, zero):
        return n.op("QuantizeLinear", x, number(scale), zero)

    def dequantise(n, x, scale, zero):
        return n.op("DequantizeLinear", x, number(scale), zero)

    def bytes_(n, *shape):
        return RANDOM.integers(-127, 128, shape).astype(np.int8)

    def qdq(n, x, zero, scale=.03):
        return dequantise(n, quantise(n, x, scale, zero), scale, zero)

    def qdq_conv(n, x, cin, cout, k, group=1):
        scales = np.full(cout, .3 / (127 * (cin // group * k * k) ** .5), np.float32)
        w = n.op("DequantizeLinear", bytes_(n, cout, cin // group, k, k), scales, np.zeros(cout, np.int8), axis=0)
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
                w = (y, number(.03), zero, bytes_(n, cout, cin, 3, 3), np.full(cout, .002, np.float32), np.zeros(cout, np.int8), number(.03), zero,
                     RANDOM.integers(-99, 99, cout).astype(np.int32))
                y = n.op("QLinearConv", *w, pads=[1] * 4, strides=[2, 2], kernel_shape=[3, 3])
            return dequantise(n, y, .03, zero)

        @block(f"QDQ MLP {kind}", [16, 256])
        def _(n, x, zero=zero):
            for c, d in ((256, 512), (512, 256)):
                w = dequantise(n, bytes_(n, c, d), .3 / (127 * c ** .5), number(0, np.int8))
                x = n.act(n.op("Add", n.op("MatMul", qdq(n, x, zero), w), n.weights(d)), "Relu")
            return qdq(n, x, zero)

    @block("dynamically quantised MLP", [16, 256])
    def _(n, x):
        for c, d in ((256, 1024), (1024, 256)):
            q, s, z = n.op("DynamicQuantizeLinear", x, outputs=3)
            y = n.op("Cast", n.op("MatMulInteger", q, bytes_(n, c, d), z, number(0, np.int8)), to=TensorProto.FLOAT)
            x = n.act(n.op("Add", n.op("Mul", y, n.op("Mul", s, number(.01))), n.weights(d)), "Relu")
        return x


def halves():
    class Half(Net):
        def keep(self, array):
            array = np.asarray(array)
            return super().keep(array.astype(np.float16) if array.dtype in (np.float32, np.float64) else array)

    def block16(name, shape):
        def add(build):
            net = Half()
            net.end(name, shape, build(net, "x"), dtype=np.float16)
            return build
        return add

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

    def branches(n, x, condition, then, otherwise):
        graphs = []
        for build in (then, otherwise):
            b = Net()
            y = build(b)
            graphs.append(helper.make_graph(b.nodes, f"b{len(graphs)}", [], [helper.make_tensor_value_info(y, TensorProto.FLOAT, None)],
                                            [operators.numpy_helper.from_array(a, k) for k, a in b.constants.items()]))
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
        y = branches(n, x, above, lambda b: b.op("Div", "x", number(255)), lambda b: b.op("Identity", "x"))
        for cin, cout in ((3, 16), (16, 32)):
            y = n.act(n.conv(y, cin, cout, 3, 2), "Relu")
        return n.gemm(n.op("Flatten", n.op("GlobalAveragePool", y)), 32, 10)

    @block("If of different shapes behind a network", [1, 3, 64, 64])
    def _(n, x):
        y = n.act(n.conv(x, 3, 16, 3, 2), "Relu")
        n.nodes.append(helper.make_node("GlobalAveragePool", [y], ["pooled"]))
        above = n.op("Greater", n.op("ReduceMax", y, keepdims=0), number(1))
        return branches(n, x, above, lambda b: b.op("Flatten", "pooled"), lambda b: b.op("Identity", "pooled"))


if __name__ == "__main__":
    operators.main((images, detectors, sequences, transformers, quantised, halves, odds), __doc__, "block")
