"""Builds the small models of blocks.py."""
import numpy as np
from onnx import helper

from cases import RANDOM, case, ints, number


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


def block(name, shape, kind=Net, **more):
    """Decorates a function (net, "x") -> output; the net is of that class."""
    def add(build):
        net = kind()
        net.end(name, shape, build(net, "x"), **more)
        return build
    return add
