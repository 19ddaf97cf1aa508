"""Writes tests/data/torture: small models whose load goes through much of the importer, the specialiser and the fusion passes.

.venv/bin/python tests/data/make_torture.py
"""
import pathlib

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

FOLDER = pathlib.Path(__file__).parent / "torture"
RANDOM = numpy.random.default_rng(13)


def constant(name, array):
    return numpy_helper.from_array(numpy.asarray(array), name)


def floats(*shape):
    return RANDOM.standard_normal(shape).astype(numpy.float32)


def int8s(*shape):
    return RANDOM.integers(-100, 100, shape).astype(numpy.int8)


def save(name, nodes, inputs, outputs, constants, functions=()):
    graph = helper.make_graph(nodes, name, inputs, outputs, constants)
    imports = [helper.make_opsetid("", 17)] + [helper.make_opsetid(f.domain, 1) for f in functions[:1]]
    model = helper.make_model(graph, opset_imports=imports, functions=list(functions), ir_version=8)
    onnx.checker.check_model(model)
    FOLDER.mkdir(exist_ok=True)
    onnx.save(model, FOLDER / f"{name}.onnx")


def quantised():
    """Convolutions between QuantizeLinear and DequantizeLinear, their sum, a dynamically quantised product, a line."""
    node = helper.make_node
    constants = [
        constant("s", numpy.float32(0.1)), constant("z", numpy.uint8(128)), constant("ws", numpy.full(8, 0.01, numpy.float32)),
        constant("wz", numpy.zeros(8, numpy.int8)), constant("w1", int8s(8, 3, 3, 3)), constant("w2", int8s(8, 8, 3, 3)),
        constant("b1", floats(8)), constant("scale", numpy.abs(floats(8)) + 1), constant("bias", floats(8)), constant("mean", floats(8)),
        constant("variance", numpy.abs(floats(8)) + 1), constant("w3", floats(8, 8, 1, 1)), constant("w4", int8s(8, 5)),
        constant("w4s", numpy.float32(0.02)), constant("w4z", numpy.int8(0)), constant("two", numpy.array([1, 1, 2, 2], numpy.float32)),
        constant("line", floats(4, 3, 3)), constant("flat", numpy.array([0, 3, 64], numpy.int64)),
    ]  # fmt: skip
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["xq"]),
        node("DequantizeLinear", ["xq", "s", "z"], ["xd"]),
        node("DequantizeLinear", ["w1", "ws", "wz"], ["w1d"], axis=0),
        node("Conv", ["xd", "w1d", "b1"], ["c1"], pads=[1, 1, 1, 1]),
        node("Relu", ["c1"], ["r1"]),
        node("QuantizeLinear", ["r1", "s", "z"], ["q1"]),
        node("DequantizeLinear", ["q1", "s", "z"], ["d1"]),
        node("DequantizeLinear", ["w2", "ws", "wz"], ["w2d"], axis=0),
        node("Conv", ["d1", "w2d"], ["c2"], pads=[1, 1, 1, 1]),
        node("QuantizeLinear", ["c2", "s", "z"], ["q2"]),
        node("DequantizeLinear", ["q2", "s", "z"], ["d2"]),
        node("Add", ["d1", "d2"], ["sum"]),
        node("QuantizeLinear", ["sum", "s", "z"], ["q3"]),
        node("DequantizeLinear", ["q3", "s", "z"], ["d3"]),
        node("MaxPool", ["d3"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Resize", ["p", "", "two"], ["up"], mode="nearest"),
        node("Concat", ["up", "d3"], ["both"], axis=1),
        node("Split", ["both"], ["half", "other"], axis=1),
        node("Conv", ["half", "w3"], ["c3"]),
        node("BatchNormalization", ["c3", "scale", "bias", "mean", "variance"], ["n3"]),
        node("Sigmoid", ["n3"], ["g3"]),
        node("Mul", ["n3", "g3"], ["m3"]),
        node("GlobalAveragePool", ["m3"], ["pool"]),
        node("Flatten", ["pool"], ["f"]),
        node("DynamicQuantizeLinear", ["f"], ["fq", "fs", "fz"]),
        node("MatMulInteger", ["fq", "w4", "fz", "w4z"], ["i"]),
        node("Cast", ["i"], ["ic"], to=TensorProto.FLOAT),
        node("Mul", ["fs", "w4s"], ["is"]),
        node("Mul", ["ic", "is"], ["logits"]),
        node("Reshape", ["x", "flat"], ["lines"]),
        node("Conv", ["lines", "line"], ["lc"], pads=[1, 1]),
        node("ReduceMean", ["lc"], ["level"], axes=[1, 2], keepdims=0),
    ]
    save("quantised", nodes, [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3, 8, 8])],
         [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 5]),
          helper.make_tensor_value_info("level", TensorProto.FLOAT, ["batch"])], constants)  # fmt: skip


def control():
    """An If of which both branches are imported, a Loop that captures a value, a function; strings; half precision."""
    node, info = helper.make_node, helper.make_tensor_value_info
    branch = lambda op, name: helper.make_graph([node(op, ["x", "half"], [name])], name, [], [info(name, TensorProto.FLOAT, None)])  # noqa: E731
    body = helper.make_graph(
        [node("Add", ["carried", "x"], ["next"]), node("Identity", ["keeps_on"], ["again"]), node("ReduceSum", ["next"], ["total"], keepdims=0)],
        "body", [info("i", TensorProto.INT64, []), info("keeps_on", TensorProto.BOOL, []), info("carried", TensorProto.FLOAT, None)],
        [info("again", TensorProto.BOOL, []), info("next", TensorProto.FLOAT, None), info("total", TensorProto.FLOAT, None)])  # fmt: skip
    twice = helper.make_function("own", "Twice", ["a"], ["b"], [node("Add", ["a", "a"], ["b"])], [helper.make_opsetid("", 17)])
    nodes = [
        node("Shape", ["x"], ["shape"]),
        node("Gather", ["shape", "zero"], ["rows"]),
        node("Greater", ["rows", "zero"], ["is_large"]),
        node("If", ["is_large"], ["y"], then_branch=branch("Mul", "then"), else_branch=branch("Div", "else")),
        node("Twice", ["y"], ["y2"], domain="own"),
        node("Loop", ["three", "true", "y2"], ["looped", "totals"], body=body),
        node("Cast", ["w"], ["wide"], to=TensorProto.FLOAT),
        node("MatMul", ["looped", "wide"], ["product"]),
    ]
    constants = [constant("half", numpy.float32(0.5)), constant("zero", numpy.int64(0)), constant("three", numpy.int64(3)), constant("true", numpy.bool_(True)),
                 constant("w", floats(4, 2).astype(numpy.float16))]  # fmt: skip
    save("control", nodes, [info("x", TensorProto.FLOAT, ["batch", 4])], [info("product", TensorProto.FLOAT, ["rows", 2]), info("totals", TensorProto.FLOAT, ["turns"])],
         constants, [twice])  # fmt: skip


quantised()
control()
