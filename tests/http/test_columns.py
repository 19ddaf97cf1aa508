"""Operators of ai.onnx.ml that prepare columns of numbers and strings: missing values, categories, thresholds, labels."""
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
    "names": ("LabelEncoder", {"keys_strings": ["red", "grün"], "values_int64s": [7, 8]}, "BYTES", "INT64", [["grün", "red"], ["", "redd"]],
              [[8, 7], [-1, -1]]),
    "other-names": ("LabelEncoder", {"keys_strings": ["a", "b"], "values_strings": ["x", "y"]}, "BYTES", "BYTES", [["b", "c"], ["a", "b"]],
                    [["y", "_Unused"], ["x", "y"]]),
    "numbers-named": ("LabelEncoder", {"keys_int64s": [1, 2], "values_strings": ["x", "y"], "default_string": "?"}, "INT64", "BYTES", [[2, 1], [3, 2]],
                      [["y", "x"], ["?", "y"]]),
    "colours": ("OneHotEncoder", {"cats_strings": ["red", "blue"], "zeros": 1}, "BYTES", "FP32", [["blue", "red"], ["green", "red"]],
                [[[0, 1], [1, 0]], [[0, 0], [1, 0]]]),
    "mapped": ("CategoryMapper", {"cats_strings": ["a", "b"], "cats_int64s": [4, 7], "default_int64": -3}, "BYTES", "INT64", [["b", "z"], ["a", "b"]],
               [[7, -3], [4, 7]]),
    "mapped-back": ("CategoryMapper", {"cats_strings": ["a", "b"], "cats_int64s": [4, 7]}, "INT64", "BYTES", [[7, 5], [4, 7]], [["b", "_Unused"], ["a", "b"]]),
    "largest": ("Normalizer", {"norm": "MAX"}, "FP32", "FP32", [[1, -4], [0, 0], [-1, -2]], [[1, -4], [0, 0], [1, 2]]),
    "beside": ("FeatureVectorizer", {"inputdimensions": [2]}, "INT64", "FP32", [[1, 2], [3, 4]], [[1, 2], [3, 4]]),
}  # fmt: skip
TYPES = {"FP32": (TensorProto.FLOAT, "f4"), "INT64": (TensorProto.INT64, "i8"), "BYTES": (TensorProto.STRING, object)}
REFUSED = {
    "no-number": ("LabelEncoder", {"keys_floats": [NAN], "values_int64s": [1]}, "other than NaN"),
    "no-categories": ("OneHotEncoder", {"zeros": 1}, "categories are missing"),
    "uneven-names": ("CategoryMapper", {"cats_strings": ["a"], "cats_int64s": [1, 2]}, "2 integers and 1 strings"),
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
    strings = "BYTES" in (source, result)
    ask = server.infer if strings else server.infer_binary
    found = ask(name, {"x": numpy.array(rows, TYPES[source][1])})["y"]
    assert (strings or found.dtype == TYPES[result][1]) and found.tolist() == expected


def test_strings_over_other_protocols(server):
    """TensorFlow's JSON, by row and by column; KServe's binary form: a length before each string."""
    answer = server.post("/v1/models/colours:predict", {"instances": [["blue", "red"], ["green", "red"]]})
    assert answer.json() == {"predictions": CASES["colours"][5]}
    assert server.post("/v1/models/names:predict", {"inputs": [["grün", "no"]]}).json() == {"outputs": [[8, -1]]}
    raw = b"".join(len(s).to_bytes(4, "little") + s for s in (b"red", "grün".encode()))
    head = json.dumps({"inputs": [{"name": "x", "datatype": "BYTES", "shape": [1, 2], "parameters": {"binary_data_size": len(raw)}}]}).encode()
    answer = server.post("/v2/models/names/infer", head + raw, {"Inference-Header-Content-Length": str(len(head))})
    assert answer.json()["outputs"][0]["data"] == [7, 8]


def test_numbers_where_strings_belong(server):
    answer = server.post("/v2/models/colours/infer", {"inputs": [{"name": "x", "datatype": "BYTES", "shape": [1, 2], "data": [1, 2]}]})
    assert answer.status == 400 and "string" in answer.json()["error"]


def test_rows_share_batches(tmp_path):
    for name, case in CASES.items():
        found = json.loads(inspect("--json", save(tmp_path, name, *case[:4], rank=numpy.ndim(case[5]))).stdout)
        assert found["can_batch"] and found["batch_basis"] == "proved", name


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(tmp_path, name):
    op, attributes, words = REFUSED[name]
    done = inspect(save(tmp_path, name, op, attributes, "INT64", "INT64"))
    assert done.returncode == 1 and f"ai.onnx.ml::{op} (opset 3)" in done.stderr and words in done.stderr
