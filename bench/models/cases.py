"""What operators.py and its lists measure: models of a few nodes."""
import numpy as np
from onnx import helper

RANDOM = np.random.default_rng(0)
IMAGE = [1, 64, 56, 56]
CASES = {}


def floats(*shape):
    return (RANDOM.standard_normal(shape) * .2).astype(np.float32)


def ints(*values):
    return np.array(values, np.int64)


def number(x, dtype=np.float32):
    return np.array(x, dtype)


def case(name, x, nodes, constants=None, opset=17, dtype=np.float32, positive=False):
    """Input "x" of shape `x`, output "y"."""
    assert name not in CASES, name
    CASES[name] = (x, nodes, constants or {}, opset, dtype, positive)


def one(name, op, x, constants=(), opset=17, dtype=np.float32, positive=False, **attributes):
    """One node: "x", then constants (None: absent)."""
    names = ["" if c is None else f"c{i}" for i, c in enumerate(constants)]
    case(name, x, [helper.make_node(op, ["x", *names], ["y"], **attributes)],
         {f"c{i}": c for i, c in enumerate(constants) if c is not None}, opset, dtype, positive)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(","), outputs.split(","), **attributes)
