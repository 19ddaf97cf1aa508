"""Operators of ai.onnx.ml that prepare columns of numbers: missing values, categories, thresholds, labels."""
import json
import math
import subprocess

import numpy
import onnx
import pytest
from onnx import TensorProto, helper

import serving

NAN = math.nan
# Operator, attributes, type of input and output, rows of two columns, what comes out.
CASES = {
    "missing": ("Imputer", {"imputed_value_floats": [7.0, 8.0], "replaced_value_float": NAN}, "FP32", "FP32",
                [[1, NAN], [NAN, 2]], [[1, 8], [7, 2]]),
    "marked": ("Imputer", {"imputed_value_floats": [7.0], "replaced_value_float": -1.0}, "FP32", "FP32", [[1, -1], [-1, 2]], [[1, 7], [7, 2]]),
    "marked-integers": ("Imputer", {"imputed_value_int64s": [7, 8], "replaced_value_int64": -1}, "INT64", "INT64", [[1, -1], [-1, 2]], [[1, 8], [7, 2]]),
    "threshold": ("Binarizer", {"threshold": 1.5}, "FP32", "FP32", [[1, 2], [1.5, 3]], [[0, 1], [0, 1]]),
    "categories": ("OneHotEncoder", {"cats_int64s": [3, 1], "zeros": 1}, "INT64", "FP32", [[1, 3], [2, 1]], [[[0, 1], [1, 0]], [[0, 0], [0, 1]]]),
    "categories-of-floats": ("OneHotEncoder", {"cats_int64s": [3, 1]}, "FP32", "FP32", [[1, 3], [2, 1]], [[[0, 1], [1, 0]], [[0, 0], [0, 1]]]),
    "labels": ("LabelEncoder", {"keys_int64s": [5, 6, 5], "values_floats": [.5, .25, 9.0], "default_float": 4.0}, "INT64", "FP32",
               [[5, 6], [7, 5]], [[.5, .25], [4, .5]]),
    "labels-of-floats": ("LabelEncoder", {"keys_floats": [1.5, 2.5], "values_int64s": [30, 40]}, "FP32", "INT64", [[1.5, 2.5], [0, 1.5]],
                         [[30, 40], [-1, 30]]),
}  # fmt: skip
TYPES = {"FP32": (TensorProto.FLOAT, "f4"), "INT64": (TensorProto.INT64, "i8")}
REFUSED = {
    "strings": ("LabelEncoder", {"keys_strings": ["a"], "values_int64s": [1]}, "lists of numbers"),
    "cities": ("OneHotEncoder", {"cats_strings": ["a"]}, "cats_int64s"),
    "uneven": ("LabelEncoder", {"keys_int64s": [1, 2], "values_int64s": [1]}, "2 keys and 1 values"),
    "newer": ("Binarizer", {"threshold": 1.0, "colour": 3}, "colour"),
}


def save(folder, name, op, attributes, source, result, rank=2):
    node = helper.make_node(op, ["x"], ["y"], domain="ai.onnx.ml", **attributes)
    value = helper.make_tensor_value_info
    graph = helper.make_graph([node], name, [value("x", TYPES[source][0], ["batch", 2])], [value("y", TYPES[result][0], ["batch", 2, "c"][:rank])])
    path = folder / f"{name}.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]), path)
    return str(path)


def inspect(*arguments):
    return subprocess.run([str(serving.BINARY), "inspect", *arguments], capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    models = {n: save(folder, n, *case[:4], rank=numpy.ndim(case[5])) for n, case in CASES.items()}
    with serving.Server(folder / "log", models) as server:
        yield server


@pytest.mark.parametrize("name", CASES)
def test_values(server, name):
    _, _, source, result, rows, expected = CASES[name]
    found = server.infer_binary(name, {"x": numpy.array(rows, TYPES[source][1])})["y"]
    assert found.dtype == TYPES[result][1] and numpy.array_equal(found, expected)


def test_rows_share_batches(tmp_path):
    for name, case in CASES.items():
        found = json.loads(inspect("--json", save(tmp_path, name, *case[:4], rank=numpy.ndim(case[5]))).stdout)
        assert found["can_batch"] and found["batch_basis"] == "proved", name


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(tmp_path, name):
    op, attributes, words = REFUSED[name]
    done = inspect(save(tmp_path, name, op, attributes, "INT64", "INT64"))
    assert done.returncode == 1 and f"ai.onnx.ml::{op} (opset 3)" in done.stderr and words in done.stderr
